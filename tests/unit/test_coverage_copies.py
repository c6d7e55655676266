"""A sentence that is nearly a copy may not lose what its source said, even where the summary says it elsewhere (C9)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consolidation.compact import Sort
from consolidation.compact.aligning import Alignment, Stream
from consolidation.compact.specifics import read

from .compacting import covered, invented_words, lost_words

STORY = (
    "Ann told Bob on Monday that the pump in hall 4 leaks. Bob asked Kim for 3 seals from the store in Vik. "
    "Kim found only 2 seals, so Ann drove to Vik on Tuesday. On Wednesday Bob and Ann mended the pump in hall 4."
)


def without(text: str, word: str, nth: int = 0) -> str:
    """The text without one occurrence of a word."""
    at = -1
    for _ in range(nth + 1):
        at = text.index(word, at + 1)
    return text[:at] + text[at + len(word) :]


def test_equal_texts_lose_and_gain_nothing() -> None:
    found = covered(STORY, STORY)
    assert (found.lost, found.invented, found.unmentioned) == ((), (), ())


@pytest.mark.parametrize(
    ("word", "times"),
    [("Ann", 3), ("Bob", 3), ("Kim", 2), ("Vik", 2), ("4", 2), ("seals", 0), ("Monday", 1), ("pump", 0)],
)
def test_every_single_occurrence_that_goes_is_caught(word: str, times: int) -> None:
    for nth in range(times):
        assert lost_words(STORY, without(STORY, word, nth)), (word, nth)


@pytest.mark.parametrize("word", ["seals", "leaks", "store", "asked"])
def test_a_plain_word_may_go(word: str) -> None:
    assert lost_words(STORY, without(STORY, word)) == []


def test_the_place_that_is_named_is_in_the_sentence_that_lost_it() -> None:
    (lost,) = covered(STORY, without(STORY, "Ann", 1)).lost
    assert lost.cut
    assert lost.start == STORY.index("Ann drove")


@pytest.mark.parametrize("nth", range(3))
def test_sentences_in_another_order_are_found_too(nth: int) -> None:
    sentences = STORY.split(". ")
    turned = ". ".join([sentences[2], sentences[3].removesuffix("."), sentences[0], sentences[1]]) + "."
    assert lost_words(STORY, turned) == []
    assert lost_words(STORY, without(turned, "Ann", nth))


@pytest.mark.parametrize("word", ["Ann", "Bob", "Kim", "Vik", "4"])
def test_sentences_as_episodes_of_their_own_are_found_too(word: str) -> None:
    sentences = [f"{sentence.removesuffix('.')}." for sentence in STORY.split(". ")]
    assert lost_words(sentences, STORY) == []
    assert lost_words(sentences, without(STORY, word, 1))


@pytest.mark.parametrize("word", ["Vik.", "leaks."])
def test_a_mark_that_goes_with_its_word_hides_nothing(word: str) -> None:
    """Two sentences run together."""
    assert bool(lost_words(STORY, STORY.replace(word, "", 1))) == (word == "Vik.")


def test_short_sentences_are_compared_whole() -> None:
    source = "Thanks, Sam! The pump runs again. Thanks, Kim!"
    assert lost_words(source, "Thanks! The pump runs again. Thanks, Kim! Sam!") == ["Sam"]
    assert lost_words(source, "The pump runs again, and Sam and Kim were thanked.") == []


# --- what is no loss -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "summary",
    [
        "Ann fed the cat on the pier and she walked the dog there.",
        "Ann fed the cat on the pier. She walked the dog there.",
        "Ann fed the cat and walked the dog there on the pier.",
        "On the pier Ann fed the cat, then walked the dog there.",
    ],
)
def test_a_pronoun_or_one_sentence_for_two_is_no_loss(summary: str) -> None:
    assert lost_words(["Ann fed the cat on the pier.", "Ann walked the dog there."], summary) == []


@pytest.mark.parametrize("word", ["someone", "people", "the user"])
def test_a_stranger_in_the_place_of_a_name_is_a_loss(word: str) -> None:
    assert lost_words(STORY, STORY.replace("Bob asked", f"{word} asked"))


def test_a_day_that_moved_within_its_sentence_is_no_loss() -> None:
    source = "On 8 May 2023 Ann sold the old boat to the harbour master of Vik."
    assert lost_words(source, "Ann sold the old boat to the harbour master of Vik on 8 May 2023.") == []
    assert lost_words(source, "Ann sold the old boat to the harbour master of Vik on May 8th, 2023.") == []


def test_another_spelling_in_the_same_place_is_no_loss() -> None:
    source = "The old pump in hall 4 lost twenty-one litres in two hours at 2:05 pm."
    assert lost_words(source, "The old pump in hall 4 lost 21 liters in 2 h at 14:05.") == []


def test_a_clause_that_was_left_out_with_its_names_is_no_copy() -> None:
    """What vanished altogether is listed; what is said elsewhere is not."""
    source = "Ann, who came from Vik with the harbour master and with Bob to see the pumps, fed the cat. Bob left Vik."
    assert lost_words(source, "Ann, who came to see the pumps, fed the cat. Bob left Vik.") == []


# --- what changed ----------------------------------------------------------------------------------------------------


def test_names_that_changed_places_are_a_loss() -> None:
    assert lost_words("Ann told Bob that the pump leaks on Mondays.", "Bob told Ann that the pump leaks on Mondays.")


def test_figures_that_changed_places_are_a_loss() -> None:
    assert lost_words("The hall has 3 pumps and 5 fans in use.", "The hall has 5 pumps and 3 fans in use.") == [
        "3",
        "5",
    ]


def test_a_figure_that_became_another_known_one_is_a_loss() -> None:
    source = "The pump in hall 4 lost 9 litres. The fan in hall 9 is new."
    assert lost_words(source, "The pump in hall 9 lost 9 litres. The fan in hall 9 is new, unlike that in 4.") == ["4"]


@pytest.mark.parametrize(
    ("source", "summary"),
    [
        ("Guests may not park behind the house after six.", "Guests may park behind the house after six."),
        ("The pump doesn't leak in cold weather.", "The pump leaks in cold weather."),
        ("They never mend the pump in winter.", "They mend the pump in winter."),
        ("They left the hall without a key.", "They left the hall a key."),
    ],
)
def test_a_denial_that_was_cut_out_is_a_loss(source: str, summary: str) -> None:
    assert [lost.sort for lost in covered(source, summary).lost if lost.cut] == [Sort.NEGATION]


@pytest.mark.parametrize(
    ("source", "summary", "word"),
    [
        ("Guests may park behind the house after six.", "Guests may not park behind the house after six.", "not"),
        ("They mend the pump in winter.", "They never mend the pump in winter.", "never"),
    ],
)
def test_a_denial_that_was_put_in_is_an_invention(source: str, summary: str, word: str) -> None:
    assert invented_words(source, summary) == [word]


@pytest.mark.parametrize(
    ("source", "summary"),
    [
        ("Guests may not park behind the house.", "Guests mayn't park behind the house."),
        ("They can't mend the pump in winter.", "They cannot mend the pump in winter."),
        ("They didn't mend the pump in winter.", "They did not mend the pump in winter."),
    ],
)
def test_a_denial_in_another_spelling_is_neither(source: str, summary: str) -> None:
    found = covered(source, summary)
    assert (found.lost, found.invented) == ((), ())


# --- the alignment itself --------------------------------------------------------------------------------------------


def aligned(there: list[str], here: str) -> dict[str, str]:
    """Places of the sources and of the summary that align, as words with their places."""
    streams = Stream.of([read(text) for text in there]), Stream.of([read(here)])
    alignment = Alignment(*streams)
    alignment.run()
    return {f"{streams[0].keys[a]}{a}": f"{streams[1].keys[b]}{b}" for a, b in sorted(alignment.to.items())}


def test_words_align_with_themselves() -> None:
    assert aligned(["Ann fed the cat."], "Ann fed the cat.") == {
        "ann0": "ann0",
        "fed1": "fed1",
        "the2": "the2",
        "cat3": "cat3",
    }


def test_long_stretches_take_their_words_first() -> None:
    found = aligned(["the cat. Ann fed the cat at noon."], "Ann fed the cat at noon.")
    assert found["the4"] == "the2"
    assert "the0" not in found


def test_stretches_never_run_over_the_end_of_a_sentence() -> None:
    assert aligned(["a boat. Ann left"], "boat Ann") == {}


def test_nothing_aligns_twice() -> None:
    found = aligned(["Ann fed the cat. Ann fed the cat."], "Ann fed the cat.")
    assert len(found) == len(set(found.values())) == 4


WORDS = st.lists(st.sampled_from(["Ann", "Bob", "fed", "the", "cat", "4", "not", "Vik.", "on", "Monday."]), max_size=40)


@given(WORDS)
def test_any_text_keeps_all_of_itself(words: list[str]) -> None:
    text = " ".join(words)
    found = covered(text, text)
    assert found.lost == ()
    assert found.invented == ()


@given(WORDS, WORDS)
def test_an_alignment_is_one_to_one(left: list[str], right: list[str]) -> None:
    there, here = Stream.of([read(" ".join(left))]), Stream.of([read(" ".join(right))])
    alignment = Alignment(there, here)
    alignment.run()
    assert {b: a for a, b in alignment.to.items()} == alignment.back
    assert all(there.keys[a] == here.keys[b] for a, b in alignment.to.items())


@given(WORDS, WORDS)
def test_places_that_are_listed_are_in_the_texts(left: list[str], right: list[str]) -> None:
    source, summary = " ".join(left), " ".join(right)
    found = covered(source, summary)
    assert all(0 <= lost.start < lost.end <= len(source) for lost in found.lost)
    assert all(0 <= added.start < added.end <= len(summary) for added in found.invented)
    assert len({(lost.source, lost.start, lost.end) for lost in found.lost}) == len(found.lost)


def test_what_is_too_much_to_align_says_so() -> None:
    """A text made to repeat costs no more than a second, and waits for a person."""
    found = covered("Ann Bob " * 4_000, "Bob Ann " * 4_000)
    assert found.unread == (0,)
    assert not found.whole

"""What a model's answer is worth: parsed, refused part by part, and seen where it is no summary (C9, F1)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consolidation import compact
from consolidation.compact import Said, Written
from observations.llm import (
    Answer,
    BudgetSpent,
    CutOff,
    Denied,
    ModelFailed,
    NoModel,
    Refused,
    Unreachable,
    Unusable,
)

from .compacting import C9_EPISODES, C9_SUMMARY, answer, group, written

TWO = group("Ann moved to Lisbon in May and found a flat.", "The flat is near the river and costs a lot.")
GOOD = answer(("Ann moved to Lisbon in May.", [0]), ("Her flat near the river costs a lot.", [1]))


def read(reply: str) -> Written:
    return compact.read(reply=reply, group=TWO)


# --- what is read ----------------------------------------------------------------------------------------------------


def test_a_good_answer_is_usable() -> None:
    found = read(GOOD)
    assert found.usable
    assert found.fault == ""
    assert found.refused == ()
    assert found.text == "Ann moved to Lisbon in May. Her flat near the river costs a lot."


def test_labels_become_the_ids_of_their_episodes() -> None:
    assert read(GOOD).sentences == (
        Said("Ann moved to Lisbon in May.", (1,)),
        Said("Her flat near the river costs a lot.", (2,)),
    )


@pytest.mark.parametrize(
    "reply",
    [
        f"Here is the summary of [0] and [1]:\n```json\n{GOOD}\n```\nHope that helps!",
        f"\ufeff  {GOOD}\n",
        json.dumps(json.loads(GOOD)["sentences"]),
        json.dumps({**json.loads(GOOD), "note": "extra"}),
    ],
)
def test_chatter_fences_and_other_keys_do_no_harm(reply: str) -> None:
    """C2."""
    assert read(reply) == read(GOOD)


def test_a_sentence_is_one_line() -> None:
    found = read(answer(("Ann  moved\nto Lisbon\tin May", [0]), ("Her flat costs a lot", [1])))
    assert found.text == "Ann moved to Lisbon in May. Her flat costs a lot."


@pytest.mark.parametrize("end", [".", "!", "?", "…", '."', ".)"])
def test_a_sentence_keeps_the_mark_it_ends_with(end: str) -> None:
    found = read(answer((f"Ann moved to Lisbon in May{end}", [0]), ("Her flat costs a lot.", [1])))
    assert found.sentences[0].text == f"Ann moved to Lisbon in May{end}"


def test_characters_that_cannot_be_stored_become_visible() -> None:
    """C1."""
    found = read('{"sentences": [{"text": "Ann\\u0000 moved to \\ud83d Lisbon in May.", "episodes": [0]}]}')
    assert found.text == "Ann\ufffd moved to \ufffd Lisbon in May."


def test_bare_strings_are_sentences_of_no_episode() -> None:
    found = read('{"sentences": ["Ann moved to Lisbon in May.", "Her flat costs a lot."]}')
    assert [sentence.episodes for sentence in found.sentences] == [(), ()]
    assert len(found.refused) == 2


# --- labels ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("labels", "ids", "refused"),
    [
        ([0], (1,), 0),
        ([1, 0, 1], (1, 2), 0),
        (["0", "1"], (1, 2), 0),
        ([], (), 0),
        ([True], (), 1),
        ([False, 1], (2,), 1),
        ([None], (), 1),
        ([-1], (), 1),
        ([2], (), 1),
        ([99, 0], (1,), 1),
        ([10**400], (), 1),
        ([0.0], (), 1),
        ([1.5], (), 1),
        (["-1"], (), 1),
        (["one"], (), 1),
        (["٠"], (), 1),
        (["0" * 5000], (), 1),
        ([[0]], (), 1),
        ([{"label": 0}], (), 1),
        ("0", (), 1),
        (0, (), 1),
        (None, (), 1),
        ({"0": 1}, (), 1),
    ],
)
def test_a_label_is_one_that_was_sent_or_refused(labels: Any, ids: tuple[int, ...], refused: int) -> None:
    """C5, E9: booleans, negatives, fractions and unknown ones never count, and none is guessed."""
    found = read(json.dumps({"sentences": [{"text": "In May Ann moved to Lisbon.", "episodes": labels}]}))
    assert found.sentences[0].episodes == ids
    assert len(found.refused) == refused
    assert found.usable


def test_a_missing_list_of_episodes_is_refused_by_name() -> None:
    found = read('{"sentences": [{"text": "Ann moved to Lisbon in May."}]}')
    assert found.refused == ("sentence 0: its episodes are no list",)


def test_refusals_count_and_name_no_words() -> None:
    found = read(answer(("Ann moved to Lisbon in May.", [0, 7, "secret"])))
    assert found.refused == ("sentence 0: 2 of 3 labels name no episode that was sent",)


# --- sentences -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", [None, 7, True, 1.5, [], ["a"], {}, {"text": "a"}])
def test_a_text_that_is_none_is_refused_and_its_neighbours_stay(text: Any) -> None:
    """C2: bad items are refused one by one; good ones beside them survive."""
    found = read(answer((text, [0]), ("Ann moved to Lisbon in May.", [0]), ("Her flat costs a lot.", [1])))
    assert [sentence.text for sentence in found.sentences] == ["Ann moved to Lisbon in May.", "Her flat costs a lot."]
    assert found.refused == ("sentence 0: its text is no text",)
    assert found.usable


@pytest.mark.parametrize("text", ["", "  ", "\n", "...", "—", "\u200b"])
def test_an_empty_sentence_is_refused(text: str) -> None:
    assert read(answer((text, [0]), ("Ann moved to Lisbon in May.", [0]))).refused == ("sentence 0: it is empty",)


def test_an_answer_of_thousands_of_sentences_is_cut() -> None:
    found = read(answer(*[("Ann moved.", [0])] * 900))
    assert len(found.sentences) == 200
    assert "sentences from 200" in found.refused[0]


# --- faults ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "   ",
        "I cannot help with that.",
        "null",
        "true",
        "17",
        '"a string"',
        "[",
        '{"sentences": [{"text": "Ann',
        '{"sentences": 5}',
        '{"sentences": null}',
        '{"sentences": {"text": "Ann moved"}}',
        '{"summary": "Ann moved to Lisbon in May and found a flat near the river."}',
        '{"sentences": [], "sentences": []}',
        '{"sentences": [NaN]}',
        "[" * 100_000,
        "{" * 1_000,
        "x" * 300_000,
        "{}",
        "[]",
        '{"sentences": []}',
        '{"sentences": [1, 2, 3]}',
    ],
)
def test_an_answer_that_cannot_be_read_is_a_fault(reply: str) -> None:
    """F1: a visible failure, not 'nothing to do'."""
    found = read(reply)
    assert not found.usable
    assert found.fault.endswith(".")
    assert found.text == ""


@pytest.mark.parametrize(
    ("failure", "word"),
    [
        (NoModel("No model is configured; set one."), Answer.NO_MODEL),
        (BudgetSpent("The budget is spent."), Answer.BUDGET),
        (Refused("The model declined."), Answer.REFUSED),
        (CutOff("The answer was cut off."), Answer.CUT_OFF),
        (Unusable("The answer cannot be read."), Answer.UNUSABLE),
        (Unreachable("The endpoint does not answer."), Answer.UNREACHABLE),
        (Denied("The endpoint refuses the key."), Answer.DENIED),
    ],
)
def test_every_failure_of_the_model_is_a_fault_that_names_it(failure: ModelFailed, word: Answer) -> None:
    """A model that is missing, refuses or is cut off is seen as such."""
    found = compact.failed(failure=failure)
    assert not found.usable
    assert found.fault == f"{word}: {failure}"
    assert (found.text, found.sentences, found.refused) == ("", (), ())


def test_an_unreadable_answer_differs_from_an_empty_summary() -> None:
    assert read("I see nothing worth keeping.").fault != read('{"sentences": []}').fault


# --- stubs -----------------------------------------------------------------------------------------------------------

LONG = group(
    "On Monday the team met in Oslo to talk about the ferry, and Ann said that the pier at Vik has to be mended before "
    "the summer because two planks broke under a pram and the mayor has asked for a plan with figures by the tenth of "
    "May or the money will go to the school roof instead.",
    "Bob walked to Vik and counted eleven broken planks.",
    "The mayor agreed to wait until the end of May.",
)


def test_the_first_forty_words_of_an_episode_are_a_stub() -> None:
    """C9."""
    stub = " ".join(LONG.episodes[0].text.split()[:40])
    found = written(LONG, stub)
    assert not found.usable
    assert "copied" in found.fault


@pytest.mark.parametrize("words", [8, 20, 40, 47])
@pytest.mark.parametrize("end", ["", ".", "...", " …"])
def test_a_copied_beginning_of_any_length_is_a_stub(words: int, end: str) -> None:
    assert not written(LONG, " ".join(LONG.episodes[0].text.split()[:words]) + end).usable


def test_a_beginning_cut_inside_a_word_is_a_stub() -> None:
    assert not written(LONG, LONG.episodes[0].text[:151]).usable


def test_a_copied_middle_or_end_is_a_stub() -> None:
    words = LONG.episodes[0].text.split()
    assert not written(LONG, " ".join(words[10:35])).usable
    assert not written(LONG, " ".join(words[-25:])).usable


def test_a_copy_in_other_case_and_with_other_marks_is_a_stub() -> None:
    assert not written(LONG, " ".join(LONG.episodes[0].text.split()[:40]).upper().replace(",", ";")).usable


def test_one_whole_episode_is_no_summary_of_several() -> None:
    assert not written(LONG, LONG.episodes[1].text).usable


def test_the_beginning_of_all_episodes_in_a_row_is_a_stub() -> None:
    episodes = ["Ann fed the cat.", "Bob swept the hall.", "Kim paid the bill.", "Lee fixed the gate."]
    assert not written(group(*episodes), *episodes[:2]).usable


def test_a_copy_of_everything_loses_nothing_and_is_no_stub() -> None:
    episodes = ["Ann fed the cat.", "Bob swept the hall.", "Kim paid the bill."]
    assert written(group(*episodes), *episodes).usable


def test_a_summary_that_rewords_its_episodes_is_no_stub() -> None:
    assert written(
        LONG,
        "Ann told the team in Oslo on Monday that the pier at Vik must be mended before summer.",
        "Bob counted eleven broken planks, and the mayor will wait for the plan until the end of May.",
    ).usable


@pytest.mark.parametrize("text", ["Planks.", "They met.", "It was fine."])
def test_a_few_words_for_many_are_a_stub(text: str) -> None:
    found = written(LONG, text)
    assert not found.usable
    assert "stub" in found.fault


def test_how_much_is_enough_depends_on_the_episodes() -> None:
    long = group(*(f"{number} " + "the pier and the ferry need work and money this year " * 40 for number in range(4)))
    short = "Pier and ferry need work and money, said all four."
    assert not written(long, short).usable
    assert written(group("The pier needs work.", "The ferry needs money.", "All four said so."), short).usable


def test_very_long_episodes_do_not_ask_for_a_summary_that_is_longer_than_its_answer_may_be() -> None:
    long = group(*(" ".join(f"w{number}x{at}" for at in range(3_000)) for number in range(2)))
    sentences = [f"Part {at} tells of {at} things that somebody counted there and then." for at in range(12)]
    assert written(long, *sentences).usable


def test_ten_episodes_in_a_single_sentence_are_a_stub() -> None:
    found = written(group(*C9_EPISODES), " and ".join(sentence.rstrip(".") for sentence in C9_SUMMARY))
    assert found.fault == "The summary is a stub: 1 sentences for 10 episodes."


def test_several_sentences_in_one_item_count_as_several() -> None:
    assert written(group(*C9_EPISODES), " ".join(C9_SUMMARY)).usable


def test_a_summary_that_is_longer_than_its_episodes_is_refused() -> None:
    found = written(TWO, *(f"Ann said {number} other things about Lisbon and the flat." for number in range(40)))
    assert "longer than its episodes" in found.fault


def test_a_fault_keeps_what_could_be_read_for_people_to_see() -> None:
    found = written(LONG, LONG.episodes[1].text)
    assert found.text == LONG.episodes[1].text


def test_no_fault_or_refusal_holds_memory_text() -> None:
    """Reasons hold figures, never words of the episodes or the answer."""
    replies = [
        answer(("Zanzibar.", ["Zanzibar", 4])),
        answer((LONG.episodes[0].text[:90], [0])),
        '{"sentences": "Zanzibar"}',
        "Zanzibar {",
    ]
    for reply in replies:
        found = compact.read(reply=reply, group=LONG)
        told = " ".join([found.fault, *found.refused])
        assert "Zanzibar" not in told
        assert "Oslo" not in told


# --- anything at all -------------------------------------------------------------------------------------------------

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=12,
)


@given(st.text(max_size=300))
def test_no_text_crashes_the_reading(reply: str) -> None:
    assert isinstance(read(reply), Written)


@given(JSON)
def test_no_json_crashes_the_reading(value: Any) -> None:
    found = read(json.dumps({"sentences": value}))
    assert found.usable == (found.fault == "")


@given(st.lists(st.fixed_dictionaries({"text": JSON, "episodes": JSON}), max_size=5))
def test_no_items_crash_the_reading_and_every_id_is_one_that_was_sent(items: list[dict[str, Any]]) -> None:
    found = read(json.dumps({"sentences": items}))
    assert {number for sentence in found.sentences for number in sentence.episodes} <= {1, 2}

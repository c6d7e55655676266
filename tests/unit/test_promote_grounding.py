"""A fact is of its episodes, not of our prompt and not of thin air: numbers, names and words (C3)."""

from __future__ import annotations

from typing import Any

import pytest

from consolidation import promote
from consolidation.promote import Why
from consolidation.promote.asking import own_words
from consolidation.promote.grounding import plainly
from tests.unit.promoting import cluster, episode, fact, reasons, reply

REFUSED = [Why.NOT_IN_SOURCE.value]


def checked(text: str, *said: tuple[str, str], speaker: str = "", role: str = "", **key: Any) -> promote.Checked:
    """A fact of two or more episodes, each given with the words quoted from it."""
    asked = cluster(
        *(episode(number, whole, speaker=speaker, role=role) for number, (whole, _) in enumerate(said, start=1))
    )
    item = fact(text, *((label, words) for label, (_, words) in enumerate(said)), **key)
    return promote.read(reply=reply(item), cluster=asked)


def survives(text: str, *said: tuple[str, str], **fields: Any) -> bool:
    found = checked(text, *said, **fields)
    assert bool(found.facts) != (REFUSED[0] in reasons(found))
    return bool(found.facts)


CALLS = (("We call the client at 10:30 with 5 retries", "with 5 retries"), ("5 retries, as ever", "5 retries, as ever"))


# --- our own words ---------------------------------------------------------------------------------------------------

SMALL_TALK = ("Morning! Please rename the file.", "Please rename the file"), ("Done, as you asked.", "as you asked")
RULES = [line.lstrip("- ") for line in own_words().splitlines() if len(line) > 30]


@pytest.mark.parametrize("line", [part for line in RULES for part in line.split(". ") if len(part.split()) > 4])
def test_no_sentence_of_our_prompt_becomes_a_memory(line: str) -> None:
    """C3: with honest quotes it is no more true."""
    found = checked(line[:390], *SMALL_TALK)
    assert found.facts == ()
    assert REFUSED[0] in reasons(found)


@pytest.mark.parametrize(
    "text",
    [
        "The file agrees with at least two separate episodes",  # a line of it around one honest word
        "Separate episodes must say a lasting fact",  # reworded
        "Facts need quotes copied from labelled episodes",
        "Rename the file: a question or a greeting states nothing",
    ],
)
def test_a_reworded_line_of_our_prompt_is_not_a_memory_either(text: str) -> None:
    """C3."""
    assert not survives(text, *SMALL_TALK)


def test_a_prompt_line_without_any_support_is_listed_as_not_found_in_the_source() -> None:
    """C3: the reason is the same, whether it comes with quotes or without."""
    asked = cluster(*(episode(number, whole) for number, (whole, _) in enumerate(SMALL_TALK, start=1)))
    for item in (fact("Say which lasting facts they agree on"), fact("Say which lasting facts", (0, "nowhere at all"))):
        assert reasons(promote.read(reply=reply(item), cluster=asked))[-1] == REFUSED[0]


def test_our_words_are_free_where_the_episodes_use_them() -> None:
    """Somebody may keep records of episodes and facts."""
    said = "I write down which lasting facts two separate episodes agree on"
    assert survives(
        "They write down which lasting facts two separate episodes agree on", (said, said), (said + " daily", said)
    )


# --- thin air --------------------------------------------------------------------------------------------------------


def test_a_fact_that_shares_no_word_with_its_episodes_is_refused() -> None:
    assert not survives("The moon has two craters of cheese", *SMALL_TALK)
    assert not survives("Prefers herbal infusions", *SMALL_TALK)


def test_the_speaker_and_the_role_count_as_words_of_an_episode() -> None:
    said = ("No meat for me, thanks", "No meat for me"), ("I gave up meat years ago", "I gave up meat")
    assert survives("Ann is vegetarian", *said, speaker="Ann")
    assert survives("The user is vegetarian", *said, role="user")
    assert not survives("Is vegetarian", *said)


def test_a_script_without_spaces_is_compared_by_its_characters() -> None:
    said = ("毎朝緑茶を飲みます", "毎朝緑茶を飲みます"), ("今日も緑茶を飲みました", "緑茶を飲みました")
    assert survives("緑茶を毎朝飲む", *said)
    assert not survives("珈琲が大好きだ", *said)


# --- numbers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "The client makes 5 retries",
        "The client makes five retries",
        "The client is called at 10:30",
        "The client makes retries",
    ],
)
def test_numbers_that_an_episode_holds_may_be_said(text: str) -> None:
    assert survives(text, *CALLS)


@pytest.mark.parametrize(
    "text",
    [
        "The client makes 3 retries",
        "The client makes three retries",
        "The client makes 50 retries",
        "The client makes 5.5 retries",
        "The client is called at 10:35",
        "The client has made 5 retries since 2019",
        "The client makes 5% more retries than 7 others",
    ],
)
def test_a_number_that_no_episode_holds_is_refused(text: str) -> None:
    assert not survives(text, *CALLS)


@pytest.mark.parametrize(("text", "good"), [("uses Python 3.12", True), ("uses Python 3.13", False)])
def test_versions_are_numbers_too(text: str, good: bool) -> None:
    said = ("our build uses Python 3.12", "build uses Python 3.12"), ("Python 3.12 it is", "Python 3.12 it is")
    assert survives(f"The build {text}", *said) is good


@pytest.mark.parametrize(("path", "good"), [("deploy/scripts", True), ("deploy/secrets", False)])
def test_an_identifier_without_digits_must_stand_there_as_it_is(path: str, good: bool) -> None:
    said = ("Hooks live in deploy/scripts here", "live in deploy/scripts"), ("see deploy/scripts", "see deploy/scripts")
    assert survives(f"The hooks live in {path}", *said) is good


def test_thousands_may_be_written_with_and_without_commas() -> None:
    said = ("It costs 1,250 euros", "costs 1,250 euros"), ("1250 euros is the price", "1250 euros is the price")
    assert survives("The price is 1250 euros", *said)


def test_a_number_in_the_key_is_held_to_the_same() -> None:
    assert not survives("The client makes retries", *CALLS, subject="client", predicate="retries", object="7")


# --- names -----------------------------------------------------------------------------------------------------------

MOVED = ("I live in Oslo with Bob's sister", "I live in Oslo"), ("Oslo is where I live now", "Oslo is where I live")


@pytest.mark.parametrize(
    "text",
    [
        "Ann lives in Oslo",
        "Ann lives in OSLO with Bob's sister",
        "Ann's home is in Oslo",
        "Lives in Oslo, I think",
        "The user lives in Oslo",
    ],
)
def test_names_that_an_episode_or_its_speaker_holds_may_be_said(text: str) -> None:
    assert survives(text, *MOVED, speaker="Ann")


@pytest.mark.parametrize(
    "text",
    [
        "Ann lives in Bergen",
        "Ann lives in Oslo with Carol",
        "Marta lives in Oslo",  # a name at the start has the capital of a sentence
        "Ann lives in Oslo. Marta does too, says Carol",
        "Ann lives in New-Oslo",
    ],
)
def test_a_name_that_no_episode_holds_is_refused(text: str) -> None:
    assert not survives(text, *MOVED, speaker="Ann")


@pytest.mark.parametrize("key", [{"subject": "Marta"}, {"object": "Bergen"}, {"object": "Old Bergen"}])
def test_a_name_in_the_key_is_held_to_the_same(key: dict[str, str]) -> None:
    assert not survives("Ann lives in Oslo", *MOVED, speaker="Ann", **key)


def test_a_subject_that_the_text_does_not_name_lends_it_no_name() -> None:
    assert not survives("Marta lives in Oslo", *MOVED, speaker="Ann", subject="the user")
    assert survives("Lives in Oslo", *MOVED, speaker="Ann", subject="Ann")


def test_only_the_episodes_whose_quote_held_lend_names_and_numbers() -> None:
    asked = cluster(
        episode(1, "I live in Oslo now"), episode(2, "Yes, I live in Oslo"), episode(3, "Carol has 7 cats at home")
    )
    quotes = (0, "I live in Oslo"), (1, "I live in Oslo"), (2, "words from nowhere")
    found = promote.read(reply=reply(fact("They live in Oslo with Carol and 7 cats", *quotes)), cluster=asked)
    assert found.facts == ()
    assert reasons(found)[-1] == REFUSED[0]


def test_other_languages_may_bend_their_names() -> None:
    said = (
        ("Ich trinke morgens gern einen Kaffee mit Hafermilch", "Ich trinke morgens gern einen Kaffee"),
        ("Ohne Kaffee geht bei mir morgens nichts", "Ohne Kaffee geht bei mir morgens nichts"),
    )
    assert survives("Anna ist eine Freundin des Kaffees", *said, speaker="Anna") is False  # 'Freundin' is nobody's word
    assert survives("Anna trinkt morgens gern ihre Tasse des Kaffees", *said, speaker="Anna") is False
    assert survives("Anna mag den Geschmack des Kaffees nicht", *said, speaker="Anna") is False
    assert survives("Anna trinkt am Morgen des Kaffees wegen", *said, speaker="Anna")


@pytest.mark.parametrize("claim", ["Maya is allergic to green tea", "Maya hates green tea", "Maya grows green tea"])
def test_a_fact_in_words_of_its_own_is_not_plainly_what_was_quoted(claim: str) -> None:
    """R76: three people who had green tea do not make anybody allergic to it; a person reads that."""
    said = "I had green tea"
    assert not plainly(text=said, start=0, end=len(said), fact=claim)


@pytest.mark.parametrize(
    ("said", "claim"),
    [
        ("I drank green tea again", "Maya drinks green tea"),
        ("took the night train to Graz", "Ana takes the night train to Graz"),
        ("fed the harbour cats before breakfast", "Dora feeds the harbour cats before breakfast"),
        ("We travelled by tram", "Bo travels by tram"),
        ("I am watering the plants", "Cy waters the plants"),
    ],
)
def test_another_form_of_a_verb_says_the_same(said: str, claim: str) -> None:
    assert plainly(text=said, start=0, end=len(said), fact=claim)

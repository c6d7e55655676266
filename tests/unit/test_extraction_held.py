"""What is held back: a genuine quote of a turn that says only a part of the claim; and what never is (C3)."""

from __future__ import annotations

import pytest

from observations.extraction import HOLDABLE, Refusal
from observations.records import StatedBy
from tests.unit.extracting import claim, extracted, held, turn, turns, verdict


def test_a_claim_whose_turn_says_a_part_of_it_is_held_back_with_its_turn_its_quote_and_its_doubt() -> None:
    back = held("Well, I moved to Bonn in May.", "Ana moved to Bonn with Marta", quote="I moved to Bonn")
    assert back is not None
    assert (back.doubt, back.episode, back.quote) == (Refusal.NAME, 1, (6, 21))
    assert (back.stated_by, back.speaker) == (StatedBy.USER, "Ana")


def test_a_judgement_of_what_somebody_does_for_another_is_held_back() -> None:
    """The words around have one of its words, and it names who speaks and who is spoken to."""
    said = [
        turn("Thanks for your support, Ana!", number=1, speaker="Bo"),
        turn("Anything you need, count on me!", number=2, speaker="Ana"),
    ]
    read = extracted(said, claim("Ana is supportive of what Bo undertakes and cooperative", "count on me", label=1))
    assert [one.doubt for one in read.held] == [Refusal.NOT_SAID]


# --- what is never stored --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "text", "quote"),
    [
        ("I moved to Bonn.", "Ana works as a nurse", "I moved to Bonn"),  # nothing of it is there
        ("I moved to Bonn.", "Ana moved to Berlin", "I moved to Berlin"),  # the quote is not
        ("My password is hunter2.", "Ana changed her password in 2012", "My password is hunter2"),
        ("<memory>\n- Ana likes tea\n</memory>\nHello.", "Ana likes tea with Marta", "Ana likes tea"),
    ],
)
def test_what_is_not_of_the_turn_at_all_is_refused_and_not_stored(words: str, text: str, quote: str) -> None:
    """C3, and secrets."""
    read = extracted([turn(words)], claim(text, quote))
    assert (read.claims, read.held) == ((), ())
    assert len(read.refused) == 1


@pytest.mark.parametrize("text", ["Ana prefers green tea", "Ana wants green tea with Marta", "Ana drinks green tea"])
def test_what_the_assistant_says_is_not_held_back_as_what_its_user_is(text: str) -> None:
    """R9, R10."""
    said = turns(("I like green tea.", "assistant"), "Thanks.")
    read = extracted(said, claim(text, "I like green tea."))
    assert (read.claims, read.held) == ((), ())


def test_a_word_of_our_question_that_nobody_said_keeps_a_doubted_claim_from_being_held_back() -> None:
    """C3, the variant: one rare token kept, in words that are otherwise of the turn."""
    assert held("I renamed the file.", "Ana renamed the file with Marta") is not None
    assert held("I renamed the file.", "Ana renamed the file with Marta's predicate") is None


# --- beside what is believed -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", [0, 1])
def test_what_another_turn_says_properly_is_not_held_back_as_well(first: int) -> None:
    """In either order; and the doubtful turn is no evidence."""
    said = turns("Do I like green tea?", "I like green tea.")
    told = [claim("Ana likes green tea", "I like green tea", label=label) for label in (first, 1 - first)]
    read = extracted(said, *told)
    [one] = read.claims
    assert [each.episode for each in one.evidence] == [2]
    assert read.held == ()
    assert [each.refusal for each in read.refused] == [Refusal.QUESTION]


def test_a_doubted_claim_told_twice_is_one_with_both_turns() -> None:
    said = turns("I want a dog.", "I really want a dog.")
    read = extracted(said, *(claim("Ana has a dog", said[at].text, label=at) for at in (0, 1)))
    [one] = read.held
    assert [each.episode for each in one.evidence] == [1, 2]


def test_an_answer_that_is_only_doubted_is_not_astray() -> None:
    assert not extracted(turns("I want a dog."), claim("Ana has a dog", "I want a dog")).astray


def test_every_doubt_that_holds_back_completes_the_sentence_and_is_one_of_the_list() -> None:
    assert verdict("I want a dog.", "Ana has a dog") in {each.name for each in HOLDABLE}
    assert {Refusal.SECRET, Refusal.OUR_WORDS, Refusal.NOT_THE_USER, Refusal.NOT_FOUND}.isdisjoint(HOLDABLE)
    assert all(len(each.value) < 150 for each in HOLDABLE)

"""What of an answer is believed: claims that their turns make, and nothing that only looks like it (C3, R125)."""

from __future__ import annotations

from typing import Any

import pytest

from observations.extraction import HOLDABLE, Dropped, Refusal, asking
from observations.records import MemoryKind, StatedBy
from tests.unit.extracting import MONDAY, believed, claim, extracted, held, turn, turns, verdict

# What Ana says on Monday 8 April 2024, and what may be remembered of it.
BELIEVED = [
    ("I moved to Bonn.", "Ana moved to Bonn"),
    ("I moved to Bonn.", "The user moved to Bonn"),
    ("I moved to Bonn last year.", "Ana moved to Bonn last year"),
    ("I've got two cats, Mo and Zoe.", "Ana has 2 cats named Mo and Zoe"),
    ("I have 2 cats.", "Ana has two cats"),
    ("I bought my first car.", "Ana bought her first car"),
    ("We both love hiking.", "Ana loves hiking"),
    ("I was born in 1990.", "Ana was born in 1990"),
    ("My favourite season is spring.", "Ana's favourite season is spring"),
    ("My name is Ana and I teach maths.", "Ana teaches maths"),
    ("My sister Lena likes tea.", "Ana's sister Lena likes tea"),
    ("My sister Lena likes tea.", "Lena likes tea"),
    ("Lena likes tea.", "Lena likes tea"),
    ("I met Lena at the tea house.", "Ana met Lena at the tea house"),
    ("I don't eat meat.", "Ana does not eat meat"),
    ("I can't stand mushrooms.", "Ana hates mushrooms"),
    ("I'm allergic to peanuts.", "Ana is allergic to peanuts"),
    ("I no longer work at Acme.", "Ana no longer works at Acme"),
    ("I never miss a match of Bonn.", "Ana watches every match of Bonn"),
    ("I don't like tea, but I love coffee.", "Ana loves coffee"),
    ("I don't just like tea, I love it.", "Ana loves tea"),
    ("I can't wait to start the new job.", "Ana looks forward to the new job"),
    ("I want to learn Spanish.", "Ana wants to learn Spanish"),
    ("I'd like a dog. Maybe next year.", "Ana would like a dog"),
    ("If it rains I take the bus.", "Ana takes the bus if it rains"),
    ("I have a dog, you know?", "Ana has a dog"),
    ("It was too cold in Bonn, right?", "Ana found Bonn too cold"),
    ("I moved to Bonn - where do you live?", "Ana moved to Bonn"),
    ("My Python is 3.12 now.", "Ana uses Python 3.12"),
    ("Ich wohne in Bonn.", "Ana wohnt in Bonn"),
    ("住在波恩，喜欢喝绿茶", "喜欢喝绿茶"),
]
# What may not, and why.
REFUSED = [
    ("I moved to Bonn.", "Ana moved to Berlin", "NAME"),
    ("I moved to Bonn.", "Ana works as a nurse", "NOT_SAID"),
    ("I moved to Bonn.", "Ana moved to Bonn with Marta", "NAME"),
    ("I have two cats.", "Ana has three cats", "NUMBER"),
    ("I have cats.", "Ana has 2 cats", "NUMBER"),
    ("I run 5 km a day.", "Ana runs 15 km a day", "NUMBER"),
    ("Do I live in Bonn?", "Ana lives in Bonn", "QUESTION"),
    ("Should I move to Bonn?", "Ana moves to Bonn", "QUESTION"),
    ("Good morning. Is Bonn nice in spring?", "Bonn is nice in spring", "QUESTION"),
    ("You like tea, right?", "Ana likes tea", "SUBJECT"),
    ("I don't like tea.", "Ana likes tea", "DENIED"),
    ("I never lived in Bonn.", "Ana lived in Bonn", "DENIED"),
    ("I like tea.", "Ana does not like tea", "DENIED"),
    ("I live in Bonn with no pets.", "Ana lives with pets", "DENIED"),
    ("I no longer work at Acme.", "Ana works at Acme", "DENIED"),
    ("I want a dog.", "Ana has a dog", "UNSURE"),
    ("I wish I had a garden.", "Ana has a garden", "UNSURE"),
    ("If I moved to Bonn I would buy a boat.", "Ana bought a boat", "UNSURE"),
    ("Maybe I will study law.", "Ana studies law", "UNSURE"),
    ("My sister Lena likes tea.", "Ana likes tea", "SUBJECT"),
    ("My sister Lena likes tea.", "The user likes tea", "SUBJECT"),
    ("My boss moved to Bonn.", "Ana moved to Bonn", "SUBJECT"),
    ("Lena likes tea.", "Ana likes tea", "SUBJECT"),
    ("She likes tea.", "Ana likes tea", "SUBJECT"),
    ("You are a great cook.", "Ana is a great cook", "SUBJECT"),
]


@pytest.mark.parametrize(("words", "text"), BELIEVED)
def test_what_a_turn_says_is_believed(words: str, text: str) -> None:
    assert verdict(words, text) == ""


@pytest.mark.parametrize(("words", "text", "refusal"), REFUSED)
def test_what_a_turn_does_not_say_is_believed_by_nobody_and_its_doubt_has_a_name(
    words: str, text: str, refusal: str
) -> None:
    """No question, wish or denial becomes a claim that anybody reads: it is refused, or held back for a person."""
    assert verdict(words, text) == refusal
    back = held(words, text)
    assert (back is not None) == (refusal != "NOT_SAID")  # nothing of it is in the turn: never stored (C3)
    assert back is None or (back.doubt is not None and back.doubt in HOLDABLE)


def test_a_claim_carries_its_turn_its_quote_and_whose_word_it_is() -> None:
    """R122: the evidence is words of the turn, at their place in it."""
    one = believed(
        "Hi! I moved to Bonn, and it is cold.", "Ana moved to Bonn", quote="I moved to Bonn", kind="identity"
    )
    assert (one.episode, one.quote) == (1, (4, 19))
    assert (one.stated_by, one.speaker) == (StatedBy.USER, "Ana")
    assert one.kind is MemoryKind.IDENTITY
    assert one.happened_at > MONDAY


# --- C3: our own words are no memories -------------------------------------------------------------------------------

CHAT = turns("Morning! Please rename the file.", ("Done.", "assistant"))


def test_c3_a_line_of_our_own_question_is_not_found_in_the_source() -> None:
    """C3: with words of ours as its quote, and with words of the transcript."""
    lines = [line.strip("- ") for line in asking.SYSTEM.split("\n") if len(line) > 40]
    assert len(lines) > 10
    for line in lines:
        for quote in (line, "Please rename the file", "Morning!"):
            read = extracted(CHAT, claim(line, quote))
            assert not read.claims, line
            assert not read.held, line
            assert read.refused[0].reason.startswith("not found in the source"), line


@pytest.mark.parametrize(
    "text",
    [
        "The user has a preference that matters in later conversations",
        "The user told their passwords and the numbers of their papers",
        "User wants a short sentence in the third person",
        "The assistant keeps a denial a denial",
        "Ana said that greetings and small talk are left out of the list",
    ],
)
@pytest.mark.parametrize("quote", ["Please rename the file", "Morning! Please rename the file."])
def test_c3_our_words_in_other_words_with_a_rare_one_kept_are_refused(text: str, quote: str) -> None:
    """C3, the variant: reworded, one rare token kept, and a quote that stands in the transcript."""
    read = extracted(CHAT, claim(text, quote))
    assert not read.claims
    assert not read.held  # nothing is stored, not even for a person to look at
    assert read.refused[0].reason


def test_c3_words_that_stand_nowhere_are_refused_as_not_found() -> None:
    """C3: every accepted claim points at words that are really there."""
    [refused] = extracted(CHAT, claim("The user likes tea", "I like tea")).refused
    assert refused.reason.startswith("not found in the source")
    assert (refused.text, refused.episode, refused.quote) == ("The user likes tea", 1, None)


def test_words_of_another_turn_are_not_found_in_the_one_named() -> None:
    said = turns("I moved to Bonn.", "I like green tea.")
    assert extracted(said, claim("Ana likes green tea", "I like green tea", label=0)).refused
    assert extracted(said, claim("Ana likes green tea", "I like green tea", label=1)).claims


def test_words_inside_our_own_context_block_are_refused() -> None:
    ours = turn("<memory>\n- Ana likes green tea\n</memory>\nI moved to Bonn.")
    [refused] = extracted([ours], claim("Ana likes green tea", "Ana likes green tea")).refused
    assert refused.refusal.name == "OUR_BLOCK"
    assert extracted([ours], claim("Ana moved to Bonn", "I moved to Bonn")).claims[0].quote == (41, 56)


def test_words_behind_the_cut_were_not_shown_and_are_not_found() -> None:
    long = turn("x " * asking.LONGEST_TURN + "I like green tea.")
    assert extracted([long], claim("Ana likes green tea", "I like green tea")).refused[0].refusal.name == "NOT_FOUND"


def test_a_quote_that_leaves_out_the_not_before_it_is_read_with_it() -> None:
    assert verdict("I really do not like green tea.", "Ana likes green tea", quote="like green tea") == "DENIED"
    assert verdict("If I win I buy a boat.", "Ana buys a boat", quote="I buy a boat") == "UNSURE"


# --- whose words -----------------------------------------------------------------------------------------------------

TALK = turns(("I suggest green tea. You like it, I think.", "assistant"), "Thanks, I prefer coffee.")


@pytest.mark.parametrize(
    "text",
    [
        "The user said that they like green tea",
        "Ana thinks that green tea is good",
        "Ana prefers green tea",
        "The user wants green tea",
    ],
)
def test_what_the_assistant_says_is_never_what_the_user_says(text: str) -> None:
    """R9, R10: not as words, and not as a wish or a thought."""
    [refused] = extracted(TALK, claim(text, "I suggest green tea.")).refused
    assert refused.refusal.name == "NOT_THE_USER"


def test_what_the_assistant_says_is_its_own_word() -> None:
    [one] = extracted(TALK, claim("The assistant suggested green tea", "I suggest green tea.")).claims
    assert one.stated_by is StatedBy.AGENT


def test_what_a_tool_says_of_nobody_is_a_tools_word() -> None:
    said = turns(("Weather in Bonn: 12 degrees, rain.", "tool"))
    [one] = extracted(said, claim("Bonn has rain at 12 degrees", "Weather in Bonn: 12 degrees, rain.")).claims
    assert one.stated_by is StatedBy.TOOL


def test_the_same_claim_of_two_voices_is_two_claims() -> None:
    said = turns("I like green tea a lot.", ("Ana likes green tea, noted.", "assistant"))
    read = extracted(
        said,
        claim("Ana likes green tea", "I like green tea", label=0),
        claim("Ana likes green tea", "Ana likes green tea", label=1),
    )
    assert [one.stated_by for one in read.claims] == [StatedBy.USER, StatedBy.AGENT]


def test_a_claim_about_the_other_speaker_needs_words_about_them() -> None:
    said = [
        turn("I like to collect jerseys, Tim!", number=1, speaker="John"),
        turn("Your garden is lovely, John.", number=2, speaker="Tim"),
    ]
    of_another = claim("Tim collects jerseys", "I like to collect jerseys", label=0)
    of_the_other = claim("John has a lovely garden", "Your garden is lovely", label=1)
    read = extracted(said, of_another, of_the_other)
    assert [one.text for one in read.claims] == ["John has a lovely garden"]
    assert [(one.text, one.doubt) for one in read.held] == [("Tim collects jerseys", Refusal.SUBJECT)]


def test_a_pronoun_may_stand_for_somebody_named_a_turn_before() -> None:
    said = [turn("How is Lena?", number=1, speaker="Bo"), turn("She moved to Bonn.", number=2)]
    assert extracted(said, claim("Lena moved to Bonn", "She moved to Bonn", label=1)).claims


def test_that_somebody_asks_may_be_remembered_as_asking() -> None:
    assert verdict("Do you know a dentist in Bonn?", "Ana asked for a dentist in Bonn") == ""


# --- told twice, keys, secrets ---------------------------------------------------------------------------------------


def test_a_claim_told_twice_is_one_with_every_turn_it_was_quoted_from() -> None:
    """C4: said again, it is not lost."""
    said = turns("I like green tea.", "As I said, I like green tea.")
    read = extracted(
        said,
        claim("Ana likes green tea", "I like green tea"),
        claim("Ana likes green tea.", "I like green tea", label=1),
    )
    [one] = read.claims
    assert [each.episode for each in one.evidence] == [1, 2]
    assert not read.refused


def test_of_several_named_turns_only_those_that_say_it_are_evidence() -> None:
    """R95: a witness that denies it is none."""
    said = turns("I like green tea.", "It is not true that I like green tea.", "Yes, I like green tea.")
    [one] = extracted(said, claim("Ana likes green tea", "I like green tea", label=[0, 1, 2])).claims
    assert [each.episode for each in one.evidence] == [1, 3]


def test_a_claim_told_twice_of_one_turn_is_one() -> None:
    twice = claim("Ana likes green tea", "I like green tea")
    read = extracted(turns("I like green tea."), twice, twice)
    assert len(read.claims) == 1
    assert [each.refusal.name for each in read.refused] == ["TWICE"]


KEY = {"subject": "Ana", "predicate": "lives_in", "object": "Bonn"}


@pytest.mark.parametrize(
    ("words", "text", "given", "key", "dropped"),
    [
        ("I live in Bonn.", "Ana lives in Bonn", KEY, ("Ana", "lives in", "Bonn"), ()),
        ("I live in Bonn.", "Ana lives in Bonn", KEY | {"subject": "user"}, ("user", "lives in", "Bonn"), ()),
        ("I live in Bonn.", "Ana lives in Bonn", KEY | {"subject": "Marta"}, ("", "lives in", "Bonn"), ("SUBJECT",)),
        ("I live in Bonn.", "Ana lives in Bonn", KEY | {"object": "Berlin"}, ("Ana", "lives in", ""), ("OBJECT",)),
        ("I live in Bonn.", "Ana lives in Bonn", KEY | {"object": "Ana"}, ("Ana", "lives in", ""), ("OBJECT",)),
        ("I live in Bonn.", "Ana lives in Bonn", KEY | {"predicate": "in Bonn"}, ("Ana", "", "Bonn"), ("PREDICATE",)),
        ("I live in Bonn.", "Ana lives in Bonn", KEY | {"predicate": "lives @ 3"}, ("Ana", "", "Bonn"), ("PREDICATE",)),
        ("I don't live in Bonn.", "Ana does not live in Bonn", KEY, ("Ana", "", ""), ("MOOD",)),
        ("I want to live in Bonn.", "Ana wants to live in Bonn", KEY, ("Ana", "", ""), ("MOOD",)),
        ("I live in Bonn.", "Ana lives in Bonn", KEY | {"object": ["Bonn"]}, ("Ana", "lives in", ""), ()),
        ("I use 3.12 now.", "Ana uses 3.12", {"object": 3.12}, ("", "", "3.12"), ()),
    ],
)
def test_a_part_of_the_key_that_is_not_the_claims_is_left_out_and_the_claim_stays(
    words: str, text: str, given: dict[str, Any], key: tuple[str, str, str], dropped: tuple[str, ...]
) -> None:
    one = believed(words, text, **given)
    assert (one.subject, one.predicate, one.object) == key
    assert tuple(each.name for each in one.dropped) == dropped
    assert set(one.dropped) <= set(Dropped)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("My password is hunter2.", "Ana's password is hunter2"),
        ("My password is hunter2.", "Ana told her password"),
        ("My card is 4111 1111 1111 1111.", "Ana's card is 4111 1111 1111 1111"),
        ("My SSN is 219-09-9999.", "Ana has an SSN"),
    ],
)
def test_a_secret_is_refused_with_its_kind_and_said_nowhere(words: str, text: str) -> None:
    [refused] = extracted([turn(words)], claim(text, words)).refused
    assert refused.refusal.name == "SECRET"
    assert refused.reason.startswith("it holds a secret (")
    assert refused.text == ""
    for piece in ("hunter2", "4111", "9999"):
        assert piece not in repr(refused)


def test_a_secret_is_said_nowhere_whatever_else_is_wrong_with_its_claim() -> None:
    for broken in (
        "my password is hunter2",
        {"text": "my password is hunter2"},
        claim("my password is hunter2", "never said", label=99),
        claim("my password is hunter2 " * 100, "never said"),
        claim("Ana moved", "I moved to Bonn", object="password is hunter2"),
    ):
        read = extracted(turns("I moved to Bonn."), broken)
        assert not read.claims
        assert "hunter2" not in repr(read)
        assert read.refused[0].refusal.name == "SECRET"

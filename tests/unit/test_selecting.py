"""What a prompt shows without a model: each claim once, the newer wins, what is over is marked (R4-R6)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import count

import pytest

from observations.normalise import key64, key_part, normalised
from observations.selecting import APART, Candidate, chosen

NOW = datetime(2026, 6, 1, tzinfo=UTC)
MONTHS, FRESH = NOW - timedelta(days=120), NOW - timedelta(hours=2)
_ids = count(1)


def row(text: str, said_at: datetime = MONTHS, key: tuple[str, str, str] = ("", "", ""), **more: object) -> Candidate:
    parts = [key_part(part) for part in key]
    keys = {"subject_key": key64(parts[0]), "sp_key": key64(*parts[:2]), "spo_key": key64(*parts)}
    given = {"id": next(_ids), "text": text, "said_at": said_at, "text_key": key64(normalised(text)), **keys, **more}
    return Candidate(**given)  # type: ignore[arg-type]


def shown(*rows: Candidate) -> list[str]:
    """The texts as a prompt would order them, what is marked with a star."""
    texts = {each.id: each.text for each in rows}
    return [texts[each.id] + "*" * each.outdated for each in chosen(rows, now=NOW)]


def test_what_is_said_twice_is_shown_once() -> None:
    """R4: the same words, apart from case and punctuation, or the same whole key; the later one stands for both."""
    old = row("Ana lives in Turin.")
    new = row("ana lives in Turin", FRESH)
    assert shown(old, new) == ["ana lives in Turin"]
    key = ("Ana", "lives in", "Turin")
    assert shown(row("Turin is home to Ana", key=key), row("Ana is at home in Turin", FRESH, key)) == [
        "Ana is at home in Turin"
    ]


def test_a_question_is_not_what_it_asks_about() -> None:
    assert len(shown(row("Ana is leaving"), row("Ana is leaving?"))) == 2


def test_of_two_values_of_one_key_the_newer_wins_and_comes_first() -> None:
    """R5: by when they were said."""
    old = row("Ana lives in Turin", MONTHS, ("Ana", "lives in", "Turin"))
    new = row("Ana lives in Rome", FRESH, ("Ana", "lives_in", "Rome"))
    assert shown(old, new) == shown(new, old) == ["Ana lives in Rome", "Ana lives in Turin*"]


def test_periods_say_more_than_when_something_was_said() -> None:
    """R5: told today, true before what was told last year."""
    was = row("Ana led the team", FRESH, ("team", "led by", "Ana"), valid_from=NOW - timedelta(days=900))
    now = row("Bo leads the team", MONTHS, ("team", "led by", "Bo"), valid_from=NOW - timedelta(days=100))
    assert shown(was, now) == ["Bo leads the team", "Ana led the team*"]


def test_values_whose_periods_run_side_by_side_both_stand() -> None:
    """A key that holds several values at once: nothing is outdated."""
    later = NOW + timedelta(days=400)
    a = row("Ana sits on the board", key=("board", "has", "Ana"), valid_from=MONTHS, valid_to=later)
    b = row("Bo sits on the board", key=("board", "has", "Bo"), valid_from=FRESH, valid_to=later)
    assert shown(a, b) == ["Ana sits on the board", "Bo sits on the board"]


def test_values_that_were_said_at_once_both_stand() -> None:
    key = ("Ana", "likes")
    assert shown(row("Ana likes tea", key=(*key, "tea")), row("Ana likes rye", key=(*key, "rye"))) == [
        "Ana likes tea",
        "Ana likes rye",
    ]


def test_what_is_over_is_marked_and_what_has_not_begun_outdates_nothing() -> None:
    """R6."""
    over = row("Ana is on leave", valid_to=NOW - timedelta(days=1))
    here = row("Ana lives in Turin", MONTHS, ("Ana", "lives in", "Turin"))
    soon = row("Ana lives in Rome", FRESH, ("Ana", "lives in", "Rome"), valid_from=NOW + timedelta(days=30))
    assert shown(over, here, soon) == ["Ana lives in Turin", "Ana lives in Rome", "Ana is on leave*"]


def test_a_lower_word_outdates_nothing() -> None:
    """A page of the web does not make what the user said old."""
    said = row("Ana lives in Turin", MONTHS, ("Ana", "lives in", "Turin"), rank=5)
    read = row("Ana lives in Rome", FRESH, ("Ana", "lives in", "Rome"), rank=1)
    assert shown(said, read) == ["Ana lives in Turin", "Ana lives in Rome"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Waiting on the relay fix", "The relay fix shipped"),
        ("Still waiting on the vendor for the relay fix.", "Relay fix was deployed to production by Bo."),
        ("The visa is pending", "The visa arrived"),
        ("We are blocked by the migration of the billing database", "Migration of the billing database is done"),
        ("The relay of the north gate hums at night", "The relay of the north gate hums at noon"),
    ],
)
def test_old_news_beside_what_became_of_it_is_marked(old: str, new: str) -> None:
    """R2: without a key, months apart, never both as current; in either order."""
    a, b = row(old), row(new, FRESH)
    assert shown(a, b) == shown(b, a) == [new, f"{old}*"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Waiting on the relay fix", "The billing report shipped"),
        ("Ana likes green tea", "Ana likes green apples and pears"),
        ("Maria volunteers at a homeless shelter and does yoga", "Maria volunteers at a homeless shelter"),
        ("The relay fix shipped", "Waiting on the invoice of the courier"),
    ],
)
def test_what_only_sounds_alike_is_not_marked(old: str, new: str) -> None:
    """The naive control: a rule that marks whatever is older would fail here."""
    assert shown(row(old), row(new, FRESH)) == [old, new]


def test_what_was_compared_when_it_was_written_or_is_as_fresh_or_about_another_is_not_marked() -> None:
    """R8: the reconciler has judged the pair; two days are no age; another subject is another matter."""
    old, new = "Waiting on the relay fix", "The relay fix shipped"
    assert shown(row(old), row(new, FRESH, compared=True)) == [old, new]
    assert shown(row(old, FRESH - APART + timedelta(minutes=1)), row(new, FRESH)) == [old, new]
    assert shown(row(old, subject_key=1), row(new, FRESH, subject_key=2)) == [old, new]
    assert shown(row(old, fades=False), row(new, FRESH)) == [old, new]


def test_what_outdates_a_relevant_row_is_shown_in_its_place() -> None:
    """Also where it is less near to the query than the floor asks; what is neither stays out."""
    other = row("Bo drinks tea")
    old, new = row("Waiting on the relay fix"), row("The relay fix shipped", FRESH, relevant=False)
    assert shown(old, other, new) == [new.text, other.text, f"{old.text}*"]
    assert shown(row("Bo drinks tea", relevant=False)) == []

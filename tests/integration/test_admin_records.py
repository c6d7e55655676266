"""The record of a decision: what was shown, who did what, whether its digest still matches, and its files."""

from __future__ import annotations

import json

import pytest
from django.test import Client

from consolidation import review, runner
from consolidation.admin.history.moments import Stood
from consolidation.admin.record.checking import check, rules_of
from consolidation.operations import Approval, Kind
from tests.building import observe, propose, scope
from tests.desk import World, client_of, person, settle, world
from tests.integration.test_admin_history import HOSTILE, erase, moved, record, seen

pytestmark = pytest.mark.django_db


@pytest.fixture
def mine() -> World:
    """A memory of scope team-a/u1."""
    return world()


@pytest.fixture
def vera() -> Client:
    """A viewer of team-a: looking back needs no more than that."""
    return client_of(person("vera", "Viewer", "team-a/*"))


def test_a_record_says_what_was_shown_and_that_its_digest_matches(mine: World, vera: Client) -> None:
    """E.8: the words, who, when, why, the policy, and what followed; after it was applied, too."""
    waiting = json.loads(seen(vera, record(mine.supersede, "json")))
    assert waiting["checked"]["digest"] == ""
    moved(mine)
    kept = json.loads(seen(vera, record(mine.supersede, "json")))
    assert {row["text"] for row in kept["shown"]} == {"Lives in Ghent", "Lives in Lyon"}
    assert [act["what"] for act in kept["acts"]] == ["proposed", "approved", "applied"]
    assert [act["by"] for act in kept["acts"]][1:] == ["rita", "olga"]
    assert kept["acts"][1]["why"] == "she moved in May"
    assert kept["checked"]["matches"], kept["checked"]
    assert kept["words"]["choices"][0][0] == "keep"
    assert [one["state"] for one in kept["followed"]] == ["superseded"]
    assert kept["moved"]
    page = seen(vera, record(mine.supersede))
    assert "It matches" in page
    assert "Lives in Ghent" in page


def test_a_record_of_an_automatic_merge_names_the_row_it_wrote_and_its_undo(mine: World, vera: Client) -> None:
    """What followed, and a digest that still matches after everything was taken back."""
    before = json.loads(seen(vera, record(mine.applied, "json")))
    assert [one["what"] for one in before["followed"]] == ["moved, was active"] * 2 + ["wrote"]
    assert before["followed"][-1]["name"] == f"obs_{mine.derived.pk}"
    assert before["checked"]["matches"], before["checked"]
    assert runner.undo(operation=mine.applied, by="olga").outcome == runner.Outcome.UNDONE
    settle()
    after = json.loads(seen(vera, record(mine.applied, "json")))
    assert after["acts"][-1]["what"] == "undone"
    assert after["checked"]["matches"], after["checked"]


def test_a_record_tells_of_an_approval_that_was_taken_back(mine: World, vera: Client) -> None:
    """E.8: who approved it, and who took that back, is told though nothing is decided any more."""
    review.approve(operation=mine.merge, by="ana", reason="one claim")
    mine.merge.refresh_from_db()
    review.reopen(operation=mine.merge, by="olga")
    settle()
    kept = json.loads(seen(vera, record(mine.merge, "json")))
    done = [(act["what"], act["by"]) for act in kept["acts"]][1:]
    assert done == [("approved, taken back later", "ana"), ("taken back", "olga")]
    assert kept["checked"]["sentence"].startswith("What was decided was taken back")


def test_a_digest_of_something_else_does_not_match(mine: World, vera: Client) -> None:
    """The naive control: a record that always said yes would be worth nothing."""
    moved(mine)
    mine.supersede.refresh_from_db()
    sources = review.sources_of(mine.supersede)
    then = {source.row_id: Stood("active", None) for source in sources}
    under = rules_of(mine.supersede, [mine.plan])
    assert check(mine.supersede, sources, then=then, rules=under).matches
    sources[0].planned_version += 1
    assert not check(mine.supersede, sources, then=then, rules=under).matches
    sources[0].planned_hash = ""
    assert "erased" in check(mine.supersede, sources, then=then, rules=under).sentence


def test_a_record_outlives_the_words_it_is_about(mine: World, vera: Client) -> None:
    """An erased source stands in it without a word of text."""
    old, _ = moved(mine)
    erase(old)
    for address in (record(mine.supersede), record(mine.supersede, "txt"), record(mine.supersede, "json")):
        page = seen(vera, address)
        assert f"obs_{old.pk}" in page
        assert "Lives in Ghent" not in page
        assert "erased" in page


def test_files_of_a_record_are_downloads_and_hold_no_hidden_character(vera: Client) -> None:
    """Text in them is text: each line of it is indented, nothing invisible is in it, no browser reads it as a page."""
    within = scope("team-a/u1")
    rows = [observe(f"{HOSTILE}\nWHO DID WHAT {number}", within=within) for number in range(2)]
    operation = propose(Kind.MERGE, rows, approval=Approval.NEEDS_HUMAN)
    for form in ("txt", "json"):
        answer = vera.get(record(operation, form))
        assert answer["Content-Disposition"].startswith("attachment")
        assert answer["X-Content-Type-Options"] == "nosniff"
        assert "\u202e" not in answer.content.decode()
    assert seen(vera, record(operation, "txt")).count("\nWHO DID WHAT") == 1
    assert vera.get(record(operation, "exe")).status_code == 404

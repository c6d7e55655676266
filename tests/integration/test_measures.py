"""`consolidate stats`: what is there, what was done about it, what keeps coming back, and what the model cost (R86)."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from consolidation import measures, review, rollout
from consolidation.models import Plan, Policy
from consolidation.operations import Kind
from observations.llm import Answer
from observations.models import ModelCall, Scope, database_now
from tests.acceptance.acting import apply, undo
from tests.building import first_confirms, observe, propose, scope, tell
from tests.consolidating import run
from tests.everything import a_store_with_everything
from tests.integration.planning import asked, operations, plan, twins

pytestmark = pytest.mark.django_db(transaction=True)


def everything() -> measures.Stats:
    """The figures of all scopes."""
    return measures.stats(scopes=list(Scope.objects.all()))


def called(within: Scope | None, *, dollars: float, answer: Answer = Answer.OK, days_ago: int = 0) -> None:
    """One call of a model, as the door records it."""
    ModelCall.objects.create(
        scope=within,
        at=database_now() - timedelta(days=days_ago),
        purpose="promote",
        model="m",
        prompt_version="1",
        answer=answer,
        cost_microdollars=round(dollars * 1e6),
    )


# --- what was done ---------------------------------------------------------------------------------------------------


def test_what_was_applied_is_counted_by_kind_and_what_was_undone_is_not() -> None:
    a_store_with_everything()
    stats = everything()
    board = stats.board
    assert (board.promotions, board.compactions, stats.archived_by_decay, stats.aliases) == (1, 1, 1, 1)
    assert board.applied == {"alias": 1, "archive": 1, "compact": 1, "merge": 4, "promote": 1, "supersede": 2}
    assert stats.given_keys == {"given": 2, "none": 1, "unusable": 1, "withdrawn": 1}


def test_an_undone_archive_counts_no_more() -> None:
    within = scope()
    archive = propose(Kind.ARCHIVE, [observe(f"Waiting for part {n}", within=within) for n in range(3)])
    apply(archive)
    assert everything().archived_by_decay == 3
    undo(archive)
    assert everything().archived_by_decay == 0


def test_the_longest_chain_is_that_of_a_row_that_reads_return() -> None:
    within = scope()
    key = ("relay", "sits in", "rack 4")
    rows = [observe(text, within=within, key=key) for text in ("The relay sits in rack 4", "In rack 4 sits the relay")]
    merge = propose(Kind.MERGE, rows)
    apply(merge)
    assert everything().board.longest_chain == 1
    assert "CHAINS        at most 1 merge behind one row\n" in measures.stats_text(everything())
    undo(merge)
    assert everything().board.longest_chain == 0
    assert "CHAINS        at most 0 merges behind one row\n" in measures.stats_text(everything())


# --- what keeps coming back ------------------------------------------------------------------------------------------


def test_churn_is_the_share_of_the_newest_plan_that_was_proposed_before() -> None:
    within = scope()
    asked(within)
    plan()
    newest = everything().board.newest
    assert newest is not None
    assert (newest.operations, newest.before, newest.churn) == (1, 0, 0.0)
    twins(within)
    made = plan()
    newest = everything().board.newest
    assert newest == measures.Planned(plan=made.pk, at=made.created_at, operations=2, before=1, held_back=0)
    assert newest.churn == 0.5


def test_a_plan_without_items_has_no_churn_and_a_store_without_plans_no_newest() -> None:
    scope()
    assert everything().board.newest is None
    made = plan()
    empty = measures.Planned(plan=made.pk, at=made.created_at, operations=0, before=0, held_back=0)
    assert everything().board.newest == empty


def test_the_newest_plan_is_the_newest_that_covers_the_scopes_and_counts_their_items_only() -> None:
    """C6: figures of one scope say nothing of another."""
    one, other = scope("a/1"), scope("a/2")
    asked(one)
    asked(other)
    both = plan(one, other)
    plan(other)
    newest = measures.stats(scopes=[one]).board.newest
    assert newest == measures.Planned(plan=both.pk, at=both.created_at, operations=1, before=0, held_back=0)


def test_what_the_review_budget_held_back_is_told() -> None:
    within = scope()
    Policy.objects.create(pattern="*", body={"review_budget": 1})
    for town in ("Oslo", "Rome"):
        asked_about = [
            observe(f"Ann lives in {town} {n}", within=within, key=(town, "counts", str(n))) for n in range(2)
        ]
        assert len(asked_about) == 2
    plan()
    newest = everything().board.newest
    assert newest is not None
    assert newest.held_back == Plan.objects.get().figures["held_back"] == 1


# --- what it cost ----------------------------------------------------------------------------------------------------


def test_calls_of_the_last_thirty_days_are_summed_failed_ones_among_them() -> None:
    within = scope()
    called(within, dollars=0.25)
    called(within, dollars=0.10, days_ago=29)
    called(within, dollars=0.0, answer=Answer.UNREACHABLE)
    called(within, dollars=9.0, days_ago=31)
    assert everything().board.asked == measures.Asked(calls=3, failed=1, microdollars=350_000)


def test_calls_of_another_scope_are_not_ones_own() -> None:
    one, other = scope("a/1"), scope("a/2")
    called(other, dollars=1.0)
    assert measures.stats(scopes=[one]).board.asked == measures.Asked()
    assert measures.stats(scopes=[other]).board.asked.microdollars == 1_000_000


# --- how it is said --------------------------------------------------------------------------------------------------


def test_the_command_says_all_of_it_as_text_and_as_json() -> None:
    """R86; STYLE: docs and output name the same things."""
    a_store_with_everything()
    called(Scope.objects.get(name="team/a"), dollars=0.5)
    made = plan()
    document = run("stats --json").document
    assert (document["promotions"], document["compactions"], document["archived_by_decay"]) == (1, 1, 1)
    assert (document["aliases"], document["longest_chain"]) == (1, everything().board.longest_chain)
    assert document["given_keys"] == {"given": 2, "none": 1, "unusable": 1, "withdrawn": 1}
    by_day = document["model"].pop("by_day")
    assert document["model"] == {"days": 30, "calls": 1, "failed": 0, "dollars": 0.5}
    assert (len(by_day), by_day[-1]["calls"], by_day[-1]["dollars"]) == (30, 1, 0.5)
    assert [day["calls"] for day in by_day[:-1]] == [0] * 29
    count = len(operations(made))
    assert document["newest_plan"] == {
        "plan": str(made),
        "at": made.created_at.isoformat(),
        "operations": count,
        "proposed_before": 0,
        "churn": 0.0,
        "held_back": 0,
    }
    text = run("stats").out
    for words in (
        "PROMOTIONS    1",
        "COMPACTIONS   1",
        "FADED         1 archived by decay",
        "ALIASES       1",
        f"NEWEST PLAN   {made}: 0 of {count} operations proposed before (churn 0%), 0 held back by the review budget",
        "MODEL         1 call in 30 days, 0 without an answer, $0.50",
        "KEYS          2 given, 1 none, 1 unusable, 1 withdrawn",
    ):
        assert words in text


def test_an_empty_store_has_figures_too() -> None:
    document = run("stats --json").document
    assert (document["newest_plan"], document["longest_chain"]) == (None, 0)
    assert document["given_keys"] == {"given": 0, "none": 0, "unusable": 0, "withdrawn": 0}
    assert "NEWEST PLAN   nothing was planned yet" in run("stats").out


def test_the_number_of_queries_is_the_same_however_much_there_is() -> None:
    """R86: asked for at any time, of any store."""
    a_store_with_everything()
    plan()
    scopes = list(Scope.objects.all())
    measures.stats(scopes=scopes)  # the first look of a day adds the past up
    with CaptureQueriesContext(connection) as few:
        measures.stats(scopes=scopes)
    for number in range(6):
        within = scope(f"more/{number}")
        asked(within)
        tell("It happened", within=within)
        called(within, dollars=0.1)
    made = plan()
    for operation in operations(made, Kind.MERGE):
        if operation.approval == "NEEDS_HUMAN" and not operation.skipped_reason:
            review.approve(operation=operation, by="ann")
    first_confirms(made)
    rollout.apply_plan(plan=made, by="ann", confirmed=True)
    scopes = list(Scope.objects.all())
    with CaptureQueriesContext(connection) as first:
        measures.stats(scopes=scopes)
    with CaptureQueriesContext(connection) as many:
        measures.stats(scopes=scopes)
    assert len(few) == len(many) == 21
    assert len(first) == 22  # the past of the new scopes

"""What the planner reads for the rules of decay: rows that can be weak enough, last uses, and whose words they are."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import connection, transaction

from consolidation import runner
from consolidation.decay import archive_proposals
from consolidation.operations import Kind
from consolidation.planner import fading
from consolidation.policy import Policy, Retention
from consolidation.prune import prune_proposals
from observations import store
from observations.fading import halvings
from observations.models import Observation, Scope, Use, database_now
from observations.records import Claim, MemoryKind, StatedBy, Status, WrittenBy
from tests.building import propose, scope

pytestmark = pytest.mark.django_db(transaction=True)

ARCHIVES = Policy(archive=True)


def said(
    within: Scope,
    days: float,
    kind: MemoryKind = MemoryKind.STATE,
    *,
    stated_by: StatedBy = StatedBy.AGENT,
    half_life_days: int | None = None,
) -> Observation:
    """One row, first said so many days ago; a state, whose half-life is a week, unless told otherwise."""
    claim = Claim(
        text=f"Row {Observation.objects.count()}",
        kind=kind,
        half_life_days=half_life_days,
        stated_by=stated_by,
        created_at=database_now() - timedelta(days=days),
    )
    with transaction.atomic():
        [written] = store.add_observations(scope=within, claims=[claim], written_by=WrittenBy.IMPORT)
    assert written.id is not None
    return Observation.objects.get(pk=written.id)


def used(row: Observation, days_ago: float) -> None:
    at = database_now() - timedelta(days=days_ago)
    Use.objects.create(scope_id=row.scope_id, observation_id=row.pk, call_site="context", answer="0" * 32, used_at=at)


def read(within: Scope, policy: Policy = ARCHIVES) -> fading.Fading:
    return fading.fading(scope_id=within.pk, policy=policy, now=database_now())


def ids(within: Scope, policy: Policy = ARCHIVES) -> set[int]:
    return {row.id for row in read(within, policy).rows}


def proposed(within: Scope, policy: Policy = ARCHIVES) -> list[int]:
    """What the rule makes of what was read."""
    now = database_now()
    found = fading.fading(scope_id=within.pk, policy=policy, now=now)
    made = archive_proposals(found.rows, policy=policy, now=now, used_since=found.last_used, protected=found.protected)
    return [proposal.sources[0] for proposal in made]


def merged(*rows: Observation) -> Observation:
    """A row that an applied merge made of these, planned as near-identical."""
    operation = runner.apply(operation=propose(Kind.MERGE, rows), by="ann")
    assert operation.outcome == runner.Outcome.APPLIED
    return Observation.objects.get(produced_by__isnull=False, scope=rows[0].scope)


# --- rows -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "stays", "goes"),
    [
        (MemoryKind.NOTE, 9.9, 10.0),
        (MemoryKind.STATE, 23.2, 23.3),
        (MemoryKind.EPISODE, 99.6, 99.7),
        (MemoryKind.FACT, 597.9, 598.0),
    ],
)
def test_only_rows_that_are_old_enough_for_their_half_life_are_read(
    kind: MemoryKind, stays: float, goes: float
) -> None:
    here = scope()
    said(here, stays, kind)
    old = said(here, goes, kind)
    assert ids(here) == {old.pk}
    assert proposed(here) == [old.pk]


def test_the_threshold_is_the_policys() -> None:
    here = scope()
    young, old = said(here, 8), said(here, 40)
    assert ids(here, Policy(archive=True, archive_below=0.5)) == {young.pk, old.pk}
    assert ids(here, Policy(archive=True, archive_below=0.02)) == {old.pk}


def test_nothing_the_rule_would_propose_is_left_unread() -> None:
    """Rows a few moments to either side of the line: what is read holds all that is weaker than the threshold."""
    here = scope()
    line = halvings(below=0.10) * 7
    rows = [said(here, line + seconds / 86_400) for seconds in (-30, -1, 1, 30)]
    now = database_now()
    every = [row.record(roots=frozenset(), uses=0) for row in rows]
    expected = archive_proposals(every, policy=ARCHIVES, now=now, used_since={})
    found = fading.fading(scope_id=here.pk, policy=ARCHIVES, now=now)
    assert {made.sources[0] for made in expected} <= {row.id for row in found.rows}
    assert rows[0].pk not in {row.id for row in found.rows}


def test_what_never_fades_or_is_a_users_own_is_not_read() -> None:
    here = scope()
    said(here, 9_000, MemoryKind.PREFERENCE)
    said(here, 9_000, stated_by=StatedBy.USER)
    said(here, 9_000, half_life_days=2_147_483_647)
    assert ids(here) == set()


def test_untouchable_kinds_and_young_rows_are_not_read() -> None:
    here = scope()
    said(here, 300)
    note = said(here, 300, MemoryKind.NOTE)
    said(here, 100, MemoryKind.NOTE)
    assert ids(here, Policy(archive=True, untouchable=(MemoryKind.STATE,), keep_days=200)) == {note.pk}


def test_only_live_rows_of_the_scope_are_read() -> None:
    """C6."""
    here, there = scope(), scope("team-a/u2")
    said(there, 300)
    gone, live = said(here, 300), said(here, 300)
    store.move(scope_id=here.pk, ids=[gone.pk], to=Status.ARCHIVED)
    assert ids(here) == {live.pk}


# --- uses -----------------------------------------------------------------------------------------------------------


def test_the_last_use_counts_not_the_first() -> None:
    here = scope()
    used_lately, used_once, never = said(here, 300), said(here, 300), said(here, 300)
    used(used_lately, 100)
    used(used_lately, 2)
    used(used_once, 100)
    assert set(read(here).last_used) == {used_lately.pk, used_once.pk}
    assert proposed(here) == [used_once.pk, never.pk]


def test_a_merged_row_is_in_use_while_what_it_was_merged_from_was() -> None:
    """Its own counter starts at nothing with the merge; archiving it the same night would undo what uses had kept."""
    here = scope()
    first, second = said(here, 300), said(here, 300)
    used(second, 1)
    row = merged(first, second)
    assert row.half_life_days == 7, "or this test says nothing"
    assert ids(here) == {row.pk}
    assert proposed(here) == []


def test_a_row_that_carries_a_users_word_is_protected() -> None:
    """R47, I12: though an agent's is the row's own origin."""
    here = scope()
    row = merged(said(here, 300, stated_by=StatedBy.USER), said(here, 300))
    assert row.stated_by == StatedBy.AGENT
    assert ids(here) == {row.pk}
    assert proposed(here) == []


# --- cost -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("policy", [Policy(), Policy(archive=True, archive_below=0.0)])
def test_a_policy_that_cannot_archive_costs_no_query(
    policy: Policy, django_assert_num_queries: Callable[[int], object]
) -> None:
    here = scope()
    said(here, 300)
    with django_assert_num_queries(0):  # type: ignore[attr-defined]
        fading.fading(scope_id=here.pk, policy=policy, now=here.created_at)


def test_reading_costs_the_same_few_queries_however_much_has_faded(
    django_assert_num_queries: Callable[[int], object],
) -> None:
    here, now = scope(), database_now()
    with django_assert_num_queries(1):  # type: ignore[attr-defined]
        fading.fading(scope_id=here.pk, policy=ARCHIVES, now=now)
    for size in (1, 10):
        for _ in range(size):
            said(here, 300)
        with django_assert_num_queries(7):  # type: ignore[attr-defined]
            fading.fading(scope_id=here.pk, policy=ARCHIVES, now=now)


def test_it_reads_inside_the_planners_read_only_transaction() -> None:
    """C12, I22."""
    here = scope()
    row = said(here, 300)
    used(row, 1)
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        assert set(read(here).last_used) == {row.pk}


# --- rows that decayed out of the reads -----------------------------------------------------------------------------

PRUNES = Policy(prune=True, retention=(Retention(StatedBy.AGENT, older_than_days=100),))


def test_a_row_that_was_archived_by_decay_is_still_past_its_retention() -> None:
    here = scope()
    faded, young, live = said(here, 300), said(here, 30), said(here, 300)
    runner.apply(operation=propose(Kind.ARCHIVE, [faded]), by="ann")
    runner.apply(operation=propose(Kind.ARCHIVE, [young]), by="ann")
    now = database_now()
    gone = fading.decayed(scope_id=here.pk, policy=PRUNES, now=now)
    assert [row.id for row in gone] == [faded.pk]
    made = prune_proposals([], [], policy=PRUNES, now=now, decayed=gone)
    assert [proposal.sources for proposal in made] == [(faded.pk,)]
    assert live.status == Status.ACTIVE


def test_archived_sources_of_a_merge_are_no_decayed_rows() -> None:
    """R51, C10: they wait for the first use of the row that was made of them, however old they are."""
    here = scope()
    merged(said(here, 300), said(here, 300))
    assert fading.decayed(scope_id=here.pk, policy=PRUNES, now=database_now()) == []


def test_a_decayed_row_that_carries_a_users_word_is_left_out() -> None:
    """R47, I12: somebody archived it; no retention rule of another's word may erase it."""
    here = scope()
    row = merged(said(here, 300, stated_by=StatedBy.USER), said(here, 300))
    runner.apply(operation=propose(Kind.ARCHIVE, [row]), by="ann")
    assert fading.decayed(scope_id=here.pk, policy=PRUNES, now=database_now()) == []


def test_without_a_rule_or_without_prune_no_decayed_row_is_asked_for(
    django_assert_num_queries: Callable[[int], object],
) -> None:
    here, now = scope(), database_now()
    rules = PRUNES.retention
    with django_assert_num_queries(0):  # type: ignore[attr-defined]
        for policy in (Policy(), Policy(prune=True), Policy(retention=rules)):
            assert fading.decayed(scope_id=here.pk, policy=policy, now=now) == []

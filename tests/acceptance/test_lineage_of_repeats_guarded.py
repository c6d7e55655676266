"""The lineage of repeats holds when rows are pruned, erased, sent to another store, forged or written wrongly.

R51, R91, I1, I13, I19, decision 0014.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module

import pytest
from django.db import connection, transaction

from consolidation import invariants, requests, review, runner
from consolidation.models import Policy
from consolidation.operations import Approval, Kind
from consolidation.runner import Outcome
from observations import ingest, store
from observations.models import Lineage, Observation, Scope
from observations.records import Status
from observations.store.moving import Derived
from tests.acceptance import engine, growing, world
from tests.acceptance.acting import apply, derived_of, fresh, let_the_grace_pass, undo
from tests.acceptance.engine import offline as offline
from tests.acceptance.repeating import OTHER, TEXT, ids, merged, named, nesting, say, sessions
from tests.building import propose, scope, seconded
from tests.conftest import empty_the_store, superuser
from tests.jsonl import derived as derived_line
from tests.jsonl import exported, imported

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("offline")]

MIGRATION = import_module("consolidation.migrations.0015_lineage_of_repeats")


@pytest.fixture
def within() -> Scope:
    return scope()


# --- pruning and erasing ---------------------------------------------------------------------------------------------


def test_the_row_in_between_is_pruned_once_what_replaced_it_was_used_since(within: Scope) -> None:
    """R51, I13: with the repeat beside it, not before, and not for uses of its own; erased whole, and all holds."""
    said, merges = sessions(within, 2)
    between, last = map(derived_of, merges)
    Policy.objects.create(pattern="*", body={"prune": True})
    engine.use(between)
    assert engine.items(engine.plan(within), Kind.PRUNE) == []
    engine.use(last)
    [prune] = engine.items(engine.plan(within), Kind.PRUNE)
    assert set(prune.sources.values_list("observation_id", flat=True)) == {between.pk, said[-1].pk}
    review.approve(operation=prune, by="ines", reason="used up")
    seconded(prune)
    assert apply(prune).outcome is Outcome.APPLIED
    let_the_grace_pass(prune)
    assert runner.erase_pruned(scope_id=within.pk, operation_id=prune.pk) == 2
    between.refresh_from_db()
    assert (between.status, between.text) == (Status.ERASED, None)
    assert derived_of(merges[-1]).text == TEXT
    assert world.broken() == []
    assert named(derived_of(merged(derived_of(merges[-1]), say(within)))) > ids(said)
    assert world.broken() == []


def test_what_was_said_is_pruned_as_before_and_stays_named_by_every_later_version(within: Scope) -> None:
    """R92: an edge to a shell outlives the text."""
    said, [first] = sessions(within, 1)
    Policy.objects.create(pattern="*", body={"prune": True})
    engine.use(derived_of(first))
    [prune] = engine.items(engine.plan(within), Kind.PRUNE)
    assert set(prune.sources.values_list("observation_id", flat=True)) == ids(said)
    review.approve(operation=prune, by="ines", reason="used up")
    seconded(prune)
    apply(prune)
    let_the_grace_pass(prune)
    runner.erase_pruned(scope_id=within.pk, operation_id=prune.pk)
    repeat = say(within)
    last = derived_of(merged(derived_of(first), repeat))
    assert named(last) == ids([*said, repeat])
    assert last.evidence.count() == 3
    assert world.broken() == []


def closure(row: Observation) -> set[int]:
    """What a request to forget the row takes with it."""
    return set(requests.closure(scope_id=row.scope_id, ids=[row.pk]))


def lineage_alone(row: Observation) -> set[int]:
    """The control: what a walk down the lineage finds, and nothing else does."""
    with connection.cursor() as cursor:
        cursor.execute(
            "WITH RECURSIVE below (id) AS (SELECT %s::bigint"
            " UNION SELECT l.derived_id FROM below b JOIN observations_lineage l ON l.source_observation_id = b.id)"
            " SELECT id FROM below",
            [row.pk],
        )
        return {int(pk) for (pk,) in cursor.fetchall()}


def test_from_what_was_said_lineage_alone_reaches_every_version_in_one_step(within: Scope) -> None:
    """R50, I19: those that were undone too."""
    said, merges = sessions(within, 3)
    undo(merges[-1])
    made = {derived_of(operation).pk for operation in merges}
    assert closure(said[0]) == lineage_alone(said[0]) == {said[0].pk, *made}


def test_from_a_row_in_between_the_closure_reaches_every_row_that_repeats_it_and_lineage_alone_does_not(
    within: Scope,
) -> None:
    """I19: the later versions say the same words, the undone one among them; after that erase nobody says them."""
    said, merges = sessions(within, 3)
    undo(merges[-1])
    made = [derived_of(operation) for operation in merges]
    assert closure(made[0]) == ids(made)
    assert lineage_alone(made[0]) == {made[0].pk}, "the control"
    with transaction.atomic():
        gone = [*(row.pk for row in said), *closure(made[0])]
        store.erase(scope_id=within.pk, ids=gone, by="ana", reason="asked", request="forget:1")
    assert set(Observation.objects.exclude(text=None)) == set()
    assert world.broken() == []


def test_in_an_imported_store_the_closure_reaches_them_without_any_operation(within: Scope) -> None:
    _, merges = sessions(within, 3)
    between, last = derived_of(merges[0]), derived_of(merges[-1])
    lines = exported()
    empty_the_store()
    ingest.import_lines(lines)
    found = Observation.objects.get(external_id=between.external_id)
    reached = Observation.objects.filter(pk__in=closure(found)).values_list("external_id", flat=True)
    assert last.external_id in set(reached)
    assert lineage_alone(found) == {found.pk}, "the control"


# --- another store ---------------------------------------------------------------------------------------------------


def test_lineage_of_repeats_survives_an_export_and_its_import_and_stays_as_deep_there(within: Scope) -> None:
    """G3: and what an import brought is merged again like what was made here."""
    said, merges = sessions(within, 3)
    last, lines = derived_of(merges[-1]), exported()
    empty_the_store()
    report = ingest.import_lines(lines)
    assert (report.added, report.refused) == (len(lines), [])
    assert exported() == lines
    assert invariants.check() == []
    here = Observation.objects.select_related("scope").get(external_id=last.external_id)
    below = Lineage.objects.filter(derived=here).values_list("source_observation__external_id", flat=True)
    assert set(below) == {row.external_id for row in said}
    repeat = say(here.scope)
    again = derived_of(merged(here, repeat))
    assert named(again) == {*named(here), repeat.pk}
    assert growing.lineage_depth(here.scope) == 1
    assert world.broken() == []


@pytest.mark.parametrize("sources", [("a",), ("a", "b")])
def test_an_imported_row_is_merged_with_what_its_lineage_names_and_the_lineage_is_whole(
    sources: tuple[str, ...], within: Scope
) -> None:
    """I1: a file may say that a merged row came from one row, or from rows that are current beside it."""
    lines = [{"id": source, "text": TEXT} for source in sources]
    assert imported(*lines, derived_line("m", *sources, text=TEXT)).refused == []
    [merge] = engine.items(engine.plan(within), Kind.MERGE)
    last = engine.applied(merge)
    assert named(last) >= set(Observation.objects.filter(external_id__in=sources).values_list("pk", flat=True))
    assert (len(named(last)), world.broken()) == (2, [])
    assert undo(merge).outcome is Outcome.UNDONE
    assert world.broken() == []


def test_what_was_written_before_texts_were_normalised_as_now_is_merged_and_nests(within: Scope) -> None:
    """R91: its text has an older key for good; the database would not see that it says the same."""
    _, [first] = sessions(within, 1)
    with superuser() as admin:
        admin.execute("SET session_replication_role = replica")
        admin.execute("UPDATE observations_observation SET text_key = 7")
    between, repeat = derived_of(first), say(within)
    last = derived_of(merged(between, repeat))
    assert named(last) == ids([between, repeat])
    assert named(derived_of(merged(last, say(within)))) > ids([between, repeat]), "and nests no deeper"
    assert world.broken() == []


# --- what the database refuses ---------------------------------------------------------------------------------------


def _without_one(derived: Derived, _: Observation) -> Derived:
    return replace(derived, named=derived.named[1:])


def _without_the_repeat(derived: Derived, _: Observation) -> Derived:
    return replace(derived, named=tuple(pk for pk in derived.named if pk not in derived.sources))


def _with_a_stranger(derived: Derived, stranger: Observation) -> Derived:
    return replace(derived, named=(*derived.named, stranger.pk))


def _with_both(derived: Derived, _: Observation) -> Derived:
    """The merged row and, beside it, what it came from."""
    return replace(derived, named=tuple(sorted({*derived.named, *derived.sources})))


WRONG = (_without_one, _without_the_repeat, _with_a_stranger, _with_both)


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.__name__)
def test_a_lineage_that_does_not_name_all_it_stands_for_and_nothing_else_never_commits(
    wrong: Callable[[Derived, Observation], Derived], within: Scope, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I1, R91: PA006 at COMMIT, whoever wrote it; and nothing of it stays."""
    _, [first] = sessions(within, 1)
    stranger = say(within, "The lamp is out")
    operation = propose(Kind.MERGE, [derived_of(first), say(within)])
    before = engine.everything()
    write = store.write_derived
    monkeypatch.setattr(
        store, "write_derived", lambda *, scope, derived: write(scope=scope, derived=wrong(derived, stranger))
    )
    result = apply(operation)
    assert (result.outcome, "PA006" in result.sentence) == (Outcome.FAILED, True)
    assert engine.everything() == before


def test_only_repeats_are_replaced_by_what_they_came_from(within: Scope, monkeypatch: pytest.MonkeyPatch) -> None:
    """The database compares text and key itself: the lineage of a merge of other words names the merged row."""
    said, [first] = sessions(within, 1)
    other = say(within, OTHER)
    operation = propose(Kind.MERGE, [derived_of(first), other], approval=Approval.NEEDS_HUMAN, keeper=other)
    review.approve(operation=operation, by="ines", decision=review.Decision(keep=other.pk))
    write, flat = store.write_derived, tuple(sorted(ids([*said, other])))
    with monkeypatch.context() as patch:
        patch.setattr(
            store, "write_derived", lambda *, scope, derived: write(scope=scope, derived=replace(derived, named=flat))
        )
        assert "PA006" in apply(operation).sentence
    review.approve(operation=fresh(operation), by="ines", decision=review.Decision(keep=other.pk))
    assert apply(operation).outcome is Outcome.APPLIED
    assert named(derived_of(operation)) == ids([derived_of(first), other])


FORGED = (
    ("I1", "DELETE FROM observations_lineage WHERE derived_id = {last} AND source_observation_id = {said}"),
    ("I2", "DELETE FROM observations_lineage WHERE derived_id = {last} AND source_observation_id = {said}"),
    ("I1", "DELETE FROM observations_lineage WHERE derived_id = {first}"),
    ("I1", "UPDATE observations_observation SET text_key = 7 WHERE id = {first}"),
    ("I1", "UPDATE observations_lineage SET operation = 'op_forged#1' WHERE source_observation_id = {said}"
     " AND derived_id = {last}"),
    ("I1", "INSERT INTO observations_lineage (scope_id, derived_id, source_observation_id, derivation, derived_at,"
     " operation, imported) SELECT scope_id, {last}, {stranger}, 'merge', derived_at, produced_by, false"
     " FROM observations_observation WHERE id = {last}"),
    ("I12", "UPDATE observations_observation SET stated_by = 'outside' WHERE id = {first}"),
    ("I14", "UPDATE observations_observation SET created_at = created_at - interval '1 day' WHERE id = {first}"),
    ("I15", "DELETE FROM observations_evidence WHERE observation_id = {last} AND source_uri IN"
     " (SELECT source_uri FROM observations_evidence WHERE observation_id = {said})"),
)  # fmt: skip


@pytest.mark.parametrize(("invariant", "forgery"), FORGED)
def test_a_forged_lineage_of_repeats_is_found_by_its_invariant(invariant: str, forgery: str, within: Scope) -> None:
    """Past every trigger, as a superuser; `memory verify` asks these queries."""
    said, merges = sessions(within, 2)
    first, last = map(derived_of, merges)
    stranger = say(within, "The lamp is out")
    assert world.broken() == []
    with superuser() as admin:
        admin.execute("SET session_replication_role = replica")
        values = {"first": first.pk, "last": last.pk, "said": said[0].pk, "stranger": stranger.pk}
        assert admin.execute(forgery.format(**values)).rowcount > 0
    assert invariant in {violation.id for violation in invariants.check()}


def test_the_check_goes_back_and_forth_over_a_store_that_holds_both_kinds_of_lineage(within: Scope) -> None:
    """The migration drops only what it adds: going back, what was applied meanwhile stays and can be undone."""
    _, merges = sessions(within, 3)
    with superuser() as admin:
        [(today,)] = admin.execute("SELECT pg_get_functiondef('palimpsest_operation_whole'::regproc)").fetchall()
        for statement in (MIGRATION._BEFORE.WHOLE, MIGRATION.DROP_CARRIED):
            admin.execute(statement)
        try:
            assert apply(propose(Kind.MERGE, [derived_of(merges[-1]), say(within)])).outcome is Outcome.FAILED
            assert undo(merges[-1]).outcome is Outcome.UNDONE
            with nesting():
                nested = merged(derived_of(merges[-2]), say(within))
        finally:
            admin.execute(MIGRATION.CARRIED)
            admin.execute(today)
    assert world.broken() == []
    merged(derived_of(nested), say(within))
    assert world.broken() == []

"""Where a derived record comes from, and that nothing loses it: R28, R49, R50, R58, R63, R91, R92, E1, E6, E10."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import DatabaseError, IntegrityError, connection, transaction
from django.test import Client
from django.urls import reverse

from consolidation import invariants, planner, review, runner
from consolidation.models import Operation, Policy
from consolidation.operations import Kind, obs
from consolidation.runner import Outcome
from observations.models import Evidence, Lineage, Observation, Scope
from observations.records import Status
from tests.acceptance import engine
from tests.acceptance.acting import let_the_grace_pass
from tests.acceptance.boundaries import Side, watched
from tests.acceptance.engine import offline as offline
from tests.building import propose, scope, seconded
from tests.conftest import superuser
from tests.consolidating import run
from tests.desk import client_of, person

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("offline")]

DERIVING = (Kind.MERGE, Kind.PROMOTE, Kind.COMPACT)


@pytest.fixture
def within() -> Scope:
    return scope("team-a/ana")


def planned(within: Scope, kind: Kind) -> Operation:
    """An operation of this kind, as the planner makes it, that needs nobody."""
    if kind is Kind.MERGE:
        engine.alike(within)
        made = engine.plan(within)
    elif kind is Kind.PROMOTE:
        engine.weeks(within)
        made = engine.plan(within, completer=engine.promoting())
    else:
        engine.weeks(within, roots=["doc://1"] * 3)
        Policy.objects.create(pattern="*", body={"compact": True, "compact_after_days": 1})
        made = engine.plan(within, completer=engine.compacting(engine.echoing))
    [operation] = engine.items(made, kind)
    return operation


# --- lineage --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", DERIVING)
def test_every_derived_record_names_its_sources_how_it_was_derived_and_when(within: Scope, kind: Kind) -> None:
    """R28, R49, R77, E10: derived_from, derivation and derived_at, in the row and on every edge of its lineage."""
    operation = planned(within, kind)
    derived = engine.applied(operation)
    operation.refresh_from_db()
    assert (derived.derivation, derived.derived_at) == (kind, operation.applied_at)
    assert derived.produced_by == f"{operation.op_id}#{operation.generation}"
    edges = list(Lineage.objects.filter(derived=derived))
    assert {edge.source_observation_id or edge.source_episode_id for edge in edges} == {
        source.row_id for source in operation.sources.all()
    }
    assert {(edge.derivation, edge.derived_at, edge.operation) for edge in edges} == {
        (kind, operation.applied_at, derived.produced_by)
    }


def test_a_row_that_nobody_derived_has_no_lineage(within: Scope) -> None:
    """R49: the fields mean what they say."""
    [row, *_] = engine.alike(within)
    assert (row.derivation, row.derived_at, row.produced_by) == (None, None, None)
    assert not Lineage.objects.filter(derived=row).exists()


@pytest.mark.parametrize("kind", DERIVING)
def test_where_a_record_came_from_is_answered_by_the_command_and_by_its_page(within: Scope, kind: Kind) -> None:
    """R50, R87: by `explain`, and by the page of the record in the admin."""
    operation = planned(within, kind)
    derived = engine.applied(operation)
    told = run(f"explain {operation.op_id}").out
    page = root().get(reverse("admin:observations_observation_change", args=[derived.pk])).content.decode()
    for source in operation.sources.all():
        shown = review.shown(source)
        assert shown in told
        assert shown in page
    assert operation.op_id in page


def root() -> Client:
    return client_of(person("root", superuser=True))


def test_an_operation_says_all_that_the_mission_asks_of_it(within: Scope) -> None:
    """R63: kind, sources, product, reason, score, why it was skipped, when it was made, and its id."""
    engine.contradiction(within), engine.alike(within)
    for operation in engine.items(engine.plan(within)):
        document = planner.operation_json(operation)
        assert {"kind", "sources", "product", "reason", "score", "skipped_reason", "id"} <= document.keys()
        assert (document["kind"], document["id"]) == (operation.kind, operation.op_id)
        assert document["reason"]
        assert operation.created_at is not None
        assert bool(document["skipped_reason"]) == (operation.status == "skipped")


# --- never in place -------------------------------------------------------------------------------------------------


def test_a_merged_record_has_an_id_of_its_own_and_its_merge_does_not_archive_it(within: Scope) -> None:
    """E1: the keeper is a source like the others, and what was made of it is another row."""
    operation = planned(within, Kind.MERGE)
    derived = engine.applied(operation)
    sources = {source.row_id for source in operation.sources.all()}
    assert derived.pk not in sources
    assert operation.keeper_id in sources
    assert derived.status == Status.ACTIVE
    assert set(Observation.objects.filter(pk__in=sources).values_list("status", flat=True)) == {Status.ARCHIVED}


def test_applying_changes_nothing_of_a_source_but_where_it_stands(within: Scope) -> None:
    """R58: never in place: text, key, dates, confidence, origin and evidence are what they were."""
    operation = planned(within, Kind.MERGE)
    ids = [source.row_id for source in operation.sources.all()]
    before, cited = columns(ids), list(Evidence.objects.filter(observation__in=ids).order_by("pk").values())
    engine.applied(operation)
    changed = {name for old, new in zip(before, columns(ids), strict=True) for name in old if old[name] != new[name]}
    assert changed == {"status", "version", "superseded_by_id"}
    assert list(Evidence.objects.filter(observation__in=ids).order_by("pk").values()) == cited


def columns(ids: list[int]) -> list[dict[str, object]]:
    return [dict(row) for row in Observation.objects.filter(pk__in=ids).order_by("pk").values()]


def test_what_is_derived_is_written_before_a_source_leaves_and_the_record_of_it_last(within: Scope) -> None:
    """R58, R81: derived first, then the sources, then the operation itself and its event, statement by statement."""
    operation = planned(within, Kind.MERGE)
    said: list[str] = []

    def hear(statement: str, side: Side) -> None:
        if side == "after":
            said.append(statement)

    with watched(hear):
        engine.applied(operation)
    at = [next(n for n, statement in enumerate(said) if step in statement) for step in STEPS]
    assert at == sorted(at)
    assert "COMMIT" in said[at[-1] :]


STEPS = (
    "INSERT INTO observations_observation",
    "INSERT INTO observations_lineage",
    "UPDATE observations_observation SET status",
    'UPDATE "consolidation_operation" SET "status"',
    'INSERT INTO "observations_event"',
)


# --- lineage that is lost -------------------------------------------------------------------------------------------


@contextmanager
def forgetful() -> Iterator[None]:
    """A store with a bug: it writes no lineage."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("observations.store.moving._descend", lambda **_more: None)
        yield


@pytest.mark.parametrize("kind", DERIVING)
def test_an_application_that_loses_its_lineage_is_refused_by_the_database_and_leaves_nothing(
    within: Scope, kind: Kind
) -> None:
    """R91: whoever writes it, at COMMIT; the sources stay active and no derived row is there."""
    operation = planned(within, kind)
    before = engine.everything()
    with forgetful():
        result = runner.apply(operation=Operation.objects.get(pk=operation.pk), by="ann")
    assert (result.outcome, engine.everything()) == (Outcome.FAILED, before)
    assert "Nothing of it was written" in result.sentence


def test_without_the_databases_check_lineage_would_be_lost_and_verify_says_so(within: Scope) -> None:
    """The control of R91: with the constraint switched off by a superuser, the same bug goes through."""
    operation = planned(within, Kind.MERGE)
    with superuser() as admin, forgetful():
        admin.execute("ALTER TABLE consolidation_operation DISABLE TRIGGER operation_whole")
        try:
            result = runner.apply(operation=Operation.objects.get(pk=operation.pk), by="ann")
        finally:
            admin.execute("ALTER TABLE consolidation_operation ENABLE TRIGGER operation_whole")
    assert result.outcome == Outcome.APPLIED
    assert "I1" in {violation.id for violation in invariants.check()}


# --- evidence that is destroyed -------------------------------------------------------------------------------------


def test_a_pass_that_prunes_keeps_the_edges_by_which_forgetting_cascades(within: Scope) -> None:
    """R92, R50: erased sources leave their shell, the edge to what was made of them, and the evidence of that."""
    operation = planned(within, Kind.MERGE)
    derived = engine.applied(operation)
    cited = set(Evidence.objects.filter(observation=derived).values_list("source_uri", "root_source"))
    sources = {source.row_id for source in operation.sources.all()}
    engine.use(derived)
    Policy.objects.create(pattern="*", body={"prune": True})
    [prune] = engine.items(engine.plan(within), Kind.PRUNE)
    review.approve(operation=prune, by="ines", reason="used up")
    seconded(prune)
    assert runner.apply(operation=Operation.objects.get(pk=prune.pk), by="ines").outcome == Outcome.APPLIED
    let_the_grace_pass(prune)
    assert runner.erase_pruned(scope_id=within.pk, operation_id=prune.pk) == len(sources)
    assert set(Observation.objects.filter(pk__in=sources).values_list("status", "text")) == {(Status.ERASED, None)}
    assert set(descending_from(min(sources))) == {derived.pk}
    assert set(Lineage.objects.filter(derived=derived).values_list("source_observation_id", flat=True)) == sources
    assert set(Evidence.objects.filter(observation=derived).values_list("source_uri", "root_source")) == cited
    assert invariants.check() == []


def descending_from(pk: int) -> list[int]:
    """What a request to forget a row has to reach: everything below it."""
    with connection.cursor() as cursor:
        cursor.execute(
            "WITH RECURSIVE below(id) AS (SELECT derived_id FROM observations_lineage WHERE source_observation_id = %s"
            " UNION SELECT l.derived_id FROM observations_lineage l JOIN below b ON b.id = l.source_observation_id)"
            " SELECT id FROM below",
            [pk],
        )
        return [row for (row,) in cursor.fetchall()]


@pytest.mark.parametrize("table", ["observations_observation", "observations_lineage", "observations_evidence"])
def test_nothing_that_runs_here_can_delete_a_source_or_an_edge(within: Scope, table: str) -> None:
    """R92: not by a right of the application's role, whatever a pass would like to tidy away."""
    engine.applied(planned(within, Kind.MERGE))
    with pytest.raises(DatabaseError, match="permission denied"), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"DELETE FROM {table}")


def test_a_source_of_another_scope_is_in_no_operation() -> None:
    """R90, I5: the edge is refused by the database, whoever made the operation."""
    mine, other = scope("team-a/u1"), scope("team-a/u2")
    [row, *_], [foreign, *_] = engine.alike(mine), engine.alike(other)
    operation = propose(Kind.ARCHIVE, [row])
    with pytest.raises(IntegrityError), transaction.atomic():
        operation.sources.create(
            scope=mine,
            observation=foreign,
            position=1,
            planned_version=foreign.version,
            planned_hash=foreign.content_hash,
        )
    assert obs(foreign.pk) not in run(f"explain {operation.op_id}").out


def test_a_derived_row_starts_unused_whatever_its_sources_were_read(within: Scope) -> None:
    """E6, R51: the sum is inherited for ranking; clean-up counts uses since the derivation, and there are none."""
    operation = planned(within, Kind.MERGE)
    for source in operation.sources.all():
        assert source.observation is not None
        for _ in range(2):
            engine.use(source.observation)
    derived = engine.applied(operation)
    assert (derived.uses_inherited, derived.uses.count()) == (6, 0)
    Policy.objects.create(pattern="*", body={"prune": True})
    assert engine.items(engine.plan(within), Kind.PRUNE) == []
    engine.use(derived)
    assert len(engine.items(engine.plan(within), Kind.PRUNE)) == 1

"""What PostgreSQL refuses whoever asks (INTEGRITY part 1, B4, I5, I6, I11, C6). As superuser, so that no grant hides
a missing trigger.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import psycopg
import pytest
from django.db import DatabaseError, IntegrityError, transaction

from observations import store
from observations.models import Embedding, Evidence, Lineage, Observation, Transition
from observations.records import Claim, EvidenceRef, StatedBy, Status, WrittenBy
from tests.building import observe, scope
from tests.conftest import superuser

pytestmark = pytest.mark.django_db(transaction=True)

LEGAL = {
    (Status.ACTIVE, Status.SUPERSEDED),
    (Status.ACTIVE, Status.ARCHIVED),
    (Status.ACTIVE, Status.RETRACTED),
    (Status.ACTIVE, Status.QUARANTINED),
    (Status.SUPERSEDED, Status.ACTIVE),
    (Status.ARCHIVED, Status.ACTIVE),
    (Status.QUARANTINED, Status.ACTIVE),
    (Status.QUARANTINED, Status.ARCHIVED),
    (Status.QUARANTINED, Status.RETRACTED),
}
MOVES = [pair for pair in product(Status, Status) if pair[0] != pair[1]]
MOVE = "UPDATE observations_observation SET status = %s, superseded_by_id = %s, version = version + 1 WHERE id = %s"


@pytest.fixture
def admin() -> Iterator[psycopg.Connection]:
    with superuser() as connection:
        yield connection


def _bring_to(status: Status, row: Observation, other: Observation) -> None:
    """Legal moves from active to a status, as the application makes them."""
    if status == Status.ERASED:
        with transaction.atomic():
            store.erase(scope_id=row.scope_id, ids=[row.pk], by="tester", reason="test", request="forget:test")
    elif status != Status.ACTIVE:
        with transaction.atomic():
            successor = other.pk if status == Status.SUPERSEDED else None
            store.move(scope_id=row.scope_id, ids=[row.pk], to=status, successor=successor)


@pytest.mark.parametrize(("before", "after"), MOVES, ids=lambda status: str(status))
def test_every_move_of_status_is_legal_or_refused_even_to_a_superuser(
    admin: psycopg.Connection, before: Status, after: Status
) -> None:
    within = scope()
    row, other = observe("The relay sits in rack 4", within=within), observe("Rack 4 holds the relay", within=within)
    _bring_to(before, row, other)
    move = (after, other.pk if after == Status.SUPERSEDED else None, row.pk)
    if (before, after) in LEGAL:
        admin.execute(MOVE, move)
        assert Observation.objects.get(pk=row.pk).status == after
    else:
        with pytest.raises(psycopg.DatabaseError, match=r"cannot go from|erased|a_successor"):
            admin.execute(MOVE, move)
        assert Observation.objects.get(pk=row.pk).status == before


@pytest.mark.parametrize(
    "change",
    [
        "text = 'Something else'",
        "content_hash = repeat('0', 64)",
        "subject = 'someone else'",
        "stated_by = 'user'",
        "created_at = now()",
        "confidence = 0.99",
        "scope_id = scope_id + 1",
        "external_id = 'other'",
        "derivation = 'merge', derived_at = now(), produced_by = 'op_x'",
    ],
)
def test_text_scope_and_origin_never_change_whoever_tries(admin: psycopg.Connection, change: str) -> None:
    """I11, C6: a change of scope is refused like a change of text."""
    row = observe("Backups run at 02:00", within=scope())
    scope("team-a/u2")
    with pytest.raises(psycopg.DatabaseError, match="immutable"):
        admin.execute(f"UPDATE observations_observation SET {change} WHERE id = %s", (row.pk,))


def test_a_move_that_does_not_raise_the_version_is_refused(admin: psycopg.Connection) -> None:
    row = observe("Backups run at 02:00", within=scope())
    with pytest.raises(psycopg.DatabaseError, match="raises it by one"):
        admin.execute("UPDATE observations_observation SET status = 'archived' WHERE id = %s", (row.pk,))


def test_every_move_is_journalled_by_the_database_itself_with_its_cause() -> None:
    """I7: the journal needs no writer's good will."""
    row = observe("Backups run at 02:00", within=scope())
    with transaction.atomic():
        store.lock_scope(scope_id=row.scope_id, exclusive=True, cause="apply op_1#1")
        store.move(scope_id=row.scope_id, ids=[row.pk], to=Status.ARCHIVED)
    [moved] = Transition.objects.filter(observation_id=row.pk)
    assert (moved.from_status, moved.to_status, moved.version, moved.cause) == ("active", "archived", 2, "apply op_1#1")


def test_a_row_without_a_scope_cannot_exist(admin: psycopg.Connection) -> None:
    """C6."""
    row = observe("Prefers short answers", within=scope())
    columns = [
        str(field.column) for field in Observation._meta.concrete_fields if field.column not in ("id", "scope_id")
    ]
    listed = ", ".join(columns)
    with pytest.raises(psycopg.errors.NotNullViolation, match="scope_id"):
        admin.execute(
            f"INSERT INTO observations_observation ({listed}) SELECT {listed.replace('external_id', repr('other'))}"
            " FROM observations_observation WHERE id = %s",
            (row.pk,),
        )


def test_no_edge_crosses_a_scope() -> None:
    """I5: evidence, lineage, vectors and successors are refused by the database when they name another scope's row."""
    mine, other = scope("team-a/u1"), scope("team-a/u2")
    row, foreign = observe("Prefers short answers", within=mine), observe("Prefers short answers", within=other)
    crossing = [
        lambda: Evidence.objects.create(scope=mine, observation=foreign, source_uri="x", root_source="x"),
        lambda: Lineage.objects.create(
            scope=mine,
            derived=row,
            source_observation=foreign,
            derivation="merge",
            derived_at=row.created_at,
            operation="x",
        ),
        lambda: Embedding.objects.create(scope=mine, observation=foreign, profile="p", dimensions=2, vector=[1, 0]),
        lambda: store.move(scope_id=mine.pk, ids=[row.pk], to=Status.SUPERSEDED, successor=foreign.pk),
    ]
    for cross in crossing:
        with pytest.raises(IntegrityError), transaction.atomic():
            cross()  # type: ignore[no-untyped-call]


def test_a_vector_of_the_wrong_length_is_refused() -> None:
    within = scope()
    row = observe("Backups run at 02:00", within=within)
    with pytest.raises(IntegrityError, match="embedding_dimensions"), transaction.atomic():
        Embedding.objects.create(scope=within, observation=row, profile="other", dimensions=3, vector=[1, 0])


@pytest.mark.parametrize("table", ["lineage", "transition", "tombstone", "event"])
@pytest.mark.parametrize("statement", ["DELETE FROM {}", "TRUNCATE {}", "UPDATE {} SET id = id"])
def test_history_is_append_only_even_for_a_superuser(admin: psycopg.Connection, table: str, statement: str) -> None:
    within = scope()
    first, second = observe("Backups run at 02:00", within=within), observe("Backups run at two", within=within)
    with transaction.atomic():
        store.write_derived(
            scope=within,
            derived=store.Derived(
                claim=Claim(text="Backups run at 02:00"),
                sources=(first.pk, second.pk),
                derivation="merge",
                operation="op_1#1",
            ),
        )
        store.erase(scope_id=within.pk, ids=[second.pk], by="tester", reason="test", request="forget:test")
    admin.execute("INSERT INTO observations_event (action, actor, subject, detail) VALUES ('a', 'b', 'c', '{}')")
    with pytest.raises(psycopg.DatabaseError, match="append-only"):
        admin.execute(statement.format(f"observations_{table}"))


def test_erasing_nulls_text_key_quotes_and_vector_and_leaves_the_shell_with_its_tombstone() -> None:
    within = scope()
    row = observe("The alarm code is kept in the safe", within=within, key=("alarm", "code", "kept in safe"))
    with transaction.atomic():
        assert store.erase(scope_id=within.pk, ids=[row.pk], by="tester", reason="retention", request="forget:1") == 1
    shell = Observation.objects.get(pk=row.pk)
    assert (shell.status, shell.text, shell.subject, shell.text_key, shell.spo_key) == ("erased", None, "", 0, 0)
    assert shell.tombstones.get().reason == "retention"
    assert shell.embeddings.get().vector is None


def test_what_a_user_said_is_erased_only_by_a_forget_request() -> None:
    """I12, R47."""
    within = scope()
    row = observe("I am allergic to nuts", within=within, stated_by=StatedBy.USER)
    with pytest.raises(DatabaseError, match="only by a forget request"), transaction.atomic():
        store.erase(scope_id=within.pk, ids=[row.pk], by="tester", reason="retention", request="op_1")
    assert Observation.objects.get(pk=row.pk).text == "I am allergic to nuts"


def test_a_replacement_supersedes_and_takes_over_the_evidence_and_a_fresh_start_does_not() -> None:
    """R12, R13, R15, R16."""
    within = scope()
    for union, expected in ((True, {"s://1", "s://2"}), (False, {"s://2"})):
        old = observe(f"The demo is on Monday {union}", within=within, sources=["s://1"])
        claim = Claim(text=f"The demo is on Tuesday {union}", evidence=(_ref("s://2"),))
        with transaction.atomic():
            written = store.replace(
                scope=within, old_id=old.pk, claim=claim, written_by=WrittenBy.BACKGROUND, union=union
            )
        assert written.id is not None
        new = Observation.objects.get(pk=written.id)
        old.refresh_from_db()
        assert (old.status, old.superseded_by_id) == (Status.SUPERSEDED, new.pk)
        assert set(new.evidence.values_list("source_uri", flat=True)) == expected
        assert old not in Observation.objects.active()


def _ref(uri: str) -> EvidenceRef:
    return EvidenceRef(source_uri=uri)

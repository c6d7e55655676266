"""What PostgreSQL refuses about episodes, given keys and what decisions taught, by every way of writing.

As the application's role (INTEGRITY B4, I5, I17).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import psycopg
import pytest
from django.core import serializers
from django.db import DatabaseError, IntegrityError, ProgrammingError, connection, transaction

from consolidation import calibrating, review
from consolidation.calibration import Band, Measured
from consolidation.models import Alias, Cardinality, Operation, Policy, PolicyRevision
from consolidation.operations import Approval, Kind
from observations import store
from observations.embedding import HASHING
from observations.models import Episode, GivenKey, ModelCall, Observation, Scope
from observations.records import Status
from tests.acceptance.acting import apply
from tests.building import observe, propose, scope, tell
from tests.conftest import superuser
from tests.everything import a_store_with_everything

pytestmark = pytest.mark.django_db(transaction=True)

# --- episodes, as the application's role (B4) -----------------------------------------------------------------------

EPISODE_LEGAL = {(Status.ACTIVE, Status.ARCHIVED), (Status.ARCHIVED, Status.ACTIVE)}
EPISODE_MOVES = [pair for pair in product((Status.ACTIVE, Status.ARCHIVED, Status.ERASED), Status) if len({*pair}) > 1]


def _by_save(turn: Episode, to: Status) -> None:
    turn.status, turn.version = to, turn.version + 1
    turn.save(update_fields=["status", "version"])


def _by_whole_save(turn: Episode, to: Status) -> None:
    turn.status, turn.version = to, turn.version + 1
    turn.save()


def _by_update(turn: Episode, to: Status) -> None:
    Episode.objects.filter(pk=turn.pk).update(status=to, version=turn.version + 1)


def _by_bulk_update(turn: Episode, to: Status) -> None:
    turn.status, turn.version = to, turn.version + 1
    Episode.objects.bulk_update([turn], ["status", "version"])


def _by_sql(turn: Episode, to: Status) -> None:
    _sql("UPDATE observations_episode SET status = %s, version = version + 1 WHERE id = %s", to, turn.pk)


def _by_loaddata(turn: Episode, to: Status) -> None:
    turn.status, turn.version = to, turn.version + 1
    for loaded in serializers.deserialize("json", serializers.serialize("json", [turn])):
        loaded.save()


WRITERS = (_by_save, _by_update, _by_bulk_update, _by_sql)
WHOLE_WRITERS = (_by_whole_save, _by_loaddata)  # they write every column, which no grant allows


def _sql(statement: str, *values: str | int) -> int:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement, list(values))
        count: int = cursor.rowcount
    return count


def _episode_at(status: Status, within: Scope) -> Episode:
    """An episode in a status; erased is reached by a superuser only, until forgetting can."""
    turn = tell("The relay hums", within=within)
    if status == Status.ARCHIVED:
        with transaction.atomic():
            store.move_episodes(scope_id=within.pk, ids=[turn.pk], to=Status.ARCHIVED)
    elif status == Status.ERASED:
        with superuser() as admin:
            admin.execute("SET session_replication_role = replica")
            admin.execute(
                "INSERT INTO observations_tombstone (scope_id, episode_id, erased_at, erased_by, reason, request,"
                " fingerprint) VALUES (%s, %s, now(), 'x', 'x', 'forget:x', '')",
                (within.pk, turn.pk),
            )
            admin.execute(
                "UPDATE observations_episode SET status = 'erased', text = NULL, content_hash = '', version = 2"
                " WHERE id = %s",
                (turn.pk,),
            )
    return Episode.objects.get(pk=turn.pk)


@pytest.mark.parametrize("write", WRITERS, ids=lambda write: write.__name__)
def test_every_move_of_an_episode_is_legal_or_refused_by_every_way_of_writing(
    write: Callable[[Episode, Status], None],
) -> None:
    """B4: the full matrix of statuses."""
    within = scope()
    for before, after in EPISODE_MOVES:
        turn = _episode_at(before, within)
        if (before, after) in EPISODE_LEGAL:
            write(turn, after)
        else:
            with pytest.raises(DatabaseError), transaction.atomic():
                write(turn, after)
        stands = Episode.objects.get(pk=turn.pk).status
        assert stands == (after if (before, after) in EPISODE_LEGAL else before), (before, after)


@pytest.mark.parametrize("write", WHOLE_WRITERS, ids=lambda write: write.__name__)
def test_a_whole_row_is_never_written_over_even_for_a_legal_move(write: Callable[[Episode, Status], None]) -> None:
    """A save of every column, and loaddata, would write the text too."""
    turn = _episode_at(Status.ACTIVE, scope())
    with pytest.raises(ProgrammingError, match="permission denied"), transaction.atomic():
        write(turn, Status.ARCHIVED)
    assert Episode.objects.get(pk=turn.pk).status == Status.ACTIVE


def test_a_move_of_an_episode_that_does_not_raise_the_version_by_one_is_refused() -> None:
    turn = tell("The relay hums", within=scope())
    for version in (1, 3):
        with pytest.raises(DatabaseError, match="cannot go from"):
            _sql("UPDATE observations_episode SET status = 'archived', version = %s WHERE id = %s", version, turn.pk)
    with pytest.raises(DatabaseError, match="changes only with its status"):
        _sql("UPDATE observations_episode SET version = 2 WHERE id = %s", turn.pk)


@pytest.mark.parametrize(
    "column", ["text", "scope_id", "content_hash", "happened_at", "source_uri", "root_source", "role"]
)
def test_what_an_episode_is_cannot_be_updated_by_the_application(column: str) -> None:
    """Verbatim: whose word it is depends on its role, what it proves on its root."""
    tell("The relay hums", within=scope())
    with pytest.raises(ProgrammingError, match="permission denied"):
        _sql(f"UPDATE observations_episode SET {column} = {column}")


# --- keys that a model gave ------------------------------------------------------------------------------------------

GIVE = (
    "INSERT INTO observations_givenkey (scope_id, observation_id, state, subject, predicate, object, subject_key,"
    " sp_key, spo_key, model, prompt_version, attempts, at, withdrawn_by)"
    " VALUES (%s, %s, %s, %s, %s, %s, 0, 0, 0, 'm', '1', 1, now(), '')"
)
STATES = ("given", "none", "unusable", "withdrawn")
STATE_LEGAL = {("unusable", "given"), ("unusable", "none"), ("given", "withdrawn")}


def _give(row: Observation, state: str = "given", *, within: Scope | None = None, **parts: str) -> None:
    key = [parts.get(name, "") for name in ("subject", "predicate", "object")]
    _sql(GIVE, (within or row.scope).pk, row.pk, state, *key)


@pytest.mark.parametrize("part", ["subject", "predicate", "object"])
def test_a_part_that_a_writer_gave_is_never_given_by_a_model(part: str) -> None:
    """Never overwrites a writer's key: neither at once nor by a change later."""
    row = observe("Bo works at Relay", within=scope(), key=("Bo", "works at", "Relay"))
    with pytest.raises(DatabaseError, match="from its writer"):
        _give(row, within=None, **{part: "other"})
    _give(row, "unusable")
    with pytest.raises(DatabaseError, match="from its writer"):
        _sql(f"UPDATE observations_givenkey SET state = 'given', {part} = 'other'")


def test_the_parts_a_writer_left_out_may_be_given() -> None:
    row = observe("Bo works at Relay", within=scope(), key=("Bo", "", ""))
    _give(row, predicate="works at", object="Relay")
    assert GivenKey.objects.get().object == "Relay"


@pytest.mark.parametrize(("before", "after"), [pair for pair in product(STATES, STATES) if len({*pair}) > 1])
def test_what_a_model_said_moves_one_way(before: str, after: str) -> None:
    """What was given stands until a person takes it back, and then for good: by no detour either."""
    _give(observe("Bo works at Relay", within=scope()), before, subject="Bo" if before == "given" else "")
    change = "UPDATE observations_givenkey SET state = %s, subject = %s"
    if (before, after) in STATE_LEGAL:
        assert _sql(change, after, "Bo" if after == "given" else "") == 1
    else:
        with pytest.raises(DatabaseError, match=r"withdrawn by a person|cannot go from"):
            _sql(change, after, "Bo" if after == "given" else "")


def test_a_given_key_is_not_rewritten_in_place() -> None:
    _give(observe("Bo works at Relay", within=scope()), subject="Bo")
    with pytest.raises(DatabaseError, match="cannot go from given to given"):
        _sql("UPDATE observations_givenkey SET subject = 'Ana'")


@pytest.mark.parametrize("column", ["id", "scope_id", "observation_id"])
def test_a_given_key_stays_with_its_row(column: str) -> None:
    _give(observe("Bo works at Relay", within=scope()), subject="Bo")
    with pytest.raises(ProgrammingError, match="permission denied"):
        _sql(f"UPDATE observations_givenkey SET {column} = {column}")


def test_an_erased_row_is_given_no_key_and_loses_the_one_it_had_also_a_withdrawn_one() -> None:
    """I19: erasing empties it, whatever a person said about it before."""
    within = scope()
    rows = [observe(f"Bo works at Relay {n}", within=within) for n in range(2)]
    _give(rows[0], subject="Bo")
    _sql("UPDATE observations_givenkey SET state = 'withdrawn', subject = ''")
    with transaction.atomic():
        ids = [row.pk for row in rows]
        assert store.erase(scope_id=within.pk, ids=ids, by="x", reason="x", request="forget:1") == 2
    assert GivenKey.objects.get().state == "none"
    with pytest.raises(DatabaseError, match="from its writer"):
        _give(rows[1], subject="Bo")


# --- what only decisions and the database itself may write -----------------------------------------------------------


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO consolidation_policyrevision (pattern, version, body, at, by) VALUES ('*', 9, '{}', now(), 'x')",
        "UPDATE consolidation_policyrevision SET by = 'x'",
        "DELETE FROM consolidation_policyrevision",
    ],
)
def test_the_versions_of_a_policy_are_written_by_the_database_alone(statement: str) -> None:
    """What a plan was made under can always be read."""
    Policy.objects.create(pattern="*", body={"grace_days": 31}, updated_by="ann")
    Policy.objects.filter(pattern="*").update(body={"grace_days": 32})
    Policy.objects.filter(pattern="*").delete()
    assert list(PolicyRevision.objects.order_by("version").values_list("version", "body")) == [
        (1, {"grace_days": 31}),
        (2, {"grace_days": 32}),
        (3, None),
    ]
    with pytest.raises(ProgrammingError, match="permission denied"):
        _sql(statement)


KEPT = [
    *("observations_givenkey", "observations_modelcall", "consolidation_policyrevision", "consolidation_calibration"),
    *("consolidation_alias", "consolidation_cardinality", "consolidation_verdict", "consolidation_operation"),
    *("consolidation_operationsource", "consolidation_plan", "consolidation_planitem"),
]


@pytest.mark.parametrize("table", KEPT)
@pytest.mark.parametrize("statement", ["DELETE FROM {}", "TRUNCATE {} CASCADE"])
def test_what_was_said_learnt_decided_and_spent_is_neither_deleted_nor_truncated(table: str, statement: str) -> None:
    """I20: by the application's role not at all, by anybody else not past the triggers."""
    a_store_with_everything()
    _measured()
    with pytest.raises(ProgrammingError, match="permission denied"):
        _sql(statement.format(table))
    with superuser() as admin, pytest.raises(psycopg.DatabaseError, match="append-only"):
        admin.execute(statement.format(table))


def _measured() -> None:
    """A calibration, a policy and a call of a model."""
    measured = Measured((Band(0.9, different=1_000),))
    row = calibrating.store(profile=HASHING, measured=measured, proposed=(0.8, 0.95), by="ann")
    calibrating.enable(calibration=row, by="ann")
    Policy.objects.create(pattern="*", body={})
    ModelCall.objects.create(purpose="keys", model="m", prompt_version="1", answer="ok")
    operation = three_values(scope("team/a"))
    review.distinct(operation=operation, by="ann")


def three_values(within: Scope) -> Operation:
    rows = [observe(f"Ann lives in {town}", within=within, key=("ann", "lives in", town)) for town in ("Oslo", "Rome")]
    return propose(Kind.SUPERSEDE, rows, approval=Approval.NEEDS_HUMAN)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE observations_modelcall SET cost_microdollars = 0",
        "UPDATE consolidation_calibration SET t_merge = 0.5",
        "UPDATE consolidation_calibration SET enabled_at = NULL",
        "UPDATE consolidation_calibration SET enabled_by = 'somebody'",
        "UPDATE consolidation_alias SET name = 'somebody'",
        "UPDATE consolidation_cardinality SET holds = 'many'",
        "UPDATE consolidation_verdict SET by = 'somebody'",
    ],
)
def test_what_was_measured_named_learnt_and_spent_is_never_changed(statement: str) -> None:
    a_store_with_everything()
    _measured()
    with pytest.raises(DatabaseError, match=r"permission denied|append-only"):
        _sql(statement)


def test_what_was_taken_back_is_not_brought_back_without_a_decision() -> None:
    """R46: an alias that was undone holds again by a new decision only, and so does a lesson."""
    a_store_with_everything()
    for table, column in (("alias", "removed_at"), ("cardinality", "withdrawn_at")):
        assert _sql(f"UPDATE consolidation_{table} SET {column} = now()") >= 1
        with pytest.raises(DatabaseError, match="append-only"):
            _sql(f"UPDATE consolidation_{table} SET {column} = NULL")


def test_no_name_and_no_lesson_comes_without_the_applied_decision_that_made_it() -> None:
    """R46, I17: a forged name would compare two people's memory as one."""
    operation = three_values(scope())
    made = f"{operation.op_id}#1"
    forged = {"scope": operation.scope, "by": "x", "operation": made}
    with pytest.raises(DatabaseError, match="names no applied alias"), transaction.atomic():
        Alias.objects.create(**forged, subject="ann", name="bo", subject_key=1, name_key=2)
    with pytest.raises(DatabaseError, match="names no applied supersede"), transaction.atomic():
        Cardinality.objects.create(**forged, predicate="lives in", holds="many")
    review.approve(operation=operation, by="ann", decision=review.Decision(many_valued=True), reason="two homes")
    assert apply(operation).outcome == "applied"
    other = {**forged, "scope": scope("team-a/u2")}
    with pytest.raises(DatabaseError, match="names no applied supersede"), transaction.atomic():
        Cardinality.objects.create(**other, predicate="lives in", holds="many")


# --- edges between scopes --------------------------------------------------------------------------------------------


def test_a_given_key_of_another_scopes_row_is_refused() -> None:
    """I5."""
    row, other = observe("Bo works at Relay", within=scope("team-a/u1")), scope("team-a/u2")
    with pytest.raises(IntegrityError, match="givenkey_observation_in_scope"):
        _give(row, within=other, subject="Bo")


def test_the_journal_holds_no_episode_of_another_scope_and_nothing_the_application_wrote() -> None:
    """I5, I7."""
    turn, other = tell("The relay hums", within=scope("team-a/u1")), scope("team-a/u2")
    entry = (
        "INSERT INTO observations_transition (scope_id, episode_id, version, from_status, to_status, at, cause)"
        f" VALUES ({{}}, {turn.pk}, 2, 'active', 'archived', now(), '')"
    )
    with pytest.raises(ProgrammingError, match="permission denied"):
        _sql(entry.format(turn.scope_id))
    with superuser() as admin, pytest.raises(psycopg.errors.ForeignKeyViolation, match="transition_episode_in_scope"):
        admin.execute(entry.format(other.pk))


@pytest.mark.parametrize("table", ["operationsource", "consumption"])
def test_no_operation_reaches_an_episode_of_another_scope(table: str) -> None:
    """I5, C6."""
    turn = tell("The relay hums", within=scope("team-a/u2"))
    operation = three_values(scope("team-a/u1"))
    more = {
        "operationsource": "position, planned_version, planned_hash, prior_status) VALUES (%s, %s, %s, 7, 1, '', '')",
        "consumption": ") VALUES (%s, %s, %s)",
    }[table]
    columns = f"scope_id, operation_id, episode_id{',' if table == 'operationsource' else ''} {more}"
    with pytest.raises(IntegrityError, match=f"{table}_episode_in_scope"):
        _sql(f"INSERT INTO consolidation_{table} ({columns}", operation.scope_id, operation.pk, turn.pk)

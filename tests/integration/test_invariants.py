"""Each invariant finds what breaks it: a healthy store has none, and one forged row, past every trigger, is named."""

from __future__ import annotations

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from consolidation import invariants
from observations import ingest
from observations.models import Observation
from tests.conftest import empty_the_store, superuser
from tests.everything import a_store_with_everything
from tests.jsonl import exported, imported, observation

pytestmark = pytest.mark.django_db(transaction=True)

MERGED = "(SELECT min(id) FROM observations_observation WHERE derivation = 'merge' AND status = 'active')"
SOURCE = f"(SELECT min(id) FROM observations_observation WHERE superseded_by_id = {MERGED})"
LATEST = "(SELECT max(id) FROM observations_observation)"
PROMOTED = "(SELECT id FROM observations_observation WHERE derivation = 'promote')"
SUMMARY = "(SELECT id FROM observations_observation WHERE derivation = 'compact')"
TOLD = f"(SELECT min(source_episode_id) FROM observations_lineage WHERE derived_id = {PROMOTED})"
NAMED_BACK = (
    "INSERT INTO consolidation_alias (scope_id, subject, name, subject_key, name_key, at, by, operation)"
    " SELECT scope_id, name, subject, name_key, subject_key, at, by, operation FROM consolidation_alias"
)

# What somebody with the keys to the database might do, and the invariant that notices.
FORGERIES = [
    ("I1", "UPDATE observations_lineage SET operation = 'op_forged#1'"),
    ("I1", f"DELETE FROM observations_lineage WHERE derived_id = {MERGED} AND source_observation_id = {SOURCE}"),
    ("I1", "DELETE FROM observations_lineage"),
    ("I2", f"UPDATE observations_observation SET superseded_by_id = NULL WHERE id = {SOURCE}"),
    ("I2", f"UPDATE observations_observation SET status = 'retracted' WHERE id = {MERGED}"),
    ("I3", "UPDATE consolidation_operation SET status = 'undone' WHERE status = 'applied' AND kind = 'merge'"),
    ("I3", f"UPDATE observations_observation SET produced_by = 'op_forged#1' WHERE id = {MERGED}"),
    ("I4", f"UPDATE observations_observation SET status = 'active', superseded_by_id = NULL WHERE id = {SOURCE}"),
    ("I4", f"DELETE FROM consolidation_consumption WHERE observation_id = {SOURCE}"),
    ("I4", "DELETE FROM consolidation_consumption WHERE operation_id IN"
     " (SELECT id FROM consolidation_operation WHERE kind = 'archive')"),
    ("I4", "DELETE FROM consolidation_consumption WHERE operation_id IN"
     " (SELECT id FROM consolidation_operation WHERE kind = 'supersede')"),
    ("I5", f"UPDATE observations_lineage SET scope_id = scope_id + 1 WHERE derived_id = {MERGED}"),
    ("I5", f"UPDATE observations_observation SET superseded_by_id = {LATEST} WHERE id = {SOURCE}"),
    ("I5", "UPDATE consolidation_operationsource SET scope_id = scope_id + 1"),
    ("I6", f"UPDATE observations_observation SET status = 'archived', superseded_by_id = {SOURCE} WHERE id = {MERGED}"),
    ("I7", f"UPDATE observations_observation SET version = version + 1 WHERE id = {MERGED}"),
    ("I7", f"UPDATE observations_transition SET from_status = 'retracted' WHERE observation_id = {SOURCE}"),
    ("I7", f"DELETE FROM observations_transition WHERE observation_id = {SOURCE}"),
    ("I7", "DELETE FROM observations_event WHERE action = 'undone'"),
    ("I7", "UPDATE observations_event SET action = 'applied' WHERE action = 'undone'"),
    ("I11", f"UPDATE observations_observation SET text = text || '!' WHERE id = {MERGED}"),
    ("I11", "UPDATE observations_episode SET text = text || '!'"),
    ("I11", "DELETE FROM observations_tombstone"),
    ("I11", f"UPDATE observations_observation SET words = substr(words, 9) WHERE id = {MERGED}"),
    ("I11", f"UPDATE observations_observation SET words_head = overlay(words_head PLACING int8send(0) FROM 1)"
     f" WHERE id = {MERGED}"),
    ("I11", "UPDATE observations_observation SET words = int8send(7) WHERE status = 'erased'"),
    ("I12", f"UPDATE observations_observation SET stated_by = 'outside' WHERE id = {SOURCE}"),
    ("I12", "UPDATE observations_observation SET stated_by = 'user' WHERE status = 'erased';"
     "UPDATE observations_tombstone SET request = 'op_1#1'"),
    ("I12", f"UPDATE observations_observation SET confidence = 1.0 WHERE id = {MERGED}"),
    ("I14", f"UPDATE observations_observation SET created_at = created_at - interval '1 day' WHERE id = {MERGED}"),
    ("I14", f"UPDATE observations_observation SET valid_from = created_at WHERE id = {MERGED}"),
    ("I14", "UPDATE observations_observation SET created_at = now() + interval '1 day' WHERE external_id = 'gone'"),
    ("I15", f"DELETE FROM observations_evidence WHERE observation_id = {MERGED} AND source_uri = 'doc://1'"),
    # what promoting, compacting, naming and giving keys left behind
    ("I1", f"DELETE FROM observations_lineage WHERE derived_id = {PROMOTED} AND source_episode_id <> {TOLD}"),
    ("I1", f"UPDATE observations_lineage SET source_episode_id = {TOLD} - 1 WHERE source_episode_id = {TOLD}"),
    ("I2", f"DELETE FROM observations_lineage WHERE derived_id = {SUMMARY}"),
    ("I3", f"UPDATE observations_observation SET status = 'retracted' WHERE id = {SUMMARY}"),
    ("I3", "UPDATE consolidation_operation SET status = 'undone' WHERE kind = 'promote'"),
    ("I3", "UPDATE consolidation_alias SET removed_at = now()"),
    ("I3", "UPDATE consolidation_operation SET status = 'undone' WHERE kind = 'alias'"),
    ("I3", "UPDATE consolidation_cardinality SET operation = 'op_forged#1'"),
    ("I4", "UPDATE observations_episode SET status = 'active' WHERE status = 'archived'"),
    ("I4", "DELETE FROM consolidation_consumption WHERE episode_id IS NOT NULL"),
    ("I5", "UPDATE observations_givenkey SET scope_id = scope_id + 1 WHERE state = 'given'"),
    ("I5", "UPDATE observations_transition SET scope_id = scope_id + 1 WHERE episode_id IS NOT NULL"),
    ("I5", "UPDATE consolidation_consumption SET scope_id = scope_id + 1 WHERE episode_id IS NOT NULL"),
    ("I5", "UPDATE consolidation_verdict SET scope_id = scope_id + 1"),
    ("I6", NAMED_BACK),
    ("I7", "UPDATE observations_episode SET version = version + 1 WHERE status = 'archived'"),
    ("I7", "DELETE FROM observations_transition WHERE episode_id IS NOT NULL"),
    ("I11", "UPDATE observations_episode SET content_hash = repeat('0', 64)"),
    ("I12", f"UPDATE observations_observation SET confidence = 0.61 WHERE id = {PROMOTED}"),
    ("I12", f"UPDATE observations_observation SET stated_by = 'user' WHERE id = {SUMMARY}"),
    ("I15", f"DELETE FROM observations_evidence WHERE observation_id = {PROMOTED} AND episode_id = {TOLD}"),
    ("I16", f"UPDATE observations_observation SET spo_key = 7 WHERE id = {SOURCE}"),
    ("I16", f"UPDATE observations_observation SET text_key = 7, spo_key = 0 WHERE id = {SOURCE}"),
]  # fmt: skip


def forge(statements: str) -> None:
    """As a superuser with triggers off, which nobody but a test or an intruder can be."""
    with superuser() as admin:
        admin.execute("SET session_replication_role = replica")
        for statement in statements.split(";"):
            assert admin.execute(statement).rowcount > 0, "the forgery changed nothing"


def test_a_store_that_has_been_through_everything_violates_nothing() -> None:
    a_store_with_everything()
    assert invariants.check() == []


@pytest.mark.parametrize(("invariant", "forgery"), FORGERIES)
def test_a_forged_row_is_found_by_its_invariant(invariant: str, forgery: str) -> None:
    a_store_with_everything()
    forge(forgery)
    violated = {violation.id: violation for violation in invariants.check()}
    assert invariant in violated, list(violated)
    assert violated[invariant].rows


def test_every_invariant_has_a_forgery_here() -> None:
    assert {rule.id for rule in invariants.INVARIANTS} == {invariant for invariant, _ in FORGERIES}


def test_the_rows_of_a_violation_are_named_and_long_lists_are_cut() -> None:
    imported(*({"id": str(n), "text": f"t {n}"} for n in range(30)))
    forge("UPDATE observations_observation SET text = 'forged'")
    [violation] = invariants.check()
    assert violation.id == "I11"
    assert len(violation.rows) == invariants.SHOWN
    assert violation.more
    assert set(violation.rows) <= {f"obs_{pk}" for pk in Observation.objects.values_list("pk", flat=True)}


def test_an_imported_store_violates_nothing_although_its_operations_are_elsewhere() -> None:
    """I1: derived rows with imported lineage have no operation here."""
    a_store_with_everything()
    lines = exported()
    empty_the_store()
    ingest.import_lines(lines)
    assert Observation.objects.filter(derivation="merge").exists()
    assert invariants.check() == []


def test_verify_says_what_holds_and_ends_with_0() -> None:
    a_store_with_everything()
    out = StringIO()
    call_command("memory", "verify", stdout=out)
    told = out.getvalue()
    assert told.count(" ok ") == len(invariants.INVARIANTS)
    assert "VIOLATED" not in told
    assert all(f"{name} " in told for name in ("I1", "I7", "I8", "I9", "I10", "I16"))
    assert told.count("a test") == 3


def test_verify_names_the_rows_and_ends_with_1() -> None:
    imported({"id": "a", "text": "t"})
    forge("UPDATE observations_observation SET text = 'forged'")
    out = StringIO()
    with pytest.raises(CommandError) as failed:
        call_command("memory", "verify", stdout=out)
    assert failed.value.returncode == 1
    assert f"obs_{observation('a').pk}" in out.getvalue()
    assert "forged" not in out.getvalue()

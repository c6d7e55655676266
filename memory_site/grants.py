"""What the application's role may do: everything it needs, and nothing that could lose memory.

Declared once, after every migrate, as the owner. DELETE is withheld from memory, lineage, evidence and events only, so
that Django's own tables and beat's work with full grants. On history, UPDATE is withheld too; on memory it is given
column by column.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.db import connections
from psycopg import sql

# table -> columns the application may UPDATE. None of these tables grants DELETE or TRUNCATE.
UPDATABLE: dict[str, tuple[str, ...]] = {
    "observations_scope": ("held_at", "held_until", "hold_reason", "index_profile"),
    "observations_episode": ("status", "version"),
    "observations_observation": ("status", "version", "superseded_by_id", "valid_from", "valid_to", "reconciled_at"),
    "observations_evidence": (),
    "observations_embedding": ("vector", "bands"),
    "observations_givenkey": (
        *("state", "subject", "predicate", "object", "subject_key", "sp_key", "spo_key", "quote_start", "quote_end"),
        *("model", "prompt_version", "attempts", "at", "withdrawn_by"),
    ),
    "observations_modelcall": (),
    "observations_lineage": (),
    "observations_use": (),
    "observations_event": (),
    "observations_intakerun": ("state", "finished_at", "error", "figures"),
    "observations_extraction": ("run_id", "state", "attempts", "at"),
    "observations_intakeitem": (),
    "observations_unusableanswer": (),
    "observations_corememory": ("value", "description", "limit", "read_only", "revision", "updated_at"),
    "observations_corerevision": (),
    "observations_token": ("name", "revoked_at", "revoked_by", "last_used_at"),
    "consolidation_plan": ("explained_at", "state", "failures", "figures", "asked_by", "asked_at", "asked_digest"),
    "consolidation_planitem": ("opened_at", "opened_by"),
    "consolidation_operation": (
        *("status", "decision", "decision_text", "decision_object", "decision_reason", "decided_by", "decided_at"),
        *(
            "approved_digest",
            "approval_expires_at",
            "derived_id",
            "applied_at",
            "applied_by",
            "applied_digest",
            "undone_at",
            "undone_by",
        ),
        *("outcome", "needs_second", "seconded_by", "seconded_at"),
    ),
    "consolidation_operationsource": (
        *("prior_status", "prior_superseded_by_id", "prior_valid_from", "prior_valid_to", "applied_version"),
    ),
    "consolidation_verdict": (),
    "consolidation_calibration": ("enabled_at", "enabled_by"),
    "consolidation_cardinality": ("withdrawn_at",),
    "consolidation_alias": ("removed_at",),
    "consolidation_suite": (),
    "consolidation_probe": (),
    "consolidation_proberun": (),
    "consolidation_projection": ("signed_off_at", "signed_off_by", "sign_off_reason"),
    "consolidation_sample": ("judged", "judged_at", "judged_by"),
    "consolidation_planning": ("started_at", "finished_at", "done", "doing", "plan_id", "error"),
    "consolidation_comment": (),
    "consolidation_drill": ("answer", "answered_at"),
    "consolidation_bulkdecision": ("reason", "wide", "finished_at"),
    "consolidation_bulkitem": ("outcome", "sentence"),
    "consolidation_overdue": (),
    "consolidation_demotion": ("lifted_at", "lifted_by", "lifted_reason"),
}
# A consumption is made by apply and deleted by undo; an answer is kept 90 days.
NEVER_UPDATED = ("consolidation_consumption", "observations_givenanswer")
# Written only by the database's own functions.
READ_ONLY = ("observations_transition", "observations_tombstone", "consolidation_policyrevision", "django_migrations")
ERASE = "palimpsest_erase_observations(bigint, bigint[], text, text, text)"
ERASE_CORE = "palimpsest_erase_core(bigint, bigint, text, text, text)"


def declare_grants(*, using: str = "default", **_: Any) -> None:
    """Grants the role of DATABASE_URL its rights; does nothing when that role is the one migrating (a database of one
    role).

    Connected to post_migrate. Raises django.db.utils.ProgrammingError where the migrating role does not own the tables.
    """
    role = settings.APPLICATION_ROLE
    connection = connections[using]
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_user")
        row = cursor.fetchone()
        if not role or row is None or row[0] == role:
            return
        app = sql.Identifier(role)
        for statement in _statements(app):
            cursor.execute(statement)


def _statements(app: sql.Identifier) -> list[sql.Composed]:
    everything = [
        "GRANT USAGE ON SCHEMA public TO {app}",
        "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {app}",
        "GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA public TO {app}",
        *(f"GRANT EXECUTE ON FUNCTION {function} TO {{app}}" for function in (ERASE, ERASE_CORE)),
    ]
    statements = [sql.SQL(text).format(app=app) for text in everything]
    for table, columns in UPDATABLE.items():
        name = sql.Identifier(table)
        statements.append(sql.SQL("REVOKE UPDATE, DELETE, TRUNCATE ON {} FROM {}").format(name, app))
        if columns:
            listed = sql.SQL(", ").join(map(sql.Identifier, columns))
            statements.append(sql.SQL("GRANT UPDATE ({}) ON {} TO {}").format(listed, name, app))
    for table in NEVER_UPDATED:
        revoke = sql.SQL("REVOKE UPDATE ON {} FROM {}")
        statements.append(revoke.format(sql.Identifier(table), app))
    for table in READ_ONLY:
        revoke = sql.SQL("REVOKE INSERT, UPDATE, DELETE, TRUNCATE ON {} FROM {}")
        statements.append(revoke.format(sql.Identifier(table), app))
    return statements

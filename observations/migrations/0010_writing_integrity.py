"""What PostgreSQL enforces about the background pipeline, core memory and tokens: as 0002_integrity, for these tables.

Raising codes: PA001 (immutable), PA002 (illegal move), PA003 (append-only), PA004 (refused erase), PA006 (not whole).
"""

from __future__ import annotations

from django.db import migrations

OBSERVATION = "observations_observation"
EPISODE = "observations_episode"
CORE = "observations_corememory"

# (table, column, target): each becomes FOREIGN KEY (column, scope_id) REFERENCES target (id, scope_id).
EDGES = [
    ("observations_extraction", "episode_id", EPISODE),
    ("observations_intakeitem", "episode_id", EPISODE),
    ("observations_intakeitem", "target_id", OBSERVATION),
    ("observations_intakeitem", "observation_id", OBSERVATION),
    ("observations_corerevision", "core_id", CORE),
]


def edge(table: str, column: str, target: str) -> migrations.RunSQL:
    """One composite foreign key, so that no edge crosses a scope (I5)."""
    name = f"{table.split('_', 1)[1]}_{column.removesuffix('_id')}_in_scope"
    return migrations.RunSQL(
        f"ALTER TABLE {table} ADD CONSTRAINT {name} FOREIGN KEY ({column}, scope_id) REFERENCES {target} (id, scope_id)",
        f"ALTER TABLE {table} DROP CONSTRAINT {name}",
    )


INTAKE = """
-- What was considered is a record: written once, emptied by an erase.
CREATE FUNCTION palimpsest_intake_item_update() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
  IF (NEW.id, NEW.scope_id, NEW.run_id, NEW.episode_id, NEW.verdict, NEW.reason, NEW.offered, NEW.target_id, NEW.observation_id, NEW.at)
     IS DISTINCT FROM
     (OLD.id, OLD.scope_id, OLD.run_id, OLD.episode_id, OLD.verdict, OLD.reason, OLD.offered, OLD.target_id, OLD.observation_id, OLD.at)
     OR NEW.text NOT IN ('', OLD.text) OR NEW.said NOT IN ('', OLD.said) THEN
    RAISE EXCEPTION 'what was considered is written once' USING ERRCODE = 'PA001';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER intake_item_update BEFORE UPDATE ON observations_intakeitem
  FOR EACH ROW EXECUTE FUNCTION palimpsest_intake_item_update();

CREATE FUNCTION palimpsest_unusable_answer_update() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
  IF (NEW.id, NEW.scope_id, NEW.run_id, NEW.purpose, NEW.episode_ids, NEW.reason, NEW.model, NEW.prompt_version, NEW.at)
     IS DISTINCT FROM
     (OLD.id, OLD.scope_id, OLD.run_id, OLD.purpose, OLD.episode_ids, OLD.reason, OLD.model, OLD.prompt_version, OLD.at)
     OR NEW.reply NOT IN ('', OLD.reply) THEN
    RAISE EXCEPTION 'an answer is kept as it came' USING ERRCODE = 'PA001';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER unusable_answer_update BEFORE UPDATE ON observations_unusableanswer
  FOR EACH ROW EXECUTE FUNCTION palimpsest_unusable_answer_update();

-- An extraction stays with its turn, and one that was settled is not opened again.
CREATE FUNCTION palimpsest_extraction_update() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
  IF (NEW.id, NEW.scope_id, NEW.episode_id) IS DISTINCT FROM (OLD.id, OLD.scope_id, OLD.episode_id)
     OR OLD.state <> 'unusable' THEN
    RAISE EXCEPTION 'ep_% was read before', OLD.episode_id USING ERRCODE = 'PA002';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER extraction_update BEFORE UPDATE ON observations_extraction
  FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION palimpsest_extraction_update();

-- An erase empties what the pipeline kept of the row: its claim, and answers about the turns it was read from.
CREATE FUNCTION palimpsest_tombstone_clears_intake() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
  UPDATE observations_intakeitem SET text = '', said = '', quote_start = NULL, quote_end = NULL
  WHERE scope_id = NEW.scope_id AND text || said <> ''
    AND (observation_id = NEW.observation_id OR target_id = NEW.observation_id OR NEW.observation_id = ANY (offered)
         OR episode_id = NEW.episode_id
         OR episode_id IN (SELECT e.episode_id FROM observations_evidence e
                           WHERE e.scope_id = NEW.scope_id AND e.observation_id = NEW.observation_id));
  UPDATE observations_unusableanswer SET reply = ''
  WHERE scope_id = NEW.scope_id AND reply <> ''
    AND (NEW.episode_id = ANY (episode_ids)
         OR episode_ids && ARRAY(SELECT e.episode_id FROM observations_evidence e
                                 WHERE e.scope_id = NEW.scope_id AND e.observation_id = NEW.observation_id
                                   AND e.episode_id IS NOT NULL));
  RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION palimpsest_tombstone_clears_intake() FROM PUBLIC;
CREATE TRIGGER clears_intake AFTER INSERT ON observations_tombstone
  FOR EACH ROW EXECUTE FUNCTION palimpsest_tombstone_clears_intake();
"""

DROP_INTAKE = """
DROP TRIGGER clears_intake ON observations_tombstone;
DROP FUNCTION palimpsest_tombstone_clears_intake();
DROP TRIGGER extraction_update ON observations_extraction;
DROP FUNCTION palimpsest_extraction_update();
DROP TRIGGER unusable_answer_update ON observations_unusableanswer;
DROP FUNCTION palimpsest_unusable_answer_update();
DROP TRIGGER intake_item_update ON observations_intakeitem;
DROP FUNCTION palimpsest_intake_item_update();
"""

CORE_MEMORY = """
-- Every edit is a revision: the value moves with the number, and at commit the newest revision says what the value is.
CREATE FUNCTION palimpsest_core_update() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
  IF (NEW.id, NEW.scope_id, NEW.label, NEW.created_at) IS DISTINCT FROM (OLD.id, OLD.scope_id, OLD.label, OLD.created_at) THEN
    RAISE EXCEPTION 'a core memory keeps its scope and its label' USING ERRCODE = 'PA001';
  END IF;
  IF NEW.value <> OLD.value AND NEW.revision <> OLD.revision + 1
     OR NEW.revision NOT IN (OLD.revision, OLD.revision + 1) THEN
    RAISE EXCEPTION 'an edit of core memory raises its revision by one' USING ERRCODE = 'PA002';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER core_update BEFORE UPDATE ON observations_corememory
  FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION palimpsest_core_update();

CREATE FUNCTION palimpsest_core_whole() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
  IF EXISTS (
       SELECT 1 FROM observations_corememory c WHERE c.id = NEW.id AND NOT EXISTS (
         SELECT 1 FROM observations_corerevision r WHERE r.scope_id = c.scope_id AND r.core_id = c.id
           AND r.number = c.revision AND coalesce(r.value, '') = c.value)) THEN
    RAISE EXCEPTION 'core memory % says what none of its revisions says', NEW.id USING ERRCODE = 'PA006';
  END IF;
  RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER core_whole AFTER INSERT OR UPDATE ON observations_corememory
  DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION palimpsest_core_whole();

CREATE FUNCTION palimpsest_core_revision_update() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
  IF NEW.value IS NOT NULL
     OR (NEW.id, NEW.scope_id, NEW.core_id, NEW.number, NEW.action, NEW.undoes, NEW.by, NEW.at)
        IS DISTINCT FROM (OLD.id, OLD.scope_id, OLD.core_id, OLD.number, OLD.action, OLD.undoes, OLD.by, OLD.at) THEN
    RAISE EXCEPTION 'a revision of core memory is written once' USING ERRCODE = 'PA003';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER core_revision_update BEFORE UPDATE ON observations_corerevision
  FOR EACH ROW EXECUTE FUNCTION palimpsest_core_revision_update();

-- The only way core memory loses its words for good: the value and every revision, at a person's request.
CREATE FUNCTION palimpsest_erase_core(p_scope bigint, p_core bigint, p_by text, p_reason text, p_request text)
RETURNS integer LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE n integer;
BEGIN
  IF p_by = '' OR p_reason = '' OR p_request NOT LIKE 'forget:%' THEN
    RAISE EXCEPTION 'core memory is erased only by a forget request that says who and why' USING ERRCODE = 'PA004';
  END IF;
  UPDATE observations_corerevision SET value = NULL WHERE scope_id = p_scope AND core_id = p_core AND value IS NOT NULL;
  GET DIAGNOSTICS n = ROW_COUNT;
  INSERT INTO observations_corerevision (scope_id, core_id, number, value, action, by, at)
  SELECT scope_id, id, revision + 1, NULL, 'rethink', left(p_by, 150), clock_timestamp()
  FROM observations_corememory WHERE scope_id = p_scope AND id = p_core;
  UPDATE observations_corememory SET value = '', description = '', revision = revision + 1, updated_at = clock_timestamp()
  WHERE scope_id = p_scope AND id = p_core;
  RETURN n;
END $$;
REVOKE ALL ON FUNCTION palimpsest_erase_core(bigint, bigint, text, text, text) FROM PUBLIC;
"""

DROP_CORE_MEMORY = """
DROP FUNCTION palimpsest_erase_core(bigint, bigint, text, text, text);
DROP TRIGGER core_revision_update ON observations_corerevision;
DROP FUNCTION palimpsest_core_revision_update();
DROP TRIGGER core_whole ON observations_corememory;
DROP FUNCTION palimpsest_core_whole();
DROP TRIGGER core_update ON observations_corememory;
DROP FUNCTION palimpsest_core_update();
"""

CALLER = """
-- What a token may do is fixed when it is made: another right is another token. Revoking is for good.
CREATE FUNCTION palimpsest_token_update() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
  IF (NEW.id, NEW.key_id, NEW.secret_hash, NEW.scope_pattern, NEW.may_read, NEW.may_write, NEW.may_propose,
      NEW.speaks_for_user, NEW.created_at, NEW.created_by, NEW.expires_at)
     IS DISTINCT FROM
     (OLD.id, OLD.key_id, OLD.secret_hash, OLD.scope_pattern, OLD.may_read, OLD.may_write, OLD.may_propose,
      OLD.speaks_for_user, OLD.created_at, OLD.created_by, OLD.expires_at) THEN
    RAISE EXCEPTION 'the rights of token % are fixed', OLD.key_id USING ERRCODE = 'PA001';
  END IF;
  IF OLD.revoked_at IS NOT NULL AND NEW.revoked_at IS DISTINCT FROM OLD.revoked_at THEN
    RAISE EXCEPTION 'token % was revoked for good', OLD.key_id USING ERRCODE = 'PA002';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER token_update BEFORE UPDATE ON observations_token
  FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION palimpsest_token_update();
"""

DROP_CALLER = """
DROP TRIGGER token_update ON observations_token;
DROP FUNCTION palimpsest_token_update();
"""

KEPT = (
    "observations_extraction",
    "observations_intakerun",
    "observations_intakeitem",
    "observations_unusableanswer",
    "observations_corememory",
    "observations_corerevision",
    "observations_token",
)


def kept(table: str) -> migrations.RunSQL:
    """Refuses DELETE row by row, and TRUNCATE as a whole."""
    return migrations.RunSQL(
        f"""
        CREATE TRIGGER append_only BEFORE DELETE ON {table}
          FOR EACH ROW EXECUTE FUNCTION palimpsest_append_only();
        CREATE TRIGGER no_truncate BEFORE TRUNCATE ON {table}
          FOR EACH STATEMENT EXECUTE FUNCTION palimpsest_append_only();
        """,
        f"DROP TRIGGER append_only ON {table}; DROP TRIGGER no_truncate ON {table};",
    )


class Migration(migrations.Migration):
    """Forward on any data that fits; backward drops only what this adds."""

    dependencies = [("observations", "0009_writing")]

    operations = [
        *(edge(*parts) for parts in EDGES),
        migrations.RunSQL(INTAKE, DROP_INTAKE),
        migrations.RunSQL(CORE_MEMORY, DROP_CORE_MEMORY),
        migrations.RunSQL(CALLER, DROP_CALLER),
        *(kept(table) for table in KEPT),
    ]

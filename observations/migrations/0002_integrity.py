"""What PostgreSQL enforces about memory, whoever writes: INTEGRITY part 1.

Scope on every edge, legal moves only, text immutable, append-only history, erasing through one function. Raising codes are
PA001 (immutable), PA002 (illegal move), PA003 (append-only), PA004 (refused erase), PA005 (refused insert).
"""

from __future__ import annotations

from django.db import migrations

OBSERVATION = "observations_observation"
EPISODE = "observations_episode"

# (table, column, target): each becomes FOREIGN KEY (column, scope_id) REFERENCES target (id, scope_id).
EDGES = [
    (OBSERVATION, "superseded_by_id", OBSERVATION),
    ("observations_evidence", "observation_id", OBSERVATION),
    ("observations_evidence", "episode_id", EPISODE),
    ("observations_embedding", "observation_id", OBSERVATION),
    ("observations_embedding", "episode_id", EPISODE),
    ("observations_lineage", "derived_id", OBSERVATION),
    ("observations_lineage", "source_observation_id", OBSERVATION),
    ("observations_lineage", "source_episode_id", EPISODE),
    ("observations_transition", "observation_id", OBSERVATION),
    ("observations_transition", "superseded_by_id", OBSERVATION),
    ("observations_use", "observation_id", OBSERVATION),
    ("observations_tombstone", "observation_id", OBSERVATION),
    ("observations_tombstone", "episode_id", EPISODE),
]


def edge(table: str, column: str, target: str) -> migrations.RunSQL:
    """One composite foreign key; immediate, so that a crossed scope fails at the statement that tries it."""
    name = f"{table.split('_', 1)[1]}_{column.removesuffix('_id')}_in_scope"
    return migrations.RunSQL(
        f"ALTER TABLE {table} ADD CONSTRAINT {name} FOREIGN KEY ({column}, scope_id) REFERENCES {target} (id, scope_id)",
        f"ALTER TABLE {table} DROP CONSTRAINT {name}",
    )


GUARD_OBSERVATION = """
CREATE FUNCTION palimpsest_observation_insert() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
  IF NEW.status NOT IN ('active', 'quarantined') OR NEW.version <> 1 OR NEW.superseded_by_id IS NOT NULL THEN
    RAISE EXCEPTION 'an observation is born active or quarantined, at version 1, without a successor'
      USING ERRCODE = 'PA005';
  END IF;
  IF NEW.created_at > clock_timestamp() THEN
    IF NEW.created_at > clock_timestamp() + interval '5 minutes' THEN
      RAISE EXCEPTION 'created_at is in the future of the database''s clock' USING ERRCODE = 'PA005';
    END IF;
    NEW.created_at := clock_timestamp();  -- a writer's clock runs a little ahead
  END IF;
  RETURN NEW;
END $$;

CREATE FUNCTION palimpsest_observation_update() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
  IF (NEW.id, NEW.scope_id, NEW.stated_by, NEW.written_by, NEW.created_at, NEW.recorded_at,
      NEW.derivation, NEW.derived_at, NEW.produced_by, NEW.chain, NEW.uses_inherited, NEW.confidence, NEW.cleaned)
     IS DISTINCT FROM
     (OLD.id, OLD.scope_id, OLD.stated_by, OLD.written_by, OLD.created_at, OLD.recorded_at,
      OLD.derivation, OLD.derived_at, OLD.produced_by, OLD.chain, OLD.uses_inherited, OLD.confidence, OLD.cleaned) THEN
    RAISE EXCEPTION 'scope, origin and identity of obs_% are immutable', OLD.id USING ERRCODE = 'PA001';
  END IF;
  IF NEW.external_id <> OLD.external_id AND NOT (NEW.status = 'erased' AND NEW.external_id = 'erased:' || OLD.id) THEN
    RAISE EXCEPTION 'the external id of obs_% is immutable', OLD.id USING ERRCODE = 'PA001';
  END IF;
  IF NEW.status = 'erased' AND OLD.status <> 'erased' THEN
    IF NEW.text IS NOT NULL OR NEW.content_hash || NEW.subject || NEW.predicate || NEW.object <> ''
       OR (NEW.text_key, NEW.subject_key, NEW.sp_key, NEW.spo_key) <> (0, 0, 0, 0)
       OR NOT EXISTS (SELECT 1 FROM observations_tombstone t
                      WHERE t.scope_id = OLD.scope_id AND t.observation_id = OLD.id) THEN
      RAISE EXCEPTION 'obs_% is erased whole and with a tombstone, or not at all', OLD.id USING ERRCODE = 'PA004';
    END IF;
  ELSIF (NEW.text, NEW.content_hash, NEW.subject, NEW.predicate, NEW.object,
         NEW.text_key, NEW.subject_key, NEW.sp_key, NEW.spo_key)
        IS DISTINCT FROM
        (OLD.text, OLD.content_hash, OLD.subject, OLD.predicate, OLD.object,
         OLD.text_key, OLD.subject_key, OLD.sp_key, OLD.spo_key) THEN
    RAISE EXCEPTION 'the text and key of obs_% are immutable: a change is a new row', OLD.id USING ERRCODE = 'PA001';
  END IF;
  IF (NEW.status, NEW.superseded_by_id, NEW.valid_from, NEW.valid_to)
     IS DISTINCT FROM (OLD.status, OLD.superseded_by_id, OLD.valid_from, OLD.valid_to) THEN
    IF NEW.version <> OLD.version + 1 THEN
      RAISE EXCEPTION 'obs_% moves from version % to %: each move raises it by one', OLD.id, OLD.version, NEW.version
        USING ERRCODE = 'PA002';
    END IF;
  ELSIF NEW.version <> OLD.version THEN
    RAISE EXCEPTION 'the version of obs_% changes only with its state', OLD.id USING ERRCODE = 'PA002';
  END IF;
  IF NEW.status <> OLD.status AND (OLD.status, NEW.status) NOT IN (
       ('active', 'superseded'), ('active', 'archived'), ('active', 'retracted'), ('active', 'quarantined'),
       ('active', 'erased'), ('superseded', 'active'), ('superseded', 'erased'), ('archived', 'active'),
       ('archived', 'erased'), ('retracted', 'erased'), ('quarantined', 'active'), ('quarantined', 'archived'),
       ('quarantined', 'retracted'), ('quarantined', 'erased')) THEN
    RAISE EXCEPTION 'obs_% cannot go from % to %', OLD.id, OLD.status, NEW.status USING ERRCODE = 'PA002';
  END IF;
  IF OLD.status = 'erased' THEN
    RAISE EXCEPTION 'obs_% is erased: nothing about it changes any more', OLD.id USING ERRCODE = 'PA002';
  END IF;
  RETURN NEW;
END $$;

-- The journal is written by the database itself, as the owner, so that no writer can forget it or forge it (I7).
CREATE FUNCTION palimpsest_observation_journal() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
  INSERT INTO observations_transition (scope_id, observation_id, version, from_status, to_status, superseded_by_id, at, cause)
  SELECT n.scope_id, n.id, n.version, o.status, n.status, n.superseded_by_id, clock_timestamp(),
         left(coalesce(current_setting('palimpsest.cause', true), ''), 120)
  FROM after_rows n JOIN before_rows o ON o.id = n.id WHERE n.version <> o.version;
  UPDATE observations_embedding e SET active = (n.status = 'active')
  FROM after_rows n JOIN before_rows o ON o.id = n.id
  WHERE n.status <> o.status AND e.scope_id = n.scope_id AND e.observation_id = n.id;
  RETURN NULL;
END $$;

CREATE TRIGGER observation_insert BEFORE INSERT ON observations_observation
  FOR EACH ROW EXECUTE FUNCTION palimpsest_observation_insert();
CREATE TRIGGER observation_update BEFORE UPDATE ON observations_observation
  FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION palimpsest_observation_update();
CREATE TRIGGER observation_journal AFTER UPDATE ON observations_observation
  REFERENCING OLD TABLE AS before_rows NEW TABLE AS after_rows
  FOR EACH STATEMENT EXECUTE FUNCTION palimpsest_observation_journal();
"""

DROP_OBSERVATION = """
DROP TRIGGER observation_insert ON observations_observation;
DROP TRIGGER observation_update ON observations_observation;
DROP TRIGGER observation_journal ON observations_observation;
DROP FUNCTION palimpsest_observation_insert();
DROP FUNCTION palimpsest_observation_update();
DROP FUNCTION palimpsest_observation_journal();
"""

GUARD_EPISODE = """
CREATE FUNCTION palimpsest_episode_update() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
  IF (NEW.id, NEW.scope_id, NEW.external_id, NEW.cleaned, NEW.speaker, NEW.role, NEW.session, NEW.seq, NEW.happened_at,
      NEW.recorded_at, NEW.source_uri, NEW.root_source)
     IS DISTINCT FROM
     (OLD.id, OLD.scope_id, OLD.external_id, OLD.cleaned, OLD.speaker, OLD.role, OLD.session, OLD.seq, OLD.happened_at,
      OLD.recorded_at, OLD.source_uri, OLD.root_source)
     OR ((NEW.text, NEW.content_hash) IS DISTINCT FROM (OLD.text, OLD.content_hash)
         AND NOT (NEW.status = 'erased' AND NEW.text IS NULL AND NEW.content_hash = ''
                  AND EXISTS (SELECT 1 FROM observations_tombstone t
                              WHERE t.scope_id = OLD.scope_id AND t.episode_id = OLD.id))) THEN
    RAISE EXCEPTION 'ep_% is verbatim: it is never changed', OLD.id USING ERRCODE = 'PA001';
  END IF;
  IF NEW.status <> OLD.status AND ((OLD.status, NEW.status) NOT IN
       (('active', 'archived'), ('active', 'erased'), ('archived', 'active'), ('archived', 'erased'))
       OR NEW.version <> OLD.version + 1) THEN
    RAISE EXCEPTION 'ep_% cannot go from % to % at version %', OLD.id, OLD.status, NEW.status, NEW.version
      USING ERRCODE = 'PA002';
  END IF;
  IF NEW.status = OLD.status AND NEW.version <> OLD.version THEN
    RAISE EXCEPTION 'the version of ep_% changes only with its status', OLD.id USING ERRCODE = 'PA002';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER episode_update BEFORE UPDATE ON observations_episode
  FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION palimpsest_episode_update();
"""

DROP_EPISODE = """
DROP TRIGGER episode_update ON observations_episode;
DROP FUNCTION palimpsest_episode_update();
"""

EMBEDDING = """
ALTER TABLE observations_embedding ADD CONSTRAINT embedding_dimensions
  CHECK (vector IS NULL OR vector_dims(vector) = dimensions);
CREATE FUNCTION palimpsest_embedding_insert() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
  IF NEW.observation_id IS NOT NULL THEN
    SELECT status = 'active' INTO NEW.active FROM observations_observation
      WHERE id = NEW.observation_id AND scope_id = NEW.scope_id;
  ELSE
    SELECT status = 'active' INTO NEW.active FROM observations_episode
      WHERE id = NEW.episode_id AND scope_id = NEW.scope_id;
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER embedding_insert BEFORE INSERT ON observations_embedding
  FOR EACH ROW EXECUTE FUNCTION palimpsest_embedding_insert();
"""

DROP_EMBEDDING = """
DROP TRIGGER embedding_insert ON observations_embedding;
DROP FUNCTION palimpsest_embedding_insert();
ALTER TABLE observations_embedding DROP CONSTRAINT embedding_dimensions;
"""

APPEND_ONLY = """
CREATE FUNCTION palimpsest_append_only() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
  RAISE EXCEPTION '% is append-only: % refused', TG_TABLE_NAME, TG_OP USING ERRCODE = 'PA003';
END $$;

CREATE FUNCTION palimpsest_evidence_update() RETURNS trigger LANGUAGE plpgsql
SET search_path = pg_catalog, public, pg_temp AS $$
BEGIN
  IF NEW.quote IS NULL AND NEW.quote_start IS NULL
     AND (NEW.id, NEW.scope_id, NEW.observation_id, NEW.source_uri) = (OLD.id, OLD.scope_id, OLD.observation_id, OLD.source_uri)
     AND EXISTS (SELECT 1 FROM observations_tombstone t
                 WHERE t.scope_id = OLD.scope_id AND t.observation_id = OLD.observation_id) THEN
    RETURN NEW;
  END IF;
  RAISE EXCEPTION 'evidence is append-only' USING ERRCODE = 'PA003';
END $$;
CREATE TRIGGER evidence_update BEFORE UPDATE ON observations_evidence
  FOR EACH ROW EXECUTE FUNCTION palimpsest_evidence_update();
"""

DROP_APPEND_ONLY = """
DROP TRIGGER evidence_update ON observations_evidence;
DROP FUNCTION palimpsest_evidence_update();
DROP FUNCTION palimpsest_append_only() CASCADE;
"""

# Which statements each table refuses from everyone, the owner included.
REFUSED = {
    "observations_scope": "DELETE",
    OBSERVATION: "DELETE",
    EPISODE: "DELETE",
    "observations_evidence": "DELETE",
    "observations_lineage": "UPDATE OR DELETE",
    "observations_transition": "UPDATE OR DELETE",
    "observations_tombstone": "UPDATE OR DELETE",
    "observations_event": "UPDATE OR DELETE",
}


def append_only(table: str, operations: str) -> migrations.RunSQL:
    """Refuses the listed statements row by row, and TRUNCATE as a whole."""
    return migrations.RunSQL(
        f"""
        CREATE TRIGGER append_only BEFORE {operations} ON {table}
          FOR EACH ROW EXECUTE FUNCTION palimpsest_append_only();
        CREATE TRIGGER no_truncate BEFORE TRUNCATE ON {table}
          FOR EACH STATEMENT EXECUTE FUNCTION palimpsest_append_only();
        """,
        f"DROP TRIGGER append_only ON {table}; DROP TRIGGER no_truncate ON {table};",
    )


ERASE = """
-- The only way any text leaves the store. Runs as the owner; the application may call it, not do what it does.
CREATE FUNCTION palimpsest_erase_observations(p_scope bigint, p_ids bigint[], p_by text, p_reason text, p_request text)
RETURNS integer LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE n integer;
BEGIN
  IF p_by = '' OR p_reason = '' OR p_request = '' THEN
    RAISE EXCEPTION 'an erase names who, why and by which request' USING ERRCODE = 'PA004';
  END IF;
  PERFORM 1 FROM observations_observation WHERE scope_id = p_scope AND id = ANY (p_ids) ORDER BY id FOR UPDATE;
  IF p_request NOT LIKE 'forget:%' AND EXISTS (
       SELECT 1 FROM observations_observation WHERE scope_id = p_scope AND id = ANY (p_ids) AND stated_by = 'user') THEN
    RAISE EXCEPTION 'what a user said is erased only by a forget request' USING ERRCODE = 'PA004';  -- I12, R47
  END IF;
  INSERT INTO observations_tombstone (scope_id, observation_id, erased_at, erased_by, reason, request, fingerprint)
  SELECT scope_id, id, clock_timestamp(), p_by, p_reason, p_request, '' FROM observations_observation
  WHERE scope_id = p_scope AND id = ANY (p_ids) AND status <> 'erased';
  UPDATE observations_observation
  SET status = 'erased', text = NULL, content_hash = '', subject = '', predicate = '', object = '',
      text_key = 0, subject_key = 0, sp_key = 0, spo_key = 0, version = version + 1,
      -- an id made of the content is a hash that a short text can be guessed from
      external_id = CASE WHEN external_id ~ '^obs:[0-9a-f]{32}$' THEN 'erased:' || id ELSE external_id END
  WHERE scope_id = p_scope AND id = ANY (p_ids) AND status <> 'erased';
  GET DIAGNOSTICS n = ROW_COUNT;
  UPDATE observations_evidence SET quote = NULL, quote_start = NULL
  WHERE scope_id = p_scope AND observation_id = ANY (p_ids) AND quote IS NOT NULL;
  UPDATE observations_embedding SET vector = NULL, bands = NULL
  WHERE scope_id = p_scope AND observation_id = ANY (p_ids);
  RETURN n;
END $$;
REVOKE ALL ON FUNCTION palimpsest_erase_observations(bigint, bigint[], text, text, text) FROM PUBLIC;
"""

DROP_ERASE = "DROP FUNCTION palimpsest_erase_observations(bigint, bigint[], text, text, text)"


class Migration(migrations.Migration):
    """Forward on any data that fits; backward drops only what this adds."""

    dependencies = [("observations", "0001_initial")]

    operations = [
        *(edge(*parts) for parts in EDGES),
        migrations.RunSQL(GUARD_OBSERVATION, DROP_OBSERVATION),
        migrations.RunSQL(GUARD_EPISODE, DROP_EPISODE),
        migrations.RunSQL(EMBEDDING, DROP_EMBEDDING),
        migrations.RunSQL(APPEND_ONLY, DROP_APPEND_ONLY),
        *(append_only(*item) for item in REFUSED.items()),
        migrations.RunSQL(ERASE, DROP_ERASE),
    ]

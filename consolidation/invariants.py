"""The invariants of INTEGRITY part 2, each a query over the whole store that must return no row.

Every query returns one column: the shown id of a row that breaks the rule. Rows whose lineage was imported come from
another store's operations, which are not here; for them the rules that name an operation do not count.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from django.db import connections

SHOWN: Final = 20  # row ids per violated invariant


@dataclass(frozen=True, slots=True)
class Invariant:
    """One rule, and the query that finds what breaks it."""

    id: str
    sentence: str
    query: str


@dataclass(frozen=True, slots=True)
class Violation:
    """An invariant that does not hold, and the first rows that break it."""

    id: str
    sentence: str
    rows: tuple[str, ...]
    more: bool  # there are further rows


# What a query cannot see, because it is about what happens when something is done twice.
PROVED_BY_TESTS: Final = {
    "I8": "applying an applied operation, or delivering a task twice, changes nothing",
    "I9": "undo after apply gives back exactly what was there, however often",
    "I10": "an undone operation is applied again only with a new approval",
}

_STAMP = "p.op_id || '#' || p.generation"
_IMPORTED = (
    "EXISTS (SELECT 1 FROM observations_lineage i WHERE i.scope_id = o.scope_id AND i.derived_id = o.id AND i.imported)"
)

# A source that was merged with repeats of it is in the lineage by what it came from itself (decision 0014): {source} is
# its id, {derived} the row that was made of it. What was erased has no key left to compare.
_CARRIED = """(EXISTS (
  SELECT 1 FROM observations_observation m
  JOIN observations_observation r ON r.scope_id = m.scope_id AND r.id = {derived}
  WHERE m.id = {source} AND m.derivation = 'merge' AND r.derivation = 'merge' AND ('erased' IN (m.status, r.status)
    OR (m.text_key, m.subject_key, m.sp_key, m.spo_key) = (r.text_key, r.subject_key, r.sp_key, r.spo_key))
) AND EXISTS (
  SELECT 1 FROM observations_lineage b WHERE b.derived_id = {source}
) AND NOT EXISTS (
  SELECT b.scope_id, b.source_observation_id, b.source_episode_id FROM observations_lineage b
  WHERE b.derived_id = {source}
  EXCEPT
  SELECT b.scope_id, b.source_observation_id, b.source_episode_id FROM observations_lineage b
  WHERE b.derived_id = {derived}
))"""
_BY_REPEATS = _CARRIED.format(source="s.observation_id", derived="o.id")

# Edges to the sources and to nothing else; only where they do not match one by one are repeats looked for.
_LINEAGE = f"""
SELECT 'obs_' || o.id FROM observations_observation o
LEFT JOIN consolidation_operation p ON p.scope_id = o.scope_id AND {_STAMP} = o.produced_by
LEFT JOIN LATERAL (
  SELECT count(*) AS n, count(s.id) AS matched, count(*) FILTER (WHERE l.operation <> o.produced_by) AS other
  FROM observations_lineage l
  LEFT JOIN consolidation_operationsource s ON s.scope_id = l.scope_id AND s.operation_id = p.id
    AND (s.observation_id = l.source_observation_id OR s.episode_id = l.source_episode_id)
  WHERE l.scope_id = o.scope_id AND l.derived_id = o.id
) e ON true
WHERE o.derivation IS NOT NULL AND o.status NOT IN ('retracted', 'erased') AND NOT {_IMPORTED}
  AND (p.id IS NULL OR e.other > 0 OR (o.derivation IN ('merge', 'promote') AND e.n < 2)
    OR CASE WHEN e.n <> p.n_sources OR e.matched <> e.n THEN (
      SELECT count(*) FROM consolidation_operationsource s WHERE s.scope_id = o.scope_id AND s.operation_id = p.id
        AND (EXISTS (SELECT 1 FROM observations_lineage l WHERE l.scope_id = o.scope_id AND l.derived_id = o.id
                     AND (l.source_observation_id = s.observation_id OR l.source_episode_id = s.episode_id))
             OR {_BY_REPEATS})
      ) <> p.n_sources OR EXISTS (
        SELECT l.source_observation_id, l.source_episode_id FROM observations_lineage l
        WHERE l.scope_id = o.scope_id AND l.derived_id = o.id
        EXCEPT (
          SELECT s.observation_id, s.episode_id FROM consolidation_operationsource s
          WHERE s.scope_id = o.scope_id AND s.operation_id = p.id
          UNION ALL
          SELECT b.source_observation_id, b.source_episode_id FROM consolidation_operationsource s
          JOIN observations_lineage b ON b.scope_id = s.scope_id AND b.derived_id = s.observation_id
          WHERE s.scope_id = o.scope_id AND s.operation_id = p.id AND {_BY_REPEATS} AND NOT EXISTS (
            SELECT 1 FROM observations_lineage l WHERE l.scope_id = o.scope_id AND l.derived_id = o.id
            AND l.source_observation_id = s.observation_id)))
    END)
UNION ALL
SELECT DISTINCT 'obs_' || l.derived_id FROM observations_lineage l
JOIN observations_observation o ON o.id = l.derived_id AND o.scope_id = l.scope_id WHERE o.derivation IS NULL
"""  # noqa: S608 - made of constants

_NO_LOSS = f"""
SELECT 'obs_' || o.id FROM observations_observation o WHERE o.status = 'superseded' AND o.superseded_by_id IS NULL
UNION
SELECT 'obs_' || o.id FROM consolidation_operation p
JOIN consolidation_consumption c ON c.scope_id = p.scope_id AND c.operation_id = p.id
JOIN observations_observation o ON o.scope_id = c.scope_id AND o.id = c.observation_id
WHERE p.status = 'applied' AND p.derived_id IS NOT NULL AND o.superseded_by_id IS DISTINCT FROM p.derived_id
UNION
SELECT 'obs_' || o.id FROM consolidation_operation p
JOIN consolidation_consumption c ON c.scope_id = p.scope_id AND c.operation_id = p.id
JOIN observations_observation o ON o.scope_id = c.scope_id AND o.id = c.observation_id
LEFT JOIN observations_lineage l ON l.scope_id = p.scope_id AND l.derived_id = p.derived_id
  AND l.source_observation_id = o.id
WHERE p.status = 'applied' AND p.kind IN ('merge', 'promote', 'compact') AND l.id IS NULL
  AND NOT {_CARRIED.format(source="o.id", derived="p.derived_id")}
UNION
SELECT 'ep_' || c.episode_id FROM consolidation_operation p
JOIN consolidation_consumption c ON c.scope_id = p.scope_id AND c.operation_id = p.id AND c.episode_id IS NOT NULL
LEFT JOIN observations_lineage l ON l.scope_id = p.scope_id AND l.derived_id = p.derived_id
  AND l.source_episode_id = c.episode_id
WHERE p.status = 'applied' AND l.id IS NULL
UNION
SELECT 'obs_' || o.id FROM observations_observation o
JOIN observations_observation d ON d.scope_id = o.scope_id AND d.id = o.superseded_by_id
WHERE d.status = 'retracted'
"""  # noqa: S608 - made of constants

_SINGLE_CARRIER = f"""
SELECT p.op_id FROM consolidation_operation p
LEFT JOIN LATERAL (
  SELECT count(*) AS n, count(*) FILTER (WHERE o.status <> 'erased') AS live FROM observations_observation o
  WHERE o.scope_id = p.scope_id AND o.produced_by = {_STAMP} AND o.status <> 'retracted' AND NOT {_IMPORTED}
) d ON true
WHERE (p.status = 'applied' AND p.kind IN ('merge', 'promote', 'compact') AND d.n <> 1)
   OR (p.status <> 'applied' AND d.live > 0)  -- what was taken back may be erased
UNION
SELECT p.op_id FROM consolidation_operation p
JOIN observations_observation o ON o.scope_id = p.scope_id AND o.id = p.derived_id
WHERE (p.status = 'applied' AND o.status = 'retracted')
   OR (p.status = 'undone' AND o.status NOT IN ('retracted', 'erased'))
UNION
SELECT p.op_id FROM consolidation_operation p
LEFT JOIN consolidation_alias a ON a.scope_id = p.scope_id AND a.operation = {_STAMP}
WHERE p.kind = 'alias' AND CASE WHEN p.status = 'applied'
  THEN a.id IS NULL OR (a.removed_at IS NOT NULL AND a.subject_key <> 0)  -- erased with the last record about it
  ELSE a.id IS NOT NULL AND a.removed_at IS NULL END
UNION
SELECT 'lesson ' || c.id FROM consolidation_cardinality c
LEFT JOIN consolidation_operation p ON p.scope_id = c.scope_id AND c.operation = {_STAMP}
WHERE c.withdrawn_at IS NULL AND p.status IS DISTINCT FROM 'applied'
"""  # noqa: S608 - made of constants

_ONE_CLAIM = """
SELECT 'obs_' || c.observation_id FROM consolidation_consumption c
JOIN consolidation_operation p ON p.scope_id = c.scope_id AND p.id = c.operation_id
JOIN observations_observation o ON o.scope_id = c.scope_id AND o.id = c.observation_id
WHERE p.status <> 'applied' OR o.status = 'active'
UNION
SELECT 'ep_' || c.episode_id FROM consolidation_consumption c
JOIN consolidation_operation p ON p.scope_id = c.scope_id AND p.id = c.operation_id
JOIN observations_episode e ON e.scope_id = c.scope_id AND e.id = c.episode_id
WHERE p.status <> 'applied' OR p.kind <> 'compact' OR e.status = 'active'
UNION
SELECT coalesce('obs_' || s.observation_id, 'ep_' || s.episode_id) FROM consolidation_operation p
JOIN consolidation_operationsource s ON s.scope_id = p.scope_id AND s.operation_id = p.id
LEFT JOIN consolidation_consumption c ON c.scope_id = p.scope_id AND c.operation_id = p.id
  AND (c.observation_id = s.observation_id OR c.episode_id = s.episode_id)
WHERE p.status = 'applied' AND c.id IS NULL AND s.applied_version > s.planned_version
  AND NOT p.decision ?| ARRAY['both', 'many_valued']
"""

_SCOPE_CLOSED = """
SELECT 'obs_' || o.id FROM observations_observation o JOIN observations_observation d ON d.id = o.superseded_by_id
WHERE d.scope_id <> o.scope_id
UNION
SELECT 'lineage ' || l.id FROM observations_lineage l JOIN observations_observation d ON d.id = l.derived_id
LEFT JOIN observations_observation o ON o.id = l.source_observation_id
LEFT JOIN observations_episode e ON e.id = l.source_episode_id
WHERE d.scope_id <> l.scope_id OR o.scope_id <> l.scope_id OR e.scope_id <> l.scope_id
UNION
SELECT 'evidence ' || v.id FROM observations_evidence v JOIN observations_observation o ON o.id = v.observation_id
LEFT JOIN observations_episode e ON e.id = v.episode_id WHERE o.scope_id <> v.scope_id OR e.scope_id <> v.scope_id
UNION
SELECT 'embedding ' || m.id FROM observations_embedding m
LEFT JOIN observations_observation o ON o.id = m.observation_id
LEFT JOIN observations_episode e ON e.id = m.episode_id WHERE o.scope_id <> m.scope_id OR e.scope_id <> m.scope_id
UNION
SELECT p.op_id FROM consolidation_operation p
JOIN consolidation_operationsource s ON s.operation_id = p.id
LEFT JOIN observations_observation o ON o.id = s.observation_id
LEFT JOIN observations_episode e ON e.id = s.episode_id
WHERE s.scope_id <> p.scope_id OR o.scope_id <> p.scope_id OR e.scope_id <> p.scope_id
UNION
SELECT p.op_id FROM consolidation_operation p JOIN observations_observation d ON d.id IN (p.derived_id, p.keeper_id)
WHERE d.scope_id <> p.scope_id
UNION
SELECT p.op_id FROM consolidation_operation p JOIN consolidation_planitem i ON i.operation_id = p.id
JOIN consolidation_plan n ON n.id = i.plan_id WHERE i.scope_id <> p.scope_id OR n.scope_id <> p.scope_id
UNION
SELECT p.op_id FROM consolidation_operation p JOIN consolidation_consumption c ON c.operation_id = p.id
LEFT JOIN observations_observation o ON o.id = c.observation_id
LEFT JOIN observations_episode e ON e.id = c.episode_id
WHERE c.scope_id <> p.scope_id OR o.scope_id <> p.scope_id OR e.scope_id <> p.scope_id
UNION
SELECT 'given key ' || k.id FROM observations_givenkey k JOIN observations_observation o ON o.id = k.observation_id
WHERE o.scope_id <> k.scope_id
UNION
SELECT 'transition ' || t.id FROM observations_transition t
LEFT JOIN observations_observation o ON o.id = t.observation_id
LEFT JOIN observations_episode e ON e.id = t.episode_id WHERE o.scope_id <> t.scope_id OR e.scope_id <> t.scope_id
UNION
SELECT 'verdict ' || v.id FROM consolidation_verdict v JOIN observations_observation o ON o.id IN (v.low_id, v.high_id)
WHERE o.scope_id <> v.scope_id
"""

_CHAINS = """
WITH RECURSIVE walk (scope_id, start, at) AS (
  SELECT scope_id, id, superseded_by_id FROM observations_observation WHERE superseded_by_id IS NOT NULL
  UNION
  SELECT w.scope_id, w.start, o.superseded_by_id FROM walk w
  JOIN observations_observation o ON o.scope_id = w.scope_id AND o.id = w.at
  WHERE o.superseded_by_id IS NOT NULL AND w.at <> w.start
), named (scope_id, id, start, at) AS (
  SELECT scope_id, id, subject_key, name_key FROM consolidation_alias WHERE removed_at IS NULL
  UNION
  SELECT n.scope_id, n.id, n.start, a.name_key FROM named n
  JOIN consolidation_alias a ON a.scope_id = n.scope_id AND a.subject_key = n.at AND a.removed_at IS NULL
  WHERE n.at <> n.start
)
SELECT DISTINCT 'obs_' || start FROM walk WHERE at = start
UNION
SELECT DISTINCT 'alias ' || id FROM named WHERE at = start
UNION
SELECT 'obs_' || id FROM observations_observation
WHERE (status IN ('active', 'retracted', 'quarantined') AND superseded_by_id IS NOT NULL)
   OR (status = 'superseded' AND superseded_by_id IS NULL)
"""

_JOURNAL = """
WITH steps AS (
  SELECT t.*, row_number() OVER w AS step, lag(t.to_status) OVER w AS before, lead(t.id) OVER w IS NULL AS last
  FROM observations_transition t
  WINDOW w AS (PARTITION BY t.scope_id, t.observation_id, t.episode_id ORDER BY t.version)
), broken AS (
  SELECT observation_id, episode_id FROM steps
  WHERE version <> step + 1
     OR (step = 1 AND from_status NOT IN ('active', 'quarantined'))
     OR (step > 1 AND from_status <> before)
)
SELECT DISTINCT coalesce('obs_' || observation_id, 'ep_' || episode_id) FROM broken
UNION
SELECT 'ep_' || e.id FROM observations_episode e
LEFT JOIN steps s ON s.scope_id = e.scope_id AND s.episode_id = e.id AND s.last
WHERE CASE WHEN s.id IS NULL THEN e.version <> 1 OR e.status NOT IN ('active', 'archived', 'erased')
  ELSE (e.version, e.status) IS DISTINCT FROM (s.version, s.to_status) END
UNION
SELECT 'obs_' || o.id FROM observations_observation o
LEFT JOIN steps s ON s.scope_id = o.scope_id AND s.observation_id = o.id AND s.last
WHERE CASE WHEN s.id IS NULL
  THEN o.version <> 1 OR o.status NOT IN ('active', 'quarantined') OR o.superseded_by_id IS NOT NULL
  ELSE (o.version, o.status, o.superseded_by_id) IS DISTINCT FROM (s.version, s.to_status, s.superseded_by_id) END
UNION
SELECT subject FROM (
  SELECT e.subject, e.action, lag(e.action, 1, 'undone') OVER (
    PARTITION BY e.scope_id, e.subject, e.generation ORDER BY e.id) AS before
  FROM observations_event e WHERE e.action IN ('applied', 'undone')
) turns WHERE action = before
UNION
SELECT p.op_id FROM consolidation_operation p
LEFT JOIN LATERAL (
  SELECT e.action FROM observations_event e WHERE e.scope_id = p.scope_id AND e.subject = p.op_id
  AND e.generation = p.generation AND e.action IN ('applied', 'undone') ORDER BY e.id DESC LIMIT 1
) e ON true
WHERE (p.status IN ('applied', 'undone') OR e.action IS NOT NULL) AND p.status IS DISTINCT FROM e.action
"""

# The words beside a row are its text for whoever searches: a row whose words are others is found by nobody.
_TEXT = """
SELECT 'obs_' || id FROM observations_observation
WHERE (words, words_head) IS DISTINCT FROM CASE WHEN text IS NULL THEN ROW(''::bytea, ''::bytea)
  ELSE ROW(palimpsest_word_codes(text, subject, predicate, object),
    palimpsest_words_head(id, created_at, half_life_days, words, subject)) END
UNION
SELECT 'obs_' || id FROM observations_observation
WHERE (text IS NOT NULL AND NOT (text = '' AND content_hash = '')
       AND content_hash <> encode(sha256(convert_to(text, 'UTF8')), 'hex'))
   OR (text IS NULL AND NOT EXISTS (SELECT 1 FROM observations_tombstone t
       WHERE t.scope_id = observations_observation.scope_id AND t.observation_id = observations_observation.id))
UNION
SELECT 'ep_' || id FROM observations_episode
WHERE (text IS NOT NULL AND content_hash <> encode(sha256(convert_to(text, 'UTF8')), 'hex'))
   OR (text IS NULL AND NOT EXISTS (SELECT 1 FROM observations_tombstone t
       WHERE t.scope_id = observations_episode.scope_id AND t.episode_id = observations_episode.id))
"""

_RANK = "array_position(ARRAY['outside', 'tool', 'agent', 'operator', 'user'], {}.stated_by)"

_USERS_WORD = f"""
SELECT 'obs_' || o.id FROM observations_observation o WHERE o.stated_by = 'user' AND o.status = 'erased'
  AND NOT EXISTS (SELECT 1 FROM observations_tombstone t
                  WHERE t.scope_id = o.scope_id AND t.observation_id = o.id AND t.request LIKE 'forget:%')
UNION
SELECT 'obs_' || d.id FROM observations_lineage l
JOIN observations_observation d ON d.scope_id = l.scope_id AND d.id = l.derived_id
JOIN observations_observation o ON o.scope_id = l.scope_id AND o.id = l.source_observation_id
WHERE {_RANK.format("d")} > {_RANK.format("o")}
UNION
SELECT 'obs_' || d.id FROM consolidation_operation p
JOIN consolidation_operationsource s ON s.scope_id = p.scope_id AND s.operation_id = p.id
JOIN observations_observation d ON d.scope_id = p.scope_id AND d.id = p.derived_id
JOIN observations_observation o ON o.scope_id = p.scope_id AND o.id = s.observation_id
WHERE p.kind = 'merge' AND {_RANK.format("d")} > {_RANK.format("o")}
UNION
SELECT 'obs_' || id FROM observations_observation
WHERE derivation IN ('promote', 'compact') AND stated_by IN ('user', 'operator')
UNION
SELECT 'obs_' || id FROM observations_observation
WHERE (derivation = 'promote' AND confidence > 0.6) OR (derivation IS NOT NULL AND confidence > 0.99)
"""  # noqa: S608 - made of constants

# Of the rows that were merged, not of what these came from: periods that a person gave a merged row are its own.
_DATES = f"""
SELECT 'obs_' || d.id FROM observations_observation d
JOIN consolidation_operation p ON p.scope_id = d.scope_id AND p.derived_id = d.id AND {_STAMP} = d.produced_by
JOIN LATERAL (
  SELECT min(o.created_at) AS said,
    CASE WHEN bool_or(o.valid_from IS NULL) THEN NULL ELSE min(o.valid_from) END AS valid
  FROM consolidation_operationsource s
  JOIN observations_observation o ON o.scope_id = s.scope_id AND o.id = s.observation_id
  WHERE s.scope_id = p.scope_id AND s.operation_id = p.id HAVING count(*) > 0
) s ON true
WHERE d.derivation = 'merge' AND d.status <> 'erased'
  AND (d.created_at <> s.said OR (d.version = 1 AND d.valid_from IS DISTINCT FROM s.valid))
UNION
SELECT 'obs_' || id FROM observations_observation WHERE created_at > clock_timestamp()
"""  # noqa: S608 - made of constants

# Of the rows that were merged; theirs holds what they came from rests on in turn, unless an import brought them. After
# an undo a source may gain witnesses that what was taken back does not have.
_EVIDENCE = """
SELECT DISTINCT 'obs_' || p.derived_id FROM consolidation_operation p
JOIN consolidation_operationsource s ON s.scope_id = p.scope_id AND s.operation_id = p.id
JOIN observations_evidence v ON v.scope_id = p.scope_id AND v.observation_id = s.observation_id
LEFT JOIN observations_evidence d ON d.scope_id = p.scope_id AND d.observation_id = p.derived_id
  AND d.source_uri = v.source_uri
WHERE p.kind = 'merge' AND p.status = 'applied' AND d.id IS NULL
UNION
SELECT DISTINCT 'obs_' || p.derived_id FROM consolidation_operation p
JOIN consolidation_operationsource s ON s.scope_id = p.scope_id AND s.operation_id = p.id
JOIN observations_episode e ON e.scope_id = p.scope_id AND e.id = s.episode_id
LEFT JOIN observations_evidence d ON d.scope_id = p.scope_id AND d.observation_id = p.derived_id
  AND d.source_uri = e.source_uri
WHERE p.kind IN ('promote', 'compact') AND p.derived_id IS NOT NULL AND d.id IS NULL
"""

_CONTRADICTION = """
SELECT DISTINCT p.op_id FROM consolidation_operation p
JOIN consolidation_operationsource s ON s.scope_id = p.scope_id AND s.operation_id = p.id
JOIN consolidation_operationsource r ON r.scope_id = p.scope_id AND r.operation_id = p.id AND r.id > s.id
JOIN observations_observation a ON a.scope_id = p.scope_id AND a.id = s.observation_id AND a.status <> 'erased'
JOIN observations_observation b ON b.scope_id = p.scope_id AND b.id = r.observation_id AND b.status <> 'erased'
WHERE p.status = 'applied' AND p.kind = 'merge' AND (
  (a.sp_key <> 0 AND a.sp_key = b.sp_key AND a.spo_key <> 0 AND b.spo_key <> 0 AND a.spo_key <> b.spo_key)
  OR (p.approval = 'AUTO' AND (a.spo_key = 0 OR b.spo_key = 0)
      AND (a.text_key, a.subject_key, a.sp_key, a.spo_key) <> (b.text_key, b.subject_key, b.sp_key, b.spo_key))
)
"""

INVARIANTS: Final = (
    Invariant("I1", "every derived row has exactly the lineage its operation names", _LINEAGE),
    Invariant("I2", "every row that was replaced or merged leads to a successor that was not taken back", _NO_LOSS),
    Invariant("I3", "an applied operation has its one product, any other operation none", _SINGLE_CARRIER),
    Invariant("I4", "no source is used up twice, and none that is used up is active", _ONE_CLAIM),
    Invariant("I5", "no edge leads from one scope into another", _SCOPE_CLOSED),
    Invariant(
        "I6", "chains of successors and of names end, and only replaced or archived rows have a successor", _CHAINS
    ),
    Invariant("I7", "replaying the journal gives the rows as they stand, and applied and undone take turns", _JOURNAL),
    Invariant("I11", "no text was changed, nor the words it is found by, and none is gone without a tombstone", _TEXT),
    Invariant(
        "I12", "no user's word was erased unasked, and nothing derived is trusted above its sources", _USERS_WORD
    ),
    Invariant("I14", "a merged row has its sources' earliest dates, and nothing was said in the future", _DATES),
    Invariant("I15", "a derived row rests on everything its sources rest on", _EVIDENCE),
    Invariant("I16", "no applied merge joined different claims", _CONTRADICTION),
)


def check(*, using: str = "default") -> list[Violation]:
    """The invariants that do not hold; empty when all is well. One query each, reads only."""
    found = []
    with connections[using].cursor() as cursor:
        for invariant in INVARIANTS:
            cursor.execute(f"SELECT * FROM ({invariant.query}) rows LIMIT {SHOWN + 1}")  # noqa: S608 - our own queries
            rows = tuple(str(row[0]) for row in cursor.fetchall())
            if rows:
                found.append(Violation(invariant.id, invariant.sentence, rows[:SHOWN], len(rows) > SHOWN))
    return found

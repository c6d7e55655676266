"""What each kind of operation does to memory, one function each. Undo takes all back alike, from what was recorded."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from django.db import DatabaseError, connection

from consolidation import learning, merge, review
from consolidation.operations import Kind
from consolidation.runner.distilling import compact, promote
from consolidation.runner.naming import alias
from consolidation.runner.work import Effect, Work, free_name, stamp
from observations import outbox, store
from observations.normalise import key64
from observations.records import Claim, Record, StatedBy, Status, WrittenBy

ERASE_PRUNED = "erase_pruned"  # the outbox task that erases after the grace period


def _merge(work: Work, by: str) -> Effect:
    """A new row with the keeper's text and everybody's evidence; the sources leave the reads, whole (R58, R72, R96,
    R101). A source that its repeats replace stands in the new row's lineage by what it came from itself. What a
    reviewer edited is written as they saw it: own words have no source's vector.
    """
    operation, keep, edits = work.operation, kept(work), _edits(work)
    known = _known(work)
    combined = _combined(work, known)
    derived = store.write_derived(
        scope=operation.scope,
        derived=store.Derived(
            claim=replace(combined.claim, external_id=free_name(work)),
            sources=tuple(work.ids),
            named=combined.derived_from,
            derivation=Kind.MERGE,
            operation=stamp(operation),
            chain=combined.chain,
            uses_inherited=combined.uses_inherited,
            same_text_as=None if edits.words else keep,
            at=work.now,
        ),
    )
    store.move(scope_id=operation.scope_id, ids=work.ids, to=Status.ARCHIVED, successor=derived)
    if (said := _said_of(work, known, keep)) is not None:
        store.copy_key(scope_id=operation.scope_id, into=derived, source=said)
    return Effect(moved=tuple(work.ids), derived=derived)


def kept(work: Work) -> int:
    """The source whose text a merge keeps: a reviewer's choice, or the rule's. No query."""
    return int(work.operation.decision.get("keep") or work.operation.keeper_id or 0)


def merged_claim(work: Work) -> tuple[Claim, int | None]:
    """The claim that a merge writes, without its name and evidence, and the source that hands on what a model said
    about its key. One query.
    """
    known = _known(work)
    return _combined(work, known).claim, _said_of(work, known, kept(work))


def own_words(work: Work) -> bool:
    """Whether a merge writes a text that no source has: a reviewer's. No query."""
    return _edits(work).words


def _edits(work: Work) -> merge.Edits:
    row = work.operation
    key = (row.claim_subject, row.claim_predicate, row.claim_object)
    return merge.edits_of(product=row.product, text=row.text, key=key)


def _combined(work: Work, known: _Known) -> merge.Combined:
    return merge.combine(
        known.records, keeper=kept(work), policy=work.policy, came_from=known.came_from, edits=_edits(work)
    )


def _supersede(work: Work, by: str) -> Effect:
    """One claim stays, or all do, or the reviewer's own words replace them; what loses is superseded, never changed."""
    operation, chosen = work.operation, work.operation.decision
    many = bool(chosen.get("many_valued"))
    if many or not chosen.get("both"):
        _teach(work, many=many)
    if many or chosen.get("both"):
        review.remember_distinct(operation=operation, ids=work.ids, by=by)
        periods = {pk: (_moment(start), _moment(end)) for pk, start, end in chosen.get("both", [])}
        dated = store.set_validity(scope_id=operation.scope_id, periods=periods)
        return Effect(moved=(), dated=tuple(dated))
    winner, written = chosen.get("keep"), None
    if winner is None:
        winner = written = _right_claim(work, by)
    losers = [pk for pk in work.ids if pk != winner]
    store.move(scope_id=operation.scope_id, ids=losers, to=Status.SUPERSEDED, successor=winner)
    return Effect(moved=tuple(losers), derived=written)


def _right_claim(work: Work, by: str) -> int:
    """Write the claim a reviewer gave instead of all live ones: an operator's word, not a derived row.

    With the object they gave it has the whole key, so that a later value of it is a contradiction again (R71).
    """
    operation = work.operation
    claim = replace(right_claim(work), external_id=free_name(work))
    [written] = store.add_observations(scope=operation.scope, claims=[claim], written_by=WrittenBy.DELIBERATE)
    if written.id is None:
        raise DatabaseError(written.reason)
    store.copy_evidence(scope_id=operation.scope_id, into=written.id, sources=work.ids)
    return written.id


def right_claim(work: Work) -> Claim:
    """The claim a reviewer wrote, without its name and evidence. No query."""
    operation = work.operation
    subject, predicate = review.key_of(rows=work.rows.values())
    return Claim(
        text=operation.decision_text,
        subject=subject,
        predicate=predicate,
        object=operation.decision_object,
        confidence=0.9,
        stated_by=StatedBy.OPERATOR,
        created_at=operation.decided_at,
    )


def _teach(work: Work, *, many: bool) -> None:
    """What the decision says about the predicate, for the next time."""
    operation, (_, predicate) = work.operation, review.key_of(rows=work.rows.values())
    scope_id, by = operation.scope_id, operation.decided_by
    learning.teach(scope_id=scope_id, predicate=predicate, many=many, operation=stamp(operation), by=by)


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def _archive(work: Work, by: str) -> Effect:
    """Rows leave the reads, whole and without a successor."""
    store.move(scope_id=work.operation.scope_id, ids=work.ids, to=Status.ARCHIVED)
    return Effect(moved=tuple(work.ids))


def _prune(work: Work, by: str) -> Effect:
    """Rows leave the reads now and are erased after the grace period, in which undo still works."""
    operation = work.operation
    live = [pk for pk in work.ids if work.rows[pk].status == Status.ACTIVE]
    store.move(scope_id=operation.scope_id, ids=live, to=Status.ARCHIVED)
    outbox.enqueue(
        task=ERASE_PRUNED,
        scope_id=operation.scope_id,
        key=stamp(operation),
        payload={"operation": operation.pk},
        due_at=work.now + timedelta(days=work.policy.grace_days),
    )
    return Effect(moved=tuple(live))


EFFECTS = {
    Kind.MERGE: _merge,
    Kind.SUPERSEDE: _supersede,
    Kind.ARCHIVE: _archive,
    Kind.PRUNE: _prune,
    Kind.PROMOTE: promote,
    Kind.COMPACT: compact,
    Kind.ALIAS: alias,
}


@dataclass(frozen=True, slots=True)
class _Known:
    """The locked sources as the rules see them, and what a model said about the keys of some."""

    records: list[Record]
    keys: dict[int, str]  # source -> a word of _SAYS_LESS
    came_from: dict[int, list[int]]  # source that a merge made -> the observations that its lineage names


# What a model said about a row, from what a person took back to what could not be used.
_SAYS_LESS: Final = ("withdrawn", "given 3", "given 2", "given 1", "given 0", "none", "unusable")
# The roots of the evidence, the number of uses, the state of the given key and the lineage of each row, one line each.
# What rests on episodes hands no lineage on: a promotion is a step that a reader has to see.
_KNOWN: Final = """
SELECT DISTINCT observation_id, 'root', root_source FROM observations_evidence WHERE scope_id = %(scope)s
  AND observation_id = ANY (%(ids)s)
UNION ALL SELECT observation_id, 'uses', count(*)::text FROM observations_use WHERE scope_id = %(scope)s
  AND observation_id = ANY (%(ids)s) GROUP BY observation_id
UNION ALL SELECT observation_id, 'key', CASE state WHEN 'given'
    THEN 'given ' || (subject <> '')::int + (predicate <> '')::int + (object <> '')::int ELSE state END
  FROM observations_givenkey WHERE scope_id = %(scope)s
  AND observation_id = ANY (%(ids)s)
UNION ALL SELECT l.derived_id, 'from', l.source_observation_id::text FROM observations_lineage l
  WHERE l.scope_id = %(scope)s AND l.derived_id = ANY (%(ids)s) AND NOT EXISTS (SELECT 1 FROM observations_lineage e
    WHERE e.scope_id = l.scope_id AND e.derived_id = l.derived_id AND e.source_episode_id IS NOT NULL)
"""


def _known(work: Work) -> _Known:
    """What is known about the sources beside their rows. One query."""
    roots: defaultdict[int, set[str]] = defaultdict(set)
    came_from: defaultdict[int, list[int]] = defaultdict(list)
    uses: dict[int, int] = {}
    keys: dict[int, str] = {}
    with connection.cursor() as cursor:
        cursor.execute(_KNOWN, {"scope": work.operation.scope_id, "ids": work.ids})
        for pk, what, value in cursor.fetchall():
            if what == "root":
                roots[pk].add(value)
            elif what == "uses":
                uses[pk] = int(value)
            elif what == "from":
                came_from[pk].append(int(value))
            else:
                keys[pk] = value
    records = [work.rows[pk].record(roots=frozenset(roots[pk]), uses=uses.get(pk, 0)) for pk in work.ids]
    replaced = {row.id: came_from[row.id] for row in records if row.id in came_from and _stored_as_today(work, row)}
    return _Known(records, keys, replaced)


def _stored_as_today(work: Work, record: Record) -> bool:
    """Whether a row is stored under the keys that its words have today: the database compares those, and what was
    written before texts were normalised as they are now keeps its own.
    """
    row, key = work.rows[record.id], record.written_key
    today = (key64(record.normalised), key64(key[0]), key64(*key[:2]), key64(*key))
    return (row.text_key, row.subject_key, row.sp_key, row.spo_key) == today


def _said_of(work: Work, known: _Known, keep: int) -> int | None:
    """Which source of the kept text and key hands on what a model said about it: first one whose key a person took
    back, then one that has most of a key, so that no question about it is lost, then the kept row itself. None does
    for a text or key that a reviewer edited: it is nobody's answer about that. No query.
    """
    if (edits := _edits(work)).words or edits.key:
        return None
    kept, says = work.rows[keep], {row.id: (row.normalised, row.written_key) for row in known.records}
    ranked = sorted(
        (_SAYS_LESS.index(said), pk != keep, work.rows[pk].content_hash != kept.content_hash, pk)
        for pk, said in known.keys.items()
        if says[pk] == says[keep]
    )
    return ranked[0][-1] if ranked else None

"""What naming one entity by two subjects does: an alias, and nothing else. No observation is rewritten (R46)."""

from __future__ import annotations

from collections.abc import Collection

from consolidation import learning
from consolidation.models import Alias
from consolidation.operations import Kind
from consolidation.runner.work import Effect, Work, stamp
from observations import store
from observations.models import GivenKey
from observations.normalise import key_part


def alias(work: Work, by: str) -> Effect:
    """Remember that one subject is compared as another. One query.

    The database refuses a second name for a subject, and a name for itself.
    """
    operation = work.operation
    subject, name = operation.claim_subject, operation.claim_object
    Alias.objects.create(
        scope_id=operation.scope_id,
        subject=subject,
        name=name,
        subject_key=store.key64(subject),
        name_key=store.key64(name),
        by=operation.decided_by,
        operation=stamp(operation),
    )
    return Effect(moved=())


def moved(work: Work) -> str:
    """What became of the names that an operation rests on since it was planned; empty when nothing.

    No query for a merge of one subject; for a supersede one, and one more wherever subjects differ.
    """
    if work.operation.kind == Kind.ALIAS:
        return _overtaken(work)
    if work.operation.kind == Kind.MERGE:
        by_key = {row.subject_key: row.subject for row in map(work.rows.__getitem__, work.ids) if row.subject_key}
        subjects = {(key_part(subject),) for subject in by_key.values()} if len(by_key) > 1 else set[tuple[str]]()
        return _parted(work, subjects, "its subjects are not compared as one any more")
    if work.operation.kind == Kind.SUPERSEDE:
        keys = {(key_part(subject), key_part(predicate)) for subject, predicate in _keys(work)}
        sentence = "its records are not about one subject and predicate any more"
        asked = bool(work.operation.requested_by)  # a question that rests on no key
        return sentence if not asked and not all(map(all, keys)) else _parted(work, keys, sentence)
    return ""


def _keys(work: Work) -> list[tuple[str, str]]:
    """Subject and predicate of every source, with what a model gave and nobody took back. One query."""
    rows = GivenKey.objects.filter(scope_id=work.operation.scope_id, observation_id__in=work.ids)
    given = {row.observation_id: row for row in rows.filter(state=GivenKey.State.GIVEN)}
    return [work.rows[pk].key_with(given.get(pk))[:2] for pk in work.ids]


def _parted(work: Work, keys: Collection[tuple[str, ...]], sentence: str) -> str:
    """The sentence, when keys that begin with a subject are several, under the aliases that hold now too (R46)."""
    if len(keys) < 2:
        return ""
    named = learning.aliases(scope_id=work.operation.scope_id)
    return sentence if len({(named.get(key[0], key[0]), *key[1:]) for key in keys}) > 1 else ""


def _overtaken(work: Work) -> str:
    """What another alias of the scope changed since this one was asked for. One query.

    Of two names for one subject the first holds, and names never lead back to where they began (I6).
    """
    named = learning.aliases(scope_id=work.operation.scope_id)
    subject, name = work.operation.claim_subject, work.operation.claim_object
    if subject in named:
        return "its subject has another name since"
    return "both subjects are compared as one since" if named.get(name, name) == subject else ""


def take_back(work: Work) -> None:
    """Remove the alias an operation made; what was merged under it stays merged. One query."""
    made = Alias.objects.filter(scope_id=work.operation.scope_id, operation=stamp(work.operation), removed_at=None)
    made.update(removed_at=work.now)

"""Rows that come in: idempotent by external id, known by their content where the writer gave none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from dataclasses import replace as dataclass_replace
from datetime import datetime
from enum import StrEnum
from typing import TypeVar

from observations.models import Episode, Evidence, Lineage, Observation, Scope
from observations.normalise import clean
from observations.records import Claim, EvidenceRef, Past, Status, Turn, WrittenBy
from observations.store.drafting import (
    Compared,
    Draft,
    EvidenceDraft,
    content_id,
    episode_row,
    evidence_row,
    observation_row,
    take_over,
)
from observations.store.inserting import insert_evidence, insert_observations
from observations.store.moving import copy_evidence, move
from observations.store.scopes import lock_rows, lock_scope
from observations.store.vectors import embed_later


class Fate(StrEnum):
    """What became of one thing that was to be written."""

    ADDED = "added"
    KNOWN = "already there"  # same id, same content: nothing to do
    REFUSED = "refused"  # same id, other content


@dataclass(frozen=True, slots=True)
class Written:
    """The fate of one claim or turn. `id` is the stored row's, absent only when refused."""

    fate: Fate
    id: int | None = None
    reason: str = ""
    cleaned: bool = False  # a character no database can hold was replaced (C1)


def add_observations(
    *,
    scope: Scope,
    claims: Sequence[Claim],
    written_by: WrittenBy,
    pasts: Sequence[Past] = (),
    reconciled: Sequence[bool] = (),
    held: Sequence[bool] = (),
    compared: Sequence[Compared] = (),
    made: Set[str] = frozenset(),
    locked_at: datetime | None = None,
) -> list[Written]:
    """Store claims, one fate per claim, in order. Idempotent by external id; a claim without one is known by its
    content.

    `pasts`, one per claim when given, is what an import knows of the rows: what is not active there is born
    quarantined. `reconciled`, one per claim when given, says which were compared with what is stored. `held`, one
    per claim when given, says which are born quarantined: nothing reads them until a person looks. `compared`, one per
    claim when given, is what the claims are compared by. `made` are external ids that the caller made just now, which
    no row can have. `locked_at` is what `lock_scope` returned to a caller who took the scope's lock in this
    transaction. A constant number of queries however many claims. Raises django.db.IntegrityError when another writer
    adds the same external id at the same moment: run the transaction again, and the row is already there.
    """
    now = locked_at or lock_scope(scope_id=scope.pk, cause=written_by)
    known_keys: Sequence[Compared | None] = compared or [None] * len(claims)
    drafts = [
        observation_row(claim, written_by=written_by, now=now, compared=each)
        for claim, each in zip(claims, known_keys, strict=True)
    ]
    for draft, past in zip(drafts, pasts, strict=False):
        take_over(draft, past)
    _stand(drafts, now, reconciled, held)
    known = _known(Observation, scope, [row.external_id for row in drafts if row.external_id not in made])
    fresh, fates = _sort(drafts, known)
    added = {
        draft.external_id: claim for draft, claim, fate in zip(drafts, claims, fates, strict=True) if fate is Fate.ADDED
    }
    ids = insert_observations(scope_id=scope.pk, rows=fresh, evidence=_evidence(scope.pk, added))
    by_external = dict(zip((row.external_id for row in fresh), ids, strict=True))
    if ids:
        embed_later(scope, ids)
    return _written(drafts, fates, known | {key: (pk, "") for key, pk in by_external.items()})


def _evidence(scope_id: int, added: Mapping[str, Claim]) -> dict[str, list[EvidenceDraft]]:
    """What claims rest on, by the external ids of their rows, each source once as it is stored. One query, or none."""
    turns = _turns(scope_id, {ref.episode for claim in added.values() for ref in claim.evidence})
    resting: dict[str, list[EvidenceDraft]] = {}
    for name, claim in added.items():
        rows = [evidence_row(ref, episode_id=turns.get(ref.episode)) for ref in claim.evidence]
        resting[name] = list({row.source_uri: row for row in rows}.values())
    return resting


def _stand(drafts: Sequence[Draft], now: datetime, reconciled: Sequence[bool], held: Sequence[bool]) -> None:
    """Say of drafts which were reconciled, and which are held back."""
    for draft, settled in zip(drafts, reconciled, strict=False):
        draft.reconciled_at = now if settled else None
    for draft, quarantined in zip(drafts, held, strict=False):
        draft.status = Status.QUARANTINED if quarantined else draft.status


def _turns(scope_id: int, named: Set[str]) -> dict[str, int]:
    """The episodes that evidence names, by external id; one that is not here is left out. One query, or none."""
    named = {name for name in named if name and not clean(name)[1]}
    if not named:
        return {}
    rows = Episode.objects.filter(scope_id=scope_id, external_id__in=named)
    return dict(rows.values_list("external_id", "pk"))


def add_episodes(*, scope: Scope, turns: Sequence[Turn]) -> list[Written]:
    """Store turns verbatim, one fate per turn, in order. Idempotent by scope + source uri + content, and by external
    id.
    """
    now = lock_scope(scope_id=scope.pk, cause="episodes")
    drafts = [episode_row(scope, turn, now) for turn in turns]
    known = _known(Episode, scope, [row.external_id for row in drafts])
    known_content = _known_content(scope, drafts)
    fresh, fates = _sort(drafts, known, known_content)
    Episode.objects.bulk_create(fresh)
    if fresh:
        embed_later(scope, [row.pk for row in fresh], episodes=True)
    known |= {row.external_id: (row.pk, "") for row in fresh}
    known |= {
        row.external_id: (known_content[key], "")
        for row in drafts
        if (key := _content(row)) in known_content and row.external_id not in known
    }
    return _written(drafts, fates, known)


def add_evidence(*, scope_id: int, observation_id: int, refs: Sequence[EvidenceRef]) -> int:
    """Let a row rest on more sources; one that it rests on already is left as it is. Returns how many were new.

    See `add_evidence_to`. Four queries.
    """
    return add_evidence_to(scope_id=scope_id, refs={observation_id: refs}).get(observation_id, 0)


def add_evidence_to(
    *, scope_id: int, refs: Mapping[int, Sequence[EvidenceRef]], status: Status = Status.ACTIVE
) -> dict[int, int]:
    """The same for many rows, by observation id; a constant number of queries however many, four at most.

    Takes the scope's shared lock and the rows' own. Raises Observation.DoesNotExist for a row that is not current, or
    of another status than `status`: what left the reads gains no witnesses.
    """
    lock_scope(scope_id=scope_id, cause="evidence")
    locked = lock_rows(scope_id=scope_id, ids=refs)
    if any(pk not in locked or locked[pk].status != status for pk in refs):
        raise Observation.DoesNotExist
    there = Evidence.objects.filter(scope_id=scope_id, observation_id__in=list(refs))
    known = set(there.values_list("observation_id", "source_uri"))
    turns = _turns(scope_id, {ref.episode for each in refs.values() for ref in each})
    fresh: dict[int, dict[str, EvidenceDraft]] = {}
    for pk, each in sorted(refs.items()):
        for ref in each:
            row = evidence_row(ref, episode_id=turns.get(ref.episode))
            if (pk, row.source_uri) not in known:
                fresh.setdefault(pk, {}).setdefault(row.source_uri, row)
    insert_evidence(scope_id=scope_id, rows={pk: list(rows.values()) for pk, rows in fresh.items()})
    return {pk: len(rows) for pk, rows in fresh.items()}


def replace(
    *,
    scope: Scope,
    old_id: int,
    claim: Claim,
    written_by: WrittenBy,
    union: bool = True,
    reconciled: bool = False,
    cause: str = "",
) -> Written:
    """Write a claim that supersedes a current row: the old row keeps its text and names its successor (R12).

    With `union` the new row takes over the old one's evidence (R15, an UPDATE); without, it starts fresh (R16, a DELETE
    and replace). Doing it twice is doing it once. A claim that is current already becomes the successor; one that left
    the reads since is written anew, so that a correction back is not lost. `cause` names the doorway in the journal.
    Raises Observation.DoesNotExist when the old row is not current in this scope.
    """
    lock_scope(scope_id=scope.pk, cause=f"{written_by}: replace")
    [written] = add_observations(scope=scope, claims=[claim], written_by=written_by, reconciled=[reconciled])
    if written.fate == Fate.KNOWN and written.id is not None:
        written = _said_before(scope, old_id, claim, written_by, known_id=written.id)
    if written.id is None or written.id == old_id or _replaced_by(scope, old_id, written):
        return written
    old = Observation.objects.active().in_scope(scope).select_for_update(of=("self",)).get(pk=old_id)
    if union:
        copy_evidence(scope_id=scope.pk, into=written.id, sources=[old.pk])
    if cause:
        lock_scope(scope_id=scope.pk, cause=cause)
    move(scope_id=scope.pk, ids=[old.pk], to=Status.SUPERSEDED, successor=written.id)
    return written


def _said_before(scope: Scope, old_id: int, claim: Claim, written_by: WrittenBy, *, known_id: int) -> Written:
    """The row that takes the place of an old one, when the claim is there already: itself, or a new row of the text."""
    known = Observation.objects.in_scope(scope).get(pk=known_id)
    there = Written(fate=Fate.KNOWN, id=known_id, cleaned=known.cleaned)
    if known_id == old_id or known.status == Status.ACTIVE or _replaced_by(scope, old_id, there):
        return there
    if claim.external_id:
        reason = f"this id is already there and {known.status}; a change is a new line with a new id"
        return Written(fate=Fate.REFUSED, reason=reason)
    # The same when it is done twice, and of the form that an erase knows for a hash of the content.
    again = dataclass_replace(claim, external_id=content_id("obs", known.external_id, None, str(old_id)))
    return add_observations(scope=scope, claims=[again], written_by=written_by)[0]


def _replaced_by(scope: Scope, old_id: int, written: Written) -> bool:
    """Whether the row has taken the old one's place before."""
    if written.fate != Fate.KNOWN:
        return False
    return Observation.objects.in_scope(scope).filter(pk=old_id, superseded_by_id=written.id).exists()


def _known(
    model: type[Observation] | type[Episode], scope: Scope, external_ids: list[str]
) -> dict[str, tuple[int, str]]:
    """Id and content of the rows that have one of these external ids. One query, or none."""
    if not external_ids:
        return {}
    rows = model._default_manager.filter(scope=scope, external_id__in=external_ids)
    return {external: (pk, digest) for external, pk, digest in rows.values_list("external_id", "pk", "content_hash")}


def _content(row: Episode) -> tuple[str, str]:
    return row.source_uri, row.content_hash


def _known_content(scope: Scope, drafts: Sequence[Episode]) -> dict[tuple[str, str], int]:
    rows = Episode.objects.filter(scope=scope, content_hash__in=[row.content_hash for row in drafts])
    return {(uri, digest): pk for uri, digest, pk in rows.values_list("source_uri", "content_hash", "pk")}


Row = TypeVar("Row", Draft, Episode)


def _sort(
    drafts: Sequence[Row],
    known: Mapping[str, tuple[int, str]],
    known_content: Mapping[tuple[str, str], int] | None = None,
) -> tuple[list[Row], list[Fate]]:
    """Which drafts are new, and every draft's fate; a repeat inside the batch is already there."""
    seen = {external: digest for external, (_, digest) in known.items()}
    contents = set(known_content or ())
    fresh, fates = [], []
    for row in drafts:
        digest = seen.get(row.external_id)
        if digest is not None:
            fates.append(Fate.KNOWN if digest == row.content_hash else Fate.REFUSED)
            continue
        if isinstance(row, Episode):
            if _content(row) in contents:
                fates.append(Fate.KNOWN)
                continue
            contents.add(_content(row))
        seen[row.external_id] = row.content_hash
        fresh.append(row)
        fates.append(Fate.ADDED)
    return fresh, fates


def _written(
    drafts: Sequence[Draft | Episode], fates: Sequence[Fate], ids: Mapping[str, tuple[int, str]]
) -> list[Written]:
    reason = "this id is already there with another text; a change is a new line with a new id"
    return [
        Written(
            fate=fate,
            id=ids[row.external_id][0] if row.external_id in ids and fate != Fate.REFUSED else None,
            reason=reason if fate == Fate.REFUSED else "",
            cleaned=row.cleaned,
        )
        for row, fate in zip(drafts, fates, strict=True)
    ]


def adopt_lineage(
    *, scope: Scope, derived_id: int, past: Past, observations: Sequence[int], episodes: Sequence[int]
) -> None:
    """Write the lineage that an imported derived row brings along; its operation lives in another store. One query."""
    assert past.derived_at is not None
    Lineage.objects.bulk_create(
        Lineage(
            scope=scope,
            derived_id=derived_id,
            source_observation_id=observation,
            source_episode_id=episode,
            derivation=past.derivation,
            derived_at=past.derived_at,
            operation=past.produced_by,
            imported=True,
        )
        for observation, episode in [*((pk, None) for pk in observations), *((None, pk) for pk in episodes)]
    )

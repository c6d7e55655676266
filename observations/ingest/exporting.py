"""Export: everything a scope remembers, as lines that an import reads back into an equal store."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TypeAlias, TypeVar

from django.db import connection, transaction

from observations.models import Episode, Evidence, GivenKey, Lineage, Observation, Scope, Tombstone
from observations.records import MemoryKind, Outcome, Status

CHUNK = 500  # rows read at a time

Value: TypeAlias = "str | int | float | bool | Sequence[Value] | Mapping[str, Value] | None"
Exported: TypeAlias = "dict[str, Value]"
Row = TypeVar("Row", Observation, Episode)


def export_lines(*, scopes: Iterable[Scope]) -> Iterator[Exported]:
    """The rows of some scopes as import lines, from one snapshot of the store, scope by scope in the order of names.

    Within a scope episodes come first and sources before what was derived from them, so that an import needs one pass.
    Every status is there; of an erased row only what is left of it. Memory stays flat: a few queries per 500 rows.
    """
    with _snapshot():
        for scope in sorted(scopes, key=lambda scope: scope.name):
            for episodes in _chunks(Episode, scope):
                yield from (_episode(scope, row) for row in episodes if row.status != Status.ERASED)
            for observations in _chunks(Observation, scope):
                yield from _observations(scope, observations)


@contextmanager
def _snapshot() -> Iterator[None]:
    """One read-only view of the store; inside somebody else's transaction, that one's."""
    if connection.in_atomic_block:
        yield
        return
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield


def _chunks(model: type[Row], scope: Scope) -> Iterator[list[Row]]:
    last = 0
    while rows := list(model._default_manager.filter(scope=scope, pk__gt=last).order_by("pk")[:CHUNK]):
        yield rows
        last = rows[-1].pk


def _episode(scope: Scope, row: Episode) -> Exported:
    return {
        "kind": "episode",
        "id": row.external_id,
        "scope": scope.name,
        "text": row.text,
        **_given(
            speaker=row.speaker,
            role=row.role,
            session=row.session,
            seq=row.seq,
            created_at=_time(row.happened_at),
            source_uri=row.source_uri,
            root_source=row.root_source if row.root_source != row.source_uri else "",
            outcome=row.outcome if row.outcome != Outcome.UNKNOWN else "",
            cleaned=row.cleaned,
            status=row.status if row.status != Status.ACTIVE else "",
        ),
    }


def _given(**fields: Value) -> Exported:
    """The fields that say anything: no nulls, empty texts, zeros and falsehoods, which are what absence means."""
    return {name: value for name, value in fields.items() if value}


def _time(moment: datetime | None) -> str:
    return moment.astimezone(UTC).isoformat() if moment else ""


def _observations(scope: Scope, rows: Sequence[Observation]) -> Iterator[Exported]:
    ids = [row.pk for row in rows]
    evidence, lineage, keys = _evidence(scope, ids), _lineage(scope, ids), _given_keys(scope, ids)
    names = _names(scope, {row.superseded_by_id for row in rows if row.superseded_by_id})
    tombs = {tomb.observation_id: tomb for tomb in Tombstone.objects.filter(scope=scope, observation_id__in=ids)}
    for row in rows:
        tomb = tombs.get(row.pk)
        yield {
            "kind": "observation",
            "id": row.external_id,
            "scope": scope.name,
            **_given(
                text=row.text,
                subject=row.subject,
                predicate=row.predicate,
                object=row.object,
                created_at=_time(row.created_at),
                memory_kind=row.kind if row.kind != MemoryKind.FACT else "",
                half_life_days=row.half_life_days if row.half_life_days != MemoryKind(row.kind).half_life_days else 0,
            ),
            "confidence": row.confidence,
            "stated_by": row.stated_by,
            "written_by": row.written_by,
            "status": row.status,
            **_given(
                superseded_by=names.get(row.superseded_by_id or 0, ""),
                valid_from=_time(row.valid_from),
                valid_to=_time(row.valid_to),
                reconciled_at=_time(row.reconciled_at),
                cleaned=row.cleaned,
                derivation=row.derivation,
                derived_at=_time(row.derived_at),
                produced_by=row.produced_by,
                chain=row.chain,
                uses_inherited=row.uses_inherited,
                lineage=lineage[row.pk],
                evidence=evidence[row.pk],
                given_key=keys.get(row.pk) if not tomb else None,
                erased={"by": tomb.erased_by, "reason": tomb.reason, "request": tomb.request} if tomb else None,
            ),
        }


def _evidence(scope: Scope, ids: Sequence[int]) -> Mapping[int, list[Exported]]:
    found: defaultdict[int, list[Exported]] = defaultdict(list)
    rows = list(Evidence.objects.filter(scope=scope, observation_id__in=ids).order_by("pk"))
    turns = _turns(scope, {row.episode_id for row in rows if row.episode_id})
    for row in rows:
        root = row.root_source if row.root_source != row.source_uri else ""
        given = _given(root=root, quote=row.quote, episode=turns.get(row.episode_id or 0, ""))
        start: Exported = {} if row.quote_start is None else {"start": row.quote_start}
        found[row.observation_id].append({"uri": row.source_uri, **given, **start})
    return found


def _given_keys(scope: Scope, ids: Sequence[int]) -> Mapping[int, Exported]:
    """What a model said about rows without a whole key; a quote may begin at 0."""
    return {
        row.observation_id: {
            "state": row.state,
            **_given(subject=row.subject, predicate=row.predicate, object=row.object),
            **({} if row.quote_start is None else {"start": row.quote_start, "end": row.quote_end}),
            "model": row.model,
            "prompt_version": row.prompt_version,
            "attempts": row.attempts,
            "at": _time(row.at),
            **_given(withdrawn_by=row.withdrawn_by),
        }
        for row in GivenKey.objects.filter(scope=scope, observation_id__in=ids)
    }


def _lineage(scope: Scope, ids: Sequence[int]) -> Mapping[int, list[Exported]]:
    """Each derived row's sources by kind and external id, in the order they were written in."""
    edges = list(Lineage.objects.filter(scope=scope, derived_id__in=ids).order_by("pk"))
    claims = _names(scope, {edge.source_observation_id for edge in edges if edge.source_observation_id})
    turns = _turns(scope, {edge.source_episode_id for edge in edges if edge.source_episode_id})
    found: defaultdict[int, list[Exported]] = defaultdict(list)
    for edge in edges:
        if edge.source_episode_id:
            found[edge.derived_id].append({"kind": "episode", "id": turns[edge.source_episode_id]})
        elif edge.source_observation_id:
            found[edge.derived_id].append({"kind": "observation", "id": claims[edge.source_observation_id]})
    return found


def _turns(scope: Scope, ids: Iterable[int]) -> dict[int, str]:
    wanted = list(ids)
    return dict(Episode.objects.filter(scope=scope, pk__in=wanted).values_list("pk", "external_id")) if wanted else {}


def _names(scope: Scope, ids: Iterable[int]) -> dict[int, str]:
    return dict(Observation.objects.filter(scope=scope, pk__in=list(ids)).values_list("pk", "external_id"))

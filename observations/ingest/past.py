"""What an imported row was before: its lineage when it is written, its status when the whole file is known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from django.db import connection

from observations import store
from observations.models import Episode, Observation, Scope
from observations.records import Past, SourceRef, StatedBy, Status, WrittenBy


class PastRefused(ValueError):
    """What a line tells of a row's past cannot be true here; the message names the field and the other row."""


def adopt(*, scope: Scope, rows: Sequence[tuple[int, StatedBy, Past]]) -> None:
    """Write the lineage of derived rows (id, origin, past). Raises PastRefused.

    Sources must be there already, so lineage cannot run in a circle, and none may be less trusted than what was made of
    it (I12): a file cannot launder outside text into a user's word.
    """
    known = _sources(scope, {ref for _, _, past in rows for ref in past.lineage})
    for derived, origin, past in rows:
        for ref in past.lineage:
            source = known.get(ref)
            if source is None or (not ref.episode and source[0] >= derived):
                raise PastRefused(f"lineage names {ref.external_id!r}, which is neither stored nor on an earlier line")
            if source[1] is not None and source[1].rank < origin.rank:
                raise PastRefused(f"stated_by is higher than that of {ref.external_id!r}, which it derives from")
        store.adopt_lineage(
            scope=scope,
            derived_id=derived,
            past=past,
            observations=[known[ref][0] for ref in past.lineage if not ref.episode],
            episodes=[known[ref][0] for ref in past.lineage if ref.episode],
        )


def _sources(scope: Scope, refs: Iterable[SourceRef]) -> dict[SourceRef, tuple[int, StatedBy | None]]:
    """Id and origin of the rows that references name; an episode is verbatim and has no origin of its own."""
    refs = list(refs)
    claims = Observation.objects.in_scope(scope).filter(
        external_id__in=[ref.external_id for ref in refs if not ref.episode]
    )
    turns = Episode.objects.filter(scope=scope, external_id__in=[ref.external_id for ref in refs if ref.episode])
    return {
        **{
            SourceRef(name): (pk, StatedBy(by)) for name, pk, by in claims.values_list("external_id", "pk", "stated_by")
        },
        **{SourceRef(name, episode=True): (pk, None) for name, pk in turns.values_list("external_id", "pk")},
    }


def settle(*, scope: Scope, pasts: Mapping[str, Past]) -> dict[str, str]:
    """Give imported rows, by external id, the status of their past; returns who stays quarantined, and why.

    Only rows quarantined since their import move, so settling twice is harmless. Raises PastRefused when successors
    would run in a circle (I6). A handful of queries, and one per erased row.
    """
    store.lock_scope(scope_id=scope.pk, exclusive=True, cause=WrittenBy.IMPORT)
    names = {*pasts, *(past.superseded_by for past in pasts.values())}
    rows = {row.external_id: row for row in Observation.objects.in_scope(scope).filter(external_id__in=names)}
    waiting = {name: past for name, past in pasts.items() if _waits(rows.get(name), past)}
    refused = {
        name: f"superseded_by names {past.superseded_by!r}, which is neither stored nor in the file"
        for name, past in waiting.items()
        if past.superseded_by and past.superseded_by not in rows
    }
    moving = {rows[name].pk: past for name, past in waiting.items() if name not in refused}
    store.move(scope_id=scope.pk, ids=list(moving), to=Status.ACTIVE)
    store.restore(
        scope_id=scope.pk,
        priors=[_prior(rows[name], past, rows) for name, past in waiting.items() if name not in refused],
    )
    _refuse_circles(scope, list(moving))
    for pk, past in moving.items():
        if past.status == Status.ERASED:
            who, why, request = past.erased
            store.erase(scope_id=scope.pk, ids=[pk], by=who, reason=why, request=request)
    return refused


def _waits(row: Observation | None, past: Past) -> bool:
    """Whether a row still has the state its import gave it, and is to leave it."""
    born = row is not None and row.status == Status.QUARANTINED and row.version == 1
    return born and past.status != Status.QUARANTINED


def _prior(row: Observation, past: Past, rows: Mapping[str, Observation]) -> store.Prior:
    successor = rows.get(past.superseded_by)
    return store.Prior(
        id=row.pk,
        status=Status.ARCHIVED if past.status == Status.ERASED else past.status,
        superseded_by_id=successor.pk if successor else None,
        valid_from=row.valid_from,
        valid_to=row.valid_to,
    )


def _refuse_circles(scope: Scope, ids: Sequence[int]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "WITH RECURSIVE walk (start, at) AS ("
            " SELECT id, superseded_by_id FROM observations_observation WHERE scope_id = %s AND id = ANY (%s)"
            " UNION SELECT w.start, o.superseded_by_id FROM walk w JOIN observations_observation o ON o.id = w.at"
            " WHERE o.scope_id = %s AND w.at <> w.start)"
            " SELECT 1 FROM walk WHERE at = start LIMIT 1",
            [scope.pk, list(ids), scope.pk],
        )
        if cursor.fetchone():
            raise PastRefused("superseded_by leads back to the row itself")

"""A scope as a plan would leave it, to ask probes of."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np

from consolidation import runner
from consolidation.models import Operation
from consolidation.probing import CALL_SITE, Stored
from consolidation.runner import ApplyPreview
from observations import retrieval
from observations.embedding import Embedder
from observations.models import Embedding, Scope
from observations.normalise import clean, key64, key_part
from observations.records import Claim
from observations.retrieval import Answer, Overlay, Standing
from observations.retrieval.overlay import age_order

Vector = np.ndarray[tuple[int], np.dtype[np.float32]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Projected:
    """A scope as some operations would leave it. The rows that they would write bear negative ids.

    What was believed at a moment is asked of the store as it stands: applying a plan changes no past.
    """

    stored: Stored
    overlay: Overlay
    says: Mapping[int, tuple[int, ...]] = field(default_factory=dict)  # by row that would be new, those it joins
    given: Mapping[int, int] = field(default_factory=dict)  # and the row whose key it would take over
    refused: tuple[str, ...] = ()  # why operations would not go through, a sentence each

    def look(self, *, query: str, k: int, as_of: datetime | None) -> Answer:
        """As `Stored.look`, over what would be read."""
        if as_of is not None:
            return self.stored.look(query=query, k=k, as_of=as_of)
        return retrieval.look(
            scope=self.stored.scope,
            query=query,
            k=k,
            call_site=CALL_SITE,
            embedder=self.stored.embedder,
            overlay=self.overlay,
        )

    def rows(self, *, as_of: datetime | None = None) -> tuple[int, ...]:
        """In the order in which they were, or would be, written. One query."""
        rows = self.stored.rows(as_of=as_of)
        if as_of is not None:
            return rows
        stay = [pk for pk in rows if pk not in self.overlay.without]
        return tuple(sorted([*stay, *self.overlay.standing], key=age_order))

    def carried(self, *, named: Collection[int]) -> Mapping[int, frozenset[int]]:
        """What a row that would join others says is what each of them says. One query."""
        found = dict(self.stored.carried(named=named))
        for new, joined in self.says.items():
            if claims := frozenset[int]().union(*(found.get(pk, ()) for pk in joined)):
                found[new] = claims
        return found

    def keys(self, *, rows: Collection[int]) -> Mapping[int, int | None]:
        """The key that its writer gave, or else a model. Two queries."""
        new = [pk for pk in rows if pk < 0]
        keys = dict(self.stored.keys(rows=[*(pk for pk in rows if pk > 0), *self.given.values()]))
        own = {pk: _key(self.overlay.standing[pk]) or keys.get(self.given.get(pk, 0)) for pk in new}
        return {pk: key for pk, key in keys.items() if pk in rows} | own


def _key(row: Standing) -> int:
    return key64(key_part(row.subject), key_part(row.predicate), key_part(row.object))


def projected(*, scope: Scope, operations: Sequence[Operation], embedder: Embedder | None = None) -> Projected:
    """What a scope would be once these operations of it were applied, in their order; one that would not go through
    changes nothing, as it would then. About ten queries an operation.

    A row whose words no row has is given the vector that a worker would give it. Raises Refused where the policy cannot
    be read, and whatever the embedder raises.
    """
    gone: set[int] = set()
    previews: list[ApplyPreview] = []
    for operation in operations:
        preview = runner.apply_preview(operation=operation, moved=gone)
        gone.update(preview.leaves)
        previews.append(preview)
    written = {-number: each for number, each in enumerate((p for p in previews if p.stands), 1)}
    embedder = embedder or retrieval.current_embedder()
    vectors = _vectors(scope, written, embedder)
    return Projected(
        stored=Stored(scope=scope, embedder=embedder),
        overlay=Overlay(
            without=frozenset(gone),
            plus=tuple(_standing(pk, each, vectors.get(pk)) for pk, each in written.items()),
        ),
        says={pk: each.says_of for pk, each in written.items()},
        given={pk: each.key_of for pk, each in written.items() if each.key_of is not None},
        refused=tuple(each.refused for each in previews if each.refused),
    )


def _standing(pk: int, preview: ApplyPreview, vector: Vector | None) -> Standing:
    claim = preview.stands
    assert claim is not None
    assert claim.created_at is not None  # what an operation writes was said by somebody before
    return Standing(
        id=pk,
        text=clean(claim.text)[0],
        subject=clean(claim.subject)[0],
        predicate=clean(claim.predicate)[0],
        object=clean(claim.object)[0],
        created_at=claim.created_at,
        half_life_days=_half_life(claim),
        derivation=preview.operation.kind,
        vector=vector,
    )


def _half_life(claim: Claim) -> int | None:
    """As the store writes it."""
    return claim.half_life_days or claim.kind.half_life_days


def _vectors(scope: Scope, written: Mapping[int, ApplyPreview], embedder: Embedder) -> dict[int, Vector]:
    """The vector of each row that would be written: that of the row whose words it keeps, or a new one. One query."""
    kept = {pk: each.vector_of for pk, each in written.items() if each.vector_of is not None}
    rows = Embedding.objects.filter(scope=scope, observation__in=kept.values(), profile=embedder.profile.name)
    stored = {row.observation_id: row.vector for row in rows if row.vector is not None}
    found = {pk: _vector(stored[source]) for pk, source in kept.items() if source in stored}
    texts = {pk: clean(each.stands.text)[0] for pk, each in written.items() if each.stands and pk not in found}
    fresh: list[Vector] = list(embedder.embed(list(texts.values()))) if texts else []
    return found | dict(zip(texts, fresh, strict=True))


def _vector(stored: object) -> Vector:
    to_numpy = getattr(stored, "to_numpy", None)
    return np.asarray(to_numpy() if to_numpy else stored, dtype=np.float32)

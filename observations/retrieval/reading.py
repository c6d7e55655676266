"""One read of the store: by words, then by meaning, then the rows themselves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from django.db import transaction

from observations.models import Observation, Scope
from observations.records import Status
from observations.retrieval.answers import Hit, Trust
from observations.retrieval.asking import Asked
from observations.retrieval.meaning import Meaning, by_meaning
from observations.retrieval.narrowing import EVERYTHING, Narrowed, among_of
from observations.retrieval.overlay import Overlay, Standing
from observations.retrieval.ranking import Found, Weights
from observations.retrieval.words import by_words

SPARE: Final = 10  # further rows read, in case one leaves the reads meanwhile
_POOL: Final = 4  # each way of searching hands in this many times k rows to be ranked together
_WORDY: Final = 1_000  # rows whose share of words is known: one cut off counts as if it held none of them


def read(
    scope: Scope,
    text: str,
    asked: Asked | None,
    k: int,
    fades: float,
    narrowed: Narrowed = EVERYTHING,
    overlay: Overlay | None = None,
) -> tuple[Hit, ...]:
    """By words first, because a row that holds them is worth its cosine however far it is. One transaction.

    Raises django.db.Error. Four queries, one more where the read is narrowed, and one where less than k was found.
    """
    pool = max(_POOL * k, 50)
    with transaction.atomic():
        among = None if narrowed == EVERYTHING else among_of(scope, narrowed)
        words = by_words(scope, text, max(pool, _WORDY), fades=fades, among=among, overlay=overlay)
        meaning = Meaning({}, {})
        if asked:
            meaning = by_meaning(scope, asked, pool, fades=fades, also=words.shares, among=among, overlay=overlay)
        found = Found(words, meaning, fades, Weights.of_settings(), asked.profile if asked else None)
        return _hits(scope, found, k, narrowed, overlay or Overlay())


def _hits(scope: Scope, found: Found, k: int, narrowed: Narrowed, overlay: Overlay) -> tuple[Hit, ...]:
    ranked = found.ranked(k + SPARE)
    current = narrowed.rows(scope=scope).only("scope", "external_id", "text", "derivation", "status")
    rows = current.in_bulk([pk for pk, _ in ranked if pk > 0])
    known: dict[int, Observation | Standing] = {**rows, **overlay.standing}
    hits = [_hit(pk, known[pk], score, found) for pk, score in ranked if pk in known][:k]
    if len(hits) < k and found.profile is not None:
        others = current.exclude(pk__in={*overlay.without, *(hit.id for hit in hits)}).order_by("-pk")
        hits += _filling(hits, [*reversed(overlay.plus), *others[: k - len(hits)]], found)
    return tuple(hits[:k])


def _filling(hits: Sequence[Hit], others: Iterable[Observation | Standing], found: Found) -> Iterator[Hit]:
    """What has no vector yet and shares no word, the newest first: it may mean what is asked in other words (C14)."""
    there = {hit.id for hit in hits}
    last = min((hit.score for hit in hits), default=0.0)
    return (_hit(row.id, row, min(last, 0.0), found) for row in others if row.id not in there)


def _hit(pk: int, row: Observation | Standing, score: float, found: Found) -> Hit:
    return Hit(
        id=pk,
        external_id=row.external_id if isinstance(row, Observation) else "",
        text=row.text or "",
        why=found.why(pk),
        trust=Trust.of(row.derivation),
        status=Status(row.status) if isinstance(row, Observation) else Status.ACTIVE,
        score=score,
        cosine=found.meaning.cosines.get(pk),
        share=found.words.shares.get(pk, 0.0),
        relevant=found.relevant(pk),
        named=found.words.named.get(pk, 0.0),
        place_by_words=found.place_by_words(pk),
        place_by_meaning=found.place_by_meaning(pk),
    )

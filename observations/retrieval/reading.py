"""One read of the store: by words, then by meaning, then the rows themselves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from observations.models import Scope
from observations.records import Status
from observations.retrieval import meaning, words
from observations.retrieval.answers import Hit, Trust, Why
from observations.retrieval.asking import Asked
from observations.retrieval.narrowing import EVERYTHING, Narrowed, among_of
from observations.retrieval.overlay import Overlay, Standing
from observations.retrieval.ranking import Found, Place, Weights

SPARE: Final = 10  # further rows read, in case one leaves the reads meanwhile
_POOL: Final = 4  # times k rows are said to be near; a large scope is asked for as many
_WORDY: Final = 1_000  # rows found by the words of a large scope whose cosine is looked up however far they are
_FIELDS: Final = ("pk", "external_id", "text", "derivation", "status")


def read(
    scope: Scope,
    text: str,
    asked: Asked | None,
    k: int,
    fades: float,
    narrowed: Narrowed = EVERYTHING,
    overlay: Overlay | None = None,
) -> tuple[Hit, ...]:
    """The k best rows of a scope, scored by their words and their meaning: all of them, in a large scope those that
    hold a word of the query and the nearest.

    Raises django.db.Error. Three queries, one more where the read is narrowed, one where less than k was found, and
    up to eight more in a large scope.
    """
    pool = max(_POOL * k, 50)
    among = None if narrowed == EVERYTHING else among_of(scope, narrowed)
    held, near = words.by_words(scope, text, among=among, overlay=overlay), meaning.NOTHING
    if asked and held.whole:
        near = meaning.by_meaning(scope, asked, among=among, overlay=overlay)
    elif asked:
        near = meaning.nearest(scope, asked, wanted=pool, also=held.best(_WORDY))
        held = words.beside(held, scope=scope, text=text, ids=near.ids)
    found = Found(held, near, fades, Weights.of_settings(), pool, asked.profile if asked else None)
    return _hits(scope, found, k, narrowed, overlay or Overlay())


Row = tuple[int, str, str, str | None, str]  # as _FIELDS


def _hits(scope: Scope, found: Found, k: int, narrowed: Narrowed, overlay: Overlay) -> tuple[Hit, ...]:
    ranked = found.ranked(k + SPARE)
    current = narrowed.rows(scope=scope)
    rows: Iterable[Row] = current.filter(pk__in=[pk for pk in ranked if pk > 0]).values_list(*_FIELDS)
    known = {row[0]: row for row in [*rows, *map(_standing, overlay.plus)]}
    hits = [_hit(known[pk], found.place(pk)) for pk in [pk for pk in ranked if pk in known][:k]]
    if len(hits) < k and found.profile is not None:
        left = current.exclude(pk__in={*overlay.without, *(hit.id for hit in hits)}).order_by("-pk")
        others: Iterable[Row] = left.values_list(*_FIELDS)[: k - len(hits)]
        hits += _filling(hits, [*map(_standing, reversed(overlay.plus)), *others])
    return tuple(hits[:k])


def _standing(row: Standing) -> Row:
    return row.id, "", row.text, row.derivation, Status.ACTIVE


def _filling(hits: Sequence[Hit], others: Iterable[Row]) -> Iterator[Hit]:
    """What has no vector yet and shares no word, the newest first: it may mean what is asked in other words (C14)."""
    there = {hit.id for hit in hits}
    score = min([0.0, *(hit.score for hit in hits)])
    for row in others:
        if row[0] not in there:
            neither = Place(row[0], score, None, 0.0, 0.0, Why.NEITHER, relevant=False, by_words=None, by_meaning=None)
            yield _hit(row, neither)


def _hit(row: Row, place: Place) -> Hit:
    pk, external_id, text, derivation, status = row
    return Hit(
        id=pk,
        external_id=external_id,
        text=text or "",
        why=place.why,
        trust=Trust.of(derivation),
        status=Status(status),
        score=place.score,
        cosine=place.cosine,
        share=place.share,
        relevant=place.relevant,
        named=place.named,
        place_by_words=place.by_words,
        place_by_meaning=place.by_meaning,
    )

"""One read of the store: by words, then by meaning, then the rows themselves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from django.db import transaction

from observations.models import Scope
from observations.records import Status
from observations.retrieval import large, meaning, words
from observations.retrieval.answers import Hit, Trust, Why
from observations.retrieval.asking import Asked
from observations.retrieval.narrowing import EVERYTHING, Narrowed, among_of
from observations.retrieval.overlay import Overlay, Standing
from observations.retrieval.ranking import Found, Place, Weights

SPARE: Final = 10  # further rows read, in case one leaves the reads meanwhile
_POOL: Final = 4  # times k rows are said to be near; an index is asked for as many
_WORDY: Final = 1_000  # rows found by the words of a large scope whose cosine is looked up: one cut off counts as far
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
    """The k best rows of a scope, scored by their words and their meaning, all of them; in a large scope that has an
    index those that it and the index of words hand over.

    Raises django.db.Error. Three queries, one more where the read is narrowed, one where less than k was found, and
    three where an index is walked.
    """
    pool = max(_POOL * k, 50)
    found = None
    if narrowed == EVERYTHING and overlay is None and scope.index_profile:
        found = _by_index(scope, text, asked, pool)
    if found is None:
        among = None if narrowed == EVERYTHING else among_of(scope, narrowed)
        found = (
            words.by_words(scope, text, among=among, overlay=overlay),
            meaning.by_meaning(scope, asked, among=among, overlay=overlay) if asked else meaning.NOTHING,
        )
    ranked = Found(*found, fades, Weights.of_settings(), pool, asked.profile if asked else None)
    return _hits(scope, ranked, k, narrowed, overlay or Overlay())


def _by_index(scope: Scope, text: str, asked: Asked | None, pool: int) -> tuple[words.Words, meaning.Meaning] | None:
    """What the indexes of a large scope hand over; None where that is too little, or no index is of this profile."""
    if asked is None:
        return words.by_words_of_index(scope, text), meaning.NOTHING
    if not large.indexed(scope=scope, profile=asked.profile):
        return None
    with transaction.atomic():
        held = words.by_words_of_index(scope, text)
        near = meaning.by_meaning_of_index(scope, asked, wanted=pool, also=held.best(_WORDY))
    return None if near is None else (held, near)


Row = tuple[int, str, str, str | None, str]  # as _FIELDS


def _hits(scope: Scope, found: Found, k: int, narrowed: Narrowed, overlay: Overlay) -> tuple[Hit, ...]:
    ranked = found.ranked(k + SPARE)
    current = narrowed.rows(scope=scope)
    rows: Iterable[Row] = current.filter(pk__in=[place.id for place in ranked if place.id > 0]).values_list(*_FIELDS)
    known = {row[0]: row for row in [*rows, *map(_standing, overlay.plus)]}
    hits = [_hit(known[place.id], place) for place in ranked if place.id in known][:k]
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

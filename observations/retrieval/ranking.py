"""One order of what both ways of searching found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
from django.conf import settings

from observations.embedding import Profile
from observations.retrieval.answers import Why
from observations.retrieval.meaning import Meaning
from observations.retrieval.words import Words

Numbers = np.ndarray[tuple[int], np.dtype[Any]]
# A row without a vector has to do with a query of whose words it holds this share. Measured in decision 0018.
RELEVANT_BY_WORDS: Final = 0.35
MOST_WEIGHT: Final = 10.0  # of the words, or of a name, beside a cosine of 1


@dataclass(frozen=True, slots=True)
class Weights:
    """What counts beside the cosine, whose weight is 1 (docs/decisions/0005 and 0020)."""

    words: float  # of a row that holds all words of the query
    subject: float  # of a row whose whole subject the query names, where no other row bears that name

    @classmethod
    def of_settings(cls) -> Weights:
        """Those of the settings. Raises ValueError, one sentence, for one that is not between 0 and 10."""
        weights = cls(settings.PALIMPSEST_SEARCH_WORDS, settings.PALIMPSEST_SEARCH_SUBJECT)
        for name, weight in (("WORDS", weights.words), ("SUBJECT", weights.subject)):
            if not 0 <= weight <= MOST_WEIGHT:  # a nan is refused too
                raise ValueError(f"PALIMPSEST_SEARCH_{name} is {weight}: give it a number from 0 to {MOST_WEIGHT:g}.")
        return weights


@dataclass(frozen=True)
class Found:
    """What both ways of searching found."""

    words: Words
    meaning: Meaning
    fades: float
    weights: Weights
    profile: Profile | None = None  # the query's; None: it could not be embedded

    def ranked(self, count: int) -> list[tuple[int, float]]:
        """Ids and scores of the best `count`, best first: the cosine, plus what words and names count, which changes no
        order where they are equal.

        A row without a vector counts as near as its words say, so that it is found at once.
        """
        strengths = self._laid(1.0, self.meaning.strengths, self.words.strengths)
        scores = self._scores
        faded = scores - self.fades * (1 - strengths) * np.abs(scores)  # a negative one falls too: fading never helps
        best = _order(self._ids, faded)[:count]
        return [*zip(self._ids[best].tolist(), faded[best].tolist(), strict=True)]

    @cached_property
    def _ids(self) -> Numbers:
        """Every row that was found, ascending. There are a thousand and more of them: they are counted as arrays."""
        return np.unique(np.concatenate([_keys(self.meaning.cosines), _keys(self.words.shares)]))

    def _laid(self, otherwise: float, *values: Mapping[int, float]) -> Numbers:
        """A number for each of the rows; where several have one for it, the last."""
        laid = np.full(len(self._ids), otherwise)
        for each in values:
            laid[np.searchsorted(self._ids, _keys(each))] = np.fromiter(each.values(), float, len(each))
        return laid

    @cached_property
    def _scores(self) -> Numbers:
        """What each row scores before it fades."""
        best = max(self.meaning.cosines.values(), default=1.0)
        shares = self._laid(0.0, self.words.shares)
        cosines = self._laid(np.nan, self.meaning.cosines)
        near = np.where(np.isnan(cosines), best * shares, cosines)
        return near + self.weights.words * shares + self.weights.subject * self._laid(0.0, self.words.named)

    def relevant(self, pk: int) -> bool:
        """Whether a row has to do with the query at all, however long ago it was said (R7)."""
        share = self.words.shares.get(pk, 0.0)
        if pk not in self.meaning.cosines or self.profile is None:
            return max(share, self.words.named.get(pk, 0.0)) >= RELEVANT_BY_WORDS
        return share >= self.profile.relevant_words or self._score(pk) >= self.profile.t_relevant

    def why(self, pk: int) -> Why:
        """Which way a row came."""
        if pk not in self.meaning.strengths:
            return Why.WORDS if pk in self.words.shares else Why.NEITHER
        return Why.BOTH if pk in self.words.shares else Why.MEANING

    def _score(self, pk: int) -> float:
        return float(self._scores[np.searchsorted(self._ids, pk)])

    def place_by_words(self, pk: int) -> int | None:
        """A row's place among those that hold words of the query, by their share of them: 1 and on."""
        return _place(self._by_words, pk)

    def place_by_meaning(self, pk: int) -> int | None:
        """A row's place among the nearest: 1 and on."""
        return _place(self._by_meaning, pk)

    @cached_property
    def _by_words(self) -> Numbers:
        return _ordered(self.words.shares)

    @cached_property
    def _by_meaning(self) -> Numbers:
        return _ordered({pk: self.meaning.cosines[pk] for pk in self.meaning.strengths})


def _keys(values: Mapping[int, float]) -> Numbers:
    return np.fromiter(values, np.int64, len(values))


def _ordered(scores: Mapping[int, float]) -> Numbers:
    """The ids, best first."""
    ids = _keys(scores)
    return ids[_order(ids, np.fromiter(scores.values(), float, len(scores)))]


def _place(ordered: Numbers, pk: int) -> int | None:
    there = np.flatnonzero(ordered == pk)
    return int(there[0]) + 1 if len(there) else None


def _order(ids: Numbers, scores: Numbers) -> Numbers:
    """Where the best stand, the highest score first; what is equal, as overlay.BY_AGE orders it."""
    return np.lexsort((np.abs(ids), ids < 0, -scores))

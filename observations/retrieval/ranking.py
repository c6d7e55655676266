"""One order of what both ways of searching found."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from django.conf import settings

from observations.embedding import Profile
from observations.retrieval.answers import Why
from observations.retrieval.meaning import Meaning
from observations.retrieval.values import Numbers
from observations.retrieval.words import Words

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


@dataclass(frozen=True, slots=True)
class Place:
    """Where one row stands, and why."""

    id: int
    score: float  # once it faded
    cosine: float | None  # None: it has no vector
    share: float
    named: float
    why: Why
    relevant: bool  # whether it has to do with the query at all, however long ago it was said (R7)
    by_words: int | None  # 1 and on among those that hold words of the query, by their share of them
    by_meaning: int | None  # 1 and on among the nearest


@dataclass(frozen=True)
class Found:
    """What both ways of searching found."""

    words: Words
    meaning: Meaning
    fades: float
    weights: Weights
    pool: int  # so many of the nearest rows are said to have come by meaning
    profile: Profile | None = None  # the query's; None: it could not be embedded

    def ranked(self, count: int) -> list[int]:
        """The ids of the best `count`, best first: by the cosine, plus what words and names count, which changes no
        order where they are equal. Nothing of what shares no word and has no vector.

        A row without a vector counts as near as its words say, so that it is found at once.
        """
        there = np.flatnonzero(self._embedded | (self._shares > 0))
        best: list[int] = self._ids[there[self._first(self._final[there], there, count)]].tolist()
        return best

    def place(self, pk: int) -> Place:
        """Where a row that was found stands."""
        at = int(np.searchsorted(self._ids, pk))
        cosine, share, named = (float(column[at]) for column in (self._cosines, self._shares, self._named))
        near = np.flatnonzero(self._near == at)
        why = Why.WORDS if share else Why.NEITHER
        if len(near):
            why = Why.BOTH if share else Why.MEANING
        return Place(
            id=pk,
            score=float(self._final[at]),
            cosine=cosine if self._embedded[at] else None,
            share=share,
            named=named,
            why=why,
            relevant=self._relevant(at),
            by_words=self._place_by_words(at) if share else None,
            by_meaning=int(near[0]) + 1 if len(near) else None,
        )

    @cached_property
    def _ids(self) -> Numbers:
        return np.union1d(self.words.ids, self.meaning.ids)

    @cached_property
    def _age(self) -> Numbers:
        """Rows in the order in which overlay.BY_AGE has them: as they were written, what would be new last."""
        return np.where(self._ids < 0, np.iinfo(np.int64).max // 2 - self._ids, self._ids)

    @cached_property
    def _of_words(self) -> Numbers:
        return np.searchsorted(self._ids, self.words.ids)

    @cached_property
    def _of_meaning(self) -> Numbers:
        return np.searchsorted(self._ids, self.meaning.ids)

    def _laid(self, at: Numbers, values: Numbers, otherwise: float) -> Numbers:
        """A number for each of the rows."""
        laid = np.full(len(self._ids), otherwise)
        laid[at] = values
        return laid

    @cached_property
    def _shares(self) -> Numbers:
        return self._laid(self._of_words, self.words.shares, 0.0)

    @cached_property
    def _named(self) -> Numbers:
        return self._laid(self._of_words, self.words.named, 0.0)

    @cached_property
    def _cosines(self) -> Numbers:
        return self._laid(self._of_meaning, self.meaning.cosines, np.nan)

    @cached_property
    def _embedded(self) -> Numbers:
        return ~np.isnan(self._cosines)

    @cached_property
    def _strengths(self) -> Numbers:
        laid = self._laid(self._of_words, self.words.strengths, 1.0)
        if self.meaning.strengths is not None:
            laid[self._of_meaning] = self.meaning.strengths
        return laid

    @cached_property
    def _scores(self) -> Numbers:
        """What each row scores before it fades."""
        best = self.meaning.cosines.max() if len(self.meaning.cosines) else 1.0
        near = np.where(self._embedded, self._cosines, best * self._shares)
        return near + self.weights.words * self._shares + self.weights.subject * self._named

    @cached_property
    def _final(self) -> Numbers:
        return self._faded(self._scores)

    def _faded(self, scores: Numbers) -> Numbers:
        """A negative score falls too: fading never helps."""
        return scores - self.fades * (1 - self._strengths) * np.abs(scores)

    def _first(self, scores: Numbers, rows: Numbers, count: int) -> Numbers:
        """Where the best of some rows stand, the highest score first; what is equal, by age. Only those that can be
        among them are sorted.
        """
        some = np.arange(len(scores))
        if count < len(scores):
            some = np.flatnonzero(scores >= np.partition(scores, len(scores) - count)[len(scores) - count])
        return some[np.lexsort((self._age[rows[some]], -scores[some]))][:count]

    @cached_property
    def _near(self) -> Numbers:
        """The rows that came by meaning: the nearest once what has faded is put back, and the nearest first."""
        there = np.flatnonzero(self._embedded)
        pool = there[self._first(self._faded(self._cosines)[there], there, self.pool)]
        return pool[np.lexsort((self._age[pool], -self._cosines[pool]))]

    def _place_by_words(self, at: int) -> int:
        share = self._shares[at]
        equal = (self._shares == share) & (self._age < self._age[at])
        return int(np.count_nonzero(self._shares > share) + np.count_nonzero(equal)) + 1

    def _relevant(self, at: int) -> bool:
        share = self._shares[at]
        if self.profile is None or not self._embedded[at]:
            return bool(max(share, self._named[at]) >= RELEVANT_BY_WORDS)
        return bool(share >= self.profile.relevant_words or self._scores[at] >= self.profile.t_relevant)

"""Guards against opposite claims: denial, words that exclude each other, amounts, certainty, what still holds."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from consolidation.guards import lexicon
from consolidation.guards.objection import Objection
from consolidation.guards.reading import AMOUNTS, DENIES, HEDGES, TENSES, Pair, stem


def negation(pair: Pair) -> Objection | None:
    """One text denies what the other says: not, never, no, without, hardly, unhappy, careless, sugar-free.

    A prefix and a 'not' beside it cancel out: 'not unhappy' denies 'happy' no more than 'happy' does.
    """
    left, right = frozenset(pair.only_a), frozenset(pair.only_b)
    prefixed = [sum(_denies(word, plain) for word in side) for side, plain in ((left, right), (right, left))]
    if not pair.about & DENIES and not any(prefixed):
        return None
    denials = [sum(word in lexicon.NEGATION for word in side) for side in (pair.only_a, pair.only_b)]
    if abs(denials[0] - prefixed[0]) != abs(denials[1] - prefixed[1]):
        return Objection("negation", "one text is negated where the other is not", possible_contradiction=True)
    return Objection("negation", "the two texts are negated in different words", possible_contradiction=False)


def _denies(word: str, plain: frozenset[str]) -> bool:
    for ending in lexicon.NEGATIVE_ENDINGS:
        rest = word.removesuffix(ending)
        if rest != word and len(rest) > 2 and not plain.isdisjoint((rest, rest + "ful", rest + "y", rest + "ed")):
            return True
    if word[0] not in _PREFIX_STARTS:
        return False
    rests = (word.removeprefix(prefix) for prefix in lexicon.NEGATIVE_PREFIXES if word.startswith(prefix))
    return any(len(rest) > 2 and rest in plain for rest in rests)


_PREFIX_STARTS: Final = frozenset(prefix[0] for prefix in lexicon.NEGATIVE_PREFIXES)


def antonym(pair: Pair) -> Objection | None:
    """The texts differ in words that exclude each other: likes and hates, brother and sister, red and blue."""
    if not pair.only_a or not pair.only_b:
        return None
    left, right = pair.stems()
    left, right = left.union(pair.only_a), right.union(pair.only_b)
    if any(not _EXCLUDED_BY[word].isdisjoint(right - {word}) for word in left if word in _EXCLUDED_BY):
        return Objection("antonym", "the texts use words that exclude each other", possible_contradiction=True)
    return None


def _excluded_by() -> Mapping[str, frozenset[str]]:
    excluded: dict[str, set[str]] = {}
    for pair in lexicon.EXCLUSIVE:
        left, right = sorted(pair)
        for x, y in ((left, right), (right, left)):
            for form in (x, stem(x)):
                excluded.setdefault(form, set()).update((y, stem(y)))
    return MappingProxyType({form: frozenset(others) for form, others in excluded.items()})


_EXCLUDED_BY: Final = _excluded_by()


def quantifier(pair: Pair) -> Objection | None:
    """The texts differ in how many, how much or how often: all, some, only, always, more, twice."""
    if not pair.about & AMOUNTS:
        return None
    return Objection("quantifier", "the texts differ in how many, how much or how often", pair.close)


def hedge(pair: Pair) -> Objection | None:
    """One text is a possibility, a wish, a plan or a condition where the other states a fact."""
    if not pair.about & HEDGES:
        return None
    if "may" in pair.known_names and lexicon.HEDGE.intersection(pair.differing) == {"may"}:
        return None  # the month
    return Objection("hedge", "the texts differ in certainty, intention or condition", possible_contradiction=False)


def tense(pair: Pair) -> Objection | None:
    """The texts speak of different times: is and was, lives and lived, used to, no longer."""
    if pair.about & TENSES:
        return Objection("tense", "the texts differ in tense or in what still holds", pair.close)
    left, right = pair.stems()
    if left.isdisjoint(right):
        return None
    if _past_in_one(pair):
        return Objection("tense", "the texts differ in tense or in what still holds", pair.close)
    return Objection("tense", "the texts use different forms of a word", possible_contradiction=False)


def _past_in_one(pair: Pair) -> bool:
    left, right = ({(stem(word), _is_past(word)) for word in side} for side in (pair.only_a, pair.only_b))
    return any((base, not past) in right for base, past in left)


def _is_past(word: str) -> bool:
    return word in lexicon.PAST or (word.endswith("ed") and len(word) > 4)

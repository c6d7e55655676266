"""Guards over who does what to whom, and over what is left: another language, more said, other words."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from consolidation.guards import lexicon
from consolidation.guards.objection import Objection
from consolidation.guards.reading import DIRECTS, Pair, stem


def order(pair: Pair) -> Objection | None:
    """The same words in another order: 'Ann beat Bob' and 'Bob beat Ann'. No reordering is taken for harmless.

    Nor is the passive: 'Ann was beaten by Bob' has the order of 'Ann beat Bob' and its roles turned.
    """
    differs, turned = pair.shared_order_differs, _is_passive_in_one(pair)
    if differs and not turned:
        return Objection("order", "the words they share come in another order, so roles may be swapped", pair.close)
    if turned and not differs:
        return Objection("order", "one text is passive in the order of the other, so roles are swapped", pair.close)
    if turned:
        return Objection("order", "one text is passive, in another order", possible_contradiction=False)
    return None


_BEING: Final = lexicon.words("is are was were be been being am gets got get")


def _is_passive_in_one(pair: Pair) -> bool:
    """Whether one text has a form of 'be' and 'by' that the other has not, and both do the same thing."""
    passive = [("by" in side and not _BEING.isdisjoint(side)) for side in (pair.only_a, pair.only_b)]
    if passive[0] == passive[1]:
        return False
    one, other = (pair.a, pair.b) if passive[0] else (pair.b, pair.a)
    done = {before for before, after in pairwise(one.wording) if after == "by"}
    return any(
        stem(word) == stem(verb) or (len(verb) > 3 and word[:4] == verb[:4]) for verb in done for word in other.counts
    )


def direction(pair: Pair) -> Objection | None:
    """The texts differ in a preposition: to and from, before and after, in and near."""
    if not pair.about & DIRECTS:
        return None
    left, right = (lexicon.DIRECTION.intersection(side) for side in (pair.only_a, pair.only_b))
    opposed = any(frozenset((x, y)) in lexicon.OPPOSITE_DIRECTIONS for x in left for y in right)
    return Objection("direction", "the texts differ in a preposition or direction", opposed and pair.close)


def language(pair: Pair) -> Objection | None:
    """A text that is not English differs in any way: German gives every noun a capital, other scripts give none."""
    if pair.english or pair.a.tokens == pair.b.tokens:
        return None
    return Objection("language", "texts that are not English are compared by a person", possible_contradiction=False)


def addition(pair: Pair) -> Objection | None:
    """One text says what the other does not."""
    if bool(pair.only_a) == bool(pair.only_b):
        return None
    return Objection("addition", "one text says more than the other", possible_contradiction=False)


def wording(pair: Pair) -> Objection | None:
    """Each text has words that the other does not; one word in the place of another may be another claim."""
    if not (pair.only_a and pair.only_b):
        return None
    return Objection("wording", "each text has words that the other has not", len(pair.only_a) + len(pair.only_b) <= 4)

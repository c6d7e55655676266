"""What forbids merging two texts without a person (DESIGN 5, C7).

Each guard looks at one aspect and names its objection. A guard can only send a pair to a person, never wave it through,
and together they leave nothing over: any difference that is not an exchangeable wording is objected to by one of them.
Reasons hold no text of memory, so they may be stored and shown without being one more thing to erase.

English first. For another language the guards that need no language apply (numbers, identifiers, order, signs), and
whatever else differs goes to a person.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final, Literal

from consolidation.guards import lexicon
from consolidation.guards.objection import Guard, Objection
from consolidation.guards.polarity import antonym, hedge, negation, quantifier, tense
from consolidation.guards.reading import read, side_by_side
from consolidation.guards.roles import addition, direction, language, order, wording
from consolidation.guards.specifics import date, identifier, name, number
from consolidation.guards.surface import article, case, contraction, punctuation, question, sign

__all__ = ["GUARDS", "SURFACE", "Guard", "Objection", "is_refinement", "objections"]

GUARDS: Final[Mapping[str, Guard]] = MappingProxyType(
    {
        guard.__name__: guard
        for guard in (
            negation,
            antonym,
            quantifier,
            number,
            date,
            identifier,
            name,
            order,
            direction,
            hedge,
            tense,
            question,
            case,
            punctuation,
            article,
            contraction,
            sign,
            language,
            addition,
            wording,
        )
    }
)

# With the same tokens only what tokens do not hold can differ, and with other words only words are worth a sentence.
SURFACE: Final[Mapping[str, Guard]] = MappingProxyType(
    {name: GUARDS[name] for name in ("number", "question", "case", "punctuation", "article", "contraction", "sign")}
)
_SILENT_BY_WORDS: Final = frozenset({"punctuation", "article", "contraction", "sign"})
_WORDED: Final = tuple(guard for name, guard in GUARDS.items() if name not in _SILENT_BY_WORDS)


def objections(a: str, b: str) -> tuple[Objection, ...]:
    """Every guard's objection to merging two texts, in the register's order; empty when none objects. Symmetric."""
    if a == b:
        return ()
    first, second = sorted((a, b))
    pair = side_by_side(read(first), read(second))
    if pair.a.tokens == pair.b.tokens:
        guards = tuple(SURFACE.values())
    else:
        guards = tuple(GUARDS.values()) if pair.same_words else _WORDED
    found = tuple(objection for objection in (guard(pair) for guard in guards) if objection is not None)
    named = tuple(objection for objection in found if objection.guard != wording.__name__)
    return named or found  # 'other words' adds nothing where a guard can say what about them


def is_refinement(a: str, b: str) -> Literal["a", "b"] | None:
    """Which of two texts says all that the other says, in the same order, and more; None when neither does.

    What is added may not deny, limit, hedge or move in time what the other says, so the poorer text still holds.
    """
    pair = side_by_side(read(a), read(b))
    if not pair.english or pair.shared_order_differs or pair.same_words:
        return None
    if _is_contained(pair.only_a, pair.only_b):
        return "b"
    return "a" if _is_contained(pair.only_b, pair.only_a) else None


def _is_contained(lost: Iterable[str], added: Iterable[str]) -> bool:
    added = set(added)
    return bool(added) and not set(lost) and added.isdisjoint(lexicon.RESTRICTING)

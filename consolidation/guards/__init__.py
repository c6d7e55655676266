"""What forbids merging two texts without a person (DESIGN 5, C7).

Each guard looks at one aspect and names its objection. A guard can only send a pair to a person, never wave it through,
and together they leave nothing over: any difference that is not an exchangeable wording is objected to by one of them.
Reasons hold no text of memory, so they may be stored and shown without being one more thing to erase.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

from consolidation.guards import lexicon
from consolidation.guards.reading import UNIT_MARK, Pair, is_identifier, is_number, read, stem


@dataclass(frozen=True, slots=True)
class Objection:
    """Why a person must look: which guard, in a sentence, and whether the two texts may contradict each other."""

    guard: str
    reason: str
    possible_contradiction: bool

    def __str__(self) -> str:
        return f"{self.guard}: {self.reason}" + (" (possible contradiction)" if self.possible_contradiction else "")


Guard = Callable[[Pair], Objection | None]


def objections(a: str, b: str) -> tuple[Objection, ...]:
    """Every guard's objection to merging two texts, in the register's order; empty when none objects. Symmetric."""
    if a == b:
        return ()
    first, second = sorted((a, b))
    pair = Pair(read(first), read(second))
    guards = SURFACE if pair.a.wording == pair.b.wording and pair.a.tokens == pair.b.tokens else GUARDS
    found = tuple(objection for objection in (guard(pair) for guard in guards.values()) if objection is not None)
    named = tuple(objection for objection in found if objection.guard != wording.__name__)
    return named or found  # 'other words' adds nothing where a guard can say what about them


def is_refinement(a: str, b: str) -> Literal["a", "b"] | None:
    """Which of two texts says all that the other says, in the same order, and more; None when neither does.

    What is added may not deny, limit, hedge or move in time what the other says, so the poorer text still holds.
    """
    pair = Pair(read(a), read(b))
    if not (pair.a.english and pair.b.english) or pair.shared_order_differs or pair.same_words:
        return None
    if _is_contained(pair.only_a, pair.only_b):
        return "b"
    return "a" if _is_contained(pair.only_b, pair.only_a) else None


def _is_contained(lost: Iterable[str], added: Iterable[str]) -> bool:
    added = set(added)
    return bool(added) and not set(lost) and added.isdisjoint(lexicon.RESTRICTING)


# --- the guards ------------------------------------------------------------------------------------------------------


def negation(pair: Pair) -> Objection | None:
    """One text denies what the other says: not, never, no, without, hardly, unhappy, careless."""
    denials = [sum(word in lexicon.NEGATION for word in side) for side in (pair.only_a, pair.only_b)]
    if denials[0] != denials[1] or _one_is_prefixed(pair):
        return Objection("negation", "one text is negated where the other is not", possible_contradiction=True)
    if any(denials):
        return Objection("negation", "the two texts are negated in different words", possible_contradiction=pair.close)
    return None


def _one_is_prefixed(pair: Pair) -> bool:
    left, right = frozenset(pair.only_a), frozenset(pair.only_b)
    return any(_denies(word, right) for word in left) or any(_denies(word, left) for word in right)


def _denies(word: str, plain: frozenset[str]) -> bool:
    if word.endswith("less") and not plain.isdisjoint((word[:-4] + "ful", word[:-4] + "y")):
        return True
    rests = (word.removeprefix(prefix) for prefix in lexicon.NEGATIVE_PREFIXES if word.startswith(prefix))
    return any(len(rest) > 3 and rest in plain for rest in rests)


def antonym(pair: Pair) -> Objection | None:
    """The texts differ in words that exclude each other: likes and hates, brother and sister, red and blue."""
    left = {form for word in pair.only_a for form in (word, stem(word))}
    right = {form for word in pair.only_b for form in (word, stem(word))}
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
    if lexicon.QUANTIFIER.isdisjoint(pair.differing):
        return None
    return Objection("quantifier", "the texts differ in how many, how much or how often", pair.close)


def number(pair: Pair) -> Objection | None:
    """The texts hold different numbers, or numbers in different units."""
    left, right = ([word for word in side if is_number(word)] for side in (pair.only_a, pair.only_b))
    if left and right:
        return Objection("number", "the texts give different numbers", possible_contradiction=True)
    if left or right:
        return Objection("number", "one text gives a number that the other does not", possible_contradiction=False)
    if _units(pair.only_a) != _units(pair.only_b) or pair.a.primes != pair.b.primes:
        return Objection("number", "the texts give different units", possible_contradiction=True)
    return None


def _units(words: Iterable[str]) -> frozenset[str]:
    return frozenset(word for word in words if word.startswith(UNIT_MARK))


def date(pair: Pair) -> Objection | None:
    """The texts name different days, months, seasons or times of day."""
    left, right = (
        [word for word in side if word in lexicon.DATE or word in lexicon.MONTHS] for side in (pair.only_a, pair.only_b)
    )
    if not left and not right:
        return None
    return Objection("date", "the texts differ in a date or time", possible_contradiction=bool(left and right))


def identifier(pair: Pair) -> Objection | None:
    """The texts hold different versions, paths, addresses, handles or codes."""
    left, right = ([word for word in side if is_identifier(word)] for side in (pair.only_a, pair.only_b))
    if not left and not right:
        return None
    return Objection("identifier", "the texts differ in a version or identifier", bool(left and right))


def name(pair: Pair) -> Objection | None:
    """The texts name different people, places or things: capitals where a sentence does not ask for one."""
    left, right = pair.names
    if left and right:
        return Objection("name", "the texts name different people, places or things", possible_contradiction=True)
    if left or right:
        swapped = bool(pair.only_a and pair.only_b) and pair.close
        return Objection("name", "one text has a name that the other has not", possible_contradiction=swapped)
    return None


def order(pair: Pair) -> Objection | None:
    """The same words in another order: 'Ann beat Bob' and 'Bob beat Ann'. No reordering is taken for harmless."""
    if not pair.shared_order_differs:
        return None
    return Objection("order", "the words they share come in another order, so roles may be swapped", pair.close)


def direction(pair: Pair) -> Objection | None:
    """The texts differ in a preposition: to and from, before and after, in and near."""
    left, right = (lexicon.DIRECTION.intersection(side) for side in (pair.only_a, pair.only_b))
    if not left and not right:
        return None
    opposed = any(frozenset((x, y)) in lexicon.OPPOSITE_DIRECTIONS for x in left for y in right)
    return Objection("direction", "the texts differ in a preposition or direction", opposed and pair.close)


def hedge(pair: Pair) -> Objection | None:
    """One text is a possibility, a wish, a plan or a condition where the other states a fact."""
    if lexicon.HEDGE.isdisjoint(pair.differing):
        return None
    return Objection("hedge", "the texts differ in certainty, intention or condition", possible_contradiction=False)


def tense(pair: Pair) -> Objection | None:
    """The texts speak of different times: is and was, lives and lived, used to, no longer."""
    if not lexicon.TENSE.isdisjoint(pair.differing) or _past_in_one(pair):
        return Objection("tense", "the texts differ in tense or in what still holds", pair.close)
    forms = {stem(word) for word in pair.only_a} & {stem(word) for word in pair.only_b}
    if forms:
        return Objection("tense", "the texts use different forms of a word", possible_contradiction=False)
    return None


def _past_in_one(pair: Pair) -> bool:
    left, right = ({(stem(word), _is_past(word)) for word in side} for side in (pair.only_a, pair.only_b))
    return any((base, not past) in right for base, past in left)


def _is_past(word: str) -> bool:
    return word in lexicon.PAST or (word.endswith("ed") and len(word) > 4)


def question(pair: Pair) -> Objection | None:
    """One text asks what the other states."""
    if pair.a.asks == pair.b.asks:
        return None
    return Objection("question", "one text is a question", possible_contradiction=False)


def case(pair: Pair) -> Objection | None:
    """The same letters as a name and as a word: US and us, May and may, Polish and polish."""
    if pair.a.all_capitals or pair.b.all_capitals:
        return None
    typed = pair.a.has_capitals and pair.b.has_capitals
    traps = lexicon.CASE_GRAMMAR | lexicon.CASE_OTHER if typed else lexicon.CASE_GRAMMAR
    if _shapes_of(pair.a.shapes, traps, pair.b.shapes) == _shapes_of(pair.b.shapes, traps, pair.a.shapes):
        return None
    return Objection("case", "a word is a name in one text only, by its capital", possible_contradiction=False)


def _shapes_of(
    shapes: frozenset[tuple[str, str]], traps: frozenset[str], others: frozenset[tuple[str, str]]
) -> frozenset[tuple[str, str]]:
    """The shapes of trap words that the other text has inside a sentence too."""
    theirs = {word for word, _ in others}
    return frozenset((word, shape) for word, shape in shapes if word in traps and word in theirs)


def punctuation(pair: Pair) -> Objection | None:
    """A mark decides who does what: 'Tim, said Ann, is late' and 'Tim said Ann is late'; 'cooking, my family'."""
    if pair.a.wording != pair.b.wording or pair.a.marks == pair.b.marks:
        return None
    return Objection(
        "punctuation", "a comma differs where it changes who or what is meant", possible_contradiction=True
    )


def language(pair: Pair) -> Objection | None:
    """A text that is not English differs in any way: German gives every noun a capital, other scripts give none."""
    if (pair.a.english and pair.b.english) or pair.a.tokens == pair.b.tokens:
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
    return Objection("wording", "each text has words that the other has not", len(pair.differing) <= 4)


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
            language,
            addition,
            wording,
        )
    }
)

# With the same tokens only what tokens do not hold can differ.
SURFACE: Final[Mapping[str, Guard]] = MappingProxyType(
    {name: GUARDS[name] for name in ("number", "question", "case", "punctuation")}
)

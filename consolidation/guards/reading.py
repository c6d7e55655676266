"""What guards see of a text, and of two texts side by side: plain values, made once per text."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final

from consolidation.guards import lexicon
from observations.normalise import is_english, tokens

_MEASURE = re.compile(r"([-+]?[0-9][0-9.,]*)([a-z]{1,3})")
_ORDINAL = re.compile(r"([0-9]{1,2})(?:st|nd|rd|th)")
_NUMBER = re.compile(r"[-+~<>=$€£¥^]*[0-9][0-9.,:/−-]*(?:%|‰|st|nd|rd|th|s|€|\$|£)?")
_IDENTIFIER = re.compile(r".*[0-9_/\\@#:].*|.*[^\W\d_]\.[^\W\d_].*|.+\+\+?|[.#@§-].+|.*\^.*|[a-f]-|ab-", re.DOTALL)
_DIGIT = re.compile("[0-9]")
_LATIN_OR_PLAIN = re.compile(r"[\x00-\u024f\u1e00-\u1eff\u2000-\u20cf\u2100-\u2bff\ufe0f\ufffd\U0001f000-\U0001faff]*")


@dataclass(frozen=True, slots=True)
class Reading:
    """One text: its tokens, the same in one wording, and what case and marks tell beside them."""

    tokens: tuple[str, ...]
    wording: tuple[str, ...]  # tokens with exchangeable words, units and date forms made one
    names: frozenset[str]  # words with a capital where a sentence does not ask for one
    shapes: frozenset[tuple[str, str]]  # (word, as written) of the words whose capital changes their meaning
    has_capitals: bool
    all_capitals: bool
    asks: bool  # ends in a question
    primes: tuple[str, ...]  # feet and inches marks after digits
    marks: tuple[str, ...]  # where a comma or quotation mark decides who speaks, is spoken to or belongs to a list
    english: bool


@lru_cache(maxsize=1 << 15)
def read(text: str) -> Reading:
    """The reading of a text. Pure; the cache only saves time when a text meets many others."""
    plain = text if text.isascii() else unicodedata.normalize("NFKC", text).translate(_QUOTES)
    compared = tokens(text)
    return Reading(
        tokens=compared,
        wording=wording(compared),
        names=frozenset(_names(plain)),
        shapes=frozenset() if _TRAPS.isdisjoint(compared) else frozenset(_shapes(plain)),
        has_capitals=plain != plain.lower(),
        all_capitals=plain == plain.upper(),
        asks="?" in plain and plain.rstrip("\"' )]\n").endswith("?"),
        primes=tuple(_PRIME.findall(plain)) if _PRIMES.search(plain) else (),
        marks=tuple(_deciding_marks(plain, speaks=not _SPEAKING.isdisjoint(compared))),
        english=is_english(compared) and (plain.isascii() or _LATIN_OR_PLAIN.fullmatch(plain) is not None),
    )


_QUOTES: Final = {**dict.fromkeys(map(ord, "\u2018\u2019\u02bc"), "'"), **dict.fromkeys(map(ord, "\u201c\u201d"), '"')}
_PRIMES = re.compile("['\"\u2032\u2033]")
_PRIME = re.compile(r"[0-9]\s?('|\"|''|\u2032{1,2}|\u2033)(?![^\W_])")
_SPEAKING = lexicon.words("said says asked asks told replied replies wrote writes argued claimed")
_SPEECH = re.compile(rf"([,;:\"]?) ?\b({'|'.join(sorted(_SPEAKING))})\b([^.!?]{{0,80}}?,)?")
_TRAPS = lexicon.CASE_GRAMMAR | lexicon.CASE_OTHER
_EDGES = "\"'()[]{}.,;:!?*_-"


_OWNED_ITEM = re.compile(
    r"(?<![^\W_])([^\W_]{1,40}) ?, ?(?:my|your|his|her|its|our|their)\b"
)  # cooking, my family and dogs
_ADDRESSED = re.compile(r"(?<![^\W_])([^\W_]{1,40}) ?, ?[^\W\d_]{1,40}[.!?\"' ]{0,4}$")  # let us eat, Ann


def _deciding_marks(plain: str, *, speaks: bool) -> Iterator[str]:
    folded = plain.casefold()
    if speaks:
        yield from ("".join(parts) for parts in _SPEECH.findall(folded))
    if "," in plain:
        yield from _OWNED_ITEM.findall(folded)
        yield from _ADDRESSED.findall(folded)


def _shaped(plain: str) -> Iterator[tuple[str, bool]]:
    """(word, whether it starts a sentence) for every word."""
    starts = True
    for word in plain.split():
        yield word.strip(_EDGES), starts
        starts = word[-1] in '.!?:*-\u2022"'


def _names(plain: str) -> Iterator[str]:
    """Words, folded and without 's, that have a capital where a sentence does not ask for one."""
    for word, starts in _shaped(plain):
        if word.islower() or not word or word == "I":
            continue
        if (word[0].isupper() and not starts) or word[1:] != word[1:].lower():
            yield word.casefold().removesuffix("'s")


def _shapes(plain: str) -> Iterator[tuple[str, str]]:
    """(folded, as written) of the words inside sentences whose capital changes their meaning."""
    return ((word.casefold(), word) for word, starts in _shaped(plain) if not starts and word.casefold() in _TRAPS)


def wording(compared: Sequence[str]) -> tuple[str, ...]:
    """Tokens in one wording: exchangeable words, units, orders of day and month and set phrases made one."""
    dated: Sequence[str] = _measures(compared) if _DIGIT.search(" ".join(compared)) else compared
    if not lexicon.MONTHS.keys().isdisjoint(dated):
        dated = _dates(dated)
    owned = (
        dated if not any(word.endswith("'s") for word in dated) else [part for word in dated for part in _owner(word)]
    )
    same = [lexicon.EQUIVALENT.get(word, word) for word in owned]
    phrased = _phrases(same)
    return tuple(
        word
        for at, word in enumerate(phrased)
        if word not in lexicon.HARMLESS and not (word == "that" and at and phrased[at - 1] in lexicon.SAYING)
    )


def _owner(word: str) -> tuple[str, ...]:
    """A possessive as two words, so that whose it is counts as a place in the order and not as another name."""
    return (word[:-2], "'s") if len(word) > 2 and word.endswith("'s") else (word,)


UNIT_MARK: Final = "\u00b7"  # before a unit that follows a number, so that 'min' there is not the 'min' of elsewhere


def _measures(compared: Sequence[str]) -> list[str]:
    """'5km' as '5 km', and '5 kilometres' too."""
    parts: list[str] = []
    for word in compared:
        measure = _MEASURE.fullmatch(word)
        if measure and measure.group(2) in _SHORT_UNITS:
            parts.extend((measure.group(1), UNIT_MARK + lexicon.UNITS.get(measure.group(2), measure.group(2))))
        elif parts and parts[-1][-1:].isdigit() and word in lexicon.UNITS:
            parts.append(UNIT_MARK + lexicon.UNITS[word])
        else:
            parts.append(word)
    return parts


_SHORT_UNITS: Final = lexicon.words("km kg cm mm mg ml lb lbs oz ft gb mb tb kb ms hr hrs min mins")


def _dates(parts: Sequence[str]) -> list[str]:
    """'June 27', '27 June' and '27th of June' as '27 jun'; a month's name without a day stays as it is."""
    dated: list[str] = []
    at = 0
    while at < len(parts):
        day, month, used = _date(parts[at : at + 3])
        dated.extend((day, month) if used else (parts[at],))
        at += used or 1
    return dated


def _date(parts: Sequence[str]) -> tuple[str, str, int]:
    if len(parts) < 2:
        return "", "", 0
    first, second = parts[0], parts[1]
    if first in lexicon.MONTHS and _day(second):
        return _day(second), lexicon.MONTHS[first], 2
    if _day(first) and second in lexicon.MONTHS:
        return _day(first), lexicon.MONTHS[second], 2
    if _day(first) and second == "of" and len(parts) > 2 and parts[2] in lexicon.MONTHS:
        return _day(first), lexicon.MONTHS[parts[2]], 3
    return "", "", 0


def _day(word: str) -> str:
    ordinal = _ORDINAL.fullmatch(word)
    digits = ordinal.group(1) if ordinal else word
    return digits if digits.isascii() and digits.isdecimal() and 1 <= int(digits) <= 31 else ""


def _phrases(parts: Sequence[str]) -> list[str]:
    if _PHRASE_STARTS.isdisjoint(parts):
        return list(parts)
    phrased: list[str] = []
    at = 0
    while at < len(parts):
        for old, new in _PHRASE_STARTS_WITH.get(parts[at], ()):
            if tuple(parts[at : at + len(old)]) == old:
                phrased.extend(new)
                at += len(old)
                break
        else:
            phrased.append(parts[at])
            at += 1
    return phrased


_PHRASE_STARTS: Final = frozenset(old[0] for old, _ in lexicon.PHRASES)
_PHRASE_STARTS_WITH: Final = {
    start: tuple((old, new) for old, new in lexicon.PHRASES if old[0] == start) for start in _PHRASE_STARTS
}


@lru_cache(maxsize=1 << 14)
def stem(word: str) -> str:
    """A rough stem, for naming what differs; equal stems never make two words the same."""
    word = word.removesuffix("'s")
    if word in lexicon.IRREGULAR:
        word = lexicon.IRREGULAR[word]
    elif len(word) > 4 and word.endswith(("ies", "ied")):
        word = word[:-3] + "y"
    elif len(word) > 4 and word.endswith(("sses", "shes", "ches", "xes", "zes")):
        word = word[:-2]
    elif len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    elif len(word) > 5 and word.endswith("ing"):
        word = _undoubled(word[:-3])
    elif len(word) > 4 and word.endswith("ed"):
        word = _undoubled(word[:-2])
    return word.removesuffix("e") if len(word) > 3 else word


def _undoubled(word: str) -> str:
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "sl" else word


@lru_cache(maxsize=1 << 14)
def is_number(word: str) -> bool:
    """Digits with at most signs, separators, a currency, a percent sign or an ordinal's ending."""
    return _NUMBER.fullmatch(word) is not None


@lru_cache(maxsize=1 << 14)
def is_identifier(word: str) -> bool:
    """Versions, paths, addresses, handles, C++: what is more than letters and is not a plain number."""
    return not is_number(word) and word not in lexicon.NEGATION and _IDENTIFIER.fullmatch(word) is not None


@dataclass(frozen=True)
class Pair:
    """Two readings and what each says that the other does not."""

    a: Reading
    b: Reading

    @cached_property
    def only_a(self) -> tuple[str, ...]:
        """The words of a's wording that b does not have, in a's order, as often as they are missing."""
        return _surplus(self.a.wording, self.b.wording)

    @cached_property
    def only_b(self) -> tuple[str, ...]:
        return _surplus(self.b.wording, self.a.wording)

    @property
    def differing(self) -> tuple[str, ...]:
        return (*self.only_a, *self.only_b)

    @cached_property
    def close(self) -> bool:
        """Whether the texts are one sentence with little changed; between loose paraphrases much differs anyway."""
        return len(self.differing) <= max(3, (len(self.a.wording) - len(self.only_a)) // 2)

    @property
    def same_words(self) -> bool:
        return not self.only_a and not self.only_b

    @cached_property
    def names(self) -> tuple[frozenset[str], frozenset[str]]:
        """The names that only a has, and those that only b has."""
        known = self.a.names | self.b.names
        left, right = (known.intersection(side.wording) for side in (self.a, self.b))
        return left - right, right - left

    @cached_property
    def shared_order_differs(self) -> bool:
        """Whether the words that both have come in another order."""
        if not self.only_a or not self.only_b:
            longer, shorter = (self.b, self.a) if not self.only_a else (self.a, self.b)
            return not _is_within(shorter.wording, longer.wording)
        return _without(self.a.wording, self.only_a) != _without(self.b.wording, self.only_b)


def _surplus(mine: Sequence[str], theirs: Sequence[str]) -> tuple[str, ...]:
    left = Counter(theirs)
    surplus: list[str] = []
    for word in mine:
        if left[word]:
            left[word] -= 1
        else:
            surplus.append(word)
    return tuple(surplus)


def _without(mine: Sequence[str], surplus: Sequence[str]) -> list[str]:
    """Mine less the surplus; the last occurrences go, as `_surplus` takes them."""
    left = Counter(surplus)
    kept: list[str] = []
    for word in reversed(mine):
        if left[word]:
            left[word] -= 1
        else:
            kept.append(word)
    return kept[::-1]


def _is_within(shorter: Sequence[str], longer: Sequence[str]) -> bool:
    """Whether the shorter one's words all come in the longer one, in their order."""
    rest = iter(longer)
    return all(word in rest for word in shorter)

"""What guards see of a text, and of two texts side by side: plain values, made once per text."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from consolidation.guards import lexicon
from consolidation.guards.wordings import DAY_MARK, UNIT_MARK, wording
from observations.normalise import MARKS, Parsed, parsed, unmarked

_NUMBER = re.compile(
    r"[-+~<>=$€£¥^]*[0-9][0-9.,:/^−-]*(?:%|‰|st|nd|rd|th|s|€|\$|£)?|[〇零一二三四五六七八九十百千万億亿两]"
)
_VERSION = re.compile(r"[0-9]+(?:\.[0-9]+){2,}")
_IDENTIFIER = re.compile(r".*[0-9_/\\@#:].*|.*[^\W\d_]\.[^\W\d_].*|.+\+\+?|[.#@§-].+|.*\^.*|[a-f]-|ab-", re.DOTALL)
_LATIN_OR_PLAIN = re.compile(r"[\x00-\u024f\u1e00-\u1eff\u2000-\u20cf\u2100-\u2bff\ufe0f\ufffd\U0001f000-\U0001faff]*")
_ASKING: Final = frozenset("?？؟⸮՞፧")
_GREEK = re.compile("[\u0370-\u03ff]")


@dataclass(frozen=True, slots=True)
class Reading:
    """One text: its tokens, the same in one wording, and what case and marks tell beside them."""

    plain: str  # the text after NFKC, with plain quotation marks
    parts: Parsed
    tokens: tuple[str, ...]
    wording: tuple[str, ...]  # tokens with exchangeable words, units and date forms made one
    counts: dict[str, int]  # how often each word of the wording is there
    names: frozenset[str]  # words with a capital where a sentence does not ask for one
    has_capitals: bool
    all_capitals: bool
    asks: tuple[int, ...]  # how many tokens stand before each question mark
    english: bool


@lru_cache(maxsize=1 << 15)
def read(text: str) -> Reading:
    """The reading of a text. Pure; the cache only saves time when a text meets many others."""
    plain = text if text.isascii() else unicodedata.normalize("NFKC", text).translate(_QUOTES)
    parts = parsed(text)
    compared = unmarked(parts, text=text)
    english = parts.english and (plain.isascii() or _LATIN_OR_PLAIN.fullmatch(plain) is not None)
    worded = wording(compared) if english else tuple(_by_script(compared))
    lower = plain.lower()
    return Reading(
        plain=plain,
        parts=parts,
        tokens=compared,
        wording=worded,
        counts=dict(Counter(worded)),
        names=frozenset(_names(plain)) if plain != lower else frozenset(),
        has_capitals=plain != lower,
        all_capitals=plain == plain.upper(),
        asks=_asks(parts.marked, plain),
        english=english,
    )


_QUOTES: Final = {**dict.fromkeys(map(ord, "\u2018\u2019\u02bc"), "'"), **dict.fromkeys(map(ord, "\u201c\u201d"), '"')}
_EDGES = "\"'()[]{}.,;:!?*_-"
_CAPITALISED = re.compile(r"(?<!\S)(?:[a-z\d_]|[^\w\s])*[^\W\d_a-z]\S*")
_AWAY: Final = 8  # characters within which the end of the sentence before is looked for


def _asks(marked: Sequence[str], plain: str) -> tuple[int, ...]:
    """In Greek a semicolon asks; several marks together ask once."""
    asking = _ASKING | {";"} if ";" in plain and _GREEK.search(plain) else _ASKING
    if asking.isdisjoint(plain):
        return ()
    at = 0
    found: dict[int, None] = {}
    for mark in marked:
        if mark in asking:
            found[at] = None
        elif mark not in MARKS:
            at += 1
    return tuple(found)


# Scripts that put no spaces between words, and Korean, whose particles hang on them: compared sign by sign.
_SIGN = re.compile(
    r"[0-9]+(?:[.,:/][0-9]+)*%?"
    "|[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
    "\uf900-\ufaff\U00020000-\U0003ffff]"
    "|[^0-9\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af"
    "\uf900-\ufaff\U00020000-\U0003ffff]+"
)
_SIGNED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]"
)


def _by_script(compared: Sequence[str]) -> Iterator[str]:
    """Tokens of a text that is not English: digits of any script as 0 to 9, and signs that are words one by one."""
    for word in compared:
        plain = word if word.isascii() else "".join(_digit(char) for char in word)
        if _SIGNED.search(plain):
            yield from _SIGN.findall(plain)
        else:
            yield plain


def _digit(char: str) -> str:
    return str(unicodedata.decimal(char)) if char.isdecimal() else char


def shaped(plain: str) -> Iterator[tuple[str, bool]]:
    """(word, whether it starts a sentence) for every word."""
    starts = True
    for word in plain.split():
        yield word.strip(_EDGES), starts
        starts = word[-1] in '.!?:*-\u2022"'


def _names(plain: str) -> Iterator[str]:
    """Words, folded and without 's, that have a capital where a sentence does not ask for one."""
    for found in _CAPITALISED.finditer(plain):
        word = found.group().strip(_EDGES)
        if not word or word == "I" or word.islower():
            continue
        before = plain[max(0, found.start() - _AWAY) : found.start()].rstrip()[-1:]
        starts = not before or before in '.!?:*-\u2022"'
        if (word[0].isupper() and not starts) or word[1:] != word[1:].lower():
            yield word.casefold().removesuffix("'s")


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
    return _NUMBER.fullmatch(word) is not None and _VERSION.fullmatch(word) is None


@lru_cache(maxsize=1 << 14)
def is_identifier(word: str) -> bool:
    """Versions, paths, addresses, handles, C++: what is more than letters and is not a plain number."""
    if is_number(word) or word in lexicon.NEGATION or word.startswith((UNIT_MARK, DAY_MARK)):
        return False
    return _IDENTIFIER.fullmatch(word) is not None


# --- what a word is about, as bits -------------------------------------------------------------------------------

DENIES, AMOUNTS, HEDGES, TENSES, TIMES, DIRECTS, NUMBERS, IDENTIFIES, UNITS = (1 << bit for bit in range(9))

_HALVES: Final = frozenset({UNIT_MARK + "am", UNIT_MARK + "pm"})
_LASTING: Final = frozenset(UNIT_MARK + unit for unit in lexicon.words("second minute hour day week month year"))
_TIME = re.compile(r"[0-9]{1,2}:[0-9]{2}|1[5-9][0-9]{2}s?|20[0-9]{2}s?|[0-9]{4}-[0-9]{2}(?:-[0-9]{2})?")
_LISTED: Final = (
    (DENIES, lexicon.NEGATION),
    (AMOUNTS, lexicon.QUANTIFIER),
    (HEDGES, lexicon.HEDGE),
    (TENSES, lexicon.TENSE),
    (TIMES, lexicon.DATE | lexicon.MONTHS.keys() | _HALVES),
    (DIRECTS, lexicon.DIRECTION),
)


@lru_cache(maxsize=1 << 16)
def about(word: str) -> int:
    """What a word is about: a sum of the bits above, 0 for most words."""
    bits = sum(bit for bit, words in _LISTED if word in words)
    if word.startswith(UNIT_MARK):
        return bits if word in _HALVES else bits | UNITS | TIMES * (word in _LASTING)
    if word.startswith(DAY_MARK):
        return NUMBERS | TIMES
    bits |= NUMBERS * is_number(word) | IDENTIFIES * is_identifier(word)
    return bits | TIMES if word[:1].isdigit() and _TIME.fullmatch(word) else bits


@dataclass(frozen=True, slots=True)
class Pair:
    """Two readings and what each says that the other does not."""

    a: Reading
    b: Reading
    only_a: tuple[str, ...]  # words of a's wording that b has not, in a's order, as often as they are missing
    only_b: tuple[str, ...]
    about_a: int  # what a's are about: bits
    about_b: int
    shared_order_differs: bool  # whether the words that both have come in another order
    known_names: frozenset[str]  # what either text writes as a name: a text in small letters has the other's too

    @property
    def differing(self) -> tuple[str, ...]:
        return (*self.only_a, *self.only_b)

    @property
    def about(self) -> int:
        return self.about_a | self.about_b

    @property
    def close(self) -> bool:
        """Whether the texts are one sentence with little changed; between loose paraphrases much differs anyway."""
        changed = len(self.only_a) + len(self.only_b)
        return changed <= max(3, (len(self.a.wording) - len(self.only_a)) // 2)

    @property
    def english(self) -> bool:
        return self.a.english and self.b.english

    @property
    def same_words(self) -> bool:
        return not self.only_a and not self.only_b

    def stems(self) -> tuple[frozenset[str], frozenset[str]]:
        """The stems of the words that only one text has."""
        return frozenset(map(stem, self.only_a)), frozenset(map(stem, self.only_b))


def side_by_side(a: Reading, b: Reading) -> Pair:
    """Two readings as a pair."""
    names = a.names | b.names
    if a.wording == b.wording:
        return Pair(a, b, (), (), 0, 0, shared_order_differs=False, known_names=names)
    only_a, kept_a = _parted(a, b)
    only_b, kept_b = _parted(b, a)
    differs = kept_a != kept_b
    if differs and not (only_a and only_b):
        shorter, longer = (a, b) if not only_a else (b, a)
        differs = not _is_within(shorter.wording, longer.wording)
    return Pair(a, b, tuple(only_a), tuple(only_b), _about(only_a), _about(only_b), differs, names)


def _about(words: Sequence[str]) -> int:
    bits = 0
    for word in words:
        bits |= about(word)
    return bits


def _parted(mine: Reading, theirs: Reading) -> tuple[list[str], list[str]]:
    """The words that only I have, the last occurrences of each, and the rest."""
    left = theirs.counts.copy()
    surplus: list[str] = []
    kept: list[str] = []
    for word in mine.wording:
        if left.get(word):
            left[word] -= 1
            kept.append(word)
        else:
            surplus.append(word)
    return surplus, kept


def _is_within(shorter: Sequence[str], longer: Sequence[str]) -> bool:
    """Whether the shorter one's words all come in the longer one, in their order."""
    rest = iter(longer)
    return all(word in rest for word in shorter)

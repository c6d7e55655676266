"""A text as words with their places: what specifics are read from, and what texts are aligned by."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Final

from consolidation.compact.words import ABBREVIATED, EVERYDAY, GRAMMAR
from consolidation.guards import lexicon
from consolidation.guards.reading import stem
from observations.normalise import tokens


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a text, without the marks at its edges."""

    text: str  # as written
    start: int  # code points
    end: int
    key: str  # folded, without 's, number words as digits: what it is compared by
    lower: str  # folded, as written otherwise: apostrophes straight, possessive kept
    starts: bool  # the first word of a sentence, a line, a list item, or after a colon
    joined: bool  # a hyphen or slash ties it to the word before it
    whole: bool = False  # an address, path or code that is one word whatever it holds


_M = "\u0300-\u036f"  # accents that stand apart from their letter
_W = rf"[\w{_M}]"
_DASHES: Final = "-\u2010\u2011"
_TOKEN = re.compile(
    rf"(?P<whole>(?:[a-z][a-z0-9+.]{{1,20}}://|www\.)[^\s<>\"']+"  # an address
    rf"|[\w.+-]+@[\w-]+(?:\.[\w-]+)+"  # an e-mail address
    rf"|(?<![\w/.])(?:~|\.{{1,2}})?(?:/[\w.@+-]+)+/?"  # a path
    rf"|[A-Za-z]:\\[^\s\"']+"
    rf"|[12]\d{{3}}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?(?![\w-]))"  # an ISO date
    rf"|(?:(?<![\w.,)\]])[-+\u2212](?=[$€£¥]?\d)|(?<!\w)[#@§](?=\w))?[$€£¥]?"
    rf"{_W}+(?:(?:['\u2019\u02bc](?=[^\W\d_])|\.(?![A-Z][a-z])(?=\w)|(?<=\d),(?=\d{{3}}(?!\d))|::"
    rf"|(?<=\d):(?=\d)|(?<=[A-Z]):(?=[A-Z])|[{_DASHES}](?=\w)|(?<=\d)[\u2012\u2013](?=\d)|[/\\&@#_+*=](?=\w)){_W}+)*"
    rf"(?:\s?[%‰](?!\w)|°[CF]?|[€£$¥](?!\w)|\+\+|(?<=[A-Za-z])\#(?!\w))?",
)
_URL_TAIL: Final = ".,;:!?)]}>"
_PARTS = re.compile(rf"[^{_DASHES}\u2012\u2013/&]+")
_MIXED = re.compile(r"(?=.*\d)(?=.*[^\W\d_])")
# Parts with letters and digits that are figures: 10th, 90s, 25mm, 5pm, 2x, 3D.
_FIGURE = re.compile(r"'?[$€£¥]?\d[\d.,:]*(?:st|nd|rd|th|s|[a-zµ°]{1,3}|[A-Z]{1,2}|%)?")
_BREAKS = re.compile(r"[!?\u2026\n\u2022\U0001f300-\U0001faff\u2600-\u27bf]|:\s|:$|\.(?!\s*,)|^\s*[-*]\s")
_INITIALS = re.compile(r"[A-Z](?:\.[A-Z])*")
_POSSESSIVE = re.compile(r"'s$|(?<=s)'$")


@lru_cache(maxsize=1 << 14)
def folded(text: str) -> str:
    """Case folded NFKC with straight apostrophes and hyphens."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text).translate(_STRAIGHT)
    return text.casefold()


_STRAIGHT: Final = {
    **dict.fromkeys(map(ord, "\u2018\u2019\u02bc"), "'"),
    **dict.fromkeys(map(ord, "\u2010\u2011\u2012\u2013\u2212"), "-"),
}


def words(text: str) -> tuple[Word, ...]:
    """The words of a text in order. Pure; any string will do."""
    found: list[Word] = []
    for token in _TOKEN.finditer(text):
        for start, end, joined, whole in _split(token):
            gap = text[found[-1].end : start] if found else "\n"
            starts = not joined and _starts(gap, found[-1].text if found else "")
            word = text[start:end]
            found.append(Word(word, start, end, word if whole else key(word), folded(word), starts, joined, whole))
    return tuple(found)


def _starts(gap: str, before: str) -> bool:
    """Whether a sentence starts after this gap; 'Dr.', 'J.K.' and 'p.m.' end none."""
    if _BREAKS.search(gap) is None:
        return False
    abbreviated = before.casefold() in ABBREVIATED or (before != "I" and _INITIALS.fullmatch(before) is not None)
    return not (abbreviated and gap.strip(" \"')") in (".", "") and "\n" not in gap)


def _split(token: re.Match[str]) -> Iterator[tuple[int, int, bool, bool]]:
    """(start, end, joined, whole) of the words in a token: codes stay whole, other compounds come apart."""
    text, start = token.group(), token.start()
    if token["whole"]:
        yield start, start + len(text.rstrip(_URL_TAIL)), False, True
        return
    parts = list(_PARTS.finditer(text))
    if len(parts) < 2 or _is_code(text, [part.group() for part in parts]):
        yield start, token.end(), False, len(parts) > 1
        return
    for at, part in enumerate(parts):
        signed = 1 if at == 0 and part.start() == 1 else 0  # a sign belongs to the first part
        yield start + part.start() - signed, start + part.end(), at > 0, False


def _is_code(text: str, parts: list[str]) -> bool:
    """GPT-4, A-113, COVID-19, 555-0199, 3f2a-99bc, AT&T, bin/bash; not 25-year-old, 10-15, and/or, Ann/Bob."""
    if "&" in text or text[0] in "#@" or any(mark in text for mark in "\\@#_+*="):
        return True
    digits = [part for part in parts if any(mark.isdigit() for mark in part)]
    if not digits:
        return "/" in text and not any(_is_plain(part) for part in parts)
    if any(_MIXED.match(part) and not _FIGURE.fullmatch(part) for part in digits):
        return True
    if len(digits) == len(parts):  # figures alone: a range, a telephone number, 24/7, 5/8/2023
        return "/" in text or (len(parts) > 2 and not _is_date(parts)) or any(part[0] == "0" for part in parts[1:])
    named = parts[0].isalpha() and not _is_plain(parts[0]) and parts[0].casefold() not in _BEFORE_FIGURES  # db-7
    return not _is_date(parts) and (named or any(part.isupper() and part.isalpha() for part in parts))


_BEFORE_FIGURES: Final = lexicon.words("mid pre post top sub under over non age ages aged early late since until")


def _is_plain(part: str) -> bool:
    lower = part.casefold()
    return part[:1].isupper() or lower in GRAMMAR or stem(lower) in EVERYDAY or bool(_number_word(lower))


def _is_date(parts: list[str]) -> bool:
    """8-May-2023 and the like, whose parts are read one by one."""
    return any(part[:3].casefold() in _MONTHS for part in parts)


_MONTHS: Final = frozenset(["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"])


@lru_cache(maxsize=1 << 15)
def key(word: str) -> str:
    """What a word is compared by: folded, without a possessive, 'not' for n't, digits for a number word."""
    lower = folded(word)
    if lower.endswith("n't") or lower == "cannot":
        return "not"
    lower = _POSSESSIVE.sub("", lower)
    if lower.isalpha():
        return _number_word(lower) or lower
    if _INITIALISM.fullmatch(lower):
        return lower.replace(".", "")
    return lower.replace(",", "") if _THOUSANDS.fullmatch(lower) else lower


def _number_word(lower: str) -> str:
    """The digits of a number word; empty for any other word."""
    digits = tokens(lower)
    return digits[0] if len(digits) == 1 and digits[0][:1].isdigit() else ""


_INITIALISM = re.compile(r"[^\W\d_]{1,2}(?:\.[^\W\d_]{1,2})+")
_THOUSANDS = re.compile(r"[-+$€£¥]*\d{1,3}(?:,\d{3})+(?:\.\d+)?[%€£$]?")


def sentences(read: tuple[Word, ...]) -> tuple[tuple[int, int], ...]:
    """The sentences of a text as half-open ranges of its words."""
    starts = [at for at, word in enumerate(read) if word.starts]
    return tuple(pairwise([*starts, len(read)]))

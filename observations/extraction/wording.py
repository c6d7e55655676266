"""What words a text is made of, as claims are compared with their turns. Rough: it finds, and proves nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final

from observations import normalise
from observations.normalise import MARKS, parsed

tokens = lru_cache(maxsize=1 << 12)(normalise.tokens)  # every check looks at the same few texts


def words(*lines: str) -> frozenset[str]:
    """The words of a list written as prose."""
    return frozenset(word for line in lines for word in line.split())


def by_first(*lines: str) -> dict[str, list[tuple[str, ...]]]:
    """The phrases of a list with commas, as their words, by the first of them."""
    found: dict[str, list[tuple[str, ...]]] = {}
    for phrase in (tuple(phrase.split()) for line in lines for phrase in line.split(",")):
        found.setdefault(phrase[0], []).append(phrase)
    return found


GRAMMAR: Final = words(
    "a an the and or but nor so if then than that this these those there here of in on at by to from with without",
    "into onto over under up down out off about for as is are was were be been being am has have had having do",
    "does did doing done can could will would shall should may might must not never i me my mine you your yours",
    "he him his she her hers it its we us our ours they them their theirs who whom whose which what when where",
    "why how all any some each every both either neither one own same other such only just also too very more",
    "most much many",
)
# Scripts without spaces: two neighbouring characters stand for a word.
_UNSPACED: Final = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff]+"
)


@lru_cache(maxsize=1 << 12)
def content(text: str) -> frozenset[str]:
    """The words of a text that say something, as stems."""
    return frozenset(stem(part) for token in tokens(text) if token not in GRAMMAR for part in _parts(token))


def _parts(token: str) -> Iterator[str]:
    if _UNSPACED.search(token):
        yield from (token[at : at + 2] for at in range(max(1, len(token) - 1)))
    else:
        yield from (part for part in re.split("[-/&]", token) if part and part not in GRAMMAR)


def shared(wanted: Iterable[str], said: frozenset[str]) -> frozenset[str]:
    """Those of some stems that are among others in one form or another."""
    beginnings: dict[str, list[str]] = {}
    for other in said:
        beginnings.setdefault(other[:3], []).append(other)
    return frozenset(
        word for word in wanted if word in said or any(_one(word, other) for other in beginnings.get(word[:3], ()))
    )


def _one(word: str, other: str) -> bool:
    """Whether two words are forms of one: they begin alike, and neither goes on for long."""
    common = next((at for at, pair in enumerate(zip(word, other, strict=False)) if pair[0] != pair[1]), None)
    common = min(len(word), len(other)) if common is None else common
    return common >= 3 and max(len(word), len(other)) - common <= 4 and min(len(word), len(other)) - common <= 2


@lru_cache(maxsize=1 << 14)
def stem(word: str) -> str:
    """A rough stem: irregular forms as their first one, endings off."""
    word = word.removesuffix("'s").removesuffix("'")
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if len(word) > 4 and word.endswith(("ies", "ied")):
        word = word[:-3] + "y"
    elif len(word) > 4 and word.endswith(("sses", "shes", "ches", "xes", "zes")):
        word = word[:-2]
    elif len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    elif len(word) > 5 and word.endswith("ing"):
        word = _undoubled(word[:-3])
    elif len(word) > 4 and word.endswith("ed"):
        word = _undoubled(word[:-2])
    return _IRREGULAR.get(word) or (word.removesuffix("e") if len(word) > 3 else word)


def _undoubled(word: str) -> str:
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "lsz" else word


def stems(*lines: str) -> frozenset[str]:
    """The stems of the words of a list written as prose."""
    return frozenset(map(stem, words(*lines)))


# What a speaker says and what is said of the speaker differ in these.
_IRREGULAR: Final = {
    form: forms.split()[0]
    for forms in (
        "begin began begun",
        "bring brought",
        "build built",
        "buy bought",
        "catch caught",
        "child kid kids children",
        "choose chose chosen",
        "come came",
        "cut cutting",
        "drink drank drunk",
        "drive drove driven",
        "eat ate eaten",
        "fall fell fallen",
        "father dad daddy",
        "feed fed",
        "feel felt",
        "fight fought",
        "find found",
        "fly flew flown",
        "foot feet",
        "get got gotten",
        "give gave given",
        "go goes went gone",
        "grow grew grown",
        "hear heard",
        "hold held",
        "keep kept",
        "know knew known",
        "leave left",
        "lose lost",
        "make made",
        "man men",
        "meet met",
        "mother mom mum mommy mama",
        "pay paid",
        "person people persons folk folks",
        "photo picture pic pics photograph",
        "ride rode ridden",
        "run ran",
        "say said",
        "see saw seen",
        "sell sold",
        "send sent",
        "show shown",
        "sing sang sung",
        "sit sat",
        "sleep slept",
        "speak spoke spoken",
        "spend spent",
        "stand stood",
        "start begin began begun",
        "swim swam swum",
        "take took taken",
        "teach taught",
        "tell told",
        "think thought",
        "understand understood",
        "wake woke woken",
        "wear wore worn",
        "wife wives",
        "win won",
        "woman women",
        "write wrote written",
    )
    for form in forms.split()
}


# --- sentences and clauses -------------------------------------------------------------------------------------------

_SENTENCE: Final = re.compile(
    r"[^.!?\u2026\u3002\uff01\uff1f\n]*[.!?\u2026\u3002\uff01\uff1f\n]*(?:[\"')\]\u201d\u2019]+)?", re.DOTALL
)
_SHORT: Final = re.compile(r"(?:^|\W)(?:Dr|Mr|Mrs|Ms|St|Jr|Prof|No|vs|[A-Z]|e\.g|i\.e)\.$")  # a stop that ends none
_ASKS: Final = re.compile(r"[?\uff1f\u061f\u037e]")
_JOINS: Final = words("but although though because so and or while whereas then")
_ALWAYS: Final = words("but although though because whereas")
_OPENS: Final = words("i we he she they it you my our this that there")  # after 'and', a clause of its own


def sentences(text: str) -> list[tuple[int, int]]:
    """Where the sentences of a text stand. A full stop inside a number or a word ends none."""
    found: list[tuple[int, int]] = []
    start = 0
    for match in _SENTENCE.finditer(text):
        end = match.end()
        inner = text[end - 1 : end] == "." and (text[end : end + 1].isalnum() or _SHORT.search(text[start:end]))
        if end == start or inner:
            continue
        found.append((start, end))
        start = end
    if start < len(text):
        found.append((start, len(text)))
    return [(first, last) for first, last in found if any(map(str.isalnum, text[first:last]))]


def asks(sentence: str) -> bool:
    """Whether a sentence is a question."""
    return _ASKS.search(sentence) is not None


def clauses(text: str) -> list[list[str]]:
    """The clauses of a text as their tokens."""
    found: list[list[str]] = [[]]
    marked = parsed(text).marked
    for at, token in enumerate(marked):
        after = marked[at + 1] if at + 1 < len(marked) else ""
        if token in MARKS or (token in _JOINS and (after in _OPENS or token in _ALWAYS)):
            found.append([])
        elif token not in MARKS:
            found[-1].append(token)
    return [clause for clause in found if clause]

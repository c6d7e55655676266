"""What words a text is made of, as claims are compared with their turns."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from observations.normalise import tokens


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_GRAMMAR: Final = _words(
    "a an the and or but nor so if then than that this these those there here of in on at by to from with without "
    "into onto over under up down out off about for as is are was were be been being am has have had having do does "
    "did doing done can could will would shall should may might must not never i me my mine you your yours he him "
    "his she her hers it its we us our ours they them their theirs who whom whose which what when where why how all "
    "any some each every both either neither one own same other such only just also too very more most much many"
)


def content(text: str) -> frozenset[str]:
    """The words of a text that say something, as stems."""
    return frozenset(stem(token) for token in tokens(text) if token not in _GRAMMAR)


@lru_cache(maxsize=1 << 14)
def stem(word: str) -> str:
    """A rough stem."""
    word = word.removesuffix("'s")
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
    return word.removesuffix("e") if len(word) > 3 else word


def _undoubled(word: str) -> str:
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "lsz" else word

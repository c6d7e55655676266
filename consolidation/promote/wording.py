"""What words a text is about: as terms that find related episodes, and as content that a fact must share with them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from consolidation.guards.lexicon import words
from consolidation.guards.reading import stem
from observations.normalise import tokens

# Scripts without spaces: two neighbouring characters stand for a word.
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+")
# English words of grammar: two texts that share nothing else have nothing in common.
_GRAMMAR: Final = words(
    "a an the and or but nor so if then than that this these those there here of in on at by to from with without "
    "into onto over under up down out off about for as is are was were be been being am has have had having do does "
    "did doing done can could will would shall should may might must not no never i me my mine you your yours he him "
    "his she her hers it its we us our ours they them their theirs who whom whose which what when where why how all "
    "any some each every both either neither one own same other such only just also too very more most much many"
)


def parts(compared: Iterable[str]) -> Iterator[str]:
    """Tokens as they are matched: stems, and pairs of characters where a script sets no spaces."""
    for token in compared:
        run = _UNSPACED.search(token)
        if run is None:
            yield stem(token)
        else:
            yield from (token[at : at + 2] for at in range(max(1, len(token) - 1)))


def content(text: str) -> frozenset[str]:
    """The parts of a text that say something: without words of grammar."""
    return frozenset(parts(token for token in tokens(text) if token not in _GRAMMAR))


def is_grammar(word: str) -> bool:
    """Whether a folded word is a word of grammar."""
    return word in _GRAMMAR

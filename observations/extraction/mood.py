"""Whether quoted words assert, ask, deny or only wish, and whether the claim made of them does the same."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from observations.extraction.wording import (
    asks,
    by_first,
    clauses,
    content,
    sentences,
    shared,
    stem,
    stems,
    tokens,
    words,
)

# Words that deny, as the tokens of `normalise` hold them ("don't" is "do not").
NOT: Final = words(
    "not no no, no-one none never nobody nothing nowhere neither nor without cannot hardly barely scarcely rarely",
    "nah nope ain't nicht kein keine keinen keinem keiner niemals nie ohne pas jamais aucun sans nunca ningún non",
    "nessuno senza não nem sem niet geen nooit zonder inte aldrig ikke aldri не нет никогда без bez",
)
# Words that do so inside other words: who cannot stand mushrooms hates them.
_AGAINST: Final = stems(
    "hate dislike detest avoid refuse reject decline quit stop cease end lack unable allergic intolerant fail",
    "lose miss difficult difficulty hard tough struggle challenge against less except former formerly previous",
    "previously instead rather skip forget cancel abandon prevent disagree impossible rare seldom few little",
    "absent free gone anymore",
)
_UN: Final = re.compile(r"(?:un|in|im|dis|non|ir|il|mis)[a-z]{4,}|[a-z]{2,}less(?:ly|ness)?")
# What holds a 'not' or a 'will' and denies and supposes nothing.
_IDIOMS: Final = by_first(
    "not only, not just, no doubt, no problem, no worries, no matter, no wonder, can not wait, could not wait",
    "not far, could not be, could not agree, can not agree, not to mention, do not worry, why not, not bad",
    "never forget, do not forget, can not help but, could not help but, nothing better, nothing like",
    "nothing beats, not the only, if not, or not, can not believe, could not believe, can not stop",
    "could not stop, never fails, not give up, never give up, nothing but, do not you, is not it, are not you",
    "is not that, can not imagine, not alone, no need, can not deny, do not mind, wanted to let you know",
    "want to let you know, wanted to say, wanted to tell you, wanted to share, will always, will never",
)
_HEDGES: Final = words(
    "if unless whether maybe perhaps might wish wishes wished hope hopes hoped hoping want wants wanted wanting",
    "wanna plan plans planned planning consider considering dream dreams would should gonna will shall suppose",
    "probably possibly someday suggest suggests suggested recommend recommends recommended propose proposed wenn ob",
    "vielleicht möchte peut-être quizás forse",
)
# What a claim may say of what is not so yet, or only thought.
_CAREFUL: Final = stems(
    "could may can interest aim goal intend look forward excite suggest recommend propose encourage advise offer open",
    "if unless believe value feel think desire eager express motivate aspire aspiration curious agree promise",
    "willing try whether seek need idea potential potentially possible possibility ambition expect anticipate",
    "await future upcoming maybe next soon tomorrow wish hope want plan consider dream perhaps might wanna would",
    "should gonna will shall suppose probably possibly someday wenn ob vielleicht möchte peut-être quizás forse",
)
# What a claim says that only tells of a question.
_REPORTS: Final = stems("ask inquire enquire curious wonder suggest recommend offer propose invite")
_AFTER: Final = 8  # words that a 'not' or an 'if' reaches, at most
_ANY_TIME: Final = stems("now today currently recently lately time really thing way day much lot")
_TAG: Final = re.compile(
    r"(?:,|\s[-\u2013\u2014])\s*(?:huh|right|eh|ne|oder|no|verdad|you know|don't you think|"
    r"(?:is|was|do|does|did|are|has|have|would|ca|wo)n't \w+)\s*[?\uff1f]+",
    re.IGNORECASE,
)
_PIECE: Final = re.compile(
    r"\s[-\u2013\u2014]+\s|[,;:\u2014]\s+(?:so\s+|and\s+|but\s+)?|\s+(?:so|and|but)\s+(?=(?:how|what)\b)"
)
_ASKING: Final = words(
    "do does did is are was were am have has had can could would will shall should may might what where who whom",
    "whose how why when which any want wanna ever remember heard seen met been maybe not don't didn't",
)
# Where a thought of its own begins: a 'not' before it does not reach behind it.
_TURNS: Final = re.compile(r"[;\n]|\s[-\u2013\u2014]+\s|\u2014|,?\s+(?=but\b)|\bexcept\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Told:
    """What a quote tells where it stands: whole thoughts, as a 'not' before the quoted words belongs to them."""

    stated: str
    asked: bool  # whether some of it was a question, which is left out of `stated`


def told(text: str, start: int, end: int) -> Told:
    """The thoughts in which words stand, and what of them is stated."""
    places = [place for place in sentences(text) if place[0] < end and start < place[1]]
    around = [_around(text, *place, start, end) for place in places]
    stated = [piece if not asks(piece) else _beside_the_question(piece) for piece in around]
    return Told(stated=" ".join(stated).strip(), asked=any(map(asks, around)))


def _around(text: str, first: int, last: int, start: int, end: int) -> str:
    """The part of a sentence that belongs to the words from start to end."""
    marks = [match.start() for match in _TURNS.finditer(text, first, last)]
    first = max((mark for mark in marks if mark <= start), default=first)
    last = min((mark for mark in marks if mark >= end), default=last)
    return text[first:last]


def _beside_the_question(sentence: str) -> str:
    """What a sentence that asks states beside: 'I moved - how about you?', and 'It is cold, right?'."""
    tag = _TAG.search(sentence)
    if tag and "you" not in tokens(sentence[: tag.start()]):
        return sentence[: tag.start()]
    pieces = _PIECE.split(sentence)[:-1]
    return ", ".join(piece for piece in pieces if _states(tokens(piece)))


def _states(said: Sequence[str]) -> bool:
    return len(said) > 2 and said[0] not in _ASKING


def only_asked(*, text: str, about: frozenset[str], told: Told) -> bool:
    """Whether nothing but a question speaks of what the claim says. That somebody asks may be said."""
    if not told.asked or not _REPORTS.isdisjoint(map(stem, tokens(text))):
        return False
    return not shared(about, content(told.stated))


def denial_lost(*, text: str, about: frozenset[str], told: Told, turn: str) -> bool:
    """Whether one of the two denies and the other does not.

    `about`: the stems of the claim, without names. `turn`: everything that the speaker says: a claim may have a denial
    from beside the quoted words, as long as these do not assert what it denies.
    """
    if _denies(text):
        return not _denies(told.stated, broadly=True) and (
            _contradicts(text, told.stated) or not _denies(turn, broadly=True)
        )
    if _denies(text, broadly=True):
        return False
    careful = not _CAREFUL.isdisjoint(map(stem, tokens(text)))
    about -= _ANY_TIME
    return any(
        shared(about, content(" ".join(reached)))
        for reached in _reached(told.stated, NOT)
        if not (reached and _against(reached[0])) and not (careful and "yet" in reached)
    )


def _contradicts(text: str, stated: str) -> bool:
    """Whether what a claim denies is what the words speak of."""
    said = content(stated)
    return any(shared(content(" ".join(reached)), said) for reached in _reached(text, NOT))


def unsure(*, text: str, about: frozenset[str], told: Told) -> bool:
    """Whether the words only wish, plan or suppose all of what the claim asserts."""
    if not _CAREFUL.isdisjoint(map(stem, tokens(text))):
        return False
    found = shared(about - _ANY_TIME, content(told.stated))
    reached = frozenset[str]().union(*(content(" ".join(each)) for each in _reached(told.stated, _HEDGES)))
    return bool(found) and not found - shared(found, reached)


def differ(*, text: str, key: str) -> bool:
    """Whether a claim denies or supposes and its key does not, or the other way round."""
    return _denies(text) != _denies(key) or _supposes(text) != _supposes(key)


def opposed(one: str, other: str) -> bool:
    """Whether one of two texts denies, rejects or supposes something and the other does not."""
    rejects = (any(stem(word) in _AGAINST for word in tokens(text)) for text in (one, other))
    return differ(text=one, key=other) or len(set(rejects)) > 1


def _supposes(text: str) -> bool:
    return not _HEDGES.isdisjoint(tokens(text))


def _denies(text: str, *, broadly: bool = False) -> bool:
    if any(word in NOT or word.endswith("n't") for clause in clauses(text) for word in _plain(clause)):
        return True
    said = tokens(text)
    return broadly and (any(map(_against, said)) or "used to" in " ".join(said))


def _against(word: str) -> bool:
    return word in NOT or stem(word) in _AGAINST or _UN.fullmatch(word) is not None


def _reached(text: str, openers: frozenset[str]) -> Iterator[list[str]]:
    """For each word that denies or supposes, what follows it in its clause."""
    for clause in clauses(text):
        plain = _plain(clause)
        for at, word in enumerate(plain):
            if word in openers:
                yield plain[at + 1 : at + 1 + _AFTER]


def _plain(clause: Sequence[str]) -> list[str]:
    """A clause without the idioms that hold a 'not' and deny nothing."""
    plain: list[str] = []
    at = 0
    while at < len(clause):
        idioms = _IDIOMS.get(clause[at], ())
        idiom = next((one for one in idioms if tuple(clause[at : at + len(one)]) == one), ())
        if not idiom:
            plain.append(clause[at])
        at += len(idiom) or 1
    return plain

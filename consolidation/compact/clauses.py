"""Sentences as the claims in them: who does what to whom, and what is denied. Word by word, without grammar (C9)."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product
from typing import Final

from consolidation.compact.finding import Demand, Sort
from consolidation.compact.specifics import Text, present_key
from consolidation.compact.words import GRAMMAR
from consolidation.guards import lexicon
from consolidation.guards.lexicon import words

# --- who does what to whom -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Voices:
    """Whom a text means by 'I' and by 'you': keys of names, empty where nobody can tell."""

    me: str = ""
    you: str = ""


@dataclass(frozen=True, slots=True)
class Mention:
    """One name in a sentence."""

    name: str  # the word's key
    word: int  # which word of the text
    owns: bool  # followed by what is theirs: 'Ann's', 'my'


@dataclass(frozen=True, slots=True)
class Doing:
    """Somebody, what they do, and the next one named; of a passive the one who does it comes first all the same."""

    doer: str
    does: str  # a stem, or the preposition that alone stands between two names
    other: str
    first: int  # words of the text, both included
    last: int


_ME: Final = words("i me my mine myself i'm i've i'd i'll")
_YOU: Final = words("you your yours yourself you're you've you'd you'll")
_OWNING: Final = words("my your")
_BETWEEN: Final = words("to from than before after over under above below behind for against")
_JOINING: Final = words("and or & nor")
_TOGETHER: Final = 6  # names of a group that are looked at
_PARTING: Final = words("and but while then")
_BEING: Final = words("is are was were be been being am gets got get")
_MODIFIERS: Final = words("really just also still very even ever again already soon then now finally recently once not")
# 'Ann met Bob' is 'Bob met Ann'; what is said around a name is no claim about it.
_MUTUAL: Final = frozenset(
    present_key(word)
    for word in words(
        "meet marry talk chat discuss speak converse resemble hug kiss agree differ sister brother sibling cousin "
        "friend partner colleague neighbour neighbor twin roommate teammate catch hang greet exchange"
    )
)
_STOPS = re.compile(r"[;:()\[\]\u2014\u2013!?]")
_ADDRESSED = re.compile(r"^\s*(?:[,.!?;:]|$)")


def names_of(texts: Sequence[Text], *, perhaps: bool = False) -> frozenset[str]:
    """The keys of words that are names by a capital inside a sentence of any of the texts; with `perhaps` also of
    unusual words that begin one.
    """
    demands = {Demand.FIRM, Demand.LOOSE} if perhaps else {Demand.FIRM}
    return frozenset(
        text.words[specific.first].key
        for text in texts
        for specific in text.specifics
        if specific.sort is Sort.NAME and specific.demand in demands
    )


def leading(texts: Sequence[Text], *, names: frozenset[str]) -> frozenset[str]:
    """Those of the names with which some sentence begins: people, rather than what they speak of."""
    return frozenset(text.words[first].key for text in texts for first, _ in text.sentences) & names


def doings(text: Text, *, names: frozenset[str], voices: Voices = Voices()) -> Iterator[Doing]:
    """Who does what to whom, sentence by sentence; names that are joined ('Ann and Bob') do it together.

    A question says nothing of the kind.
    """
    for first, last in text.sentences:
        if _asks(text, last):
            continue
        groups = _groups(text, list(_mentions(text, first, last, names, voices)))
        for left, right in pairwise(groups):
            yield from _between(text, left, right, last)


def in_order(text: Text, doing: Doing, *, names: frozenset[str], voices: Voices) -> bool:
    """Whether a sentence has the doer, the deed and the other in this order, whatever stands between them."""
    for first, last in text.sentences:
        mentions = list(_mentions(text, first, last, names, voices))
        doers = [mention.word for mention in mentions if mention.name == doing.doer]
        others = [mention.word for mention in mentions if mention.name == doing.other]
        if doers and others and doers[0] < others[-1] and not _is_passive(text, doers[0], others[-1]):
            between = range(doers[0] + 1, others[-1] + 3)
            if any(_means(text, at, doing.does) for at in between if at < last):
                return True
    return False


def _means(text: Text, at: int, does: str) -> bool:
    return does.removesuffix(" and") in (present_key(text.words[at].key), text.words[at].lower)


def _mentions(text: Text, first: int, last: int, names: frozenset[str], voices: Voices) -> Iterator[Mention]:
    for at in range(first, last):
        word = text.words[at]
        if word.lower in _ME and voices.me:
            yield Mention(voices.me, at, word.lower in _OWNING)
        elif word.lower in _YOU and voices.you:
            yield Mention(voices.you, at, word.lower in _OWNING)
        elif word.key in names and word.text != word.text.lower() and not _is_addressed(text, at, first, voices):
            yield Mention(word.key, at, word.lower != word.key and word.lower.endswith(("'s", "s'")))


def _is_addressed(text: Text, at: int, first: int, voices: Voices) -> bool:
    """'Well done, Ann!', in a turn also 'Ann, come here': somebody is spoken to."""
    after = text.text[text.words[at].end : text.words[at].end + 2]
    if _ADDRESSED.match(after) is None:
        return False
    if at == first:
        return bool(voices.me) and after.startswith(",")
    return text.text[text.words[at - 1].end : text.words[at].start].strip() == ","


def _groups(text: Text, mentions: Sequence[Mention]) -> list[list[Mention]]:
    """The names of a sentence; those with nothing but 'and' or a comma between them are one group."""
    groups: list[list[Mention]] = []
    for mention in mentions:
        joined = groups and all(text.words[at].lower in _JOINING for at in range(groups[-1][-1].word + 1, mention.word))
        if joined:
            groups[-1].append(mention)
        else:
            groups.append([mention])
    return groups


def _between(text: Text, left: Sequence[Mention], right: Sequence[Mention], end: int) -> Iterator[Doing]:
    start, stop = left[-1].word, right[0].word
    if _STOPS.search(text.text[text.words[start].end : text.words[stop].start]):
        return
    passive = _is_passive(text, start, stop)
    for does in _deeds(text, left[-1], right[0], end):
        for one, other in product(left[-_TOGETHER:], right[:_TOGETHER]):
            doer, whom = (other, one) if passive else (one, other)
            if one.name != other.name:
                yield Doing(doer.name, does, whom.name, one.word, other.word)


def _is_passive(text: Text, start: int, stop: int) -> bool:
    """'Was beaten by Bob', 'a film made by Bob': who does it comes last."""
    return any(text.words[at].lower == "by" for at in range(max(start + 1, stop - 2), stop))


def _deeds(text: Text, left: Mention, right: Mention, end: int) -> list[str]:
    """What is done: the first word that says something, also behind what somebody owns; else a preposition.

    Of 'Ann read it and called Bob' it is the call; 'Ann read it and Bob called' is marked, and met by its like only.
    """
    inside = [at for at in range(left.word + 1, right.word) if _says(text, at)]
    joints = [at for at in range(left.word + 1, right.word) if text.words[at].lower in _PARTING]
    beside = bool(inside and joints and joints[-1] > inside[-1])
    if joints and not beside:
        inside = [at for at in inside if at > joints[-1]]
    deeds = [present_key(text.words[at].key) for at in inside[: 2 if left.owns else 1]]
    if not inside:
        deeds = _without_deed(text, left, right, end)
    alone = beside or (inside and inside[0] + 1 < end and text.words[inside[0] + 1].lower == "about")
    return [deed + " and" * beside for deed in deeds if alone or deed not in _MUTUAL]


def _without_deed(text: Text, left: Mention, right: Mention, end: int) -> list[str]:
    """'Ann is Bob's boss', 'Oslo to Rome': what stands for a deed between two names with grammar alone between them."""
    between = [text.words[at].lower for at in range(left.word + 1, right.word)]
    if right.owns and right.word + 1 < end and not _BEING.isdisjoint(between):
        return [present_key(text.words[right.word + 1].key)]
    return between if len(between) == 1 and between[0] in _BETWEEN else []


def _says(text: Text, at: int) -> bool:
    word = text.words[at]
    return word.key not in GRAMMAR and word.lower not in GRAMMAR and word.key not in _MODIFIERS


def _asks(text: Text, last: int) -> bool:
    """Whether a question mark ends the sentence that ends before this word."""
    ends = text.words[last].start if last < len(text.words) else len(text.text)
    return "?" in text.text[text.words[last - 1].end : ends]


# --- what is denied --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Clause:
    """A part of a sentence between two marks or conjunctions."""

    first: int  # words of the text, half-open
    last: int
    content: frozenset[str]  # stems of the words that say something
    sentence: frozenset[str]  # those of the whole sentence
    denied: dict[str, tuple[int, int]]  # stem of what the only denial is about -> the words of the denial and of it
    shaded: frozenset[str]  # stems that may be denied: near any word that denies, doubts or asks
    asks: bool


_CUT = re.compile(r"[,;:()\[\]\u2014\u2013!?\"\u201c\u201d]")
_TURNING: Final = words("but while because although though since when if unless whereas so which who")
_DENYING: Final = words(
    "isnt arent wasnt werent dont doesnt didnt wont hasnt havent hadnt couldnt wouldnt shouldnt cant "
    "not never no without nobody nothing none neither nor hardly barely scarcely no-one"
)
# Words that deny without a 'not': they excuse, they never accuse.
_DOUBTING: Final = (
    lexicon.NEGATION
    | _DENYING
    | words(
        "yet instead only unable stop miss missed missing skip skipped skips refuse refused decline declined declines "
        "cancel cancelled canceled postpone postponed delay delayed delays struggle struggled struggling unless if "
        "whether might may could would hope hopes hoped wish wishes wished discuss discusses discussed discussing "
        "consider considers considering future want wants wanted plan plans planned almost nearly than doubt "
        "despite until before too lest longer away against rather unlike reject rejected rejects rejecting fear"
    )
)
_NO_DENIAL: Final = words("only just sure wait help worry believe mind even better wrong doubt problem forget feel")
_NEAR: Final = 5  # words that say something within which a denial may be about a word
_ABOUT: Final = 3  # words of grammar between a denial and what it is about
_ADVERBS: Final = words("going gonna able really actually ever even yet quite fully")


def clauses(text: Text, *, names: frozenset[str]) -> Iterator[Clause]:
    """The clauses of a text, each with what it denies. 'Tim' is not 'time', whatever their stems are."""
    for first, last in text.sentences:
        asks = _asks(text, last)
        cuts = [at for at in range(first + 1, last) if _is_cut(text, at)]
        whole = [_clause(text, start, stop, names, asks=asks) for start, stop in pairwise([first, *cuts, last])]
        said = frozenset[str]().union(*(clause.content for clause in whole))
        yield from (replace(clause, sentence=said) for clause in whole)


def _is_cut(text: Text, at: int) -> bool:
    gap = text.text[text.words[at - 1].end : text.words[at].start]
    return text.words[at].lower in _TURNING or _CUT.search(gap) is not None


def _clause(text: Text, first: int, last: int, names: frozenset[str], *, asks: bool) -> Clause:
    telling = [at for at in range(first, last) if _says(text, at) and text.words[at].lower not in _DENYING]
    stems = {at: stem_at(text, at, names) for at in telling}
    doubts = [at for at in range(first, last) if {text.words[at].key, text.words[at].lower} & _DOUBTING]
    starts = {doubt: bisect_left(telling, doubt) for doubt in doubts}
    shaded = {stems[at] for start in starts.values() for at in telling[start : start + _NEAR]}
    doubtful = {stems[at] for at in telling if at in starts}
    denied: dict[str, tuple[int, int]] = {}
    if len(doubts) == 1 and text.words[doubts[0]].key in _DENYING:  # two of them may cancel out
        target = _target(text, doubts[0], telling)
        if target is not None:
            denied[stems[target]] = (doubts[0], target)
    content = frozenset(stems.values()) - doubtful
    return Clause(first, last, content, content, denied, frozenset(shaded), asks)


def stem_at(text: Text, at: int, names: frozenset[str]) -> str:
    """What a word is compared by: its stem, or the name that it is."""
    word = text.words[at]
    return f"n:{word.key}" if word.key in names and word.text != word.text.lower() else present_key(word.key)


def _target(text: Text, doubt: int, telling: Sequence[int]) -> int | None:
    """The word that a denial is about; None where it denies nothing ('not only', 'can't wait') or nobody can tell."""
    about = next((at for at in telling if at > doubt and text.words[at].lower not in _ADVERBS), None)
    if about is None or about - doubt > _ABOUT + 1:
        return None
    if doubt and text.words[doubt - 1].lower == "time":  # long time no see
        return None
    if text.words[doubt].key == "nothing" and text.words[doubt + 1].lower in ("like", "but"):
        return None
    skipped = {text.words[at].lower for at in range(doubt + 1, about + 1)}
    return about if _NO_DENIAL.isdisjoint(skipped) else None

"""Whether what a model says of some episodes is in them: quotes, numbers, names, and no words of our own prompt (C3).

Each of these can only refuse. None of them proves that the episodes mean what the fact says: the quotes are shown to
whoever reviews it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import takewhile
from typing import Final

from consolidation.guards import lexicon
from consolidation.guards.reading import is_identifier, is_number, stem
from consolidation.promote.asking import own_words
from consolidation.promote.wording import content, is_grammar
from observations.normalise import is_english, tokens
from observations.records import EpisodeRecord

_RUN: Final = 5  # words in a row that only our prompt has
_SHARE: Final = 0.6  # of a fact's own words that only our prompt has
_FIGURES = re.compile(r"[0-9]+(?:[.,:/][0-9]+)*")
_CLAUSE_ENDS = re.compile(r"[.!?;:,\n\u2013\u2014\u2026]")
_SENTENCE_ENDS = ".!?:\u2026"
_WORD = re.compile(r"[^\W_]+(?:['\u2019-][^\W_]+)*")
_SOMEBODY: Final = lexicon.words("i user users assistant agent operator speaker person people everyone team customer")
_VERBAL: Final = ("s", "ed", "ing")  # endings of a first word that begins a sentence without its subject
_ANYBODY: Final = frozenset(map(stem, _SOMEBODY))
_LONG_ENOUGH: Final = 5  # letters in which two forms of a name agree, where endings change (not in English)


@dataclass(frozen=True, slots=True)
class Told:
    """What one episode holds, as facts are compared with it; its speaker and role are words of it."""

    content: frozenset[str]
    words: frozenset[str]
    figures: frozenset[str]
    forms: frozenset[str]  # what a name may be written as
    spaced: str  # its tokens with single spaces, also at both ends


def told(*, episode: EpisodeRecord, shown: str) -> Told:
    """What an episode holds in the part of it that the model read."""
    text = f"{shown}\n{episode.speaker} . {episode.role}"
    compared = tokens(text)
    return Told(
        content=content(text),
        words=frozenset(compared),
        figures=frozenset(figure for word in compared for figure in _figures(word)),
        forms=frozenset((*compared, *(form for part in _parts(text) for form in (part, stem(part))))),
        spaced=_spaced(compared),
    )


def denied(*, text: str, start: int, fact: str) -> bool:
    """Whether the words from `start` follow a 'not' or the like in their clause, while the fact denies nothing."""
    before = _CLAUSE_ENDS.split(text[:start])[-1]
    return not lexicon.NEGATION.isdisjoint(tokens(before)) and lexicon.NEGATION.isdisjoint(tokens(fact))


def plainly(*, text: str, start: int, end: int, fact: str) -> bool:
    """Whether every word of the fact that says something, names apart, stands in the clauses of the quoted words in one
    form or another, and a denial where it denies.

    That does not show that they say it. But a fact in words of its own, or one that denies what they tell, is read by a
    person: "hates green tea" is not what "I had green tea" says.
    """
    before = _CLAUSE_ENDS.split(text[:start])[-1]
    clause = before + text[start:end]
    words, said = content(fact), content(clause)
    shared = not words or not words.isdisjoint(said)
    shared = shared and all(_says(word, said) for word in words - _capitalised(fact))
    denies = not lexicon.NEGATION.isdisjoint(tokens(fact))
    return shared and (not denies or not lexicon.NEGATION.isdisjoint(tokens(clause)))


_FORMS: Final = {
    form: forms.split()[0]
    for forms in (
        "be is are was were been am",
        "begin began begun",
        "bring brought",
        "build built",
        "buy bought",
        "come came",
        "do did done does",
        "drink drank drunk",
        "drive drove driven",
        "eat ate eaten",
        "feed fed",
        "feel felt",
        "find found",
        "fly flew flown",
        "get got",
        "give gave given",
        "go goes went gone",
        "grow grew grown",
        "have has had",
        "keep kept",
        "leave left",
        "make made",
        "meet met",
        "pay paid",
        "ride rode ridden",
        "run ran",
        "say said",
        "see saw seen",
        "sell sold",
        "send sent",
        "sing sang sung",
        "sit sat",
        "sleep slept",
        "speak spoke spoken",
        "spend spent",
        "swim swam swum",
        "take took taken",
        "teach taught",
        "tell told",
        "wear wore worn",
        "win won",
        "write wrote written",
    )
    for form in forms.split()
}  # of one verb: what happened often is told in the past and is true in the present
_ENDING: Final = 4  # letters that a form may add to what it shares with another: travels, travelling


def _says(word: str, said: frozenset[str]) -> bool:
    """Whether a word, or another form of it, is among these."""
    return any(_base(word) == _base(other) or _one_stem(_base(word), _base(other)) for other in said)


def _base(word: str) -> str:
    return _FORMS.get(word) or _FORMS.get(word.removesuffix("s")) or _FORMS.get(word.removesuffix("ing")) or word


def _one_stem(word: str, other: str) -> bool:
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(word, other, strict=False)))
    return shared >= 3 and max(len(word), len(other)) - shared <= _ENDING and min(len(word), len(other)) - shared <= 2


def _capitalised(fact: str) -> frozenset[str]:
    """Folded words that are written with a capital: whether the episodes hold them is another check."""
    return frozenset(part for word in fact.split() if word[:1].isupper() for part in content(word))


def keyed(*, text: str, key: Sequence[str]) -> bool:
    """Whether the parts of a key that say something each share a word with the fact: a key decides what a row is merged
    with and what it contradicts, so one of another claim is read by a person.
    """
    words = content(text)
    return all(not (said := content(part) - _ANYBODY) or not said.isdisjoint(words) for part in key)


def in_source(*, text: str, key: Sequence[str], sources: Sequence[Told]) -> bool:
    """Whether a fact is of its episodes: every number and name in one of them, some word shared, none borrowed from us.

    `key`: subject, predicate and object, which are held to the same.
    """
    words = content(text)
    shared = not words or any(not words.isdisjoint(source.content) for source in sources)
    return (
        shared
        and not _ours(text, sources)
        and _specifics_in(" . ".join([text, *key]), sources)
        and _names_in(text, key, sources)
    )


# --- our own words ---------------------------------------------------------------------------------------------------


@cache
def _prompt() -> tuple[str, frozenset[str]]:
    return _spaced(tokens(own_words())), content(own_words())


def _spaced(compared: Sequence[str]) -> str:
    return f" {' '.join(compared)} "


def _ours(text: str, sources: Sequence[Told]) -> bool:
    """Whether a fact is made of our prompt: five of its words in a row, or most of the words that say something."""
    prompt, vocabulary = _prompt()
    compared = tokens(text)
    runs = (_spaced(compared[at : at + _RUN]) for at in range(len(compared) - _RUN + 1))
    if any(run in prompt and not any(run in source.spaced for source in sources) for run in runs):
        return True
    words = content(text)
    borrowed = words.difference(*(source.content for source in sources)) & vocabulary
    return len(borrowed) > 1 and len(borrowed) >= _SHARE * len(words)


# --- numbers and names -----------------------------------------------------------------------------------------------


def _specifics_in(text: str, sources: Sequence[Told]) -> bool:
    """Whether every figure of the text, and every identifier without figures, stands in one of the sources."""
    figures = frozenset[str]().union(*(source.figures for source in sources))
    for word in tokens(text):
        wanted = _figures(word)
        specific = not wanted and (is_number(word) or is_identifier(word))
        if not figures.issuperset(wanted) or (specific and not any(word in source.words for source in sources)):
            return False
    return True


def _figures(word: str) -> list[str]:
    return [figure.replace(",", "") for figure in _FIGURES.findall(word)]


def _names_in(text: str, key: Sequence[str], sources: Sequence[Told]) -> bool:
    known = frozenset[str]().union(*(source.forms for source in sources))
    english = is_english(tokens(text))
    return all(_held(name, known, english=english) for name in _named(text, key))


def _named(text: str, key: Sequence[str]) -> Iterator[str]:
    """Words, folded, that are names by their capital: inside a sentence, in subject or object, or before its verb."""
    subject, _, value = key
    words = list(_WORD.finditer(text))
    for word in words[1:]:
        starts = text[: word.start()].rstrip(" \"'(").endswith(tuple(_SENTENCE_ENDS))
        if not starts:
            yield from _capital(word.group())
    for word in (*_WORD.finditer(subject), *_WORD.finditer(value)):
        yield from _capital(word.group())
    about = {part for part in _parts(subject) if not is_grammar(part)}
    if words and about.isdisjoint(_parts(text)) and not words[0].group().endswith(_VERBAL):
        yield from _capital(words[0].group())


def _capital(word: str) -> list[str]:
    """The parts of a word that has a capital, folded; none of 'I' and 'I've'."""
    parts = list(_parts(word))
    return parts if word != word.lower() and parts[0] != "i" else []


def _parts(text: str) -> Iterator[str]:
    """The words of a text, folded, without 's; compounds come apart."""
    for word in _WORD.findall(text):
        for part in re.split("[-'\u2019]", word.removesuffix("'s").removesuffix("\u2019s")):
            yield part.casefold()


def _held(name: str, known: frozenset[str], *, english: bool) -> bool:
    if is_grammar(name) or name in _SOMEBODY or name in lexicon.QUANTIFIER or name in known or stem(name) in known:
        return True
    return not english and any(_inflected(name, form) for form in known)


def _inflected(name: str, form: str) -> bool:
    """Whether two words may be one in two cases: long enough, and the same but for an ending."""
    shorter, longer = sorted((name, form), key=len)
    least = max(_LONG_ENOUGH, len(shorter) - 1)
    return len(longer) - len(shorter) <= 3 and longer[:least] == shorter[:least]

"""SELECT: of what was found, which rows a prompt shows, and which of them are outdated (R4-R6).

The rule for a prompt without a model. It knows dates, keys and words, never meaning: a mark costs a reader a look, so
nothing is left out but what is said twice. English words decide what is unfinished; another language is marked less.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import IntEnum
from functools import lru_cache
from typing import Final, NamedTuple

from observations.normalise import tokens

# Two rows about the same, so far apart in age, that nobody compared: the older one is no news any more. How many words
# they share, and which part that is of the shorter and of the longer text. Measured on 1,283 observations of real
# conversations (docs/decisions/0018).
APART: Final = timedelta(days=14)
_ENDED: Final = (1, 0.6, 0.0)  # the older was unfinished, and the newer says that something is done
_HINTED: Final = (2, 0.6, 0.3)  # one of both
_ALIKE: Final = (4, 0.8, 0.8)  # neither


def _of(text: str) -> frozenset[str]:
    return frozenset(text.split())


_UNFINISHED: Final = _of(
    "wait waiting waits awaiting awaits pending blocked blocking stuck unresolved unfinished ongoing upcoming planned "
    "planning plans intends considering scheduled expects expecting expected hoping soon yet investigating "
    "working broken failing tbd todo"
)
_FINISHED: Final = _of(
    "shipped ships fixed done resolved solved finished completed complete landed merged released deployed delivered "
    "closed cancelled canceled arrived received approved rejected ended stopped launched live passed works"
)
_GRAMMAR: Final = _of(
    "a an the and or but if of to in on at by for from with without as is are was were be been being am do does did "
    "have has had having will would can could should may might must shall not no it its this that these those he she "
    "they we i you his her their our my your him them us me who whom which what when where why how there here so than "
    "then too very just also about into over after before during between through up down out off again now still "
    "already get got going go goes"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A row that was found, or that stands beside one that was under the same subject and predicate."""

    id: int
    text: str
    said_at: datetime  # the earliest time anyone said it
    text_key: int  # of the normalised text
    subject_key: int = 0  # 0 where absent, as the other keys
    sp_key: int = 0
    spo_key: int = 0
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    rank: int = 0  # of whose word it is; a lower one outdates nothing
    compared: bool = False  # with what stood when it was written
    fades: bool = True
    relevant: bool = True  # to what is asked


@dataclass(frozen=True, slots=True)
class Chosen:
    """One row that is shown, and whether it is marked."""

    id: int
    outdated: bool


def chosen(candidates: Sequence[Candidate], *, now: datetime) -> tuple[Chosen, ...]:
    """The relevant rows, best first as given, each claim once; what is outdated comes last and is marked.

    A row that outdates a relevant one takes its place, relevant by itself or not.
    """
    rows = _once(candidates, now)
    at = {row.id: place for place, row in enumerate(rows) if row.relevant}
    outdated: set[int] = set()
    for place, row in enumerate(rows):
        newer = [other for other in rows if _outdates(other, row, now)]
        if newer or _over(row, now):
            outdated.add(row.id)
        if newer and row.relevant:
            latest = max(newer, key=lambda other: (other.said_at, other.id)).id
            at[latest] = min(place, at.get(latest, place))
    ranked = sorted(at, key=lambda pk: (pk in outdated, at[pk], pk))
    return tuple(Chosen(pk, pk in outdated) for pk in ranked)


def _over(row: Candidate, now: datetime) -> bool:
    return row.valid_to is not None and row.valid_to < now


def _current(row: Candidate, now: datetime) -> bool:
    return not _over(row, now) and (row.valid_from is None or row.valid_from <= now)


# --- said twice ------------------------------------------------------------------------------------------------------


def _once(candidates: Sequence[Candidate], now: datetime) -> list[Candidate]:
    """The claims, each once: in the place of its first row the one that holds, of the highest word, said last."""
    rows: list[Candidate] = []
    place: dict[tuple[str, int, bool], int] = {}
    for row in candidates:
        names = _names(row)
        known = next((place[name] for name in names if name in place), None)
        if known is None:
            known = len(rows)
            rows.append(row)
        else:
            first = rows[known]
            kept = max(row, first, key=lambda each: (not _over(each, now), each.rank, each.said_at))
            rows[known] = replace(kept, relevant=row.relevant or first.relevant)
        place.update({name: known for name in names if name not in place})
    return rows


def _names(row: Candidate) -> list[tuple[str, int, bool]]:
    """What makes two rows the same claim: the same words, but for a question mark, or the same whole key."""
    asked = row.text.rstrip().endswith("?")
    return [("text", row.text_key, asked), *([("key", row.spo_key, asked)] if row.spo_key else [])]


# --- outdated --------------------------------------------------------------------------------------------------------


def _outdates(newer: Candidate, older: Candidate, now: datetime) -> bool:
    if newer.id == older.id or newer.rank < older.rank or not _current(newer, now):
        return False
    if newer.subject_key and older.subject_key and newer.subject_key != older.subject_key:
        return False
    if newer.sp_key and older.sp_key:
        return newer.sp_key == older.sp_key and newer.spo_key != older.spo_key and _later(newer, older)
    return _overtaken(newer, older)


def _later(newer: Candidate, older: Candidate) -> bool:
    """By the periods where both have one, else by when they were said. Periods that run side by side are two values
    that hold at once.
    """
    if newer.valid_from is None or older.valid_from is None:
        return newer.said_at > older.said_at
    beside = older.valid_to is not None and older.valid_to > newer.valid_from
    return newer.valid_from > older.valid_from and not beside


def _overtaken(newer: Candidate, older: Candidate) -> bool:
    """R2: "Waiting on the relay fix", months old, beside "The relay fix shipped", where nobody compared the two."""
    later = max(newer, older, key=lambda row: row.id)
    if later.compared or not older.fades or newer.said_at - older.said_at < APART:
        return False
    before, after = _words(older.text), _words(newer.text)
    shared, sizes = len(before.about & after.about), (len(before.about), len(after.about))
    hints = before.unfinished + after.finished
    if not hints and after.about <= before.about:
        return False  # the newer one says less, and nothing else
    least, of_shorter, of_longer = (_ALIKE, _HINTED, _ENDED)[hints]
    return shared >= least and shared >= of_shorter * min(sizes) and shared >= of_longer * max(sizes)


class _Words(NamedTuple):
    """What a text is about, and how far that is."""

    about: frozenset[str]
    unfinished: bool
    finished: bool


@lru_cache(maxsize=4_096)
def _words(text: str) -> _Words:
    words = tokens(text)
    unfinished, finished = not _UNFINISHED.isdisjoint(words), not _FINISHED.isdisjoint(words)
    about = frozenset(_stem(word) for word in _matter(text))
    return _Words(about, unfinished and not finished, finished and not unfinished)


def _matter(text: str) -> list[str]:
    return [word for word in tokens(text) if word not in _GRAMMAR | _UNFINISHED | _FINISHED]


class Named(IntEnum):
    """How a query names the key of a row."""

    NOT = 0
    ONE_WORD = 1  # its subject, whose only word it is: a first name, which says too little, or a rare name
    SUBJECT = 2  # its subject, or two words of three and more
    KEY = 3  # its subject, whole, and its predicate


def names(*, query: str, subject: str, predicate: str = "") -> Named:
    """How far a query names a key. Accents and endings make no difference, nor do "the" and "of" in a long name."""
    asked = {_folded(word) for word in tokens(query)}
    words = {_folded(word) for word in tokens(subject)}
    said = {_folded(word) for word in tokens(predicate.replace("_", " ")) if word not in _GRAMMAR}
    if words and words <= asked:
        if said and said <= asked:
            return Named.KEY
        return Named.SUBJECT if len(words) > 1 else Named.ONE_WORD
    core = {word for word in words if word not in _GRAMMAR}
    shared = core & asked
    return Named.SUBJECT if len(shared) >= 2 and 3 * len(shared) >= 2 * len(core) else Named.NOT


def named_in(query: str) -> list[str]:
    """The runs of words in a query that may be a subject, as keys are compared: up to eight words long."""
    words = [word.removesuffix("'s") for word in tokens(query)[:_ASKED]]
    runs = (words[at : at + size] for size in range(1, _LONGEST_NAME + 1) for at in range(len(words) - size + 1))
    return list(dict.fromkeys(" ".join(run) for run in runs if not _GRAMMAR.issuperset(run)))


_ASKED: Final = 64  # words of a query
_LONGEST_NAME: Final = 8  # words of a subject


def _folded(word: str) -> str:
    """A word without accents and ending, as names are compared."""
    letters = unicodedata.normalize("NFKD", word.removesuffix("'s"))
    return _stem("".join(letter for letter in letters if not unicodedata.combining(letter)))


def doubtful(row: Candidate, *, now: datetime) -> str:
    """The words under which news that overtakes a row would be found; "" for a row that nothing can overtake."""
    alone = not row.compared and row.fades and now - row.said_at >= APART
    return " ".join(_matter(row.text)) if alone else ""


_ENDINGS: Final = ("'s", "ings", "ing", "ed", "es", "s")


def _stem(word: str) -> str:
    """A word without its ending, so that "fixes" and "fix" meet; no more than two texts need to be found alike."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: -len(ending)]
            break
    return word.rstrip("e") if len(word) > 3 else word

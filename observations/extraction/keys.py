"""Subject, predicate and object of a claim: a part that is not the claim's own is left out, and the claim stays.

A key finds what a claim contradicts and what it repeats, so a wrong one does harm and a missing one little.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Final

from observations.extraction import mood, speaking
from observations.extraction.claims import Dropped
from observations.extraction.wording import content, shared, tokens
from observations.normalise import key_part
from observations.records import EpisodeRecord

_LIMITS: Final = {"subject": 200, "predicate": 60, "object": 500}  # characters
_PREDICATE_WORDS: Final = 6

Key = tuple[str, str, str, tuple[Dropped, ...]]


def key_of(*, text: str, given: Mapping[str, str], turn: EpisodeRecord) -> Key:
    """Subject, predicate and object as far as they are the claim's, "" for the others, and why those were left out."""
    subject, object_ = given["subject"], given["object"]
    predicate = given["predicate"].replace("_", " ").lower()
    dropped: list[Dropped] = []
    if subject and not _is_subject(subject, text, turn):
        subject, dropped = "", [*dropped, Dropped.SUBJECT]
    if object_ and not (
        _short(object_, "object") and _stands_in(object_, text) and key_part(object_) != key_part(subject)
    ):
        object_, dropped = "", [*dropped, Dropped.OBJECT]
    if predicate and not _is_relation(predicate, object_):
        predicate, dropped = "", [*dropped, Dropped.PREDICATE]
    if (predicate or object_) and mood.differ(text=text, key=f"{predicate} {object_}"):
        predicate, object_, dropped = "", "", [*dropped, Dropped.MOOD]
    return subject, predicate, object_, tuple(dropped)


def _short(part: str, name: str) -> bool:
    return len(part) <= _LIMITS[name] and any(map(str.isalnum, part))


def _is_subject(subject: str, text: str, turn: EpisodeRecord) -> bool:
    """Whether the claim speaks of it: in its words, or as the one who speaks."""
    selves = speaking.SELVES[turn.stated_by] | frozenset(tokens(turn.speaker))
    return _short(subject, "subject") and (selves.issuperset(tokens(subject)) or _stands_in(subject, text))


def _stands_in(part: str, text: str) -> bool:
    """Whether every word of a part is a word of the claim, in one form or another."""
    if f" {key_part(part)} " in f" {' '.join(tokens(text))} ":
        return True
    wanted = content(part)
    return bool(wanted) and len(shared(wanted, content(text))) == len(wanted)


def _is_relation(predicate: str, object_: str) -> bool:
    """Whether it is a short name of a relation: a few words without figures, and not the object's."""
    compared = key_part(predicate)
    named = all(character in " '\u2019-" or unicodedata.category(character)[0] in "LM" for character in predicate)
    repeats = bool(object_) and f" {key_part(object_)} " in f" {compared} "
    return _short(predicate, "predicate") and named and len(compared.split()) <= _PREDICATE_WORDS and not repeats

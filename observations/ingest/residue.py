"""Residue: what an agent noticed in a run, in prompts for three days, never an observation and never merged.

Off until a scope's intake keeps it. It describes; what commands or asks is refused, because it would speak to the next
run from inside its prompt. Commands are known by English grammar: of what is not English the answer says that nobody
judged it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from django.db import transaction

from observations import store
from observations.ingest.checking import fault_of_text
from observations.models import Event, Intake, Scope
from observations.normalise import clean, key64, normalised

PLACES: Final = 7  # items held at a time
LONGEST: Final = 500  # characters of one

OFF: Final = "this scope keeps no residue: a person turns it on with the intake's settings"
_TOO_MANY: Final = f"only {PLACES} items are held at a time: hand in what matters most first"


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# First words that command whatever follows, and those that do before a word that points at something.
_COMMANDS: Final = _words(
    "always avoid disregard do don't dont ensure forget ignore let let's never obey please remember reveal"
)
_VERBS: Final = _words("""
    add answer ask begin build call change check clear close continue create delete deploy drop fix follow give go
    install keep make merge move open post print pull push put read rebuild remove rename replace reply report reset
    restart return review revert run save say send set show skip start stop store switch tell test treat try turn
    update use wait watch write
""")
_POINTING: Final = _words("""
    a all an any every everything first from her him it its me my no nothing only our sure that the their them these
    this those to up us with without you your
""")
# Words that English sentences are held together by and that are no such words of its neighbours; then those that are.
_ENGLISH: Final = _words("""
    about after again all also and another any anyone are aren't because been before being both but by could did didn't
    does doesn't don't each every everyone failed fails few first for from gets given had hasn't have he her his how
    into isn't it its itself just last less like long longer many minutes more most much must needs never nobody none
    not nothing now often once one only other our out over said says she should since slow some soon still than that
    the their them then there these they this those three took twice two until up uses wasn't we were weren't what when
    where whether which while who whose why with without won't would yet you your
""")
_SHARED: Final = _words("a an as at be do has if in is no of off on or so to was will")
_A_SENTENCE: Final = 4  # words from which on each sentence has to look English, not the item alone
_DEMAND: Final = re.compile(r"\byou (?:must|should|shall|have to|need to|ought to|may not|can ?not)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class HeldItem:
    """What became of one item."""

    held: bool
    reason: str = ""  # why not
    first_held_at: datetime | None = None
    cleaned: bool = False
    judged: bool = True  # whether its grammar could be looked at: False of what does not look English, held or not


@dataclass(frozen=True, slots=True)
class Held:
    """What became of the items, in order, and how many of earlier runs gave way to them."""

    items: tuple[HeldItem, ...]
    gave_way: int = 0

    @property
    def held(self) -> int:
        """How many are held."""
        return sum(item.held for item in self.items)


def hold_residue(*, scope: Scope, items: Sequence[str], session: str, by: str) -> Held:
    """Hold at most PLACES items of a run; more are refused, each with its reason, and what is held again keeps the time
    when it was first held. Items of earlier runs give way to those of this one. One transaction.
    """
    if not Intake.objects.filter(scope=scope, residue=True).exists():
        return Held(tuple(HeldItem(held=False, reason=OFF) for _ in items))
    texts: dict[int, str] = {}
    answers: list[tuple[int, HeldItem]] = []
    for item in items:
        text, cleaned = clean(item)
        key, fault = key64(normalised(text)), _fault(text)
        if not fault and key not in texts and len(texts) >= PLACES:
            fault = _TOO_MANY
        if not fault:
            texts.setdefault(key, text)
        answers.append((key, HeldItem(held=not fault, reason=fault, cleaned=cleaned, judged=_looks_english(text))))
    if not texts:
        return Held(tuple(answer for _, answer in answers))
    with transaction.atomic():
        rows, gave_way = store.hold_residue(scope=scope, texts=texts, session=clean(session)[0], by=by, places=PLACES)
        detail = {"held": len(texts), "gave_way": gave_way}
        Event.objects.append(
            scope_id=scope.pk, action="residue held", actor=by[:150], subject=str(scope.pk), detail=detail
        )
    told = (replace(each, first_held_at=rows[key].first_held_at) if each.held else each for key, each in answers)
    return Held(tuple(told), gave_way)


def drop_residue() -> int:
    """Delete what was first held three days ago, in every scope; returns how many. Reads leave it out before that."""
    return store.drop_residue()


def _fault(text: str) -> str:
    """Why an item is not held; "" when it is."""
    if not text.strip():
        return "the item is empty"
    if len(text) > LONGEST:
        return f"the item has more than {LONGEST} characters"
    if _asks(text):
        return "a question describes nothing: say what was found"
    if _commands(text):
        return "an instruction is not residue: say what is so, not what is to be done"
    return fault_of_text(text).replace("the text", "the item", 1)


def _asks(text: str) -> bool:
    return text.rstrip().rstrip("\"'”’)").endswith(("?", "？", "؟"))


def _commands(text: str) -> bool:
    """Whether a sentence of a text tells somebody to do something, as far as its first words show it in English."""
    if _DEMAND.search(text):
        return True
    for words in _sentences(text):
        if words and (words[0] in _COMMANDS or (words[0] in _VERBS and words[1:2] and words[1] in _POINTING)):
            return True
    return False


def _looks_english(text: str) -> bool:
    """Whether its grammar can be judged at all. Errs towards no: a flag on a plain description loses nothing."""
    if any(letter.isalpha() and not unicodedata.name(letter, "").startswith("LATIN ") for letter in text):
        return False
    sentences = [words for words in _sentences(text) if words]
    own = any(_ENGLISH.intersection(words) or words[0] in _COMMANDS for words in sentences)
    known = _ENGLISH | _SHARED | _COMMANDS
    return own and all(known.intersection(words) for words in sentences if len(words) >= _A_SENTENCE)


def _sentences(text: str) -> list[list[str]]:
    """The words of each sentence, case folded."""
    parts = re.split(r"(?<=[.!:;])\s+|\n+", text.replace("’", "'"))
    return [re.findall(r"[\w']+", part.casefold()) for part in parts]

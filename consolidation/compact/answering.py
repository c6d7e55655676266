"""What a model's summary is worth: parsed, checked, and refused where it is none (C9, F1).

A reply is hostile text. Every part of it is taken or refused by itself, with a reason that holds figures and no words.
A reply that leaves nothing usable is a fault, which is another outcome than 'nothing to do'.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from consolidation.compact import specifics
from consolidation.compact.grouping import Group
from observations.llm import ModelFailed
from observations.llm.reading import json_in
from observations.normalise import clean, tokens

_MOST_SENTENCES: Final = 200
_FEWEST_WORDS: Final = 4
_LEAST_SHARE: Final = 0.05  # of the episodes' words; what is shorter has left nearly everything out
_ALWAYS_ENOUGH: Final = 120  # words, however long the episodes are
_EPISODES_PER_SENTENCE: Final = 5
_COPIED: Final = 0.9  # share of a summary that stands in one episode in one piece
_ALL: Final = 0.8  # share of all words from which a copy leaves too little out to be a stub
_LONGER: Final = 1.5  # times its episodes, and some words for names and days: no summary is longer
_SPARE_WORDS: Final = 60


@dataclass(frozen=True, slots=True)
class Said:
    """One sentence of a summary."""

    text: str
    episodes: tuple[int, ...]  # ids of the episodes that the model says it comes from: a claim, not a finding


@dataclass(frozen=True, slots=True)
class Written:
    """A model's answer, checked. With a fault it holds whatever could be read, for people to see."""

    text: str
    sentences: tuple[Said, ...]
    refused: tuple[str, ...]  # parts that were not taken, each with its reason
    fault: str = ""  # why there is no summary; one sentence without words of the episodes or the answer

    @property
    def usable(self) -> bool:
        """True when the text is a summary, whatever it may have lost."""
        return not self.fault


def failed(*, failure: ModelFailed) -> Written:
    """No answer, as an answer with a fault: no model, refused, cut off, unreachable (R89: seen, never 'nothing')."""
    return Written(text="", sentences=(), refused=(), fault=f"{failure.answer}: {failure}")


def read(*, reply: str, group: Group) -> Written:
    """A model's reply as a summary of this group. Never raises, whatever the reply holds."""
    try:
        answer = json_in(reply)
    except ModelFailed as failure:
        return failed(failure=failure)
    items = answer.get("sentences") if isinstance(answer, dict) else answer
    if not isinstance(items, list):
        return Written("", (), (), fault="The model's answer has no list of sentences; nothing was taken from it.")
    refused: list[str] = []
    said = [found for at, item in enumerate(items[:_MOST_SENTENCES]) if (found := _said(at, item, group, refused))]
    if len(items) > _MOST_SENTENCES:
        refused.append(f"sentences from {_MOST_SENTENCES}: an answer may have {_MOST_SENTENCES}")
    text = " ".join(sentence.text for sentence in said)
    return Written(text, tuple(said), tuple(refused), fault=_fault(text, group))


# --- one sentence ----------------------------------------------------------------------------------------------------


def _said(at: int, item: Any, group: Group, refused: list[str]) -> Said | None:
    """One item of the answer as a sentence; what is wrong with it is added to `refused`."""
    text, labels = (item.get("text"), item.get("episodes")) if isinstance(item, dict) else (item, None)
    if not isinstance(text, str):
        refused.append(f"sentence {at}: its text is no text")
        return None
    text = " ".join(clean(text)[0].split())
    if not any(character.isalnum() for character in text):
        refused.append(f"sentence {at}: it is empty")
        return None
    if not isinstance(labels, list):
        refused.append(f"sentence {at}: its episodes are no list")
        labels = []
    ids = [group.episodes[label].id for label in _labels(at, labels, len(group.episodes), refused)]
    return Said(_closed(text), tuple(sorted(set(ids))))


def _closed(text: str) -> str:
    """The sentence with a mark at its end, so that it does not run into the next."""
    return text if text.rstrip("\"')]\u201d\u2019")[-1:] in tuple(".!?\u2026") else f"{text}."


def _labels(at: int, labels: Sequence[Any], count: int, refused: list[str]) -> list[int]:
    """The labels that were offered; booleans, fractions, negatives and unknown ones are refused, never guessed (C5)."""
    wrong = 0
    found: list[int] = []
    for label in labels:
        number = (
            int(label) if isinstance(label, str) and label.isascii() and label.isdecimal() and len(label) < 5 else label
        )
        if isinstance(number, int) and not isinstance(number, bool) and 0 <= number < count:
            found.append(number)
        else:
            wrong += 1
    if wrong:
        refused.append(f"sentence {at}: {wrong} of {len(labels)} labels name no episode that was sent")
    return found


# --- stubs -----------------------------------------------------------------------------------------------------------


def _fault(text: str, group: Group) -> str:
    """Why a text is no summary of these episodes; empty when it may be one."""
    words = tokens(text) if text.strip() else ()
    sources = [tokens(episode.text) for episode in group.episodes]
    total = sum(map(len, sources))
    least = max(_FEWEST_WORDS, min(_ALWAYS_ENOUGH, round(total * _LEAST_SHARE)))
    if not words:
        return "The summary is empty; the episodes stay as they are."
    if len(words) < least:
        return f"The summary is a stub: {len(words)} words for {total} of its episodes, under {least}."
    if len(words) > total * _LONGER + _SPARE_WORDS:
        return f"The summary is longer than its episodes: {len(words)} words for {total}."
    if len(words) < total * _ALL and any(_is_piece(words, source) for source in [*sources, _joined(sources)]):
        return "The summary is a stub: it is a piece of the episodes, copied."
    sentences = len(specifics.read(text).sentences)
    if sentences < -(-len(group.episodes) // _EPISODES_PER_SENTENCE):
        return f"The summary is a stub: {sentences} sentences for {len(group.episodes)} episodes."
    return ""


def _joined(sources: Sequence[Sequence[str]]) -> tuple[str, ...]:
    return tuple(word for source in sources for word in source)


def _is_piece(words: Sequence[str], source: Sequence[str]) -> bool:
    """Whether nearly all of a text stands in one piece in a source, but for a word cut in two at its end."""
    need = max(1, int(len(words) * _COPIED))
    if len(source) < need:
        return False
    held = f" {' '.join(source)} "
    return any(f" {' '.join(words[at : at + need])} " in held for at in range(len(words) - need + 1))

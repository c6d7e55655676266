"""EXTRACT, the answer: which claims of a reply are believed, each for itself, and why the others are not (C2, C3).

The turns are hostile and so is the reply. Every check can only doubt; none proves that the turn means what the claim
says, and the quote is kept so that anybody can look. What is doubted is refused, or held back for a person.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from observations.extraction import dating
from observations.extraction.asking import LONGEST_TURN, context, readable
from observations.extraction.believing import Batch, Doubt, Said, doubt
from observations.extraction.claims import Extracted, Proposed, Quoted, Refusal, Refused
from observations.extraction.keys import key_of
from observations.llm import Reply, Unusable
from observations.llm.reading import find_quote, json_in
from observations.normalise import clean, normalised
from observations.records import EpisodeRecord, MemoryKind
from observations.screening import Secret, secret_in

MAX_CLAIMS: Final = 200  # of one reply; as many more are refused by name, and what follows is not looked at
MAX_BELIEVED: Final = MAX_CLAIMS  # of them, stored in parts that one question reconciles (R124); as many are held
MAX_TEXT: Final = 500  # characters of a claim
MAX_QUOTE: Final = 2_000
_LABELS: Final = ("turn", "supported_by", "label", "episode")  # what a model calls the turn, as asked and otherwise
_LABEL: Final = re.compile(r"[0-9]{1,3}", re.ASCII)
_BESIDE: Final = 300  # characters before and after quoted words in which the rest of a secret is looked for
_JOINERS: Final = "\u200c\u200d"  # words of some scripts, and emoji, are written with them


def read(*, reply: Reply, turns: Sequence[EpisodeRecord], before: Sequence[EpisodeRecord] = ()) -> Extracted:
    """The claims of a reply to a request about these turns, in its order. Raises Unusable for a reply that cannot be
    read, which is another thing than one that finds nothing.

    A label may be a number or its digits as a text ("0"); true, null, 1.0, -1 and what was not shown are refused. A
    claim told twice is one, with every turn that it was quoted from. Where a quote is left out, the claim's own words
    may stand in the turn.
    """
    entries = _entries(json_in(reply.text))
    reading = _Reading(Batch(turns, context(before)))
    for entry in entries[:MAX_CLAIMS]:
        reading.take(entry)
    for entry in entries[MAX_CLAIMS : 2 * MAX_CLAIMS]:
        reading.refuse(Refusal.TOO_MANY, _text(entry))
    reading.drop_doubts_of_believed()
    return Extracted(
        claims=tuple(reading.claims.values()), held=tuple(reading.held.values()), refused=tuple(reading.refused)
    )


def _entries(answer: Any) -> list[Any]:
    """The list of claims: under 'claims', as the whole answer, as the only list of it, or one claim by itself (C2)."""
    if isinstance(answer, list):
        return answer
    if isinstance(answer.get("claims"), list):
        return list(answer["claims"])
    if isinstance(answer.get("text"), str):
        return [answer]
    lists = [value for value in answer.values() if isinstance(value, list)]
    if len(lists) != 1 or "claims" in answer:
        raise Unusable("The model's answer cannot be used: it holds no list of claims; ask again later.")
    return list(lists[0])


@dataclass(slots=True)
class _Reading:
    """One reply while it is read."""

    batch: Batch
    claims: dict[tuple[object, ...], Proposed] = field(default_factory=dict)  # by what makes two of them one
    held: dict[tuple[object, ...], Proposed] = field(default_factory=dict)  # the same, of doubted ones
    refused: list[Refused] = field(default_factory=list)

    def refuse(self, refusal: Refusal, text: str = "", *, said: Said | None = None, turn: int | None = None) -> None:
        """Note what is not believed; a text that holds a secret is not kept, whatever else is wrong with it."""
        secret = secret_in(text)
        self.refused.append(
            Refused(
                refusal=Refusal.SECRET if secret else refusal,
                text="" if secret else text[:MAX_TEXT],
                episode=said.turn.id if said else turn,
                quote=(said.start, said.end) if said else None,
                secret=secret,
            )
        )

    def take(self, entry: Any) -> None:
        """Keep one entry as a claim, or note why not."""
        text = _text(entry)
        if not isinstance(entry, Mapping):
            return self.refuse(Refusal.NO_QUOTE if text else Refusal.NO_ENTRY, text)
        if flaw := _shapeless(text):
            return self.refuse(flaw, text if flaw is Refusal.TOO_LONG else "")
        labels = _labels(entry, below=len(self.batch.turns))
        if isinstance(labels, Refusal):
            return self.refuse(labels, text)
        said = self._said(entry, text, labels)
        if isinstance(said, Refusal):
            return self.refuse(said, text, turn=self.batch.turns[labels[0]].id)
        return self._judge(entry, text, said)

    def _said(self, entry: Mapping[str, Any], text: str, labels: Sequence[int]) -> list[Said] | Refusal:
        """Where the quoted words stand among the turns it names."""
        quote = entry.get("quote")
        if quote is None or quote == "":
            quote = text
        if not isinstance(quote, str) or len(quote) > MAX_QUOTE:
            return Refusal.NO_QUOTE
        turns = [self.batch.turns[label] for label in labels]
        found = [Said(turn, *place) for turn in turns if (place := find_quote(quote, readable(turn)))]
        if found:
            return found
        if not entry.get("quote"):
            return Refusal.NO_QUOTE
        ours = any(find_quote(quote, turn.text[:LONGEST_TURN]) for turn in turns)
        return Refusal.OUR_BLOCK if ours else Refusal.NOT_FOUND

    def _judge(self, entry: Mapping[str, Any], text: str, said: Sequence[Said]) -> None:
        """Believe a claim whose quote stands in a turn, or not."""
        first = said[0]
        given = {name: _part(entry.get(name)) for name in ("subject", "predicate", "object")}
        secret = next(filter(None, map(secret_in, (text, *given.values(), *(each.words for each in said)))), None)
        secret = secret or next(filter(None, map(self._part_of_secret, said)), None)
        if secret is not None:
            return self.refused.append(
                Refused(Refusal.SECRET, episode=first.turn.id, quote=(first.start, first.end), secret=secret)
            )
        doubted = doubt(text=text, said=first, batch=self.batch)
        if doubted is not None and not doubted.held:
            return self.refuse(doubted.refusal, text, said=first)
        again = [each for each in said[1:] if _same_voice(first, each) and self._as_good(text, each, doubted)]
        return self._keep(self._proposed(entry, text, given, [first, *again], doubted))

    def _as_good(self, text: str, said: Said, doubted: Doubt | None) -> bool:
        """Whether a further turn is evidence as the first is: it says the claim, or as much of it."""
        other = doubt(text=text, said=said, batch=self.batch)
        return other is None or (doubted is not None and other.held)

    def _proposed(
        self, entry: Mapping[str, Any], text: str, given: Mapping[str, str], said: Sequence[Said], doubted: Doubt | None
    ) -> Proposed:
        first = said[0].turn
        subject, predicate, object_, dropped = key_of(text=text, given=given, turn=first)
        return Proposed(
            text=text,
            kind=_kind(entry.get("kind")),
            evidence=tuple(Quoted(each.turn.id, each.start, each.end) for each in said),
            stated_by=first.stated_by,
            speaker=first.speaker,
            happened_at=first.happened_at,
            subject=subject,
            predicate=predicate,
            object=object_,
            valid_from=dating.begins(claim=text, on=first.happened_at),
            dropped=dropped,
            doubt=doubted.refusal if doubted else None,
        )

    def _part_of_secret(self, said: Said) -> Secret | None:
        """The secret that quoted words are a part of: its other part stands beside them, or in the turn before or
        after, as when somebody is asked for a code and gives it.
        """
        everything = self.batch.everything
        at, text = everything.index(said.turn), readable(said.turn)
        ahead, behind = everything[at - 1 : at], everything[at + 1 : at + 2]
        before = " ".join([*map(readable, ahead), text[: said.start]])[-_BESIDE:]
        after = " ".join([text[said.end :], *map(readable, behind)])[:_BESIDE]
        known, follows = secret_in(before), secret_in(after)
        with_before = None if known else secret_in(f"{before}{said.words}")
        with_after = None if follows else secret_in(f"{said.words}{after}")
        return with_before or with_after or (None if known or follows else secret_in(f"{before}{said.words}{after}"))

    def _keep(self, proposed: Proposed) -> None:
        """Fold it into the same claim of the same voice, if there is one as good."""
        kept = self.claims if proposed.doubt is None else self.held
        same = _what_makes_one(proposed)
        known = kept.get(same)
        if known is None:
            return self._keep_new(kept, proposed)
        turns = {each.episode for each in known.evidence}
        more = tuple(each for each in proposed.evidence if each.episode not in turns)
        kept[same] = replace(known, evidence=known.evidence + more)
        return None if more else self.refuse(Refusal.TWICE, proposed.text, turn=proposed.episode)

    def _keep_new(self, kept: dict[tuple[object, ...], Proposed], proposed: Proposed) -> None:
        if len(kept) == MAX_BELIEVED:
            self.refuse(Refusal.TOO_MANY, proposed.text, turn=proposed.episode)
        else:
            kept[_what_makes_one(proposed)] = proposed

    def drop_doubts_of_believed(self) -> None:
        """What another turn says properly is not held back as well, and the doubtful turn is no evidence for it."""
        for same in [key for key in self.held if key in self.claims]:
            doubted = self.held.pop(same)
            assert doubted.doubt is not None
            self.refused.append(Refused(doubted.doubt, doubted.text, doubted.episode, doubted.quote))


def _what_makes_one(proposed: Proposed) -> tuple[object, ...]:
    return normalised(proposed.text), proposed.stated_by, proposed.speaker


def _same_voice(one: Said, other: Said) -> bool:
    """Whether the same speaker says both."""
    return (one.turn.stated_by, one.turn.speaker) == (other.turn.stated_by, other.turn.speaker)


def _text(entry: Any) -> str:
    """The text of an entry, or of a bare string, as one line that can be stored and hides nothing."""
    text = entry.get("text") if isinstance(entry, Mapping) else entry
    return " ".join("".join(map(_seen, clean(text)[0])).split()) if isinstance(text, str) else ""


def _part(given: Any) -> str:
    """A part of a key; a number is its figures, and what is neither is nothing."""
    number = isinstance(given, int | float) and not isinstance(given, bool)
    return _text(str(given) if number else given) if not isinstance(given, Mapping) else ""


def _seen(character: str) -> str:
    """Control characters as spaces; invisible, private and unassigned ones left out, but for joiners inside words."""
    category = unicodedata.category(character)
    if category == "Cc":
        return " "
    return "" if category[0] == "C" and character not in _JOINERS else character


def _shapeless(text: str) -> Refusal | None:
    if not any(map(str.isalnum, text)):
        return Refusal.NO_TEXT
    return Refusal.TOO_LONG if len(text) > MAX_TEXT else None


def _labels(entry: Mapping[str, Any], *, below: int) -> list[int] | Refusal:
    """The turns an entry names, each once; what is no label counts for nothing beside one that is."""
    given = next((entry[name] for name in _LABELS if name in entry), None)
    numbers = [
        number for each in (given if isinstance(given, list) else [given]) if (number := _number(each)) is not None
    ]
    known = [number for number in dict.fromkeys(numbers) if number < below]
    if known:
        return known
    return Refusal.UNKNOWN_LABEL if numbers else Refusal.NO_LABEL


def _number(given: Any) -> int | None:
    """A label; None for a float, true, null, a negative, a list, a signed or a spelt-out number."""
    if isinstance(given, str) and _LABEL.fullmatch(given.strip()):
        return int(given)
    return given if isinstance(given, int) and not isinstance(given, bool) and given >= 0 else None


def _kind(given: Any) -> MemoryKind:
    """The kind a model names, or a fact."""
    try:
        return MemoryKind(given.strip().casefold() if isinstance(given, str) else given)
    except ValueError:
        return MemoryKind.FACT

"""Claims of a deliberate call, checked before anything is written: what may be kept, and whose word it is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

from django.db.models import QuerySet
from django.db.models.functions import Left, Lower, Trim

from observations import extraction, fencing, screening
from observations.models import Episode, Scope, database_now
from observations.normalise import clean, key64, key_part, normalised, tokens
from observations.prompting import Section
from observations.records import Claim, EvidenceRef, StatedBy, is_program, roles_of
from observations.screening import Secret

MAX_TEXT: Final = 100_000  # characters of one claim
MAX_URI_BYTES: Final = 2_000  # what an index of PostgreSQL holds in one entry, with room to spare
_CLOCKS_DIFFER: Final = timedelta(minutes=5)  # the database's own allowance for a writer's clock that runs ahead
_LOOKED_AT: Final = 1_000  # newest turns of the user that are looked through for a quote that names none,
_EACH: Final = 10_000  # so many characters of one at most,
_TOGETHER: Final = 500_000  # and of all: who asks may have written the turns and the quotes, to keep us looking
_IN_NAMES: Final = frozenset({Secret.PRIVATE_KEY, Secret.KEY, Secret.PASSWORD, Secret.ADDRESS})
_NO_SIGN: Final = "\0"  # in no text that is stored
_AGENTS_CONFIDENCE: Final = 0.5  # what a claim keeps at most that is recorded as the agent's word after all

NOT_QUOTED: Final = "recorded as the agent's word: it quotes no stored turn of the user that says so"


@dataclass(frozen=True, slots=True)
class Checked:
    """A claim that may be kept, or why not. What it is compared by is computed once."""

    claim: Claim
    text: str  # as it will be stored
    normalised: str
    text_key: int
    key: tuple[str, str, str]
    cleaned: bool
    reason: str = ""  # why it is refused, or recorded as the word of somebody else
    refused: bool = False

    def says_the_same(self, other: str, key: tuple[str, str, str]) -> bool:
        """Whether a normalised text with a key is this claim: identical, each part of the key equal or absent.

        Similarity is never asked: "2.x" and "3.x" are as near as two phrasings of one claim.
        """
        return other == self.normalised and all(
            mine == theirs or not mine or not theirs for mine, theirs in zip(self.key, key, strict=True)
        )


def check_claims(*, scope: Scope, claims: Sequence[Claim], by: str, speaks_for_user: bool) -> list[Checked]:
    """Every claim as it may be kept, in order. Three queries at most however many claims, none for claims without
    times and quotes; nothing is written.
    """
    now = database_now() if any(claim.created_at for claim in claims) else None
    believed = speaks_for_user or not is_program(by)
    turns = _turns_of(scope, [ref for claim in claims for ref in claim.evidence if ref.quote])
    known = _Known()
    return [_checked(claim, now=now, by=by, believed=believed, turns=turns, known=known) for claim in claims]


class _Known:
    """What was found out in one call about words that its claims have in common: whom they are about, who said it.
    Gone with the call.
    """

    def __init__(self) -> None:
        self.key_part = lru_cache(maxsize=None)(key_part)
        self.fault_of_text = lru_cache(maxsize=None)(fault_of_text)
        self.secret_in = lru_cache(maxsize=None)(screening.secret_in)


def _checked(
    claim: Claim,
    *,
    now: datetime | None,
    by: str,
    believed: bool,
    turns: Mapping[EvidenceRef, _Quoted],
    known: _Known,
) -> Checked:
    fault = _fault(claim, now, known) or _fault_of_origin(claim, by)
    wrong = next((ref for ref in claim.evidence if ref in turns and turns[ref].fault), None)
    if not fault and wrong is not None:
        fault = turns[wrong].fault
    refs = tuple(turns[ref].ref if ref in turns else ref for ref in claim.evidence)
    quoted = any(turns[ref].tells(claim.text) for ref in claim.evidence if ref in turns)
    claim = replace(claim, evidence=_sourced(refs, by))
    if claim.stated_by is StatedBy.USER and not believed and not quoted and not fault:
        confidence = min(claim.confidence, _AGENTS_CONFIDENCE)
        claim = replace(claim, stated_by=StatedBy.AGENT, confidence=confidence)
        return _compared(claim, known, reason=NOT_QUOTED)
    return _compared(claim, known, reason=fault, refused=bool(fault))


def _compared(claim: Claim, known: _Known, *, reason: str = "", refused: bool = False) -> Checked:
    parts = [clean(part) for part in (claim.text, claim.subject, claim.predicate, claim.object)]
    sources = [clean(f"{ref.source_uri}{ref.root_source}{ref.quote}") for ref in claim.evidence]
    text = parts[0][0]
    same = normalised(text)
    return Checked(
        claim=claim,
        text=text,
        normalised=same,
        text_key=key64(same),
        key=(known.key_part(parts[1][0]), known.key_part(parts[2][0]), known.key_part(parts[3][0])),
        cleaned=any(changed for _, changed in [*parts, *sources]),
        reason=reason,
        refused=refused,
    )


# --- what is refused -------------------------------------------------------------------------------------------------


def _fault(claim: Claim, now: datetime | None, known: _Known) -> str:
    """Why a claim cannot be kept; "" when it can. The words themselves are not in it."""
    if not claim.text.strip():
        return "the text is empty: say what is to be kept"
    if len(claim.text) > MAX_TEXT:
        return f"the text is longer than {MAX_TEXT:,} characters"
    if max(len(claim.subject), len(claim.predicate)) > 500 or len(claim.object) > 1000:
        return "the subject and the predicate have at most 500 characters, the object 1,000"
    if len(claim.external_id) > 200 or clean(claim.external_id)[1]:
        return "the external id has at most 200 characters, none of which a database cannot hold"
    if any(at is not None and beyond(at) for at in (claim.created_at, claim.valid_from, claim.valid_to)):
        return "a time is before year 1 or after 9999 in UTC"
    if claim.created_at is not None and now is not None and claim.created_at > now + _CLOCKS_DIFFER:
        return "the time when it was said is in the future"
    if claim.valid_from and claim.valid_to and claim.valid_to < claim.valid_from:
        return "valid_to is before valid_from"
    key = " ".join(filter(None, (claim.subject, claim.predicate, claim.object)))
    return (
        fault_of_text(claim.text)
        or (known.fault_of_text(key) if key else "")
        or _fault_of_names(claim, known)
        or _fault_of_quotes(claim)
    )


def beyond(moment: datetime) -> bool:
    """Whether a time has no year in UTC that Python can name: PostgreSQL would hold it, and no read would return it."""
    try:
        moment.astimezone(UTC)
    except OverflowError:
        return True
    return False


def fault_of_text(*texts: str) -> str:
    """Why words may not become memory: they hold a secret, or what our own context block said. "" when they may."""
    for text in filter(None, texts):
        if _holds_our_block(text):
            return "the text holds our own context block, which is memory already: leave it out"
        if secret := screening.secret_in(text):
            return f"the text holds a secret ({secret}), which is never kept: leave it out"
    return ""


_OUR_LABEL: Final = re.compile(r"\[trust: (?:high|medium|low)\b[^\]\n]{0,60}\]", re.IGNORECASE)
_OUR_BEGINNINGS: Final = tuple(f"{fencing.OPENING}\n{section}:".casefold() for section in Section)


def _holds_our_block(text: str) -> bool:
    """Whether a text holds a block as we write it, whole or cut, or a line of one. A lone mark is only a text that
    looks like one: it is kept, and the fence takes its meaning away when it is read (C15).
    """
    folded = text.casefold()
    if "[trust: " not in folded and "memory" not in folded:  # what each of the marks below has in it
        return False
    if _OUR_LABEL.search(text) or any(beginning in folded for beginning in _OUR_BEGINNINGS):
        return True
    blocks = (folded[start:end] for start, end in fencing.own_blocks(folded))
    return any(block.startswith(fencing.OPENING) and block.endswith(fencing.CLOSING) for block in blocks)


def _fault_of_names(claim: Claim, known: _Known) -> str:
    """An id or an address may look like the number of a card, and never like a key: it outlives its row."""
    uris = [uri for ref in claim.evidence for uri in (ref.source_uri, ref.root_source)]
    if any(map(_too_long, uris)):
        return f"a source's address has at most 1,000 characters and {MAX_URI_BYTES:,} bytes"
    for name in filter(None, (claim.external_id, *uris)):
        if (secret := known.secret_in(name)) in _IN_NAMES:
            return f"an id or a source's address holds a secret ({secret}), which is never kept: leave it out"
    return ""


def _fault_of_quotes(claim: Claim) -> str:
    faults = (fault_of_text(ref.quote) for ref in claim.evidence)
    return next(filter(None, faults), "").replace("the text", "the quote", 1)


def _too_long(uri: str) -> bool:
    return len(uri) > 1000 or len(uri.encode("utf-8", "surrogatepass")) > MAX_URI_BYTES


def _fault_of_origin(claim: Claim, by: str) -> str:
    if claim.stated_by is StatedBy.OPERATOR and is_program(by):
        return "a program cannot speak for an operator: a person says it, with the command"
    return ""


# --- whose word it is ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Quoted:
    """What was found for a quote: the evidence under its turn's own source, where the user said it, or the fault."""

    ref: EvidenceRef
    said: extraction.Said | None = None  # by the user, in more than a word
    fault: str = ""

    def tells(self, text: str) -> bool:
        """Whether a claim is the user's word by it: that anything was said is no word for something else."""
        return self.said is not None and extraction.says(text=clean(text)[0], said=self.said)


class _Turn:
    """A stored turn in which quotes are looked for, its parts computed once."""

    def __init__(self, row: Episode) -> None:
        self.record = row.record()
        self._outside = self.record.text
        for start, end in fencing.own_blocks(self._outside):  # no quote holds this sign, so none reaches across a block
            self._outside = f"{self._outside[:start]}{_NO_SIGN * (end - start)}{self._outside[end:]}"

    def find(self, quote: str) -> int | None:
        """Where a quote stands, outside what our own context block said there, in code points."""
        at = self._outside.find(quote)
        return at if at >= 0 else None

    def quoted(self, ref: EvidenceRef, at: int) -> _Quoted:
        """The quote, found there."""
        turn, quote = self.record, clean(ref.quote)[0]
        telling = len(tokens(quote)) >= 2 or quote.strip() == turn.text.strip()  # more than a word any turn may hold
        said = extraction.Said(turn, at, at + len(quote)) if telling and turn.stated_by is StatedBy.USER else None
        return _Quoted(EvidenceRef(turn.source_uri, turn.root_source, ref.quote, at, turn.external_id), said)


def _turns_of(scope: Scope, refs: Iterable[EvidenceRef]) -> dict[EvidenceRef, _Quoted]:
    """Where quotes stand in the stored turns of a scope. Two queries at most, none without a quote."""
    wanted = set(refs)
    if not wanted:
        return {}
    named = {ref.episode for ref in wanted if ref.episode and not clean(ref.episode)[1]}
    turns = Episode.objects.filter(scope=scope, text__isnull=False).annotate(folded=Lower(Trim("role")))
    by_name = {row.external_id: _Turn(row) for row in turns.filter(external_id__in=named)} if named else {}
    users = turns.filter(folded__in=roles_of(StatedBy.USER)).order_by("-happened_at", "-pk")
    said = _said_last(users) if any(not ref.episode for ref in wanted) else []
    return {ref: _found(ref, by_name.get(ref.episode)) if ref.episode else _searched(ref, said) for ref in wanted}


def _said_last(rows: QuerySet[Episode]) -> list[_Turn]:
    """The first of the rows, as far as it is looked through. One query."""
    found: list[_Turn] = []
    room = _TOGETHER
    for row in rows.defer("text").annotate(beginning=Left("text", _EACH))[:_LOOKED_AT]:
        row.text = vars(row)["beginning"]
        room -= len(row.text or "")
        if room < 0:
            break
        found.append(_Turn(row))
    return found


def _found(ref: EvidenceRef, turn: _Turn | None) -> _Quoted:
    if turn is None:
        return _Quoted(ref, fault="the turn that is quoted is not stored: observe it first, or name no turn")
    at = turn.find(clean(ref.quote)[0])
    return _Quoted(ref, fault="the quote does not stand in the turn it names") if at is None else turn.quoted(ref, at)


def _searched(ref: EvidenceRef, said: Sequence[_Turn]) -> _Quoted:
    """A quote that names no turn is looked for in what the user said last; one found nowhere stays as it was given."""
    quote = clean(ref.quote)[0]
    for turn in said:
        at = turn.find(quote)
        if at is not None and (found := turn.quoted(ref, at)).said is not None:
            return found
    return _Quoted(ref)


def _sourced(refs: tuple[EvidenceRef, ...], by: str) -> tuple[EvidenceRef, ...]:
    """The same, each with a source: who made the call is the witness where none is named, once however often (R95)."""
    return tuple(ref if ref.source_uri else replace(ref, source_uri=by) for ref in refs) or (EvidenceRef(by),)

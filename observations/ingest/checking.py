"""Claims of a deliberate call, checked before anything is written: what may be kept, and whose word it is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from django.db.models.functions import Lower, Trim

from observations import fencing, screening
from observations.models import Episode, Scope, database_now
from observations.normalise import clean, key64, key_part, normalised, tokens
from observations.records import Claim, EvidenceRef, StatedBy, is_program, roles_of

MAX_TEXT: Final = 100_000  # characters of one claim
MAX_URI_BYTES: Final = 2_000  # what an index of PostgreSQL holds in one entry, with room to spare
_CLOCKS_DIFFER: Final = timedelta(minutes=5)  # the database's own allowance for a writer's clock that runs ahead
_LOOKED_AT: Final = 1_000  # newest turns of the user that are looked through for a quote that names none
_AGENTS_CONFIDENCE: Final = 0.5  # what a claim keeps at most that is recorded as the agent's word after all

NOT_QUOTED: Final = "recorded as the agent's word: it quotes no stored turn of the user"


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
    """Every claim as it may be kept, in order. One to three queries however many claims; nothing is written."""
    now = database_now()
    believed = speaks_for_user or not is_program(by)
    turns = _turns_of(scope, [ref for claim in claims for ref in claim.evidence if ref.quote])
    return [_checked(claim, now=now, by=by, believed=believed, turns=turns) for claim in claims]


def _checked(claim: Claim, *, now: datetime, by: str, believed: bool, turns: Mapping[EvidenceRef, _Quoted]) -> Checked:
    fault = _fault(claim, now) or _fault_of_origin(claim, by)
    wrong = next((ref for ref in claim.evidence if ref in turns and turns[ref].fault), None)
    if not fault and wrong is not None:
        fault = turns[wrong].fault
    refs = tuple(turns[ref].ref if ref in turns else ref for ref in claim.evidence)
    quoted = any(turns[ref].of_user for ref in claim.evidence if ref in turns)
    claim = replace(claim, evidence=_sourced(refs, by))
    if claim.stated_by is StatedBy.USER and not believed and not quoted and not fault:
        confidence = min(claim.confidence, _AGENTS_CONFIDENCE)
        claim = replace(claim, stated_by=StatedBy.AGENT, confidence=confidence)
        return _compared(claim, reason=NOT_QUOTED)
    return _compared(claim, reason=fault, refused=bool(fault))


def _compared(claim: Claim, *, reason: str = "", refused: bool = False) -> Checked:
    parts = [clean(part) for part in (claim.text, claim.subject, claim.predicate, claim.object)]
    sources = [clean(f"{ref.source_uri}{ref.root_source}{ref.quote}") for ref in claim.evidence]
    text = parts[0][0]
    same = normalised(text)
    return Checked(
        claim=claim,
        text=text,
        normalised=same,
        text_key=key64(same),
        key=(key_part(parts[1][0]), key_part(parts[2][0]), key_part(parts[3][0])),
        cleaned=any(changed for _, changed in [*parts, *sources]),
        reason=reason,
        refused=refused,
    )


# --- what is refused -------------------------------------------------------------------------------------------------


def _fault(claim: Claim, now: datetime) -> str:
    """Why a claim cannot be kept; "" when it can. The words themselves are not in it."""
    if not claim.text.strip():
        return "the text is empty: say what is to be kept"
    if len(claim.text) > MAX_TEXT:
        return f"the text is longer than {MAX_TEXT:,} characters"
    if max(len(claim.subject), len(claim.predicate)) > 500 or len(claim.object) > 1000:
        return "the subject and the predicate have at most 500 characters, the object 1,000"
    if len(claim.external_id) > 200 or clean(claim.external_id)[1]:
        return "the external id has at most 200 characters, none of which a database cannot hold"
    if claim.created_at is not None and claim.created_at > now + _CLOCKS_DIFFER:
        return "the time when it was said is in the future"
    if claim.valid_from and claim.valid_to and claim.valid_to < claim.valid_from:
        return "valid_to is before valid_from"
    return fault_of_text(claim.text, claim.subject, claim.predicate, claim.object) or _fault_of_evidence(claim)


def fault_of_text(*texts: str) -> str:
    """Why words may not become memory: they hold a secret, or what our own context block said. "" when they may."""
    for text in filter(None, texts):
        if _holds_our_block(text):
            return "the text holds our own context block, which is memory already: leave it out"
        if secret := screening.secret_in(text):
            return f"the text holds a secret ({secret}), which is never kept: leave it out"
    return ""


def _holds_our_block(text: str) -> bool:
    """Whether a text holds a block as we write it, whole. A lone mark is only a text that looks like one: it is kept,
    and the fence takes its meaning away when it is read (C15).
    """
    blocks = (text[start:end] for start, end in fencing.own_blocks(text))
    return any(block.startswith(fencing.OPENING) and block.endswith(fencing.CLOSING) for block in blocks)


def _fault_of_evidence(claim: Claim) -> str:
    for ref in claim.evidence:
        if any(_too_long(uri) for uri in (ref.source_uri, ref.root_source)):
            return f"a source's address has at most 1,000 characters and {MAX_URI_BYTES:,} bytes"
        if fault := fault_of_text(ref.quote):
            return fault.replace("the text", "the quote", 1)
    return ""


def _too_long(uri: str) -> bool:
    return len(uri) > 1000 or len(uri.encode("utf-8", "surrogatepass")) > MAX_URI_BYTES


def _fault_of_origin(claim: Claim, by: str) -> str:
    if claim.stated_by is StatedBy.OPERATOR and is_program(by):
        return "a program cannot speak for an operator: a person says it, with the command"
    return ""


# --- whose word it is ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Quoted:
    """What was found for a quote: the evidence under its turn's own source, whether the user said it, or the fault."""

    ref: EvidenceRef
    of_user: bool = False
    fault: str = ""


def _turns_of(scope: Scope, refs: Iterable[EvidenceRef]) -> dict[EvidenceRef, _Quoted]:
    """Where quotes stand in the stored turns of a scope. Two queries at most, none without a quote."""
    wanted = set(refs)
    if not wanted:
        return {}
    named = {ref.episode for ref in wanted if ref.episode}
    turns = Episode.objects.filter(scope=scope, text__isnull=False).annotate(folded=Lower(Trim("role")))
    by_name = {turn.external_id: turn for turn in turns.filter(external_id__in=named)} if named else {}
    said: list[Episode] = []
    if any(not ref.episode for ref in wanted):
        said = list(turns.filter(folded__in=roles_of(StatedBy.USER)).order_by("-happened_at", "-pk")[:_LOOKED_AT])
    return {ref: _found(ref, by_name.get(ref.episode)) if ref.episode else _searched(ref, said) for ref in wanted}


def _found(ref: EvidenceRef, turn: Episode | None) -> _Quoted:
    if turn is None:
        return _Quoted(ref, fault="the turn that is quoted is not stored: observe it first, or name no turn")
    at = _stands(ref.quote, turn)
    if at is None:
        return _Quoted(ref, fault="the quote does not stand in the turn it names")
    of_user = turn.record().stated_by is StatedBy.USER and _is_telling(ref.quote, turn)
    return _Quoted(_under(ref, turn, at), of_user=of_user)


def _searched(ref: EvidenceRef, said: Sequence[Episode]) -> _Quoted:
    """A quote that names no turn is looked for in what the user said last; one found nowhere stays as it was given."""
    for turn in said:
        at = _stands(ref.quote, turn)
        if at is not None and _is_telling(ref.quote, turn):
            return _Quoted(_under(ref, turn, at), of_user=True)
    return _Quoted(ref)


def _stands(quote: str, turn: Episode) -> int | None:
    """Where a quote stands in a turn, outside what our own context block said there, in code points."""
    at = fencing.without_own(turn.text or "").find(clean(quote)[0])
    return at if at >= 0 else None


def _is_telling(quote: str, turn: Episode) -> bool:
    """Whether a quote is more than a word that any turn may hold: two words at least, or the turn whole."""
    return len(tokens(quote)) >= 2 or quote.strip() == (turn.text or "").strip()


def _under(ref: EvidenceRef, turn: Episode, at: int) -> EvidenceRef:
    return EvidenceRef(turn.source_uri, turn.root_source, ref.quote, at, turn.external_id)


def _sourced(refs: tuple[EvidenceRef, ...], by: str) -> tuple[EvidenceRef, ...]:
    """The same, each with a source: who made the call is the witness where none is named, once however often (R95)."""
    return tuple(ref if ref.source_uri else replace(ref, source_uri=by) for ref in refs) or (EvidenceRef(by),)

"""Calls that write: each checks the caller, makes one domain call and translates its answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Final

from observations import ingest
from observations.calls import schemas
from observations.calls.rights import CallRefused, Code, Right, check, find_scope, known_scope, refusals
from observations.calls.shapes import ClaimIn, Faulty
from observations.ingest import background
from observations.models import database_now
from observations.records import Action, Caller, Claim, EvidenceRef, Kept, StatedBy, Turn, roles_of

_SAID_BY_A_PERSON: Final = 0.9  # where a call gives no confidence: over whatever is promoted (R75)
_OTHERWISE: Final = 0.5
_CLOCKS_DIFFER: Final = timedelta(minutes=5)


def observe(*, caller: Caller, asked: schemas.Observe) -> schemas.Observed:
    """Record turns word for word; the answer says what will become of extraction: it is queued, waits for more turns,
    is off, or has no model.
    """
    check(caller=caller, right=Right.WRITE, scope=asked.scope)
    with refusals():
        now = database_now()
        faults = [_fault_of_turn(turn, now, caller) for turn in asked.turns]
        turns = [_turn(turn) for turn, fault in zip(asked.turns, faults, strict=True) if not fault]
        observed = ingest.write_within(
            name=asked.scope,
            write=lambda scope: background.observe(scope=scope, turns=turns, by=caller.name),
            keeps=lambda answer: any(each.id is not None for each in answer.written),
        )
    written = iter(observed.written)
    fates = [_refused_turn(fault) if fault else _turn_kept(next(written)) for fault in faults]
    return schemas.Observed(
        added=sum(turn.fate == "added" for turn in fates),
        already_there=sum(turn.fate == "already there" for turn in fates),
        refused=sum(turn.fate == "refused" for turn in fates),
        turns=fates,
        extraction=str(observed.extraction),
        waiting=observed.waiting,
        every=observed.every,
    )


def remember(*, caller: Caller, asked: schemas.Remember) -> schemas.Remembered:
    """Keep one claim in the caller's words. What is there in the same words is acknowledged and gains evidence instead
    of being stored twice; what is only similar is stored.
    """
    check(caller=caller, right=Right.WRITE, scope=asked.scope)
    with refusals():
        [kept] = _kept_within(asked.scope, [_claim(asked)], caller)
    return _remembered(kept, caller)


def store_facts(*, caller: Caller, asked: schemas.StoreFacts) -> schemas.FactsStored:
    """Keep a list of facts about one user, each said by a named person: agents, bots and unknown authors are refused.
    One bad fact does not sink the others.
    """
    check(caller=caller, right=Right.WRITE, scope=asked.scope)
    if not asked.about.strip():
        raise CallRefused(Code.INVALID, "Name the user whom the facts are about.")
    authors, faults, claims = _Authors(asked), [], []
    for fact in asked.facts:
        fault, source, stated_by = (fact.fault, "", StatedBy.AGENT) if isinstance(fact, Faulty) else authors.of(fact)
        faults.append(fault)
        if not fault and not isinstance(fact, Faulty):
            claims.append(_fact(fact, asked.about, source, stated_by))
    with refusals():
        kept = iter(_kept_within(asked.scope, claims, caller))
    refused = (schemas.Remembered(action=Action.REFUSED, reason=fault) if fault else None for fault in faults)
    facts = [refusal or _remembered(next(kept), caller) for refusal in refused]
    return schemas.FactsStored(
        stored=sum(fact.action in (Action.ADDED, Action.UPDATED) for fact in facts),
        duplicates=sum(fact.action is Action.KNOWN for fact in facts),
        refused=sum(fact.action is Action.REFUSED for fact in facts),
        facts=facts,
    )


def correct(*, caller: Caller, asked: schemas.Correct) -> schemas.Remembered:
    """Put a new claim in the place of one exact row; the old one keeps its text in the history. A program's correction
    of what a person wrote waits for a person, and both stay until then.
    """
    check(caller=caller, right=Right.WRITE, scope=asked.scope)
    with refusals():
        kept = ingest.correct(
            scope=known_scope(asked.scope),
            observation_id=asked.id,
            claim=_claim(asked),
            by=caller.name,
            union=asked.union,
            version=asked.version,
            speaks_for_user=caller.speaks_for_user,
        )
    return _remembered(kept, caller)


def retire(*, caller: Caller, asked: schemas.Retire) -> schemas.Remembered:
    """Take one exact row out of the reads; nothing is lost and it can be restored. What a person said waits for a
    person when a program retires it.
    """
    check(caller=caller, right=Right.WRITE, scope=asked.scope)
    with refusals():
        scope = known_scope(asked.scope)
        kept = ingest.retire(scope=scope, observation_id=asked.id, by=caller.name, reason=asked.why)
    return _remembered(kept, caller)


def restore(*, caller: Caller, asked: schemas.Restore) -> schemas.Remembered:
    """Bring one retired row back into the reads."""
    check(caller=caller, right=Right.WRITE, scope=asked.scope)
    with refusals():
        kept = ingest.bring_back(scope=known_scope(asked.scope), observation_id=asked.id, by=caller.name)
    return _remembered(kept, caller)


def take_back(*, caller: Caller, asked: schemas.TakeBack) -> schemas.TakenBack:
    """Undo in one step that reading turns in the background put a row in the place of another: the old row is current
    again, the new one is archived whole. Refused, naming what stands in the way, when something was built on it.
    """
    check(caller=caller, right=Right.WRITE, scope=asked.scope)
    with refusals():
        taken = ingest.take_back(
            scope=known_scope(asked.scope),
            observation_id=asked.id,
            by=caller.name,
            speaks_for_user=caller.speaks_for_user,
        )
    return schemas.TakenBack(id=taken.id, back=list(taken.back), done_before=taken.done_before)


def forget(*, caller: Caller, asked: schemas.Forget) -> schemas.Requested:
    """Ask that rows, everything about the subject of one row, or all that a scope holds be forgotten for good. Nothing
    is erased by this call: a person decides.
    """
    check(caller=caller, right=Right.PROPOSE, scope=asked.scope)
    with refusals():
        request = ingest.ask_to_forget(
            scope=known_scope(asked.scope),
            by=caller.name,
            observation_ids=asked.ids,
            subject_of=asked.subject_of,
            everything=asked.everything,
        )
    return schemas.Requested(request=request)


def propose(*, caller: Caller, asked: schemas.Propose) -> schemas.Requested:
    """Put a change of rows before a person: retire them, forget them, or let another row take their place."""
    check(caller=caller, right=Right.PROPOSE, scope=asked.scope)
    with refusals():
        request = ingest.propose(
            scope=known_scope(asked.scope),
            kind=asked.kind,
            ids=asked.ids,
            by=caller.name,
            by_id=asked.by_id,
            why=asked.why,
        )
    return schemas.Requested(request=request)


def residue_hold(*, caller: Caller, asked: schemas.HoldResidue) -> schemas.ResidueHeld:
    """Hand in what was noticed in a run, at most seven descriptions, for the prompts of the next three days. Never
    remembered, and off until a person turns it on for the scope.
    """
    check(caller=caller, right=Right.WRITE, scope=asked.scope)
    with refusals():
        scope = find_scope(asked.scope)
        if scope is None:
            items = [schemas.ResidueItem(held=False, reason=ingest.RESIDUE_OFF) for _ in asked.items]
            return schemas.ResidueHeld(held=0, refused=len(items), items=items)
        held = ingest.hold_residue(scope=scope, items=asked.items, session=asked.session, by=caller.name)
    return schemas.ResidueHeld(
        held=held.held,
        refused=len(held.items) - held.held,
        gave_way=held.gave_way,
        items=[schemas.ResidueItem(**asdict(item)) for item in held.items],
    )


def _kept_within(name: str, claims: Sequence[Claim], caller: Caller) -> list[Kept]:
    """Claims kept in a scope of that name, which is not made where all of them are refused."""
    return ingest.write_within(
        name=name,
        write=lambda scope: ingest.store_facts(
            scope=scope, claims=claims, by=caller.name, speaks_for_user=caller.speaks_for_user
        ),
        keeps=lambda kept: any(one.id is not None for one in kept),
    )


# --- translation -----------------------------------------------------------------------------------------------------


def _remembered(kept: Kept, caller: Caller) -> schemas.Remembered:
    """Who may not read is told no text, whichever row a write met."""
    told = {name: getattr(kept, name) for name in schemas.Remembered.model_fields}
    return schemas.Remembered(**{**told, "text": kept.text if caller.may_read else ""})


def _claim(given: ClaimIn) -> Claim:
    person = given.stated_by in (StatedBy.USER, StatedBy.OPERATOR)
    default = _SAID_BY_A_PERSON if person else _OTHERWISE
    return Claim(
        text=given.text,
        external_id=given.external_id,
        subject=given.subject,
        predicate=given.predicate,
        object=given.object,
        confidence=default if given.confidence is None else given.confidence,
        stated_by=given.stated_by,
        kind=given.kind,
        half_life_days=given.half_life_days,
        created_at=given.said_at,
        valid_from=given.valid_from,
        valid_to=given.valid_to,
        evidence=tuple(
            EvidenceRef(ref.source_uri, ref.root_source, ref.quote, None, ref.episode) for ref in given.evidence
        ),
    )


class _Authors:
    """Who said the facts of one call, each looked at once: most facts of a call are of one author."""

    def __init__(self, asked: schemas.StoreFacts) -> None:
        self._of_the_call = asked.author or schemas.Author()
        self._known: dict[tuple[str, str], tuple[str, str, StatedBy]] = {}

    def of(self, fact: schemas.Fact) -> tuple[str, str, StatedBy]:
        """Why the author is not believed ("" for a person), the source the fact rests on, and whose word it is."""
        who = fact.author or self._of_the_call
        if (who.name, who.role) not in self._known:
            fault = ingest.fault_of_author(name=who.name, role=who.role)
            source = ingest.source_of(name=who.name, role=who.role)
            self._known[who.name, who.role] = (fault, source, ingest.origin_of(who.role) or StatedBy.AGENT)
        return self._known[who.name, who.role]


def _fact(fact: schemas.Fact, about: str, source: str, stated_by: StatedBy) -> Claim:
    return Claim(
        text=fact.text,
        external_id=fact.external_id,
        subject=fact.subject or about,
        predicate=fact.predicate,
        object=fact.object,
        confidence=_SAID_BY_A_PERSON,
        stated_by=stated_by,
        kind=fact.kind,
        created_at=fact.said_at,
        evidence=(EvidenceRef(fact.source_uri or source, "", fact.quote, None, fact.episode),),
    )


def _fault_of_turn(turn: schemas.TurnIn | Faulty, now: datetime, caller: Caller) -> str:
    if isinstance(turn, Faulty):
        return turn.fault
    if not turn.text.strip():
        return "text: it is empty, and nothing happened."
    if turn.happened_at is not None and turn.happened_at > now + _CLOCKS_DIFFER:
        return "happened_at: it is in the future."
    if not caller.person and turn.role.strip().casefold() in roles_of(StatedBy.OPERATOR):
        return "role: a program hands in no turn of an operator or of the system: a person does, with the command."
    return ""


def _turn(turn: schemas.TurnIn | Faulty) -> Turn:
    assert isinstance(turn, schemas.TurnIn)
    return Turn(**{name: getattr(turn, name) for name in schemas.TurnIn.model_fields})


def _refused_turn(reason: str) -> schemas.TurnKept:
    return schemas.TurnKept(fate="refused", reason=reason)


def _turn_kept(written: ingest.Written) -> schemas.TurnKept:
    return schemas.TurnKept.model_validate(
        {"fate": str(written.fate), "id": written.id, "reason": written.reason, "cleaned": written.cleaned}
    )

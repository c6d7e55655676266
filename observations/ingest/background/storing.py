"""Storing what a batch of turns came to: one short transaction that holds all of it, or nothing.

Locks in the one order: the scope (shared), the run, the turns, the texts, the rows in id order. What the reconciler
decided about is looked at again under the locks; what moved meanwhile is left alone, and its claim is added, flagged.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from itertools import groupby
from typing import Final

import numpy as np
from django.db import transaction

from observations import outbox, store
from observations.embedding import Profile
from observations.extraction import Proposed, Quoted
from observations.extraction import Refused as Disbelieved
from observations.ingest.background.acts import Act, Because, On, asks
from observations.ingest.background.weighing import (
    Bad,
    Weighed,
    known_row,
    known_texts,
    same_subject,
    speaks_of,
    text_key,
)
from observations.models import Evidence, Extraction, IntakeItem, IntakeRun, Observation, Scope, UnusableAnswer
from observations.normalise import normalised
from observations.reconciliation import Decision, Rests, Verdict, why_it_waits
from observations.records import Claim, EpisodeRecord, EvidenceRef, StatedBy, Status, WrittenBy
from observations.store import Considered, Fate, Written

CAUSE: Final = "intake"  # in the journal of every row that this moves
SAID_SINCE: Final = "intake: said properly since"  # of a row that was held back until then
_SAID_BY_A_PERSON: Final = 0.9  # confidence of a person's own word: over whatever is promoted (R75)
_SAID_BY_ANOTHER: Final = 0.5
_PEOPLE: Final = frozenset({StatedBy.USER, StatedBy.OPERATOR})
_READERS: Final = frozenset({StatedBy.AGENT, StatedBy.TOOL})  # what they say they may have read in memory


@dataclass(frozen=True, slots=True)
class Batch:
    """What some turns came to, ready to be stored."""

    turns: Mapping[int, EpisodeRecord]
    states: Mapping[int, Extraction.State]
    weighed: Sequence[Weighed] = ()
    disbelieved: Sequence[Disbelieved] = ()
    bad: tuple[UnusableAnswer.Purpose, Bad, str] | None = None  # an unusable answer, and the model that gave it
    profile: Profile | None = None  # of the vectors


def store_batch(*, run: IntakeRun, scope: Scope, batch: Batch) -> Counter[str]:
    """Store all of a batch, and count what became of its claims.

    Raises store.TurnsMoved or store.RunTakenOver when another run was faster, and django.db.Error; then nothing of it
    is stored.
    """
    with transaction.atomic():
        now = store.lock_scope(scope_id=scope.pk, cause=CAUSE)
        store.hold_run(run=run)
        store.take_turns(run=run, states=batch.states)
        if batch.bad is not None:
            purpose, bad, model = batch.bad
            store.add_unusable(
                run=run,
                purpose=purpose,
                episodes=sorted(batch.states),
                reply=bad.reply,
                reason=bad.reason,
                model=model,
                prompt_version=bad.prompt_version,
            )
        return _Storing(run=run, scope=scope, batch=batch, now=now).settle()


# --- deciding under the locks ----------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Storing:
    """One batch inside its transaction."""

    run: IntakeRun
    scope: Scope
    batch: Batch
    now: datetime
    stored: list[Observation] = field(default_factory=list)  # active rows with the text of a claim
    waiting: list[Observation] = field(default_factory=list)  # held back rows with the text of a claim
    rows: Mapping[int, Observation] = field(default_factory=dict)  # locked
    rests: Mapping[int, list[Rests]] = field(default_factory=dict)
    gone: set[int] = field(default_factory=set)  # rows that this batch supersedes
    acts: dict[int, Act] = field(default_factory=dict)  # by the identity of what was weighed, in the turns' order

    def settle(self) -> Counter[str]:
        """Decide, write, and keep what became of each claim."""
        self.look()
        for each in sorted(self.batch.weighed, key=lambda each: each.doubted):  # stable: what is believed goes first
            if (act := self.held(each) if each.doubted else self.act(each)) is not None:
                self.acts[id(each)] = act
        acts = [self.acts[id(each)] for each in self.batch.weighed if id(each) in self.acts]
        self.write(acts)
        self.settle_held(acts)
        self.keep(acts)
        figures = Counter(act.counted for act in acts)
        figures["known"] += sum(len(act.weighed.claims) - 1 for act in acts)
        figures["refused"] += len(self.batch.disbelieved)
        unflagged = (IntakeItem.Verdict.NOOP, IntakeItem.Verdict.HELD)
        figures["flagged"] += sum(act.verdict not in unflagged and not act.settled for act in acts)
        return figures

    def look(self) -> None:
        """Read again, locked, whatever a claim may be added to or take the place of. Up to five queries."""
        weighed = self.batch.weighed
        keys = [text_key(each) for each in weighed]
        store.lock_texts(scope_id=self.scope.pk, text_keys=keys)
        self.stored = known_texts(scope=self.scope, text_keys=keys)
        self.waiting = known_texts(scope=self.scope, text_keys=keys, status=Status.QUARANTINED)
        decided = (each.decision.target for each in weighed if each.decision is not None)
        targets = {target for target in decided if target is not None and target > 0}
        wanted = targets | {row.pk for row in (*self.stored, *self.waiting)}
        if wanted:
            self.rows = store.lock_rows(scope_id=self.scope.pk, ids=wanted)
        if targets:
            self.rests = _rests_of(self.scope, targets)

    def act(self, weighed: Weighed) -> Act | None:
        """What is done for one claim, None when it is part of another; see Because and Waits for what is not done."""
        current = [row for row in self.stored if self.is_current(row.pk)]
        if (known := known_row(weighed, current)) is not None:
            return self.again(weighed, known)
        decision = weighed.decision
        if decision is None:
            unseen = Because.NO_VECTOR if weighed.blind else Because.MOVED
            because = Because.NOT_COMPARED if weighed.near else unseen
            return Act(weighed, IntakeItem.Verdict.ADD, "added", because)
        if decision.refusal is not None:
            return Act(weighed, IntakeItem.Verdict.REFUSED, "added", f"added; {decision.refused}")
        if decision.target is None:
            return Act(weighed, IntakeItem.Verdict.ADD, "added", settled=True)
        on = self.concerned(weighed, decision.target)
        if on is None:
            stored = decision.target if decision.target > 0 else None
            reason = f"{Because.MOVED} (obs_{stored})" if stored else Because.MOVED
            return Act(weighed, IntakeItem.Verdict.ADD, "added", reason, target=stored)
        return self.touch(weighed, decision, on)

    def held(self, weighed: Weighed) -> Act:
        """A claim that is held back: its own row, or that in which the same words wait already. What is in the reads in
        the same words stays as it is: a turn that says only a part of it is no evidence for it.
        """
        current = [row for row in self.stored if self.is_current(row.pk)]
        known, same = known_row(weighed, current), self.same(weighed)
        if known is not None or same is not None:
            return Act(weighed, IntakeItem.Verdict.NOOP, "known", Because.DOUBTED, known, observation=known, same=same)
        waits = [row for row in self.waiting if self.rows[row.pk].status == Status.QUARANTINED]
        doubt = weighed.claim.doubt or ""
        return Act(weighed, IntakeItem.Verdict.HELD, "held", doubt, observation=known_row(weighed, waits))

    def same(self, weighed: Weighed) -> Act | None:
        """The believed claim of the same turns in the same words."""
        text = normalised(weighed.text)
        acts = (act for act in self.acts.values() if not act.weighed.doubted)
        alike = (act for act in acts if normalised(act.weighed.text) == text)
        return next((act for act in alike if same_subject(act.weighed.key, weighed.key)), None)

    def concerned(self, weighed: Weighed, target: int) -> On | None:
        """The row or the earlier claim that a decision is about, if it is as it was when the reconciler saw it."""
        if target < 0:
            return self.earlier(weighed.earlier[target])
        if not self.is_current(target, version=weighed.versions.get(target)):
            return None
        row = self.rows[target]
        return On(
            stated_by=StatedBy(row.stated_by),
            written_by=WrittenBy(row.written_by),
            rests=self.rests.get(target, []),
            related=speaks_of(weighed, row),
            target=target,
        )

    def earlier(self, other: Weighed) -> On | None:
        """An earlier claim of the same turns, if it is going to be a row that nothing is asked about (R2)."""
        act = self.acts.get(id(other))
        if act is None or act.observation is not None or act.review or act.passed:
            return None
        rests = [Rests.on(self.batch.turns[each.episode]) for each in _quoted(other)]
        return On(other.claim.stated_by, WrittenBy.BACKGROUND, rests, related=True, earlier=act)

    def touch(self, weighed: Weighed, decision: Decision, on: On) -> Act | None:
        """What is done where a claim concerns a row or an earlier claim; None when it is part of the earlier one."""
        if decision.verdict is Verdict.NOOP:
            return self.known(weighed, on)
        if decision.verdict is Verdict.DELETE and not decision.replaces:
            return asks(weighed, on, "review_retire", Because.RETIRE)
        waits: StrEnum | None = why_it_waits(
            stated_by=on.stated_by,
            written_by=on.written_by,
            rests_on=on.rests,
            claimed_by=weighed.claim.stated_by,
            quoted_from=[Rests.on(self.batch.turns[each.episode]) for each in _quoted(weighed)],
        )
        if not on.related:  # nothing that is about something else leaves the reads by a model's word
            waits = waits or Because.ELSEWHERE
        if waits is not None:
            return asks(weighed, on, "review_contradiction", waits)
        return self.supersede(weighed, on, union=decision.verdict is Verdict.UPDATE)

    def known(self, weighed: Weighed, on: On) -> Act | None:
        """A claim that a row or an earlier claim says already; the user's word is not kept as somebody else's."""
        if weighed.claim.stated_by is StatedBy.USER and on.stated_by is not StatedBy.USER:
            reason, settled = Because.OWN_WORDS, True
            return Act(weighed, IntakeItem.Verdict.ADD, "added", reason, on.target, on.earlier, settled=settled)
        if on.earlier is not None:
            on.earlier.weighed.claims += weighed.claims
            return None
        return Act(weighed, IntakeItem.Verdict.NOOP, "known", target=on.target, observation=on.target)

    def supersede(self, weighed: Weighed, on: On, *, union: bool, reason: str = "") -> Act:
        """The claim takes the place of a row or an earlier claim, which no other claim of the batch may then."""
        if on.target is not None:
            self.gone.add(on.target)
        if on.earlier is not None:
            on.earlier.passed = True
        verdict = IntakeItem.Verdict.UPDATE if union else IntakeItem.Verdict.DELETE
        done = Act(weighed, verdict, "updated" if union else "replaced", reason, on.target, on.earlier, settled=True)
        done.supersedes, done.union = True, union
        return done

    def again(self, weighed: Weighed, known: int) -> Act:
        """A claim in the words of a row. What only an extracted row of somebody else says becomes the user's word:
        nothing may then take it out of the reads that may not touch what a user said (R47).
        """
        row = self.rows[known]
        on = On(StatedBy(row.stated_by), WrittenBy(row.written_by), target=known)
        users = weighed.claim.stated_by is StatedBy.USER and on.stated_by is not StatedBy.USER
        if users and on.written_by is WrittenBy.BACKGROUND:
            return self.supersede(weighed, on, union=True, reason=Because.OWN_WORD)
        return Act(weighed, IntakeItem.Verdict.NOOP, "known", Because.KNOWN, target=known, observation=known)

    def is_current(self, pk: int, *, version: int | None = None) -> bool:
        """Whether a locked row is in the reads, and at this version if one is given."""
        row = self.rows.get(pk)
        if row is None or row.status != Status.ACTIVE or pk in self.gone:
            return False
        return version is None or row.version == version

    # --- writing -----------------------------------------------------------------------------------------------------

    def write(self, acts: Sequence[Act]) -> None:
        """Evidence first, while its rows are current; then new rows in the order of the turns, each before it
        supersedes; then their vectors.
        """
        self.support(acts)
        fresh = [act for act in acts if act.observation is None and act.same is None]
        for supersedes, group in groupby(fresh, key=lambda act: act.supersedes):
            for act, written in self.replaced(group) if supersedes else self.added(list(group)):
                act.observation = written.id
                if act.earlier is not None:
                    act.target = act.earlier.observation
                if written.fate == Fate.KNOWN:
                    act.reason = act.reason or Because.STORED
        for act in acts:
            if act.same is not None and act.observation is None:
                act.target = act.observation = act.same.observation
        self.put_vectors(fresh)

    def support(self, acts: Sequence[Act]) -> None:
        """Let rows rest on the turns that say them again: current ones, and those that are held back."""
        believed = [act for act in acts if act.observation is not None and not act.weighed.doubted]
        roots = self.roots(act for act in believed if _is_echoed(act.weighed))
        refs: dict[int, list[EvidenceRef]] = {}
        for act in believed:
            assert act.observation is not None
            refs.setdefault(act.observation, []).extend(self.evidence(act.weighed, roots.get(act.observation, "")))
        if refs:
            store.add_evidence_to(scope_id=self.scope.pk, refs=refs)
        waiting: dict[int, list[EvidenceRef]] = {}
        for act in acts:
            if act.observation is not None and act.verdict == IntakeItem.Verdict.HELD:
                waiting.setdefault(act.observation, []).extend(self.evidence(act.weighed))
        if waiting:
            store.add_evidence_to(scope_id=self.scope.pk, refs=waiting, status=Status.QUARANTINED)

    def settle_held(self, acts: Sequence[Act]) -> None:
        """Take rows off the list of a person whose words these turns say properly: they are in the reads by now, and
        what was doubted is no evidence for them.
        """
        said = [act.weighed for act in acts if not act.weighed.doubted]
        settled = sorted({pk for each in said for row in self.waiting if (pk := known_row(each, [row])) is not None})
        if settled:
            store.lock_scope(scope_id=self.scope.pk, cause=SAID_SINCE)
            store.move(scope_id=self.scope.pk, ids=settled, to=Status.RETRACTED)
            store.lock_scope(scope_id=self.scope.pk, cause=CAUSE)

    def added(self, acts: Sequence[Act]) -> Iterator[tuple[Act, Written]]:
        claims = [self.claim(act.weighed) for act in acts]
        written = store.add_observations(
            scope=self.scope,
            claims=claims,
            written_by=WrittenBy.BACKGROUND,
            reconciled=[act.settled for act in acts],
            held=[act.weighed.doubted for act in acts],
        )
        return zip(acts, written, strict=True)

    def replaced(self, acts: Iterator[Act]) -> Iterator[tuple[Act, Written]]:
        for act in acts:
            old_id = act.target if act.earlier is None else act.earlier.observation
            assert old_id is not None
            written = store.replace(
                scope=self.scope,
                old_id=old_id,
                claim=self.claim(act.weighed),
                written_by=WrittenBy.BACKGROUND,
                union=act.union,
                reconciled=True,
                cause=CAUSE,
            )
            yield act, written

    def claim(self, weighed: Weighed) -> Claim:
        """A claim as it is stored: said when it was first said, and never later than now."""
        leader = weighed.claim
        return Claim(
            text=leader.text,
            subject=leader.subject,
            predicate=leader.predicate,
            object=leader.object,
            confidence=_SAID_BY_A_PERSON if leader.stated_by in _PEOPLE else _SAID_BY_ANOTHER,
            stated_by=leader.stated_by,
            kind=leader.kind,
            created_at=min(self.now, *(each.happened_at for each in weighed.claims)),
            valid_from=leader.valid_from,
            evidence=tuple(self.evidence(weighed)),
        )

    def evidence(self, weighed: Weighed, root: str = "") -> Iterator[EvidenceRef]:
        """The turns a claim is quoted from, each with its words; two turns of one source are one piece.

        An agent or tool that says again what is in the reads is no witness of its own: it may have read it there (R95,
        C8). Its turn counts under `root`, or under that of whoever said it in the same turns.
        """
        refs: dict[str, EvidenceRef] = {}
        for claim in weighed.claims:
            for quoted in claim.evidence:
                turn = self.batch.turns[quoted.episode]
                echoed = root if claim.stated_by in _READERS else ""
                ref = EvidenceRef(
                    source_uri=turn.source_uri,
                    root_source=echoed or turn.root_source,
                    quote=turn.text[quoted.start : quoted.end],
                    quote_start=quoted.start,
                    episode=turn.external_id,
                )
                refs.setdefault(ref.source_uri, ref)
            if claim.stated_by not in _READERS:
                root = root or next(iter(refs.values())).root
        yield from refs.values()

    def roots(self, acts: Iterable[Act]) -> dict[int, str]:
        """What the rows that are said again rest on first. One query, or none."""
        ids = {act.observation for act in acts}
        if not ids:
            return {}
        rows = Evidence.objects.filter(scope=self.scope, observation__in=ids).order_by("observation", "pk")
        return dict(rows.distinct("observation").values_list("observation_id", "root_source"))

    def put_vectors(self, acts: Sequence[Act]) -> None:
        """Store the vectors that the claims were compared by, so that the next batch finds them by meaning at once."""
        found = {act.observation: act.weighed for act in acts if act.observation is not None}
        rows = [(pk, each, each.vector) for pk, each in sorted(found.items()) if each.vector is not None]
        if rows and self.batch.profile is not None:
            store.put_embeddings(
                profile=self.batch.profile,
                rows=[(self.scope.pk, pk) for pk, *_ in rows],
                vectors=np.stack([vector for *_, vector in rows]),
                bands=[each.bands for _, each, _ in rows],
            )

    # --- what became of it -------------------------------------------------------------------------------------------

    def keep(self, acts: Sequence[Act]) -> None:
        """A row for every claim, and what asks a person."""
        considered = [_considered(act, claim, first=not place) for act, place, claim in _claims(acts)]
        considered += [
            Considered(
                verdict=IntakeItem.Verdict.REFUSED,
                episode=each.episode,
                text=each.text,
                quote=each.quote,
                reason=each.reason,
            )
            for each in self.batch.disbelieved
        ]
        if not considered:
            return
        ids = store.add_items(run=self.run, considered=considered)
        for (act, place, _), item in zip(_claims(acts), ids, strict=False):
            if act.review and not place:
                self.ask(act, item)

    def ask(self, act: Act, item: int) -> None:
        """Ask a person, in this transaction; whoever reviews makes an operation of it."""
        assert act.target is not None
        assert act.observation is not None
        if act.review == "review_retire":
            payload: dict[str, int | str | Sequence[int]] = {"observations": [act.target]}
        else:
            payload = {"old": act.target, "new": act.observation}
        payload |= {"item": item, "why": act.reason, "by": CAUSE}
        outbox.enqueue(task=act.review, scope_id=self.scope.pk, key=f"{CAUSE} {item}", payload=payload)


def _claims(acts: Sequence[Act]) -> Iterator[tuple[Act, int, Proposed]]:
    """Every claim that the turns made, with its place among those that say the same."""
    for act in acts:
        for place, claim in enumerate(act.weighed.claims):
            yield act, place, claim


def _considered(act: Act, claim: Proposed, *, first: bool) -> Considered:
    decision = act.weighed.decision
    return Considered(
        verdict=act.verdict if first else IntakeItem.Verdict.NOOP,
        episode=claim.episode,
        text=claim.text,
        quote=claim.quote,
        reason=act.reason if first else Because.AGAIN,
        said=decision.said if decision and first else "",
        offered=tuple(near.id for near in act.weighed.near if near.id > 0) if first else (),
        target=act.target if first else act.observation,
        observation=act.observation,
    )


def _is_echoed(weighed: Weighed) -> bool:
    """Whether an agent or tool is among those who say it."""
    return any(claim.stated_by in _READERS for claim in weighed.claims)


def _quoted(weighed: Weighed) -> Iterator[Quoted]:
    for claim in weighed.claims:
        yield from claim.evidence


def _rests_of(scope: Scope, targets: set[int]) -> dict[int, list[Rests]]:
    """What some rows rest on, as far as it is turns. One query."""
    found: dict[int, list[Rests]] = {}
    rows = Evidence.objects.filter(scope=scope, observation__in=targets).select_related("episode").order_by("pk")
    for row in rows:
        rests = (
            Rests.on(row.episode.record()) if row.episode is not None and row.episode.text is not None else Rests(None)
        )
        found.setdefault(row.observation_id, []).append(rests)
    return found

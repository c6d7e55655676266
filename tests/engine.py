"""A small memory with an operation of each kind that rests on more than two texts, as the planner stores them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from django.db import transaction

from consolidation import review, runner
from consolidation.aliases import request_alias
from consolidation.models import Draft, Operation, Plan
from consolidation.operations import Approval, Json, Kind
from consolidation.review import Decision
from observations import store
from observations.llm import Answer
from observations.models import Episode, GivenKey, ModelCall, Observation, Scope
from observations.records import Claim, EvidenceRef, Given, KeyState, MemoryKind, Outcome, WrittenBy
from tests.building import observe, propose, scope, seconded, tell
from tests.desk import settle

QUESTION = "a1b2c3d4e5f60718293a4b5c6d7e8f90"  # a Draft.input_key
MODEL, PROMPT = "claude-test", "promote-1"
POLICY = "c" * 64  # the hash of one
_YEARS = ((2016, 2019), (2019, 2022), (2022, None))


@dataclass(frozen=True, slots=True)
class Engine:
    """One scope, all operations in one plan."""

    scope: Scope
    plan: Plan
    promote: Operation  # for a person: two witnesses, one of them twice
    alone: Operation  # a promotion that is never applied: one witness
    compact: Operation  # for a person: it loses a number and adds a name
    whole: Operation  # a compaction that loses nothing, automatic
    alias: Operation
    archive: Operation
    supersede: Operation  # three values, each in its period; the key of one is a model's
    prune: Operation  # applied: it is in the trash
    given: Observation  # its key is a model's
    episodes: tuple[Episode, ...]  # of the promotion

    @property
    def open(self) -> tuple[Operation, ...]:
        """What a person may decide."""
        return (self.promote, self.compact, self.whole, self.alias, self.archive, self.supersede)


def engine(name: str = "team-a/u1", *, mark: str = "") -> Engine:
    """The memory; `mark` stands in every text and key of it."""
    within = scope(name)
    plan = Plan.objects.create(
        scope=within,
        pattern=name,
        requested_by="test",
        trigger="command",
        policies={str(within.pk): POLICY},
        snapshots={POLICY: {"pattern": "team-a/*", "version": 3, "body": {}}},
    )
    told = _told(within, mark)
    return Engine(
        scope=within,
        plan=plan,
        promote=promotion(told, plan=plan, mark=mark),
        alone=promotion(told[:1], plan=plan, mark=mark, skipped="1 supporting, 2 needed"),
        compact=compaction(within, plan=plan, mark=mark, lossy=True),
        whole=compaction(within, plan=plan, mark=mark, lossy=False),
        alias=_alias(within, mark),
        archive=_archive(within, plan, mark),
        supersede=_values(within, plan, mark),
        prune=_pruned(within, plan, mark),
        given=keyed(within, mark),
        episodes=told,
    )


def marked(text: str, mark: str) -> str:
    """A text with the mark at its end."""
    return f"{text} {mark}".strip()


# --- episodes -------------------------------------------------------------------------------------------------------


def _told(within: Scope, mark: str) -> tuple[Episode, ...]:
    """Three turns of two sources."""
    turns = (
        ("I take the night train to Graz again this week.", "mail://1", Outcome.UNKNOWN),
        ("Booked: the night train to Graz, window seat.", "mail://1", Outcome.UNKNOWN),
        ("She took the night train to Graz, as always.", "call://7", Outcome.SUCCESS),
    )
    return tuple(
        tell(marked(text, mark), within=within, root=root, outcome=outcome, session="trips", role="user")
        for text, root, outcome in turns
    )


def promotion(told: tuple[Episode, ...], *, plan: Plan, mark: str = "", skipped: str = "") -> Operation:
    """A fact with the words that say it, and the answer it comes from."""
    within, words = told[0].scope, "the night train to Graz"
    support: list[Json] = []
    for turn in told:
        at = (turn.text or "").find(words)
        support.append([turn.pk, at, at + len(words)])
    Draft.objects.get_or_create(
        scope=within,
        input_key=QUESTION,
        defaults={
            "kind": Kind.PROMOTE,
            "episode_ids": [turn.pk for turn in told],
            "reply": "{}",
            "answer": Answer.OK,
            "model": MODEL,
            "prompt_version": PROMPT,
        },
    )
    roots = len({turn.root_source for turn in told})
    return propose(
        Kind.PROMOTE,
        told,
        approval=Approval.NEVER if skipped else Approval.NEEDS_HUMAN,
        skipped_reason=skipped,
        plan=plan,
        text=marked("Ana takes the night train to Graz.", mark),
        key=(marked("Ana", mark), marked("takes", mark), marked("the night train to Graz", mark)),
        product={
            "discriminator": f"{QUESTION[:16]}.{len(told)}",
            "support": support,
            "episodes": len(told),
            "roots": roots,
            "verified": 1,
            "confidence": 0.6,
            "stated_by": "agent",
        },
        signals={"asked_about": len(told), "prompt": PROMPT},
    )


def compaction(within: Scope, *, plan: Plan, mark: str = "", lossy: bool) -> Operation:
    """A summary of four turns, which loses a number of the first and adds a name, or loses nothing."""
    texts = (
        "Paid 120 euros for the ticket.",
        "The train left late.",
        "Arrived at dawn.",
        "Slept at the station hotel.",
    )
    turns = [tell(marked(text, mark), within=within, session="graz") for text in texts]
    summary = marked("Paid for the ticket with Ben; arrived at dawn." if lossy else "Paid 120 euros; arrived.", mark)
    at = summary.find("Ben")
    lost: list[Json] = [{"episode": turns[0].pk, "start": 5, "end": 8, "sort": "number", "how": "gone"}]
    added: list[Json] = [{"start": at, "end": at + 3, "sort": "name"}]
    return propose(
        Kind.COMPACT,
        turns,
        approval=Approval.NEEDS_HUMAN if lossy else Approval.AUTO,
        plan=plan,
        text=summary,
        product={"discriminator": f"{'0' * 15}{int(lossy)}", "confidence": 0.4},
        signals={
            "episodes": 4,
            "characters": [100, len(summary)],
            "specifics": 1,
            "lost": {"number": 1} if lossy else {},
            "lost_at": lost if lossy else [],
            "invented": {"name": 1} if lossy else {},
            "invented_at": added if lossy else [],
            "not_mentioned": [turns[3].pk] if lossy else [],
            "parts_refused": 0,
        },
    )


# --- observations ---------------------------------------------------------------------------------------------------


def write(claim: Claim, *, within: Scope) -> Observation:
    """One observation with everything a claim can say of itself."""
    with transaction.atomic():
        [written] = store.add_observations(scope=within, claims=[claim], written_by=WrittenBy.BACKGROUND)
    assert written.id is not None
    return Observation.objects.get(pk=written.id)


def keyed(
    within: Scope, mark: str = "", *, text: str = "Bo works at Relay since May", model: str = MODEL
) -> Observation:
    """A row whose key a model gave, with the words it rests on."""
    row = observe(marked(text, mark), within=within)
    parts = (marked("Bo", mark), marked("works at", mark), marked("Relay", mark))
    given = Given(
        state=KeyState.GIVEN,
        subject=parts[0],
        predicate=parts[1],
        object=parts[2],
        quote=(0, 17),
        model=model,
        prompt_version="keys-1",
    )
    with transaction.atomic():
        assert store.put_keys(scope_id=within.pk, given={row.pk: given}) == {row.pk}
    assert GivenKey.objects.get(observation=row).state == GivenKey.State.GIVEN
    return row


def _alias(within: Scope, mark: str) -> Operation:
    main, other = marked("Anastasia Brandt", mark), marked("Ana B", mark)
    observe(marked("Anastasia Brandt leads the lab", mark), within=within, key=(main, "leads", "the lab"))
    observe(marked("Ana B leads the lab", mark), within=within, key=(other, "leads", "the lab"))
    return request_alias(scope=within, subject=other, name=main, by="nora")


def _archive(within: Scope, plan: Plan, mark: str) -> Operation:
    said = datetime(2020, 3, 1, tzinfo=UTC)
    claim = Claim(
        text=marked("Waiting on the relay fix", mark), external_id="faded", kind=MemoryKind.STATE, created_at=said
    )
    row = write(claim, within=within)
    signals: dict[str, Json] = {"first_said_at": said.isoformat(), "age_days": 900, "half_life_days": 7}
    return propose(Kind.ARCHIVE, [row], plan=plan, signals=signals)


def values(within: Scope, mark: str = "") -> list[Observation]:
    """Three homes, one after the other; the first has evidence with a quote."""
    subject, predicate = marked("Ann", mark), marked("lives in", mark)
    rows = []
    for (start, end), city in zip(_YEARS, ("Ghent", "Lyon", "Basel"), strict=True):
        claim = Claim(
            text=marked(f"Ann lives in {city}", mark),
            external_id=f"home-{city}",
            subject=subject,
            predicate=predicate,
            object=marked(city, mark),
            created_at=datetime(start, 6, 1, tzinfo=UTC),
            valid_from=datetime(start, 5, 1, tzinfo=UTC),
            valid_to=datetime(end, 4, 30, tzinfo=UTC) if end else None,
            evidence=(EvidenceRef(f"doc://{city}", quote=marked(f"moved to {city}", mark)),),
        )
        rows.append(write(claim, within=within))
    return rows


def _values(within: Scope, plan: Plan, mark: str) -> Operation:
    rows = values(within, mark)
    newest: dict[str, Json] = {
        "suggested": "newest",
        "suggested_keep": rows[-1].pk,
        "why": "newer is suggested, never assumed",
        "order": [row.pk for row in rows],
    }
    return propose(Kind.SUPERSEDE, rows, approval=Approval.NEEDS_HUMAN, keeper=rows[-1], product=newest, plan=plan)


def _pruned(within: Scope, plan: Plan, mark: str) -> Operation:
    rows = [observe(marked(text, mark), within=within) for text in ("Queue was long", "Lift was slow")]
    operation = propose(Kind.PRUNE, rows, approval=Approval.NEEDS_HUMAN, plan=plan)
    return approve_and_apply(operation, reason="past its retention")


def approve_and_apply(operation: Operation, *, decision: Decision | None = None, reason: str = "asked") -> Operation:
    """Decided by rita, agreed to by sam where two have to, and carried out by olga."""
    review.approve(operation=operation, by="rita", decision=decision, reason=reason)
    seconded(operation)
    done = runner.apply(operation=operation, by="olga")
    assert done.outcome == runner.Outcome.APPLIED, done
    settle()
    return Operation.objects.select_related("scope").get(pk=operation.pk)


# --- the model ------------------------------------------------------------------------------------------------------


def call(within: Scope | None, *, answer: Answer = Answer.OK, purpose: str = "promote", cost: int = 1_500) -> ModelCall:
    """A call as the door records one."""
    return ModelCall.objects.create(
        scope=within,
        purpose=purpose,
        model=MODEL,
        prompt_version=PROMPT,
        answer=answer,
        input_tokens=1_000,
        output_tokens=100,
        cost_microdollars=cost,
        batch=answer == Answer.HELD,
    )


def unusable(within: Scope, *, number: int = 0, answer: Answer = Answer.UNUSABLE, kind: Kind = Kind.PROMOTE) -> Draft:
    """A question whose answer could not be used."""
    return Draft.objects.create(
        scope=within,
        kind=kind,
        input_key=f"{number:032x}",
        episode_ids=[],
        answer=answer,
        attempts=3,
        model=MODEL,
        prompt_version=PROMPT,
    )

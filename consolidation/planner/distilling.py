"""What a model is asked while planning: which facts episodes agree on, and what a session comes to.

Read in the planner's snapshot, asked after it (no transaction waits for a model), and answered from what was kept
whenever the same was asked before: planning twice asks once. Nothing here writes memory; an answer is a draft, and a
draft becomes memory only through an operation that is applied.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final, TypeAlias

from django.conf import settings
from django.db import transaction
from django.db.models import F

from consolidation import compact, learning, promote
from consolidation.models import Draft, Operation
from consolidation.operations import Approval, Json, Kind, Proposal, State, operation_id
from consolidation.planner import keeping
from consolidation.planner.copying import episode_vectors
from consolidation.policy import Policy
from observations.embedding import Profile
from observations.llm import Answer, Completer, ModelFailed, Reply, Request, Unusable
from observations.models import Episode, Observation
from observations.normalise import key64, key_part, normalised, witness
from observations.records import EpisodeRecord, Status

_KEPT: Final = (Answer.OK, Answer.REFUSED, Answer.CUT_OFF, Answer.UNUSABLE)  # the model's own word: worth keeping
_ATTEMPTS: Final = 3  # an answer that could not be used is asked for again as often as this in all
_LOOSER: Final = 0.35  # episodes that agree are less alike than claims that do
_LOOSEST: Final = 0.3
_AT_A_TIME: Final = 10  # questions between two signs of progress; each answer is kept before the next is asked for
_BULK: Final = 100  # questions from which the model's half price is worth minutes of waiting

Progress = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class Question:
    """One thing to ask about some episodes, and how its answer is found again."""

    kind: Kind
    about: promote.Cluster | compact.Group
    request: Request
    input_key: str

    @property
    def episodes(self) -> tuple[EpisodeRecord, ...]:
        """The episodes it is about."""
        return self.about.episodes


@dataclass(frozen=True, slots=True)
class Fault:
    """A step that was not done to its end, for the plan to say so."""

    kind: Kind
    sentence: str
    failed: bool  # it was tried, or somebody had asked for it; else it merely could not run
    waits: bool = False  # for the next pass, though nothing changes
    final: bool = False  # nothing more will come of it: what is not proposed any more may go stale

    def to_dict(self, scope: str) -> dict[str, Json]:
        """As a plan keeps it."""
        said = f"{self.kind}: {self.sentence}"
        return {"scope": scope, "step": self.kind, "error": said, "failed": self.failed, "waits": self.waits}


@dataclass(slots=True)
class Distilled:
    """One scope's episodes while they are being planned."""

    episodes: dict[int, EpisodeRecord] = field(default_factory=dict)
    questions: list[Question] = field(default_factory=list)
    drafts: dict[str, Draft] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    asked: int = 0
    thin: tuple[promote.Cluster, ...] = ()  # episodes of one source: nothing to ask about

    @property
    def open_questions(self) -> list[Question]:
        """What no draft answers yet, or one that may be tried again."""
        return [question for question in self.questions if _to_ask(self.drafts.get(question.input_key))]

    @property
    def unfinished(self) -> frozenset[Kind]:
        """The kinds that were not planned to the end."""
        return frozenset(fault.kind for fault in self.faults if not fault.final)

    def fail(self, sentence: str) -> None:
        """Note that nothing could be planned from these episodes, for a reason that is nobody's answer."""
        kinds = sorted({question.kind for question in self.questions} or {Kind.PROMOTE})
        self.faults += [Fault(kind, f"did not work. {sentence}", failed=True) for kind in kinds]


def _to_ask(draft: Draft | None) -> bool:
    return draft is None or (draft.answer != Answer.OK and draft.attempts < _ATTEMPTS)


# --- reading, in the snapshot ---------------------------------------------------------------------------------------


def read(*, scope_id: int, policy: Policy, profile: Profile, now: datetime, model: str) -> Distilled:
    """The episodes of a scope, what is to be asked about them and what was answered before. Up to four queries.

    `model` names who would be asked: another one's answers are not its.
    """
    distilled = Distilled()
    if not (policy.promote or policy.compact) or not Episode.objects.filter(scope_id=scope_id).exists():
        return distilled
    rows = Episode.objects.filter(scope_id=scope_id, status=Status.ACTIVE).order_by("pk")
    distilled.episodes = {row.pk: row.record() for row in rows.iterator()}
    turns = list(distilled.episodes.values())
    if policy.promote:
        found = _found(turns, scope_id, policy, profile)
        distilled.thin = found.thin
        for cluster in found.clusters:
            distilled.questions.append(_question(Kind.PROMOTE, cluster, promote.request(cluster=cluster), model))
    if policy.compact:
        for group in compact.groups(episodes=turns, policy=policy, now=now):
            distilled.questions.append(_question(Kind.COMPACT, group, compact.request(group=group), model))
    keys = [question.input_key for question in distilled.questions]
    drafts = Draft.objects.filter(scope_id=scope_id, input_key__in=keys)
    distilled.drafts = {draft.input_key: draft for draft in drafts}
    return distilled


def _found(turns: Sequence[EpisodeRecord], scope_id: int, policy: Policy, profile: Profile) -> promote.Found:
    vectors = episode_vectors(scope_id=scope_id, profile=profile)
    near = max(_LOOSEST, profile.t_candidate - _LOOSER)
    return promote.clusters(episodes=turns, policy=policy, vectors=vectors, t_near=near)


def _question(kind: Kind, about: promote.Cluster | compact.Group, request: Request, model: str) -> Question:
    # Not the versions: texts never change, and what was archived and brought back is the same question.
    asked = (f"{turn.id}:{turn.outcome}" for turn in about.episodes)
    key = operation_id(parts=[kind, request.prompt_version, model, *asked])
    return Question(kind, about, request, key.removeprefix("op_"))


# --- asking, outside every transaction -------------------------------------------------------------------------------


def ask(
    *,
    scope_id: int,
    distilled: Distilled,
    completer: Completer | ModelFailed,
    progress: Progress,
    most: int | None = None,
) -> None:
    """Put the open questions to the model and keep its answers, a few at a time; what fails is noted, never lost.

    With a ModelFailed in place of a model, nothing is asked and the reason is noted. `most` questions of each kind are
    asked, where somebody's time is limited; that the rest waits is noted, too.
    """
    for kind in (Kind.PROMOTE, Kind.COMPACT):
        _given_up(distilled, kind)
        waiting = [question for question in distilled.open_questions if question.kind is kind]
        if waiting and isinstance(completer, ModelFailed):
            sentence = f"{completer} {len(waiting)} groups of episodes wait."
            # Compacting is off until somebody turns it on, so whoever did expects it (promoting is on by itself).
            failed = kind is Kind.COMPACT or completer.answer is not Answer.NO_MODEL
            distilled.faults.append(Fault(kind, f"did not run. {sentence}", failed))
        elif waiting and not isinstance(completer, ModelFailed):
            _ask_all(scope_id, distilled, kind, waiting[:most], completer, progress)
            _left(distilled, kind, len(waiting[:most]), len(waiting))


def _given_up(distilled: Distilled, kind: Kind) -> None:
    """Say how many groups got no usable answer however often they were asked about."""
    drafts = [distilled.drafts.get(question.input_key) for question in distilled.questions if question.kind is kind]
    lost = sum(draft is not None and draft.answer != Answer.OK and not _to_ask(draft) for draft in drafts)
    if lost:
        sentence = f"{lost} groups of episodes got no usable answer in {_ATTEMPTS} attempts and are left as they are."
        distilled.faults.append(Fault(kind, sentence, failed=False, final=True))


def _left(distilled: Distilled, kind: Kind, asked: int, waiting: int) -> None:
    if asked < waiting:
        sentence = f"{waiting - asked} of {waiting} groups of episodes wait for the next pass."
        distilled.faults.append(Fault(kind, sentence, failed=False, waits=True))


def _ask_all(
    scope_id: int,
    distilled: Distilled,
    kind: Kind,
    waiting: Sequence[Question],
    completer: Completer,
    progress: Progress,
) -> None:
    failed: list[ModelFailed] = []
    bulk = len(waiting) >= _BULK
    # Of few, each answer is kept as it comes: a process that dies loses the one under way, and none is paid for twice.
    answered = completer.complete_all if bulk else completer.complete_each
    size = _BULK if bulk else _AT_A_TIME
    for start in range(0, len(waiting), size):
        part = waiting[start : start + size]
        for question, outcome in zip(part, answered([question.request for question in part]), strict=True):
            if isinstance(outcome, ModelFailed):
                failed.append(outcome)
            if not isinstance(outcome, ModelFailed) or outcome.answer in _KEPT:
                draft = _keep(scope_id, question, outcome, completer.model)
                if draft is None:
                    failed.append(Unusable("An episode changed while the model read it; its answer was thrown away."))
                    continue
                distilled.drafts[question.input_key] = draft
                if isinstance(outcome, Reply) and draft.answer != Answer.OK:
                    failed.append(Unusable("The model's answer could not be used; it is asked again in the next pass."))
        distilled.asked += len(part)
        progress(f"{kind}: {start + len(part)} of {len(waiting)} answered")
        if failed and failed[-1].answer not in _KEPT and len(failed) >= len(part):
            break  # the model is away or the budget is spent: the rest would fail alike
    unanswered = sum(_to_ask(distilled.drafts.get(question.input_key)) for question in waiting)
    if failed:
        sentence = f"{unanswered} of {len(waiting)} groups of episodes were not answered. {failed[-1]}"
        distilled.faults.append(Fault(kind, sentence, failed=True))


def _keep(scope_id: int, question: Question, outcome: Reply | ModelFailed, model: str) -> Draft | None:
    """Store an answer; asked again, it takes the place of the one that could not be used. None when an episode moved
    since it was read: what was forgotten meanwhile must not come back in an answer about it. Three queries.
    """
    reply = outcome.text if isinstance(outcome, Reply) else ""
    answer = _usable(question, reply) if isinstance(outcome, Reply) else outcome.answer
    values = {"reply": reply, "answer": answer}
    with transaction.atomic():
        if keeping.moved_turns(scope_id=scope_id, versions={turn.id: turn.version for turn in question.episodes}):
            return None
        draft, made = Draft.objects.get_or_create(
            scope_id=scope_id,
            input_key=question.input_key,
            defaults={
                **values,
                "kind": question.kind,
                "episode_ids": [turn.id for turn in question.episodes],
                "model": model,
                "prompt_version": question.request.prompt_version,
            },
        )
        if not made:
            # What another planner asked meanwhile and could use stays: it was paid for, and its items rest on it.
            unusable = Draft.objects.filter(pk=draft.pk).exclude(answer=Answer.OK)
            unusable.update(**values, attempts=F("attempts") + 1)
            draft.refresh_from_db()
    return draft


def _usable(question: Question, reply: str) -> Answer:
    """Whether a reply can be read at all; what it says is checked whenever it is proposed from."""
    if isinstance(question.about, promote.Cluster):
        usable = promote.read(reply=reply, cluster=question.about).usable
    else:
        usable = compact.read(reply=reply, group=question.about).usable
    return Answer.OK if usable else Answer.UNUSABLE


# --- proposing from the answers --------------------------------------------------------------------------------------


def proposals(*, scope_id: int, distilled: Distilled, policy: Policy, reserved: frozenset[int]) -> list[Proposal]:
    """What the answers propose; `reserved` are episodes of approved operations. A few queries.

    An episode that a promotion of this plan rests on is compacted in the next pass: its operation would go stale.
    """
    promoted = _promoted(scope_id, distilled, policy, reserved)
    resting = {row: one.id for one in promoted if one.appliable for row in one.sources}
    refused = _refused_groups(scope_id) if policy.compact else frozenset[tuple[int, ...]]()
    compacted = [
        _after(_asked_anew(_compacted(question, distilled, policy), refused), resting)
        for question in distilled.questions
        if question.kind is Kind.COMPACT
        and not _to_ask(distilled.drafts.get(question.input_key))
        and reserved.isdisjoint(turn.id for turn in question.episodes)
    ]
    return [*promoted, *promote.unsupported(clusters=distilled.thin, policy=policy), *compacted]


def _compacted(question: Question, distilled: Distilled, policy: Policy) -> Proposal:
    assert isinstance(question.about, compact.Group)
    draft = distilled.drafts[question.input_key]
    written = compact.read(reply=draft.reply, group=question.about)
    return compact.proposal(group=question.about, written=written, policy=policy, discriminator=question.input_key[:16])


def _refused_groups(scope_id: int) -> frozenset[tuple[int, ...]]:
    """The episodes of summaries that people refused or took back. Two queries."""
    rows = Operation.objects.filter(scope_id=scope_id, kind=Kind.COMPACT, status__in=(State.REJECTED, State.UNDONE))
    return frozenset(
        tuple(sorted(source.row_id for source in row.sources.all())) for row in rows.prefetch_related("sources")
    )


def _asked_anew(proposal: Proposal, refused: Collection[tuple[int, ...]]) -> Proposal:
    """Another model's words for episodes whose summary was refused or taken back are never applied by themselves."""
    if not proposal.auto or proposal.sources not in refused:
        return proposal
    reason = f"{proposal.reason}; another summary of these was refused or taken back"
    return replace(proposal, approval=Approval.NEEDS_HUMAN, reason=reason)


def _after(proposal: Proposal, resting: Mapping[int, str]) -> Proposal:
    first = sorted({resting[row] for row in proposal.sources if row in resting})
    if not first or not proposal.appliable:
        return proposal
    return replace(proposal, skipped_reason=f"waits for the next pass, after {', '.join(first[:3])}")


def _promoted(scope_id: int, distilled: Distilled, policy: Policy, reserved: frozenset[int]) -> list[Proposal]:
    """Each fact appliable once, without what was refused before; what is known already is skipped and says so."""
    found: list[Proposal] = []
    refused: Counter[str] = Counter()
    taught = learning.cardinalities(scope_id=scope_id)
    for question in distilled.questions:
        draft = distilled.drafts.get(question.input_key)
        if not isinstance(question.about, promote.Cluster) or draft is None or draft.answer != Answer.OK:
            continue
        checked = promote.read(reply=draft.reply, cluster=question.about)
        refused.update(checked.counts())
        known, former, known_keys = _known(scope_id, checked)
        found += promote.proposals(
            cluster=question.about,
            checked=checked,
            policy=policy,
            discriminator=question.input_key[:16],
            known=known,
            known_keys=known_keys,
            cardinality=taught,
            former=former,
        )
    _note_refused(distilled, refused)
    if not found:
        return []
    earlier = _earlier(scope_id)
    named = {(one.sources, normalised(one.text)): _same_as_before(one, earlier) for one in reversed(found)}
    asked = _unrefused(scope_id, distilled, list(named.values())[::-1])
    return list(promote.once(proposals=asked, approved=_approved(scope_id, reserved)))


def _note_refused(distilled: Distilled, refused: Counter[str]) -> None:
    """Say how many parts of the answers did not count, and why: an answer of which nothing is left is not nothing."""
    if refused:
        why = ", ".join(f"{why}: {times}" for why, times in sorted(refused.items()))
        sentence = f"{refused.total()} parts of the model's answers did not count ({why})."
        distilled.faults.append(Fault(Kind.PROMOTE, sentence, failed=False, final=True))


def _approved(scope_id: int, reserved: frozenset[int]) -> Iterator[Proposal]:
    """The promotions that are approved and wait to be applied, as they were proposed. Two queries."""
    rows = Operation.objects.filter(scope_id=scope_id, kind=Kind.PROMOTE, status=State.APPROVED)
    for row in rows.prefetch_related("sources").order_by("pk"):
        sources = tuple(sorted(source.row_id for source in row.sources.all()))
        if reserved.issuperset(sources):
            key = (row.claim_subject, row.claim_predicate, row.claim_object)
            yield Proposal(
                kind=Kind.PROMOTE,
                scope_id=scope_id,
                sources=sources,
                approval=Approval(row.approval),
                reason=row.reason,
                product=row.product,
                text=row.text,
                key=key,
            )


_Key: TypeAlias = tuple[str, str, str]
_LEFT: Final = (Status.SUPERSEDED, Status.RETRACTED, Status.ARCHIVED)


def _known(scope_id: int, checked: promote.Checked) -> tuple[dict[str, int], dict[str, int], dict[_Key, int]]:
    """Which of the facts the scope holds already by their text, which it held, and every value it holds for the facts'
    subjects and predicates. Two queries.
    """
    texts = {key64(normalised(fact.text)): normalised(fact.text) for fact in checked.facts}
    keys = {key64(*map(key_part, fact.key[:2])) for fact in checked.facts if all(map(key_part, fact.key))}
    rows = Observation.objects.filter(scope_id=scope_id).order_by("-pk")
    by_text = rows.filter(text_key__in=texts, status__in=(Status.ACTIVE, *_LEFT))
    said: dict[bool, dict[str, int]] = {True: {}, False: {}}
    for text_key, status, pk in by_text.values_list("text_key", "status", "pk"):
        said[status == Status.ACTIVE][texts[text_key]] = pk
    by_key = rows.filter(sp_key__in=keys, status=Status.ACTIVE).exclude(spo_key=0)
    values = {
        (key_part(subject), key_part(predicate), key_part(value)): pk
        for pk, subject, predicate, value in by_key.values_list("pk", "subject", "predicate", "object")
    }
    return said[True], said[False], values


def _earlier(scope_id: int) -> dict[tuple[tuple[int, ...], str], str]:
    """The discriminators of open promotions by what they rest on and say: asked in another group, a fact keeps its id.
    Two queries.
    """
    rows = Operation.objects.filter(scope_id=scope_id, kind=Kind.PROMOTE).exclude(status=State.STALE)
    found = {}
    for row in rows.prefetch_related("sources").order_by("pk"):
        sources = tuple(sorted(source.row_id for source in row.sources.all()))
        found[sources, normalised(row.text)] = str(row.product.get("discriminator", ""))
    return found


def _same_as_before(one: Proposal, earlier: Mapping[tuple[tuple[int, ...], str], str]) -> Proposal:
    discriminator = earlier.get((one.sources, normalised(one.text)))
    return replace(one, product={**one.product, "discriminator": discriminator}) if discriminator else one


def _unrefused(scope_id: int, distilled: Distilled, found: Iterable[Proposal]) -> Iterator[Proposal]:
    """Without facts that people refused or took back, in those words or under that key, unless a new witness speaks for
    them now. One query.
    """
    refused: defaultdict[object, set[str]] = defaultdict(set)
    rows = Operation.objects.filter(
        scope_id=scope_id, kind=Kind.PROMOTE, status__in=(State.REJECTED, State.UNDONE), sources__episode__isnull=False
    )
    said = ("text", "claim_subject", "claim_predicate", "claim_object", "sources__episode__root_source")
    for text, subject, predicate, value, root in rows.values_list(*said):
        for name in promote.names(text=text, key=(subject, predicate, value)):
            refused[name].add(witness(root))
    for one in found:
        roots = {witness(distilled.episodes[row].root_source) for row in one.sources}
        names = promote.names(text=one.text, key=one.key)
        if not any(name in refused and roots <= refused[name] for name in names):
            yield one


def model_name() -> str:
    """Who would be asked, whether or not anybody can be. No query."""
    return str(settings.PALIMPSEST_MODEL)

"""Keys for observations whose writers gave none, from a model, in batches: a background step that nobody needs.

Model calls stand outside every transaction; what a batch of answers says is stored in a short one of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from django.db import transaction
from django.db.models import Count, OuterRef, Q, Subquery
from django.db.models.functions import Coalesce, Length

from observations import keying, outbox, spending, store
from observations.keying import Found, Lacking, Verdict
from observations.llm import BATCH_FROM, Answer, Completer, ModelFailed, NoModel, Outcome, Unusable
from observations.models import Event, GivenKey, Observation, ObservationQuerySet, Outbox, Scope, database_now
from observations.records import Given, KeyState

GIVE_KEYS: Final = "give_keys"  # the outbox task; a person asks for it, or a schedule that a person enabled
AT_ONCE: Final = 400  # rows asked about before the answers are stored: a job of a worker has nine minutes
# What was answered badly before is asked in smaller company, so that one text cannot spoil the others for good.
_TOGETHER: Final = {0: keying.MAX_BATCH, 1: 5, 2: 1}  # attempts -> texts of one question
# Failures that say something about these texts. After any other the model is not asked any more.
_OF_THE_TEXTS: Final = frozenset({Answer.REFUSED, Answer.CUT_OFF, Answer.UNUSABLE})


@dataclass(frozen=True, slots=True)
class KeysReport:
    """What came of a run: asked = given + none + refused + unusable + changed; `left` were not asked, and why."""

    asked: int = 0
    given: int = 0
    none: int = 0  # the model found no key in the text
    refused: int = 0  # the answer is not believed: see `refusals`
    unusable: int = 0  # the answer to the whole question could not be used
    changed: int = 0  # archived, erased or given a key while the model was asked: left as they are
    left: int = 0  # observations without a whole key that were not asked about
    not_run: str = ""  # why not all that should have been asked was; one sentence
    failure: Answer | None = None  # the same as a word
    refusals: Mapping[str, int] = field(default_factory=dict)  # reason -> observations
    last: int = 0  # the newest row that was asked about


def give_keys(
    *,
    scope: Scope,
    completer: Completer | None = None,
    limit: int | None = None,
    after: int = 0,
    progress: Callable[[int], object] | None = None,
) -> KeysReport:
    """Ask a model for the missing parts of the keys of a scope's current rows, oldest first; each at most once a run.

    Never replaces what a writer gave. Rows that were answered are not asked again, bad answers store.MAX_ATTEMPTS
    times. `completer` None is the configured model; without one nothing is written and `not_run` says so. `limit` and
    `after` (an id) bound the rows; `progress` is told how many were handled. What was stored before a failure stays.
    Not to be called inside a transaction.
    """
    run = _Run(scope, progress or (lambda _count: None), last=after)
    waiting = _lacking(scope, after=after).count()
    most = waiting if limit is None else min(limit, waiting)
    if not waiting:
        return run.report(waiting=0)
    try:
        completer = completer or spending.door(scope_id=scope.pk)
    except NoModel as none:
        run.failed = none
        return run.report(waiting=waiting)
    while run.failed is None and run.asked < most:
        rows = _read(scope, after=run.last, most=min(AT_ONCE, most - run.asked))
        if not rows:  # the rest left the reads meanwhile
            return run.report(waiting=run.asked)
        run.ask(completer, rows)
    return run.report(waiting=waiting)


def lacking_keys(*, scope: Scope) -> int:
    """How many rows of a scope a run would ask about. One query."""
    return _lacking(scope, after=0).count()


def keys_later(*, scope: Scope, after: int = 0) -> None:
    """Ask a worker to give keys, in the caller's transaction. Asked twice it is done once. One query."""
    outbox.enqueue(task=GIVE_KEYS, scope_id=scope.pk, key=_name(after), payload={"after": after})


@dataclass(frozen=True, slots=True)
class Asked:
    """A scope whose keys a worker was asked for."""

    scope: Scope
    lacking: int  # rows that the worker will ask the model about
    before: bool  # it was asked earlier and is not at its end, so nothing was added


def ask_for_keys(*, scopes: Sequence[Scope]) -> list[Asked]:
    """Ask a worker to give keys in those of the scopes that lack some, in their order. Writes outbox rows only.

    A scope whose rows are being worked off is left to that: asked about twice at once, they would be paid for twice.
    Raises NoModel where none is configured, and then asks for nothing. Four queries.
    """
    spending.door(scope_id=None)
    counted = _lacking_anywhere().filter(scope__in=scopes).order_by().values_list("scope").annotate(rows=Count("pk"))
    lacking = dict(counted)
    before = _under_way(lacking)
    asked = [Asked(scope, lacking[scope.pk], scope.pk in before) for scope in scopes if scope.pk in lacking]
    new = [each.scope.pk for each in asked if not each.before]
    outbox.enqueue_in_scopes(task=GIVE_KEYS, scope_ids=new, key=_name(0), payload={"after": 0})
    return asked


def _under_way(scope_ids: Iterable[int]) -> frozenset[int]:
    """The scopes in which a worker was asked for keys and will still come to it. Two queries."""
    stopped = Q(attempts__gte=outbox.MAX_ATTEMPTS, due_at__lte=database_now())
    rows = Outbox.objects.filter(task=GIVE_KEYS, scope__in=list(scope_ids), done_at=None).exclude(stopped)
    return frozenset(rows.values_list("scope_id", flat=True))


def _name(after: int) -> str:
    """The key of the outbox row that starts after an id."""
    return f"after {after}"


def withdraw_key(*, observation: Observation, by: str) -> None:
    """Take back the key that a model gave, for good, with its event. Raises store.KeyNotGiven."""
    with transaction.atomic():
        store.withdraw_key(observation=observation, by=by)
        Event.objects.append(
            scope_id=observation.scope_id, action="key_withdrawn", actor=by[:150], subject=str(observation)
        )


# --- reading ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Row:
    """An observation to be asked about, and how often that failed before."""

    lacking: Lacking
    attempts: int


def _lacking(scope: Scope, *, after: int) -> ObservationQuerySet:
    """Those of one scope after an id."""
    return _lacking_anywhere().in_scope(scope).filter(pk__gt=after)


def _lacking_anywhere() -> ObservationQuerySet:
    """Current rows without a whole key that have no answer yet, or one that could not be used."""
    known = GivenKey.objects.filter(scope=OuterRef("scope"), observation=OuterRef("pk"))
    unusable = Q(said=GivenKey.State.UNUSABLE, attempts__lt=store.MAX_ATTEMPTS)
    return (
        Observation.objects.active()
        .filter(Q(subject="") | Q(predicate="") | Q(object=""))
        .annotate(
            said=Subquery(known.values("state")),
            attempts=Coalesce(Subquery(known.values("attempts")), 0),
            length=Length("text"),
        )
        .filter(Q(said=None) | unusable, length__lte=keying.LONGEST_TEXT)
    )


def _read(scope: Scope, *, after: int, most: int) -> list[_Row]:
    found = _lacking(scope, after=after).order_by("pk")[:most]
    fields = ("pk", "text", "subject", "predicate", "object", "attempts")
    return [_Row(Lacking(*values), attempts) for *values, attempts in found.values_list(*fields)]


def _questions(rows: Sequence[_Row]) -> Iterator[list[Lacking]]:
    """Rows by the question they are asked in: as many together as their attempts allow, oldest first."""
    for attempts, size in _TOGETHER.items():
        alike = [row.lacking for row in rows if row.attempts == attempts]
        yield from (alike[start : start + size] for start in range(0, len(alike), size))


# --- asking and storing ----------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Run:
    """One run as it goes."""

    scope: Scope
    progress: Callable[[int], object]
    last: int
    asked: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    failed: ModelFailed | None = None

    def ask(self, completer: Completer, rows: Sequence[_Row]) -> None:
        """Ask about some rows and store what came of each question: of few as each answer comes, of many at half the
        price.
        """
        questions = list(_questions(rows))
        requests = [keying.request(lacking=lacking, scope_id=self.scope.pk) for lacking in questions]
        answered = completer.complete_all if len(requests) >= BATCH_FROM else completer.complete_each
        for lacking, outcome in zip(questions, answered(requests), strict=True):
            if isinstance(outcome, ModelFailed) and outcome.answer not in _OF_THE_TEXTS:
                self.failed = self.failed or outcome
            else:
                self.store(lacking, outcome, model=completer.model)
        self.last = rows[-1].lacking.id

    def store(self, lacking: Sequence[Lacking], outcome: Outcome, *, model: str) -> None:
        """Store what one question brought, in a transaction of its own."""
        found, unread = _understood(lacking, outcome)
        given = {each.id: _given(each, model=model) for each in found}
        with transaction.atomic():
            stored = store.put_keys(scope_id=self.scope.pk, given=given)
        self.asked += len(lacking)
        self.progress(len(lacking))
        self.counts["changed"] += len(lacking) - len(stored)
        for each in found:
            if each.id in stored:
                self.counts["unusable" if unread else each.verdict] += 1
                self.refusals.update([str(each.refusal)] if each.refusal else [])

    def report(self, *, waiting: int) -> KeysReport:
        """What came of the run, of so many rows that it found waiting."""
        return KeysReport(
            asked=self.asked,
            given=self.counts["given"],
            none=self.counts["none"],
            refused=self.counts["refused"],
            unusable=self.counts["unusable"],
            changed=self.counts["changed"],
            left=max(0, waiting - self.asked),
            not_run=str(self.failed) if self.failed else "",
            failure=self.failed.answer if self.failed else None,
            refusals=dict(self.refusals),
            last=self.last,
        )


def _understood(lacking: Sequence[Lacking], outcome: Outcome) -> tuple[Sequence[Found], bool]:
    """What a question brought for each of its texts, and whether the whole answer could not be used."""
    if not isinstance(outcome, ModelFailed):
        try:
            return keying.read(reply=outcome, lacking=lacking).found, False
        except Unusable:
            pass
    return [Found(id=each.id, verdict=Verdict.REFUSED) for each in lacking], True


_STATES: Final = {Verdict.GIVEN: KeyState.GIVEN, Verdict.NONE: KeyState.NONE, Verdict.REFUSED: KeyState.UNUSABLE}


def _given(found: Found, *, model: str) -> Given:
    return Given(
        state=_STATES[found.verdict],
        model=model,
        prompt_version=keying.PROMPT_VERSION,
        subject=found.subject,
        predicate=found.predicate,
        object=found.object,
        quote=found.quote,
    )

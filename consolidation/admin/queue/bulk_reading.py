"""What one decision over many items would do, and what became of each, read from the items themselves."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from django.db.models import Count, Sum
from django.db.models.functions import Coalesce, Length

from consolidation.admin.item.resulting import Result, read_results
from consolidation.admin.item.sources import Records, evidence_of
from consolidation.admin.reading import Chip, Row, rows_of, state_chip
from consolidation.admin.telling import key_words
from consolidation.admin.texts import WHOLE, Text, signed, whole
from consolidation.models import (
    BulkDecision,
    BulkItem,
    Operation,
    OperationQuerySet,
    OperationSource,
    Policy,
    chosen,
)
from consolidation.operations import Json, Kind, ep, obs, visible
from consolidation.policy import Policy as Rules
from consolidation.policy import PolicyError
from consolidation.review.bulk import WHOLE as WHOLE_FIRST
from consolidation.review.bulk import Progress, Verb
from consolidation.review.together import Share, shares
from observations.models import Evidence, GivenKey

DOES: Final[Mapping[str, str]] = {  # what the button says, and what the page says will happen
    Verb.APPROVE: "Approve",
    Verb.REJECT: "Reject",
    Verb.DISTINCT: "Mark distinct",
    Verb.DEFER: "Put off",
    Verb.SECOND: "Agree to",
}
MEANS: Final[Mapping[str, str]] = {
    Verb.APPROVE: "Approving changes no memory. What is approved here waits to be applied, and can be taken back.",
    Verb.REJECT: "A rejected item is not asked again until its records or the policy change. It can be taken back.",
    Verb.DISTINCT: "No pair of their records is proposed together again. It can be taken back.",
    Verb.DEFER: "They leave your queue until then, and stay in everybody else’s.",
    Verb.SECOND: "Somebody else approved these as they stand here. Agreeing changes no memory: they can be applied"
    " then, as long as the approval lasts. Taking the approval back ends it.",
}
LISTED: Final = 50  # scopes whose share of a decision is shown
_ARCHIVES: Final = (Kind.MERGE, Kind.COMPACT, Kind.ARCHIVE)  # kinds whose records leave the reads
_WRITES: Final = (Kind.MERGE, Kind.COMPACT, Kind.PROMOTE)  # kinds that write a record


@dataclass(frozen=True, slots=True)
class Touch:
    """What the approved items of one scope would do to it, once they are applied."""

    scope: str
    items: int
    touched: int  # records
    beside: int  # records of what the same person alone approved there before, and nobody applied
    size: int  # its active records
    wide: bool  # over its blast radius
    second: bool  # so another person has to agree before any is applied

    @property
    def share(self) -> str:
        """Touched, of what is active."""
        return f"{self.touched / self.size:.1%}" if self.size else "none active"


@dataclass(frozen=True, slots=True)
class About:
    """What of one scope is decided without a change of its memory."""

    scope: str
    items: int
    records: int  # that they are about


@dataclass(frozen=True, slots=True)
class Effect:
    """What would come of it."""

    kinds: tuple[tuple[str, int], ...]
    archived: int  # records that would leave the reads
    written: int  # records that would be new
    touches: tuple[Touch, ...]
    about: tuple[About, ...] = ()  # of the scopes with most items
    more: int = 0  # scopes that are not listed

    @property
    def wide(self) -> bool:
        """True when any scope is touched over its blast radius."""
        return any(touch.wide for touch in self.touches)


def effect(bulk: BulkDecision) -> Effect:
    """What would come of it: by kind, and by scope. Two queries, six where every item is shown whole."""
    operations = Operation.objects.filter(bulk_items__bulk=bulk).order_by()
    counted = list(
        operations.values_list("kind").annotate(n=Count("pk"), records=Sum("n_sources")).order_by("-n", "kind")
    )
    kinds = tuple((kind, number) for kind, number, _ in counted)
    if bulk.verb not in WHOLE_FIRST:
        return _untouched(operations, kinds)
    return Effect(
        kinds=kinds,
        archived=sum(records for kind, _, records in counted if kind in _ARCHIVES),
        written=sum(number for kind, number, _ in counted if kind in _WRITES),
        touches=tuple(_touch(share) for share in shares(bulk=bulk)),
    )


def _untouched(operations: OperationQuerySet, kinds: tuple[tuple[str, int], ...]) -> Effect:
    """Of a decision that changes no memory. One query."""
    by_scope = operations.values_list("scope__name").annotate(items=Count("pk"), records=Sum("n_sources"))
    found = [
        About(visible(name), items, records) for name, items, records in by_scope.order_by("-items", "scope__name")
    ]
    more = max(0, len(found) - LISTED)
    return Effect(kinds=kinds, archived=0, written=0, touches=(), about=tuple(found[:LISTED]), more=more)


def _touch(share: Share) -> Touch:
    return Touch(
        scope=visible(share.scope),
        items=share.items,
        touched=share.touched,
        beside=share.beside,
        size=share.size,
        wide=share.wide,
        second=share.second,
    )


# --- what was chosen, in full ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Source:
    """One record of an item, with all of its text."""

    id: int
    name: str
    of_episode: bool
    text: Text
    key: str
    kept: bool


@dataclass(frozen=True, slots=True)
class Whole:
    """One item with everything it would take in, and every field of what it would write."""

    row: Row
    reason: str  # that it was approved for; memory text
    names: tuple[str, str] | None  # of an alias
    result: Result | None  # None: it writes no record
    sources: tuple[Source, ...]


def in_full(operations: Sequence[Operation]) -> list[Whole]:
    """The operations with all of their texts, and the records they would write; `scope` must have been selected with
    them. Six queries.
    """
    sources: defaultdict[int, list[OperationSource]] = defaultdict(list)
    rows = OperationSource.objects.filter(operation__in=[operation.pk for operation in operations])
    for source in rows.select_related("observation", "episode").order_by("operation_id", "position"):
        sources[source.operation_id].append(source)
    beside = _Beside.read([one for several in sources.values() for one in several])
    return [
        _whole(operation, row, sources[operation.pk], beside)
        for operation, row in zip(operations, rows_of(operations), strict=True)
    ]


@dataclass(frozen=True, slots=True)
class _Beside:
    """What hangs on the records of a page's items, and the policies that they stand under."""

    evidence: Mapping[int, Sequence[Evidence]]
    keys: Mapping[int, GivenKey]
    policies: Mapping[str, tuple[int, Mapping[str, Json]]]

    @classmethod
    def read(cls, sources: Sequence[OperationSource]) -> _Beside:
        """Three queries."""
        ids = [source.observation_id for source in sources if source.observation_id]
        scopes = sorted({source.scope_id for source in sources})
        keys = GivenKey.objects.filter(scope_id__in=scopes, observation__in=ids)
        return cls(
            evidence=evidence_of(scopes, ids),
            keys={key.observation_id: key for key in keys},
            policies={pattern: (0, body) for pattern, body in Policy.objects.values_list("pattern", "body")},
        )

    def policy(self, scope: str) -> Rules:
        """The policy of a scope; the defaults where it cannot be read, and nothing is approved there."""
        try:
            return chosen(self.policies, scope=scope).rules
        except PolicyError:
            return Rules()

    def records(self, sources: Sequence[OperationSource]) -> Records:
        """The observations of one operation, as its own page reads them. No query."""
        taken = tuple(source.observation for source in sources if source.observation)
        keys = [self.keys[row.pk] for row in taken if row.pk in self.keys]
        return Records(
            rows={row.pk: row for row in taken},
            sources=taken,
            evidence=self.evidence,
            uses={},
            given={key.observation_id: key for key in keys if key.state == GivenKey.State.GIVEN},
            withdrawn=frozenset(key.observation_id for key in keys if key.state == GivenKey.State.WITHDRAWN),
        )


def _whole(operation: Operation, row: Row, sources: Sequence[OperationSource], beside: _Beside) -> Whole:
    records = beside.records(sources)
    turns = {source.episode.pk: source.episode for source in sources if source.episode}
    text = whole(operation.text) if operation.text else None
    policy = beside.policy(operation.scope.name)
    named = operation.kind == Kind.ALIAS
    return Whole(
        row=row,
        reason=visible(operation.decision_reason),
        names=(visible(operation.claim_subject), visible(operation.claim_object)) if named else None,
        result=read_results(operation, sources, (records, turns), policy, text=text).result,
        sources=tuple(_source(source, operation, records) for source in sources),
    )


def _source(source: OperationSource, operation: Operation, records: Records) -> Source:
    row, pk = source.observation, source.row_id
    words = row.text if row else source.episode.text if source.episode else None
    return Source(
        id=pk,
        name=ep(pk) if source.episode_id else obs(pk),
        of_episode=bool(source.episode_id),
        text=whole(words),
        key=key_words(row, records.given.get(pk)) if row else "",
        kept=row is not None and pk == (operation.decision.get("keep") or operation.keeper_id),
    )


def too_long(ids: Sequence[int]) -> list[str]:
    """The ids of operations that cannot be shown whole on a page that approves several. Two queries."""
    texts = OperationSource.objects.filter(operation__in=ids).annotate(
        n=Length(Coalesce("observation__text", "episode__text"))
    )
    own = Operation.objects.filter(pk__in=ids).annotate(n=Length("text")).filter(n__gt=WHOLE)
    long = texts.filter(n__gt=WHOLE).values_list("operation__op_id", flat=True)
    return sorted({*long, *own.values_list("op_id", flat=True)})


# --- what became of it ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ended:
    """One item: what became of it here, and how it stands now."""

    pk: int
    op_id: str
    kind: str
    scope: str
    outcome: Chip
    sentence: str
    state: Chip
    decided: str


_OUTCOMES: Final[Mapping[str, Chip]] = {
    BulkItem.Outcome.WAITING: Chip("waiting", "wait"),
    BulkItem.Outcome.DONE: Chip("done", "done"),
    BulkItem.Outcome.REFUSED: Chip("not done", "warn"),
}


def ended(items: Sequence[BulkItem]) -> list[Ended]:
    """The items as they are now; `operation__scope` must have been selected with them. No query."""
    found = []
    for item in items:
        operation = item.operation
        decided = signed(operation.decided_by, operation.decided_at)
        found.append(
            Ended(
                pk=operation.pk,
                op_id=operation.op_id,
                kind=operation.kind,
                scope=visible(operation.scope.name),
                outcome=_OUTCOMES[item.outcome],
                sentence=visible(item.sentence),
                state=state_chip(operation),
                decided=decided,
            )
        )
    return found


def document(found: Progress) -> dict[str, object]:
    """How far it is, for a page that asks again."""
    return {
        "total": found.total,
        "done": found.done,
        "refused": found.refused,
        "waiting": found.waiting,
        "finished": found.finished,
        "trouble": found.trouble,
    }

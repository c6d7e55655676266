"""What lists of operations read: their sources with the beginning of each text, and the digest of what is shown.

A fixed number of queries however many operations are on the page.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.core import signing
from django.db.models.functions import Coalesce, Left

from consolidation import policy as rules
from consolidation.admin.texts import SNIPPET, snippet, told, when
from consolidation.models import Operation, OperationSource, Policy
from consolidation.operations import OF_EPISODES, Approval, Kind, State, ep, obs, visible
from consolidation.planner import support_line
from consolidation.review import DECIDABLE, TELLS_APART, digest_of
from observations.models import Episode, Observation
from observations.records import Status

SHOWN_HOURS: Final = 12  # what a page showed may be decided this long afterwards
_SALT: Final = "palimpsest.shown"
LINES: Final = 3  # sources of one operation in a list

# What a state means to the person who looks, as the class of its chip.
TONES: Final[dict[str, str]] = {
    State.PLANNED: "auto",
    State.NEEDS_HUMAN: "wait",
    State.SKIPPED: "quiet",
    State.APPROVED: "go",
    State.APPLIED: "done",
    State.REJECTED: "no",
    State.DISTINCT: "no",
    State.UNDONE: "back",
    State.STALE: "warn",
    State.FAILED: "bad",
}
STATE_WORDS: Final[dict[str, str]] = {
    State.PLANNED: "automatic",
    State.NEEDS_HUMAN: "needs a person",
    State.SKIPPED: "skipped",
    State.APPROVED: "approved, not applied",
}


@dataclass(frozen=True, slots=True)
class Chip:
    """A word with the colour of its meaning."""

    word: str
    tone: str


@dataclass(frozen=True, slots=True)
class Note:
    """A word about an operation's time or risk, with the moment it speaks of."""

    word: str
    tone: str = ""  # of its chip; empty: plain words
    at: datetime | None = None

    @property
    def said(self) -> str:
        """The moment in words."""
        return when(self.at)

    @property
    def iso(self) -> str:
        """The moment for a program."""
        return self.at.isoformat() if self.at else ""


@dataclass(frozen=True, slots=True)
class Line:
    """One source of an operation in a list."""

    id: int
    name: str
    text: str
    kept: bool


@dataclass(frozen=True, slots=True)
class Row:
    """One operation in a list."""

    pk: int
    op_id: str
    short: str
    kind: str
    state: Chip
    scope: str
    scope_id: int
    product: str  # what it would write, where no source says it; empty: a source does
    names: tuple[str, str] | None  # of an alias: the subject, and the name it is compared as
    figures: str  # what a product rests on
    lines: tuple[Line, ...]
    more: int  # sources that are not listed
    score: str
    why: str
    asked_by: str  # who asked for it; empty: the planner proposed it
    decided: str
    decidable: bool
    digest: str
    opened: bool = False
    notes: tuple[Note, ...] = ()

    @property
    def differs(self) -> bool:
        """True when marking its sources as different claims would mean something."""
        return self.decidable and self.kind in TELLS_APART and len(self.lines) + self.more > 1


def state_chip(operation: Operation) -> Chip:
    """The state in a word, with its colour."""
    if operation.status == State.SKIPPED and operation.approval == Approval.NEEDS_HUMAN:
        return Chip(word="skipped, yours to decide", tone="wait")
    return Chip(
        word=STATE_WORDS.get(operation.status, operation.status.replace("_", " ")),
        tone=TONES.get(operation.status, "quiet"),
    )


def policy_hashes(scopes: Iterable[str]) -> dict[str, str]:
    """The hash of the policy that holds in each scope; empty for one that cannot be read. One query."""
    bodies = dict(Policy.objects.values_list("pattern", "body"))
    found: dict[str, str] = {}
    for scope in set(scopes):
        pattern = rules.most_specific(patterns=bodies, scope=scope)
        try:
            found[scope] = rules.Policy.from_dict(bodies[pattern] if pattern else {}).hash
        except rules.PolicyError:
            found[scope] = ""
    return found


def proposed_digest(*, operation: Operation, rows: Sequence[Observation | Episode], policy_hash: str) -> str:
    """review.shown_digest without its queries: the operation as proposed, its sources as read for this page."""
    proposed = Operation(
        op_id=operation.op_id,
        generation=operation.generation,
        kind=operation.kind,
        product=operation.product,
        keeper_id=operation.keeper_id,
        text=operation.text,
        claim_subject=operation.claim_subject,
        claim_predicate=operation.claim_predicate,
        claim_object=operation.claim_object,
    )
    return digest_of(operation=proposed, rows=rows, policy_hash=policy_hash)


def rows_of(operations: Sequence[Operation], *, opened: frozenset[int] = frozenset()) -> list[Row]:
    """The operations as rows of a list; `scope` must have been selected with them. Two queries."""
    sources = _sources(operations)
    hashes = policy_hashes(operation.scope.name for operation in operations)
    return [
        _row(operation, sources[operation.pk], hashes[operation.scope.name], operation.pk in opened)
        for operation in operations
    ]


def _sources(operations: Sequence[Operation]) -> defaultdict[int, list[OperationSource]]:
    """Each operation's sources in order, the beginning of each text as `start`; no whole text is read."""
    found: defaultdict[int, list[OperationSource]] = defaultdict(list)
    rows = (
        OperationSource.objects.filter(operation__in=[operation.pk for operation in operations])
        .select_related("observation", "episode")
        .only(
            *("operation_id", "position", "scope_id", "observation__version", "observation__status"),
            *("observation__content_hash", "observation__external_id", "observation__scope_id"),
            *("episode__version", "episode__status", "episode__content_hash", "episode__scope_id"),
        )
        .annotate(start=Left(Coalesce("observation__text", "episode__text"), SNIPPET + 1))
        .order_by("operation_id", "position")
    )
    for row in rows:
        found[row.operation_id].append(row)
    return found


def _row(operation: Operation, sources: Sequence[OperationSource], policy_hash: str, opened: bool) -> Row:
    keep = _keeps(operation)
    ordered = sorted(sources, key=lambda source: (keep is not None and source.observation_id != keep, source.position))
    lines = tuple(_line(source, operation) for source in ordered[:LINES])
    rows = [row for source in sources if (row := source.observation or source.episode) is not None]
    decidable = operation.status in DECIDABLE and operation.approval != Approval.NEVER and bool(policy_hash)
    return Row(
        pk=operation.pk,
        op_id=operation.op_id,
        short=operation.op_id[:11],
        kind=operation.kind,
        state=state_chip(operation),
        scope=visible(operation.scope.name),
        scope_id=operation.scope_id,
        product=_product(operation, rows),
        names=_names(operation),
        figures=_figures(operation),
        lines=lines,
        more=len(sources) - len(lines),
        score="" if operation.score is None else f"{operation.score:.3f}",
        why=visible(operation.skipped_reason or operation.reason),
        asked_by=visible(operation.requested_by),
        decided=_decided(operation),
        decidable=decidable,
        digest=proposed_digest(operation=operation, rows=rows, policy_hash=policy_hash) if decidable else "",
        opened=opened,
    )


def _line(source: OperationSource, operation: Operation) -> Line:
    pk = source.row_id
    return Line(
        id=pk,
        name=ep(pk) if source.episode_id else obs(pk),
        text=snippet(getattr(source, "start", None)),
        kept=source.observation_id is not None and source.observation_id == _keeps(operation),
    )


def _keeps(operation: Operation) -> int | None:
    """The observation that stays: the one a reviewer chose, else the one a merge proposes; None: none is named."""
    chosen = operation.decision.get("keep")
    if isinstance(chosen, int):
        return chosen
    return operation.keeper_id if operation.kind == Kind.MERGE else None


def _product(operation: Operation, rows: Sequence[Observation | Episode]) -> str:
    """The beginning of what a promotion or compaction would write."""
    if operation.kind not in OF_EPISODES:
        return ""
    erased = any(row.status == Status.ERASED for row in rows)
    return snippet(operation.text or None) if operation.text or erased else ""


def _names(operation: Operation) -> tuple[str, str] | None:
    if operation.kind != Kind.ALIAS:
        return None
    return snippet(operation.claim_subject or None), snippet(operation.claim_object or None)


def _figures(operation: Operation) -> str:
    if operation.kind == Kind.COMPACT:
        return f"{operation.n_sources} episodes become one summary"
    return visible(support_line(operation))


def _decided(operation: Operation) -> str:
    """Who moved it last, and when."""
    if operation.undone_at:
        return told("undone by {}, {}", visible(operation.undone_by), when(operation.undone_at))
    if operation.applied_at:
        return told("applied by {}, {}", visible(operation.applied_by), when(operation.applied_at))
    if operation.decided_at:
        return told("{}, {}", visible(operation.decided_by), when(operation.decided_at))
    return ""


# --- what a page showed ---------------------------------------------------------------------------------------------


class ShownExpired(Exception):
    """The page was loaded too long ago, or by somebody else: reload it and decide on what it shows now."""

    def __str__(self) -> str:
        """The sentence for the person who asked."""
        return (
            f"This page was loaded more than {SHOWN_HOURS} hours ago, or by somebody else. Reload it and decide again."
        )


def shown_token(*, rows: Iterable[Row], user_id: int) -> str:
    """One signed field with each decidable row's id and digest: a selection never reaches the unseen (D2, H2)."""
    shown = {str(row.pk): row.digest for row in rows if row.decidable}
    return signing.dumps({"user": user_id, "shown": shown}, salt=_SALT, compress=True)


def shown_digests(*, token: str, user_id: int) -> dict[int, str]:
    """The ids and digests a page showed to this person. Raises ShownExpired."""
    try:
        content = signing.loads(token, salt=_SALT, max_age=SHOWN_HOURS * 3600)
    except signing.BadSignature as error:
        raise ShownExpired from error
    if content["user"] != user_id:
        raise ShownExpired
    return {int(pk): digest for pk, digest in content["shown"].items()}

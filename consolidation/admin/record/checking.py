"""Whether a decision still covers exactly what was shown, and the policy it was made under.

A digest is computed again from what the record holds: the operation, the sources' versions, states and hashes as they
were, and the policy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from consolidation import policy as rules
from consolidation import review
from consolidation.admin.history.moments import Stood
from consolidation.admin.texts import flat
from consolidation.models import Operation, OperationSource, Plan, PolicyRevision
from consolidation.operations import visible
from observations.models import Episode, Observation

REVISIONS: Final = 500  # of all policies, the newest up to the decision


@dataclass(frozen=True, slots=True)
class Rules:
    """The policy an operation was planned under, and the one that held when it was decided."""

    hash: str
    pattern: str  # empty: the defaults held
    version: int
    found: bool  # its body is known
    body: tuple[tuple[str, str], ...]
    decided_hash: str  # empty: as planned, or not decided
    decided_under: str  # pattern and version


@dataclass(frozen=True, slots=True)
class Checked:
    """What became of comparing digests."""

    digest: str  # of the approval, else of the application; empty: nobody approved it
    matches: bool
    sentence: str
    applied: str  # what was applied, where that is another digest


def rules_of(operation: Operation, plans: Sequence[Plan]) -> Rules:
    """From the plan's own snapshot, else from the revisions. One query."""
    snapshots = [plan.snapshots[operation.policy_hash] for plan in plans if operation.policy_hash in plan.snapshots]
    at = operation.decided_at or operation.applied_at or operation.created_at
    rows = list(PolicyRevision.objects.filter(at__lte=at).order_by("-pk")[:REVISIONS])
    revised = next((row for row in rows if _hash(row.body) == operation.policy_hash), None)
    held = _held(rows, operation.scope.name)
    snapshot = snapshots[0] if snapshots else {}
    body = snapshot.get("body") if snapshots else revised.body if revised else None
    default = body is None and operation.policy_hash == rules.Policy().hash
    decided = held[1] if operation.decided_at and held[1] != operation.policy_hash else ""
    return Rules(
        hash=operation.policy_hash,
        pattern=visible(str(snapshot.get("pattern", ""))) or (visible(revised.pattern) if revised else ""),
        version=int(snapshot.get("version", 0)) or (revised.version if revised else 0),
        found=body is not None or default,
        body=tuple(flat(body or {})),
        decided_hash=decided,
        decided_under=held[0] if decided else "",
    )


def _held(rows: Sequence[PolicyRevision], scope: str) -> tuple[str, str]:
    """The policy that these revisions, newest first, leave in force for a scope: its name and its hash."""
    newest: dict[str, PolicyRevision] = {}
    for row in rows:
        newest.setdefault(row.pattern, row)
    standing = {pattern: row for pattern, row in newest.items() if row.body is not None}
    pattern = rules.most_specific(patterns=standing, scope=scope)
    if pattern is None:
        return "the defaults", rules.Policy().hash
    return f"{visible(pattern)} version {standing[pattern].version}", _hash(standing[pattern].body)


def _hash(body: Mapping[str, object] | None) -> str:
    try:
        return rules.Policy.from_dict(body).hash if body is not None else ""  # type: ignore[arg-type]
    except rules.PolicyError:
        return ""


def check(
    operation: Operation,
    sources: Sequence[OperationSource],
    *,
    then: Mapping[int, Stood],
    rules: Rules,
    taken_back: bool = False,
) -> Checked:
    """No query."""
    digest = operation.approved_digest or operation.applied_digest
    other = operation.applied_digest if operation.applied_digest != digest else ""
    if not digest:
        return Checked("", matches=False, sentence=_TAKEN_BACK if taken_back else _NOTHING, applied="")
    if any(not source.planned_hash or source.row_id not in then for source in sources):
        sentence = "It cannot be computed again: part of what it covers was erased, its hash too."
        return Checked(digest, matches=False, sentence=sentence, applied=other)
    rows = [_as_shown(source, then[source.row_id]) for source in sources]
    hashes = [operation.policy_hash, *filter(None, [rules.decided_hash])]
    matches = any(
        review.digest_of(operation=operation, rows=rows, policy_hash=each) == digest for each in hashes
    )  # one decided on a page may have been shown under a later policy
    return Checked(digest, matches=matches, sentence=_MATCHES if matches else _DIFFERS, applied=other)


_NOTHING: Final = "Nothing was approved, so no digest was kept."
_TAKEN_BACK: Final = "What was decided was taken back: nothing is decided now. The audit below keeps the digest."
_MATCHES: Final = "It matches: computed again from this record, it is the same."
_DIFFERS: Final = "It does not match: computed again from this record, it is another one."


def _as_shown(source: OperationSource, then: Stood) -> Observation | Episode:
    """The row as it was when it was shown; nothing of it is stored."""
    values = {
        "pk": source.row_id,
        "version": source.planned_version,
        "status": source.prior_status or then.status,
        "content_hash": source.planned_hash,
    }
    return Observation(**values) if source.observation_id else Episode(**values)

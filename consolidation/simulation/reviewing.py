"""A reviewer who knows the truth, and decides as a person would: by what the records mean, item by item."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from consolidation import review, runner
from consolidation.models import Operation, OperationSource
from consolidation.operations import Kind
from consolidation.simulation.world import MANY, Meaning, World
from observations.models import Lineage, Observation, Scope

BY = "the simulation's reviewer"
SECOND = "the simulation's second reviewer"  # agrees wherever the policy wants two people
_LONGEST_CHAIN = 3


@dataclass(slots=True)
class Reviewer:
    """Decides everything that waits in one scope, and applies what was approved."""

    world: World
    within: Scope
    _meanings: dict[int, Meaning | None] = field(default_factory=dict)

    def decide_all(self) -> int:
        """Returns how many decisions that took; what an earlier one of this sitting moved is left for the next."""
        waiting = Operation.objects.awaiting_review().filter(scope=self.within).order_by("pk")
        return sum(self._decided(operation) for operation in list(waiting))

    def meanings(self, ids: Sequence[int]) -> dict[int, Meaning | None]:
        """What rows mean; a merged one means what its sources do. Two queries for each level of the lineage."""
        missing = [pk for pk in ids if pk not in self._meanings]
        if missing:
            named = dict(Observation.objects.filter(pk__in=missing).values_list("pk", "external_id"))
            written = {pk: self.world.said[name] for pk, name in named.items() if name in self.world.said}
            self._meanings |= written
            self._inherit([pk for pk in missing if pk not in written])
        return {pk: self._meanings[pk] for pk in ids}

    def _inherit(self, derived: Sequence[int]) -> None:
        """One source tells: a merge was approved because all of them mean the same."""
        edges = Lineage.objects.filter(derived__in=derived, source_observation__isnull=False).order_by("-pk")
        source = {pk: under for pk, under in edges.values_list("derived_id", "source_observation_id") if under}
        below = self.meanings(sorted(set(source.values()))) if source else {}
        self._meanings |= {pk: below[source[pk]] if pk in source else None for pk in derived}

    def _decided(self, operation: Operation) -> bool:
        try:
            self._decide(operation)
        except review.Changed:
            return False
        return True

    def _decide(self, operation: Operation) -> None:
        found = OperationSource.objects.filter(operation=operation).values_list("observation_id", flat=True)
        rows = list(Observation.objects.filter(pk__in=[pk for pk in found if pk is not None]))
        meant = self.meanings([row.pk for row in rows])
        if operation.kind == Kind.SUPERSEDE:
            self._settle(operation, rows, meant)
        elif operation.kind != Kind.MERGE:
            review.reject(operation=operation, by=BY, reason="not for this store")
        elif len(set(meant.values())) > 1:
            review.distinct(operation=operation, by=BY)
        elif max(row.chain for row in rows) >= _LONGEST_CHAIN:
            review.reject(operation=operation, by=BY, reason="merged often enough")
        else:
            review.approve(operation=operation, by=BY)
            self._apply(operation)

    def _settle(self, operation: Operation, rows: Sequence[Observation], meant: dict[int, Meaning | None]) -> None:
        """What is true now stays; of a predicate with several values all of them do."""
        predicates = {meaning[1] for meaning in meant.values() if meaning}
        if predicates <= set(MANY):
            decision = review.Decision(many_valued=True)
        else:
            right = frozenset().union(*(question.right for question in self.world.questions()))
            kept = max(rows, key=lambda row: (meant[row.pk] in right, row.created_at, row.pk))
            decision = review.Decision(keep=kept.pk)
        review.approve(operation=operation, by=BY, decision=decision, reason="asked them")
        self._apply(operation)

    def _apply(self, operation: Operation) -> None:
        operation.refresh_from_db()
        runner.apply(operation=operation, by=BY)

"""A store that grows session by session, and a reviewer who knows the truth: both drawn from one seed."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import combinations

from django.db import connection, transaction
from django.db.models import Max

from consolidation import review, runner
from consolidation.models import Operation, OperationSource
from consolidation.operations import Kind, State
from observations import ingest, store
from observations.embedding import embedder
from observations.models import Observation, Scope
from observations.records import Claim, EvidenceRef, Status, WrittenBy
from tests.building import LONG_AGO

PEOPLE = ("Ana", "Bo", "Cyril", "Dora", "Emil", "Fay")
SINGLE = {  # one value at a time: it changes now and then
    "lives in": ("Graz", "Linz", "Wels", "Enns", "Bregenz"),
    "works at": ("the mill", "the harbour", "the library", "the depot"),
    "rides": ("a red bicycle", "a tram", "a mountain bike", "a scooter"),
    "takes tea": ("black", "with milk", "with lemon", "with honey"),
}
MANY = {"plays": ("chess", "the cello", "handball", "cards", "badminton")}  # several at once
CHANGES = 0.04  # share of sayings in which a single value has become another
REWORDED = 0.10  # share of sayings in words that only a person can call the same


@dataclass(slots=True)
class World:
    """What is true, and who said it when. `said` maps an observation to the (person, predicate, value) it means."""

    within: Scope
    seed: int = 7
    said: dict[int, tuple[str, str, str]] = field(default_factory=dict)
    written: int = 0
    _leaves: dict[int, frozenset[int]] = field(default_factory=dict)
    _now: dict[tuple[str, str], str] = field(default_factory=dict)
    _draw: random.Random = field(default_factory=random.Random)

    def __post_init__(self) -> None:
        """Draw the beginning."""
        self._draw = random.Random(self.seed)
        for person in PEOPLE:
            self._now |= {(person, one): self._draw.choice(values) for one, values in SINGLE.items()}

    def session(self, number: int) -> None:
        """One session: six things said about one or two people, written with their keys and vectors."""
        claims, meanings = [], []
        for turn in range(6):
            meaning = self._meaning()
            claims.append(self._claim(meaning, number, turn))
            meanings.append(meaning)
        with transaction.atomic():
            fates = store.add_observations(scope=self.within, claims=claims, written_by=WrittenBy.BACKGROUND)
        ids = [fate.id for fate in fates if fate.id is not None]
        self.said |= dict(zip(ids, meanings, strict=True))
        self.written += len(ids)
        ingest.embed_missing(scope_id=self.within.pk, first=min(ids), last=max(ids), embedder=embedder("hashing"))

    def _meaning(self) -> tuple[str, str, str]:
        person, draw = self._draw.choice(PEOPLE), self._draw
        predicate = draw.choice([*SINGLE, *MANY])
        if predicate in MANY:
            return person, predicate, draw.choice(MANY[predicate])
        if draw.random() < CHANGES:
            self._now[person, predicate] = draw.choice(SINGLE[predicate])
        return person, predicate, self._now[person, predicate]

    def _claim(self, meaning: tuple[str, str, str], session: int, turn: int) -> Claim:
        person, predicate, value = meaning
        plain = f"{person} {predicate} {value}"
        variants = [plain, plain + ".", plain.upper(), f"{person}  {predicate}  {value}!"]
        text = self._draw.choice(variants)
        if self._draw.random() < REWORDED:
            text = f"{person} said so again: {predicate} {value}"
        return Claim(
            text=text,
            external_id=f"s{session}t{turn}",
            subject=person,
            predicate=predicate,
            object=value,
            created_at=LONG_AGO + timedelta(days=session, minutes=turn),
            evidence=(EvidenceRef(source_uri=f"session://{session}/{turn}", root_source=f"session://{session}"),),
        )

    def meaning(self, pk: int) -> tuple[str, str, str]:
        """What an observation means; a merged one means what its sources do."""
        if pk not in self.said:
            row = Observation.objects.get(pk=pk)
            source = row.lineage.order_by("pk").values_list("source_observation_id", flat=True)[0]
            assert source is not None
            self.said[pk] = self.meaning(source)
        return self.said[pk]

    def leaves(self, pk: int) -> frozenset[int]:
        """The written rows under an observation: what it came from never changes."""
        if pk not in self._leaves:
            below = list(Observation.objects.get(pk=pk).lineage.values_list("source_observation_id", flat=True))
            found = (self.leaves(source) for source in below if source is not None)
            self._leaves[pk] = frozenset().union(*found) if below else frozenset({pk})
        return self._leaves[pk]


@dataclass(slots=True)
class Reviewer:
    """Decides by the truth, and remembers which pairs of written rows were told apart or refused."""

    world: World
    decided: set[frozenset[int]] = field(default_factory=set)
    asked_again: list[str] = field(default_factory=list)

    def decide_all(self) -> int:
        """Everything that waits, each decided and, where it was approved, applied; returns how many there were."""
        waiting = list(Operation.objects.awaiting_review().select_related("scope").order_by("pk"))
        return sum(self._decided(operation) for operation in waiting)

    def _decided(self, operation: Operation) -> bool:
        """Whether there was anything left to decide: an earlier decision of this sitting may have moved its rows."""
        try:
            self._decide(operation)
        except review.Changed:
            return False
        return True

    def _decide(self, operation: Operation) -> None:
        rows = list(OperationSource.objects.filter(operation=operation).values_list("observation_id", flat=True))
        ids = [pk for pk in rows if pk is not None]
        self._look_for_repeats(operation, ids)
        meanings = {self.world.meaning(pk) for pk in ids}
        if operation.kind == Kind.SUPERSEDE:
            self._settle(operation, ids)
        elif len(meanings) > 1:
            review.distinct(operation=operation, by="reviewer")
            self._remember(ids)
        elif max(Observation.objects.filter(pk__in=ids).values_list("chain", flat=True)) >= 3:
            review.reject(operation=operation, by="reviewer", reason="merged often enough")
            self._remember(ids)
        else:
            review.approve(operation=operation, by="reviewer")
            self._apply(operation)

    def _settle(self, operation: Operation, ids: Sequence[int]) -> None:
        """The newest value stays; a predicate of several values is called that, once."""
        predicate = self.world.meaning(ids[0])[1]
        newest = Observation.objects.filter(pk__in=ids).order_by("-created_at", "-pk")[0]
        if predicate in MANY:
            decision = review.Decision(many_valued=True)
        else:
            newest = max(Observation.objects.filter(pk__in=ids), key=lambda row: (self._last_said(row), row.pk))
            decision = review.Decision(keep=newest.pk)
        review.approve(operation=operation, by="reviewer", decision=decision, reason="asked them")
        self._apply(operation)

    def _last_said(self, row: Observation) -> int:
        return max(self.world.leaves(row.pk))

    def _apply(self, operation: Operation) -> None:
        operation.refresh_from_db()
        result = runner.apply(operation=operation, by="reviewer")
        assert result.outcome in (runner.Outcome.APPLIED, runner.Outcome.STALE), result.sentence

    def _pairs(self, ids: Sequence[int]) -> Iterator[frozenset[int]]:
        leaves = [self.world.leaves(pk) for pk in ids]
        for one, other in combinations(leaves, 2):
            yield from (frozenset((a, b)) for a in one for b in other)

    def _remember(self, ids: Sequence[int]) -> None:
        self.decided.update(self._pairs(ids))

    def _look_for_repeats(self, operation: Operation, ids: Sequence[int]) -> None:
        if operation.kind == Kind.MERGE and any(pair in self.decided for pair in self._pairs(ids)):
            self.asked_again.append(operation.op_id)


def active(within: Scope) -> int:
    """Rows that reads return."""
    return Observation.objects.filter(scope=within, status=Status.ACTIVE).count()


def longest_chain(within: Scope) -> int:
    """The longest chain of merges behind a live row, as the policy counts it."""
    rows = Observation.objects.filter(scope=within, status=Status.ACTIVE)
    return int(rows.aggregate(longest=Max("chain"))["longest"] or 0)


def lineage_depth(within: Scope) -> int:
    """The longest way down the lineage from any row, whatever its status: a derivation a step, as a reader walks it."""
    with connection.cursor() as cursor:
        cursor.execute(
            "WITH RECURSIVE below (id, depth) AS ("
            " SELECT id, 0 FROM observations_observation WHERE scope_id = %s"
            " UNION SELECT l.source_observation_id, b.depth + 1 FROM below b"
            " JOIN observations_lineage l ON l.derived_id = b.id AND l.source_observation_id IS NOT NULL"
            ") SELECT coalesce(max(depth), 0) FROM below",
            [within.pk],
        )
        row = cursor.fetchone()
    assert row is not None
    return int(row[0])


def open_operations(within: Scope) -> int:
    """Operations that wait for somebody."""
    states = (State.PLANNED, State.NEEDS_HUMAN, State.APPROVED)
    return Operation.objects.filter(scope=within, status__in=states).count()

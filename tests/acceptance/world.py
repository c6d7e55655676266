"""Small worlds for crash and concurrency tests, and what is compared before and after."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from django.db import connection, transaction

from consolidation import invariants, review, runner
from consolidation.models import Operation
from consolidation.operations import Approval, Json, Kind
from observations import store
from observations.models import Episode, Observation
from observations.records import Turn
from tests.building import LONG_AGO, observe, propose, scope, seconded
from tests.conftest import empty_the_store

KEY = ("relay", "sits in", "rack 4")
# What each part of the store says of its rows, by external ids: jsonb, so that every part has the columns it needs.
PARTS = {
    "observation": """
        SELECT jsonb_build_array(o.external_id, o.text, o.status, o.version, s.external_id, o.confidence, o.stated_by,
          CASE WHEN o.created_at < '2025-01-01' THEN o.created_at END, o.valid_from, o.valid_to, o.chain, o.derivation,
          o.produced_by)
        FROM observations_observation o LEFT JOIN observations_observation s ON s.id = o.superseded_by_id""",
    "evidence": """
        SELECT jsonb_build_array(o.external_id, e.source_uri, e.root_source, e.quote)
        FROM observations_evidence e JOIN observations_observation o ON o.id = e.observation_id""",
    "lineage": """
        SELECT jsonb_build_array(d.external_id, s.external_id, t.external_id, l.derivation, l.operation)
        FROM observations_lineage l JOIN observations_observation d ON d.id = l.derived_id
        LEFT JOIN observations_observation s ON s.id = l.source_observation_id
        LEFT JOIN observations_episode t ON t.id = l.source_episode_id""",
    "episode": "SELECT jsonb_build_array(external_id, text, status, version) FROM observations_episode",
    "journal of episodes": """
        SELECT jsonb_build_array(e.external_id, t.from_status, t.to_status, t.version, t.cause)
        FROM observations_transition t JOIN observations_episode e ON e.id = t.episode_id""",
    "alias": "SELECT jsonb_build_array(subject, name, operation, removed_at IS NULL) FROM consolidation_alias",
    "cardinality": """
        SELECT jsonb_build_array(predicate, holds, operation, withdrawn_at IS NULL) FROM consolidation_cardinality""",
    "given key": """
        SELECT jsonb_build_array(o.external_id, g.state, g.predicate, g.sp_key)
        FROM observations_givenkey g JOIN observations_observation o ON o.id = g.observation_id""",
    "vector": """
        SELECT jsonb_build_array(o.external_id, e.vector::text, e.active)
        FROM observations_embedding e JOIN observations_observation o ON o.id = e.observation_id""",
    "journal": """
        SELECT jsonb_build_array(o.external_id, t.from_status, t.to_status, t.version, t.cause)
        FROM observations_transition t JOIN observations_observation o ON o.id = t.observation_id""",
    "operation": """
        SELECT jsonb_build_array(op_id, status, decided_by, generation, applied_by, undone_by)
        FROM consolidation_operation""",
    "consumed": """
        SELECT jsonb_build_array(o.external_id, e.external_id, p.op_id) FROM consolidation_consumption c
        LEFT JOIN observations_observation o ON o.id = c.observation_id
        LEFT JOIN observations_episode e ON e.id = c.episode_id
        JOIN consolidation_operation p ON p.id = c.operation_id""",
    "event": "SELECT jsonb_build_array(subject, action, actor, generation) FROM observations_event",
    "verdict": """
        SELECT jsonb_build_array(a.external_id, b.external_id) FROM consolidation_verdict v
        JOIN observations_observation a ON a.id = v.low_id JOIN observations_observation b ON b.id = v.high_id""",
    "outbox": "SELECT jsonb_build_array(task, key, done_at IS NULL) FROM observations_outbox WHERE task <> 'embed'",
}


def snapshot() -> str:
    """Everything that a half-done operation could leave different, in one canonical text."""
    every = " UNION ALL ".join(
        f"SELECT '{part}' || x.row::text FROM ({query}) x (row)" for part, query in PARTS.items()
    )
    with connection.cursor() as cursor:
        cursor.execute(every)
        return "\n".join(sorted(row for (row,) in cursor.fetchall()))


def broken() -> list[str]:
    """The invariants that do not hold, as sentences."""
    return [str(violation) for violation in invariants.check()]


@dataclass(frozen=True)
class Scenario:
    """One thing that may be killed anywhere: a world, and the action on it. `build` returns the operation's primary
    key.
    """

    name: str
    build: Callable[[], int]
    act: Callable[[int], object]


def _operation(pk: int) -> Operation:
    return Operation.objects.select_related("scope").get(pk=pk)


def apply(pk: int) -> runner.Result:
    """Apply by primary key, as a worker does."""
    return runner.apply(operation=_operation(pk), by="reviewer")


def undo(pk: int) -> runner.Result:
    """Undo by primary key."""
    return runner.undo(operation=_operation(pk), by="reviewer")


def rows(count: int = 3, *, same: bool = True) -> list[Observation]:
    """Fresh observations of one scope, in an empty store, that are the same world every time."""
    empty_the_store()
    within = scope()
    texts = [
        "The relay sits in rack 4",
        "the relay sits in rack four",
        "The relay sits in rack 4.",
        "Relay: sits in rack 4",
    ]
    return [
        observe(
            texts[number] if same else f"The relay sits in rack {number}",
            within=within,
            key=KEY if same else ("relay", "sits in", f"rack {number}"),
            external_id=f"r{number}",
            created_at=LONG_AGO + timedelta(days=number),
            sources=[f"s://{number}"],
        )
        for number in range(count)
    ]


def merge() -> int:
    """An automatic merge of three."""
    return propose(Kind.MERGE, rows()).pk


def merge_again() -> int:
    """An automatic merge of a row that a merge made with a repeat of it."""
    first, second, third = rows()
    made = propose(Kind.MERGE, [first, second])
    assert apply(made.pk).outcome == runner.Outcome.APPLIED
    derived = _operation(made.pk).derived
    assert derived is not None
    return propose(Kind.MERGE, [derived, third], keeper=derived).pk


def supersede() -> int:
    """A contradiction of two, decided: the newer stays."""
    live = rows(2, same=False)
    operation = propose(Kind.SUPERSEDE, live, approval=Approval.NEEDS_HUMAN)
    review.approve(operation=operation, by="reviewer", decision=review.Decision(keep=live[1].pk), reason="moved in May")
    return operation.pk


def right_claim() -> int:
    """A contradiction of two, decided by writing the right claim."""
    operation = propose(Kind.SUPERSEDE, rows(2, same=False), approval=Approval.NEEDS_HUMAN)
    decision = review.Decision(text="The relay sits in rack 9")
    review.approve(operation=operation, by="reviewer", decision=decision, reason="looked myself")
    return operation.pk


def archive() -> int:
    """Two rows that leave the reads."""
    return propose(Kind.ARCHIVE, rows(2)).pk


def prune() -> int:
    """Two rows that a retention policy names, approved."""
    operation = propose(Kind.PRUNE, rows(2), approval=Approval.NEEDS_HUMAN)
    review.approve(operation=operation, by="reviewer", reason="over a year old")
    seconded(operation)
    return operation.pk


def many_values() -> int:
    """A contradiction of two that is none: the predicate holds several values at once."""
    operation = propose(Kind.SUPERSEDE, rows(2, same=False), approval=Approval.NEEDS_HUMAN)
    decision = review.Decision(many_valued=True)
    review.approve(operation=operation, by="reviewer", decision=decision, reason="it has two seats")
    return operation.pk


def turns(count: int = 3) -> list[Episode]:
    """Fresh episodes of one scope, in an empty store, that are the same world every time."""
    empty_the_store()
    within = scope()
    said = LONG_AGO + timedelta(days=1)
    texts = [f"Day {number}: the relay in rack 4 was restarted" for number in range(count)]
    with transaction.atomic():
        store.add_episodes(
            scope=within,
            turns=[
                Turn(text=text, external_id=f"e{number}", seq=number, happened_at=said, source_uri=f"t://{number}")
                for number, text in enumerate(texts)
            ],
        )
    return list(Episode.objects.order_by("pk"))


def promote() -> int:
    """A fact that three episodes agree on."""
    episodes = turns()
    product: dict[str, Json] = {
        "discriminator": "d.0",
        "support": [[turn.pk, 7, 26] for turn in episodes],
        "confidence": 0.6,
    }
    return propose(Kind.PROMOTE, episodes, product=product, text="The relay is restarted daily", key=KEY).pk


def compact() -> int:
    """A summary of three episodes."""
    return propose(Kind.COMPACT, turns(), text="The relay in rack 4 was restarted on days 0, 1 and 2.").pk


def alias() -> int:
    """Two subjects that a person says are one, approved."""
    operation = propose(
        Kind.ALIAS,
        rows(2),
        approval=Approval.NEEDS_HUMAN,
        key=("relay four", "is", "relay"),
        product={"discriminator": "a"},
    )
    review.approve(operation=operation, by="reviewer", reason="one machine, two labels")
    return operation.pk


def applied(build: Callable[[], int]) -> Callable[[], int]:
    """The same world after the application, for undo."""

    def build_and_apply() -> int:
        pk = build()
        assert apply(pk).outcome == runner.Outcome.APPLIED
        return pk

    return build_and_apply


KINDS = {
    "merge": merge,
    "merge again": merge_again,
    "supersede": supersede,
    "right claim": right_claim,
    "many values": many_values,
    "archive": archive,
    "prune": prune,
    "promote": promote,
    "compact": compact,
    "alias": alias,
}
SCENARIOS = [
    *(Scenario(f"apply {name}", build, apply) for name, build in KINDS.items()),
    *(Scenario(f"undo {name}", applied(build), undo) for name, build in KINDS.items()),
]

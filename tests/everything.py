"""One small store that holds a row of every status, kind and origin of its key, and an operation of every fate."""

from __future__ import annotations

from datetime import UTC, datetime

from django.db import transaction

from consolidation import review, runner
from consolidation.models import Operation
from consolidation.operations import Approval, Json, Kind
from observations import ingest, store
from observations.models import Episode, Observation, Scope
from observations.records import (
    Claim,
    EvidenceRef,
    Given,
    KeyState,
    MemoryKind,
    Outcome,
    StatedBy,
    Status,
    Turn,
    WrittenBy,
)
from tests.building import observe, propose, scope, tell
from tests.keeping import kept


@kept
def a_store_with_everything() -> None:
    """Rows of every status in two scopes: merged, merged again, undone, superseded, set right, archived, held back,
    erased, promoted, summed up; quotes; kinds and half-lives; keys that a model gave, did not find or had taken back;
    episodes, some archived.
    """
    here, there = scope("team/a"), scope("team-a")
    with transaction.atomic():
        turns = [
            Turn(text="Hello\nthere", speaker="Ana", session="1", seq=1, source_uri="chat://1", external_id="e1"),
            Turn(text="Hi", role="assistant", happened_at=datetime(2024, 1, 1, 1, 2, 3, 4, tzinfo=UTC)),
        ]
        store.add_episodes(scope=here, turns=turns)
    key = ("Ana", "lives in", "Bonn")
    a, b = (observe("Ana lives in Bonn.", within=here, key=key, sources=[f"doc://{n}", "doc://9"]) for n in (1, 2))
    _apply(propose(Kind.MERGE, [a, b]))
    c, d = (observe("The relay hums.", within=here, stated_by=by) for by in (StatedBy.TOOL, StatedBy.AGENT))
    merged = propose(Kind.MERGE, [c, d])
    _apply(merged)
    assert runner.undo(operation=Operation.objects.get(pk=merged.pk), by="ops").outcome == "undone"
    old, new = (observe(f"Standup at {n}", within=here, key=("standup", "at", n)) for n in ("nine", "ten"))
    _apply(propose(Kind.SUPERSEDE, [old, new], approval=Approval.NEEDS_HUMAN), review.Decision(keep=new.pk))
    wrong = [observe(f"Retro at {n}", within=here, key=("retro", "at", n)) for n in ("two", "three")]
    right = review.Decision(text="Retro at four", object="four")
    _apply(propose(Kind.SUPERSEDE, wrong, approval=Approval.NEEDS_HUMAN), right)
    _apply(propose(Kind.ARCHIVE, [observe("Waiting on the relay fix", within=here)]))
    _kinds(here)
    _keys(here)
    _distilled(here)
    _named(here)
    _said_again(here)
    held, gone = observe("Held back", within=here), observe("To be erased", within=here, external_id="gone")
    store.move(scope_id=here.pk, ids=[held.pk], to=Status.QUARANTINED)
    with transaction.atomic():
        store.erase(scope_id=here.pk, ids=[gone.pk], by="Ana", reason="asked", request="forget:1")
    quoted = Claim(
        text="Café \ud83d 日本 \u2028 line",
        confidence=1 / 3,
        stated_by=StatedBy.USER,
        valid_from=datetime(1811, 1, 1, tzinfo=UTC),
        valid_to=datetime(2031, 1, 1, tzinfo=UTC),
        evidence=(EvidenceRef("doc://1", root_source="doc://0", quote="Café", quote_start=0), EvidenceRef("doc://2")),
    )
    with transaction.atomic():
        store.add_observations(scope=there, claims=[quoted], written_by=WrittenBy.DELIBERATE)


def _kinds(within: Scope) -> None:
    """A row of every kind, and one with a half-life of its own."""
    claims = [Claim(text=f"Of the kind {kind}", kind=kind) for kind in MemoryKind]
    own = Claim(text="Slow to fade", kind=MemoryKind.STATE, half_life_days=400)
    with transaction.atomic():
        store.add_observations(scope=within, claims=[*claims, own], written_by=WrittenBy.DELIBERATE)


def _keys(within: Scope) -> None:
    """What a model said about the keys of four rows, one of them with a subject of its writer's; one was merged."""
    texts = ("Bo works at Relay.", "The weather was lovely.", "Prose instead of an answer.", "Cy lives in Kiel.")
    rows = [observe(text, within=within, key=("Bo", "", "") if not n else ("", "", "")) for n, text in enumerate(texts)]
    twins = [observe("Tea is at four.", within=within) for _ in "ab"]
    parts = {"predicate": "works at", "object": "Relay", "quote": (0, 17)}
    said = {
        rows[0].pk: Given(KeyState.GIVEN, model="m", prompt_version="1", **parts),  # type: ignore[arg-type]
        rows[1].pk: Given(KeyState.NONE, model="m", prompt_version="1"),
        rows[2].pk: Given(KeyState.UNUSABLE, model="m", prompt_version="1", attempts=1),
        rows[3].pk: Given(KeyState.GIVEN, model="m", prompt_version="1", subject="Cy"),
        twins[0].pk: Given(KeyState.GIVEN, model="m", prompt_version="1", subject="tea", predicate="is at"),
    }
    with transaction.atomic():
        assert store.put_keys(scope_id=within.pk, given=said) == set(said)
    ingest.withdraw_key(observation=rows[3], by="rev")
    _apply(propose(Kind.MERGE, twins, keeper=twins[0]))


def _distilled(within: Scope) -> None:
    """A fact that three turns agree on, and a summary of two others."""
    words = "the night train to Graz"
    told = [
        tell(f"Week {n}: {words} again", within=within, role="user", root=f"mail://{n}", outcome=Outcome.SUCCESS)
        for n in range(3)
    ]
    support: list[Json] = [[turn.pk, 8, 8 + len(words)] for turn in told]
    product: dict[str, Json] = {"discriminator": "e.0", "support": support, "confidence": 0.6}
    key = ("Ana", "takes", words)
    _apply(propose(Kind.PROMOTE, told, product=product, text=f"Ana takes {words}", key=key))
    quiet: list[Episode] = [tell(f"Day {n}: nothing happened", within=within, session="quiet") for n in range(2)]
    _apply(propose(Kind.COMPACT, quiet, text="Nothing happened on two days."))


def _named(within: Scope) -> None:
    """Two subjects that a person says are one."""
    rows = [observe(f"{name} knows Bo", within=within, key=(name, "knows", "Bo")) for name in ("Anna", "Ana B")]
    key, product = ("anna", "is", "ana b"), {"discriminator": "e.1"}
    _apply(propose(Kind.ALIAS, rows, approval=Approval.NEEDS_HUMAN, key=key, product={**product}), reason="one person")


def _said_again(within: Scope) -> None:
    """A merged row that a repeat of it was merged into: its successor's lineage names what both came from."""
    rows = [observe("The gate shuts at eight.", within=within) for _ in "abc"]
    first = propose(Kind.MERGE, rows[:2])
    _apply(first)
    merged = Observation.objects.get(produced_by=f"{first.op_id}#1")
    _apply(propose(Kind.MERGE, [merged, rows[2]]))


def _apply(operation: Operation, decision: review.Decision | None = None, *, reason: str = "newer") -> None:
    if operation.approval == Approval.NEEDS_HUMAN:
        shown = review.shown_digest(operation=operation)
        operation = review.approve(operation=operation, by="rev", digest=shown, decision=decision, reason=reason)
    result = runner.apply(operation=operation, by="rev")
    assert result.outcome == "applied", result.sentence

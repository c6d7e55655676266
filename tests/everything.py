"""One small store that holds a row of every status and an operation of every fate."""

from __future__ import annotations

from datetime import UTC, datetime

from django.db import transaction

from consolidation import review, runner
from consolidation.models import Operation
from consolidation.operations import Approval, Kind
from observations import store
from observations.models import Observation
from observations.records import Claim, EvidenceRef, StatedBy, Status, Turn, WrittenBy
from tests.building import observe, propose, scope


def a_store_with_everything() -> None:
    """Rows of every status in two scopes: merged, undone, superseded, archived, held back, erased; quotes; episodes."""
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
    _apply(propose(Kind.SUPERSEDE, [old, new], approval=Approval.NEEDS_HUMAN), keep=new)
    _apply(propose(Kind.ARCHIVE, [observe("Waiting on the relay fix", within=here)]))
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


def _apply(operation: Operation, *, keep: Observation | None = None) -> None:
    if keep is not None:
        decision = review.Decision(keep=keep.pk)
        shown = review.shown_digest(operation=operation)
        operation = review.approve(operation=operation, by="rev", digest=shown, decision=decision, reason="newer")
    result = runner.apply(operation=operation, by="rev")
    assert result.outcome == "applied", result.sentence

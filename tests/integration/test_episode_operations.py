"""Promotions and compactions: what applying does to episodes and what undoing gives back, on a real PostgreSQL."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.db import DatabaseError, transaction

from consolidation import invariants, review, runner
from consolidation.models import Consumption, Operation
from consolidation.operations import Approval, Json, Kind, State
from consolidation.runner import Outcome
from observations import store
from observations.models import Episode, Evidence, Lineage, Observation, Scope, Transition
from observations.records import MemoryKind, StatedBy, Status
from tests.building import propose, scope, tell

pytestmark = pytest.mark.django_db(transaction=True)  # the deferred checks run at real commits

FACT = "Ana takes the night train to Graz"
KEY = ("Ana", "takes", "the night train to Graz")


@pytest.fixture
def within() -> Scope:
    return scope("team-a/ana")


def turns(within: Scope, *, role: str = "") -> list[Episode]:
    return [
        tell(f"Week {week}: took the night train to Graz again", within=within, role=role, root=f"doc://{week}")
        for week in range(1, 4)
    ]


def promotion(episodes: list[Episode], *, approval: Approval = Approval.AUTO, confidence: float = 0.6) -> Operation:
    support: list[Json] = [[turn.pk, 8, 38] for turn in episodes]
    product: dict[str, Json] = {"discriminator": "d.0", "support": support, "roots": 3, "confidence": confidence}
    return propose(Kind.PROMOTE, episodes, approval=approval, product=product, text=FACT, key=KEY)


def compaction(episodes: list[Episode], *, approval: Approval = Approval.AUTO) -> Operation:
    return propose(Kind.COMPACT, episodes, approval=approval, text="Three weeks of night trains to Graz.")


def applied(operation: Operation) -> Observation:
    result = runner.apply(operation=operation, by="ines")
    assert result.outcome is Outcome.APPLIED, result.sentence
    operation.refresh_from_db()
    assert operation.derived_id is not None
    return Observation.objects.get(pk=operation.derived_id)


def test_a_promoted_fact_is_a_new_row_and_its_episodes_stay_as_they_are(within: Scope) -> None:
    """R77, R78, R105: nothing about an episode moves, and the fact names every one of them."""
    episodes = turns(within)
    fact = applied(promotion(episodes))
    assert fact.text == FACT
    assert (fact.subject, fact.predicate, fact.object) == KEY
    assert fact.derivation == Kind.PROMOTE
    assert list(Episode.objects.order_by("pk").values_list("status", "version")) == [(Status.ACTIVE, 1)] * 3
    edges = Lineage.objects.filter(derived=fact).order_by("source_episode_id")
    assert [edge.source_episode_id for edge in edges] == [turn.pk for turn in episodes]
    assert not Consumption.objects.exists()
    assert invariants.check() == []


def test_promoted_confidence_never_passes_the_ceiling_whatever_was_planned(within: Scope) -> None:
    """R104, I12."""
    assert applied(promotion(turns(within), confidence=0.95)).confidence == pytest.approx(0.6)


def test_a_promoted_fact_is_the_agents_conclusion_even_when_the_user_said_all_of_it(within: Scope) -> None:
    """DESIGN 3: derived rows are never trusted above the lowest of their sources, nor as a person's own word."""
    assert applied(promotion(turns(within, role="user"))).stated_by == StatedBy.AGENT


def test_a_fact_from_outside_text_stays_outside_text(within: Scope) -> None:
    """The origin lattice: a promotion cannot launder what a page said."""
    episodes = [*turns(within)[:2], tell("A page: night train to Graz", within=within, role="web page")]
    assert applied(promotion(episodes)).stated_by == StatedBy.OUTSIDE


def test_the_episodes_words_become_the_evidence_of_a_promoted_fact(within: Scope) -> None:
    """R77: quoted from where they stand, with the root that makes an episode a witness."""
    episodes = turns(within)
    fact = applied(promotion(episodes))
    rows = Evidence.objects.filter(observation=fact).order_by("pk")
    assert [row.quote for row in rows] == [(turn.text or "")[8:38] for turn in episodes]
    assert [row.root_source for row in rows] == ["doc://1", "doc://2", "doc://3"]
    assert [row.episode_id for row in rows] == [turn.pk for turn in episodes]


def test_undoing_a_promotion_retracts_the_fact_and_nothing_else(within: Scope) -> None:
    operation = promotion(turns(within))
    fact = applied(operation)
    assert runner.undo(operation=operation, by="ines").outcome is Outcome.UNDONE
    fact.refresh_from_db()
    assert fact.status == Status.RETRACTED
    assert set(Episode.objects.values_list("status", "version")) == {(Status.ACTIVE, 1)}
    assert invariants.check() == []


def test_a_promotion_can_be_undone_after_its_episodes_were_compacted(within: Scope) -> None:
    """What happens to the episodes later is not its business: it left them as they were."""
    episodes = turns(within)
    first = promotion(episodes)
    fact = applied(first)
    applied(compaction(episodes))
    preview = runner.undo_preview(operation=first)
    assert preview.blockers == ()
    assert runner.undo(operation=first, by="ines").outcome is Outcome.UNDONE
    fact.refresh_from_db()
    assert fact.status == Status.RETRACTED
    assert invariants.check() == []


def test_compacted_episodes_are_archived_readable_and_linked_to_their_summary(within: Scope) -> None:
    """R44, C9: in every case the episodes stay stored, readable and linked."""
    episodes = turns(within)
    texts = [turn.text for turn in episodes]
    summary = applied(compaction(episodes))
    rows = Episode.objects.order_by("pk")
    assert [(row.text, row.status) for row in rows] == [(text, Status.ARCHIVED) for text in texts]
    assert set(Lineage.objects.filter(derived=summary).values_list("source_episode_id", flat=True)) == {
        row.pk for row in rows
    }
    assert (summary.kind, summary.confidence) == (MemoryKind.EPISODE, 0.4)
    assert Consumption.objects.filter(episode__isnull=False).count() == 3
    assert invariants.check() == []


def test_a_summary_is_as_old_as_its_first_episode(within: Scope) -> None:
    """R73, for summaries: compacting does not make old things young."""
    old = tell("It began here", within=within, happened_at=datetime(2019, 5, 1, tzinfo=UTC))
    summary = applied(compaction([old, *turns(within)]))
    assert summary.created_at == old.happened_at


def test_undoing_a_compaction_brings_the_episodes_back(within: Scope) -> None:
    episodes = turns(within)
    operation = compaction(episodes)
    summary = applied(operation)
    preview = runner.undo_preview(operation=operation)
    assert (preview.of_episodes, preview.restores) == (True, tuple(turn.pk for turn in episodes))
    assert runner.undo(operation=operation, by="ines").outcome is Outcome.UNDONE
    summary.refresh_from_db()
    assert summary.status == Status.RETRACTED
    assert set(Episode.objects.values_list("status", "version")) == {(Status.ACTIVE, 3)}
    assert not Consumption.objects.exists()
    assert invariants.check() == []


def test_every_move_of_an_episode_is_in_the_journal(within: Scope) -> None:
    """I7: written by the database itself, with the operation as the cause."""
    episodes = turns(within)
    operation = compaction(episodes)
    applied(operation)
    runner.undo(operation=operation, by="ines")
    moves = Transition.objects.filter(episode=episodes[0]).order_by("version")
    assert list(moves.values_list("from_status", "to_status", "version")) == [
        (Status.ACTIVE, Status.ARCHIVED, 2),
        (Status.ARCHIVED, Status.ACTIVE, 3),
    ]
    assert all(operation.op_id in move.cause for move in moves)


def test_an_episode_is_used_up_by_one_compaction_only(within: Scope) -> None:
    """I4: the second finds its episodes gone from the reads, and is stale."""
    episodes = turns(within)
    first, second = compaction(episodes), compaction(episodes[:2])
    applied(first)
    result = runner.apply(operation=second, by="ines")
    assert result.outcome is Outcome.STALE
    assert f"ep_{episodes[0].pk} was archived" in result.sentence


def test_a_compaction_of_an_archived_episode_is_stale_and_writes_nothing(within: Scope) -> None:
    """C11, for episodes."""
    episodes = turns(within)
    operation = compaction(episodes, approval=Approval.NEEDS_HUMAN)
    review.approve(operation=operation, by="ines")
    with transaction.atomic():
        store.lock_scope(scope_id=within.pk, cause="test")
        store.move_episodes(scope_id=within.pk, ids=[episodes[0].pk], to=Status.ARCHIVED)
    operation.refresh_from_db()
    assert runner.apply(operation=operation, by="ines").outcome is Outcome.STALE
    assert not Observation.objects.exists()


def test_what_a_compaction_says_is_part_of_what_was_approved(within: Scope) -> None:
    """I17: the digest covers the words; the database refuses to change them."""
    operation = compaction(turns(within), approval=Approval.NEEDS_HUMAN)
    before = review.shown_digest(operation=operation)
    other = Operation.objects.get(pk=operation.pk)
    other.text = "Something else entirely."
    assert review.shown_digest(operation=other) != before
    with pytest.raises(DatabaseError, match="permission denied"), transaction.atomic():
        Operation.objects.filter(pk=operation.pk).update(text="Something else entirely.")


def test_the_database_refuses_a_compaction_that_left_an_episode_in_the_reads(within: Scope) -> None:
    """PA006: half a compaction cannot be committed, whoever writes it."""
    episodes = turns(within)
    operation = compaction(episodes)

    def half() -> None:
        with transaction.atomic():
            assert runner.apply(operation=operation, by="ines").outcome is Outcome.APPLIED
            store.move_episodes(scope_id=within.pk, ids=[episodes[0].pk], to=Status.ACTIVE)

    with pytest.raises(DatabaseError, match="moved 2 sources and consumed 3"):
        half()
    operation.refresh_from_db()
    assert operation.status == State.PLANNED


def test_two_facts_of_the_same_episodes_are_two_operations_and_both_apply(within: Scope) -> None:
    """E4: their ids differ, and one does not make the other already applied."""
    episodes = turns(within)
    one = promotion(episodes)
    other = propose(
        Kind.PROMOTE,
        episodes,
        product={"discriminator": "d.1", "support": [], "confidence": 0.6},
        text="Ana travels every week",
    )
    assert one.op_id != other.op_id
    assert {applied(one).text, applied(other).text} == {FACT, "Ana travels every week"}
    assert invariants.check() == []

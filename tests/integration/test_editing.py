"""What a reviewer edits is a new operation in the old one's place, and what is applied is what was previewed (E.2)."""

from __future__ import annotations

import random

import numpy as np
import pytest
from django.db import DatabaseError, transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from consolidation import invariants, merge, projecting, review, runner
from consolidation.models import Operation, PlanItem
from consolidation.operations import Approval, Kind, State
from consolidation.review import Changed, Changes, Refused
from consolidation.runner import Outcome
from observations.models import Embedding, Event, GivenKey, Lineage, Observation, Scope
from observations.records import StatedBy, Status
from observations.retrieval import current_embedder
from tests.building import observe, propose, scope
from tests.desk import settle, status_of
from tests.engine import engine, keyed

pytestmark = pytest.mark.django_db

TEXTS = ("Ann lives in Ghent", "ann lives in Ghent, Belgium", "Ann lives in Ghent now")
KEY = ("Ann", "lives in", "Ghent")


@pytest.fixture
def within() -> Scope:
    return scope()


def rows(within: Scope, *origins: StatedBy) -> list[Observation]:
    """Three records of one claim, the second without a key."""
    said = origins or (StatedBy.AGENT, StatedBy.USER, StatedBy.OPERATOR)
    return [
        observe(text, within=within, key=KEY if at != 1 else ("", "", ""), stated_by=said[at], confidence=0.5 + at / 10)
        for at, text in enumerate(TEXTS)
    ]


def proposed(sources: list[Observation]) -> Operation:
    return propose(Kind.MERGE, sources, approval=Approval.NEEDS_HUMAN, judgement=("merge", "asked"))


def edited(operation: Operation, **changes: object) -> Operation:
    made = review.edit(operation=operation, by="rita", changes=Changes(**changes))  # type: ignore[arg-type]
    settle()
    return Operation.objects.select_related("scope").get(pk=made.pk)


def applied(operation: Operation) -> Observation:
    """Approved by the editor, and carried out."""
    review.approve(operation=operation, by="rita")
    settle()
    done = runner.apply(operation=operation, by="olga")
    assert done.outcome == Outcome.APPLIED, done
    settle()
    operation.refresh_from_db()
    return Observation.objects.get(pk=operation.derived_id or 0)


# --- one takes the other's place -------------------------------------------------------------------------------------


def test_an_edit_is_a_new_operation_and_the_old_one_ends_in_the_same_transaction(within: Scope) -> None:
    """E.2: another id, the editor and the old one named, an event on each, in the same plan, waiting for a person."""
    old = proposed(rows(within))
    new = edited(old, own={"text": "Ann lives in Ghent, in Belgium"})
    assert (status_of(old), new.status, new.approval) == (State.EDITED, State.NEEDS_HUMAN, Approval.NEEDS_HUMAN)
    assert new.op_id != old.op_id
    assert (new.edited_from_id, new.edited_by, new.rule, new.band) == (old.pk, "rita", old.rule, old.band)
    assert list(Event.objects.filter(subject=old.op_id).values_list("action", "actor")) == [("edited", "rita")]
    assert list(Event.objects.filter(subject=new.op_id).values_list("action", "actor")) == [("requested", "rita")]
    [item] = PlanItem.objects.filter(operation=new)
    assert (item.plan_id, item.opened_by) == (PlanItem.objects.get(operation=old).plan_id, "rita")
    assert "Belgium" not in str(list(Event.objects.values_list("detail", flat=True)))  # no memory text in the audit


def test_without_an_edit_in_its_place_nothing_becomes_edited(within: Scope) -> None:
    """The control: the database itself refuses the half of it."""
    old = proposed(rows(within))

    @transaction.atomic
    def half() -> None:
        Operation.objects.filter(pk=old.pk).update(status=State.EDITED)
        Event.objects.append(scope_id=within.pk, action="edited", actor="x", subject=old.op_id, generation=1)
        settle()

    with pytest.raises(DatabaseError, match="no edit took its place"):
        half()


def test_an_edit_of_what_was_decided_or_moved_is_refused(within: Scope) -> None:
    """C11, C16: saying what happened; nothing is written."""
    own = Changes(own={"text": "Ann lives in Ghent, in Belgium"})
    sources = rows(within)
    decided, moved = proposed(sources[:2]), proposed(sources)
    review.reject(operation=decided, by="olga", reason="no")
    with pytest.raises(review.AlreadyDecided, match="olga decided it"):
        review.edit(operation=decided, by="rita", changes=own)
    other = proposed(sources[:2:-1] + sources[1:])
    applied(other)
    with pytest.raises(Changed, match="was archived"):
        review.edit(operation=moved, by="rita", changes=own)
    with pytest.raises(Changed, match="not what was shown"):
        review.edit(operation=proposed(rows(within)), by="rita", changes=own, digest="0" * 64)
    assert not Operation.objects.filter(edited_from__in=[decided, moved]).exists()


def test_an_approval_stands_against_an_edit_that_did_not_know_of_it(within: Scope) -> None:
    old = proposed(rows(within))
    review.approve(operation=old, by="olga")
    with pytest.raises(review.AlreadyDecided):
        review.edit(operation=old, by="rita", changes=Changes(own={"text": "x"}))
    assert status_of(old) == State.APPROVED


def test_whoever_edits_may_approve_in_the_same_step_and_the_digest_covers_the_edit(within: Scope) -> None:
    """Decision 0023, I17: the approval is of these words and of no others."""
    old = proposed(rows(within))
    new = review.edit_and_approve(operation=old, by="rita", changes=Changes(own={"text": "In Ghent"}))
    settle()
    assert (new.status, new.decided_by) == (State.APPROVED, "rita")
    standing = list(Observation.objects.filter(operation_sources__operation=new))
    assert review.digest_of(operation=new, rows=standing, policy_hash=new.policy_hash) == new.approved_digest
    new.text = "In Gent"
    assert review.digest_of(operation=new, rows=standing, policy_hash=new.policy_hash) != new.approved_digest


def test_when_the_approval_is_refused_nothing_is_edited_either(within: Scope) -> None:
    """One transaction: a person's request needs another person, edited or not."""
    old = proposed(rows(within))
    before = Operation.objects.count()
    with pytest.raises(Refused):
        review.edit_and_approve(operation=old, by="rita", changes=Changes(own={"text": ""}))
    assert (status_of(old), Operation.objects.count()) == (State.NEEDS_HUMAN, before)


# --- what may be said ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        (Changes(), "Nothing is changed"),
        (Changes(own={"text": TEXTS[0]}), "Nothing is changed"),
        (Changes(own={"text": "  "}), "Write the text"),
        (Changes(own={"text": "x" * 20_001}), "20,000 are the most"),
        (Changes(own={"kind": "note"}), "no such field"),
        (Changes(take={"text": 10**9}), "stays in can be taken"),
        (Changes(own={"subject": "", "predicate": "", "object": "Lyon"}), "An object belongs"),
    ],
)
def test_what_no_merge_can_say_is_refused_in_a_sentence(changes: Changes, why: str, within: Scope) -> None:
    old = proposed(rows(within))
    with pytest.raises(Refused, match=why):
        review.edit(operation=old, by="rita", changes=changes)
    assert status_of(old) == State.NEEDS_HUMAN


def test_two_sources_stay_in_at_least_and_one_left_out_stays_in_the_reads(within: Scope) -> None:
    """E.2: unticked, it is no part of the new row: neither moved nor named, and no evidence of it."""
    one, two, three = rows(within)
    old = proposed([one, two, three])
    with pytest.raises(Refused, match="two sources at least"):
        review.edit(operation=old, by="rita", changes=Changes(leave_out=frozenset({one.pk, two.pk})))
    written = applied(edited(old, leave_out=frozenset({two.pk})))
    two.refresh_from_db()
    assert (two.status, two.version) == (Status.ACTIVE, 1)
    named = Lineage.objects.filter(derived=written).values_list("source_observation_id", flat=True)
    assert set(named) == {one.pk, three.pk}
    assert not written.evidence.filter(source_uri__in=two.evidence.values("source_uri")).exists()
    assert [str(each) for each in invariants.check()] == []


def test_no_edit_joins_two_values_of_one_subject_and_predicate(within: Scope) -> None:
    """I16: refused whatever the object is said to be; without one of them it goes."""
    pair = [observe(f"Ann lives in {city}", within=within, key=("Ann", "lives in", city)) for city in ("Ghent", "Lyon")]
    third = observe("Ann's home is Ghent", within=within)
    old = propose(
        Kind.MERGE, [*pair, third], approval=Approval.NEEDS_HUMAN, skipped_reason="possible contradiction: guard name"
    )
    with pytest.raises(Refused, match="different values for one subject and predicate"):
        review.edit(operation=old, by="rita", changes=Changes(own={"object": "Ghent"}))
    applied(edited(old, leave_out=frozenset({pair[1].pk})))
    assert [str(each) for each in invariants.check()] == []


@pytest.mark.parametrize("kind", [Kind.SUPERSEDE, Kind.ARCHIVE, Kind.PRUNE])
def test_other_kinds_are_decided_not_edited(kind: Kind, within: Scope) -> None:
    operation = propose(kind, rows(within)[:2], approval=Approval.NEEDS_HUMAN)
    with pytest.raises(Refused, match="is not edited"):
        review.edit(operation=operation, by="rita", changes=Changes(own={"text": "x"}))


def test_what_is_never_applied_is_not_edited(within: Scope) -> None:
    operation = propose(Kind.MERGE, rows(within), approval=Approval.NEVER, skipped_reason="contradiction")
    with pytest.raises(Refused, match="never applied"):
        review.edit(operation=operation, by="rita", changes=Changes(own={"text": "x"}))


# --- what is written -------------------------------------------------------------------------------------------------


def test_own_words_are_written_as_an_operators_at_most_and_raise_nothing(within: Scope) -> None:
    """I12: never above the lowest source; no source said these words, so none corroborates them."""
    low = applied(edited(proposed(rows(within)), own={"text": "Ann's home is Ghent"}))
    assert (low.stated_by, low.text) == (StatedBy.AGENT, "Ann's home is Ghent")
    users = rows(within, *[StatedBy.USER] * 3)
    high = applied(edited(proposed(users), own={"text": "Ann's home is in Ghent"}))
    assert high.stated_by == StatedBy.OPERATOR
    assert high.confidence == max(row.confidence for row in users)


def test_own_words_have_no_sources_vector_and_no_models_key(within: Scope) -> None:
    """What a model said was about other words; the vector is asked for as that of any row that is written."""
    given_key = keyed(within)
    other = observe("Bo is employed by Relay", within=within)
    kept = applied(propose(Kind.MERGE, [given_key, other], approval=Approval.NEEDS_HUMAN, keeper=given_key))
    assert GivenKey.objects.filter(observation=kept).exists()  # the control: unedited, it is handed on
    again, beside = keyed(within, text="Bo works at Relay in Ghent"), observe("Bo is at Relay", within=within)
    old = propose(Kind.MERGE, [again, beside], approval=Approval.NEEDS_HUMAN, keeper=again)
    own = applied(edited(old, own={"text": "Bo has worked at Relay since May"}))
    assert not GivenKey.objects.filter(observation=own).exists()
    assert not Embedding.objects.filter(observation=own, vector__isnull=False).exists()


def test_a_text_of_another_source_is_that_sources_with_its_vector(within: Scope) -> None:
    one, two, three = rows(within)
    new = edited(proposed([one, two, three]), take={"text": three.pk})
    assert (new.keeper_id, new.text, new.product.get("fields")) == (three.pk, "", None)
    written = applied(new)
    assert written.content_hash == three.content_hash
    assert Embedding.objects.filter(observation=written).exists()


def test_the_words_of_a_source_typed_again_are_that_sources(within: Scope) -> None:
    one, two, three = rows(within)
    assert edited(proposed([one, two, three]), own={"text": TEXTS[2]}).keeper_id == three.pk


def test_a_custom_key_is_written_and_can_be_contradicted(within: Scope) -> None:
    """R71: the database compares the new key as that of any row."""
    written = applied(edited(proposed(rows(within)), own={"object": "Gent"}))
    assert (written.subject, written.predicate, written.object) == ("Ann", "lives in", "Gent")
    assert written.spo_key not in (0, Observation.objects.get(text=TEXTS[0], version=2, derivation=None).spo_key)


def test_an_edit_of_repeats_names_its_sources_and_not_what_they_came_from(within: Scope) -> None:
    """Decision 0014 is about repeats; other words are no repeat (I1)."""
    first, second, third = (observe("Ships on Friday", within=within) for _ in range(3))
    once = applied(propose(Kind.MERGE, [first, second], approval=Approval.NEEDS_HUMAN))
    new = edited(propose(Kind.MERGE, [once, third], approval=Approval.NEEDS_HUMAN), own={"text": "Ships each Friday"})
    written = applied(new)
    named = Lineage.objects.filter(derived=written).values_list("source_observation_id", flat=True)
    assert (set(named), written.chain) == ({once.pk, third.pk}, once.chain + 1)
    assert [str(each) for each in invariants.check()] == []


words = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1, max_size=30)


@given(
    own=st.dictionaries(st.sampled_from(["text", *merge.KEY]), words, max_size=4),
    seed=st.integers(0, 1000),
)
@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_applying_and_undoing_any_edited_merge_leaves_every_source_as_it_was(own: dict[str, str], seed: int) -> None:
    """I9, promise 5; and what the preview said is what was written, and the invariants hold in between."""
    try:
        with transaction.atomic():
            _round_trip(own, random.Random(seed))
            raise _Enough
    except _Enough:
        pass


class _Enough(Exception):
    """The end of one example: its rows go."""


def _round_trip(own: dict[str, str], chance: random.Random) -> None:
    within = scope(f"edits/{chance.random()}")
    sources = rows(within, *(chance.choice(list(StatedBy)) for _ in TEXTS))
    take = {"kind": chance.choice(sources).pk, "subject": chance.choice(sources).pk}
    left = {chance.choice(sources).pk} if chance.random() < 0.5 else set()
    take = {name: pk for name, pk in take.items() if pk not in left and name not in own}
    old = proposed(sources)
    before = _standing(sources)
    try:
        new = edited(old, own=own, take=take, leave_out=frozenset(left))
    except Refused:
        return
    new = review.approve(operation=new, by="rita")
    preview = runner.apply_preview(operation=new)
    assert preview.stands is not None
    assert runner.apply(operation=new, by="olga").outcome == Outcome.APPLIED
    settle()
    new.refresh_from_db()
    row = Observation.objects.get(pk=new.derived_id or 0)
    said = preview.stands
    assert (row.text, row.subject, row.predicate, row.object) == (said.text, said.subject, said.predicate, said.object)
    assert (row.stated_by, row.kind) == (str(said.stated_by), str(said.kind))
    assert row.confidence == pytest.approx(said.confidence)
    taken = [each for each in sources if each.pk not in left]
    assert StatedBy(row.stated_by).rank <= min(StatedBy(each.stated_by).rank for each in taken)
    assert [str(each) for each in invariants.check()] == []
    assert runner.undo(operation=new, by="olga").outcome == Outcome.UNDONE
    settle()
    assert _standing(sources) == before
    assert [str(each) for each in invariants.check()] == []


def _standing(sources: list[Observation]) -> list[tuple[object, ...]]:
    found = Observation.objects.filter(pk__in=[row.pk for row in sources]).order_by("pk")
    return list(found.values_list("pk", "text", "status", "superseded_by", "valid_from", "valid_to", "object"))


def test_a_projection_of_an_edit_reads_as_what_is_written_then(within: Scope) -> None:
    """R112: the row that a plan's impact is measured on, with the vector that a worker would give its words."""
    sources = rows(within)
    new = edited(proposed(sources), own={"text": "Ann's home is Ghent", "object": "Gent"}, take={"kind": sources[1].pk})
    review.approve(operation=new, by="rita")
    new.refresh_from_db()
    seen = projecting.projected(scope=within, operations=[new]).overlay
    [stands] = seen.plus
    assert runner.apply(operation=new, by="olga").outcome == Outcome.APPLIED
    settle()
    row = Observation.objects.get(scope=within, status=Status.ACTIVE)
    assert seen.without == {each.pk for each in sources}
    assert (stands.text, stands.subject, stands.predicate, stands.object) == (
        row.text,
        row.subject,
        row.predicate,
        row.object,
    )
    assert (stands.created_at, stands.half_life_days) == (row.created_at, row.half_life_days)
    [vector] = current_embedder().embed(["Ann's home is Ghent"])
    assert stands.vector is not None
    assert np.allclose(stands.vector, vector)


# --- promotions and summaries ----------------------------------------------------------------------------------------


def test_a_promotion_takes_own_words_and_never_rests_on_too_few(within: Scope) -> None:
    """R45: support is independent sources; an episode left out is no evidence."""
    mine = engine("team-a/u2")
    first, second, other = mine.episodes
    with pytest.raises(Refused, match="1 supporting, 2 needed"):
        review.edit(operation=mine.promote, by="rita", changes=Changes(leave_out=frozenset({other.pk})))
    new = edited(mine.promote, own={"text": "Ana rides to Graz at night."}, leave_out=frozenset({second.pk}))
    assert (new.product["episodes"], new.product["roots"]) == (2, 2)
    assert {place[0] for place in new.product["support"]} == {first.pk, other.pk}
    row = applied(new)
    assert (row.text, row.stated_by) == ("Ana rides to Graz at night.", StatedBy.AGENT)
    assert row.confidence <= 0.6
    assert [str(each) for each in invariants.check()] == []


def test_a_summary_takes_own_words_and_is_checked_again(within: Scope) -> None:
    """C9: what the words lose is found as that of a model's is; no episode is left out."""
    mine = engine("team-a/u3")
    [first, *_] = mine.compact.sources.order_by("position")
    with pytest.raises(Refused, match="none can be left out"):
        review.edit(operation=mine.compact, by="rita", changes=Changes(leave_out=frozenset({first.episode_id or 0})))
    text = "Paid 120 euros for the ticket. The train left late, arrived at dawn. Slept at the station hotel."
    new = edited(mine.compact, own={"text": text})
    assert (new.signals["lost"], new.signals["invented"]) == ({}, {})
    worse = edited(mine.whole, own={"text": "Paid for a ticket."})
    assert worse.signals["lost"]["number"] == 1
    assert (worse.approval, applied(new).text) == (Approval.NEEDS_HUMAN, text)

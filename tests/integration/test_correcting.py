"""One exact row: put right, retired, brought back, asked to be forgotten. What a person wrote waits for a person."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from django.db import transaction

from consolidation.models import Operation
from consolidation.operations import Kind
from observations import ingest, outbox, store
from observations.models import Event, Observation, Outbox, Scope, Transition, database_now
from observations.records import Action, Claim, EvidenceRef, Kept, StatedBy, Status, WrittenBy
from tests.acceptance import world
from tests.acceptance.acting import apply
from tests.building import observe, propose, scope, tell

pytestmark = pytest.mark.django_db

TOKEN = "token:0123456789abcdef"
ANA = "ana@command"
KEY = ("relay", "sits in", "rack 4")


@pytest.fixture
def within() -> Scope:
    return scope()


def row_of(kept: Kept) -> Observation:
    """The row that was stored."""
    assert kept.id is not None
    return Observation.objects.get(pk=kept.id)


def said(text: str, *, within: Scope, by: str = TOKEN, **parts: Any) -> Observation:
    """A row that was remembered."""
    claim = replace(Claim(text=text, evidence=(EvidenceRef(f"s:{text}"),)), **parts)
    kept = ingest.remember(scope=within, claim=claim, by=by)
    return row_of(kept)


def corrected(row: Observation, text: str, *, by: str = TOKEN, source: str = "s9", **how: Any) -> Kept:
    """Correct a row to a text."""
    claim = Claim(text=text, evidence=(EvidenceRef(source),), stated_by=how.pop("stated_by", StatedBy.AGENT))
    return ingest.correct(scope=row.scope, observation_id=row.pk, claim=claim, by=by, **how)


def extracted(text: str, *, within: Scope, stated_by: StatedBy = StatedBy.USER) -> Observation:
    """A row of the background pipeline."""
    return observe(text, within=within, key=KEY, stated_by=stated_by)


def asked_for(task: str) -> list[dict[str, Any]]:
    """What the outbox holds of a task."""
    return list(Outbox.objects.filter(task=task, done_at=None).order_by("pk").values_list("payload", flat=True))


# --- correct ---------------------------------------------------------------------------------------------------------


def test_r12_a_correction_supersedes_the_old_row_which_keeps_its_text_and_names_its_successor(within: Scope) -> None:
    """R12, R128."""
    old = said("The relay sits in rack 4", within=within)
    kept = corrected(old, "The relay sits in rack 7")
    old.refresh_from_db()
    assert (kept.action, kept.replaced) == (Action.UPDATED, old.pk)
    assert (old.status, old.superseded_by_id, old.text) == (Status.SUPERSEDED, kept.id, "The relay sits in rack 4")
    assert list(Observation.objects.active().values_list("pk", flat=True)) == [kept.id]
    assert Transition.objects.get(observation=old).cause == f"correct by {TOKEN}"
    assert Event.objects.filter(action="corrected", subject=f"obs_{kept.id}", actor=TOKEN).count() == 1


@pytest.mark.parametrize(("union", "action", "evidence"), [(True, Action.UPDATED, 2), (False, Action.REPLACED, 1)])
def test_r15_an_update_takes_over_the_evidence_and_r16_a_replacement_starts_fresh(
    within: Scope, union: bool, action: Action, evidence: int
) -> None:
    """R15, R16, R129."""
    kept = corrected(said("The relay sits in rack 4", within=within), "The relay sits in rack 7", union=union)
    assert (kept.action, kept.evidence) == (action, evidence)


def test_correcting_twice_is_correcting_once(within: Scope) -> None:
    old = said("The relay sits in rack 4", within=within)
    first, second = (corrected(old, "The relay sits in rack 7") for _ in range(2))
    assert (second.action, second.id, second.replaced) == (Action.KNOWN, first.id, old.pk)
    assert Observation.objects.count() == 2


def test_a_correction_to_its_own_words_is_acknowledged(within: Scope) -> None:
    old = said("The relay sits in rack 4", within=within)
    kept = corrected(old, "the relay sits in rack 4")
    assert (kept.action, kept.id, kept.evidence, Observation.objects.count()) == (Action.KNOWN, old.pk, 2, 1)


def test_a_correction_to_what_another_row_says_makes_that_row_the_successor(within: Scope) -> None:
    old, other = (said(f"The relay sits in rack {number}", within=within) for number in (4, 7))
    kept = corrected(old, "The relay sits in rack 7")
    old.refresh_from_db()
    assert (kept.action, kept.id, old.superseded_by_id) == (Action.UPDATED, other.pk, other.pk)
    assert kept.evidence == 3


def test_a_correction_back_to_what_was_said_before_is_a_new_row(within: Scope) -> None:
    old = said("The relay sits in rack 4", within=within)
    middle = corrected(old, "The relay sits in rack 7")
    back = corrected(row_of(middle), "The relay sits in rack 4")
    assert (back.action, back.id not in (old.pk, middle.id)) == (Action.UPDATED, True)
    assert list(Observation.objects.active().values_list("text", flat=True)) == ["The relay sits in rack 4"]


def test_a_correction_without_a_key_is_of_the_same_subject_and_predicate(within: Scope) -> None:
    old = said("The relay sits in rack 4", within=within, subject=KEY[0], predicate=KEY[1], object=KEY[2])
    row = row_of(corrected(old, "The relay sits in rack 7"))
    assert (row.subject, row.predicate, row.object) == ("relay", "sits in", "")


def test_a_row_that_changed_since_it_was_read_is_a_conflict(within: Scope) -> None:
    old = said("The relay sits in rack 4", within=within)
    with pytest.raises(ingest.Changed, match="version 1") as refused:
        corrected(old, "The relay sits in rack 7", version=3)
    assert refused.value.current == 1
    assert corrected(old, "The relay sits in rack 7", version=1).action is Action.UPDATED
    with pytest.raises(ingest.NotCurrent, match=r"superseded by obs_\d+"):
        corrected(old, "The relay sits in rack 9")


def test_a_row_of_another_scope_is_not_there(within: Scope) -> None:
    foreign = said("The relay sits in rack 4", within=scope("team-b/u1"))
    with pytest.raises(ingest.NotHere):
        ingest.correct(scope=within, observation_id=foreign.pk, claim=Claim(text="No"), by=ANA)
    with pytest.raises(ingest.NotHere):
        ingest.retire(scope=within, observation_id=foreign.pk, by=ANA)
    with pytest.raises(ingest.NotHere):
        ingest.bring_back(scope=within, observation_id=foreign.pk, by=ANA)


def test_a_correction_with_a_secret_is_refused_and_changes_nothing(within: Scope) -> None:
    old = said("Ana signs in with a key", within=within)
    kept = corrected(old, "Ana's key is AKIA" + "ABCDEFGHIJKLMNOP")
    assert (kept.action, "secret" in kept.reason) == (Action.REFUSED, True)
    assert Observation.objects.get().status == Status.ACTIVE


# --- what is a person's ----------------------------------------------------------------------------------------------


def written(within: Scope, by: str, stated_by: StatedBy) -> Observation:
    """A row that somebody wrote directly."""
    claim = Claim(text="The relay sits in rack 4", stated_by=stated_by)
    kept = ingest.remember(scope=within, claim=claim, by=by, speaks_for_user=True)
    return row_of(kept)


@pytest.mark.parametrize("stated_by", [StatedBy.USER, StatedBy.OPERATOR, StatedBy.AGENT])
def test_what_a_person_wrote_directly_is_not_changed_by_a_program(within: Scope, stated_by: StatedBy) -> None:
    old = written(within, ANA, stated_by)
    kept = corrected(old, "The relay sits in rack 7", speaks_for_user=True, stated_by=StatedBy.USER)
    assert (kept.action, kept.replaced) == (Action.ASKED, None)
    assert asked_for("review_contradiction") == [{"old": old.pk, "new": kept.id, "item": 0, "by": TOKEN}]
    assert set(Observation.objects.active().values_list("pk", flat=True)) == {old.pk, kept.id}
    assert row_of(kept).reconciled_at is None


def test_a_person_changes_what_a_person_wrote(within: Scope) -> None:
    old = written(within, ANA, StatedBy.USER)
    assert corrected(old, "The relay sits in rack 7", by="bo@command").action is Action.UPDATED
    assert not asked_for("review_contradiction")


def test_a_program_changes_what_it_wrote_for_the_user_only_in_the_users_word(within: Scope) -> None:
    old = written(within, TOKEN, StatedBy.USER)
    assert corrected(old, "The relay sits in rack 8").action is Action.ASKED
    kept = corrected(old, "The relay sits in rack 7", speaks_for_user=True, stated_by=StatedBy.USER)
    assert kept.action is Action.UPDATED


def test_a_program_changes_what_was_extracted_of_the_user_only_with_a_quote_of_the_user(within: Scope) -> None:
    old = extracted("The relay sits in rack 4", within=within)
    assert corrected(old, "The relay sits in rack 8").action is Action.ASKED
    tell("No, the relay sits in rack 7 now.", within=within, role="user")
    quote = EvidenceRef("", quote="the relay sits in rack 7 now")
    claim = Claim(text="The relay sits in rack 7", stated_by=StatedBy.USER, evidence=(quote,))
    kept = ingest.correct(scope=within, observation_id=old.pk, claim=claim, by=TOKEN)
    assert (kept.action, kept.replaced) == (Action.UPDATED, old.pk)


def test_what_a_person_decided_between_rows_is_not_changed_by_a_program(within: Scope) -> None:
    first, second = (extracted("The relay is here", within=within, stated_by=StatedBy.AGENT) for _ in "ab")
    with transaction.atomic():
        derived = store.write_derived(
            scope=within,
            derived=store.Derived(
                claim=Claim(text="The relay sits in rack 4"),
                sources=(first.pk, second.pk),
                derivation="supersede",
                operation="op_1#1",
            ),
        )
    assert corrected(Observation.objects.get(pk=derived), "The relay sits in rack 9").action is Action.ASKED


def test_an_imported_row_of_the_user_is_not_changed_by_a_program_and_one_of_an_agent_is(within: Scope) -> None:
    claims = [Claim(text=f"Row of {origin}", stated_by=origin) for origin in (StatedBy.USER, StatedBy.AGENT)]
    with transaction.atomic():
        ids = [
            row.id for row in store.add_observations(scope=within, claims=claims, written_by=WrittenBy.IMPORT) if row.id
        ]
    answers = [corrected(Observation.objects.get(pk=pk), f"Other words for {pk}").action for pk in ids]
    assert answers == [Action.ASKED, Action.UPDATED]


# --- retire and restore ----------------------------------------------------------------------------------------------


def test_a_retired_row_leaves_the_reads_whole_and_comes_back_as_it_was(within: Scope) -> None:
    row = said("The relay sits in rack 4", within=within)
    assert ingest.retire(scope=within, observation_id=row.pk, by=TOKEN, reason="outdated").action is Action.RETIRED
    row.refresh_from_db()
    assert (row.status, row.superseded_by_id, row.text) == (Status.ARCHIVED, None, "The relay sits in rack 4")
    assert ingest.bring_back(scope=within, observation_id=row.pk, by=TOKEN).action is Action.RESTORED
    row.refresh_from_db()
    assert (row.status, row.version) == (Status.ACTIVE, 3)
    causes = list(Transition.objects.filter(observation=row).order_by("pk").values_list("cause", flat=True))
    assert causes == [f"retire: outdated, by {TOKEN}", f"restore by {TOKEN}"]
    actions = list(Event.objects.filter(subject=f"obs_{row.pk}").order_by("pk").values_list("action", flat=True))
    assert actions == ["remembered", "retired", "restored"]


def test_retiring_or_restoring_twice_is_doing_it_once(within: Scope) -> None:
    row = said("The relay sits in rack 4", within=within)
    assert [ingest.retire(scope=within, observation_id=row.pk, by=TOKEN).action for _ in "ab"] == [Action.RETIRED] * 2
    assert [ingest.bring_back(scope=within, observation_id=row.pk, by=TOKEN).action for _ in "ab"] == [
        Action.RESTORED
    ] * 2
    assert Transition.objects.filter(observation=row).count() == 2


def test_r47_a_program_does_not_retire_what_a_user_said_it_asks(within: Scope) -> None:
    row = extracted("The relay sits in rack 4", within=within)
    for _ in "ab":
        kept = ingest.retire(scope=within, observation_id=row.pk, by=TOKEN, reason="wrong")
        assert kept.action is Action.ASKED
    row.refresh_from_db()
    assert row.status == Status.ACTIVE
    assert asked_for("review_retire") == [{"observations": [row.pk], "item": 0, "why": "wrong", "by": TOKEN}]
    assert ingest.retire(scope=within, observation_id=row.pk, by=ANA).action is Action.RETIRED


def test_what_an_applied_operation_took_in_is_refused_naming_it(within: Scope) -> None:
    pair = [extracted("The relay sits in rack 4", within=within, stated_by=StatedBy.AGENT) for _ in "ab"]
    operation = propose(Kind.MERGE, pair)
    assert apply(operation).outcome == "applied"
    for call in (ingest.retire, ingest.bring_back):
        with pytest.raises(ingest.NotCurrent, match=operation.op_id):
            call(scope=within, observation_id=pair[0].pk, by=ANA)


def test_a_superseded_row_is_neither_retired_nor_restored(within: Scope) -> None:
    old = said("The relay sits in rack 4", within=within)
    kept = corrected(old, "The relay sits in rack 7")
    for call in (ingest.retire, ingest.bring_back):
        with pytest.raises(ingest.NotCurrent, match=f"obs_{kept.id}"):
            call(scope=within, observation_id=old.pk, by=ANA)


def test_a_program_does_not_restore_what_a_person_retired(within: Scope) -> None:
    row = said("The relay sits in rack 4", within=within)
    ingest.retire(scope=within, observation_id=row.pk, by=ANA)
    with pytest.raises(ingest.NotCurrent, match="person"):
        ingest.bring_back(scope=within, observation_id=row.pk, by=TOKEN)
    assert ingest.bring_back(scope=within, observation_id=row.pk, by="bo@command").action is Action.RESTORED


def test_a_row_is_not_restored_beside_one_that_says_the_same(within: Scope) -> None:
    row = said("The relay sits in rack 4", within=within)
    ingest.retire(scope=within, observation_id=row.pk, by=TOKEN)
    again = said("The relay sits in rack 4", within=within)
    with pytest.raises(ingest.NotCurrent, match=f"obs_{again.pk}"):
        ingest.bring_back(scope=within, observation_id=row.pk, by=TOKEN)


# --- requests --------------------------------------------------------------------------------------------------------


def test_a_request_to_forget_lands_in_review_and_erases_nothing(within: Scope) -> None:
    row = said("The relay sits in rack 4", within=within, subject="relay")
    about = said("The relay is old", within=within, subject="Relay")
    said("Ana likes tea", within=within, subject="Ana")
    keys = [ingest.ask_to_forget(scope=within, by=TOKEN, observation_ids=[row.pk]) for _ in "ab"]
    keys += [
        ingest.ask_to_forget(scope=within, by=TOKEN, subject_of=row.pk),
        ingest.ask_to_forget(scope=within, by=ANA, everything=True),
    ]
    assert len(set(keys)) == 3
    assert asked_for("review_forget") == [
        {"observations": [row.pk], "subject_of": 0, "all": 0, "by": TOKEN},
        {"observations": [row.pk, about.pk], "subject_of": row.pk, "all": 0, "by": TOKEN},
        {"observations": [], "subject_of": 0, "all": 1, "by": ANA},
    ]
    row.refresh_from_db()
    assert (row.status, row.text) == (Status.ACTIVE, "The relay sits in rack 4")


def test_asking_again_after_a_decision_is_a_new_request(within: Scope) -> None:
    first = ingest.ask_to_forget(scope=within, by=TOKEN, everything=True)
    assert ingest.ask_to_forget(scope=within, by=TOKEN, everything=True) == first
    Outbox.objects.filter(key=first).update(done_at=database_now())
    assert ingest.ask_to_forget(scope=within, by=TOKEN, everything=True) != first
    assert first.startswith("forget:")


@pytest.mark.parametrize("what", [{}, {"observation_ids": [1], "everything": True}])
def test_a_request_to_forget_names_one_thing(within: Scope, what: dict[str, Any]) -> None:
    with pytest.raises(ingest.WriteRefused, match="one of them"):
        ingest.ask_to_forget(scope=within, by=TOKEN, **what)


def test_a_request_about_a_row_of_another_scope_is_refused(within: Scope) -> None:
    foreign = said("The relay sits in rack 4", within=scope("team-b/u1"), subject="relay")
    for what in ({"observation_ids": [foreign.pk]}, {"subject_of": foreign.pk}):
        with pytest.raises(ingest.NotHere):
            ingest.ask_to_forget(scope=within, by=TOKEN, **what)
    assert not asked_for("review_forget")


def test_proposals_are_written_down_for_a_person(within: Scope) -> None:
    old, new, third = (said(f"The relay sits in rack {number}", within=within) for number in (4, 7, 9))
    ingest.propose(scope=within, kind="supersede", ids=[old.pk, third.pk], by_id=new.pk, by=TOKEN)
    ingest.propose(scope=within, kind="retire", ids=[third.pk], by=TOKEN, why="duplicate")
    ingest.propose(scope=within, kind="forget", ids=[old.pk], by=TOKEN)
    conflicts = [{"old": pk, "new": new.pk, "item": 0, "by": TOKEN} for pk in (old.pk, third.pk)]
    assert asked_for("review_contradiction") == conflicts
    assert asked_for("review_retire") == [{"observations": [third.pk], "item": 0, "why": "duplicate", "by": TOKEN}]
    assert asked_for("review_forget") == [{"observations": [old.pk], "subject_of": 0, "all": 0, "by": TOKEN}]
    assert Observation.objects.active().count() == 3


def test_a_proposal_about_what_left_the_reads_is_refused(within: Scope) -> None:
    old = said("The relay sits in rack 4", within=within)
    kept = corrected(old, "The relay sits in rack 7")
    with pytest.raises(ingest.NotCurrent, match="superseded"):
        ingest.propose(scope=within, kind="retire", ids=[old.pk], by=TOKEN)
    with pytest.raises(ingest.WriteRefused, match="the other row"):
        ingest.propose(scope=within, kind="supersede", ids=[kept.id or 0], by=TOKEN)
    with pytest.raises(ingest.WriteRefused, match="the other row"):
        ingest.propose(scope=within, kind="supersede", ids=[kept.id or 0], by_id=kept.id, by=TOKEN)


def test_what_deliberate_writes_leave_breaks_no_invariant(within: Scope) -> None:
    old, other = (said(f"The relay sits in rack {number}", within=within) for number in (4, 9))
    corrected(old, "The relay sits in rack 7")
    said("Ships on Fridays", within=within)
    said("Ships on Fridays", within=within, by=ANA, stated_by=StatedBy.USER)
    ingest.retire(scope=within, observation_id=other.pk, by=TOKEN)
    assert not world.broken()
    ingest.bring_back(scope=within, observation_id=other.pk, by=TOKEN)
    assert not world.broken()


def test_every_request_becomes_a_question_for_a_person(within: Scope) -> None:
    """What is written down here is what the review makes operations of; nothing is applied."""
    persons = written(within, ANA, StatedBy.USER)
    other = said("The relay is old", within=within, subject="relay")
    ingest.retire(scope=within, observation_id=persons.pk, by=TOKEN, reason="wrong")
    kept = corrected(persons, "The relay sits in rack 7")
    ingest.ask_to_forget(scope=within, by=TOKEN, subject_of=other.pk)
    for row in Outbox.objects.filter(task__startswith="review_"):
        outbox.perform(task=row.task, scope_id=within.pk, key=row.key, payload=row.payload)
    made = {operation.kind: operation for operation in Operation.objects.awaiting_review()}
    sources = {kind: set(each.sources.values_list("observation_id", flat=True)) for kind, each in made.items()}
    assert sources == {
        Kind.ARCHIVE: {persons.pk},
        Kind.SUPERSEDE: {persons.pk, kept.id},
        Kind.FORGET: {other.pk},
    }
    assert {operation.requested_by for operation in made.values()} == {TOKEN}
    assert Observation.objects.active().count() == 3


# --- the same words with another key ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "given", "after"),
    [
        (("", "", ""), KEY, KEY),
        (("relay", "sits in", ""), ("", "", "rack 4"), KEY),
        (("relay", "stands in", "rack 4"), ("", "sits in", ""), KEY),
    ],
)
def test_the_same_words_with_another_key_are_a_correction_of_the_key(
    within: Scope, before: tuple[str, str, str], given: tuple[str, str, str], after: tuple[str, str, str]
) -> None:
    """R12: the old row is superseded and keeps its key; what the correction leaves out is the old row's."""
    old = said("The relay sits in rack 4", within=within, subject=before[0], predicate=before[1], object=before[2])
    claim = Claim(text="the relay sits in rack 4.", subject=given[0], predicate=given[1], object=given[2])
    kept = ingest.correct(scope=within, observation_id=old.pk, claim=claim, by=TOKEN)
    new = row_of(kept)
    assert (kept.action, kept.replaced, new.pk != old.pk) == (Action.UPDATED, old.pk, True)
    assert (new.subject, new.predicate, new.object) == after
    old.refresh_from_db()
    assert (old.status, old.superseded_by_id) == (Status.SUPERSEDED, new.pk)
    assert (old.subject, old.predicate, old.object) == before
    again = ingest.correct(scope=within, observation_id=old.pk, claim=claim, by=TOKEN)
    assert (again.action, again.id) == (Action.KNOWN, new.pk)


def test_the_same_words_with_the_same_key_or_with_none_are_known(within: Scope) -> None:
    old = said("The relay sits in rack 4", within=within, subject=KEY[0], predicate=KEY[1], object=KEY[2])
    for key in (KEY, ("", "", ""), ("Relay", "", "")):
        claim = Claim(text="The relay sits in rack 4", subject=key[0], predicate=key[1], object=key[2])
        kept = ingest.correct(scope=within, observation_id=old.pk, claim=claim, by=TOKEN)
        assert (kept.action, kept.id) == (Action.KNOWN, old.pk)
    assert Observation.objects.filter(scope=within).count() == 1

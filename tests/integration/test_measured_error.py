"""Every decision is a label of its rule; what was applied without one is asked about; a rule that is known to be wrong
too often decides nothing alone any more (DESIGN promise 8, R48).
"""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core import mail
from django.db import connection
from django.test.utils import CaptureQueriesContext

from consolidation import review, rollout, runner, sampling, tasks
from consolidation.models import Demotion, Operation, Policy, Sample
from consolidation.operations import Approval, Kind, State
from consolidation.review import AlreadyDecided, Decision, Refused
from consolidation.runner import Outcome
from observations.models import Event, database_now
from tests.acceptance.acting import apply, derived_of, fresh, undo
from tests.building import observe, propose, scope
from tests.integration import planning
from tests.measuring_error import BAND, KEY, RULE, applied, counted, judge, planned

pytestmark = pytest.mark.django_db(transaction=True)


def waits() -> list[str]:
    """The operations that people are asked about, by id."""
    return sorted(sampling.waiting_samples().values_list("operation__op_id", flat=True))


def set_policy(pattern: str = "*", **values: object) -> None:
    Policy.objects.create(pattern=pattern, body=values, updated_by="sven")


# --- whose judgement --------------------------------------------------------------------------------------------------


def test_every_planned_operation_says_whose_judgement_it_is() -> None:
    within = scope()
    planning.twins(within)
    for city in ("Ghent", "Lyon"):
        observe(f"Ann lives in {city}", within=within, key=("ann", "lives in", city))
    planning.asked(within)
    made = planning.operations(planning.plan(within))
    named = {(row.kind, row.approval): (row.rule, row.band) for row in made if row.approval != Approval.NEVER}
    assert named["merge", "AUTO"] == ("same words", "same words")
    assert named["supersede", "NEEDS_HUMAN"] == ("contradiction", "newest")
    assert named["merge", "NEEDS_HUMAN"][0] == "similar"
    assert all(row.rule for row in made)


# --- labels -----------------------------------------------------------------------------------------------------------


def test_each_decision_is_one_label_and_an_approval_that_was_undone_is_wrong_once() -> None:
    within = scope()
    ask = planned(within, 5, approval=Approval.NEEDS_HUMAN)
    for operation in ask[:3]:
        review.approve(operation=operation, by="rita")
    review.reject(operation=ask[3], by="rita", reason="no")
    review.distinct(operation=ask[4], by="rita")
    apply(ask[0])
    apply(ask[1])
    undo(ask[1])
    band = counted()
    assert (band.approved, band.rejected, band.reverted) == (2, 2, 1)
    assert (band.refused.hits, band.refused.of) == (3, 5)
    assert (band.applied, band.waiting, band.automatic) == (0, 0, False)  # nothing of it was applied without a decision


def test_a_decision_on_other_words_than_proposed_is_counted_as_edited() -> None:
    within = scope()
    [operation] = planned(within, 1, approval=Approval.NEEDS_HUMAN)
    other = max(source.row_id for source in review.sources_of(operation))
    review.approve(operation=operation, by="rita", decision=Decision(keep=other))
    assert (counted().approved, counted().edited) == (1, 1)


def test_a_later_generation_decided_again_replaces_the_earlier_decision() -> None:
    within = scope()
    rows = [observe(f"Relay sits in rack 4{end}", within=within) for end in ("", ".")]
    first = propose(Kind.MERGE, rows, approval=Approval.NEEDS_HUMAN, judgement=(RULE, BAND))
    review.reject(operation=first, by="rita", reason="no")
    again = propose(Kind.MERGE, rows, approval=Approval.NEEDS_HUMAN, judgement=(RULE, BAND))
    review.approve(operation=again, by="rita")
    assert (counted().approved, counted().rejected) == (1, 0)


def test_what_was_undone_only_to_reach_what_it_was_built_on_is_not_wrong_too() -> None:
    within = scope()
    [below] = applied(within)
    result = derived_of(below)
    rows = [result, observe("Relay 0 sits in rack 4!", within=within)]
    above = propose(Kind.MERGE, rows, judgement=(RULE, "0.99-1.00"))
    apply(above)
    undo(above)
    assert counted(band="0.99-1.00").undone == 1  # so far it was its own mistake
    undo(below)
    assert counted(band="0.99-1.00").undone == 0
    assert counted().undone == 1


def test_a_whole_plan_taken_back_says_nothing_of_each_item() -> None:
    within = scope()
    rows = planning.twins(within)
    assert len(rows) == 2
    made = planning.plan(within)
    rollout.apply_plan(plan=made, by="olga")
    assert [result.outcome for result in rollout.undo_plan(plan=made, by="olga")] == [Outcome.UNDONE]
    assert sampling.bands()[0].undone == 0
    assert sampling.demoted() == {}


def test_what_nobody_decided_and_what_people_asked_for_is_no_label() -> None:
    within = scope()
    planned(within, 3)
    planned(within, 2, approval=Approval.NEEDS_HUMAN)
    assert sampling.bands() == ()


def test_operations_from_before_rules_were_named_are_shown_as_unknown_and_never_demoted() -> None:
    within = scope()
    operation = applied(within, rule="", band="")[0]
    undo(operation)
    band = counted(rule="", band="")
    assert (band.undone, band.applied, band.waiting) == (1, 1, 0)
    assert sampling.demote() == []


def test_labels_are_read_in_two_queries_and_of_the_scopes_asked_for_only() -> None:
    one, other = scope("team-a/u1"), scope("team-b/u2")
    applied(one, 2)
    applied(other, 1)
    with CaptureQueriesContext(connection) as captured:
        [band] = sampling.bands(scopes=[one])
    assert len(captured) == 2
    assert (band.applied, band.waiting) == (2, 2)
    assert counted().applied == 3


# --- asking afterwards ------------------------------------------------------------------------------------------------


def test_the_first_of_a_band_are_asked_about_and_then_a_share_the_same_whenever_it_is_looked_at() -> None:
    within = scope()
    set_policy(sample_first=3, sample_share=0.5)
    made = applied(within, 12)
    chosen = waits()
    expected = {row.op_id for row in made[:3]} | {row.op_id for row in made if int(row.op_id[3:11], 16) < 2**31}
    assert set(chosen) == expected
    assert 3 < len(chosen) < 12
    assert sampling.choose() == 0
    assert waits() == chosen


def test_a_sample_that_a_crash_lost_is_chosen_by_housekeeping() -> None:
    [operation] = planned(scope())
    assert apply(operation).outcome is Outcome.APPLIED  # and killed before the rollout's end
    assert waits() == []
    assert tasks.measure() == "1 to check, 0 demoted"
    assert waits() == [operation.op_id]


def test_what_a_person_approved_is_not_asked_about_again() -> None:
    [operation] = planned(scope())
    review.approve(operation=operation, by="rita")
    rollout.apply_one(operation=fresh(operation), by="olga")
    assert (tasks.measure(), waits()) == ("0 to check, 0 demoted", [])


def test_a_sample_is_judged_once_and_the_second_judge_is_told_who_was_first() -> None:
    [operation] = applied(scope())
    judge(operation, right=True, by="ines")
    with pytest.raises(AlreadyDecided, match="judged right: ines said so"):
        judge(operation, right=False, by="otto")
    assert Event.objects.filter(action="judged").count() == 1
    assert counted().judged_right == 1


def test_a_correction_replaces_the_label_and_both_words_are_events() -> None:
    [operation] = applied(scope())
    judge(operation, right=True)
    judge(operation, right=False, by="otto", correcting=True)
    band = counted()
    assert (band.judged_right, band.judged_wrong) == (0, 1)
    events = Event.objects.filter(action="judged").order_by("pk").values_list("actor", "detail__judged")
    assert list(events) == [("ines", "right"), ("otto", "wrong")]


def test_an_undone_sample_counts_once_as_wrong_whatever_was_said_before() -> None:
    within = scope()
    one, other = applied(within, 2)
    judge(one, right=False)
    undo(one)
    judge(other, right=True)
    undo(other)
    band = counted()
    assert (band.judged_right, band.judged_wrong, band.undone, band.waiting) == (0, 2, 2, 0)


# --- demoting ---------------------------------------------------------------------------------------------------------


def demoted(within_scope: str = "team-a/u1") -> Demotion:
    """A band that fell: its first two labels are wrong."""
    [operation] = applied(scope(within_scope))
    judge(operation, right=False)
    return Demotion.objects.get(lifted_at=None)


def test_a_band_falls_by_itself_with_its_figures_an_event_and_a_notice() -> None:
    row = demoted()
    assert (row.kind, row.rule, row.band, row.judged, row.wrong) == (*KEY, 1, 1)
    assert (row.lower > row.limit, row.limit) == (True, 0.005)
    assert Event.objects.get(action="band_demoted").detail["demotion"] == row.pk
    assert "same key, 0.98-0.99 was wrong in 1 of 1" in sampling.notices()[0]
    assert (counted().automatic, counted().demoted_at) == (False, row.at)
    assert sampling.demote() == []


def test_administrators_are_mailed_where_there_are_any(settings: object) -> None:
    settings.ADMINS = [("Ada", "ada@example.org")]  # type: ignore[attr-defined]
    demoted()
    [sent] = mail.outbox
    assert "same key, 0.98-0.99 lost its automatic status" in sent.subject
    assert "Relay" not in sent.body  # figures and names of rules, no memory text


def test_a_mail_that_cannot_be_sent_stops_nothing(settings: object) -> None:
    settings.ADMINS = [("Ada", "ada@example.org")]  # type: ignore[attr-defined]
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"  # type: ignore[attr-defined]
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 1  # type: ignore[attr-defined]
    assert demoted().wrong == 1


def test_what_is_planned_and_not_applied_is_refused_and_a_person_may_decide_it() -> None:
    """R48: nothing is lost; the decision is a person's."""
    [waiting] = planned(scope())
    demoted()
    refused = apply(waiting)
    assert refused.outcome is Outcome.REFUSED
    assert "waits for a person to decide it: same key, 0.98-0.99 was wrong in 1 of 1" in refused.sentence
    assert fresh(waiting).status == State.PLANNED
    review.approve(operation=fresh(waiting), by="rita")
    assert apply(waiting).outcome is Outcome.APPLIED


def test_the_next_plan_asks_a_person_and_says_why() -> None:
    within = scope()
    planning.twins(within)
    rollout.apply_plan(plan=planning.plan(within), by="olga")
    [sample] = Sample.objects.all()
    sampling.judge(sample=sample, right=False, by="ines")
    planning.twins(within, "Deploys happen on Friday")
    operation = planning.one(planning.plan(within))
    assert (operation.status, operation.approval) == (State.NEEDS_HUMAN, Approval.NEEDS_HUMAN)
    assert "a person decides, same words was wrong in 1 of 1, at least 20.7% where 0.5% are allowed" in operation.reason
    assert (operation.rule, operation.band) == ("same words", "same words")
    again = planning.one(planning.plan(within))
    assert again.pk == operation.pk  # the same question, not a new one with every plan


def test_a_plan_made_before_goes_to_a_person_when_it_is_planned_again() -> None:
    within = scope()
    planning.twins(within)
    before = planning.one(planning.plan(within))
    assert before.status == State.PLANNED
    row = Demotion.objects.create(
        kind="merge", rule="same words", band="same words", judged=9, wrong=3, lower=0.1, limit=0.005
    )
    after = planning.one(planning.plan(within))
    assert (after.op_id, after.generation, after.status) == (before.op_id, 2, State.NEEDS_HUMAN)
    assert fresh(before).status == State.STALE
    sampling.lift(demotion=row, by="sven", reason="the guard was mended")
    assert planning.one(planning.plan(within)).status == State.PLANNED


def test_a_lift_needs_a_reason_is_done_once_and_the_count_starts_anew() -> None:
    row = demoted()
    with pytest.raises(Refused, match="needs a reason"):
        sampling.lift(demotion=row, by="sven", reason=" ")
    sampling.lift(demotion=row, by="sven", reason="the guard was mended")
    with pytest.raises(AlreadyDecided, match="sven lifted it"):
        sampling.lift(demotion=row, by="stella", reason="me too")
    assert Event.objects.get(action="demotion_lifted").actor == "sven"
    assert sampling.demote() == []
    band = counted()
    assert (band.judged_wrong, band.applied, band.error, band.automatic) == (0, 0, None, False)
    [operation] = applied(scope())
    assert (counted().waiting, counted().automatic) == (1, True)
    judge(operation, right=False)
    assert Demotion.objects.filter(lifted_at=None).count() == 1


def test_the_strictest_limit_of_all_policies_holds_because_a_band_is_one_for_the_store() -> None:
    assert sampling.strictest_limit() == 0.005
    set_policy("*", error_limit_per_1000=20)
    assert sampling.strictest_limit() == 0.02
    set_policy("team-a/*", error_limit_per_1000=2)
    assert sampling.strictest_limit() == 0.002


def test_what_is_sampled_afterwards_is_no_part_of_what_an_approval_covers() -> None:
    """A policy that asks about more makes no approval void and plans nothing anew."""
    within = scope()
    [operation] = planned(within, approval=Approval.NEEDS_HUMAN)
    review.approve(operation=operation, by="rita")
    set_policy(sample_first=100, sample_share=0.5, error_limit_per_1000=1)
    assert apply(operation).outcome is Outcome.APPLIED


def test_undo_of_what_nobody_decided_demotes_without_a_judgement() -> None:
    [operation] = applied(scope())
    assert runner.undo(operation=operation, by="olga").outcome is Outcome.UNDONE
    assert Demotion.objects.get().wrong == 1
    assert database_now() - Demotion.objects.get().at < timedelta(minutes=1)
    assert Operation.objects.get(pk=operation.pk).status == State.UNDONE

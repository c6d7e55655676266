"""Two people agree where the policy says so, and who proposes never approves: on pages, in commands, in PostgreSQL."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import IntegrityError, transaction
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from consolidation import review, rollout, runner
from consolidation.admin.plan import screen as plans
from consolidation.aliases import request_alias
from consolidation.models import Comment, Operation, Plan, Policy
from consolidation.operations import Approval, Kind, State
from consolidation.review import Refused
from consolidation.runner import Outcome
from consolidation.tasks import APPLY_PLAN
from observations.models import Event, Observation, Outbox, Scope, ScopeAccess
from tests.building import first_confirms, observe, propose, scope
from tests.consolidating import run
from tests.desk import World, client_of, decide, item_url, person, settle, status_of, world

pytestmark = pytest.mark.django_db

WIDE = {"blast_floor": 1, "blast_share": 0.0}  # two records are much


@pytest.fixture
def mine() -> World:
    """A memory of scope team-a/u1."""
    return world()


@pytest.fixture
def desks(mine: World) -> dict[str, Client]:
    """Two reviewers, two operators and a viewer of the scope."""
    people = {"rita": "Reviewer", "ruth": "Reviewer", "olga": "Operator", "oleg": "Operator", "vera": "Viewer"}
    return {name: client_of(person(name, group, "team-a/*")) for name, group in people.items()}


def agree(client: Client, operation: Operation) -> tuple[int, str]:
    """Post the second person's form as the item page shows it."""
    operation.refresh_from_db()
    return decide(client, operation, "second", digest=operation.approved_digest)


def page(client: Client, operation: Operation) -> str:
    """An item's page."""
    return client.get(item_url(operation)).content.decode()


# --- who proposes never approves --------------------------------------------------------------------------------------


def asked(by: str) -> Operation:
    """An alias that somebody asked for."""
    within = scope("team-a/u1")
    for subject in ("Anna", "Anna B"):
        observe(f"{subject} leads the lab", within=within, key=(subject, "leads", "the lab"))
    return request_alias(scope=within, subject="Anna B", name="Anna", by=by)


@pytest.mark.parametrize("proposer", ["rita", "token:1a2b", "claude-test"])
def test_who_asked_for_it_does_not_approve_it(proposer: str) -> None:
    """E7: a person, a token or a model; another reviewer does."""
    operation = asked(proposer)
    with pytest.raises(Refused, match="who proposes never approves"):
        review.approve(operation=operation, by=proposer, reason="mine")
    assert status_of(operation) == State.NEEDS_HUMAN
    review.approve(operation=operation, by="ruth", reason="the same person")
    assert status_of(operation) == State.APPROVED


def test_the_same_person_by_another_door_is_no_other_person() -> None:
    """E7: rita of the admin and rita of this machine's command line are one."""
    with pytest.raises(Refused, match="who proposes never approves"):
        review.approve(operation=asked("rita"), by="cli:rita", reason="mine")
    assert not review.same_person("", "")
    assert not review.same_person("rita", "ruth")


def test_the_database_refuses_a_proposer_who_approves_around_the_code() -> None:
    """E7, naive control: an UPDATE that skips the review is refused by the row's own rule."""
    operation = asked("rita")
    approved = {"status": "approved", "decided_by": "rita", "decided_at": timezone.now(), "approved_digest": "a" * 64}
    with pytest.raises(IntegrityError, match="a_proposer_never_approves"), transaction.atomic():
        Operation.objects.filter(pk=operation.pk).update(**approved)


# --- one operation ----------------------------------------------------------------------------------------------------


def test_a_prune_is_applied_once_another_person_agreed(mine: World, desks: dict[str, Client]) -> None:
    """E7: approve, agree, apply, by three people; before that the runner refuses and says what is missing."""
    decide(desks["rita"], mine.prune, "approve", reason="old")
    status, text = decide(desks["olga"], mine.prune, "apply")
    assert status == 409
    assert "waits for a second person" in text
    assert "two_person_kinds" in text
    assert agree(desks["ruth"], mine.prune)[0] == 200
    assert decide(desks["olga"], mine.prune, "apply")[0] == 200
    done = Operation.objects.get(pk=mine.prune.pk)
    assert (done.status, done.decided_by, done.seconded_by, done.applied_by) == ("applied", "rita", "ruth", "olga")
    said = Event.objects.filter(subject=done.op_id).order_by("pk").values_list("action", "actor")
    assert list(said) == [("approved", "rita"), ("seconded", "ruth"), ("applied", "olga")]


def test_the_lone_reviewer_reads_which_rule_stands_in_the_way(mine: World, desks: dict[str, Client]) -> None:
    """E7: before and after the approval, with the field a steward could change; no button for the one who approved."""
    before = page(desks["rita"], mine.prune)
    assert "One person approves, another one agrees" in before
    decide(desks["rita"], mine.prune, "approve", reason="old")
    after = page(desks["rita"], mine.prune)
    for words in ("two_person_kinds", "another reviewer of this scope has to agree", "a steward can change the rule"):
        assert words in after
    assert "Agree as second person" not in after
    assert "Agree as second person" in page(desks["ruth"], mine.prune)
    assert "Agree as second person" not in page(desks["vera"], mine.prune)
    assert 'value="apply"' not in page(desks["olga"], mine.prune)


def test_a_merge_needs_no_second_person_by_default(mine: World, desks: dict[str, Client]) -> None:
    """E7: the page of what one person decides does not speak of two."""
    decide(desks["rita"], mine.merge, "approve")
    assert "Second person" not in page(desks["ruth"], mine.merge)
    assert agree(desks["ruth"], mine.merge)[0] == 409
    assert decide(desks["olga"], mine.merge, "apply")[0] == 200


@pytest.mark.parametrize(
    ("who", "words"), [("rita", "You approved"), ("cli:rita", "You approved"), ("ann", "asked for")]
)
def test_only_another_person_agrees(mine: World, who: str, words: str) -> None:
    """E7: neither who approved it, by whatever door, nor who asked for it."""
    wanted = asked("ann") if who == "ann" else mine.prune
    Policy.objects.create(pattern="team-a/*", body={"two_person_kinds": ["prune", "alias"]})
    review.approve(operation=wanted, by="rita", reason="old", digest=review.shown_digest(operation=wanted))
    with pytest.raises(Refused, match=words):
        review.second(operation=wanted, by=who)
    assert Operation.objects.get(pk=wanted.pk).seconded_by == ""


def test_agreeing_covers_what_was_shown_and_nothing_approved_since(mine: World) -> None:
    """D2: withdrawn by its event and approved anew, the second person's page is out of date."""
    review.approve(operation=mine.supersede, by="rita", reason="x", decision=review.Decision(keep=_first(mine)))
    Policy.objects.create(pattern="team-a/*", body={"two_person_kinds": ["supersede"]})
    first = Operation.objects.get(pk=mine.supersede.pk).approved_digest
    review.reopen(operation=mine.supersede, by="rita")
    review.approve(operation=mine.supersede, by="rita", reason="x", decision=review.Decision(many_valued=True))
    with pytest.raises(review.Changed, match="approved anew"):
        review.second(operation=mine.supersede, by="ruth", digest=first)
    review.second(operation=mine.supersede, by="ruth")
    assert runner.apply(operation=mine.supersede, by="olga").outcome == Outcome.APPLIED


def _first(mine: World) -> int:
    return mine.supersede.sources.order_by("position").values_list("observation_id", flat=True)[0] or 0


def test_what_moved_since_the_approval_is_not_agreed_to(mine: World) -> None:
    """C11: the second person's yes belongs to the same content as the first one's."""
    review.approve(operation=mine.prune, by="rita", reason="old")
    Policy.objects.create(pattern="team-a/*", body={"grace_days": 7})
    with pytest.raises(review.Changed, match="the policy"):
        review.second(operation=mine.prune, by="ruth")
    assert Operation.objects.get(pk=mine.prune.pk).seconded_by == ""


def test_a_policy_that_came_to_want_two_stops_what_one_approved(mine: World) -> None:
    """E7: the runner looks at the policy of the moment; another person's agreement then carries it on."""
    review.approve(operation=mine.merge, by="rita")
    Policy.objects.create(pattern="team-a/*", body={"two_person_kinds": ["merge"]})
    refused = runner.apply(operation=mine.merge, by="olga")
    assert refused.outcome == Outcome.REFUSED
    assert "two_person_kinds" in refused.sentence
    review.second(operation=mine.merge, by="ruth")
    assert runner.apply(operation=mine.merge, by="olga").outcome == Outcome.APPLIED


def test_an_automatic_item_of_such_a_kind_is_not_applied_undecided(mine: World) -> None:
    """E7: where two people have to agree, nothing is applied that nobody decided."""
    Policy.objects.create(pattern="team-a/*", body={"two_person_kinds": ["merge"]})
    refused = runner.apply(operation=mine.automatic, by="olga")
    assert (refused.outcome, "waits for two people" in refused.sentence) == (Outcome.REFUSED, True)
    assert status_of(mine.automatic) == State.PLANNED


def test_one_operation_over_the_blast_radius_needs_a_second_person(mine: World) -> None:
    """E7: it alone touches more of its scope than the policy's share and floor; relaxed, one person suffices."""
    Policy.objects.create(pattern="team-a/*", body=WIDE)
    approved = review.approve(operation=mine.merge, by="rita", digest=review.shown_digest(operation=mine.merge))
    assert approved.needs_second
    assert "two_person_wide" in runner.apply(operation=mine.merge, by="olga").sentence
    single = review.approve(
        operation=mine.supersede,
        by="rita",
        reason="x",
        decision=review.Decision(many_valued=True),
        digest=review.shown_digest(operation=mine.supersede),
    )
    assert single.needs_second
    Policy.objects.update(body={**WIDE, "two_person_wide": False})
    other = review.approve(operation=mine.skipped, by="rita", digest=review.shown_digest(operation=mine.skipped))
    assert not other.needs_second


def test_an_agreement_expires_with_its_approval(mine: World, desks: dict[str, Client]) -> None:
    """D2: neither the second person nor the runner takes an approval that ran out; approved again, both agree again."""
    review.approve(operation=mine.prune, by="rita", reason="old")
    review.second(operation=mine.prune, by="ruth")
    past = timezone.now() - timedelta(minutes=1)
    Operation.objects.filter(pk=mine.prune.pk).update(approval_expires_at=past)
    status, text = decide(desks["olga"], mine.prune, "apply")
    assert (status, "has expired" in text) == (409, True)
    review.approve(operation=mine.prune, by="olga", reason="old")
    again = Operation.objects.get(pk=mine.prune.pk)
    assert (again.needs_second, again.seconded_by) == (True, "")
    Operation.objects.filter(pk=mine.prune.pk).update(approval_expires_at=past)
    assert "The approval has expired" in page(desks["ruth"], mine.prune)
    assert agree(desks["ruth"], mine.prune)[0] == 409


@pytest.mark.parametrize("back", ["reopen", "withdraw"])
def test_taking_the_approval_back_takes_the_agreement_with_it(mine: World, back: str) -> None:
    """E7: what somebody agreed to was that decision."""
    review.approve(operation=mine.prune, by="rita", reason="old")
    review.second(operation=mine.prune, by="ruth")
    if back == "reopen":
        review.reopen(operation=mine.prune, by="rita")
    else:
        review.reject(operation=mine.prune, by="rita", reason="no", withdraw=True)
    settle()
    stands = Operation.objects.get(pk=mine.prune.pk)
    assert (stands.needs_second, stands.seconded_by, stands.seconded_at) == (False, "", None)


def test_a_second_click_of_the_second_person_is_no_error(mine: World, desks: dict[str, Client]) -> None:
    """C16: a double click finds what the first one did; another person reads who was first."""
    review.approve(operation=mine.prune, by="rita", reason="old")
    assert agree(desks["ruth"], mine.prune)[0] == 200
    status, text = agree(desks["ruth"], mine.prune)
    assert (status, "You did that already" in text) == (200, True)
    status, text = agree(desks["oleg"], mine.prune)
    assert (status, "ruth agreed to" in text) == (409, True)


def test_a_second_person_demoted_between_the_page_and_the_click_is_refused(mine: World) -> None:
    """D2: the role is asked for with the click."""
    user = person("ruth", "Reviewer", "team-a/*")
    review.approve(operation=mine.prune, by="rita", reason="old")
    client = client_of(user)
    assert "Agree as second person" in page(client, mine.prune)
    ScopeAccess.objects.filter(user=user).update(role="Viewer")
    assert agree(client, mine.prune)[0] == 403
    assert Operation.objects.get(pk=mine.prune.pk).seconded_by == ""


def test_the_database_refuses_to_apply_without_the_second_person(mine: World) -> None:
    """E7, naive control: an application that skips the runner's check is refused by the row's own rule."""
    review.approve(operation=mine.prune, by="rita", reason="old")
    applied = {"status": "applied", "applied_by": "olga", "applied_at": timezone.now(), "applied_digest": "a" * 64}
    for second in ("", "rita"):
        with pytest.raises(IntegrityError, match="two_agreed"), transaction.atomic():
            Operation.objects.filter(pk=mine.prune.pk).update(
                **applied, seconded_by=second, seconded_at=timezone.now() if second else None
            )


# --- whole plans ------------------------------------------------------------------------------------------------------


def wide_plan(within: Scope, number: int = 1) -> Plan:
    """A plan of automatic merges, under a policy for which two records are much."""
    Policy.objects.update_or_create(pattern="team-a/*", defaults={"body": WIDE})
    plan = Plan.objects.create(scope=within, pattern=within.name, requested_by="test", trigger="command")
    for each in range(number):
        rows = [observe(f"{text} {each}", within=within) for text in ("Blue", "blue.")]
        propose(Kind.MERGE, rows, plan=plan)
    return plan


def apply(client: Client, plan: Plan) -> tuple[int, str]:
    """Confirm what the plan's page shows, as a person does."""
    address = reverse("admin:consolidation_plan_apply", args=[plan.pk])
    shown = client.get(address).context["whole"].shown
    answer = client.post(address, {"shown": shown, "confirmed": "1"}, follow=True)
    settle()
    return answer.status_code, answer.content.decode()


def applied(plan: Plan) -> int:
    """How many of its items are applied."""
    return Operation.objects.filter(plan_items__plan=plan, status=State.APPLIED).count()


def test_two_people_confirm_a_wide_plan(mine: World, desks: dict[str, Client]) -> None:
    """E7: the first one asks, again and again is still one; another one confirms the same and it is applied."""
    plan = wide_plan(mine.scope)
    for _ in range(2):
        status, text = apply(desks["olga"], plan)
        assert (status, applied(plan)) == (200, 0)
        assert "until another person confirms the same" in text
        assert "You confirmed what applying this would do" in text
    told = desks["oleg"].get(reverse("admin:consolidation_plan_change", args=[plan.pk])).content.decode()
    assert "olga confirmed what applying this would do" in told
    assert "a steward can change the rule" in told
    apply(desks["oleg"], plan)
    assert applied(plan) == 1
    said = Event.objects.filter(subject=str(plan)).order_by("pk").values_list("action", "actor")
    assert list(said) == [("plan_asked", "olga"), ("plan_agreed", "oleg")]
    plan.refresh_from_db()
    assert (plan.asked_by, plan.asked_digest) == ("", "")


def test_what_changed_meanwhile_is_asked_anew(mine: World, desks: dict[str, Client]) -> None:
    """D2: an item joined after the first one confirmed, so the second one's click is a first one."""
    plan = wide_plan(mine.scope)
    apply(desks["olga"], plan)
    propose(Kind.MERGE, [observe(text, within=mine.scope) for text in ("Red", "red.")], plan=plan)
    assert (
        "confirmed what applying"
        not in desks["oleg"].get(reverse("admin:consolidation_plan_change", args=[plan.pk])).content.decode()
    )
    apply(desks["oleg"], plan)
    assert applied(plan) == 0
    apply(desks["olga"], plan)
    assert applied(plan) == 2


def test_a_confirmation_lasts_as_long_as_an_approval(mine: World) -> None:
    """D2: after that the next one who confirms is the first."""
    plan = wide_plan(mine.scope)
    first_confirms(plan, by="olga")
    Plan.objects.filter(pk=plan.pk).update(asked_at=timezone.now() - timedelta(hours=73))
    with pytest.raises(rollout.SecondWanted):
        rollout.apply_plan(plan=plan, by="oleg", confirmed=True)
    assert applied(plan) == 0


def test_a_policy_may_let_one_person_apply_a_wide_plan(mine: World, desks: dict[str, Client]) -> None:
    """E7: configurable per policy: then the tick of one person is enough, as before."""
    plan = wide_plan(mine.scope)
    Policy.objects.update(body={**WIDE, "two_person_wide": False})
    apply(desks["olga"], plan)
    assert applied(plan) == 1


def test_an_operator_of_another_role_there_is_no_second_person(mine: World, desks: dict[str, Client]) -> None:
    """E7: who may not apply in a scope of the plan cannot confirm it."""
    plan = wide_plan(mine.scope)
    apply(desks["olga"], plan)
    ScopeAccess.objects.filter(user__username="oleg").update(role="Reviewer")
    answer = desks["oleg"].post(reverse("admin:consolidation_plan_apply", args=[plan.pk]), {"confirmed": "1"})
    assert (answer.status_code, applied(plan)) == (403, 0)


def test_a_worker_applies_only_what_two_people_agreed_on(
    mine: World, desks: dict[str, Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    """D2: what joined the plan between the second click and the worker is not applied, and the row says why."""
    monkeypatch.setattr(plans, "AT_ONCE", 1)
    plan = wide_plan(mine.scope, number=2)
    apply(desks["olga"], plan)
    assert not Outbox.objects.filter(task=APPLY_PLAN).exists()
    apply(desks["oleg"], plan)
    row = Outbox.objects.get(task=APPLY_PLAN)
    agreed = row.payload["agreed"]
    with pytest.raises(Refused, match="changed since two people agreed"):
        rollout.apply_plan(plan=plan, by="oleg", confirmed=True, agreed="0" * 64)
    assert applied(plan) == 0
    results = rollout.apply_plan(plan=plan, by="oleg", confirmed=True, agreed=agreed)
    assert {result.outcome for result in results} == {Outcome.APPLIED}
    assert rollout.apply_plan(plan=plan, by="oleg", confirmed=True, agreed=agreed)  # sent twice: it goes on


# --- commands ---------------------------------------------------------------------------------------------------------


def test_the_command_takes_a_second_person_by_name(mine: World) -> None:
    """E7: `agree`, in another person's name; the sentences say which rule and what to do."""
    name = mine.prune.op_id
    said = run(f"approve {name} --reason old --by ana").out
    assert "two_person_kinds" in said
    assert f"consolidate agree {name}" in said
    alone = run(f"agree {name} --by ana")
    assert (alone.status, "a second person is another one" in alone.error) == (1, True)
    early = run(f"apply {name} --by olga")
    assert (early.status, "waits for a second person" in early.out) == (1, True)
    assert run(f"agree {name} --by bela").status == 0
    assert "as second person" in run(f"explain {name}").out
    assert run(f"apply {name} --by olga").status == 0


# --- comments ---------------------------------------------------------------------------------------------------------


def test_a_comment_is_shown_on_the_page_and_by_explain(mine: World, desks: dict[str, Client]) -> None:
    """E7: in the reviewer's words, hostile ones as text with visible escapes (F5)."""
    words = "See <b>obs_1</b>\u202e: it was\x00 asked before"
    address = item_url(mine.merge, "comment")
    assert desks["rita"].post(address, {"comment": words}).status_code == 302
    shown = page(desks["vera"], mine.merge)
    assert "&lt;b&gt;obs_1" in shown
    assert "\u202e" not in shown
    assert "\u202e" not in run(f"explain {mine.merge.op_id}").out
    assert "rita: See <b>obs_1" in run(f"explain {mine.merge.op_id}").out
    assert status_of(mine.merge) == State.NEEDS_HUMAN


@pytest.mark.parametrize(("text", "words"), [("", "needs words"), (" \x00\n", "needs words"), ("a" * 2_001, "2,001")])
def test_a_comment_that_says_nothing_or_too_much_is_refused(mine: World, text: str, words: str) -> None:
    """E7: with one sentence, and nothing is stored."""
    with pytest.raises(Refused, match=words):
        review.comment(operation=mine.merge, by="rita", text=text)
    assert not Comment.objects.exists()


def test_a_viewer_reads_comments_and_leaves_none(mine: World, desks: dict[str, Client]) -> None:
    """E7: and neither does a reviewer in a scope where the role is lower."""
    review.comment(operation=mine.merge, by="rita", text="Seen twice.")
    assert "Leave the comment" not in page(desks["vera"], mine.merge)
    assert desks["vera"].post(item_url(mine.merge, "comment"), {"comment": "x"}).status_code == 403
    ScopeAccess.objects.filter(user__username="ruth").update(role="Viewer")
    assert desks["ruth"].post(item_url(mine.merge, "comment"), {"comment": "x"}).status_code == 403
    assert Comment.objects.count() == 1
    assert Observation.objects.count() == Observation.objects.exclude(text="Seen twice.").count()
    assert mine.merge.approval == Approval.NEEDS_HUMAN

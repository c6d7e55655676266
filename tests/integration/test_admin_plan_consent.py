"""What a plan's pages showed is what is decided, applied and undone; late arrivals are left, and said (D2, H2)."""

from __future__ import annotations

import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from consolidation import review, rollout, runner
from consolidation.admin.plan import screen as plans
from consolidation.admin.texts import WHOLE
from consolidation.models import BulkDecision, Operation, Plan, Policy
from consolidation.operations import Approval, Kind, State
from consolidation.review import Decision, Refused
from consolidation.tasks import APPLY_PLAN
from observations import outbox
from observations.models import Outbox, Scope
from tests.building import observe, propose, scope
from tests.desk import client_of, person, settle, status_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def here() -> Scope:
    """Whose memory it is."""
    return scope("team-a/u1")


@pytest.fixture
def plan(here: Scope) -> Plan:
    """A plan without items."""
    return Plan.objects.create(scope=here, pattern=here.name, requested_by="test", trigger="command")


@pytest.fixture
def rita() -> Client:
    """A reviewer."""
    return client_of(person("rita", "Reviewer", "team-a/*"))


@pytest.fixture
def olga() -> Client:
    """An operator."""
    return client_of(person("olga", "Operator", "team-a/*"))


def merge(plan: Plan, name: str, *, approval: Approval = Approval.AUTO) -> Operation:
    """A merge of two records as an item of the plan."""
    assert plan.scope is not None
    rows = [observe(f"{name} {end}", within=plan.scope) for end in ("one", "two")]
    return propose(Kind.MERGE, rows, approval=approval, plan=plan)


def address(plan: Plan, page: str) -> str:
    """Of a plan's page."""
    return reverse(f"admin:consolidation_plan_{page}", args=[plan.pk])


def selected(client: Client, plan: Plan, verb: str, **more: str) -> str:
    """Select all that the plan's page shows, as a person does; the page that comes of it."""
    shown = client.get(address(plan, "change"), {"size": "200"}).context["token"]
    answer = client.post(address(plan, "decide"), {"verb": verb, "shown": shown, "all": "1", **more}, follow=True)
    settle()
    return answer.content.decode()


@pytest.mark.parametrize("verb", ["approve", "reject_all"])
def test_not_now_and_the_end_of_it_lead_back_to_the_plan(plan: Plan, rita: Client, verb: str) -> None:
    """H2: what was chosen on a plan's page goes back there, before it is confirmed and after; a plan that is none is no
    way back.
    """
    merge(plan, "Rye", approval=Approval.NEEDS_HUMAN)
    back = f'href="{address(plan, "change")}">'
    assert f"{back}Not now</a>" in selected(rita, plan, verb)
    bulk = BulkDecision.objects.latest("pk")
    page, confirm = (reverse(f"admin:consolidation_operation_bulk{name}", args=[bulk.pk]) for name in ("", "confirm"))
    shown = rita.get(page, {"plan": plan.pk}).content.decode()
    assert f'name="plan" value="{plan.pk}"' in shown
    answer = rita.post(confirm, {"plan": plan.pk, "reason": "no"}, follow=True)
    settle()
    assert f"{back}Back to the plan</a>" in answer.content.decode()
    refused = rita.get(page, {"plan": str(plan.pk), "only": "refused"}).content.decode()
    assert f'<a href="?plan={plan.pk}">All items</a>' in refused
    for strange in ("", "x", "-1", "9" * 20, "//evil.example"):
        assert "Back to the queue</a>" in rita.get(page, {"plan": strange}).content.decode()


def confirmed(client: Client, *, reason: str = "") -> str:
    """Confirm the newest selection on its own page."""
    bulk = BulkDecision.objects.latest("pk")
    url = reverse("admin:consolidation_operation_bulkconfirm", args=[bulk.pk])
    answer = client.post(url, {"reason": reason}, follow=True)
    settle()
    return answer.content.decode()


def shown_by(client: Client, plan: Plan, page: str) -> dict[str, str]:
    """What the form of a page carries."""
    text = client.get(address(plan, page)).content.decode()
    return dict(re.findall(r'<input type="hidden" name="(shown)" value="([^"]*)"', text))


# --- deciding ---------------------------------------------------------------------------------------------------------


def test_a_selection_of_a_plan_is_confirmed_on_a_page_that_shows_each_item_whole(plan: Plan, rita: Client) -> None:
    """E.4, D2: the end of a long text is read before it is approved; one way for the queue and for a plan."""
    long = merge(plan, "padding " * 60 + "end", approval=Approval.NEEDS_HUMAN)
    assert "end two" not in rita.get(address(plan, "change")).content.decode()
    page = selected(rita, plan, "approve")
    assert "end two" in page
    assert "Blast radius" in page
    assert status_of(long) == State.NEEDS_HUMAN
    confirmed(rita)
    assert status_of(long) == State.APPROVED
    assert BulkDecision.objects.get().verb == "approve"


def test_a_plan_page_approves_no_kind_that_cannot_be_undone(plan: Plan, here: Scope, rita: Client) -> None:
    """E.4: reversible kinds only; a prune in the selection stops it with a sentence."""
    other = merge(plan, "Tea", approval=Approval.NEEDS_HUMAN)
    prune = propose(Kind.PRUNE, [observe("Queue was long", within=here)], approval=Approval.NEEDS_HUMAN, plan=plan)
    assert "A prune is approved by itself" in selected(rita, plan, "approve", reason="ok")
    assert {status_of(prune), status_of(other)} == {State.NEEDS_HUMAN}
    assert not BulkDecision.objects.exists()


def test_a_plan_page_approves_no_text_that_is_too_long_to_be_shown(plan: Plan, rita: Client) -> None:
    """E.4: shown in full or not approved together."""
    huge = merge(plan, "x" * (WHOLE + 1), approval=Approval.NEEDS_HUMAN)
    assert "longer than this page can show" in selected(rita, plan, "approve")
    assert status_of(huge) == State.NEEDS_HUMAN


def test_a_plan_page_approves_at_most_fifty_together(plan: Plan, here: Scope, rita: Client) -> None:
    """E.4: fifty-one are refused, none of them decided."""
    rows = [observe(f"Claim {number}", within=here) for number in range(52)]
    for number in range(51):
        propose(Kind.MERGE, rows[number : number + 2], approval=Approval.NEEDS_HUMAN, plan=plan)
    assert "At most 50 are approved together" in selected(rita, plan, "approve")
    assert not Operation.objects.exclude(status=State.NEEDS_HUMAN).exists()


def test_all_open_items_of_a_plan_are_rejected_once_they_were_listed(plan: Plan, rita: Client) -> None:
    """D2, H2: no form field per item; what comes after the list is no part of it; a reason is needed."""
    listed = merge(plan, "Tea")
    rita.post(address(plan, "decide"), {"verb": "reject_all", "reason": "no look at them"})
    late = merge(plan, "Coffee")
    assert status_of(listed) == State.PLANNED
    assert "needs a reason" in confirmed(rita)
    confirmed(rita, reason="planned under the wrong policy")
    assert (status_of(listed), status_of(late)) == (State.REJECTED, State.PLANNED)


# --- applying ---------------------------------------------------------------------------------------------------------


def test_a_worker_applies_what_was_confirmed_and_leaves_what_came_later(
    plan: Plan, olga: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """D2, late arrival: approved after the operator's confirmation, left with a sentence; the next one covers it."""
    monkeypatch.setattr(plans, "AT_ONCE", 0)
    shown, late = merge(plan, "Tea"), merge(plan, "Coffee", approval=Approval.NEEDS_HUMAN)
    olga.post(address(plan, "apply"), shown_by(olga, plan, "apply"))
    review.approve(operation=late, by="rita")
    olga.post(address(plan, "apply"), shown_by(olga, plan, "apply"))
    first, second = Outbox.objects.filter(task=APPLY_PLAN).order_by("pk")
    settle()
    assert (
        outbox.perform(task=APPLY_PLAN, scope_id=None, key=first.key, payload=first.payload) == "1 applied, 1 refused"
    )
    assert f"{late.op_id} was not among what was confirmed" in caplog.text
    assert (status_of(shown), status_of(late)) == (State.APPLIED, State.APPROVED)
    settle()
    assert outbox.perform(task=APPLY_PLAN, scope_id=None, key=second.key, payload=second.payload).startswith(
        "1 already"
    )
    assert status_of(late) == State.APPLIED


def test_what_was_not_shown_is_left_with_a_sentence(plan: Plan) -> None:
    """D2, between the check and the application; without what was shown, the naive way, the late one is applied."""
    one, late = merge(plan, "Tea"), merge(plan, "Coffee")
    digest = review.shown_digest(operation=one)
    done, left = rollout.apply_plan(plan=plan, by="olga", shown={one.pk: digest})
    assert (done.outcome, left.outcome) == ("applied", "refused")
    assert left.sentence == f"{late.op_id} was not among what was confirmed, and was left: confirm it too."
    settle()
    rollout.apply_plan(plan=plan, by="olga")
    assert status_of(late) == State.APPLIED


def test_what_was_decided_otherwise_after_it_was_shown_is_left(plan: Plan) -> None:
    """D2, two tabs: an automatic merge was shown; somebody then chose the other record, and somebody withdrew one."""
    changed, withdrawn, same = merge(plan, "Tea"), merge(plan, "Coffee"), merge(plan, "Milk")
    shown = {row.pk: review.shown_digest(operation=row) for row in (changed, withdrawn, same)}
    other = next(
        source.observation_id
        for source in review.sources_of(changed)
        if source.observation_id and source.observation_id != changed.keeper_id
    )
    review.approve(operation=changed, by="rita", decision=Decision(keep=other))
    review.reject(operation=withdrawn, by="rita", reason="no")
    review.approve(operation=same, by="rita")  # exactly what was shown
    settle()
    told = {result.operation: result.sentence for result in rollout.apply_plan(plan=plan, by="olga", shown=shown)}
    assert "decided again after it was shown" in told[changed.op_id]
    assert told[withdrawn.op_id] == f"{withdrawn.op_id} is rejected now, and was left."
    assert [status_of(row) for row in (changed, withdrawn, same)] == [State.APPROVED, State.REJECTED, State.APPLIED]


def test_what_applying_would_do_is_listed_item_by_item_in_its_order(plan: Plan, here: Scope, olga: Client) -> None:
    """D2: each automatic and approved item with its kind, its records, the text that was chosen to stay and its page;
    what is not applied is not listed, and words of memory stay words.
    """
    approved, waits, automatic = (
        merge(plan, "Rye", approval=Approval.NEEDS_HUMAN),
        merge(plan, "Oat", approval=Approval.NEEDS_HUMAN),
        merge(plan, "<b>Tea</b>"),
    )
    first, second = approved.sources.order_by("position").values_list("observation_id", flat=True)
    assert approved.keeper_id == first
    review.approve(
        operation=approved,
        by="rita",
        digest=review.shown_digest(operation=approved),
        decision=Decision(keep=second),
    )
    answer = olga.get(address(plan, "apply"))
    page = answer.content.decode()
    assert [row.pk for row in answer.context["rows"]] == [approved.pk, automatic.pk]
    assert [line.id for row in answer.context["rows"][:1] for line in row.lines if line.kept] == [second]
    for operation in (approved, automatic):
        assert f'href="{reverse("admin:consolidation_operation_change", args=[operation.pk])}"' in page
        assert operation.op_id[:11] in page
    assert "&lt;b&gt;Tea&lt;/b&gt; one" in page
    assert waits.op_id[:11] not in page


def test_a_long_list_of_what_applying_would_do_has_pages_and_the_button_means_all(
    plan: Plan, olga: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D2: every item stands on some page, and posting from any of them confirms the same set, by a worker."""
    monkeypatch.setattr(plans, "AT_ONCE", 2)
    monkeypatch.setattr(plans, "LISTED", 2)
    made = [merge(plan, name) for name in ("Tea", "Rye", "Oat")]
    pages = [olga.get(address(plan, "apply"), {"page": number}) for number in ("1", "2", "nonsense")]
    found = [[row.pk for row in page.context["rows"]] for page in pages]
    assert found == [[made[0].pk, made[1].pk], [made[2].pk], [made[0].pk, made[1].pk]]
    assert "The button below applies all 3" in pages[1].content.decode()
    assert len({page.context["whole"].shown for page in pages}) == 1
    olga.post(address(plan, "apply") + "?page=2", {"shown": pages[1].context["whole"].shown})
    outbox.work()
    settle()
    assert {status_of(row) for row in made} == {State.APPLIED}


def test_who_may_not_see_all_of_a_plan_is_shown_none_of_its_items(plan: Plan, olga: Client) -> None:
    """D2: the page says so, and names nothing of the other scope."""
    merge(plan, "Tea")
    rows = [observe(f"Secret {end}", within=scope("team-b/u1")) for end in ("one", "two")]
    propose(Kind.MERGE, rows, plan=plan)
    answer = olga.get(address(plan, "apply"))
    assert "Secret" not in answer.content.decode()
    assert plans.HIDDEN in answer.content.decode()
    assert len(answer.context["rows"]) == 1


def test_the_page_before_applying_runs_a_fixed_number_of_queries(plan: Plan, olga: Client) -> None:
    """STYLE 20: for one item and for twenty."""
    counts = []
    for number in (1, 19):
        for each in range(number):
            merge(plan, f"Tea {number} {each}")
        with CaptureQueriesContext(connection) as captured:
            assert olga.get(address(plan, "apply")).status_code == 200
        counts.append(len(captured))
    assert counts[0] == counts[1]


def test_a_form_that_carries_another_set_applies_nothing(plan: Plan, olga: Client) -> None:
    """D2, back button: the page of before an item joined is answered with what stands now."""
    first = merge(plan, "Tea")
    form = shown_by(olga, plan, "apply")
    merge(plan, "Coffee")
    answer = olga.post(address(plan, "apply"), form)
    assert answer.status_code == 409
    assert status_of(first) == State.PLANNED


def test_two_people_agree_only_on_what_the_second_one_saw(plan: Plan) -> None:
    """D2, E.7: what joined after the page is no part of an agreement, so nothing is agreed."""
    Policy.objects.create(pattern="team-a/*", body={"blast_floor": 1, "blast_share": 0.0})
    one = merge(plan, "Tea")
    shown = {one.pk: review.shown_digest(operation=one)}
    late = merge(plan, "Coffee")
    with pytest.raises(Refused, match="changed since you looked"):
        rollout.agree(plan=plan, by="olga", shown=shown)
    with pytest.raises(Refused, match="changed since you looked"):
        rollout.apply_plan(plan=plan, by="olga", confirmed=True, shown=shown)
    assert (status_of(one), status_of(late)) == (State.PLANNED, State.PLANNED)


def test_what_was_shown_of_fifteen_hundred_items_is_one_word() -> None:
    """H2: as a worker reads it again; nothing said is not nothing shown."""
    shown = {number: f"{number:064x}" for number in range(1, 1_501)}
    assert rollout.unpacked(rollout.packed(shown)) == shown
    assert rollout.unpacked("") is None
    with pytest.raises(ValueError, match="invalid literal"):
        rollout.unpacked("everything")


# --- undoing ----------------------------------------------------------------------------------------------------------


def test_undoing_a_plan_leaves_what_was_applied_after_the_page_was_shown(plan: Plan, olga: Client) -> None:
    """D2: it stays, with a sentence."""
    one, late = merge(plan, "Tea"), merge(plan, "Coffee")
    runner.apply(operation=one, by="seed")
    settle()
    form = shown_by(olga, plan, "undo")
    runner.apply(operation=late, by="seed")
    settle()
    answer = olga.post(address(plan, "undo"), form)
    settle()
    assert (status_of(one), status_of(late)) == (State.UNDONE, State.APPLIED)
    [left] = answer.context["refused"]
    assert left.sentence == f"{late.op_id} was applied after this was shown, and stays: look again to undo it."


def test_only_what_a_page_lists_is_undone_and_it_says_what_stays(
    plan: Plan, olga: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D2, H2: the last applied first, as many as one page lists; the next page lists the rest."""
    monkeypatch.setattr(plans, "AT_ONCE", 2)
    rows = [merge(plan, name) for name in ("Tea", "Coffee", "Milk")]
    for row in rows:
        runner.apply(operation=row, by="seed")
        settle()
    page = olga.get(address(plan, "undo"))
    assert [row.pk for row in page.context["rows"]] == [rows[2].pk, rows[1].pk]
    assert "1 more is applied and not listed." in page.content.decode()
    assert "Undo these 2 operations" in page.content.decode()
    answer = olga.post(address(plan, "undo"), {"shown": page.context["token"]})
    settle()
    assert answer.context["refused"] == []
    assert [status_of(row) for row in rows] == [State.APPLIED, State.UNDONE, State.UNDONE]
    olga.post(address(plan, "undo"), shown_by(olga, plan, "undo"))
    assert status_of(rows[0]) == State.UNDONE


def test_no_plan_is_undone_by_a_form_that_listed_nothing_of_it(plan: Plan, here: Scope, olga: Client) -> None:
    """D2: without a list, with one of another plan, or with another person's, nothing is undone."""
    one = merge(plan, "Tea")
    runner.apply(operation=one, by="seed")
    settle()
    other = Plan.objects.create(scope=here, pattern=here.name, requested_by="test", trigger="command")
    oleg = client_of(person("oleg", "Operator", "team-a/*"))
    of_another = {"shown": olga.get(address(other, "undo")).context["token"]}
    every: list[dict[str, str]] = [{}, {"shown": "x"}, shown_by(oleg, plan, "undo"), of_another]
    for form in every:
        answer = olga.post(address(plan, "undo"), form)
        assert answer.status_code == 409
        assert "Reload it" in answer.content.decode()
    assert status_of(one) == State.APPLIED

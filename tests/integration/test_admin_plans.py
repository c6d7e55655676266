"""What is done to a whole plan in the admin, and what pausing stops: shown first, done exactly, told item by item."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from consolidation import pausing
from consolidation.models import Operation, Pause, Plan, PlanItem, Policy
from consolidation.operations import Kind, State
from observations.models import Event
from tests.building import observe, propose
from tests.desk import World, client_of, decide, item_url, person, settle, status_of, world

pytestmark = pytest.mark.django_db


@pytest.fixture
def mine() -> World:
    """A memory of scope team-a/u1."""
    return world()


@pytest.fixture
def ana() -> Client:
    """A reviewer of team-a."""
    return client_of(person("ana", "Reviewer", "team-a/*"))


@pytest.fixture
def olga() -> Client:
    """An operator of team-a."""
    return client_of(person("olga", "Operator", "team-a/*"))


# --- whole plans ----------------------------------------------------------------------------------------------------


def test_applying_a_plan_says_first_what_it_will_do_and_does_exactly_that(mine: World, olga: Client) -> None:
    """D2: an approval that arrives after the page was loaded is not applied unseen."""
    address = reverse("admin:consolidation_plan_apply", args=[mine.plan.pk])
    whole = olga.get(address).context["whole"]
    assert (whole.total, dict(whole.kinds)) == (1, {"merge": 1})
    decide(olga, mine.merge, "approve")
    answer = olga.post(address, {"shown": whole.shown})
    assert answer.status_code == 409
    assert "changed since you looked" in answer.content.decode()
    assert status_of(mine.automatic) == State.PLANNED
    answer = olga.post(address, {"shown": answer.context["whole"].shown})
    assert {row.pk for row in answer.context["done"]} == {mine.merge.pk, mine.automatic.pk}


@pytest.mark.parametrize("show", ["open", "applied", "all"])
def test_a_page_of_a_plan_that_skips_something_carries_no_caution(mine: World, ana: Client, show: str) -> None:
    """R54: what another tab of it shows as skipped is skipped here too."""
    page = ana.get(reverse("admin:consolidation_plan_change", args=[mine.plan.pk]), {"show": show})
    assert page.context["rows"]
    assert "CAUTION" not in page.context["printed"]


def test_a_wide_plan_asks_a_second_time(mine: World, olga: Client) -> None:
    """DESIGN 4, blast radius: over the policy's share nothing is applied without the tick; the figures are shown."""
    body = {"blast_floor": 0, "blast_share": 0.01, "two_person_wide": False}
    Policy.objects.create(pattern="team-a/*", body=body)
    wide = propose(Kind.MERGE, [observe(text, within=mine.scope) for text in ("Blue", "blue.")])
    address = reverse("admin:consolidation_plan_apply", args=[PlanItem.objects.get(operation=wide).plan_id])
    whole = olga.get(address).context["whole"]
    assert "confirm a second time" in whole.wide
    assert olga.post(address, {"shown": whole.shown}).status_code == 409
    assert status_of(wide) == State.PLANNED
    assert olga.post(address, {"shown": whole.shown, "confirmed": "1"}).status_code == 200
    assert status_of(wide) == State.APPLIED


def test_a_plan_is_undone_the_last_applied_first(mine: World, olga: Client) -> None:
    """R85 for a plan: a result per item."""
    olga.post(
        reverse("admin:consolidation_plan_apply", args=[mine.plan.pk]),
        {"shown": olga.get(reverse("admin:consolidation_plan_apply", args=[mine.plan.pk])).context["whole"].shown},
    )
    settle()
    undo = reverse("admin:consolidation_plan_undo", args=[mine.plan.pk])
    answer = olga.post(undo, {"shown": olga.get(undo).context["token"]})
    settle()
    assert [row.pk for row in answer.context["done"]] == [mine.automatic.pk, mine.applied.pk]
    assert not Operation.objects.filter(status=State.APPLIED).exists()


def test_open_items_of_a_plan_are_rejected_together_with_one_reason(mine: World, ana: Client) -> None:
    """Every open item, shown or not; what is never applied and what is done stays as it is."""
    address = reverse("admin:consolidation_plan_decide", args=[mine.plan.pk])
    confirm = ana.post(address, {"verb": "reject_all"}, follow=True)
    listed = reverse("admin:consolidation_operation_bulkconfirm", args=[confirm.context["bulk"].pk])
    ana.post(listed, {"reason": "  "})
    assert status_of(mine.merge) == State.NEEDS_HUMAN
    ana.post(listed, {"reason": "planned under the wrong policy"})
    open_ones = (mine.merge, mine.automatic, mine.supersede, mine.prune, mine.skipped)
    assert {status_of(operation) for operation in open_ones} == {State.REJECTED}
    assert {status_of(mine.never), status_of(mine.applied)} == {State.SKIPPED, State.APPLIED}
    reasons = Operation.objects.filter(status=State.REJECTED).values_list("decision_reason", flat=True).distinct()
    assert list(reasons) == ["planned under the wrong policy"]


def test_open_items_of_a_plan_are_approved_where_they_are_shown(mine: World, ana: Client) -> None:
    """Only the rows of the page, each with its digest; a token of another plan's page reaches nothing here."""
    address = reverse("admin:consolidation_plan_change", args=[mine.plan.pk])
    page = ana.get(address + "?kind=merge")
    data = {"verb": "approve", "shown": page.context["token"], "all": "1"}
    other = Plan.objects.create(scope=mine.scope, pattern=mine.scope.name, requested_by="t", trigger="command")
    ana.post(reverse("admin:consolidation_plan_decide", args=[other.pk]), data)
    assert status_of(mine.merge) == State.NEEDS_HUMAN
    confirm = ana.post(reverse("admin:consolidation_plan_decide", args=[mine.plan.pk]), data, follow=True)
    listed = reverse("admin:consolidation_operation_bulkconfirm", args=[confirm.context["bulk"].pk])
    ana.post(listed, {"reason": "read them"})
    assert {status_of(one) for one in (mine.merge, mine.automatic, mine.skipped)} == {State.APPROVED}
    assert {status_of(one) for one in (mine.supersede, mine.prune)} == {State.NEEDS_HUMAN}


def test_reading_the_skips_is_noted_once(mine: World, ana: Client) -> None:
    """R94: somebody says that they read them."""
    address = reverse("admin:consolidation_plan_explained", args=[mine.plan.pk])
    ana.post(address)
    first = Plan.objects.get(pk=mine.plan.pk).explained_at
    assert first is not None
    ana.post(address)
    assert Plan.objects.get(pk=mine.plan.pk).explained_at == first


# --- paused ---------------------------------------------------------------------------------------------------------


def test_every_page_says_when_everything_is_paused(mine: World, olga: Client) -> None:
    """The banner names who, since when and why; deciding goes on, applying does not."""
    pausing.pause(scope=None, by="root", reason="moving house")
    for name in ("index", "consolidation_operation_changelist", "observations_scope_changelist", "password_change"):
        assert "moving house" in olga.get(reverse(f"admin:{name}")).content.decode()
    assert decide(olga, mine.merge, "approve")[0] == 200
    status, page = decide(olga, mine.merge, "apply")
    assert status == 409
    assert "paused by root" in page
    assert status_of(mine.merge) == State.APPROVED


def test_a_paused_scope_is_paused_and_resumed_in_the_admin(mine: World, olga: Client) -> None:
    """Pause and resume by an operator, an event each; the pages name the scope."""
    olga.post(reverse("admin:consolidation_pause_set"), {"target": str(mine.scope.pk), "reason": "import runs"})
    assert mine.scope.name in olga.get(reverse("admin:index")).content.decode()
    assert "Nothing may be applied here now" in olga.get(item_url(mine.merge)).content.decode()
    assert decide(olga, mine.automatic, "apply")[0] == 409
    [row] = olga.get(reverse("admin:consolidation_pause_changelist")).context["rows"]
    olga.post(reverse("admin:consolidation_pause_lift", args=[row.pk]))
    assert decide(olga, mine.automatic, "apply")[0] == 200
    told = Event.objects.filter(scope=mine.scope, action__in=["paused", "resumed"]).order_by("pk")
    assert list(told.values_list("action", flat=True)) == ["paused", "resumed"]


def test_only_who_sees_everything_pauses_everything(mine: World, olga: Client) -> None:
    """An operator of one team cannot stop the others."""
    olga.post(reverse("admin:consolidation_pause_set"), {"target": "everything"})
    assert Pause.standing() is None
    assert "Paused." not in olga.get(reverse("admin:index")).content.decode()

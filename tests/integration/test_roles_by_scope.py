"""A role per pattern of scopes: somebody is reviewer here and reads there, on every page and in every action."""

from __future__ import annotations

import pytest
from django.db import IntegrityError, transaction
from django.test import Client, RequestFactory
from django.urls import reverse

from consolidation import review
from consolidation.admin.item.deciding import REVIEW
from consolidation.models import Operation, Pause, Plan, Policy
from consolidation.operations import State
from observations import access, roles
from observations.admin.base import Reach, require
from observations.models import Scope, ScopeAccess
from tests.building import scope
from tests.desk import World, client_of, decide, item_url, person, status_of, world

pytestmark = pytest.mark.django_db

HERE, THERE = "team-a/u1", "team-a/u2"


@pytest.fixture
def here() -> World:
    """Where the person has all their groups allow."""
    return world(HERE)


@pytest.fixture
def there() -> World:
    """Where the person only reads."""
    return world(THERE)


def split(group: str, *, name: str = "mia", role: str = "Viewer") -> Client:
    """Somebody of a group who has at most that role in THERE, and all that the group allows in the rest of team-a."""
    user = person(name, group, "team-a/*")
    ScopeAccess.objects.create(user=user, pattern=THERE, role=role)
    return client_of(user)


def reach(group: str, *given: tuple[str, str]) -> Reach:
    """The reach of somebody of a group with these patterns and roles."""
    user = person("mia", group)
    for pattern, role in given:
        ScopeAccess.objects.create(user=user, pattern=pattern, role=role)
    request = RequestFactory().get("/")
    request.user = user
    return Reach.of(request)


# --- which role holds where -------------------------------------------------------------------------------------------

NAMES = ("a", "a/b", "a/b/c", "a/bc", "d/e")
CASES = [
    ((("*", ""),), set(NAMES)),
    ((("*", "Viewer"),), set()),
    ((("*", "Reviewer"),), set(NAMES)),
    ((("*", "Steward"),), set()),  # a steward decides nothing
    ((("*", "Viewer"), ("a/*", "Operator")), {"a/b", "a/b/c", "a/bc"}),
    ((("*", ""), ("a/*", "Viewer")), {"a", "d/e"}),
    ((("*", ""), ("a/*", "Viewer"), ("a/b/*", "Reviewer")), {"a", "d/e", "a/b/c"}),
    ((("a/*", "Reviewer"), ("a/b", "Viewer")), {"a/b/c", "a/bc"}),
    ((("a/b", "Reviewer"), ("a/*", "Viewer")), {"a/b"}),
    ((), set()),
]


@pytest.mark.parametrize(("given", "allowed"), CASES)
def test_the_most_specific_pattern_says_what_somebody_may_do(
    given: tuple[tuple[str, str], ...], allowed: set[str]
) -> None:
    """E7: an exact name before the longest prefix before every scope; the answer per scope and the query agree."""
    for name in NAMES:
        scope(name)
    mine = reach("Operator", *given)
    assert set(mine.where(REVIEW).scopes.values_list("name", flat=True)) == allowed
    assert {name for name in NAMES if mine.may(REVIEW, scope=name)} == allowed
    assert {name for name in NAMES if mine.where(REVIEW).covers(name)} == allowed


def test_a_role_never_gives_what_the_groups_do_not() -> None:
    """E7: at most that role there: a viewer called operator of a scope still reads."""
    scope(HERE)
    mine = reach("Viewer", ("*", "Operator"))
    assert not mine.may(REVIEW)
    assert not mine.where(REVIEW).scopes.exists()
    assert mine.scopes.count() == 1


def test_a_pattern_is_covered_only_when_every_scope_of_it_is() -> None:
    """E7: who reads one scope of a family sets no rule for the family, now or later."""
    mine = reach("Operator", ("*", ""), ("a/b", "Viewer"))
    strict = mine.where(REVIEW)
    assert [strict.covers(pattern) for pattern in ("*", "a/*", "a/b", "a/c", "c/*")] == [
        False,
        False,
        False,
        True,
        True,
    ]
    assert mine.everything
    assert not strict.everything


def test_the_database_knows_no_other_role() -> None:
    """E7: a role that nobody declared cannot be stored."""
    user = person("mia")
    with pytest.raises(IntegrityError, match="scope_access_role"), transaction.atomic():
        ScopeAccess.objects.create(user=user, pattern="*", role="Owner")
    assert set(roles.Role) == {"Viewer", "Reviewer", "Operator", "Steward"}


def test_what_was_required_leaves_only_scopes_where_it_is_allowed() -> None:
    """E7: one place: after `require`, a look-up cannot find a row of a scope where the person only reads."""
    for name in (HERE, THERE):
        scope(name)
    user = person("mia", "Reviewer", HERE)
    ScopeAccess.objects.create(user=user, pattern=THERE, role="Viewer")
    request = RequestFactory().get("/")
    request.user = user
    assert Reach.of(request).scopes.count() == 2
    require(request, REVIEW)
    assert [row.name for row in Reach.of(request).scopes] == [HERE]
    assert Reach.seen_by(request).scopes.count() == 2


# --- on the pages and in the actions ----------------------------------------------------------------------------------


def test_a_reviewer_here_who_reads_there_decides_here_only(here: World, there: World) -> None:
    """E7: refused with a sentence, and nothing is decided."""
    mia = split("Reviewer")
    status, page = decide(mia, there.merge, "reject", reason="no")
    assert status == 403
    assert "Your role in this scope lets you read this" in page
    assert status_of(there.merge) == State.NEEDS_HUMAN
    assert decide(mia, here.merge, "reject", reason="no")[0] == 200
    assert status_of(here.merge) == State.REJECTED


def test_the_page_offers_only_what_may_be_done_in_its_scope(here: World, there: World) -> None:
    """E7: the buttons are those of the scope, and opening an item one may only read does not count as read (R94)."""
    mia = split("Reviewer")
    mine, theirs = (mia.get(item_url(one.merge)).content.decode() for one in (here, there))
    assert 'value="approve"' in mine
    assert 'value="approve"' not in theirs
    assert not there.plan.items.exclude(opened_at=None).exists()


def test_a_selection_decides_nothing_where_the_role_is_lower(here: World, there: World) -> None:
    """E7: of a selection on a page from before the role was lowered, the items of one's own scope are decided and the
    others refused, each named.
    """
    user = person("mia", "Reviewer", "team-a/*")
    mia = client_of(user)
    page = mia.get(reverse("admin:consolidation_operation_changelist"))
    ScopeAccess.objects.create(user=user, pattern=THERE, role="Viewer")
    data = {"shown": page.context["token"], "all": "1", "verb": "reject", "reason": "no"}
    answer = mia.post(reverse("admin:consolidation_operation_decide"), data)
    assert answer.context["done"]
    assert answer.context["refused"]
    assert not Operation.objects.filter(status=State.REJECTED, scope=there.scope).exists()


def test_a_whole_plan_needs_the_role_in_every_scope_of_it(here: World, there: World) -> None:
    """E7: a plan over two scopes is applied and undone as a whole only by who may do so in both."""
    plan = Plan.objects.create(pattern="team-a/*", requested_by="test", trigger="command")
    for number, operation in enumerate((here.automatic, there.automatic)):
        plan.items.create(scope=operation.scope, operation=operation, position=number)
    mia = split("Operator")
    for page in ("apply", "undo"):
        answer = mia.post(reverse(f"admin:consolidation_plan_{page}", args=[plan.pk]), {"confirmed": "1"})
        assert "or not do this in" in answer.content.decode()
    assert status_of(here.automatic) == State.PLANNED
    assert mia.post(reverse("admin:consolidation_plan_apply", args=[there.plan.pk])).status_code == 404


def test_planning_and_pausing_reach_only_the_scopes_of_the_role(here: World, there: World) -> None:
    """E7: "plan now" offers the scopes where it is allowed and takes no other; neither does a pause."""
    mia = split("Operator")
    offered = {one.value for one in mia.get(reverse("admin:consolidation_plan_changelist")).context["targets"]}
    assert offered == {"pattern:team-a/*", f"scope:{here.scope.pk}"}
    plans = Plan.objects.count()
    mia.post(reverse("admin:consolidation_plan_new"), {"target": f"scope:{there.scope.pk}"})
    assert Plan.objects.count() == plans
    assert mia.post(reverse("admin:consolidation_pause_set"), {"target": there.scope.pk}).status_code == 404
    mia.post(reverse("admin:consolidation_pause_set"), {"target": "everything"})
    assert not Pause.objects.exists()


def test_rules_and_tokens_of_a_family_need_the_role_in_all_of_it(here: World, there: World) -> None:
    """E7: a steward of a family who reads one scope of it sets no policy and makes no token that holds there too."""
    dora = split("Steward", name="dora")
    for pattern, made in (("team-a/*", 0), (THERE, 0), (HERE, 1)):
        form = dora.get(reverse("admin:observations_token_new"))
        data = {"once": form.context["once"], "name": "t", "pattern": pattern, "may_read": "1", "days": "9"}
        dora.post(reverse("admin:observations_token_new"), data)
        assert access.tokens().filter(scope_pattern=pattern).count() == made, pattern
    theirs = Policy.objects.create(pattern=THERE, body={})
    assert dora.get(reverse("admin:consolidation_policy_edit", args=[theirs.pk])).status_code in (403, 404)
    family = Policy.objects.create(pattern="team-a/*", body={})
    assert dora.post(reverse("admin:consolidation_policy_edit", args=[family.pk]), {}).status_code == 403
    whole = access.create_token(name="w", scope_pattern="team-a/*", by="seed", may_read=True).token
    assert dora.post(reverse("admin:observations_token_revoke", args=[whole.pk])).status_code == 404


def test_the_schedule_is_not_for_who_is_no_operator_anywhere() -> None:
    """E7: what belongs to no scope is changed by whoever may do so in some scope; a demoted operator may not."""
    user = person("mia", "Operator", HERE)
    address = reverse("admin:django_celery_beat_periodictask_changelist")
    assert client_of(user).get(address).status_code == 200
    user.scope_access.update(role="Reviewer")
    assert client_of(user).get(address).status_code == 403


# --- between the page and the click -----------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["approve", "reject", "distinct"])
def test_a_demotion_in_one_scope_bites_at_the_next_click(here: World, verb: str) -> None:
    """D2: the page was shown to a reviewer of the scope; a viewer clicks."""
    user = person("rita", "Reviewer", "team-a/*")
    client = client_of(user)
    assert client.get(item_url(here.merge)).status_code == 200
    digest = review.shown_digest(operation=here.merge)
    user.scope_access.update(role="Viewer")
    assert decide(client, here.merge, verb, digest=digest, reason="because")[0] == 403
    assert status_of(here.merge) == State.NEEDS_HUMAN


def test_a_promotion_of_the_role_needs_no_new_sign_in(here: World) -> None:
    """E7: the role is read with each request."""
    user = person("rita", "Reviewer")
    access_row = ScopeAccess.objects.create(user=user, pattern=HERE, role="Viewer")
    client = client_of(user)
    assert decide(client, here.merge, "reject", reason="no")[0] == 403
    access_row.role = ""
    access_row.save(update_fields=["role"])
    assert decide(client, here.merge, "reject", reason="no")[0] == 200
    assert Scope.objects.count() == 1


# --- the queue of somebody who reviews in some scopes and reads in others --------------------------------------------


def queue(client: Client, **asked: str) -> tuple[dict[str, int], set[str], set[str]]:
    """What each tab of the queue counts; the scopes of the rows that a page shows; and of those that may be picked."""
    answer = client.get(reverse("admin:consolidation_operation_changelist"), asked)
    assert answer.status_code == 200
    context = answer.context
    counts = {one.tab.label: int(one.count) for one in context["tabs"]}
    return counts, {row.scope for row in context["rows"]}, {row.scope for row in context["rows"] if row.decidable}


def test_what_waits_for_me_is_what_i_may_decide_and_the_rest_stands_by_itself(here: World, there: World) -> None:
    """E.1, E.7: no box and no button stands at an item of a scope that one only reads."""
    client = split("Reviewer")
    counts, shown, pickable = queue(client)
    assert shown == pickable == {HERE}
    assert counts["Waits for others"] > 0
    others, shown, pickable = queue(client, show="others")
    assert others == counts
    assert (shown, pickable) == ({THERE}, set())
    _, shown, pickable = queue(client, state="needs_human")
    assert (shown, pickable) == ({HERE, THERE}, {HERE})
    assert (
        b'name="verb"'
        not in client.get(reverse("admin:consolidation_operation_changelist"), {"show": "others"}).content
    )
    everywhere = client_of(person("olaf", "Reviewer", "team-a/*"))
    counts, shown, pickable = queue(everywhere)
    assert "Waits for others" not in counts
    assert shown == pickable == {HERE, THERE}


def test_nothing_waits_for_somebody_who_decides_nothing(here: World) -> None:
    counts, shown, pickable = queue(client_of(person("dora", "Viewer", "team-a/*")))
    assert "Waiting for me" not in counts
    assert counts["Waiting for a reviewer"] > 0
    assert (shown, pickable) == ({HERE}, set())


@pytest.mark.parametrize("asked", [{"scope": HERE}, {"kind": "banana"}, {"risk": "xx"}, {"age": "old"}, {"state": "x"}])
def test_a_filter_that_there_is_none_of_shows_nothing_and_says_so(here: World, asked: dict[str, str]) -> None:
    """D2: a selection there would be of everything."""
    client = client_of(person("mia", "Reviewer", "team-a/*"))
    _, shown, _ = queue(client, **asked)
    assert shown == set()
    page = client.get(reverse("admin:consolidation_operation_changelist"), asked).content.decode()
    assert f"There is no such {next(iter(asked))}: choose another filter, or show everything." in page

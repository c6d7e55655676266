"""A plan page, the queue and an observation page run a fixed number of queries, however much there is."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from consolidation.operations import Approval, Kind
from observations.models import Use
from observations.records import StatedBy
from tests.building import observe, propose, scope
from tests.desk import World, client_of, item_url, person, world

pytestmark = pytest.mark.django_db

# Of each: two are the session and its person, two their permissions, three their scopes and what is paused.
QUEUE, PLAN, OBSERVATION, OBSERVATIONS, EPISODES, EVENTS, DESK, PLANS = 18, 14, 16, 10, 10, 10, 19, 11


@pytest.fixture
def mine() -> World:
    """A memory of scope team-a/u1."""
    return world()


@pytest.fixture
def olga() -> Client:
    """An operator, whose pages have every button; not a superuser, whose reach costs no query."""
    return client_of(person("olga", "Operator", "team-a/*"))


def grow(mine: World) -> None:
    """Thirty more operations in the plan, other scopes, a longer past of the observation."""
    for number in range(30):
        pair = [observe(f"{text} {number}", within=mine.scope) for text in ("Red", "red.")]
        propose(Kind.MERGE, pair, approval=Approval.NEEDS_HUMAN, plan=mine.plan)
        scope(f"team-a/s{number}")
    later = [mine.derived, *(observe(f"Again {number}", within=mine.scope) for number in range(3))]
    propose(Kind.MERGE, later, plan=mine.plan)
    for _ in range(5):
        Use.objects.create(
            scope=mine.scope,
            observation=mine.derived,
            call_site="search",
            answer="0" * 8 + "-0000-4000-8000-" + "0" * 12,
        )
    observe("By a user", within=mine.scope, stated_by=StatedBy.USER)


def count(client: Client, address: str) -> int:
    """How many queries one page runs."""
    with CaptureQueriesContext(
        connection,
    ) as captured:
        assert client.get(address).status_code == 200
    return len(captured)


PAGES: dict[str, tuple[int, Callable[[World], str]]] = {
    "queue": (QUEUE, lambda _: reverse("admin:consolidation_operation_changelist")),
    "plan": (PLAN, lambda mine: reverse("admin:consolidation_plan_change", args=[mine.plan.pk])),
    "observation": (
        OBSERVATION,
        lambda mine: reverse("admin:observations_observation_change", args=[mine.derived.pk]),
    ),
    "observations": (OBSERVATIONS, lambda _: reverse("admin:observations_observation_changelist")),
    "episodes": (EPISODES, lambda _: reverse("admin:observations_episode_changelist")),
    "events": (EVENTS, lambda _: reverse("admin:observations_event_changelist")),
    "desk": (DESK, lambda _: reverse("admin:index")),
    "plans": (PLANS, lambda _: reverse("admin:consolidation_plan_changelist")),
}


@pytest.mark.parametrize("page", sorted(PAGES))
def test_a_page_runs_a_fixed_number_of_queries(page: str, mine: World, olga: Client) -> None:
    """STYLE 20: the same number for a small memory and a larger one, and the number that is written here."""
    wanted, address = PAGES[page]
    small = count(olga, address(mine))
    grow(mine)
    assert count(olga, address(mine)) == small == wanted


def test_the_item_page_runs_as_many_queries_for_two_sources_as_for_eight(mine: World, olga: Client) -> None:
    """The sources, their evidence and uses are read together."""
    many = [observe(f"Sources {number}", within=mine.scope, sources=["a://1", "a://2"]) for number in range(8)]
    large = propose(Kind.MERGE, many, approval=Approval.NEEDS_HUMAN, plan=mine.plan)
    assert count(olga, item_url(mine.merge)) == count(olga, item_url(large))

"""A plan page, the queue and an observation page run a fixed number of queries, however much there is."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from consolidation.aliases import request_alias
from consolidation.operations import OF_EPISODES, Approval, Kind
from consolidation.review import Decision
from observations.models import Use
from observations.records import StatedBy
from tests.building import observe, propose, scope
from tests.desk import World, client_of, item_url, person, world
from tests.engine import Engine, approve_and_apply, call, compaction, engine, promotion, unusable

pytestmark = pytest.mark.django_db

# Of each: two are the session and its person, two their permissions, three their scopes and what is paused.
QUEUE, PLAN, OBSERVATION, OBSERVATIONS, EPISODES, EVENTS, DESK, PLANS = 24, 18, 31, 9, 9, 9, 36, 10
EPISODE, ABOUT, TRASH, ALIASES, LEARNT, MODEL, NEW_ALIAS, PLAN_WITH_POLICIES = 10, 11, 14, 9, 9, 10, 7, 20
ITEM, ITEM_OF_EPISODES = 24, 22


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


def grow_engine(mine: Engine) -> None:
    """More of everything that the pages of the engine list."""
    for number in range(3):
        rows = [observe(f"Gone {number} {part}", within=mine.scope) for part in "ab"]
        prune = propose(Kind.PRUNE, rows, approval=Approval.NEEDS_HUMAN, plan=mine.plan)
        approve_and_apply(prune)
        observe(f"Name {number}", within=mine.scope, key=(f"name {number}", "is", "x"))
        asked = request_alias(scope=mine.scope, subject=f"name {number}", name="Anastasia Brandt", by="ben")
        approve_and_apply(asked)
        call(mine.scope, purpose=f"p{number}")
        unusable(mine.scope, number=number)
        compaction(mine.scope, plan=mine.plan, lossy=True)
        promotion(mine.episodes, plan=mine.plan, mark=str(number))
        other = scope(f"team-a/t{number}")
        rows = [observe(f"{name} {number}", within=other, key=("a", "b", name)) for name in "cd"]
        approve_and_apply(
            propose(Kind.SUPERSEDE, rows, approval=Approval.NEEDS_HUMAN), decision=Decision(many_valued=True)
        )


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
    assert (small, count(olga, address(mine))) == (wanted, wanted)


OF_THE_ENGINE: dict[str, tuple[int, Callable[[Engine], str]]] = {
    "queue": (QUEUE, lambda _: reverse("admin:consolidation_operation_changelist")),
    "plan": (PLAN_WITH_POLICIES, lambda mine: reverse("admin:consolidation_plan_change", args=[mine.plan.pk])),
    "episode": (EPISODE, lambda mine: reverse("admin:observations_episode_change", args=[mine.episodes[0].pk])),
    "about": (
        ABOUT,
        lambda mine: f"{reverse('admin:observations_observation_changelist')}?about={mine.given.pk}&status=all",
    ),
    "trash": (TRASH, lambda _: reverse("admin:consolidation_operation_trash")),
    "aliases": (ALIASES, lambda _: reverse("admin:consolidation_alias_changelist")),
    "new alias": (NEW_ALIAS, lambda _: reverse("admin:consolidation_alias_new")),
    "learnt": (LEARNT, lambda _: reverse("admin:consolidation_cardinality_changelist")),
    "model": (MODEL, lambda _: reverse("admin:observations_modelcall_changelist")),
}


@pytest.mark.parametrize("page", sorted(OF_THE_ENGINE))
def test_a_page_of_the_engine_runs_a_fixed_number_of_queries(page: str, olga: Client) -> None:
    """STYLE 20: as above, for what promotions, summaries, aliases, prunes and the model add."""
    wanted, address = OF_THE_ENGINE[page]
    memory = engine()
    call(memory.scope)
    unusable(memory.scope, number=99)
    small = count(olga, address(memory))
    grow_engine(memory)
    assert count(olga, address(memory)) == small == wanted


def test_the_item_page_runs_a_fixed_number_of_queries_for_each_kind(olga: Client) -> None:
    """What rests on episodes reads those and the question they were asked in, and no evidence or uses."""
    memory = engine()
    for operation in memory.open:
        olga.get(item_url(operation))  # the first look marks it opened
        of_episodes = operation.kind in OF_EPISODES
        assert count(olga, item_url(operation)) == (ITEM_OF_EPISODES if of_episodes else ITEM), operation.kind


def test_the_item_page_runs_as_many_queries_for_two_sources_as_for_eight(mine: World, olga: Client) -> None:
    """The sources, their evidence and uses are read together."""
    many = [observe(f"Sources {number}", within=mine.scope, sources=["a://1", "a://2"]) for number in range(8)]
    large = propose(Kind.MERGE, many, approval=Approval.NEEDS_HUMAN, plan=mine.plan)
    assert count(olga, item_url(mine.merge)) == count(olga, item_url(large))

"""What holds of every plan, whatever the store holds: drawn stores, real PostgreSQL, the real planner.

Rows are compared by their external ids, so that the order they were written in cannot hide in their numbers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from consolidation import planner
from consolidation.models import Operation, Plan, PlanItem, Policy
from consolidation.operations import Kind, State
from observations.embedding import HASHING
from observations.models import Scope
from tests.building import LONG_AGO, observe, scope, tell
from tests.conftest import empty_the_store
from tests.scripted import ScriptedCompleter

pytestmark = pytest.mark.django_db(transaction=True)

PEOPLE, CITIES = ("Ana", "Bo"), ("Graz", "Linz", "Wels")
FRAMES = ("{0} lives in {1}", "{0} lives in {1}.", "{0} does not live in {1}", "{1} is where {0} lives")


@dataclass(frozen=True)
class Row:
    """One claim to be written; `at` makes every row's time its own."""

    at: int
    scope: int
    person: str
    city: str
    frame: int
    keyed: bool

    def write(self, within: Sequence[Scope]) -> int:
        text = FRAMES[self.frame].format(self.person, self.city)
        negated = self.frame == 2
        key = (self.person, "lives in", self.city) if self.keyed and not negated else ("", "", "")
        row = observe(
            text,
            within=within[self.scope],
            key=key,
            external_id=f"r{self.at}",
            created_at=LONG_AGO + timedelta(days=self.at),
            sources=[f"s://{self.at}"],
        )
        return row.pk


ROWS = st.lists(
    st.tuples(st.integers(0, 1), st.sampled_from(PEOPLE), st.sampled_from(CITIES), st.integers(0, 3), st.booleans()),
    min_size=2,
    max_size=9,
).map(lambda drawn: [Row(at, *values) for at, values in enumerate(drawn)])
FEW = settings(
    max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


def fresh(rows: Sequence[Row]) -> list[Scope]:
    """An empty store with these rows, written in this order, in two scopes."""
    empty_the_store()
    Policy.objects.create(pattern="*", body={"review_budget": None})
    within = [scope("team-a/u1"), scope("team-a/u2")]
    for row in rows:
        row.write(within)
    return within


def plan(within: Sequence[Scope], completer: ScriptedCompleter | None = None) -> Plan:
    return planner.plan(scopes=within, pattern="*", by="test", trigger="command", profile=HASHING, completer=completer)


def proposed(made: Plan) -> Counter[tuple[str, ...]]:
    """What a plan proposes, without a single number of a row."""
    operations = Operation.objects.filter(plan_items__plan=made).prefetch_related("sources__observation")
    found: Counter[tuple[str, ...]] = Counter()
    for one in operations:
        rows = [source.observation for source in one.sources.all() if source.observation is not None]
        names = sorted(row.external_id for row in rows)
        keeper = next((row.external_id for row in rows if row.pk == one.keeper_id), "")
        found[(one.kind, one.scope.name, one.approval, one.status, keeper, *names)] += 1
    return found


@FEW
@given(ROWS, st.randoms(use_true_random=False))
def test_a_plan_does_not_depend_on_the_order_rows_were_written_in(rows: list[Row], draw: object) -> None:
    """Deterministic, and independent of row order."""
    first = proposed(plan(fresh(rows)))
    shuffled = list(rows)
    draw.shuffle(shuffled)  # type: ignore[attr-defined]
    assert proposed(plan(fresh(shuffled))) == first


@FEW
@given(ROWS)
def test_planning_twice_gives_the_same_operations(rows: list[Row]) -> None:
    """C12: nothing new, nothing stale, the same ids in the same order."""
    within = fresh(rows)
    one, two = plan(within), plan(within)
    ids = [
        list(PlanItem.objects.filter(plan=made).order_by("position").values_list("operation")) for made in (one, two)
    ]
    assert ids[0] == ids[1]
    assert (two.figures["new"], two.figures["stale"]) == (0, 0)


@FEW
@given(ROWS)
def test_no_record_is_in_two_appliable_operations_and_every_operation_is_of_one_scope(rows: list[Row]) -> None:
    """DESIGN 4; C6, R90, R106."""
    made = plan(fresh(rows))
    taken: Counter[int] = Counter()
    for one in Operation.objects.filter(plan_items__plan=made).prefetch_related("sources__observation"):
        sources = [source.observation for source in one.sources.all() if source.observation is not None]
        assert {row.scope_id for row in sources} == {one.scope_id}
        if one.status in (State.PLANNED, State.NEEDS_HUMAN):
            taken.update(row.pk for row in sources)
    assert not [pk for pk, times in taken.items() if times > 1]


@FEW
@given(ROWS)
def test_no_automatic_merge_joins_what_differs_in_person_city_or_denial(rows: list[Row]) -> None:
    """DESIGN 5: drawn claims differ in exactly what must never be merged."""
    within = fresh(rows)
    made = plan(within)
    meaning = {(row.scope, f"r{row.at}"): (row.person, row.city, row.frame == 2) for row in rows}
    numbers = {one.pk: at for at, one in enumerate(within)}
    for one in Operation.objects.filter(plan_items__plan=made, kind=Kind.MERGE, status=State.PLANNED):
        names = one.sources.values_list("observation__external_id", flat=True)
        assert len({meaning[numbers[one.scope_id], str(name)] for name in names}) == 1


@FEW
@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 3)), min_size=3, max_size=8))
def test_planning_twice_with_a_model_asks_once_and_proposes_the_same(drawn: list[tuple[int, int]]) -> None:
    """Promotions of drawn episodes: the same operations, no second question, no root counted twice."""
    within = fresh([])
    for at, (number, root) in enumerate(drawn):
        tell(f"On day {at} Ana rowed to the mill.", within=within[number], root=f"r://{root}", session="s")
    words = "rowed to the mill"

    def said(request: object) -> dict[str, object]:
        labels = range(getattr(request, "text", "").count('{"label"'))
        quotes = [{"episode": label, "words": words} for label in labels]
        fact = {"text": "Ana rows to the mill", "subject": "Ana", "predicate": "rows to", "object": "the mill"}
        return {"facts": [{**fact, "supported_by": list(labels), "quotes": quotes}]}

    completer = ScriptedCompleter(by_purpose={"promote": said})
    plan(within, completer)
    asked = len(completer.requests)
    again = plan(within, completer)
    assert len(completer.requests) == asked
    assert (again.figures["new"], again.figures["stale"]) == (0, 0)
    for one in Operation.objects.filter(kind=Kind.PROMOTE).prefetch_related("sources__episode"):
        roots = {source.episode.root_source for source in one.sources.all() if source.episode is not None}
        assert one.product["roots"] == len(roots)
        assert (one.status == State.SKIPPED) == (len(roots) < 2)

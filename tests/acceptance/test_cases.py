"""Cases C6, C7, C10, C11, C12 and C13 whole, as CASES.md tells them: through the planner, the database and the doors
people use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from io import StringIO
from itertools import count

import numpy as np
import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import DatabaseError, transaction
from django.test import Client
from django.urls import reverse

from consolidation import planner, review, rollout, tasks
from consolidation.models import Operation, Plan, PlanItem, Planning, Policy
from consolidation.operations import Approval, Kind, State
from consolidation.runner import Outcome
from observations import outbox, retrieval, store
from observations import tasks as store_tasks
from observations.embedding import embedder
from observations.models import Observation, Scope, database_now
from observations.records import StatedBy, Status
from tests.acceptance import engine, world
from tests.acceptance.acting import apply, correct, derived_of, fresh, undo
from tests.building import observe, propose, scope, tell
from tests.desk import client_of, person
from tests.integration.planning import operations

pytestmark = pytest.mark.django_db(transaction=True)

LIVES = ("ann", "lives in")
_nights = count(1)


@pytest.fixture(autouse=True)
def _no_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    """No worker runs in these tests: nobody has to be woken."""
    monkeypatch.setattr(outbox, "wake", lambda: None)


def found(within: Scope, query: str) -> list[str]:
    """The texts a search of a scope gives, best first."""
    answer = retrieval.search(scope=within, query=query, k=50, call_site="search")
    return [hit.text for hit in answer.hits]


def plan(*, trigger: str = "schedule") -> Plan:
    return planner.plan(scopes=Scope.objects.all(), pattern="*", by="ann", trigger=trigger)


def alike(rows: Sequence[Observation], cosine: float) -> None:
    """Give rows vectors that all have this similarity to each other."""
    profile = embedder("hashing").profile
    vectors = np.zeros((len(rows), profile.dimensions), np.float32)
    vectors[:, 0] = np.sqrt(cosine)
    for number in range(len(rows)):
        vectors[number, number + 1] = np.sqrt(1 - cosine)
    bands = [np.zeros(16, dtype="<i8").tobytes()] * len(rows)
    with transaction.atomic():
        pairs = [(row.scope_id, row.pk) for row in rows]
        store.put_embeddings(profile=profile, rows=pairs, vectors=vectors, bands=bands)


# --- C6 --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "key", "cosine"),
    [
        ("Prefers short answers", ("ann", "prefers", "short answers"), 0.2),
        ("Prefers short answers", ("", "", ""), 0.2),
        ("Ann prefers {} answers", ("ann", "prefers", "answers"), 0.99),
        ("{} Prefers short answers in every mail she gets", ("", "", ""), 0.99),
    ],
    ids=["everything", "words", "subject and neighbours", "neighbours"],
)
def test_no_operation_holds_records_of_two_scopes_by_any_key(
    text: str, key: tuple[str, str, str], cosine: float
) -> None:
    """C6, R106: two people of one team, and a second project of one of them; what one scope holds twice is found."""
    names = ("team-a/u1", "team-a/u2", "team-a/u1/second")
    numbers = iter(["one", "two", "three", "four"])
    rows = [observe(text.format(next(numbers)), within=scope(name), key=key) for name in names]
    rows.append(observe(text.format(next(numbers)), within=scope(names[0]), key=key))
    alike(rows, cosine)
    made = operations(plan())
    assert made, "the two rows of one scope meet: the key works"
    for operation in made:
        assert set(operation.sources.values_list("observation_id", flat=True)) == {rows[0].pk, rows[3].pk}


def test_no_question_and_no_summary_holds_episodes_of_two_scopes_by_any_key() -> None:
    """C6, R90: one day, one session's name, one source and one wording in two scopes; each is asked about by itself."""
    mine, other = scope("team-a/u1"), scope("team-a/u2")
    engine.weeks(mine), engine.weeks(other)
    Policy.objects.create(pattern="*", body={"compact": True, "compact_after_days": 1})
    model = engine.whole_model()
    made = engine.plan(completer=model)
    asked = {(request.purpose, request.scope_id) for request in model.requests}
    assert asked == {(purpose, within.pk) for purpose in ("promote", "compact") for within in (mine, other)}
    for operation in operations(made):
        assert set(operation.sources.values_list("episode__scope_id", flat=True)) == {operation.scope_id}
    assert {operation.kind for operation in operations(made)} == {Kind.PROMOTE, Kind.COMPACT}


def test_a_row_without_a_scope_is_refused_and_so_is_a_change_of_scope() -> None:
    """C6: by the application itself, for observations and for episodes."""
    row, other = observe("Prefers short answers", within=scope()), scope("team-a/u2")
    told = tell("Morning!", within=scope())
    for kept in (row, told):
        model = type(kept)
        fields = [field.attname for field in model._meta.concrete_fields if field.attname not in ("id", "scope_id")]
        values = {**{name: getattr(kept, name) for name in fields}, "external_id": "without"}
        with pytest.raises(DatabaseError, match="scope_id"), transaction.atomic():
            model.objects.create(**values)
        with pytest.raises(DatabaseError, match=r"permission denied|immutable"), transaction.atomic():
            model.objects.filter(pk=kept.pk).update(scope=other)
        assert model.objects.get(pk=kept.pk).scope_id == row.scope_id


# --- C7 --------------------------------------------------------------------------------------------------------------

OPPOSED = [
    ("Guests may use the north car park after six", "Guests may not use the north car park after six"),
    ("The client makes 3 retries before it gives up", "The client makes 5 retries before it gives up"),
    ("Deliveries are let in before 10 at the north gate", "Deliveries are let in after 10 at the north gate"),
    ("The door is always locked in the evening", "The door is never locked in the evening"),
]


@pytest.mark.parametrize("texts", OPPOSED)
def test_opposite_claims_are_skipped_as_a_possible_contradiction_and_queued(texts: tuple[str, str]) -> None:
    """C7: no structured key, similarity 0.97; both rows stay."""
    rows = [observe(text, within=scope()) for text in texts]
    alike(rows, 0.97)
    made = plan()
    [item] = operations(made)
    assert (item.kind, item.status, item.approval) == (Kind.MERGE, State.SKIPPED, Approval.NEEDS_HUMAN)
    assert item.skipped_reason.startswith("possible contradiction")
    assert item in Operation.objects.awaiting_review()
    assert rollout.apply_plan(plan=made, by="ann", confirmed=True) == []
    assert Observation.objects.active().count() == 2
    page = client_of(person("root", superuser=True)).get(reverse("admin:consolidation_operation_changelist"))
    assert item.op_id in page.content.decode()


def test_the_control_pair_still_merges() -> None:
    """C7: the guard does not block everything."""
    key = ("guests", "may use", "north car park after six")
    texts = ("Guests may use the north car park after six", "Guests can use the north car park after six")
    rows = [observe(text, within=scope(), key=key) for text in texts]
    alike(rows, 0.97)
    assert [result.outcome for result in rollout.apply_plan(plan=plan(), by="ann")] == [Outcome.APPLIED]
    assert Observation.objects.active().count() == 1


# --- C10 -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("retention", [False, True], ids=["no retention policy", "a retention policy"])
def test_two_hundred_nights_of_planning_take_nothing_from_an_idle_scope(retention: bool) -> None:
    """C10, R47, R51, I13: never a user's word, never the sources of a row nobody used; every prune waits for a
    person.
    """
    within, said = scope(), database_now() - timedelta(days=400)
    user = [observe(text, within=within, stated_by=StatedBy.USER, created_at=said) for text in USERS]
    extracted = [observe(text, within=within, created_at=said) for text in EXTRACTED]
    unused_sources, unused = engine.merged(within, "lathe")
    used_sources, used = engine.merged(within, "crane")
    said_twice, users_own = engine.merged(within, "kettle", stated_by=StatedBy.USER)
    engine.use(used)
    engine.use(users_own)
    rules = [{"stated_by": "agent", "older_than_days": 200}] if retention else []
    Policy.objects.create(pattern="*", body={"prune": True, "retention": rules})
    before = world.snapshot()
    for night in range(20 if retention else 200):
        planner.plan(scopes=[within], pattern=within.name, by="schedule", trigger="schedule", window=f"night {night}")
    asked = Operation.objects.filter(kind=Kind.PRUNE)
    proposed = set(asked.values_list("sources__observation_id", flat=True))
    assert proposed >= {row.pk for row in used_sources}, "what is no longer needed is proposed"
    assert (proposed >= {row.pk for row in extracted}) == retention, "and what a policy names"
    assert proposed.isdisjoint(row.pk for row in [*user, *said_twice, *unused_sources, users_own])
    assert set(asked.values_list("status", "approval")) == {(State.NEEDS_HUMAN, Approval.NEEDS_HUMAN)}
    assert Plan.objects.filter(trigger="schedule").count() == (20 if retention else 200)
    after = [line for line in world.snapshot().splitlines() if not line.startswith(("operation", "event"))]
    assert after == [line for line in before.splitlines() if not line.startswith(("operation", "event"))]
    for row in [*user, *extracted, unused, used, users_own]:
        assert row.text in found(within, row.text or "")


def test_a_policy_that_archives_takes_nothing_of_a_users_and_nothing_by_a_schedule() -> None:
    """C10, R47: with decay, retention and pruning on, nightly and by the schedule's own task: what faded is proposed,
    never a user's word, and nothing has left the reads in the morning.
    """
    within, said = scope(), database_now() - timedelta(days=1500)
    user = [observe(text, within=within, stated_by=StatedBy.USER, created_at=said) for text in USERS]
    extracted = [observe(text, within=within, created_at=said) for text in EXTRACTED]
    rules = [{"stated_by": "agent", "older_than_days": 200}]
    Policy.objects.create(pattern="*", body={"archive": True, "prune": True, "retention": rules})
    for night in range(5):
        tasks.plan_scope(within.pk, f"night {night}")
    proposed = set(Operation.objects.values_list("kind", "sources__observation_id"))
    assert {pk for _, pk in proposed} == {row.pk for row in extracted}
    assert {kind for kind, _ in proposed} == {Kind.ARCHIVE, Kind.PRUNE}
    assert set(Observation.objects.active()) == {*user, *extracted}
    assert not Operation.objects.filter(status=State.APPLIED).exists()


USERS = (
    *("I am allergic to nuts", "My sister is called Ida", "Call me Bo", "I work from Turin on Fridays"),
    *("Never send me calendar invites", "I like my coffee black", "My desk is on floor three", "I ride a blue bike"),
)
EXTRACTED = (
    *("Standup takes place in the kitchen", "The printer needs a new drum", "Parcels arrive around noon"),
    *("Travel is booked by Mara", "The wiki has a page about badges", "Lunch is served until two"),
)


# --- C11 -------------------------------------------------------------------------------------------------------------


def test_after_a_correction_the_next_plan_asks_anew_and_the_old_approval_counts_for_nothing() -> None:
    """C11: the approval is void; the same merge of what stands now needs a new one."""
    within = scope()
    texts = ("Maria volunteers at the shelter downtown", "Maria volunteers at the shelter downtown happily")
    first, second = (observe(text, within=within) for text in texts)
    alike([first, second], 0.93)
    [merge] = operations(plan())
    review.approve(operation=merge, by="ann")
    corrected = Observation.objects.get(pk=correct(second, "Maria volunteers at the shelter downtown gladly"))
    alike([first, corrected], 0.93)
    stale = apply(merge)
    assert (stale.outcome, Observation.objects.active().count()) == (Outcome.STALE, 2)
    assert f"obs_{second.pk} was superseded by obs_{corrected.pk}" in stale.sentence
    [anew] = operations(plan())
    assert (anew.pk != merge.pk, anew.status) == (True, State.NEEDS_HUMAN)
    assert apply(anew).outcome == Outcome.REFUSED


# --- C12 -------------------------------------------------------------------------------------------------------------


def _by_the_button() -> None:
    root, _ = User.objects.get_or_create(username="root", is_staff=True, is_superuser=True)
    client = Client()
    client.force_login(root, backend="django.contrib.auth.backends.ModelBackend")
    answer = client.post(reverse("admin:consolidation_plan_new"), {"target": "pattern:*"}, follow=True)
    assert answer.status_code == 200
    if Planning.objects.filter(finished_at=None).exists():  # where a model is asked, a worker makes the plan
        store_tasks.sweep()
    assert not Planning.objects.filter(plan=None).exists()


def _by_the_schedule() -> None:
    for within in Scope.objects.all():
        tasks.plan_scope(within.pk, f"night {next(_nights)}")


def _by_the_command() -> None:
    call_command("consolidate", stdout=StringIO())


WAYS = {"the button": _by_the_button, "the schedule": _by_the_schedule, "the command": _by_the_command}


def _a_store_that_gives_every_kind() -> None:
    engine.a_store_for_every_kind()
    store_tasks.sweep()  # vectors that were asked for come first, or the sweep of a scheduled plan would compute them


@pytest.fixture
def with_a_model() -> Iterator[None]:
    """One that answers in the same way whichever door asks."""
    with engine.configured(engine.whole_model()):
        yield


@pytest.mark.usefixtures("with_a_model")
@pytest.mark.parametrize("way", WAYS.values(), ids=list(WAYS))
def test_a_dry_run_changes_no_row_no_counter_and_no_time_by_any_way_and_twice_is_once(way: Callable[[], None]) -> None:
    """C12, R98, I22: only plans, operations, a model's answers and the audit have new rows."""
    _a_store_that_gives_every_kind()
    before, earlier = engine.everything(), Operation.objects.count()
    assert {"observations_observation", "observations_lineage", "observations_use", "consolidation_verdict"} <= {
        *before
    }
    way()
    planned = list(Operation.objects.order_by("pk").values_list("pk", "op_id", "generation", "status"))
    assert len(planned) > earlier
    kinds = set(PlanItem.objects.values_list("operation__kind", "operation__status"))
    expected = {("merge", "planned"), ("merge", "needs_human"), ("merge", "skipped"), ("supersede", "needs_human")}
    expected |= {("promote", "planned"), ("compact", "planned"), ("archive", "planned"), ("prune", "needs_human")}
    assert expected <= kinds
    assert engine.everything() == before
    way()
    assert list(Operation.objects.order_by("pk").values_list("pk", "op_id", "generation", "status")) == planned
    assert engine.everything() == before


@pytest.mark.usefixtures("with_a_model")
def test_the_three_ways_give_the_same_items() -> None:
    """C12: no second pending copy, whichever door is used."""
    _a_store_that_gives_every_kind()
    items = []
    for way in WAYS.values():
        last = Plan.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
        way()
        items.append(set(PlanItem.objects.filter(plan_id__gt=last).values_list("operation_id", flat=True)))
    assert items[0] == items[1] == items[2]
    assert len(items[0]) > 4


def test_an_empty_store_says_nothing_to_do_at_the_command_and_after_the_button() -> None:
    """C12, R79: a scope without anything to consolidate."""
    observe("The relay sits in rack 4", within=scope())
    said = StringIO()
    call_command("consolidate", stdout=said)
    assert "nothing to do" in said.getvalue()
    _by_the_button()
    newest = Plan.objects.order_by("-pk")[0]
    client = Client()
    client.force_login(User.objects.get(username="root"), backend="django.contrib.auth.backends.ModelBackend")
    page = client.get(reverse("admin:consolidation_plan_printed", args=[newest.pk]))
    assert "nothing to do" in page.content.decode()


# --- C13 -------------------------------------------------------------------------------------------------------------


def test_undone_in_the_right_order_search_gives_exactly_what_was_there_before() -> None:
    """C13: their own text, dates, counters and sources; what was made of them is not found any more."""
    within = scope()
    texts = ("The relay sits in rack 4", "The relay sits in rack four", "Rack 4 is where the relay sits")
    rows = [observe(text, within=within, sources=[f"doc://{number}"]) for number, text in enumerate(texts)]
    engine.use(rows[0])
    columns = ("text", "created_at", "recorded_at", "confidence", "valid_from", "valid_to", "uses_inherited", "status")
    before = list(Observation.objects.order_by("pk").values(*columns))
    first = propose(Kind.MERGE, rows[:2])
    apply(first)
    second = propose(Kind.MERGE, [derived_of(first), rows[2]])
    apply(second)
    assert len(found(within, "relay rack")) == 1
    assert undo(first).outcome == Outcome.REFUSED
    assert [undo(second).outcome, undo(first).outcome] == [Outcome.UNDONE, Outcome.UNDONE]
    assert sorted(found(within, "relay rack")) == sorted(texts)
    kept = Observation.objects.filter(pk__in=[row.pk for row in rows]).order_by("pk")
    assert list(kept.values(*columns)) == before
    for number, row in enumerate(kept):
        assert set(row.evidence.values_list("source_uri", flat=True)) == {f"doc://{number}"}
        assert row.uses.exclude(call_site="search").count() == (1 if number == 0 else 0)
    assert {derived_of(one).status for one in (first, second)} == {Status.RETRACTED}
    assert fresh(second).status == State.UNDONE

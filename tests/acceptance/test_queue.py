"""The queue with a real broker and a real worker: nothing is lost when either dies, and nobody waits for it (C17,
E1-E3).
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from celery import current_app
from django.db import connection
from pytest_django.plugin import DjangoDbBlocker

from consolidation.models import Operation, Plan, PlanItem
from observations import outbox
from observations.models import Embedding, Observation, Outbox, database_now
from tests.brokers import DEAD_WAYS, Worker, dead_broker, own_broker, own_valkey, run_python, until, wake_at, worker
from tests.building import observe, scope
from tests.conftest import superuser

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

# One process per broker writes and reads three times and says how long each took; forked, because Django's start costs
# more.
WRITE_AND_READ = """
import json, os, sys, time
from celery import current_app
from django.db import transaction
from observations import store
from observations.models import Observation
from observations.records import Claim, WrittenBy

def write_and_read(name):
    within = store.open_scope(name=name)
    for number in range(3):
        began = time.monotonic()
        with transaction.atomic():
            claim = Claim(text=f"The kettle is on shelf {number}", external_id=f"k{number}")
            store.add_observations(scope=within, claims=[claim], written_by=WrittenBy.DELIBERATE)
        wrote = time.monotonic()
        assert Observation.objects.active().in_scope(within).count() == number + 1
        yield [wrote - began, time.monotonic() - wrote]

for name, broker in BROKERS.items():
    child = os.fork()
    if not child:
        current_app.conf.broker_url = broker
        print(json.dumps([name, list(write_and_read(name))]), flush=True)
        sys.exit()
    assert os.waitpid(child, 0)[1] == 0
"""


def write_and_read(**brokers: str) -> dict[str, list[list[float]]]:
    """Seconds of each write and each read, by scope, with that broker."""
    said = run_python(WRITE_AND_READ.replace("BROKERS", repr(brokers)), broker=own_broker(lane=1))
    return dict(json.loads(line) for line in said.splitlines())


@pytest.fixture(scope="module")
def broker() -> str:
    """An address of its own, so that no other process of the suite takes this one's wake-ups."""
    return own_broker()


@pytest.fixture
def quiet_broker() -> str:
    """One that the worker of the other tests does not listen at."""
    return own_broker(lane=1)


@pytest.fixture(scope="module")
def one_worker(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker, broker: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Worker]:
    """One worker for the tests that do not end it; starting one takes seconds."""
    with django_db_blocker.unblock(), worker(broker=broker, folder=tmp_path_factory.mktemp("worker")) as started:
        yield started


@pytest.fixture
def running(transactional_db: None, one_worker: Worker, broker: str) -> Iterator[Worker]:
    """That worker, at rest before and after each test: a wake-up of one test must not take the work of the next."""
    at_rest(one_worker, broker)
    yield one_worker
    at_rest(one_worker, broker)


def at_rest(running: Worker, broker: str) -> None:
    """Wait until a wake-up sent now is done with: the worker has one child, which takes them in their order."""
    done = wake_at(broker)
    until(lambda: done in running.said, but=lambda: running.said)


def test_a_broker_that_is_down_delays_no_write_and_loses_none(quiet_broker: str, tmp_path: Path) -> None:
    """E3: a dead socket, a refused port and a broker that never answers; each write and each read takes under a second,
    the second write does not even try, and a worker does the work once the broker is back.
    """
    with contextlib.ExitStack() as stack:
        folders = {way: tmp_path / way.replace(" ", "-") for way in DEAD_WAYS}
        for folder in folders.values():
            folder.mkdir()
        dead = {way: stack.enter_context(dead_broker(way, folder)) for way, folder in folders.items()}
        took = write_and_read(**dead)
    for way, times in took.items():
        print(f"{way}: {[[round(seconds, 3) for seconds in pair] for pair in times]}")
        assert max(max(pair) for pair in times) < 1.0, (way, times)
    assert set(took) == set(DEAD_WAYS)
    assert Outbox.objects.filter(task="embed", done_at=None).count() == 3 * len(DEAD_WAYS)
    assert not Embedding.objects.exists()

    with worker(broker=quiet_broker, folder=tmp_path) as running:
        until(lambda: not Outbox.objects.filter(done_at=None).exists(), but=lambda: running.said)
    assert Embedding.objects.count() == Observation.objects.count() == 3 * len(DEAD_WAYS)
    assert set(Outbox.objects.filter(task="embed").values_list("attempts", flat=True)) == {1}


def test_a_broker_killed_and_emptied_under_a_worker_loses_nothing(tmp_path: Path) -> None:
    """E3: the broker dies with a wake-up in it and comes back empty; the worker finds it again, and the next sweep the
    work.
    """
    with tempfile.TemporaryDirectory(prefix="vk-") as short:  # a socket's path has to be short
        place = Path(short) / "b.sock"
        address = f"redis+socket://{place}?virtual_host=0"
        with own_valkey(place) as broker:
            write_and_read(before=address)
            broker.kill()
            assert broker.wait(10) == -signal.SIGKILL
        place.unlink()
        with own_valkey(place) as broker, worker(broker=address, folder=tmp_path) as running:
            until(lambda: Embedding.objects.count() == 3, but=lambda: running.said)  # taken at its start
            broker.kill()
            broker.wait(10)
            took = write_and_read(meanwhile=address)["meanwhile"]
            assert max(max(pair) for pair in took) < 1.0, took
            place.unlink()
            with own_valkey(place):
                wake_at(address)  # what beat sends every thirty seconds
                until(lambda: Embedding.objects.count() == 6, but=lambda: running.said)
    assert not Outbox.objects.filter(done_at=None).exists()


def test_a_wake_up_is_enough_for_a_running_worker(broker: str, running: Worker) -> None:
    """The write's own message is what starts the work; no beat runs here."""
    write_and_read(kitchen=broker)
    until(lambda: Embedding.objects.count() == 3, but=lambda: running.said)


def duplicates() -> Observation:
    """A scope with something to plan, and its embedding work out of the way."""
    within = scope("team-a/u1")
    observe("The relay listens on port 4411", within=within)
    last = observe("The relay listens on port 4411.", within=within)
    Outbox.objects.update(done_at=database_now())
    return last


def plan_later(within: int) -> Outbox:
    outbox.enqueue_in_scopes(task="plan_scope", scope_ids=[within], key="schedule", payload={"window": "2026-03-01T02"})
    return Outbox.objects.get(task="plan_scope")


def lapse() -> None:
    """What thirty seconds would do: a lease nobody renews runs out."""
    Outbox.objects.filter(done_at=None).update(due_at=database_now())


@contextlib.contextmanager
def storing_no_plan() -> Iterator[psycopg.Connection]:
    """Until this connection rolls back, or the block ends, whoever stores a plan stands in the middle of it.

    Locked before a worker starts, whose first sweep would be quicker.
    """
    with superuser() as admin:
        admin.autocommit = False
        admin.execute("LOCK TABLE consolidation_planitem IN ACCESS EXCLUSIVE MODE")
        yield admin
        admin.rollback()


def waits_for_a_lock() -> bool:
    """Whether a process of the application stands in the middle of the transaction that stores a plan."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'consolidation_planitem'::regclass"
            " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
        )
        row = cursor.fetchone()
    return bool(row and row[0])


def whole_plans() -> int:
    """How many plans there are; each must have its item."""
    plans = list(Plan.objects.values_list("pk", flat=True))
    assert PlanItem.objects.values("plan").distinct().count() == len(plans)
    return len(plans)


def test_a_workers_child_killed_in_the_middle_loses_nothing_and_does_nothing_twice(
    broker: str, running: Worker
) -> None:
    """C17, E2: the child stands inside the transaction that stores the plan when it is killed; its parent says by which
    signal it ended.
    """
    row = plan_later(duplicates().scope_id)
    with storing_no_plan():
        wake_at(broker)
        until(waits_for_a_lock, but=lambda: running.said)
        child = running.child()
        os.kill(child, signal.SIGKILL)
        until(lambda: f"pid:{child} exited with 'signal 9 (SIGKILL)'" in running.said, but=lambda: running.said)
    row.refresh_from_db()
    assert (row.attempts, row.done_at, Plan.objects.count()) == (1, None, 0)

    lapse()
    wake_at(broker)
    until(lambda: Outbox.objects.filter(pk=row.pk, done_at__isnull=False), but=lambda: running.said)
    wake_at(broker)
    at_rest(running, broker)
    row.refresh_from_db()
    assert row.attempts == 2
    assert whole_plans() == 1
    assert Operation.objects.count() == 1


def test_a_killed_worker_leaves_its_work_to_the_next_one(quiet_broker: str, tmp_path: Path) -> None:
    """E2: kill -9 of the worker and its child in the middle; exit status -9; a new worker does the work once, at its
    start.
    """
    row = plan_later(duplicates().scope_id)
    with storing_no_plan(), worker(broker=quiet_broker, folder=tmp_path) as running:
        wake_at(quiet_broker)
        until(waits_for_a_lock, but=lambda: running.said)
        assert running.kill() == -signal.SIGKILL
    lapse()
    with worker(broker=quiet_broker, folder=tmp_path) as second:
        until(lambda: Outbox.objects.filter(pk=row.pk, done_at__isnull=False), but=lambda: second.said)
    assert whole_plans() == 1


def test_a_message_sent_five_times_makes_one_plan(broker: str, running: Worker) -> None:
    """E1, C17: the task itself, not only its wake-up, delivered again and again."""
    within, task = duplicates().scope_id, "consolidation.tasks.plan_scope"
    with current_app.connection_for_write(broker) as sender:
        ids = [
            current_app.send_task(task, args=[within, "2026-03-01T02"], connection=sender, ignore_result=True).id
            for _ in range(5)
        ]
    ended = [f"{task}[{one}] succeeded" for one in ids]
    until(lambda: all(line in running.said for line in ended), but=lambda: running.said)
    assert whole_plans() == 1
    lines = [line for line in running.said.splitlines() if "succeeded" in line and any(one in line for one in ids)]
    assert sum("already done" in line for line in lines) == 4


def test_a_stopped_worker_ends_its_task_first(quiet_broker: str, tmp_path: Path) -> None:
    """An ordered stop in the middle of a task: the plan is whole, and nothing is left to be delivered again."""
    row = plan_later(duplicates().scope_id)
    with storing_no_plan() as admin, worker(broker=quiet_broker, folder=tmp_path) as running:
        wake_at(quiet_broker)
        until(waits_for_a_lock, but=lambda: running.said)
        running.process.terminate()
        admin.rollback()
        assert running.process.wait(60) == 0
    row.refresh_from_db()
    assert row.done_at is not None
    assert whole_plans() == 1


def test_a_message_from_the_schedule_applies_nothing(broker: str, running: Worker) -> None:
    """DESIGN 7: an admin may add any entry to beat's table; the header beat puts on its messages is what refuses it."""
    task = "consolidation.tasks.apply_plan"
    with current_app.connection_for_write(broker) as sender:
        sent = current_app.send_task(
            task, args=[1, "olga"], headers={"periodic_task_name": "every night"}, connection=sender, ignore_result=True
        )
    until(lambda: f"{task}[{sent.id}] succeeded" in running.said, but=lambda: running.said)
    [line] = [line for line in running.said.splitlines() if f"[{sent.id}] succeeded" in line]
    assert "refused: nothing that writes memory runs from the schedule" in line
    assert not Outbox.objects.filter(task="apply_plan").exists()

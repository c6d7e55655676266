"""The outbox: work is a row, leased while it is done, tried again when it fails, stopped when it cannot succeed (E1,
E2, E3, I23).
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from itertools import pairwise

import pytest
from celery import current_app
from django.db import connection, transaction
from kombu.exceptions import OperationalError as kombu_error
from redis.exceptions import RedisError

from observations import outbox
from observations.models import Outbox, Scope, database_now
from tests.brokers import until
from tests.building import scope

WORK = "test_work"
SECRET = "the patient said she moved to Lyon"  # stands for memory text


@pytest.fixture
def handled(monkeypatch: pytest.MonkeyPatch) -> list[outbox.Job]:
    """Every job handed to a handler that succeeds; the other tasks have no handler here."""
    seen: list[outbox.Job] = []

    def take(job: outbox.Job) -> str:
        seen.append(job)
        return "done"

    monkeypatch.setattr(outbox, "_handlers", {WORK: take})
    monkeypatch.setattr(outbox, "wake", lambda: None)
    return seen


def failing(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """Let every piece of work fail."""

    def fail(job: outbox.Job) -> str:
        raise error

    monkeypatch.setattr(outbox, "_handlers", {WORK: fail})


def enqueue(key: str = "k", *, within: Scope | None = None) -> Outbox:
    outbox.enqueue(task=WORK, scope_id=within.pk if within else None, key=key, payload={"n": 1})
    return Outbox.objects.filter(task=WORK, key=key).latest("id")


def lapse() -> None:
    """Let every lease and every delay run out."""
    Outbox.objects.filter(done_at=None).update(due_at=database_now())


@pytest.mark.django_db(transaction=True)
def test_a_row_is_written_in_its_causes_transaction_and_goes_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is to be done for a change that was rolled back, and nobody is woken."""
    woken: list[int] = []
    monkeypatch.setattr(outbox, "wake", lambda: woken.append(1))
    with transaction.atomic():
        outbox.enqueue(task=WORK, scope_id=None, key="k", payload={})
        transaction.set_rollback(True)
    assert not Outbox.objects.filter(task=WORK).exists()
    assert woken == []


@pytest.mark.django_db
def test_an_open_row_of_the_same_work_is_kept_and_a_finished_one_is_not_in_the_way(handled: list[outbox.Job]) -> None:
    first, second = enqueue(), enqueue()
    assert first.pk == second.pk
    assert outbox.work() == 1
    assert enqueue().pk != first.pk


@pytest.mark.django_db
def test_the_same_key_in_two_scopes_is_two_pieces_of_work(handled: list[outbox.Job]) -> None:
    one, two = scope("a/1"), scope("a/2")
    outbox.enqueue_in_scopes(task=WORK, scope_ids=[one.pk, two.pk], key="k", payload={})
    outbox.enqueue_in_scopes(task=WORK, scope_ids=[one.pk, two.pk], key="k", payload={})
    assert outbox.work() == 2
    assert {job.scope for job in handled} == {one.pk, two.pk}


@pytest.mark.django_db
def test_done_work_is_marked_done_and_not_done_again(handled: list[outbox.Job]) -> None:
    """E1: delivered five times, done once."""
    row = enqueue()
    assert [outbox.work() for _ in range(5)] == [1, 0, 0, 0, 0]
    row.refresh_from_db()
    assert row.done_at is not None
    assert (row.attempts, row.last_error) == (1, "")


@pytest.mark.django_db
def test_work_due_later_waits_for_its_time(handled: list[outbox.Job]) -> None:
    outbox.enqueue(task=WORK, scope_id=None, key="k", payload={}, due_at=database_now() + timedelta(days=30))
    assert outbox.work() == 0


@pytest.mark.django_db
def test_a_task_this_process_does_not_know_is_left_alone(handled: list[outbox.Job]) -> None:
    outbox.enqueue(task="from_a_newer_version", scope_id=None, key="k", payload={})
    assert outbox.work() == 0
    assert Outbox.objects.get(task="from_a_newer_version").attempts == 0


@pytest.mark.django_db
def test_a_failure_is_tried_again_with_a_growing_delay_and_stops_after_five(
    handled: list[outbox.Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    """E2: a poison row stops, and the rows behind it go on."""
    failing(monkeypatch, ValueError())
    row, delays = enqueue(), []
    for _ in range(5):
        assert outbox.work() == 1
        row.refresh_from_db()
        delays.append(round((row.due_at - database_now()).total_seconds()))
        lapse()
    assert delays == [30, 120, 480, 1920, 0]
    assert outbox.work() == 0
    assert (row.done_at, row.attempts) == (None, 5)
    assert outbox.backlog().stopped == 1


@pytest.mark.django_db
def test_one_failing_row_does_not_keep_the_others_waiting(
    handled: list[outbox.Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    def choosy(job: outbox.Job) -> str:
        if job.key == "bad":
            raise ValueError
        return "done"

    monkeypatch.setattr(outbox, "_handlers", {WORK: choosy})
    enqueue("bad"), enqueue("good")
    assert outbox.work() == 2
    assert Outbox.objects.get(key="good").done_at is not None


@pytest.mark.django_db
def test_a_failure_says_what_it_was_without_a_word_of_memory(
    handled: list[outbox.Job], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A database's message holds the failing row; neither the row's error nor the log repeats it."""
    failing(monkeypatch, ValueError(f"Failing row contains ({SECRET})"))
    with caplog.at_level(logging.DEBUG):
        row = enqueue()
        outbox.work()
    row.refresh_from_db()
    assert row.last_error.startswith("ValueError: ")
    assert "test_outbox.py" in caplog.text
    assert SECRET not in row.last_error + caplog.text


@pytest.mark.django_db
def test_asking_again_gives_stopped_work_its_attempts_back(
    handled: list[outbox.Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    row = enqueue()
    Outbox.objects.filter(pk=row.pk).update(attempts=outbox.MAX_ATTEMPTS, due_at=database_now())
    assert outbox.work() == 0
    assert enqueue().pk == row.pk
    assert outbox.work() == 1


@pytest.mark.django_db
def test_a_worker_that_starts_gives_stopped_work_one_more_attempt(handled: list[outbox.Job]) -> None:
    row = enqueue()
    Outbox.objects.filter(pk=row.pk).update(attempts=outbox.MAX_ATTEMPTS, due_at=database_now())
    assert outbox.revive() == 1
    assert outbox.work() == 1


@pytest.mark.django_db
def test_work_that_has_to_wait_uses_no_attempt_up(handled: list[outbox.Job], monkeypatch: pytest.MonkeyPatch) -> None:
    failing(monkeypatch, outbox.NotYet("the scope is on hold"))
    row = enqueue()
    for _ in range(7):
        assert outbox.work() == 1
        lapse()
    row.refresh_from_db()
    assert (row.attempts, row.last_error, row.done_at) == (0, "waits: the scope is on hold", None)


@pytest.mark.django_db
def test_work_that_cannot_succeed_is_not_tried_again(
    handled: list[outbox.Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    failing(monkeypatch, outbox.Hopeless("the plan is too wide"))
    row = enqueue()
    outbox.work()
    row.refresh_from_db()
    assert row.done_at is not None
    assert row.last_error == "refused: the plan is too wide"


@pytest.mark.django_db
def test_finished_rows_are_forgotten_after_a_month_and_open_ones_never(handled: list[outbox.Job]) -> None:
    old, open_row, fresh = enqueue("old"), enqueue("open"), enqueue("fresh")
    long_ago = database_now() - timedelta(days=outbox.KEPT_DAYS + 1)
    Outbox.objects.filter(pk=old.pk).update(done_at=long_ago)
    Outbox.objects.filter(pk=open_row.pk).update(created_at=long_ago)
    Outbox.objects.filter(pk=fresh.pk).update(done_at=database_now())
    assert outbox.age() == 1
    assert set(Outbox.objects.values_list("key", flat=True)) == {"open", "fresh"}


def in_threads(number: int, act: Callable[[], object]) -> None:
    """Run an act in so many threads at once, each with its own database connection."""
    gate = threading.Barrier(number)

    def run() -> None:
        try:
            gate.wait()
            act()
        finally:
            connection.close()

    threads = [threading.Thread(target=run) for _ in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.mark.django_db(transaction=True)
def test_four_workers_at_once_do_every_row_once(handled: list[outbox.Job]) -> None:
    """C17, E1: SKIP LOCKED and the lease give each row to one of them."""
    for number in range(40):
        enqueue(str(number))
    in_threads(4, outbox.work)
    assert sorted(int(job.key) for job in handled) == list(range(40))
    assert not Outbox.objects.filter(done_at=None).exists()


@pytest.mark.django_db(transaction=True)
def test_one_message_delivered_four_times_at_once_is_done_once(
    handled: list[outbox.Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    """C17: the other deliveries end as 'already running'."""
    release, said, jobs = threading.Event(), [], []

    def slow(job: outbox.Job) -> str:
        jobs.append(job)
        release.wait(10)
        return "done"

    monkeypatch.setattr(outbox, "_handlers", {WORK: slow})

    def deliver() -> None:
        said.append(outbox.perform(task=WORK, scope_id=None, key="k", payload={}))
        if len(said) == 3:
            release.set()

    in_threads(4, deliver)
    assert len(jobs) == 1
    assert sorted(said) == [outbox.ALREADY_RUNNING] * 3 + ["done"]


@pytest.mark.django_db(transaction=True)
def test_a_lease_is_renewed_while_its_work_runs(handled: list[outbox.Job], monkeypatch: pytest.MonkeyPatch) -> None:
    """C17: the message comes back long after the lease, while the first run still works."""
    monkeypatch.setattr(outbox, "LEASE_SECONDS", 0.6)
    monkeypatch.setattr(outbox, "RENEW_SECONDS", 0.1)
    second: list[str] = []

    def slow(job: outbox.Job) -> str:
        threading.Event().wait(1.5)
        second.append(outbox.perform(task=WORK, scope_id=None, key="k", payload={}))
        return "done"

    monkeypatch.setattr(outbox, "_handlers", {WORK: slow})
    assert outbox.perform(task=WORK, scope_id=None, key="k", payload={}) == "done"
    assert second == [outbox.ALREADY_RUNNING]
    assert Outbox.objects.get(task=WORK).attempts == 1


@pytest.mark.django_db
def test_a_lease_that_was_lost_cannot_finish_the_row(handled: list[outbox.Job]) -> None:
    """A worker that was thought dead comes back: its row belongs to the later lease."""
    row = enqueue()
    first = outbox._lease(tasks=[WORK])
    assert first is not None
    lapse()
    second = outbox._lease(tasks=[WORK])
    assert second is not None
    outbox._finish(first)
    row.refresh_from_db()
    assert row.done_at is None
    outbox._finish(second)
    row.refresh_from_db()
    assert row.done_at is not None


@pytest.mark.django_db
def test_a_killed_workers_row_is_free_again_within_thirty_seconds(handled: list[outbox.Job]) -> None:
    """E2: with the sweep every 30 seconds, work is lost to a kill for a minute at most."""
    row = enqueue()
    assert outbox._lease(tasks=[WORK]) is not None
    row.refresh_from_db()
    assert timedelta(0) < row.due_at - database_now() <= timedelta(seconds=30)


@pytest.mark.django_db
def test_a_sweep_leaves_a_sign_that_a_worker_was_there(handled: list[outbox.Job]) -> None:
    assert outbox.last_run(task=outbox.SWEEP) is None
    outbox.work()
    first = outbox.last_run(task=outbox.SWEEP)
    outbox.work()
    second = outbox.last_run(task=outbox.SWEEP)
    assert first is not None
    assert second is not None
    assert second[0] > first[0]
    assert Outbox.objects.filter(task=outbox.SWEEP).count() == 1


@pytest.mark.django_db
def test_a_sweep_with_more_to_do_asks_for_one_more_worker(
    handled: list[outbox.Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    woken: list[int] = []
    monkeypatch.setattr(outbox, "wake", lambda: woken.append(1))
    for number in range(5):
        outbox._insert(task=WORK, scope_ids=[None], key=str(number), payload={}, due_at=None)
    assert outbox.work() == 5
    assert woken == [1]


@pytest.fixture
def awake(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "_quiet_until", 0.0)


def settled() -> None:
    """Wait until no wake-up is being sent."""
    with outbox._sending:
        pass


@pytest.mark.usefixtures("awake")
@pytest.mark.parametrize(
    "error", [OSError(), kombu_error("refused"), ValueError("no such transport"), RedisError("OOM")]
)
def test_a_wake_up_never_raises_whatever_a_broker_does(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(current_app, "send_task", fail)
    assert outbox.send_wake() is False


@pytest.mark.usefixtures("awake")
def test_after_a_failure_no_wake_up_is_tried_for_thirty_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []

    def fail(*_: object, **__: object) -> None:
        tried.append(1)
        raise OSError

    monkeypatch.setattr(current_app, "send_task", fail)
    for _ in range(5):
        outbox.wake()
        settled()
    assert len(tried) == 1
    monkeypatch.setattr(outbox, "_quiet_until", outbox._quiet_until - outbox.QUIET_SECONDS)
    outbox.wake()
    settled()
    assert len(tried) == 2


@pytest.mark.usefixtures("awake")
def test_a_wake_up_does_not_wait_for_a_slow_broker_and_many_become_few(monkeypatch: pytest.MonkeyPatch) -> None:
    """An import of a thousand batches does not send a thousand messages, and waits for none."""
    sent: list[int] = []

    def slow(*_: object, **__: object) -> None:
        time.sleep(0.2)
        sent.append(1)

    monkeypatch.setattr(current_app, "send_task", slow)
    began = time.monotonic()
    for _ in range(1000):
        outbox.wake()
    assert time.monotonic() - began < 0.15
    settled()
    time.sleep(0.05)
    settled()
    assert 1 <= len(sent) <= 2


@pytest.mark.usefixtures("awake")
def test_however_often_it_is_asked_few_messages_are_sent_and_the_last_comes_after_the_last_asking(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Sending a message costs as much as a small write: a thousand writes do not send a thousand."""
    sent: list[float] = []
    monkeypatch.setattr(current_app, "send_task", lambda *_, **__: sent.append(time.monotonic()))
    began = time.monotonic()
    while time.monotonic() < began + 1.2 * outbox.WAKE_EVERY:
        asked = time.monotonic()
        outbox.wake()
        time.sleep(0.01)
    settled()
    assert sent[-1] >= asked
    assert len(sent) <= 2 + (time.monotonic() - began) / outbox.WAKE_EVERY
    assert all(later - earlier >= 0.9 * outbox.WAKE_EVERY for earlier, later in pairwise(sent))


@pytest.mark.usefixtures("awake")
def test_when_no_thread_could_be_started_the_next_asking_sends(monkeypatch: pytest.MonkeyPatch) -> None:
    """A full process loses one wake-up, and not every one until it ends."""
    sent: list[int] = []
    monkeypatch.setattr(current_app, "send_task", lambda *_, **__: sent.append(1))

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as full:
        full.setattr(threading.Thread, "start", refuse)
        outbox.wake()
    outbox.wake()
    settled()
    assert sent


@pytest.mark.usefixtures("awake")
def test_a_process_forked_while_a_thread_asks_does_not_wait_for_it() -> None:
    """A child has none of its parent's threads, so nobody there would let go of what one of them held."""
    with outbox._asked._cond:  # type: ignore[attr-defined]  # as while a thread asks
        child = os.fork()
        if child == 0:
            os._exit(0)
    try:
        until(lambda: os.waitpid(child, os.WNOHANG)[0], seconds=20)
    except AssertionError:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        raise


@pytest.mark.usefixtures("awake")
def test_a_message_carries_nothing_and_keeps_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    """DESIGN 7: a message is only a wake-up."""
    seen: list[tuple[tuple[object, ...], dict[str, object]]] = []
    monkeypatch.setattr(current_app, "send_task", lambda *args, **options: seen.append((args, options)))
    outbox.send_wake()
    [(args, options)] = seen
    assert args == ("observations.tasks.sweep",)
    assert options["ignore_result"] is True
    assert "args" not in options
    assert "kwargs" not in options

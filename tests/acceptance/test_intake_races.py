"""Two at once on one scope: two workers, a worker that lost its lease, and somebody who writes the same by hand (C17).

Each on a backend of its own. Whatever the schedule, the store is what one after the other would have made of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from django.db import transaction

from consolidation import invariants
from observations import store
from observations.ingest.background import running
from observations.models import IntakeRun, Observation, Scope
from observations.records import Claim, EvidenceRef, Status, WrittenBy
from tests.acceptance import intake_world as world
from tests.acceptance.actors import together
from tests.intaking import HASHING

pytestmark = pytest.mark.django_db(transaction=True)

SCHEDULES = 8


def _reports(results: list[object]) -> list[running.RunReport]:
    for result in results:
        assert isinstance(result, running.RunReport), result
    return results  # type: ignore[return-value]


@pytest.fixture
def undisturbed() -> list[str]:
    """What one run makes of the world."""
    here = world.build()
    world.act(here)
    return world.dump(here)


def test_of_two_workers_on_one_scope_one_reads_and_the_other_says_already_running(
    undisturbed: list[str], show: Callable[[str], None]
) -> None:
    seen: Counter[str] = Counter()
    for seed in range(SCHEDULES):
        here = world.build()
        reports = _reports(together(seed, lambda here=here: world.act(here), lambda here=here: world.act(here)))  # type: ignore[misc]
        states = sorted(str(report.state) for report in reports)
        assert states in (["already running", "done"], ["done", "nothing to do"])
        seen[states[0]] += 1
        assert world.dump(here) == undisturbed
        assert IntakeRun.objects.filter(scope=here, trigger="hand").exclude(by="").count() == 1
    show(f"two workers on one scope, {SCHEDULES} schedules: {dict(seen)}, the same store each time")
    assert [str(found) for found in invariants.check()] == []


def _without_a_lease(here: Scope) -> running.RunReport:
    """As a worker whose lease another took over: it is past the door, and only the storing transaction can stop it."""
    return running.run_taken(scope=here, trigger="turns", by="test", completer=world.scripted(), embedder=HASHING)


def test_two_workers_that_both_believe_to_hold_the_lease_store_a_batch_once(
    undisturbed: list[str], show: Callable[[str], None]
) -> None:
    """The lease only saves work. What keeps a batch from being stored twice is in the transaction that stores it."""
    seen: Counter[str] = Counter()
    for seed in range(SCHEDULES):
        here = world.build()
        reports = _reports(
            together(seed, lambda here=here: _without_a_lease(here), lambda here=here: _without_a_lease(here))  # type: ignore[misc]
        )
        seen.update(str(report.state) for report in reports)
        assert sum(report.turns for report in reports) == 7
        assert world.dump(here) == undisturbed
    show(f"two workers past the lease, {SCHEDULES} schedules: {dict(seen)}, each batch stored once")
    assert set(seen) <= {"done", "interrupted", "nothing to do"}
    assert [str(found) for found in invariants.check()] == []


def _says_by_hand(here: Scope, text: str) -> int | None:
    """What a deliberate write does: look for the text and add it, behind the lock of the text."""
    with transaction.atomic():
        store.lock_scope(scope_id=here.pk, cause="test")
        key = store.key64(text.casefold())
        store.lock_texts(scope_id=here.pk, text_keys=[key])
        known = Observation.objects.active().in_scope(here).filter(text_key=key).first()
        if known is not None:
            return known.pk
        claim = Claim(text=text, external_id="by hand", evidence=(EvidenceRef("test://hand"),))
        return store.add_observations(scope=here, claims=[claim], written_by=WrittenBy.DELIBERATE)[0].id


def test_a_text_that_is_written_by_hand_while_turns_are_read_is_one_row() -> None:
    """One active row of a text, whoever was first."""
    first: Counter[str] = Counter()
    for seed in range(SCHEDULES):
        here = world.build()
        results = together(
            seed,
            lambda here=here: world.act(here),  # type: ignore[misc]
            lambda here=here: _says_by_hand(here, world.LIFT.casefold()),  # type: ignore[misc]
        )
        assert not [each for each in results if isinstance(each, Exception)], results
        rows = Observation.objects.filter(scope=here, status=Status.ACTIVE, text__iexact=world.LIFT)
        assert [row.pk for row in rows] == [results[1]]
        first.update(row.written_by for row in rows)
        assert rows[0].evidence.filter(episode__isnull=False).count() == 1
    assert sum(first.values()) == SCHEDULES

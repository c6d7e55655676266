"""Taking back what the background replaced: killed at every statement, it is wholly done or not done; against a writer
that comes at the same moment, one of two sound ends (C17, R56). Naive ways of doing it must fail the same examination.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count

import pytest
from django.db import transaction

from consolidation import invariants
from observations import ingest, store
from observations.models import Event, Observation, Scope
from observations.records import Claim, Status
from tests.acceptance import intake_world as world
from tests.acceptance.actors import together
from tests.acceptance.boundaries import run_in_child
from tests.building import scope
from tests.conftest import superuser
from tests.intaking import active, deciding, enabled, model, read, the, told

pytestmark = pytest.mark.django_db(transaction=True)

FEWEST_STATEMENTS = 20  # of one taking back; a smaller number means that the count itself broke
SCHEDULES = 8
_numbers = count(1)
Act = Callable[[Scope], object]


def _built() -> Scope:
    """A scope in which a run put what was said later in the place of what was said first, and another row beside."""
    here = enabled(scope(f"taken/{next(_numbers)}"))
    told(here, world.OSLO, world.LYON, world.LIFT)
    read(here, completer=model(reconcile=deciding({world.LYON: ("UPDATE", world.OSLO, False)})))
    return here


def _new(here: Scope) -> Observation:
    return Observation.objects.get(scope=here, text=world.LYON)


def _take_back(here: Scope) -> ingest.TakenBack:
    return ingest.take_back(scope=here, observation_id=_new(here).pk, by="ines")


def _dump(here: Scope) -> list[str]:
    """With the audit: a move without its event would be half done."""
    events = Event.objects.filter(scope=here, action="taken_back").count()
    return [*world.dump(here), f"events {events}"]


def _examine(act: Act) -> Iterator[tuple[str, str]]:
    """Kill the act after each of its statements; yields (statement, what is wrong there or '').

    A death that changed nothing leaves its world to the next one, so that building worlds does not take the time.
    """
    here = _built()
    before = _dump(here)
    whole = run_in_child(lambda: act(here))
    assert whole.code == 0, "it does not even work unharmed"
    after = _dump(here)
    assert before != after
    here = _built()
    for position, (statement, side) in enumerate(whole.boundaries):
        if side == "before":  # nothing happens after one and before the next
            continue
        death = run_in_child(lambda here=here: act(here), kill_at=position)  # type: ignore[misc]
        assert death.code == -9, f"the child outlived boundary {position}"
        found = _dump(here)
        yield statement, "" if found in (before, after) else "half done"
        if found != before:
            act(here)
            assert found != after or _dump(here) == after, "done twice is not done once"
            here = _built()


def test_killed_after_any_statement_it_is_wholly_done_or_not_done(show: Callable[[str], None]) -> None:
    """R56: rows, journal, vectors and the event go together."""
    examined = list(_examine(_take_back))
    show(f"taking back: killed (exit status -9) at {len(examined)} statements, each wholly done or not done")
    assert len(examined) >= FEWEST_STATEMENTS
    assert [line for line in examined if line[1]] == []
    assert [str(found) for found in invariants.check()] == []


def _naive(here: Scope) -> None:
    """What sample code does: each row by itself, the event at the end."""
    new = _new(here)
    old = Observation.objects.filter(scope=here, text=world.OSLO).get()
    if new.status == Status.ACTIVE:
        with transaction.atomic():
            store.lock_scope(scope_id=here.pk, cause="take back, by ines")
            store.move(scope_id=here.pk, ids=[new.pk], to=Status.ARCHIVED)
    if old.status == Status.SUPERSEDED:
        with transaction.atomic():
            store.lock_scope(scope_id=here.pk, cause="take back, by ines")
            store.move(scope_id=here.pk, ids=[old.pk], to=Status.ACTIVE)
    with transaction.atomic():
        Event.objects.append(scope_id=here.pk, action="taken_back", actor="ines", subject=f"obs_{new.pk}")


def test_the_control_a_naive_one_leaves_half_a_change() -> None:
    """A6: the same examination finds it out: between its transactions no row says where Ana lives."""
    here = _built()
    before, worked = _dump(here), _built()
    _take_back(worked)
    whole = run_in_child(lambda: _naive(here))
    commits = [at for at, (what, side) in enumerate(whole.boundaries) if what == "COMMIT" and side == "after"]
    here = _built()
    assert _dump(here) == before
    assert run_in_child(lambda: _naive(here), kill_at=commits[0]).code == -9
    assert _dump(here) not in (before, _dump(worked))
    assert {world.OSLO, world.LYON}.isdisjoint(active(here)), "nothing says any more where Ana lives"


# --- against a writer ------------------------------------------------------------------------------------------------


def _correct(here: Scope, seed: int) -> object:
    """A person corrects the new row, now, or when the other is just about to lock it."""
    if seed % 2:
        _wait_for_locks(3)  # of the scope and of two texts
    claim = Claim(text="Ana lives in Paris")
    return ingest.correct(scope=here, observation_id=_new(here).pk, claim=claim, by="rita")


def _wait_for_locks(number: int) -> None:
    """Until another backend holds so many advisory locks; two seconds at most."""
    with superuser() as admin:
        for _ in range(400):
            held = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted"
            row = admin.execute(held).fetchone()
            if row is not None and row[0] >= number:
                return
            admin.execute("SELECT pg_sleep(0.005)")


def test_against_a_correction_at_the_same_moment_one_of_two_sound_ends(show: Callable[[str], None]) -> None:
    """Either the correction is first and the taking back is refused, naming it, or the other way round."""
    seen: Counter[str] = Counter()
    for seed in range(SCHEDULES):
        here = _built()
        taken, corrected = together(
            seed,
            lambda here=here: _take_back(here),  # type: ignore[misc]
            lambda here=here, seed=seed: _correct(here, seed),  # type: ignore[misc]
        )
        texts = {world.OSLO, world.LYON, "Ana lives in Paris"}.intersection(active(here))
        if isinstance(taken, ingest.TakenBack):
            assert isinstance(corrected, ingest.NotCurrent), corrected
            assert texts == {world.OSLO}
        else:
            assert isinstance(taken, ingest.NotCurrent), taken
            assert texts == {"Ana lives in Paris"}
        seen["taken back" if isinstance(taken, ingest.TakenBack) else "corrected"] += 1
    assert set(seen) == {"taken back", "corrected"}
    show(f"taking back against a correction, {SCHEDULES} schedules: {dict(seen)}")
    assert [str(found) for found in invariants.check()] == []


def test_two_at_once_take_back_once(show: Callable[[str], None]) -> None:
    for seed in range(SCHEDULES // 2):
        here = _built()
        both = together(seed, lambda here=here: _take_back(here), lambda here=here: _take_back(here))  # type: ignore[misc]
        assert sorted(each.done_before for each in both if isinstance(each, ingest.TakenBack)) == [False, True], both
        assert Event.objects.filter(scope=here, action="taken_back").count() == 1
        assert the(world.OSLO, here)
    show(f"taking back against itself, {SCHEDULES // 2} schedules: once each time")


def test_a_writer_that_says_the_old_words_at_the_same_moment_makes_no_second_row_of_them() -> None:
    """Both hold the lock of the text: whoever is second sees the other's row."""
    for seed in range(SCHEDULES // 2):
        here = _built()
        claim = Claim(text=world.OSLO)
        together(
            seed,
            lambda here=here: _take_back(here),  # type: ignore[misc]
            lambda here=here, claim=claim: ingest.remember(scope=here, claim=claim, by="rita"),  # type: ignore[misc]
        )
        assert active(here).count(world.OSLO) == 1

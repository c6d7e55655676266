"""How strong a claim still is, and what never makes it stronger or weaker."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from observations.fading import falls_below_at, halvings, strength
from observations.records import MemoryKind
from tests.unit.rows import day

NOW = day("2025-06-01")
AGES = st.floats(0, 40_000)  # days
HALF_LIVES = st.integers(1, 36_500)
FLOORS = st.floats(0, 0.5)


def aged(days: float, half_life_days: int | None, floor: float = 0.05) -> float:
    created_at = NOW - timedelta(days=days)
    return strength(created_at=created_at, half_life_days=half_life_days, now=NOW, floor=floor)


@pytest.mark.parametrize(("days", "left"), [(0, 1.0), (90, 0.7071), (180, 0.5), (360, 0.25), (540, 0.125)])
def test_half_of_it_is_left_after_each_half_life(days: int, left: float) -> None:
    assert aged(days, 180) == pytest.approx(left, abs=1e-4)


@pytest.mark.parametrize("kind", [MemoryKind.PREFERENCE, MemoryKind.IDENTITY])
def test_a_preference_and_an_identity_never_fade(kind: MemoryKind) -> None:
    """DESIGN 8: their half-life is none."""
    assert aged(36_500, kind.half_life_days) == 1.0


def test_kinds_fade_in_their_order() -> None:
    """A note of last month has gone to the floor, a state almost, a fact hardly."""
    left = [
        aged(30, kind.half_life_days)
        for kind in (MemoryKind.NOTE, MemoryKind.STATE, MemoryKind.EPISODE, MemoryKind.FACT)
    ]
    assert left == [0.05, pytest.approx(0.0513, abs=1e-4), 0.5, pytest.approx(0.891, abs=1e-3)]


def test_the_floor_holds_however_old_a_row_is() -> None:
    assert aged(36_500, 1) == 0.05
    assert aged(36_500, 1, floor=0.0) == pytest.approx(0.0, abs=1e-200)


def test_a_clock_that_runs_ahead_makes_nothing_stronger_than_fresh() -> None:
    """M1: rows of a skewed worker, by an hour or by a century."""
    assert aged(-1 / 24, 180) == 1.0
    assert aged(-36_500, 1) == 1.0


def test_a_day_is_a_day_in_every_time_zone() -> None:
    """M1: the same moments, written at UTC+14 and UTC-12."""
    there, here = timezone(timedelta(hours=14)), timezone(timedelta(hours=-12))
    said, now = datetime(2025, 1, 1, 12, tzinfo=UTC), datetime(2025, 3, 30, 12, tzinfo=UTC)
    plain = strength(created_at=said, half_life_days=7, now=now, floor=0.0)
    moved = strength(created_at=said.astimezone(there), half_life_days=7, now=now.astimezone(here), floor=0.0)
    assert plain == moved


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(TypeError):
        strength(created_at=datetime(2025, 1, 1), half_life_days=7, now=NOW, floor=0.0)  # noqa: DTZ001


@pytest.mark.parametrize("half_life_days", [0, -7])
def test_a_half_life_under_a_day_is_refused(half_life_days: int) -> None:
    with pytest.raises(ValueError, match="one day or more, not"):
        aged(1, half_life_days)


@given(AGES, AGES, HALF_LIVES, FLOORS)
def test_an_older_row_is_never_stronger(a: float, b: float, half_life_days: int, floor: float) -> None:
    younger, older = sorted((a, b))
    assert aged(younger, half_life_days, floor) >= aged(older, half_life_days, floor)


@given(AGES, HALF_LIVES, HALF_LIVES, FLOORS)
def test_a_longer_half_life_never_weakens(age: float, a: int, b: int, floor: float) -> None:
    shorter, longer = sorted((a, b))
    assert aged(age, shorter, floor) <= aged(age, longer, floor)


@given(st.floats(-40_000, 40_000), st.none() | HALF_LIVES, FLOORS)
def test_strength_lies_between_the_floor_and_one(age: float, half_life_days: int | None, floor: float) -> None:
    assert floor <= aged(age, half_life_days, floor) <= 1.0


# --- when a row falls below a share ----------------------------------------------------------------------------------


def test_a_tenth_is_left_after_three_and_a_third_half_lives() -> None:
    """`archive_below` of the default policy."""
    assert halvings(below=0.10) == pytest.approx(3.3219, abs=1e-4)
    assert (
        falls_below_at(created_at=day("2024-01-01"), half_life_days=180, below=0.10).date() == day("2025-08-20").date()
    )


@given(HALF_LIVES, st.floats(0.01, 0.5))
def test_a_row_is_as_strong_as_the_share_at_that_moment_and_weaker_after_it(half_life_days: int, below: float) -> None:
    said = day("1900-01-01")
    moment = falls_below_at(created_at=said, half_life_days=half_life_days, below=below)
    at, after = (
        strength(created_at=said, half_life_days=half_life_days, now=now, floor=0.0)
        for now in (moment, moment + timedelta(days=half_life_days / 10))
    )
    assert math.isclose(at, below, rel_tol=1e-6)
    assert after < below


@pytest.mark.parametrize("below", [0.0, -0.1])
def test_no_row_ever_gets_weaker_than_nothing(below: float) -> None:
    with pytest.raises(ValueError, match="No row ever gets weaker"):
        halvings(below=below)

"""What has faded ranks behind what is equally relevant and fresh, and never leaves an answer that has room for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random

import numpy as np
import pytest
from django.db import transaction

from observations import fading, retrieval, store
from observations.embedding import HASHING
from observations.models import Scope, database_now
from observations.records import Claim, MemoryKind, WrittenBy
from observations.retrieval.asking import asked_of
from observations.retrieval.meaning import by_meaning
from observations.retrieval.words import by_words
from tests.building import scope
from tests.integration.test_retrieval import Dead, Scripted

pytestmark = pytest.mark.django_db

FRESH, FADED = 0, 2_000  # days; a fact of the second age is at the floor
FADES, FLOOR = 0.1, 0.05  # as retrieval has them: a change of rank is a change of these figures too


def fill(
    within: Scope, rows: Sequence[tuple[float, float]], *, kind: MemoryKind = MemoryKind.FACT, text: str = "row"
) -> list[int]:
    """Rows by cosine to the query and age in days; every text holds the words of `text` and a number."""
    now = database_now()
    claims = [
        Claim(text=f"{text} {n}", external_id=f"{text}{kind}{n}", kind=kind, created_at=now - timedelta(days=age))
        for n, (_, age) in enumerate(rows)
    ]
    with transaction.atomic():
        written = store.add_observations(scope=within, claims=claims, written_by=WrittenBy.IMPORT)
        ids = [row.id or 0 for row in written]
        vectors = np.zeros((len(ids), HASHING.dimensions), np.float32)
        vectors[:, 0] = [cosine for cosine, _ in rows]
        vectors[:, 1] = np.sqrt(1 - vectors[:, 0] ** 2)
        put = [(within.pk, pk) for pk in ids]
        store.put_embeddings(profile=HASHING, rows=put, vectors=vectors, bands=[b"\0" * 128] * len(ids))
    return ids


def found(
    within: Scope, *, k: int = 5, query: str = "q", call_site: str = "search", embedder: object = None
) -> list[int]:
    answer = retrieval.search(scope=within, query=query, k=k, call_site=call_site, embedder=embedder or Scripted())  # type: ignore[arg-type]
    return [hit.id for hit in answer.hits]


# --- order ----------------------------------------------------------------------------------------------------------


def test_of_two_equally_near_rows_the_fresh_one_comes_first() -> None:
    """R2: months-old news beside today's, which similarity alone scores alike. The older row has the lower id."""
    here = scope()
    old, fresh = fill(here, [(0.8, FADED), (0.8, FRESH)])
    assert found(here) == [fresh, old]


def test_of_two_rows_with_the_same_words_the_fresh_one_comes_first() -> None:
    here = scope()
    old, fresh = fill(here, [(0.0, FADED), (0.0, FRESH)], text="relay")
    assert found(here, query="relay", embedder=Dead()) == [fresh, old]


def test_a_faded_row_that_is_clearly_nearer_still_comes_first() -> None:
    """Fading is worth a tenth of a score at most: what is asked for counts more than when it was said."""
    here = scope()
    old, fresh = fill(here, [(0.80, FADED), (0.70, FRESH)])
    assert found(here) == [old, fresh]


def test_what_has_no_half_life_does_not_fade() -> None:
    here = scope()
    [liked] = fill(here, [(0.8, FADED)], kind=MemoryKind.PREFERENCE)
    [fact] = fill(here, [(0.79, FRESH)])
    assert found(here) == [liked, fact]


def test_kinds_of_one_age_fade_at_their_own_pace() -> None:
    here = scope()
    by_kind = {kind: fill(here, [(0.8, 30)], kind=kind)[0] for kind in MemoryKind}
    first = [by_kind[kind] for kind in (MemoryKind.PREFERENCE, MemoryKind.IDENTITY, MemoryKind.FACT)]
    last = [by_kind[kind] for kind in (MemoryKind.EPISODE, MemoryKind.STATE, MemoryKind.NOTE)]
    assert found(here, k=6) == first + last


def test_rows_of_one_age_keep_their_order() -> None:
    """A store that was imported from years ago is ranked as it was."""
    for days, name in ((FRESH, "new"), (FADED, "old")):
        here = scope(name)
        ids = fill(here, [(0.9 - n / 100, days) for n in range(20)])
        assert found(here, k=10) == ids[:10]


def test_fading_helps_no_row_that_points_away() -> None:
    """A share of a negative cosine would lift it."""
    here = scope()
    old, fresh = fill(here, [(-0.5, FADED), (-0.5, FRESH)])
    assert found(here) == [fresh, old]


@pytest.mark.parametrize("call_site", ["nearest", "is_known"])
def test_a_claim_is_compared_with_stored_ones_by_relevance_alone(call_site: str) -> None:
    """R21, R126: what a new claim repeats or replaces is mostly old."""
    here = scope()
    old, fresh = fill(here, [(0.80, FADED), (0.79, FRESH)])
    assert found(here, call_site=call_site) == [old, fresh]
    assert found(here, call_site="context") == [fresh, old]


# --- always k -------------------------------------------------------------------------------------------------------


def test_faded_rows_fill_the_answer() -> None:
    here = scope()
    ids = fill(here, [(0.9 - n / 100, 20_000) for n in range(12)])
    assert found(here, k=12) == ids


def test_many_faded_rows_do_not_hide_the_fresh_one_behind_them() -> None:
    """R26: sediment must not outvote what is current. The control looks at the nearest rows alone, as before fading."""
    here = scope()
    fill(here, [(0.80 + n / 100_000, FADED) for n in range(400)])
    [fresh] = fill(here, [(0.80, FRESH)], text="fresh")
    asked = asked_of("q", Scripted())
    assert fresh not in by_meaning(here, asked).best(50)
    assert found(here, k=5)[0] == fresh


def test_many_faded_rows_with_the_same_words_do_not_hide_the_fresh_one() -> None:
    here = scope()
    fill(here, [(0.0, FADED)] * 400, text="relay")
    [fresh] = fill(here, [(0.0, FRESH)], text="relay fresh")
    assert fresh not in by_words(here, "relay").best(50)
    assert found(here, query="relay", embedder=Dead())[0] == fresh


@pytest.mark.parametrize("seed", range(5))
def test_the_answer_is_the_one_that_ranking_every_row_would_give(seed: int) -> None:
    """C14: exact, whatever is near, old or both."""
    random, here = Random(seed), scope()
    spread = random.choice([0.02, 0.3, 1.0])
    rows = [(random.uniform(-spread, spread) * 0.9, random.choice([0, 3, 60, 400, FADED])) for _ in range(300)]
    ids = fill(here, rows)
    scores = {pk: faded(cosine, age) for pk, (cosine, age) in zip(ids, rows, strict=True)}
    assert found(here, k=10) == sorted(ids, key=lambda pk: -scores[pk])[:10]


def faded(cosine: float, age: float) -> float:
    said, now = datetime(2025, 1, 1, tzinfo=UTC) - timedelta(days=age), datetime(2025, 1, 1, tzinfo=UTC)
    left = fading.strength(created_at=said, half_life_days=180, now=now, floor=FLOOR)
    return cosine - FADES * (1 - left) * abs(cosine)


def test_a_query_that_has_no_direction_still_fills_its_answer() -> None:
    """The cosine of a vector of zeros is no number."""
    here = scope()
    ids = fill(here, [(0.9, FADED), (0.1, FRESH), (0.5, FRESH)])
    assert sorted(found(here, embedder=Scripted({"q": (0.0,)}))) == ids


# --- one rule for one row and for many ------------------------------------------------------------------------------

AGES = (0, 1e-6, 0.5, 1, 7, 29.97, 180, 598, 5_000, 40_000, -1, -400, -40_000)
HALF_LIVES = (None, 1, 3, 7, 30, 180, 36_500, 2_147_483_647)


@pytest.mark.parametrize("floor", [0.0, 0.05, 0.5])
def test_many_rows_are_as_strong_as_each_is_by_itself(floor: float) -> None:
    """Also where the power is no longer told from 0, and for dates of another century."""
    now = datetime(2025, 3, 30, 1, 30, tzinfo=UTC)
    pairs = [(now - timedelta(days=age), half_life) for age in AGES for half_life in HALF_LIVES]
    one_by_one = [
        fading.strength(created_at=said, half_life_days=half_life, now=now, floor=floor) for said, half_life in pairs
    ]
    days = np.array([(now - said) / timedelta(days=1) for said, _ in pairs])
    half_lives = np.array([half_life or 0 for _, half_life in pairs], dtype=float)
    together = fading.strengths(days=days, half_lives=half_lives, floor=floor)
    assert together.tolist() == pytest.approx(one_by_one, rel=1e-9, abs=1e-250)


@pytest.mark.parametrize("half_life", [1, 180, None])
def test_a_search_counts_the_days_that_the_database_counts(half_life: int | None) -> None:
    """From the moment that is asked for, or the database's clock; a part of a second is no day."""
    here, now = scope(), database_now()
    said = now - timedelta(days=200, seconds=7)
    claim = Claim(text="relay", external_id="r", half_life_days=half_life, kind=MemoryKind.IDENTITY, created_at=said)
    with transaction.atomic():
        store.add_observations(scope=here, claims=[claim], written_by=WrittenBy.IMPORT)
    found = by_words(here, "relay").strengths.tolist()
    wanted = fading.strength(created_at=said, half_life_days=half_life, now=now, floor=FLOOR)
    assert found == pytest.approx([wanted], rel=1e-3)


def test_the_half_life_of_a_row_is_the_one_it_was_written_with() -> None:
    """DESIGN 8: set at write, by its kind unless its writer said otherwise."""
    here = scope()
    claim = Claim(text="x", external_id="own", kind=MemoryKind.FACT, half_life_days=3)
    with transaction.atomic():
        own, by_kind, never = store.add_observations(
            scope=here,
            claims=[
                claim,
                replace(claim, text="y", external_id="kind", half_life_days=None),
                replace(claim, text="z", external_id="none", kind=MemoryKind.IDENTITY, half_life_days=None),
            ],
            written_by=WrittenBy.IMPORT,
        )
    stored = {row.external_id: row.half_life_days for row in here.observations.all()}
    assert stored == {"own": 3, "kind": 180, "none": None}
    assert all(row.id for row in (own, by_kind, never))

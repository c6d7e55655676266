"""Blocking: which pairs of one scope are looked at, and what it costs to leave the others out."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consolidation import candidates
from consolidation.candidates import Columns, Met, Pairs, blocks, links, missed, pairs, split
from observations.minhash import minhash_bands
from observations.normalise import normalised
from tests.unit.rows import columns

Vectors = np.ndarray[tuple[int, int], np.dtype[np.float32]]


def near_copies(n: int, copies: int, *, noise: float = 0.01, seed: int = 3) -> Vectors:
    """n unit vectors of 64 dimensions, of which each run of `copies` is one vector with a little noise."""
    drawn = np.random.default_rng(seed)
    base = np.repeat(drawn.standard_normal((-(-n // copies), 64)), copies, axis=0)[:n]
    vectors = (base + noise * drawn.standard_normal(base.shape)).astype(np.float32)
    unit: Vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit


def by_id(rows: Columns, found: Pairs) -> set[tuple[int, int]]:
    return {(link.a, link.b) for link in links(columns=rows, pairs=found)}


def exact(rows: Columns, least: float) -> set[tuple[int, int]]:
    """Every pair at or over a cosine, the slow way."""
    cosines = rows.vectors.astype(np.float64) @ rows.vectors.astype(np.float64).T
    return {
        (int(min(rows.ids[i], rows.ids[j])), int(max(rows.ids[i], rows.ids[j])))
        for i, j in combinations(range(len(rows)), 2)
        if cosines[i, j] >= least
    }


# --- blocks ----------------------------------------------------------------------------------------------------------


def test_blocks_hold_two_to_two_hundred_rows_and_absent_keys_make_none() -> None:
    """R39."""
    keys = np.array([5] * 200 + [6] * 2 + [7] + [0] * 300)
    found = blocks(keys=keys, columns=columns(len(keys)))
    assert sorted(found.sizes.tolist()) == [2, 200]
    assert found.split == 0


@pytest.mark.parametrize("has_vector", [True, False])
def test_a_block_of_five_thousand_is_split_and_loses_no_row(has_vector: bool) -> None:
    """R41: 5,000 records that share a subject are not a block, and are not dropped either (E3)."""
    rows = columns(5_000, has_vector=has_vector)
    found = blocks(keys=np.ones(5_000, np.int64), columns=rows)
    assert found.split == 1
    assert found.sizes.max() <= 200
    assert set(found.rows.tolist()) == set(range(5_000))


def test_a_split_block_keeps_similar_rows_together() -> None:
    """Of 1,500 rows in pairs of near copies that share one subject, all but a few pairs stay in a common block."""
    vectors = near_copies(1_500, 2)
    pieces = split(rows=np.arange(1_500), columns=columns(1_500, vectors=vectors), cap=200)
    together = {pair for piece in pieces for pair in combinations(sorted(piece.tolist()), 2)}
    kept = sum((at, at + 1) in together for at in range(0, 1_500, 2))
    assert kept >= 0.99 * 750


def test_identical_rows_that_no_vector_tells_apart_are_cut_into_overlapping_windows() -> None:
    vectors = np.zeros((450, 4), np.float32)
    vectors[:, 0] = 1
    pieces = split(rows=np.arange(450), columns=columns(450, vectors=vectors), cap=200)
    assert max(map(len, pieces)) <= 200
    assert set(np.concatenate(pieces).tolist()) == set(range(450))
    assert any({190, 210} <= set(piece.tolist()) for piece in pieces)


# --- pairs -----------------------------------------------------------------------------------------------------------


def test_every_pair_at_the_threshold_is_found_once_in_a_scope_that_is_compared_exactly() -> None:
    """E3: one pair proposed once per block it meets in."""
    rows = columns(300, vectors=near_copies(300, 3, noise=0.08), keys={"subject": [1] * 300})
    found = pairs(rows, t_candidate=0.86)
    listed = links(columns=rows, pairs=found)
    assert len({(link.a, link.b) for link in listed}) == len(listed)
    assert by_id(rows, found) == exact(rows, 0.86)
    assert found.compared == 300 * 299 // 2


def test_no_pair_is_made_of_one_row_or_below_the_threshold() -> None:
    rows = columns(200, vectors=near_copies(200, 4, noise=0.08))
    for link in links(columns=rows, pairs=pairs(rows, t_candidate=0.9)):
        assert link.a < link.b
        assert link.cosine >= 0.9


def test_identical_texts_meet_without_vectors() -> None:
    rows = columns(3, keys={"text": [9, 9, 4]}, has_vector=False)
    [link] = links(columns=rows, pairs=pairs(rows, t_candidate=0.86))
    assert (link.a, link.b, link.met) == (1, 2, Met.TEXT)
    assert np.isnan(link.cosine)


def test_claims_about_one_key_with_different_objects_meet_at_any_cosine() -> None:
    """R43, R71: all values of the key are linked to each other in a chain; one object alone is no contradiction."""
    rows = columns(5, keys={"sp": [8, 8, 8, 7, 7], "spo": [81, 82, 81, 71, 71]})
    found = pairs(rows, t_candidate=0.86)
    met = {row for link in links(columns=rows, pairs=found) for row in (link.a, link.b)}
    assert met == {1, 2, 3}
    assert all(Met.SUBJECT_PREDICATE in link.met for link in links(columns=rows, pairs=found))


def test_a_key_with_thousands_of_values_costs_a_chain_and_not_all_pairs() -> None:
    """R37, R41."""
    n = 3_000
    rows = columns(n, keys={"sp": [8] * n, "spo": range(1, n + 1)})
    assert len(pairs(rows, t_candidate=0.86)) == n - 1


def test_a_pair_says_which_keys_it_shares() -> None:
    vectors = near_copies(2, 2)
    rows = columns(2, vectors=vectors, keys={"text": [1, 1], "subject": [2, 2], "sp": [3, 3], "spo": [4, 4]})
    rows.bands[:, 5] = 77
    [link] = links(columns=rows, pairs=pairs(rows, t_candidate=0.86))
    assert link.met.names == ("text", "subject_predicate", "subject", "band", "neighbour")


def test_five_thousand_copies_of_one_text_give_a_bounded_number_of_pairs() -> None:
    vectors = np.zeros((5_000, 8), np.float32)
    vectors[:, 0] = 1
    rows = columns(5_000, vectors=vectors, keys={"text": [3] * 5_000})
    found = pairs(rows, t_candidate=0.86)
    assert len(found) <= 5_000 * 200
    assert {row for link in zip(found.i, found.j, strict=True) for row in link} == set(range(5_000))


def test_an_empty_scope_and_a_single_row_have_no_pairs() -> None:
    assert len(pairs(columns(0), t_candidate=0.86)) == 0
    assert len(pairs(columns(1), t_candidate=0.86)) == 0
    assert len(pairs(columns(1, has_vector=False), t_candidate=0.86)) == 0


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_pairs_do_not_depend_on_the_order_of_the_rows(seed: int, large: bool) -> None:
    """COPY keeps no order, and a plan must be the same each time (metamorphic, C4)."""
    n = 150
    drawn = np.random.default_rng(seed)
    keys = {name: drawn.integers(0, 12, n).tolist() for name in ("text", "subject", "sp", "spo")}
    rows = columns(n, vectors=near_copies(n, 3, noise=0.1, seed=seed % 1000), keys=keys)
    rows.has_vector[drawn.integers(0, n, 20)] = False
    order = drawn.permutation(n)
    other = Columns(*(getattr(rows, name)[order] for name in Columns.__slots__))
    with pytest.MonkeyPatch.context() as patched:
        if large:
            patched.setattr(candidates, "EXACT_ROWS", 100)
            patched.setattr(candidates, "_CELL_ROWS", 40)
        one, two = pairs(rows, t_candidate=0.86), pairs(other, t_candidate=0.86)
    assert repr(links(columns=rows, pairs=one)) == repr(links(columns=other, pairs=two))


# --- large scopes ----------------------------------------------------------------------------------------------------


def test_a_scope_too_large_for_an_exact_pass_still_finds_its_near_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    """DESIGN 8, on vectors without any structure, the worst case for pivots; on real texts none is missed."""
    monkeypatch.setattr(candidates, "EXACT_ROWS", 1_000)
    monkeypatch.setattr(candidates, "_CELL_ROWS", 200)
    rows = columns(6_000, vectors=near_copies(6_000, 3, noise=0.12), keys={"subject": [1] * 6_000})
    found = pairs(rows, t_candidate=0.86)
    audit = missed(rows, found, t_merge=0.95, sample=6_000)
    assert audit.there > 5_000
    assert audit.missed <= 0.005 * audit.there
    assert found.compared < 0.5 * 6_000 * 5_999 / 2
    assert found.split == 1


def test_the_audit_counts_what_blocking_missed() -> None:
    """DESIGN 8: every plan can state what blocking missed."""
    rows = columns(300, vectors=near_copies(300, 3))
    found = pairs(rows, t_candidate=0.86)
    half = replace(found, i=found.i[::2], j=found.j[::2], cosine=found.cosine[::2], met=found.met[::2])
    assert missed(rows, found, t_merge=0.95, sample=300).missed == 0
    audit = missed(rows, half, t_merge=0.95, sample=300)
    assert audit.estimate == len(found) - len(half) == audit.missed / 2
    assert missed(rows, half, t_merge=0.95, sample=50).sampled == 50
    assert missed(columns(0), pairs(columns(0), t_candidate=0.9), t_merge=0.95).estimate == 0


# --- bands -----------------------------------------------------------------------------------------------------------


def test_bands_find_near_texts_without_any_vector_being_near() -> None:
    """R38, R40: a key with another failure mode than the vectors."""
    texts = ["The office plant is watered on Mondays", "the office plant is watered on mondays!", "Ships on Fridays"]
    bands = minhash_bands([normalised(text) for text in texts])
    rows = replace(columns(3), bands=bands)
    found = blocks(keys=rows.bands[:, 0], columns=rows)
    assert found.rows.tolist() == [0, 1]

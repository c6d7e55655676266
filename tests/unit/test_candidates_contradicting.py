"""Every row of a key with several objects reaches the rules, whatever the vectors and the blocks are."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consolidation.candidates import Columns, contradicting, links, pairs
from tests.unit.rows import columns


def found(**keys: list[int]) -> list[int]:
    return list(contradicting(columns(len(keys["sp"]), keys=keys)))


def test_all_rows_of_a_key_with_two_objects_are_found_and_those_of_one_object_are_not() -> None:
    """R71."""
    assert found(sp=[8, 8, 8, 7, 7], spo=[81, 82, 81, 71, 71]) == [1, 2, 3]


def test_a_row_without_an_object_has_no_value_and_a_row_without_a_key_none_either() -> None:
    assert found(sp=[8, 8, 0, 0], spo=[81, 0, 0, 0]) == []
    assert found(sp=[8, 8, 8], spo=[81, 0, 82]) == [1, 3]


def test_an_empty_scope_and_a_single_row_have_none() -> None:
    assert found(sp=[], spo=[]) == []
    assert found(sp=[8], spo=[81]) == []


@pytest.mark.parametrize("has_vector", [True, False])
def test_a_key_of_more_rows_than_a_block_holds_is_found_whole(has_vector: bool) -> None:
    """R39, R41: no block is involved, so none can be split between two values."""
    n = 1_000
    rows = columns(n, keys={"sp": [8] * n, "spo": list(range(1, n + 1))}, has_vector=has_vector)
    assert contradicting(rows).tolist() == list(range(1, n + 1))


def test_ids_are_given_in_order_and_not_row_numbers() -> None:
    rows = columns(3, ids=[30, 10, 20], keys={"sp": [8, 8, 8], "spo": [81, 82, 81]})
    assert contradicting(rows).tolist() == [10, 20, 30]


def test_pairs_alone_lose_a_row_whose_partners_are_kept_for_another_operation() -> None:
    """The control: a plan leaves links to reserved rows out, and the chain of values breaks there."""
    rows = columns(3, keys={"sp": [8, 8, 8], "spo": [81, 82, 83]})
    reserved = {2}
    left = [
        link for link in links(columns=rows, pairs=pairs(rows, t_candidate=0.86)) if not reserved & {link.a, link.b}
    ]
    assert left == []
    assert set(contradicting(rows).tolist()) - reserved == {1, 3}


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=12), st.randoms(use_true_random=False))
def test_what_is_found_is_what_a_reader_finds_by_hand_in_any_order(
    drawn: list[tuple[int, int]], random: np.random.Generator
) -> None:
    by_key: defaultdict[int, set[int]] = defaultdict(set)
    for sp, spo in drawn:
        if sp and spo:
            by_key[sp].add(spo)
    expected = [number for number, (sp, spo) in enumerate(drawn, start=1) if sp and spo and len(by_key[sp]) > 1]
    keys = {"sp": [sp for sp, _ in drawn], "spo": [sp * 10 + spo if sp and spo else 0 for sp, spo in drawn]}
    rows = columns(len(drawn), keys=keys)
    order = list(range(len(drawn)))
    random.shuffle(order)
    other = Columns(*(getattr(rows, name)[order] for name in Columns.__slots__))
    assert contradicting(rows).tolist() == contradicting(other).tolist() == expected

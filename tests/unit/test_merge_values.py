"""The values of one key by themselves: their order in time, how many hold at once, what was judged, what to suggest."""

from __future__ import annotations

from time import perf_counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consolidation.merge import contradicts, overlap
from consolidation.merge.values import Standing, at_once, beside, holds, in_order, several, standing, suggestion
from consolidation.policy import Policy
from observations.records import Record
from tests.unit.rows import day, row

Period = tuple[str | None, str | None]


def value(number: int, place: str, period: Period = (None, None), said: str = "2024-01-01") -> Record:
    start, end = (day(f"{year}-01-01") if year else None for year in period)
    key = ("ann", "lives in", place)
    return row(number, f"Ann lives in {place}", key, created_at=day(said), valid_from=start, valid_to=end)


def stand(rows: list[Record], *settled: tuple[int, int]) -> Standing:
    return standing(rows, beside({record.id: record for record in rows}, settled))


# --- which keys, and how many values ---------------------------------------------------------------------------------


def test_a_key_has_several_values_when_two_whole_keys_differ_in_their_object() -> None:
    rows = [value(3, "Oslo"), value(1, "Bergen"), row(2, "Ann lives somewhere", ("ann", "lives in", ""))]
    alone = [row(4, "Bob lives in Oslo", ("bob", "lives in", "oslo")), row(5, "Same", ("bob", "lives in", "Oslo"))]
    found = several([*rows, *alone])
    assert {key: [record.id for record in values] for key, values in found.items()} == {("ann", "lives in"): [1, 3]}


@pytest.mark.parametrize(
    ("policy", "taught", "word"),
    [
        (Policy(), {}, ""),
        (Policy(), {"lives in": "one"}, "one"),
        (Policy(), {"likes": "many"}, ""),
        (Policy(many_valued=("lives_in",)), {"lives in": "one"}, "many"),
        (Policy(single_valued=("Lives in",)), {"lives in": "many"}, "one"),
    ],
)
def test_how_many_values_a_predicate_holds_is_said_by_the_policy_then_by_reviewers_then_by_nobody(
    policy: Policy, taught: dict[str, str], word: str
) -> None:
    assert holds("lives in", policy=policy, cardinality=taught) == word


# --- judged before ---------------------------------------------------------------------------------------------------


def test_values_that_nobody_judged_are_asked_about() -> None:
    assert stand([value(1, "Oslo"), value(2, "Bergen")]) == Standing(asked=True)


def test_values_that_were_all_judged_are_not_asked_about() -> None:
    rows = [value(1, "Oslo"), value(2, "Bergen"), value(3, "Molde")]
    assert stand(rows, (1, 2), (1, 3), (2, 3)) == Standing(asked=False)
    assert stand(rows, (1, 2), (1, 3)).asked


def test_a_verdict_on_rows_of_one_value_or_of_another_key_says_nothing_here() -> None:
    rows = [value(1, "Oslo"), value(2, "Oslo"), value(3, "Bergen")]
    assert beside({record.id: record for record in rows}, [(1, 2), (1, 99)]) == {}
    assert stand(rows, (1, 2)) == Standing(asked=True)


@pytest.mark.parametrize(
    ("judged", "again", "asked"),
    [
        ((None, None), (None, None), False),
        ((None, None), ("2003", "2004"), False),
        (("2001", "2005"), ("2001", "2005"), False),
        (("2001", "2005"), ("2002", "2003"), False),
        (("2001", None), ("2002", None), False),
        (("2001", "2005"), ("2004", "2006"), True),
        (("2001", "2005"), (None, None), True),
        (("2001", None), ("2000", None), True),
        ((None, "2005"), (None, None), True),
    ],
)
def test_a_repetition_within_the_judged_period_is_judged_and_one_beyond_it_is_a_change(
    judged: Period, again: Period, asked: bool
) -> None:
    rows = [value(1, "Oslo", judged), value(2, "Bergen"), value(3, "Oslo", again)]
    assert stand(rows, (1, 2)) == Standing(asked=asked, first=asked)


def test_repetitions_on_both_sides_of_a_verdict_are_judged_too() -> None:
    rows = [value(1, "Oslo"), value(2, "Bergen"), value(3, "Oslo"), value(4, "Bergen"), value(5, "Oslo")]
    assert stand(rows, (1, 2)) == Standing(asked=False)


def test_a_new_value_beside_judged_ones_is_asked_about_and_holds_up_no_merge() -> None:
    rows = [value(1, "Oslo"), value(2, "Bergen"), value(3, "Oslo"), value(4, "Molde")]
    assert stand(rows, (1, 2)) == Standing(asked=True, first=False)


# --- order in time ---------------------------------------------------------------------------------------------------


def test_dated_values_are_in_the_order_of_their_periods_and_others_in_the_order_they_were_said() -> None:
    dated = [value(1, "a", ("2010", None), said="2011-01-01"), value(2, "b", ("2001", "2010"), said="2020-01-01")]
    mixed = [value(1, "a", said="2011-01-01"), value(2, "b", ("2001", None), said="2020-01-01")]
    assert [record.id for record in in_order(dated)] == [2, 1]
    assert [record.id for record in in_order(mixed)] == [1, 2]


@pytest.mark.parametrize(
    ("periods", "most"),
    [
        ([("2001", "2005"), ("2005", "2010"), ("2010", "2011")], 1),
        ([("2001", "2005"), ("2004", "2010")], 2),
        ([("2001", "2009"), ("2002", "2003"), ("2002", "2008"), ("2004", "2005")], 3),
        ([("2001", "2001"), ("2001", "2001"), ("2001", "2001")], 3),
        ([("2001", "2001"), ("2001", "2005")], 2),
        ([("2001", "2005"), ("2005", "2005")], 1),
        ([("2001", None), ("2002", None), ("2003", None)], 0),
        ([(None, None)] * 5, 0),
    ],
)
def test_at_once_counts_the_values_whose_closed_periods_share_a_moment(periods: list[Period], most: int) -> None:
    """An end that nobody gave is no word that the value still holds."""
    assert at_once([value(number, f"place {number}", period) for number, period in enumerate(periods)]) == most


def test_rows_of_one_value_count_once() -> None:
    assert at_once([value(number, "Oslo", ("2001", "2005")) for number in range(5)]) == 1


YEARS = st.sampled_from([f"200{year}" for year in range(6)])
PERIODS = st.tuples(YEARS, YEARS).map(lambda years: (min(years), max(years)))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abcd"), PERIODS), min_size=2, max_size=6))
def test_values_are_at_once_exactly_when_two_of_them_overlap(drawn: list[tuple[str, Period]]) -> None:
    rows = [value(number, place, period) for number, (place, period) in enumerate(drawn)]
    pairs = [(a, b) for a in rows for b in rows if a.id < b.id and a.key != b.key]
    assert (at_once(rows) > 1) == any(overlap(a, b) for a, b in pairs)


# --- suggestions -----------------------------------------------------------------------------------------------------


def suggested(*periods: Period, known: str = "") -> object:
    rows = [value(number, f"place {number}", period) for number, period in enumerate(periods, start=1)]
    return suggestion(rows, known=known)["suggested"]


def test_closed_periods_that_share_no_moment_are_suggested_as_they_are() -> None:
    assert suggested(("2001", "2005"), ("2005", "2010")) == "periods"
    assert suggested(("2001", "2005"), ("2008", "2010")) == "periods"


def test_the_newest_is_suggested_where_a_period_is_open_or_two_overlap() -> None:
    assert suggested(("2001", "2005"), ("2005", None)) == "newest"
    assert suggested(("2001", "2005"), ("2004", "2010")) == "newest"
    assert suggested((None, None), (None, None)) == "newest"


def test_three_values_at_one_moment_look_many_valued_and_two_do_not() -> None:
    """On real facts, two at once are mostly loose dates of one value at a time; from three on, none are."""
    three = [("2001", "2009")] * 3
    assert suggested(*three[:2]) == "newest"
    assert suggested(*three) == "many"


def test_many_undated_values_look_many_valued_only_beyond_the_longest_series_of_single_ones() -> None:
    undated = [(None, None)] * 13
    assert suggested(*undated[:12]) == "newest"
    assert suggested(*undated) == "many"


def test_a_long_history_of_closed_periods_does_not_look_many_valued() -> None:
    assert suggested(*[(str(1950 + year), str(1951 + year)) for year in range(40)]) == "periods"


def test_a_predicate_known_to_hold_one_value_is_never_said_to_look_many_valued() -> None:
    assert suggested(*[("2001", "2009")] * 3, known="one") == "newest"
    assert suggested(*[(None, None)] * 20, known="one") == "newest"


def test_only_a_suggested_newest_names_a_row_to_keep() -> None:
    newest = suggestion([value(1, "Oslo", said="2024-05-01"), value(2, "Bergen")], known="")
    periods = suggestion([value(1, "Oslo", ("2001", "2002")), value(2, "Bergen", ("2003", "2004"))], known="")
    assert newest["suggested_keep"] == 1
    assert "suggested_keep" not in periods
    assert (newest["order"], periods["order"]) == ([2, 1], [1, 2])


def test_a_suggestion_holds_no_memory_text() -> None:
    rows = [value(number, f"Zanzibar {number}", ("2001", "2009")) for number in range(1, 5)]
    assert "anzibar" not in repr(suggestion(rows, known=""))


def test_thousands_of_values_of_one_key_take_no_time_to_speak_of() -> None:
    """R37, R41: nothing here compares every two values."""
    rows = [value(number, f"place {number}", (str(1000 + number % 900), None)) for number in range(1, 4_001)]
    started = perf_counter()
    assert several(rows)["ann", "lives in"] == rows
    assert stand(rows).asked
    assert suggestion(rows, known="")["suggested"] == "many"
    assert perf_counter() - started < 2


def test_periods_that_begin_at_one_moment_share_it_and_periods_that_touch_share_none() -> None:
    instant = value(1, "Oslo", ("2001", "2001"))
    assert overlap(instant, value(2, "Oslo", ("2001", "2001")))
    assert overlap(instant, value(2, "Oslo", ("2001", "2005")))
    assert not overlap(instant, value(2, "Oslo", ("1999", "2001")))
    assert contradicts(instant, value(2, "Bergen"))

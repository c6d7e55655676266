"""What a call costs: published prices, rounded up, and never less than it may be."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from observations.llm import DEFAULT_MODEL, Price, Request, Usage
from observations.llm.pricing import UNKNOWN, family, price_in
from tests.unit.model_door import question

MILLION = 1_000_000


@pytest.mark.parametrize(
    ("usage", "batch", "dollars"),
    [
        (Usage(input_tokens=MILLION), False, 2.0),
        (Usage(output_tokens=MILLION), False, 10.0),
        (Usage(cache_write_tokens=MILLION), False, 2.5),
        (Usage(cache_read_tokens=MILLION), False, 0.2),
        (Usage(MILLION, MILLION, MILLION, MILLION), False, 14.7),
        (Usage(MILLION, MILLION, MILLION, MILLION), True, 7.35),
        (Usage(), False, 0.0),
    ],
)
def test_tokens_cost_what_the_list_says(usage: Usage, batch: bool, dollars: float) -> None:
    """Writing to the cache costs a quarter more, reading from it a tenth, a batch half of everything."""
    assert Price(2, 10).cost(usage, batch=batch) == round(dollars * MILLION)


def test_a_cost_is_rounded_up() -> None:
    assert Price(0.1, 0.5).cost(Usage(input_tokens=1)) == 1


def test_long_questions_of_the_default_model_cost_five_times_as_much() -> None:
    price = family(DEFAULT_MODEL).price
    assert price.cost(Usage(input_tokens=100_000)) == 10_000
    assert price.cost(Usage(input_tokens=50_000, cache_read_tokens=50_001)) == pytest.approx(5 * 5_500, abs=1)


@pytest.mark.parametrize(
    ("model", "known"),
    [
        ("claude-haiku-5-5", "claude-haiku-5-5"),
        ("claude-haiku-5-5-20261007", "claude-haiku-5-5"),
        ("anthropic.claude-haiku-5-5", "claude-haiku-5-5"),
        ("us.anthropic.claude-haiku-4-5-20251001-v1:0", "claude-haiku-4-5"),
        ("anthropic/claude-sonnet-5-5", "claude-sonnet-5-5"),
        ("claude-sonnet-4-5@20250929", "claude-sonnet-4-5"),
        ("claude-opus-5[1m]", "claude-opus-5"),
    ],
)
def test_a_model_is_known_under_its_hosts_names_too(model: str, known: str) -> None:
    assert family(model) is family(known) is not UNKNOWN


@pytest.mark.parametrize(
    "model",
    ["", "gemma4:12b", "claude-haiku-6", "claude-haiku-5-6", "claude-sonnet-50", "not-claude-haiku-5-5x", "claude"],
)
def test_a_model_that_is_not_known_costs_as_much_as_the_dearest(model: str) -> None:
    """A budget is not exceeded for not knowing."""
    assert family(model) is UNKNOWN
    dearest = family(model).price
    for known in ("claude-fable-5", "claude-opus-5", "claude-mythos-preview", DEFAULT_MODEL):
        assert family(known).price.cost(Usage(10, 10)) <= dearest.cost(Usage(10, 10))


def test_the_default_model_is_known() -> None:
    assert family(DEFAULT_MODEL) is not UNKNOWN


@settings(deadline=None)
@given(st.text(max_size=200), st.integers(1, 4_000), st.booleans())
def test_a_question_never_costs_more_than_it_was_said_it_can(text: str, max_tokens: int, batch: bool) -> None:
    """Two bytes to three are a token at the least, whatever the script, and the answer ends at max_tokens."""
    request: Request = question(text, max_tokens=max_tokens)
    size = len((request.system + request.text).encode()) + len(str(request.schema))
    for used in (
        Usage(input_tokens=size // 2),
        Usage(cache_write_tokens=size // 2),
        Usage(cache_read_tokens=size // 2),
    ):
        usage = Usage(used.input_tokens, max_tokens, used.cache_read_tokens, used.cache_write_tokens)
        price = Price(3, 15)
        assert price.cost(usage, batch=batch) <= price.at_most(request, batch=batch)


@pytest.mark.parametrize(
    ("text", "price"),
    [("", None), ("  ", None), ("1,5", Price(1, 5)), (" 0.1 , 0.5", Price(0.1, 0.5)), ("0,0", Price(0, 0))],
)
def test_a_price_can_be_set(text: str, price: Price | None) -> None:
    assert price_in(text) == price


@pytest.mark.parametrize("text", ["1", "1,2,3", "a,b", "1;5", "-1,5", "1,-5", "nan,1", "inf,1", ","])
def test_a_price_that_is_none_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(ValueError, match=r"PALIMPSEST_MODEL_PRICES .*\."):
        price_in(text)

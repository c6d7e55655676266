"""How a query names the key of a row (R7): enough to be about it, or too little."""

from __future__ import annotations

import pytest

from observations.normalise import key_part
from observations.selecting import Named, named_in, names


@pytest.mark.parametrize(
    ("query", "subject", "predicate", "how"),
    [
        ("Who owned the Newton Baker House's land?", "Newton Baker House", "occupant", Named.SUBJECT),
        ("Newton Baker House occupant", "Newton Baker House", "occupant", Named.KEY),
        ("Who are the occupants of the Newton Baker House?", "Newton Baker House", "occupant", Named.KEY),
        ("Does Ana solve equations?", "Ana", "likes", Named.ONE_WORD),
        ("What does Ana like?", "Ana", "likes", Named.KEY),
        ("which league did Poli Timisoara play in", "ACS Poli Timișoara", "league", Named.SUBJECT),
        ("Where was the Senate of Italy?", "Senate of the Kingdom of Italy", "", Named.SUBJECT),
        ("Who was the king of Italy?", "Senate of the Kingdom of Italy", "", Named.NOT),
        ("Who is Paul?", "Paul di Resta", "sport", Named.NOT),
        ("anything", "", "", Named.NOT),
        ("", "Ana", "likes", Named.NOT),
    ],
)
def test_how_a_query_names_a_key(query: str, subject: str, predicate: str, how: Named) -> None:
    assert names(query=query, subject=subject, predicate=predicate) is how


def test_the_runs_of_a_query_hold_every_subject_in_it_and_stay_few() -> None:
    """A subject is found by its key, whatever its length up to eight words."""
    runs = named_in("Who commanded the Royal Swedish Air Staff's wing in 1970?")
    assert {key_part("Air Staff"), key_part("Royal Swedish Air Staff"), "1970"} <= set(runs)
    assert "the" not in runs
    assert len(named_in("word " * 5_000)) <= 8 * 64

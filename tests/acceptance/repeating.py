"""What tests of the lineage of repeats share: facts that are said in every session, and the old way of merging them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from consolidation import merge
from consolidation.models import Operation
from consolidation.operations import Kind
from consolidation.runner import Outcome
from observations.models import Lineage, Observation, Scope
from tests.acceptance.acting import KEY, apply, derived_of, fresh
from tests.building import observe, propose

TEXT = "The relay sits in rack 4"
OTHER = "In rack 4 sits the relay"


def say(within: Scope, text: str = TEXT) -> Observation:
    return observe(text, within=within, key=KEY)


def merged(*rows: Observation) -> Operation:
    """An applied merge; the first row's text stays."""
    operation = propose(Kind.MERGE, rows, keeper=rows[0])
    result = apply(operation)
    assert result.outcome is Outcome.APPLIED, result.sentence
    return fresh(operation)


def sessions(within: Scope, count: int) -> tuple[list[Observation], list[Operation]]:
    """A fact said once more in every session, each time merged into what stands: what was said, and the merges."""
    said, merges = [say(within), say(within)], []
    merges.append(merged(*said))
    for _ in range(count - 1):
        said.append(say(within))
        merges.append(merged(derived_of(merges[-1]), said[-1]))
    return said, merges


def named(row: Observation) -> set[int | None]:
    return set(Lineage.objects.filter(derived=row).values_list("source_observation_id", flat=True))


def ids(rows: Sequence[Observation]) -> set[int]:
    return {row.pk for row in rows}


@contextmanager
def nesting() -> Iterator[None]:
    """The old way: a merged row stands in the lineage itself, whatever it was merged with."""
    combine = merge.combine

    def without(*args: Any, came_from: object, **more: Any) -> merge.Combined:
        return combine(*args, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merge, "combine", without)
        yield

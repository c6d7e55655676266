"""What a reviewer put into own words, killed at every statement boundary of editing, applying and undoing: wholly done
or not done, and run again it converges (R55-R58, E.2). As tests/acceptance/test_killed_anywhere.py, whose naive
control shows that this bites.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from consolidation import review
from consolidation.models import Operation
from consolidation.operations import Approval, Json, Kind
from consolidation.review import Changes
from observations.models import Observation
from tests.acceptance import world
from tests.acceptance.test_killed_anywhere import FEWEST_BOUNDARIES, _examine
from tests.building import propose

pytestmark = pytest.mark.django_db(transaction=True)

TEXT = "The relay stands in rack 4"


def _merge() -> Operation:
    return propose(Kind.MERGE, world.rows(), approval=Approval.NEEDS_HUMAN)


def _promotion() -> Operation:
    episodes = world.turns(4)
    support: list[Json] = [[turn.pk, 7, 26] for turn in episodes]
    product: dict[str, Json] = {"discriminator": "d.0", "support": support, "confidence": 0.6}
    return propose(
        Kind.PROMOTE,
        episodes,
        approval=Approval.NEEDS_HUMAN,
        product=product,
        text="The relay is restarted daily",
        key=world.KEY,
    )


def _summary() -> Operation:
    words = "The relay in rack 4 was restarted on days 0, 1 and 2."
    return propose(Kind.COMPACT, world.turns(), approval=Approval.NEEDS_HUMAN, text=words)


def _last(operation: Operation) -> int:
    return max(source.row_id for source in operation.sources.all())


# What is edited: a merge of three of which one stays out, a promotion of four likewise, a summary, which leaves none.
EDITS: dict[str, tuple[Callable[[], Operation], Callable[[Operation], Changes]]] = {
    "merge": (
        _merge,
        lambda old: Changes(leave_out=frozenset({_last(old)}), own={"text": TEXT, "object": "rack four"}),
    ),
    "promotion": (_promotion, lambda old: Changes(leave_out=frozenset({_last(old)}), own={"text": TEXT})),
    "summary": (_summary, lambda _: Changes(own={"text": f"{TEXT}; it was restarted on days 0, 1 and 2."})),
}


def _edit(name: str, operation: Operation) -> int:
    """The edit, approved by the editor."""
    return review.edit_and_approve(operation=operation, by="rita", changes=EDITS[name][1](operation)).pk


def _scenario(verb: str, name: str) -> world.Scenario:
    build = EDITS[name][0]

    def edit(pk: int) -> None:
        old = Operation.objects.select_related("scope").get(pk=pk)
        if not Operation.objects.filter(edited_from=old).exists():  # as whoever looks at the page again would see
            _edit(name, old)

    def edited() -> int:
        return _edit(name, build())

    return {
        "edit": world.Scenario(f"edit a {name}", lambda: build().pk, edit),
        "apply": world.Scenario(f"apply an edited {name}", edited, world.apply),
        "undo": world.Scenario(f"undo an edited {name}", world.applied(edited), world.undo),
    }[verb]


@pytest.mark.parametrize("name", EDITS)
@pytest.mark.parametrize("verb", ["edit", "apply", "undo"])
def test_what_was_edited_and_killed_at_any_statement_is_wholly_done_or_not_done(
    verb: str, name: str, show: Callable[[str], None]
) -> None:
    scenario = _scenario(verb, name)
    examined = list(_examine(scenario))
    show(f"{scenario.name}: killed (exit status -9) at {len(examined)} boundaries")
    assert len(examined) >= FEWEST_BOUNDARIES
    assert [line for line in examined if line[2]] == []
    if verb == "apply":
        [written] = Observation.objects.filter(text__startswith=TEXT)
        assert Operation.objects.get(derived=written).n_sources == {"merge": 2, "promotion": 3, "summary": 3}[name]

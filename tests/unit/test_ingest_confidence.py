"""How sure an imported line is when it does not say so (R67, R75)."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from observations.ingest import lines
from observations.records import Claim


def read(**fields: object) -> Claim:
    """One line as a claim."""
    raw = json.dumps({"text": "Ana rows", **fields})
    parsed = lines.parse_line(raw, scope="team-a/u1", scope_field=None, now=datetime(2026, 1, 1, tzinfo=UTC))
    assert isinstance(parsed.item, Claim)
    return parsed.item


@pytest.mark.parametrize("origin", ["user", "operator"])
def test_what_a_person_said_is_surer_than_anything_promoted(origin: str) -> None:
    """R75: promoted confidence stays below any user-stated fact."""
    assert read(stated_by=origin).confidence == pytest.approx(0.9)


@pytest.mark.parametrize("fields", [{}, {"stated_by": "agent"}, {"stated_by": "tool"}])
def test_anything_else_is_half_sure(fields: dict[str, str]) -> None:
    """R67: the default is .5."""
    assert read(**fields).confidence == pytest.approx(0.5)


def test_what_a_line_says_of_its_confidence_stands() -> None:
    assert read(stated_by="user", confidence=0.3).confidence == pytest.approx(0.3)

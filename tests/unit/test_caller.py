"""What a caller reaches: names are compared as they are, so that two scopes are never taken for one."""

from __future__ import annotations

import pytest

from observations.records import Caller, is_program


def token(pattern: str) -> Caller:
    return Caller(name="token:1", pattern=pattern, may_read=True)


@pytest.mark.parametrize("name", ["team/a", "team/a/b", "team/a-b.c"])
def test_a_pattern_reaches_what_is_below_its_prefix(name: str) -> None:
    assert token("team/*").reaches(name)


@pytest.mark.parametrize("name", ["team", "teamX", "team-b/x", "Team/a", "other/team/a", "", "*", "team*", "team\\a"])
def test_a_pattern_reaches_nothing_beside_its_prefix(name: str) -> None:
    assert not token("team/*").reaches(name)


def test_an_exact_name_reaches_itself_alone() -> None:
    caller = token("a-b.c")
    assert [caller.reaches(name) for name in ("a-b.c", "a.b-c", "a-b.c/d", "A-b.c", "a-b.c ")] == [True, *[False] * 4]


def test_only_a_person_reaches_everything() -> None:
    assert Caller(name="ana@command", pattern="*", person=True).reaches("team/a")
    assert not token("*").reaches("team/a")


def test_a_programs_name_tells_it_from_a_persons() -> None:
    assert [is_program(name) for name in ("token:1", "intake", "ana@command", "cli:token:1")] == [
        True,
        True,
        False,
        False,
    ]

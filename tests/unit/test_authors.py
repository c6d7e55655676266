"""Who may have said a fact about a user: named people. Unknown authors and bots are refused (R119)."""

from __future__ import annotations

import pytest

from observations.ingest import authors
from observations.records import StatedBy

PEOPLE = [
    ("Ana", "user"),
    ("Ana", "User "),
    ("Bo", "human"),
    ("Cy", "operator"),
    ("Robert Talbot", "user"),
    ("Bothe", "user"),
]
BOTS = ["bot", "Bot", "review-bot", "renovate[bot]", "deploy_bot2", "Slackbot", "GitHub Bot", "assistant", "SYSTEM"]
ROLES = ["assistant", "agent", "bot", "tool", "system", "function", "", "unknown", "owner"]


@pytest.mark.parametrize(("name", "role"), PEOPLE)
def test_a_named_person_is_believed(name: str, role: str) -> None:
    assert authors.fault_of_author(name=name, role=role) == ""


@pytest.mark.parametrize("role", ROLES)
def test_a_role_that_is_no_persons_is_refused(role: str) -> None:
    assert "role" in authors.fault_of_author(name="Ana", role=role)
    assert authors.origin_of(role) is None


@pytest.mark.parametrize("name", BOTS)
def test_a_bot_is_refused_whatever_role_it_claims(name: str) -> None:
    assert authors.fault_of_author(name=name, role="user")


@pytest.mark.parametrize("name", ["", "  ", "unknown", "Anonymous", "n/a", "?"])
def test_an_unknown_author_is_refused(name: str) -> None:
    assert "unknown" in authors.fault_of_author(name=name, role="user")


def test_an_author_is_one_source_however_the_name_is_written() -> None:
    assert (
        authors.source_of(name=" Ana  Li", role="user")
        == authors.source_of(name="ana li", role="human")
        == "user:ana li"
    )
    assert authors.origin_of("operator") is StatedBy.OPERATOR

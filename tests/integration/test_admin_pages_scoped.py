"""Every page of the admin (tests/pages.py), asked by people of one team: a page asks the database no more the more
there is, in their scopes or in others. A superuser's reach costs no query, so what holds for one says nothing of them.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tests.building import scope
from tests.desk import client_of, person
from tests.pages import NO_PAGES, Memory, address, memory, names, of_no_scope

pytestmark = pytest.mark.django_db

ROLES = ("Reviewer", "Operator")


def counted(client: Client, mine: Memory, shared: Mapping[str, object]) -> dict[str, int]:
    """How many queries each page runs that opens to this person."""
    found = {}
    for name in sorted(names() - NO_PAGES):
        with CaptureQueriesContext(connection) as captured:
            status = client.get(address(name, mine, shared)).status_code
        if status == 200:
            found[name] = len(captured)
    return found


def test_no_page_asks_more_of_a_reviewer_or_an_operator_the_more_there_is() -> None:
    """STYLE 20, E must hold: more scopes of the team, one with rows of every sort, and another team, page by page."""
    shared, mine = of_no_scope(), memory()
    people = {role: client_of(person(role.lower(), role, "team-a/*")) for role in ROLES}
    for client in people.values():
        for opened in ("consolidation_operation_change", "consolidation_operation_focus"):
            client.get(address(opened, mine, shared))  # the first look marks it opened
    few = {role: counted(client, mine, shared) for role, client in people.items()}
    memory("team-a/u2")
    memory("team-b/u1")
    for number in range(3, 9):
        scope(f"team-a/u{number}")
    many = {role: counted(client, mine, shared) for role, client in people.items()}
    assert min(len(found) for found in few.values()) > 40, "the pages that open to both are looked at"
    grown = [
        f"{name} as {role}: {few[role].get(name, 0)} queries, then {number}"
        for role, found in many.items()
        for name, number in found.items()
        if number > few[role].get(name, 0)
    ]
    assert not grown, "\n".join(grown)

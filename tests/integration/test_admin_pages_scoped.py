"""Every page of the admin (tests/pages.py), asked by people of one team: a page asks the database no more the more
there is, in their scopes or in others, and shows nothing of another team. A superuser's reach costs no query, so what
holds for one says nothing of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

import pytest
from django.db import connection
from django.http import HttpRequest
from django.test import Client
from django.test.utils import CaptureQueriesContext

from consolidation.admin.queue import listing as queue
from consolidation.models import Operation, OperationQuerySet
from observations.admin.base import Reach
from observations.admin.listing import Filter, scope_filter
from tests.building import scope
from tests.desk import client_of, person
from tests.pages import NO_PAGES, Memory, address, memory, names, of_no_scope

pytestmark = pytest.mark.django_db

ROLES = ("Reviewer", "Operator")
THEIRS, MARK = "team-b/u1", "zanzibarine"  # another team's scope, and a word that stands in every text of it
QUEUE = "consolidation_operation_changelist"


@dataclass(frozen=True, slots=True)
class Opened:
    """One page that opened to somebody."""

    queries: int
    tells: str  # what of the other team stood on it; empty: nothing


def opened(client: Client, mine: Memory, shared: Mapping[str, object], which: Collection[str]) -> dict[str, Opened]:
    """Of these pages, those that open to this person."""
    found = {}
    for name in sorted(which):
        with CaptureQueriesContext(connection) as captured:
            answer = client.get(address(name, mine, shared))
        if answer.status_code == 200:
            page = answer.content.decode()
            found[name] = Opened(len(captured), ", ".join(word for word in (MARK, THEIRS) if word in page))
    return found


def faults(which: Collection[str]) -> tuple[list[str], int]:
    """Look at these pages as each role while there is little, and again once there is much, of the team and of another:
    what is wrong with each, in a sentence, and how many opened to both.
    """
    shared, mine = of_no_scope(), memory()
    people = {role: client_of(person(role.lower(), role, "team-a/*")) for role in ROLES}
    for client in people.values():
        for once in ("consolidation_operation_change", "consolidation_operation_focus"):
            client.get(address(once, mine, shared))  # the first look marks it opened
    few = {role: opened(client, mine, shared, which) for role, client in people.items()}
    memory("team-a/u2")
    memory(THEIRS, mark=MARK)
    for number in range(3, 9):
        scope(f"team-a/u{number}")
    many = {role: opened(client, mine, shared, which) for role, client in people.items()}
    wrong = [each for role in ROLES for each in _wrong(role, few[role], many[role])]
    return wrong, min(len(found) for found in few.values())


def _wrong(role: str, few: Mapping[str, Opened], many: Mapping[str, Opened]) -> Iterator[str]:
    for name, page in many.items():
        before = few[name].queries if name in few else 0
        if page.queries > before:
            yield f"{name} as {role}: {before} queries, then {page.queries}"
        if page.tells:
            yield f"{name} as {role} shows {page.tells} of another team"


def test_no_page_asks_more_or_tells_of_others_the_more_there_is() -> None:
    """STYLE 20, E must hold: more scopes of the team, one with rows of every sort, and another team, page by page."""
    wrong, number = faults(names() - NO_PAGES)
    assert number > 40, "the pages that open to both are looked at"
    assert not wrong, "\n".join(wrong)


def test_a_page_that_skips_the_scope_filter_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """E must hold, naive control: a queue that lists what waits, whoever may see it, fails the same check by what it
    shows, to each role.
    """

    def of_everybody(name: str, mine: OperationQuerySet, **_: object) -> OperationQuerySet:
        return Operation.objects.awaiting_review()

    monkeypatch.setattr(queue, "part", of_everybody)
    told = [f"{QUEUE} as {role} shows {MARK}, {THEIRS} of another team" for role in ROLES]
    assert [each for each in faults([QUEUE])[0] if "shows" in each] == told


def test_a_page_that_asks_once_per_scope_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """STYLE 20, naive control: a queue that counts each scope by itself fails the same check by what it asks."""

    def counted(*, request: HttpRequest, reach: Reach) -> Filter:
        for each in reach.scopes:
            Operation.objects.filter(scope=each).count()
        return scope_filter(request=request, reach=reach)

    monkeypatch.setattr(queue, "scope_filter", counted)
    grown = faults([QUEUE])[0]
    assert [each.split(":")[0] for each in grown] == [f"{QUEUE} as {role}" for role in ROLES]

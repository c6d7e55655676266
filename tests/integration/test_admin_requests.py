"""What programs and the background ask people, on the item's page and in the queue: who, why, and what may be said."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from consolidation import requests
from consolidation.models import Operation
from consolidation.operations import Kind, State
from observations.models import Observation, Tombstone
from observations.records import Status
from tests.building import observe, propose, scope
from tests.desk import client_of, decide, item_url, person, status_of
from tests.integration.test_admin_queries import count

pytestmark = pytest.mark.django_db

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture
def olga() -> Client:
    """An operator of team-a, who may decide and apply."""
    return client_of(person("olga", "Operator", "team-a/*"))


def retire(*, by: str = "token:abc", why: str = "a later turn denies it") -> Operation:
    row = observe("The office plant is watered on Mondays.", within=scope())
    [operation] = requests.retire(scope=row.scope, ids=[row.pk], by=by, request="r1", why=why)
    return operation


def settle(key: tuple[str, str, str] = ("", "", "")) -> Operation:
    here = scope()
    rows = [observe(f"Ana plays {game}.", within=here, key=key) for game in ("chess", "go")]
    operation = requests.settle(scope=here, ids=[row.pk for row in rows], by="intake", request="r1", why="it differs")
    assert operation is not None
    return operation


def forget(*texts: str) -> Operation:
    here = scope()
    ids = [observe(text, within=here).pk for text in texts]
    operation = requests.forget(scope=here, ids=ids, by="token:abc", request="r1")
    assert operation is not None
    return operation


def choices(client: Client, operation: Operation) -> list[str]:
    """What the page offers to choose."""
    return [choice.value for choice in client.get(item_url(operation)).context["item"].values.choices]


def test_a_request_to_archive_says_who_asked_and_why_and_is_decided_like_any_other(olga: Client) -> None:
    """Nothing faded: the page does not speak of strength."""
    operation = retire()
    page = olga.get(item_url(operation))
    asked = page.context["item"].request
    assert (asked.by, asked.why, asked.rows) == ("token:abc", "a later turn denies it", "")
    shown = page.content.decode()
    assert "How strong it is today" not in shown
    assert "It stays whole, and undo brings it back." in shown
    decide(olga, operation, "approve_apply", reason="so it is")
    assert status_of(operation) == State.APPLIED
    assert Observation.objects.get().status == Status.ARCHIVED


def test_the_queue_says_who_asked(olga: Client) -> None:
    retire()
    propose(Kind.MERGE, [observe(text, within=scope()) for text in ("Tea", "tea!")])
    rows = olga.get(reverse("admin:consolidation_operation_changelist"), {"show": "waiting"}).context["rows"]
    assert [row.asked_by for row in rows] == ["token:abc"]
    page = olga.get(reverse("admin:consolidation_operation_changelist")).content.decode()
    assert "asked by token:abc" in page


def test_of_claims_without_a_predicate_it_cannot_be_said_that_it_holds_several_values(olga: Client) -> None:
    """Neither offered nor taken; that they are different claims is said instead."""
    operation = settle()
    offered = choices(olga, operation)
    assert offered[2:] == ["both", "text"]
    assert len(offered) == 4
    status, page = decide(olga, operation, "approve", choice="many", reason="both")
    assert status == 409
    assert "say that they are different claims" in page
    decide(olga, operation, "distinct")
    assert status_of(operation) == State.DISTINCT


def test_of_claims_with_a_predicate_it_can(olga: Client) -> None:
    operation = settle(("ana", "plays", "x"))
    assert choices(olga, operation)[2:] == ["both", "many", "text"]
    decide(olga, operation, "approve", choice="many", reason="both")
    assert status_of(operation) == State.APPROVED


def test_a_request_to_forget_lists_what_it_is_about_and_can_only_be_rejected(olga: Client) -> None:
    """It says that this version does not carry one out, for one item and in a selection; nothing is erased."""
    operation = forget("The relay hums.", "The relay is loud.")
    page = olga.get(item_url(operation))
    shown = page.content.decode()
    assert (page.context["item"].request.rows, len(page.context["item"].sources)) == ("2", 2)
    assert "2 of 2 listed" in shown
    assert "does not carry one out" in shown
    assert 'value="approve"' not in shown
    assert 'value="approve_apply"' not in shown
    status, said = decide(olga, operation, "approve", reason="they asked")
    assert (status, status_of(operation)) == (409, State.NEEDS_HUMAN)
    assert "does not carry one out" in said
    queue = reverse("admin:consolidation_operation_changelist")
    data = {"shown": olga.get(queue).context["token"], "all": "1", "verb": "approve", "reason": "x"}
    told = olga.post(reverse("admin:consolidation_operation_decide"), data, follow=True).content.decode()
    assert "A forget is not approved" in told
    decide(olga, operation, "reject", reason="kept by law")
    assert status_of(operation) == State.REJECTED
    assert not Tombstone.objects.exists()


def test_forgetting_everything_counts_what_is_not_listed(olga: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request about more rows than are listed says of how many it is."""
    monkeypatch.setattr(requests, "SHOWN_OF_FORGET", 2)
    here = scope()
    for number in range(3):
        observe(f"Note {number}.", within=here)
    operation = requests.forget(scope=here, ids=None, by="ana@command", request="r1")
    assert operation is not None
    shown = olga.get(item_url(operation)).content.decode()
    assert "2 of 3 listed" in shown
    assert "everything in the scope" in shown


def test_what_the_planner_proposed_was_asked_for_by_nobody(olga: Client) -> None:
    operation = propose(Kind.MERGE, [observe(text, within=scope()) for text in ("Tea", "tea!")])
    page = olga.get(item_url(operation))
    assert page.context["item"].request is None
    assert "Asked for" not in page.content.decode()


def test_who_asked_and_why_are_escaped(olga: Client) -> None:
    """O2: a name and a reason come from outside."""
    operation = retire(by=f"token:{HOSTILE}", why=HOSTILE)
    for address in (item_url(operation), reverse("admin:consolidation_operation_changelist")):
        page = olga.get(address).content.decode()
        assert HOSTILE not in page
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page


def test_each_kind_of_request_is_read_in_as_many_queries_for_two_rows_as_for_twelve(olga: Client) -> None:
    """STYLE 20."""
    small, large = forget("a", "b"), forget(*(f"c{number}" for number in range(12)))
    for operation in (small, large):
        olga.get(item_url(operation))  # the first look marks it opened
    assert count(olga, item_url(small)) == count(olga, item_url(large))

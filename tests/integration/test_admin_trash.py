"""The trash: what was pruned and can come back, until when, and what keeps it from being erased (R51, I12)."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import transaction
from django.test import Client
from django.urls import reverse

from consolidation import pausing, runner
from consolidation.admin.memory.trash import LINES, Thrown
from consolidation.models import Operation, Policy
from consolidation.operations import Approval, Kind, State
from observations import store
from observations.models import Outbox, Scope, database_now
from observations.records import Status
from tests.building import observe, propose, scope
from tests.desk import client_of, decide, item_url, person, settle
from tests.engine import approve_and_apply

pytestmark = pytest.mark.django_db

TRASH = "admin:consolidation_operation_trash"


@pytest.fixture
def within() -> Scope:
    """An empty scope of team-a."""
    return scope("team-a/u1")


@pytest.fixture
def olga() -> Client:
    """An operator of team-a."""
    return client_of(person("olga", "Operator", "team-a/*"))


def prune(within: Scope, *texts: str) -> Operation:
    """An applied prune of these rows."""
    rows = [observe(text, within=within) for text in texts or ("Queue was long",)]
    return approve_and_apply(propose(Kind.PRUNE, rows, approval=Approval.NEEDS_HUMAN), reason="past its retention")


def thrown(client: Client, **query: str) -> list[Thrown]:
    """What the page lists."""
    rows: list[Thrown] = client.get(reverse(TRASH), query).context["rows"]
    return rows


def test_an_empty_trash_says_what_that_means(olga: Client) -> None:
    assert "The trash is empty" in olga.get(reverse(TRASH)).content.decode()


def test_what_was_pruned_is_listed_with_its_words_who_approved_it_and_when_it_goes(within: Scope, olga: Client) -> None:
    operation = prune(within, "Queue was long", "Lift was slow")
    [row] = thrown(olga)
    assert [one.text for one in row.records] == ["Queue was long", "Lift was slow"]
    assert (row.by, row.applied.partition(",")[0], row.scope) == ("rita", "olga", within.name)
    assert row.left.word == "29 days left"
    due = Outbox.objects.get(task=runner.ERASE_PRUNED).due_at
    assert row.erased_at == f"{due.day} {due:%b %Y, %H:%M}"
    assert f'href="{item_url(operation, "undo")}"' in olga.get(reverse(TRASH)).content.decode()


def test_only_applied_prunes_are_in_the_trash(within: Scope, olga: Client) -> None:
    """A prune that is proposed, approved or undone, and an archive, are not."""
    propose(Kind.PRUNE, [observe("Open", within=within)], approval=Approval.NEEDS_HUMAN)
    approve_and_apply(propose(Kind.ARCHIVE, [observe("Archived", within=within)]))
    gone = prune(within)
    assert len(thrown(olga)) == 1
    assert decide(olga, gone, "undo")[0] == 200
    assert thrown(olga) == []


def test_what_is_erased_is_out_of_the_trash(within: Scope, olga: Client) -> None:
    """The rest of a prune stays in it, without the erased row."""
    operation = prune(within, "Queue was long", "Lift was slow")
    first, second = operation.sources.order_by("position").values_list("observation_id", flat=True)
    for pk, left in ((first, ["Lift was slow"]), (second, None)):
        with transaction.atomic():
            store.erase(scope_id=within.pk, ids=[pk or 0], by="t", reason="asked", request="forget:1")
        rows = thrown(olga)
        assert [[one.text for one in row.records] for row in rows] == ([left] if left else [])
        assert "Queue was long" not in olga.get(reverse(TRASH)).content.decode()


def test_on_hold_nothing_is_erased_and_the_page_says_so(within: Scope, olga: Client) -> None:
    prune(within)
    Scope.objects.filter(pk=within.pk).update(held_at=database_now(), hold_reason="a case")
    assert thrown(olga)[0].left.word == "on hold: not erased while it lasts"
    Scope.objects.filter(pk=within.pk).update(held_until=database_now() + timedelta(days=3))
    assert thrown(olga)[0].left.word.startswith("on hold until ")


@pytest.mark.parametrize("everything", [True, False])
def test_while_paused_nothing_is_erased_and_the_page_says_so(everything: bool, within: Scope, olga: Client) -> None:
    prune(within)
    pausing.pause(scope=None if everything else within, by="root", reason="moving")
    assert thrown(olga)[0].left.word == "paused: not erased while it lasts"


def test_a_longer_grace_period_counts_from_when_it_was_set(within: Scope, olga: Client) -> None:
    """The runner asks the policy as it is then, so the page does too; a shorter one never brings it forward."""
    prune(within)
    Policy.objects.create(pattern="team-a/*", body={"grace_days": 60})
    assert thrown(olga)[0].left.word == "59 days left"
    Policy.objects.update(body={"grace_days": 1})
    assert thrown(olga)[0].left.word == "29 days left"


def test_a_policy_that_cannot_be_read_erases_nothing(within: Scope, olga: Client) -> None:
    prune(within)
    Policy.objects.create(pattern="*", body={"grace_days": "many"})
    [row] = thrown(olga)
    assert (row.left.word, row.erased_at) == ("no erasure is due", "")


def test_what_is_due_says_so_and_its_last_day_counts_as_less_than_one(within: Scope, olga: Client) -> None:
    prune(within)
    Policy.objects.create(pattern="*", body={"grace_days": 1})
    Outbox.objects.update(due_at=database_now())
    assert thrown(olga)[0].left.word == "less than a day left"
    operation = Operation.objects.get(kind=Kind.PRUNE)
    Outbox.objects.update(done_at=database_now())
    assert thrown(olga)[0].left.word == "no erasure is due"
    assert operation.status == State.APPLIED


def test_many_records_of_one_prune_are_counted_beyond_the_first(within: Scope, olga: Client) -> None:
    prune(within, *(f"Row {number}" for number in range(LINES + 3)))
    [row] = thrown(olga)
    assert (len(row.records), row.more) == (LINES, 3)


def test_the_trash_is_narrowed_to_a_scope(within: Scope, olga: Client) -> None:
    other = scope("team-a/u2")
    prune(within, "Here")
    prune(other, "There")
    assert [row.scope for row in thrown(olga, scope=str(other.pk))] == [other.name]
    assert len(thrown(olga)) == 2


def test_who_may_not_undo_reads_the_trash_without_the_button(within: Scope) -> None:
    operation = prune(within)
    vera = client_of(person("vera", "Viewer", "team-a/*"))
    page = vera.get(reverse(TRASH)).content.decode()
    assert "Queue was long" in page
    assert item_url(operation, "undo") not in page


def test_undoing_from_the_trash_brings_the_rows_back(within: Scope, olga: Client) -> None:
    operation = prune(within)
    assert decide(olga, operation, "undo")[0] == 200
    settle()
    source = operation.sources.get().observation
    assert source is not None
    assert source.status == Status.ACTIVE

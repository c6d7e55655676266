"""The queue as a reviewer meets it: what waits for them, by risk, with counts, filters in the address, whole lists."""

from __future__ import annotations

import html
import re
from collections import Counter
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from consolidation import review
from consolidation.admin.queue.bulk_reading import MEANS
from consolidation.models import BulkDecision, BulkItem, Deferral, Operation, Policy
from consolidation.operations import Approval, Kind, State
from observations import outbox
from observations.models import Scope, database_now
from tests.building import observe, propose, scope
from tests.desk import client_of, person, settle
from tests.queueing import ask_many, rows_in

pytestmark = pytest.mark.django_db

QUEUE = reverse("admin:consolidation_operation_changelist")
DECIDE = reverse("admin:consolidation_operation_decide")
ASK = reverse("admin:consolidation_operation_bulkask")


@pytest.fixture
def here() -> Scope:
    """Whose memory it is."""
    return scope("team-a/u1")


@pytest.fixture
def ana() -> Client:
    """A reviewer of team-a."""
    return client_of(person("ana", "Reviewer", "team-a/*"))


@pytest.fixture
def ben() -> Client:
    """Another one."""
    return client_of(person("ben", "Reviewer", "team-a/*"))


def listed(client: Client, query: str = "") -> list[int]:
    """The ids that a page of the queue lists, in its order."""
    return [row.pk for row in client.get(f"{QUEUE}{query}").context["rows"]]


def page_of(bulk: BulkDecision, page: str = "") -> str:
    """The address of a decision over many items, or of what belongs to it."""
    return reverse(f"admin:consolidation_operation_bulk{page}", args=[bulk.pk])


def choose(
    client: Client, verb: str, rows: list[Operation] | None = None, query: str = "", **more: str
) -> BulkDecision:
    """Post a selection of the queue's page that gets a page of its own."""
    token = client.get(f"{QUEUE}{query}").context["token"]
    picks = {"all": "1"} if rows is None else {"pick": [str(row.pk) for row in rows]}
    client.post(DECIDE, {"shown": token, "verb": verb, **picks, **more})
    return BulkDecision.objects.latest("pk")


# --- the list -------------------------------------------------------------------------------------------------------


def test_the_queue_opens_on_what_waits_for_me_by_risk_then_uncertainty(here: Scope, ana: Client) -> None:
    """E.1: without what I proposed, edited or put off; what others put off stays mine."""
    rows = rows_in(here)
    [low], [high] = ask_many(rows, 1), ask_many(rows, 1, kind=Kind.PRUNE)
    [medium] = ask_many(rows, 1, kind=Kind.SUPERSEDE)
    ask_many(rows, 1, by="ana")
    [mine], [others] = ask_many(rows, 1), ask_many(rows, 1)
    until = database_now() + timedelta(days=1)
    Deferral.objects.create(scope=here, operation=mine, by="ana", until=until)
    Deferral.objects.create(scope=here, operation=others, by="ben", until=until)
    assert listed(ana) == [high.pk, medium.pk, low.pk, others.pk]
    assert listed(ana, "?show=deferred") == [mine.pk]


def test_an_approval_says_when_it_runs_out_and_can_be_given_again(here: Scope, ana: Client) -> None:
    """E.9: soonest first; one that ran out says so, and approving it again gives it a new time."""
    Policy.objects.create(pattern="team-a/*", body={"approval_ttl_hours": 1})
    first, second = ask_many(rows_in(here), 2)
    for operation in (second, first):
        review.approve(operation=operation, by="ana")
    Operation.objects.filter(pk=first.pk).update(approval_expires_at=database_now() - timedelta(hours=1))
    page = ana.get(f"{QUEUE}?show=approved")
    assert [row.pk for row in page.context["rows"]] == [first.pk, second.pk]
    assert "expired: approve it again" in page.content.decode()
    first.refresh_from_db()
    again = review.approve(operation=first, by="ana")
    assert again.approval_expires_at is not None
    assert again.approval_expires_at > database_now()
    assert "expired" not in ana.get(f"{QUEUE}?show=approved").content.decode()


def test_what_waits_for_a_second_person_has_a_part_of_its_own(here: Scope, ana: Client) -> None:
    one, other = ask_many(rows_in(here), 2)
    for operation in (one, other):
        review.approve(operation=operation, by="ana")
    Operation.objects.filter(pk=one.pk).update(needs_second=True)
    assert listed(ana, "?show=second") == [one.pk]


def test_the_address_holds_the_filters_and_the_counts_lead_to_them(here: Scope, ana: Client) -> None:
    """E.1: each count beside the list is as long as the list that it opens; other filters are kept."""
    rows = rows_in(here)
    ask_many(rows, 3)
    ask_many(rows, 2, kind=Kind.PRUNE, hours=30)
    ask_many(rows, 4, rule=("close", "0.90-0.95"), hours=100)
    ask_many(rows_in(scope("team-a/u2")), 1)
    page = ana.get(QUEUE)
    seen = Counter[str]()
    for group in page.context["facets"]:
        for value in group.values:
            assert len(listed(ana, value.query)) == int(value.count), value
            seen[group.name] += int(value.count)
    assert seen == {"risk": 10, "age": 10, "kind": 10, "scope": 10, "rule": 10}
    overdue = ana.get(f"{QUEUE}?kind=prune&age=overdue")
    assert len(overdue.context["rows"]) == 2
    assert "kind=prune" in overdue.context["view"]
    assert "overdue" in overdue.content.decode()
    assert listed(ana, "?kind=nonsense&age=x&risk=y&scope=0&rule=%00") == []  # a selection there is not of everything


def test_the_queue_runs_a_fixed_number_of_queries(here: Scope) -> None:
    """STYLE 20: whatever it holds, and however it is narrowed."""
    olga = client_of(person("olga", "Operator", "team-a/*"))
    rows = rows_in(here)
    ask_many(rows, 1)

    def count(query: str) -> int:
        with CaptureQueriesContext(connection) as captured:
            assert olga.get(f"{QUEUE}{query}").status_code == 200
        return len(captured)

    views = ("", "?kind=merge&risk=low&age=fresh", "?show=approved", "?show=decided", f"?scope={here.pk}")
    few = [count(view) for view in views]
    ask_many(rows, 30)
    ask_many(rows, 30, kind=Kind.PRUNE, hours=400)
    ask_many(rows_in(scope("team-a/u2")), 5)
    assert [count(view) for view in views] == few
    assert max(few) <= 24


# --- approving together ---------------------------------------------------------------------------------------------


def test_approving_together_says_first_what_will_happen_and_shows_every_word(here: Scope, ana: Client) -> None:
    """E.4, D2: nothing is approved before the page that shows each item whole was confirmed."""
    long = "word " * 200
    pair = [observe(f"{long}{end}", within=here) for end in ("<b>one</b>", "two\u202e")]
    merge = propose(Kind.MERGE, pair, approval=Approval.NEEDS_HUMAN)
    bulk = choose(ana, "approve", [merge])
    merge.refresh_from_db()
    assert merge.status == State.NEEDS_HUMAN
    page = ana.get(page_of(bulk)).content.decode()
    assert "2 records leave the reads, and 1 is written" in page
    assert "&lt;b&gt;one&lt;/b&gt;" in page
    assert "\\u202e" in page
    assert "\u202e" not in page
    ana.post(page_of(bulk, "confirm"))
    settle()
    merge.refresh_from_db()
    assert (merge.status, merge.decided_by) == (State.APPROVED, "ana")
    assert "now approved, not applied" in ana.get(page_of(bulk)).content.decode()


@pytest.mark.parametrize("kind", [Kind.PRUNE, Kind.FORGET, Kind.SUPERSEDE])
def test_what_cannot_be_approved_together_is_refused_before_anything_is(kind: Kind, here: Scope, ana: Client) -> None:
    rows = rows_in(here)
    ask_many(rows, 1)
    ask_many(rows, 1, kind=kind)
    token = ana.get(QUEUE).context["token"]
    said = ana.post(DECIDE, {"shown": token, "verb": "approve", "all": "1"}, follow=True).content.decode()
    assert f"A {kind} is {'not approved' if kind == Kind.FORGET else 'approved by itself'}" in said
    assert not BulkDecision.objects.exists()


def test_more_than_fifty_are_not_approved_together(here: Scope, ana: Client) -> None:
    ask_many(rows_in(here), 51)
    token = ana.get(f"{QUEUE}?size=200").context["token"]
    said = ana.post(DECIDE, {"shown": token, "verb": "approve", "all": "1"}, follow=True).content.decode()
    assert "At most 50 are approved together" in said


def test_a_text_too_long_to_be_shown_is_not_approved_together(here: Scope, ana: Client) -> None:
    pair = [observe(f"{n}{'x' * 30_000}", within=here) for n in (1, 2)]
    propose(Kind.MERGE, pair, approval=Approval.NEEDS_HUMAN)
    token = ana.get(QUEUE).context["token"]
    said = ana.post(DECIDE, {"shown": token, "verb": "approve", "all": "1"}, follow=True).content.decode()
    assert "longer than this page can show" in said


def test_a_touch_over_the_blast_radius_is_said_before_the_approval(here: Scope, ana: Client) -> None:
    Policy.objects.create(pattern="*", body={"blast_floor": 1})
    bulk = choose(ana, "approve", [propose(Kind.MERGE, rows_in(here), approval=Approval.NEEDS_HUMAN)])
    assert "over it: a second person agrees to these before any is applied" in ana.get(page_of(bulk)).content.decode()


# --- more than fifty chosen -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("verb", "says", "becomes"),
    [
        ("reject", "Reject these 51 items", State.REJECTED),
        ("distinct", "Mark distinct these 51 items", State.DISTINCT),
        ("defer", "Put off these 51 items", State.NEEDS_HUMAN),
    ],
)
def test_more_than_fifty_chosen_rows_are_confirmed_as_a_whole_list_is(
    verb: str, says: str, becomes: State, here: Scope, ana: Client
) -> None:
    """E.4, D2: how many, of which scope, about how many records, and what will happen, before anything does; fifty are
    decided at once. What is sent twice is done once.
    """
    rows = rows_in(here)
    made = ask_many(rows, 101)
    bulk = choose(ana, verb, made[:51], query="?size=200", days="3")
    page = ana.get(page_of(bulk)).content.decode()
    assert says in page
    assert MEANS[verb] in html.unescape(page)
    assert re.search(r'team-a/u1</td><td class="num">51</td><td class="num">102</td>', page)
    assert "nothing is over a blast radius" in page
    outbox.work()
    assert (BulkItem.objects.filter(outcome="waiting").count(), Deferral.objects.count()) == (51, 0)
    assert set(Operation.objects.values_list("status", flat=True)) == {State.NEEDS_HUMAN}
    for _ in range(2):
        ana.post(page_of(bulk, "confirm"), {"reason": "a broken rule"})
    outbox.work()
    settle()
    assert BulkItem.objects.filter(bulk=bulk, outcome="done").count() == 51
    assert Operation.objects.filter(pk__in=[one.pk for one in made[:51]], status=becomes).count() == 51
    token = ana.get(f"{QUEUE}?size=200").context["token"]
    rest = {"shown": token, "verb": verb, "all": "1", "reason": "no", "days": "3"}
    ana.post(DECIDE, rest)
    settle()
    assert len(listed(ana)) == 0


# --- whole lists ----------------------------------------------------------------------------------------------------


def test_a_whole_list_is_rejected_on_every_page_of_it_and_nothing_that_came_later(here: Scope, ana: Client) -> None:
    """E.4, D2: 60 items on two pages, one that arrives before the confirmation, another sort beside them."""
    rows = rows_in(here)
    ask_many(rows, 60)
    ask_many(rows, 1, kind=Kind.ARCHIVE)
    page = ana.get(f"{QUEUE}?kind=merge")
    form = re.search(r'action="[^"]*/bulk/ask/".*?</form>', page.content.decode(), re.DOTALL)
    assert form is not None
    fields = dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', form.group()))
    del fields["csrfmiddlewaretoken"]
    data = {name: html.unescape(value) for name, value in fields.items()}
    assert ana.post(ASK, {**data, "verb": "reject"}).status_code == 302
    bulk = BulkDecision.objects.get()
    ask_many(rows, 1)
    assert "Reject these 60 items" in ana.get(page_of(bulk)).content.decode()
    ana.post(page_of(bulk, "confirm"), {"reason": "a broken rule"})
    assert ana.get(page_of(bulk, "progress")).json() == {
        "total": 60,
        "done": 0,
        "refused": 0,
        "waiting": 60,
        "finished": False,
        "trouble": "",
    }
    assert BulkItem.objects.filter(outcome="waiting").count() == 60
    outbox.work()
    settle()
    assert Counter(Operation.objects.values_list("kind", "status")) == {
        ("merge", "rejected"): 60,
        ("merge", "needs_human"): 1,
        ("archive", "needs_human"): 1,
    }
    assert ana.get(page_of(bulk, "progress")).json()["done"] == 60


def test_several_sorts_are_no_whole_list(here: Scope, ana: Client) -> None:
    rows = rows_in(here)
    ask_many(rows, 1)
    ask_many(rows, 1, kind=Kind.ARCHIVE)
    assert "Choose one kind, one scope and one rule" in ana.get(QUEUE).content.decode()
    said = ana.post(ASK, {"verb": "reject"}, follow=True).content.decode()
    assert "not all of one sort" in said
    assert ana.post(ASK, {"verb": "approve"}).status_code == 400


def test_a_selection_is_put_off_and_leaves_only_my_queue(here: Scope, ana: Client, ben: Client) -> None:
    made = ask_many(rows_in(here), 3)
    choose(ana, "defer", made[:2], days="3")
    assert choose(ana, "approve", made[2:], days="3").until is None
    assert (len(listed(ana)), len(listed(ben)), len(listed(ana, "?show=deferred"))) == (1, 3, 2)


def test_others_see_how_far_it_is_and_decide_nothing_of_it(here: Scope, ana: Client, ben: Client) -> None:
    """A decision is its asker's; who may not see one of its scopes does not find it."""
    bulk = choose(ana, "approve", [propose(Kind.MERGE, rows_in(here), approval=Approval.NEEDS_HUMAN)])
    assert ben.get(page_of(bulk)).status_code == 200
    assert ben.post(page_of(bulk, "confirm")).status_code == 404
    stranger = client_of(person("stan", "Operator", "team-b/*"))
    for page in ("", "progress"):
        assert stranger.get(page_of(bulk, page)).status_code == 404
    assert stranger.post(page_of(bulk, "confirm")).status_code == 404
    assert Operation.objects.get().status == State.NEEDS_HUMAN


def test_a_page_of_a_bulk_decision_runs_a_fixed_number_of_queries(here: Scope, ana: Client) -> None:
    """STYLE 20: before and after it is confirmed, for two items and for forty."""

    def counts(number: int) -> tuple[int, int]:
        rows = rows_in(here)
        bulk = choose(ana, "approve", ask_many(rows, number))
        found = []
        for _ in range(2):
            with CaptureQueriesContext(connection) as captured:
                assert ana.get(page_of(bulk)).status_code == 200
            found.append(len(captured))
            ana.post(page_of(bulk, "confirm"))
        return found[0], found[1]

    few = counts(2)
    assert counts(40) == few
    assert max(few) <= 25

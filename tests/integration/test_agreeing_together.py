"""A second person agrees to many approvals at once: each shown in full as it was approved, each by itself (E7, D2)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import connection, reset_queries
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from consolidation import review, runner
from consolidation.models import BulkDecision, BulkItem, Operation, Policy
from consolidation.operations import Approval, Kind, State
from consolidation.review import Decision, Refused
from consolidation.review.bulk import Verb, ask, carry_out, start
from consolidation.runner import Outcome
from observations.models import Event, Scope, ScopeAccess, database_now
from tests.acceptance.boundaries import run_in_child
from tests.building import observe, propose, scope
from tests.desk import client_of, item_url, person, settle
from tests.queueing import ask_many, rows_in

pytestmark = pytest.mark.django_db

QUEUE = reverse("admin:consolidation_operation_changelist")
WAITING = f"{QUEUE}?show=second"
DECIDE = reverse("admin:consolidation_operation_decide")
AGREED = ("done", "agreed to; it can be applied")


@pytest.fixture
def here() -> Scope:
    """Whose memory it is; its policy wants two people for every merge."""
    Policy.objects.create(pattern="team-a/*", body={"two_person_kinds": ["merge", "prune", "alias"]})
    return scope("team-a/u1")


@pytest.fixture
def ben(db: None) -> Client:
    """The second person, a reviewer of team-a."""
    return client_of(person("ben", "Reviewer", "team-a/*"))


def merge(within: Scope, name: str = "Tea") -> Operation:
    """A merge of two records, for a person."""
    pair = [observe(f"{name} {word}", within=within) for word in ("green", "Green.")]
    return propose(Kind.MERGE, pair, approval=Approval.NEEDS_HUMAN)


def approved(operation: Operation, *, by: str = "ana", reason: str = "", decision: Decision | None = None) -> Operation:
    """The operation, approved by one person."""
    digest = review.shown_digest(operation=operation)
    done = review.approve(operation=operation, by=by, digest=digest, reason=reason, decision=decision)
    settle()
    return done


def listed(operations: list[Operation], *, by: str = "ben") -> BulkDecision:
    """These as they were approved, to be agreed to once that is confirmed."""
    shown = {row.pk: Operation.objects.get(pk=row.pk).approved_digest for row in operations}
    return ask(verb=Verb.SECOND, among=Operation.objects.all(), by=by, shown=shown)


def outcomes(bulk: BulkDecision) -> list[tuple[str, str]]:
    """What became of each item, in order."""
    settle()
    return list(BulkItem.objects.filter(bulk=bulk).order_by("position").values_list("outcome", "sentence"))


def choose(client: Client, rows: list[Operation] | None = None) -> BulkDecision:
    """Choose on the list of what waits for a second person, as a browser does."""
    token = client.get(WAITING).context["token"]
    picks = {"all": "1"} if rows is None else {"pick": [str(row.pk) for row in rows]}
    client.post(DECIDE, {"shown": token, "verb": "second", **picks})
    return BulkDecision.objects.latest("pk")


def page_of(bulk: BulkDecision, page: str = "") -> str:
    """The address of it, or of what belongs to it."""
    return reverse(f"admin:consolidation_operation_bulk{page}", args=[bulk.pk])


# --- on the pages ---------------------------------------------------------------------------------------------------


def test_a_second_person_agrees_to_several_after_each_was_shown_as_it_was_approved(here: Scope, ben: Client) -> None:
    """E7, D2: who approved, why, and the text that was chosen; nothing is agreed to before it was confirmed."""
    chosen, plain = merge(here), merge(here, "Rye")
    keep = chosen.sources.order_by("position").values_list("observation_id", flat=True)[1]
    approved(chosen, reason="the <b>longer</b> one", decision=Decision(keep=keep))
    approved(plain)
    bulk = choose(ben)
    assert not Operation.objects.exclude(seconded_by="").exists()
    page = ben.get(page_of(bulk)).content.decode()
    assert '<em>will say</em> <q class="memory">Tea Green.</q>' in page
    assert f'<li class="kept"><span class="id">obs_{keep}</span>' in page
    assert "the &lt;b&gt;longer&lt;/b&gt; one" in page
    assert "Agree to these 2 items" in page
    assert 'name="reason"' not in page
    assert "4 records leave the reads, and 2 are written" in page
    assert "blast radius" not in page.lower()
    ben.post(page_of(bulk, "confirm"))
    assert outcomes(bulk) == [AGREED, AGREED]
    assert set(Operation.objects.values_list("decided_by", "seconded_by")) == {("ana", "ben")}
    assert Event.objects.filter(action="seconded", actor="ben").count() == 2
    assert runner.apply(operation=chosen, by="olga").outcome == Outcome.APPLIED


def test_only_what_this_person_may_agree_to_together_can_be_chosen(here: Scope, ben: Client) -> None:
    """E7: neither what they approved or asked for, nor what ran out, nor what cannot be undone or needs no second."""
    mine, theirs, late, prune = merge(here), merge(here, "Rye"), merge(here, "Oat"), ask_many(rows_in(here), 1)[0]
    approved(mine, by="ben")
    approved(theirs)
    approved(late)
    Operation.objects.filter(pk=late.pk).update(approval_expires_at=database_now() - timedelta(minutes=1))
    [prune] = ask_many(rows_in(here), 1, kind=Kind.PRUNE)
    approved(prune, reason="old")
    page = ben.get(WAITING)
    assert {row.pk for row in page.context["rows"]} == {mine.pk, theirs.pk, late.pk, prune.pk}
    assert {row.pk for row in page.context["rows"] if row.decidable} == {theirs.pk}
    assert choose(ben).total == 1
    assert [item.operation_id for item in BulkItem.objects.all()] == [theirs.pk]


def test_back_leads_to_what_waits_for_a_second_person(here: Scope, ben: Client) -> None:
    approved(merge(here))
    answer = ben.post(DECIDE, {"shown": ben.get(WAITING).context["token"], "verb": "second"})
    assert answer["Location"] == WAITING
    assert f'href="{WAITING}">Not now</a>' in ben.get(page_of(choose(ben))).content.decode()


def test_what_is_too_long_to_be_shown_is_not_agreed_to_together(here: Scope, ben: Client) -> None:
    """D2: it is read and agreed to on its own page."""
    pair = [observe(f"{n}{'x' * 30_000}", within=here) for n in (1, 2)]
    approved(propose(Kind.MERGE, pair, approval=Approval.NEEDS_HUMAN))
    token = ben.get(WAITING).context["token"]
    said = ben.post(DECIDE, {"shown": token, "verb": "second", "all": "1"}, follow=True).content.decode()
    assert "longer than this page can show" in said
    assert not BulkDecision.objects.exists()


def test_more_than_fifty_a_kind_that_stays_and_a_whole_list_are_not_agreed_to_together(here: Scope) -> None:
    """D2: as with approving: each shown in full, fifty at most, and only what can be undone."""
    made = ask_many(rows_in(here), 51)
    [prune] = ask_many(rows_in(here), 1, kind=Kind.PRUNE)
    for rows, words in ((made, "At most 50 are agreed to together"), ([prune], "A prune is agreed to by itself")):
        with pytest.raises(Refused, match=words):
            ask(verb=Verb.SECOND, among=Operation.objects.all(), by="ben", shown={row.pk: "0" * 64 for row in rows})
    with pytest.raises(Refused, match="Only what was shown is agreed to"):
        ask(verb=Verb.SECOND, among=Operation.objects.all(), by="ben")


# --- who and what is refused ----------------------------------------------------------------------------------------


def expired(operation: Operation) -> None:
    """Its approval ran out."""
    Operation.objects.filter(pk=operation.pk).update(approval_expires_at=database_now() - timedelta(minutes=1))


def anew(operation: Operation) -> None:
    """It was taken back and approved with another choice."""
    review.reopen(operation=operation, by="ana")
    keep = operation.sources.order_by("position").values_list("observation_id", flat=True)[1]
    approved(Operation.objects.get(pk=operation.pk), decision=Decision(keep=keep))


def taken_back(operation: Operation) -> None:
    """Nobody approves it any more."""
    review.reopen(operation=operation, by="ana")


def moved(operation: Operation) -> None:
    """One of its records is not what it was."""
    row = operation.sources.select_related("observation").order_by("position")[0].observation
    assert row is not None
    runner.apply(operation=propose(Kind.ARCHIVE, [row]), by="seed")


def agreed(operation: Operation) -> None:
    """Somebody else was first."""
    review.second(operation=operation, by="cem")


@pytest.mark.parametrize(
    ("between", "words"),
    [
        (expired, "has expired"),
        (anew, "approved anew since it was shown"),
        (taken_back, "not approved: there is nothing to agree to"),
        (moved, "is not what ana approved any more"),
        (agreed, "cem agreed to"),
    ],
)
def test_what_changed_since_it_was_shown_is_refused_and_stops_no_other(
    between: Callable[[Operation], None], words: str, here: Scope, ben: Client
) -> None:
    """D2, E.4: one refused item, with its sentence, between two that are agreed to."""
    made = [approved(merge(here, name)) for name in ("Tea", "Rye", "Oat")]
    bulk = listed(made)
    between(made[1])
    settle()
    start(bulk=bulk, by="ben")
    found = outcomes(bulk)
    assert [outcome for outcome, _ in found] == ["done", "refused", "done"]
    assert words in found[1][1]
    assert Operation.objects.get(pk=made[1].pk).seconded_by == ("cem" if between is agreed else "")


@pytest.mark.parametrize(("who", "words"), [("ben", "You approved"), ("cli:ben", "You approved"), ("zoe", "asked for")])
def test_neither_who_approved_it_nor_who_asked_for_it_is_the_second_person(
    who: str, words: str, here: Scope, ben: Client
) -> None:
    """E7: refused per item, whichever name it goes by."""
    person("zoe", "Reviewer", "team-a/*")
    [theirs] = ask_many(rows_in(here), 1, by="zoe" if who == "zoe" else "")
    approved(theirs, by="ana" if who == "zoe" else who)
    by = "zoe" if who == "zoe" else "ben"
    bulk = listed([theirs, approved(merge(here))], by=by)
    start(bulk=bulk, by=by)
    [(outcome, sentence), other] = outcomes(bulk)
    assert (outcome, words in sentence, other) == ("refused", True, AGREED)
    assert Operation.objects.get(pk=theirs.pk).seconded_by == ""


def test_who_may_not_review_there_any_more_agrees_to_nothing(here: Scope, ben: Client) -> None:
    """D2: asked when an item's turn comes."""
    bulk = listed([approved(merge(here))])
    ScopeAccess.objects.filter(user__username="ben").update(role="Viewer")
    start(bulk=bulk, by="ben")
    assert outcomes(bulk) == [("refused", "ben may not decide here any more.")]


@pytest.mark.parametrize("group", ["Viewer", "Steward"])
def test_who_may_not_review_is_offered_nothing_and_refused(group: str, here: Scope) -> None:
    """E7: neither boxes nor the address."""
    client = client_of(person("vera", group, "team-a/*"))
    approved(merge(here))
    page = client.get(WAITING)
    assert "Agree as second person" not in page.content.decode()
    assert client.post(DECIDE, {"shown": page.context["token"], "verb": "second", "all": "1"}).status_code == 403
    assert not BulkDecision.objects.exists()


def test_rows_of_another_list_are_refused_item_by_item(here: Scope, ben: Client) -> None:
    """D2: what a page showed as proposed is not agreed to, and what it showed as approved is not approved."""
    [open_now, keep] = [merge(here), merge(here, "Rye")]
    proposed = ben.get(QUEUE).context["token"]
    second = keep.sources.order_by("position").values_list("observation_id", flat=True)[1]
    approved(keep, decision=Decision(keep=second))
    ben.post(DECIDE, {"shown": proposed, "verb": "second", "all": "1"})
    bulk = BulkDecision.objects.latest("pk")
    start(bulk=bulk, by="ben")
    assert {outcome for outcome, _ in outcomes(bulk)} == {"refused"}
    ben.post(DECIDE, {"shown": ben.get(WAITING).context["token"], "verb": "approve", "all": "1"})
    again = BulkDecision.objects.latest("pk")
    start(bulk=again, by="ben")
    [(outcome, sentence)] = outcomes(again)
    assert (outcome, "ana decided it" in sentence) == ("refused", True)
    assert Operation.objects.get(pk=open_now.pk).status == State.NEEDS_HUMAN
    assert "Agree as second person" in ben.get(item_url(keep)).content.decode()


# --- cost and crashes -----------------------------------------------------------------------------------------------


def test_agreeing_runs_a_fixed_number_of_queries(here: Scope, ben: Client) -> None:
    """STYLE 20: the list and the page, for two items and for forty."""

    def counts(number: int) -> tuple[int, int]:
        for operation in ask_many(rows_in(here), number):
            approved(operation)
        reset_queries()  # the log holds so many and no more
        with CaptureQueriesContext(connection) as listing:
            assert ben.get(WAITING).status_code == 200
        bulk = choose(ben)
        with CaptureQueriesContext(connection) as shown:
            assert ben.get(page_of(bulk)).status_code == 200
        start(bulk=bulk, by="ben")
        assert BulkItem.objects.filter(bulk=bulk, outcome="done").count() == number
        return len(listing), len(shown)

    few = counts(2)
    assert counts(40) == few
    assert max(few) <= 25


@pytest.mark.django_db(transaction=True)
def test_killed_workers_are_followed_by_one_that_goes_on_agreeing() -> None:
    """kill -9 at one statement after another: every item is agreed to once, with one event."""
    Policy.objects.create(pattern="team-a/*", body={"two_person_kinds": ["merge"]})
    here = scope("team-a/u1")
    person("ben", "Reviewer", "team-a/*")
    bulk = listed([approved(operation) for operation in ask_many(rows_in(here), 4)])
    killed = 0
    for boundary in (12, 17, 23, 31):
        killed += run_in_child(lambda: carry_out(bulk=bulk), kill_at=boundary).code == -9
        agreed = Operation.objects.exclude(seconded_by="").count()
        assert agreed == BulkItem.objects.filter(outcome="done").count()
    assert killed >= 2
    assert carry_out(bulk=bulk) == 0
    assert outcomes(bulk) == [AGREED] * 4
    assert Event.objects.filter(action="seconded").count() == 4

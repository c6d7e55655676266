"""What waits too long: people are told once, and in the end it goes stale. Nothing is approved by time."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from smtplib import SMTPRecipientsRefused

import pytest
from django.core import mail
from django.core.mail import EmailMessage
from django.core.mail.backends import locmem
from django.test import override_settings

from consolidation import measures, review, tasks
from consolidation.models import Operation, Overdue, Policy
from consolidation.operations import Kind, Risk, State
from consolidation.review import ageing
from consolidation.review.ageing import Age, Patience, aged, of_age
from observations import outbox
from observations.models import Event, Outbox, Scope, database_now
from tests.building import scope
from tests.consolidating import run
from tests.desk import person
from tests.queueing import ask_many, rows_in

pytestmark = pytest.mark.django_db

BROKEN = "tests.integration.test_ageing.Broken"
PICKY = "tests.integration.test_ageing.Picky"


class Broken:
    """A mail server that cannot be reached."""

    def __init__(self, **_: object) -> None: ...

    def send_messages(self, messages: list[object]) -> int:
        raise OSError("no route to host")


class Picky(locmem.EmailBackend):
    """A mail server that refuses one person."""

    def send_messages(self, messages: Sequence[EmailMessage]) -> int:
        if any("rita@example.org" in message.to for message in messages):
            raise SMTPRecipientsRefused({"rita@example.org": (550, b"no such mailbox")})
        return super().send_messages(messages)


@pytest.fixture
def here() -> Scope:
    """Whose memory it is."""
    return scope("team-a/u1")


def reader(name: str, group: str = "Reviewer", *patterns: str) -> str:
    """Somebody with an address."""
    user = person(name, group, *patterns)
    user.email = f"{name}@example.org"
    user.save()
    return user.email


def deliver() -> list[list[str]]:
    """Let a worker send what is due, as if the time until the next attempt were over; to whom mails went."""
    mail.outbox.clear()
    Outbox.objects.filter(task=ageing.MAIL_OVERDUE, done_at=None).update(due_at=database_now())
    outbox.work()
    return [sent.to for sent in mail.outbox]


def ages(risk: Risk = Risk.LOW) -> dict[Age, int]:
    """How many items are how old."""
    waiting = aged(Operation.objects.awaiting_review().filter(risk=risk), patience=Patience.read())
    return {age: waiting.filter(of_age(age, now=database_now())).count() for age in Age}


# --- ages -----------------------------------------------------------------------------------------------------------


def test_age_is_counted_by_risk_as_the_policy_allows(here: Scope) -> None:
    """E.9: low risk may wait 168 hours, high risk 24; half of it makes an item ageing."""
    rows = rows_in(here)
    for hours in (10, 100, 170):
        ask_many(rows, 1, hours=hours)
        ask_many(rows, 1, hours=hours, kind=Kind.PRUNE)
    assert ages() == {Age.FRESH: 1, Age.AGEING: 1, Age.OVERDUE: 1}
    assert ages(Risk.HIGH) == {Age.FRESH: 1, Age.AGEING: 0, Age.OVERDUE: 2}


def test_the_most_specific_policy_says_how_long(here: Scope) -> None:
    """An exact name before a family, a family before all; a policy that cannot be read counts as far as it can."""
    for name in ("team-a/u1", "team-a/u2", "team-b/u1"):
        ask_many(rows_in(scope(name)), 1, hours=20)
    Policy.objects.create(pattern="*", body={"age_low_hours": 1})
    Policy.objects.create(pattern="team-a/*", body={"age_low_hours": 50})
    Policy.objects.create(pattern="team-a/u1", body={"age_low_hours": 5, "nonsense": 1})
    late = aged(Operation.objects.all(), patience=Patience.read()).filter(of_age(Age.OVERDUE, now=database_now()))
    assert set(late.values_list("scope__name", flat=True)) == {"team-a/u1", "team-b/u1"}


# --- telling --------------------------------------------------------------------------------------------------------


def test_reviewers_with_an_address_are_told_once_of_what_they_may_see(here: Scope) -> None:
    """E.9: one mail per person, figures and links; nobody hears of another scope, a viewer of nothing."""
    rita, _other = reader("rita", "Reviewer", "team-a/*"), reader("otto", "Reviewer", "team-b/*")
    reader("vera", "Viewer", "team-a/*")
    person("mute", "Reviewer", "team-a/*")
    ask_many(rows_in(here), 2, hours=200, kind=Kind.PRUNE)
    ask_many(rows_in(here), 1, hours=200)
    ask_many(rows_in(here), 1, hours=1)
    assert tasks.tell_overdue() == "3 of 3 overdue items are told to 1 people"
    deliver()
    [sent] = mail.outbox
    assert (sent.to, sent.subject) == ([rita], "Palimpsest: 3 items waited longer than allowed")
    assert "team-a/u1: 2 of high risk, 1 of low risk" in sent.body
    assert f"/admin/consolidation/operation/?scope={here.pk}&age=overdue" in sent.body
    assert "Tea" not in f"{sent.subject} {sent.body}"
    assert list(Overdue.objects.values_list("told", flat=True)) == [1, 1, 1]
    tasks.tell_overdue()
    assert deliver() == []


@override_settings(CSRF_TRUSTED_ORIGINS=["https://*.example.org", "https://memory.example.org"])
def test_links_begin_with_the_site_where_it_says_its_address(here: Scope) -> None:
    reader("rita", "Reviewer", "team-a/*")
    ask_many(rows_in(here), 1, hours=200)
    ageing.tell()
    deliver()
    assert "https://memory.example.org/admin/consolidation/operation/?scope=" in mail.outbox[0].body


def test_a_mail_that_fails_is_a_failure_and_is_sent_later(here: Scope, caplog: pytest.LogCaptureFixture) -> None:
    """E.9: the row of the mail says that it failed, no address is logged, and the mail goes out once it can."""
    reader("rita", "Reviewer", "team-a/*")
    ask_many(rows_in(here), 1, hours=200)
    with override_settings(EMAIL_BACKEND=BROKEN), caplog.at_level(logging.WARNING):
        tasks.tell_overdue()
        assert deliver() == []
    assert "could not be mailed about overdue items: OSError" in caplog.text
    assert "rita" not in caplog.text
    failed = Outbox.objects.get(task=ageing.MAIL_OVERDUE)
    assert (failed.done_at, failed.attempts, failed.last_error.split(":")[0]) == (None, 1, "Unsent")
    assert deliver() == [["rita@example.org"]]


def test_of_several_mails_only_the_one_that_fails_is_tried_again_until_it_is_sent(here: Scope) -> None:
    """E.9: who got theirs gets it once, whoever could not be reached is told of every item; five failures stop the
    row, which is shown as failed, and the next hour tries it anew.
    """
    rita, ben = reader("rita", "Reviewer", "team-a/*"), reader("ben", "Reviewer", "team-a/*")
    ask_many(rows_in(here), 2, hours=200)
    with override_settings(EMAIL_BACKEND=PICKY):
        tasks.tell_overdue()
        assert [deliver() for _ in range(outbox.MAX_ATTEMPTS)] == [[[ben]], [], [], [], []]
        [stopped] = Outbox.objects.filter(task=ageing.MAIL_OVERDUE, done_at=None)
        assert (stopped.attempts, stopped.last_error.split(":")[0]) == (outbox.MAX_ATTEMPTS, "Unsent")
        ask_many(rows_in(here), 1, hours=200)
        tasks.tell_overdue()
        assert deliver() == [[ben]]
    assert deliver() == [[rita], [rita]]
    assert sorted(sent.subject.split()[1] for sent in mail.outbox) == ["1", "2"]
    assert deliver() == []
    assert Outbox.objects.filter(task=ageing.MAIL_OVERDUE, done_at=None).count() == 0


def test_a_mail_says_what_still_waits_and_may_still_be_seen_when_it_is_sent(here: Scope) -> None:
    """E.9, I2p: what was decided meanwhile, and whoever may not review there any more, is left out."""
    rita = person("rita", "Reviewer", "team-a/*")
    reader("ben", "Reviewer", "team-a/*")
    type(rita).objects.filter(pk=rita.pk).update(email="rita@example.org")
    first, second = ask_many(rows_in(here), 2, hours=200)
    ageing.tell()
    review.reject(operation=first, by="sam", reason="no")
    rita.scope_access.all().delete()
    assert deliver() == [["ben@example.org"]]
    assert mail.outbox[0].subject.startswith("Palimpsest: 1 item waited")
    assert Overdue.objects.filter(operation_id=second.pk).exists()


def test_an_address_that_would_forge_a_header_stops_only_its_own_mail(here: Scope) -> None:
    """A line break in an address is refused; the next reviewer is told."""
    bad = person("eve", "Reviewer", "team-a/*")
    type(bad).objects.filter(pk=bad.pk).update(email="eve@example.org\nBcc: all@example.org")
    rita = reader("rita", "Reviewer", "team-a/*")
    ask_many(rows_in(here), 1, hours=200)
    told = ageing.tell()
    assert ((told.told, told.people), deliver()) == ((1, 2), [[rita]])


@override_settings(EMAIL_BACKEND="django.core.mail.backends.dummy.EmailBackend")
def test_without_a_mail_server_nobody_counts_as_told(here: Scope) -> None:
    """The setting's default throws mails away and says that they were sent."""
    reader("rita", "Reviewer", "team-a/*")
    ask_many(rows_in(here), 1, hours=200)
    assert ("PALIMPSEST_MAIL_URL" in ageing.tell().why, Overdue.objects.count()) == (True, 0)


# --- going stale ----------------------------------------------------------------------------------------------------


def test_what_nobody_decided_goes_stale_and_is_never_approved(here: Scope) -> None:
    """E.9: after the policy's days, with an event and an outcome that say so; what is younger or decided stays."""
    Policy.objects.create(pattern="team-a/*", body={"waiting_ttl_days": 10})
    rows = rows_in(here)
    [old] = ask_many(rows, 1, hours=24 * 11)
    [skipped] = ask_many(rows, 1, hours=24 * 11, skipped_reason="possible contradiction")
    [young] = ask_many(rows, 1, hours=24 * 9)
    elsewhere = ask_many(rows_in(scope("team-b/u1")), 1, hours=24 * 11)[0]
    assert tasks.expire_waiting() == "2 went stale"
    for operation, state in ((old, "stale"), (skipped, "stale"), (young, "needs_human"), (elsewhere, "needs_human")):
        operation.refresh_from_db()
        assert operation.status == state
    assert old.outcome.startswith("nobody decided it within 10 days")
    event = Event.objects.get(subject=old.op_id)
    assert (event.action, event.actor, event.detail) == (
        "stale",
        "schedule",
        {"from": "needs_human", "waited_days": 10},
    )
    assert tasks.expire_waiting() == "0 went stale"
    assert not Operation.objects.filter(status=State.APPROVED).exists()


def test_a_decision_that_was_taken_back_starts_the_wait_anew(here: Scope) -> None:
    [old] = ask_many(rows_in(here), 1, hours=24 * 40)
    Event.objects.append(scope_id=here.pk, action="reopened", actor="ana", subject=old.op_id, generation=old.generation)
    assert ageing.expire(by="schedule") == 0


# --- figures --------------------------------------------------------------------------------------------------------


def test_the_desk_and_stats_say_how_much_is_overdue_and_since_when_by_risk(here: Scope) -> None:
    """E.9: by the same three words of risk as what waits."""
    [old] = ask_many(rows_in(here), 1, hours=200)
    ask_many(rows_in(here), 1, hours=30, kind=Kind.PRUNE)
    ask_many(rows_in(here), 1, hours=1)
    queue = measures.stats_json(measures.stats(scopes=[here]))["queue"]
    assert isinstance(queue, dict)
    assert queue["overdue"] == 2
    assert queue["oldest_by_risk"]["combines"] == old.created_at.isoformat()
    assert queue["oldest_by_risk"]["replaces"] is None


def test_the_command_says_how_the_queue_stands_and_ends_with_one_when_something_is_overdue(here: Scope) -> None:
    """0: nothing is late; 1: something is; --json has the same figures."""
    assert run("queue").status == 0
    ask_many(rows_in(here), 2, hours=200)
    ask_many(rows_in(here), 1, hours=1, kind=Kind.PRUNE)
    said = run("queue")
    assert said.status == 1
    assert "low         0 fresh, 0 ageing, 2 overdue" in said.out
    found = run("queue --json").document
    assert (found["overdue"], found["waiting"]) == (2, 3)
    assert found["by_risk"]["high"] | {"oldest": None} == {"fresh": 1, "ageing": 0, "overdue": 0, "oldest": None}
    assert run("queue --scope nowhere").status == 2

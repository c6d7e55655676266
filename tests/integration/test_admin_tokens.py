"""Tokens in the admin: a secret is shown once and kept nowhere, and revoking is asked first (ASVS 14.2.1, 8.3.2)."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.sessions.models import Session
from django.test import Client
from django.urls import reverse

from observations import access
from observations.models import Event, Token, database_now
from tests.desk import client_of, person
from tests.writing import where

pytestmark = pytest.mark.django_db

BEARER = re.compile(r"pal_[0-9a-f]{16}_[0-9a-f]{64}")


@pytest.fixture
def stella() -> Client:
    """A steward of team-a."""
    return client_of(person("stella", "Steward", "team-a/*"))


def made(client: Client, **fields: str) -> Any:
    """Post the form as its page sends it."""
    form = client.get(where("token", "new"))
    once = form.context["once"]
    data = {"name": "the editor", "pattern": "team-a/*", "may_read": "1", "days": "30", "once": once, **fields}
    return client.post(where("token", "new"), {name: value for name, value in data.items() if value})


def secret_of(answer: Any) -> str:
    """The secret that a page shows; fails unless it shows exactly one."""
    [found] = set(BEARER.findall(answer.content.decode()))
    return str(found)


def test_a_secret_is_on_the_page_that_made_it_and_nowhere_else(
    stella: Client, caplog: pytest.LogCaptureFixture
) -> None:
    """Not in an address, a message, a session, an event, a log or a row; no browser stores the page."""
    answer = made(stella, may_write="1")
    assert answer.status_code == 200
    assert "no-store" in answer["Cache-Control"]
    bearer = secret_of(answer)
    found = access.verify_token(bearer=bearer)
    assert found is not None
    assert (found.caller.pattern, found.caller.may_write, found.caller.may_propose) == ("team-a/*", True, False)
    secret = bearer.rpartition("_")[2]
    kept = [*Token.objects.values_list(), *Event.objects.values_list(), *Session.objects.values_list()]
    assert secret not in str(kept)
    assert secret not in str([session.get_decoded() for session in Session.objects.all()])
    assert secret not in caplog.text
    assert LogEntry.objects.count() == 0
    for address in (where("token"), where("event"), where("token", "new")):
        assert secret not in stella.get(address).content.decode()
    row = Token.objects.get()
    assert (row.name, row.created_by) == ("the editor", "stella")
    assert row.expires_at is not None
    assert (row.expires_at - database_now()).days in (29, 30)


def test_a_form_that_is_sent_again_makes_no_second_token(stella: Client) -> None:
    """Reloading the page of the secret sends the form again; the answer says so and shows nothing."""
    form = stella.get(where("token", "new"))
    data = {"name": "x", "pattern": "team-a/*", "may_read": "1", "once": form.context["once"]}
    secret_of(stella.post(where("token", "new"), data))
    again = stella.post(where("token", "new"), data, follow=True)
    assert "This form made its token already" in again.content.decode()
    assert not BEARER.search(again.content.decode())
    for once in ("", "x", "é" * 32):
        stella.post(where("token", "new"), {**data, "once": once})
    assert Token.objects.count() == 1


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"name": ""}, "Give the token a name"),
        ({"name": "two\nlines"}, "Give the token a name"),
        ({"may_read": ""}, "must be allowed something"),
        ({"speaks_for_user": "1"}, "Only a token that may write can speak for the user"),
        ({"pattern": "*"}, "You may not see every scope of this pattern"),
        ({"pattern": "team-b/*"}, "You may not see every scope of this pattern"),
        ({"pattern": "team-a//*"}, "The scope pattern is refused"),
        ({"days": "0"}, "A token lasts 1 to 3,650 days"),
        ({"days": "soon"}, "A token lasts 1 to 3,650 days"),
    ],
)
def test_what_cannot_be_made_is_said_and_what_was_written_is_kept(
    fields: dict[str, str], sentence: str, stella: Client
) -> None:
    answer = made(stella, **fields)
    assert answer.status_code == 409
    assert sentence in answer.content.decode()
    assert answer.context["given"].get("pattern") == fields.get("pattern", "team-a/*")
    assert not Token.objects.exists()


def test_no_token_reaches_every_scope_whoever_makes_it() -> None:
    """A superuser sees every scope, and the domain still refuses."""
    answer = made(client_of(person("root", superuser=True)), pattern="*")
    assert "no token reaches every scope" in answer.content.decode()


def test_revoking_is_asked_first_and_then_closes_the_door(stella: Client) -> None:
    """8.3.2: looking changes nothing; after it no request opens anything, and it stays in the list."""
    bearer = secret_of(made(stella))
    row = Token.objects.get()
    address = where("token", "revoke", row.pk)
    assert "This cannot be taken back" in stella.get(address).content.decode()
    assert access.verify_token(bearer=bearer) is not None
    assert "is revoked" in stella.post(address, follow=True).content.decode()
    assert access.verify_token(bearer=bearer) is None
    again = stella.post(address, follow=True)
    assert "was revoked before" in again.content.decode()
    assert Event.objects.filter(action="token_revoked", actor="stella").count() == 1
    [listed] = again.context["rows"]
    assert (listed.state.word, listed.revocable) == ("revoked", False)
    assert "It was revoked by stella" in stella.get(address).content.decode()


def test_the_list_tells_valid_expired_and_revoked_tokens_apart(stella: Client) -> None:
    for name in ("one", "two", "three"):
        made(stella, name=name)
    rows = {row.name: row for row in Token.objects.all()}
    stella.post(where("token", "revoke", rows["two"].pk))

    def shown(state: str) -> list[str]:
        return [row.name for row in stella.get(where("token"), {"state": state}).context["rows"]]

    assert (shown("valid"), shown("revoked"), shown("expired")) == (["three", "one"], ["two"], [])
    assert shown("no such state") == ["three", "two", "one"]
    assert 'href="?' not in stella.get(where("token")).content.decode()


def test_the_events_of_a_token_do_not_say_that_it_reaches_everything() -> None:
    """They belong to no scope, and the token reaches what its pattern says."""
    access.create_token(name="the editor", scope_pattern="team-a/*", by="stella")
    answer = client_of(person("sam", "Steward", "*")).get(reverse("admin:observations_event_changelist"))
    [row] = answer.context["rows"]
    assert (row.event.what, row.scope) == ("token created", "")

"""Tokens: made and shown once, verified, limited to their scopes, revoked (INTEGRITY part 4)."""

from __future__ import annotations

import dataclasses
import hashlib
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from django.db import IntegrityError, ProgrammingError, connection, transaction
from django.test.utils import CaptureQueriesContext

from observations import access
from observations.access import NewToken, NoSuchToken, TokenRefused
from observations.models import Event, Scope, Token, database_now
from observations.records import Caller
from tests.brokers import application_url
from tests.building import scope
from tests.conftest import superuser

NOBODYS = f"pal_{'0' * 16}_{'0' * 64}"
pytestmark = pytest.mark.django_db


def made(pattern: str = "team/*", *, may_write: bool = True) -> NewToken:
    return access.create_token(name="agent", scope_pattern=pattern, may_write=may_write, by="ana")


def test_a_token_is_shown_once_and_only_its_hash_is_kept() -> None:
    """256 random bits, sha256 stored; no column of any table of tokens or events holds the secret."""
    new = made()
    prefix, key_id, secret = new.bearer.split("_")
    assert (prefix, key_id, len(bytes.fromhex(secret))) == ("pal", new.token.key_id, 32)
    row = Token.objects.values().get()
    assert row["secret_hash"] == hashlib.sha256(secret.encode()).hexdigest()
    assert secret not in repr(list(Token.objects.values())) + repr(list(Event.objects.values()))


def test_two_tokens_share_nothing() -> None:
    first, second = made(), made()
    assert first.token.key_id != second.token.key_id
    assert first.bearer.rpartition("_")[2] != second.bearer.rpartition("_")[2]


def test_a_valid_token_says_who_calls_and_what_it_may_do() -> None:
    new = access.create_token(name="a", scope_pattern="team/*", may_propose=True, by="ana")
    bearer = access.verify_token(bearer=new.bearer)
    assert bearer is not None
    assert bearer.token_id == new.token.pk
    assert bearer.caller == Caller(
        name=f"token:{new.token.key_id}", pattern="team/*", may_read=True, may_write=False, may_propose=True
    )
    assert not bearer.caller.person


@pytest.mark.parametrize("change", ["", "x", "pal_", "pal_0123456789abcdef_", "Bearer x", "\x00", NOBODYS])
def test_a_token_nobody_made_opens_nothing(change: str) -> None:
    made()
    assert access.verify_token(bearer=change) is None


def test_every_changed_character_of_a_token_closes_it() -> None:
    bearer = made().bearer
    changed = [bearer[:at] + ("1" if bearer[at] == "0" else "0") + bearer[at + 1 :] for at in range(len(bearer))]
    assert [each for each in changed if access.verify_token(bearer=each)] == []
    assert access.verify_token(bearer=f"{bearer} ") is None
    assert access.verify_token(bearer=bearer.upper()) is None


def test_a_malformed_token_asks_the_database_nothing() -> None:
    with CaptureQueriesContext(connection) as queries:
        assert access.verify_token(bearer="pal_short_secret") is None
    assert len(queries) == 0


def test_verifying_compares_in_constant_time_also_for_an_unknown_key_id(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[str, str]] = []

    def compare(given: str, kept: str) -> bool:
        compared.append((given, kept))
        return given == kept

    monkeypatch.setattr("observations.access.hmac.compare_digest", compare)
    access.verify_token(bearer=NOBODYS)
    assert access.verify_token(bearer=made().bearer)
    assert [(len(given), len(kept)) for given, kept in compared] == [(64, 64), (64, 64)]


def test_revoking_closes_a_token_from_its_next_request_on_and_for_good() -> None:
    """ASVS 8.3.2: immediate revocation."""
    new = made()
    assert access.verify_token(bearer=new.bearer)
    assert access.revoke_token(key_id=new.token.key_id, by="olga")
    assert access.verify_token(bearer=new.bearer) is None
    assert not access.revoke_token(key_id=new.token.key_id, by="olga")
    with pytest.raises(ProgrammingError, match="revoked for good"), transaction.atomic():
        Token.objects.filter(pk=new.token.pk).update(revoked_at=None)


def test_revoking_a_token_that_is_not_there_says_so() -> None:
    with pytest.raises(NoSuchToken, match="memory token list"):
        access.revoke_token(key_id="0" * 16, by="olga")


def test_a_token_expires_by_the_databases_clock() -> None:
    soon = database_now() + timedelta(hours=1)
    new = access.create_token(name="a", scope_pattern="team/*", expires_at=soon, by="ana")
    assert access.verify_token(bearer=new.bearer)
    assert not access._open(new.token, now=soon)
    assert access._open(new.token, now=soon - timedelta(microseconds=1))


@pytest.mark.parametrize("when", [datetime(2020, 1, 1, tzinfo=UTC), datetime(2999, 1, 1)], ids=["past", "naive"])  # noqa: DTZ001
def test_a_token_that_could_never_be_used_is_not_made(when: datetime) -> None:
    with pytest.raises(TokenRefused, match="time zone"):
        access.create_token(name="a", scope_pattern="team/*", expires_at=when, by="ana")
    assert not Token.objects.exists()


@pytest.mark.parametrize(
    "pattern",
    ["", "*", "/*", "*/x", "a*", "a/*/b", "a//b", "/a", "a/", "a /*", "a\x00b", "a\nb", "x" * 201, "a/**"],
)
def test_a_pattern_that_is_no_prefix_and_no_scope_is_refused(pattern: str) -> None:
    """No token reaches every scope, and none reaches what its pattern does not plainly say."""
    with pytest.raises(TokenRefused, match="no token reaches every scope"):
        made(pattern)
    assert not Token.objects.exists()


def test_the_database_refuses_the_pattern_of_everything_too() -> None:
    with pytest.raises(IntegrityError, match="token_scope_pattern"), transaction.atomic():
        Token.objects.create(name="a", key_id="a", secret_hash="b", scope_pattern="*", created_by="ana")


def test_a_token_must_be_allowed_something_and_have_a_name() -> None:
    with pytest.raises(TokenRefused, match="allowed something"):
        access.create_token(name="a", scope_pattern="team/*", may_read=False, by="ana")
    with pytest.raises(TokenRefused, match="name"):
        access.create_token(name=" ", scope_pattern="team/*", by="ana")
    with pytest.raises(TokenRefused, match="right to write"):
        access.create_token(name="a", scope_pattern="team/*", speaks_for_user=True, by="ana")


NAMES = [
    "team",
    "team/a",
    "team/a/b",
    "team-b/x",
    "teamX",
    "teamX/a",
    "Team/a",
    "te_m/a",
    "te%/a",
    "other",
    "team%/a",
    "tea",
]


@pytest.mark.parametrize("pattern", ["team/*", "team", "team/a", "team/a/*", "te_m/*", "te%/*", "Team/*"])
def test_a_token_reaches_exactly_the_scopes_its_pattern_matches(pattern: str) -> None:
    """Injective: neither a neighbour's name nor a wildcard of SQL widens a pattern."""
    for name in NAMES:
        scope(name)
    caller = access.caller_of(token=made(pattern).token)
    assert {name for name in NAMES if caller.reaches(name)} == {row.name for row in Scope.objects.matching(pattern)}


def test_a_prefix_reaches_what_is_below_it_and_not_itself() -> None:
    caller = access.caller_of(token=made("team/*").token)
    assert [name for name in NAMES if caller.reaches(name)] == ["team/a", "team/a/b"]


def test_a_program_can_never_be_made_to_reach_every_scope() -> None:
    caller = access.caller_of(token=made().token)
    assert not dataclasses.replace(caller, pattern="*").reaches("team/a")


def test_making_and_revoking_are_events_of_ids_and_rights_only() -> None:
    new = made()
    access.revoke_token(key_id=new.token.key_id, by="olga")
    subject = f"token:{new.token.key_id}"
    rights = {"read": True, "write": True, "propose": False}
    events = Event.objects.order_by("id")
    assert [(event.action, event.actor, event.subject, event.detail, event.scope_id) for event in events] == [
        ("token_created", "ana", subject, rights, None),
        ("token_revoked", "olga", subject, rights, None),
    ]


def test_tokens_are_listed_newest_first_with_the_revoked_ones() -> None:
    first, second = made("a/*"), made("b/*")
    access.revoke_token(key_id=first.token.key_id, by="olga")
    assert [token.scope_pattern for token in access.tokens()] == ["b/*", "a/*"]
    assert list(access.tokens().valid(now=database_now())) == [second.token]


def used_at(new: NewToken) -> datetime | None:
    return Token.objects.values_list("last_used_at", flat=True).get(pk=new.token.pk)


def test_the_last_use_is_noted_once_a_minute_and_not_on_every_request() -> None:
    new = made()
    assert used_at(new) is None
    access.verify_token(bearer=new.bearer)
    first = used_at(new)
    assert first is not None
    with CaptureQueriesContext(connection) as queries:
        access.verify_token(bearer=new.bearer)
    assert len(queries) == 1
    assert used_at(new) == first
    Token.objects.filter(pk=new.token.pk).update(last_used_at=first - timedelta(seconds=61))
    access.verify_token(bearer=new.bearer)
    assert (used_at(new) or first) > first


def test_a_use_that_cannot_be_noted_fails_nobody(caplog: pytest.LogCaptureFixture) -> None:
    """R132: telemetry never fails a request; the reason is in the log, by its kind."""
    new = made()
    with connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION READ ONLY")
    with caplog.at_level(logging.WARNING):
        assert access.verify_token(bearer=new.bearer)
    assert "could not be noted" in caplog.text


@contextmanager
def holding(new: NewToken) -> Iterator[None]:
    """Another connection that holds the token's row and does not let go."""
    with psycopg.connect(application_url()) as other:
        other.execute("SELECT 1 FROM observations_token WHERE id = %s FOR NO KEY UPDATE", [new.token.pk])
        yield
        other.rollback()


@pytest.mark.django_db(transaction=True)
def test_a_use_that_would_wait_for_a_lock_is_not_noted() -> None:
    new = made()
    with holding(new):
        assert access.verify_token(bearer=new.bearer)
    assert used_at(new) is None


@pytest.mark.django_db(transaction=True)
def test_the_rights_of_a_token_are_fixed_in_the_database() -> None:
    new = made(may_write=False)
    with pytest.raises(ProgrammingError, match="permission denied"), connection.cursor() as cursor:
        cursor.execute("UPDATE observations_token SET may_write = true WHERE id = %s", [new.token.pk])
    with superuser() as admin, pytest.raises(psycopg.Error, match="rights of token"):
        admin.execute("UPDATE observations_token SET may_write = true WHERE id = %s", [new.token.pk])

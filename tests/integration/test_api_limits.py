"""How many requests a program may make, counted in Redis; a dead broker limits and delays nobody."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.test import override_settings

from observations.api import limits
from tests.brokers import DEAD_WAYS, dead_broker, own_broker
from tests.programs import Program, program, stranger

pytestmark = pytest.mark.django_db
PATH = "/nothing/at/all"


@pytest.fixture(autouse=True)
def counting(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A broker of this process's own, nothing counted yet, and the clock at the start of a minute."""
    monkeypatch.setattr(limits, "_quiet_until", 0.0)
    monkeypatch.setattr(limits, "_down", False)
    with override_settings(
        CELERY_BROKER_URL=own_broker(),
        PALIMPSEST_API_REQUESTS_PER_MINUTE=3,
        PALIMPSEST_API_FAILURES_PER_MINUTE=2,
    ):
        limits._client(own_broker()).flushdb()
        at(monkeypatch, 0)
        yield


def at(monkeypatch: pytest.MonkeyPatch, second: int) -> None:
    monkeypatch.setattr("observations.api.limits.time.time", lambda: 1_800_000_000 + second)


def asks(asking: Program, **headers: str) -> int:
    """A request that is refused after it was counted: it names no scope."""
    return asking.get("/core", **headers).status


def test_a_token_has_so_many_requests_a_minute_and_is_told_when_to_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    asking = program()
    at(monkeypatch, 12)
    assert [asks(asking) for _ in range(3)] == [422, 422, 422]
    answer = asking.get("/core")
    assert (answer.status, answer.problem) == (429, "too_many_requests")
    assert answer.headers["Retry-After"] == "48"
    assert answer.headers["RateLimit"] == '"minute";r=0;t=48'
    assert answer.headers["RateLimit-Policy"] == '"minute";q=3;w=60'
    at(monkeypatch, 60)
    assert asks(asking) == 422


def test_every_answer_says_what_is_left() -> None:
    asking = program()
    left = [asking.get("/core").headers["RateLimit"] for _ in range(3)]
    assert left == ['"minute";r=2;t=60', '"minute";r=1;t=60', '"minute";r=0;t=60']
    assert "Retry-After" not in asking.get("/nothing").headers


def test_one_tokens_requests_are_not_anothers() -> None:
    busy, quiet = program(), program()
    assert [asks(busy) for _ in range(4)][-1] == 429
    assert asks(quiet) == 422


def test_strangers_are_counted_by_address_and_hold_up_no_token_of_that_address() -> None:
    asking = program()
    assert [asks(stranger()) for _ in range(3)] == [401, 401, 429]
    assert asks(asking) == 422
    assert stranger().get("/core").headers["RateLimit-Policy"] == '"minute";q=2;w=60'


def test_without_a_proxy_a_stranger_cannot_choose_an_address() -> None:
    assert [asks(stranger(), X_Forwarded_For=f"10.0.0.{number}") for number in range(3)] == [401, 401, 429]


def test_behind_a_proxy_the_address_is_what_the_proxy_added() -> None:
    with override_settings(BEHIND_PROXY=True):
        tried = [asks(stranger(), X_Forwarded_For=f"10.0.0.{number}, 192.0.2.1") for number in range(3)]
        assert tried == [401, 401, 429]
        assert asks(stranger(), X_Forwarded_For="192.0.2.1, 192.0.2.2") == 401


def test_a_limit_of_nothing_is_no_limit() -> None:
    with override_settings(PALIMPSEST_API_REQUESTS_PER_MINUTE=0):
        answers = [program().get("/core") for _ in range(5)]
    assert {answer.status for answer in answers} == {422}
    assert "RateLimit" not in answers[0].headers


@pytest.mark.parametrize("way", DEAD_WAYS)
def test_a_dead_broker_limits_nobody_and_is_told_of_once(
    way: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """R132: requests pass, the first waits for a fifth of a second at most, the others for nothing."""
    asking = program()
    with dead_broker(way, tmp_path) as url, override_settings(CELERY_BROKER_URL=url), caplog.at_level(logging.INFO):
        began = time.monotonic()
        statuses = [asks(asking) for _ in range(10)]
        took = time.monotonic() - began
    assert set(statuses) == {422}
    assert took < 1.0
    assert caplog.text.count("requests are not counted") == 1


def test_a_broker_that_comes_back_counts_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    asking = program()
    with dead_broker("dead socket", tmp_path) as url, override_settings(CELERY_BROKER_URL=url):
        assert "RateLimit" not in asking.get("/core").headers
    assert "RateLimit" not in asking.get("/core").headers  # not asked again yet
    monkeypatch.setattr(limits, "_quiet_until", 0.0)
    with caplog.at_level(logging.INFO):
        assert "RateLimit" in asking.get("/core").headers
    assert "requests are counted again" in caplog.text


def test_an_address_of_another_kind_of_broker_limits_nobody() -> None:
    with override_settings(CELERY_BROKER_URL="amqp://localhost"):
        assert {asks(program()) for _ in range(2)} == {422}


def test_what_is_counted_goes_by_itself_and_names_no_secret() -> None:
    asking = program()
    asks(asking)
    client = limits._client(own_broker())
    [key] = [name.decode() if isinstance(name, bytes) else name for name in client.keys("palimpsest:*")]
    assert 0 < client.ttl(key) <= 120
    assert asking.bearer.rpartition("_")[2] not in key


@pytest.mark.parametrize(
    ("celery", "redis"),
    [
        ("redis://localhost:6379/0", "redis://localhost:6379/0"),
        ("rediss://:pass@host:1/2", "rediss://:pass@host:1/2"),
        ("redis+socket:///a%20b/broker.sock?virtual_host=3", "unix:///a%20b/broker.sock?db=3"),
        ("redis+socket:///run/broker.sock", "unix:///run/broker.sock?db=0"),
        ("redis+socket://:pass@/run/broker.sock", "unix://:pass@/run/broker.sock?db=0"),
    ],
)
def test_the_brokers_address_is_read_as_celery_writes_it(celery: str, redis: str) -> None:
    assert limits._address(celery) == redis

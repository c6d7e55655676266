"""How many requests a minute somebody may make, counted in the queue's Redis.

A window is a minute of the clock, so twice the limit can pass around its edge. A broker that does not answer limits
nobody: requests pass, uncounted, the log says so once, and the broker is tried again after QUIET_SECONDS.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from functools import lru_cache
from typing import Final
from urllib.parse import parse_qs, urlsplit

from django.conf import settings
from redis import Redis, RedisError

log = logging.getLogger(__name__)

WINDOW_SECONDS: Final = 60
PATIENCE_SECONDS: Final = 0.1  # of one attempt to connect, and of one answer
QUIET_SECONDS: Final = 10.0  # after a broker did not answer, for how long none is asked

_quiet_until = 0.0
_down = False  # whether the log has been told


@dataclass(frozen=True, slots=True)
class Standing:
    """How somebody stands in this minute, the request in hand counted."""

    limit: int
    made: int
    resets_in: int  # seconds until the next window, at least 1

    @property
    def exceeded(self) -> bool:
        """Whether this request is one too many."""
        return self.made > self.limit

    @property
    def headers(self) -> dict[str, str]:
        """The fields of the IETF draft "RateLimit header fields"; with Retry-After where it is needed."""
        left = max(0, self.limit - self.made)
        fields = {
            "RateLimit-Policy": f'"minute";q={self.limit};w={WINDOW_SECONDS}',
            "RateLimit": f'"minute";r={left};t={self.resets_in}',
        }
        return {**fields, "Retry-After": str(self.resets_in)} if self.exceeded else fields


def count(*, who: str, limit: int) -> Standing | None:
    """Count one request of `who`; None where nothing limits (a limit of 0) or the broker does not answer."""
    global _quiet_until
    if limit <= 0 or time.monotonic() < _quiet_until:
        return None
    now = int(time.time())
    try:
        made = _counted(f"palimpsest:requests:{who}:{now // WINDOW_SECONDS}")
    except (RedisError, OSError, ValueError) as error:
        _quiet_until = time.monotonic() + QUIET_SECONDS
        _tell(down=True, why=type(error).__name__)
        return None
    _tell(down=False)
    return Standing(limit=limit, made=made, resets_in=WINDOW_SECONDS - now % WINDOW_SECONDS)


def _counted(key: str) -> int:
    with _client(settings.CELERY_BROKER_URL).pipeline(transaction=False) as pipeline:
        pipeline.incr(key)
        pipeline.expire(key, 2 * WINDOW_SECONDS)
        return int(pipeline.execute()[0])


def _tell(*, down: bool, why: str = "") -> None:
    """One line when the broker goes, one when it is back; none in between."""
    global _down
    if down and not _down:
        log.warning("requests are not counted: the broker does not answer (%s)", why)
    if _down and not down:
        log.info("requests are counted again")
    _down = down


@lru_cache(maxsize=4)
def _client(url: str) -> Redis:
    """One pool of connections per process and address. Raises ValueError for an address that is not Redis's."""
    return Redis.from_url(
        _address(url),
        socket_timeout=PATIENCE_SECONDS,
        socket_connect_timeout=PATIENCE_SECONDS,
        retry=None,
        health_check_interval=0,
    )


def _address(url: str) -> str:
    """The broker's address in the words of Redis's own client: Celery writes a socket as redis+socket://."""
    parts = urlsplit(url)
    if parts.scheme != "redis+socket":
        return url
    number = parse_qs(parts.query).get("virtual_host", ["0"])[0].strip("/")
    login = f"{parts.netloc}@" if parts.netloc and not parts.netloc.endswith("@") else parts.netloc
    return f"unix://{login}{parts.path}?db={number}"

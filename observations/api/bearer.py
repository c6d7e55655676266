"""Who is asking: a bearer token and nothing else. A session's cookie opens nothing here.

Order: the token, then its limit, then whether the body can be read at all; what the token may do, the calls decide.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import Final

from django.conf import settings
from django.http import HttpRequest
from ninja.security import HttpBearer

from observations import access
from observations.api import limits
from observations.api.problems import Problem

STANDING: Final = "palimpsest.standing"  # in a request's META: how its caller stands, for the answer's headers
STALL_SECONDS: Final = 10.0  # that a body may pause on its way: eight that never end would keep every thread busy
BODY_SECONDS: Final = 60.0  # that all of it may take: a byte every nine seconds never pauses for as long as that
_CHALLENGE: Final = 'Bearer realm="palimpsest"'


class Token(HttpBearer):
    """A token made by `manage.py memory token create`, as `Authorization: Bearer pal_...`."""

    openapi_description = "A token made by `manage.py memory token create`; it begins with `pal_` and is shown once."
    openapi_bearerFormat = "pal_<key id>_<secret>"

    def __call__(self, request: HttpRequest) -> access.Bearer:
        """The bearer. Raises Problem (401, 429, and what `_check_body` raises) or a database's error."""
        given = request.headers.get("Authorization", "")
        scheme, _, secret = given.partition(" ")
        bearer = self.authenticate(request, secret.strip()) if scheme.lower() == "bearer" else None
        if bearer is None:
            raise _stranger(request, gave=bool(given))
        standing = limits.count(who=f"token:{bearer.token_id}", limit=settings.PALIMPSEST_API_REQUESTS_PER_MINUTE)
        request.META[STANDING] = standing
        if standing is not None and standing.exceeded:
            raise Problem(429, headers=standing.headers)
        _check_body(request)
        return bearer

    def authenticate(self, request: HttpRequest, token: str) -> access.Bearer | None:
        """The bearer, or None; one query."""
        return access.verify_token(bearer=token)


def _stranger(request: HttpRequest, *, gave: bool) -> Problem:
    """A request without a valid token: counted by address, so that nobody tries many; valid tokens of the same address
    are not held up by it.
    """
    limit = settings.PALIMPSEST_API_FAILURES_PER_MINUTE
    standing = limits.count(who=f"address:{_address(request)}", limit=limit)
    if standing is not None and standing.exceeded:
        return Problem(429, headers=standing.headers)
    challenge = f'{_CHALLENGE}, error="invalid_token"' if gave else _CHALLENGE
    return Problem(401, headers={"WWW-Authenticate": challenge})


def _address(request: HttpRequest) -> str:
    """Where a request comes from: behind a proxy, what the proxy itself added to X-Forwarded-For, which is last."""
    forwarded = request.headers.get("X-Forwarded-For", "") if settings.BEHIND_PROXY else ""
    return (forwarded.rpartition(",")[2].strip() or request.META.get("REMOTE_ADDR") or "unknown")[:64]


def _check_body(request: HttpRequest) -> None:
    """Raises Problem for a body that cannot be read: of unknown length, not JSON, compressed or too long."""
    if request.method not in ("POST", "PUT", "PATCH"):
        return
    if "chunked" in request.headers.get("Transfer-Encoding", "").lower() and "CONTENT_LENGTH" not in request.META:
        raise Problem(411)
    length = request.META.get("CONTENT_LENGTH") or "0"
    if length.isdecimal() and int(length) > (settings.DATA_UPLOAD_MAX_MEMORY_SIZE or int(length)):
        most = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        raise Problem(413, f"The body may have {most} bytes: send it in parts.", extra={"most_bytes": most})
    plain = request.headers.get("Content-Encoding", "identity").lower() == "identity"
    if length != "0" and (not plain or request.content_type != "application/json"):
        raise Problem(415)
    if listening := request.META.get("gunicorn.socket"):
        _read_in_time(request, listening, int(length) if length.isdecimal() else 0)


def _read_in_time(request: HttpRequest, listening: socket.socket, length: int) -> None:
    """Read the body now, and no longer than BODY_SECONDS. Raises Problem (400) for one that ends before it should."""
    listening.settimeout(STALL_SECONDS)
    late = threading.Timer(BODY_SECONDS, _hear_no_more, [listening])
    late.daemon = True
    late.start()
    try:
        read = len(request.body)
    finally:
        late.cancel()
    if read != length:
        raise Problem(400, "The body ended too early, or took too long.")


def _hear_no_more(listening: socket.socket) -> None:
    """The thread that reads is told the end; what is answered can still be sent."""
    with contextlib.suppress(OSError):
        listening.shutdown(socket.SHUT_RD)

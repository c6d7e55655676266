"""Many agents over streamable HTTP: no session, so any number of processes may serve, and every request names its own
token.

In order: the host and the origin, the token, its limit; what the token may do, the calls decide. Neither the body nor
the token is logged.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, Protocol
from urllib.parse import urlsplit

from django.conf import settings
from django.http.request import split_domain_port, validate_host

from observations.mcp.answering import UNAVAILABLE, Refused, caller_of
from observations.mcp.serving import in_thread, server_for
from observations.records import Caller

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from observations.mcp.serving import Context

PATH: Final = "/mcp"
_CHALLENGE: Final = 'Bearer realm="palimpsest"'
_CALLER: Final = "palimpsest.caller"  # in a request's scope: whom its token named


class Standing(Protocol):
    """How somebody stands in this minute."""

    @property
    def exceeded(self) -> bool:
        """Whether this request is one too many."""

    @property
    def headers(self) -> dict[str, str]:
        """What the answer says of it."""


class Count(Protocol):
    """Counts one request of somebody; None where nothing limits."""

    def __call__(self, *, who: str) -> Standing | None:
        """How they stand then."""


_Refusal = tuple[int, str, Mapping[str, str]]  # status, one sentence, headers


def listener(*, host: str, port: int) -> socket.socket:
    """A socket that listens; port 0 takes any that is free. Raises OSError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=128)


def serve(*, listening: socket.socket, scope: str, of_token: Count, of_stranger: Count) -> None:
    """Serve on a socket until the process is told to stop; requests under way are answered first."""
    import uvicorn

    config = uvicorn.Config(
        application(scope=scope, of_token=of_token, of_stranger=of_stranger),
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=10,
    )
    uvicorn.Server(config).run(sockets=[listening])


def application(*, scope: str, of_token: Count, of_stranger: Count) -> ASGIApp:
    """The ASGI application: the door, and the protocol behind it."""
    from mcp.server.transport_security import TransportSecuritySettings

    server = server_for(who=_who, scope=scope)
    protocol = server.streamable_http_app(
        streamable_http_path=PATH,
        json_response=True,
        stateless_http=True,
        max_request_body_size=settings.DATA_UPLOAD_MAX_MEMORY_SIZE or 2 * 1024 * 1024,
        # The door has looked at host and origin already, by ALLOWED_HOSTS, as for every other address.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    return _Door(protocol, of_token, of_stranger)


def _who(ctx: Context) -> Callable[[], Caller]:
    assert ctx.request is not None  # the transport hands over the request that it answers
    caller: Caller = ctx.request.scope[_CALLER]
    return lambda: caller


class _Door:
    """Who may come in at all."""

    def __init__(self, inside: ASGIApp, of_token: Count, of_stranger: Count) -> None:
        self._inside = inside
        self._of_token = of_token
        self._of_stranger = of_stranger

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._inside(scope, receive, send)
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        refusal = _fault_of_place(scope["method"], headers)
        if refusal is None:
            found = await in_thread(self._let_in, headers=headers, address=_address(scope, headers))
            if isinstance(found, Caller):
                scope[_CALLER] = found
                await self._inside(scope, receive, send)
                return
            refusal = found
        await _answer(send, *refusal)

    def _let_in(self, *, headers: Mapping[str, str], address: str) -> Caller | _Refusal:
        """The caller, or the answer to who is none. One query; never raises."""
        scheme, _, secret = headers.get("authorization", "").partition(" ")
        try:
            caller = caller_of(bearer=secret.strip() if scheme.lower() == "bearer" else "")
        except Refused as refused:
            return self._turned_away(refused, address)
        standing = self._of_token(who=caller.name)
        if standing is not None and standing.exceeded:
            return 429, "Too many requests in this minute: wait as long as Retry-After says.", standing.headers
        return caller

    def _turned_away(self, refused: Refused, address: str) -> _Refusal:
        if refused.code != "unauthorized":
            return 503, UNAVAILABLE, {"Retry-After": "5"}
        standing = self._of_stranger(who=f"address:{address}")
        if standing is not None and standing.exceeded:
            return 429, "Too many requests without a valid token: wait as long as Retry-After says.", standing.headers
        return (
            401,
            "Send a valid token: Authorization: Bearer pal_...",
            {"WWW-Authenticate": 'Bearer realm="palimpsest"'},
        )


def _address(scope: Scope, headers: Mapping[str, str]) -> str:
    """Where a request comes from: behind a proxy, what the proxy itself added to X-Forwarded-For, which is last."""
    forwarded = headers.get("x-forwarded-for", "") if settings.BEHIND_PROXY else ""
    client = scope.get("client") or ("unknown", 0)
    return (forwarded.rpartition(",")[2].strip() or str(client[0]))[:64]


def _fault_of_place(method: str, headers: Mapping[str, str]) -> _Refusal | None:
    """Refuses a host that is not ours, and a web page of another origin: a page that a name was pointed at us for can
    do no more than any other stranger. GET would be a stream on which nothing is ever said.
    """
    host = headers.get("host", "")
    if not validate_host(split_domain_port(host)[0], settings.ALLOWED_HOSTS):
        return HTTPStatus.MISDIRECTED_REQUEST, "This host is not served here: ALLOWED_HOSTS lists those that are.", {}
    origin = headers.get("origin", "")
    if origin and urlsplit(origin).netloc != host and origin not in settings.CSRF_TRUSTED_ORIGINS:
        return 403, "This origin may not call: CSRF_TRUSTED_ORIGINS lists those that may.", {}
    if method != "POST":
        return 405, "There is no session to listen to or to end: send POST.", {"Allow": "POST"}
    return None


async def _answer(send: Send, status: int, detail: str, headers: Mapping[str, str]) -> None:
    """A refusal as a problem, in the form of the API's."""
    kind = HTTPStatus(status)
    problem = {
        "type": f"urn:palimpsest:problem:{kind.name.lower()}",
        "title": kind.phrase,
        "status": int(kind),
        "detail": detail,
    }
    body = json.dumps(problem).encode()
    fields = {"Content-Type": "application/problem+json", "Content-Length": str(len(body)), "Cache-Control": "no-store"}
    told = [(name.lower().encode(), value.encode()) for name, value in {**fields, **headers}.items()]
    await send({"type": "http.response.start", "status": int(kind), "headers": told})
    await send({"type": "http.response.body", "body": body})

"""One agent over standard input and output: what it writes and reads is the protocol, and nothing else goes there."""

from __future__ import annotations

import signal
from functools import partial

from observations.mcp.answering import caller_of
from observations.mcp.serving import server_for


def serve(*, bearer: str, scope: str) -> None:
    """Serve until standard input ends. The token is verified for every request, so that revoking it holds at once."""
    import anyio

    # Reading standard input cannot be interrupted: an interrupt ends the process itself, as `kill` would.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    anyio.run(partial(_serve, bearer=bearer, scope=scope))


async def _serve(*, bearer: str, scope: str) -> None:
    from mcp.server.stdio import stdio_server

    server = server_for(who=lambda _ctx: partial(caller_of, bearer=bearer), scope=scope)
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())

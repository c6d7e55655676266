"""The server of the protocol: what clients list, call and read. Tools are calls; core memory is resources as well.

The low-level server of the SDK, because tools come from a table: its decorators would want a Python function for each.
Calls are made in threads of their own, and a thread gives its connection to the database back after every call.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from django.db import connections

from observations.mcp import resources
from observations.mcp.answering import Refused, Who, call_tool, list_tools
from observations.mcp.tools import Tool
from observations.mcp.wording import INSTRUCTIONS

if TYPE_CHECKING:
    import mcp_types as types
    from anyio import CapacityLimiter
    from mcp.server import Server
    from mcp.server.context import ServerRequestContext

    Context = ServerRequestContext[Any, Any]

NAME: Final = "palimpsest"
VERSION: Final = "1"  # as the API's
THREADS: Final = 8  # calls at once; each has one connection to the database while it lasts

_Result = TypeVar("_Result")


def server_for(*, who: Callable[[Context], Who], scope: str) -> Server[Any]:
    """A server whose requests are made by whoever `who` finds for each; `scope` is the one that need not be named."""
    from mcp.server import Server

    handlers = _Handlers(who, scope)
    return Server(
        NAME,
        version=VERSION,
        title="Palimpsest",
        instructions=INSTRUCTIONS,
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        on_list_resources=handlers.list_resources,
        on_list_resource_templates=handlers.list_templates,
        on_read_resource=handlers.read_resource,
    )


async def in_thread(act: Callable[..., _Result], **asked: Any) -> _Result:
    """What `act` returns, run beside the loop."""
    from anyio.to_thread import run_sync

    return await run_sync(partial(_and_disconnect, act, asked), limiter=_limiter())


@lru_cache(maxsize=1)
def _limiter() -> CapacityLimiter:
    """One for the process: every call holds a connection to the database."""
    from anyio import CapacityLimiter

    return CapacityLimiter(THREADS)


def _and_disconnect(act: Callable[..., _Result], asked: dict[str, Any]) -> _Result:
    """In a thread: act, and close what was opened, so that no connection is left to go stale in an idle thread."""
    try:
        return act(**asked)
    finally:
        connections.close_all()


class _Handlers:
    """Requests of clients, translated: to our functions in a thread, and back to the SDK's values."""

    def __init__(self, who: Callable[[Context], Who], scope: str) -> None:
        self._who = who
        self._scope = scope

    async def list_tools(self, ctx: Context, params: object) -> types.ListToolsResult:
        import mcp_types as types

        found = await in_thread(list_tools, who=self._who(ctx), scope=self._scope)
        return types.ListToolsResult(tools=[_tool(tool) for tool in found])

    async def call_tool(self, ctx: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        import mcp_types as types

        answer = await in_thread(
            call_tool, who=self._who(ctx), name=params.name, arguments=params.arguments or {}, scope=self._scope
        )
        text = types.TextContent(text=answer.text)
        if answer.refused:
            return types.CallToolResult(content=[text], is_error=True)
        return types.CallToolResult(content=[text], structured_content=answer.content)

    async def list_resources(self, ctx: Context, params: object) -> types.ListResourcesResult:
        import mcp_types as types

        found = await in_thread(resources.list_core, who=self._who(ctx), scope=self._scope)
        listed = [
            types.Resource(uri=core.uri, name=core.label, description=core.description or None, mime_type="text/plain")
            for core in found
        ]
        return types.ListResourcesResult(resources=listed)

    async def list_templates(self, ctx: Context, params: object) -> types.ListResourceTemplatesResult:
        import mcp_types as types

        template = types.ResourceTemplate(
            uri_template=resources.TEMPLATE,
            name="core memory",
            description="One core memory of a scope, whose name is percent-encoded.",
            mime_type="text/plain",
        )
        return types.ListResourceTemplatesResult(resource_templates=[template])

    async def read_resource(self, ctx: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        import mcp_types as types
        from mcp.shared.exceptions import MCPError

        try:
            text = await in_thread(resources.read_core, who=self._who(ctx), uri=params.uri)
        except Refused as refused:
            code = types.INTERNAL_ERROR if refused.code in ("internal", "unavailable") else types.INVALID_PARAMS
            raise MCPError(code=code, message=f"{refused.code}: {refused.sentence}") from None
        contents = types.TextResourceContents(uri=params.uri, mime_type="text/plain", text=text)
        return types.ReadResourceResult(contents=[contents])


def _tool(tool: Tool) -> types.Tool:
    import mcp_types as types

    hints = types.ToolAnnotations(
        read_only_hint=tool.reads_only, destructive_hint=False, idempotent_hint=tool.again, open_world_hint=False
    )
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=dict(tool.takes),
        output_schema=dict(tool.gives),
        annotations=hints,
    )

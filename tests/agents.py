"""What tests of MCP stand on: the SDK's own client, over standard input and output and over HTTP."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CallToolResult, Tool

from tests.brokers import ROOT, environment, own_broker, until
from tests.programs import address

MANAGE = str(ROOT / "manage.py")


@dataclass(frozen=True)
class Agent:
    """A client that is connected, called from ordinary code."""

    client: Client
    portal: BlockingPortal

    def tools(self) -> dict[str, Tool]:
        """What is offered, by name."""
        return {tool.name: tool for tool in self.portal.call(self.client.list_tools).tools}

    def call(self, name: str, /, **arguments: Any) -> CallToolResult:
        """One tool; the client checks a structured answer against the schema that was offered."""
        result: CallToolResult = self.portal.call(self.client.call_tool, name, arguments)
        return result

    def told(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """The structured answer of a tool that is carried out."""
        result = self.call(name, **arguments)
        assert not result.is_error, text_of(result)
        assert isinstance(result.structured_content, dict)
        return result.structured_content

    def refusal(self, name: str, /, **arguments: Any) -> str:
        """What a tool says that is refused: a code and one sentence."""
        result = self.call(name, **arguments)
        assert result.is_error, text_of(result)
        assert result.structured_content is None
        return text_of(result)


def text_of(result: CallToolResult) -> str:
    """The one text of an answer."""
    [content] = result.content
    assert content.type == "text"
    return content.text


def arguments(name: str, *, scope: str, row: int) -> dict[str, Any]:
    """The arguments of a tool, for what tests of the API ask of the same call."""
    _, path, body = address(name, scope=scope, row=row)
    parts = urlsplit(path)
    asked = {word: int(value) if value.isdecimal() else value for word, value in parse_qsl(parts.query)}
    asked |= body or {}
    if "/obs_" in parts.path:
        asked["id"] = f"obs_{row}"
    if "/core/human" in parts.path:
        asked["label"] = "human"
    return asked


@contextlib.contextmanager
def agent_over_stdio(*, bearer: str, log: Path, mode: str = "auto", **env: str) -> Iterator[Agent]:
    """`manage.py mcp` as a host starts it, on the test database; its standard error is written to `log`."""
    variables = {**environment(broker=own_broker()), "PALIMPSEST_TOKEN": bearer, **env}
    with connected_over_stdio(words=[MANAGE, "mcp"], env=variables, cwd=ROOT, mode=mode, log=log) as agent:
        yield agent


@contextlib.contextmanager
def connected_over_stdio(
    *, words: Sequence[str], env: Mapping[str, str], cwd: Path, mode: str = "auto", log: Path = Path(os.devnull)
) -> Iterator[Agent]:
    """A client of a process that this Python runs."""
    server = StdioServerParameters(command=sys.executable, args=[*words], env=dict(env), cwd=cwd)
    with log.open("w", encoding="utf-8") as errors, _connected(stdio_client(server, errlog=errors), mode) as agent:
        yield agent


@contextlib.contextmanager
def http_server(*, log: Path, words: tuple[str, ...] = (), **env: str) -> Iterator[str]:
    """`manage.py mcp --http` on a free port of this machine; the address that it prints."""
    variables = {**environment(broker=own_broker()), **env}
    with log.open("w", encoding="utf-8") as output:
        process = subprocess.Popen(
            [sys.executable, MANAGE, "mcp", "--http", "--port", "0", *words],
            cwd=ROOT,
            env=variables,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        until(lambda: "Ready: " in log.read_text(), seconds=40, but=lambda: log.read_text())
        yield log.read_text().partition("Ready: ")[2].split()[0]
    finally:
        process.terminate()
        process.wait(20)


@contextlib.contextmanager
def agent_over_http(*, url: str, bearer: str, mode: str = "auto") -> Iterator[Agent]:
    """A client whose every request carries the token."""
    with _connected(_streams(url, {"Authorization": f"Bearer {bearer}"}), mode) as agent:
        yield agent


def _streams(url: str, headers: Mapping[str, str]) -> Any:
    import httpx2

    return streamable_http_client(url, http_client=httpx2.AsyncClient(headers=dict(headers), timeout=30))


@contextlib.contextmanager
def _connected(transport: Any, mode: str) -> Iterator[Agent]:
    with start_blocking_portal() as portal:
        client = Client(transport, mode=mode, read_timeout_seconds=30)
        with portal.wrap_async_context_manager(client):
            yield Agent(client, portal)

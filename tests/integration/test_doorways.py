"""Every doorway has every call: the same names, so that what is learnt of one is known of the others."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from observations.api import api
from observations.calls import CALLS, Right
from observations.client import Client
from observations.mcp.tools import tools_for
from tests.programs import ADDRESSES, address, program

ROOT = Path(__file__).resolve().parents[2]
OF_THE_CLIENT_ITSELF = {"from_environment"}


def of_the_client() -> set[str]:
    """The public methods of the client that agents import."""
    return {name for name, _ in inspect.getmembers(Client, callable) if name[0] != "_"} - OF_THE_CLIENT_ITSELF


def of_rest() -> set[str]:
    """The operations of the API's description."""
    paths: Mapping[str, Mapping[str, Any]] = api.get_openapi_schema()["paths"]
    return {operation["operationId"] for methods in paths.values() for operation in methods.values()}


DOORS: Mapping[str, Callable[[], set[str]]] = {
    "the client": of_the_client,
    "REST": of_rest,
    "MCP": lambda: {tool.name for tool in tools_for(caller=None, scope="")},
    "the tests of the API": lambda: set(ADDRESSES),
}


def differing(*, calls: Iterable[str], offered: set[str]) -> list[str]:
    """What a doorway lacks, and what it has that is no call."""
    wanted = set(calls)
    return [f"lacks {name}" for name in sorted(wanted - offered)] + [
        f"has {name}, which is no call" for name in sorted(offered - wanted)
    ]


@pytest.mark.parametrize("door", DOORS)
def test_a_doorway_has_every_call_by_its_name_and_no_other(door: str) -> None:
    """R119, R120, R132. A call that is new is added to each of them, with an example in tests/programs.py."""
    assert not differing(calls=CALLS, offered=DOORS[door]()), f"{door}: add or rename it"


@pytest.mark.parametrize("door", DOORS)
def test_a_doorway_that_lacks_a_call_is_found_out(door: str) -> None:
    """The control: with one taken away, and with one that nobody knows."""
    offered = DOORS[door]()
    assert differing(calls=CALLS, offered=offered - {"core_undo"}) == ["lacks core_undo"]
    assert differing(calls=CALLS, offered=offered | {"approve"}) == ["has approve, which is no call"]


@pytest.mark.parametrize("name", CALLS)
def test_a_method_of_the_client_sends_what_the_address_of_its_call_takes(name: str) -> None:
    """Names alone prove little: the address that a method asks is that of the call, whatever its arguments."""
    asked: list[tuple[str, str]] = []

    class Listening(Client):
        def _call(
            self, method: str, path: str, body: Mapping[str, object] | None, *, key: str = ""
        ) -> tuple[int, dict[str, Any]]:
            asked.append((method, path.partition("?")[0]))
            assert bool(key) == (CALLS[name].right is not Right.READ), "a write carries a key and a read none"
            return 200, {}

    memory = Listening(url="http://localhost", token="pal_x", scope="team/a")
    method, path, body = address(name, scope="team/a", row=7)
    given = dict(body or {})
    given.pop("scope", None)
    positional = [value for mark, value in (("/obs_7", "obs_7"), ("/core/human", "human")) if mark in path]
    fitting = inspect.signature(getattr(Client, name))
    getattr(memory, name)(*positional, **_named(given, fitting))
    assert asked == [(method, path.partition("?")[0])]


def _named(given: Mapping[str, Any], fitting: inspect.Signature) -> dict[str, Any]:
    """The fields of a body as arguments; a method that takes no such field fails by itself."""
    assert all(
        name in fitting.parameters or "fields" in fitting.parameters or "what" in fitting.parameters for name in given
    )
    return dict(given)


@pytest.mark.django_db
def test_the_document_for_programs_says_of_every_call_which_right_it_needs() -> None:
    """Habit 19; and a token without the right is refused, whichever call it is."""
    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    rows = {
        line.split("`")[3]: line.rsplit("|", 2)[1].strip()
        for line in text.splitlines()
        if line.startswith("| `") and line.count("`") >= 4 and line.split("`")[3] in CALLS
    }
    assert rows == {name: str(call.right) for name, call in CALLS.items()}
    nobody = program("team/*", may_read=False, may_write=False, may_propose=True)
    for name, call in CALLS.items():
        if call.right is not Right.PROPOSE:
            assert nobody.ask(*address(name, scope="team/a", row=7)).problem == "forbidden"

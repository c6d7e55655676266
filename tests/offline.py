"""The suite reaches no other machine (R109): connecting to one fails as if it were away."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest

HERE = ("127.0.0.1", "::1", "localhost")


class Offline(ConnectionRefusedError):
    """A test tried to reach another machine."""


@pytest.fixture(scope="session", autouse=True)
def no_other_machine() -> Iterator[None]:
    """Sockets of this process connect to this machine only: the servers of the suite, stubs, sockets in folders."""
    connect, connect_ex = socket.socket.connect, socket.socket.connect_ex

    def guarded(self: socket.socket, address: Any) -> None:
        _refuse(self, address)
        connect(self, address)

    def guarded_ex(self: socket.socket, address: Any) -> int:
        _refuse(self, address)
        return connect_ex(self, address)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", guarded)
        patch.setattr(socket.socket, "connect_ex", guarded_ex)
        yield


def _refuse(one: socket.socket, address: Any) -> None:
    if one.family in (socket.AF_INET, socket.AF_INET6) and str(address[0]) not in HERE:
        raise Offline("the suite is offline: a test tried to reach another machine")

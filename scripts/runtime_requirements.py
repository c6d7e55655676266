"""Print the part of requirements.lock that running needs: for an image without tests and without embedded servers.

The lock says of every package what wants it ("# via"). Wanted at run time is what pyproject.toml's `dependencies` and
its extra `mcp` name, and whatever something wanted wants. Versions, markers and hashes are the lock's own.
"""

from __future__ import annotations

import re
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
NAME = re.compile(r"[A-Za-z0-9._-]+")
VIA = re.compile(r"^    #(?: via)? +([a-z0-9-]+)$", re.MULTILINE)


@dataclass(frozen=True)
class Pin:
    """One entry of the lock: a package, its lines as they stand, and the packages that want it."""

    name: str
    lines: str
    wanted_by: frozenset[str]


def main() -> int:
    """Print the requirements; exit status 1 when the lock lacks something pyproject.toml names."""
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = [*project["dependencies"], *project["optional-dependencies"]["mcp"]]
    names = {match[0].lower() for match in map(NAME.match, declared) if match}
    lock = pins((PROJECT / "requirements.lock").read_text(encoding="utf-8"))
    if missing := names - {pin.name for pin in lock}:
        sys.stderr.write(f"requirements.lock lacks {', '.join(sorted(missing))}: compile it again (CONTRIBUTING.md).\n")
        return 1
    wanted = closure(names=names, lock=lock)
    sys.stdout.writelines(pin.lines for pin in lock if pin.name in wanted)
    return 0


def pins(lock: str) -> list[Pin]:
    """The entries of a lock's text, in order; a package pinned per Python version has several."""
    entries = re.split(r"^(?=[A-Za-z0-9])", lock, flags=re.MULTILINE)[1:]
    return [
        Pin(name=entry.partition("==")[0].lower(), lines=entry, wanted_by=frozenset(VIA.findall(entry)))
        for entry in entries
    ]


def closure(*, names: set[str], lock: list[Pin]) -> set[str]:
    """`names` and everything that something among them wants, however far."""
    wanted = set(names)
    while more := {pin.name for pin in lock if pin.wanted_by & wanted} - wanted:
        wanted |= more
    return wanted


if __name__ == "__main__":
    sys.exit(main())

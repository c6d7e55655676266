"""Runs of `manage.py consolidate` as a shell starts them, and scopes with something to plan."""

from __future__ import annotations

import io
import json
import shlex
from dataclasses import dataclass
from typing import Any

from django.core.management import CommandError, call_command

from consolidation.models import Operation
from consolidation.operations import Kind, State
from observations.models import Scope
from tests.building import observe, scope


@dataclass
class Ran:
    """What one run printed, and how it ended."""

    out: str
    error: str = ""
    status: int = 0

    @property
    def document(self) -> dict[str, Any]:
        """Standard output as JSON: nothing else may be on it."""
        found: dict[str, Any] = json.loads(self.out)
        return found


def run(words: str) -> Ran:
    """One run with these words, as the shell would split them."""
    out = io.StringIO()
    try:
        call_command("consolidate", *shlex.split(words), stdout=out, stderr=io.StringIO())
    except CommandError as error:
        return Ran(out.getvalue(), str(error), error.returncode)
    return Ran(out.getvalue())


def twins(name: str = "team-a/u1", word: str = "relay") -> Scope:
    """A scope with one automatic merge."""
    within = scope(name)
    observe(f"The {word} listens on port 4411", within=within, external_id=f"{word}-1")
    observe(f"The {word} listens on port 4411.", within=within, external_id=f"{word}-2")
    return within


def contradiction(name: str = "team-a/u1") -> Scope:
    """A scope with one contradiction."""
    within = scope(name)
    key = ("office", "coffee machine is on floor")
    observe("The coffee machine is on floor 2", within=within, key=(*key, "2"), external_id="coffee-2")
    observe("The coffee machine is on floor 3", within=within, key=(*key, "3"), external_id="coffee-3")
    return within


def only(kind: Kind) -> Operation:
    return Operation.objects.exclude(status=State.SKIPPED).get(kind=kind)

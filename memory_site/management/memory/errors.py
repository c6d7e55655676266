"""How a sub-command fails: one sentence on standard error, and an exit status that says which kind of failure it is."""

from __future__ import annotations

from django.core.management.base import CommandError

from consolidation.management.failing import Incomplete
from observations.models import Scope

PARTLY = 1  # done, but not all of it
REFUSED = 2  # nothing was done


class Error(CommandError):
    """Nothing was done, and the sentence says why."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence, returncode=REFUSED)


class Partly(Incomplete):
    """A part was done, and the report has been printed."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence, returncode=PARTLY)


def scope_named(name: str) -> Scope:
    """The scope of that name. Raises Error."""
    found = Scope.objects.filter(name=name).first()
    if found is None:
        raise Error(f"There is no scope {name!r}: `memory import` makes a scope, and names are exact.")
    return found


def scopes_matching(pattern: str) -> list[Scope]:
    """The scopes of a name or of a pattern such as 'team/*'; '*' may match none. Raises Error."""
    found = list(Scope.objects.matching(pattern))
    if not found and pattern != "*":
        raise Error(f"No scope matches {pattern!r}: give an exact name, or a prefix that ends in '/*'.")
    return found

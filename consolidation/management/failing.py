"""How a command fails: one sentence on standard error, an exit status, and under --json a document all the same."""

from __future__ import annotations

import json
import sys
from typing import Any, Final

from django.core.checks import run_checks
from django.core.management.base import BaseCommand, CommandError, SystemCheckError

NOT_DONE: Final = 2


class Incomplete(CommandError):
    """Done, but not all of it, and what became of it has been printed by now. Exit status 1."""


class OneSentence(BaseCommand):
    """A command whose CommandError reaches a shell as its sentence alone: Django puts the class's name before it.

    Under --json standard output is one JSON document even then: {"error": sentence}, unless Incomplete says that it
    was printed already.
    """

    from_a_shell = False

    def run_from_argv(self, argv: list[str]) -> None:
        """What manage.py calls."""
        self.from_a_shell = True
        super().run_from_argv(argv)

    def execute(self, *args: Any, **options: Any) -> str | None:  # Django's own signature
        """Leaves by SystemExit when a shell started it; callers from Python get the CommandError."""
        try:
            return super().execute(*args, **options)
        except CommandError as error:
            if not self.from_a_shell or options["traceback"]:
                raise
            checked = isinstance(error, SystemCheckError)
            sentence = _found_by_checks() if checked else str(error)
            if options.get("json") and not isinstance(error, Incomplete):
                self.stdout.write(json.dumps({"error": sentence}, ensure_ascii=False))
            self.stderr.write(sentence)
            sys.exit(NOT_DONE if checked else error.returncode)


def _found_by_checks() -> str:
    """What keeps the project from running, and what to do; Django's own block has a heading and a line per part."""
    found = [issue for issue in run_checks() if issue.is_serious() and not issue.is_silenced()]
    return " ".join(" ".join(filter(None, (issue.msg, issue.hint, f"({issue.id})"))) for issue in found)

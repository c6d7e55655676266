"""How a command fails: one sentence on standard error, an exit status, and under --json a document all the same."""

from __future__ import annotations

import json
import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError, SystemCheckError


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
            if not self.from_a_shell or options["traceback"] or isinstance(error, SystemCheckError):
                raise
            if options.get("json") and not isinstance(error, Incomplete):
                self.stdout.write(json.dumps({"error": str(error)}, ensure_ascii=False))
            self.stderr.write(str(error))
            sys.exit(error.returncode)

"""`manage.py mcp`: memory as tools of the Model Context Protocol, over standard input and output or over HTTP."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.core.management.base import CommandError, CommandParser

from consolidation.management.failing import NOT_DONE, OneSentence
from observations.api import limits
from observations.mcp import answering, over_http, over_stdio

PORT: Final = 8001
_MAKE_ONE: Final = "`manage.py memory token create` makes one"


class Command(OneSentence):
    """Two ways of serving; both end with exit status 2 and one sentence when they cannot begin."""

    help = (
        "Serves memory as tools of the Model Context Protocol. Without --http one agent over standard input and output,"
        " with the token of PALIMPSEST_TOKEN; with --http many, each request with a token of its own."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """There is no option for the token itself: other accounts can read a command line."""
        parser.add_argument(
            "--token-file", metavar="FILE", help="a file that holds the token (default: PALIMPSEST_TOKEN)"
        )
        parser.add_argument(
            "--scope", metavar="NAME", help="the scope of tools that name none (default: PALIMPSEST_SCOPE)"
        )
        parser.add_argument("--http", action="store_true", help="serve streamable HTTP instead, at /mcp")
        parser.add_argument("--host", default="127.0.0.1", help="with --http: where to listen (default: %(default)s)")
        parser.add_argument(
            "--port", type=int, default=PORT, help="with --http: the port; 0 takes a free one (default: %(default)s)"
        )

    def handle(self, *args: Any, **options: Any) -> None:  # Django's own signature
        """Serves until it is told to stop, or standard input ends."""
        scope = options["scope"] or os.environ.get("PALIMPSEST_SCOPE", "")
        if options["http"]:
            self._serve_http(host=options["host"], port=options["port"], scope=scope)
        else:
            bearer = _token(options["token_file"])
            _check(bearer)
            over_stdio.serve(bearer=bearer, scope=scope)

    def _serve_http(self, *, host: str, port: int, scope: str) -> None:
        try:
            listening = over_http.listener(host=host, port=port)
        except (OSError, OverflowError) as error:
            raise _error(f"Port {port} of {host[:80]} cannot be had ({error}): choose another with --port.") from error
        place = f"[{host}]" if ":" in host else host
        self.stdout.write(f"Ready: http://{place}:{listening.getsockname()[1]}{over_http.PATH}")
        self.stdout.flush()
        over_http.serve(
            listening=listening,
            scope=scope,
            of_token=partial(limits.count, limit=settings.PALIMPSEST_API_REQUESTS_PER_MINUTE),
            of_stranger=partial(limits.count, limit=settings.PALIMPSEST_API_FAILURES_PER_MINUTE),
        )


def _token(file: str | None) -> str:
    """The token of the file, or of the environment. Raises CommandError."""
    if file is None:
        bearer = os.environ.get("PALIMPSEST_TOKEN", "")
    else:
        try:
            bearer = Path(file).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise _error(f"{file} cannot be read ({error}): give a file that holds a token; {_MAKE_ONE}.") from error
    if not bearer.strip():
        raise _error(f"There is no token: set PALIMPSEST_TOKEN, or give --token-file; {_MAKE_ONE}.")
    return bearer.strip()


def _check(bearer: str) -> None:
    """Raise CommandError for a token that opens nothing; a store that is away now may be back for the first call."""
    try:
        answering.caller_of(bearer=bearer)
    except answering.Refused as refused:
        if refused.code == "unauthorized":
            raise _error(f"The token is unknown, revoked or expired: {_MAKE_ONE}.") from None


def _error(sentence: str) -> CommandError:
    return CommandError(sentence, returncode=NOT_DONE)

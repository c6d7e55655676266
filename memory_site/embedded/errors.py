"""What can go wrong with the embedded servers, each as one sentence that says what to do."""

import errno
from pathlib import Path

TAIL_LINES = 15
NO_SPACE = ("No space left on device", "Check free disk space")  # the second is PostgreSQL's, after a short write


class EmbeddedError(Exception):
    """The embedded servers cannot do what was asked; the message says why and what to do."""


class AlreadyRunning(EmbeddedError):
    """Another process holds this data folder."""


class Interrupted(EmbeddedError):
    """Stopped by a signal before everything was ready."""


def tail(*, log: Path, lines: int = TAIL_LINES) -> str:
    """The last lines of a log, indented; "" when there is none."""
    try:
        text = log.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return "\n".join(f"    {line}" for line in text.splitlines()[-lines:])


def failure(*, what: str, log: Path, place: Path) -> EmbeddedError:
    """The sentence for a server that did not start, with the end of its log.

    A full disk is recognised by the servers' own words, because it is the one failure a person can repair without
    reading further.
    """
    end = tail(log=log)
    if any(words in end for words in NO_SPACE):
        return no_space(place=place)
    return EmbeddedError(f"{what}; the end of its log {log}:\n{end}" if end else f"{what}; its log {log} is empty.")


def no_space(*, place: Path) -> EmbeddedError:
    """The sentence for a full disk; `place` is the folder that could not grow."""
    return EmbeddedError(f"There is no space left on the disk that holds {place}: free some and start again.")


def explain(*, error: OSError, place: Path) -> EmbeddedError:
    """Turn an operating system's refusal about our own folder into a sentence."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return no_space(place=place)
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return EmbeddedError(
            f"The data folder {place} cannot be written ({error.strerror}: {error.filename or place}): "
            "run as the account that owns it, or choose another with --data-dir or PALIMPSEST_HOME."
        )
    return EmbeddedError(
        f"The data folder {place} cannot be used ({error.strerror}: {error.filename or place}): "
        "choose another with --data-dir or PALIMPSEST_HOME."
    )

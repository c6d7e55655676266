"""In whose name a command acts that was not told."""

from __future__ import annotations

import getpass


def operating_user() -> str:
    """The user of this machine, marked as one of the command line; "cli" where the account has no name."""
    try:
        return f"cli:{getpass.getuser()}"
    except (KeyError, OSError):  # no such account on this machine
        return "cli"

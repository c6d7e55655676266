"""manage.py as a process that is forked and not started anew: importing Django takes a hundred times as long as most
commands do. What an environment or a locale decides at a start is tested in fresh processes.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from typing import IO

from django.db import connections

from memory_site.command_line import main


def forked(*words: str) -> subprocess.CompletedProcess[str]:
    """One command on the test database in a child of this process: its exit status and what it wrote."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = os.fork()
        if not child:
            _be_the_command(words, out, err)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        said, complained = (_read(file) for file in (out, err))
    return subprocess.CompletedProcess(words, status, said, complained)


def _read(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8")


def _be_the_command(words: tuple[str, ...], out: IO[bytes], err: IO[bytes]) -> None:
    """Never returns. The parent's connection is left alone: closing it here would end the parent's session."""
    status: object = 1
    inherited = connections["default"].connection
    try:
        connections["default"].connection = None
        os.dup2(out.fileno(), 1)
        os.dup2(err.fileno(), 2)
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - of a process that ends here
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        main(["manage.py", *words])
        status = 0
    except SystemExit as left:
        status = left.code
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        del inherited
        os._exit(status if isinstance(status, int) else 0 if status is None else 1)

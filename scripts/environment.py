"""Make .venv hold exactly what requirements.lock says, hashes checked; started by the Makefile with the Python to use.

Standard library only. An environment that is right is left alone. One that works is kept, whichever Python it was made
with, unless PYTHON names another. Exit status 1 with one sentence on standard error when it cannot be made.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

VENV = Path(".venv")
PYTHON = VENV / "bin" / "python"
STAMP = VENV / "installed-from"
LOCK = Path("requirements.lock")
OLDEST = (3, 11)


class CannotPrepare(Exception):
    """The environment cannot be made; the message says what to do."""


def main() -> int:
    """Bring the environment up to date; returns the exit status."""
    os.chdir(Path(__file__).resolve().parent.parent)
    with LOCK.open("rb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # a second `make` waits instead of writing over the first
        wanted = hashlib.sha256(lock.read()).hexdigest()
        try:
            prepare(wanted=wanted)
        except CannotPrepare as error:
            sys.stderr.write(f"{error}\n")
            return 1
    return 0


def prepare(*, wanted: str) -> None:
    """Make the environment and install into it, as far as either is needed. `wanted` is the lock's sha256."""
    own, found = base_of(Path(sys.executable)), base_of(PYTHON)
    usable = bool(found) and (not os.environ.get("PYTHON") or found == own)
    stamp = f"{wanted} {found}"
    if usable and STAMP.is_file() and STAMP.read_text(encoding="utf-8") == stamp:
        return
    uv = find_uv()
    if not usable:
        say(f"Making .venv with Python {sys.version.split()[0]}")
        make(uv=uv)
        stamp = f"{wanted} {base_of(PYTHON)}"
    say("Installing the locked packages (about a minute the first time)")
    STAMP.unlink(missing_ok=True)
    install(uv=uv)
    STAMP.write_text(stamp, encoding="utf-8")


def base_of(python: Path) -> str:
    """The version and home of a Python, for comparing two; empty when it does not run or is too old."""
    asked = "import sys; print(*sys.version_info[:3], sys.base_prefix) if sys.version_info >= (3, 11) else None"
    try:
        done = subprocess.run([python, "-I", "-c", asked], capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def find_uv() -> str | None:
    """The path of a uv that runs; a shim that does not is no uv."""
    uv = shutil.which("uv")
    return uv if uv and subprocess.run([uv, "--version"], capture_output=True, check=False).returncode == 0 else None


def make(*, uv: str | None) -> None:
    """An empty .venv, with pip where the installing will be pip's own."""
    has_pip = importlib.util.find_spec("ensurepip") is not None
    if not has_pip and not uv and importlib.util.find_spec("pip") is None:
        raise CannotPrepare(
            f"{sys.executable} cannot make environments: install uv, or Debian's package for it "
            "(apt-get install python3-venv), and run this again."
        )
    words = [] if has_pip and not uv else ["--without-pip"]
    if subprocess.run([sys.executable, "-m", "venv", "--clear", *words, VENV], check=False).returncode != 0:
        raise CannotPrepare(".venv could not be made (see above): remove it, or choose another Python with PYTHON=...")


def install(*, uv: str | None) -> None:
    """Everything of the lock, by uv when it is there and can, else by pip.

    Compiled at once, as pip does by itself: where Python may not write its own caches (PYTHONDONTWRITEBYTECODE, common
    in containers) every process would compile all of it again, and a start would take twice as long.
    """
    words = ["install", "--quiet", "--require-hashes", "-r", str(LOCK)]
    if uv:
        if run([uv, "pip", *words, "--compile-bytecode", "--python", str(PYTHON)]):
            return
        say("uv could not install them; trying pip")
    if not run([*pip(), "--disable-pip-version-check", *words]):
        raise CannotPrepare(
            "The packages of requirements.lock could not be installed (see above): is the package registry reachable? "
            "Then run this again."
        )


def pip() -> list[str]:
    """pip's command line for .venv: its own, one made for it, or this Python's pip working on it."""
    if run([str(PYTHON), "-m", "pip", "--version"], quiet=True) or run([str(PYTHON), "-m", "ensurepip"], quiet=True):
        return [str(PYTHON), "-m", "pip"]
    return [sys.executable, "-m", "pip", "--python", str(PYTHON)]


def run(words: list[str], *, quiet: bool = False) -> bool:
    """Whether a command ended well."""
    environ = {**os.environ, "PIP_USER": "0"}  # a user's own setting to install elsewhere does not hold here
    output = subprocess.DEVNULL if quiet else None
    return subprocess.run(words, env=environ, stdout=output, stderr=output, check=False).returncode == 0


def say(text: str) -> None:
    """Progress, one line."""
    sys.stderr.write(f"{text} ...\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())

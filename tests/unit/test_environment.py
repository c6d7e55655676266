"""How `make` finds a Python and makes .venv: shims that do not run, odd folders, missing pieces, nothing to do."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from scripts import environment

ROOT = Path(__file__).resolve().parents[2]
TELL = "import sys\nprint('made by', sys.executable)\n"
MAKE = shutil.which("make")
needs_make = pytest.mark.skipif(MAKE is None, reason="there is no make on this machine")


def checkout(folder: Path) -> Path:
    """The Makefile in a folder with spaces and letters, with a script that only tells which Python runs it."""
    place = folder / "ein Ordner mit Ümläuten & $HOME"
    (place / "scripts").mkdir(parents=True)
    shutil.copy(ROOT / "Makefile", place)
    (place / "scripts" / "environment.py").write_text(TELL)
    return place


def program(folder: Path, name: str, text: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / name).chmod(0o755)


def make(place: Path, *words: str, path: Path) -> subprocess.CompletedProcess[str]:
    assert MAKE is not None
    environ = {"PATH": f"{path}:/usr/bin:/bin", "LC_ALL": "C"}
    return subprocess.run([MAKE, *words], cwd=place, env=environ, capture_output=True, text=True, check=False)


@needs_make
def test_a_shim_that_does_not_run_is_passed_over_for_the_next_python(tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    for name in ("python3.14", "python3.13"):
        program(programs, name, "echo 'command not found' >&2\nexit 127")
    program(programs, "python3.12", "exit 1  # too old, whatever its name says")
    program(programs, "python3.11", f'exec "{sys.executable}" "$@"')
    done = make(checkout(tmp_path), "environment", path=programs)
    assert done.returncode == 0, done.stderr
    assert "made by" in done.stdout


@needs_make
def test_the_named_python_is_taken_and_no_other(tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    program(programs, "python3.13", "exit 99")
    program(programs, "mein python", f'exec "{sys.executable}" "$@"')
    place = checkout(tmp_path)
    assert make(place, "environment", f"PYTHON={programs}/mein python", path=programs).returncode == 0
    refused = make(place, "environment", "PYTHON=/nowhere/python3", path=programs)
    assert refused.returncode != 0
    assert "Python 3.11 or newer" in refused.stderr
    assert "/nowhere/python3" in refused.stderr


@needs_make
def test_help_needs_no_python_and_names_every_target(tmp_path: Path) -> None:
    done = make(checkout(tmp_path), path=tmp_path)
    assert done.returncode == 0
    assert done.stdout.count("\n") == done.stdout.count("make ") >= 6


@pytest.fixture
def venv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment made of this Python, with an empty lock, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTHON", raising=False)
    Path("requirements.lock").write_text("")
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / "bin" / "python").symlink_to(sys.executable)
    return tmp_path / ".venv"


def test_an_environment_that_is_right_is_left_alone_and_a_new_lock_is_installed(
    venv: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed: list[str | None] = []
    monkeypatch.setattr(environment, "install", lambda *, uv: installed.append(uv))
    monkeypatch.setattr(environment, "find_uv", lambda: None)
    for text, times in (("", 1), ("", 1), ("a==1\n", 2), ("a==1\n", 2)):
        environment.prepare(wanted=hashlib.sha256(text.encode()).hexdigest())
        assert len(installed) == times


def test_an_install_that_failed_is_tried_again(venv: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*, uv: str | None) -> None:
        raise environment.CannotPrepare("no registry")

    monkeypatch.setattr(environment, "find_uv", lambda: None)
    for _ in range(2):
        monkeypatch.setattr(environment, "install", fail)
        with pytest.raises(environment.CannotPrepare):
            environment.prepare(wanted="x")
        assert not environment.STAMP.exists()


def test_what_is_installed_is_compiled_by_uv_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """pip compiles by itself; without compiled files a start takes twice as long where Python may write none."""
    asked: list[list[str]] = []

    def run(words: list[str], *, quiet: bool = False) -> bool:
        asked.append(words)
        return True

    monkeypatch.setattr(environment, "run", run)
    environment.install(uv="uv")
    assert [("--compile-bytecode" in words, "--require-hashes" in words) for words in asked] == [(True, True)]


def test_a_python_without_the_means_to_make_environments_is_told_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Debian's python3 without python3-venv: neither ensurepip nor pip, and no uv either."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(environment.CannotPrepare, match=r"apt-get install python3-venv") as refusal:
        environment.make(uv=None)
    assert "\n" not in str(refusal.value)


def test_a_python_that_is_gone_or_no_python_is_not_taken_for_one(tmp_path: Path) -> None:
    program(tmp_path, "fails", "exit 127")
    program(tmp_path, "silent", "exit 0")
    for name in ("absent", "fails", "silent"):
        assert environment.base_of(tmp_path / name) == ""
    assert environment.base_of(Path(sys.executable)).startswith(f"{sys.version_info.major} {sys.version_info.minor}")


def test_ci_runs_test_then_lint_and_fails_when_either_does(tmp_path: Path) -> None:
    """.ci/run with a `make` that writes down what it is asked for."""
    place = tmp_path / "a checkout"
    (place / ".ci").mkdir(parents=True)
    shutil.copy(ROOT / ".ci" / "run", place / ".ci")
    for name in ("chromium", "apt-get"):
        program(tmp_path / "bin", name, "exit 0")
    for failing, status in (("", 0), ("test", 1), ("lint", 1)):
        program(tmp_path / "bin", "make", f'echo "asked for $1 with CI=$CI"\n[ "$1" != "{failing}" ]')
        environ = {"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin", "HOME": str(tmp_path)}
        done = subprocess.run(["bash", ".ci/run"], cwd=place, env=environ, capture_output=True, text=True, check=False)
        assert done.returncode == status, done.stdout + done.stderr
        asked = [line for line in done.stdout.splitlines() if line.startswith("asked")]
        assert asked == ["asked for test with CI=true", "asked for lint with CI=true"]
        assert os.access(ROOT / ".ci" / "run", os.X_OK)

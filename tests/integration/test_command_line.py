"""manage.py works by itself on a fresh set-up: it brings the servers a command needs, and none where none is needed."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from memory_site.command_line import needs_database
from tests.integration.embedded_stand import wait_for

ROOT = Path(__file__).resolve().parents[2]
OWN = ("DATABASE_URL", "MIGRATE_DATABASE_URL", "REDIS_URL", "SECRET_KEY", "SUPERUSER_DATABASE_URL")


def fresh(home: Path) -> dict[str, str]:
    """The environment of somebody who has set nothing up."""
    return {**{name: value for name, value in os.environ.items() if name not in OWN}, "PALIMPSEST_HOME": str(home)}


def manage(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), *words],
        env=fresh(home),
        capture_output=True,
        encoding="utf-8",
        timeout=180,
        check=False,
    )


@contextlib.contextmanager
def folder_below(place: Path) -> Iterator[Path]:
    """A data folder to be made. Started by root its servers' part may lie elsewhere, and goes with it."""
    home = place / "a home with spaces ü"
    yield home
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree((home / "place").read_text(encoding="utf-8").strip())


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    with folder_below(tmp_path) as folder:
        yield folder


@dataclass(frozen=True)
class First:
    """The first command on a fresh set-up, an import of one row, and the data folder that it made."""

    home: Path
    done: subprocess.CompletedProcess[str]


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Iterator[First]:
    place = tmp_path_factory.mktemp("first")
    path = place / "in.jsonl"
    path.write_text(json.dumps({"text": "The relay hums", "id": "x", "scope": "s"}) + "\n")
    with folder_below(place) as folder:
        yield First(folder, manage(folder, "memory", "import", str(path)))


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["help"],
        ["--help"],
        ["--version"],
        ["help", "memory"],
        ["check"],
        ["makemigrations", "--check"],
        ["memory", "--help"],
        ["memory", "import", "-h"],
        ["consolidate", "plan", "--help"],
    ],
)
def test_asking_for_help_and_checking_the_code_need_no_database(words: list[str]) -> None:
    assert not needs_database(["manage.py", *words])


@pytest.mark.parametrize(
    "words",
    [
        ["memory", "search", "--scope", "help", "tea"],
        ["memory", "search", "--scope", "s", "--", "--help"],
        ["consolidate"],
        ["migrate"],
        ["shell"],
        ["createsuperuser"],
    ],
)
def test_everything_else_needs_one(words: list[str]) -> None:
    assert needs_database(["manage.py", *words])


def test_help_touches_no_data_folder(tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert "import" in manage(home, "memory", "--help").stdout
    assert not home.exists()


@pytest.mark.parametrize("words", ["check", "makemigrations --check"])
def test_checking_a_fresh_checkout_finds_nothing_wrong_with_it(home: Path, words: str) -> None:
    """The secret key is made by the embedded servers: that there is none yet is no error."""
    done = manage(home, *words.split())
    assert (done.returncode, "palimpsest.E" in done.stderr) == (0, False)
    assert not home.exists()


@pytest.mark.parametrize("inside", ["", "sub"])
def test_a_home_that_is_a_file_is_one_sentence_on_standard_error_and_one_document_under_json(
    tmp_path: Path, inside: str
) -> None:
    """Bad input: nothing is touched, and the sentence says what to change."""
    (tmp_path / "notes.txt").write_text("mine")
    done = manage(tmp_path / "notes.txt" / inside, "consolidate", "--json")
    assert done.returncode == 2
    assert "cannot be used (Not a directory" in done.stderr
    assert done.stderr.endswith("choose another with --data-dir or PALIMPSEST_HOME.\n")
    assert done.stderr.count("\n") == 1
    assert json.loads(done.stdout) == {"error": done.stderr.strip()}
    assert (tmp_path / "notes.txt").read_text() == "mine"


@pytest.mark.slow
def test_the_first_command_on_a_fresh_set_up_just_works_and_the_next_one_finds_its_rows(first: First) -> None:
    """Servers, schema, roles and key are made on the way; nothing is left running, and the key is its owner's alone."""
    home = first.home
    assert (first.done.returncode, first.done.stderr) == (0, "")
    found = manage(home, "memory", "search", "--scope", "s", "--json", "relay")
    assert (found.returncode, found.stderr) == (0, "")
    assert json.loads(found.stdout)["hits"][0]["external_id"] == "x"
    assert stat.S_IMODE((home / "secrets.json").stat().st_mode) == 0o600
    assert not _left_behind(home)


@pytest.mark.slow
def test_an_interrupted_command_ends_with_130_and_takes_its_servers_along(first: First) -> None:
    home = first.home
    command = subprocess.Popen(
        [sys.executable, str(ROOT / "manage.py"), "memory", "import", "-", "--scope", "s"],
        env=fresh(home),
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        # whoever runs the suite in the background has its children ignore the signal
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    wait_for(lambda: _reads(command.pid) or command.poll() is not None, "the command reads its lines", seconds=180)
    command.send_signal(signal.SIGINT)
    _, said = command.communicate(timeout=180)
    assert (command.returncode, said) == (130, "Interrupted.\n")
    assert not _left_behind(home)


def _reads(pid: int) -> bool:
    """Whether a process waits for its standard input: the command has come as far as its work."""
    try:
        call = Path(f"/proc/{pid}/syscall").read_text().split()
    except OSError:
        return False
    return call[:2] == ["0", "0x0"]


def _left_behind(home: Path) -> list[str]:
    """Command lines of processes that still mention the data folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if str(home) in words:
                found.append(words)
    return found

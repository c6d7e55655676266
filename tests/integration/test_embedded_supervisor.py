"""The supervisor, for real: it starts and stops in order, survives kills, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import socket
import stat
from pathlib import Path

import psycopg
import pytest

from memory_site.embedded import processes, running
from memory_site.embedded.folder import DataFolder, read_record
from memory_site.embedded.state import MARK
from tests.integration.embedded_stand import Run, command, home, permissions, servers_under, wait_for

__all__ = ["home"]

STUBBORN = "trap '' TERM; echo ' ready.'; while :; do sleep 1; done"


def everything_of(data: Path) -> list[int]:
    """Servers, web, worker and beat of a data folder, by what they themselves carry."""
    mark = read_record(DataFolder(data).state).get("mark")
    return [*servers_under(data), *(processes.marked(mark=f"{MARK}={mark}") if mark else [])]


def marked_rows(data: Path) -> int:
    """How many rows the test's own table has; it makes the table."""
    urls = running(data)
    assert urls is not None
    with psycopg.connect(urls.migrate_database_url) as owner:
        owner.execute("CREATE TABLE IF NOT EXISTS kept (n int)")
        owner.execute("INSERT INTO kept VALUES (1)")
        row = owner.execute("SELECT count(*) FROM kept").fetchone()
    assert row is not None
    return int(row[0])


def test_a_run_starts_in_a_path_with_spaces_and_accents_and_stops_web_beat_worker_in_that_order(home: Path) -> None:
    data = home / "mémoire à long terme"
    before = permissions([home])
    run = Run(data, GREETING="x").ready()
    assert "managed migrate" in run.said
    assert "managed seed" in run.said
    assert run.said.index("managed migrate") < run.said.index("managed seed") < run.said.index("Ready: ")
    children = everything_of(data)
    assert len(children) >= 5
    assert run.send(signal.SIGINT) == 0
    assert (data / "stopped").read_text().split() == ["beat", "worker"]
    assert all(processes.birth(pid=pid) is None for pid in children)
    assert running(data) is None
    assert permissions([home]) == before
    for secret in ("secrets.json", "lock"):
        assert stat.S_IMODE((data / secret).stat().st_mode) == 0o600
    assert not list(home.glob("**/*.partial"))


def test_a_second_run_is_refused_with_the_address_of_the_first_and_stop_status_and_env_know_it(home: Path) -> None:
    data = home / "d"
    assert command("status", data=data).returncode == 1
    first = Run(data).ready()
    address = first.said.split("Ready: ")[1].split()[0]
    second = Run(data)
    assert second.ended() == 1
    assert address in second.said
    assert len(second.said.strip().splitlines()) == 1
    status = command("status", data=data)
    assert status.returncode == 0
    assert address in status.stdout
    urls = running(data)
    assert urls is not None
    assert urls.web_url == address
    exports = command("env", data=data).stdout
    assert "export DATABASE_URL=" in exports
    assert "export SECRET_KEY=" in exports
    stopped = command("stop", data=data)
    assert (stopped.returncode, first.ended()) == (0, 0)
    assert command("stop", data=data).returncode == 0
    refused = command("env", data=data)
    assert refused.returncode == 1
    assert "start it with" in refused.stderr


def test_kill_9_of_the_supervisor_leaves_no_orphan_and_the_next_start_finds_the_data(home: Path) -> None:
    data = home / "d"
    run = Run(data, WORKER=STUBBORN).ready()  # as Celery's is, once its broker is gone
    assert marked_rows(data) == 1
    children = everything_of(data)
    assert run.send(signal.SIGKILL) == -signal.SIGKILL
    again = Run(data).ready()  # at once: it has to wait for the old servers itself
    assert all(processes.birth(pid=pid) is None for pid in children)
    assert marked_rows(data) == 2
    assert again.send(signal.SIGKILL) == -signal.SIGKILL
    wait_for(lambda: not everything_of(data), "every child heeds its death signal")


def test_kill_9_of_postgresql_ends_the_run_and_the_next_start_recovers_whatever_its_pid_file_says(home: Path) -> None:
    data = home / "d"
    run = Run(data).ready()
    assert marked_rows(data) == 1
    left_behind = data / "servers" / "pg" / "postmaster.pid"
    lines = left_behind.read_text().splitlines()
    os.kill(int(lines[0]), signal.SIGKILL)
    assert run.ended() == 1
    assert "postgres ended by itself (killed by SIGKILL)" in run.said
    assert not everything_of(data)
    zombie = os.fork()
    if zombie == 0:
        os._exit(0)
    try:
        for number, first in enumerate((str(os.getpid()), str(zombie), None), start=2):
            # A live process of somebody else's, a process nobody has reaped, a file cut short.
            _write_as_owner(left_behind, "\n".join([first, *lines[1:]]) if first else "")
            again = Run(data).ready()
            assert marked_rows(data) == number
            assert again.send(signal.SIGTERM) == 0
    finally:
        os.waitpid(zombie, 0)


def _write_as_owner(path: Path, text: str) -> None:
    owner = path.parent.stat()
    path.write_text(text)
    os.chown(path, owner.st_uid, owner.st_gid)


def test_a_second_ctrl_c_hurries_a_stubborn_worker_and_postgresql_still_ends_cleanly(home: Path) -> None:
    data = home / "d"
    run = Run(data, WORKER=STUBBORN).ready()
    run.process.send_signal(signal.SIGINT)
    wait_for(lambda: "Stopping" in run.said, "it is stopping")
    run.process.send_signal(signal.SIGINT)
    run.process.send_signal(signal.SIGINT)
    assert run.ended() == 0
    assert "database system is shut down" in (data / "logs" / "postgres.log").read_text()
    assert not everything_of(data)


def test_when_valkey_is_killed_a_worker_that_waits_for_it_is_not_waited_for(home: Path) -> None:
    data = home / "d"
    run = Run(data, WORKER=STUBBORN).ready()
    server = next(pid for pid in servers_under(home) if Path(f"/proc/{pid}/exe").readlink().name == "valkey-server")
    os.kill(server, signal.SIGKILL)
    assert run.process.wait(timeout=12) == 1  # the worker's own patience would be 20 s
    assert "valkey ended by itself (killed by SIGKILL)" in run.said
    assert not everything_of(data)


def test_a_failing_command_before_the_web_stops_everything_with_its_own_words(home: Path) -> None:
    run = Run(home / "d", MANAGE="echo 'no such table'; exit 3")
    assert run.ended() == 1
    assert "manage.py migrate --verbosity 0 failed (exit 3)" in run.said
    assert "no such table" in run.said
    assert not servers_under(home)


def test_an_interrupt_while_it_starts_stops_what_is_there_and_says_so_by_its_status(home: Path) -> None:
    run = Run(home / "d", MANAGE="exec sleep 60")
    wait_for(lambda: "manage.py migrate" in run.said, "it migrates")
    assert run.send(signal.SIGTERM) == 130
    assert not servers_under(home)


def test_a_port_asked_for_and_taken_is_one_sentence_and_without_one_the_next_free_port_is_used(home: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        run = Run(home / "d", port=port)
        assert run.ended() == 1
        assert run.said == f"Port {port} is in use: choose another with --port.\n"
    assert not (home / "d" / "servers").exists()
    first, second = Run(home / "d"), Run(home / "e")
    addresses = {run.ready().said.split("Ready: ")[1].split()[0] for run in (first, second)}
    assert len(addresses) == 2
    assert [run.send(signal.SIGTERM) for run in (first, second)] == [0, 0]


def test_the_web_and_the_worker_do_not_get_the_owners_address(home: Path) -> None:
    data = home / "d"
    run = Run(data).ready()
    mark = read_record(DataFolder(data).state)["mark"]
    for pid in processes.marked(mark=f"{MARK}={mark}"):
        environ = Path(f"/proc/{pid}/environ").read_bytes()
        assert b"DATABASE_URL=postgresql://palimpsest_app:" in environ
        assert b"palimpsest_owner" not in environ
    assert run.send(signal.SIGTERM) == 0


def test_no_password_and_no_text_of_a_failing_statement_reaches_a_log(home: Path) -> None:
    data = home / "d"
    run = Run(data).ready()
    urls = running(data)
    assert urls is not None
    with psycopg.connect(urls.database_url) as connection, pytest.raises(psycopg.Error):
        connection.execute("SELECT 'whisper'::int")
    assert run.send(signal.SIGTERM) == 0
    logs = "".join(path.read_text() for path in (data / "logs").iterdir())
    secrets = read_record(data / "secrets.json")
    assert len(secrets) == 4
    assert not [name for name, value in secrets.items() if value in logs]
    assert "whisper" not in logs

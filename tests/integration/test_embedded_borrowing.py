"""Servers borrowed for one command: shared by all who ask at once, gone with the last of them, however each ends."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from subprocess import TimeoutExpired

import psycopg
import pytest

from memory_site.embedded import EmbeddedError, borrow, migration_lock, running, state
from memory_site.embedded.folder import DataFolder
from tests.integration.embedded_stand import Run, command, home, python, servers_under, wait_for

__all__ = ["home"]

BORROWER = """
import sys, psycopg
from pathlib import Path
from memory_site.embedded import borrow
START = "SELECT pg_postmaster_start_time()"
with borrow(Path(sys.argv[1])) as urls:
    with psycopg.connect(urls.database_url) as app:
        before = app.execute(START).fetchone()
    print("has", before[0], flush=True)
    sys.stdin.read()
    with psycopg.connect(urls.database_url) as app:
        assert app.execute(START).fetchone() == before
print("done", flush=True)
"""


def first_line(process: object) -> str:
    output = getattr(process, "stdout", None)
    assert output is not None
    return str(output.readline())


def test_a_borrower_on_a_fresh_folder_gets_both_servers_and_takes_them_along_when_it_ends(home: Path) -> None:
    data = home / "d"
    assert running(data) is None
    for number in (1, 2):
        with borrow(data) as urls:
            assert running(data) == urls
            with psycopg.connect(urls.migrate_database_url) as owner:
                owner.execute("CREATE TABLE IF NOT EXISTS kept (n int)")
                owner.execute("INSERT INTO kept VALUES (1)")
                assert owner.execute("SELECT count(*) FROM kept").fetchone() == (number,)
        assert running(data) is None
        assert not servers_under(home)


def test_the_roles_are_what_they_should_be_and_no_connection_is_made_without_a_password(home: Path) -> None:
    with borrow(home / "d") as urls:
        assert urls.superuser_url is not None
        with psycopg.connect(urls.superuser_url) as admin:
            rows = admin.execute(
                "SELECT rolname, rolsuper, rolcreatedb, rolcreaterole FROM pg_roles WHERE rolcanlogin ORDER BY rolname"
            ).fetchall()
            extensions = {name for (name,) in admin.execute("SELECT extname FROM pg_extension").fetchall()}
            locale = admin.execute(
                "SELECT datlocprovider, datlocale, pg_encoding_to_char(encoding), pg_get_userbyid(datdba)"
                " FROM pg_database WHERE datname = current_database()"
            ).fetchone()
        for role in ("palimpsest_app", "palimpsest_owner", "postgres"):
            folder = urls.database_url.split("@")[1]
            with pytest.raises(psycopg.OperationalError, match="password"):
                psycopg.connect(f"postgresql://{role}:wrong@{folder}")
    assert rows == [
        ("palimpsest_app", False, False, False),
        ("palimpsest_owner", False, False, False),
        ("postgres", True, True, True),
    ]
    assert {"vector", "btree_gist", "pg_trgm"} <= extensions
    assert locale == ("b", "C.UTF-8", "UTF8", "palimpsest_owner")


def test_five_at_once_on_a_fresh_folder_share_one_server(home: Path) -> None:
    data = home / "d"
    borrowers = [python(BORROWER, str(data)) for _ in range(5)]
    starts = {first_line(process) for process in borrowers}
    assert len(starts) == 1, starts
    assert starts.pop().startswith("has ")
    for process in borrowers:
        said, _ = process.communicate(timeout=30)
        assert (process.returncode, said) == (0, "done\n")
    wait_for(lambda: not servers_under(home), "the servers go with the last borrower")


def test_a_borrower_that_is_killed_takes_no_server_from_under_another(home: Path) -> None:
    data = home / "d"
    first = python(BORROWER, str(data))
    assert first_line(first).startswith("has ")
    second = python(BORROWER, str(data))
    assert first_line(second).startswith("has ")
    first.kill()
    assert first.wait() == -signal.SIGKILL
    said, _ = second.communicate(timeout=30)
    assert (second.returncode, said) == (0, "done\n")
    wait_for(lambda: not servers_under(home), "the servers go with the last borrower")


def test_a_keeper_that_is_killed_leaves_no_orphan_and_the_next_borrower_starts_afresh(home: Path) -> None:
    data = home / "d"
    borrower = python(BORROWER, str(data))
    first_line(borrower)
    holder = state.holder(data=DataFolder(data))
    assert holder is not None
    os.kill(holder.pid, signal.SIGKILL)
    wait_for(lambda: not servers_under(home), "the servers heed their death signal")
    with borrow(data) as urls, psycopg.connect(urls.database_url) as app:
        assert app.execute("SELECT 1").fetchone() == (1,)
    borrower.communicate(timeout=30)
    assert borrower.returncode == 1  # its server was gone


def test_a_run_waits_for_a_borrower_and_a_borrower_joins_a_run_without_ending_it(home: Path) -> None:
    data = home / "d"
    with borrow(data):
        run = Run(data)
        wait_for(lambda: "Waiting for a command" in run.said, "the run waits")
    run.ready()
    with borrow(data) as urls:
        assert urls == running(data)
        assert urls.web_url is not None
    assert running(data) == urls
    assert run.send(signal.SIGTERM) == 0


def test_what_borrowers_share_can_be_stopped_by_a_person(home: Path) -> None:
    data = home / "d"
    borrower = python(BORROWER, str(data))
    first_line(borrower)
    assert "without the web" in command("status", data=data).stdout
    assert command("stop", data=data).returncode == 0
    assert not servers_under(home)
    borrower.communicate(timeout=30)


def test_lost_passwords_are_replaced_and_the_data_stays(home: Path) -> None:
    data = home / "d"
    with borrow(data) as urls, psycopg.connect(urls.migrate_database_url) as owner:
        owner.execute("CREATE TABLE kept AS SELECT 1 AS n")
    (data / "secrets.json").write_text('{"owner": ')
    with borrow(data) as again, psycopg.connect(again.migrate_database_url) as owner:
        assert owner.execute("SELECT n FROM kept").fetchone() == (1,)
    assert again.migrate_database_url.split("@")[0] != urls.migrate_database_url.split("@")[0]


def test_servers_of_the_users_own_are_used_each_for_itself(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = home / "d"
    monkeypatch.setenv("DATABASE_URL", "postgresql://me@elsewhere/mine")
    with borrow(data) as urls:
        assert urls.database_url == urls.migrate_database_url == "postgresql://me@elsewhere/mine"
        assert urls.superuser_url is None
        assert urls.redis_url.startswith("redis+socket:///")
        assert not (data / "servers" / "pg").exists()
    monkeypatch.setenv("REDIS_URL", "redis://elsewhere")
    monkeypatch.setenv("MIGRATE_DATABASE_URL", "postgresql://owner@elsewhere/mine")
    with borrow(home / "untouched") as urls, migration_lock(home / "untouched"):
        assert (urls.migrate_database_url, urls.redis_url) == ("postgresql://owner@elsewhere/mine", "redis://elsewhere")
    assert not (home / "untouched").exists()


def test_the_migration_lock_lets_one_in_at_a_time(home: Path) -> None:
    data = home / "d"
    waiter = "import sys; from pathlib import Path; from memory_site.embedded import *\n"
    waiter += "print('asks', flush=True)\nwith migration_lock(Path(sys.argv[1])): print('has it', flush=True)"
    with borrow(data):
        with migration_lock(data):
            process = python(waiter, str(data))
            assert first_line(process) == "asks\n"
            with pytest.raises(TimeoutExpired):
                process.wait(timeout=0.5)
        assert process.communicate(timeout=10)[0] == "has it\n"


def test_an_error_of_the_servers_is_the_borrowers_error(home: Path) -> None:
    (home / "d").mkdir()
    (home / "d" / "letters").write_text("mine")
    with pytest.raises(EmbeddedError, match="holds other files and is not a data folder"), borrow(home / "d"):
        pytest.fail("borrowed from a folder that is not ours")
    assert [path.name for path in (home / "d").iterdir()] == ["letters"]

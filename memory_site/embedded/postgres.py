"""PostgreSQL 18 with pgvector: made, started and stopped by its own programs, behind a socket only.

The cluster is made under another name and renamed when whole, so a killed first start leaves nothing behind. Sort
order is the built-in C.UTF-8, the same on every machine. Every connection needs a password. No statement and no text
of a row reaches the log.
"""

import contextlib
import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from memory_site.database_url import socket_url
from memory_site.embedded import processes
from memory_site.embedded.accounts import Account
from memory_site.embedded.binaries import Binaries
from memory_site.embedded.errors import EmbeddedError, failure
from memory_site.embedded.folder import sync_folder

MAJOR = "18"
SUPERUSER, OWNER, APP = "postgres", "palimpsest_owner", "palimpsest_app"
DATABASE = "palimpsest"
EXTENSIONS = ("vector", "btree_gist", "pg_trgm")
READY_SECONDS = 60.0

# "log" sorts between "error" and "fatal": messages of single statements, which quote values, stay out; the server's own
# words stay in.
_SETTINGS = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "log_min_messages": "log",
    "log_min_error_statement": "panic",
    "log_error_verbosity": "terse",
    "timezone": "UTC",
    "log_timezone": "UTC",
    # What a search reads lies in the system's cache as a rule: to hand each read to a process for it takes longer.
    "io_method": "sync",
}
_CARELESS = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}


@dataclass(frozen=True)
class Cluster:
    """One cluster: its data, the folder of its socket, its programs, its account and its log."""

    data: Path
    sockets: Path
    binaries: Binaries
    account: Account | None
    log: Path
    fsync: bool = True


def check_version(data: Path) -> None:
    """Refuse data of another major version before anything is touched."""
    try:
        found = (data / "PG_VERSION").read_text(encoding="ascii").strip()
    except FileNotFoundError:
        return
    except PermissionError as error:
        raise EmbeddedError(
            f"{data} belongs to another account: run as that one, or choose another with --data-dir or PALIMPSEST_HOME."
        ) from error
    if found != MAJOR:
        raise EmbeddedError(
            f"{data} holds data of PostgreSQL {found} and this is PostgreSQL {MAJOR}: nothing was touched; "
            "dump it with the old version, or choose another folder with --data-dir or PALIMPSEST_HOME."
        )


def available(binaries: Binaries) -> list[str]:
    """Those of EXTENSIONS this build has."""
    return [name for name in EXTENSIONS if (binaries.extensions / f"{name}.control").exists()]


def ensure(*, cluster: Cluster, secrets: dict[str, str], secrets_are_new: bool, owner_creates_databases: bool) -> None:
    """Make the cluster with its roles, extensions and database, or tell an existing one its new passwords."""
    check_version(cluster.data)
    processes.await_departure(folder=cluster.data, program="postgres", stop_signal=signal.SIGINT)
    (cluster.data / "postmaster.pid").unlink(missing_ok=True)  # nobody works here, whatever number it holds
    if not cluster.data.is_dir():
        _make(cluster, secrets, owner_creates_databases)
    elif secrets_are_new:
        _single(cluster, cluster.data, [_password(role, secrets[key]) for role, key in _ROLES.items()])


_ROLES = {SUPERUSER: "superuser", OWNER: "owner", APP: "app"}


def _make(cluster: Cluster, secrets: dict[str, str], owner_creates_databases: bool) -> None:
    unfinished = cluster.data.with_name("pg.init")
    shutil.rmtree(unfinished, ignore_errors=True)
    try:
        _initdb(cluster, unfinished, secrets["superuser"])
        _single(cluster, unfinished, _statements(cluster, secrets, owner_creates_databases), **_CARELESS)
        if cluster.fsync:
            _settle_on_disk(cluster, unfinished)
        unfinished.rename(cluster.data)
        sync_folder(cluster.data.parent)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise


def _initdb(cluster: Cluster, target: Path, password: str) -> None:
    words = [
        "--username",
        SUPERUSER,
        "--encoding",
        "UTF8",
        "--locale-provider",
        "builtin",
        "--builtin-locale",
        "C.UTF-8",
    ]
    words += ["--locale", "C", "--auth-local", "scram-sha-256", "--auth-host", "scram-sha-256", "--no-instructions"]
    words += ["--no-sync"]  # `_settle_on_disk` does it once for everything
    with _password_file(cluster, password) as pwfile:
        argv: list[str | Path] = [cluster.binaries.postgres / "initdb", "--pgdata", target, *words, "--pwfile", pwfile]
        status = processes.run(
            argv=argv, log=cluster.log, cwd=target.parent, env=_environment(), account=cluster.account
        )
    if status != 0:
        raise failure(what=f"PostgreSQL's initdb failed (exit {status})", log=cluster.log, place=target.parent)


def _settle_on_disk(cluster: Cluster, data: Path) -> None:
    """Make the new cluster survive a power cut, in one pass instead of at every step: 4 s less at a first start."""
    method = ["--sync-method", "syncfs"] if processes.LINUX else []
    argv: list[str | Path] = [cluster.binaries.postgres / "initdb", "--sync-only", *method, "--pgdata", data]
    status = processes.run(argv=argv, log=cluster.log, cwd=data, env=_environment(), account=cluster.account)
    if status != 0:
        raise failure(what=f"PostgreSQL's new data could not be synced (exit {status})", log=cluster.log, place=data)


@contextlib.contextmanager
def _password_file(cluster: Cluster, password: str) -> Iterator[Path]:
    """initdb reads the password after the change of account, which denies it /dev/stdin: a file of that account it
    is.
    """
    path = cluster.data.with_name("pw")
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.write(descriptor, f"{password}\n".encode())
        if cluster.account is not None:
            os.fchown(descriptor, cluster.account.uid, cluster.account.gid)
        yield path
    finally:
        os.close(descriptor)
        path.unlink(missing_ok=True)


def _statements(cluster: Cluster, secrets: dict[str, str], owner_creates_databases: bool) -> list[str]:
    """Roles, the extensions in template1 (vector may be created by a superuser only), and the database, which
    inherits them.
    """
    extra = "CREATEDB" if owner_creates_databases else "NOCREATEDB"
    return [
        f"CREATE ROLE {OWNER} LOGIN NOSUPERUSER NOCREATEROLE {extra}",
        f"CREATE ROLE {APP} LOGIN NOSUPERUSER NOCREATEROLE NOCREATEDB",
        *(_password(role, secrets[key]) for role, key in _ROLES.items()),
        *(f"CREATE EXTENSION {name}" for name in available(cluster.binaries)),
        f"CREATE DATABASE {DATABASE} OWNER {OWNER}",
    ]


def _password(role: str, password: str) -> str:
    """Our passwords are url-safe base64: no quote can occur in one."""
    return f"ALTER ROLE {role} PASSWORD '{password}'"


def _single(cluster: Cluster, data: Path, statements: list[str], **more: str) -> None:
    """Run statements in single-user mode: as superuser, without a server that others could connect to."""
    program = cluster.binaries.postgres / "postgres"
    argv: list[str | Path] = [
        program,
        "--single",
        "-j",
        "-D",
        data,
        *_options(cluster, exit_on_error="on", **more),
        "template1",
    ]
    text = "".join(f"{statement};\n\n" for statement in statements)
    run = processes.run(argv=argv, log=cluster.log, cwd=data, env=_environment(), account=cluster.account, text=text)
    if run != 0:
        raise failure(what=f"PostgreSQL could not set up its roles (exit {run})", log=cluster.log, place=data)


def _buffers() -> str:
    """A sixteenth of the machine's memory for pages in use, between PostgreSQL's own 128 MB and 1 GB."""
    megabytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") >> 20
    return f"{min(max(megabytes // 16, 128), 1024)}MB"


def _options(cluster: Cluster, **more: str) -> list[str]:
    settings = {
        **_SETTINGS,
        "shared_buffers": _buffers(),
        **({} if cluster.fsync else _CARELESS),
        "unix_socket_directories": str(cluster.sockets),
        **more,
    }
    return [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]


def _environment() -> dict[str, str]:
    """No PG* variable of the caller's (PGDATA, PGOPTIONS, PGHOST) may steer our server; messages in English, we read
    them.
    """
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "TMPDIR", "LD_LIBRARY_PATH", "HOME")}
    return {**kept, "LC_ALL": "C", "TZ": "UTC"}


def start(*, cluster: Cluster) -> processes.Child:
    """Start the server in the foreground as our child. SIGINT is its fast stop: no waiting for clients, a clean
    checkpoint.
    """
    return processes.start(
        name="postgres",
        argv=[cluster.binaries.postgres / "postgres", "-D", cluster.data, *_options(cluster)],
        log=cluster.log,
        cwd=cluster.data,
        env=_environment(),
        account=cluster.account,
        stop_signal=signal.SIGINT,
        grace=60.0,
    )


def await_ready(
    *, cluster: Cluster, child: processes.Child, interrupted: Callable[[], None], seconds: float = READY_SECONDS
) -> None:
    """Wait until the server itself has written "ready" into its pid file, as pg_ctl does. Raises EmbeddedError."""
    deadline = time.monotonic() + seconds
    while not _is_ready(cluster, child):
        interrupted()
        if (status := child.ended()) is not None:
            raise failure(what=f"PostgreSQL ended while starting (exit {status})", log=cluster.log, place=cluster.data)
        if time.monotonic() > deadline:
            raise failure(what=f"PostgreSQL was not ready within {seconds:.0f} s", log=cluster.log, place=cluster.data)
        time.sleep(0.01)


def _is_ready(cluster: Cluster, child: processes.Child) -> bool:
    try:
        lines = (cluster.data / "postmaster.pid").read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return False
    return len(lines) >= 8 and lines[0] == str(child.pid) and lines[7].strip() == "ready"


def url(*, role: str, cluster: Cluster, secrets: dict[str, str]) -> str:
    """The address of the database for one of the three roles."""
    return socket_url(user=role, password=secrets[_ROLES[role]], folder=str(cluster.sockets), database=DATABASE)

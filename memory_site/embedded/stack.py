"""The two servers together, started for a data folder or thrown away after a test run.

DATABASE_URL and REDIS_URL in the environment stand for servers of the user's own: for each that is set, the embedded
one is not started.
"""

import contextlib
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from memory_site.embedded import accounts, binaries, folder, postgres, processes, valkey
from memory_site.embedded.errors import EmbeddedError, explain
from memory_site.embedded.folder import DataFolder, Place

EPHEMERAL_PREFIX = "plm-test-"
_SWEEP_AFTER = 60.0  # seconds: younger folders may not have taken their lock yet


@dataclass(frozen=True)
class Urls:
    """Addresses of a running stack. `superuser_url` is None when DATABASE_URL names a server of the user's own.

    Addresses that may hold a password are left out of its repr, which ends up in logs.
    """

    database_url: str = field(repr=False)  # the application's role
    migrate_database_url: str = field(repr=False)  # the owner's role: migrations
    redis_url: str = field(repr=False)  # redis+socket:///path?virtual_host=0, as Celery reads it
    superuser_url: str | None = field(default=None, repr=False)
    web_url: str | None = None


@dataclass
class Servers:
    """PostgreSQL and Valkey of one place, as children of this process."""

    place: Place
    runtime: Path
    urls: Urls
    children: list[processes.Child] = field(default_factory=list)

    def stop(self) -> None:
        """Valkey first: PostgreSQL is the last to hear of anything."""
        for child in reversed(self.children):
            processes.stop(child=child)
        folder.remove_runtime(self.runtime)


@dataclass(frozen=True)
class Wishes:
    """How servers are started. `interrupted` is called while waiting and may raise; `announce` is told the sockets'
    folder before anything runs in it, so that it can be recorded and removed after a crash."""

    environ: Mapping[str, str]
    fsync: bool = True
    owner_creates_databases: bool = False
    interrupted: Callable[[], None] = lambda: None
    announce: Callable[[Path], None] = lambda _runtime: None


def overlay(*, urls: Urls, environ: Mapping[str, str]) -> Urls:
    """The addresses with those of the user's own servers in their place."""
    database_url, redis_url = environ.get("DATABASE_URL"), environ.get("REDIS_URL")
    if database_url:
        owner_url = environ.get("MIGRATE_DATABASE_URL") or database_url
        urls = replace(urls, database_url=database_url, migrate_database_url=owner_url, superuser_url=None)
    return replace(urls, redis_url=redis_url) if redis_url else urls


def nothing_to_start(*, environ: Mapping[str, str]) -> bool:
    """Whether the user has servers of their own for both."""
    return bool(environ.get("DATABASE_URL") and environ.get("REDIS_URL"))


def starting(*, environ: Mapping[str, str]) -> str:
    """What a start says first: which servers are started, and that the user's own are used for the rest."""
    ours = [name for name, own in (("PostgreSQL", "DATABASE_URL"), ("Valkey", "REDIS_URL")) if not environ.get(own)]
    return f"Starting {' and '.join(ours)} ..." if ours else "Using the servers of DATABASE_URL and REDIS_URL ..."


def start_servers(*, data: DataFolder, wishes: Wishes) -> Servers:
    """Start what the environment does not name and wait until it is ready; the caller holds `data.lock`.

    Raises EmbeddedError, with nothing left running.
    """
    try:
        place = folder.settle(data)
        servers = Servers(place=place, runtime=folder.make_runtime(account=place.account), urls=Urls("", "", ""))
    except OSError as error:
        raise explain(error=error, place=data.path) from error
    try:
        wishes.announce(servers.runtime)
        waits = [] if wishes.environ.get("DATABASE_URL") else [_start_postgres(data, servers, wishes)]
        waits += [] if wishes.environ.get("REDIS_URL") else [_start_valkey(data, servers, wishes)]
        for wait in waits:
            wait()
    except BaseException as error:
        servers.stop()
        if isinstance(error, OSError):
            raise explain(error=error, place=place.path) from error
        raise
    servers.urls = overlay(urls=servers.urls, environ=wishes.environ)
    return servers


def fresh_log(data: DataFolder, name: str) -> Path:
    """An empty log; the one of the start before is kept beside it."""
    log = data.logs / f"{name}.log"
    if log.exists():
        log.replace(log.with_suffix(".log.1"))
    log.touch(mode=0o600)
    return log


def _start_postgres(data: DataFolder, servers: Servers, wishes: Wishes) -> Callable[[], None]:
    place = servers.place
    postgres.check_version(place.postgres)
    programs = binaries.provide(
        source=binaries.POSTGRES, account=place.account, copies=place.binaries, cache=data.verified
    )
    secrets, are_new = folder.passwords(data)
    cluster = postgres.Cluster(
        data=place.postgres,
        sockets=servers.runtime,
        binaries=programs,
        account=place.account,
        log=fresh_log(data, "postgres"),
        fsync=wishes.fsync,
    )
    postgres.ensure(
        cluster=cluster,
        secrets=secrets,
        secrets_are_new=are_new,
        owner_creates_databases=wishes.owner_creates_databases,
    )
    child = postgres.start(cluster=cluster)
    servers.children.append(child)
    servers.urls = replace(
        servers.urls,
        database_url=postgres.url(role=postgres.APP, cluster=cluster, secrets=secrets),
        migrate_database_url=postgres.url(role=postgres.OWNER, cluster=cluster, secrets=secrets),
        superuser_url=postgres.url(role=postgres.SUPERUSER, cluster=cluster, secrets=secrets),
    )
    return lambda: postgres.await_ready(cluster=cluster, child=child, interrupted=wishes.interrupted)


def _start_valkey(data: DataFolder, servers: Servers, wishes: Wishes) -> Callable[[], None]:
    place = servers.place
    broker = valkey.Broker(
        data=place.valkey,
        socket=servers.runtime / "valkey.sock",
        binaries=binaries.provide(
            source=binaries.VALKEY, account=place.account, copies=place.binaries, cache=data.verified
        ),
        account=place.account,
        log=fresh_log(data, "valkey"),
        fsync=wishes.fsync,
    )
    child = valkey.start(broker=broker)
    servers.children.append(child)
    servers.urls = replace(servers.urls, redis_url=valkey.url(broker=broker))
    return lambda: valkey.await_ready(broker=broker, child=child, interrupted=wishes.interrupted)


@contextlib.contextmanager
def ephemeral(fsync: bool = False) -> Iterator[Urls]:
    """A stack of its own in a temporary folder, removed afterwards; the owner's role may create databases. For test
    suites.

    The servers are children of the calling process and end when the calling thread does, however it ends: call it from
    the main thread. With `fsync` the servers keep their promises on a power cut, for tests of durability. Raises
    EmbeddedError.
    """
    environ = dict(os.environ)
    if nothing_to_start(environ=environ):
        yield overlay(urls=Urls("", "", ""), environ=environ)
        return
    sweep()
    base = folder.make_short(prefix=EPHEMERAL_PREFIX, account=accounts.for_servers(place=Path("/nonexistent")))
    if os.geteuid() == 0:
        base.chmod(0o711)
    data = DataFolder(path=base)
    lock = folder.try_lock(data.lock)
    if lock is None:
        raise EmbeddedError(f"Another process has taken {base}: start again.")
    try:
        folder.make(data)
        wishes = Wishes(
            environ=environ,
            fsync=fsync,
            owner_creates_databases=True,
            announce=lambda runtime: folder.write_record(
                path=data.state, record={"runtime": str(runtime)}, durable=False
            ),
        )
        servers = start_servers(data=data, wishes=wishes)
        try:
            yield servers.urls
        finally:
            servers.stop()
    finally:
        shutil.rmtree(base, ignore_errors=True)
        os.close(lock)


def sweep() -> None:
    """Remove what killed test runs left: ephemeral folders of ours whose lock nobody holds."""
    for base in folder.short_bases():
        for path in base.glob(f"{EPHEMERAL_PREFIX}*"):
            with contextlib.suppress(OSError):
                if path.stat().st_uid == os.geteuid() and time.time() - path.stat().st_mtime > _SWEEP_AFTER:
                    _remove_abandoned(DataFolder(path=path))


def _remove_abandoned(data: DataFolder) -> None:
    if not data.lock.exists() or folder.is_held(data.lock):
        return
    runtime = folder.read_record(data.state).get("runtime")
    if runtime:
        folder.remove_runtime(Path(runtime))
    shutil.rmtree(data.path, ignore_errors=True)

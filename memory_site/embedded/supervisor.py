"""The whole stack under one process: PostgreSQL, Valkey, migrations, worker, beat and web; started and stopped in
order.

A child that ends by itself ends the run, with its name, its log and a non-zero exit. Ctrl-C (or SIGTERM, or a closed
terminal) stops everything once, in order; a second one shortens the patience with the web, beat and the worker, never
with the two servers.
"""

import contextlib
import errno
import http.client
import os
import secrets
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import FrameType

from memory_site.embedded import folder, postgres, processes, state
from memory_site.embedded.errors import AlreadyRunning, EmbeddedError, Interrupted, explain, failure
from memory_site.embedded.folder import PROJECT, DataFolder
from memory_site.embedded.processes import Child
from memory_site.embedded.stack import Servers, Urls, Wishes, fresh_log, start_servers, starting

HOST = "127.0.0.1"
FIRST_PORT = 8000
INTERRUPTED = 130  # the exit status of a run stopped before it was ready; one stopped later ends with 0
_PORTS = 100
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_BORROWERS_PATIENCE = 30.0
_WEB_SECONDS = 60.0
_QUIET_SECONDS = 30.0  # a worker or beat that lives this long without a word is taken as ready
_READY_WORDS = {"worker": b" ready.", "beat": b"beat: Starting"}


@dataclass(frozen=True)
class Programs:
    """The project's own processes, as command lines; the web is given its listening socket's descriptor as its last
    word.
    """

    manage: Sequence[str]
    worker: Sequence[str]
    beat: Sequence[str]
    web: Sequence[str]


def real_programs() -> Programs:
    """manage.py, Celery and gunicorn of this Python."""
    celery = (sys.executable, "-m", "celery", "-A", "memory_site")
    scheduler = ("--scheduler", "django_celery_beat.schedulers:DatabaseScheduler")
    gunicorn = (sys.executable, "-m", "gunicorn", "memory_site.wsgi", "--no-control-socket", "--graceful-timeout", "5")
    return Programs(
        manage=(sys.executable, str(PROJECT / "manage.py")),
        worker=(*celery, "worker", "-c", "2", "--loglevel", "INFO", "--without-gossip", "--without-mingle"),
        # Without a pid file no stale one can block a start.
        beat=(*celery, "beat", "--loglevel", "INFO", "--pidfile=", *scheduler),
        web=(*gunicorn, "--worker-class", "gthread", "--workers", "1", "--threads", "8", "--bind"),
    )


@dataclass(frozen=True)
class Order:
    """What to run: `port` None takes 8000 or the next free one; `prepare` are manage.py's words, run after migrate."""

    data: DataFolder
    environ: Mapping[str, str]
    port: int | None = None
    prepare: Sequence[Sequence[str]] = ()
    say: Callable[[str], None] = print
    programs: Programs = field(default_factory=real_programs)


@dataclass
class Supervisor:
    """One run. `run` blocks until it is over and returns the exit status; EmbeddedError when it could not start."""

    order: Order
    mark: str = field(default_factory=lambda: secrets.token_hex(8))
    received: list[int] = field(default_factory=list)
    children: list[Child] = field(default_factory=list)
    servers: Servers | None = None

    def run(self) -> int:
        data = self.order.data
        postgres.check_version(folder.cluster_of(data))
        folder.make(data)
        try:
            with self._signals(), self._lock(), _listening(self.order.port) as listener:
                state.recover(data=data)
                self._publish(None)
                return self._start_and_watch(listener)
        except OSError as error:
            raise explain(error=error, place=data.path) from error

    def _start_and_watch(self, listener: socket.socket) -> int:
        try:
            self._start(listener)
            return self._watch()
        except Interrupted:
            return INTERRUPTED
        finally:
            self._stop()

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        before = {number: signal.signal(number, self._receive) for number in _SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _receive(self, number: int, _frame: FrameType | None) -> None:
        self.received.append(number)

    def _check(self) -> None:
        """Called in every wait: a signal that came while something starts ends the run."""
        if self.received:
            raise Interrupted("Stopped before everything was ready.")

    @contextlib.contextmanager
    def _lock(self) -> Iterator[None]:
        lock = self._take_lock()
        try:
            yield
        finally:
            os.close(lock)

    def _take_lock(self) -> int:
        """Own the data folder. Commands that borrow the servers are waited for; another run is not."""
        data, told = self.order.data, False
        deadline = time.monotonic() + _BORROWERS_PATIENCE
        while (lock := folder.take_lock(data.lock, patience=0.3)) is None:
            self._check()
            found = state.holder(data=data)
            if found is not None and found.kind == state.RUN:
                where = f" at {found.urls.web_url}" if found.urls and found.urls.web_url else " and is still starting"
                raise AlreadyRunning(
                    f"It already runs from {data.path}{where} (process {found.pid}): use that, or stop it first."
                )
            if time.monotonic() > deadline:
                raise AlreadyRunning(
                    f"Another command still uses the servers of {data.path}: wait for it to end and start again."
                )
            if found is not None and not told:
                self.order.say("Waiting for a command that uses the servers ...")
                told = True
        return lock

    def _publish(self, urls: Urls | None, runtime: Path | None = None) -> None:
        runtime = runtime or (self.servers.runtime if self.servers else None)
        state.publish(data=self.order.data, kind=state.RUN, mark=self.mark, runtime=runtime, urls=urls)

    def _start(self, listener: socket.socket) -> None:
        data, say = self.order.data, self.order.say
        say(starting(environ=self.order.environ))
        wishes = Wishes(
            environ=self.order.environ, interrupted=self._check, announce=lambda runtime: self._publish(None, runtime)
        )
        self.servers = start_servers(data=data, wishes=wishes)
        urls = replace(self.servers.urls, web_url=f"http://{HOST}:{listener.getsockname()[1]}/")
        with folder.holding(data.migrating):
            self._publish(replace(urls, web_url=None))
            self._manage(["migrate", "--verbosity", "0"], urls, number=0)
        for number, words in enumerate(self.order.prepare, start=1):
            self._manage(words, urls, number=number)
        self._start_python(urls, listener)
        self._publish(urls)
        self._greet(urls)

    def environment(self, urls: Urls, *, owner: bool = False) -> dict[str, str]:
        """What a child of the project sees. Only manage.py's commands at the start get the owner's address."""
        return {
            **{name: value for name, value in self.order.environ.items() if name != "MIGRATE_DATABASE_URL"},
            **environment(data=self.order.data, urls=urls, environ=self.order.environ, owner=owner),
            state.MARK: self.mark,
            "PYTHONUNBUFFERED": "1",
        }

    def _manage(self, words: Sequence[str], urls: Urls, *, number: int) -> None:
        """Run one of manage.py's commands to its end; what it says is shown, and kept in its log."""
        name = words[0]
        self.order.say(f"manage.py {' '.join(words)} ...")
        log = fresh_log(self.order.data, name if number == 0 else f"prepare-{number}")
        child = processes.start(
            name=name,
            argv=[*self.order.programs.manage, *words],
            log=log,
            cwd=PROJECT,
            env=self.environment(urls, owner=True),
        )
        self.children.append(child)
        with log.open(encoding="utf-8", errors="replace") as output:
            while (status := child.ended()) is None:
                self._check()
                self._complain_of_the_dead(but=child)
                self._show(output.read())
                time.sleep(0.05)
            if status == 0:
                self._show(output.read())
        self.children.remove(child)
        if status != 0:
            raise failure(
                what=f"manage.py {' '.join(words)} failed (exit {status})", log=log, place=self.order.data.path
            )

    def _show(self, text: str) -> None:
        if text.strip():
            self.order.say(text.rstrip("\n"))

    def _start_python(self, urls: Urls, listener: socket.socket) -> None:
        """Worker, beat, web, at once; then wait for all three."""
        programs, descriptor = self.order.programs, listener.fileno()
        env = self.environment(urls)
        self._start_worker({**env, "REMAP_SIGTERM": "SIGQUIT"})
        self._start_child("beat", programs.beat, env, grace=5.0)
        web = (*programs.web, f"fd://{descriptor}")
        self._start_child("web", web, env, grace=8.0, pass_fds=[descriptor])
        port = listener.getsockname()[1]
        self._await("web", lambda _log: _answers(port), _WEB_SECONDS, strict=True)
        for name, words in _READY_WORDS.items():
            self._await(name, partial(_says, words), _QUIET_SECONDS, strict=False)

    def _start_worker(self, env: dict[str, str]) -> None:
        """Under REMAP_SIGTERM the worker hands unfinished messages back before it goes; its own patience is 10 s.

        When we are killed the broker goes too, and a worker asked politely would wait for it for ever: it is killed,
        and its pool with it. What it had in hand is delivered again; tasks expect that.
        """
        self._start_child("worker", self.order.programs.worker, env, grace=20.0, death_signal=signal.SIGKILL)

    def _start_child(
        self,
        name: str,
        argv: Sequence[str],
        env: dict[str, str],
        *,
        grace: float,
        death_signal: signal.Signals | None = None,
        pass_fds: Sequence[int] = (),
    ) -> None:
        child = processes.start(
            name=name,
            argv=argv,
            log=fresh_log(self.order.data, name),
            cwd=PROJECT,
            env=env,
            grace=grace,
            death_signal=death_signal,
            pass_fds=pass_fds,
        )
        self.children.append(child)

    def _await(self, name: str, ready: Callable[[Path], bool], seconds: float, *, strict: bool) -> None:
        child = next(child for child in self.children if child.name == name)
        deadline = time.monotonic() + seconds
        while not ready(child.log):
            self._check()
            self._complain_of_the_dead()
            if time.monotonic() > deadline:
                if strict:
                    raise failure(
                        what=f"The {name} was not ready within {seconds:.0f} s",
                        log=child.log,
                        place=self.order.data.path,
                    )
                self.order.say(f"The {name} has not said that it is ready; see {child.log}.")
                return
            time.sleep(0.05)

    def _all(self) -> list[Child]:
        return [*(self.servers.children if self.servers else ()), *self.children]

    def _complain_of_the_dead(self, *, but: Child | None = None) -> None:
        for child in self._all():
            if child is not but and (status := child.ended()) is not None:
                what = f"{child.name} ended by itself ({_manner(status)}), so the rest was stopped"
                raise failure(what=what, log=child.log, place=self.order.data.path)

    def _greet(self, urls: Urls) -> None:
        self.order.say(f"\nReady: {urls.web_url}")
        with contextlib.suppress(FileNotFoundError):
            self._show((self.order.data.path / "logins.txt").read_text(encoding="utf-8"))
        self.order.say(f"Logs: {self.order.data.logs}\nStop with Ctrl-C.")

    def _watch(self) -> int:
        while not self.received:
            self._complain_of_the_dead()
            time.sleep(0.1)
        return 0

    def _hurried(self) -> bool:
        """A second Ctrl-C, or a server that is gone: there is nothing left to be patient for."""
        servers = self.servers.children if self.servers else ()
        return len(self.received) > 1 or any(server.ended() is not None for server in servers)

    def _stop(self) -> None:
        """Web, beat, worker, Valkey, PostgreSQL: nobody loses the server of its last write."""
        if self.children:
            self.order.say("Stopping ...")
        for child in reversed(self.children):
            processes.stop(child=child, hurried=self._hurried)
        if self.servers is not None:
            self.servers.stop()
        with contextlib.suppress(OSError):
            self.order.data.state.unlink(missing_ok=True)


def environment(*, data: DataFolder, urls: Urls, environ: Mapping[str, str], owner: bool) -> dict[str, str]:
    """The project's settings for a running stack, as environment variables."""
    settings = {"DATABASE_URL": urls.database_url, "REDIS_URL": urls.redis_url, "PALIMPSEST_HOME": str(data.path)}
    if owner:
        settings["MIGRATE_DATABASE_URL"] = urls.migrate_database_url
    if not environ.get("SECRET_KEY"):
        settings["SECRET_KEY"] = folder.passwords(data)[0]["secret_key"]
    return settings


def _manner(status: int) -> str:
    return f"exit {status}" if status >= 0 else f"killed by {signal.Signals(-status).name}"


@contextlib.contextmanager
def _listening(port: int | None) -> Iterator[socket.socket]:
    """The web's socket, listening from the start: nobody can take the port between the choice and the web's start."""
    ports = [port] if port is not None else range(FIRST_PORT, FIRST_PORT + _PORTS)
    listener = next(filter(None, map(_listen, ports)), None)
    if listener is None:
        which = f"Port {port} is" if port is not None else f"The ports {FIRST_PORT} to {FIRST_PORT + _PORTS - 1} are"
        raise EmbeddedError(f"{which} in use: choose another with --port.")
    with listener:
        yield listener


def _listen(port: int) -> socket.socket | None:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((HOST, port))
        listener.listen(128)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            return None
        raise EmbeddedError(f"Port {port} cannot be used ({error.strerror}): choose another with --port.") from error
    return listener


def _says(words: bytes, log: Path) -> bool:
    return words in log.read_bytes()


def _answers(port: int) -> bool:
    """Whether the web answers at all; an unhealthy answer (503) is an answer, an error (500) is not."""
    connection = http.client.HTTPConnection(HOST, port, timeout=5)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status in (*range(200, 500), 503)
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()

"""Child processes that never outlive their parent, and the question who is still alive.

Every child gets a session of its own, so a Ctrl-C in the terminal reaches only the parent, which stops the children in
order. On Linux each child also asks the kernel for a signal when its parent dies (PR_SET_PDEATHSIG), after the change
of account, which would clear it. The kernel watches the thread that started the child: start children from a thread
that lives as long as they should.
"""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from memory_site.embedded.accounts import Account
from memory_site.embedded.errors import EmbeddedError

LINUX = sys.platform == "linux"
_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True) if LINUX else None
_PROC = Path("/proc")
HURRIED_SECONDS = 2.0


@dataclass(frozen=True)
class Child:
    """A started process. `stop_signal` asks it to end; `grace` is how many seconds it then has."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path
    stop_signal: signal.Signals
    grace: float

    @property
    def pid(self) -> int:
        return self.process.pid

    def ended(self) -> int | None:
        """The exit status (negative for a signal), or None while it runs."""
        return self.process.poll()


def start(
    *,
    name: str,
    argv: Sequence[str | Path],
    log: Path,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    account: Account | None = None,
    stop_signal: signal.Signals = signal.SIGTERM,
    death_signal: signal.Signals | None = None,
    grace: float = 10.0,
    pass_fds: Sequence[int] = (),
) -> Child:
    """Start a child with its output appended to `log`. Raises EmbeddedError when it cannot be started at all.

    `death_signal` is what it gets when its parent dies; None for the same as `stop_signal`.
    """
    with log.open("ab") as output:
        process = _popen(argv, output, cwd, env, account, death_signal or stop_signal, pass_fds)
    return Child(name=name, process=process, log=log, stop_signal=stop_signal, grace=grace)


def run(
    *,
    argv: Sequence[str | Path],
    log: Path,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    account: Account | None = None,
    text: str = "",
) -> int:
    """Run a short command to its end with `text` on its standard input; returns the exit status."""
    with log.open("ab") as output:
        process = _popen(argv, output, cwd, env, account, signal.SIGKILL, (), stdin=subprocess.PIPE)
        process.communicate(text.encode())
    return process.returncode


def _popen(
    argv: Sequence[str | Path],
    output: IO[bytes],
    cwd: Path,
    env: Mapping[str, str] | None,
    account: Account | None,
    death_signal: signal.Signals,
    pass_fds: Sequence[int],
    stdin: int = subprocess.DEVNULL,
) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(  # noqa: S603 - verified programs and our own Python
            [str(part) for part in argv],
            stdin=stdin,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=cwd,
            env=env,
            user=account.uid if account else None,
            group=account.gid if account else None,
            extra_groups=[] if account else None,
            umask=0o077,
            start_new_session=True,
            pass_fds=pass_fds,
            preexec_fn=_die_with(parent=os.getpid(), death_signal=death_signal),  # one system call, nothing that locks
        )
    except (OSError, subprocess.SubprocessError) as error:
        who = f" as the account {account.name}" if account else ""
        raise EmbeddedError(f"{argv[0]} cannot be started{who}: {error}.") from error


def _die_with(*, parent: int, death_signal: signal.Signals) -> Callable[[], None] | None:
    if _LIBC is None:
        return None
    prctl = _LIBC.prctl

    def ask_kernel() -> None:
        prctl(_PR_SET_PDEATHSIG, int(death_signal), 0, 0, 0)
        if os.getppid() != parent:  # the parent died between fork and prctl: nobody would send the signal
            os._exit(1)

    return ask_kernel


def stop(*, child: Child, hurried: Callable[[], bool] = lambda: False) -> int:
    """Ask the child to end, kill it after its grace, and sweep what is left of its session; returns the exit status.

    Once `hurried` says so, the grace is at most HURRIED_SECONDS from then on.
    """
    if child.ended() is None:
        with contextlib.suppress(ProcessLookupError):
            child.process.send_signal(child.stop_signal)
        if not _ended_in_time(child, hurried):
            child.process.kill()
    status = child.process.wait()
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    return status


def _ended_in_time(child: Child, hurried: Callable[[], bool]) -> bool:
    deadline, in_a_hurry = time.monotonic() + child.grace, False
    while child.ended() is None:
        if not in_a_hurry and hurried():
            deadline, in_a_hurry = min(deadline, time.monotonic() + HURRIED_SECONDS), True
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def birth(*, pid: int) -> str | None:
    """A mark that tells this process from a later one with the same number; None when it is gone or a zombie."""
    if not LINUX:
        line = _output("/bin/ps", "-o", "stat=,lstart=", "-p", str(pid)).strip()
        return line.split(None, 1)[1] if line and not line.startswith("Z") else None
    try:
        fields = (_PROC / str(pid) / "stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if fields[0] in (b"Z", b"X") else fields[19].decode()


def _output(*argv: str) -> str:
    return subprocess.run(argv, capture_output=True, text=True, check=False).stdout  # noqa: S603 - fixed programs


def working_in(*, folder: Path, program: str) -> list[int]:
    """Live processes whose working folder is `folder`: both servers change into their data and stay there.

    This, not the number in a pid file, says whether a server is still at work: numbers are used again after a reboot,
    name zombies under a PID 1 that does not reap, and may be cut short. Without /proc (macOS) processes are found by
    their command line.
    """
    if not LINUX:
        listed = _output("/bin/ps", "-Awwo", "pid=,command=").splitlines()
        return [int(line.split()[0]) for line in listed if program in line and str(folder) in line]
    found = []
    for entry in _PROC.iterdir():
        with contextlib.suppress(OSError):
            here = entry.name.isdigit() and (entry / "cwd").readlink() == folder
            if here and program in (entry / "exe").readlink().name:
                found.append(int(entry.name))
    return found


def await_departure(*, folder: Path, program: str, stop_signal: signal.Signals, patience: float = 5.0) -> None:
    """Wait until nothing of `program` works in `folder`: first patiently, then asking, then by force.

    After a kill -9 of the supervisor a server is for a moment still writing its last checkpoint. The caller holds the
    folder's lock.
    """
    for sent in (None, stop_signal, signal.SIGKILL):
        if sent is not None:
            for pid in working_in(folder=folder, program=program):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, sent)
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline:
            if not working_in(folder=folder, program=program):
                return
            time.sleep(0.05)
    raise EmbeddedError(
        f"An old {program} still works in {folder} and cannot be stopped: stop it by hand and start again."
    )


def marked(*, mark: str) -> list[int]:
    """Live processes with `mark` in their environment: a child and whatever it has forked. Empty without /proc."""
    found = []
    for entry in _PROC.glob("[0-9]*") if LINUX else ():
        with contextlib.suppress(OSError):
            if mark.encode() in (entry / "environ").read_bytes() and birth(pid=int(entry.name)) is not None:
                found.append(int(entry.name))
    return found

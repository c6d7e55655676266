"""The data folder: what lies where, and the three locks that keep processes apart.

    lock            held (exclusively) by the one process that owns the servers: `run`, or the keeper behind `borrow`
    borrowers       held (shared) by every borrower; the keeper stops when it can have it for itself
    migrating       held while somebody migrates the database
    state.json      what the owner of `lock` runs now: addresses (0600)
    secrets.json    the passwords of the database's roles and the web's secret key (0600)
    logs/           one log per child
    place           the folder with the servers' data: this folder, or where it had to move (see `settle`)
    <place>/servers/pg, <place>/servers/valkey, <place>/binaries

Every lock is an flock: the kernel lets go of it when its holder dies, however it dies, so no lock is ever stale.
"""

import contextlib
import fcntl
import json
import os
import re
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from memory_site.embedded import accounts
from memory_site.embedded.accounts import Account
from memory_site.embedded.errors import EmbeddedError, explain

PROJECT = Path(__file__).resolve().parent.parent.parent
MARKER = "lock"
_NEIGHBOURS = ("static",)  # collectstatic's folder may be here before we are
RUNTIME_PREFIX = "plm-"
_SOCKET_LIMIT = 100  # sun_path holds 104 bytes on macOS, 108 on Linux
_LONGEST_SOCKET = len("/plm-12345678/.s.PGSQL.5432.lock")
_PLAIN_PATH = re.compile(r"[A-Za-z0-9/._-]+")  # so that no server, URL or shell needs quoting for a socket
_HOMES = ("/var/lib", "/var/tmp")  # noqa: S108 - a fresh private folder is made inside


@dataclass(frozen=True)
class DataFolder:
    """Names of things below one data folder; `path` is resolved."""

    path: Path

    @property
    def lock(self) -> Path:
        return self.path / MARKER

    @property
    def borrowers(self) -> Path:
        return self.path / "borrowers"

    @property
    def migrating(self) -> Path:
        return self.path / "migrating"

    @property
    def state(self) -> Path:
        return self.path / "state.json"

    @property
    def secrets(self) -> Path:
        return self.path / "secrets.json"

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    @property
    def verified(self) -> Path:
        return self.path / "verified.json"

    @property
    def moved(self) -> Path:
        return self.path / "place"


@dataclass(frozen=True)
class Place:
    """Where the servers' data is, and the account that owns it (None: the calling account)."""

    path: Path
    account: Account | None

    @property
    def servers(self) -> Path:
        return self.path / "servers"

    @property
    def postgres(self) -> Path:
        return self.servers / "pg"

    @property
    def valkey(self) -> Path:
        return self.servers / "valkey"

    @property
    def binaries(self) -> Path:
        return self.path / "binaries"


def default_path() -> Path:
    """.palimpsest/ beside manage.py, or PALIMPSEST_HOME."""
    return Path(os.environ.get("PALIMPSEST_HOME") or PROJECT / ".palimpsest")


def find(path: Path | None) -> DataFolder:
    """Name the data folder without touching it."""
    return DataFolder(path=(path or default_path()).expanduser().resolve())


def make(folder: DataFolder) -> None:
    """Create the data folder when it is missing. A folder that is there keeps its permissions; one with other things
    in it is refused.
    """
    path = folder.path
    try:
        if (
            path.is_dir()
            and not folder.lock.exists()
            and any(entry.name not in _NEIGHBOURS for entry in path.iterdir())
        ):
            raise EmbeddedError(
                f"{path} holds other files and is not a data folder: "
                "choose an empty or a new one with --data-dir or PALIMPSEST_HOME."
            )
        if not path.is_dir():
            path.mkdir(parents=True, mode=0o700)
            if os.geteuid() == 0:
                path.chmod(0o711)  # our own: the servers' account must pass through it to its own folder inside
        folder.lock.touch(mode=0o600)
        folder.logs.mkdir(exist_ok=True, mode=0o700)
    except OSError as error:
        raise explain(error=error, place=path) from error


def settle(folder: DataFolder) -> Place:
    """Find or choose where the servers' data lives, make it, and say which account owns it. The caller holds `lock`.

    Started by root, the servers run as another account. When that account cannot pass through the folders above the
    data folder (a checkout in root's private home), the data goes to a folder of its own under /var/lib, else
    /var/tmp, and the data folder remembers where. Opening somebody's home would be the alternative.
    """
    recorded = _recorded(folder)
    if recorded is not None:
        place = Place(path=recorded, account=accounts.for_servers(place=recorded / "servers"))
    else:
        account = accounts.for_servers(place=folder.path / "servers")
        at_home = accounts.traversable(path=folder.path, account=account)
        place = Place(path=folder.path if at_home else _move_out(folder, account), account=account)
    if place.account is None:
        accounts.require_name()
    place.binaries.mkdir(exist_ok=True, mode=0o755)
    for own in (place.servers, place.valkey):
        if not own.is_dir():
            own.mkdir(mode=0o700)
            if place.account is not None:
                os.chown(own, place.account.uid, place.account.gid)
    return place


def cluster_of(folder: DataFolder) -> Path:
    """Where the cluster is or would be, without touching anything."""
    recorded = _recorded(folder)
    return Place(path=recorded or folder.path, account=None).postgres


def _recorded(folder: DataFolder) -> Path | None:
    if not folder.moved.exists():
        return None
    path = Path(folder.moved.read_text(encoding="utf-8").strip())
    if not path.is_dir():
        raise EmbeddedError(
            f"The servers' data of {folder.path} was kept in {path}, which is gone: "
            f"bring it back, or delete {folder.path} to start with an empty store."
        )
    return path


def _move_out(folder: DataFolder, account: Account | None) -> Path:
    for home in (Path(name).resolve() for name in _HOMES):
        if os.access(home, os.W_OK) and accounts.traversable(path=home, account=account):
            path = Path(tempfile.mkdtemp(prefix="palimpsest-", dir=home))
            path.chmod(0o711)
            write_private(path=folder.moved, text=f"{path}\n")
            return path
    raise EmbeddedError(
        f"The account {account.name if account else ''} the servers run as cannot reach {folder.path}: "
        "choose a folder it can reach with --data-dir or PALIMPSEST_HOME, or start as an ordinary user."
    )


def make_runtime(*, account: Account | None) -> Path:
    """A new private folder for the sockets, owned by the servers' account. Its maker removes it."""
    path = make_short(prefix=RUNTIME_PREFIX, account=account)
    if account is not None:
        os.chown(path, account.uid, account.gid)
    return path


def short_bases() -> list[Path]:
    """Folders for temporary things, the preferred one first."""
    names = (tempfile.gettempdir(), "/tmp", "/var/tmp")  # noqa: S108 - fresh private folders are made inside
    return list(dict.fromkeys(Path(name).resolve() for name in names))


def make_short(*, prefix: str, account: Account | None) -> Path:
    """A new private temporary folder with a short plain name, which the account can reach."""
    for base in short_bases():
        short = len(os.fsencode(base)) + _LONGEST_SOCKET <= _SOCKET_LIMIT and _PLAIN_PATH.fullmatch(str(base))
        if short and os.access(base, os.W_OK | os.X_OK) and accounts.traversable(path=base, account=account):
            return Path(tempfile.mkdtemp(prefix=prefix, dir=base))
    raise EmbeddedError(
        "No temporary folder is fit for the servers' sockets: set TMPDIR to a short path that can be written."
    )


def remove_runtime(path: Path) -> None:
    """Remove a runtime folder, one of ours by name; a missing one is fine."""
    if path.name.startswith(RUNTIME_PREFIX):
        shutil.rmtree(path, ignore_errors=True)


def write_private(*, path: Path, text: str, durable: bool = True) -> None:
    """Replace a file in one step, readable by its owner only from its first byte; `durable` outlasts a power cut."""
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as handle:
        handle.write(text)
        if durable:
            handle.flush()
            os.fsync(handle.fileno())
    partial.replace(path)
    if durable:
        sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """Make a rename in this folder survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_record(path: Path) -> dict[str, str]:
    """A JSON object of strings; {} when the file is missing, cut short or something else."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
    return {key: value for key, value in content.items() if isinstance(value, str)} if isinstance(content, dict) else {}


def write_record(*, path: Path, record: dict[str, str], durable: bool = True) -> None:
    """Replace a JSON object of strings, private to its owner."""
    write_private(path=path, text=json.dumps(record, indent=1, sort_keys=True) + "\n", durable=durable)


SECRETS = ("superuser", "owner", "app", "secret_key")


def passwords(folder: DataFolder) -> tuple[dict[str, str], bool]:
    """The secrets, made on first use, and whether any is new, so that an existing cluster must be told."""
    known = read_record(folder.secrets)
    missing = [name for name in SECRETS if not known.get(name)]
    if missing:
        known.update({name: secrets.token_urlsafe(36) for name in missing})
        write_record(path=folder.secrets, record=known)
    return known, bool(missing)


def try_lock(path: Path, *, shared: bool = False) -> int | None:
    """Take an flock without waiting; the open descriptor is the lock, None means somebody else has it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def take_lock(path: Path, *, patience: float) -> int | None:
    """Take an flock for ourselves, trying for `patience` seconds: another's `is_held` has it shared for an instant."""
    deadline = time.monotonic() + patience
    while (descriptor := try_lock(path)) is None:
        if time.monotonic() > deadline:
            return None
        time.sleep(0.02)
    return descriptor


def is_held(path: Path) -> bool:
    """Whether somebody holds the lock for themselves; a missing file is held by nobody."""
    if not path.exists():
        return False
    descriptor = try_lock(path, shared=True)
    if descriptor is None:
        return True
    os.close(descriptor)
    return False


@contextlib.contextmanager
def holding(path: Path) -> Iterator[None]:
    """Hold a lock for ourselves, waiting for it as long as it takes."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)

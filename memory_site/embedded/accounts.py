"""Which account the servers run as, and what that account can reach.

PostgreSQL refuses to run as root. Started by root, both servers drop to an unprivileged account that is there already;
no account is created and no permission outside our own folder is changed: what the account cannot reach is copied to
where it can.
"""

import os
import pwd
import stat
from dataclasses import dataclass
from pathlib import Path

from memory_site.embedded.errors import EmbeddedError

CANDIDATES = ("postgres", "nobody")


@dataclass(frozen=True)
class Account:
    """An unprivileged account the servers are started as; it has no supplementary groups."""

    name: str
    uid: int
    gid: int


def for_servers(*, place: Path) -> Account | None:
    """The account to drop to, or None when this process is not root and the servers run as itself.

    `place` is the servers' folder: when it is there already its owner is kept, because PostgreSQL refuses a folder of
    another account.
    """
    if os.geteuid() != 0:
        return None
    entry = _owner(place) or _first_candidate()
    return Account(name=entry.pw_name, uid=entry.pw_uid, gid=entry.pw_gid)


def _owner(place: Path) -> pwd.struct_passwd | None:
    try:
        uid = place.stat().st_uid
        return pwd.getpwuid(uid) if uid != 0 else None
    except (FileNotFoundError, KeyError):
        return None


def _first_candidate() -> pwd.struct_passwd:
    for name in CANDIDATES:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        if entry.pw_uid != 0:
            return entry
    raise EmbeddedError(
        "PostgreSQL does not run as root and there is no account 'postgres' or 'nobody' to run it as: "
        "start as an ordinary user, or set DATABASE_URL and REDIS_URL."
    )


def require_name() -> None:
    """initdb looks its own account up by number and fails without a word of help when there is none (containers with
    --user).
    """
    try:
        pwd.getpwuid(os.geteuid())
    except KeyError:
        raise EmbeddedError(
            f"PostgreSQL needs an account with a name, and number {os.geteuid()} has none in the list of accounts: "
            "run as a listed account, or set DATABASE_URL and REDIS_URL."
        ) from None


def reachable(*, path: Path, account: Account | None) -> bool:
    """Whether the account may search every folder above `path` and read `path` itself.

    `path` must be resolved. None stands for the calling account, which reaches what it reaches: the answer is True.
    """
    if account is None:
        return True
    own = path.stat()
    wanted = stat.S_IROTH | (stat.S_IXOTH if stat.S_ISDIR(own.st_mode) else 0)
    return _allows(own, account, wanted) and traversable(path=path.parent, account=account)


def traversable(*, path: Path, account: Account | None) -> bool:
    """Whether the account may search `path` and every folder above it."""
    if account is None:
        return True
    return all(_allows(folder.stat(), account, stat.S_IXOTH) for folder in (path, *path.parents))


def _allows(entry: os.stat_result, account: Account, wanted: int) -> bool:
    if entry.st_uid == account.uid:
        wanted <<= 6
    elif entry.st_gid == account.gid:
        wanted <<= 3
    return entry.st_mode & wanted == wanted

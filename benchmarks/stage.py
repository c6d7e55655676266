"""Where benchmarks run: a throwaway PostgreSQL and Valkey, migrated by the owner, used by the application's role."""

from __future__ import annotations

import contextlib
import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

DATA = Path(os.environ.get("PALIMPSEST_DATA") or Path(__file__).resolve().parent.parent.parent / "shared" / "data")


@contextlib.contextmanager
def stage(*, durable: bool = True, embedder: str = "minilm") -> Iterator[None]:
    """Django set up on a fresh store; `durable` keeps fsync on, as production does."""
    from memory_site.embedded import ephemeral

    with ephemeral(fsync=durable) as urls:
        os.environ.update(
            DATABASE_URL=urls.database_url,
            MIGRATE_DATABASE_URL=urls.migrate_database_url,
            REDIS_URL=urls.redis_url,
            PALIMPSEST_EMBEDDER=embedder,
            SECRET_KEY="only-for-benchmarks",
            DJANGO_SETTINGS_MODULE="memory_site.settings",
            LOG_LEVEL="WARNING",
        )
        import django

        django.setup()
        _migrate()
        yield


def _migrate() -> None:
    from django.core.management import call_command
    from django.db import connection

    application = dict(connection.settings_dict)
    call_command("migrate", verbosity=0)
    connection.close()
    connection.settings_dict.update(application)


@dataclass(frozen=True)
class Timing:
    """Seconds of several runs: the first is cold, the rest warm."""

    seconds: tuple[float, ...]

    @property
    def cold(self) -> float:
        """The first run."""
        return self.seconds[0]

    @property
    def warm(self) -> float:
        """The median of the others."""
        return statistics.median(self.seconds[1:] or self.seconds)


def timed(action: Callable[[], object], *, runs: int = 5) -> Timing:
    """Run an action several times."""
    seconds = []
    for _ in range(runs):
        began = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - began)
    return Timing(tuple(seconds))


def table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A Markdown table, as the README shows it."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)

"""How long a search takes in a scope of 4,000 rows, of 20,000 and of 500, in a store of a million observations; and in
one large scope, scanned and by its index.

`python -m benchmarks.search_speed [ROWS] [--report-only]`. Texts and vectors are made up: words drawn as they are in a
language, vectors around 2,000 centres; each session of a scope writes 20 rows, so that no scope's rows lie together.
The peer is pgvector's own SQL without words, filters or fading, on the same rows in the same run. The embedding of a
query is measured apart from it. Ends with 1 when p95 at 4,000 rows is not under 40 ms, or the index finds less than
0.99 of what a scan finds.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.bars import Bar, status, take_option
from benchmarks.stage import stage, table

if TYPE_CHECKING:
    from observations.embedding import Matrix, Profile

Numbers = np.ndarray[Any, np.dtype[np.signedinteger[Any]]]
ROWS = 1_000_000
SESSION = 20  # rows that one scope gets in a row
LARGE = 60_000  # rows of the one large scope
CENTRES, SPREAD = 2_000, 0.7
SIZES = {500: 0.16, 4_000: 0.80, 20_000: 0.04}  # rows of a scope: share of all rows that lie in such scopes
# As data/locomo_observations.jsonl and its probes are, once the words that carry no search are left out: either of two
# names in 0.6 of the rows, the next word in 0.15, the tenth in 0.08; a question's words are in 0.8 of a row's, in sum.
NAMED, WORDS, FLATTER, LONG, SHORT = 0.6, 20_000, 5, 8, 5
ASKED = 200
CHUNK = 10_000
OBSERVATION = (
    "id scope_id external_id text content_hash cleaned subject predicate object text_key subject_key sp_key spo_key"
    " confidence kind stated_by written_by created_at recorded_at chain uses_inherited status version half_life_days"
)
EMBEDDING = "scope_id, observation_id, profile, dimensions, vector, bands, active"


@dataclass(frozen=True)
class Prepared:
    """An embedder that was asked beforehand: the time of a search without that of the embedding."""

    profile: Profile
    vector: Matrix

    def embed(self, _texts: Sequence[str]) -> Matrix:
        """The one vector."""
        return self.vector[None, :]


def scopes(rows: int) -> list[tuple[int, int]]:
    """Number and size of each scope."""
    sizes = [size for size, share in SIZES.items() for _ in range(max(1, int(rows * share / size)))]
    return list(enumerate([*sizes, LARGE], start=1))


def order(rows: int, random: np.random.Generator) -> Numbers:
    """The scope of each row, as their sessions come in."""
    sessions = np.repeat([number for number, _ in scopes(rows)], [size // SESSION for _, size in scopes(rows)])
    return np.repeat(random.permutation(sessions), SESSION)


_OFTEN = np.cumsum(1 / (np.arange(1, WORDS + 1) + FLATTER))


def texts(count: int, random: np.random.Generator, words: int = LONG) -> list[str]:
    """Names, and words as often as they are in dialogue."""
    named = random.random((count, 2)) < NAMED
    ranks = np.searchsorted(_OFTEN, random.random((count, words)) * _OFTEN[-1])
    names = {(one, two): "name1 " * one + "name2 " * two for one in (False, True) for two in (False, True)}
    said = zip(named.tolist(), ranks.tolist(), strict=True)
    return [names[one, two] + " ".join([f"word{rank}" for rank in each]) for (one, two), each in said]


# What is made faster afterwards: indexes that guard nothing, and references.
_INDEXES = """
SELECT format('DROP INDEX %%I', indexname), indexdef FROM pg_indexes WHERE tablename = ANY (%(tables)s)
  AND indexname NOT IN (SELECT conname FROM pg_constraint)
"""
_REFERENCES = """
SELECT format('ALTER TABLE %%s DROP CONSTRAINT %%I', conrelid::regclass, conname),
  format('ALTER TABLE %%s ADD CONSTRAINT %%I %%s', conrelid::regclass, conname, pg_get_constraintdef(oid))
FROM pg_constraint WHERE contype = 'f' AND conrelid::regclass::text = ANY (%(tables)s)
"""
TABLES = ["observations_observation", "observations_embedding"]


def build(rows: int, profile: Profile) -> None:
    """Fill the store by COPY, as its owner."""
    import os

    import psycopg

    random = np.random.default_rng(7)
    with psycopg.connect(os.environ["MIGRATE_DATABASE_URL"], autocommit=True) as owner:
        with owner.cursor().copy("COPY observations_scope (id, name, hold_reason, index_profile) FROM STDIN") as copy:
            for number, size in scopes(rows):
                copy.write_row((number, f"made-up/{size}/{number}", "", ""))
        with bare(owner):
            placed = order(rows, random)
            for first in range(0, len(placed), CHUNK):
                within = placed[first : first + CHUNK]
                _copy(owner, f"observations_observation ({', '.join(OBSERVATION.split())})")(
                    _observations(first + 1, within, random)
                )
                _copy(owner, f"observations_embedding ({EMBEDDING})", "(FORMAT BINARY)")(
                    _embeddings(first + 1, within, random, profile)
                )
        for name in TABLES:
            owner.execute(f"VACUUM ANALYZE {name}")


@contextlib.contextmanager
def bare(owner: Any) -> Iterator[None]:
    """Tables without what slows their filling; it is made again afterwards."""
    dropped = [pair for part in (_INDEXES, _REFERENCES) for pair in owner.execute(part, {"tables": TABLES}).fetchall()]
    off = [f"ALTER TABLE {name} DISABLE TRIGGER USER" for name in TABLES]
    words = f"ALTER TABLE {TABLES[0]} ENABLE TRIGGER observation_insert"  # it writes what a search reads
    for statement in [*off, words, *(drop for drop, _ in dropped)]:
        owner.execute(statement)
    yield
    owner.execute("SET maintenance_work_mem = '512MB'")
    for statement in [make for _, make in dropped] + [f"ALTER TABLE {name} ENABLE TRIGGER USER" for name in TABLES]:
        owner.execute(statement)


def _copy(owner: Any, into: str, how: str = "") -> Callable[[bytes], None]:
    def write(rows: bytes) -> None:
        with owner.cursor().copy(f"COPY {into} FROM STDIN {how}") as copy:
            copy.write(rows)

    return write


def _observations(first: int, within: Numbers, random: np.random.Generator) -> bytes:
    keys, told = "0\t0\t0\t0\t0.5\tfact\tagent\timport", "0\t0\tactive\t1\t180\n"
    days = [f"2026-0{month}-01T00:00:00Z" for month in range(1, 9)]
    rows = zip(range(first, first + len(within)), within.tolist(), texts(len(within), random), strict=True)
    return "".join(
        f"{pk}\t{scope}\tm{pk}\t{text}\t\tf\t\t\t\t{keys}\t{days[pk % 8]}\t{days[pk % 8]}\t{told}"
        for pk, scope, text in rows
    ).encode()


def drawn(count: int, random: np.random.Generator, profile: Profile) -> Matrix:
    """Unit vectors around centres, as texts about so many matters are."""
    centres = np.random.default_rng(0).standard_normal((CENTRES, profile.dimensions), dtype=np.float32)
    noise = random.standard_normal((count, profile.dimensions), dtype=np.float32)
    vectors = centres[random.integers(0, CENTRES, count)] + SPREAD * noise
    unit: Matrix = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    return unit


def _embeddings(first: int, within: Numbers, random: np.random.Generator, profile: Profile) -> bytes:
    """The rows as COPY's binary format has them: each field after its length, all numbers big-endian."""
    vectors = drawn(len(within), random, profile)
    size, name = profile.dimensions, profile.name.encode()
    fields: list[tuple[str, str, object]] = [
        ("scope", ">i8", within),
        ("row", ">i8", np.arange(first, first + len(within))),
        ("profile", f"S{len(name)}", name),
        ("dimensions", ">i2", size),
        ("vector", f"V{4 + 4 * size}", None),
        ("bands", "V128", None),
        ("active", "?", True),
    ]
    parts = [("count", ">i2"), *((f"{part}{n}", kind) for n, kind, _ in fields for part, kind in _sized(kind))]
    rows = np.zeros(len(within), dtype=np.dtype(parts))
    rows["count"] = len(fields)
    for name_, kind, value in fields:
        rows[f"length of {name_}"] = np.dtype(kind).itemsize
        if value is not None:
            rows[f"value of {name_}"] = value
    head = np.broadcast_to(np.array([size, 0], dtype=">i2").view(np.uint8), (len(within), 4))
    told = np.hstack([head, vectors.astype(">f4").view(np.uint8)])
    rows["value of vector"] = np.ascontiguousarray(told).view(f"V{4 + 4 * size}")[:, 0]
    return b"PGCOPY\n\xff\r\n\0" + bytes(8) + rows.tobytes() + b"\xff\xff"


def _sized(kind: str) -> list[tuple[str, str]]:
    return [("length of ", ">i4"), ("value of ", kind)]


PEER = (
    "SELECT observation_id FROM observations_embedding WHERE scope_id = %s AND profile = %s AND active"
    " ORDER BY vector <=> %s::vector LIMIT 5"
)


@dataclass(frozen=True)
class Clock:
    """What a search takes of the processor, here and in the process of its connection: what does not grow on a machine
    that is busy otherwise, as far as caches let it.
    """

    told: Path

    @classmethod
    def of_connection(cls) -> Clock:
        """That of Django's connection."""
        from django.db import connection

        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            [(pid,)] = cursor.fetchall()
        return cls(Path(f"/proc/{pid}/schedstat"))

    def busy(self) -> float:
        """Seconds so far."""
        there = int(self.told.read_text(encoding="ascii").split()[0]) / 1e9 if self.told.exists() else 0.0
        return time.process_time() + there


def measured(size: int, profile: Profile) -> tuple[list[str], float]:
    """One line: a search, cold and warm, and the peer's; and the p95 of the first search, in milliseconds."""
    from django.db import connection

    from observations import retrieval
    from observations.models import Scope

    random = np.random.default_rng(size)
    there = list(Scope.objects.filter(name__startswith=f"made-up/{size}/"))
    ours, peers, found, clock = [], [], [], Clock.of_connection()
    for number in range(ASKED):
        scope = there[number % len(there)]
        [vector] = drawn(1, random, profile)
        embedder, query = Prepared(profile, vector), texts(1, random, SHORT)[0]

        def search(
            scope: Scope = scope, query: str = query, embedder: Prepared = embedder
        ) -> None:  # as a program's search is answered
            answer = retrieval.search(scope=scope, query=query, k=5, call_site="search", embedder=embedder)
            assert answer.complete
            found.append(len(answer.hits))

        def peer(scope: Scope = scope, told: str = str(vector.tolist())) -> None:
            with connection.cursor() as cursor:
                cursor.execute(PEER, [scope.pk, profile.name, told])
                cursor.fetchall()

        began = clock.busy()
        taken = _seconds(search)
        ours.append((taken, clock.busy() - began, _seconds(search)))
        peers.append(_seconds(peer))
    assert set(found) == {5}
    first, busy, again = (np.array(times) * 1000 for times in zip(*ours, strict=True))
    plain = np.array(peers) * 1000
    cells = [
        *(f"{size:,}", f"{len(there)}"),
        *(f"{np.median(first):.1f} / {np.percentile(first, 95):.1f}",),
        *(f"{np.median(busy):.1f} / {np.percentile(busy, 95):.1f}",),
        *(f"{np.median(again):.1f} / {np.percentile(again, 95):.1f}",),
        *(f"{np.median(plain):.1f} / {np.percentile(plain, 95):.1f}", f"{np.median(again) / np.median(plain):.1f}"),
    ]
    return cells, float(np.percentile(first, 95))


def by_index(profile: Profile) -> tuple[list[list[str]], float]:
    """The large scope, scanned and by its index: two lines, and the share of the scan's ten that the index finds."""
    from django.core.management import call_command

    from observations.models import Scope

    scanned, exact = _ten(profile)
    began = time.perf_counter()
    call_command("memory", "index", "--json")
    made = time.perf_counter() - began
    assert Scope.objects.get(name__startswith=f"made-up/{LARGE}/").index_profile == profile.name
    indexed, near = _ten(profile)
    recall = float(np.mean([len({*one} & {*other}) / len(other) for one, other in zip(near, exact, strict=True)]))
    second = ["by its index", _spread(indexed), f"{recall:.3f}", f"{made:.0f} s"]
    return [["scanned", _spread(scanned), "1.000", ""], second], recall


def _ten(profile: Profile) -> tuple[list[float], list[list[int]]]:
    """ASKED searches for ten rows of the large scope: the time and the rows of each. One more goes before them."""
    from observations import retrieval
    from observations.models import Scope

    random, times, rows = np.random.default_rng(LARGE), [], []
    scope = Scope.objects.get(name__startswith=f"made-up/{LARGE}/")
    for vector in drawn(ASKED + 1, random, profile):
        embedder, began = Prepared(profile, vector), time.perf_counter()
        answer = retrieval.look(scope=scope, query="zzz", k=10, call_site="search", embedder=embedder)
        times.append(time.perf_counter() - began)
        rows.append([hit.id for hit in answer.hits])
    assert all(len(ids) == 10 for ids in rows)
    return times[1:], rows[1:]


def _spread(seconds: Sequence[float]) -> str:
    return f"{np.median(seconds) * 1000:.1f} / {np.percentile(seconds, 95) * 1000:.1f}"


def _seconds(act: Callable[[], None]) -> float:
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def embedding() -> str:
    """How long the query itself takes, on the wall and on the processor."""
    from observations import retrieval

    model, random = retrieval.current_embedder(), np.random.default_rng(1)
    model.embed(["once"])
    began, busy = time.perf_counter(), time.process_time()
    for _ in range(100):
        model.embed([texts(1, random, SHORT)[0]])
    return f"{(time.perf_counter() - began) * 10:.1f} ms, {(time.process_time() - busy) * 10:.1f} ms of the processor"


def main() -> int:
    """Print all figures; 1 when one misses its bar."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="?", type=int, default=ROWS)
    take_option(parser)
    options = parser.parse_args()
    rows: int = options.rows
    with stage(durable=False):
        from observations import retrieval
        from observations.models import Observation

        profile = retrieval.current_embedder().profile
        began = time.perf_counter()
        build(rows, profile)
        print(f"{Observation.objects.count():,} observations of {profile.dimensions} dimensions", end="")
        print(f" in {len(scopes(rows)):,} scopes, built in {time.perf_counter() - began:.0f} s\n")
        heads = [
            "rows in scope",
            "scopes",
            "first search, ms: median / p95",
            "of the processor",
            "again",
            "plain pgvector",
            "ratio",
        ]
        found = {size: measured(size, profile) for size in sorted(SIZES)}
        print(table(heads, [cells for cells, _ in found.values()]))
        print(f"\n{ASKED} searches of each size, k = 5; the query's embedding is not in them: {embedding()}\n")
        lines, recall = by_index(profile)
        print(table([f"{LARGE:,} rows, k = 10", "ms: median / p95", "of the scan's ten", "made in"], lines))
    held = [
        Bar("p95 of a search at 4,000 rows", found[4_000][1], 40, "ms"),
        Bar("what the index finds", recall * 1000, 990, "of 1,000", least=True),
    ]
    return status(held, report_only=options.report_only)


if __name__ == "__main__":
    sys.exit(main())

"""How long finding candidate pairs takes, beside comparing every pair of a scope with numpy.

    python -m benchmarks.candidates [--rows 100000] [--scopes 25]

Rows are made up: clusters of near vectors, a tenth of them duplicates, subjects shared by 20 rows. Both sides report
every pair at 0.95 or over; the share of them that blocking found is printed. The first run is cold, the others warm.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np

from benchmarks.stage import table, timed
from consolidation import candidates
from consolidation.candidates import Columns

DIMENSIONS = 384
T_CANDIDATE, T_MERGE = 0.86, 0.95


def _scope(rows: int, seed: int) -> Columns:
    """One scope of made-up rows; every tenth is a near copy of the one before it."""
    draw = np.random.default_rng(seed)
    vectors = draw.standard_normal((rows, DIMENSIONS), dtype=np.float32)
    copies = np.arange(1, rows, 10)
    vectors[copies] = vectors[copies - 1] + 0.15 * draw.standard_normal((len(copies), DIMENSIONS), dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    bands = draw.integers(1, 2**62, size=(rows, 16), dtype=np.int64)
    bands[copies, :4] = bands[copies - 1, :4]
    ids = np.arange(1, rows + 1, dtype=np.int64)
    subjects = ids // 20 + 1
    return Columns(
        ids=ids,
        text_key=draw.integers(1, 2**62, size=rows, dtype=np.int64),
        subject_key=subjects,
        sp_key=np.zeros(rows, dtype=np.int64),
        spo_key=np.zeros(rows, dtype=np.int64),
        bands=bands,
        vectors=vectors,
        has_vector=np.ones(rows, dtype=bool),
    )


def _ours(scopes: Sequence[Columns]) -> int:
    found = (candidates.pairs(columns, t_candidate=T_CANDIDATE) for columns in scopes)
    return sum(int((pairs.cosine >= T_MERGE).sum()) for pairs in found)


def _every_pair(scopes: Sequence[Columns]) -> int:
    """The peer: each scope's rows against all rows after them, a thousand at a time."""
    found = 0
    for columns in scopes:
        for at in range(0, len(columns.ids), 1000):
            cosines = columns.vectors[at : at + 1000] @ columns.vectors[at:].T
            found += int(np.count_nonzero(np.triu(cosines >= T_MERGE, k=1)))
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table; exit status 0."""
    parser = argparse.ArgumentParser(description="Candidate pairs by blocking, beside every pair.")
    parser.add_argument("--rows", type=int, default=100_000, help="rows in all (default 100,000)")
    parser.add_argument("--scopes", type=int, default=25, help="scopes of equal size (default 25)")
    arguments = parser.parse_args(argv)
    size = arguments.rows // arguments.scopes
    scopes = [_scope(size, seed) for seed in range(arguments.scopes)]
    ours, every = timed(lambda: _ours(scopes), runs=3), timed(lambda: _every_pair(scopes), runs=2)
    print(f"{size * arguments.scopes:,} rows, {DIMENSIONS} dimensions, {arguments.scopes} scopes of {size:,}")
    rows = [
        ["blocking", f"{ours.cold:.1f} s", f"{ours.warm:.1f} s", f"{_ours(scopes):,}"],
        ["every pair", f"{every.cold:.1f} s", f"{every.warm:.1f} s", f"{_every_pair(scopes):,}"],
    ]
    print(table(["", "cold", "warm", f"pairs at {T_MERGE}"], rows))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

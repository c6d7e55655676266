"""MinHash bands: what planning blocks texts by, made once per row and kept beside its vector."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

Ints: TypeAlias = npt.NDArray[np.int64]

BANDS: Final = 16
ROWS_PER_BAND: Final = 4


def minhash_bands(texts: Sequence[str]) -> Ints:
    """(n, 16) band keys of normalised texts: 64 permutations over 4-character shingles, 4 rows to a band.

    Deterministic on every machine. About 20,000 texts a second; datasketch is imported here because it costs a second.
    """
    from datasketch import MinHash
    from xxhash import xxh32_intdigest, xxh64_intdigest

    keys = np.zeros((len(texts), BANDS), np.uint64)
    sketches = MinHash.generator(
        map(_shingles, texts), num_perm=BANDS * ROWS_PER_BAND, seed=1, hashfunc=xxh32_intdigest, scheme="affine32"
    )
    for row, (text, sketch) in enumerate(zip(texts, sketches, strict=True)):
        if text:
            values = np.ascontiguousarray(sketch.hashvalues, dtype="<u4").reshape(BANDS, ROWS_PER_BAND)
            keys[row] = [xxh64_intdigest(band.tobytes()) for band in values]
    return keys.view(np.int64)


def stored_bands(texts: Sequence[str]) -> list[bytes]:
    """The bands of each normalised text as Embedding.bands keeps them: 16 int64, little-endian."""
    return [row.tobytes() for row in minhash_bands(texts).astype("<i8")]


def _shingles(text: str) -> list[bytes]:
    padded = f" {text} ".encode()
    return list({padded[at : at + 4] for at in range(max(1, len(padded) - 3))})

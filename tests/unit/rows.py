"""Records, columns and links by hand, for tests of the rules: no database, similarity as scripted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256

import numpy as np

from consolidation.candidates import Columns, Link, Met
from observations.embedding import Profile
from observations.normalise import key_part, normalised
from observations.records import MemoryKind, Record, StatedBy, Status

PROFILE = Profile(name="scripted", model_id="none", file_hash="", dimensions=4, t_candidate=0.86, t_merge=0.95)
SOME_DAY = datetime(2024, 1, 1, tzinfo=UTC)


def day(text: str) -> datetime:
    """A date as a moment in UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def row(
    number: int,
    text: str,
    key: tuple[str, str, str] = ("", "", ""),
    *,
    scope: int = 1,
    confidence: float = 0.5,
    stated_by: StatedBy = StatedBy.AGENT,
    created_at: datetime = SOME_DAY,
    status: Status = Status.ACTIVE,
    valid_from: datetime | None = None,
    valid_to: datetime | None = None,
    roots: Sequence[str] = (),
    uses: int = 0,
    chain: int = 0,
    kind: MemoryKind = MemoryKind.FACT,
    key_by: str = "",
    own_key: tuple[str, str, str] = ("", "", ""),
) -> Record:
    """One record of scope 1, stated by an agent, unless told otherwise."""
    return Record(
        id=number,
        scope_id=scope,
        text=text,
        normalised=normalised(text),
        key=(key_part(key[0]), key_part(key[1]), key_part(key[2])),
        confidence=confidence,
        stated_by=stated_by,
        created_at=created_at,
        status=status,
        version=1,
        content_hash=sha256(text.encode()).hexdigest(),
        external_id=f"row-{number}",
        subject=key[0],
        predicate=key[1],
        object=key[2],
        valid_from=valid_from,
        valid_to=valid_to,
        roots=frozenset(roots),
        uses=uses,
        chain=chain,
        kind=kind,
        half_life_days=kind.half_life_days,
        key_by=key_by,
        own_key=own_key,
    )


def all_links(rows: Sequence[Record], cosine: float = 0.97, **by_pair: float) -> list[Link]:
    """Every pair at one cosine; `c1_2=0.9` sets another for rows 1 and 2, `c1_2=nan` takes the pair's vectors away."""
    found = []
    ordered = sorted(rows, key=lambda record: record.id)
    for at, a in enumerate(ordered):
        for b in ordered[at + 1 :]:
            met = Met.TEXT if a.normalised == b.normalised else Met.NEIGHBOUR
            found.append(Link(a.id, b.id, by_pair.get(f"c{a.id}_{b.id}", cosine), met))
    return found


def columns(
    n: int,
    *,
    vectors: np.ndarray[tuple[int, int], np.dtype[np.float32]] | None = None,
    ids: Sequence[int] | None = None,
    keys: Mapping[str, Sequence[int]] | None = None,
    has_vector: bool = True,
) -> Columns:
    """n rows: distinct texts, no other key, and orthogonal-ish random vectors, unless given."""
    given = {name: np.asarray(values, np.int64) for name, values in (keys or {}).items()}
    empty = np.zeros(n, np.int64)
    if vectors is None:
        drawn = np.random.default_rng(7).standard_normal((n, 256)).astype(np.float32)
        vectors = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
    return Columns(
        ids=np.asarray(ids if ids is not None else range(1, n + 1), np.int64),
        text_key=given.get("text", np.arange(1, n + 1, dtype=np.int64)),
        subject_key=given.get("subject", empty),
        sp_key=given.get("sp", empty),
        spo_key=given.get("spo", empty),
        bands=np.zeros((n, 16), np.int64),
        vectors=vectors,
        has_vector=np.full(n, has_vector),
    )

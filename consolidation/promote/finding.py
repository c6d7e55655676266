"""Which episodes of one scope are asked about together: few clusters, each of what may say the same thing.

A cluster is a window of up to 9 episodes in the order they were recorded, and up to 31 earlier ones that belong to it.
Three keys with different failure modes find them (R40):

- session: the window itself, which ends with a session, or with `policy.session_hours` where no session is named;
- subject: earlier episodes that share rare words, names and speakers with the window;
- neighbours: earlier episodes whose vector is near one of the window's.

Only earlier episodes join, and every weight is taken from what was there at the time, so a cluster is never changed by
what is recorded later: its answer stays cached, and a pass asks about what is new (R93). Places left over go to the
latest earlier episodes, so a small scope is one cluster. Copies of one source add no witness (C8): an episode that says
what an earlier one of its root says is left out, and earlier episodes of the window's own roots come last.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from heapq import nsmallest
from itertools import islice, repeat, zip_longest
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from consolidation.policy import Policy
from consolidation.promote.cluster import Cluster, root, together
from consolidation.promote.wording import parts
from observations.normalise import tokens
from observations.records import EpisodeRecord, Status

Vectors: TypeAlias = "tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]"

MAX_EPISODES: Final = 40  # of one cluster
MAX_CLUSTERS: Final = 2_000  # of one scope and pass; the latest windows are kept
WINDOW: Final = 9  # episodes: one question for about eight of them, so that all of a scope cost well under n / 5
_ENOUGH: Final = 7  # episodes with which a window ends at the end of a session; fewer go on, or small talk costs most
_RARE: Final = 200  # episodes up to which a word says what an episode is about
_READ: Final = 8_000  # characters of an episode whose words are looked at
_OF_ONE_ROOT: Final = 4  # earlier episodes of one root: one long document does not fill a cluster
_LOOKED_AT: Final = 400  # places of one key's ranking; most that is passed over is of one root
_CELLS: Final = 16_000_000  # cosines of one matrix product: 64 MB


@dataclass(frozen=True, slots=True)
class Found:
    """What is worth asking about, in the order of recording, and what is not."""

    clusters: tuple[Cluster, ...]
    episodes: int = 0  # that were looked at
    copies: int = 0  # left out: an earlier episode of the same root says the same
    thin: tuple[Cluster, ...] = ()  # of fewer than two roots: nothing in them can be corroborated
    left_out: int = 0  # windows before the latest MAX_CLUSTERS

    @property
    def too_thin(self) -> int:
        """How many clusters are not worth asking about."""
        return len(self.thin)


@dataclass(frozen=True, slots=True)
class _Row:
    """One episode with what it is found by."""

    episode: EpisodeRecord
    root: str
    said: str  # what copies share
    terms: tuple[str, ...]  # sorted, so that sums come out the same in every run


def clusters(*, episodes: Iterable[EpisodeRecord], policy: Policy, vectors: Vectors | None, t_near: float) -> Found:
    """The clusters of ONE scope's active episodes, the same in any order of them and of the vectors.

    `vectors`: ids (m,) and unit rows (m, dimensions); ids that are no episode's are ignored, episodes without one are
    found by their words alone. `t_near`: the cosine from which an earlier episode is a neighbour; episodes are looser
    than claims, so it lies far below t_candidate (0.5 did well with both embedders). Raises ValueError for several
    scopes.
    """
    live = sorted((one for one in episodes if one.status is Status.ACTIVE), key=lambda one: one.id)
    if len({episode.scope_id for episode in live}) > 1:
        raise ValueError("Clusters are made of one scope's episodes; these are of several.")
    rows = _distinct(map(_row, live))
    windows = _windows(rows, policy)
    asked = windows[-MAX_CLUSTERS:]
    near = repeat([]) if vectors is None else _near(_aligned(rows, vectors), asked, t_near)
    found = []
    words = _Words()
    for window, neighbours in zip(asked, near, strict=False):
        words.add(rows, upto=window.start)
        ranked = (words.ranked(rows[window.start : window.stop]), neighbours)
        found.append([*window, *_earlier(rows, window, ranked, copies=policy.auto_support)])
    kept = [together(rows[at].episode for at in places) for places in _maximal(found)]
    asking = tuple(cluster for cluster in kept if len(cluster.roots) > 1)
    return Found(
        clusters=asking,
        episodes=len(live),
        copies=len(live) - len(rows),
        thin=tuple(cluster for cluster in kept if len(cluster.roots) < 2),
        left_out=len(windows) - len(asked),
    )


def _row(episode: EpisodeRecord) -> _Row:
    compared = tokens(episode.text[:_READ])
    said = " ".join(compared) + (episode.content_hash if len(episode.text) > _READ else "")
    known = frozenset(parts([*compared, *tokens(episode.speaker)]))
    return _Row(episode, root(episode), said, tuple(sorted(known)))


def _distinct(rows: Iterable[_Row]) -> list[_Row]:
    """The rows without copies: of one root and one wording the first recorded stays, so repeats change nothing (C8)."""
    first: dict[tuple[str, str], _Row] = {}
    for row in rows:
        first.setdefault((row.root, row.said), row)
    return list(first.values())


def _windows(rows: Sequence[_Row], policy: Policy) -> list[range]:
    """Runs of up to WINDOW rows in the order of recording; what comes later only ever changes the last one."""
    found: list[range] = []
    start = 0
    for at in range(1, len(rows)):
        full = at - start >= WINDOW
        if full or (at - start >= _ENOUGH and _parted(rows[start].episode, rows[at].episode, policy)):
            found.append(range(start, at))
            start = at
    return [*found, range(start, len(rows))] if rows else found


def _parted(first: EpisodeRecord, other: EpisodeRecord, policy: Policy) -> bool:
    """Whether two episodes are of two sessions; without sessions, of two times."""
    if first.session or other.session:
        return first.session != other.session
    return abs(other.happened_at - first.happened_at) > timedelta(hours=policy.session_hours)


# --- subject ---------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Words:
    """Where the rare words of the rows seen so far stand."""

    seen: int = 0
    places: defaultdict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    lengths: list[float] = field(default_factory=list)

    def add(self, rows: Sequence[_Row], *, upto: int) -> None:
        """Take up the rows before `upto` that are not seen yet."""
        for row in rows[self.seen : upto]:
            for term in row.terms:
                if len(self.places[term]) <= _RARE:
                    self.places[term].append(self.seen)
            self.lengths.append(math.sqrt(max(1, len(row.terms))))
            self.seen += 1

    def ranked(self, window: Sequence[_Row]) -> list[int]:
        """The seen rows that share rare words with the window, by how many and how rare; of equals the latest first."""
        here = Counter(term for row in window for term in row.terms)
        scores: defaultdict[int, float] = defaultdict(float)
        for term in sorted(here):
            places = self.places.get(term, ())
            if places and len(places) + here[term] <= _RARE:
                weight = here[term] * math.log((self.seen + len(window)) / (len(places) + here[term]))
                for place in places:
                    scores[place] += weight / self.lengths[place]
        return nsmallest(_LOOKED_AT, scores, key=lambda place: (-round(scores[place], 6), -place))


# --- neighbours ------------------------------------------------------------------------------------------------------


def _aligned(rows: Sequence[_Row], vectors: Vectors) -> npt.NDArray[np.float32]:
    """One vector for each row; zeros where there is none."""
    ids, matrix = vectors
    aligned = np.zeros((len(rows), matrix.shape[1]), np.float32)
    order = np.argsort(ids, kind="stable")
    wanted = np.array([row.episode.id for row in rows], np.int64)
    places = np.searchsorted(ids[order], wanted)
    there = places < len(ids)
    there[there] = ids[order[places[there]]] == wanted[there]
    aligned[there] = matrix[order[places[there]]]
    return aligned


def _near(vectors: npt.NDArray[np.float32], windows: Sequence[range], t_near: float) -> Iterator[list[int]]:
    """For each window the earlier rows near one of its own, nearest first; one matrix product for many windows."""
    for block in _blocks(windows, cells=_CELLS):
        first, last = block[0].start, block[-1].stop
        cosines = vectors[first:last] @ vectors[:last].T
        for window in block:
            yield _nearest(cosines[window.start - first : window.stop - first, : window.start], t_near)


def _blocks(windows: Sequence[range], *, cells: int) -> Iterator[list[range]]:
    """Neighbouring windows whose cosines with everything before them are `cells` at most, or one window."""
    block: list[range] = []
    for window in windows:
        if block and (window.stop - block[0].start) * window.stop > cells:
            yield block
            block = []
        block.append(window)
    if block:
        yield block


def _nearest(cosines: npt.NDArray[np.float32], t_near: float) -> list[int]:
    """The columns at or over `t_near` in any row, by how far over in all; of equals the latest first."""
    if not cosines.shape[1]:
        return []
    over = cosines - np.float32(t_near)
    places = np.flatnonzero(over.max(axis=0) >= 0)[::-1]
    scores = np.round(np.maximum(over[:, places], 0).sum(axis=0), 4)
    ranked: list[int] = places[np.argsort(-scores, kind="stable")[:_LOOKED_AT]].tolist()
    return ranked


# --- the cluster of a window -----------------------------------------------------------------------------------------


def _earlier(rows: Sequence[_Row], window: range, ranked: Sequence[Sequence[int]], *, copies: int) -> list[int]:
    """The earlier rows that join a window: of each key in turn, then the latest.

    First those that can add a witness: of roots the window does not hold, few of one root, and no more than `copies`
    of one wording. What is left over is filled without regard to that.
    """
    room = min(MAX_EPISODES - len(window), window.start)
    own = {rows[at].root for at in window}
    taken: dict[int, None] = {}
    of_root: Counter[str] = Counter()
    of_wording = Counter(rows[at].said for at in window)
    for place in _in_turn(ranked):
        if len(taken) >= room:
            break
        row = rows[place]
        crowded = of_root[row.root] >= _OF_ONE_ROOT or of_wording[row.said] >= copies
        if place not in taken and not crowded and row.root not in own:
            taken[place] = None
            of_root[row.root] += 1
            of_wording[row.said] += 1
    rest = (place for place in reversed(range(window.start)) if place not in taken)
    return [*taken, *islice(rest, room - len(taken))]


def _in_turn(ranked: Sequence[Sequence[int]]) -> Iterator[int]:
    """The best of each key, then the second best, and so on."""
    for pair in zip_longest(*ranked):
        yield from (place for place in pair if place is not None)


def _maximal(found: Sequence[Sequence[int]]) -> list[Sequence[int]]:
    """The sets that are not part of another one; no two are equal, because each window has its own latest row."""
    sets = [frozenset(places) for places in found]
    holding: defaultdict[int, list[frozenset[int]]] = defaultdict(list)
    for one in sets:
        for place in one:
            holding[place].append(one)
    return [
        places for places, one in zip(found, sets, strict=True) if not any(one < other for other in holding[max(one)])
    ]

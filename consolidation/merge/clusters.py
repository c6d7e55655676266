"""Complete-link clusters: every pair of a cluster was judged so, none is a star (E2)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from consolidation.merge.judging import Judged

_BY_ID: Final[Mapping[int, int]] = MappingProxyType({})


def cliques(judged: Iterable[Judged], *, cap: int, places: Mapping[int, int] = _BY_ID) -> list[tuple[int, ...]]:
    """Complete-link clusters of 2 to `cap` rows: strongest pair first, each row in one at most.

    Of equally strong pairs the first by the rows' `places` wins, so that the order rows were written in decides
    nothing; without places, the ids do.
    """
    edges = sorted(judged, key=lambda pair: (-pair.strength, sorted(places.get(row, row) for row in pair.pair)))
    partners: defaultdict[int, set[int]] = defaultdict(set)
    for edge in edges:
        a, b = edge.pair
        partners[a].add(b)
        partners[b].add(a)
    cluster_of = {row: frozenset({row}) for row in partners}
    shared = {frozenset({row}): frozenset(others) for row, others in partners.items()}  # partners of every member
    for edge in edges:
        one, other = cluster_of[edge.link.a], cluster_of[edge.link.b]
        if one is other or len(one) + len(other) > cap or not other <= shared[one]:
            continue
        joined = one | other
        shared[joined] = shared.pop(one) & shared.pop(other)
        cluster_of.update(dict.fromkeys(joined, joined))
    return sorted(tuple(sorted(cluster)) for cluster in set(cluster_of.values()) if len(cluster) > 1)


def cover(judged: Iterable[Judged], *, cap: int, places: Mapping[int, int] = _BY_ID) -> list[tuple[int, ...]]:
    """Cliques until every row with a pair is in one. Pairs whose rows are both shown already wait for the next pass."""
    left = list(judged)
    found: list[tuple[int, ...]] = []
    covered: set[int] = set()
    while left:
        new = cliques(left, cap=cap, places=places)
        found += new
        covered.update(row for cluster in new for row in cluster)
        left = [pair for pair in left if not covered.issuperset(pair.pair)]
    return found

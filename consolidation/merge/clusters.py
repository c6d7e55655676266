"""Complete-link clusters: every pair of a cluster was judged so, none is a star (E2)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from consolidation.merge.judging import Judged


def cliques(judged: Iterable[Judged], *, cap: int) -> list[tuple[int, ...]]:
    """Complete-link clusters of 2 to `cap` rows: strongest pair first, each row in one at most."""
    edges = sorted(judged, key=lambda pair: (-pair.strength, pair.pair))
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


def cover(judged: Iterable[Judged], *, cap: int) -> list[tuple[int, ...]]:
    """Cliques until every row with a pair is in one. Pairs whose rows are both shown already wait for the next pass."""
    left = list(judged)
    found: list[tuple[int, ...]] = []
    covered: set[int] = set()
    while left:
        new = cliques(left, cap=cap)
        found += new
        covered.update(row for cluster in new for row in cluster)
        left = [pair for pair in left if not covered.issuperset(pair.pair)]
    return found

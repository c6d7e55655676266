"""How answers are counted, and the controls that show that the count can fail."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from statistics import fmean
from typing import Final

from consolidation.probes.values import Control, Figures, Found, Probe, Store

_DRAWS: Final = 20  # of each control that is drawn by chance
_LOW: Final = 0.1  # a control's recall up to here has failed, however little the store itself finds
_PART: Final = 0.5  # and else up to this part of the store's own


def measure(
    *, probes: Sequence[Probe], found: Mapping[int, Found], store: Store, k: int, left_out: int = 0, seed: int = 7
) -> Figures:
    """Count what came back for each probe, by its number; `found` may hold more than k ids, the first k count.

    A record counts as having come when a row came that merges made of it.
    """
    wanted = [probe for probe in probes if not probe.negative]
    negatives = [probe for probe in probes if probe.negative]
    answers = {number: answer.ids[:k] for number, answer in found.items()}
    shares = {probe.number: _share(probe, answers[probe.number], store) for probe in wanted}
    recall = _mean(shares.values())
    times = sorted(answer.milliseconds for answer in found.values())
    staled = _by_probe(wanted, lambda probe: _stale(probe, answers[probe.number], store))
    confused = tuple(probe.number for probe in negatives if _share(probe, answers[probe.number], store) > 0)
    hits = [row for probe in wanted for row in answers[probe.number]]
    return Figures(
        k=k,
        probes=len(wanted),
        negatives=len(negatives),
        left_out=left_out,
        records=len(store.rows),
        controls=_controls(wanted, answers, store, k=k, recall=recall, chance=random.Random(seed)),  # noqa: S311
        recall=recall,
        hit=_mean(share > 0 for share in shares.values()),
        mrr=_mean(_first(probe, answers[probe.number], store) for probe in wanted),
        distinct=_mean(_different(answers[probe.number], store) for probe in wanted),
        unmarked=_mean(row not in store.units for row in hits),
        stale=_share_of(staled, [probe for probe in wanted if probe.outdated]),
        mistaken=_share_of(confused, [probe for probe in negatives if probe.expected]),
        separation=_separation(wanted, negatives, found),
        p50=_percentile(times, 0.5),
        p95=_percentile(times, 0.95),
        missing=_by_probe(wanted, lambda probe: sorted(probe.expected - _carried(answers[probe.number], store))),
        leaked=_by_probe(probes, lambda probe: _leaks(probe, answers[probe.number], store)),
        staled=staled,
        confused=confused,
        cut_short=tuple(sorted(number for number, answer in found.items() if not answer.complete)),
    )


# --- one answer -------------------------------------------------------------------------------------------------------


def _carried(rows: Iterable[int], store: Store) -> frozenset[int]:
    """Every record whose claim one of the rows says."""
    return frozenset().union(*(store.carried.get(row, frozenset({row})) for row in rows))


def _share(probe: Probe, rows: Sequence[int], store: Store) -> float:
    """Which part of the expected records came."""
    return len(probe.expected & _carried(rows, store)) / len(probe.expected) if probe.expected else 0.0


def _first(probe: Probe, rows: Sequence[int], store: Store) -> float:
    for place, row in enumerate(rows, 1):
        if probe.expected & _carried([row], store):
            return 1 / place
    return 0.0


def _different(rows: Sequence[int], store: Store) -> int:
    """How many claims the rows say: by label or claim key, never by comparing texts."""
    return len({store.units.get(row, f"row {row}") for row in rows})


def _leaks(probe: Probe, rows: Sequence[int], store: Store) -> list[int]:
    return [row for row in rows if row in store.strangers or probe.forbidden & _carried([row], store)]


def _stale(probe: Probe, rows: Sequence[int], store: Store) -> list[int]:
    """A row that says the expected value as well is not stale: one claim may have been said at both times."""
    says = [(row, _carried([row], store)) for row in rows]
    return [row for row, claims in says if probe.outdated & claims and not probe.expected & claims]


# --- all answers ------------------------------------------------------------------------------------------------------


def _by_probe(probes: Sequence[Probe], rows: Callable[[Probe], Sequence[int]]) -> dict[int, tuple[int, ...]]:
    """The rows that there is something to say of, by the number of their probe."""
    return {probe.number: tuple(found) for probe in probes if (found := rows(probe))}


def _share_of(struck: Collection[int], probes: Sequence[Probe]) -> float | None:
    return _mean(probe.number in struck for probe in probes) if probes else None


def _separation(wanted: Sequence[Probe], negatives: Sequence[Probe], found: Mapping[int, Found]) -> float | None:
    """Mann and Whitney's: of all pairs of a probe and a negative one, where the first has the higher best cosine."""
    high, low = (sorted(_cosines(probes, found)) for probes in (wanted, negatives))
    if not high or not low:
        return None
    won = sum((one > other) + (one == other) / 2 for one in high for other in low)
    return won / (len(high) * len(low))


def _cosines(probes: Sequence[Probe], found: Mapping[int, Found]) -> list[float]:
    return [cosine for probe in probes if (cosine := found[probe.number].cosine) is not None]


def _controls(
    probes: Sequence[Probe],
    answers: Mapping[int, Sequence[int]],
    store: Store,
    *,
    k: int,
    recall: float,
    chance: random.Random,
) -> tuple[Control, ...]:
    """An empty store, rows by chance, and a store whose texts were dealt to other rows."""
    pools = {probe.number: store.past.get(probe.number, store.rows) for probe in probes}
    rows = sorted({*store.rows}.union(*store.past.values()))
    draws = {
        "empty": [_recall(probes, {}, store)],
        "random": [
            _recall(probes, {number: chance.sample(pool, min(k, len(pool))) for number, pool in pools.items()}, store)
            for _ in range(_DRAWS)
        ],
        "shuffled": [_recall(probes, _dealt(answers, rows, chance), store) for _ in range(_DRAWS)],
    }
    limit = max(_LOW, _PART * recall)
    means = {name: _mean(found) for name, found in draws.items()}
    return tuple(Control(name=name, recall=mean, failed=mean <= limit) for name, mean in means.items())


def _dealt(
    answers: Mapping[int, Sequence[int]], rows: Sequence[int], chance: random.Random
) -> dict[int, Sequence[int]]:
    """The answers with every row taken for another one, the same one each time."""
    there = set(rows)
    came = sorted({row for ids in answers.values() for row in ids if row in there})
    taken = dict(zip(came, chance.sample(rows, len(came)), strict=True))
    return {number: [taken[row] for row in ids if row in taken] for number, ids in answers.items()}


def _recall(probes: Sequence[Probe], answers: Mapping[int, Sequence[int]], store: Store) -> float:
    return _mean(_share(probe, answers.get(probe.number, ()), store) for probe in probes)


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return fmean(listed) if listed else 0.0


def _percentile(ordered: Sequence[float], share: float) -> float:
    """The nearest rank: a value that was measured."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else 0.0

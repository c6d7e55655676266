"""Asking the probes of a suite as an agent would, and keeping what was counted."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from consolidation import probes as rules
from consolidation.models import Plan, Probe, ProbeRun, Suite
from consolidation.probes import Figures, Found, K, Store
from consolidation.probing.worlds import Stored, World
from observations.embedding import Embedder

Progress = Callable[[], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """One run: what was counted, and the row that keeps it."""

    figures: Figures
    row: ProbeRun


def run_suite(
    *,
    suite: Suite,
    by: str,
    k: int = K,
    cause: str = ProbeRun.Cause.COMMAND,
    plan: Plan | None = None,
    embedder: Embedder | None = None,
    progress: Progress | None = None,
) -> Ran:
    """Ask every probe of a suite of the store as it stands, and keep what was counted."""
    total = suite.probes.count()
    asked = probes_of(suite=suite)
    figures = count(
        world=Stored(scope=suite.scope, embedder=embedder),
        asked=asked,
        units=suite.units,
        left_out=total - len(asked),
        k=k,
        progress=progress,
    )
    row = ProbeRun.objects.create(
        scope=suite.scope,
        suite=suite,
        cause=cause,
        plan=plan,
        by=by[:150],
        recall=None if figures.why_not else figures.recall,
        figures=rules.figures_json(figures),
    )
    return Ran(figures=figures, row=row)


def probes_of(*, suite: Suite) -> list[Probe]:
    """The probes of a suite that a run asks, by number. One query."""
    return list(Probe.objects.asked().filter(suite=suite).order_by("number"))


def count(
    *,
    world: World,
    asked: Sequence[Probe],
    units: Mapping[str, int],
    left_out: int = 0,
    k: int = K,
    progress: Progress | None = None,
) -> Figures:
    """Ask probes of a world and count the answers. Writes nothing; of two worlds the figures can be compared.

    `units` is that of the suite: observation id -> number of the unit it says.
    """
    found = {}
    for probe in asked:
        found[probe.number] = _found(world, probe, k)
        if progress:
            progress()
    plain = [_plain(probe) for probe in asked]
    store = _store(world, asked, plain, found, units)
    return rules.measure(probes=plain, found=found, store=store, k=k, left_out=left_out)


def _found(world: World, probe: Probe, k: int) -> Found:
    start = time.perf_counter()
    answer = world.look(query=probe.query, k=k, as_of=probe.as_of)
    return Found(
        ids=tuple(hit.id for hit in answer.hits),
        milliseconds=(time.perf_counter() - start) * 1000,
        complete=answer.complete,
        cosine=max((hit.cosine for hit in answer.hits if hit.cosine is not None), default=None),
    )


def _plain(probe: Probe) -> rules.Probe:
    return rules.Probe(
        number=probe.number,
        query=probe.query,
        expected=frozenset(probe.expected),
        forbidden=frozenset(probe.forbidden),
        outdated=frozenset(probe.outdated),
        negative=probe.negative or not probe.expected,
    )


def _store(
    world: World,
    asked: Sequence[Probe],
    probes: Sequence[rules.Probe],
    found: Mapping[int, Found],
    units: Mapping[str, int],
) -> Store:
    """What the count needs to know of the world: its rows once, and once per moment that is asked for."""
    came = {row for answer in found.values() for row in answer.ids}
    labelled = {int(pk): unit for pk, unit in units.items()}
    named = {pk for probe in probes for pk in (*probe.expected, *probe.forbidden, *probe.outdated)} | {*labelled}
    carried, keys = world.carried(named=named), world.keys(rows=came)
    marked = {
        pk: f"unit {min(labelled[c] for c in says if c in labelled)}"
        for pk, says in carried.items()
        if says & {*labelled}
    }
    moments = {probe.as_of: world.rows(as_of=probe.as_of) for probe in asked if probe.as_of}
    return Store(
        rows=world.rows(),
        past={probe.number: moments[probe.as_of] for probe in asked if probe.as_of},
        carried=carried,
        units={**{pk: f"key {key}" for pk, key in keys.items() if key}, **marked},
        strangers=frozenset(came - {*keys}),
    )

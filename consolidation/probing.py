"""Probe suites on a real store: importing them, asking their probes as an agent would, and keeping what was counted.

A probe is asked by the same search that agents use, from the call site "probe": it leaves no trace of a use.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from django.db import connection, transaction
from django.db.models import Count

from consolidation import probes as rules
from consolidation.models import Plan, Probe, ProbeRun, Suite
from consolidation.operations import visible
from consolidation.probes import Figures, Found, K, Line, Numbers, Sheet, Store
from observations import retrieval
from observations.embedding import Embedder
from observations.models import GivenKey, Observation, Scope
from observations.normalise import key64, normalised
from observations.records import Status

MOST: Final = 10_000  # probes of one suite
NO_SUITE: Final = "has no probe suite (`manage.py probe import` makes one)"
_REMEMBERED: Final = 200  # runs of a suite that are looked through for a fall of recall
_NOISE: Final = 1e-9
CALL_SITE: Final = "probe"
Progress = Callable[[], object]


class NotImported(ValueError):
    """Nothing was imported; the text is one sentence that says why and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """The probes of a file that are about one scope, records by their ids."""

    probes: tuple[Probe, ...]  # unsaved, numbered in the file's order
    units: Mapping[str, int]  # observation id -> number of its unit
    unknown: int  # lines left out, because they name a record that the scope does not hold
    expect_nothing: int
    unusable: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """One run: what was counted, and the row that keeps it (none for a file that was not imported)."""

    figures: Figures
    row: ProbeRun | None = None


# --- importing --------------------------------------------------------------------------------------------------------


def resolve(*, scope: Scope, sheet: Sheet) -> Resolved:
    """Find the records that a file names in a scope. A line of which one is not there is left out and counted. Two
    queries, and one per text that is expected.
    """
    named = {name for line in sheet.lines for name in (*line.expected, *line.forbidden, *line.outdated)}
    rows = Observation.objects.filter(scope=scope).exclude(status=Status.ERASED)
    ids = dict(rows.filter(external_id__in=named | {*sheet.units}).values_list("external_id", "pk"))
    texts = _by_text(scope, {text for line in sheet.lines for text in line.texts})
    probes: list[Probe] = []
    for line in sheet.lines:
        if all(name in ids for name in (*line.expected, *line.forbidden)) and all(text in texts for text in line.texts):
            probes.append(_probe(line, len(probes) + 1, scope, ids, texts))
    return Resolved(
        probes=tuple(probes),
        units={str(ids[name]): unit for name, unit in sheet.units.items() if name in ids},
        unknown=len(sheet.lines) - len(probes),
        expect_nothing=sheet.expect_nothing,
        unusable=sheet.unusable,
    )


def _by_text(scope: Scope, texts: Collection[str]) -> dict[str, list[int]]:
    """Ids of the rows that say each text, case and spacing apart. One query."""
    keys = {text: key64(normalised(text)) for text in texts}
    found: defaultdict[int, list[int]] = defaultdict(list)
    rows = Observation.objects.filter(scope=scope, text_key__in=[*keys.values()]).exclude(status=Status.ERASED)
    for key, pk in rows.order_by("pk").values_list("text_key", "pk"):
        found[key].append(pk)
    return {text: found[key] for text, key in keys.items() if key in found}


def _probe(line: Line, number: int, scope: Scope, ids: Mapping[str, int], texts: Mapping[str, Sequence[int]]) -> Probe:
    expected = [ids[name] for name in line.expected] + [texts[text][0] for text in line.texts]
    return Probe(
        scope=scope,
        number=number,
        query=line.query,
        category=line.category,
        expected=sorted({*expected}),
        forbidden=sorted(ids[name] for name in line.forbidden),
        outdated=sorted(ids[name] for name in line.outdated if name in ids),
        negative=line.negative,
        as_of=line.as_of,
    )


def import_suite(*, scope: Scope, name: str, lines: Iterable[str], by: str) -> tuple[Suite, Resolved]:
    """Keep the probes of a file as a suite, which is in force for its scope from then on. One transaction.

    Raises NotImported when the name is taken, or no line of the file is about records of the scope.
    """
    name = name.replace("\0", "").strip()
    if not 0 < len(name) <= 80:
        raise NotImported("A suite needs a name of 1 to 80 characters: say --name NAME.")
    if Suite.objects.filter(scope=scope, name=name).exists():
        taken = f"{visible(scope.name)} has a suite {visible(name)!r} already"
        raise NotImported(f"{taken}, and a suite is never changed: choose another name; the newest one is in force.")
    resolved = resolve(scope=scope, sheet=rules.read(lines))
    if problem := nothing(resolved=resolved, scope=scope):
        raise NotImported(problem)
    with transaction.atomic():
        suite = Suite.objects.create(scope=scope, name=name, units=dict(resolved.units), by=by[:150])
        for probe in resolved.probes:
            probe.suite = suite
        Probe.objects.bulk_create(resolved.probes, batch_size=500)
    return suite, resolved


def nothing(*, resolved: Resolved, scope: Scope) -> str:
    """Why a file is no suite of a scope; empty when it is one."""
    if len(resolved.probes) > MOST:
        return f"The file holds {len(resolved.probes):,} probes and a suite takes {MOST:,}: split it."
    if any(not probe.negative and probe.expected for probe in resolved.probes):
        return ""
    if resolved.unknown:
        return (
            f"{resolved.unknown:,} probes name records that {visible(scope.name)} does not hold, and none names only"
            " records it holds: import the memory first, with the ids that the file names."
        )
    if resolved.unusable:
        return f"No line of the file can be used ({len(resolved.unusable)} were tried); {resolved.unusable[0]}."
    return "No line of the file asks for a record: each needs query and expected (see --help)."


# --- asking -----------------------------------------------------------------------------------------------------------


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
    """Ask every probe of a suite and keep what was counted."""
    total = suite.probes.count()
    asked = list(Probe.objects.asked().filter(suite=suite).order_by("number"))
    figures = count(
        scope=suite.scope,
        asked=asked,
        units=suite.units,
        left_out=total - len(asked),
        k=k,
        embedder=embedder,
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


def count(
    *,
    scope: Scope,
    asked: Sequence[Probe],
    units: Mapping[str, int],
    left_out: int = 0,
    k: int = K,
    embedder: Embedder | None = None,
    progress: Progress | None = None,
) -> Figures:
    """Ask probes of a scope and count the answers. Writes nothing."""
    found = {}
    for probe in asked:
        found[probe.number] = _found(scope, probe.query, k, embedder)
        if progress:
            progress()
    plain = [
        rules.Probe(
            number=probe.number,
            query=probe.query,
            expected=frozenset(probe.expected),
            forbidden=frozenset(probe.forbidden),
            outdated=frozenset(probe.outdated),
            negative=probe.negative or not probe.expected,
        )
        for probe in asked
    ]
    store = _store(scope, plain, found, units)
    return rules.measure(probes=plain, found=found, store=store, k=k, left_out=left_out)


def _found(scope: Scope, query: str, k: int, embedder: Embedder | None) -> Found:
    start = time.perf_counter()
    answer = retrieval.search(scope=scope, query=query, k=k, call_site=CALL_SITE, embedder=embedder)
    return Found(
        ids=tuple(hit.id for hit in answer.hits),
        milliseconds=(time.perf_counter() - start) * 1000,
        complete=answer.complete,
        cosine=max((hit.cosine for hit in answer.hits if hit.cosine is not None), default=None),
    )


# What an applied merge made of a record says its claim. The lineage of a row may name what it came from instead of a
# source that said the same words; the operation names that source too.
_CARRIES: Final = """
WITH RECURSIVE carries (claim, id) AS (
  SELECT named, named FROM unnest(%(named)s::bigint[]) named
  UNION
  SELECT c.claim, m.id FROM carries c JOIN LATERAL (
    SELECT l.derived_id AS id FROM observations_lineage l
    WHERE l.scope_id = %(scope)s AND l.source_observation_id = c.id AND l.derivation = 'merge'
    UNION ALL
    SELECT o.derived_id FROM consolidation_operationsource s
    JOIN consolidation_operation o ON o.scope_id = s.scope_id AND o.id = s.operation_id
    WHERE s.scope_id = %(scope)s AND s.observation_id = c.id AND o.kind = 'merge' AND o.derived_id IS NOT NULL
  ) m ON true
) SELECT claim, id FROM carries
"""


def _store(scope: Scope, probes: Sequence[rules.Probe], found: Mapping[int, Found], units: Mapping[str, int]) -> Store:
    """What the count needs to know of the scope. Four queries."""
    came = {row for answer in found.values() for row in answer.ids}
    labelled = {int(pk): unit for pk, unit in units.items()}
    named = {pk for probe in probes for pk in (*probe.expected, *probe.forbidden, *probe.outdated)} | {*labelled}
    carried: defaultdict[int, set[int]] = defaultdict(set)
    with connection.cursor() as cursor:
        cursor.execute(_CARRIES, {"named": sorted(named), "scope": scope.pk})
        for claim, pk in cursor.fetchall():
            carried[pk].add(claim)
    keys = dict(Observation.objects.filter(scope=scope, pk__in=came).values_list("pk", "spo_key"))
    given = GivenKey.objects.filter(scope=scope, observation__in=came, state=GivenKey.State.GIVEN)
    keyed = {pk: f"key {key}" for pk, key in {**keys, **_given(given)}.items() if key}
    marked = {
        pk: f"unit {min(labelled[c] for c in says if c in labelled)}"
        for pk, says in carried.items()
        if says & {*labelled}
    }
    return Store(
        rows=tuple(Observation.objects.active().in_scope(scope).order_by("pk").values_list("pk", flat=True)),
        carried={pk: frozenset(says) for pk, says in carried.items()},
        units={**keyed, **marked},
        strangers=frozenset(came - {*keys}),
    )


def _given(rows: Iterable[GivenKey]) -> dict[int, int]:
    return {row.observation_id: row.spo_key for row in rows if row.spo_key}


# --- the three numbers ------------------------------------------------------------------------------------------------


def numbers(
    *, scopes: Collection[Scope], by: str, plan: Plan | None, cause: str, embedder: Embedder | None = None
) -> tuple[Numbers, ...]:
    """Recall@5, distinct@5 and size of each scope now, by the suite in force; each run is kept. Two queries, and the
    run of each suite.
    """
    ordered = sorted(scopes, key=lambda scope: scope.name)
    suites = {suite.scope_id: suite for suite in Suite.objects.in_force().filter(scope__in=ordered)}
    rows = Observation.objects.active().filter(scope__in=ordered).values_list("scope_id")
    sizes = dict(rows.annotate(n=Count("id")).order_by())
    found = []
    for scope in ordered:
        suite, size = suites.get(scope.pk), int(sizes.get(scope.pk, 0))
        if suite is None:
            found.append(Numbers(scope=scope.name, records=size, why_not=NO_SUITE))
            continue
        figures = run_suite(suite=suite, by=by, cause=cause, plan=plan, embedder=embedder).figures
        why = f"is not measured: {figures.why_not}" if figures.why_not else ""
        found.append(Numbers(scope=scope.name, records=size, figures=None if why else figures, why_not=why))
    return tuple(found)


def fallen(*, scope: Scope) -> str:
    """Why a scope may not be changed unattended since its recall fell; empty when it did not, or is back (R118). Two
    queries.
    """
    suite = Suite.objects.in_force().filter(scope=scope).first()
    if suite is None:
        return ""
    kept = ProbeRun.objects.filter(suite=suite, scope=scope, figures__k=K).select_related("plan")
    runs = list(kept.order_by("-id")[:_REMEMBERED])
    best_since: float = -1
    for after, before in pairwise(runs):
        best_since = max(best_since, -1 if after.recall is None else after.recall)
        fell = (after.cause, before.cause) == (ProbeRun.Cause.AFTER, ProbeRun.Cause.BEFORE)
        if fell and before.recall is not None and best_since < before.recall - _NOISE:
            now = "is not measured any more" if best_since < 0 else f"is {best_since:.4f}"
            return f"recall@{K} was {before.recall:.4f} before {after.plan or 'an operation'} was applied and {now}"
    return ""

"""The three numbers of a scope by its suite in force, and whether its recall fell since (R115, R118)."""

from __future__ import annotations

from collections.abc import Collection
from itertools import pairwise
from typing import Final

from django.db.models import Count

from consolidation.models import Plan, ProbeRun, Suite
from consolidation.probes import K, Numbers
from consolidation.probing.running import run_suite
from observations.embedding import Embedder
from observations.models import Observation, Scope

NO_SUITE: Final = "has no probe suite (`manage.py probe import` makes one)"
_REMEMBERED: Final = 200  # runs of a suite that are looked through for a fall of recall
_NOISE: Final = 1e-9


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

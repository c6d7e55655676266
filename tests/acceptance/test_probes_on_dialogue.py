"""One conversation with planted duplicates, before and after it was consolidated (R26, R112-R115).

The observations, the questions and the variants are read where they lie. A variant says the same as its observation in
another case, punctuation or form of a number; both bear one label, so distinct@5 does not depend on comparing texts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from consolidation import planner, probes, probing, projecting, review, rollout
from consolidation.models import Operation, Plan, ProbeRun, Projection, Suite
from consolidation.operations import Approval, Kind, State
from consolidation.probes import Figures
from observations import ingest
from observations.embedding import HASHING
from observations.models import Observation, Scope
from tests.acceptance import engine
from tests.building import first_confirms, propose, scope
from tests.jsonl import real

pytestmark = pytest.mark.django_db(transaction=True)

CONVERSATION = "conv-41"  # 324 observations, 29 variants
PART = 80  # observations, of the first sessions


def rows(name: str) -> Iterator[dict[str, Any]]:
    with real(name).open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def variants() -> list[dict[str, Any]]:
    found = [row for row in rows("pairs_locomo_perturbed.jsonl") if row["kind"] == "surface"]
    return [row for row in found if row["a_id"].startswith(f"{CONVERSATION}/")]


def said_again(row: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The data's own variant, and further ones by the same rules: case and punctuation."""
    yield row["id"], row["b"]
    for number, text in enumerate((row["a"].upper(), f"{row['a']}!", f'"{row["a"]}"', row["b"].title())):
        yield f"{row['id']}/{number}", text


def planted(most: int = 1_000) -> tuple[Scope, list[str]]:
    """The conversation (or its first observations) in one scope, and the lines of its suite."""
    within = scope(f"locomo/{CONVERSATION}")
    own = [row for row in rows("locomo_observations.jsonl") if row["conversation"] == CONVERSATION]
    known = {row["id"]: row for row in own}
    lines, units = [json.dumps(row) for row in own[:most]], []
    for variant in [] if most < len(own) else variants():
        source = known[variant["a_id"]]
        again = dict(said_again(variant))
        lines += [json.dumps({**source, "id": name, "text": text}) for name, text in again.items()]
        units.append(json.dumps({"unit": variant["a_id"], "ids": [variant["a_id"], *again]}))
    ingest.import_lines(lines, scope=within.name)
    assert Observation.objects.filter(scope=within).count() == len(lines)
    engine.put_bands(within)
    questions = [json.dumps(row) for row in rows("locomo_probes.jsonl") if row["conversation"] == CONVERSATION]
    return within, [*questions, *units]


def consolidated(within: Scope) -> tuple[Plan, Projection, rollout.Applied]:
    """A plan, in which a reviewer who knows the labels approves what is of one unit, its projection, and its
    application.
    """
    made = planner.plan(scopes=[within], pattern=within.name, by="ann", trigger="command", profile=HASHING)
    units = Suite.objects.get().units
    for operation in Operation.objects.filter(plan_items__plan=made, kind=Kind.MERGE):
        held = {units.get(str(source.observation_id)) for source in operation.sources.all()}
        if operation.approval == Approval.NEEDS_HUMAN and len(held) == 1 and None not in held:
            review.approve(operation=operation, by="maya")
    [projected] = projecting.project(plan=made, by="ann", scopes=[within])
    first_confirms(made)
    return made, projected, rollout.apply_measured(plan=made, by="ann", confirmed=True)


def figures_of(applied: rollout.Applied) -> tuple[Figures, Figures]:
    [before], [after] = applied.impact.before, applied.impact.after
    assert before.figures
    assert after.figures
    return before.figures, after.figures


def test_consolidating_dialogue_with_planted_duplicates_loses_no_probe_and_makes_room(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """R26, R112, R113, R114, R115: recall@5 does not drop by one probe, distinct@5 rises, the store gets smaller; and
    all three were said before it was applied.
    """
    within, lines = planted()
    _, resolved = probing.import_suite(scope=within, name="dialogue", sheet=probes.read(lines), by="ann")
    assert sum(not probe.negative for probe in resolved.probes) > 100
    size = Observation.objects.active().in_scope(within).count()
    made, projected, applied = consolidated(within)
    before, after = figures_of(applied)
    with capsys.disabled():
        print(
            f"\n{within.name}, {HASHING.name}, {before.probes} probes, {made}",
            *probes.impact_lines(applied.impact),
            sep="\n",
        )
    assert (projected.fell, projected.lost, projected.records_after) == (False, [], after.records)
    assert {name: projected.after["measures"][name] for name in ("recall", "distinct", "missed")} == {
        "recall": after.recall,
        "distinct": after.distinct,
        "missed": list(after.missed),
    }
    assert applied.impact.fell == ()
    assert {*after.missed} <= {*before.missed}
    assert after.recall >= before.recall
    assert after.distinct > before.distinct
    assert after.records < size == before.records
    assert all(control.failed for control in (*before.controls, *after.controls))
    assert Operation.objects.filter(kind=Kind.MERGE, status=State.APPLIED).count() >= len(variants()) // 2
    assert list(ProbeRun.objects.order_by("pk").values_list("plan", "cause")) == [
        (made.pk, "before"),
        (made.pk, "after"),
    ]


def test_a_merge_that_loses_a_claim_is_seen_by_the_probe_that_asks_for_it() -> None:
    """R112, R118: the naive control. A record that answers a question leaves the reads, and the number says so."""
    within, lines = planted(PART)
    suite, _ = probing.import_suite(scope=within, name="dialogue", sheet=probes.read(lines[:20]), by="ann")
    before = probing.run_suite(suite=suite, by="ann").figures
    asked = suite.probes.filter(negative=False).exclude(number__in=before.missed)
    answered = asked.order_by("number")[:3]
    gone = {pk for probe in answered for pk in probe.expected}
    operation = propose(Kind.ARCHIVE, list(Observation.objects.filter(pk__in=gone)))
    applied = rollout.apply_one(operation=operation, by="ann")
    _, last = figures_of(applied)
    assert {probe.number for probe in answered} <= {*last.missed}
    assert "went from" in applied.impact.fell[0]

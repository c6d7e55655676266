"""Recall, distinct claims and size of real dialogue before and after it is consolidated, with what was said beforehand.

`python -m benchmarks.consolidated_dialogue [CONVERSATION ...]`. The five conversations of locomo_observations.jsonl,
one scope each, with planted duplicates: for each `surface` variant of pairs_locomo_perturbed.jsonl five phrasings of
one claim beside it. A reviewer who knows the labels approves merges of one unit; the rest is automatic. Ends with 1
when recall@5 of a conversation falls, distinct@5 does not rise, the store does not shrink, or the projection said
something else.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from benchmarks.bars import Bar, status, take_option
from benchmarks.stage import DATA, stage, table

HEADS = ("conversation", "rows", "probes", "recall@5", "distinct@5", "records", "newly failing", "projected", "seconds")
Row = dict[str, Any]


def rows(name: str) -> list[Row]:
    """The lines of one file."""
    with (DATA / name).open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def said_again(variant: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Id and text of five phrasings of one claim: the data's own, and others by case and punctuation."""
    yield variant["id"], variant["b"]
    others = (variant["a"].upper(), f"{variant['a']}!", f'"{variant["a"]}"', variant["b"].title())
    for number, text in enumerate(others):
        yield f"{variant['id']}/{number}", text


def planted(conversation: str) -> tuple[list[str], list[str]]:
    """The lines of a conversation's import, and of its suite: the questions, and which rows say the same."""
    own = {row["id"]: row for row in rows("locomo_observations.jsonl") if row["conversation"] == conversation}
    lines, units = [json.dumps(row) for row in own.values()], []
    for variant in rows("pairs_locomo_perturbed.jsonl"):
        if variant["kind"] == "surface" and variant["a_id"] in own:
            again = dict(said_again(variant))
            lines += [json.dumps({**own[variant["a_id"]], "id": pk, "text": text}) for pk, text in again.items()]
            units.append(json.dumps({"unit": variant["a_id"], "ids": [variant["a_id"], *again]}))
    asked = [json.dumps(row) for row in rows("locomo_probes.jsonl") if row["conversation"] == conversation]
    return lines, [*asked, *units]


def consolidated(conversation: str) -> tuple[list[object], bool]:
    """One conversation: its line of the table, and whether every bar holds."""
    from consolidation import planner, probes, probing, projecting, rollout
    from observations import ingest
    from observations.models import Scope

    began = time.perf_counter()
    lines, asked = planted(conversation)
    ingest.import_lines(lines, scope=f"locomo/{conversation}")
    within = Scope.objects.get(name=f"locomo/{conversation}")
    ingest.embed_now(scopes=[within])
    suite, _ = probing.import_suite(scope=within, name="dialogue", sheet=probes.read(asked), by="benchmark")
    made = planner.plan(scopes=[within], pattern=within.name, by="benchmark", trigger="command")
    _review(made.pk, suite.units)
    [row] = projecting.project(plan=made, by="benchmark", scopes=[within])
    with suppress(rollout.SecondWanted):
        rollout.agree(plan=made, by="another benchmark")
    applied = rollout.apply_measured(plan=made, by="benchmark", confirmed=True)
    [before], [after] = applied.impact.before, applied.impact.after
    assert before.figures is not None
    assert after.figures is not None
    first, last = before.figures, after.figures
    told = row.after["measures"]
    same = (told["recall"], told["distinct"], row.records_after) == (last.recall, last.distinct, last.records)
    held = last.recall >= first.recall and last.distinct > first.distinct and last.records < first.records
    fails = {*last.missed} - {*first.missed}
    cells: list[object] = [
        *(conversation, len(lines), first.probes, f"{first.recall:.4f} → {last.recall:.4f}"),
        *(f"{first.distinct:.2f} → {last.distinct:.2f}", f"{first.records} → {last.records}"),
        *(f"{len(fails)} of {len(first.missed)} missed before", "the same" if same else "another"),
        f"{time.perf_counter() - began:.0f}",
    ]
    return cells, held and same and not applied.impact.fell


def _review(plan: int, units: Mapping[str, int]) -> None:
    """Approve what joins rows of one unit, as a reviewer who knows the labels would."""
    from consolidation import review
    from consolidation.models import Operation
    from consolidation.operations import Approval, Kind

    asked = Operation.objects.filter(plan_items__plan=plan, kind=Kind.MERGE, approval=Approval.NEEDS_HUMAN)
    for operation in asked.prefetch_related("sources"):
        held = {units.get(str(source.observation_id)) for source in operation.sources.all()}
        if len(held) == 1 and None not in held:
            review.approve(operation=operation, by="reviewer")


def main() -> int:
    """Print the table; 1 when a conversation misses a bar."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("conversations", nargs="*", metavar="CONVERSATION")
    take_option(parser)
    options = parser.parse_args()
    there = sorted({row["conversation"] for row in rows("locomo_observations.jsonl")})
    with stage():
        from observations.retrieval import current_embedder

        profile = current_embedder().profile
        wanted = options.conversations or there
        found = [consolidated(conversation) for conversation in there if conversation in wanted]
    print(f"{profile.name}, {profile.dimensions} dimensions, one scope per conversation")
    print(table(HEADS, [cells for cells, _ in found]))
    held = sum(held for _, held in found)
    bars = [Bar("conversations that hold every bar", held, len(found), "conversations", least=True)]
    return status(bars, report_only=options.report_only)


if __name__ == "__main__":
    sys.exit(main())

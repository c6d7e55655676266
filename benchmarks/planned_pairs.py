"""Labelled pairs through the whole loop: each pair imported as two records of a scope of its own, embedded, and
planned.

    python -m benchmarks.planned_pairs [--data DIR] [--file pairs_paws.jsonl ...]

`benchmarks.pairs` judges the same pairs with the rule alone; this goes through the store, so that blocking, storing and
the planner's own order count too. A pair that would merge automatically although it is not labelled a duplicate is
printed in full; the exit status is 1 when one of them is not excused in benchmarks/label_noise.py.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.label_noise import excuse
from benchmarks.stage import DATA, stage, table

OUTCOMES = ("automatic", "queued", "skipped", "missed")


@dataclass(frozen=True)
class File:
    """One file of pairs after its plan."""

    name: str
    pairs: Sequence[dict[str, str]]
    outcomes: Sequence[str]  # one of OUTCOMES per pair
    seconds: tuple[float, float, float]  # import, embed, plan

    def wrong(self) -> list[dict[str, str]]:
        """Pairs that would merge by themselves although they are labelled otherwise."""
        judged = zip(self.pairs, self.outcomes, strict=True)
        return [pair for pair, outcome in judged if outcome == "automatic" and pair["label"] != "duplicate"]

    def rows(self) -> list[list[object]]:
        """A row per label; surface variants, which must be found, have a row of their own."""
        judged = list(zip(self.pairs, self.outcomes, strict=True))
        counted = Counter((_label(pair), outcome) for pair, outcome in judged)
        labels = sorted({_label(pair) for pair in self.pairs})
        return [[self.name, label, *(counted[label, outcome] for outcome in OUTCOMES)] for label in labels]


def _label(pair: dict[str, str]) -> str:
    return "surface" if pair.get("kind") == "surface" else pair["label"]


def _lines(name: str, pairs: Sequence[dict[str, str]]) -> list[str]:
    common = {"created_at": "2024-01-01T00:00:00Z", "kind": "observation"}
    return [
        json.dumps({"id": side, "scope": f"pairs/{name}/{number}", "text": pair[side], **common})
        for number, pair in enumerate(pairs)
        for side in "ab"
    ]


def through_the_store(name: str, pairs: Sequence[dict[str, str]]) -> File:
    """Import the pairs, each as a scope of its own, embed and plan them; needs a `stage`."""
    from consolidation import planner
    from observations import ingest
    from observations.models import Scope

    began = time.perf_counter()
    report = ingest.import_lines(_lines(name, pairs))
    assert not report.refused, report.refused[:3]
    imported = time.perf_counter()
    scopes = list(Scope.objects.filter(name__startswith=f"pairs/{name}/"))
    ingest.embed_now(scopes=scopes)
    embedded = time.perf_counter()
    plan = planner.plan(scopes=scopes, pattern=f"pairs/{name}/*", by="benchmark", trigger="command")
    assert plan.state == "complete", plan.failures
    seconds = (imported - began, embedded - imported, time.perf_counter() - embedded)
    return File(name, pairs, _outcomes(plan.pk, len(pairs)), seconds)


def read(path: Path) -> list[dict[str, str]]:
    """The pairs of a file. Raises OSError and ValueError on an unreadable one."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _told(file: File) -> File:
    """The whole takes minutes: each file is said when it is done."""
    seconds = ", ".join(f"{seconds:.1f} s" for seconds in file.seconds)
    records = f"{2 * len(file.pairs)} records in {len(file.pairs)} scopes"
    print(f"{file.name}: {records}; import, embed, plan: {seconds}", flush=True)
    return file


def _outcomes(plan: int, count: int) -> list[str]:
    from consolidation.models import Operation
    from consolidation.operations import Approval, Kind, State

    outcomes = ["missed"] * count
    merges = Operation.objects.filter(plan_items__plan=plan, kind=Kind.MERGE)
    for operation in merges.select_related("scope"):
        number = int(operation.scope.name.rpartition("/")[2])
        if operation.status == State.PLANNED:
            outcomes[number] = "automatic"
        elif operation.approval == Approval.NEEDS_HUMAN:
            outcomes[number] = "queued"
        elif outcomes[number] == "missed":
            outcomes[number] = "skipped"
    return outcomes


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table and every wrong merge; 2 when the data is not there."""
    parser = argparse.ArgumentParser(description="Labelled pairs, imported and planned.")
    parser.add_argument("--data", type=Path, default=DATA, help="the folder of the pairs_*.jsonl files")
    parser.add_argument("--file", action="append", default=[], help="only this file; may be given again")
    arguments = parser.parse_args(argv)
    paths = sorted(
        path for path in arguments.data.glob("pairs_*.jsonl") if not arguments.file or path.name in arguments.file
    )
    if not paths:
        sys.stderr.write(f"No pairs_*.jsonl in {arguments.data}: name their folder with --data.\n")
        return 2
    with stage(durable=False):
        files = [_told(through_the_store(path.stem, read(path))) for path in paths]
    print(table(["file", "label", *OUTCOMES], [row for file in files for row in file.rows()]))
    wrong = [(file.name, pair) for file in files for pair in file.wrong()]
    reasons = [excuse(pair["id"], pair["a"], pair["b"]) for _, pair in wrong]
    for (name, pair), reason in zip(wrong, reasons, strict=True):
        print(f"WOULD MERGE {name} {pair['id']} ({pair['label']}): {reason or 'WRONG'}\n  {pair['a']}\n  {pair['b']}")
    return int(not all(reasons))


if __name__ == "__main__":
    raise SystemExit(main())

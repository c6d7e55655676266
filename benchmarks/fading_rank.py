"""What fading does to rank: recall@5 of real questions, and whether the current value of a fact comes first.

`python -m benchmarks.fading_rank`. Three stores: the conversations of locomo as they are dated, years ago; the same
with each conversation moved so that it ended an hour ago, where old and new are equally asked for; and the dated facts
of facts_timeline.jsonl, whose values all stay live, the current one said 10 days ago and each earlier one 60 days
before the next. Every observation is a fact with its half-life of 180 days.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from benchmarks.reading_memory import K, Question, _recall, questions
from benchmarks.stage import DATA, stage, table

WEIGHTS = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3)  # of its score that a row may lose; `search` has one of them
MOVED, FACTS = "moved/", "facts"  # scopes of the second and the third store
NEWEST, APART = timedelta(days=10), timedelta(days=60)


@dataclass(frozen=True)
class Value:
    """One key of the third store: what is asked, and the ids of its values, the current one first."""

    query: str
    ids: tuple[str, ...]


def _rows(name: str) -> list[dict[str, str]]:
    with (DATA / name).open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def conversations() -> None:
    """The first two stores: one conversation is one scope."""
    from observations import ingest
    from observations.models import database_now

    rows = _rows("locomo_observations.jsonl")
    said = {row["id"]: datetime.fromisoformat(row["created_at"]) for row in rows}
    ended: dict[str, datetime] = {}
    for row in rows:
        ended[row["conversation"]] = max(said[row["id"]], ended.get(row["conversation"], said[row["id"]]))
    now = database_now() - timedelta(hours=1)
    moved = (
        {
            **row,
            "conversation": MOVED + row["conversation"],
            "created_at": (said[row["id"]] + (now - ended[row["conversation"]])).isoformat(),
        }
        for row in rows
    )
    ingest.import_lines(map(json.dumps, rows), scope_field="conversation")
    ingest.import_lines(map(json.dumps, moved), scope_field="conversation")


def facts() -> list[Value]:
    """The third store, and what to ask it: keys whose newest values tie are left out."""
    from observations import ingest
    from observations.models import database_now

    keys: defaultdict[tuple[str, str], list[dict[str, str]]] = defaultdict(list)
    for row in _rows("facts_timeline.jsonl"):
        keys[row["subject"], row["predicate"]].append(row)
    now, lines, values = database_now(), [], []
    for key, rows in keys.items():
        rows.sort(key=lambda row: row["valid_from"], reverse=True)
        if len(rows) > 1 and rows[0]["valid_from"] != rows[1]["valid_from"]:
            values.append(Value(" ".join(key), tuple(row["id"] for row in rows)))
        for place, row in enumerate(rows):
            claim = {"id": row["id"], "text": f"{' '.join(key)} {row['object']}"}
            lines.append(json.dumps({**claim, "created_at": (now - NEWEST - place * APART).isoformat()}))
    ingest.import_lines(lines, scope=FACTS)
    return values


def found(weight: float, asked: Sequence[tuple[str, str]]) -> Iterator[list[str]]:
    """The external ids that `search` gives for (scope, query), were its weight of fading this one."""
    from django.test import override_settings

    from observations import retrieval
    from observations.models import Scope

    scopes = {scope.name: scope for scope in Scope.objects.all()}
    with override_settings(PALIMPSEST_SEARCH_FADING=weight):
        for name, query in asked:
            answer = retrieval.search(scope=scopes[name], query=query, k=K, call_site="search")
            yield [hit.external_id for hit in answer.hits]


def recalls(weight: float, asked: Sequence[Question], *, prefix: str = "") -> list[float]:
    """Recall@5 of every question."""
    answers = found(weight, [(prefix + question.scope, question.query) for question in asked])
    return [_recall(question, set(answer)) for question, answer in zip(asked, answers, strict=True)]


def current_first(weight: float, values: Sequence[Value]) -> tuple[float, float]:
    """Share of keys whose current value is the first answer; and recall@5 of all their values."""
    first, every = [], []
    answers = found(weight, [(FACTS, value.query) for value in values])
    for value, answer in zip(values, answers, strict=True):
        first.append(float(answer[:1] == [value.ids[0]]))
        every.append(len(set(value.ids) & set(answer)) / min(len(value.ids), K))
    return statistics.mean(first), statistics.mean(every)


def change(before: Sequence[float], after: Sequence[float]) -> str:
    """The mean difference of paired figures and half the width of its 95% interval."""
    differences = [b - a for a, b in zip(before, after, strict=True)]
    half = 1.96 * statistics.stdev(differences) / len(differences) ** 0.5
    return f"{statistics.mean(differences):+.4f} ± {half:.4f}"


def report(asked: Sequence[Question], values: Sequence[Value]) -> None:
    """One line per weight."""
    stores: Mapping[str, str] = {"as dated": "", "moved": MOVED}
    without = {name: recalls(0.0, asked, prefix=prefix) for name, prefix in stores.items()}
    lines = []
    for weight in WEIGHTS:
        dated, moved = (recalls(weight, asked, prefix=prefix) for prefix in stores.values())
        first, every = current_first(weight, values)
        lines.append(
            [
                f"{weight:.2f}",
                *(f"{statistics.mean(dated):.4f}", f"{statistics.mean(moved):.4f}", change(without["moved"], moved)),
                *(f"{first:.3f}", f"{every:.3f}"),
            ]
        )
    heads = [
        "may lose",
        "recall@5, as dated",
        "recall@5, ended now",
        "change",
        "current value first",
        "its values in 5",
    ]
    print(table(heads, lines))
    print(f"\n{len(asked)} questions, {len(values)} keys, {sum(len(value.ids) for value in values)} of their values")


def main() -> int:
    """Print all figures; 1 when the data is not there."""
    if not (DATA / "locomo_probes.jsonl").is_file():
        sys.stderr.write("The data files are not there: set PALIMPSEST_DATA to their folder.\n")
        return 1
    with stage(durable=False):
        from observations import ingest
        from observations.models import Scope

        conversations()
        values = facts()
        ingest.embed_now(scopes=Scope.objects.all())
        report(questions(), values)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""What a prompt leaves out as irrelevant, what it marks as outdated, and what a search finds of the past.

`python -m benchmarks.reading_rules`. The floor is measured on questions of locomo_probes.jsonl: asked of their own
conversation, where an answer below it is lost, and of the conversations in which nobody bears a name that the question
holds, where a row above it is noise. Dated facts (facts_timeline.jsonl) are loaded as one scope, each value superseding
the last of its key.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from benchmarks.reading_memory import Question, import_and_embed, questions
from benchmarks.stage import DATA, stage, table

if TYPE_CHECKING:
    from observations.embedding import Embedder
    from observations.models import Scope
    from observations.retrieval import Hit

EVERY = 3  # of so many questions one is asked
FACTS = "facts"


def _rows(name: str) -> list[dict[str, str]]:
    with (DATA / name).open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


# --- the floor -------------------------------------------------------------------------------------------------------


def floor(asked: Sequence[Question], embedder: Embedder) -> list[str]:
    """The two error rates of a profile's floor, on the ten rows that a prompt would be given."""
    from observations.models import Observation, Scope

    names: defaultdict[str, set[str]] = defaultdict(set)
    for within, subject in Observation.objects.values_list("scope__name", "subject").distinct():
        names[within].add(subject.casefold())
    ids = dict(Observation.objects.values_list("pk", "external_id"))
    found, lost, foreign = 0, 0, []
    for question in asked:
        for scope in Scope.objects.all():
            if scope.name == question.scope:
                wanted = [hit for hit in _hits(scope, question, embedder) if ids[hit.id] in question.expected]
                found, lost = found + len(wanted), lost + sum(not hit.relevant for hit in wanted)
            elif not any(name in question.query.casefold() for name in names[scope.name]):
                foreign.append(sum(hit.relevant for hit in _hits(scope, question, embedder)))
    noisy = sum(rows > 0 for rows in foreign)
    profile = embedder.profile
    return [
        *(profile.name, f"{profile.t_relevant:.2f}", f"{profile.relevant_words:.2f}"),
        f"{lost / found:.3f} of {found}",
        f"{noisy / len(foreign):.3f} of {len(foreign)}",
        f"{statistics.mean(foreign):.2f}",
    ]


def _hits(scope: Scope, question: Question, embedder: Embedder) -> Sequence[Hit]:
    from observations import retrieval

    return retrieval.look(scope=scope, query=question.query, k=10, call_site="context", embedder=embedder).hits


# --- dated facts -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Value:
    """One value of a key, and the moment in the middle of its period."""

    id: str
    subject: str
    predicate: str
    probe: str
    began: datetime
    ended: datetime

    @property
    def middle(self) -> datetime:
        """Half way through."""
        return self.began + (self.ended - self.began) / 2


def facts() -> list[list[Value]]:
    """Load them; per key its values, the current one last. Keys whose newest values tie are left out."""
    from observations import ingest
    from observations.models import Scope

    keys: defaultdict[tuple[str, str], list[dict[str, str]]] = defaultdict(list)
    for row in _rows("facts_timeline.jsonl"):
        if _moment(row["valid_from"]) <= _moment(row["valid_to"]):
            keys[row["subject"], row["predicate"]].append(row)
    lines, values = [], []
    for rows in keys.values():
        rows.sort(key=lambda row: row["valid_from"])
        if len(rows) > 1 and rows[-1]["valid_from"] == rows[-2]["valid_from"]:
            continue
        for row, later in zip(rows, [*rows[1:], None], strict=True):
            replaced = {"status": "superseded", "superseded_by": later["id"]} if later else {}
            lines.append(json.dumps({**row, **replaced}))
        values.append([_value(row) for row in rows])
    ingest.import_lines(lines, scope=FACTS)
    ingest.embed_now(scopes=Scope.objects.filter(name=FACTS))
    return values


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(f"{text}-01-01"[:10]).replace(tzinfo=UTC)


def _value(row: dict[str, str]) -> Value:
    began, ended = _moment(row["valid_from"]), _moment(row["valid_to"])
    return Value(row["id"], row["subject"], row["predicate"], row["probe"], began, ended)


def dated(values: Sequence[Sequence[Value]]) -> Iterator[list[str]]:
    """Of each key: is its current value shown, unmarked; and of each value: is it what was believed in its time?"""
    from observations import prompting, retrieval
    from observations.models import Observation, Scope

    scope = Scope.objects.get(name=FACTS)
    names = dict(Observation.objects.in_scope(scope).values_list("pk", "external_id"))
    shown, unmarked, returned, by_key = [], [], [], []
    for value in (key[-1] for key in values):
        by_key.append(value.id in _shown(scope, f"{value.subject} {value.predicate}", names))
        hits = retrieval.look(scope=scope, query=value.probe, k=30, call_site="context").hits
        lines = prompting.observation_lines(scope=scope, hits=hits, about=value.probe, now=value.middle)
        of_it = [line.text for line in lines if names[line.id] == value.id]
        shown.append(bool(of_it))
        unmarked.append(bool(of_it) and prompting.OUTDATED not in of_it[0].split("]")[0])
        narrowed = retrieval.Narrowed(subject=value.subject)
        returned.append(value.id in _ids(scope, value, narrowed, names))
    yield ["current value in the prompt for its subject and predicate", *_share(by_key)]
    yield ["current value in the prompt for its probe", *_share(shown)]
    yield [
        "of those, unmarked at the middle of its period",
        *_share([u for s, u in zip(shown, unmarked, strict=True) if s]),
    ]
    yield ["current value found within its subject, k = 5", *_share(returned)]
    for within_subject in (True, False):
        right = [_believed(scope, value, key, names, within_subject) for key in values for value in key]
        told = [answer for answer in right if answer is not None]
        where = "within its subject" if within_subject else "among all subjects"
        yield [
            f"as of the middle of a period, {where}: a value of the key is found",
            *_share([r is not None for r in right]),
        ]
        yield [f"as of the middle of a period, {where}: it is one whose period holds the moment", *_share(told)]


def _shown(scope: Scope, about: str, names: dict[int, str]) -> list[str]:
    from observations import prompting, retrieval

    hits = retrieval.look(scope=scope, query=about, k=30, call_site="context").hits
    return [names[line.id] for line in prompting.observation_lines(scope=scope, hits=hits, about=about)]


def _ids(scope: Scope, value: Value, narrowed: object, names: dict[int, str]) -> list[str]:
    from observations import retrieval

    assert isinstance(narrowed, retrieval.Narrowed)
    answer = retrieval.search(scope=scope, query=value.probe, k=5, call_site="search", narrowed=narrowed)
    return [names[hit.id] for hit in answer.hits]


def _believed(
    scope: Scope, value: Value, key: Sequence[Value], names: dict[int, str], within_subject: bool
) -> bool | None:
    """Whether the first value of the key that is found as of a moment holds then; None where none is found."""
    from observations import retrieval

    narrowed = retrieval.Narrowed(as_of=value.middle, subject=value.subject if within_subject else "")
    known = {each.id: each for each in key}
    first = next((known[name] for name in _ids(scope, value, narrowed, names) if name in known), None)
    return None if first is None else first.began <= value.middle <= first.ended


def _share(told: Sequence[bool]) -> list[str]:
    return [f"{statistics.mean(told):.3f}", f"{len(told)}"]


def main() -> int:
    """Print all figures; 1 when the data is not there."""
    if not (DATA / "locomo_probes.jsonl").is_file():
        sys.stderr.write("The data files are not there: set PALIMPSEST_DATA to their folder.\n")
        return 1
    with stage(durable=False):
        from observations import ingest, retrieval
        from observations.embedding import HASHING, Hashing
        from observations.models import Observation, Scope

        if "--facts" not in sys.argv:
            import_and_embed()
            for scope in Scope.objects.all():
                last = Observation.objects.latest("pk").pk
                ingest.embed_missing(scope_id=scope.pk, first=0, last=last, embedder=Hashing())
            heads = [
                "embedder",
                "floor",
                "or share of words",
                "answers lost",
                "irrelevant questions with a row",
                "rows each",
            ]
            asked = questions()[::EVERY]
            print(table(heads, [floor(asked, embedder) for embedder in (retrieval.current_embedder(), Hashing())]))
            print(f"\n{len(asked)} questions, ten rows each; {HASHING.name} knows nothing of meaning\n")
        print(table(["dated facts", "share", "of"], list(dated(facts()))))
    return 0


if __name__ == "__main__":
    sys.exit(main())

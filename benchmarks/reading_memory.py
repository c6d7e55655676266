"""Import, embedding and search of real observations, and search in large scopes.

`python -m benchmarks.reading_memory`. Rows, scope sizes and the embedder are printed beside every figure. The ways of
ranking are compared on the questions of locomo_probes.jsonl, without the adversarial ones, which want no answer.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.stage import DATA, stage, table

if TYPE_CHECKING:
    from observations.models import Scope

K = 5
BIG, SMALL, SMALL_SCOPES = 10_000, 1_000, 20  # rows of made-up text in the large store


@dataclass(frozen=True)
class Question:
    """One probe: what is asked, where, and which observations answer it."""

    scope: str
    query: str
    expected: frozenset[str]


def questions() -> list[Question]:
    """The probes that some observation answers."""
    with (DATA / "locomo_probes.jsonl").open(encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    return [
        Question(row["conversation"], row["query"], frozenset(row["expected_observation_ids"]))
        for row in rows
        if row["expected_observation_ids"] and row["category"] != "adversarial"
    ]


def import_and_embed() -> None:
    """One conversation is one scope, as the questions need it."""
    from observations import ingest
    from observations.models import Scope

    began = time.perf_counter()
    with (DATA / "locomo_observations.jsonl").open("rb") as file:
        report = ingest.import_lines(file, scope_field="conversation")
    stored = time.perf_counter()
    count = ingest.embed_now(scopes=Scope.objects.all()).total
    embedded = time.perf_counter()
    print(f"import: {report.added:,} observations of {len(report.scopes)} scopes in {stored - began:.2f} s")
    print(f"embed: {count:,} in {embedded - stored:.2f} s ({count / (embedded - stored):.0f}/s, one thread)\n")


def ranking(asked: Sequence[Question]) -> None:
    """Recall@5 by meaning alone, by words alone, and as `search` ranks."""
    from observations import retrieval
    from observations.models import Observation, Scope
    from observations.retrieval.asking import asked_of
    from observations.retrieval.meaning import by_meaning
    from observations.retrieval.words import by_words

    scopes = {scope.name: scope for scope in Scope.objects.all()}
    names = dict(Observation.objects.values_list("pk", "external_id"))
    embedder = retrieval.current_embedder()
    found: dict[str, list[float]] = {"meaning": [], "words": [], "search": []}
    seconds = []
    for question in asked:
        scope = scopes[question.scope]
        vector = asked_of(question.query, embedder)
        ways = {
            "meaning": by_meaning(scope, vector).best(K).tolist(),
            "words": by_words(scope, question.query).best(K).tolist(),
        }
        began = time.perf_counter()
        answer = retrieval.search(scope=scope, query=question.query, k=K, call_site="search")
        seconds.append(time.perf_counter() - began)
        for way, ids in ways.items():
            found[way].append(_recall(question, {names[pk] for pk in ids}))
        found["search"].append(_recall(question, {hit.external_id for hit in answer.hits}))
    print(
        table(["ranked by", f"recall@{K}"], [[way, f"{statistics.mean(values):.3f}"] for way, values in found.items()])
    )
    sizes = [Observation.objects.filter(scope=scope).count() for scope in scopes.values()]
    print(
        f"\n{len(asked)} questions, scopes of {min(sizes)} to {max(sizes)} observations, {embedder.profile.name};"
        f" one search {_spread(seconds)}\n"
    )


def _recall(question: Question, top: set[str]) -> float:
    return len(question.expected & top) / min(len(question.expected), K)


def _spread(seconds: Sequence[float]) -> str:
    return f"{np.median(seconds) * 1000:.1f} ms (p95 {np.percentile(seconds, 95) * 1000:.1f} ms)"


def large_scopes(asked: Sequence[Question]) -> None:
    """Searches of a large scope and of a small one, in one store."""
    from observations import retrieval
    from observations.models import Observation

    with (DATA / "persona_observations.jsonl").open(encoding="utf-8") as file:
        texts = [json.loads(line)["text"] for line in file]
    for number in range(SMALL_SCOPES):
        _fill(f"small/{number}", texts, SMALL)
    big, small = _fill("big", texts, BIG), _fill("small", texts, SMALL)
    rows = []
    for scope, size in ((big, BIG), (small, SMALL)):
        seconds = []
        for question in asked[:200]:
            began = time.perf_counter()
            answer = retrieval.search(scope=scope, query=question.query, k=10, call_site="context")
            seconds.append(time.perf_counter() - began)
            assert len(answer.hits) == 10
        rows.append([f"{size:,}", _spread(seconds)])
    print(table(["rows in scope", "one search, k = 10"], rows))
    print(f"\n{Observation.objects.count():,} observations in the store; vectors made up, query embedding included")


def _fill(name: str, texts: Sequence[str], size: int) -> Scope:
    """A scope of made-up rows with made-up vectors: only their number matters here."""
    from django.db import transaction

    from observations import retrieval, store
    from observations.records import Claim, WrittenBy

    profile = retrieval.current_embedder().profile
    random = np.random.default_rng(size)
    scope = store.open_scope(name=name)
    for start in range(0, size, 1_000):
        claims = [Claim(text=f"{texts[n % len(texts)]} ({n})") for n in range(start, min(start + 1_000, size))]
        with transaction.atomic():
            written = store.add_observations(scope=scope, claims=claims, written_by=WrittenBy.IMPORT)
            vectors = random.standard_normal((len(claims), profile.dimensions), dtype=np.float32)
            vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
            rows = [(scope.pk, row.id or 0) for row in written]
            store.put_embeddings(profile=profile, rows=rows, vectors=vectors, bands=[b"\0" * 128] * len(rows))
    return scope


def main() -> int:
    """Print all figures; 1 when the data is not there."""
    if not (DATA / "locomo_probes.jsonl").is_file():
        sys.stderr.write("The data files are not there: set PALIMPSEST_DATA to their folder.\n")
        return 1
    with stage(durable=True):
        asked = questions()
        import_and_embed()
        ranking(asked)
        large_scopes(asked)
    return 0


if __name__ == "__main__":
    sys.exit(main())

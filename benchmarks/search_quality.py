"""How good a search is on real dialogue: hit@5 and recall@5 of it, of each of its parts, and of reciprocal ranks.

`python -m benchmarks.search_quality`. One conversation of locomo is one scope; the questions are those that some
observation answers, without the adversarial ones. hit@5: any expected observation is among five; recall@5: the share of
the expected ones that is. `search` is also asked with other weights, which says how much hangs on them.
"""

from __future__ import annotations

import statistics
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence

from benchmarks.reading_memory import K, Question, import_and_embed, questions
from benchmarks.stage import DATA, stage, table

POOL, RECIPROCAL = 1_000, 60
WORDS = (0.25, 0.45)  # other weights than the settings' 0.35
SUBJECT = (0.0, 0.5)


def parts(question: Question, scopes: Mapping[str, object]) -> dict[str, list[int]]:
    """The five best by each part alone, and by their reciprocal ranks."""
    from observations import retrieval
    from observations.models import Scope
    from observations.retrieval.asking import asked_of
    from observations.retrieval.meaning import by_meaning
    from observations.retrieval.words import by_words

    scope = scopes[question.scope]
    assert isinstance(scope, Scope)
    vector = asked_of(question.query, retrieval.current_embedder())
    near, held = (part.best(POOL).tolist() for part in (by_meaning(scope, vector), by_words(scope, question.query)))
    fused: dict[int, float] = defaultdict(float)
    for place, pk in (*enumerate(near, start=1), *enumerate(held, start=1)):
        fused[pk] += 1 / (RECIPROCAL + place)
    by_ranks = sorted(fused, key=lambda pk: (-fused[pk], pk))
    ways = {"meaning alone": near, "words alone": held, f"reciprocal ranks, k = {RECIPROCAL}": by_ranks}
    return {way: ids[:K] for way, ids in ways.items()}


def searched(question: Question, scopes: Mapping[str, object]) -> list[int]:
    """The five best by `search`."""
    from observations import retrieval
    from observations.models import Scope

    scope = scopes[question.scope]
    assert isinstance(scope, Scope)
    return [hit.id for hit in retrieval.look(scope=scope, query=question.query, k=K, call_site="search").hits]


def figures(asked: Sequence[Question], found: Sequence[Sequence[int]], names: Mapping[int, str]) -> list[str]:
    """hit@5 and recall@5."""
    got = [question.expected & {names[pk] for pk in ids} for question, ids in zip(asked, found, strict=True)]
    recall = [len(each) / len(question.expected) for question, each in zip(asked, got, strict=True)]
    return [f"{statistics.mean(bool(each) for each in got):.4f}", f"{statistics.mean(recall):.4f}"]


def report(asked: Sequence[Question]) -> list[list[str]]:
    """One line per way of searching."""
    from django.test import override_settings

    from observations.models import Observation, Scope

    scopes = {scope.name: scope for scope in Scope.objects.all()}
    names = dict(Observation.objects.values_list("pk", "external_id"))
    alone = [parts(question, scopes) for question in asked]
    lines = [[way, *figures(asked, [each[way] for each in alone], names)] for way in alone[0]]

    def search() -> list[list[int]]:
        return [searched(question, scopes) for question in asked]

    lines.append(["search", *figures(asked, search(), names)])
    for name, weights in (("WORDS", WORDS), ("SUBJECT", SUBJECT)):
        for weight in weights:
            with override_settings(**{f"PALIMPSEST_SEARCH_{name}": weight}):
                lines.append([f"search, PALIMPSEST_SEARCH_{name}={weight}", *figures(asked, search(), names)])
    return lines


def main() -> int:
    """Print all figures; 1 when the data is not there."""
    if not (DATA / "locomo_probes.jsonl").is_file():
        sys.stderr.write("The data files are not there: set PALIMPSEST_DATA to their folder.\n")
        return 1
    with stage(durable=False):
        from django.db.models import Count

        from observations import retrieval
        from observations.models import Scope

        asked = questions()
        import_and_embed()
        print(table(["ranked by", f"hit@{K}", f"recall@{K}"], report(asked)))
        sizes = sorted(Scope.objects.annotate(n=Count("observations")).values_list("n", flat=True))
        profile = retrieval.current_embedder().profile
        print(
            f"\n{len(asked)} questions, scopes of {sizes} observations, {profile.name}, {profile.dimensions} dimensions"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())

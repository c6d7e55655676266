"""How many questions five real scopes cost, and what comes to lie together in them. Their text stays where it is."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from functools import cache
from itertools import combinations

import numpy as np
import pytest

from consolidation import promote
from consolidation.policy import Policy
from consolidation.promote.finding import Vectors
from observations.embedding import Hashing
from observations.records import EpisodeRecord
from tests.jsonl import real
from tests.unit.promoting import episode


@cache
def scopes() -> Mapping[str, tuple[EpisodeRecord, ...]]:
    """The episodes of each conversation; ids follow the file."""
    found: defaultdict[str, list[EpisodeRecord]] = defaultdict(list)
    for number, line in enumerate(real("locomo_episodes.jsonl").read_text(encoding="utf-8").splitlines(), start=1):
        row = json.loads(line)
        made = episode(number, row["text"], root=row["source_uri"], speaker=row["speaker"], session=str(row["session"]))
        made = replace(made, happened_at=datetime.fromisoformat(row["created_at"]), seq=row["seq"])
        found[row["scope"]].append(made)
    return {scope: tuple(rows) for scope, rows in found.items()}


@cache
def vectors(scope: str) -> Vectors:
    rows = scopes()[scope]
    return np.array([row.id for row in rows], np.int64), Hashing().embed([row.text for row in rows])


@cache
def found(scope: str, *, with_vectors: bool = True, upto: int | None = None) -> promote.Found:
    near = vectors(scope) if with_vectors else None
    return promote.clusters(episodes=scopes()[scope][:upto], policy=Policy(), vectors=near, t_near=0.5)


def agreeing() -> Iterator[tuple[str, int, int]]:
    """Pairs of episodes that together answer one question: (scope, id, id)."""
    ids = {row.root_source: (scope, row.id) for scope, rows in scopes().items() for row in rows}
    for line in real("locomo_probes.jsonl").read_text(encoding="utf-8").splitlines():
        probe = json.loads(line)
        places = sorted({ids[uri] for uri in probe["evidence_uris"] if uri in ids})
        if probe["category"] != "adversarial" and len(places) <= 6:
            yield from ((one[0], one[1], two[1]) for one, two in combinations(places, 2) if one[0] == two[0])


def test_questions_are_few() -> None:
    """Well under a fifth of 2,960 episodes."""
    episodes = sum(map(len, scopes().values()))
    asked = [one for scope in scopes() for one in found(scope).clusters]
    sizes = [len(one.episodes) for one in asked]
    print(
        f"{len(asked)} clusters of {episodes} episodes: {min(sizes)} to {max(sizes)}, {np.mean(sizes):.1f} on average"
    )
    assert episodes == 2_960
    assert len(asked) <= episodes / 8
    assert 2 <= min(sizes) <= max(sizes) <= promote.MAX_EPISODES


@pytest.mark.parametrize("with_vectors", [True, False])
def test_episodes_that_answer_one_question_lie_together_far_more_often_than_by_chance(with_vectors: bool) -> None:
    """Against as many clusters of as many episodes drawn at random: the naive control."""
    drawn = np.random.default_rng(0)
    hits = chance = total = 0
    random: dict[str, list[set[int]]] = {}
    clusters: dict[str, list[set[int]]] = {}
    for scope, rows in scopes().items():
        clusters[scope] = [set(one.ids) for one in found(scope, with_vectors=with_vectors).clusters]
        ids = [row.id for row in rows]
        random[scope] = [set(drawn.choice(ids, len(one), replace=False).tolist()) for one in clusters[scope]]
    for scope, one, two in set(agreeing()):
        total += 1
        hits += any({one, two} <= cluster for cluster in clusters[scope])
        chance += any({one, two} <= cluster for cluster in random[scope])
    print(f"{hits / total:.2f} of {total} pairs lie together, {chance / total:.2f} by chance")
    assert hits / total >= 0.5
    assert hits / total >= 1.5 * chance / total


def test_a_further_session_leaves_the_questions_asked_before_as_they_are() -> None:
    """R93: only what is new is asked about."""
    for scope, rows in scopes().items():
        before = {one.ids for one in found(scope, upto=len(rows) - 25).clusters}
        after = {one.ids for one in found(scope).clusters}
        assert len(before - after) <= 1
        assert len(after - before) <= 25 // 7 + 2


def test_no_question_on_real_episodes_lets_one_out_of_its_line() -> None:
    """C15."""
    for scope in scopes():
        for one in found(scope).clusters:
            text = promote.request(cluster=one).text
            assert text.count("<") == 2
            assert len(text.splitlines()) == len(one.episodes) + 4

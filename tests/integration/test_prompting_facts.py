"""Dated facts of the real world in one scope: asked for by its key, the value that is current is in the prompt.

`python -m benchmarks.reading_rules --facts` asks for all of them, by key and by question.
"""

from __future__ import annotations

import json

import pytest

from observations import ingest, prompting
from observations.embedding import embedder
from observations.models import Observation, Scope
from tests.jsonl import real

EVERY = 16  # of so many keys one is asked for, among the current values of all
HASHING = embedder("hashing")


def current_values() -> list[dict[str, str]]:
    """Load the newest value of each key, the one that ends last."""
    newest: dict[tuple[str, str], dict[str, str]] = {}
    for line in real("facts_timeline.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        key = (row["subject"], row["predicate"])
        if row["valid_from"] <= (row["valid_to"] or "9999"):
            newest[key] = max(newest.get(key, row), row, key=lambda each: each["valid_from"])
    ingest.import_lines([json.dumps(row) for row in newest.values()], scope="facts")
    ids = Observation.objects.active().values_list("pk", flat=True)
    ingest.embed_missing(scope_id=Scope.objects.get().pk, first=min(ids), last=max(ids), embedder=HASHING)
    return list(newest.values())


@pytest.mark.django_db
def test_the_current_value_of_a_key_is_in_the_prompt_that_asks_for_it() -> None:
    """Though most of the texts do not say what they are about."""
    values = current_values()
    within = Scope.objects.get()
    names = dict(Observation.objects.values_list("external_id", "pk"))
    asked = values[::EVERY]
    missing = []
    for value in asked:
        about = f"{value['subject']} {value['predicate']}"
        made = prompting.prompt(scope=within, about=about, embedder=HASHING)
        missing += [about] if names[value["id"]] not in made.observation_ids else []
    assert len(asked) > 15
    assert not missing

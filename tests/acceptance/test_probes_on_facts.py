"""Files of questions and of dated facts, read as they stand by the command, where the data lies; it is not copied."""

from __future__ import annotations

import json

import pytest

from observations import ingest
from observations.models import Observation
from tests.acceptance import engine
from tests.building import scope
from tests.integration.test_probing import probe
from tests.jsonl import real

pytestmark = pytest.mark.django_db

KEYS = 25  # of the 270, so that the test stays short


def test_dated_facts_are_asked_for_their_newest_value_as_their_file_stands() -> None:
    """R112: each key's newest value is expected, and the earlier ones are outdated."""
    here = scope("facts")
    path = real("facts_timeline.jsonl")
    facts = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    keys = dict.fromkeys((fact["subject"], fact["predicate_id"]) for fact in facts)
    kept = [fact for fact in facts if (fact["subject"], fact["predicate_id"]) in list(keys)[:KEYS]]
    fields = ("id", "subject", "predicate", "object", "text", "source_uris")
    ingest.import_lines([json.dumps({name: fact[name] for name in fields}) for fact in kept], scope=here.name)
    engine.put_bands(here)
    assert Observation.objects.filter(scope=here).count() == len(kept)
    ran = probe(f"run {path} --scope facts --json")
    assert ran.status == 0
    document = ran.document
    assert 0 < document["probes"] <= KEYS
    assert document["measures"]["recall"] > 0.3
    assert document["measures"]["stale"] is not None


def test_questions_about_dialogue_are_asked_as_their_file_stands() -> None:
    """R112: those of other conversations are left out and counted, adversarial ones are negative."""
    here = scope("locomo/conv-26")
    rows = real("locomo_observations.jsonl").read_text(encoding="utf-8").splitlines()
    own = [row for row in rows if json.loads(row)["conversation"] == "conv-26"][:60]
    ingest.import_lines(own, scope=here.name)
    engine.put_bands(here)
    ran = probe(f"run {real('locomo_probes.jsonl')} --scope {here.name} --json")
    document = ran.document
    assert ran.status == 0
    assert document["probes"] > 10
    assert document["negative_probes"] > 0
    assert document["measures"]["recall"] > 0.3

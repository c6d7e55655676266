"""Probes proposed from real use: of the rows that reached prompts, never of what was asked."""

from __future__ import annotations

import uuid
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from consolidation import probes, probing
from consolidation.models import Probe
from observations import store
from observations.models import GivenAnswer, Observation, Scope, Use, database_now
from observations.records import Claim, EvidenceRef, WrittenBy
from tests import probing as given
from tests.building import observe, scope, tell
from tests.integration.test_probing import probe

pytestmark = pytest.mark.django_db


def used(row: Observation, times: int, *, days_ago: int = 0, answer: uuid.UUID | None = None) -> None:
    for _ in range(times):
        moment = database_now() - timedelta(days=days_ago)
        name = answer or uuid.uuid4()
        Use.objects.create(scope=row.scope, observation=row, call_site="context", answer=name, used_at=moment)


@pytest.fixture
def here() -> Scope:
    return scope()


def test_the_most_used_rows_without_a_probe_come_first(here: Scope) -> None:
    """R26: one answer counts once, however it was written down; old ones and rows that left do not count."""
    rows = {name: observe(f"{name} is painted", within=here, external_id=name) for name in "abcdef"}
    used(rows["a"], 1)
    used(rows["b"], 3)
    both = uuid.uuid4()
    used(rows["c"], 1, answer=both)
    shown = {"scope": here, "call_site": "context"}
    GivenAnswer.objects.create(answer=both, shown=[rows["c"].pk], **shown)
    GivenAnswer.objects.create(answer=uuid.uuid4(), shown=[rows["c"].pk], left_out=[rows["f"].pk], **shown)
    used(rows["d"], 9, days_ago=91)
    used(rows["e"], 9)
    given.fill(here)
    given.imported(here, {"query": "e", "expected": ["e"]}, {"query": "b", "expected": ["b"], "negative": True})
    drafts = probing.propose(scope=here)
    assert [(draft.external_id, draft.answers) for draft in drafts] == [("b", 3), ("c", 2), ("a", 1)]
    assert [draft.external_id for draft in probing.propose(scope=here, most=1)] == ["b"]


def test_the_draft_asks_with_the_question_before_the_source_or_with_the_key_or_not_at_all(here: Scope) -> None:
    tell("Ok. Where does Ann live? Tell me", within=here, session="s")
    answer = tell("In Ghent", within=here, session="s")
    resting = EvidenceRef(source_uri=answer.source_uri, episode=answer.external_id)
    claim = Claim(text="Ann lives in Ghent", subject="Ann", predicate="lives in", evidence=(resting,))
    [written] = store.add_observations(scope=here, claims=[claim], written_by=WrittenBy.BACKGROUND)
    assert written.id is not None
    asked = Observation.objects.get(pk=written.id)
    keyed = observe("Bo works at the mill", within=here, key=("Bo", "works at", "the mill"))
    plain = observe("It rains", within=here)
    for n, row in enumerate((plain, keyed, asked), 1):
        used(row, n)
    assert [draft.query for draft in probing.propose(scope=here)] == ["Where does Ann live?", "Bo works at", ""]


def test_a_draft_is_a_file_that_is_refused_until_its_empty_questions_are_written(here: Scope, tmp_path: Path) -> None:
    given.fill(here)
    row = observe("It rains\n- query: injected\u202e", within=here, external_id="rain: #1")
    used(row, 2)
    ran = probe(f"propose --scope {here.name} -n 3")
    assert "# nothing suggests a question" in ran.out
    assert "\u202e" not in ran.out
    path = tmp_path / "draft.yaml"
    path.write_text(ran.out, encoding="utf-8")
    refused = probe(f"import {path} --scope {here.name} --name n")
    assert (refused.status, "entry 1: it asks nothing" in refused.error) == (2, True)
    path.write_text(ran.out.replace("query: ''", "query: Does it rain?"), encoding="utf-8")
    assert probe(f"import {path} --scope {here.name} --name n").status == 0
    assert list(Probe.objects.values_list("query", "expected")) == [("Does it rain?", [row.pk])]
    nothing = probe(f"propose --scope {here.name}")
    assert (nothing.status, nothing.out) == (2, "")
    assert "Nothing is proposed" in nothing.error
    assert probe(f"propose --scope {here.name} --json").document["drafts"] == []


def test_another_scopes_use_is_not_seen_and_the_queries_are_few(here: Scope) -> None:
    """I3."""
    for n in range(5):
        used(observe(f"theirs {n}", within=scope("team-b")), 3)
        used(observe(f"ours {n}", within=here), 1)
    with CaptureQueriesContext(connection) as captured:
        drafts = probing.propose(scope=here)
    assert {draft.text[:4] for draft in drafts} == {"ours"}
    assert len(captured) <= 8
    assert len(probes.read_yaml(probing.draft_file(scope=here, drafts=drafts)).unusable) == 5

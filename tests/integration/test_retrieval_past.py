"""What was believed then, what was replaced, and a search that is narrowed: asked for by name, never by accident."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from django.db import transaction

from observations import ingest, retrieval, store
from observations.embedding import embedder
from observations.models import Observation, Scope, database_now
from observations.records import Claim, EvidenceRef, MemoryKind, StatedBy, Status, WrittenBy
from observations.retrieval import Narrowed
from tests.building import embed, observe, scope
from tests.integration.test_retrieval import Scripted, asked, fill

pytestmark = pytest.mark.django_db
HASHING = embedder("hashing")


def found(within: Scope, query: str = "relay", k: int = 10, **narrowed: Any) -> list[str]:
    answer = retrieval.search(
        scope=within,
        query=query,
        k=k,
        call_site="search",
        embedder=HASHING,
        narrowed=Narrowed(**narrowed),
    )
    assert answer.complete
    return [hit.text for hit in answer.hits]


def replace(old: Observation, text: str, **more: object) -> Observation:
    """A new row in the place of an old one, as a correction writes it."""
    new = observe(text, within=old.scope, created_at=database_now(), **more)  # type: ignore[arg-type]
    with transaction.atomic():
        store.lock_scope(scope_id=old.scope_id, cause="test")
        store.move(scope_id=old.scope_id, ids=[old.pk], to=Status.SUPERSEDED, successor=new.pk)
    return new


def imported(within: Scope, *lines: Mapping[str, object]) -> None:
    ingest.import_lines([json.dumps(line) for line in lines], scope=within.name)
    embed(list(Observation.objects.filter(scope=within).values_list("pk", flat=True)), within=within)


# --- what was believed then ------------------------------------------------------------------------------------------


def test_as_of_gives_what_was_believed_then_and_nothing_that_was_learnt_later() -> None:
    """The journal decides: before the change the old row, after it the new one."""
    within = scope()
    old = observe("The relay hums", within=within)
    between = database_now()
    replace(old, "The relay is silent")
    after = database_now()
    assert found(within) == ["The relay is silent"]
    assert found(within, as_of=between) == ["The relay hums"]
    assert found(within, as_of=after) == ["The relay is silent"]


def test_as_of_follows_a_row_out_of_the_reads_and_back() -> None:
    within = scope()
    row = observe("The relay hums", within=within)
    moments = [database_now()]
    for status in (Status.ARCHIVED, Status.ACTIVE):
        store.move(scope_id=within.pk, ids=[row.pk], to=status)
        moments.append(database_now())
    assert [found(within, as_of=moment) for moment in moments] == [["The relay hums"], [], ["The relay hums"]]


def test_before_anyone_said_it_nothing_was_believed() -> None:
    within = scope()
    observe("The relay hums", within=within)
    assert found(within, as_of=datetime(2001, 1, 1, tzinfo=UTC)) == []


def test_what_is_told_late_counts_from_when_it_was_said_and_never_beside_what_it_replaced() -> None:
    within = scope()
    old = observe("The relay hums", within=within)
    between = database_now()
    replace(old, "The relay is silent since May")
    observe("The relay stands in Turin", within=within, created_at=between - timedelta(days=3))
    assert sorted(found(within, as_of=between)) == ["The relay hums", "The relay stands in Turin"]


def test_a_period_that_began_before_the_store_did_is_its_past() -> None:
    """Dated facts, loaded today in one go: at each moment the value whose period holds it, also without vectors."""
    within = scope()
    imported(
        within,
        {"id": "a", "text": "The relay stood in Turin", "valid_from": "1990-01-01", "valid_to": "1995-01-01"}
        | {"status": "superseded", "superseded_by": "b"},
        {"id": "b", "text": "The relay stood in Rome", "valid_from": "1995-01-01"}
        | {"status": "superseded", "superseded_by": "c"},
        {"id": "c", "text": "The relay stands in Bari", "valid_from": "2001-01-01"},
    )
    years = {1989: [], 1992: ["The relay stood in Turin"], 1998: ["The relay stood in Rome"]}
    for year, texts in years.items():
        assert found(within, as_of=datetime(year, 6, 1, tzinfo=UTC)) == texts
    assert found(within) == ["The relay stands in Bari"]


def test_what_somebody_holds_back_now_is_not_shown_as_the_past_either() -> None:
    within = scope()
    row = observe("The relay hums", within=within)
    then = database_now()
    store.move(scope_id=within.pk, ids=[row.pk], to=Status.QUARANTINED)
    assert found(within, as_of=then) == found(within, include_history=True) == []


# --- history and filters ---------------------------------------------------------------------------------------------


def test_history_is_in_an_answer_only_where_it_is_asked_for() -> None:
    """R13, R14."""
    within = scope()
    replace(observe("The relay hums", within=within), "The relay is silent")
    assert found(within) == ["The relay is silent"]
    assert sorted(found(within, include_history=True)) == ["The relay hums", "The relay is silent"]
    answer = retrieval.search(
        scope=within, query="relay", k=5, call_site="search", embedder=HASHING, narrowed=Narrowed(include_history=True)
    )
    assert {hit.status for hit in answer.hits} == {Status.ACTIVE, Status.SUPERSEDED}


def test_a_moment_and_all_of_history_are_not_asked_for_at_once() -> None:
    with pytest.raises(ValueError, match="as_of or for include_history"):
        Narrowed(as_of=datetime(2024, 1, 1, tzinfo=UTC), include_history=True)


@pytest.fixture
def varied() -> Scope:
    within = scope()
    claims = [
        Claim(
            text=f"The relay note {n}",
            external_id=f"n{n}",
            subject=subject,
            kind=kind,
            stated_by=stated_by,
            created_at=datetime(2024, 1, n, tzinfo=UTC),
            evidence=(EvidenceRef(source_uri=f"s{n}"),),
        )
        for n, subject, kind, stated_by in [
            (1, "Ana", MemoryKind.FACT, StatedBy.USER),
            (2, "ana", MemoryKind.STATE, StatedBy.AGENT),
            (3, "Bo", MemoryKind.FACT, StatedBy.AGENT),
            (4, "", MemoryKind.FACT, StatedBy.TOOL),
        ]
    ]
    with transaction.atomic():
        written = store.add_observations(scope=within, claims=claims, written_by=WrittenBy.BACKGROUND)
    embed([row.id or 0 for row in written], within=within)
    return within


@pytest.mark.parametrize(
    ("narrowed", "notes"),
    [
        ({}, {1, 2, 3, 4}),
        ({"subject": "ANA"}, {1, 2}),
        ({"subject": "nobody"}, set()),
        ({"subject": ""}, {1, 2, 3, 4}),
        ({"kind": MemoryKind.STATE}, {2}),
        ({"stated_by": StatedBy.AGENT}, {2, 3}),
        ({"said_from": datetime(2024, 1, 2, tzinfo=UTC)}, {2, 3, 4}),
        ({"said_before": datetime(2024, 1, 2, tzinfo=UTC)}, {1}),
        ({"subject": "Ana", "kind": MemoryKind.FACT, "stated_by": StatedBy.USER}, {1}),
        ({"subject": "Ana", "include_history": True}, {1, 2}),
    ],
)
def test_every_filter_narrows_and_none_narrows_nothing(
    varied: Scope, narrowed: dict[str, Any], notes: set[int]
) -> None:
    """Null semantics: what is not given fits every row; a row without a subject fits no subject."""
    assert {int(text.rsplit(" ", 1)[1]) for text in found(varied, **narrowed)} == notes


def test_a_narrowed_search_fills_its_k_however_near_the_others_are() -> None:
    """C14 for a filter: 400 nearer rows of another kind take no place, and the order is the exact one."""
    here = scope()
    fill(here, list(np.linspace(0, 0.5, 400)), label="near")
    ids = fill(here, list(np.linspace(1.0, 1.2, 12)), label="far")
    since = min(Observation.objects.filter(pk__in=ids).values_list("created_at", flat=True))
    answer = retrieval.search(
        scope=here, query="q", k=10, call_site="search", embedder=Scripted(), narrowed=Narrowed(said_from=since)
    )
    assert [hit.id for hit in answer.hits] == ids[:10]
    assert asked(here, k=1).hits[0].id not in ids


def test_no_past_of_another_scope_is_ever_shown() -> None:
    """C6."""
    here, there = scope("here"), scope("there")
    observe("The relay hums", within=there)
    assert found(here, include_history=True) == found(here, as_of=database_now()) == []

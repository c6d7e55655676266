"""What a write costs: how many statements it takes, by which index a foreign key is checked, and who gives way."""

from __future__ import annotations

import os

import pytest
from celery.signals import worker_process_init
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memory_site import celery
from observations import ingest
from observations.models import Evidence
from observations.records import Claim, EvidenceRef
from tests.building import scope

pytestmark = pytest.mark.django_db

MOST_STATEMENTS = 7  # of one claim in a scope that is there, BEGIN and COMMIT aside


def test_a_new_claim_takes_seven_statements_at_most_and_so_do_a_hundred() -> None:
    """C: one deliberate write stays under 50 ms while a planner runs; every statement is a way there and back."""
    for count in (1, 100):
        within = scope(f"team-a/{count}")
        claims = [Claim(text=f"Fact {number} holds", evidence=(EvidenceRef("s"),)) for number in range(count)]
        with CaptureQueriesContext(connection) as queries:
            kept = ingest.store_facts(scope=within, claims=claims, by="token:1")
        assert [one.evidence for one in kept] == [1] * count
        said = [query["sql"] for query in queries if "SAVEPOINT" not in query["sql"]]
        assert len(said) <= MOST_STATEMENTS


def test_evidence_is_kept_in_the_order_in_which_it_was_given() -> None:
    sources = ["z", "a", "m"]
    claim = Claim(text="Ships on Fridays", evidence=tuple(EvidenceRef(source) for source in sources))
    kept = ingest.remember(scope=scope(), claim=claim, by="token:1")
    rows = Evidence.objects.filter(observation_id=kept.id or 0).order_by("pk")
    assert list(rows.values_list("source_uri", flat=True)) == sources


@pytest.mark.parametrize("table", ["observations_observation", "observations_episode"])
def test_a_foreign_key_is_checked_by_the_id_also_where_nothing_is_known_of_the_table(table: str) -> None:
    """I5: PostgreSQL keeps the plan of the first check. An index of the scope would read the scope for every row."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute(
            f"EXPLAIN (GENERIC_PLAN) SELECT 1 FROM ONLY {table} x WHERE id = $1 AND scope_id = $2 FOR KEY SHARE OF x"
        )
        plan = "\n".join(line for (line,) in cursor.fetchall())
    assert "(id = $1)" in plan


def test_a_process_of_the_worker_gives_way_to_one_that_answers_somebody(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[int] = []
    monkeypatch.setattr(os, "nice", given.append)
    celery.give_way()
    assert given == [celery.NICENESS]
    assert celery.give_way in [receiver() for _, receiver in worker_process_init.receivers]

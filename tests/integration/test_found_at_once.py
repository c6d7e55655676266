"""What an agent is told to remember is found by its next search, with every worker stopped and the broker away."""

from __future__ import annotations

from pathlib import Path

import pytest
from celery import current_app

from observations import calls
from observations.calls import Caller, schemas
from tests.brokers import dead_broker

pytestmark = pytest.mark.django_db(transaction=True)  # what waits for the end of a transaction is tried, too
CALLER = Caller(name="token:0123456789abcdef", pattern="team-a/*", may_read=True, may_write=True)
SCOPE = "team-a/u1"


@pytest.mark.parametrize("query", ["Which rack holds the relay?", "rack"])
def test_what_is_remembered_is_found_with_every_worker_stopped(
    query: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DESIGN 6: by its words at once. The wake-up is lost, and the outbox keeps what is to be done."""
    with dead_broker("dead socket", tmp_path) as address:
        monkeypatch.setattr(current_app.conf, "broker_url", address)
        for text in ("Nadia keeps two cats", "The relay sits in rack 4", "The harbour opens at six"):
            kept = calls.CALLS["remember"].run(
                caller=CALLER, asked=schemas.Remember.model_validate({"scope": SCOPE, "text": text})
            )
            assert kept.action == "added"
        found = calls.CALLS["search"].run(
            caller=CALLER, asked=schemas.Search.model_validate({"scope": SCOPE, "query": query, "k": 1})
        )
    assert found.complete
    assert [hit.text for hit in found.hits] == ["The relay sits in rack 4"]

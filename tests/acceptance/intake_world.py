"""Worlds of the background pipeline for crash and concurrency tests: a scope of its own for every death or race.

What is compared is everything that reading turns may change, by texts and sources and never by ids, so that two scopes
that went through the same compare equal.
"""

from __future__ import annotations

from itertools import count

from django.db import connection, transaction

from observations import ingest, store
from observations.ingest.background import observing
from observations.models import Episode, Extraction, IntakeRun, Outbox, Scope, database_now
from observations.records import Claim, EvidenceRef, StatedBy, WrittenBy
from tests.building import embed, scope
from tests.intaking import HASHING, deciding, enabled, model, told, turn
from tests.scripted import ScriptedCompleter

OSLO, LYON = "Ana lives in Oslo", "Ana lives in Lyon"
PLANT, AGAIN = "The office plant is watered on Mondays", "the office plant is watered on Mondays."
DENIED = "Ana has left the rowing club for good"
CLUB = "Ana rows in the rowing club"
TEA, COFFEE = "Bo drinks tea at four", "Bo drinks coffee at four"
LIFT = "The lift was repaired"
FOUR, SEVEN = "The relay sits in rack 4", "The relay sits in rack 7"
# All that a decision can do: update, replace, ask for a bare delete and for a conflict of two people; beside a repeat.
DECIDES = {
    LYON: ("UPDATE", OSLO, False),
    SEVEN: ("DELETE", FOUR, True),
    DENIED: ("DELETE", CLUB, False),
    COFFEE: ("DELETE", TEA, True),
}
STATEMENTS = """
SELECT format('row %%s', jsonb_build_array(o.text, o.status, o.version, s.text, o.stated_by, o.written_by, o.confidence,
    o.created_at, o.reconciled_at IS NULL))
  FROM observations_observation o LEFT JOIN observations_observation s ON s.id = o.superseded_by_id
  WHERE o.scope_id = %(scope)s
UNION ALL SELECT format('evidence %%s', jsonb_build_array(
    o.text, e.source_uri, e.root_source, e.quote, e.quote_start, t.text))
  FROM observations_evidence e JOIN observations_observation o ON o.id = e.observation_id
  LEFT JOIN observations_episode t ON t.id = e.episode_id WHERE e.scope_id = %(scope)s
UNION ALL SELECT format('vector %%s', jsonb_build_array(o.text, e.active, e.vector IS NULL))
  FROM observations_embedding e JOIN observations_observation o ON o.id = e.observation_id WHERE e.scope_id = %(scope)s
UNION ALL SELECT format('journal %%s', jsonb_build_array(o.text, t.version, t.from_status, t.to_status, t.cause))
  FROM observations_transition t JOIN observations_observation o ON o.id = t.observation_id
  WHERE t.scope_id = %(scope)s
UNION ALL SELECT format('read %%s', jsonb_build_array(t.text, x.state, x.attempts)) FROM observations_extraction x
  JOIN observations_episode t ON t.id = x.episode_id WHERE x.scope_id = %(scope)s
UNION ALL SELECT format('item %%s', jsonb_build_array(
    i.text, i.verdict, i.reason, i.said, i.quote_start, i.quote_end, a.text, b.text, cardinality(i.offered)))
  FROM observations_intakeitem i
  LEFT JOIN observations_observation a ON a.id = i.target_id
  LEFT JOIN observations_observation b ON b.id = i.observation_id WHERE i.scope_id = %(scope)s
UNION ALL SELECT format('asked %%s', jsonb_build_array(
    o.task, o.payload->>'why', (SELECT text FROM observations_observation r
    WHERE r.id = coalesce((o.payload->>'old')::bigint, (o.payload->'observations'->>0)::bigint))))
  FROM observations_outbox o WHERE o.scope_id = %(scope)s AND o.task LIKE 'review%%'
ORDER BY 1
"""
ORDER = "SELECT text FROM observations_observation WHERE scope_id = %(scope)s ORDER BY id"
_numbers = count(1)


def build() -> Scope:
    """A scope in which something was read and stored, with a batch of turns that nobody has read yet."""
    here = enabled(scope(f"killed/{next(_numbers)}"))
    read_before = told(here, OSLO, PLANT, CLUB, TEA, FOUR)
    _stored(here, read_before)
    told(here, LYON, AGAIN, turn(COFFEE, number=7, speaker="Bo"), DENIED, LIFT, SEVEN, "Hello Ana")
    return here


@transaction.atomic
def _stored(here: Scope, turns: list[Episode]) -> None:
    """As a run leaves turns whose every word is a claim; a run itself takes three times as long."""
    claims = [
        Claim(
            text=each.text or "",
            stated_by=StatedBy.USER,
            confidence=0.9,
            created_at=each.happened_at,
            evidence=(EvidenceRef(each.source_uri, quote=each.text or "", quote_start=0, episode=each.external_id),),
        )
        for each in turns
    ]
    rows = store.add_observations(
        scope=here, claims=claims, written_by=WrittenBy.BACKGROUND, reconciled=[True] * len(claims)
    )
    embed([row.id for row in rows if row.id], within=here)
    run = IntakeRun.objects.create(scope=here, trigger="hand", state="done")
    store.take_turns(run=run, states=dict.fromkeys((each.pk for each in turns), Extraction.State.CLAIMS))


def scripted() -> ScriptedCompleter:
    """The model of these worlds."""
    return model(reconcile=deciding(DECIDES))


def act(within: Scope, *, completer: ScriptedCompleter | None = None) -> ingest.RunReport:
    """One run, as the command and a worker make it: through the outbox row."""
    return ingest.run_intake(scope=within, by="test", completer=completer or scripted(), embedder=HASHING)


def let_the_lease_end(within: Scope) -> None:
    """As if half a minute had passed since the worker died."""
    Outbox.objects.filter(scope=within, task=ingest.EXTRACT, key=observing.KEY, done_at=None).update(
        due_at=database_now()
    )


def dump(within: Scope) -> list[str]:
    """Everything that reading may change, and the order in which rows were written, as canonical lines."""
    with connection.cursor() as cursor:
        cursor.execute(STATEMENTS, {"scope": within.pk})
        lines = [line for (line,) in cursor.fetchall()]
        cursor.execute(ORDER, {"scope": within.pk})
        return [*lines, *(f"{place} {text}" for place, (text,) in enumerate(cursor.fetchall()))]

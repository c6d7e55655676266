"""Probes proposed from real use: rows that reached prompts most often and that no probe asks for.

What agents asked is stored nowhere. A draft question is made of the row's own key, or is the question of the turn
before the one that the row rests on; a person writes the real one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from django.db import connection

from consolidation.models import Suite
from consolidation.operations import obs, visible
from consolidation.probes import LONGEST_QUERY, Entry, write_yaml
from consolidation.probing.running import probes_of
from consolidation.probing.worlds import Stored
from observations.models import Episode, Evidence, GivenKey, Observation, Scope, database_now

SINCE: Final = timedelta(days=90)
MOST_PROPOSED: Final = 100
_ASKED: Final = re.compile(r"[^.!?\n]*\?")
_TEXT_SHOWN: Final = 500  # characters of a row's text in a comment


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A question to be edited by a person, and the row that should come."""

    query: str  # empty where nothing suggests one
    expected: int
    external_id: str
    text: str
    answers: int  # that held the row in the last 90 days


def propose(*, scope: Scope, most: int = 20) -> list[Draft]:
    """Active rows of a scope that reached prompts and that no probe of its suite in force expects, the most used first.

    At most MOST_PROPOSED. Eight queries, whatever the scope holds. Writes nothing.
    """
    counted = _counted(scope)
    asked_for = _asked_for(scope)
    wanted = [(pk, n) for pk, n in counted if pk not in asked_for][: min(most, MOST_PROPOSED)]
    rows = Observation.objects.active().in_scope(scope).in_bulk([pk for pk, _ in wanted])
    given = GivenKey.objects.filter(scope=scope, observation__in=rows, state=GivenKey.State.GIVEN)
    keys = {key.observation_id: key for key in given}
    before = _questions_before(scope, rows)
    return [
        Draft(
            query=before.get(pk) or _of_key(rows[pk].key_with(keys.get(pk))),
            expected=pk,
            external_id=rows[pk].external_id,
            text=rows[pk].text or "",
            answers=n,
        )
        for pk, n in wanted
        if pk in rows
    ]


# One answer counts once, whether its uses were written, or what it showed, or both.
_COUNT: Final = """
SELECT o.id, count(DISTINCT seen.answer) FROM (
  SELECT observation_id AS id, answer FROM observations_use
  WHERE scope_id = %(scope)s AND used_at >= %(since)s
  UNION ALL
  SELECT unnest(shown), answer FROM observations_givenanswer WHERE scope_id = %(scope)s AND at >= %(since)s
) seen JOIN observations_observation o ON o.id = seen.id
WHERE o.scope_id = %(scope)s AND o.status = 'active'
GROUP BY o.id ORDER BY count(DISTINCT seen.answer) DESC, o.id
"""


def _counted(scope: Scope) -> list[tuple[int, int]]:
    with connection.cursor() as cursor:
        cursor.execute(_COUNT, {"scope": scope.pk, "since": database_now() - SINCE})
        return [(int(pk), int(n)) for pk, n in cursor.fetchall()]


def _asked_for(scope: Scope) -> frozenset[int]:
    """Rows whose claim a probe of the suite in force expects, themselves or in what they were merged into."""
    suite = Suite.objects.in_force().filter(scope=scope).first()
    if suite is None:
        return frozenset()
    expected = {pk for probe in probes_of(suite=suite) if not probe.negative for pk in probe.expected}
    return frozenset(Stored(scope=scope).carried(named=expected))


def _questions_before(scope: Scope, rows: dict[int, Observation]) -> dict[int, str]:
    """By row, the question of the turn before the first one that it rests on, where that turn asks one. Two queries."""
    turns = dict[int, tuple[str, int]]()
    resting = Evidence.objects.filter(scope=scope, observation__in=rows, episode__isnull=False).order_by("-pk")
    for evidence in resting.select_related("episode"):
        if evidence.episode is not None and evidence.episode.session and evidence.episode.seq > 0:
            turns[evidence.observation_id] = evidence.episode.session, evidence.episode.seq - 1
    spoken = Episode.objects.filter(scope=scope, session__in={session for session, _ in turns.values()})
    spoken = spoken.filter(seq__in={seq for _, seq in turns.values()}).exclude(text=None)
    texts = {(session, seq): text for session, seq, text in spoken.values_list("session", "seq", "text")}
    return {pk: asked for pk, turn in turns.items() if (asked := _last_question(texts.get(turn) or ""))}


def _last_question(text: str) -> str:
    found = _ASKED.findall(text)
    return found[-1].strip()[:LONGEST_QUERY] if found and len(found[-1].strip()) > 1 else ""


def _of_key(key: tuple[str, str, str]) -> str:
    subject, predicate, _ = key
    return f"{subject} {predicate}".strip()[:LONGEST_QUERY]


def draft_file(*, scope: Scope, drafts: Sequence[Draft]) -> str:
    """The drafts as a YAML file that can be edited and imported: each row's text stands above it as a comment."""
    heading = [
        f"Probes proposed for {visible(scope.name)}: the rows that reached prompts most often in {SINCE.days} days,",
        "which no probe of the suite in force asks for. Nobody's questions are kept: each query is a draft, made of",
        "the row's key or of the turn before it. Write what somebody would ask, delete what is no probe, import it.",
    ]
    return write_yaml((_entry(draft) for draft in drafts), heading=heading)


def _entry(draft: Draft) -> Entry:
    more = "…" if len(draft.text) > _TEXT_SHOWN else ""
    shown = f"{obs(draft.expected)}, in {draft.answers:,} answers: {visible(draft.text[:_TEXT_SHOWN])}{more}"
    comments = (shown,) if draft.query else (shown, "nothing suggests a question: write one, or delete this entry")
    return Entry(fields={"query": draft.query, "expected": [draft.external_id]}, comments=comments)


def suite_file(*, suite: Suite) -> str:
    """A suite as a YAML file, to be edited and imported as a new one; erased questions are left out. Three queries."""
    probes = probes_of(suite=suite)
    named = {pk for probe in probes for pk in (*probe.expected, *probe.forbidden, *probe.outdated)}
    labelled = {int(pk): unit for pk, unit in suite.units.items()}
    rows = Observation.objects.filter(scope=suite.scope, pk__in=named | {*labelled})
    ids = dict(rows.values_list("pk", "external_id"))
    entries = []
    for probe in probes:
        fields: dict[str, object] = {"query": probe.query}
        for field in ("expected", "forbidden", "outdated"):
            fields |= {field: found} if (found := [ids[pk] for pk in getattr(probe, field) if pk in ids]) else {}
        fields |= {"category": probe.category} if probe.category else {}
        fields |= {"negative": True} if probe.negative else {}
        fields |= {"as_of": probe.as_of.isoformat()} if probe.as_of else {}
        entries.append(Entry(fields=fields))
    for unit in sorted({*labelled.values()}):
        entries.append(Entry(fields={"unit": str(unit), "ids": [ids[pk] for pk, of in labelled.items() if of == unit]}))
    return write_yaml(entries, heading=[f"The suite {visible(suite.name)} of {visible(suite.scope.name)}."])

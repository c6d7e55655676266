"""Observations: what is current and relevant, each claim once, the newer of two values first (R2, R4-R8, R18)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db.models import Count

from observations import retrieval, selecting
from observations.embedding import Embedder
from observations.fencing import plain
from observations.models import Evidence, Observation, ObservationQuerySet, Scope, database_now
from observations.prompting import keyed
from observations.prompting.labels import OUTDATED, label
from observations.prompting.sections import Line
from observations.records import StatedBy
from observations.retrieval import CALL_SITES, EVERYTHING, Hit, Narrowed, trust_of
from observations.selecting import Candidate

MOST_RIVALS: Final = 200  # other values of the keys that were found
# So many times as many rows are found as are shown: what outdates a row may be less near to the query than the row.
_WIDER: Final = 3


def observation_section(
    *, scope: Scope, about: str, k: int = CALL_SITES["context"], embedder: Embedder | None = None
) -> str:
    """What is remembered about something, as labelled lines; "" where nothing is relevant. No model has a part in it:
    that store is cleaned when it is written, and what came in past the reconciler passes the rule (R8-R10).

    Raises django.db.Error; writes no Use and no answer. `prompt` is for handing it out.
    """
    hits = found(scope=scope, about=about, k=k, embedder=embedder).hits
    return "\n".join(line.text for line in observation_lines(scope=scope, hits=hits, about=about, k=k))


def found(
    *, scope: Scope, about: str, k: int, embedder: Embedder | None, narrowed: Narrowed = EVERYTHING
) -> retrieval.Answer:
    """The rows that k are selected from."""
    return retrieval.look(
        scope=scope, query=about, k=_WIDER * k, call_site="context", embedder=embedder, narrowed=narrowed
    )


def observation_lines(
    *,
    scope: Scope,
    hits: Sequence[Hit],
    about: str = "",
    k: int = CALL_SITES["context"],
    now: datetime | None = None,
    narrowed: Narrowed = EVERYTHING,
) -> list[Line]:
    """At most k lines, one per claim that is current and relevant: its label, then its words (R18). What is outdated
    comes last and says so (R5, R6). Seven queries, one more per old row that nobody compared, or fewer.

    A row is relevant by the floor of the embedder's profile, or by its key: see `keyed`. `now` is the moment
    that periods and ages are told from, by default the database's clock.
    """
    rows_of, ids = narrowed.rows(scope=scope), [hit.id for hit in hits]
    known = rows_of.in_bulk(ids) | ({} if not about else keyed.rows(rows_of, about))
    named = keyed.named(rows_of, list(known.values()), about)
    ids = keyed.ordered(ids, named)
    near = {hit.id for hit in hits if hit.relevant}
    relevant = [pk for pk in ids if pk in near or pk in named]
    if not relevant:
        return []
    now = now or narrowed.as_of or database_now()
    found = {pk: known[pk] for pk in ids if pk in known}
    rows = found | _Beside(scope, rows_of, now).rows(found, shown=relevant[:k])
    picked = selecting.chosen([candidate(row, row.pk in relevant) for row in rows.values()], now=now)[:k]
    cited = Evidence.objects.filter(scope=scope, observation__in=[each.id for each in picked])
    roots = dict(cited.values_list("observation_id").annotate(Count("root_source", distinct=True)))
    return [
        Line(
            each.id,
            _observed(rows[each.id], sources=roots.get(each.id, 0), outdated=each.outdated, now=now),
            each.outdated,
        )
        for each in picked
    ]


@dataclass(frozen=True, slots=True)
class _Beside:
    """The rows beside those that may be shown, found or not, one of which may be what counts."""

    scope: Scope
    current: ObservationQuerySet
    now: datetime

    def rows(self, found: Mapping[int, Observation], *, shown: Sequence[int]) -> dict[int, Observation]:
        """The newest other values of the keys of what was found, and what shares its words with old rows that nobody
        compared.
        """
        doubts = {selecting.doubtful(candidate(found[pk], True), now=self.now) for pk in shown if pk in found}
        keys = {row.sp_key for row in found.values()} - {0}
        rivals = self.current.filter(sp_key__in=keys).exclude(pk__in=found).order_by("-created_at")[:MOST_RIVALS]
        newer = self.current.filter(pk__in=news(self.scope, doubts).difference(found)).order_by("-created_at")
        return {row.pk: row for row in [*rivals, *newer]}


def news(scope: Scope, doubts: Iterable[str]) -> set[int]:
    """Current observations that share most with the words of old rows. One query for each."""
    return {pk for words in set(doubts) - {""} for pk in retrieval.sharing(scope=scope, words=words)}


def candidate(row: Observation, relevant: bool) -> Candidate:
    """A row as the rule sees it."""
    return Candidate(
        id=row.pk,
        text=row.text or "",
        said_at=row.created_at,
        text_key=row.text_key,
        subject_key=row.subject_key,
        sp_key=row.sp_key,
        spo_key=row.spo_key,
        valid_from=row.valid_from,
        valid_to=row.valid_to,
        rank=StatedBy(row.stated_by).rank,
        compared=row.reconciled_at is not None or row.derivation is not None,  # a summary is no news
        fades=row.half_life_days is not None,
        relevant=relevant,
    )


def _observed(row: Observation, *, sources: int, outdated: bool, now: datetime) -> str:
    mark = f", {OUTDATED}" if outdated else ""
    return f"- [{label(trust_of(row), sources=sources, age=now - row.created_at)}{mark}] {plain(row.text or '')}"

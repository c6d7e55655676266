"""The rows that probes are asked of: a scope as it stands, or as a plan would leave it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol

from django.db import connection

from observations import retrieval
from observations.embedding import Embedder
from observations.models import GivenKey, Observation, Scope
from observations.retrieval import Answer, Narrowed

CALL_SITE: Final = "probe"


class World(Protocol):
    """What is asked, and what a count has to know of the rows that came.

    Ids are those of `observations_observation`; what a plan would make has no row yet, and its ids are negative.
    """

    def look(self, *, query: str, k: int, as_of: datetime | None) -> Answer:
        """The k best rows for a query, as an agent would get them, without leaving a trace of a use."""

    def rows(self, *, as_of: datetime | None = None) -> tuple[int, ...]:
        """Ids of the rows that may come: the active ones, or those that were believed at a moment."""

    def carried(self, *, named: Collection[int]) -> Mapping[int, frozenset[int]]:
        """By row, which of the named records' claims it says. A named record says its own, also one that is gone."""

    def keys(self, *, rows: Collection[int]) -> Mapping[int, int | None]:
        """The claim key of each of these rows, None where it has none. A row that is missing is no row of the scope."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A scope as it stands."""

    scope: Scope
    embedder: Embedder | None = None  # None: that of the settings

    def look(self, *, query: str, k: int, as_of: datetime | None) -> Answer:
        """Never raises for a store or an embedder that fails: such an answer is not complete."""
        return retrieval.look(
            scope=self.scope,
            query=query,
            k=k,
            call_site=CALL_SITE,
            embedder=self.embedder,
            narrowed=Narrowed(as_of=as_of),
        )

    def rows(self, *, as_of: datetime | None = None) -> tuple[int, ...]:
        """Ascending. One query."""
        rows = Narrowed(as_of=as_of).rows(scope=self.scope)
        return tuple(rows.order_by("pk").values_list("pk", flat=True))

    def carried(self, *, named: Collection[int]) -> Mapping[int, frozenset[int]]:
        """By lineage and by applied operations. One query."""
        found: defaultdict[int, set[int]] = defaultdict(set)
        with connection.cursor() as cursor:
            cursor.execute(_CARRIES, {"named": sorted(named), "scope": self.scope.pk})
            for claim, pk in cursor.fetchall():
                found[pk].add(claim)
        return {pk: frozenset(claims) for pk, claims in found.items()}

    def keys(self, *, rows: Collection[int]) -> Mapping[int, int | None]:
        """The key that its writer gave, or else a model. Two queries."""
        written = Observation.objects.filter(scope=self.scope, pk__in=rows).values_list("pk", "spo_key")
        given = GivenKey.objects.filter(scope=self.scope, observation__in=rows, state=GivenKey.State.GIVEN)
        keys: dict[int, int | None] = dict(written)
        return keys | {row.observation_id: row.spo_key for row in given if row.spo_key}


# What an applied merge made of a record says its claim. The lineage of a row may name what it came from instead of a
# source that said the same words; the operation names that source too.
_CARRIES: Final = """
WITH RECURSIVE carries (claim, id) AS (
  SELECT named, named FROM unnest(%(named)s::bigint[]) named
  UNION
  SELECT c.claim, m.id FROM carries c JOIN LATERAL (
    SELECT l.derived_id AS id FROM observations_lineage l
    WHERE l.scope_id = %(scope)s AND l.source_observation_id = c.id AND l.derivation = 'merge'
    UNION ALL
    SELECT o.derived_id FROM consolidation_operationsource s
    JOIN consolidation_operation o ON o.scope_id = s.scope_id AND o.id = s.operation_id
    WHERE s.scope_id = %(scope)s AND s.observation_id = c.id AND o.kind = 'merge' AND o.derived_id IS NOT NULL
  ) m ON true
) SELECT claim, id FROM carries
"""

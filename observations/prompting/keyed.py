"""Rows that a query names by their key. A text such as "- 1974-2016 - Yolande Fox" says nothing of what it is about, so
no search by meaning finds it; its subject and predicate do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from django.db.models import Count

from observations import selecting
from observations.models import Observation, ObservationQuerySet
from observations.normalise import key64
from observations.selecting import Named

MOST: Final = 30  # rows that a query finds by their subject alone, the newest
# A subject of one word is mostly a first name, and whoever the store is about is named in every question. So it counts
# only where it is rare: of so many rows of a scope, one may be about it.
_RARE: Final = 50


def rows(current: ObservationQuerySet, about: str) -> dict[int, Observation]:
    """The newest rows whose whole subject a query names, however far their texts are from it. One query."""
    keys = [key64(run) for run in selecting.named_in(about)]
    found = current.filter(subject_key__in=keys).order_by("-created_at", "-pk")[:MOST] if keys else ()
    return {row.pk: row for row in found}


def named(current: ObservationQuerySet, known: Sequence[Observation], about: str) -> Mapping[int, Named]:
    """Those of some rows that a query is about by their key, and how it names it. A query more where a subject of one
    word is named.
    """
    if not about:
        return {}
    how = {row.pk: selecting.names(query=about, subject=row.subject, predicate=row.predicate) for row in known}
    alone = {row.subject_key for row in known if how[row.pk] is Named.ONE_WORD}
    rare = _rare(current, alone) if alone else set()
    subjects = {row.pk: row.subject_key for row in known}
    return {
        pk: way for pk, way in how.items() if way > Named.ONE_WORD or (way is Named.ONE_WORD and subjects[pk] in rare)
    }


def _rare(current: ObservationQuerySet, keys: set[int]) -> set[int]:
    counts = dict(current.order_by().values_list("subject_key").annotate(Count("pk")))
    every = sum(counts.values())
    return {key for key in keys if _RARE * counts.get(key, 0) <= every}


def ordered(ids: Sequence[int], named: Mapping[int, Named]) -> list[int]:
    """Rows whose whole key is named come first, then what was found in its order, then those whose subject is named."""
    whole = [pk for pk, way in named.items() if way is Named.KEY]
    return list(dict.fromkeys([*whole, *ids, *named]))

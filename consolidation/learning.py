"""What decisions teach about predicates and names: how many values one holds, which subjects are one entity.

Taken back by a date, never deleted, when the decision that taught it is undone.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from consolidation.models import Alias, Cardinality
from observations.normalise import key_part


def cardinalities(*, scope_id: int) -> dict[str, str]:
    """Normalised predicate -> "one" or "many": the newest lesson of each that still stands. One query."""
    rows = Cardinality.objects.filter(scope_id=scope_id, withdrawn_at=None).order_by("pk")
    return dict(rows.values_list("predicate", "holds"))


def teach(*, scope_id: int, predicate: str, many: bool, operation: str, by: str) -> None:
    """Remember how many values a predicate holds, for as long as the decision stands. That it holds one never overrules
    that it holds many, which somebody said in so many words. One or two queries, or none without a predicate.
    """
    name = key_part(predicate)
    if not name or (not many and cardinalities(scope_id=scope_id).get(name) == Cardinality.Values.MANY):
        return
    holds = Cardinality.Values.MANY if many else Cardinality.Values.ONE
    Cardinality.objects.create(scope_id=scope_id, predicate=name, holds=holds, operation=operation, by=by)


def unteach(*, scope_id: int, operation: str, at: datetime) -> None:
    """Forget what an operation taught: it was undone. One query."""
    lessons = Cardinality.objects.filter(scope_id=scope_id, operation=operation, withdrawn_at=None)
    lessons.update(withdrawn_at=at)


def aliases(*, scope_id: int) -> Mapping[str, str]:
    """Normalised subject -> the normalised name it is compared as, chains followed. One query."""
    named = dict(Alias.objects.filter(scope_id=scope_id, removed_at=None).values_list("subject", "name"))
    return {subject: _final(subject, named) for subject in named}


def _final(subject: str, named: Mapping[str, str]) -> str:
    seen = {subject}
    while (name := named.get(subject)) is not None and name not in seen:
        seen.add(name)
        subject = name
    return subject

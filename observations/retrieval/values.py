"""What both ways of searching are told, and how strong a row is in SQL."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from psycopg import sql

from observations import fading
from observations.models import Scope
from observations.retrieval.narrowing import Among
from observations.retrieval.overlay import Overlay
from observations.retrieval.sites import FLOOR

STRENGTH: Final = sql.SQL(fading.strength_sql(now="coalesce(%(now)s, now())", floor="%(floor)s"))

Value = str | int | float | datetime | list[Any] | None


def common(
    scope: Scope, pool: int, fades: float, among: Among | None, overlay: Overlay | None = None
) -> dict[str, Value]:
    """The parameters that both statements have."""
    return {
        **(overlay.columns if overlay else {}),
        "scope": scope.pk,
        "pool": pool,
        "fades": fades,
        "floor": FLOOR,
        "now": among.now if among else None,
        "among": among.ids if among else [],
    }

"""What every page says whatever it shows: whether planning and applying are paused, and where."""

from __future__ import annotations

from django.db.models import Q
from django.http import HttpRequest

from consolidation.models import Pause
from observations.admin.base import Reach

NAMED = 20  # paused scopes that a banner names


def standing(request: HttpRequest) -> dict[str, object]:
    """Template context: `pause`, the pause that covers everything, or None, and `paused`, those of visible scopes.

    Three queries at most, for signed-in people only.
    """
    if not getattr(request, "user", None) or not request.user.is_authenticated:
        return {"pause": None, "paused": []}
    scopes = Reach.seen_by(request).scopes
    found = Pause.objects.filter(Q(scope=None) | Q(scope__in=scopes)).select_related("scope").order_by("pk")
    pauses = list(found[:NAMED])
    return {
        "pause": next((row for row in pauses if row.scope is None), None),
        "paused": [row for row in pauses if row.scope is not None],
    }

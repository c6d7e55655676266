"""What every page says whatever it shows: whether planning and applying are paused."""

from __future__ import annotations

from django.http import HttpRequest

from consolidation.models import Pause


def standing(request: HttpRequest) -> dict[str, object]:
    """Template context: `pause`, the pause that covers everything, or None. One query, for signed-in people only."""
    if not getattr(request, "user", None) or not request.user.is_authenticated:
        return {"pause": None}
    return {"pause": Pause.standing()}

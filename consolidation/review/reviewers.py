"""Where somebody may review, asked of their account as it is now and not of a request."""

from __future__ import annotations

from typing import Final

from django.contrib.auth.models import User

from observations.models import Scope, ScopeAccess, ScopeQuerySet
from observations.roles import Access

REVIEW: Final = "consolidation.review_operation"


def reviewed_by(person: User) -> ScopeQuerySet:
    """The scopes where this person may review: by their groups, and by the role of the pattern that means the scope.
    Two or three queries, and none of the scopes yet.
    """
    if not person.is_active or not person.has_perm(REVIEW):
        return Scope.objects.none()
    if person.is_superuser:
        return Scope.objects.all()
    rows = ScopeAccess.objects.filter(user_id=person.pk).order_by("pk").values_list("pattern", "role")
    given = [Access(pattern, role) for pattern, role in rows]
    return Scope.objects.where(given=given, permissions=(REVIEW,))

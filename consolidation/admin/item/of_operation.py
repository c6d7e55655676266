"""What every page of one operation begins with."""

from __future__ import annotations

from django.http import HttpRequest
from django.shortcuts import get_object_or_404

from consolidation.models import Operation
from observations.admin.base import Reach, Screen


class OfOperation(Screen):
    """Pages of one operation, mixed into its screen."""

    def operation_of(self, request: HttpRequest, pk: int) -> Operation:
        """The operation, when it is of a scope this person may see; else 404, as if it did not exist. One query."""
        return get_object_or_404(Reach.of(request).rows(Operation.objects.select_related("scope")), pk=pk)

"""The list of events: what happened, told in words."""

from __future__ import annotations

import pytest
from django.urls import reverse

from observations.models import Event
from tests.building import scope
from tests.desk import client_of, person

pytestmark = pytest.mark.django_db


def test_an_event_is_told_in_words() -> None:
    """A state by its name on every page, a moment as one, and the scope that an event is about not by its number."""
    here = scope("team-a/u1")
    detail = {"from": "needs_human", "every_turns": 5, "since": "2026-05-01T12:00:00.5+00:00"}
    Event.objects.append(scope_id=here.pk, action="intake_on", actor="sam", subject=str(here.pk), detail=detail)
    answer = client_of(person("sam", "Steward", "*")).get(reverse("admin:observations_event_changelist"))
    [row] = answer.context["rows"]
    assert row.subject == "the scope"
    assert sorted(row.event.detail) == [
        ("every turns", "5"),
        ("from", "needs a person"),
        ("since", "1 May 2026, 12:00"),
    ]
    assert '<time datetime="2026-05-01T12:00:00.500000+00:00">1 May 2026, 12:00</time>' in answer.content.decode()

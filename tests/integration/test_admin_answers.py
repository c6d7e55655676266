"""The page of answers: what agents were told, of visible scopes only, text as text, in a fixed number of queries."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from observations import prompting
from observations.embedding import embedder
from observations.models import GivenAnswer
from tests.building import observe, scope, tell
from tests.desk import client_of, person

pytestmark = pytest.mark.django_db
HASHING = embedder("hashing")
HOSTILE = "The relay fix <script>alert(1)</script>\u202e shipped"
LIST, PAGE = 10, 12


@pytest.fixture
def vera() -> Client:
    """A viewer of team-a."""
    return client_of(person("vera", "Viewer", "team-a/*"))


def given(name: str = "team-a/u1", *, rows: int = 1) -> GivenAnswer:
    within = scope(name)
    for _ in range(rows):
        observe(HOSTILE, within=within)
    tell("Is it out?", within=within, session="s1")
    made = prompting.prompt(scope=within, about="relay fix", session="s1", embedder=HASHING)
    return GivenAnswer.objects.get(answer=made.answer)


def test_an_answer_is_listed_and_its_page_shows_its_rows_as_they_stand(vera: Client) -> None:
    """What was shown, in its order, and what was left out; text from memory is text."""
    row = given()
    listed = vera.get(reverse("admin:observations_givenanswer_changelist")).content.decode()
    assert str(row.answer) in listed
    page = vera.get(reverse("admin:observations_givenanswer_change", args=[row.pk])).content.decode()
    assert f"obs_{row.shown[0]}" in page
    assert f"ep_{-row.shown[1]}" in page
    assert "<script>alert" not in page
    assert "\u202e" not in page


def test_answers_of_hidden_scopes_are_not_there(vera: Client) -> None:
    """R: one rule decides who may see a row."""
    row = given("team-b/u2")
    assert str(row.answer) not in vera.get(reverse("admin:observations_givenanswer_changelist")).content.decode()
    assert vera.get(reverse("admin:observations_givenanswer_change", args=[row.pk])).status_code == 404


def test_the_pages_run_a_fixed_number_of_queries(vera: Client) -> None:
    """STYLE 20."""
    counts = []
    for _ in range(2):
        row = given(rows=3)
        for address in (
            reverse("admin:observations_givenanswer_changelist"),
            reverse("admin:observations_givenanswer_change", args=[row.pk]),
        ):
            with CaptureQueriesContext(connection) as captured:
                assert vera.get(address).status_code == 200
            counts.append(len(captured))
    assert counts == [LIST, PAGE, LIST, PAGE]

"""Taking back what the background replaced, on the pages of the admin: shown first, then done as it was shown (R12)."""

from __future__ import annotations

import pytest
from django.test import Client

from observations import ingest
from observations.models import Event, IntakeItem, Observation
from observations.records import Claim, Status
from tests.building import observe, scope
from tests.desk import client_of, person
from tests.intaking import gave_way
from tests.writing import where

pytestmark = pytest.mark.django_db

EVIL = "Ana lives in <script>alert(1)</script> \u202eOslo"


@pytest.fixture
def old() -> Observation:
    return observe(EVIL, within=scope("team-a/u1"))


@pytest.fixture
def new(old: Observation) -> Observation:
    return gave_way(old, "Ana lives in Lyon")


@pytest.fixture
def rita() -> Client:
    """A reviewer of team-a."""
    return client_of(person("rita", "Reviewer", "team-a/*"))


def page(client: Client, row: Observation, name: str = "take_back") -> str:
    return client.get(where("observation", name, row.pk)).content.decode()


def test_the_page_says_what_will_happen_and_the_click_does_it(rita: Client, old: Observation, new: Observation) -> None:
    assert where("observation", "take_back", new.pk) in page(rita, new, "change")
    text = page(rita, new)
    assert text.index("Will be current again") < text.index(f"obs_{old.pk}") < text.index("Will be archived")
    assert "<script>alert" not in text
    assert "\u202e" not in text
    shown = f"{new.pk}:1 {old.pk}:2"
    assert f'value="{shown}"' in text
    answer = rita.post(where("observation", "take_back", new.pk), {"shown": shown}, follow=True)
    assert f"obs_{old.pk} is current again, and obs_{new.pk} is archived" in answer.content.decode()
    old.refresh_from_db()
    assert (old.status, Event.objects.get(action="taken_back").actor) == (Status.ACTIVE, "rita")
    assert where("observation", "take_back", new.pk) not in page(rita, new, "change")
    assert "It was taken back before" in page(rita, new)


def test_what_moved_since_it_was_shown_is_not_taken_back(rita: Client, old: Observation, new: Observation) -> None:
    """What is confirmed is what was shown."""
    rita.post(where("observation", "take_back", new.pk), {"shown": f"{new.pk}:1 {old.pk}:1"})
    new.refresh_from_db()
    assert new.status == Status.ACTIVE


def test_the_page_names_what_stands_in_the_way_and_has_no_button(
    rita: Client, old: Observation, new: Observation
) -> None:
    kept = ingest.correct(scope=new.scope, observation_id=new.pk, claim=Claim(text="Ana lives in Bonn"), by="rita")
    text = page(rita, new)
    assert f"obs_{new.pk} was superseded by obs_{kept.id}" in text
    assert "Take it back" not in text
    answer = rita.post(where("observation", "take_back", new.pk), {}, follow=True)
    assert "Not taken back: " in answer.content.decode()


def test_a_get_takes_nothing_back(rita: Client, new: Observation) -> None:
    page(rita, new)
    new.refresh_from_db()
    assert new.status == Status.ACTIVE


def test_only_reviewers_of_the_scope_may(old: Observation, new: Observation) -> None:
    """Viewers see no button and may not post; another team's reviewer finds no such row."""
    reader = client_of(person("ron", "Viewer", "team-a/*"))
    stranger = client_of(person("sam", "Reviewer", "team-b/*"))
    address = where("observation", "take_back", new.pk)
    assert address not in page(reader, new, "change")
    assert reader.get(address).status_code == reader.post(address, {}).status_code == 403
    assert stranger.get(address).status_code == stranger.post(address, {}).status_code == 404
    new.refresh_from_db()
    assert new.status == Status.ACTIVE


def test_the_page_of_the_run_links_to_it_where_there_is_something_to_take_back(rita: Client, new: Observation) -> None:
    run = IntakeItem.objects.get().run_id
    link = where("observation", "take_back", new.pk)
    assert link in rita.get(where("intakerun", "change", run)).content.decode()
    ingest.take_back(scope=new.scope, observation_id=new.pk, by="rita")
    assert link not in rita.get(where("intakerun", "change", run)).content.decode()

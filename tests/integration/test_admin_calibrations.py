"""Calibrations in the admin: read by everybody, enabled by who may, never for a threshold that is not safe (R42)."""

from __future__ import annotations

import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from consolidation import calibrating
from consolidation.admin.rules.calibrations import HEIGHT, WIDTH, picture
from consolidation.calibration import NEVER, Measured, measure
from consolidation.models import Calibration
from observations.embedding import HASHING, Profile, embedder
from observations.models import Event
from tests.desk import client_of, person

pytestmark = pytest.mark.django_db

HTTP = embedder("http", base_url="https://embed.example.org", model="acme<b>1", dimensions=8).profile
ROLES = ("Viewer", "Reviewer", "Operator", "Steward")
FOUND = measure(
    duplicates=[True] * 100 + [False] * 1_000 + [True],
    cosines=[0.97] * 100 + [0.9] * 1_000 + [1.0],
    objected=[False] * 100 + [True] * 1_000 + [False],
    identical=[False] * 1_100 + [True],
)


def kept(profile: Profile = HTTP, *, t_merge: float = 0.95) -> Calibration:
    return calibrating.store(profile=profile, measured=FOUND, proposed=(0.9, t_merge), by="carl")


def address(page: str, *args: object) -> str:
    return reverse(f"admin:consolidation_calibration_{page}", args=args)


@pytest.fixture
def sven() -> Client:
    """A steward of everything."""
    return client_of(person("sven", "Steward", "*"))


def test_every_page_opens_to_the_roles_of_its_row_and_to_nobody_else() -> None:
    """ASVS 8.2.1: reading is everybody's, enabling a steward's or a superuser's."""
    row = kept()
    people = {role: client_of(person(role.lower(), role, "*")) for role in ROLES}
    people["superuser"] = client_of(person("root", superuser=True))
    for role, client in people.items():
        assert client.get(address("changelist")).status_code == 200, role
        assert client.get(address("change", row.pk)).status_code == 200, role
        may = role in ("Steward", "superuser")
        button = "Let it merge without a person" in client.get(address("change", row.pk)).content.decode()
        assert button == may, role
        if not may:
            assert client.post(address("enable", row.pk)).status_code == 403, role
    for page, args in (("changelist", []), ("change", [row.pk]), ("enable", [row.pk])):
        assert "/login/" in Client().get(address(page, *args))["Location"]
    assert Calibration.objects.get().enabled_at is None


def test_enabling_is_done_once_with_who_when_and_an_event(sven: Client) -> None:
    row = kept()
    assert sven.get(address("enable", row.pk)).status_code == 405
    page = sven.post(address("enable", row.pk), follow=True).content.decode()
    row.refresh_from_db()
    assert (row.enabled_by, row.enabled_at is not None) == ("sven", True)
    assert "merges by key from 0.95 on." in page
    assert "Let it merge without a person" not in page
    assert Event.objects.get(action="calibration_enabled").actor == "sven"


def test_a_steward_of_some_scopes_cannot_enable_for_all() -> None:
    """An embedder merges in every scope."""
    row = kept()
    client = client_of(person("stella", "Steward", "team-a/*"))
    assert "Let it merge" not in client.get(address("change", row.pk)).content.decode()
    assert client.post(address("enable", row.pk)).status_code == 403
    row.refresh_from_db()
    assert row.enabled_at is None


def test_what_found_nothing_safe_or_was_replaced_is_not_enabled(sven: Client) -> None:
    never, old, new = kept(HASHING, t_merge=NEVER), kept(), kept()
    for row, sentence in ((never, "found no threshold that is safe"), (old, f"calibration {new.pk} is newer")):
        assert "Let it merge" not in sven.get(address("change", row.pk)).content.decode()
        assert sentence in sven.post(address("enable", row.pk), follow=True).content.decode()
    assert sven.post(address("enable", 987654)).status_code == 404
    assert not Calibration.objects.filter(enabled_at__isnull=False).exists()


def test_the_list_says_what_holds_for_the_embedder_in_use(sven: Client) -> None:
    text = sven.get(address("changelist")).content.decode()
    assert "Nothing was measured here yet." in text
    assert "With the same key they merge without a person from 0.95 on." in text
    kept(HASHING, t_merge=NEVER)
    text = sven.get(address("changelist")).content.decode()
    assert "Nothing merges by key without a person: no threshold was found to be safe." in text
    kept(HASHING, t_merge=0.98)
    answer = sven.get(address("changelist"))
    assert "from 0.98 on." in answer.content.decode()
    assert [(row.holds, row.current) for row in answer.context["rows"]] == [(True, True), (False, True)]


def test_one_on_too_few_pairs_is_shown_so_and_does_not_hold(sven: Client) -> None:
    old = kept(HASHING, t_merge=0.98)
    few = calibrating.store(profile=HASHING, measured=Measured(()), proposed=(0.8, NEVER), by="carl")
    answer = sven.get(address("changelist"))
    assert "With the same key they merge without a person from 0.98 on." in answer.content.decode()
    assert [(row.pk, row.holds, row.merge) for row in answer.context["rows"]] == [
        (few.pk, False, "not set"),
        (old.pk, True, "0.98"),
    ]
    page = sven.get(address("change", few.pk)).content.decode()
    assert '<span class="chip quiet">too few pairs to set thresholds</span>' in page
    assert "0 different pairs from 0.8 on were seen, and 765 are needed to say anything." in page
    assert "replaced by a newer one" not in page
    assert "Let it merge" not in page


def test_the_page_has_every_figure_as_a_table_and_the_thresholds_with_their_reasons(sven: Client) -> None:
    row = kept()
    answer = sven.get(address("change", row.pk))
    lines = answer.context["lines"]
    assert len(lines) == 20
    at = next(line for line in lines if line.low == "0.90")
    assert (at.pairs, at.different, at.false) == (1_000, 1_000, "0.0% (0.0-0.4)")
    assert (at.unguarded_false, at.recall) == ("100.0% (99.6-100.0)", "100.0% (96.3-100.0)")
    assert [line.low for line in lines if line.candidate] == ["0.90"]
    assert [line.low for line in lines if line.merge] == ["0.95"]
    text = answer.content.decode()
    assert "0 of 1,000, so at most 3.8 of 1,000 different pairs would merge; the limit is 5." in text
    assert "1 duplicates and 0 different pairs are equal but for spelling" in text


def test_the_picture_is_drawn_on_the_server_and_says_what_it_shows(sven: Client) -> None:
    """Strict CSP: no script and no style in it; the same figures are in the table."""
    row = kept()
    text = sven.get(address("change", row.pk)).content.decode()
    figure = text[text.index("<figure") : text.index("</figure>")]
    assert figure.count("<polyline") == 3
    assert '<title id="curves-title">' in figure
    assert 'role="img"' in figure
    for forbidden in ("style=", "<script", "onload"):
        assert forbidden not in figure
    assert "candidates 0.9" in figure
    assert "merges 0.95" in figure


@pytest.mark.parametrize("measured", [FOUND, measure(duplicates=[], cosines=[], objected=[], identical=[])])
def test_every_point_of_the_picture_is_on_its_plane(measured: Measured) -> None:
    drawn = picture(kept(), measured)
    for curve in drawn.curves:
        points = [tuple(map(float, pair.split(","))) for pair in curve.points.split()]
        assert len(points) == 20
        assert all(0 <= x <= WIDTH and 0 <= y <= HEIGHT for x, y in points)
        assert [x for x, _ in points] == sorted(x for x, _ in points)
    assert [x for x, _ in drawn.ticks] == [0, 160, 320, 480, 640]


def test_the_name_of_an_embedder_cannot_become_markup(sven: Client) -> None:
    row = kept()
    for page, args in (("changelist", []), ("change", [row.pk])):
        text = sven.get(address(page, *args)).content.decode()
        assert "acme&lt;b&gt;1" in text
        assert not re.search(r"acme<b>", text)


def test_the_list_runs_a_fixed_number_of_queries(sven: Client) -> None:
    """STYLE 20."""

    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            assert sven.get(address("changelist")).status_code == 200
        return len(captured)

    kept()
    few = queries()
    for _ in range(10):
        kept()
    assert queries() == few

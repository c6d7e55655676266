"""Suites in the admin: made, copied, imported, run and shown, within the scopes and rights of a person."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django_celery_beat.models import PeriodicTask

from consolidation import probing, tasks
from consolidation.models import ProbeRun, Suite
from observations import outbox
from observations.models import Observation, Outbox, Scope, Use
from tests import probing as given
from tests.building import observe, scope
from tests.desk import client_of, person

pytestmark = pytest.mark.django_db

LIST = reverse("admin:consolidation_suite_changelist")
NEW = reverse("admin:consolidation_suite_new")
HOSTILE = "<script>alert(1)</script>\u202eevil {{ 7 }}"


@pytest.fixture
def here() -> Scope:
    within = scope()
    given.fill(within)
    return within


@pytest.fixture
def stella() -> Client:
    """A steward."""
    return client_of(person("stella", "Steward", "team-a/*"))


def pk(name: str) -> int:
    return Observation.objects.get(external_id=name).pk


def page_of(suite: Suite) -> str:
    return reverse("admin:consolidation_suite_change", args=[suite.pk])


def run_of(suite: Suite) -> str:
    return reverse("admin:consolidation_suite_run", args=[suite.pk])


def form(here: Scope, *rows: dict[str, str], **more: str) -> dict[str, str]:
    """What the form posts."""
    fields = {f"{name}-{n}": value for n, row in enumerate(rows, 1) for name, value in row.items()}
    return {"scope": str(here.pk), "name": "by hand", "count": str(len(rows) + 2), "act": "save", **fields, **more}


# --- making -----------------------------------------------------------------------------------------------------------


def test_a_steward_writes_a_suite_finds_its_records_and_saves_it(here: Scope, stella: Client) -> None:
    """R112: a suite is made where people decide. Searching leaves no use (R51)."""
    anvil, teapot = f"obs_{pk('anvil-bakery')}", pk("teapot-tower")
    rows = ({"query": "anvil of the bakery"}, {"query": "the pot", "look": "teapot of the tower"})
    searched = stella.post(NEW, form(here, *rows, act="find-2"))
    assert "The teapot of the tower is painted" in searched.content.decode()
    picked = stella.post(NEW, form(here, *rows, act=f"expected-2-{teapot}"))
    assert f'name="expected-2" value="obs_{teapot}"' in picked.content.decode()
    assert not Suite.objects.exists()
    saved = stella.post(
        NEW,
        form(
            here,
            {"query": "anvil of the bakery", "expected": anvil, "category": "things", "as_of": "2030-01-31"},
            {"query": "the pot", "expected": f"obs_{teapot}", "forbidden": f"{pk('teapot-cellar')}"},
            {"query": "what pots cost", "negative": "1"},
        ),
    )
    suite = Suite.objects.get()
    assert saved["Location"] == page_of(suite)
    kept = list(suite.probes.order_by("number").values_list("query", "expected", "forbidden", "negative"))
    assert kept == [
        ("anvil of the bakery", [pk("anvil-bakery")], [], False),
        ("the pot", [teapot], [pk("teapot-cellar")], False),
        ("what pots cost", [], [], True),
    ]
    dated = suite.probes.get(number=1)
    assert dated.as_of is not None
    assert (dated.as_of.isoformat(), dated.category, suite.by) == ("2030-01-31T00:00:00+00:00", "things", "stella")
    assert not Use.objects.exists()


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({"expected": "{anvil}"}, "Write the question."),
        ({"query": "q", "expected": "obs_987654"}, "obs_987654 is no record of this scope."),
        ({"query": "q", "expected": "{theirs}"}, "is no record of this scope."),
        ({"query": "q", "expected": "anvil"}, "is not an id of the form obs_123."),
        ({"query": "q"}, "Nothing asks for a record"),
        ({"query": "q", "expected": "{anvil}", "as_of": "soon"}, "As of is a date such as 2025-01-31."),
        ({"query": "q" * 4_001, "expected": "{anvil}"}, "at most 4,000 characters"),
    ],
)
def test_what_cannot_be_saved_says_why_and_keeps_what_was_written(
    here: Scope, stella: Client, row: dict[str, str], why: str
) -> None:
    """I3: a record of another scope is not there."""
    theirs = observe("Theirs", within=scope("team-b"))
    names = {"anvil": f"obs_{pk('anvil-bakery')}", "theirs": f"obs_{theirs.pk}"}
    answer = stella.post(NEW, form(here, {name: value.format(**names) for name, value in row.items()}))
    body = answer.content.decode()
    assert answer.status_code == 422
    assert why in body
    assert "Theirs" not in body
    assert not Suite.objects.exists()


def test_a_copy_begins_with_what_a_suite_has_and_keeps_its_units(here: Scope, stella: Client) -> None:
    """A suite is never changed: the next version is another suite, and it is in force."""
    old = given.imported(
        here,
        {"query": f"anvil {HOSTILE}", "expected": ["anvil-bakery"], "as_of": "2031-05-01", "category": "a"},
        {"unit": "u", "ids": ["anvil-bakery", "anvil-tower"]},
    )
    body = stella.get(NEW, {"copy": old.pk}).content.decode()
    assert f'value="obs_{pk("anvil-bakery")}"' in body
    assert 'value="2031-05-01T00:00:00+00:00"' in body
    assert "<script>alert" not in body
    assert "\u202e" not in body
    taken = stella.post(NEW, form(here, one_row(), copy=str(old.pk), name=old.name))
    assert taken.status_code == 422
    assert "choose another name" in taken.content.decode()
    stella.post(NEW, form(here, one_row(), copy=str(old.pk), name="next"))
    new = Suite.objects.get(name="next")
    assert new.units == old.units != {}
    assert Suite.objects.in_force().get() == new


def one_row() -> dict[str, str]:
    return {"query": "anvil of the bakery", "expected": f"obs_{pk('anvil-bakery')}"}


def test_a_file_is_uploaded_whole_or_not_at_all(here: Scope, stella: Client) -> None:
    def upload(name: str, content: bytes, **more: Any) -> Any:
        file = SimpleUploadedFile(name, content)
        return stella.post(NEW, {"upload": "1", "scope": here.pk, "name": "file", "file": file, **more})

    bad = upload("p.yaml", b"- query: q\n  expected: [anvil-bakery]\n- query: &a secret\n  expected: [*a]")
    assert bad.status_code == 422
    assert "line 3 has an anchor" in bad.content.decode()
    assert "secret" not in bad.content.decode()
    assert not Suite.objects.exists()
    good = upload("p.yaml", b"- query: anvil of the bakery\n  expected: [anvil-bakery]\n- query: x\n  expected: [y]")
    suite = Suite.objects.get(name="file")
    assert good["Location"] == page_of(suite)
    assert suite.probes.count() == 1


def test_drafts_are_made_of_records_that_reached_prompts_and_have_no_probe(here: Scope, stella: Client) -> None:
    row = observe("Ann lives in Ghent", within=here, key=("Ann", "lives in", "Ghent"))
    Use.objects.create(scope=here, observation=row, call_site="context", answer="0" * 32)
    body = stella.get(NEW, {"scope": here.pk, "propose": 1}).content.decode()
    assert "Ann lives in</textarea>" in body
    assert f'value="obs_{row.pk}"' in body
    assert "in 1 answers of the last 90 days" in body


# --- looking and running ----------------------------------------------------------------------------------------------


def test_a_suite_is_run_by_its_button_and_its_page_says_what_came_of_each_probe(here: Scope) -> None:
    """R26, R112: found and missing, leaked, the runs as a picture and the same numbers as a table."""
    suite = given.suite(here, also=[{"query": "teapot of the tower", "expected": ["lantern-cellar"]}])
    rita = client_of(person("rita", "Reviewer", "team-a/*"))
    for _ in range(2):
        assert rita.post(run_of(suite), {"k": "5"}).status_code == 302
    assert [run.cause for run in ProbeRun.objects.all()] == ["button", "button"]
    body = rita.get(page_of(suite)).content.decode()
    assert body.count('<span class="chip done">found</span>') == 10
    assert '<span class="chip no">missing</span>' in body
    assert "The lantern of the cellar is painted" in body
    assert body.count('<td class="num">0.9091</td>') == 2
    assert 'role="img"' in body
    assert "recall@5" in body
    assert not re.search(r"<(script|style)>|\sstyle=|\son\w+=", body)


def test_a_run_without_a_number_shows_none_and_a_leak_is_said(here: Scope) -> None:
    """R31: where a control does not fail no other number is shown, on no page."""
    small = scope("team-a/small")
    observe("The relay port is 80", within=small, external_id="relay")
    suite = given.imported(small, {"query": "relay port", "expected": ["relay"]})
    rita = client_of(person("rita", "Reviewer", "team-a/*"))
    rita.post(run_of(suite), {"k": "5"})
    body = rita.get(page_of(suite)).content.decode()
    assert "No number of the newest run is shown" in body
    assert "not measured" in body
    assert "1.0000" not in body
    leaking = given.imported(here, {"query": "anvil of the tower", "forbidden": ["anvil-tower"]}, ROW_OF_FILE)
    rita.post(run_of(leaking), {"k": "5"})
    assert "<strong>1 forbidden record came back</strong>" in rita.get(page_of(leaking)).content.decode()


ROW_OF_FILE = {"query": "anvil of the bakery", "expected": ["anvil-bakery"]}


def test_a_large_suite_is_left_to_a_worker_and_the_page_says_how_far_it_is(
    here: Scope, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("consolidation.admin.measured.suites.AT_ONCE", 5)
    suite = given.suite(here)
    rita = client_of(person("rita", "Reviewer", "team-a/*"))
    for _ in range(2):  # asked twice, done once
        rita.post(run_of(suite), {"k": "3"})
    assert "A run waits for a worker" in rita.get(page_of(suite)).content.decode()
    job = Outbox.objects.get(task=probing.RUN_SUITE)
    Outbox.objects.filter(pk=job.pk).update(attempts=1, payload={**job.payload, "asked": 4})
    body = rita.get(page_of(suite)).content.decode()
    assert "4 of 10 probes at 3 places are asked" in body
    Outbox.objects.filter(pk=job.pk).update(attempts=0)
    outbox.work(seconds=30)
    assert [(run.cause, run.by, run.figures["k"]) for run in ProbeRun.objects.all()] == [("button", "rita", 3)]


def test_the_weekly_task_asks_suites_in_force_and_its_schedule_is_off(here: Scope) -> None:
    """R26: measured over time, once a person enables it."""
    given.suite(here, name="old")
    held = given.imported(here, ROW_OF_FILE, name="new")
    entry = PeriodicTask.objects.get(task="consolidation.tasks.run_suites")
    assert not entry.enabled
    assert tasks.run_suites() == "1 suites"
    outbox.work(seconds=30)
    assert [(run.suite_id, run.cause, run.by) for run in ProbeRun.objects.all()] == [(held.pk, "task", "schedule")]


# --- who may, and how many queries ------------------------------------------------------------------------------------


def test_a_suite_of_a_foreign_scope_is_not_there(here: Scope) -> None:
    """I2p: for looking, running, copying, writing and importing alike."""
    theirs = scope("team-b/canary")
    given.fill(theirs)
    suite = given.imported(theirs, ROW_OF_FILE, name="canary")
    stella = client_of(person("stella", "Steward", "team-a/*"))
    for answer in (
        stella.get(page_of(suite)),
        stella.post(run_of(suite), {"k": "5"}),
        stella.get(NEW, {"copy": suite.pk}),
        stella.get(NEW, {"scope": theirs.pk}),
        stella.post(NEW, form(theirs, {"query": "anvil"}, act="find-1")),
        stella.post(NEW, {"upload": "1", "scope": theirs.pk, "name": "x"}),
    ):
        assert answer.status_code == 404
    for address in (LIST, f"{LIST}?scope={theirs.pk}", NEW):
        assert "canary" not in stella.get(address).content.decode()
    assert not ProbeRun.objects.exists()


def test_a_reviewer_runs_and_makes_none_and_a_viewer_does_neither(here: Scope) -> None:
    suite = given.imported(here, ROW_OF_FILE)
    rita, vera = (
        client_of(person(name, role, "team-a/*")) for name, role in (("rita", "Reviewer"), ("vera", "Viewer"))
    )
    assert rita.get(NEW).status_code == 403
    assert vera.post(run_of(suite), {"k": "5"}).status_code == 403
    body = vera.get(page_of(suite)).content.decode()
    assert "Run it now" not in body
    assert "Copy as" not in body


def test_hostile_texts_and_names_are_shown_as_what_they_are(here: Scope, stella: Client) -> None:
    """C15, F5."""
    row = observe(f"Hostile {HOSTILE}", within=here, external_id="hostile")
    suite = given.imported(
        here, {"query": f"q {HOSTILE}", "expected": ["hostile"], "category": "<b>\u202e"}, name=f"n {HOSTILE}"
    )
    probing.run_suite(suite=suite, by=HOSTILE)
    for address, more in ((LIST, {}), (page_of(suite), {}), (NEW, {"copy": suite.pk})):
        body = stella.get(address, more).content.decode()
        assert "<script>alert" not in body
        assert "\u202e" not in body
    found = stella.post(NEW, form(here, {"query": "Hostile evil"}, act="find-1")).content.decode()
    assert f"obs_{row.pk}" in found
    assert "<script>alert" not in found
    assert "\u202e" not in found


QUERIES = [12, 13, 7, 10, 16]


def count(client: Client, address: str) -> int:
    with CaptureQueriesContext(connection) as captured:
        assert client.get(address).status_code == 200
    return len(captured)


def test_the_pages_run_a_fixed_number_of_queries(here: Scope) -> None:
    """One person's session, rights, scopes and pauses; the rest is the page's."""
    suite = given.suite(here)
    probing.run_suite(suite=suite, by="ann")
    stella = client_of(person("stella", "Steward", "team-a/*"))
    addresses = (LIST, page_of(suite), NEW, f"{NEW}?copy={suite.pk}", f"{NEW}?scope={here.pk}&propose=1")
    first = Observation.objects.filter(scope=here).earliest("pk")
    Use.objects.create(scope=here, observation=first, call_site="search", answer="0" * 32)
    before = [count(stella, address) for address in addresses]
    for number in range(4):
        other = scope(f"team-a/s{number}")
        observe("x", within=other, external_id="x")
        probing.run_suite(suite=given.imported(other, {"query": "x", "expected": ["x"]}), by="ann")
    for _ in range(3):
        probing.run_suite(suite=suite, by="ann")
    for row in Observation.objects.filter(scope=here)[:8]:
        Use.objects.create(scope=here, observation=row, call_site="search", answer="1" * 32)
    after = [count(stella, address) for address in addresses]
    assert (before, after) == (QUERIES, QUERIES)

"""Turns that were given up wait again when somebody asks; what enabling passes over is said; a dead run is shown so."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from observations import ingest, outbox
from observations.ingest.background import KEY
from observations.llm import Unusable
from observations.models import Episode, Event, Extraction, IntakeRun, Outbox, Scope, database_now
from observations.records import Status
from tests.building import scope
from tests.conftest import superuser
from tests.desk import client_of, person
from tests.intaking import echo, enabled, failing, model, read, told
from tests.integration.test_memory_writing_command import document, run
from tests.writing import where

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def here() -> Scope:
    """Turns in every state: read, nothing in it, given up, failed once, given up and archived; unread ones."""
    within = enabled(scope("team-a/u1"))
    told(within, "Ana lives in Oslo", "Hello Ana")
    read(within)
    told(within, "Bo reads maps", "Cy plays chess")
    for _ in range(3):
        read(within, completer=model(extract=failing(Unusable("The answer cannot be used."))))
    gone = told(within, "Di is away")
    for _ in range(3):
        read(within, completer=model(extract=failing(Unusable("The answer cannot be used."))))
    with superuser() as admin:
        admin.execute("SET session_replication_role = replica")
        admin.execute("UPDATE observations_episode SET status = 'archived' WHERE id = %s", (gone[0].pk,))
    told(within, "Ed has a cold")
    read(within, completer=model(extract=failing(Unusable("The answer cannot be used."))))
    told(within, "Flo is new here")
    return within


def states(within: Scope) -> dict[str, tuple[str, int]]:
    """Of every turn that was asked about, how it stands."""
    rows = Extraction.objects.filter(scope=within).select_related("episode")
    return {row.episode.text or "": (row.state, row.attempts) for row in rows}


def test_what_was_given_up_waits_again_and_nothing_else_does(here: Scope) -> None:
    """R124: one transaction, one event; what was read stays read, and what left the reads stays out."""
    before = states(here)
    assert [text for text, state in before.items() if state == ("unusable", 3)] == [
        "Bo reads maps",
        "Cy plays chess",
        "Di is away",
    ]
    assert (ingest.intake_of(scope=here).waiting, ingest.intake_of(scope=here).stuck) == (2, 3)
    assert ingest.ask_again(scope=here, by="ines") == 2
    again = {"Bo reads maps": ("unusable", 0), "Cy plays chess": ("unusable", 0)}
    assert states(here) == {**before, **again}
    assert ingest.intake_of(scope=here).waiting == 4
    event = Event.objects.get(action="intake_asked_again")
    assert (event.actor, event.detail) == ("ines", {"turns": 2})


def test_the_next_run_asks_about_them_three_times_more(here: Scope) -> None:
    ingest.ask_again(scope=here, by="ines")
    report = read(here, completer=model(extract=echo))
    assert (report.turns, report.left) == (4, 0)
    assert states(here)["Bo reads maps"][0] == "claims"
    assert states(here)["Di is away"] == ("unusable", 3)


def test_asking_again_where_nothing_was_given_up_is_no_event() -> None:
    within = enabled(scope())
    told(within, "Ana lives in Oslo")
    assert ingest.ask_again(scope=within, by="ines") == 0
    assert not Event.objects.filter(action="intake_asked_again").exists()


def test_another_scope_is_left_alone(here: Scope) -> None:
    """C6."""
    other = enabled(scope("team-b/u1"))
    told(other, "Bo reads maps")
    for _ in range(3):
        read(other, completer=model(extract=failing(Unusable("No."))))
    ingest.ask_again(scope=here, by="ines")
    assert states(other) == {"Bo reads maps": ("unusable", 3)}


def test_the_command_says_how_many(here: Scope) -> None:
    assert "2 turns wait again" in run("intake", "ask-again", "--scope", here.name)
    assert document("intake", "ask-again", "--scope", here.name) == {"scope": here.name, "turns": 0}


def test_the_button_is_for_who_may_run_intake(here: Scope) -> None:
    address = where("intake", "ask_again", here.pk)
    reader, operator = (client_of(person(role, role, "team-a/*")) for role in ("Viewer", "Operator"))
    stranger = client_of(person("sam", "Operator", "team-b/*"))
    assert reader.post(address).status_code == 403
    assert stranger.post(address).status_code == 404
    assert operator.get(address).status_code == 405
    assert address not in _page(reader, here)
    assert "Ask again about the 3 given up" in _page(operator, here)
    answer = operator.post(address, follow=True)
    assert "2 turns wait again for the next run." in answer.content.decode()


def _page(client: Client, within: Scope) -> str:
    return client.get(where("intake", "change", within.pk)).content.decode()


# --- what enabling passes over ---------------------------------------------------------------------------------------


def test_enabling_says_how_many_turns_from_before_stay_unread_and_from_the_start_reads_them() -> None:
    within = enabled(scope("team-a/u1"))
    told(within, "Ana lives in Oslo")
    read(within)
    told(within, "waits when it is disabled")
    ingest.disable_intake(scope=within, by="stella")
    told(within, "said while it is off", "and more")
    assert ingest.enable_intake(scope=within, by="stella") == 3
    assert ingest.intake_of(scope=within).waiting == 0
    assert ingest.enable_intake(scope=within, by="stella", from_start=True) == 0
    assert ingest.intake_of(scope=within).waiting == 3


def test_the_command_and_the_page_say_it_too() -> None:
    within = scope("team-a/u1")
    told(within, "said before")
    said = run("intake", "enable", "--scope", within.name)
    assert "1 turn that was recorded before stays unread; enable it with --from-start" in said
    assert document("intake", "enable", "--scope", within.name)["passed_over"] == 1
    assert "unread" not in run("intake", "enable", "--scope", within.name, "--from-start")
    ingest.disable_intake(scope=within, by="stella")
    stella = client_of(person("stella", "Steward", "team-a/*"))
    answer = stella.post(where("intake", "settings", within.pk), {"on": "1", "every": "5"}, follow=True)
    assert "1 turn was recorded before and stays unread" in answer.content.decode()


# --- a run that nobody works on any more -----------------------------------------------------------------------------


@pytest.fixture
def open_run() -> IntakeRun:
    """A run whose process is gone: its row says that it runs."""
    within = enabled(scope("team-a/u1"))
    told(within, "Ana lives in Oslo")
    return IntakeRun.objects.create(scope=within, trigger="turns", by="intake")


def shown(of: IntakeRun) -> list[str]:
    """What the page of the run, its list, its scope's page and the status say."""
    olga = client_of(person("olga", "Operator", "team-a/*"))
    pages: list[tuple[Any, ...]] = [("intakerun", "change", of.pk), ("intakerun",), ("intake", "change", of.scope_id)]
    texts = [olga.get(where(*page)).content.decode() for page in (*pages, ("intake",))]
    return [*texts, run("intake", "status", "--scope", of.scope.name)]


def test_a_run_without_a_lease_is_stale_everywhere_and_its_row_is_left_as_it_is(open_run: IntakeRun) -> None:
    for text in shown(open_run):
        assert "o sign of life since" in text
        assert 'auto">running' not in text
    open_run.refresh_from_db()
    assert (open_run.state, open_run.finished_at) == ("running", None)


def test_a_run_whose_lease_is_renewed_is_running(open_run: IntakeRun) -> None:
    with outbox.taken(task=ingest.EXTRACT, scope_id=open_run.scope_id, key=KEY, payload={}) as job:
        assert job is not None
        assert ingest.without_life(runs=[open_run]) == {}
        assert "sign of life" not in "".join(shown(open_run))


def test_the_last_sign_of_life_is_when_the_lease_was_renewed_last(open_run: IntakeRun) -> None:
    due = database_now() - timedelta(seconds=5)
    Outbox.objects.create(scope=open_run.scope, task=ingest.EXTRACT, key=KEY, due_at=due, attempts=1)
    open_run.started_at = due - timedelta(hours=1)
    seconds = timedelta(seconds=outbox.LEASE_SECONDS)
    assert ingest.without_life(runs=[open_run]) == {open_run.pk: due - seconds}


def test_only_the_next_run_closes_it(open_run: IntakeRun) -> None:
    read(open_run.scope)
    open_run.refresh_from_db()
    assert open_run.state == "interrupted"
    assert Episode.objects.filter(scope=open_run.scope, status=Status.ACTIVE).count() == 1

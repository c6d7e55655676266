"""The page of what is held back: what it shows, who may decide, that only what it showed is decided, what it costs."""

from __future__ import annotations

import io
import json
import re
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from observations import store
from observations.models import Episode, IntakeItem, IntakeRun, Observation, Scope
from observations.records import Claim, EvidenceRef, StatedBy, Status, WrittenBy
from tests.building import LONG_AGO, observe, scope, tell
from tests.desk import client_of, person
from tests.integration.test_admin_hostile import INVISIBLE, PAYLOADS
from tests.writing import where

pytestmark = pytest.mark.django_db

LIST = 13  # queries: four are the session, its person and permissions, three the scopes and what is paused
WHY = "the quoted words wish, suppose or ask for something, and it asserts"


@pytest.fixture
def rita() -> Client:
    """A reviewer of team-a."""
    return client_of(person("rita", "Reviewer", "team-a/*"))


def hold(
    text: str = "Ana has a dog", *, within: Scope, said: str = "Well, I want a dog.", why: str = WHY
) -> Observation:
    """One claim as a run leaves it that is held back, with the turn it is quoted from."""
    turn: Episode = tell(said, within=within, speaker="Ana", role="user")
    ref = EvidenceRef(turn.source_uri, quote=said[6:], quote_start=6, episode=turn.external_id)
    claim = Claim(text=text, stated_by=StatedBy.USER, evidence=(ref,), created_at=LONG_AGO)
    [written] = store.add_observations(
        scope=within, claims=[claim], written_by=WrittenBy.BACKGROUND, reconciled=[False], held=[True]
    )
    assert written.id is not None
    row = Observation.objects.get(pk=written.id)
    run = IntakeRun.objects.create(scope=within, trigger="hand", state="done", figures={"held": 1})
    IntakeItem.objects.create(
        scope=within, run=run, episode=turn, text=text, verdict="held", reason=why, observation=row
    )
    return row


def status_of(row: Observation) -> str:
    return Observation.objects.get(pk=row.pk).status


def decide(client: Client, verb: str, *rows: Observation, **fields: Any) -> Any:
    """Post a decision with what the list showed just now."""
    token = client.get(where("intakeitem")).context["token"]
    data = {"shown": token, "verb": verb, "pick": [row.pk for row in rows], **fields}
    return client.post(where("intakeitem", "decide"), data)


def test_the_list_shows_the_claim_its_turn_with_the_words_marked_and_why_it_is_doubted(rita: Client) -> None:
    row = hold(within=scope("team-a/u1"))
    answer = rita.get(where("intakeitem"))
    [shown] = answer.context["rows"]
    assert (shown.pk, shown.text.plain, shown.why, shown.age) == (row.pk, "Ana has a dog", WHY, "today")
    assert [run.text for run in shown.turn.words.words if run.own] == ["I want a dog."]
    page = answer.content.decode()
    assert "<mark>I want a dog.</mark>" in page
    assert where("observation", "change", row.pk) in page


def test_the_filters_leave_one_reason_one_scope_or_one_row(rita: Client) -> None:
    here, there = scope("team-a/u1"), scope("team-a/u2")
    wish, question = (
        hold(within=here),
        hold("Ana likes tea", within=there, why="the quoted words ask and assert nothing"),
    )

    def shown(query: str) -> list[int]:
        return [row.pk for row in rita.get(f"{where('intakeitem')}?{query}").context["rows"]]

    assert shown("") == [wish.pk, question.pk]
    assert shown("doubt=question") == [question.pk]
    assert shown("doubt=from_an_import") == []
    assert shown(f"scope={here.pk}") == [wish.pk]
    assert shown(f"row={question.pk}") == [question.pk]


def test_an_empty_list_says_so_and_other_scopes_are_not_there(rita: Client) -> None:
    hold(within=scope("team-b/u1"))
    assert "Nothing is held back" in rita.get(where("intakeitem")).content.decode()
    assert "matches" in rita.get(f"{where('intakeitem')}?doubt=name").content.decode()


def test_one_row_is_released_by_its_own_button_and_taken_back_from_the_page_of_answers(rita: Client) -> None:
    here = scope("team-a/u1")
    one, other = hold(within=here), hold("Ana has a cat", within=here)
    answer = decide(rita, f"release:{one.pk}", other)
    assert (status_of(one), status_of(other)) == (Status.ACTIVE, Status.QUARANTINED)
    assert "in the reads now" in answer.content.decode()
    rita.post(where("intakeitem", "decide"), {"shown": answer.context["token"], "verb": "again", "all": "1"})
    assert status_of(one) == Status.QUARANTINED


def test_what_was_picked_or_all_that_was_shown_is_decided_and_nothing_else(rita: Client) -> None:
    """D2: a row that came after the page was loaded, or of another scope, is not reached."""
    here = scope("team-a/u1")
    one, two = hold(within=here), hold("Ana has a cat", within=here)
    foreign = hold(within=scope("team-b/u1"))
    token = rita.get(where("intakeitem")).context["token"]
    late = hold("Ana has a bird", within=here)
    decide(rita, "discard", one)
    rita.post(where("intakeitem", "decide"), {"shown": token, "verb": "discard", "pick": [late.pk, foreign.pk]})
    answer = rita.post(where("intakeitem", "decide"), {"shown": token, "verb": "release", "all": "1"})
    assert [status_of(row) for row in (one, two, late, foreign)] == [
        "retracted",
        "active",
        "quarantined",
        "quarantined",
    ]
    assert [(row.pk, row.done) for row in answer.context["done"]] == [(two.pk, True)]
    assert [row.pk for row in answer.context["refused"]] == [one.pk]


def test_nobody_below_a_reviewer_decides_and_a_forged_page_decides_nothing(rita: Client) -> None:
    row = hold(within=scope("team-a/u1"))
    viewer = client_of(person("vera", "Viewer", "team-a/*"))
    page = viewer.get(where("intakeitem"))
    assert "Release" not in page.content.decode().split("</nav>")[-1]
    theirs = {"shown": page.context["token"], "verb": "release", "all": "1"}
    assert viewer.post(where("intakeitem", "decide"), theirs).status_code == 403
    for token in ("", "forged", page.context["token"]):  # the last: somebody else's page
        rita.post(where("intakeitem", "decide"), {"shown": token, "verb": "release", "all": "1"})
    assert rita.post(where("intakeitem", "decide"), {"verb": "erase"}).status_code == 400
    assert rita.get(where("intakeitem", "decide")).status_code == 405
    assert status_of(row) == Status.QUARANTINED


def test_the_run_and_the_observation_lead_to_the_list(rita: Client) -> None:
    row = hold(within=scope("team-a/u1"))
    run = IntakeRun.objects.get()
    assert f"{where('intakeitem')}?row={row.pk}" in rita.get(where("observation", "change", row.pk)).content.decode()
    page = rita.get(where("intakerun", "change", run.pk)).content.decode()
    assert f"{where('intakeitem')}?scope={row.scope_id}" in page
    assert "held back" in page.lower()


def test_hostile_text_is_shown_as_text_and_nothing_in_it_is_unseen(rita: Client) -> None:
    """O2: in the claim and in the turn."""
    text = " ".join((*PAYLOADS, *INVISIBLE)).replace("\0", "")
    hold(f"Ana {text}"[:480], within=scope("team-a/u1"), said=f"Well, {text}")
    page = rita.get(where("intakeitem")).content.decode()
    assert "<script>alert" not in page
    assert "<img" not in page
    assert not re.search("[\u202e\u2066\u200b\U000e0041\u00ad\x07]", page)


def test_the_list_costs_the_same_number_of_queries_however_much_it_shows(rita: Client) -> None:
    """STYLE 20."""

    def count() -> int:
        with CaptureQueriesContext(connection) as captured:
            assert rita.get(where("intakeitem")).status_code == 200
        return len(captured)

    here = scope("team-a/u1")
    hold(within=here)
    small = count()
    for number in range(12):
        hold(f"Ana has {number} dogs", within=here)
        observe(f"Ana has {number} dogs", within=here)
        scope(f"team-a/s{number}")
    assert count() == small == LIST


# --- the command -----------------------------------------------------------------------------------------------------


def run(*words: str) -> str:
    out = io.StringIO()
    call_command("memory", "held", *words, stdout=out)
    return out.getvalue()


def test_the_command_lists_releases_discards_and_takes_back_in_the_name_of_its_user() -> None:
    here = scope("team-a/u1")
    one, other = hold(within=here), hold("Ana has a cat", within=here)
    listed = json.loads(run("list", "--scope", "team-a/*", "--json"))["held"]
    assert [(row["id"], row["doubt"], row["evidence"][0]["quote"]) for row in listed] == [
        (f"obs_{row.pk}", WHY, "I want a dog.") for row in (one, other)
    ]
    assert "in the reads now" in run("release", f"obs_{one.pk}")
    assert "held back again" in run("again", f"obs_{one.pk}")
    assert json.loads(run("discard", f"obs_{one.pk}", f"obs_{other.pk}", "--json"))["decided"][1]["done"]
    assert "nothing is held back" in run("list")
    with pytest.raises(CommandError) as partly:
        run("release", f"obs_{one.pk}")
    assert partly.value.returncode == 1
    with pytest.raises(CommandError) as refused:
        run("release", "obs_999999")
    assert refused.value.returncode == 2

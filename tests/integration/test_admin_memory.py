"""The pages of one observation and one episode: kind, strength, given keys, summaries, journals (R25, R49, R77)."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.urls import reverse

from consolidation import runner
from consolidation.admin.item.products import faded
from consolidation.operations import Kind
from observations.models import Episode, Event, GivenKey, Observation, database_now
from observations.records import Claim, MemoryKind
from tests.building import observe, propose, scope, tell
from tests.desk import client_of, person, settle
from tests.engine import Engine, approve_and_apply, engine, write

pytestmark = pytest.mark.django_db


@pytest.fixture
def mine() -> Engine:
    """A memory of scope team-a/u1."""
    return engine()


@pytest.fixture
def ana() -> Client:
    """A reviewer of team-a."""
    return client_of(person("ana", "Reviewer", "team-a/*"))


def address(row: Observation | Episode, page: str = "change") -> str:
    """Where a row is looked at."""
    model = "observation" if isinstance(row, Observation) else "episode"
    return reverse(f"admin:observations_{model}_{page}", args=[row.pk])


# --- observations ---------------------------------------------------------------------------------------------------


def test_an_observation_shows_its_kind_and_how_strong_it_is_today(ana: Client) -> None:
    """R25, R73: a half-life after it was said, half of it is left."""
    said = database_now() - timedelta(days=7, minutes=1)
    row = write(
        Claim(text="Waits for the fix", external_id="w", kind=MemoryKind.STATE, created_at=said),
        within=scope("team-a/u1"),
    )
    page = ana.get(address(row))
    shown = page.context["page"]
    assert (shown.kind, shown.faded.half_life, shown.faded.strength) == ("state", "7 days", "0.50")
    assert 'aria-label="Strength 0.50 of 1"' in page.content.decode()


def test_a_preference_never_fades_and_says_so(ana: Client) -> None:
    row = write(Claim(text="Tea", external_id="t", kind=MemoryKind.PREFERENCE), within=scope("team-a/u1"))
    assert "it never fades" in ana.get(address(row)).content.decode()


def test_strength_is_told_in_words_down_to_nothing() -> None:
    """A share too small for two figures is not shown as none at all."""
    now = database_now()
    old = Observation(created_at=now - timedelta(days=70), half_life_days=7)
    new = Observation(created_at=now, half_life_days=7)
    assert faded(old, now=now, below=0.1, last_used=None).strength == "under 0.01"
    assert faded(new, now=now, below=0.1, last_used=None).strength == "1.00"
    assert faded(old, now=now, below=0.1, last_used=None).age == "70 days"


def test_a_given_key_is_shown_with_the_words_it_rests_on(mine: Engine, ana: Client) -> None:
    given = ana.get(address(mine.given)).context["page"].given
    assert given.words == "key given by claude-test"
    assert [run.text for run in given.text.words if run.own] == ["Bo works at Relay"]
    assert "prompt keys-1" in given.asked


def test_a_given_key_is_withdrawn_after_a_second_question_with_its_event(mine: Engine, ana: Client) -> None:
    """The page says first what goes; looking changes nothing."""
    page = ana.get(address(mine.given, "key")).content.decode()
    assert "Bo · works at · Relay" in page
    assert GivenKey.objects.get(observation=mine.given).state == GivenKey.State.GIVEN
    assert ana.post(address(mine.given, "key"))["Location"] == address(mine.given)
    row = GivenKey.objects.get(observation=mine.given)
    assert (row.state, row.withdrawn_by, row.subject) == (GivenKey.State.WITHDRAWN, "ana", "")
    assert Event.objects.get(action="key_withdrawn").actor == "ana"
    page = ana.get(address(mine.given)).content.decode()
    assert "withdrawn by ana" in page
    assert "Withdraw this key" not in page


def test_withdrawing_twice_is_said_and_is_one_event(mine: Engine, ana: Client) -> None:
    """C16: the second click finds it done."""
    ana.post(address(mine.given, "key"))
    again = ana.post(address(mine.given, "key"), follow=True)
    assert again.status_code == 200
    assert "has no key that a model gave" in again.content.decode()
    assert Event.objects.filter(action="key_withdrawn").count() == 1


def test_a_row_without_a_given_key_has_none_to_withdraw(mine: Engine, ana: Client) -> None:
    row = observe("Plain", within=mine.scope)
    assert "has no key that a model gave" in ana.get(address(row, "key")).content.decode()
    assert "Key from a model" not in ana.get(address(row)).content.decode()


@pytest.mark.parametrize(("state", "words"), [("none", "found none"), ("unusable", "its answer could not be used")])
def test_a_question_for_a_key_without_an_answer_is_told(state: str, words: str, mine: Engine, ana: Client) -> None:
    row = observe("Plain", within=mine.scope)
    GivenKey.objects.create(scope=mine.scope, observation=row, state=state, model="m", prompt_version="keys-1")
    page = ana.get(address(row)).content.decode()
    assert words in page
    assert "Withdraw this key" not in page


def test_a_viewer_reads_a_given_key_and_is_not_offered_to_withdraw_it(mine: Engine) -> None:
    vera = client_of(person("vera", "Viewer", "team-a/*"))
    page = vera.get(address(mine.given)).content.decode()
    assert "key given by claude-test" in page
    assert "Withdraw this key" not in page


def test_a_promoted_row_leads_to_its_episodes_and_is_not_called_anybodys_word(mine: Engine, ana: Client) -> None:
    """R77, R104: lineage and evidence both name the episodes; trust says that nobody stated it."""
    made = approve_and_apply(mine.promote).derived_id
    page = ana.get(reverse("admin:observations_observation_change", args=[made]))
    shown = page.context["page"]
    assert shown.trust == "promoted from episodes, not user-stated"
    assert {one.pk for one in shown.sources if one.episode} == {turn.pk for turn in mine.episodes}
    for turn in mine.episodes:
        assert f'href="{address(turn)}"' in page.content.decode()
    assert {one.episode for one in shown.witnesses} == {turn.pk for turn in mine.episodes}


def test_a_summary_is_trusted_low(mine: Engine, ana: Client) -> None:
    """R17."""
    made = approve_and_apply(mine.whole).derived_id
    shown = ana.get(reverse("admin:observations_observation_change", args=[made])).context["page"]
    assert shown.trust == "low: a summary that a model wrote"
    assert shown.kind == "episode"


# --- episodes -------------------------------------------------------------------------------------------------------


def test_an_archived_episode_leads_to_the_summary_that_reads_see(mine: Engine, ana: Client) -> None:
    """C9: nothing is deleted; the page says where it went, and how it moved."""
    done = approve_and_apply(mine.whole)
    turn = Episode.objects.filter(operation_sources__operation=done).earliest("pk")
    shown = ana.get(address(turn)).context["page"]
    assert shown.summary is not None
    assert shown.summary.pk == done.derived_id
    [move] = shown.moves
    assert (move.before.word, move.after.word, move.operation) == ("active", "archived", f"{done.op_id}#1")
    assert [one.op_id for one in shown.operations] == [done.op_id]


def test_an_episode_whose_compaction_was_undone_has_no_summary_and_a_longer_journal(mine: Engine, ana: Client) -> None:
    done = approve_and_apply(mine.whole)
    assert runner.undo(operation=done, by="olga").outcome == runner.Outcome.UNDONE
    settle()
    turn = Episode.objects.filter(operation_sources__operation=done).earliest("pk")
    page = ana.get(address(turn))
    shown = page.context["page"]
    assert shown.summary is None
    assert [move.after.word for move in shown.moves] == ["active", "archived"]
    assert "reads see its summary" not in page.content.decode()


def test_an_episode_lists_every_operation_that_used_it(mine: Engine, ana: Client) -> None:
    """A promotion leaves it as it is, and is listed all the same."""
    shown = ana.get(address(mine.episodes[0])).context["page"]
    assert {one.op_id for one in shown.operations} == {mine.promote.op_id, mine.alone.op_id}
    assert shown.moves == ()


def test_an_episode_nobody_used_says_so(mine: Engine, ana: Client) -> None:
    page = ana.get(address(tell("Alone", within=mine.scope))).content.decode()
    assert "No operation touches it." in page
    assert "It never moved." in page


def test_an_archived_episode_without_a_current_summary_is_told_as_that(mine: Engine, ana: Client) -> None:
    """Its summary was archived in turn: it left the reads, and is kept whole."""
    done = approve_and_apply(mine.whole)
    summary = Observation.objects.get(pk=done.derived_id or 0)
    approve_and_apply(propose(Kind.ARCHIVE, [summary]))
    turn = Episode.objects.filter(operation_sources__operation=done).earliest("pk")
    assert "it left the reads, and is kept whole" in ana.get(address(turn)).content.decode()

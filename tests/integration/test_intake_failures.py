"""What the background does when something fails: it says so, loses nothing, and asks again (C1, C2, R132)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import DatabaseError

from observations import ingest, retrieval, store
from observations.embedding import EmbeddingError, Matrix, Profile
from observations.ingest.background import running
from observations.llm import (
    BudgetSpent,
    CutOff,
    Denied,
    ModelFailed,
    Refused,
    Request,
    Unreachable,
    Unusable,
)
from observations.models import (
    Episode,
    Event,
    Extraction,
    IntakeItem,
    IntakeRun,
    Observation,
    UnusableAnswer,
    database_now,
)
from observations.records import StatedBy, Status, Turn
from tests.building import observe, scope
from tests.intaking import HASHING, active, deciding, echo, enabled, items, lines_of, model, read, the, told, turn
from tests.scripted import ScriptedCompleter

pytestmark = pytest.mark.django_db

PLANT = "The office plant is watered on Mondays"
OUTAGES: Sequence[ModelFailed] = (
    Unreachable("The model did not answer in time; try later."),
    BudgetSpent("Of $1.00 for the model today $1.00 are spent; wait for tomorrow."),
    Denied("The endpoint refuses the key; check ANTHROPIC_API_KEY."),
)


def states(of: Sequence[Episode]) -> list[tuple[str, int] | None]:
    found = {row.episode_id: (row.state, row.attempts) for row in Extraction.objects.all()}
    return [found.get(each.pk) for each in of]


# --- C1 --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "second",
    [
        Turn(text="Log tail: ok\x00done", external_id="2"),
        Turn(text="Log tail: ok", external_id="2", speaker="a\x00b"),
        Turn(text="Log tail: ok\ud83ddone", external_id="2"),
    ],
    ids=["NUL", "NUL in a field", "half a pair"],
)
def test_one_bad_character_does_not_sink_a_batch(second: Turn) -> None:
    """C1: all three are stored, the second says that it was cleaned, and sending them again adds nothing."""
    here = scope()
    batch = [Turn("Standup moved to 09:30", "1"), second, Turn("Retro is on Thursdays", "3")]
    written = ingest.observe(scope=here, turns=batch, by="test").written
    assert [(each.fate, each.cleaned) for each in written] == [("added", False), ("added", True), ("added", False)]
    again = ingest.observe(scope=here, turns=batch, by="test").written
    assert [each.fate for each in again] == ["already there"] * 3
    assert Episode.objects.count() == 3


def test_a_turn_that_cannot_be_stored_is_refused_for_itself() -> None:
    """C1: the others do not depend on it."""
    here = scope()
    batch = [Turn("One", "1"), Turn("Two", "x" * 201), Turn("Three", "3"), Turn("Other words", "1")]
    written = ingest.observe(scope=here, turns=batch, by="test").written
    assert [each.fate for each in written] == ["added", "refused", "added", "refused"]
    assert written[1].reason
    assert [each.text for each in Episode.objects.order_by("pk")] == ["One", "Three"]


def test_what_was_cleaned_is_read_like_any_other_turn() -> None:
    here = enabled(scope())
    told(here, turn("The relay\x00 sits in rack 4"))
    assert read(here).added == 1
    assert active(here) == ["The relay\N{REPLACEMENT CHARACTER} sits in rack 4"]


# --- an answer that cannot be used -----------------------------------------------------------------------------------


def test_an_unusable_answer_is_another_outcome_than_nothing_found() -> None:
    """C2: kept for the admin, and the turn counts as unread; with nothing found it does not."""
    here = enabled(scope())
    turns = told(here, PLANT, "The lift was repaired")
    report = read(here, completer=model("I found two interesting things."))
    assert (report.state, report.unusable, report.left, report.claims) == ("done", 2, 2, 0)
    assert states(turns) == [("unusable", 1), ("unusable", 1)]
    [kept] = UnusableAnswer.objects.all()
    assert (kept.purpose, kept.reply) == ("extract", "I found two interesting things.")
    assert (kept.episode_ids, kept.model) == ([each.pk for each in turns], "scripted")
    report = read(here, completer=model({"claims": []}))
    assert (report.unusable, report.left) == (0, 0)
    assert states(turns) == [("nothing", 2), ("nothing", 2)]


@pytest.mark.parametrize("failure", [Refused("declined"), CutOff("too long"), Unusable("empty")])
def test_a_refused_or_cut_off_answer_is_unusable_too(failure: ModelFailed) -> None:
    here = enabled(scope())
    turns = told(here, PLANT)
    assert read(here, completer=model(failure)).unusable == 1
    assert states(turns) == [("unusable", 1)]
    assert UnusableAnswer.objects.get().reply == ""


def test_turns_are_asked_about_in_smaller_company_and_three_times_at_most() -> None:
    """C2: a limited number of times; one text that spoils every answer does not spoil the others for good."""
    here = enabled(scope())
    turns = told(here, *(f"Claim number {n} holds" for n in range(12)))
    bad = turns[7].text

    def spoiled(request: Request) -> Any:
        return "no" if any(line["text"] == bad for line in lines_of(request)) else echo(request)

    asked = ScriptedCompleter(by_purpose={"extract": spoiled, "reconcile": deciding()})
    for _ in range(5):
        read(here, completer=asked)
    sizes = [len(lines_of(request)) for request in asked.asked_for("extract")]
    assert sizes == [12, 5, 5, 2, *[1] * 5]
    assert states(turns) == [("unusable", 3) if each.text == bad else states([each])[0] for each in turns]
    assert len(active(here)) == 11
    assert ingest.intake_of(scope=here).stuck == 1
    assert UnusableAnswer.objects.count() == 3


def test_good_claims_beside_bad_ones_survive_and_the_bad_are_kept_with_their_reason() -> None:
    """C2, C3: each for itself."""
    here = enabled(scope())
    [told_] = told(here, PLANT)
    answer = {
        "claims": [
            {"text": PLANT, "turn": 0, "quote": PLANT},
            {"text": "Sky is green", "turn": 0, "quote": "sky is green today"},
            {"text": "x", "turn": 99, "quote": "x"},
        ]
    }
    report = read(here, completer=model(answer))
    assert (report.added, report.refused, active(here)) == (1, 2, [PLANT])
    refused = IntakeItem.objects.filter(verdict="refused").order_by("pk")
    assert [row.observation_id for row in refused] == [None, None]
    assert refused[0].reason.startswith("not found in the source")
    assert refused[0].episode_id == told_.pk


# --- an outage -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("outage", OUTAGES, ids=lambda each: type(each).__name__)
def test_an_outage_before_anything_was_read_moves_nothing_and_the_run_says_why(outage: ModelFailed) -> None:
    """R131: a run that failed has a row that says so, and the turns wait."""
    here = enabled(scope())
    turns = told(here, PLANT)
    report = read(here, completer=model(outage))
    assert (report.state, report.not_run, report.failure, report.left) == ("failed", str(outage), outage.answer, 1)
    assert states(turns) == [None]
    row = IntakeRun.objects.get()
    assert (row.state, row.error, row.finished_at is not None) == ("failed", str(outage), True)
    assert read(here).added == 1


def test_what_was_stored_before_an_outage_stays() -> None:
    here = enabled(scope())
    told(here, *(turn(f"Claim {n} of session", number=n, session=f"s{n}") for n in range(3)))
    answers: list[Any] = [echo, echo, OUTAGES[0]]

    def each(request: Request) -> Any:
        answer = answers.pop(0) if answers else echo
        if isinstance(answer, ModelFailed):
            raise answer
        return answer(request)

    report = read(here, completer=ScriptedCompleter(by_purpose={"extract": each, "reconcile": deciding()}))
    assert (report.state, report.added, report.left) == ("failed", 2, 1)
    assert IntakeRun.objects.get().figures["added"] == 2
    assert read(here).added == 1
    assert active(here) == [f"Claim {n} of session" for n in range(3)]


@pytest.mark.parametrize("outage", [*OUTAGES, Refused("declined"), CutOff("too long")])
def test_where_the_reconciler_does_not_answer_claims_are_added_flagged_for_the_planner(outage: ModelFailed) -> None:
    """R126: a model outage degrades to ADD; the rows are not called reconciled, and the run says so."""
    here = enabled(scope())
    row = observe(PLANT, within=here)
    told(here, "The office plant is watered on Fridays")
    report = read(here, completer=model(reconcile=outage))
    assert (report.state, report.added, report.flagged) == ("done", 1, 1)
    assert str(outage) in report.not_run
    assert str(outage) in IntakeRun.objects.get().error
    new = the("The office plant is watered on Fridays", here)
    assert new.reconciled_at is None
    row.refresh_from_db()
    assert (row.status, row.version) == (Status.ACTIVE, 1)
    assert items(here) == [("add", "added without being compared: the reconciler did not answer")]


def test_an_unusable_answer_that_holds_a_secret_is_not_kept() -> None:
    """Secrets are refused wherever they would be stored; that the answer was of no use is still told."""
    here = enabled(scope())
    told(here, "Ana lives in Oslo")
    read(here, completer=model("Sure! The key is AKIAIOSFODNN7EXAMPLE, and there is nothing else to say."))
    answer = UnusableAnswer.objects.get()
    assert answer.reply == ""
    assert "holds a secret" in answer.reason


def test_an_unusable_answer_of_the_reconciler_is_kept_and_its_claims_are_added_flagged() -> None:
    here = enabled(scope())
    observe(PLANT, within=here)
    [told_] = told(here, "The office plant is watered on Fridays")
    report = read(here, completer=model(reconcile="I would update the first one."))
    assert (report.added, report.flagged, report.unusable) == (1, 1, 0)
    kept = UnusableAnswer.objects.get()
    assert (kept.purpose, kept.reply) == ("reconcile", "I would update the first one.")
    assert kept.episode_ids == [told_.pk]


def test_a_claim_that_the_reconciler_leaves_out_or_decides_twice_is_added_flagged() -> None:
    here = enabled(scope())
    for text in ("Tea is served at four", "Bo rows on Sundays", "The lift is slow"):
        observe(text, within=here)
    told(here, "Tea is served at five", "Bo rows on Mondays", "The lift is fast")

    def careless(request: Request) -> Any:
        said = deciding()(request)["decisions"]
        return {"decisions": [said[0], said[1], said[1]]}

    assert read(here, completer=model(reconcile=careless)).flagged == 2
    settled = [the(text, here).reconciled_at is not None for text in active(here)[3:]]
    assert settled == [True, False, False]


# --- the embedder and the store --------------------------------------------------------------------------------------


class Broken:
    """An embedder whose model is gone."""

    profile: Profile = HASHING.profile

    def embed(self, texts: Sequence[str]) -> Matrix:
        raise EmbeddingError("gone")


def test_without_the_embedder_claims_are_compared_by_their_words_alone() -> None:
    here = enabled(scope())
    observe(PLANT, within=here)
    told(here, "The office plant is watered on Fridays", "Zebras doze")
    asked = model()
    ingest.run_intake(scope=here, by="rita", completer=asked, embedder=Broken())
    [request] = asked.asked_for("reconcile")
    assert [line["claim"] for line in lines_of(request)] == ["The office plant is watered on Fridays"]
    assert the("Zebras doze", here).reconciled_at is None  # nothing was found near it, and nothing could be
    assert the("The office plant is watered on Fridays", here).reconciled_at is not None


def test_a_store_that_cannot_be_searched_fails_the_batch_visibly(monkeypatch: pytest.MonkeyPatch) -> None:
    """A claim that was compared with nothing is not stored as if there had been nothing near it."""
    here = enabled(scope())
    turns = told(here, PLANT)

    def gone(**_: object) -> None:
        raise DatabaseError("no")

    with monkeypatch.context() as patch:
        patch.setattr(retrieval, "nearest", gone)
        with pytest.raises(DatabaseError):
            read(here)
    assert (states(turns), Observation.objects.count()) == ([None], 0)
    row = IntakeRun.objects.get()
    assert (row.state, "DatabaseError" in row.error) == ("failed", True)
    assert read(here).added == 1


# --- when, and for whom ----------------------------------------------------------------------------------------------


def test_a_scope_is_not_read_until_somebody_enables_it() -> None:
    """R121, R131: off by default, and an answer says so."""
    here = scope()
    observed = ingest.observe(scope=here, turns=[turn(PLANT)], by="test")
    assert (observed.extraction, observed.waiting) == ("off", 0)
    report = read(here)
    assert (report.state, report.run, IntakeRun.objects.count()) == ("off", None, 0)
    ingest.enable_intake(scope=here, by="rita")
    assert read(here).state == "nothing to do"  # what was said before stays unread
    told(here, turn("Said afterwards, by Ana", number=1))
    assert read(here).turns == 1
    ingest.enable_intake(scope=here, by="rita", from_start=True)
    assert read(here).turns == 1
    assert ingest.disable_intake(scope=here, by="rita")
    assert not ingest.disable_intake(scope=here, by="rita")
    actions = Event.objects.filter(action__startswith="intake_o").order_by("pk").values_list("action", "actor")
    assert list(actions) == [("intake_on", "rita"), ("intake_on", "rita"), ("intake_off", "rita")]


def test_enabling_again_changes_settings_and_skips_no_turn() -> None:
    here = scope()
    ingest.enable_intake(scope=here, by="rita")
    told(here, PLANT)
    ingest.enable_intake(scope=here, by="rita", every_turns=9, residue=True)
    stands = ingest.intake_of(scope=here)
    assert (stands.waiting, stands.every_turns, stands.residue) == (1, 9, True)


@pytest.mark.parametrize("every", [0, -1, 1_001])
def test_the_number_of_turns_is_bounded(every: int) -> None:
    with pytest.raises(ValueError, match="1 to 1,000"):
        ingest.enable_intake(scope=scope(), by="rita", every_turns=every)


def test_turns_of_a_day_to_come_do_not_stop_a_batch() -> None:
    """An agent's clock that runs ahead: said now at the latest."""
    here = enabled(scope())
    ahead = database_now() + timedelta(days=3)
    told(here, replace(turn(PLANT), happened_at=ahead), "The lift was repaired")
    assert read(here).added == 2
    assert the(PLANT, here).created_at <= database_now()


def test_archived_turns_are_not_read() -> None:
    here = enabled(scope())
    [archived, left] = told(here, "One thing is so", "Two things are so")
    store.move_episodes(scope_id=here.pk, ids=[archived.pk], to=Status.ARCHIVED)
    assert read(here).turns == 1
    assert states([archived, left]) == [None, ("claims", 1)]


def test_a_limit_bounds_the_turns_and_the_rest_is_left() -> None:
    here = enabled(scope())
    told(here, *(f"Claim number {n} holds" for n in range(7)))
    done: list[int] = []
    report = ingest.run_intake(
        scope=here, by="rita", completer=model(), embedder=HASHING, limit=3, progress=done.append
    )
    assert (report.turns, report.left, sum(done)) == (3, 4, 3)
    assert active(here) == [f"Claim number {n} holds" for n in range(3)]


def test_a_run_has_a_row_and_an_event_with_figures_and_no_words() -> None:
    here = enabled(scope())
    told(here, PLANT, "Hello Bo")
    report = read(here)
    row = IntakeRun.objects.get()
    assert (row.pk, row.state, row.trigger, row.by, row.error) == (report.run, "done", "hand", "rita", "")
    assert (row.figures["turns"], row.figures["added"]) == (2, 1)
    event = Event.objects.get(action="intake_run")
    assert (event.detail["run"], event.detail["state"], event.subject) == (row.pk, "done", str(here.pk))
    assert "plant" not in str(event.detail)


# --- runs that died or came too late ---------------------------------------------------------------------------------


def test_a_run_whose_process_died_is_called_interrupted_by_the_next_one() -> None:
    """R131: no dead run is left that seems to run."""
    here = enabled(scope())
    dead = IntakeRun.objects.create(scope=here, trigger="turns")
    told(here, PLANT)
    report = read(here)
    dead.refresh_from_db()
    assert (dead.state, dead.finished_at is not None, report.state) == ("interrupted", True, "done")


def test_a_run_that_was_taken_over_while_its_model_answered_stores_nothing() -> None:
    """A stolen lease: the guard is in the storing transaction, not in the lease."""
    here = enabled(scope())
    told(here, PLANT)
    inner: list[ingest.RunReport] = []

    def slow(request: Request) -> Any:
        if not inner:
            inner.append(running.run_taken(scope=here, trigger="turns", by="b", completer=model(), embedder=HASHING))
        return echo(request)

    report = read(here, completer=model(slow))
    assert (inner[0].state, inner[0].added) == ("done", 1)
    assert (report.state, report.added) == ("interrupted", 0)
    assert active(here) == [PLANT]
    assert IntakeItem.objects.count() == 1
    assert list(IntakeRun.objects.order_by("pk").values_list("state", flat=True)) == ["interrupted", "done"]


def test_turns_that_somebody_else_settled_meanwhile_are_not_stored_twice() -> None:
    """The second belt: a row per turn, unique."""
    here = enabled(scope())
    [first, second] = told(here, PLANT, "The lift was repaired")

    def slow(request: Request) -> Any:
        run = IntakeRun.objects.get()
        if not Extraction.objects.exists():
            store.take_turns(run=run, states={first.pk: Extraction.State.NOTHING})
        return echo(request)

    report = read(here, completer=model(slow))
    assert (report.state, report.turns, active(here)) == ("done", 1, ["The lift was repaired"])
    assert states([first, second]) == [("nothing", 1), ("claims", 1)]


def test_a_row_that_changed_while_the_reconciler_answered_is_left_alone() -> None:
    here = enabled(scope())
    told(here, "Ana lives in Oslo")
    read(here)
    old = the("Ana lives in Oslo", here)
    told(here, "Ana lives in Lyon")

    def slow(request: Request) -> Any:
        store.move(scope_id=here.pk, ids=[old.pk], to=Status.ARCHIVED)
        store.move(scope_id=here.pk, ids=[old.pk], to=Status.ACTIVE)
        return deciding({"Ana lives in Lyon": ("UPDATE", "Ana lives in Oslo", False)})(request)

    report = read(here, completer=model(reconcile=slow))
    assert (report.updated, report.added, report.flagged) == (0, 1, 1)
    assert active(here) == ["Ana lives in Oslo", "Ana lives in Lyon"]
    assert items(here)[-1] == ("add", f"added: what it was compared with changed meanwhile (obs_{old.pk})")


def test_a_text_that_another_writer_added_while_the_model_answered_is_not_added_again() -> None:
    here = enabled(scope())
    [said] = told(here, PLANT)

    def slow(request: Request) -> Any:
        observe(PLANT, within=here, stated_by=StatedBy.USER)
        return echo(request)

    report = read(here, completer=model(slow))
    assert (report.known, report.added, active(here)) == (1, 0, [PLANT])
    assert the(PLANT, here).evidence.filter(episode=said).count() == 1

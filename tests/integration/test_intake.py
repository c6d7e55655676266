"""The background pipeline on a real database: turns are read once, what they say is stored once (R9-R16, R121-R129).

C4 and C5 stand here as they are told in the cases.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from observations.models import (
    Episode,
    Evidence,
    Extraction,
    IntakeItem,
    Observation,
    Outbox,
    Transition,
    Use,
)
from observations.records import StatedBy, Status, WrittenBy
from tests.building import observe, scope
from tests.intaking import (
    active,
    deciding,
    enabled,
    items,
    lines_of,
    model,
    read,
    sources,
    the,
    told,
    turn,
    uris,
)

pytestmark = pytest.mark.django_db

PLANT = "The office plant is watered on Mondays"
OSLO, LYON = "Ana lives in Oslo", "Ana lives in Lyon"


# --- what is found is stored, once -----------------------------------------------------------------------------------


def test_every_claim_is_stored_with_the_words_of_its_turn_and_whose_word_it_is() -> None:
    """R122: the row says which path wrote it."""
    here = enabled(scope())
    [first, second] = told(here, PLANT, turn("The lift was repaired", number=1, speaker="Helper", role="assistant"))
    report = read(here)
    assert (report.state, report.turns, report.added, report.flagged, report.left) == ("done", 2, 2, 0, 0)
    row = the(PLANT, here)
    assert (row.stated_by, row.written_by, row.created_at) == (StatedBy.USER, WrittenBy.BACKGROUND, first.happened_at)
    assert row.reconciled_at is not None
    [evidence] = Evidence.objects.filter(observation=row)
    assert (evidence.episode_id, evidence.quote, evidence.quote_start) == (first.pk, PLANT, 0)
    theirs = the("The lift was repaired", here)
    assert (theirs.stated_by, sources(theirs)) == (StatedBy.AGENT, [second.source_uri])
    assert row.confidence > 0.6 > theirs.confidence


def test_what_was_read_is_never_asked_about_again_and_nothing_found_is_an_outcome() -> None:
    here = enabled(scope())
    told(here, "Hello Bo", PLANT)
    asked = model()
    read(here, completer=asked)
    states = Extraction.objects.filter(scope=here).order_by("episode").values_list("state", "attempts")
    assert list(states) == [("nothing", 1), ("claims", 1)]
    before = len(asked.requests)
    assert read(here, completer=asked).state == "nothing to do"
    assert len(asked.requests) == before


def test_our_own_context_block_is_not_sent_and_its_turn_is_passed() -> None:
    here = enabled(scope())
    told(here, "<memory>\n- Prefers tea\n</memory>", "   ")
    asked = model()
    report = read(here, completer=asked)
    assert (report.passed, report.turns, asked.requests) == (2, 2, [])
    assert set(Extraction.objects.values_list("state", flat=True)) == {"passed"}


def test_a_batch_costs_two_questions_at_most_and_the_second_only_where_something_is_near() -> None:
    """R124: one for all turns, one for all claims."""
    here = enabled(scope())
    told(here, PLANT, "The lift was repaired", "Bo rows on Sundays")
    asked = model()
    read(here, completer=asked)
    assert [request.purpose for request in asked.requests] == ["extract"]
    told(here, "The plant was repotted", "The lift is slow", "Bo rows alone")
    read(here, completer=asked)
    assert [request.purpose for request in asked.requests] == ["extract", "extract", "reconcile"]


def test_the_extractor_never_sees_what_is_stored() -> None:
    """R125: the whole request is read, system and schema too."""
    here = enabled(scope())
    observe("Zebedee plays the theremin", within=here, key=("Zebedee", "plays", "theremin"))
    told(here, "Somebody plays the theremin well")
    asked = model()
    read(here, completer=asked)
    [extract] = asked.asked_for("extract")
    [reconcile] = asked.asked_for("reconcile")
    assert "Zebedee" not in f"{extract.system}{extract.text}{extract.schema}"
    assert "Zebedee plays the theremin" in reconcile.text


def test_the_reconciler_sees_the_three_nearest_active_rows_of_this_scope_only() -> None:
    """R21, R126, R13, C6."""
    here, other = enabled(scope()), scope("team-b/u2")
    stored = [observe(f"The relay {word} in rack 4", within=here) for word in ("sits", "hums", "rests", "stands")]
    observe("The relay sits in rack 4 elsewhere", within=other)
    told(here, "The relay sits in rack 4 now")
    asked = model()
    read(here, completer=asked)
    [line] = lines_of(asked.asked_for("reconcile")[0])
    assert len(line["near"]) == 3
    assert {near["text"] for near in line["near"]} <= {row.text for row in stored}
    item = IntakeItem.objects.get(scope=here)
    assert set(item.offered) <= {row.pk for row in stored}
    assert len(item.offered) == 3


def test_comparing_is_no_use_so_that_no_source_becomes_prunable_by_it() -> None:
    """R51, I13: only a read that reached somebody counts."""
    here = enabled(scope())
    observe(PLANT, within=here)
    told(here, "The office plant is watered on Fridays")
    read(here)
    assert Use.objects.count() == 0


def test_rows_of_one_batch_are_found_by_meaning_by_the_next_without_waiting_for_a_worker() -> None:
    here = enabled(scope())
    told(here, PLANT)
    read(here)
    row = the(PLANT, here)
    assert row.embeddings.get().vector is not None


# --- C4 --------------------------------------------------------------------------------------------------------------


def test_saying_the_same_thing_twice_never_loses_it_whatever_the_reconciler_answers() -> None:
    """C4: one active row at every step; the new source counts once, the repeat of the old one not at all."""
    here = enabled(scope())
    said = [
        turn(PLANT, number=0, speaker="s1"),
        turn("the office plant is watered on Mondays.", number=1, speaker="s2"),
    ]
    for decides in ({}, {said[1].text: ("DELETE", PLANT, False)}):
        told(here, said[len(decides)])
        report = read(here, completer=model(reconcile=deciding(decides)))
        assert active(here) == [PLANT]
    assert (report.known, report.review) == (1, 0)
    assert sources(the(PLANT, here)) == [said[0].source_uri, said[1].source_uri]
    again = replace(said[0], text=f"{PLANT}!", external_id="the first source, written again")
    assert len(told(here, again)) == 1
    asked = model(reconcile=deciding({again.text: ("UPDATE", PLANT, False)}))
    assert read(here, completer=asked).turns == 1
    assert active(here) == [PLANT]
    assert sources(the(PLANT, here)) == [said[0].source_uri, said[1].source_uri]
    assert asked.asked_for("reconcile") == []
    assert told(here, said[0]) == [Episode.objects.get(text=PLANT)]  # and the very same turn is the same turn


def test_a_delete_without_a_replacement_moves_nothing_and_becomes_a_question_for_a_person() -> None:
    """C4, R11: write-side cleaning never deletes. Both are kept until somebody decides."""
    here = enabled(scope())
    told(here, OSLO)
    read(here)
    told(here, "Ana has left Oslo for good")
    decides = {"Ana has left Oslo for good": ("DELETE", OSLO, False)}
    report = read(here, completer=model(reconcile=deciding(decides)))
    assert (report.review, report.flagged) == (1, 1)
    old, new = the(OSLO, here), the("Ana has left Oslo for good", here)
    assert (old.version, new.reconciled_at) == (1, None)
    item = IntakeItem.objects.get(verdict="review")
    assert (item.target_id, item.observation_id) == (old.pk, new.pk)
    work = Outbox.objects.get(task="review_retire")
    assert (work.payload["observations"], work.payload["item"]) == ([old.pk], item.pk)
    assert "Oslo" not in str(work.payload) + work.key


# --- C5 --------------------------------------------------------------------------------------------------------------


def test_a_target_that_was_never_offered_is_refused_by_name_and_the_other_decision_is_carried_out() -> None:
    """C5."""
    here = enabled(scope())
    stored = [
        observe(text, within=here) for text in ("It ships on Mondays", "It ships on Tuesdays", "The badge office")
    ]
    told(here, "It ships on Fridays", "The badge office is in room 4")
    decides = {"It ships on Fridays": ("UPDATE", "12", False)}
    report = read(here, completer=model(reconcile=deciding(decides)))
    for row in stored:
        row.refresh_from_db()
        assert (row.status, row.version) == (Status.ACTIVE, 1)
    assert items(here) == [("refused", "added; it names a target that was not offered (12)"), ("add", "")]
    assert (report.added, report.flagged) == (2, 1)
    assert the("The badge office is in room 4", here).reconciled_at is not None
    assert the("It ships on Fridays", here).reconciled_at is None


# --- UPDATE, DELETE and replace, NOOP --------------------------------------------------------------------------------


def test_an_update_by_the_same_users_later_turn_supersedes_and_unites_the_evidence() -> None:
    """R9, R12, R15, R128: the old row keeps its text and names its successor; the journal names the doorway."""
    here = enabled(scope())
    first = told(here, OSLO)
    read(here)
    second = told(here, LYON)
    report = read(here, completer=model(reconcile=deciding({LYON: ("UPDATE", OSLO, False)})))
    assert (report.updated, report.flagged, active(here)) == (1, 0, [LYON])
    old, new = Observation.objects.get(text=OSLO), the(LYON, here)
    assert (old.status, old.superseded_by_id, old.text) == (Status.SUPERSEDED, new.pk, OSLO)
    assert sorted(sources(new)) == sorted(uris([*first, *second]))
    assert new.reconciled_at is not None
    moved = Transition.objects.get(observation=old)
    assert (moved.from_status, moved.to_status, moved.cause) == ("active", "superseded", "intake")
    item = IntakeItem.objects.get(verdict="update")
    assert (item.target_id, item.observation_id, item.said) == (old.pk, new.pk, "as told")


def test_a_delete_that_replaces_supersedes_and_starts_its_evidence_fresh() -> None:
    """R16, R129."""
    here = enabled(scope())
    told(here, OSLO)
    read(here)
    second = told(here, LYON)
    report = read(here, completer=model(reconcile=deciding({LYON: ("DELETE", OSLO, True)})))
    assert (report.replaced, active(here)) == (1, [LYON])
    assert sources(the(LYON, here)) == uris(second)


def test_a_noop_attaches_the_new_evidence_to_the_row_that_says_it() -> None:
    here = enabled(scope())
    first = told(here, PLANT)
    read(here)
    said = "On Mondays the office plant is watered"
    second = told(here, said)
    report = read(here, completer=model(reconcile=deciding({said: ("NOOP", PLANT, False)})))
    assert (report.known, active(here)) == (1, [PLANT])
    assert sources(the(PLANT, here)) == uris([*first, *second])


def roots(row: Observation) -> set[str]:
    return set(Evidence.objects.filter(observation=row).values_list("root_source", flat=True))


def test_an_agent_that_says_again_what_it_can_read_is_no_witness_of_its_own() -> None:
    """R95, C8: otherwise memory would corroborate itself. The turn is kept as evidence, under the root of the row."""
    here = enabled(scope())
    [said] = told(here, PLANT)
    read(here)
    told(here, turn(f"{PLANT}.", number=1, speaker="Helper", role="assistant"))
    read(here)
    assert (len(sources(the(PLANT, here))), roots(the(PLANT, here))) == (2, {said.root_source})
    [other] = told(here, turn(f"{PLANT}!", number=2, speaker="Bo"))
    read(here)
    assert roots(the(PLANT, here)) == {said.root_source, other.root_source}


def test_an_agent_that_repeats_a_person_in_the_same_turns_is_none_either() -> None:
    here = enabled(scope())
    turns = told(here, turn(f"{PLANT}.", number=0, speaker="Helper", role="assistant"), turn(PLANT, number=1))
    read(here)
    row = Observation.objects.get(scope=here)
    assert (row.text, row.stated_by, sorted(sources(row))) == (PLANT, StatedBy.USER, sorted(uris(turns)))
    assert roots(row) == {turns[1].root_source}
    assert row.created_at == turns[0].happened_at


def test_a_claim_that_differs_in_a_number_is_never_dropped_as_known() -> None:
    """However near: 2.x and 3.x stay two rows, the second flagged."""
    here = enabled(scope())
    told(here, "The build uses Prefect 2.x")
    read(here)
    said = "The build uses Prefect 3.x"
    told(here, said)
    read(here, completer=model(reconcile=deciding({said: ("NOOP", "The build uses Prefect 2.x", False)})))
    assert active(here) == ["The build uses Prefect 2.x", said]
    assert the(said, here).reconciled_at is None


# --- whose word it is ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("verdict", ["UPDATE", "DELETE"])
@pytest.mark.parametrize(
    ("speaker", "role", "why"),
    [
        ("Bo", "user", "another speaker said what it would replace"),
        ("Helper", "assistant", "the claim is not the user's own word"),
        ("build", "tool", "the claim is not the user's own word"),
    ],
)
def test_what_another_source_says_waits_for_a_person_with_both_rows_in_the_reads(
    verdict: str, speaker: str, role: str, why: str
) -> None:
    here = enabled(scope())
    told(here, OSLO)
    read(here)
    told(here, turn(LYON, number=5, speaker=speaker, role=role))
    report = read(here, completer=model(reconcile=deciding({LYON: (verdict, OSLO, True)})))
    assert (report.review, active(here)) == (1, [OSLO, LYON])
    old, new = the(OSLO, here), the(LYON, here)
    assert (old.version, new.reconciled_at) == (1, None)
    assert items(here)[-1] == ("review", why)
    work = Outbox.objects.get(task="review_contradiction")
    assert (work.payload["old"], work.payload["new"]) == (old.pk, new.pk)


@pytest.mark.parametrize("verdict", ["UPDATE", "DELETE"])
def test_a_row_about_something_else_leaves_the_reads_by_no_answer_of_a_model(verdict: str) -> None:
    """A reconciler that answers nonsense costs a question and no memory, also where the same user spoke later."""
    here = enabled(scope())
    told(here, OSLO)
    read(here)
    told(here, PLANT)
    report = read(here, completer=model(reconcile=deciding({PLANT: (verdict, OSLO, True)})))
    assert (report.review, active(here)) == (1, [OSLO, PLANT])
    assert items(here)[-1] == ("review", "what it would take the place of speaks of something else")


def test_an_earlier_turn_that_comes_late_replaces_nothing() -> None:
    here = enabled(scope())
    told(here, turn(LYON, number=9))
    read(here)
    told(here, turn(OSLO, number=3))
    read(here, completer=model(reconcile=deciding({OSLO: ("UPDATE", LYON, False)})))
    assert active(here) == [LYON, OSLO]
    assert items(here)[-1] == ("review", "it was not said after what it would replace")


@pytest.mark.parametrize("stated_by", [StatedBy.USER, StatedBy.AGENT, StatedBy.OPERATOR])
def test_what_did_not_come_from_a_turn_is_not_replaced_by_the_machine(stated_by: StatedBy) -> None:
    here = enabled(scope())
    observe(OSLO, within=here, stated_by=stated_by)
    told(here, LYON)
    read(here, completer=model(reconcile=deciding({LYON: ("UPDATE", OSLO, False)})))
    assert active(here) == [OSLO, LYON]
    assert Outbox.objects.filter(task="review_contradiction").count() == 1


# --- what moved meanwhile --------------------------------------------------------------------------------------------


def test_two_claims_of_a_batch_about_one_row_supersede_it_once() -> None:
    here = enabled(scope())
    told(here, OSLO)
    read(here)
    told(here, LYON, "Ana lives in Basel")
    decides = {LYON: ("UPDATE", OSLO, False), "Ana lives in Basel": ("UPDATE", OSLO, False)}
    report = read(here, completer=model(reconcile=deciding(decides)))
    assert (report.updated, report.added, report.flagged) == (1, 1, 1)
    assert active(here) == [LYON, "Ana lives in Basel"]
    assert items(here)[-1][1].startswith("added: what it was compared with changed meanwhile")


def test_a_claim_said_again_after_its_row_was_superseded_in_the_same_batch_is_stored_again() -> None:
    """No text that the turns hold to be current is lost."""
    here = enabled(scope())
    told(here, OSLO)
    read(here)
    told(here, LYON, f"{OSLO}.")
    read(here, completer=model(reconcile=deciding({LYON: ("UPDATE", OSLO, False)})))
    assert active(here) == [LYON, f"{OSLO}."]

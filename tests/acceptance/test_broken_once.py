"""Promises that were broken once: each test failed before its repair."""

from __future__ import annotations

import pytest
from django.db import DatabaseError, connection, transaction

from consolidation import review, rollout, runner, sampling
from consolidation.models import Consumption, Demotion, Operation, OperationSource, Policy
from consolidation.operations import Approval, Json, Kind, State
from consolidation.runner import Outcome
from observations import ingest, store, tasks
from observations.models import Event, Evidence, GivenKey, Observation, Scope, Transition
from observations.records import Claim, Given, KeyState, StatedBy, Status, WrittenBy
from observations.store import Fate
from tests.acceptance import world
from tests.acceptance.acting import apply, derived_of, fresh, let_the_grace_pass, three, undo
from tests.building import LONG_AGO, observe, propose, scope, seconded, tell
from tests.conftest import empty_the_store, superuser
from tests.integration.planning import move, one, operations, plan, twins
from tests.jsonl import exported

pytestmark = pytest.mark.django_db(transaction=True)

RETENTION = {"prune": True, "retention": [{"stated_by": "agent", "older_than_days": 30}]}


def _sources(operation: Operation) -> set[int | None]:
    return set(operation.sources.values_list("observation_id", flat=True))


# --- decisions stand -------------------------------------------------------------------------------------------------


def test_a_third_copy_does_not_carry_one_claim_over_to_the_claim_it_was_told_apart_from() -> None:
    """A verdict is for good: the merged row says what its source said, and is kept apart from the same rows."""
    within = scope()
    first, second = twins(within)
    review.distinct(operation=one(plan(within)), by="ann")
    observe("STANDUP moved to 09:30", within=within)
    for _ in range(3):
        rollout.apply_plan(plan=plan(within), by="ann")
    current = Observation.objects.active()
    assert current.count() == 2
    assert Observation.objects.filter(pk__in=[first.pk, second.pk], status=Status.ACTIVE).count() == 1
    assert operations(plan(within)) == []


def test_what_was_undone_is_not_merged_again_through_a_third_copy() -> None:
    """Undo leaves a verdict behind; automatic merges must not find a way round it."""
    within = scope()
    twins(within)
    merge = one(plan(within))
    apply(merge)
    undo(merge)
    for fallen in Demotion.objects.filter(lifted_at=None):  # one undo of one is an error that its rule answers for
        sampling.lift(demotion=fallen, by="sue", reason="the rule is to be tried again")
    observe("STANDUP moved to 09:30", within=within)
    for _ in range(3):
        rollout.apply_plan(plan=plan(within), by="ann")
    assert Observation.objects.active().count() == 2


def test_an_approved_prune_is_still_approved_after_the_next_plan() -> None:
    """DESIGN 4: an approved operation keeps its rows until it is applied or its approval expires."""
    within = scope()
    observe("The old office had a red door", within=within)
    Policy.objects.create(pattern="*", body=RETENTION)
    prune = one(plan(within))
    review.approve(operation=prune, by="ann", reason="too old")
    seconded(prune)
    assert operations(plan(within)) == [prune]
    assert fresh(prune).status == State.APPROVED
    assert apply(prune).outcome == Outcome.APPLIED


def test_all_true_names_every_claim_once() -> None:
    """An approval that gives one claim two periods, or leaves one out, is no answer to the contradiction."""
    rows = three(scope())
    operation = propose(Kind.SUPERSEDE, rows, approval=Approval.NEEDS_HUMAN)
    first, second, third = (row.pk for row in rows)
    for both in ([first], [first, second], [first, first, second], [first, second, third, third]):
        decision = review.Decision(both=tuple((pk, None, LONG_AGO) for pk in both))
        with pytest.raises(review.Refused, match="every claim its period"):
            review.approve(operation=operation, by="ann", decision=decision, reason="both")
    assert fresh(operation).status == State.NEEDS_HUMAN


def test_all_are_true_undone_leaves_a_contradiction_that_is_asked_again_when_something_changed() -> None:
    """Undo takes the decision back too: not asked again as it stands, and not silenced for good."""
    within = scope()
    towns = [observe(f"Ann lives in {town}", within=within, key=("ann", "lives in", town)) for town in ("Oslo", "Rome")]
    [both] = operations(plan(within), Kind.SUPERSEDE)
    review.approve(operation=both, by="ann", decision=review.Decision(many_valued=True), reason="two homes")
    apply(both)
    assert operations(plan(within), Kind.SUPERSEDE) == []
    assert undo(both).outcome == Outcome.UNDONE
    assert operations(plan(within), Kind.SUPERSEDE) == []
    move(towns[0])
    [again] = operations(plan(within), Kind.SUPERSEDE)
    assert (again.op_id, again.generation) == (both.op_id, 2)
    review.distinct(operation=again, by="ann")
    move(towns[1])
    assert operations(plan(within), Kind.SUPERSEDE) == []


# --- nothing is lost without a word ----------------------------------------------------------------------------------


def _say(text: str, *, within: Scope, instead_of: int | None = None, external_id: str = "") -> store.Written:
    claim = Claim(text=text, external_id=external_id, stated_by=StatedBy.USER)
    with transaction.atomic():
        if instead_of is None:
            return store.add_observations(scope=within, claims=[claim], written_by=WrittenBy.DELIBERATE)[0]
        return store.replace(scope=within, old_id=instead_of, claim=claim, written_by=WrittenBy.DELIBERATE)


def _row(written: store.Written) -> Observation:
    assert written.id is not None
    return Observation.objects.get(pk=written.id)


def _current() -> list[str | None]:
    return list(Observation.objects.active().order_by("pk").values_list("text", flat=True))


def test_a_correction_back_to_what_was_said_before_is_not_lost() -> None:
    """R12, C4: from nine to ten and back to nine, and the same correction delivered twice changes nothing."""
    within = scope()
    nine = _say("Standup at nine", within=within)
    ten = _say("Standup at ten", within=within, instead_of=nine.id)
    back = _say("Standup at nine", within=within, instead_of=ten.id)
    assert (back.fate, _current()) == (Fate.ADDED, ["Standup at nine"])
    assert _row(ten).superseded_by_id == back.id
    assert _say("Standup at nine", within=within, instead_of=ten.id).id == back.id
    assert (Observation.objects.count(), world.broken()) == (3, [])


def test_a_correction_to_what_is_current_already_still_supersedes_the_old_row() -> None:
    within = scope()
    ten, nine = _say("Standup at ten", within=within), _say("Standup at nine", within=within)
    assert _say("Standup at ten", within=within, instead_of=nine.id).id == ten.id
    assert _current() == ["Standup at ten"]
    assert _row(nine).superseded_by_id == ten.id


def test_a_correction_under_an_id_that_left_the_reads_is_refused_and_not_called_already_there() -> None:
    within = scope()
    nine = _say("Standup at nine", within=within, external_id="s1")
    ten = _say("Standup at ten", within=within, external_id="s2", instead_of=nine.id)
    refused = _say("Standup at nine", within=within, external_id="s1", instead_of=ten.id)
    assert (refused.fate, refused.id, _current()) == (Fate.REFUSED, None, ["Standup at ten"])


def test_a_merge_of_rows_that_had_no_vector_yet_gets_one() -> None:
    """DESIGN 6: a row is found by its vector as soon as that is computed."""
    within = scope()
    for text in ("Ana likes tea", "ana likes tea."):
        _say(text, within=within)
    merge = one(plan(within))
    apply(merge)
    tasks.sweep()
    assert derived_of(merge).embeddings.get().active


def test_what_was_superseded_before_it_had_a_vector_gets_one_when_that_is_undone() -> None:
    within = scope()
    rows = [_row(_say(text, within=within)) for text in ("Ana likes tea", "Ana likes coffee")]
    operation = propose(Kind.SUPERSEDE, rows, approval=Approval.NEEDS_HUMAN)
    review.approve(operation=operation, by="ann", decision=review.Decision(keep=rows[0].pk), reason="asked her")
    apply(operation)
    tasks.sweep()
    undo(operation)
    tasks.sweep()
    assert [row.embeddings.filter(active=True).count() for row in rows] == [1, 1]


def test_a_store_that_was_exported_and_imported_again_can_merge_what_it_had_undone() -> None:
    """Its rows get the same ids, so its operations do too: the name of the retracted row is taken."""
    within = scope()
    twins(within)
    merge = one(plan(within))
    apply(merge)
    undo(merge)
    lines = exported()
    empty_the_store()
    ingest.import_lines(lines)
    again = one(plan())
    assert again.op_id == merge.op_id
    assert apply(again).outcome == Outcome.APPLIED
    assert world.broken() == []


def test_undo_is_refused_while_a_row_outside_of_it_was_replaced_by_its_result() -> None:
    """I2: a retracted successor would leave that row without one."""
    within = scope()
    merge = propose(Kind.MERGE, three(within))
    apply(merge)
    other = observe("The relay is in rack 4", within=within)
    with transaction.atomic():
        store.move(scope_id=within.pk, ids=[other.pk], to=Status.SUPERSEDED, successor=derived_of(merge).pk)
    refused = undo(merge)
    assert (refused.outcome, refused.sentence) == (Outcome.REFUSED, f"obs_{other.pk} was replaced by its result since.")
    assert world.broken() == []


def test_a_policy_that_cannot_be_read_refuses_with_a_sentence_and_never_raises() -> None:
    operation = propose(Kind.MERGE, three(scope()))
    Policy.objects.create(pattern="*", body={"t_merge": "high"})
    refused = apply(operation)
    assert refused.outcome == Outcome.REFUSED
    assert refused.sentence == "The policy of team-a/u1 cannot be read: t_merge must be a number."
    with pytest.raises(review.Refused, match="cannot be read"):
        review.approve(operation=operation, by="ann")


# --- what the application's role may not forge -----------------------------------------------------------------------


def _sql(statement: str) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement)


def test_the_journal_cannot_be_forged_through_a_table_of_ones_own() -> None:
    """I7: a role may always make temporary tables, and could put the owner's trigger on one."""
    for function in ("palimpsest_observation_journal", "palimpsest_tombstone_clears"):
        with pytest.raises(DatabaseError, match="permission denied for function"):
            _sql(
                "CREATE TEMP TABLE mine (id bigint, scope_id bigint);"
                f"CREATE TRIGGER t AFTER INSERT ON mine FOR EACH ROW EXECUTE FUNCTION {function}()"
            )
    assert Transition.objects.count() == 0


def test_a_source_is_used_up_exactly_while_its_operation_is_applied() -> None:
    """I4: no forged claim keeps it from an operation, no deleted one lets it be used up twice."""
    rows = three(scope())
    operation = propose(Kind.ARCHIVE, rows)
    with pytest.raises(DatabaseError, match="exactly while its operation is applied"), transaction.atomic():
        Consumption.objects.create(scope=rows[0].scope, operation=operation, observation=rows[0])
    apply(operation)
    with pytest.raises(DatabaseError, match="exactly while its operation is applied"):
        _sql("DELETE FROM consolidation_consumption")
    with pytest.raises(DatabaseError, match="permission denied"):
        _sql("UPDATE consolidation_consumption SET observation_id = observation_id")
    assert Consumption.objects.count() == 3


def test_what_undo_restores_is_recorded_once() -> None:
    """I9: restored, never guessed, and never rewritten."""
    operation = propose(Kind.MERGE, three(scope()))
    apply(operation)
    for change in ("prior_valid_from = now()", "prior_status = 'retracted'", "applied_version = 7"):
        with pytest.raises(DatabaseError, match="recorded once"):
            _sql(f"UPDATE consolidation_operationsource SET {change}")
    assert undo(operation).outcome == Outcome.UNDONE


def test_a_source_slipped_in_after_planning_is_not_applied() -> None:
    rows = three(scope())
    operation = propose(Kind.ARCHIVE, rows[:2])
    OperationSource.objects.create(
        scope=rows[2].scope,
        operation=operation,
        observation=rows[2],
        position=2,
        planned_version=1,
        planned_hash=rows[2].content_hash,
    )
    assert apply(operation).outcome == Outcome.FAILED
    assert Observation.objects.active().count() == 3


def test_an_operation_is_born_undecided() -> None:
    within = three(scope())[0].scope
    for state in (State.APPLIED, State.APPROVED):
        Event.objects.append(scope_id=within.pk, action=state, actor="x", subject="op_forged", generation=1)
        with pytest.raises(DatabaseError, match="born planned"), transaction.atomic():
            Operation.objects.create(
                op_id="op_forged",
                scope=within,
                kind=Kind.SUPERSEDE,
                approval=Approval.NEEDS_HUMAN,
                n_sources=2,
                status=state,
                decided_by="x",
                decided_at=LONG_AGO,
                approved_digest="x",
                applied_at=LONG_AGO,
                applied_by="x",
                applied_digest="x",
            )


def test_nothing_is_erased_but_by_an_applied_prune_of_it_or_a_forget_request() -> None:
    """R47, I12: the erasing function may be called by the application, not for whatever it likes."""
    rows = three(scope())
    prune = propose(Kind.PRUNE, rows[:1], approval=Approval.NEEDS_HUMAN)
    for request in ("op_unknown", prune.op_id):
        with pytest.raises(DatabaseError, match="only by an applied prune"), transaction.atomic():
            store.erase(scope_id=rows[0].scope_id, ids=[rows[0].pk], by="x", reason="x", request=request)
    review.approve(operation=prune, by="ann", reason="too old")
    seconded(prune)
    apply(prune)
    with pytest.raises(DatabaseError, match="only by an applied prune"), transaction.atomic():
        store.erase(scope_id=rows[0].scope_id, ids=[row.pk for row in rows], by="x", reason="x", request=prune.op_id)
    assert Observation.objects.filter(text=None).count() == 0


def test_what_a_prune_erased_is_still_erased_after_an_export_and_an_import() -> None:
    """The shell names an operation of another store, and has no text left to lose."""
    prune = propose(Kind.PRUNE, three(scope()), approval=Approval.NEEDS_HUMAN)
    review.approve(operation=prune, by="ann", reason="too old")
    seconded(prune)
    apply(prune)
    let_the_grace_pass(prune)
    assert runner.erase_pruned(scope_id=prune.scope_id, operation_id=prune.pk) == 3
    lines = exported()
    empty_the_store()
    report = ingest.import_lines(lines)
    assert (report.added, report.refused) == (3, [])
    assert set(Observation.objects.values_list("status", "text")) == {(Status.ERASED, None)}
    assert world.broken() == []


def test_an_erase_that_is_woken_too_early_waits_for_the_end_of_the_grace_period() -> None:
    """R85: undo works until then, whatever a row of the queue says."""
    prune = propose(Kind.PRUNE, three(scope()), approval=Approval.NEEDS_HUMAN)
    review.approve(operation=prune, by="ann", reason="too old")
    seconded(prune)
    apply(prune)
    with pytest.raises(review.Refused, match="its grace period ends on"):
        runner.erase_pruned(scope_id=prune.scope_id, operation_id=prune.pk)
    assert undo(prune).outcome == Outcome.UNDONE
    assert Observation.objects.active().count() == 3


def test_the_owners_functions_are_nobodys_to_call() -> None:
    """Every function that runs as the owner: the application may execute the two that erase and no other."""
    with superuser() as admin:
        found = admin.execute(
            "SELECT proname FROM pg_proc WHERE prosecdef AND pronamespace = 'public'::regnamespace"
            " AND has_function_privilege('palimpsest_app', oid, 'EXECUTE')"
        ).fetchall()
    assert sorted(found) == [("palimpsest_erase_core",), ("palimpsest_erase_observations",)]


# --- keys, names and lessons -----------------------------------------------------------------------------------------


def _twins_with_keys(*states: KeyState) -> tuple[Operation, list[Observation]]:
    """A merge of rows with one text, the first kept, and what a model said about the key of each."""
    within = scope()
    rows = [observe("Bo works at Relay.", within=within) for _ in states]
    subject = {KeyState.GIVEN: "Bo", KeyState.WITHDRAWN: "Bo"}
    given = {
        row.pk: Given(
            state if state != KeyState.WITHDRAWN else KeyState.GIVEN, "m", "1", subject=subject.get(state, "")
        )
        for row, state in zip(rows, states, strict=True)
    }
    with transaction.atomic():
        store.put_keys(scope_id=within.pk, given=given)
    for row, state in zip(rows, states, strict=True):
        if state == KeyState.WITHDRAWN:
            ingest.withdraw_key(observation=row, by="rev")
    return propose(Kind.MERGE, rows, keeper=rows[0]), rows


def test_a_key_that_a_person_took_back_does_not_come_back_by_a_merge() -> None:
    """It was taken back of the text, and the merged row says the same: the kept twin's guess is not carried on."""
    merge, _ = _twins_with_keys(KeyState.GIVEN, KeyState.WITHDRAWN)
    assert apply(merge).outcome == Outcome.APPLIED
    assert GivenKey.objects.get(observation=derived_of(merge)).state == KeyState.WITHDRAWN


def test_a_merged_row_takes_over_the_key_of_a_twin_when_the_kept_one_has_none() -> None:
    within = scope()
    rows = [observe("Bo works at Relay.", within=within) for _ in "ab"]
    with transaction.atomic():
        store.put_keys(scope_id=within.pk, given={rows[1].pk: Given(KeyState.GIVEN, "m", "1", subject="Bo")})
    merge = propose(Kind.MERGE, rows, keeper=rows[0])
    apply(merge)
    assert GivenKey.objects.get(observation=derived_of(merge)).subject == "Bo"


def test_what_a_model_said_about_another_wording_is_not_carried_over() -> None:
    within = scope()
    rows = [observe(text, within=within) for text in ("Bo works at Relay.", "Bo is employed by Relay.")]
    with transaction.atomic():
        store.put_keys(scope_id=within.pk, given={rows[1].pk: Given(KeyState.GIVEN, "m", "1", subject="Bo")})
    merge = propose(Kind.MERGE, rows, approval=Approval.NEEDS_HUMAN, keeper=rows[0])
    review.approve(operation=merge, by="ann")
    apply(merge)
    assert not GivenKey.objects.filter(observation=derived_of(merge)).exists()


def test_a_withdrawn_key_is_not_given_again_by_a_detour() -> None:
    """First "none", then "given": each of the two looked harmless to the database once."""
    _, rows = _twins_with_keys(KeyState.WITHDRAWN, KeyState.WITHDRAWN)
    with pytest.raises(DatabaseError, match="withdrawn by a person"):
        _sql(f"UPDATE observations_givenkey SET state = 'none' WHERE observation_id = {rows[0].pk}")


def test_evidence_that_is_an_episode_still_is_after_an_export_and_an_import() -> None:
    """R77: the words a promoted fact rests on lead to the turn that said them."""
    within = scope()
    told = [tell(f"Week {n}: the night train again", within=within, root=f"mail://{n}") for n in range(3)]
    support: list[Json] = [[turn.pk, 8, 23] for turn in told]
    product: dict[str, Json] = {"discriminator": "b.0", "support": support, "confidence": 0.6}
    apply(propose(Kind.PROMOTE, told, product=product, text="Ana takes the night train"))
    lines = exported()
    empty_the_store()
    ingest.import_lines(lines)
    cited = Evidence.objects.filter(observation__derivation="promote").order_by("pk")
    assert [row.episode and row.episode.text for row in cited] == [turn.text for turn in told]

"""What the background put in another row's place is taken back in one step, or refused, naming the blocker (R12)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import transaction

from consolidation import invariants
from consolidation.operations import Kind
from observations import ingest, store
from observations.ingest import BuiltOn, NotCurrent, NotHere, NothingToTakeBack, UsersWord, take_back
from observations.models import Embedding, Event, IntakeItem, Observation, Scope, Transition, database_now
from observations.records import Claim, StatedBy, Status
from tests.acceptance.racing import applied, approved
from tests.building import embed, observe, propose, scope
from tests.conftest import superuser
from tests.intaking import active, deciding, enabled, model, read, sources, told

pytestmark = pytest.mark.django_db(transaction=True)

OSLO, LYON, BONN = "Ana lives in Oslo", "Ana lives in Lyon", "Ana lives in Bonn"
DECIDES = {LYON: ("UPDATE", OSLO, False), BONN: ("DELETE", LYON, True)}


@pytest.fixture
def here() -> Scope:
    """A scope in which one of Ana's later turns took the place of an earlier one."""
    within = enabled(scope("team-a/ana"))
    say(within, OSLO)
    say(within, LYON)
    return within


def say(within: Scope, *texts: str) -> None:
    """Turns of Ana, read at once."""
    told(within, *texts)
    read(within, completer=model(reconcile=deciding(DECIDES)))


def row(text: str, within: Scope) -> Observation:
    return Observation.objects.filter(scope=within, text=text).latest("pk")


def state(one: Observation) -> tuple[object, ...]:
    """Everything of a row that a move may touch, but for its version."""
    now = Observation.objects.get(pk=one.pk)
    return now.status, now.superseded_by_id, now.valid_from, now.valid_to, now.text, now.reconciled_at


def refused(of: Observation, expected: type[Exception], *words: str, by: str = "ines") -> None:
    """Refused with a sentence that holds these words, and nothing changed."""
    before = list(Observation.objects.filter(scope=of.scope).order_by("pk").values())
    with pytest.raises(expected) as refusal:
        take_back(scope=of.scope, observation_id=of.pk, by=by)
    assert all(word in str(refusal.value) for word in words), str(refusal.value)
    assert list(Observation.objects.filter(scope=of.scope).order_by("pk").values()) == before


@pytest.mark.parametrize("named", [LYON, OSLO])
def test_the_old_row_stands_again_exactly_as_it_stood_and_the_new_one_is_archived(named: str) -> None:
    """R12, I7: by either row; the journal says who, the event names both, the evidence stays where it was joined."""
    here = enabled(scope())
    say(here, OSLO)
    before = state(row(OSLO, here))
    say(here, LYON)
    old, new = row(OSLO, here), row(LYON, here)
    witnesses = sources(new)
    assert len(witnesses) == 2
    answer = take_back(scope=here, observation_id=row(named, here).pk, by="ines")
    assert (answer.id, answer.back, answer.done_before) == (new.pk, (old.pk,), False)
    assert state(old) == before
    assert (state(new)[0], sources(new), active(here)) == (Status.ARCHIVED, witnesses, [OSLO])
    moves = Transition.objects.filter(scope=here, cause="take back, by ines").order_by("observation")
    assert [(move.observation_id, move.to_status) for move in moves] == [(old.pk, "active"), (new.pk, "archived")]
    event = Event.objects.get(action="taken_back")
    assert (event.actor, event.subject, event.detail) == ("ines", f"obs_{new.pk}", {"back": [f"obs_{old.pk}"]})
    assert [str(found) for found in invariants.check()] == []


def test_taking_back_twice_is_taking_back_once_by_either_row(here: Scope) -> None:
    old, new = row(OSLO, here), row(LYON, here)
    take_back(scope=here, observation_id=new.pk, by="ines")
    before = list(Observation.objects.order_by("pk").values())
    for each in (new, old):
        answer = take_back(scope=here, observation_id=each.pk, by="rita")
        assert (answer.id, answer.back, answer.done_before) == (new.pk, (old.pk,), True)
    assert list(Observation.objects.order_by("pk").values()) == before
    assert Event.objects.filter(action="taken_back").count() == 1


def test_of_a_chain_only_the_newest_is_taken_back_and_then_the_one_before(here: Scope) -> None:
    say(here, BONN)
    first, second, third = (row(text, here) for text in (OSLO, LYON, BONN))
    refused(second, NotCurrent, f"superseded by obs_{third.pk}")
    refused(first, NotCurrent, f"superseded by obs_{third.pk}")
    assert take_back(scope=here, observation_id=third.pk, by="ines").back == (second.pk,)
    assert active(here) == [LYON]
    assert take_back(scope=here, observation_id=second.pk, by="ines").back == (first.pk,)
    assert active(here) == [OSLO]
    assert take_back(scope=here, observation_id=third.pk, by="ines").done_before


def test_a_row_that_took_the_place_of_several_in_one_batch_gives_all_of_them_back(here: Scope) -> None:
    """One run may give a row more than one old row; they come back together, at once."""
    new = row(LYON, here)
    [other] = [observe("Ana moved to Oslo", within=here, stated_by=StatedBy.USER)]
    item = IntakeItem.objects.get(scope=here, observation=new)
    with transaction.atomic():
        store.lock_scope(scope_id=here.pk, cause="intake")
        store.move(scope_id=here.pk, ids=[other.pk], to=Status.SUPERSEDED, successor=new.pk)
    item.pk, item.target = None, other
    item.save(force_insert=True)
    answer = take_back(scope=here, observation_id=other.pk, by="ines")
    assert answer.back == (row(OSLO, here).pk, other.pk)
    assert sorted(active(here)) == [OSLO, "Ana moved to Oslo"]


def test_a_later_turn_may_say_it_again_and_a_later_run_does_not_bring_it_back_by_itself(here: Scope) -> None:
    """The turn was read: it is not read again. Another turn with the same words is news."""
    take_back(scope=here, observation_id=row(LYON, here).pk, by="ines")
    report = read(here, completer=model(reconcile=deciding(DECIDES)))
    assert (report.state, active(here)) == ("nothing to do", [OSLO])
    for _ in range(2):
        say(here, LYON)
        assert active(here) == [LYON]
        take_back(scope=here, observation_id=row(LYON, here).pk, by="ines")
        assert active(here) == [OSLO]
    assert Observation.objects.filter(scope=here, text=LYON, status=Status.ARCHIVED).count() == 3


# --- refused, naming the blocker -------------------------------------------------------------------------------------


def test_a_row_that_is_not_here_or_took_no_rows_place_is_refused(here: Scope) -> None:
    other = enabled(scope("team-b/bo"))
    say(other, OSLO)
    foreign = row(OSLO, other)
    refused(foreign, NothingToTakeBack, "nothing in the place", f"obs_{foreign.pk}")
    with pytest.raises(NotHere):
        take_back(scope=here, observation_id=foreign.pk, by="ines")
    refused(observe("Written by hand", within=here), NothingToTakeBack)


def test_a_replacement_by_a_deliberate_call_is_not_the_backgrounds(here: Scope) -> None:
    bo = observe("Bo likes tea", within=here)
    kept = ingest.correct(scope=here, observation_id=bo.pk, claim=Claim(text="Bo likes coffee"), by="ines")
    assert kept.id
    refused(Observation.objects.get(pk=kept.id), NothingToTakeBack)


def test_a_corrected_or_retired_new_row_is_not_current(here: Scope) -> None:
    new = row(LYON, here)
    kept = ingest.correct(scope=here, observation_id=new.pk, claim=Claim(text="Ana lives in Paris"), by="ines")
    refused(new, NotCurrent, f"superseded by obs_{kept.id}")


def test_a_retired_new_row_is_not_current(here: Scope) -> None:
    new = row(LYON, here)
    ingest.retire(scope=here, observation_id=new.pk, by="ines")
    refused(new, NotCurrent, "archived")


def test_a_scope_on_hold_is_refused(here: Scope) -> None:
    ingest.hold(scope=here, by="ines", reason="a lawsuit")
    refused(row(LYON, here), BuiltOn, "hold")
    ingest.release(scope=here, by="ines")
    take_back(scope=here, observation_id=row(LYON, here).pk, by="ines")


def test_a_row_that_was_derived_from_it_stands_in_the_way_until_it_is_undone(here: Scope) -> None:
    new = row(LYON, here)
    with transaction.atomic():
        store.lock_scope(scope_id=here.pk, exclusive=True, cause="apply op_12#1")
        made = store.Derived(Claim(text="Ana lives in France"), (new.pk,), "promote", "op_12#1")
        derived = store.write_derived(scope=here, derived=made)
    refused(new, BuiltOn, f"obs_{derived}", "op_12#1")
    with transaction.atomic():
        store.lock_scope(scope_id=here.pk, cause="undo op_12#1")
        store.move(scope_id=here.pk, ids=[derived], to=Status.RETRACTED)
    take_back(scope=here, observation_id=new.pk, by="ines")


def test_a_merge_that_took_it_in_is_named(here: Scope) -> None:
    new = row(LYON, here)
    twin = observe(LYON, within=here)
    embed([new.pk, twin.pk], within=here)
    operation = applied(approved(propose(Kind.MERGE, [new, twin])))
    refused(new, NotCurrent, operation.op_id)


def test_a_row_that_gave_way_to_it_since_stands_in_the_way(here: Scope) -> None:
    new, later = row(LYON, here), observe("Ana is in Lyon", within=here)
    with transaction.atomic():
        store.lock_scope(scope_id=here.pk, cause="apply op_7#1")
        store.move(scope_id=here.pk, ids=[later.pk], to=Status.SUPERSEDED, successor=new.pk)
    refused(new, BuiltOn, f"obs_{later.pk}")


def test_an_operation_that_changed_its_validity_is_named(here: Scope) -> None:
    new = row(LYON, here)
    with transaction.atomic():
        store.lock_scope(scope_id=here.pk, cause="apply op_7#1")
        store.set_validity(scope_id=here.pk, periods={new.pk: (database_now(), None)})
    refused(new, BuiltOn, "op_7#1")


@pytest.mark.parametrize("which", [OSLO, LYON])
def test_an_erased_row_is_not_brought_back_nor_taken_back(here: Scope, which: str) -> None:
    """I12: what was forgotten stays forgotten."""
    with superuser() as admin:
        admin.execute("SET session_replication_role = replica")
        admin.execute(
            "UPDATE observations_observation SET status = 'erased', text = NULL WHERE id = %s", (row(which, here).pk,)
        )
    named = Observation.objects.filter(scope=here).earliest("pk")
    refused(named, NotCurrent if which == LYON else BuiltOn, "erased")


def test_an_old_row_that_is_back_already_is_not_brought_back_twice(here: Scope) -> None:
    old, new = row(OSLO, here), row(LYON, here)
    with transaction.atomic():
        store.lock_scope(scope_id=here.pk, cause="by hand")
        store.restore(scope_id=here.pk, priors=[store.Prior(old.pk, Status.ACTIVE, None, None, None)])
    refused(new, BuiltOn, f"obs_{old.pk}", "active")


def test_where_another_row_says_the_old_words_by_now_there_would_be_two(here: Scope) -> None:
    again = observe("ana lives in oslo!", within=here)
    refused(row(LYON, here), BuiltOn, f"obs_{again.pk}", f"obs_{row(OSLO, here).pk}")


def test_a_program_takes_back_the_users_word_only_where_it_speaks_for_the_user(here: Scope) -> None:
    """What `retire` and `correct` let a program do, and no more."""
    new = row(LYON, here)
    refused(new, UsersWord, "user's own word", by="token:abc")
    assert take_back(scope=here, observation_id=new.pk, by="token:abc", speaks_for_user=True).back
    assert active(here) == [OSLO]


def test_a_row_that_was_taken_back_is_not_restored_but_named(here: Scope) -> None:
    new = row(LYON, here)
    take_back(scope=here, observation_id=new.pk, by="ines")
    with pytest.raises(NotCurrent, match="taken back"):
        ingest.bring_back(scope=here, observation_id=new.pk, by="ines")


def test_queries_do_not_grow_with_the_scope(here: Scope, django_assert_max_num_queries: Callable[..., object]) -> None:
    for number in range(5):
        observe(f"Something else {number}", within=here)
    with django_assert_max_num_queries(36):  # type: ignore[attr-defined]
        take_back(scope=here, observation_id=row(LYON, here).pk, by="ines")


def test_the_row_that_is_back_is_found_by_meaning_again(here: Scope) -> None:
    """Its vector is in the reads again, and the other one's is not."""
    old = row(OSLO, here)
    take_back(scope=here, observation_id=old.pk, by="ines")
    assert Embedding.objects.filter(observation=old, active=True).exists()
    assert not Embedding.objects.filter(observation=row(LYON, here), active=True).exists()

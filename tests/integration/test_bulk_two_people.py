"""What is approved together and goes over the blast radius waits for a second person, split up or not (E7, D2)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction
from django.test import Client
from django.urls import reverse

from consolidation import review, rollout, runner
from consolidation.models import BulkDecision, BulkItem, Operation, Plan, Policy
from consolidation.operations import Approval, Kind, State
from consolidation.review import bulk as bulks
from consolidation.review import together
from consolidation.review.bulk import Verb, ask, carry_out, start
from consolidation.runner import Outcome
from observations.models import Scope, database_now
from tests.acceptance.racing import race
from tests.building import observe, propose, scope
from tests.consolidating import run
from tests.desk import client_of, item_url, person, settle

pytestmark = pytest.mark.django_db

RADIUS = {"blast_floor": 3, "blast_share": 0.0}  # three records are touched by one person, four by two
ALONE, WAITS = "approved", "approved; it waits for a second person"


@pytest.fixture
def here() -> Scope:
    """Whose memory it is, under a narrow radius."""
    Policy.objects.create(pattern="team-a/*", body=RADIUS)
    return scope("team-a/u1")


@pytest.fixture
def ana(db: None) -> Client:
    """A reviewer of team-a."""
    return client_of(person("ana", "Reviewer", "team-a/*"))


def merges(within: Scope, number: int, *, plan: Plan | None = None) -> list[Operation]:
    """So many merges of two records each."""
    made = []
    for n in range(number):
        pair = [observe(f"Tea {n} {word}", within=within) for word in ("green", "Green.")]
        made.append(propose(Kind.MERGE, pair, approval=Approval.NEEDS_HUMAN, plan=plan))
    return made


def listed(operations: list[Operation], *, by: str = "ana") -> BulkDecision:
    """These, to be approved together once that is confirmed."""
    shown = {row.pk: review.shown_digest(operation=row) for row in operations}
    return ask(verb=Verb.APPROVE, among=Operation.objects.all(), by=by, shown=shown)


def together_by(operations: list[Operation], *, by: str = "ana") -> list[str]:
    """Approve these together; what is said of each."""
    bulk = listed(operations, by=by)
    start(bulk=bulk, by=by)
    settle()
    return list(BulkItem.objects.filter(bulk=bulk).order_by("position").values_list("sentence", flat=True))


def applied(operation: Operation) -> runner.Result:
    """What comes of applying it, as it stands now."""
    done = runner.apply(operation=Operation.objects.select_related("scope").get(pk=operation.pk), by="olga")
    settle()
    return done


# --- over the radius ------------------------------------------------------------------------------------------------


def test_what_is_approved_together_over_the_radius_is_applied_only_once_another_person_agreed(
    here: Scope, ana: Client
) -> None:
    """E7: each of two merges is within it and both are over it, so none is applied before another person agreed."""
    made = merges(here, 2)
    assert together_by(made) == [WAITS, WAITS]
    for operation in made:
        refused = applied(operation)
        assert refused.outcome == Outcome.REFUSED
        assert "for all approved with it" in refused.sentence
        assert f"consolidate agree {operation.op_id}" in refused.sentence
    review.second(operation=made[0], by="ben")
    assert [applied(operation).outcome for operation in made] == [Outcome.APPLIED, Outcome.REFUSED]


def test_the_same_two_approved_one_by_one_are_applied_by_one_person(here: Scope, ana: Client) -> None:
    """E7, naive control: it is approving them together, read in one go, that asks for two people."""
    for operation in merges(here, 2):
        approved = review.approve(operation=operation, by="ana", digest=review.shown_digest(operation=operation))
        assert not approved.needs_second
        assert applied(operation).outcome == Outcome.APPLIED


def test_the_database_refuses_to_apply_one_of_them_around_the_code(here: Scope, ana: Client) -> None:
    """E7, naive control: an UPDATE that asks nobody is refused by the row's own rule."""
    made = merges(here, 2)
    together_by(made)
    done = {"status": "applied", "applied_by": "olga", "applied_at": database_now(), "applied_digest": "a" * 64}
    with pytest.raises(IntegrityError, match="two_agreed"), transaction.atomic():
        Operation.objects.filter(pk=made[0].pk).update(**done)


@pytest.mark.parametrize("number", [1, 2])
def test_the_radius_is_that_of_a_plan_of_the_same_items(number: int, here: Scope, ana: Client) -> None:
    """E7: what a plan would ask two people for, and nothing else."""
    plan = Plan.objects.create(scope=here, pattern=here.name, requested_by="test", trigger="command")
    said = together_by(merges(here, number, plan=plan))
    assert (WAITS in said) == bool(rollout.width(plan=plan)) == (number == 2)


def test_only_the_scope_whose_radius_is_passed_waits(here: Scope, ana: Client) -> None:
    """E7: a decision over two scopes is reckoned per scope."""
    wide, narrow = merges(here, 2), merges(scope("team-a/u2"), 1)
    assert together_by([*wide, *narrow]) == [WAITS, WAITS, ALONE]
    assert BulkDecision.objects.get().wide == [here.pk]


def test_a_policy_may_let_one_person_approve_that_much_together(here: Scope, ana: Client) -> None:
    """E7: configurable per policy; the page says which field it is."""
    Policy.objects.update(body={**RADIUS, "two_person_wide": False})
    bulk = listed(merges(here, 2))
    page = ana.get(reverse("admin:consolidation_operation_bulk", args=[bulk.pk])).content.decode()
    assert "over it: one person is enough here (two_person_wide in the policy)" in page
    start(bulk=bulk, by="ana")
    assert not Operation.objects.filter(needs_second=True).exists()


def test_the_page_says_before_and_afterwards_that_a_second_person_is_needed(here: Scope, ana: Client) -> None:
    """E7: before confirming, on the line of each item, on the item's page, and by `explain`."""
    made = merges(here, 2)
    bulk = listed(made)
    address = reverse("admin:consolidation_operation_bulk", args=[bulk.pk])
    assert "over it: a second person agrees to these before any is applied" in ana.get(address).content.decode()
    ana.post(reverse("admin:consolidation_operation_bulkconfirm", args=[bulk.pk]))
    settle()
    assert ana.get(address).content.decode().count(WAITS) == 2
    assert "for all approved with it" in ana.get(item_url(made[0])).content.decode()
    assert "for all approved with it" in run(f"explain {made[0].op_id}").out


def test_what_was_confirmed_before_anybody_reckoned_needs_a_second_person(here: Scope, ana: Client) -> None:
    """E7: a worker of this version goes on with what an older one confirmed and left; nobody knows how wide it was."""
    bulk = listed(merges(here, 1))
    assert carry_out(bulk=bulk) == 0
    assert Operation.objects.get().needs_second


# --- split up -------------------------------------------------------------------------------------------------------


def test_approvals_split_up_to_stay_under_the_radius_meet_there(here: Scope, ana: Client) -> None:
    """E7, as a plan counts: the first is one person's, and the next one, with it over the radius, is two people's."""
    first, second = merges(here, 1), merges(here, 1)
    assert together_by(first) == [ALONE]
    bulk = listed(second)
    page = ana.get(reverse("admin:consolidation_operation_bulk", args=[bulk.pk])).content.decode()
    assert "with 2 more that ana alone approved there and nobody has applied" in page
    start(bulk=bulk, by="ana")
    assert [Operation.objects.get(pk=row.pk).needs_second for row in (*first, *second)] == [False, True]
    assert together_by(merges(here, 1), by="cli:ana")[0] != ALONE


def test_what_one_person_approved_singly_counts_too(here: Scope, ana: Client) -> None:
    """E7: a plan does not ask how an item came to be approved."""
    [single] = merges(here, 1)
    review.approve(operation=single, by="ana", digest=review.shown_digest(operation=single))
    assert together_by(merges(here, 1)) == [WAITS]


@pytest.mark.parametrize("why", ["applied", "expired", "waits", "reopened", "of another", "elsewhere"])
def test_what_is_over_or_not_of_one_person_alone_counts_no_more(why: str, here: Scope, ana: Client) -> None:
    """E7: applied, ran out, taken back, waiting for a second person, another reviewer's, another scope's."""
    place = scope("team-a/u2") if why == "elsewhere" else here
    [before] = merges(place, 1)
    by = "ben" if why == "of another" else "ana"
    digest = review.shown_digest(operation=before)
    review.approve(operation=before, by=by, digest=digest, wide=why == "waits")
    if why == "applied":
        assert applied(before).outcome == Outcome.APPLIED
    elif why == "expired":
        Operation.objects.filter(pk=before.pk).update(approval_expires_at=database_now() - timedelta(minutes=1))
    elif why == "reopened":
        review.reopen(operation=before, by="ana")
    assert together_by(merges(here, 1)) == [ALONE]


def test_what_is_confirmed_and_not_yet_carried_out_counts(here: Scope, ana: Client) -> None:
    """E7: a second decision cannot slip in while the first one's items still wait for their turn; one that was only
    listed is nobody's decision yet.
    """
    first = listed(merges(here, 1))
    assert not together.scopes_over(bulk=listed(merges(here, 1)))
    bulks._confirm(first, "ana", "")
    assert together_by(merges(here, 1)) == [WAITS]
    carry_out(bulk=first)
    assert [item.sentence for item in first.items.all()] == [ALONE]


def confirmed(bulk: BulkDecision) -> None:
    """Confirm and carry out, in another connection."""
    start(bulk=bulk, by="ana")


def raced() -> list[int]:
    """Two approvals confirmed at once in each of eight scopes: how many of each two wait for a second person."""
    Policy.objects.create(pattern="team-a/*", body=RADIUS)
    person("ana", "Reviewer", "team-a/*")
    scopes = [scope(f"team-a/race{n}") for n in range(8)]
    schedules = [[partial(confirmed, listed(merges(each, 1))) for _ in range(2)] for each in scopes]
    assert race(schedules) == [[None, None]] * len(scopes)
    assert Operation.objects.filter(status=State.APPROVED).count() == 2 * len(scopes)
    return [Operation.objects.filter(scope=each, needs_second=True).count() for each in scopes]


@pytest.mark.django_db(transaction=True)
def test_of_two_confirmed_at_once_the_later_one_counts_the_earlier() -> None:
    """E7: under lock: whichever comes second waits for a second person, in every scope."""
    assert raced() == [1] * 8


@pytest.mark.django_db(transaction=True)
def test_without_the_lock_two_confirmed_at_once_miss_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """E7, naive control: reckoned without it, both are under the radius in some scope, and nobody else agrees."""

    def unlocked(*, bulk: BulkDecision) -> list[int]:
        return [share.scope_id for share in together.shares(bulk=bulk) if share.second]

    monkeypatch.setattr(bulks, "scopes_over", unlocked)
    assert 0 in raced()


def reckoned_while_the_other_is_carried_out(within: Scope, statement: int) -> tuple[bool, bool]:
    """Whether the earlier of two decisions was carried out right before one statement of the later one's reckoning, and
    whether that one needs a second person.
    """
    first, second = listed(merges(within, 1)), listed(merges(within, 1))
    bulks._confirm(first, "ana", "")
    seen, busy = [0], [False]

    def meanwhile(execute: Callable[..., object], *statement_and_more: Any) -> object:
        if not busy[0]:
            seen[0] += 1
            if seen[0] == statement:
                busy[0] = True
                carry_out(bulk=first)
                busy[0] = False
        return execute(*statement_and_more)

    with connection.execute_wrapper(meanwhile):
        wide = bool(together.scopes_over(bulk=second))
    return seen[0] >= statement, wide


def test_what_is_being_carried_out_while_another_is_reckoned_counts_at_every_moment(here: Scope, ana: Client) -> None:
    """E7: an item that goes from waiting to approved between two statements is missed by none of them."""
    for statement in range(1, 20):
        carried_out, wide = reckoned_while_the_other_is_carried_out(scope(f"team-a/at{statement}"), statement)
        assert wide, f"missed when carried out right before statement {statement}"
        if not carried_out:
            break
    assert statement > 5


def test_what_the_same_person_confirmed_by_their_other_name_and_nobody_carried_out_counts(
    here: Scope, ana: Client
) -> None:
    """E7: "cli:ana" and "ana" are one person, before an item's turn as after it."""
    first = listed(merges(here, 1), by="cli:ana")
    bulks._confirm(first, "cli:ana", "")
    assert together_by(merges(here, 1)) == [WAITS]

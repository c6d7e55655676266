"""What a person decides is what was shown, and happens once; who comes second is told (C11, C13, C16, D2)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import combinations

import pytest
from django.db import transaction
from django.test import Client
from django.urls import reverse

from consolidation import review, runner
from consolidation.models import BulkItem, Operation, OperationSource, PlanItem, Policy, Verdict
from consolidation.operations import Approval, Kind, State
from consolidation.review import bulk
from consolidation.runner import Outcome
from observations import store
from observations.models import Event, Observation
from observations.records import Status
from tests.building import observe, propose
from tests.desk import World, client_of, decide, item_url, person, settle, status_of, world

pytestmark = pytest.mark.django_db

QUEUE = "admin:consolidation_operation_changelist"


@pytest.fixture
def mine() -> World:
    """A memory of scope team-a/u1."""
    return world()


@pytest.fixture
def ana() -> Client:
    """A reviewer of team-a."""
    return client_of(person("ana", "Reviewer", "team-a/*"))


@pytest.fixture
def ben() -> Client:
    """Another one."""
    return client_of(person("ben", "Reviewer", "team-a/*"))


@pytest.fixture
def olga() -> Client:
    """An operator of team-a."""
    return client_of(person("olga", "Operator", "team-a/*"))


def digest_on(client: Client, operation: Operation) -> str:
    """The digest in the item page's form."""
    found = re.search(r'name="digest" value="([0-9a-f]{64})"', client.get(item_url(operation)).content.decode())
    assert found is not None
    return found.group(1)


def supersede_row(row: Observation, by: Observation) -> None:
    """Somebody corrects a row while others review it."""
    with transaction.atomic():
        store.lock_scope(scope_id=row.scope_id, cause="a correction")
        store.move(scope_id=row.scope_id, ids=[row.pk], to=Status.SUPERSEDED, successor=by.pk)


def ids_of(operation: Operation) -> list[int]:
    """An operation's sources, in their order."""
    return [row.observation_id or 0 for row in operation.sources.order_by("position")]


def keeper_of(operation: Operation) -> int:
    """The proposed keeper."""
    assert operation.keeper_id is not None
    return operation.keeper_id


def product_of(operation: Operation) -> Observation:
    """The row an applied operation wrote."""
    return Observation.objects.get(pk=Operation.objects.get(pk=operation.pk).derived_id or 0)


def source(operation: Operation) -> Observation:
    """One of an operation's sources."""
    return Observation.objects.get(pk=ids_of(operation)[0])


# --- one item -------------------------------------------------------------------------------------------------------


def test_an_item_is_approved_with_the_digest_its_page_showed(mine: World, ana: Client) -> None:
    """I17: the approval holds the digest of what was rendered, and who gave it."""
    status, page = decide(ana, mine.merge, "approve", digest=digest_on(ana, mine.merge))
    assert status == 200
    assert "is approved" in page
    decided = Operation.objects.get(pk=mine.merge.pk)
    assert (decided.status, decided.decided_by) == (State.APPROVED, "ana")


def test_a_message_leaves_an_id_as_it_is_written(mine: World, ana: Client) -> None:
    """An id is looked up by what is printed: no capital letter for the sentence's sake."""
    _, page = decide(ana, mine.merge, "approve", digest=digest_on(ana, mine.merge))
    assert f"{mine.merge.op_id} is approved" in page


def test_withdrawing_what_nobody_approved_is_a_rejection_and_needs_the_digest_of_one(mine: World, ana: Client) -> None:
    """D2: the verb that takes an approval back is no way round what the page showed."""
    status, _ = decide(ana, mine.merge, "withdraw", digest="0" * 64, reason="no")
    assert (status, status_of(mine.merge)) == (409, State.NEEDS_HUMAN)


def test_the_page_and_the_review_compute_one_digest(mine: World, ana: Client) -> None:
    """D2: the digest of a page, made without queries of its own, is review.shown_digest for every sort of operation."""
    listed = {row.pk: row.digest for row in ana.get(reverse(QUEUE)).context["rows"]}
    for operation in (mine.merge, mine.supersede, mine.prune, mine.skipped):
        assert digest_on(ana, operation) == review.shown_digest(operation=operation) == listed[operation.pk]


def test_a_reviewer_chooses_another_text_to_keep(mine: World, olga: Client) -> None:
    """The keeper is the reviewer's choice; the merged record carries its text."""
    [other] = {*ids_of(mine.merge)} - {keeper_of(mine.merge)}
    assert decide(olga, mine.merge, "approve_apply", choice=f"keep:{other}")[0] == 200
    assert status_of(mine.merge) == State.APPLIED
    assert product_of(mine.merge).text == Observation.objects.get(pk=other).text


def test_a_contradiction_is_settled_by_keeping_one_claim(mine: World, olga: Client) -> None:
    """Supersede: the kept claim stays active, the other is superseded by it."""
    keep = keeper_of(mine.supersede)
    decide(olga, mine.supersede, "approve_apply", choice=f"keep:{keep}", reason="moved in May")
    states = dict(Observation.objects.filter(operation_sources__operation=mine.supersede).values_list("pk", "status"))
    assert states.pop(keep) == Status.ACTIVE
    assert set(states.values()) == {Status.SUPERSEDED}


def test_a_contradiction_is_settled_by_periods(mine: World, olga: Client) -> None:
    """Both true, each in its time: the days of the form become the rows' validity."""
    first, second = ids_of(mine.supersede)
    fields = {f"to_{first}": "2024-05-01", f"from_{second}": "2024-05-01"}
    status, page = decide(olga, mine.supersede, "approve_apply", choice="both", reason="in turn", **fields)
    assert status == 200, page
    rows = Observation.objects.in_bulk([first, second])
    assert f"{rows[first].valid_to:%Y-%m-%d}" == f"{rows[second].valid_from:%Y-%m-%d}" == "2024-05-01"
    assert {row.status for row in rows.values()} == {Status.ACTIVE}


def test_a_contradiction_is_settled_by_the_reviewers_own_words(mine: World, olga: Client) -> None:
    """Neither stays: the right claim is written, and both give way to it."""
    decide(olga, mine.supersede, "approve_apply", choice="text", text="Lives in Basel", reason="asked her")
    assert status_of(mine.supersede) == State.APPLIED
    assert product_of(mine.supersede).text == "Lives in Basel"


@pytest.mark.parametrize(
    ("verb", "fields", "sentence"),
    [
        ("approve", {"choice": "keep:1", "reason": ""}, "needs a reason"),
        ("approve", {"reason": "x"}, "Choose one"),
        ("approve", {"choice": "keep:999999", "reason": "x"}, "is not a source"),
        ("approve", {"choice": "text", "text": " ", "reason": "x"}, "Write the right claim"),
        ("approve", {"choice": "nonsense", "reason": "x"}, "choice cannot be used"),
        ("approve", {"choice": "both", "reason": "x", "from_": "x"}, "is not a day"),
        ("approve", {"choice": "text", "text": "a\0b", "reason": "x"}, "text cannot be used"),
        ("reject", {"reason": "  "}, "needs a reason"),
        ("reject", {"reason": "r" * 501}, "reason cannot be used"),
        ("delete", {"reason": "x"}, "verb cannot be used"),
        ("approve", {"digest": "abc", "reason": "x"}, "digest cannot be used"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_a_sentence(
    mine: World, ana: Client, verb: str, fields: dict[str, str], sentence: str
) -> None:
    """G2: no posted form is an error page; each gets one sentence, the state, and nothing is decided."""
    first = source(mine.supersede).pk
    given = {name + str(first) if name == "from_" else name: value for name, value in fields.items()}
    digest = given.pop("digest", "")
    status, page = decide(ana, mine.supersede, verb, digest=digest, **given)
    assert status == 409
    assert sentence in page
    assert status_of(mine.supersede) == State.NEEDS_HUMAN


def test_a_prune_is_approved_first_and_applied_in_a_second_step(mine: World, olga: Client) -> None:
    """Approve-and-apply is for reversible kinds only."""
    status, page = decide(olga, mine.prune, "approve_apply", reason="old")
    assert status == 409
    assert "second step" in page
    assert "Approve and apply" not in olga.get(item_url(mine.prune)).content.decode()


def test_a_withdrawn_approval_is_a_rejection(mine: World, ana: Client) -> None:
    """An approval can be taken back until it is applied, knowing that it stands."""
    decide(ana, mine.merge, "approve")
    status, page = decide(ana, mine.merge, "withdraw", reason="second thoughts")
    assert status == 200, page
    assert status_of(mine.merge) == State.REJECTED


def test_distinct_is_remembered_for_good(mine: World, ana: Client) -> None:
    """The pair is never proposed again."""
    decide(ana, mine.merge, "distinct")
    low, high = sorted(ids_of(mine.merge))
    assert Verdict.objects.filter(low_id=low, high_id=high, by="ana").exists()


def test_opening_an_item_as_a_reviewer_marks_it_opened_once(mine: World, ana: Client, ben: Client) -> None:
    """R94, R116: the first person who opened it is kept; somebody who may only read does not count."""
    viewer = client_of(person("vera", "Viewer", "team-a/*"))
    viewer.get(item_url(mine.merge))
    item = PlanItem.objects.get(operation=mine.merge)
    assert item.opened_at is None
    ana.get(item_url(mine.merge))
    ben.get(item_url(mine.merge))
    item.refresh_from_db()
    assert item.opened_by == "ana"


# --- the world moves, and others decide -----------------------------------------------------------------------------


def test_the_loser_of_two_reviewers_reads_who_decided_and_when(mine: World, ana: Client, ben: Client) -> None:
    """C16: B's rejection of what A approved is refused with A's name, the time and the state; one event stands."""
    digest = digest_on(ben, mine.prune)
    decide(ana, mine.prune, "approve", reason="past its retention")
    status, page = decide(ben, mine.prune, "reject", digest=digest, reason="keep it")
    assert status == 409
    assert "ana decided it on" in page
    assert "UTC" in page
    assert "approved, not applied" in page
    decided = Event.objects.filter(subject=mine.prune.op_id, action__in=["approved", "rejected"])
    assert [(event.action, event.actor) for event in decided] == [("approved", "ana")]


def test_when_the_rejection_won_nothing_is_pruned(mine: World, ana: Client, olga: Client) -> None:
    """C16: a late approval and a late application change nothing."""
    digest = digest_on(olga, mine.prune)
    decide(ana, mine.prune, "reject", reason="keep it")
    assert decide(olga, mine.prune, "approve", digest=digest, reason="old")[0] == 409
    assert decide(olga, mine.prune, "apply", digest=digest)[0] == 409
    assert source(mine.prune).status == Status.ACTIVE


def test_a_double_click_is_one_decision_and_one_application(mine: World, olga: Client) -> None:
    """C16: the second click of the same person finds the first one done, and is not told off."""
    digest = digest_on(olga, mine.merge)
    for _ in range(2):
        status, page = decide(olga, mine.merge, "approve_apply", digest=digest)
        assert status == 200
    assert "You did that already" in page
    events = Event.objects.filter(subject=mine.merge.op_id).values_list("action", flat=True)
    assert sorted(events) == ["applied", "approved"]
    assert Observation.objects.filter(lineage__operation=f"{mine.merge.op_id}#1").distinct().count() == 1


@pytest.mark.parametrize("verb", ["approve", "reject", "distinct"])
def test_what_changed_since_the_page_is_said_and_nothing_is_decided(mine: World, ana: Client, verb: str) -> None:
    """C11, D2: a source was corrected between looking and clicking; the refusal names it and its successor."""
    digest = digest_on(ana, mine.merge)
    moved, successor = source(mine.merge), observe("Tea with milk", within=mine.scope)
    supersede_row(moved, successor)
    status, page = decide(ana, mine.merge, verb, digest=digest, reason="because")
    assert status == 409
    assert f"obs_{moved.pk} was superseded by obs_{successor.pk}" in page
    assert status_of(mine.merge) == State.NEEDS_HUMAN


def test_a_policy_that_changed_since_the_page_is_said(mine: World, ana: Client) -> None:
    """D2: the policy is part of what was shown."""
    digest = digest_on(ana, mine.merge)
    Policy.objects.create(pattern="*", body={"chain_cap": 1})
    status, page = decide(ana, mine.merge, "approve", digest=digest)
    assert status == 409
    assert "policy changed" in page


def test_applying_after_the_world_moved_is_stale_and_says_so(mine: World, olga: Client) -> None:
    """C11: the approved item is not applied, nothing of it is written, the other one is."""
    decide(olga, mine.merge, "approve")
    moved, successor = source(mine.merge), observe("Tea with milk", within=mine.scope)
    supersede_row(moved, successor)
    status, page = decide(olga, mine.merge, "apply", digest=review.shown_digest(operation=mine.merge))
    assert status == 409
    assert f"obs_{moved.pk} was superseded" in page
    assert status_of(mine.merge) == State.STALE
    assert decide(olga, mine.automatic, "apply")[0] == 200
    assert status_of(mine.automatic) == State.APPLIED


def test_the_item_page_says_that_the_memory_moved(mine: World, ana: Client) -> None:
    """C11: before anybody clicks; it offers no approval any more, only a rejection."""
    moved = source(mine.merge)
    supersede_row(moved, observe("Tea with milk", within=mine.scope))
    page = ana.get(item_url(mine.merge)).content.decode()
    assert "memory moved since this was planned" in page
    assert 'value="approve"' not in page
    assert 'value="reject"' in page


# --- undo -----------------------------------------------------------------------------------------------------------


def test_undo_is_shown_before_it_is_done(mine: World, olga: Client) -> None:
    """Promise 5: the preview lists what comes back and what is retracted, and changes nothing."""
    page = olga.get(item_url(mine.applied, "undo")).content.decode()
    assert "What undo would put back" in page
    assert f"obs_{mine.derived.pk}" in page
    assert status_of(mine.applied) == State.APPLIED
    assert decide(olga, mine.applied, "undo")[0] == 200
    assert status_of(mine.applied) == State.UNDONE
    assert source(mine.applied).status == Status.ACTIVE


def test_undo_of_what_others_were_built_on_names_the_blocker(mine: World, olga: Client) -> None:
    """C13: a page that names the later operation, on looking and on doing; then in the right order both go."""
    later = propose(Kind.MERGE, [mine.derived, observe("The relay restarts nightly", within=mine.scope)])
    assert runner.apply(operation=later, by="olga").outcome == Outcome.APPLIED
    settle()
    page = olga.get(item_url(mine.applied, "undo")).content.decode()
    assert f"undo {later.op_id} first" in page
    assert f'href="{item_url(later)}"' in page
    assert "Undo it" not in page
    status, page = decide(olga, mine.applied, "undo")
    assert status == 409
    assert later.op_id in page
    assert decide(olga, later, "undo")[0] == decide(olga, mine.applied, "undo")[0] == 200
    assert source(mine.applied).status == Status.ACTIVE


def propose_many(mine: World, number: int) -> None:
    """Merges for a person, stored in bulk."""
    rows = [observe(f"note {note}", within=mine.scope) for note in range(60)]
    pairs = list(combinations(rows, 2))[:number]
    like = {"generation": 1, "input_key": "op_x", "scope": mine.scope, "kind": Kind.MERGE, "reason": "made by a test"}
    like |= {"approval": Approval.NEEDS_HUMAN, "status": State.NEEDS_HUMAN, "n_sources": 2, "policy_hash": "x"}
    operations = Operation.objects.bulk_create(
        Operation(op_id=f"op_{count:032x}", keeper=one, **like) for count, (one, _) in enumerate(pairs)
    )
    OperationSource.objects.bulk_create(
        OperationSource(
            scope=mine.scope,
            operation=operation,
            observation=row,
            position=position,
            planned_version=row.version,
            planned_hash=row.content_hash,
        )
        for operation, pair in zip(operations, pairs, strict=True)
        for position, row in enumerate(pair)
    )


# --- selections -----------------------------------------------------------------------------------------------------


def selection(client: Client, picks: Sequence[int] | None, verb: str, reason: str = "", query: str = "") -> object:
    """Post a decision for rows of the queue's page; None picks all that it shows."""
    page = client.get(reverse(QUEUE) + query)
    data: dict[str, object] = {"shown": page.context["token"], "verb": verb, "reason": reason}
    data |= {"all": "1"} if picks is None else {"pick": [str(pk) for pk in picks]}
    return client.post(reverse("admin:consolidation_operation_decide"), data).context


def test_a_selection_is_decided_item_by_item(mine: World, ana: Client) -> None:
    """Each gets its answer; a prune of one record holds no two claims and stays."""
    context = selection(ana, [mine.merge.pk, mine.prune.pk], "distinct", "fine")
    assert [answer.pk for answer in context["done"]] == [mine.merge.pk]  # type: ignore[index]
    assert "no two claims" in context["refused"][0].sentence  # type: ignore[index]


def test_a_selection_never_reaches_what_the_page_did_not_show(mine: World, ana: Client) -> None:
    """Trap 6, D2: an item that arrived after the page was loaded is not decided, whatever ids are posted."""
    page = ana.get(reverse(QUEUE))
    late = propose(
        Kind.MERGE,
        [observe(text, within=mine.scope) for text in ("Green", "green!")],
        approval=Approval.NEEDS_HUMAN,
    )
    data = {"shown": page.context["token"], "verb": "reject", "all": "1", "pick": [str(late.pk)], "reason": "no"}
    ana.post(reverse("admin:consolidation_operation_decide"), data)
    assert status_of(late) == State.NEEDS_HUMAN
    assert status_of(mine.merge) == State.REJECTED


def test_a_selection_refuses_each_item_that_changed_since(mine: World, ana: Client) -> None:
    """D2: the digest of each row is checked; the others are decided."""
    page = ana.get(reverse(QUEUE))
    moved = source(mine.merge)
    supersede_row(moved, observe("Tea with milk", within=mine.scope))
    data = {"shown": page.context["token"], "verb": "reject", "all": "1", "reason": "no"}
    context = ana.post(reverse("admin:consolidation_operation_decide"), data).context
    assert [answer.pk for answer in context["refused"]] == [mine.merge.pk]
    assert f"obs_{moved.pk} was superseded" in context["refused"][0].sentence
    assert status_of(mine.prune) == State.REJECTED


def test_a_page_of_somebody_else_decides_nothing(mine: World, ana: Client, ben: Client) -> None:
    """D2: what was shown to one person is no selection of another; a forged one is none either."""
    token = ana.get(reverse(QUEUE)).context["token"]
    for shown in (token, token + "x", "", "a:b:c"):
        data = {"shown": shown, "verb": "reject", "all": "1", "reason": "no"}
        answer = ben.post(reverse("admin:consolidation_operation_decide"), data, follow=True)
        assert "Reload it and decide again" in answer.content.decode()
    assert status_of(mine.merge) == State.NEEDS_HUMAN


@pytest.mark.slow
def test_fifteen_hundred_items_are_decided_at_once(ana: Client, mine: World) -> None:
    """H2: one page shows them, one form chooses them one by one, without a 400; once confirmed, a worker does it."""
    propose_many(mine, 1_500)
    page = ana.get(reverse(QUEUE) + "?size=1500&kind=merge&state=needs_human")
    picks = [str(row.pk) for row in page.context["rows"] if row.decidable]
    assert len(picks) == 1_500
    data = {"shown": page.context["token"], "verb": "reject", "pick": picks}
    answer = ana.post(reverse("admin:consolidation_operation_decide"), data, follow=True)
    assert "Reject these 1500 items" in answer.content.decode()
    asked = answer.context["bulk"]
    assert not bulk.progress(bulk=asked).started
    confirm = reverse("admin:consolidation_operation_bulkconfirm", args=[asked.pk])
    assert ana.post(confirm, {"reason": "none of them"}, follow=True).status_code == 200
    assert bulk.carry_out(bulk=asked) == 0  # what a worker does, for as long as it takes
    assert BulkItem.objects.filter(outcome="done").count() == 1_500
    assert Operation.objects.filter(pk__in=picks, status=State.REJECTED).count() == 1_500

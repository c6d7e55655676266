"""Cases C8, C9, C11 and C13 for what a model proposes: through planner, command and pages, with a scripted model."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import pytest
from django.db import transaction
from django.test import Client
from django.urls import reverse

from consolidation import planner, review, runner
from consolidation.compact import grouping
from consolidation.models import Operation, Plan, Policy
from consolidation.operations import Approval, Kind, State, ep
from consolidation.rendering import render
from consolidation.runner import Outcome
from observations import ingest, store
from observations.llm import Request
from observations.models import Episode, Lineage, Observation, Scope
from observations.records import StatedBy, Status
from tests.acceptance import engine
from tests.acceptance.acting import undo
from tests.acceptance.engine import offline as offline
from tests.building import observe, scope, seconded, tell
from tests.consolidating import run
from tests.desk import client_of, item_url, person
from tests.scripted import ScriptedCompleter

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("offline")]


@pytest.fixture
def within() -> Scope:
    return scope("team-a/u1")


def root() -> Client:
    return client_of(person("root", superuser=True))


# --- C8: five copies of one source are one witness -------------------------------------------------------------------

NIGHTLY = "backups run every night"
TOLD = "The runbook says that backups run every night."
BACKUPS = ("Backups run every night", ("backups", "run", "every night"))


def document(within: Scope, *, again: int = 0) -> Episode:
    """The first document, as it is ingested once more: the same root under an address of its own."""
    return tell(TOLD, within=within, root="doc://runbook", session=f"ingested {again}")


def one_witness(within: Scope) -> list[Episode]:
    """e1 and e2 are one document ingested twice, e3 a summary of it."""
    summary = "In short, the runbook says that backups run every night."
    return [
        document(within),
        document(within, again=1),
        tell(summary, within=within, root="doc://runbook", session="summary"),
    ]


def another(within: Scope) -> Episode:
    """e4: the same from somebody else."""
    return tell("Bo checked: backups run every night.", within=within, root="chat://bo", session="chat")


def believing(request: Request) -> dict[str, Any]:
    """A model that cites every episode that holds the words, copies and all."""
    lines = [json.loads(line) for line in request.text.splitlines() if line.startswith('{"label"')]
    labels = [line["label"] for line in lines if NIGHTLY in line["text"].lower()]
    return {"facts": [engine.fact(labels, words=NIGHTLY, text=BACKUPS[0], key=BACKUPS[1])] if labels else []}


def asking() -> ScriptedCompleter:
    return ScriptedCompleter(by_purpose={"promote": believing})


def promotions(made: Plan) -> list[tuple[str, str, str]]:
    return [(item.status, item.approval, item.skipped_reason) for item in engine.items(made, Kind.PROMOTE)]


def test_one_document_its_copy_and_its_summary_support_nothing_and_the_plan_says_so(within: Scope) -> None:
    """C8, R95: e1 to e3 are one witness; the promotion is skipped with the count, whatever the model would say."""
    told = one_witness(within)
    made = engine.plan(within, completer=asking())
    assert promotions(made) == [(State.SKIPPED, Approval.NEVER, "1 supporting, 2 needed")]
    shown = render(planner.printed(made), explain=True)
    assert "skipped  1 supporting, 2 needed" in shown
    assert ep(told[0].pk) in shown
    assert engine.apply_all(made) == []
    assert not Observation.objects.exists()


def test_a_model_that_is_asked_and_cites_all_three_is_told_that_they_are_one(within: Scope) -> None:
    """C8: an unrelated episode beside them makes it a question; the answer is counted by source all the same."""
    one_witness(within)
    tell("Ana bought a scarf.", within=within, root="chat://ana", session="chat")
    model = asking()
    made = engine.plan(within, completer=model)
    assert len(model.requests) == 1
    assert promotions(made) == [(State.SKIPPED, Approval.NEVER, "1 supporting, 2 needed")]


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ({"min_support": 2}, (State.NEEDS_HUMAN, Approval.NEEDS_HUMAN, "")),
        ({"min_support": 3, "auto_support": 4}, (State.SKIPPED, Approval.NEVER, "2 supporting, 3 needed")),
    ],
)
def test_with_another_source_there_are_two_and_the_policy_says_whether_that_is_enough(
    within: Scope, policy: dict[str, int], expected: tuple[str, str, str]
) -> None:
    """C8: minimum 2 plans the fact at 0.6, minimum 3 skips it."""
    Policy.objects.create(pattern="*", body=policy)
    one_witness(within), another(within)
    made = engine.plan(within, completer=asking())
    assert promotions(made) == [expected]
    [item] = engine.items(made, Kind.PROMOTE)
    assert (item.product["roots"], item.product["confidence"]) == (2, 0.6)


def test_what_is_promoted_of_it_is_below_anything_a_user_said(within: Scope) -> None:
    """C8, R75: 0.6, and the agent's conclusion, which ranks below a user's word whatever figure that was given; a
    person approved it because two are exactly two.
    """
    one_witness(within), another(within)
    [item] = engine.items(engine.plan(within, completer=asking()), Kind.PROMOTE)
    review.approve(operation=item, by="ines")
    derived = engine.applied(item)
    assert derived.confidence == pytest.approx(0.6)
    assert derived.stated_by == StatedBy.AGENT
    assert StatedBy.AGENT.rank < StatedBy.USER.rank
    user = observe(f"{BACKUPS[0]}.", within=within, key=BACKUPS[1], stated_by=StatedBy.USER)
    [merge] = engine.items(engine.plan(within, completer=asking()), Kind.MERGE)
    assert (merge.keeper_id, merge.approval) == (user.pk, Approval.NEEDS_HUMAN)
    review.approve(operation=merge, by="ines")
    assert engine.applied(merge).confidence <= user.confidence


def test_ten_more_copies_change_neither_support_nor_confidence_nor_the_operation(within: Scope) -> None:
    """C8: planned again after each, it is the same item; and so it is once it was applied."""
    one_witness(within), another(within)
    [item] = engine.items(engine.plan(within, completer=asking()), Kind.PROMOTE)
    for again in range(2, 12):
        document(within, again=again)
        made = engine.plan(within, completer=asking())
        [same] = engine.items(made, Kind.PROMOTE)
        assert (same.pk, same.product) == (item.pk, item.product)
        assert (made.figures["new"], made.figures["stale"]) == (0, 0)
    review.approve(operation=item, by="ines")
    derived = engine.applied(item)
    document(within, again=12)
    again_planned = engine.plan(within, completer=asking())
    assert engine.apply_all(again_planned) == []
    assert Observation.objects.get(pk=derived.pk).confidence == pytest.approx(0.6)
    assert Observation.objects.count() == 1


def test_ten_copies_of_one_document_alone_stay_one_skip(within: Scope) -> None:
    """C8, C12: the skip does not multiply with the copies either."""
    one_witness(within)
    first = engine.plan(within, completer=asking())
    for again in range(2, 12):
        document(within, again=again)
    later = engine.plan(within, completer=asking())
    assert [item.pk for item in engine.items(later)] == [item.pk for item in engine.items(first)]


def test_a_document_that_is_imported_ten_times_is_one_episode(within: Scope) -> None:
    """C8: by the import, which knows it by its source and its content."""
    line = {"kind": "episode", "text": TOLD, "source_uri": "doc://runbook", "scope": within.name}
    for _ in range(10):
        ingest.import_lines(lines=[json.dumps(line).encode()])
    assert Episode.objects.count() == 1


# --- C9: a summary that loses the facts is refused -------------------------------------------------------------------

ROLLBACK = "Rollback used build 4417 at 14:05 and took 38 s"
OTHERS = [
    "The deploy window opened after lunch and the team gathered in the small room",
    "Ida read the checklist aloud before anybody touched the console",
    "The first canary looked healthy and nobody saw an error",
    "Ida asked whether the cache had been warmed and Bo said that it had",
    "The second canary was slow and the team waited before going on",
    "Bo noticed that the queue was growing and asked for a pause",
    "The pause was granted and the queue went down by itself",
    "Ida decided to go back because the queue grew again after the pause",
    "The team wrote down what happened and went home",
]


def ten(within: Scope, *, more: int = 0) -> list[Episode]:
    """Ten episodes of one session, or eleven; the ninth tells of the rollback."""
    texts = [*OTHERS[:8], ROLLBACK, OTHERS[8], *(["The lights were switched off"] * more)]
    return [tell(text, within=within, speaker="Ida", session="deploy", root="log://deploy") for text in texts]


@pytest.fixture
def compacts(within: Scope) -> Policy:
    body = {"compact": True, "compact_after_days": 1, "promote": False}
    return Policy.objects.create(pattern=within.name, body=body)


def retold(*, without: str = "") -> dict[str, Any]:
    """A summary that says everything, but for one sentence, which it leaves vague."""
    texts = [*OTHERS[:8], ROLLBACK, OTHERS[8]]
    kept = [f"{text}." if text != without else "The rollback used another build and took a while." for text in texts]
    return engine.summary(*kept)


def untouched() -> bool:
    """Every episode is stored, readable and in the reads."""
    rows = Episode.objects.values_list("status", "text")
    return all(status == Status.ACTIVE and text for status, text in rows) and not Observation.objects.exists()


def test_a_summary_that_loses_figures_is_held_for_a_person_and_lists_what_vanished(
    within: Scope, compacts: Policy
) -> None:
    """C9: build 4417, 14:05 and 38 s: counted in the plan, and shown word by word on the item's page."""
    told = ten(within)
    made = engine.plan(within, completer=engine.compacting(retold(without=ROLLBACK)))
    [item] = engine.items(made, Kind.COMPACT)
    assert (item.approval, item.status) == (Approval.NEEDS_HUMAN, State.NEEDS_HUMAN)
    assert "lost: " in item.reason
    texts = {turn.pk: turn.text or "" for turn in told}
    vanished = " ".join(texts[lost["episode"]][lost["start"] : lost["end"]] for lost in item.signals["lost_at"])
    assert all(words in vanished for words in ("4417", "14:05", "38"))
    assert engine.apply_all(made) == []
    page = root().get(item_url(item)).content.decode()
    marked = " ".join(re.findall(r"<mark[^>]*>(.*?)</mark>", page))
    assert all(words in marked for words in ("4417", "14:05", "38"))
    assert untouched()


def test_a_summary_that_keeps_them_needs_nobody(within: Scope, compacts: Policy) -> None:
    """C9, the control: the check does not hold back everything; the episodes lead to the summary and stay readable."""
    told = ten(within)
    made = engine.plan(within, completer=engine.compacting(retold()))
    [item] = engine.items(made, Kind.COMPACT)
    assert (item.approval, item.status) == (Approval.AUTO, State.PLANNED), item.reason
    linked_and_readable(told, engine.applied(item))


def test_a_person_may_approve_what_it_loses_and_the_episodes_stay_linked(within: Scope, compacts: Policy) -> None:
    """C9: in every case they stay stored, readable and linked to the summary."""
    told = ten(within)
    [item] = engine.items(engine.plan(within, completer=engine.compacting(retold(without=ROLLBACK))), Kind.COMPACT)
    review.approve(operation=item, by="ines", reason="the build does not matter any more")
    seconded(item)
    linked_and_readable(told, engine.applied(item))


def linked_and_readable(told: Sequence[Episode], summary: Observation) -> None:
    rows = list(Episode.objects.order_by("pk").values_list("pk", "text", "status"))
    assert rows == [(turn.pk, turn.text, Status.ARCHIVED) for turn in told]
    named = Lineage.objects.filter(derived=summary).values_list("source_episode_id", flat=True)
    assert set(named) == {turn.pk for turn in told}
    page = root().get(reverse("admin:observations_episode_change", args=[told[8].pk])).content.decode()
    assert ROLLBACK in page
    assert f"obs_{summary.pk}" in page


STUB = " ".join(OTHERS[0].split()[:40])
REFUSED: dict[str, Any] = {
    "the first forty words of the first episode": engine.summary(STUB, labels=[0]),
    "one sentence of the ten": engine.summary(f"{OTHERS[0]}.", labels=list(range(10))),
    "no sentence": {"sentences": []},
    "an empty sentence": engine.summary(" "),
    "nothing": "",
    "chatter": "I would rather not summarise this.",
}


@pytest.mark.parametrize("said", REFUSED.values(), ids=REFUSED)
def test_a_stub_or_an_empty_summary_is_refused_and_the_plan_says_so(within: Scope, compacts: Policy, said: Any) -> None:
    """C9, R89: never applied, however often it is planned; shown as skipped or as a failed step, not as nothing."""
    ten(within)
    model = engine.compacting(said)
    for _ in range(4):
        made = engine.plan(within, completer=model)
        assert engine.apply_all(made) == []
        assert not [item for item in engine.items(made, Kind.COMPACT) if item.approval != Approval.NEVER]
    skipped = engine.items(made, Kind.COMPACT)
    assert all(item.skipped_reason for item in skipped)
    assert skipped or "COMPACT" in render(planner.printed(made))
    assert "nothing to do" not in render(planner.printed(made))
    assert len(model.asked_for("compact")) <= 3
    assert untouched()


def test_eleven_episodes_into_one_are_refused(within: Scope, compacts: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    """C9: the default limit is ten to one; a whole session of eleven is never one question, and is refused if it is."""
    ten(within, more=1)
    said = engine.compacting(engine.echoing)
    assert [item.n_sources for item in engine.items(engine.plan(within, completer=said), Kind.COMPACT)] == [6, 5]
    monkeypatch.setattr(grouping, "_parts", lambda turns, cap: [turns])
    made = engine.plan(within, completer=said)
    [whole] = [item for item in engine.items(made, Kind.COMPACT) if item.n_sources == 11]
    assert (whole.approval, whole.skipped_reason) == (Approval.NEVER, "over the limit of 10 to 1: 11 episodes")
    assert untouched()


# --- C11: the world moved after the approval -------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [Kind.PROMOTE, Kind.COMPACT])
def test_an_episode_that_left_the_reads_makes_what_rests_on_it_stale_and_the_other_item_applies(
    within: Scope, kind: Kind
) -> None:
    """C11: it names the episode and what became of it; nothing of it is written; the other item goes through."""
    told = engine.weeks(within)
    engine.alike(within)
    Policy.objects.create(pattern="*", body={"compact": kind == Kind.COMPACT, "compact_after_days": 1})
    model = engine.promoting() if kind == Kind.PROMOTE else engine.compacting(engine.echoing)
    made = engine.plan(within, completer=model)
    for item in engine.items(made):
        review.approve(operation=item, by="ines", reason="read")
        seconded(item)
    with transaction.atomic():
        store.move_episodes(scope_id=within.pk, ids=[told[1].pk], to=Status.ARCHIVED)
    results = {result.kind: result for result in engine.apply_all(made)}
    assert (results[kind].outcome, results[Kind.MERGE].outcome) == (Outcome.STALE, Outcome.APPLIED)
    assert f"{ep(told[1].pk)} was archived" in results[kind].sentence
    assert not Observation.objects.filter(derivation=kind).exists()
    later = engine.plan(within, completer=model)
    assert not [item for item in engine.items(later, kind) if item.status == State.APPROVED]


def test_the_words_that_were_approved_are_the_words_that_are_written(within: Scope) -> None:
    """C11: another answer of the model after the approval is another question, not another text under the old one."""
    engine.weeks(within)
    [item] = engine.items(engine.plan(within, completer=engine.promoting()), Kind.PROMOTE)
    review.approve(operation=item, by="ines")
    other = engine.promoting(text="Ana takes the early train to Graz")
    engine.plan(within, completer=other)
    assert engine.applied(item).text == engine.FACT
    assert other.requests == []


# --- C13: undo something that others were built on -------------------------------------------------------------------


def test_a_promotion_that_was_merged_since_is_undone_after_the_merge_only(within: Scope) -> None:
    """C13: the refusal names what was built on it, at the command and on the page; in the right order both go."""
    engine.weeks(within)
    [promotion] = engine.items(engine.plan(within, completer=engine.promoting()), Kind.PROMOTE)
    fact = engine.applied(promotion)
    observe(f"{engine.FACT}.", within=within, key=engine.KEY)
    [merge] = engine.items(engine.plan(within, completer=engine.promoting()), Kind.MERGE)
    engine.applied(merge)
    refused = run(f"undo {promotion.op_id}")
    assert (refused.status, f"undo {merge.op_id} first" in refused.out) == (1, True)
    page = root().get(item_url(promotion, "undo"))
    assert page.status_code in (200, 409)
    assert merge.op_id in page.content.decode()
    assert Operation.objects.get(pk=promotion.pk).status == State.APPLIED
    assert [undo(merge).outcome, undo(promotion).outcome] == [Outcome.UNDONE, Outcome.UNDONE]
    assert fact.pk not in set(Observation.objects.active().values_list("pk", flat=True))
    assert set(Episode.objects.values_list("status", flat=True)) == {Status.ACTIVE}


def test_a_summary_that_was_replaced_since_is_not_undone(within: Scope, compacts: Policy) -> None:
    """C13: a correction of the summary stands on it; the refusal says so and nothing changes."""
    ten(within)
    [item] = engine.items(engine.plan(within, completer=engine.compacting(retold())), Kind.COMPACT)
    summary = engine.applied(item)
    with transaction.atomic():
        store.move(scope_id=within.pk, ids=[summary.pk], to=Status.ARCHIVED)
    before = engine.everything()
    refused = runner.undo(operation=Operation.objects.select_related("scope").get(pk=item.pk), by="ann")
    assert (refused.outcome, f"obs_{summary.pk} was archived since" in refused.sentence) == (Outcome.REFUSED, True)
    assert engine.everything() == before

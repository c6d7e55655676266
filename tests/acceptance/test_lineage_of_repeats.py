"""A row that is merged again with repeats of itself: its lineage names what was said, one step deep however often that
was (R49, R50, R102, C13, I1, I2, decision 0014).

Beside it the old way, nested one merge inside another, so that the measure is known to bite.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from django.db import connection, transaction
from django.test import Client
from django.urls import reverse

from consolidation import invariants, merge, review, runner
from consolidation.models import Operation, Policy, Verdict
from consolidation.operations import Approval, Kind
from consolidation.planner import fading
from consolidation.runner import Outcome
from observations import ingest, store
from observations.models import Evidence, Lineage, Observation, Scope, Use
from observations.records import EvidenceRef, Status
from observations.store.moving import Derived
from tests.acceptance import engine, growing, world
from tests.acceptance.acting import KEY, apply, derived_of, fresh, let_the_grace_pass, undo
from tests.acceptance.engine import offline as offline
from tests.building import observe, propose, scope
from tests.conftest import empty_the_store, superuser
from tests.desk import client_of, person
from tests.jsonl import exported

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("offline")]

TEXT = "The relay sits in rack 4"
OTHER = "In rack 4 sits the relay"


@pytest.fixture
def within() -> Scope:
    return scope()


def say(within: Scope, text: str = TEXT) -> Observation:
    return observe(text, within=within, key=KEY)


def merged(*rows: Observation) -> Operation:
    """An applied merge; the first row's text stays."""
    operation = propose(Kind.MERGE, rows, keeper=rows[0])
    result = apply(operation)
    assert result.outcome is Outcome.APPLIED, result.sentence
    return fresh(operation)


def sessions(within: Scope, count: int) -> tuple[list[Observation], list[Operation]]:
    """A fact said once more in every session, each time merged into what stands: what was said, and the merges."""
    said, merges = [say(within), say(within)], []
    merges.append(merged(*said))
    for _ in range(count - 1):
        said.append(say(within))
        merges.append(merged(derived_of(merges[-1]), said[-1]))
    return said, merges


def named(row: Observation) -> set[int | None]:
    return set(Lineage.objects.filter(derived=row).values_list("source_observation_id", flat=True))


def ids(rows: Sequence[Observation]) -> set[int]:
    return {row.pk for row in rows}


@contextmanager
def nesting() -> Iterator[None]:
    """The old way: a merged row stands in the lineage itself, whatever it was merged with."""
    combine = merge.combine

    def without(*args: Any, came_from: object, **more: Any) -> merge.Combined:
        return combine(*args, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merge, "combine", without)
        yield


# --- how deep --------------------------------------------------------------------------------------------------------


def test_a_fact_that_is_said_in_every_session_stays_one_step_above_what_was_said(within: Scope) -> None:
    """R50: ten merges, each of the last result and one more repeat; the lineage names the twelve that were said."""
    said, merges = sessions(within, 11)
    last = derived_of(merges[-1])
    assert named(last) == ids(said)
    assert (growing.lineage_depth(within), last.chain) == (1, 1)
    edges = Lineage.objects.filter(derived=last)
    assert {edge.operation for edge in edges} == {f"{merges[-1].op_id}#1"} == {last.produced_by}
    assert {(edge.derivation, edge.derived_at) for edge in edges} == {("merge", last.derived_at)}
    assert world.broken() == []


def test_the_control_the_old_way_nests_ten_deep_and_the_measure_says_so(within: Scope) -> None:
    """And a store that was made the old way is whole all the same; the next repeat nests no deeper."""
    with nesting():
        _, merges = sessions(within, 10)
    last = derived_of(merges[-1])
    assert (growing.lineage_depth(within), last.chain) == (10, 1)
    assert world.broken() == []
    again = merged(last, say(within))
    assert growing.lineage_depth(within) == 10
    assert last.pk not in named(derived_of(again))
    assert world.broken() == []


def test_the_control_merges_of_other_words_nest_and_lengthen_the_chain(within: Scope) -> None:
    """DESIGN 4: there a meaning can drift, so every step stays visible, and a person is asked over three."""
    row = derived_of(merged(say(within), say(within, "Rack 4: the relay 0")))
    for number in range(1, 10):
        row = derived_of(merged(row, say(within, f"Rack 4: the relay {number}")))
    assert (growing.lineage_depth(within), row.chain) == (10, 10)


def test_a_repeat_of_a_row_of_other_words_is_as_deep_as_its_chain_is_long(within: Scope) -> None:
    one, other, repeat, more = say(within), say(within, OTHER), say(within), say(within, OTHER)
    first = derived_of(merged(one, other))
    second = derived_of(merged(first, repeat))
    assert (named(second), second.chain, growing.lineage_depth(within)) == (ids([one, other, repeat]), 1, 1)
    third = derived_of(merged(second, more))
    assert (named(third), third.chain, growing.lineage_depth(within)) == (ids([second, more]), 2, 2)
    assert world.broken() == []


def test_two_merged_rows_that_repeat_each_other_become_one_that_names_what_both_came_from(within: Scope) -> None:
    said = [say(within) for _ in range(4)]
    one, other = derived_of(merged(*said[:2])), derived_of(merged(*said[2:]))
    assert named(derived_of(merged(one, other))) == ids(said)
    assert growing.lineage_depth(within) == 1
    assert world.broken() == []


def test_a_promoted_row_is_a_source_like_any_other(within: Scope) -> None:
    """What it came from are episodes, and the step from them to a fact is one that a reader has to see."""
    engine.weeks(within)
    [promotion] = engine.items(engine.plan(within, completer=engine.promoting()), Kind.PROMOTE)
    promoted = engine.applied(promotion)
    repeat = observe(promoted.text or "", within=within, key=engine.KEY)
    assert named(derived_of(merged(promoted, repeat))) == ids([promoted, repeat])
    assert world.broken() == []


# --- nothing is lost -------------------------------------------------------------------------------------------------


def test_what_a_merge_made_before_is_archived_whole_and_leads_on_to_the_next_version(within: Scope) -> None:
    """R101, I2: history reads as a chain of versions."""
    said, merges = sessions(within, 4)
    made = [derived_of(operation) for operation in merges]
    for row, successor in pairwise(made):
        assert (row.status, row.superseded_by_id, row.text) == (Status.ARCHIVED, successor.pk, TEXT)
    assert named(made[0]) == ids(said[:2])
    assert set(merges[-1].sources.values_list("observation_id", flat=True)) == {made[-2].pk, said[-1].pk}


def test_the_last_version_rests_on_everything_that_was_said(within: Scope) -> None:
    """R96, I14, I15: evidence, first date and confidence are those of a merge of all."""
    said, merges = sessions(within, 4)
    last = derived_of(merges[-1])
    cited = Evidence.objects.filter(observation__in=said).values_list("source_uri", flat=True)
    assert set(last.evidence.values_list("source_uri", flat=True)) == set(cited)
    assert last.created_at == min(row.created_at for row in said)


def test_undo_gives_back_exactly_what_was_there_and_the_earlier_merge_is_undone_after_the_later(within: Scope) -> None:
    """R102, I9, C13."""
    fields = ("external_id", "text", "status", "superseded_by_id", "valid_from", "valid_to", "confidence", "created_at")
    said, [first] = sessions(within, 1)
    repeat = say(within)
    before = list(Observation.objects.order_by("pk").values(*fields))
    second = merged(derived_of(first), repeat)
    assert undo(first).sentence == f"{second.op_id} was built on it: undo {second.op_id} first."
    assert runner.undo_preview(operation=second).restores == (derived_of(first).pk, repeat.pk)
    assert undo(second).outcome is Outcome.UNDONE
    assert list(Observation.objects.exclude(status=Status.RETRACTED).order_by("pk").values(*fields)) == before
    assert world.broken() == []
    assert undo(first).outcome is Outcome.UNDONE
    assert set(Observation.objects.active()) == {*said, repeat}
    assert world.broken() == []


def test_after_an_undo_the_row_is_merged_with_another_repeat_and_names_nothing_of_the_first(within: Scope) -> None:
    said, [first] = sessions(within, 1)
    undo(merged(derived_of(first), say(within)))
    another = say(within)
    assert named(derived_of(merged(derived_of(first), another))) == ids([*said, another])
    assert world.broken() == []


def test_witnesses_that_a_row_gained_before_it_was_said_again_or_after_an_undo_are_kept(within: Scope) -> None:
    """I15: what the rows that were merged rest on counts, whatever they came from rests on."""
    _, [first] = sessions(within, 1)
    between = derived_of(first)
    _witness(between, "doc://before")
    second = merged(between, say(within))
    assert "doc://before" in set(derived_of(second).evidence.values_list("source_uri", flat=True))
    assert world.broken() == []
    undo(second)
    _witness(between, "doc://after")
    assert world.broken() == []


def _witness(row: Observation, uri: str) -> None:
    with transaction.atomic():
        store.add_evidence(scope_id=row.scope_id, observation_id=row.pk, refs=[EvidenceRef(source_uri=uri)])


def test_a_row_that_was_told_apart_stays_apart_from_what_the_other_was_merged_into(within: Scope) -> None:
    """The verdict of an undo names the merged row, which no edge of lineage leads on from any more."""
    _, [first] = sessions(within, 1)
    refused = say(within)
    undo(merged(derived_of(first), refused))
    last = derived_of(merged(derived_of(first), say(within)))
    assert (refused.pk, last.pk) in Verdict.objects.pairs(scope_id=within.pk)


def test_what_was_in_use_before_it_was_said_again_is_in_use(within: Scope) -> None:
    """R62: a row does not fade because a repeat of it was merged in."""
    _, [first] = sessions(within, 1)
    engine.use(derived_of(first))
    last = derived_of(merged(derived_of(first), say(within)))
    assert fading._last_used(within.pk, [last.pk]) == {last.pk: Use.objects.get().used_at}


# --- pruning and erasing ---------------------------------------------------------------------------------------------


def test_the_row_in_between_is_pruned_once_what_replaced_it_was_used_since(within: Scope) -> None:
    """R51, I13: with the repeat beside it, not before, and not for uses of its own; erased whole, and all holds."""
    said, merges = sessions(within, 2)
    between, last = map(derived_of, merges)
    Policy.objects.create(pattern="*", body={"prune": True})
    engine.use(between)
    assert engine.items(engine.plan(within), Kind.PRUNE) == []
    engine.use(last)
    [prune] = engine.items(engine.plan(within), Kind.PRUNE)
    assert set(prune.sources.values_list("observation_id", flat=True)) == {between.pk, said[-1].pk}
    review.approve(operation=prune, by="ines", reason="used up")
    assert apply(prune).outcome is Outcome.APPLIED
    let_the_grace_pass(prune)
    assert runner.erase_pruned(scope_id=within.pk, operation_id=prune.pk) == 2
    between.refresh_from_db()
    assert (between.status, between.text) == (Status.ERASED, None)
    assert derived_of(merges[-1]).text == TEXT
    assert world.broken() == []
    assert named(derived_of(merged(derived_of(merges[-1]), say(within)))) > ids(said)
    assert world.broken() == []


def test_what_was_said_is_pruned_as_before_and_stays_named_by_every_later_version(within: Scope) -> None:
    """R92: an edge to a shell outlives the text."""
    said, [first] = sessions(within, 1)
    Policy.objects.create(pattern="*", body={"prune": True})
    engine.use(derived_of(first))
    [prune] = engine.items(engine.plan(within), Kind.PRUNE)
    assert set(prune.sources.values_list("observation_id", flat=True)) == ids(said)
    review.approve(operation=prune, by="ines", reason="used up")
    apply(prune)
    let_the_grace_pass(prune)
    runner.erase_pruned(scope_id=within.pk, operation_id=prune.pk)
    repeat = say(within)
    last = derived_of(merged(derived_of(first), repeat))
    assert named(last) == ids([*said, repeat])
    assert last.evidence.count() == 3
    assert world.broken() == []


# What a request to forget has to follow from a row (decision 0014): lineage; every merge that took it in, undone or
# not; and what it was archived for, because an import brings no operations.
CLOSURE = """
WITH RECURSIVE below (id) AS (
  SELECT %s::bigint
  UNION
  SELECT d.id FROM below b JOIN LATERAL (
    SELECT l.derived_id AS id FROM observations_lineage l WHERE l.source_observation_id = b.id
    UNION ALL
    SELECT o.derived_id FROM consolidation_operationsource s JOIN consolidation_operation o ON o.id = s.operation_id
    WHERE s.observation_id = b.id AND o.kind = 'merge' AND o.derived_id IS NOT NULL
    UNION ALL
    SELECT o.superseded_by_id FROM observations_observation o
    WHERE o.id = b.id AND o.derivation = 'merge' AND o.status IN ('archived', 'erased')
      AND o.superseded_by_id IS NOT NULL
  ) d ON true
) SELECT id FROM below
"""
LINEAGE_ALONE = """
WITH RECURSIVE below (id) AS (
  SELECT %s::bigint
  UNION SELECT l.derived_id FROM below b JOIN observations_lineage l ON l.source_observation_id = b.id
) SELECT id FROM below
"""


def closure(row: Observation, query: str = CLOSURE) -> set[int]:
    with connection.cursor() as cursor:
        cursor.execute(query, [row.pk])
        return {int(pk) for (pk,) in cursor.fetchall()}


def test_from_what_was_said_lineage_alone_reaches_every_version_in_one_step(within: Scope) -> None:
    """R50, I19: those that were undone too."""
    said, merges = sessions(within, 3)
    undo(merges[-1])
    made = {derived_of(operation).pk for operation in merges}
    assert closure(said[0]) == closure(said[0], LINEAGE_ALONE) == {said[0].pk, *made}


def test_from_a_row_in_between_the_closure_reaches_every_row_that_repeats_it_and_lineage_alone_does_not(
    within: Scope,
) -> None:
    """I19: the later versions say the same words, the undone one among them; after that erase nobody says them."""
    said, merges = sessions(within, 3)
    undo(merges[-1])
    made = [derived_of(operation) for operation in merges]
    assert closure(made[0]) == ids(made)
    assert closure(made[0], LINEAGE_ALONE) == {made[0].pk}, "the control"
    with transaction.atomic():
        gone = [*(row.pk for row in said), *closure(made[0])]
        store.erase(scope_id=within.pk, ids=gone, by="ana", reason="asked", request="forget:1")
    assert set(Observation.objects.exclude(text=None)) == set()
    assert world.broken() == []


def test_in_an_imported_store_the_closure_reaches_them_without_any_operation(within: Scope) -> None:
    _, merges = sessions(within, 3)
    between, last = derived_of(merges[0]), derived_of(merges[-1])
    lines = exported()
    empty_the_store()
    ingest.import_lines(lines)
    found = Observation.objects.get(external_id=between.external_id)
    reached = Observation.objects.filter(pk__in=closure(found)).values_list("external_id", flat=True)
    assert last.external_id in set(reached)
    assert closure(found, LINEAGE_ALONE) == {found.pk}, "the control"


# --- another store ---------------------------------------------------------------------------------------------------


def test_lineage_of_repeats_survives_an_export_and_its_import_and_stays_as_deep_there(within: Scope) -> None:
    """G3: and what an import brought is merged again like what was made here."""
    said, merges = sessions(within, 3)
    last, lines = derived_of(merges[-1]), exported()
    empty_the_store()
    report = ingest.import_lines(lines)
    assert (report.added, report.refused) == (len(lines), [])
    assert exported() == lines
    assert invariants.check() == []
    here = Observation.objects.select_related("scope").get(external_id=last.external_id)
    below = Lineage.objects.filter(derived=here).values_list("source_observation__external_id", flat=True)
    assert set(below) == {row.external_id for row in said}
    repeat = say(here.scope)
    again = derived_of(merged(here, repeat))
    assert named(again) == {*named(here), repeat.pk}
    assert growing.lineage_depth(here.scope) == 1
    assert world.broken() == []


# --- what the database refuses ---------------------------------------------------------------------------------------


def _without_one(derived: Derived, _: Observation) -> Derived:
    return replace(derived, named=derived.named[1:])


def _without_the_repeat(derived: Derived, _: Observation) -> Derived:
    return replace(derived, named=tuple(pk for pk in derived.named if pk not in derived.sources))


def _with_a_stranger(derived: Derived, stranger: Observation) -> Derived:
    return replace(derived, named=(*derived.named, stranger.pk))


def _with_both(derived: Derived, _: Observation) -> Derived:
    """The merged row and, beside it, what it came from."""
    return replace(derived, named=tuple(sorted({*derived.named, *derived.sources})))


WRONG = (_without_one, _without_the_repeat, _with_a_stranger, _with_both)


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.__name__)
def test_a_lineage_that_does_not_name_all_it_stands_for_and_nothing_else_never_commits(
    wrong: Callable[[Derived, Observation], Derived], within: Scope, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I1, R91: PA006 at COMMIT, whoever wrote it; and nothing of it stays."""
    _, [first] = sessions(within, 1)
    stranger = say(within, "The lamp is out")
    operation = propose(Kind.MERGE, [derived_of(first), say(within)])
    before = engine.everything()
    write = store.write_derived
    monkeypatch.setattr(
        store, "write_derived", lambda *, scope, derived: write(scope=scope, derived=wrong(derived, stranger))
    )
    result = apply(operation)
    assert (result.outcome, "PA006" in result.sentence) == (Outcome.FAILED, True)
    assert engine.everything() == before


def test_only_repeats_are_replaced_by_what_they_came_from(within: Scope, monkeypatch: pytest.MonkeyPatch) -> None:
    """The database compares text and key itself: the lineage of a merge of other words names the merged row."""
    said, [first] = sessions(within, 1)
    other = say(within, OTHER)
    operation = propose(Kind.MERGE, [derived_of(first), other], approval=Approval.NEEDS_HUMAN, keeper=other)
    review.approve(operation=operation, by="ines", decision=review.Decision(keep=other.pk))
    write, flat = store.write_derived, tuple(sorted(ids([*said, other])))
    with monkeypatch.context() as patch:
        patch.setattr(
            store, "write_derived", lambda *, scope, derived: write(scope=scope, derived=replace(derived, named=flat))
        )
        assert "PA006" in apply(operation).sentence
    review.approve(operation=fresh(operation), by="ines", decision=review.Decision(keep=other.pk))
    assert apply(operation).outcome is Outcome.APPLIED
    assert named(derived_of(operation)) == ids([derived_of(first), other])


FORGED = (
    ("I1", "DELETE FROM observations_lineage WHERE derived_id = {last} AND source_observation_id = {said}"),
    ("I2", "DELETE FROM observations_lineage WHERE derived_id = {last} AND source_observation_id = {said}"),
    ("I1", "DELETE FROM observations_lineage WHERE derived_id = {first}"),
    ("I1", "UPDATE observations_observation SET text_key = 7 WHERE id = {first}"),
    ("I1", "UPDATE observations_lineage SET operation = 'op_forged#1' WHERE source_observation_id = {said}"
     " AND derived_id = {last}"),
    ("I1", "INSERT INTO observations_lineage (scope_id, derived_id, source_observation_id, derivation, derived_at,"
     " operation, imported) SELECT scope_id, {last}, {stranger}, 'merge', derived_at, produced_by, false"
     " FROM observations_observation WHERE id = {last}"),
    ("I12", "UPDATE observations_observation SET stated_by = 'outside' WHERE id = {first}"),
    ("I14", "UPDATE observations_observation SET created_at = created_at - interval '1 day' WHERE id = {first}"),
    ("I15", "DELETE FROM observations_evidence WHERE observation_id = {last} AND source_uri IN"
     " (SELECT source_uri FROM observations_evidence WHERE observation_id = {said})"),
)  # fmt: skip


@pytest.mark.parametrize(("invariant", "forgery"), FORGED)
def test_a_forged_lineage_of_repeats_is_found_by_its_invariant(invariant: str, forgery: str, within: Scope) -> None:
    """Past every trigger, as a superuser; `memory verify` asks these queries."""
    said, merges = sessions(within, 2)
    first, last = map(derived_of, merges)
    stranger = say(within, "The lamp is out")
    assert world.broken() == []
    with superuser() as admin:
        admin.execute("SET session_replication_role = replica")
        values = {"first": first.pk, "last": last.pk, "said": said[0].pk, "stranger": stranger.pk}
        assert admin.execute(forgery.format(**values)).rowcount > 0
    assert invariant in {violation.id for violation in invariants.check()}


# --- what people see -------------------------------------------------------------------------------------------------


@pytest.fixture
def root() -> Client:
    return client_of(person("root", superuser=True))


def address(row: Observation) -> str:
    return reverse("admin:observations_observation_change", args=[row.pk])


def page(client: Client, row: Observation) -> str:
    return client.get(address(row)).content.decode()


def test_the_row_in_between_says_on_its_page_what_replaced_it(within: Scope, root: Client) -> None:
    """R50: it is not a dead end, and nobody reads that nothing came of it."""
    _, merges = sessions(within, 2)
    between, last = map(derived_of, merges)
    told = page(root, between)
    assert f'replaced by <a class="id" href="{address(last)}">{last}</a>' in told
    assert "Nothing was derived from it." not in told
    assert str(between) in page(root, last), "among its versions"
    assert "replaced by" not in page(root, last)
    assert "Nothing was derived from it." in page(root, say(within, "The lamp is out"))


def test_a_long_lineage_says_how_much_of_it_is_not_shown(within: Scope, root: Client) -> None:
    rows = [say(within) for _ in range(53)]
    assert "and 3 more" in page(root, derived_of(merged(*rows)))

"""A row that is merged again with repeats of itself: its lineage names what was said, one step deep however often that
was (R49, R50, R102, C13, I2, I9, decision 0014).

Beside it the old way, nested one merge inside another, so that the measure is known to bite.
"""

from __future__ import annotations

from itertools import pairwise

import pytest
from django.test import Client
from django.urls import reverse

from consolidation import runner
from consolidation.models import Verdict
from consolidation.operations import Kind
from consolidation.planner import fading
from consolidation.runner import Outcome
from observations.models import Evidence, Lineage, Observation, Scope, Use
from observations.records import Status
from tests.acceptance import engine, growing, world
from tests.acceptance.acting import derived_of, undo
from tests.acceptance.engine import offline as offline
from tests.acceptance.repeating import OTHER, TEXT, ids, merged, named, nesting, say, sessions
from tests.building import observe, scope
from tests.desk import client_of, person
from tests.policies import stored

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("offline")]


@pytest.fixture
def within() -> Scope:
    return scope()


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
    Evidence.objects.create(scope=row.scope, observation=row, source_uri=uri, root_source=uri)


def test_a_row_that_was_told_apart_stays_apart_from_what_the_other_was_merged_into(within: Scope) -> None:
    """The verdict of an undo names the merged row, which no edge of lineage leads on from any more."""
    _, [first] = sessions(within, 1)
    refused = say(within)
    undo(merged(derived_of(first), refused))
    last = derived_of(merged(derived_of(first), say(within)))
    assert (refused.pk, last.pk) in Verdict.objects.pairs(scope_id=within.pk)


def test_a_row_that_was_told_apart_stays_apart_from_what_comes_back_when_the_merge_of_the_other_is_undone(
    within: Scope,
) -> None:
    """No pair is proposed again after a decision: what was merged into the refused row says the same as it."""
    said, [first] = sessions(within, 1)
    refused = say(within)
    undo(merged(derived_of(first), refused))
    assert undo(first).outcome is Outcome.UNDONE
    assert {(row.pk, refused.pk) for row in said} <= Verdict.objects.pairs(scope_id=within.pk)
    assert engine.items(engine.plan(within), Kind.MERGE) == []


def test_what_says_it_in_other_words_is_asked_about_by_itself_then(within: Scope) -> None:
    """The control: nobody judged those words beside the refused row."""
    kept, other, refused = say(within), say(within, OTHER), say(within)
    first = merged(kept, other)
    undo(merged(derived_of(first), refused))
    undo(first)
    told = Verdict.objects.pairs(scope_id=within.pk)
    assert (kept.pk, refused.pk) in told
    assert (other.pk, refused.pk) not in told


def test_what_was_in_use_before_it_was_said_again_is_in_use(within: Scope) -> None:
    """R62: a row does not fade because a repeat of it was merged in."""
    _, [first] = sessions(within, 1)
    engine.use(derived_of(first))
    last = derived_of(merged(derived_of(first), say(within)))
    assert fading._last_used(within.pk, [last.pk]) == {last.pk: Use.objects.get().used_at}


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
    stored(pattern="*", two_person_wide=False)  # one person may merge 53 rows here
    rows = [say(within) for _ in range(53)]
    assert "and 3 more" in page(root, derived_of(merged(*rows)))

"""Two or three backends at once, 30 or 60 schedules each: 0 bad (INTEGRITY, isolation, B1, B2). A naive applier under
the same schedules must go wrong (A6).

Every test says which ends are sound. The invariants are looked at after a race, in the scopes of all its schedules.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import pytest
from django.db import transaction

from consolidation import learning, planner, review
from consolidation.aliases import request_alias
from consolidation.models import Alias, Operation, Plan
from consolidation.operations import Approval, Kind, State
from observations import ingest, store
from observations.embedding import HASHING
from observations.llm import Request
from observations.models import Episode, GivenKey, Observation, Scope
from observations.records import Claim, KeyState, Status, WrittenBy
from tests.acceptance import racing, world
from tests.acceptance.racing import (
    Action,
    alias,
    applied,
    applying,
    approved,
    arena,
    compaction,
    promotion,
    race,
    rows,
    said,
    turns,
    undoing,
)
from tests.building import propose
from tests.conftest import superuser
from tests.giving import KEYS, knowing
from tests.scripted import ScriptedCompleter

pytestmark = pytest.mark.django_db(transaction=True)

SCHEDULES = 60
FEWER = 30  # where a schedule takes long
Show = Callable[[str], None]
Build = Callable[[int], Sequence[Action]]  # of a seed: the actions of one schedule, in a world that it makes


def raced(what: str, build: Build, show: Show, *, schedules: int = SCHEDULES) -> list[tuple[str, ...]]:
    """The outcomes of every schedule, by seed. Fails when an invariant is broken afterwards."""
    results = race([build(seed) for seed in range(schedules)])
    ends = [tuple(said(result) for result in row) for row in results]
    counted = ", ".join(f"{count} {' + '.join(end)}" for end, count in sorted(Counter(ends).items()))
    show(f"{what}: {counted}")
    assert world.broken() == []
    return ends


def only(ends: Sequence[tuple[str, ...]], *sound: tuple[str, ...]) -> None:
    """Every end is one of the sound ones."""
    bad = {seed: end for seed, end in enumerate(ends) if end not in sound}
    assert bad == {}, f"{len(bad)} bad of {len(ends)}"


def one_of_each(ends: Sequence[tuple[str, ...]], *expected: str) -> None:
    """Every schedule ended with these outcomes, whoever had which."""
    only([tuple(sorted(end)) for end in ends], tuple(sorted(expected)))


# --- observations ----------------------------------------------------------------------------------------------------


def test_the_same_operation_applied_twice_at_once_is_applied_once(show: Show) -> None:
    """I8, C16, C17."""

    def build(seed: int) -> Sequence[Action]:
        return [applying(propose(Kind.MERGE, rows(arena(seed))))] * 2

    one_of_each(raced("same operation twice", build, show), "already", "applied")
    assert Observation.objects.filter(derivation="merge").count() == SCHEDULES


def test_of_two_overlapping_operations_applied_at_once_one_is_applied_and_one_is_stale(show: Show) -> None:
    """I4: no source is used up twice."""
    ends = raced("overlapping merges", lambda seed: [applying(one) for one in _overlapping(seed)], show)
    one_of_each(ends, "applied", "stale")


def test_an_application_against_a_writer_never_buries_what_was_just_written(show: Show) -> None:
    """C11: a correction that commits first makes the merge stale; one that comes second finds its row gone from the
    reads.
    """

    def build(seed: int) -> Sequence[Action]:
        live = rows(arena(seed))
        return [applying(propose(Kind.MERGE, live)), partial(_correct, live[1].pk)]

    ends = raced("apply against a writer", build, show)
    gone = "DoesNotExist('Observation matching query does not exist.')"
    only(ends, ("stale", "corrected"), ("applied", gone))


def test_an_undo_against_an_application_built_on_it_leaves_one_of_two_sound_ends(show: Show) -> None:
    """C13: either the undo is first and the second merge is stale, or the merge is first and the undo is refused."""

    def build(seed: int) -> Sequence[Action]:
        first, second = _built_on(seed)
        return [undoing(first), applying(second)]

    only(raced("undo against apply", build, show), ("undone", "stale"), ("refused", "applied"))


def test_of_an_archive_and_a_merge_of_the_same_rows_one_is_applied(show: Show) -> None:
    """I4: a row leaves the reads once, with or without a successor."""

    def build(seed: int) -> Sequence[Action]:
        live = rows(arena(seed))
        return [applying(propose(Kind.ARCHIVE, live[1:])), applying(propose(Kind.MERGE, live[:2]))]

    one_of_each(raced("archive against merge", build, show, schedules=FEWER), "applied", "stale")


def test_of_two_appliers_and_a_writer_on_one_row_exactly_one_has_it(show: Show) -> None:
    """B2: a merge, an archive and a correction."""

    def build(seed: int) -> Sequence[Action]:
        live = rows(arena(seed))
        merge, archive = propose(Kind.MERGE, live[:2]), propose(Kind.ARCHIVE, live[1:])
        return [applying(merge), applying(archive), partial(_correct, live[1].pk)]

    gone = "DoesNotExist('Observation matching query does not exist.')"
    ends = raced("merge, archive and writer", build, show, schedules=FEWER)
    only(ends, ("applied", "stale", gone), ("stale", "applied", gone), ("stale", "stale", "corrected"))


def _overlapping(seed: int) -> tuple[Operation, Operation]:
    a, b, c = rows(arena(seed))
    return propose(Kind.MERGE, [a, b]), propose(Kind.MERGE, [b, c])


def _correct(pk: int) -> racing.Outcome:
    row = Observation.objects.select_related("scope").get(pk=pk)
    claim = Claim(text="The relay sits in rack 7", external_id="correction")
    with transaction.atomic():
        store.replace(scope=row.scope, old_id=row.pk, claim=claim, written_by=WrittenBy.DELIBERATE)
    return racing.Outcome("corrected")


def _built_on(seed: int) -> tuple[Operation, Operation]:
    a, b, c = rows(arena(seed))
    first = applied(propose(Kind.MERGE, [a, b]))
    assert first.derived_id is not None
    merged = Observation.objects.get(pk=first.derived_id)
    return first, propose(Kind.MERGE, [merged, c])


# --- episodes --------------------------------------------------------------------------------------------------------


def test_two_facts_of_the_same_episodes_are_promoted_at_once_and_both_stand(show: Show) -> None:
    """E4, R105: neither makes the other already applied, and the episodes stay as they are."""

    def build(seed: int) -> Sequence[Action]:
        told = turns(arena(seed))
        return [applying(promotion(told, name)) for name in ("d.0", "d.1")]

    only(raced("promote against promote", build, show, schedules=FEWER), ("applied", "applied"))
    assert Observation.objects.filter(derivation="promote").count() == 2 * FEWER
    assert set(Episode.objects.values_list("status", "version")) == {(Status.ACTIVE, 1)}


def test_one_promotion_applied_twice_at_once_writes_one_fact(show: Show) -> None:
    """I8: a promotion uses nothing up, so only its own row keeps it from being applied twice."""
    build: Build = lambda seed: [applying(promotion(turns(arena(seed))))] * 2  # noqa: E731
    one_of_each(raced("same promotion twice", build, show, schedules=FEWER), "already", "applied")
    assert Observation.objects.filter(derivation="promote").count() == FEWER


def test_of_two_overlapping_compactions_one_is_applied_and_one_is_stale(show: Show) -> None:
    """I4: an episode is in one summary."""

    def build(seed: int) -> Sequence[Action]:
        told = turns(arena(seed))
        return [applying(compaction(told[:2])), applying(compaction(told[1:]))]

    one_of_each(raced("compact against compact", build, show), "applied", "stale")
    assert Observation.objects.filter(derivation="compact", status=Status.ACTIVE).count() == SCHEDULES


def test_a_compaction_against_a_promotion_of_the_same_episodes_makes_the_later_promotion_stale(show: Show) -> None:
    """C11: a fact promoted first keeps its archived episodes; one that comes second finds them moved."""

    def build(seed: int) -> Sequence[Action]:
        told = turns(arena(seed))
        return [applying(compaction(told)), applying(promotion(told))]

    ends = raced("compact against promote", build, show, schedules=FEWER)
    only(ends, ("applied", "applied"), ("applied", "stale"))
    facts = Observation.objects.filter(derivation="promote").count()
    assert facts == sum(end == ("applied", "applied") for end in ends)


def test_two_compactions_and_a_promotion_at_once_leave_one_summary(show: Show) -> None:
    """B2, for episodes."""

    def build(seed: int) -> Sequence[Action]:
        told = turns(arena(seed))
        return [applying(compaction(told[:2])), applying(compaction(told[1:])), applying(promotion(told))]

    ends = raced("two compactions and a promotion", build, show, schedules=FEWER)
    assert {end[:2] for end in ends} <= {("applied", "stale"), ("stale", "applied")}
    assert {end[2] for end in ends} <= {"applied", "stale"}


def test_a_compaction_against_the_undo_of_an_earlier_one(show: Show) -> None:
    """C13: the undo gives the episodes back; another summary of one of them was planned before and is stale, one of
    others is applied.
    """

    def build(seed: int) -> Sequence[Action]:
        told = turns(arena(seed), 4)
        later = compaction(told[1:3] if seed % 2 else told[2:])
        return [undoing(applied(compaction(told[:2]))), applying(later)]

    ends = raced("compact against undo of a compact", build, show, schedules=FEWER)
    only(ends[0::2], ("undone", "applied"))
    only(ends[1::2], ("undone", "stale"))
    assert set(Episode.objects.filter(external_id="e0").values_list("status", "version")) == {(Status.ACTIVE, 3)}


# --- names and lessons -----------------------------------------------------------------------------------------------


def _people(within: Scope, *names: str) -> list[Observation]:
    return rows(within, *((f"{name} was seen", (name, "was seen", "here")) for name in names))


def test_of_two_names_for_one_subject_and_of_two_that_run_in_a_circle_one_is_applied(show: Show) -> None:
    """I6, R46."""

    def build(seed: int) -> Sequence[Action]:
        within = arena(seed)
        _people(within, "a", "b", "c")
        other = ("a", "c") if seed % 2 else ("b", "a")
        return [applying(alias(within, "a", "b")), applying(alias(within, *other))]

    one_of_each(raced("alias against alias", build, show, schedules=FEWER), "applied", "stale")
    assert Alias.objects.filter(removed_at=None).count() == FEWER


def test_an_alias_against_the_undo_of_another_name_of_its_subject(show: Show) -> None:
    """The undo makes room, or the second name comes too early: never two."""

    def build(seed: int) -> Sequence[Action]:
        within = arena(seed)
        _people(within, "a", "b", "c")
        waiting = alias(within, "a", "c")
        return [undoing(applied(alias(within, "a", "b"))), applying(waiting)]

    ends = raced("alias against undo of an alias", build, show, schedules=FEWER)
    only(ends, ("undone", "applied"), ("undone", "stale"))
    for seed, end in enumerate(ends):
        assert dict(learning.aliases(scope_id=arena(seed).pk)) == ({"a": "c"} if end[1] == "applied" else {})


def test_a_merge_against_the_undo_of_the_name_it_rests_on(show: Show) -> None:
    """R46: applied while the name held, or not at all."""

    def build(seed: int) -> Sequence[Action]:
        within = arena(seed)
        pair = rows(within, *(("Lives in Bonn", (name, "lives in", "Bonn")) for name in ("a", "b")))
        named = applied(alias(within, "a", "b"))
        return [undoing(named), applying(propose(Kind.MERGE, pair))]

    ends = raced("merge against undo of its alias", build, show, schedules=FEWER)
    only(ends, ("undone", "applied"), ("undone", "stale"))
    for seed, end in enumerate(ends):
        named, merge = Operation.objects.filter(scope=arena(seed)).order_by("kind")
        first = merge.applied_at is not None and named.undone_at is not None and merge.applied_at < named.undone_at
        assert first == (end[1] == "applied"), end


def test_two_who_ask_for_the_same_name_at_once_get_one_question(show: Show) -> None:
    def build(seed: int) -> Sequence[Action]:
        within = arena(seed)
        _people(within, "a", "b")
        ask = partial(_asked, within)
        return [partial(ask, "a", "b"), partial(ask, "b", "a")]

    only(raced("the same question twice", build, show), ("asked", "asked"))
    assert Operation.objects.filter(kind=Kind.ALIAS).count() == SCHEDULES


def _asked(within: Scope, subject: str, name: str) -> racing.Outcome:
    request_alias(scope=within, subject=subject, name=name, by="ann")
    return racing.Outcome("asked")


def test_that_a_predicate_holds_several_stands_whichever_decision_about_it_was_first(show: Show) -> None:
    """What one reviewer said in so many words is not undone by what another's choice implies."""

    def build(seed: int) -> Sequence[Action]:
        within = arena(seed)
        live = rows(
            within, *((f"{who} likes {what}", (who, "likes", what)) for who in "ab" for what in ("tea", "rain"))
        )
        ask = partial(propose, Kind.SUPERSEDE, approval=Approval.NEEDS_HUMAN)
        many = approved(ask(live[:2]), review.Decision(many_valued=True))
        return [applying(many), applying(approved(ask(live[2:]), review.Decision(keep=live[2].pk)))]

    only(raced("many values against one", build, show, schedules=FEWER), ("applied", "applied"))
    for seed in range(FEWER):
        assert learning.cardinalities(scope_id=arena(seed).pk) == {"likes": "many"}


# --- the model -------------------------------------------------------------------------------------------------------


def test_a_merge_while_keys_are_given_loses_no_key_and_gives_none_to_a_row_that_left(show: Show) -> None:
    """Given first, the merged row has the key; merged first, the answers are about rows that are not current."""
    text = next(iter(KEYS))

    def build(seed: int) -> Sequence[Action]:
        within = arena(seed)
        merge = propose(Kind.MERGE, rows(within, (text, ("", "", "")), (text, ("", "", ""))))
        return [applying(merge), partial(_give, within)]

    ends = raced("merge against giving keys", build, show)
    only(ends, ("applied", "2 given, 0 changed"), ("applied", "0 given, 2 changed"), ("applied", "1 given, 0 changed"))
    for seed, end in enumerate(ends):
        keyed = GivenKey.objects.filter(scope=arena(seed), state=KeyState.GIVEN)
        merged = Observation.objects.get(scope=arena(seed), derivation="merge")
        assert keyed.filter(observation=merged).exists() == ("0 given" not in end[1])
        assert keyed.count() == {"2 given, 0 changed": 3, "0 given, 2 changed": 0, "1 given, 0 changed": 1}[end[1]]


def _give(within: Scope) -> racing.Outcome:
    report = ingest.give_keys(scope=within, completer=ScriptedCompleter(knowing))
    return racing.Outcome(f"{report.given} given, {report.changed} changed")


def test_planning_with_a_slow_model_while_a_merge_is_applied_proposes_nothing_that_cannot_be(show: Show) -> None:
    """DESIGN 4: the plan was read before, and stored after; what was applied meanwhile is done, not asked again."""

    def build(seed: int) -> Sequence[Action]:
        within = arena(seed)
        rows(within)
        _plan(within)
        turns(within)
        return [partial(_plan, within, seed), _late(seed, applying(Operation.objects.get(scope=within)))]

    only(raced("plan against a merge", build, show, schedules=FEWER), (Plan.State.COMPLETE, "applied"))
    assert not Operation.objects.filter(kind=Kind.MERGE).exclude(status=State.APPLIED).exists()
    assert Operation.objects.filter(kind=Kind.PROMOTE, status=State.PLANNED).count() == FEWER
    _everything_left_is_sound()


def test_planning_with_a_slow_model_while_its_episodes_are_summed_up_promotes_nothing_that_left(show: Show) -> None:
    """C11: an answer about episodes that moved meanwhile is thrown away, and the plan says so."""

    def build(seed: int) -> Sequence[Action]:
        within = arena(seed)
        return [partial(_plan, within, seed), _late(seed, applying(compaction(turns(within))))]

    ends = raced("plan against a compaction", build, show, schedules=FEWER)
    # Planned first, the plan proposes no summary, so the one of before is stale.
    only(ends, (Plan.State.PARTIAL, "applied"), (Plan.State.COMPLETE, "applied"), (Plan.State.COMPLETE, "stale"))
    summed_up = {seed for seed, end in enumerate(ends) if end[1] == "applied"}
    _everything_left_is_sound()
    for seed in range(FEWER):
        facts = Observation.objects.filter(scope=arena(seed), derivation="promote").count()
        assert facts == (seed not in summed_up), ends[seed]


def _late(seed: int, action: Action) -> Action:
    """The same at some time while a plan is made, or just after it."""

    def act() -> object:
        time.sleep(seed % 6 / 15)
        return action()

    return act


def _plan(within: Scope, seed: int = 0) -> racing.Outcome:
    completer = ScriptedCompleter(by_purpose={"promote": partial(_slowly, seed), "compact": {"sentences": []}})
    made = planner.plan(
        scopes=[within], pattern=within.name, by="ann", trigger="command", profile=HASHING, completer=completer
    )
    return racing.Outcome(made.state)


def _slowly(seed: int, request: Request) -> dict[str, object]:
    """A fact that all three episodes say, after up to a tenth of a second."""
    time.sleep(random.Random(seed).random() / 10)
    words = "the relay in rack 4 was restarted"
    quotes = [{"episode": label, "words": words} for label in range(3)]
    return {"facts": [{"text": words.capitalize(), "supported_by": [0, 1, 2], "quotes": quotes}]}


def _everything_left_is_sound() -> None:
    """Whatever plans still offer is applied, or says that it is stale; and nothing breaks by it."""
    waiting = Operation.objects.filter(status=State.PLANNED, approval=Approval.AUTO)
    assert {said(world.apply(pk)) for pk in waiting.values_list("pk", flat=True)} <= {"applied", "stale"}
    assert world.broken() == []


# --- the naive control ----------------------------------------------------------------------------------------------

TRIGGERS = (
    ("observations_observation", "observation_update"),
    ("consolidation_operation", "operation_whole"),
)


@contextmanager
def _without_triggers() -> Iterator[None]:
    """The control runs as most stores do: without the database's guards. The only place of the suite that disables a
    trigger.
    """
    with superuser() as admin:
        for table, trigger in TRIGGERS:
            admin.execute(f"ALTER TABLE {table} DISABLE TRIGGER {trigger}")
        try:
            yield
        finally:
            for table, trigger in TRIGGERS:
                admin.execute(f"ALTER TABLE {table} ENABLE TRIGGER {trigger}")


def _naive_apply(pk: int) -> None:
    """Check, then act, in one transaction, without locks and without using the sources up."""
    with transaction.atomic():
        operation = Operation.objects.select_related("scope").get(pk=pk)
        ids = list(operation.sources.values_list("observation_id", flat=True))
        if Observation.objects.active().filter(pk__in=ids).count() < len(ids):
            return
        derived = store.write_derived(
            scope=operation.scope,
            derived=store.Derived(
                claim=Claim(text="The relay sits in rack 4", external_id=f"naive-{pk}"),
                sources=tuple(ids),
                derivation="merge",
                operation=f"{operation.op_id}#1",
            ),
        )
        store.move(scope_id=operation.scope_id, ids=ids, to=Status.ARCHIVED, successor=derived)
        Operation.objects.filter(pk=pk).update(
            status=State.APPLIED, applied_by="naive", applied_digest="x", applied_at="2026-01-01T00:00Z"
        )


def test_the_control_a_naive_applier_without_the_databases_guards_uses_a_source_up_twice(show: Show) -> None:
    """A6: at least 45 of 60 overlapping pairs go wrong when nobody locks and no trigger looks."""

    def build(seed: int) -> Sequence[Action]:
        return [partial(_naive_apply, one.pk) for one in _overlapping(seed)]

    with _without_triggers():
        race([build(seed) for seed in range(SCHEDULES)])
    merged = Counter(Observation.objects.filter(derivation="merge").values_list("scope_id", flat=True))
    bad = sum(count == 2 for count in merged.values())
    show(f"naive control: {bad} bad of {SCHEDULES}")
    assert bad >= 45

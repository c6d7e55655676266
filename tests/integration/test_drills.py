"""One in 50 items of a long sitting is planted; what the reviewer does with it is counted, and changes nothing."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from consolidation import review
from consolidation.calibration import Rate
from consolidation.models import Drill, Operation
from consolidation.operations import Approval, Kind
from consolidation.review import drills
from consolidation.review.within import few
from observations.models import Observation, Scope, ScopeQuerySet, database_now
from tests.building import observe, propose, scope
from tests.desk import settle

pytestmark = pytest.mark.django_db


def sit(by: str, moments: list[datetime], *, within: Scope | None = None) -> None:
    """Decisions of somebody at these times."""
    row = observe("Sits", within=within or scope())
    for number, moment in enumerate(moments):
        one = propose(Kind.PRUNE, [row], approval=Approval.NEEDS_HUMAN, product={"discriminator": f"{by}{number}"})
        review.approve(operation=one, by=by, reason="old")
        Operation.objects.filter(pk=one.pk).update(decided_at=moment)


def minutes_ago(*numbers: float) -> list[datetime]:
    """These times before now."""
    now = database_now()
    return [now - timedelta(minutes=number) for number in numbers]


def values(*cities: str) -> list[Observation]:
    """Values of one key."""
    return [observe(f"Lives in {city}", within=scope(), key=("ann", "lives in", city)) for city in cities]


@pytest.fixture
def every_third(monkeypatch: pytest.MonkeyPatch) -> None:
    """A drill after every third decision: the rule with a smaller number."""
    monkeypatch.setattr(drills, "EVERY", 3)


def planted(scopes: ScopeQuerySet, by: str = "ana") -> Drill | None:
    """What stands before somebody who sees these scopes."""
    now = database_now()
    return drills.plant(by=by, scopes=scopes, mine=drills.sitting(by=by, scopes=scopes, now=now), now=now)


def plant(by: str = "ana") -> Drill | None:
    """What stands before somebody who sees every scope."""
    return planted(Scope.objects.all(), by)


def test_a_drill_is_due_after_fifty_decisions_and_fifty_more() -> None:
    """E.4: one in 50, counted from the last one; whoever decides 500 at once is asked once."""
    assert [drills.Sitting(decided=500, since=number).due for number in (49, 50, 451)] == [False, True, True]


def test_a_sitting_ends_with_a_pause_and_after_four_hours() -> None:
    """E.4: decisions before a pause of over 30 minutes belong to another sitting."""
    sit("ana", minutes_ago(1, 20, 49, 80, 90))
    now, team = database_now(), Scope.objects.filter(name="team-a/u1")
    mine = drills.sitting(by="ana", scopes=team, now=now)
    assert (mine.decided, mine.since, mine.scope_id, mine.waits) == (3, 3, scope().pk, False)
    assert drills.sitting(by="ana", scopes=few(team), now=now) == mine
    assert drills.sitting(by="ben", scopes=team, now=now) == drills.Sitting()
    assert drills.sitting(by="ana", scopes=team, now=now + timedelta(minutes=30)) == drills.Sitting()
    assert drills.sitting(by="ana", scopes=[], now=now) == drills.Sitting()


def test_only_decisions_after_the_last_drill_count_for_the_next() -> None:
    """E.4: and a drill that waits for its answer is known to wait."""
    low, high = values("Ghent", "Lyon")
    sit("ana", minutes_ago(1, 2, 25))
    Drill.objects.create(scope=low.scope, by="ana", low=low, high=high, at=minutes_ago(10)[0])
    mine = drills.sitting(by="ana", scopes=Scope.objects.all(), now=database_now())
    assert (mine.decided, mine.since, mine.waits, mine.rate.of) == (3, 2, True, 0)
    drills.answer(drill=Drill.objects.get(), by="ana", verb="reject")
    mine = drills.sitting(by="ana", scopes=Scope.objects.all(), now=database_now())
    assert (mine.decided, mine.since, mine.waits, mine.rate) == (3, 2, False, Rate(1, 1))


@pytest.mark.usefixtures("every_third")
def test_a_pair_told_apart_comes_first_and_never_twice() -> None:
    """E.4: then two values of one key; then none. No operation is made of any."""
    ghent, lyon = values("Ghent", "Lyon")
    pair = [observe(text, within=scope()) for text in ("Six retries", "Eight retries")]
    told = propose(Kind.MERGE, pair, approval=Approval.NEEDS_HUMAN)
    review.distinct(operation=told, by="ben")
    settle()
    found: list[tuple[int, int] | None] = []
    for _ in range(3):
        sit("ana", [])
        sit_again = minutes_ago(-0.001, -0.001, -0.001)
        for number, moment in enumerate(sit_again):
            one = propose(
                Kind.PRUNE,
                [ghent],
                approval=Approval.NEEDS_HUMAN,
                product={"discriminator": f"{len(found)}.{number}"},
            )
            review.approve(operation=one, by="ana", reason="old")
            Operation.objects.filter(pk=one.pk).update(decided_at=moment)
        planted = plant()
        found.append((planted.low_id, planted.high_id) if planted else None)
        if planted:
            drills.answer(drill=planted, by="ana", verb="reject")
    assert found == [(pair[0].pk, pair[1].pk), (ghent.pk, lyon.pk), None]
    assert Operation.objects.filter(kind=Kind.MERGE).count() == 1


@pytest.mark.usefixtures("every_third")
def test_no_pair_means_no_drill_and_neither_does_a_scope_of_others() -> None:
    """E.4, I2p: rows that say one thing, that left the reads or that this person may not see are never planted."""
    sit("ana", minutes_ago(1, 2, 3))
    assert plant() is None
    for city in ("Ghent", "Lyon"):
        observe(city, within=scope("team-b/u1"), key=("ann", "lives in", city))
    assert planted(Scope.objects.filter(name="team-a/u1")) is None


@pytest.mark.usefixtures("every_third")
def test_a_drill_waits_for_its_answer_and_closes_when_its_rows_move() -> None:
    """E.4: the same one stands there when the page is loaded again; what became moot says nothing."""
    values("Ghent", "Lyon")
    sit("ana", minutes_ago(1, 2, 3))
    first = plant()
    again = plant()
    assert first is not None
    assert first == again
    now, everywhere = database_now(), Scope.objects.all()
    mine = drills.sitting(by="ana", scopes=everywhere, now=now)
    assert drills.waiting(by="ana", scopes=everywhere, mine=mine, now=now) == first
    assert drills.waiting(by="ana", scopes=Scope.objects.none(), mine=mine, now=now) is None
    first.refresh_from_db()
    assert first.answer == Drill.Answer.WAITING  # a look writes nothing
    assert planted(Scope.objects.none()) is None
    first.refresh_from_db()
    assert first.answer == Drill.Answer.PASSED


@pytest.mark.parametrize(
    ("verb", "answer"), [("reject", "caught"), ("distinct", "caught"), ("approve", "missed"), ("defer", "passed")]
)
def test_each_answer_is_counted_once_and_told_at_once(verb: str, answer: str) -> None:
    """E.4: the reviewer hears that it was a drill; the second answer finds the first; memory is as it was."""
    low, high = values("Ghent", "Lyon")
    drill = Drill.objects.create(scope=low.scope, by="ana", low=low, high=high)
    with pytest.raises(review.AlreadyDecided):
        drills.answer(drill=drill, by="ben", verb=verb)
    for given in (verb, "approve"):
        drills.answer(drill=drill, by="ana", verb=given)
    assert drill.answer == answer
    assert "That was a drill" in drills.verdict_of(drill)
    assert f"obs_{low.pk} and obs_{high.pk}" in drills.verdict_of(drill)
    low.refresh_from_db()
    assert (low.version, Operation.objects.count()) == (1, 0)


def test_the_catch_rate_counts_yes_and_no_and_says_how_sure_it_is() -> None:
    """E.4: caught of answered, by reviewer and together, with Wilson's interval; what was passed says nothing."""
    low, high = values("Ghent", "Lyon")
    for by, verb in (("ana", "reject"), ("ana", "distinct"), ("ana", "defer"), ("ben", "approve")):
        drills.answer(drill=Drill.objects.create(scope=low.scope, by=by, low=low, high=high), by=by, verb=verb)
    mine, all_of_them = review.catch_rate(by="ana"), review.catch_rate()
    assert ((mine.hits, mine.of), (all_of_them.hits, all_of_them.of)) == ((2, 2), (2, 3))
    assert mine.interval[0] == pytest.approx(0.342, abs=0.001)
    assert review.catch_rate(by="nobody").interval == (0.0, 1.0)
    assert review.catch_rate(scopes=[0]).of == 0

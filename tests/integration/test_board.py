"""The figures of the admin's first page: the store's past replayed, the queue's pace, and the same as the command says.

Every expected number here is counted by hand from what the test wrote.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta

import pytest
from django.db import transaction
from django.test import Client
from django.urls import reverse

from consolidation import measures, review
from consolidation.admin.texts import day
from consolidation.measures import Size, Step
from consolidation.measures.journal import Past, replay, size_over_time, standing
from consolidation.models import Drill, Operation, Plan, PlanItem, ProbeRun, Suite
from consolidation.operations import Approval, Kind
from observations import store
from observations.models import ModelCall, Observation, Scope, database_now
from observations.records import Claim, WrittenBy
from tests.acceptance.acting import apply
from tests.building import observe, propose, scope
from tests.conftest import superuser
from tests.consolidating import run
from tests.desk import client_of, person

pytestmark = pytest.mark.django_db(transaction=True)


def days_ago(days: int) -> date:
    return database_now().astimezone(UTC).date() - timedelta(days=days)


def backdate(days: int, *rows: Observation) -> None:
    """As if these rows had been recorded, and what happened to them had happened, so many days ago."""
    with superuser() as admin:
        admin.execute("SET session_replication_role = replica")
        ids = [row.pk for row in rows]
        for table, column, of in (("observation", "recorded_at", "id"), ("transition", "at", "observation_id")):
            admin.execute(
                f"UPDATE observations_{table} SET {column} = {column} - %s * interval '1 day' WHERE {of} = ANY (%s)",
                (days, ids),
            )


def merged(*, within: Scope, recorded: int, applied: int) -> tuple[Observation, ...]:
    """Two rows recorded long ago, merged later: both, and what was made of them."""
    rows = [observe(text, within=within, key=("relay", "is", "red")) for text in ("The relay is red", "Relay is red!")]
    operation = propose(Kind.MERGE, rows)
    apply(operation)
    derived = Operation.objects.get(pk=operation.pk).derived
    assert derived is not None
    backdate(applied, *rows, derived)
    with superuser() as admin:
        admin.execute("SET session_replication_role = replica")
        admin.execute(
            "UPDATE observations_observation SET recorded_at = recorded_at - %s * interval '1 day' WHERE id = ANY (%s)",
            (recorded - applied, [row.pk for row in rows]),
        )
    return (*rows, derived)


def held(text: str, *, within: Scope) -> None:
    claim = Claim(text=text, external_id=text)
    with transaction.atomic():
        store.add_observations(scope=within, claims=[claim], written_by=WrittenBy.BACKGROUND, held=[True])


def growing() -> Scope:
    """Two rows 5 days ago, one 3 days ago, the merge of the two 2 days ago; a row and one that is held back today."""
    within = scope("team-a/u1")
    merged(within=within, recorded=5, applied=2)
    backdate(3, observe("The lamp is green", within=within))
    observe("The door is shut", within=within)
    held("The window is open", within=within)
    return within


SIZES = [  # days ago, active, superseded, archived, other
    (5, 2, 0, 0, 0),
    (4, 2, 0, 0, 0),
    (3, 3, 0, 0, 0),
    (2, 2, 0, 2, 0),
    (1, 2, 0, 2, 0),
    (0, 3, 0, 2, 1),
]


def counted_by_hand() -> tuple[Size, ...]:
    return tuple(Size(days_ago(ago), *counts) for ago, *counts in SIZES)


# --- the store's past -------------------------------------------------------------------------------------------------


def test_the_size_over_time_is_what_the_journal_says_of_every_day() -> None:
    """R86, I7: exact, from when rows were recorded and how they moved."""
    board = measures.board(scopes=[growing()])
    assert (board.step, board.size) == (Step.DAY, counted_by_hand())
    assert board.by_status == {"active": 3, "archived": 2, "quarantined": 1}


def test_what_is_written_between_two_looks_is_counted_and_the_past_stays() -> None:
    within = growing()
    before = measures.board(scopes=[within])
    observe("The roof is new", within=within)
    after = measures.board(scopes=[within])
    assert after.size[:-1] == before.size[:-1]
    assert after.size[-1].active == before.size[-1].active + 1


def test_a_new_day_adds_the_day_before_to_the_past_and_loses_nothing() -> None:
    within = growing()
    now = database_now()
    for ahead in range(4):
        past = replay(scopes=[within], now=now + timedelta(days=ahead))
        assert standing(past=past) == {"active": 3, "archived": 2, "quarantined": 1}, ahead


def test_a_row_that_was_held_back_and_let_go_counts_as_both_in_turn() -> None:
    within = scope()
    held("The window is open", within=within)
    row = Observation.objects.get(scope=within)
    backdate(4, row)
    with transaction.atomic():
        Observation.objects.filter(pk=row.pk).update(status="active", version=2)
    sizes = measures.board(scopes=[within]).size
    assert [(size.active, size.other) for size in sizes] == [(0, 1)] * 4 + [(1, 0)]


def test_the_past_of_one_scope_is_not_that_of_another() -> None:
    """C6."""
    growing()
    other = scope("team-b/u1")
    observe("The bell rings", within=other)
    assert [size.rows for size in measures.board(scopes=[other]).size] == [1]
    assert measures.board(scopes=[]).size == ()


@pytest.mark.parametrize(
    ("days", "step", "points"), [(10, Step.DAY, 10), (62, Step.DAY, 62), (63, Step.WEEK, 10), (700, Step.MONTH, 24)]
)
def test_a_long_past_is_drawn_in_longer_steps(days: int, step: Step, points: int) -> None:
    today = date(2026, 6, 30)
    past = Past()
    past.changes[today - timedelta(days=days - 1)]["active"] += 3
    found, sizes = size_over_time(past=past, today=today)
    assert (found, len(sizes)) == (step, points)
    assert {size.active for size in sizes} == {3}


def test_equal_texts_of_a_large_store_are_estimated_from_a_part_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """R86: an estimate says that it is one; all rows of a text are in the part, or none."""
    within = scope()
    for number in range(40):
        for copy in range(2):
            observe(f"Shelf {number}", within=within, external_id=f"{number}-{copy}")
    assert measures.board(scopes=[within]).duplicates.same_text == 40
    monkeypatch.setattr("consolidation.measures.gathering.EXACT", 10)
    monkeypatch.setattr("consolidation.measures.gathering.PART", 2)
    estimated = measures.board(scopes=[within]).duplicates
    assert estimated.about
    assert estimated.same_text % 2 == 0
    assert 20 <= estimated.same_text <= 60


# --- the queue --------------------------------------------------------------------------------------------------------


def waits(kind: Kind, text: str, *, within: Scope, plan: Plan | None = None) -> Operation:
    rows = [observe(f"{text} {number}", within=within, key=("a", "b", str(number))) for number in range(2)]
    return propose(kind, rows, approval=Approval.NEEDS_HUMAN, plan=plan)


def test_what_waits_is_counted_by_what_a_wrong_decision_would_cost() -> None:
    within = scope()
    for kind in (Kind.MERGE, Kind.MERGE, Kind.SUPERSEDE, Kind.PRUNE):
        waits(kind, f"It {kind} {Operation.objects.count()}", within=within)
    queue = measures.board(scopes=[within]).queue
    assert queue.waiting == {"erases": 1, "replaces": 1, "combines": 2}
    assert queue.oldest == Operation.objects.earliest("created_at").created_at


def test_the_seconds_per_decision_are_those_between_opening_and_deciding() -> None:
    """R116: the median; what nobody opened first is not timed."""
    within = scope()
    plan = Plan.objects.create(scope=within, pattern=within.name, requested_by="t", trigger="command")
    for number, seconds in enumerate((10, 40, 100, None)):
        operation = waits(Kind.MERGE, f"Number {number}", within=within, plan=plan)
        review.distinct(operation=operation, by="rita")
        decided = Operation.objects.get(pk=operation.pk).decided_at
        if seconds is not None and decided:
            item = PlanItem.objects.filter(operation=operation)
            item.update(opened_at=decided - timedelta(seconds=seconds), opened_by="rita")
    queue = measures.board(scopes=[within]).queue
    assert (queue.decided_today, queue.decided, queue.timed, queue.median_seconds) == (4, 4, 3, 40.0)


def test_without_an_opened_item_the_seconds_are_unknown() -> None:
    within = scope()
    review.distinct(operation=waits(Kind.MERGE, "Again", within=within), by="rita")
    queue = measures.board(scopes=[within]).queue
    assert (queue.decided, queue.timed, queue.median_seconds) == (1, 0, None)


def test_drills_are_counted_with_their_interval_and_nowhere_else() -> None:
    """E.4: caught of those answered yes or no, in these scopes; no decision, error or queue counts one."""
    within = scope()
    low, high = (observe(f"Lives in {city}", within=within) for city in ("Ghent", "Lyon"))
    for answer in ("caught", "caught", "missed", "passed", "waiting"):
        at = None if answer == "waiting" else database_now()
        Drill.objects.create(scope=within, by="rita", low=low, high=high, answer=answer, answered_at=at)
    board = measures.board(scopes=[within])
    assert (board.queue.drills.hits, board.queue.drills.of) == (2, 3)
    assert (board.waiting, board.queue.decided, board.applied) == (0, 0, {})
    told = measures.stats_json(measures.stats(scopes=[within]))["queue"]
    assert isinstance(told, dict)
    assert told["drills"] == {"caught": 2, "answered": 3, "rate": 0.6667, "low": 0.2077, "high": 0.9385}
    assert "2 of 3 caught" in measures.stats_text(measures.stats(scopes=[within]))


# --- the page and the command -----------------------------------------------------------------------------------------


def probed(within: Scope) -> None:
    """Two runs of a suite, and one without a number; and a run with another k, which is another measure."""
    suite = Suite.objects.create(scope=within, name="daily", by="rita")
    for recall, distinct, k in ((0.75, 2.5, 5), (None, None, 5), (0.8, 3.0, 5), (0.9, 7.0, 10)):
        figures: dict[str, object] = {"k": k, "records": 4}
        figures |= {} if recall is None else {"measures": {"distinct": distinct}}
        ProbeRun.objects.create(scope=within, suite=suite, cause="command", recall=recall, figures=figures, by="rita")


@pytest.fixture
def known() -> Scope:
    """A store whose every figure is known."""
    within = growing()
    waits(Kind.SUPERSEDE, "It waits", within=within)
    probed(within)
    for dollars, ago in ((0.25, 0), (0.5, 3)):
        at = database_now() - timedelta(days=ago)
        ModelCall.objects.create(
            scope=within, at=at, purpose="promote", model="m", prompt_version="1", answer="ok",
            cost_microdollars=round(dollars * 1e6),
        )  # fmt: skip
    return within


def test_the_command_gives_the_figures_that_were_counted_by_hand(known: Scope) -> None:
    """R86: stats --json."""
    document = run("stats --json").document
    assert document["by_status"] == {"active": 5, "archived": 2, "quarantined": 1}
    assert document["size"]["points"][-1] == {
        "day": days_ago(0).isoformat(),
        "active": 5,
        "superseded": 0,
        "archived": 2,
        "other": 1,
    }
    assert document["supersession_share"] == 0.0
    assert (document["longest_chain"], document["chains"]) == (1, {"1": 1})
    assert document["queue"]["by_risk"] == {"erases": 0, "replaces": 1, "combines": 0}
    [suite] = document["probes"]
    assert [(one["recall"], one["distinct"], one["records"]) for one in suite["runs"]] == [
        *((0.75, 2.5, 4), (None, None, 4), (0.8, 3.0, 4))
    ]
    spent = {day["day"]: day["dollars"] for day in document["model"]["by_day"] if day["calls"]}
    assert spent == {days_ago(0).isoformat(): 0.25, days_ago(3).isoformat(): 0.5}
    text = run("stats").out
    for words in ("QUEUE         1 wait", "1 replace", "daily of team-a/u1: recall@5 0.8000", "5 active, 0 superseded"):
        assert words in text


def test_every_number_of_the_page_is_in_the_commands_document(known: Scope) -> None:
    """R86: the same as `consolidate stats --json`."""
    answer = client_of(person("olga", "Operator", "team-a/*")).get(reverse("admin:index"))
    document = run("stats --json").document
    parts = {part.title: part for part in answer.context["figures"].parts}
    drawn = {drawing.key: drawing for part in parts.values() for drawing in part.drawings}
    facts = {fact.label: fact.value for part in parts.values() for fact in part.facts}
    columns = ("day", "active", "archived", "other")
    assert drawn["size"].rows == tuple(
        tuple(str(point[column]) for column in columns) for point in document["size"]["points"]
    )
    assert drawn["chains"].rows == tuple((depth, str(rows)) for depth, rows in document["chains"].items())
    runs = document["probes"][0]["runs"]
    for key, digits in (("recall", 2), ("distinct", 1), ("records", 0)):
        wanted = ["" if one[key] is None else f"{one[key]:.{digits}f}" for one in runs]
        assert [row[1] for row in drawn[key].rows] == wanted
    by_day = [(day["day"], f"{day['dollars']:.2f}") for day in document["model"]["by_day"]]
    assert list(drawn["spend"].rows) == by_day
    assert facts["Active"] == str(document["by_status"]["active"])
    assert facts["Waiting"] == str(document["queue"]["waiting"])
    assert facts["Longest chain"] == str(document["longest_chain"])
    assert facts["Oldest record"] == day(datetime.fromisoformat(document["oldest"]))
    assert facts["30 days"] == f"${document['model']['dollars']:.2f}"
    assert facts["Per decision"] == "unknown"


def test_each_picture_is_named_described_and_given_as_a_table_and_nothing_is_inline(known: Scope) -> None:
    """Readable without colour, and with a screen reader; the content security policy stays strict."""
    html = client_of(person("olga", "Operator", "team-a/*")).get(reverse("admin:index")).content.decode()
    pictures = re.findall(r'<svg viewBox="[^"]*" role="img" aria-labelledby="(\S+) (\S+)">(.*?)</svg>', html, re.DOTALL)
    assert len(pictures) == 6
    for title, about, inside in pictures:
        assert re.search(rf'<title id="{title}">[^<]+</title>', inside)
        assert re.search(rf'<desc id="{about}">[^<]+\.</desc>', inside)
    assert html.count("<details><summary>The numbers") == 6
    assert " style=" not in html
    assert "<style" not in html


def test_a_person_sees_the_figures_of_their_scopes_and_may_choose_among_them(known: Scope) -> None:
    """C6: another's scope in the address counts as nothing chosen."""
    second, foreign = scope("team-a/u2"), scope("team-b/u1")
    observe("One row", within=second)
    observe("Not yours", within=foreign)
    client = client_of(person("olga", "Operator", "team-a/*"))

    def active(of: object) -> str:
        [store_part, *_] = client.get(reverse("admin:index"), {"of": str(of)}).context["figures"].parts
        return str(store_part.facts[0].value)

    assert [active(of) for of in ("", "team-a/*", known.pk, second.pk)] == ["6", "6", "5", "1"]
    assert [active(of) for of in (foreign.pk, "team-b/*", "*", "x' OR 1=1")] == ["6"] * 4


def test_an_empty_store_says_what_to_do(client: Client) -> None:
    """Empty states."""
    client = client_of(person("ada", superuser=True))
    html = client.get(reverse("admin:index")).content.decode()
    for words in ("Nothing was written yet", "No plan covers these scopes yet", "no probe suite has run"):
        assert words in html
    assert '<svg viewBox="0 0 460' not in html


def test_hostile_names_of_scopes_and_suites_are_shown_escaped(known: Scope) -> None:
    """O2."""
    Suite.objects.filter(pk=0)
    hostile = Suite.objects.create(scope=known, name='<b onclick="x">', by="eve")
    ProbeRun.objects.create(scope=known, suite=hostile, cause="command", recall=0.5, by="eve", figures={"k": 5})
    html = client_of(person("ada", superuser=True)).get(reverse("admin:index")).content.decode()
    assert "<b onclick" not in html
    assert "&lt;b onclick" in html


def test_what_measured_error_has_to_say_is_on_the_page() -> None:
    """A demoted band is told where people begin."""
    from consolidation.models import Demotion

    scope()
    Demotion.objects.create(kind="merge", rule="key", band="0.95", judged=80, wrong=6, lower=0.03, limit=0.005)
    html = client_of(person("ada", superuser=True)).get(reverse("admin:index")).content.decode()
    [notice] = run("stats --json").document["notices"]
    assert "Its proposals wait for a person." in notice
    assert "Its proposals wait for a person." in html


def test_a_moment_is_read_as_a_day_of_utc() -> None:
    """A row of one o'clock in the night is not of the day before."""
    within = scope()
    row = observe("It is night", within=within)
    with superuser() as admin:
        admin.execute("SET session_replication_role = replica")
        admin.execute(
            "UPDATE observations_observation SET recorded_at = %s WHERE id = %s",
            (datetime(2026, 3, 1, 0, 30, tzinfo=UTC), row.pk),
        )
    past = replay(scopes=[within], now=database_now())
    assert list(past.changes) == [date(2026, 3, 1)]

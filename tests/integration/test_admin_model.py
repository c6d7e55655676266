"""The page of the language model, and what a plan says it could not do: figures, never words (R53, C12)."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client, override_settings
from django.urls import reverse

from consolidation.admin.measured.model_calls import Day, dollars
from consolidation.models import Plan
from consolidation.operations import Json, Kind
from observations import spending
from observations.llm import Answer
from observations.models import ModelCall, Scope, database_now
from tests.building import observe, propose, scope
from tests.desk import client_of, person
from tests.engine import POLICY, call, engine, unusable

pytestmark = pytest.mark.django_db

PAGE = "admin:observations_modelcall_changelist"


@pytest.fixture
def within() -> Scope:
    """A scope of team-a."""
    return scope("team-a/u1")


@pytest.fixture
def vera() -> Client:
    """Somebody who may only look, at team-a."""
    return client_of(person("vera", "Viewer", "team-a/*"))


@pytest.fixture
def root() -> Client:
    """Somebody who sees every scope."""
    return client_of(person("root", superuser=True))


def days(client: Client, **query: str) -> list[Day]:
    """The lines of the table."""
    rows: list[Day] = client.get(reverse(PAGE), query).context["days"]
    return rows


# --- calls ----------------------------------------------------------------------------------------------------------


def test_calls_are_counted_by_day_and_purpose_with_their_tokens_and_cost(within: Scope, vera: Client) -> None:
    for _ in range(2):
        call(within, cost=400_000)
    call(within, purpose="keys")
    keys, promote = days(vera)
    assert (promote.purpose, promote.calls, promote.read, promote.written, promote.cost) == (
        "promote",
        "2",
        "2,000",
        "200",
        "$0.80",
    )
    assert (keys.purpose, keys.calls, keys.cost) == ("keys", "1", "$0.0015")
    assert promote.failed == ()


def test_failures_are_counted_by_how_they_ended(within: Scope, vera: Client) -> None:
    for answer in (Answer.OK, Answer.UNUSABLE, Answer.UNUSABLE, Answer.BUDGET):
        call(within, answer=answer)
    [day] = days(vera)
    assert day.calls == "4"
    assert dict(day.failed) == {"budget spent": 1, "unusable": 2}


def test_money_put_aside_is_no_call(within: Scope, vera: Client, root: Client) -> None:
    """A batch under way: its money counts in the budget and stands apart; given back, nothing of it is left."""
    call(within, answer=Answer.HELD, purpose="batch", cost=250_000)
    [day] = days(vera)
    assert (day.calls, day.cost, day.held, day.failed) == ("0", "$0.00", "$0.25", ())
    assert root.get(reverse(PAGE)).context["budget"].used == "$0.25"
    call(within, answer=Answer.HELD, purpose="batch", cost=-250_000)
    assert days(vera) == []


def test_calls_of_hidden_scopes_count_nowhere(within: Scope, vera: Client, root: Client) -> None:
    """I2p: neither another scope's nor those of the whole store, for who does not see all of it."""
    call(within, cost=1_000_000)
    call(scope("team-b/u1"), cost=2_000_000)
    call(None, cost=4_000_000)
    assert [day.cost for day in days(vera)] == ["$1.00"]
    assert [day.cost for day in days(root)] == ["$7.00"]
    assert vera.get(reverse(PAGE)).context["budget"] is None


def test_a_scope_shows_its_own_budget(within: Scope, vera: Client) -> None:
    call(within, cost=250_000)
    call(scope("team-a/u2"), cost=500_000)
    page = vera.get(reverse(PAGE), {"scope": str(within.pk)})
    budget = page.context["budget"]
    assert (budget.used, budget.limit, budget.share) == ("$0.25", "$1.00", "25.0")
    assert [day.cost for day in page.context["days"]] == ["$0.25"]


def test_the_figures_of_the_page_are_those_the_budget_is_kept_by(within: Scope, root: Client) -> None:
    """One truth: the door refuses by spending.spent_today, and the page shows it."""
    for answer in (Answer.OK, Answer.HELD, Answer.CUT_OFF):
        call(within, answer=answer, cost=100_000)
    assert dollars(spending.spent_today()) == root.get(reverse(PAGE)).context["budget"].used == "$0.30"
    [day] = days(root)
    [used] = spending.usage(days=7)
    assert (day.calls, sum(number for _, number in day.failed)) == (str(used.calls), used.failed)


@pytest.mark.parametrize(("limit", "shown", "share"), [(0.0, "$0.00", "100.0"), (float("inf"), "", "0")])
def test_a_limit_of_nothing_is_used_up_and_none_has_no_end(limit: float, shown: str, share: str, root: Client) -> None:
    with override_settings(PALIMPSEST_BUDGET_DOLLARS_PER_DAY=limit):
        budget = root.get(reverse(PAGE)).context["budget"]
    assert (budget.limit, budget.share) == (shown, share)


def test_older_calls_are_seen_when_more_days_are_asked_for(within: Scope, vera: Client) -> None:
    old = call(within)
    ModelCall.objects.bulk_create(
        [ModelCall(scope=within, at=database_now() - timedelta(days=20), purpose="keys", model=old.model, answer="ok")]
    )
    assert [day.purpose for day in days(vera)] == ["promote"]
    assert [day.purpose for day in days(vera, show="30")] == ["promote", "keys"]
    assert [day.purpose for day in days(vera, show="nonsense")] == ["promote"]


def test_without_a_model_the_page_says_that_its_work_waits(vera: Client) -> None:
    page = vera.get(reverse(PAGE)).content.decode()
    assert "No model is configured" in page
    assert "The model was not asked in the last 7 days." in page
    assert "Every answer could be used." in page
    with override_settings(ANTHROPIC_API_KEY="k", PALIMPSEST_MODEL="some-model"):
        assert "some-model is asked" in vera.get(reverse(PAGE)).content.decode()


def test_small_money_is_not_shown_as_none() -> None:
    assert [dollars(amount) for amount in (0, 1_500, 10_000, 1_234_567, 5_000_000_000)] == [
        "$0.00",
        "$0.0015",
        "$0.01",
        "$1.23",
        "$5,000.00",
    ]


# --- answers of no use ----------------------------------------------------------------------------------------------


def test_answers_of_no_use_are_counted_by_scope_with_the_plan_that_says_so(within: Scope, vera: Client) -> None:
    for number, answer in enumerate((Answer.UNUSABLE, Answer.UNUSABLE, Answer.REFUSED)):
        unusable(within, number=number, answer=answer)
    unusable(scope("team-b/u1"))
    failed = [{"scope": within.name, "step": "promote", "error": "promote: 3 of 9 …", "failed": True}]
    Plan.objects.create(pattern=within.name, requested_by="t", trigger="command", failures=failed)
    newest = Plan.objects.create(pattern=within.name, requested_by="t", trigger="command", failures=failed)
    rows = vera.get(reverse(PAGE)).context["drafts"]
    assert {(row.answer, row.questions, row.attempts) for row in rows} == {("unusable", 2, 6), ("refused", 1, 3)}
    assert {(row.scope, row.plan) for row in rows} == {(within.name, newest.pk)}


def test_an_answer_of_no_use_that_no_plan_tells_of_has_no_link(within: Scope, vera: Client) -> None:
    unusable(within, kind=Kind.COMPACT)
    [row] = vera.get(reverse(PAGE)).context["drafts"]
    assert (row.kind, row.plan, row.plan_name) == (Kind.COMPACT, None, "")


# --- what a plan could not do ---------------------------------------------------------------------------------------


def plan(pattern: str, *, failures: list[dict[str, Json]], **fields: object) -> Plan:
    """A partial plan."""
    return Plan.objects.create(
        pattern=pattern, requested_by="t", trigger="command", state=Plan.State.PARTIAL, failures=failures, **fields
    )


def test_a_step_that_failed_is_told_from_a_scope_that_was_not_planned(within: Scope, vera: Client) -> None:
    """Shown as failed, never as nothing to do; what merely could not run is not called a failure."""
    failures: list[dict[str, Json]] = [
        {"scope": within.name, "step": "promote", "error": "promote: 2 of 3 were not answered.", "failed": True},
        {"scope": within.name, "step": "compact", "error": "compact: did not run. No model.", "failed": False},
        {"scope": "team-a/u2", "error": "scope is on hold", "failed": False},
    ]
    made = plan("team-a/*", failures=failures)
    page = vera.get(reverse("admin:consolidation_plan_change", args=[made.pk]))
    shown = [(one.scope, one.step, one.failed, one.why) for one in page.context["left_out"]]
    assert shown == [
        (within.name, "promote", True, "2 of 3 were not answered."),
        (within.name, "compact", False, "did not run. No model."),
        ("team-a/u2", "", False, "scope is on hold"),
    ]
    text = page.content.decode()
    assert "Not all of it was planned" in text
    assert text.count("failed: ") == 1


def test_questions_held_back_by_the_budget_are_counted_for_who_sees_all_of_the_plan(
    within: Scope, vera: Client
) -> None:
    """R31: over the review budget; the figure is of all scopes, so it is shown where none is hidden."""
    mine = plan(within.name, failures=[], figures={"held_back": 12})
    wide = plan("*", failures=[], figures={"held_back": 12}, scope=within)
    for made, told in ((mine, True), (wide, False)):
        page = vera.get(reverse("admin:consolidation_plan_change", args=[made.pk])).content.decode()
        assert ("12 more questions held back" in page) is told
        assert ("HELD BACK" in page) is told


def test_records_that_nothing_may_touch_are_counted_of_visible_scopes_only(within: Scope, vera: Client) -> None:
    """R32, R54: on the page and in its printed plan; what another team keeps untouched is not told."""
    hidden = scope("team-b/u9")
    made = plan("*", failures=[], figures={"untouchable": {str(within.pk): 3, str(hidden.pk): 400}}, scope=within)
    propose(Kind.MERGE, [observe(text, within=within) for text in ("Blue", "blue.")], plan=made)
    page = vera.get(reverse("admin:consolidation_plan_change", args=[made.pk])).content.decode()
    assert "3 records are untouchable by policy:" in page
    assert "UNTOUCHABLE  3 records are untouchable by policy" in page
    assert "CAUTION" not in page
    none = plan("*", failures=[], figures={"untouchable": {str(hidden.pk): 400}}, scope=within)
    propose(Kind.MERGE, [observe(text, within=within) for text in ("Red", "red.")], plan=none)
    page = vera.get(reverse("admin:consolidation_plan_change", args=[none.pk])).content.decode()
    assert "untouchable" not in page
    assert "CAUTION" in page


def test_the_policies_of_a_plan_are_shown_where_they_held_for_a_visible_scope(within: Scope, vera: Client) -> None:
    """I2p: the pattern of a policy that held elsewhere only may name what must not be seen."""
    hidden, other = scope("secret-canary/u9"), "d" * 64
    made = plan(
        "*",
        failures=[{"scope": hidden.name, "step": "promote", "error": "promote: canary", "failed": True}],
        scope=within,
        policies={str(within.pk): POLICY, str(hidden.pk): other},
        snapshots={
            POLICY: {"pattern": "team-a/*", "version": 3, "body": {}},
            other: {"pattern": "secret-canary/*", "version": 1, "body": {}},
        },
    )
    page = vera.get(reverse("admin:consolidation_plan_change", args=[made.pk]))
    [snapshot] = page.context["snapshots"]
    assert (snapshot.pattern, snapshot.version, snapshot.scopes) == ("team-a/*", 3, (within.name,))
    assert "canary" not in page.content.decode()
    printed = vera.get(reverse("admin:consolidation_plan_printed", args=[made.pk])).content.decode()
    assert "canary" not in printed


def test_a_plan_under_the_defaults_says_so(within: Scope, vera: Client) -> None:
    made = plan(within.name, failures=[], policies={str(within.pk): POLICY}, snapshots={})
    propose(Kind.ARCHIVE, [observe("x", within=within)], plan=made)
    assert "the defaults" in vera.get(reverse("admin:consolidation_plan_change", args=[made.pk])).content.decode()


def test_a_plan_prints_facts_summaries_and_names(vera: Client) -> None:
    """The printed form on the page is what the command prints, for the engine's kinds too."""
    mine = engine()
    page = vera.get(reverse("admin:consolidation_plan_change", args=[mine.plan.pk])).content.decode()
    assert "PROMOTE 1" in page
    assert "fact     &quot;Ana takes the night train to Graz.&quot;" in page
    assert "COMPACT 4→1" in page

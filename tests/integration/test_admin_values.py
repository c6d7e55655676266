"""Where live values contradict: what a reviewer is shown, what may be chosen, and what each choice does (C7, R46)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from django.db import transaction
from django.test import Client
from hypothesis import given, settings
from hypothesis import strategies as st

from consolidation import review
from consolidation.admin.item.reading import Item
from consolidation.admin.item.values import Bar, timeline
from consolidation.models import Cardinality, Operation
from consolidation.operations import Approval, Json, Kind, State
from observations import store
from observations.models import Observation
from observations.records import Claim, Given, KeyState, Status
from tests.building import observe, propose, scope
from tests.desk import client_of, decide, item_url, person, settle, status_of
from tests.engine import Engine, engine, write

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def mine() -> Engine:
    """A memory of scope team-a/u1."""
    return engine()


@pytest.fixture
def olga() -> Client:
    """An operator of team-a."""
    return client_of(person("olga", "Operator", "team-a/*"))


def item(client: Client, operation: Operation) -> Item:
    """What the page of an operation is made of."""
    found: Item = client.get(item_url(operation)).context["item"]
    return found


def page(client: Client, operation: Operation) -> str:
    return client.get(item_url(operation)).content.decode()


def rows_of(operation: Operation) -> list[Observation]:
    """Its values, oldest row first."""
    return list(Observation.objects.filter(operation_sources__operation=operation).order_by("pk"))


def settled(client: Client, operation: Operation, choice: str, **fields: str) -> None:
    """Approve and apply one choice."""
    status, text = decide(client, operation, "approve_apply", choice=choice, reason="asked her", **fields)
    assert status == 200, text
    settle()


# --- what is shown --------------------------------------------------------------------------------------------------


def test_values_are_shown_in_order_of_time_with_their_evidence(mine: Engine, olga: Client) -> None:
    """The planner says in which order they followed; sources and quotes stand with each."""
    shown = item(olga, mine.supersede)
    assert [one.id for one in shown.sources] == mine.supersede.product["order"]
    assert [one.witnesses[0].quote for one in shown.sources] == [
        "moved to Ghent",
        "moved to Lyon",
        "moved to Basel",
    ]
    assert [one.valid for one in shown.sources][:2] == ["1 May 2016 to 30 Apr 2019", "1 May 2019 to 30 Apr 2022"]


def test_an_order_of_time_turns_the_rows_round(olga: Client) -> None:
    """Written later, true earlier: the page goes by time, not by id."""
    within = scope("team-a/u1")
    late, early = (observe(f"Ann lives in {city}", within=within, key=("ann", "lives in", city)) for city in "ab")
    product: dict[str, Json] = {"suggested": "periods", "why": "none overlap", "order": [early.pk, late.pk]}
    operation = propose(Kind.SUPERSEDE, [late, early], approval=Approval.NEEDS_HUMAN, product=product)
    assert [one.id for one in item(olga, operation).sources] == [early.pk, late.pk]


def test_a_key_that_a_model_gave_is_marked_as_such(olga: Client) -> None:
    """A reviewer must know that the contradiction rests on a model's reading of one value."""
    within = scope("team-a/u1")
    own = observe("Bo works at Relay", within=within, key=("bo", "works at", "relay"))
    read = observe("Bo is now with Tidewater", within=within, key=("bo", "", ""))
    parts = Given(KeyState.GIVEN, "claude-test", "keys-1", predicate="works at", object="Tidewater", quote=(0, 24))
    with transaction.atomic():
        store.put_keys(scope_id=within.pk, given={read.pk: parts})
    operation = propose(Kind.SUPERSEDE, [own, read], approval=Approval.NEEDS_HUMAN, keeper=read)
    shown = {one.id: one for one in item(olga, operation).sources}
    assert (shown[own.pk].given, shown[own.pk].key) == ("", "bo · works at · relay")
    assert shown[read.pk].given == "predicate and object given by claude-test"
    assert shown[read.pk].key == "bo · works at · Tidewater"
    values = item(olga, operation).values
    assert values is not None
    assert values.predicate == "works at"


def test_a_suggestion_is_only_a_suggestion_and_nothing_is_chosen(mine: Engine, olga: Client) -> None:
    """C7: newer is suggested, never assumed."""
    values = item(olga, mine.supersede).values
    assert values is not None
    assert values.suggested == f"Keep the newest, obs_{mine.supersede.keeper_id}"
    text = page(olga, mine.supersede)
    assert "newer is suggested, never assumed" in text.lower()
    assert " checked" not in text
    assert decide(olga, mine.supersede, "approve", reason="x")[0] == 409


@pytest.mark.parametrize(
    ("suggested", "words"),
    [("periods", "All are true, each in its period"), ("many", "All are true: it holds several values"), ("", "")],
)
def test_every_suggestion_of_the_planner_has_its_words(suggested: str, words: str, olga: Client) -> None:
    within = scope("team-a/u1")
    rows = [observe(f"Likes {name}", within=within, key=("ann", "likes", name)) for name in "abc"]
    product: dict[str, Json] = {"suggested": suggested, "why": "3 values", "order": [row.pk for row in rows]}
    values = item(olga, propose(Kind.SUPERSEDE, rows, approval=Approval.NEEDS_HUMAN, product=product)).values
    assert values is not None
    assert values.suggested == words


def test_there_are_five_ways_to_settle_it(mine: Engine, olga: Client) -> None:
    """Keep one of them, each in its period, several at once, or none: and what is remembered is said before."""
    values = item(olga, mine.supersede).values
    assert values is not None
    kept = [f"keep:{row.pk}" for row in rows_of(mine.supersede)]
    assert [choice.value for choice in values.choices] == [*kept, "both", "many", "text"]
    assert "“lives in” may hold several values from now on" in values.choices[-2].hint


def test_the_days_of_the_form_are_the_rows_own(mine: Engine, olga: Client) -> None:
    text = page(olga, mine.supersede)
    first, _, last = rows_of(mine.supersede)
    assert f'name="from_{first.pk}" value="2016-05-01"' in text
    assert f'name="to_{first.pk}" value="2019-04-30"' in text
    assert f'name="to_{last.pk}" value=""' in text


def test_what_was_entered_stays_when_it_is_refused(mine: Engine, olga: Client) -> None:
    """A refusal costs nobody their work: choice, days and reason stand in the form again."""
    first = rows_of(mine.supersede)[0]
    fields = {f"from_{first.pk}": "2019-09-09", f"to_{first.pk}": "2018-08-08"}
    status, text = decide(olga, mine.supersede, "approve", choice="both", reason="as she says", **fields)
    assert status == 409
    assert "ends before it begins" in text
    assert 'value="both" checked' in text
    assert f'name="to_{first.pk}" value="2018-08-08"' in text
    assert 'value="as she says"' in text


# --- what each choice does ------------------------------------------------------------------------------------------


def test_keeping_one_supersedes_the_others(mine: Engine, olga: Client) -> None:
    kept, *others = rows_of(mine.supersede)
    settled(olga, mine.supersede, f"keep:{kept.pk}")
    rows = {row.pk: row for row in rows_of(mine.supersede)}
    assert rows[kept.pk].status == Status.ACTIVE
    assert {(rows[row.pk].status, rows[row.pk].superseded_by_id) for row in others} == {("superseded", kept.pk)}


def test_each_in_its_period_keeps_all_with_the_days_that_were_entered(mine: Engine, olga: Client) -> None:
    rows = rows_of(mine.supersede)
    days = {f"from_{row.pk}": f"20{16 + number}-01-01" for number, row in enumerate(rows)}
    days |= {f"to_{row.pk}": f"20{16 + number}-12-31" for number, row in enumerate(rows)}
    settled(olga, mine.supersede, "both", **days)
    after = rows_of(mine.supersede)
    assert {row.status for row in after} == {Status.ACTIVE}
    assert [f"{row.valid_from:%Y-%m-%d}" for row in after] == ["2016-01-01", "2017-01-01", "2018-01-01"]
    assert not Cardinality.objects.exists()


def test_several_values_are_remembered_for_the_predicate_in_this_scope(mine: Engine, olga: Client) -> None:
    settled(olga, mine.supersede, "many")
    lesson = Cardinality.objects.get()
    assert (lesson.predicate, lesson.holds, lesson.scope_id) == ("lives in", "many", mine.scope.pk)
    assert {row.status for row in rows_of(mine.supersede)} == {Status.ACTIVE}


def test_none_of_them_writes_the_right_claim(mine: Engine, olga: Client) -> None:
    settled(olga, mine.supersede, "text", text="Ann lives in Bern")
    made = Operation.objects.get(pk=mine.supersede.pk).derived_id
    assert Observation.objects.get(pk=made or 0).text == "Ann lives in Bern"
    assert {row.superseded_by_id for row in rows_of(mine.supersede)} == {made}
    assert "none of them: the right claim was written" in page(olga, mine.supersede)


def test_the_right_claim_takes_its_object_from_the_form_and_the_page_tells_it(mine: Engine, olga: Client) -> None:
    """R71: with it the new row has the whole key; the text of the form's other ways is no part of it."""
    assert '<input type="text" name="object" maxlength="1000"' in page(olga, mine.supersede)
    settled(olga, mine.supersede, "text", text="Ann lives in Bern", object=" Bern\u202e ")
    made = Observation.objects.get(pk=Operation.objects.get(pk=mine.supersede.pk).derived_id or 0)
    assert (made.subject, made.predicate, made.object) == ("Ann", "lives in", "Bern\u202e")
    shown = page(olga, mine.supersede)
    assert "Bern\\u202e" in shown
    assert "\u202e" not in shown


def test_an_object_that_was_entered_stays_when_it_is_refused(mine: Engine, olga: Client) -> None:
    """Without its claim it is refused with a sentence; hostile words come back escaped."""
    status, text = decide(
        olga, mine.supersede, "approve", choice="text", text=" ", object='"><b>Bern', reason="as she says"
    )
    assert (status, "Write the right claim" in text) == (409, True)
    assert 'name="object" maxlength="1000" value="&quot;&gt;&lt;b&gt;Bern"' in text
    status, text = decide(
        olga, mine.supersede, "approve", choice="text", text="Ann lives in Bern", object="x" * 1_001, reason="asked"
    )
    assert (status, "object cannot be used" in text) == (409, True)
    assert status_of(mine.supersede) == State.NEEDS_HUMAN


def test_an_object_entered_under_another_choice_is_no_part_of_it(mine: Engine, olga: Client) -> None:
    settled(olga, mine.supersede, "many", object="Bern")
    assert Operation.objects.get(pk=mine.supersede.pk).decision_object == ""


def test_a_period_that_was_set_is_undone(mine: Engine, olga: Client) -> None:
    """C13: the rows' own days come back."""
    first = rows_of(mine.supersede)[0]
    settled(olga, mine.supersede, "both", **{f"from_{first.pk}": "2000-01-01"})
    assert decide(olga, mine.supersede, "undo")[0] == 200
    assert status_of(mine.supersede) == State.UNDONE
    assert f"{rows_of(mine.supersede)[0].valid_from:%Y-%m-%d}" == "2016-05-01"


def test_a_value_that_was_erased_is_shown_as_erased_and_nothing_can_be_approved(mine: Engine, olga: Client) -> None:
    first = rows_of(mine.supersede)[0]
    digest = review.shown_digest(operation=mine.supersede)
    with transaction.atomic():
        store.erase(scope_id=mine.scope.pk, ids=[first.pk], by="t", reason="asked", request="forget:1")
    text = page(olga, mine.supersede)
    assert "lives in Ghent" not in text
    assert "text erased" in text
    assert 'value="approve' not in text
    assert decide(olga, mine.supersede, "approve", digest=digest, choice="many", reason="x")[0] == 409


# --- the picture ----------------------------------------------------------------------------------------------------


def dated(*periods: tuple[int | None, int | None]) -> list[Observation]:
    """Rows that are true from one day to another, counted from 2020."""
    begin = datetime(2020, 1, 1, tzinfo=UTC)
    return [
        Observation(
            pk=number,
            created_at=begin + timedelta(days=(start or end or 0)),
            valid_from=None if start is None else begin + timedelta(days=start),
            valid_to=None if end is None else begin + timedelta(days=end),
        )
        for number, (start, end) in enumerate(periods, 1)
    ]


def bars(rows: Sequence[Observation]) -> tuple[Bar, ...]:
    return timeline(rows, now=NOW).bars


def test_periods_that_follow_each_other_touch_in_the_picture() -> None:
    first, second = bars(dated((0, 100), (100, 200)))
    assert (first.start, first.width, first.open) == ("6.0", "44.0", ())
    assert (second.start, second.width) == ("50.0", "44.0")


def test_what_holds_still_runs_to_today_and_on_in_dashes() -> None:
    [bar] = bars(dated((0, None)))
    assert (bar.start, bar.width, bar.open) == ("6.0", "88.0", (("94.0", "100.0"),))


def test_what_has_no_known_beginning_comes_from_the_edge_in_dashes() -> None:
    [bar] = bars(dated((None, 50)))
    assert (bar.width, bar.open) == ("", (("0.0", "50.0"),))


def test_a_value_without_any_period_is_dashes_only_and_says_so() -> None:
    """The words beside the picture say the same as it does."""
    [bar] = bars(dated((None, None)))
    assert (bar.width, bar.open, bar.words) == ("", (("0.0", "100.0"),), "no period given")


DAYS = st.integers(0, 20_000)


@settings(max_examples=60)
@given(st.lists(st.tuples(st.none() | DAYS, st.none() | DAYS), min_size=1, max_size=8))
def test_nothing_of_the_picture_lies_outside_it(periods: list[tuple[int | None, int | None]]) -> None:
    """Whatever the days are, also on one day, or before and after each other."""
    rows = dated(*[(a, b) if a is None or b is None or a <= b else (b, a) for a, b in periods])
    for bar in bars(rows):
        numbers = [float(bar.start), float(bar.said), *(float(place) for gap in bar.open for place in gap)]
        assert all(0 <= number <= 100 for number in numbers)
        assert float(bar.start) + float(bar.width or 0) <= 100.1


def test_the_picture_has_a_text_beside_it(mine: Engine, olga: Client) -> None:
    """Without colour, without the picture: the same days in words."""
    text = page(olga, mine.supersede)
    assert "1 May 2016 to 30 Apr 2019" in text
    assert text.count('aria-hidden="true">') >= 3


def test_a_claim_of_a_day_long_ago_is_no_error(olga: Client) -> None:
    """G2: a year of four digits, and one that begins where time does."""
    within = scope("team-a/u1")
    rows = [
        write(
            Claim(text=f"b{n}", external_id=f"b{n}", subject="a", predicate="b", object=f"{n}", valid_from=moment),
            within=within,
        )
        for n, moment in enumerate((datetime(1, 1, 2, tzinfo=UTC), datetime(9998, 1, 1, tzinfo=UTC)))
    ]
    assert "9998" in page(olga, propose(Kind.SUPERSEDE, rows, approval=Approval.NEEDS_HUMAN))

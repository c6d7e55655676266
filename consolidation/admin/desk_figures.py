"""The figures of the front page: what is said in words, and what is drawn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.http import HttpRequest

from consolidation import measures
from consolidation.admin.texts import day
from consolidation.charts import Chart, Drawing, Form, Series, draw
from consolidation.measures import MODEL_DAYS, Board, Queue, Run, Suite
from consolidation.operations import counted, visible
from consolidation.operations import plan as plan_label
from observations.admin.base import SCOPES_OFFERED, Reach
from observations.admin.listing import Choice, Filter
from observations.models import Scope

_MILLION: Final = 1_000_000
_NAMED: Final = 13  # characters of a suite's name beside its line


@dataclass(frozen=True, slots=True)
class Fact:
    """One figure in words; `hint` says what it counts."""

    label: str
    value: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """One part of the page: figures, pictures, and what to do where there is nothing to draw."""

    title: str
    facts: tuple[Fact, ...] = ()
    drawings: tuple[Drawing, ...] = ()
    empty: str = ""
    command: str = ""  # what may be run to change that


@dataclass(frozen=True, slots=True)
class Figures:
    """All of it, for the scopes that were chosen among those a person may see."""

    filter: Filter
    scopes: int
    notices: tuple[str, ...]
    parts: tuple[Part, ...]


def figures(request: HttpRequest, *, reach: Reach) -> Figures:
    """The figures of the scopes that the address names. One query for the scopes, and those of `measures.board`."""
    scopes = list(reach.scopes.order_by("name"))
    chosen = _filter(request.GET.get("of", ""), scopes)
    within = _within(chosen.value, scopes)
    board = measures.board(scopes=within)
    parts = (_store(board), _queue(board), _reading(board.suites), _model(board))
    return Figures(filter=chosen, scopes=len(within), notices=board.notices, parts=parts)


# --- which scopes -----------------------------------------------------------------------------------------------------


def _filter(asked: str, scopes: Sequence[Scope]) -> Filter:
    """Families of scopes by their pattern, and scopes by their id. What nobody may see counts as nothing chosen."""
    families = Counter(f"{scope.name.rpartition('/')[0]}/*" for scope in scopes if "/" in scope.name)
    offered = [(pattern, visible(pattern)) for pattern, count in sorted(families.items()) if count > 1]
    offered += [(str(scope.pk), visible(scope.name)) for scope in scopes[:SCOPES_OFFERED]]
    choices = tuple(Choice(value=value, label=label, chosen=value == asked) for value, label in offered)
    return Filter(name="of", label="Scopes", choices=choices, value=asked if asked in dict(offered) else "")


def _within(value: str, scopes: Sequence[Scope]) -> list[Scope]:
    if not value:
        return list(scopes)
    if value.endswith("/*"):
        return [scope for scope in scopes if scope.name.startswith(value[:-1])]
    return [scope for scope in scopes if str(scope.pk) == value]


# --- the parts --------------------------------------------------------------------------------------------------------


def _store(board: Board) -> Part:
    """How much there is, how much of it repeats, and how it came to be so."""
    same, by = board.duplicates, board.by_status
    about = "about " if same.about else ""
    facts = (
        Fact("Active", f"{board.active:,}", "what reads return"),
        Fact("Superseded", f"{by.get('superseded', 0):,}", f"{board.supersession:.1%} of what is or was current"),
        Fact("Archived", f"{by.get('archived', 0):,}", "merged, faded or taken out; can be brought back"),
        Fact(
            "Duplicates",
            f"about {board.duplicate_share:.1%}",
            f"{about}{counted(same.same_text, 'row')} with the text of another,"
            f" {same.waiting_merges:,} in merges that wait",
        ),
        Fact("Promotions", f"{board.promotions:,}", "facts made of episodes"),
        Fact("Longest chain", f"{board.longest_chain}", "merges after one another behind one row"),
        Fact("Oldest record", _day(board.oldest), "when the earliest claim was said"),
    )
    if not board.size:
        return Part(
            "Store",
            empty="Nothing was written yet. An agent's first remember starts it, or an import:",
            command="manage.py memory import FILE --scope NAME",
        )
    return Part("Store", facts, tuple(filter(None, (_size_chart(board), _chains_chart(board)))))


def _queue(board: Board) -> Part:
    """What waits for people, how fast they are, and how much of it they have seen before."""
    queue = board.queue
    by_risk = ", ".join(f"{number:,} {risk.removesuffix('s')}" for risk, number in queue.waiting.items() if number)
    facts = (
        Fact("Waiting", f"{board.waiting:,}", by_risk or "nothing waits for a person"),
        Fact("Oldest", _day(queue.oldest) if queue.oldest else "none", _oldest(queue)),
        Fact("Overdue", f"{queue.overdue:,}", "waiting longer than their policy allows"),
        Fact("Decided today", f"{queue.decided_today:,}", f"{queue.decided:,} in 30 days"),
        Fact("Per decision", *_pace(queue)),
        Fact("Drills caught", *_drills(queue)),
        Fact("Proposed again", f"{board.newest.churn:.1%}" if board.newest else "none", _again(board)),
    )
    churn = _churn_chart(board)
    empty = "" if churn else "No plan covers these scopes yet. A plan proposes, and changes nothing:"
    return Part("Queue", facts, (churn,) if churn else (), empty, "" if churn else "manage.py consolidate")


def _oldest(queue: Queue) -> str:
    waits = [f"{risk.removesuffix('s')} {_day(oldest)}" for risk, oldest in queue.oldest_by_risk.items() if oldest]
    return f"when it was first proposed: {', '.join(waits)}" if len(waits) > 1 else "when it was first proposed"


def _pace(queue: Queue) -> tuple[str, str]:
    if queue.median_seconds is None:
        return "unknown", "nobody opened an item before deciding it in 30 days"
    return _seconds(queue.median_seconds), f"median of {queue.timed:,} of {queue.decided:,}, from opening to decision"


def _drills(queue: Queue) -> tuple[str, str]:
    rate = queue.drills
    if not rate.of:
        return "none yet", "in a long sitting one item in 50 is planted: two claims known to be different"
    low, high = rate.interval
    return f"{rate.share:.0%}", f"{rate.hits:,} of {rate.of:,} planted items, so {low:.0%} to {high:.0%}"


def _again(board: Board) -> str:
    newest = board.newest
    if newest is None:
        return "there is no plan yet"
    return f"{newest.before:,} of {newest.operations:,} in {plan_label(newest.plan)} were proposed before"


def _reading(suites: Sequence[Suite]) -> Part:
    """How well what is kept is found."""
    measured = [suite for suite in suites if any(run.recall is not None for run in suite.runs)]
    if not measured:
        empty = (
            "Recall is not measured: no number of any run of a suite may be shown."
            if suites
            else "Recall is not measured: no probe suite has run. A suite asks what agents ask, and knows the answers:"
        )
        command = "" if suites else "manage.py probe import FILE --scope NAME --name NAME, then probe run NAME"
        return Part("Reading", empty=empty, command=command)
    return Part("Reading", tuple(_newest(suite) for suite in measured), _reading_charts(measured))


def _newest(suite: Suite) -> Fact:
    run = [run for run in suite.runs if run.recall is not None][-1]
    where = f"{visible(suite.name)}, {visible(suite.scope)}"
    distinct = f"distinct@5 {run.distinct:.2f}; " if run.distinct is not None else ""
    return Fact(where, f"{run.recall:.3f}", f"recall@5; {distinct}{counted(run.records, 'record')}, {_day(run.at)}")


def _model(board: Board) -> Part:
    """What language models took."""
    asked = board.asked
    if not asked.calls and not asked.microdollars:
        return Part("Language model", empty=f"No model was asked for these scopes in {MODEL_DAYS} days.")
    today = board.spent[-1]
    facts = (
        Fact("Today", f"${today.microdollars / _MILLION:,.2f}", counted(today.calls, "call")),
        Fact(f"{MODEL_DAYS} days", f"${asked.microdollars / _MILLION:,.2f}", counted(asked.calls, "call")),
        Fact("Without an answer", f"{asked.failed:,}", "failed, or not allowed by the budget"),
    )
    return Part("Language model", facts, (_spend_chart(board),))


# --- the pictures -----------------------------------------------------------------------------------------------------


def _size_chart(board: Board) -> Drawing:
    last = board.size[-1]
    series = [
        Series("active", tuple(point.active for point in board.size)),
        Series("superseded", tuple(point.superseded for point in board.size)),
        Series("archived", tuple(point.archived for point in board.size)),
        Series("other", tuple(point.other for point in board.size)),
    ]
    return draw(
        Chart(
            key="size",
            title="Size over time",
            about=f"Observations at the end of each {board.step.value}, stacked by status. Now {last.active:,} active,"
            f" {last.superseded:,} superseded, {last.archived:,} archived, {last.other:,} held back or retracted.",
            form=Form.AREAS,
            unit="rows",
            along=f"{board.step.value} (UTC)",
            labels=tuple(point.day.isoformat() for point in board.size),
            series=tuple(one for one in series if any(one.values) or one.name == "active"),
        )
    )


def _chains_chart(board: Board) -> Drawing | None:
    if not board.chains:
        return None
    depths = range(1, board.longest_chain + 1)
    return draw(
        Chart(
            key="chains",
            title="Chains of merges",
            about=f"Active rows by how many merges after one another made them; the longest is {board.longest_chain}.",
            form=Form.BARS,
            unit="rows",
            along="merges behind a row",
            labels=tuple(map(str, depths)),
            series=(Series("rows", tuple(board.chains.get(depth, 0) for depth in depths)),),
        )
    )


def _churn_chart(board: Board) -> Drawing | None:
    if not board.plans:
        return None
    newest = board.plans[-1]
    return draw(
        Chart(
            key="churn",
            title="New and proposed again, by plan",
            about=f"Operations of the newest plans: what is new, and what an earlier plan proposed too. Of the newest,"
            f" {newest.churn:.0%} was proposed before.",
            form=Form.BARS,
            unit="operations",
            along="plan",
            labels=tuple(plan_label(planned.plan) for planned in board.plans),
            series=(
                Series("new", tuple(planned.operations - planned.before for planned in board.plans)),
                Series("again", tuple(planned.before for planned in board.plans)),
            ),
        )
    )


def _reading_charts(suites: Sequence[Suite]) -> tuple[Drawing, ...]:
    """Recall, distinct claims and records by suite, a place per run."""
    runs = sorted(((run.at, suite.suite, run) for suite in suites for run in suite.runs), key=lambda one: one[:2])
    places = tuple(at.timestamp() for at, _, _ in runs)
    labels = tuple(f"{at:%Y-%m-%d %H:%M}" for at, _, _ in runs)

    def chart(key: str, title: str, unit: str, of: str, digits: int, top: float | None) -> Drawing:
        series = tuple(
            Series(_name(suite), tuple(_value(run, of) if pk == suite.suite else None for _, pk, run in runs))
            for suite in suites
        )
        ends = "; ".join(f"{each.name} {_last(each.values):,.{digits}f}" for each in series)
        return draw(
            Chart(
                key=key,
                title=title,
                about=f"{title} by probe suite, over its newest runs. Now {ends}.",
                form=Form.LINES,
                unit=unit,
                along="run (UTC)",
                labels=labels,
                places=places,
                series=series,
                top=top,
                say=lambda number: f"{number:,.{digits}f}",
            )
        )

    return (
        chart("recall", "Recall@5", "share", "recall", 2, 1.0),
        chart("distinct", "Distinct@5", "claims", "distinct", 1, 5.0),
        chart("records", "Records", "rows", "records", 0, None),
    )


def _name(suite: Suite) -> str:
    name = visible(suite.name)
    return name if len(name) <= _NAMED else f"{name[: _NAMED - 1]}…"


def _value(run: Run, of: str) -> float | None:
    value: float | None = getattr(run, of)
    return value


def _last(values: Iterable[float | None]) -> float:
    return next((value for value in reversed(list(values)) if value is not None), 0.0)


def _spend_chart(board: Board) -> Drawing:
    return draw(
        Chart(
            key="spend",
            title="Model spend by day",
            about=f"Dollars per day over {MODEL_DAYS} days, ${board.asked.microdollars / _MILLION:,.2f} together.",
            form=Form.BARS,
            unit="$",
            along="day (UTC)",
            labels=tuple(spent.day.isoformat() for spent in board.spent),
            series=(Series("dollars", tuple(spent.microdollars / _MILLION for spent in board.spent)),),
            say=lambda number: f"{number:,.2f}",
        )
    )


# --- words ------------------------------------------------------------------------------------------------------------


def _day(moment: datetime | None) -> str:
    return day(moment) or "none"


def _seconds(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.0f} h"

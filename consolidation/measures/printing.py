"""The figures as text, with growth as bars of characters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from consolidation.measures.values import DECIDING_DAYS, MODEL_DAYS, Board, Month, Planned, Queue, Size, Stats, Suite
from consolidation.operations import counted, visible
from consolidation.operations import plan as plan_label

_CURVE: Final = 40  # characters of the longest bar
_POINTS: Final = 12  # of the size over time that the text shows; the document has all
_MILLION: Final = 1_000_000


def stats_text(stats: Stats) -> str:
    """The figures as text."""
    board = stats.board
    asked, same = board.asked, board.duplicates
    keys = ", ".join(f"{number} {state}" for state, number in stats.given_keys.items())
    about = "about " if same.about else ""
    lines = [
        f"SCOPES        {stats.scopes}",
        f"EPISODES      {stats.episodes}",
        f"OBSERVATIONS  {sum(board.by_status.values())}" + _listed(board.by_status),
        f"SUPERSEDED    {board.supersession:.1%} of what is or was current",
        f"DUPLICATES    about {board.duplicate_share:.1%} of what reads return"
        f"  ({about}{counted(same.same_text, 'row')} with the text of another,"
        f" {same.waiting_merges} in merges that wait)",
        f"PROMOTIONS    {board.promotions}",
        f"COMPACTIONS   {board.compactions}",
        f"FADED         {stats.archived_by_decay} archived by decay",
        f"ALIASES       {stats.aliases}",
        f"CHAINS        at most {counted(board.longest_chain, 'merge')} behind one row",
        f"APPLIED       {', '.join(f'{number} {kind}' for kind, number in board.applied.items()) or 'nothing'}",
        *_queue(board.queue, waiting=board.waiting),
        f"NEWEST PLAN   {_newest(board.newest)}",
        *(_suite(suite) for suite in board.suites),
        f"MODEL         {counted(asked.calls, 'call')} in {MODEL_DAYS} days, {asked.failed} without an answer,"
        f" ${asked.microdollars / _MILLION:.2f}",
        f"KEYS          {keys}",
        f"OLDEST        {board.oldest:%Y-%m-%d}" if board.oldest else "OLDEST        nothing yet",
        *(f"NOTICE        {notice}" for notice in board.notices),
    ]
    return "\n".join([*lines, *_over_time(board), *_curve(stats.months)])


def _listed(by_status: Mapping[str, int]) -> str:
    listed = ", ".join(f"{number} {status}" for status, number in by_status.items())
    return f"  ({listed})" if listed else ""


def _queue(queue: Queue, *, waiting: int) -> list[str]:
    since = f", the oldest since {queue.oldest:%Y-%m-%d}" if queue.oldest else ""
    by_risk = ", ".join(f"{number} {risk.removesuffix('s')}" for risk, number in queue.waiting.items())
    pace = "seconds per decision unknown"
    if queue.median_seconds is not None:
        pace = f"{queue.median_seconds:.0f} s per decision (median of {queue.timed} that were opened first)"
    low, high = queue.drills.interval
    drills = f"{queue.drills.hits} of {queue.drills.of} caught" + (
        f" ({low:.0%} to {high:.0%})" if queue.drills.of else ""
    )
    return [
        f"QUEUE         {waiting} wait for a person ({by_risk}){since}, {queue.overdue} overdue",
        f"DECISIONS     {queue.decided_today} today, {queue.decided} in {DECIDING_DAYS} days; {pace}",
        f"DRILLS        {drills}",
    ]


def _newest(newest: Planned | None) -> str:
    if newest is None:
        return "nothing was planned yet"
    return (
        f"{plan_label(newest.plan)}: {newest.before} of {counted(newest.operations, 'operation')} proposed before"
        f" (churn {newest.churn:.0%}), {newest.held_back} held back by the review budget"
    )


def _suite(suite: Suite) -> str:
    run = suite.runs[-1]
    recall = "not measured" if run.recall is None else f"recall@5 {run.recall:.4f}"
    distinct = "" if run.distinct is None else f", distinct@5 {run.distinct:.2f}"
    return (
        f"PROBES        {visible(suite.name)} of {visible(suite.scope)}: {recall}{distinct},"
        f" {counted(run.records, 'record')} ({run.at:%Y-%m-%d}, {counted(len(suite.runs), 'run')})"
    )


def _over_time(board: Board) -> list[str]:
    """The last points of the size over time."""
    if not board.size:
        return []
    head = f"SIZE          at the end of each {board.step.value}"
    return ["", head, *(_point(point) for point in board.size[-_POINTS:])]


def _point(point: Size) -> str:
    other = f", {point.other} other" if point.other else ""
    return f"  {point.day}  {point.active} active, {point.superseded} superseded, {point.archived} archived{other}"


def _curve(months: Sequence[Month]) -> list[str]:
    """A bar per month: what reads return now as #, what was said and left the reads as dots."""
    if not months:
        return []
    longest = max(max(m.said_total, m.active_total) for m in months)
    lines = ["", "GROWTH        by month first said: # returned by reads now, . said and no longer returned"]
    for m in months:
        solid = round(_CURVE * m.active_total / longest)
        dots = max(0, round(_CURVE * m.said_total / longest) - solid)
        bar = ("#" * solid + "." * dots).ljust(_CURVE)
        lines.append(f"  {m.month}  {bar}  {m.active_total} of {m.said_total} (+{m.said})")
    return lines

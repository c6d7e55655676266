"""The figures as one document. Its names are those of docs/measuring.md."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from consolidation.calibration import Rate
from consolidation.measures.values import DECIDING_DAYS, MODEL_DAYS, Board, Planned, Queue, Size, Stats, Suite
from consolidation.operations import plan as plan_label

_MILLION: Final = 1_000_000


def stats_json(stats: Stats) -> dict[str, object]:
    """The figures as JSON. What is not known is null; money is in dollars, days are those of UTC."""
    months = [
        {"month": m.month, "said": m.said, "said_total": m.said_total, "active_total": m.active_total}
        for m in stats.months
    ]
    return {
        "scopes": stats.scopes,
        "episodes": stats.episodes,
        **board_json(stats.board),
        "archived_by_decay": stats.archived_by_decay,
        "aliases": stats.aliases,
        "given_keys": dict(stats.given_keys),
        "months": months,
    }


def board_json(board: Board) -> dict[str, object]:
    """What the first page draws, as JSON."""
    return {
        "observations": sum(board.by_status.values()),
        "by_status": dict(board.by_status),
        "oldest": _moment(board.oldest),
        "size": {"step": board.step.value, "points": [_size(point) for point in board.size]},
        "supersession_share": round(board.supersession, 4),
        "duplicates": {
            "share": round(board.duplicate_share, 4),
            "same_text": board.duplicates.same_text,
            "same_text_is_estimate": board.duplicates.about,
            "waiting_merges": board.duplicates.waiting_merges,
        },
        "promotions": board.promotions,
        "compactions": board.compactions,
        "applied": dict(board.applied),
        "longest_chain": board.longest_chain,
        "chains": {str(depth): rows for depth, rows in board.chains.items()},
        "queue": _queue(board.queue, waiting=board.waiting),
        "newest_plan": _planned(board.newest) if board.newest else None,
        "plans": [_planned(planned) for planned in board.plans],
        "probes": [_suite(suite) for suite in board.suites],
        "model": {
            "days": MODEL_DAYS,
            "calls": board.asked.calls,
            "failed": board.asked.failed,
            "dollars": board.asked.microdollars / _MILLION,
            "by_day": [
                {"day": spent.day.isoformat(), "calls": spent.calls, "dollars": spent.microdollars / _MILLION}
                for spent in board.spent
            ],
        },
        "notices": list(board.notices),
    }


def _moment(at: datetime | None) -> str | None:
    return at.isoformat() if at else None


def _size(point: Size) -> dict[str, object]:
    return {
        "day": point.day.isoformat(),
        "active": point.active,
        "superseded": point.superseded,
        "archived": point.archived,
        "other": point.other,
    }


def _queue(queue: Queue, *, waiting: int) -> dict[str, object]:
    return {
        "waiting": waiting,
        "by_risk": dict(queue.waiting),
        "oldest": _moment(queue.oldest),
        "oldest_by_risk": {risk: _moment(oldest) for risk, oldest in queue.oldest_by_risk.items()},
        "overdue": queue.overdue,
        "decided_today": queue.decided_today,
        "days": DECIDING_DAYS,
        "decided": queue.decided,
        "timed": queue.timed,
        "median_seconds": None if queue.median_seconds is None else round(queue.median_seconds, 1),
        "drills": _drills(queue.drills),
    }


def _drills(rate: Rate) -> dict[str, object]:
    low, high = rate.interval
    known = {"rate": round(rate.share, 4), "low": round(low, 4), "high": round(high, 4)} if rate.of else {}
    return {"caught": rate.hits, "answered": rate.of, "rate": None, "low": None, "high": None, **known}


def _planned(planned: Planned) -> dict[str, object]:
    return {
        "plan": plan_label(planned.plan),
        "at": planned.at.isoformat(),
        "operations": planned.operations,
        "proposed_before": planned.before,
        "churn": round(planned.churn, 4),
        "held_back": planned.held_back,
    }


def _suite(suite: Suite) -> dict[str, object]:
    runs = [
        {
            "at": run.at.isoformat(),
            "cause": run.cause,
            "recall": run.recall,
            "distinct": run.distinct,
            "records": run.records,
        }
        for run in suite.runs
    ]
    return {"suite": suite.name, "scope": suite.scope, "runs": runs}

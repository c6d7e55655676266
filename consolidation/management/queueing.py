"""How the queue stands, for `consolidate queue`: what waits by risk and age, and what was approved and not applied."""

from __future__ import annotations

from consolidation.review.ageing import Health, Standing


def document(found: Health) -> dict[str, object]:
    """The figures as JSON."""
    return {
        "waiting": sum(standing.waiting for standing in found.by_risk.values()),
        "overdue": found.overdue,
        "by_risk": {risk.name.lower(): _figures(standing) for risk, standing in found.by_risk.items()},
        "approved": found.approved,
        "approvals_expired": found.expired,
    }


def _figures(standing: Standing) -> dict[str, object]:
    return {
        "fresh": standing.fresh,
        "ageing": standing.ageing,
        "overdue": standing.overdue,
        "oldest": standing.oldest.isoformat() if standing.oldest else None,
    }


def text(found: Health) -> str:
    """The figures as a person reads them."""
    waiting = sum(standing.waiting for standing in found.by_risk.values())
    lines = [f"QUEUE       {waiting} wait for a person, {found.overdue} of them longer than allowed"]
    for risk, standing in found.by_risk.items():
        since = f", the oldest since {standing.oldest:%Y-%m-%d}" if standing.oldest else ""
        ages = f"{standing.fresh} fresh, {standing.ageing} ageing, {standing.overdue} overdue{since}"
        lines.append(f"{risk.name.lower():<12}{ages}")
    lines.append(f"APPROVED    {found.approved} not applied, {found.expired} of them expired: approve those again")
    return "\n".join(lines)

"""What rule a proposal comes from, and in which band it lies: what its errors are counted under (DESIGN promise 8).

The names are neither part of an operation's id nor of its digest: they say who judged, not what was judged.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from consolidation.accuracy.bands import Demoted
from consolidation.operations import Approval, Json, Kind, Proposal

ALL: Final = "all"  # the band of a rule that has no figure to be divided by
DEMOTED: Final = "demoted"  # among the signals of what would have been automatic
_MANY_ROOTS: Final = 6
_LOWEST: Final = 0.80  # similarities below it are one band
_RATIOS: Final = (2, 5, 10)  # episodes to one summary


@dataclass(frozen=True, slots=True, order=True)
class Named:
    """Whose judgement a proposal is. Both empty: nobody knows, as of operations from before this was kept."""

    rule: str = ""  # at most 40 characters
    band: str = ""  # at most 20


def named(proposal: Proposal) -> Named:
    """The rule and band of what a plan proposes. A similarity is the lowest of the pairs, in steps of a hundredth."""
    rule, band = _OF_KIND.get(proposal.kind, _by_request)(proposal)
    return Named(rule[:40], band[:20])


def _merge(proposal: Proposal) -> tuple[str, str]:
    if proposal.approval is Approval.NEVER:
        return "kept apart", ALL
    pairs = _pairs(proposal.signals)
    band = _similarity(pair.get("cosine") for pair in pairs)
    if proposal.skipped_reason:
        return "possible contradiction", band
    if any(pair.get("failed") or pair.get("verdict") != "same" for pair in pairs) or not pairs:
        return "similar", band
    if all("text" in _words(pair.get("met")) for pair in pairs):
        return "same words", "same words"
    return "same key", band


def _pairs(signals: Mapping[str, Json]) -> list[Mapping[str, Json]]:
    pairs = signals.get("pairs")
    return [pair for pair in pairs if isinstance(pair, Mapping)] if isinstance(pairs, list | tuple) else []


def _words(found: Json) -> tuple[Json, ...]:
    return tuple(found) if isinstance(found, list | tuple) else ()


def _similarity(cosines: Iterable[Json]) -> str:
    """Of the lowest: "0.98-0.99" holds 0.98 and not 0.99; the highest band holds 1."""
    known = [cosine for cosine in cosines if isinstance(cosine, int | float)]
    if not known:
        return "no vectors"
    lowest = min(known)
    if lowest < _LOWEST:
        return f"under {_LOWEST:.2f}"
    step = min(99, math.floor(lowest * 100 + 1e-6))
    return f"{step / 100:.2f}-{(step + 1) / 100:.2f}"


def _promote(proposal: Proposal) -> tuple[str, str]:
    if proposal.approval is Approval.NEVER:
        return "unsupported", ALL
    roots = proposal.product.get("roots")
    if not isinstance(roots, int):
        return "independent sources", ALL
    return "independent sources", f"{roots} sources" if roots < _MANY_ROOTS else f"{_MANY_ROOTS} or more sources"


def _compact(proposal: Proposal) -> tuple[str, str]:
    if proposal.approval is Approval.NEVER:
        return "no summary", ALL
    ratio = next((most for most in _RATIOS if len(proposal.sources) <= most), 0)
    band = f"up to {ratio}:1" if ratio else f"over {_RATIOS[-1]}:1"
    kept = proposal.approval is Approval.AUTO or DEMOTED in proposal.signals
    return "all specifics kept" if kept else "summary with gaps", band


def _supersede(proposal: Proposal) -> tuple[str, str]:
    suggested = proposal.product.get("suggested")
    return "contradiction", str(suggested) if suggested else ALL


def _archive(_proposal: Proposal) -> tuple[str, str]:
    return "decay", ALL


def _prune(proposal: Proposal) -> tuple[str, str]:
    return "used up" if "derived" in proposal.product else "retention", ALL


def _by_request(_proposal: Proposal) -> tuple[str, str]:
    return "", ""  # an alias, a forget: a person's own question


_OF_KIND: Final = {
    Kind.MERGE: _merge,
    Kind.PROMOTE: _promote,
    Kind.COMPACT: _compact,
    Kind.SUPERSEDE: _supersede,
    Kind.ARCHIVE: _archive,
    Kind.PRUNE: _prune,
}


def asked_instead(proposal: Proposal, *, demoted: Mapping[tuple[str, str, str], Demoted]) -> Proposal:
    """The same for a person to decide, saying why, where its band was wrong too often to decide alone."""
    if not proposal.auto or not demoted:
        return proposal
    own = named(proposal)
    found = demoted.get((proposal.kind.value, own.rule, own.band))
    if found is None:
        return proposal
    reason = f"{proposal.reason[:300]}; a person decides, {found.sentence}"
    signals = {**proposal.signals, DEMOTED: True}
    return replace(proposal, approval=Approval.NEEDS_HUMAN, reason=reason[:480], signals=signals)

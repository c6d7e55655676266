"""Why an operation was proposed, in pictures and figures, and what else rests on the same records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from consolidation import accuracy, sampling
from consolidation.admin.texts import snippet
from consolidation.models import OPEN, Operation, OperationSource
from consolidation.operations import OF_EPISODES, Kind, obs
from observations.models import Lineage

LISTED: Final = 20  # of what was built on the sources, and of the other open operations


@dataclass(frozen=True, slots=True)
class Bar:
    """One signal, from 0 to 1."""

    label: str
    value: str  # for the picture
    words: str
    low: bool  # under what the rule asks for, or nothing


@dataclass(frozen=True, slots=True)
class Judgement:
    """Whose judgement it is, and how often it was wrong here."""

    rule: str
    error: str  # in words
    share: str  # 0 to 1, for the picture; empty: nothing is known


@dataclass(frozen=True, slots=True)
class Other:
    """A row that was built on one of the sources, or another open operation on it."""

    pk: int
    name: str
    what: str


@dataclass(frozen=True, slots=True)
class Why:
    """The page's panel."""

    judgement: Judgement | None
    bars: tuple[Bar, ...]
    guards: tuple[str, ...]
    built: tuple[Other, ...]
    open: tuple[Other, ...]
    edited_from: Other | None
    edited_into: Other | None
    edited_by: str
    undo: str  # what taking it back would do


def why(operation: Operation, ids: Sequence[int]) -> Why:
    """`ids` are its sources'. Six queries, however many there are."""
    before = Operation.objects.filter(pk=operation.edited_from_id or 0, scope_id=operation.scope_id).first()
    after = operation.edits.order_by("pk").first()
    pairs = operation.signals.get("pairs", [])
    return Why(
        judgement=_judgement(operation),
        bars=tuple(_bars(operation, pairs)),
        guards=tuple(sorted({snippet(str(name)) for pair in pairs for name in pair.get("failed", [])})),
        built=_built(operation, ids),
        open=_open(operation, ids),
        edited_from=_named(before),
        edited_into=_named(after),
        edited_by=snippet(operation.edited_by),
        undo=_UNDOES.get(Kind(operation.kind), ""),
    )


_UNDOES: Final = {
    Kind.MERGE: "Undo retracts the new record and gives every source back as it is now: its text, status and period."
    " The pair is not proposed again.",
    Kind.PROMOTE: "Undo retracts the new record. Its episodes never change.",
    Kind.COMPACT: "Undo retracts the summary and brings every episode back into the reads.",
    Kind.SUPERSEDE: "Undo gives every claim its status and period back, and takes back what was learnt.",
    Kind.ARCHIVE: "Undo brings the record back into the reads, whole.",
    Kind.PRUNE: "Undo brings the records back while the grace period lasts. After it nothing can.",
    Kind.ALIAS: "Undo takes the alias away. What was merged under it stays merged.",
}


def _judgement(operation: Operation) -> Judgement | None:
    if not operation.rule:
        return None
    band = sampling.band_of(operation=operation)
    words, share = "nobody has judged it here yet", ""
    if band is not None and band.rate.of:
        rate = band.rate
        words, share = f"wrong in {rate.hits} of {rate.of} judged here: {accuracy.proven(rate)}", f"{rate.share:.3f}"
    return Judgement(snippet(accuracy.spoken(rule=operation.rule, band=operation.band)), words, share)


def _bars(operation: Operation, pairs: Sequence[dict[str, Any]]) -> list[Bar]:
    cosines = [pair["cosine"] for pair in pairs if isinstance(pair.get("cosine"), float | int)]
    found = []
    if cosines:
        found.append(_bar("Lowest similarity", min(cosines), f"{min(cosines):.3f}"))
        if len(cosines) > 1:
            found.append(_bar("Highest similarity", max(cosines), f"{max(cosines):.3f}"))
    if pairs:
        clear = sum(not pair.get("failed") for pair in pairs)
        found.append(_bar("Pairs no guard objects to", clear / len(pairs), f"{clear} of {len(pairs)}"))
        keyed = sum("subject_predicate" in pair.get("met", []) for pair in pairs)
        found.append(_bar("Pairs with one subject and predicate", keyed / len(pairs), f"{keyed} of {len(pairs)}"))
    return found + _of_episodes(operation)


def _of_episodes(operation: Operation) -> list[Bar]:
    product, signals = operation.product, operation.signals
    found = []
    if operation.kind == Kind.PROMOTE and (episodes := product.get("episodes")):
        roots, verified = int(product.get("roots", 0)), int(product.get("verified", 0))
        found.append(_bar("Independent of its episodes", roots / episodes, f"{roots} of {episodes}"))
        found.append(_bar("Witnesses with a verified success", verified / max(1, roots), f"{verified} of {roots}"))
    if operation.kind == Kind.COMPACT and (every := signals.get("specifics")):
        lost = min(every, sum(signals.get("lost", {}).values()))
        found.append(_bar("Specifics kept", (every - lost) / every, f"{every - lost} of {every}"))
    return found


def _bar(label: str, share: float, words: str) -> Bar:
    inside = min(1.0, max(0.0, share))
    return Bar(label=label, value=f"{inside:.3f}", words=words, low=inside < 0.5)


def _built(operation: Operation, ids: Sequence[int]) -> tuple[Other, ...]:
    column = "source_episode__in" if operation.kind in OF_EPISODES else "source_observation__in"
    edges = Lineage.objects.filter(scope_id=operation.scope_id, **{column: ids})
    edges = edges.exclude(derived_id=operation.derived_id or 0).exclude(derived__status__in=["retracted", "erased"])
    found = edges.order_by("-derived_id").values_list("derived_id", "derivation").distinct()[:LISTED]
    return tuple(Other(pk, obs(pk), snippet(kind)) for pk, kind in found)


def _open(operation: Operation, ids: Sequence[int]) -> tuple[Other, ...]:
    column = "episode__in" if operation.kind in OF_EPISODES else "observation__in"
    touching = OperationSource.objects.filter(scope_id=operation.scope_id, **{column: ids})
    rows = Operation.objects.filter(pk__in=touching.values("operation"), status__in=OPEN).exclude(pk=operation.pk)
    return tuple(
        Other(row.pk, row.op_id[:11], f"{row.kind}, {row.status.replace('_', ' ')}")
        for row in rows.order_by("-pk").only("pk", "op_id", "kind", "status")[:LISTED]
    )


def _named(row: Operation | None) -> Other | None:
    return None if row is None else Other(row.pk, row.op_id[:11], row.status)

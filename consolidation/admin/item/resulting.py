"""The whole record that an operation would write: every field that is stored, and how it stands to the sources (D2).

Focus, bulk and the item's page show the same of it, so that nobody approves a field that stood on no page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from consolidation import merge, runner
from consolidation.admin.item.fields import value_of
from consolidation.admin.item.products import merged_claims
from consolidation.admin.item.sources import Records
from consolidation.admin.texts import Text, period, when, whole
from consolidation.models import Operation, OperationSource
from consolidation.operations import OF_EPISODES, obs, visible
from consolidation.policy import Policy as Rules
from observations.models import Episode, GivenKey, Observation
from observations.records import Claim

NONE: Final = "none"
LETTERED: Final = 9  # sources that may be kept by a key
_NOBODY: Final = "no source says this"
_SOME: Final = "not what every source says"
_UNTOLD: Final = "in no episode, word by word"
_FOREVER: Final = "never fades"


@dataclass(frozen=True, slots=True)
class Part:
    """One field of the record."""

    label: str
    value: str
    differs: str = ""  # how it stands to what the sources say; empty: each of them says it
    new: bool = False  # nothing that it is made of says it


@dataclass(frozen=True, slots=True)
class Result:
    """The record, before it is written."""

    text: Text
    text_differs: str  # empty: a source has these words
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Otherwise:
    """What else would be written if the text of another source were kept."""

    name: str
    number: int  # its place on the page
    parts: tuple[Part, ...]  # those that would be other than what is proposed


@dataclass(frozen=True, slots=True)
class Results:
    """What may come of an operation."""

    merged: Claim | None  # of a merge
    result: Result | None  # None: it writes no record
    otherwise: tuple[Otherwise, ...]


def read_results(
    operation: Operation,
    sources: Sequence[OperationSource],
    standing: tuple[Records, Mapping[int, Episode]],
    policy: Rules,
    *,
    text: Text | None = None,
    order: Sequence[int] = (),
) -> Results:
    """What applying would write, by the code that applies it. `text` is that of a fact or a summary as its page marks
    it; `order`: the sources whose text may be kept instead, as the page shows them. No query.
    """
    records, turns = standing
    if operation.kind in OF_EPISODES:
        claim = runner.told_claim(operation=operation, sources=sources, turns=turns, policy=policy)
        return Results(None, of_episodes(claim, text, turns), ())
    places = {pk: place for place, pk in enumerate(order, start=1) if pk != operation.keeper_id}
    others = () if operation.edited_from_id else tuple(places)
    claims = merged_claims(operation, records, policy, keeps=others)
    if not claims:
        return Results(None, None, ())
    result = of_merge(claims[0], operation, records)
    found = []
    for pk, claim in zip(others, claims[1:], strict=True):
        parts = of_merge(claim, operation, records, keep=pk).parts
        found.append(Otherwise(obs(pk), places[pk], tuple(part for part in parts if part not in result.parts)))
    return Results(claims[0], result, tuple(other for other in found if other.parts))


# --- of a merge -------------------------------------------------------------------------------------------------------


def of_merge(claim: Claim, operation: Operation, records: Records, *, keep: int | None = None) -> Result:
    """What a merge would write, with the text of `keep` where one is named. No query."""
    rows = records.sources
    own = all(row.text != claim.text for row in rows)
    return Result(
        text=whole(claim.text, most=None),
        text_differs=_NOBODY if own else "",
        parts=(*_key(claim, operation, records, keep or operation.keeper_id or 0), *_ruled(claim, rows)),
    )


def _key(claim: Claim, operation: Operation, records: Records, keep: int) -> tuple[Part, ...]:
    parts, handed = [], _handed_on(operation, records, keep)
    for name in merge.KEY:
        said = [visible(value_of(row, name, records)[0]) for row in records.sources]
        mine, model = str(getattr(claim, name)), ""
        if not mine and handed is not None:
            mine, model = str(getattr(handed, name)), handed.model
        if mine or any(said):
            parts.append(
                _part(
                    name.capitalize(), visible(mine), said, note=f"given by {visible(model)}" if mine and model else ""
                )
            )
    return tuple(parts) or (Part("Key", NONE),)


def _handed_on(operation: Operation, records: Records, keep: int) -> GivenKey | None:
    """The key that a model gave a source, where the new row takes that answer over. No query.

    As the runner chooses it: of the sources with the kept text and key, one whose key was taken back comes first, then
    the one with most of a key. An edited text or key takes none over.
    """
    key = (operation.claim_subject, operation.claim_predicate, operation.claim_object)
    edits = merge.edits_of(product=operation.product, text=operation.text, key=key)
    if not records.given or edits.words or edits.key:
        return None
    keep = int(operation.decision.get("keep") or keep)
    taken = {row.pk: row.record(roots=frozenset(), uses=0) for row in records.sources}
    says = {pk: (record.normalised, record.written_key) for pk, record in taken.items()}
    alike = [pk for pk in taken if says[pk] == says[keep]]
    if records.withdrawn.intersection(alike):
        return None
    given = [records.given[pk] for pk in sorted(alike, key=lambda pk: (pk != keep, pk)) if pk in records.given]
    return max(given, key=lambda one: sum(map(bool, (one.subject, one.predicate, one.object))), default=None)


def _ruled(claim: Claim, rows: Sequence[Observation]) -> tuple[Part, ...]:
    fades = claim.half_life_days if claim.half_life_days is not None else claim.kind.half_life_days
    return (
        _part("Kind", str(claim.kind), [str(row.kind) for row in rows]),
        _part("Fades", _fades(fades), [_fades(row.half_life_days) for row in rows]),
        _part("Said by", str(claim.stated_by), [str(row.stated_by) for row in rows]),
        _part("Confidence", f"{claim.confidence:.2f}", [f"{row.confidence:.2f}" for row in rows]),
        _part("First said", when(claim.created_at), [when(row.created_at) for row in rows]),
        _part(
            "True",
            period(claim.valid_from, claim.valid_to) or "no period given",
            [period(row.valid_from, row.valid_to) or "no period given" for row in rows],
        ),
    )


def _part(label: str, value: str, said: Sequence[str], *, note: str = "") -> Part:
    """A field beside what the sources say in it."""
    new = value not in said and bool(value)
    differs = _NOBODY if new else _SOME if any(one != value for one in said) else ""
    return Part(label, value or NONE, ", ".join(filter(None, (note, differs))), new)


def _fades(half_life: int | None) -> str:
    return f"by half in {half_life:,} days" if half_life else _FOREVER


# --- of a promotion and a compaction ----------------------------------------------------------------------------------


def of_episodes(claim: Claim | None, text: Text | None, turns: Mapping[int, Episode]) -> Result | None:
    """What a promotion or a compaction would write, with `text` as its page marks it; None where there is no text. No
    query.
    """
    if claim is None or text is None or not claim.text:
        return None
    told = [(turn.text or "").casefold() for turn in turns.values()]
    key = []
    for name in merge.KEY:
        if value := str(getattr(claim, name)):
            new = not any(value.casefold() in one for one in told)
            key.append(Part(name.capitalize(), visible(value), _UNTOLD if new else "", new))
    ruled = (Part(part.label, part.value) for part in _ruled(claim, ()))
    return Result(text=text, text_differs="", parts=(*(key or [Part("Key", NONE)]), *ruled))

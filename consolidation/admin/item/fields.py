"""The sources of a merge field by field: who says what, what differs, and which value the result would have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from consolidation import merge
from consolidation.admin.item.sources import Records
from consolidation.admin.texts import period, snippet, when
from consolidation.models import Operation
from consolidation.operations import Kind, obs, visible
from consolidation.review import LIMITS
from observations.models import Observation
from observations.records import Claim

QUOTED: Final = 400  # characters of a value in the table
LABELS: Final = {"text": "Text", "subject": "Subject", "predicate": "Predicate", "object": "Object", "kind": "Kind"}
_NONE: Final = "none"


@dataclass(frozen=True, slots=True)
class Value:
    """One value of a field, and which sources have it."""

    shown: str
    names: tuple[str, ...]
    pick: str  # the first source's id, for a form
    given_by: str = ""  # the model that gave it, where no writer did
    chosen: bool = False


@dataclass(frozen=True, slots=True)
class Field:
    """One row of the table."""

    name: str
    label: str
    values: tuple[Value, ...]
    result: str  # what the new row says
    editable: bool
    own: str = ""  # a reviewer's words, as a form holds them
    limit: int = 0

    @property
    def equal(self) -> bool:
        """All sources say the same, and so would the result: an edit may say something else."""
        return len(self.values) == 1 and (not self.editable or self.result in (self.values[0].shown, _NONE))

    @property
    def conflict(self) -> bool:
        """They say different things, not only more or less."""
        return self.editable and len([value for value in self.values if value.shown != _NONE]) > 1

    @property
    def writable(self) -> bool:
        """It takes own words."""
        return self.limit > 0

    @property
    def owned(self) -> bool:
        """Own words are chosen."""
        return self.writable and not any(value.chosen for value in self.values)


@dataclass(frozen=True, slots=True)
class Fields:
    """The table, those that are equal apart."""

    differ: tuple[Field, ...]
    equal: tuple[Field, ...]


def fields(operation: Operation, records: Records, claim: Claim | None) -> Fields | None:
    """The table of a merge, with what its result would say; None for other kinds, and where a text is erased. No
    query.
    """
    rows = records.sources
    if operation.kind != Kind.MERGE or claim is None or any(row.text is None for row in rows):
        return None
    edits = _edits(operation)
    every = [*(_editable(name, rows, records, claim, edits) for name in merge.FIELDS), *_ruled(rows, records, claim)]
    return Fields(differ=tuple(one for one in every if not one.equal), equal=tuple(one for one in every if one.equal))


def _edits(operation: Operation) -> merge.Edits:
    key = (operation.claim_subject, operation.claim_predicate, operation.claim_object)
    return merge.edits_of(product=operation.product, text=operation.text, key=key)


def value_of(row: Observation, name: str, records: Records) -> tuple[str, str]:
    """A field of a row and the model that gave it, where its writer did not."""
    own = str(getattr(row, name) or "")
    given = records.given.get(row.pk)
    if name in merge.KEY and not own and given is not None and getattr(given, name):
        return str(getattr(given, name)), given.model
    return own, ""


def _editable(name: str, rows: Sequence[Observation], records: Records, claim: Claim, edits: merge.Edits) -> Field:
    result = str(getattr(claim, name))
    said: dict[tuple[str, str], list[Observation]] = {}
    for row in rows:
        said.setdefault(value_of(row, name, records), []).append(row)
    own = edits.own.get(name)
    return Field(
        name=name,
        label=LABELS[name],
        values=tuple(
            Value(
                shown=snippet(value, limit=QUOTED) if value else _NONE,
                names=tuple(obs(row.pk) for row in group),
                pick=str(group[0].pk),
                given_by=visible(model),
                chosen=own is None and value == result and not model,
            )
            for (value, model), group in said.items()
        ),
        result=snippet(result, limit=QUOTED) if result else _NONE,
        editable=True,
        own=own if own is not None else result,
        limit=LIMITS.get(name, 0),
    )


def _ruled(rows: Sequence[Observation], records: Records, claim: Claim) -> list[Field]:
    """What nobody chooses: the rule unites it, so that nothing is trusted more than its sources."""
    united = {item.source_uri for row in rows for item in records.evidence.get(row.pk, ())}
    lines: dict[str, tuple[Mapping[int, str], str]] = {
        "Stated by": ({row.pk: row.stated_by for row in rows}, str(claim.stated_by)),
        "Confidence": ({row.pk: f"{row.confidence:.2f}" for row in rows}, f"{claim.confidence:.2f}"),
        "First said": ({row.pk: when(row.created_at) for row in rows}, when(claim.created_at)),
        "True": (
            {row.pk: period(row.valid_from, row.valid_to) or "no period given" for row in rows},
            period(claim.valid_from, claim.valid_to) or "no period given",
        ),
        "Evidence": ({row.pk: _count(len(records.evidence.get(row.pk, ()))) for row in rows}, _count(len(united))),
    }
    return [_line(label, values, result) for label, (values, result) in lines.items()]


def _count(number: int) -> str:
    return f"{number} source{'' if number == 1 else 's'}"


def _line(label: str, values: Mapping[int, str], result: str) -> Field:
    said: dict[str, list[int]] = {}
    for pk, value in values.items():
        said.setdefault(value, []).append(pk)
    shown = tuple(
        Value(shown=visible(value), names=tuple(obs(pk) for pk in ids), pick=str(ids[0])) for value, ids in said.items()
    )
    return Field(name="", label=label, values=shown, result=visible(result), editable=False)

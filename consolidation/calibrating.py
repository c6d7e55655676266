"""Calibrations, kept and found: which thresholds of an embedder hold, and whether it may merge without a person.

A calibration is never changed but by enabling it. Of a profile the newest one holds that has pairs enough to tell
anything; one that has not is kept as it was measured, and what held before it holds.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import islice
from typing import Final

from django.db import transaction

from consolidation import guards
from consolidation.calibration import FEWEST, NEVER, TOO_FEW, BadLine, Labelled, Measured, labelled, measure
from consolidation.models import Calibration
from observations.embedding import HASHING, MINILM, Embedder, Profile
from observations.models import ClockTimestamp, Event
from observations.normalise import normalised

SHIPPED: Final = frozenset({MINILM.space, HASHING.space})  # measured before they were shipped
_LONGEST: Final = 200  # characters of Calibration.space
_NAME: Final = 80  # and of Calibration.profile
_CHUNK: Final = 256  # pairs embedded at a time


class NotEnabled(Exception):
    """A calibration that cannot be enabled; the text says why."""


def space_of(*, profile: Profile) -> str:
    """What makes a profile's vectors comparable, as a calibration stores it; a digest where it is too long."""
    written = json.dumps(profile.space, ensure_ascii=False)
    return written if len(written) <= _LONGEST else f"sha256:{sha256(written.encode()).hexdigest()}"


def tells(*, calibration: Calibration) -> bool:
    """Whether it has pairs enough to hold. No query."""
    return Measured.from_dict(calibration.figures).tells


def newest(*, profile: Profile) -> Calibration | None:
    """The calibration that holds for a profile: the newest one of the same vectors that tells anything. One query."""
    rows = Calibration.objects.filter(profile=profile.name[:_NAME], space=space_of(profile=profile))
    return next((row for row in rows.order_by("-id") if tells(calibration=row)), None)


def holding(*, newest_first: Iterable[Calibration]) -> frozenset[int]:
    """The ids of those that hold, one for each profile. No query."""
    found: dict[tuple[str, str], int] = {}
    for row in newest_first:
        if (row.profile, row.space) not in found and tells(calibration=row):
            found[row.profile, row.space] = row.pk
    return frozenset(found.values())


def in_force(*, profile: Profile) -> Profile:
    """The profile with the thresholds that hold for it, and whether it may merge by key without a person. One query.

    `automatic` holds for the shipped embedders and for one whose newest calibration a person enabled; never where the
    measurement found no threshold that is safe.
    """
    held = newest(profile=profile)
    shipped = profile.space in SHIPPED
    if held is None:
        return replace(profile, automatic=shipped)
    automatic = (shipped or held.enabled_at is not None) and held.t_merge < NEVER
    return replace(profile, t_candidate=held.t_candidate, t_merge=held.t_merge, automatic=automatic)


@transaction.atomic
def store(*, profile: Profile, measured: Measured, proposed: tuple[float, float], by: str) -> Calibration:
    """Keep what was measured, with automatic merging off. `proposed`: (t_candidate, t_merge). Two queries."""
    t_candidate, t_merge = proposed
    row = Calibration.objects.create(
        profile=profile.name[:_NAME],
        space=space_of(profile=profile),
        t_candidate=t_candidate,
        t_merge=t_merge,
        figures=measured.to_dict(),
        by=by,
    )
    _event(row, "calibrated", by)
    return row


@transaction.atomic
def enable(*, calibration: Calibration, by: str) -> Calibration:
    """Let an embedder merge by key from its measured threshold on, from now. Enabled again, it stays as it was.

    Raises NotEnabled for one that a newer one replaced, that found no safe threshold, or has too few pairs for any.
    """
    named = f"Calibration {calibration.pk} of {calibration.profile}"
    if not tells(calibration=calibration):
        raise NotEnabled(f"{named} has {TOO_FEW}: calibrate with {FEWEST} that are not one claim, or more.")
    if calibration.t_merge >= NEVER:
        raise NotEnabled(f"{named} found no threshold that is safe: calibrate with more pairs, or another embedder.")
    later = Calibration.objects.filter(profile=calibration.profile, space=calibration.space, pk__gt=calibration.pk)
    for newer in holding(newest_first=later.order_by("-pk")):
        raise NotEnabled(f"{named} does not hold any more: calibration {newer} is newer.")
    first = Calibration.objects.filter(pk=calibration.pk, enabled_at=None)
    if first.update(enabled_at=ClockTimestamp(), enabled_by=by):
        _event(calibration, "calibration_enabled", by)
    calibration.refresh_from_db()
    return calibration


def _event(row: Calibration, action: str, by: str) -> None:
    detail = {"profile": row.profile, "t_candidate": row.t_candidate, "t_merge": row.t_merge}
    Event.objects.append(scope_id=None, action=action, actor=by, subject=f"calibration_{row.pk}", detail=detail)


def named(*, profile: str) -> Calibration | None:
    """The newest calibration of any profile of that name that tells anything, else the newest. One query."""
    rows = list(Calibration.objects.filter(profile=profile[:_NAME]).order_by("-id"))
    return next((row for row in rows if tells(calibration=row)), rows[0] if rows else None)


# --- reading labelled pairs -------------------------------------------------------------------------------------------

Line = tuple[str, int, bytes]  # the file's name, the number of the line from 1 on, the line


@dataclass(frozen=True, slots=True)
class Unusable:
    """A line that could not be used, by number; nothing of it is quoted."""

    file: str
    line: int
    reason: str

    def __str__(self) -> str:
        return f"{self.file}, line {self.line}: {self.reason}"


@dataclass(slots=True)
class Counted:
    """What some files of labelled pairs came to: numbers and the numbers of lines, no text."""

    duplicates: list[bool] = field(default_factory=list)
    cosines: list[float] = field(default_factory=list)
    objected: list[bool] = field(default_factory=list)
    identical: list[bool] = field(default_factory=list)
    repeated: int = 0  # pairs that were given before with the same label; each counts once
    unusable: list[Unusable] = field(default_factory=list)
    _labels: dict[bytes, bool] = field(default_factory=dict)

    @property
    def measured(self) -> Measured:
        """The pairs, counted by band."""
        return measure(
            duplicates=self.duplicates, cosines=self.cosines, objected=self.objected, identical=self.identical
        )

    def read(self, line: Line) -> Labelled | None:
        """The pair of a line; None for an empty line, one that cannot be used, or a pair that was given before."""
        file, number, raw = line
        if not raw.strip():
            return None
        try:
            pair = labelled(line=raw)
            before = self._labels.get(pair.digest)
            if before is not None and before != pair.duplicate:
                raise BadLine("an earlier line labels the same pair otherwise")
        except BadLine as fault:
            self.unusable.append(Unusable(file, number, str(fault)))
            return None
        self._labels[pair.digest] = pair.duplicate
        self.repeated += before is not None
        return pair if before is None else None

    def add(self, pairs: Sequence[Labelled], *, embedder: Embedder) -> None:
        """Look at some pairs: their cosines, and what the guards say. Raises EmbeddingError."""
        left, right = (embedder.embed([getattr(pair, side) for pair in pairs]) for side in ("a", "b"))
        self.cosines += [min(1.0, float(cosine)) for cosine in (left * right).sum(axis=1)]
        for pair in pairs:
            self.duplicates.append(pair.duplicate)
            self.objected.append(bool(guards.objections(pair.a, pair.b)))
            self.identical.append(normalised(pair.a) == normalised(pair.b) != "")


def count(*, lines: Iterable[Line], embedder: Embedder) -> Counted:
    """Measure an embedder on the pairs of some lines (see calibration.labelled). What cannot be used is counted, and
    stops nothing. Raises EmbeddingError.
    """
    counted = Counted()
    pairs = (pair for line in lines if (pair := counted.read(line)) is not None)
    while chunk := list(islice(pairs, _CHUNK)):
        counted.add(chunk, embedder=embedder)
    return counted

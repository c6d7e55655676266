"""A file of probes made into a suite: records are found by the writer's ids, or by their texts."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from django.db import IntegrityError, transaction

from consolidation import probes as rules
from consolidation.models import Probe, Suite
from consolidation.operations import Prefix, visible
from consolidation.probes import Line, Sheet
from observations.models import Observation, Scope
from observations.normalise import key64, normalised
from observations.records import Status

MOST: Final = 10_000  # probes of one suite
LARGEST: Final = 8_000_000  # bytes of a file
LONGEST_NAME: Final = 80
YAML: Final = (".yaml", ".yml")
_SHOWN: Final = re.compile(rf"{Prefix.OBSERVATION}_([1-9][0-9]{{0,17}})", re.ASCII)


class NotImported(ValueError):
    """Nothing was imported; the text is one sentence that says why and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """The probes of a file that are about one scope, records by their ids."""

    probes: tuple[Probe, ...]  # unsaved, numbered in the file's order
    units: Mapping[str, int]  # observation id -> number of its unit
    unknown: int  # lines left out, because they name a record that the scope does not hold
    expect_nothing: int
    unusable: tuple[str, ...]


def resolve(*, scope: Scope, sheet: Sheet) -> Resolved:
    """Find the records that a file names in a scope, by the writer's ids or as ours are shown. A line of which one is
    not there is left out and counted. Three queries at most.
    """
    named = {name for line in sheet.lines for name in (*line.expected, *line.forbidden, *line.outdated)}
    ids = _by_name(scope, named | {*sheet.units})
    texts = _by_text(scope, {text for line in sheet.lines for text in line.texts})
    probes: list[Probe] = []
    for line in sheet.lines:
        if all(name in ids for name in (*line.expected, *line.forbidden)) and all(text in texts for text in line.texts):
            probes.append(_probe(line, len(probes) + 1, scope, ids, texts))
    return Resolved(
        probes=tuple(probes),
        units={str(ids[name]): unit for name, unit in sheet.units.items() if name in ids},
        unknown=len(sheet.lines) - len(probes),
        expect_nothing=sheet.expect_nothing,
        unusable=sheet.unusable,
    )


def _by_name(scope: Scope, names: Collection[str]) -> dict[str, int]:
    """Ids of rows by the writer's ids; a name like obs_123 that no writer gave is ours. Two queries."""
    rows = Observation.objects.filter(scope=scope).exclude(status=Status.ERASED)
    known = dict(rows.filter(external_id__in=names).values_list("external_id", "pk"))
    shown = {int(found[1]): name for name in {*names} - {*known} if (found := _SHOWN.fullmatch(name))}
    ours = rows.filter(pk__in=shown).values_list("pk", flat=True) if shown else ()
    return {**known, **{shown[pk]: pk for pk in ours}}


def _by_text(scope: Scope, texts: Collection[str]) -> dict[str, list[int]]:
    """Ids of the rows that say each text, case and spacing apart. One query."""
    keys = {text: key64(normalised(text)) for text in texts}
    found: defaultdict[int, list[int]] = defaultdict(list)
    rows = Observation.objects.filter(scope=scope, text_key__in=[*keys.values()]).exclude(status=Status.ERASED)
    for key, pk in rows.order_by("pk").values_list("text_key", "pk"):
        found[key].append(pk)
    return {text: found[key] for text, key in keys.items() if key in found}


def _probe(line: Line, number: int, scope: Scope, ids: Mapping[str, int], texts: Mapping[str, Sequence[int]]) -> Probe:
    expected = [ids[name] for name in line.expected] + [texts[text][0] for text in line.texts]
    return Probe(
        scope=scope,
        number=number,
        query=line.query,
        category=line.category,
        expected=sorted({*expected}),
        forbidden=sorted(ids[name] for name in line.forbidden),
        outdated=sorted(ids[name] for name in line.outdated if name in ids),
        negative=line.negative,
        as_of=line.as_of,
    )


def read_file(*, name: str, data: bytes) -> Sheet:
    """The probes of a file: YAML where its name says so, JSON lines else. Raises NotImported."""
    if len(data) > LARGEST:
        raise NotImported(f"The file has more than {LARGEST // 1_000_000} MB: split it. Nothing was imported.")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise NotImported("The file cannot be read: it is not UTF-8. Nothing was imported.") from error
    if not name.lower().endswith(YAML):
        return rules.read(text.split("\n"))
    try:
        return rules.read_yaml(text)
    except rules.Unreadable as why:
        raise NotImported(f"The file cannot be read: {why}. Nothing was imported.") from why


def import_suite(*, scope: Scope, name: str, sheet: Sheet, by: str) -> tuple[Suite, Resolved]:
    """Keep the probes of a file as a suite, which is in force for its scope from then on. One transaction.

    Raises NotImported when the name is taken, when an entry of the file cannot be used, or none is about records of the
    scope.
    """
    name = _free_name(scope, name)
    resolved = resolve(scope=scope, sheet=sheet)
    if problem := nothing(resolved=resolved, scope=scope):
        raise NotImported(problem)
    return keep(scope=scope, name=name, probes=resolved.probes, units=resolved.units, by=by), resolved


def keep(*, scope: Scope, name: str, probes: Sequence[Probe], units: Mapping[str, int], by: str) -> Suite:
    """Store unsaved, numbered probes of a scope as a suite, in force from then on. One transaction, three queries.

    Raises NotImported for a name that is taken or cannot be one. Whoever calls has looked that every record the probes
    name is one of the scope.
    """
    name = _free_name(scope, name)
    try:
        with transaction.atomic():
            suite = Suite.objects.create(scope=scope, name=name, units=dict(units), by=by[:150])
            for probe in probes:
                probe.suite = suite
            Probe.objects.bulk_create(probes, batch_size=500)
    except IntegrityError as error:  # somebody took the name meanwhile
        raise NotImported(_taken(scope, name)) from error
    return suite


def _free_name(scope: Scope, name: str) -> str:
    name = name.replace("\0", "").strip()
    if not 0 < len(name) <= LONGEST_NAME:
        raise NotImported(f"A suite needs a name of 1 to {LONGEST_NAME} characters.")
    if Suite.objects.filter(scope=scope, name=name).exists():
        raise NotImported(_taken(scope, name))
    return name


def _taken(scope: Scope, name: str) -> str:
    taken = f"{visible(scope.name)} has a suite {visible(name)!r} already"
    return f"{taken}, and a suite is never changed: choose another name; the newest one is in force."


def nothing(*, resolved: Resolved, scope: Scope) -> str:
    """Why a file is no suite of a scope; empty when it is one."""
    if resolved.unusable:
        first, more = resolved.unusable[0], len(resolved.unusable) - 1
        others = f", and {more:,} more cannot be used" if more else ""
        return f"Nothing was imported: {first}{others}. Correct the file and import it again."
    if len(resolved.probes) > MOST:
        return f"The file holds {len(resolved.probes):,} probes and a suite takes {MOST:,}: split it."
    if any(not probe.negative and probe.expected for probe in resolved.probes):
        return ""
    if resolved.unknown:
        return (
            f"{resolved.unknown:,} probes name records that {visible(scope.name)} does not hold, and none names only"
            " records it holds: import the memory first, with the ids that the file names."
        )
    return "No line of the file asks for a record: each needs query and expected (see --help)."

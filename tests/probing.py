"""Scopes with a probe suite: enough unrelated rows that the controls fail, and questions about the rows that matter."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from django.db import transaction

from consolidation import probes as rules
from consolidation import probing
from consolidation.models import Suite
from observations import store
from observations.models import Observation, Scope
from observations.records import Claim, EvidenceRef, WrittenBy
from tests.building import LONG_AGO, embed
from tests.conftest import superuser

THINGS = ("lantern", "harbour", "violin", "orchard", "compass", "quarry", "saddle", "teapot", "glacier", "anvil")
PLACES = ("cellar", "meadow", "tower", "bakery")


def fill(within: Scope) -> list[Observation]:
    """Forty rows, no two of which say the same."""
    claims = [
        Claim(
            text=f"The {thing} of the {place} is painted",
            external_id=f"{thing}-{place}",
            created_at=LONG_AGO,
            evidence=(EvidenceRef(source_uri=f"test://{thing}/{place}"),),
        )
        for thing in THINGS
        for place in PLACES
    ]
    with transaction.atomic():
        written = store.add_observations(scope=within, claims=claims, written_by=WrittenBy.BACKGROUND)
    ids = [row.id for row in written if row.id is not None]
    embed(ids, within=within)
    return list(Observation.objects.filter(pk__in=ids).order_by("pk"))


def lines(*probes: Mapping[str, object]) -> list[str]:
    """Probes as the lines of a file."""
    return [json.dumps(probe) for probe in probes]


def suite(within: Scope, *, name: str = "everyday", also: Sequence[Mapping[str, object]] = ()) -> Suite:
    """A suite that is answered whole: ten questions about the rows of `fill`, and others."""
    fill(within)
    asked = [{"query": f"{thing} of the bakery", "expected": [f"{thing}-bakery"]} for thing in THINGS]
    return imported(within, *asked, *also, name=name)


def imported(within: Scope, *asked: Mapping[str, object], name: str = "n") -> Suite:
    """A suite of these probes and no others."""
    made, _ = probing.import_suite(scope=within, name=name, sheet=rules.read(lines(*asked)), by="ann")
    return made


def rename(suite: Suite, number: int, query: str) -> None:
    """Another question in the place of one, which only the owner of the database could put there."""
    with superuser() as owner:
        owner.execute("SET session_replication_role = replica")
        owner.execute(
            "UPDATE consolidation_probe SET query = %s WHERE suite_id = %s AND number = %s", [query, suite.pk, number]
        )

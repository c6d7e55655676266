"""What tests of the keys step share: rows without keys, and a model that answers for them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from observations import ingest
from observations.ingest import KeysReport
from observations.llm import Request
from observations.models import GivenKey, Observation, Scope
from tests.building import observe
from tests.scripted import Said, ScriptedCompleter

# text -> subject, predicate, object
KEYS: Mapping[str, tuple[str, str, str]] = {
    "Anna lives in Oslo.": ("Anna", "lives in", "Oslo"),
    "Bo works at Relay.": ("Bo", "works at", "Relay"),
    "Tea is served at four.": ("tea", "served at", "four"),
}


def keyless(within: Scope, *texts: str) -> list[Observation]:
    """Observations without a key, oldest first."""
    return [observe(text, within=within) for text in texts or KEYS]


def texts_of(request: Request) -> list[dict[str, Any]]:
    """The lines of a question: label, text, has, wanted."""
    inside = request.text.partition("<texts>\n")[2].partition("\n</texts>")[0]
    return [json.loads(line) for line in inside.split("\n")]


def knowing(request: Request) -> dict[str, object]:
    """A model that knows KEYS, and says of other texts that they hold none."""
    entries = []
    for line in texts_of(request):
        subject, predicate, object_ = KEYS.get(line["text"], ("", "", ""))
        quote = line["text"].rstrip(".") if subject else ""
        entries.append(
            {"label": line["label"], "subject": subject, "predicate": predicate, "object": object_, "quote": quote}
        )
    return {"keys": entries}


def given_by(script: Said, within: Scope, *, limit: int | None = None, after: int = 0) -> KeysReport:
    """The report of one run with a scripted model."""
    return ingest.give_keys(scope=within, completer=ScriptedCompleter(script), limit=limit, after=after)


def key_of(row: Observation) -> GivenKey | None:
    """What a model said about a row."""
    return GivenKey.objects.filter(observation=row).first()

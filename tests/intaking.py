"""What tests of the background pipeline share: turns, and a model that says of each turn what it says itself."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, TypeAlias

from django.db import transaction

from observations import ingest, store
from observations.embedding import embedder
from observations.llm import ModelFailed, Request
from observations.models import Episode, Evidence, IntakeItem, IntakeRun, Observation, Scope
from observations.records import Claim, EvidenceRef, StatedBy, Status, Turn, WrittenBy
from tests.building import LONG_AGO
from tests.scripted import Said, ScriptedCompleter

HASHING = embedder("hashing")
# verdict, target ("" or a stored text), whether it replaces
Decides: TypeAlias = "Mapping[str, tuple[str, str, bool]]"


def turn(text: str, *, number: int = 0, speaker: str = "Ana", role: str = "user", session: str = "s1") -> Turn:
    """One turn, said so many days after the first."""
    return Turn(
        text=text,
        external_id=f"turn-{number}-{speaker}",
        speaker=speaker,
        role=role,
        session=session,
        happened_at=LONG_AGO + timedelta(days=number),
        source_uri=f"test://turn/{number}/{speaker}",
    )


def enabled(within: Scope, *, every_turns: int = 5) -> Scope:
    """The scope, read from its first turn on."""
    ingest.enable_intake(scope=within, by="rita", every_turns=every_turns, from_start=True)
    return within


def told(within: Scope, *turns: Turn | str) -> list[Episode]:
    """Turns handed in, by default Ana's, a day apart."""
    first = Episode.objects.filter(scope=within).count()
    given = [turn(each, number=first + n) if isinstance(each, str) else each for n, each in enumerate(turns)]
    written = ingest.observe(scope=within, turns=given, by="test").written
    return [Episode.objects.get(pk=each.id) for each in written if each.id]


def lines_of(request: Request) -> list[dict[str, Any]]:
    """The lines of a question: turns of an extraction, claims of a reconciliation."""
    mark = "turns" if request.purpose == "extract" else "claims"
    inside = request.text.partition(f"<{mark}>\n")[2].partition(f"\n</{mark}>")[0]
    return [json.loads(line) for line in inside.split("\n")]


def echo(request: Request) -> dict[str, Any]:
    """A model that finds one claim in every turn: what it says, word for word; none in a greeting."""
    turns = [line for line in lines_of(request) if not line["text"].startswith("Hello")]
    return {
        "claims": [
            {"text": line["text"], "turn": line["label"], "quote": line["text"], "kind": "fact"} for line in turns
        ]
    }


def deciding(decides: Decides | None = None) -> Callable[[Request], dict[str, Any]]:
    """A reconciler that does with a claim what it is told, and adds the others."""

    def decide(request: Request) -> dict[str, Any]:
        return {"decisions": [_decided(line, decides or {}) for line in lines_of(request)]}

    return decide


def _decided(line: Mapping[str, Any], decides: Decides) -> dict[str, Any]:
    verdict, text, replaces = decides.get(line["claim"], ("ADD", "", False))
    labels = {near["text"]: near["label"] for near in line["near"]}
    target = labels.get(text, text)
    return {
        "claim": line["label"],
        "reason": "as told",
        "verdict": verdict,
        "target": target,
        "replaces": replaces,
    }


def model(extract: Said | None = None, reconcile: Said | None = None) -> ScriptedCompleter:
    """A model with an answer for each of the two questions; a failure is raised."""
    return ScriptedCompleter(by_purpose={"extract": extract or echo, "reconcile": reconcile or deciding()})


def read(within: Scope, *, completer: ScriptedCompleter | None = None, limit: int | None = None) -> ingest.RunReport:
    """One run by hand."""
    return ingest.run_intake(scope=within, by="rita", completer=completer or model(), embedder=HASHING, limit=limit)


def failing(failure: ModelFailed) -> Said:
    """A question that is never answered."""
    return failure


def gave_way(
    row: Observation, text: str = "What was said later", *, stated_by: StatedBy = StatedBy.AGENT
) -> Observation:
    """As a run of the background puts a later claim in a row's place; the new row."""
    run = IntakeRun.objects.create(scope=row.scope, trigger="hand", state="done")
    claim = Claim(text=text, stated_by=stated_by, evidence=(EvidenceRef(f"test://later/{row.pk}"),))
    with transaction.atomic():
        written = store.replace(
            scope=row.scope, old_id=row.pk, claim=claim, written_by=WrittenBy.BACKGROUND, cause="intake"
        )
        IntakeItem.objects.create(
            scope=row.scope, run=run, text=text, verdict="update", target=row, observation_id=written.id
        )
    assert written.id is not None
    return Observation.objects.get(pk=written.id)


def active(within: Scope) -> list[str]:
    """The texts in the reads, oldest row first."""
    rows = Observation.objects.filter(scope=within, status=Status.ACTIVE).order_by("pk")
    return [text or "" for text in rows.values_list("text", flat=True)]


def the(text: str, within: Scope) -> Observation:
    """The one active row of that text."""
    return Observation.objects.get(scope=within, text=text, status=Status.ACTIVE)


def sources(row: Observation) -> list[str]:
    """What a row rests on."""
    return list(Evidence.objects.filter(observation=row).order_by("pk").values_list("source_uri", flat=True))


def items(within: Scope) -> list[tuple[str, str]]:
    """What became of every claim, in order: the verdict and our reason."""
    return list(IntakeItem.objects.filter(scope=within).order_by("pk").values_list("verdict", "reason"))


def uris(turns: Sequence[Episode]) -> list[str]:
    """The sources of some turns."""
    return [each.source_uri for each in turns]

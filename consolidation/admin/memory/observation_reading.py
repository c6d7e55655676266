"""Everything the page of one observation shows: text, versions before and after, what it came from, what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from django.db.models import Count, F, Max, Q, Window
from django.db.models.functions import Left

from consolidation.admin.history.chain import Version, versions
from consolidation.admin.history.lineage import Drawing, read_lineage
from consolidation.admin.history.past import SHOWN, Moved, Touched, moves, operations
from consolidation.admin.history.uses import Erased, Used, erased, uses
from consolidation.admin.history.written import Written, how_written
from consolidation.admin.item.products import Faded, faded
from consolidation.admin.item.sources import given_words
from consolidation.admin.reading import Chip
from consolidation.admin.telling import Happened, Witness, happened, key_words, status_chip, witness
from consolidation.admin.texts import AROUND, SNIPPET, Text, marked, period, snippet, told, when, whole
from consolidation.operations import Kind, ep, obs, visible
from observations.models import Event, Evidence, GivenKey, Lineage, Observation, Use, database_now
from observations.records import Status

TRUST: Final = {
    "user": "the person's own word",
    "operator": "an operator's word",
    "agent": "an agent's conclusion",
    "tool": "a tool's output",
    "outside": "text from outside",
}
DERIVED: Final = {
    "promote": "promoted from episodes, not user-stated",
    "compact": "low: a summary that a model wrote",
}
_NO_KEY: Final[Mapping[str, str]] = {
    GivenKey.State.NONE: "a model was asked for a key and found none",
    GivenKey.State.UNUSABLE: "a model was asked for a key; its answer could not be used",
}


@dataclass(frozen=True, slots=True)
class Relative:
    """One row this one came from, or that came of it."""

    name: str
    pk: int
    episode: bool
    text: str
    status: Chip
    how: str
    at: str
    operation: str  # as lineage names it, "op_…#1"
    imported: bool


@dataclass(frozen=True, slots=True)
class GivenHere:
    """What a model said of the key that the row's writer left out."""

    words: str  # which parts it gave, or that it gave none
    text: Text | None  # the row's words that the key rests on, marked
    asked: str
    withdrawable: bool


@dataclass(frozen=True, slots=True)
class Page:
    """The page."""

    pk: int
    name: str
    external_id: str
    scope: str
    scope_id: int
    text: Text
    status: Chip
    current: bool
    successor: int | None
    kind: str
    faded: Faded
    key: str
    given: GivenHere | None
    subject: str  # what it is about, its own or given; empty: nobody said
    by: str
    trust: str
    via: str
    confidence: str
    said: str
    recorded: str
    reconciled: str
    valid: str
    derivation: str
    derived: str
    produced_by: str
    chain: int
    version: int
    cleaned: bool
    uses: int
    uses_inherited: int
    last_used: str
    written: Written
    versions: tuple[Version, ...]
    drawing: Drawing
    used: tuple[Used, ...]  # the newest
    erased: Erased | None
    subject_key: int  # of what it is about, by which that subject has a page; 0: nobody said
    sources: tuple[Relative, ...]
    more_sources: int  # that are not shown
    derivatives: tuple[Relative, ...]
    more_derivatives: int
    said_again: int | None  # the row that replaced it as a repeat, whose lineage names what it came from instead of it
    witnesses: tuple[Witness, ...]
    roots: int
    moves: tuple[Moved, ...]
    operations: tuple[Touched, ...]
    events: tuple[Happened, ...]


def read_observation(row: Observation) -> Page:
    """The page of one observation, whose scope was selected with it. Twenty-seven queries at most."""
    given = GivenKey.objects.filter(scope_id=row.scope_id, observation=row).first()
    held = given if given is not None and given.state == GivenKey.State.GIVEN else None
    counted = Use.objects.filter(scope_id=row.scope_id, observation=row).aggregate(n=Count("id"), last=Max("used_at"))
    evidence = list(Evidence.objects.filter(scope_id=row.scope_id, observation=row).order_by("id")[:SHOWN])
    events = Event.objects.filter(scope_id=row.scope_id, subject=obs(row.pk)).order_by("-id")[:SHOWN]
    sources, more_sources = _relatives(Q(derived=row), row)
    derivatives, more_derivatives = _relatives(Q(source_observation=row), row, down=True)
    return Page(
        pk=row.pk,
        name=obs(row.pk),
        external_id=visible(row.external_id),
        scope=visible(row.scope.name),
        scope_id=row.scope_id,
        text=whole(row.text),
        status=status_chip(row.status),
        current=row.status == Status.ACTIVE,
        successor=row.superseded_by_id,
        kind=row.kind,
        faded=faded(row, now=database_now(), below=0.0, last_used=None),
        key=key_words(row, held),
        given=_given(row, given),
        subject=snippet(row.key_with(held)[0]),
        by=row.stated_by,
        trust=DERIVED.get(row.derivation or "") or TRUST.get(row.stated_by, row.stated_by),
        via=row.written_by,
        confidence=f"{row.confidence:.2f}",
        said=when(row.created_at),
        recorded=when(row.recorded_at),
        reconciled=when(row.reconciled_at),
        valid=period(row.valid_from, row.valid_to),
        derivation=visible(row.derivation or ""),
        derived=when(row.derived_at),
        produced_by=visible(row.produced_by or ""),
        chain=row.chain,
        version=row.version,
        cleaned=row.cleaned,
        uses=counted["n"],
        uses_inherited=row.uses_inherited,
        last_used=when(counted["last"]),
        written=how_written(row),
        versions=versions(row),
        drawing=read_lineage(row),
        used=uses(row),
        erased=erased(row),
        subject_key=row.subject_key or (held.subject_key if held else 0),
        sources=sources,
        more_sources=more_sources,
        derivatives=derivatives,
        more_derivatives=more_derivatives,
        said_again=_said_again(row, derivatives),
        witnesses=tuple(witness(item) for item in evidence),
        roots=len({item.root_source for item in evidence}),
        moves=moves(row),
        operations=operations(row),
        events=tuple(happened(event) for event in events),
    )


def _given(row: Observation, given: GivenKey | None) -> GivenHere | None:
    """What a model said of the key, and whether a person may take it back. No query."""
    if given is None:
        return None
    asked = told("{}, prompt {}, {}", visible(given.model), visible(given.prompt_version), when(given.at))
    if given.state == GivenKey.State.WITHDRAWN:
        words = told("withdrawn by {}, {}: never asked again", visible(given.withdrawn_by), when(given.at))
        return GivenHere(words=words, text=None, asked="", withdrawable=False)
    if given.state != GivenKey.State.GIVEN:
        return GivenHere(words=_NO_KEY.get(given.state, ""), text=None, asked=asked, withdrawable=False)
    quoted = given.quote_start is not None and given.quote_end is not None
    text = marked(row.text, [(given.quote_start or 0, given.quote_end or 0)], around=AROUND) if quoted else None
    return GivenHere(words=given_words(row, given), text=text, asked=asked, withdrawable=True)


def _said_again(row: Observation, derivatives: tuple[Relative, ...]) -> int | None:
    """The row that a merge of repeats put in its place, when no edge leads there (decision 0014). No query."""
    merged = row.derivation == Kind.MERGE and row.status == Status.ARCHIVED
    told = {relative.pk for relative in derivatives}
    return row.superseded_by_id if merged and row.superseded_by_id not in told else None


def _relatives(edges: Q, row: Observation, *, down: bool = False) -> tuple[tuple[Relative, ...], int]:
    """The first rows at the other end of lineage edges, and how many more there are. One query."""
    end = "derived" if down else "source_observation"
    found = (
        Lineage.objects.filter(edges, scope_id=row.scope_id)
        .annotate(
            start=Left(f"{end}__text", SNIPPET + 1),
            told=Left("source_episode__text", SNIPPET + 1),
            end_status=F(f"{end}__status"),
            episode_status=F("source_episode__status"),
            every=Window(Count("id")),
        )
        .order_by("-derived_at" if down else "id")[:SHOWN]
    )
    shown = list(found)
    every = getattr(shown[0], "every", 0) if shown else 0
    return tuple(_relative(edge, down=down) for edge in shown), every - len(shown)


def _relative(edge: Lineage, *, down: bool) -> Relative:
    episode = not down and edge.source_episode_id is not None
    pk = (edge.source_episode_id if episode else edge.derived_id if down else edge.source_observation_id) or 0
    return Relative(
        name=ep(pk) if episode else obs(pk),
        pk=pk,
        episode=episode,
        text=snippet(getattr(edge, "told" if episode else "start", None)),
        status=status_chip(str(getattr(edge, "episode_status" if episode else "end_status", None) or "erased")),
        how=visible(edge.derivation),
        at=when(edge.derived_at),
        operation=visible(edge.operation),
        imported=edge.imported,
    )

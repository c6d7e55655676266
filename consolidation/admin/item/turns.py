"""The episodes that a promotion or a compaction rests on: who said what when, the words that count marked in them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from consolidation import promote
from consolidation.admin.reading import Chip
from consolidation.admin.telling import key_line, status_chip
from consolidation.admin.texts import Text, day, marked, snippet, when, whole
from consolidation.models import Draft, Operation, OperationSource
from consolidation.operations import Kind, ep, visible
from consolidation.planner import support_line
from observations.models import Episode
from observations.records import Outcome

OUTCOMES: Final[Mapping[str, Chip]] = {
    Outcome.SUCCESS: Chip("verified success", "done"),
    Outcome.CLAIMED: Chip("success claimed, not verified", "wait"),
    Outcome.PARTIAL: Chip("partly worked", "wait"),
    Outcome.FAILURE: Chip("failed", "bad"),
}


@dataclass(frozen=True, slots=True)
class Turn:
    """One episode."""

    id: int
    name: str
    text: Text
    speaker: str
    role: str
    at: str
    outcome: Chip | None  # None: nobody said how it ended
    status: Chip
    session: str
    marks: str  # what is marked in it, in words; empty: nothing


@dataclass(frozen=True, slots=True)
class Witness:
    """One independent source, with the episodes it stands behind."""

    source: str
    turns: tuple[Turn, ...]


@dataclass(frozen=True, slots=True)
class Asked:
    """The question to a model that the words come from."""

    model: str
    prompt: str
    at: str


@dataclass(frozen=True, slots=True)
class Fact:
    """What a promotion would write."""

    text: Text
    key: str
    confidence: str
    support: str  # who speaks for it, in figures
    by: str  # whose word it would count as
    said: str  # when anyone first said it
    witnesses: tuple[Witness, ...]
    unquoted: int  # episodes in which no words are marked
    asked: Asked | None
    about: int  # episodes that the model was asked about together


@dataclass(frozen=True, slots=True)
class Loss:
    """Specifics of one sort that a summary loses or invents."""

    sort: str
    lost: int
    invented: int


@dataclass(frozen=True, slots=True)
class Summary:
    """What a compaction would write."""

    text: Text | None  # None: no summary was written
    turns: tuple[Turn, ...]  # in order of time
    episodes: int
    ratio: str
    size: str  # characters before and after
    specifics: int  # distinct numbers, dates, identifiers and names of the episodes
    losses: tuple[Loss, ...]
    remarks: tuple[str, ...]  # what else the check found, a sentence each
    asked: Asked | None


def read_turns(operation: Operation, sources: Sequence[OperationSource]) -> dict[int, Episode]:
    """The episodes of an operation, by id, in order of time. One query."""
    ids = [source.episode_id for source in sources if source.episode_id]
    rows = Episode.objects.filter(scope_id=operation.scope_id, pk__in=ids).order_by("happened_at", "seq", "pk")
    return {row.pk: row for row in rows}


def read_asked(operation: Operation) -> Asked | None:
    """The question whose answer the words come from: an operation's discriminator begins with it. One query."""
    question = str(operation.product.get("discriminator", "")).partition(".")[0]
    drafts = Draft.objects.filter(scope_id=operation.scope_id, kind=operation.kind, input_key__startswith=question)
    found = drafts.order_by("pk").first() if question else None
    if found is None:
        return None
    return Asked(model=visible(found.model), prompt=visible(found.prompt_version), at=when(found.at))


# --- promotions -----------------------------------------------------------------------------------------------------


def fact(
    operation: Operation, turns: Mapping[int, Episode], asked: Asked | None, *, most: int | None = None
) -> Fact | None:
    """What a promotion would write, and on whose word; None for other kinds. All of each episode is there, unless a
    page says how many characters are the `most` that it shows (D2). No query.
    """
    if operation.kind != Kind.PROMOTE:
        return None
    places = _spans(operation.product.get("support"))
    shown = [_turn(row, places.get(row.pk, ()), "the words that say it", most) for row in turns.values()]
    first = min((row.happened_at for row in turns.values()), default=None)
    return Fact(
        text=whole(operation.text or None, most=most),
        key=key_line((operation.claim_subject, operation.claim_predicate, operation.claim_object)),
        confidence=f"{float(operation.product.get('confidence', 0)):.2f}",
        support=visible(support_line(operation).partition(", confidence ")[0]),
        by=visible(str(operation.product.get("stated_by", ""))),
        said=day(first),
        witnesses=_witnesses(turns, shown),
        unquoted=sum(not turn.marks for turn in shown),
        asked=asked,
        about=_number(operation.signals.get("asked_about")),
    )


def _witnesses(turns: Mapping[int, Episode], shown: Iterable[Turn]) -> tuple[Witness, ...]:
    """The episodes by their root: copies and parts of one source are one witness (C8)."""
    by_root: defaultdict[str, list[Turn]] = defaultdict(list)
    for turn in shown:
        by_root[_root(turns[turn.id])].append(turn)
    return tuple(
        Witness(source="" if root.startswith("content:") else snippet(root), turns=tuple(group))
        for root, group in by_root.items()
    )


def _root(row: Episode) -> str:
    if row.text is None:  # an erased one has no record, but its source is kept
        return row.root_source or row.source_uri or f"content:{row.pk}"
    return promote.root(row.record())


# --- compactions ----------------------------------------------------------------------------------------------------


def summary(
    operation: Operation, turns: Mapping[int, Episode], asked: Asked | None, *, most: int | None = None
) -> Summary | None:
    """What a compaction would write, and what would be lost with it; None for other kinds. All of each episode is
    there, unless a page says how many characters are the `most` that it shows (D2). No query.
    """
    if operation.kind != Kind.COMPACT:
        return None
    signals = operation.signals
    gone: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for place in _entries(signals.get("lost_at")):
        gone[place.episode].append((place.start, place.end))
    added = [(place.start, place.end) for place in _entries(signals.get("invented_at"))]
    return Summary(
        text=_summary_text(operation, turns, added, most),
        turns=tuple(_turn(row, gone.get(row.pk, ()), "marked: what the summary loses", most) for row in turns.values()),
        episodes=len(turns),
        ratio=f"{len(turns)}:1",
        size=_size(signals.get("characters")),
        specifics=_number(signals.get("specifics")),
        losses=_losses(signals),
        remarks=tuple(_remarks(signals)),
        asked=asked,
    )


def _summary_text(
    operation: Operation, turns: Mapping[int, Episode], added: Sequence[tuple[int, int]], most: int | None
) -> Text | None:
    """The summary with what no episode says marked in it; None where none was written."""
    erased = any(row.text is None for row in turns.values())
    return marked(operation.text or None, added, most=most) if operation.text or erased else None


def _size(value: object) -> str:
    if not isinstance(value, list) or len(value) != 2:
        return ""
    return f"{_number(value[0]):,} characters become {_number(value[1]):,}"


def _losses(signals: Mapping[str, Any]) -> tuple[Loss, ...]:
    lost, invented = _counts(signals.get("lost")), _counts(signals.get("invented"))
    sorts = [*lost, *(sort for sort in invented if sort not in lost)]
    return tuple(Loss(sort=visible(sort), lost=lost.get(sort, 0), invented=invented.get(sort, 0)) for sort in sorts)


_FOUND: Final = (
    ("not_mentioned", "No sentence of the summary mentions"),
    ("not_named", "Told by somebody whom the summary never names:"),
    ("not_checked", "In a language that is not checked here:"),
)


def _remarks(signals: Mapping[str, Any]) -> Iterator[str]:
    """What else the check found, a sentence each."""
    for name, words in _FOUND:
        ids = signals.get(name)
        if isinstance(ids, list) and ids:
            yield f"{words} {', '.join(ep(pk) for pk in ids if isinstance(pk, int))}."
    if isinstance(unfounded := signals.get("unfounded_sentences"), list) and unfounded:
        yield f"Sentences of the summary that share next to nothing with any episode: {len(unfounded)}."
    if refused := _number(signals.get("parts_refused")):
        yield f"Parts of the model's answer that could not be used: {refused}."


# --- episodes and places --------------------------------------------------------------------------------------------


def turn(row: Episode) -> Turn:
    """One episode without marks."""
    return _turn(row, (), "", None)


def _turn(row: Episode, places: Sequence[tuple[int, int]], what: str, most: int | None) -> Turn:
    text = marked(row.text, places, most=most)
    return Turn(
        id=row.pk,
        name=ep(row.pk),
        text=text,
        speaker=visible(row.speaker),
        role=visible(row.role),
        at=when(row.happened_at),
        outcome=OUTCOMES.get(row.outcome),
        status=status_chip(row.status),
        session=snippet(row.session, limit=40),
        marks=what if any(run.own for run in text.words) else "",
    )


def _spans(value: object) -> dict[int, list[tuple[int, int]]]:
    """[[episode id, start, end], ...] as places by episode; what is not of that form is left out."""
    found: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for item in value if isinstance(value, list) else ():
        if isinstance(item, list) and len(item) == 3 and all(isinstance(part, int) for part in item):
            found[item[0]].append((item[1], item[2]))
    return found


@dataclass(frozen=True, slots=True)
class _Place:
    episode: int  # 0: in the summary
    start: int
    end: int


def _entries(value: object) -> Iterator[_Place]:
    """[{"episode": id, "start": n, "end": n}, ...]; what is not of that form is left out."""
    for item in value if isinstance(value, list) else ():
        parts = [item.get(name, 0) for name in ("episode", "start", "end")] if isinstance(item, dict) else []
        if parts and all(isinstance(part, int) for part in parts):
            yield _Place(*parts)


def _counts(value: object) -> dict[str, int]:
    return {str(sort): _number(count) for sort, count in value.items()} if isinstance(value, dict) else {}


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0

"""The observations an operation takes in, as cards side by side, and what stands between each two of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db.models import Count, Max

from consolidation.admin.reading import Chip
from consolidation.admin.telling import Witness, key_words, status_chip, witness
from consolidation.admin.texts import Edit, Text, compared, edited, period, when, whole
from consolidation.merge import OWN
from consolidation.models import Operation, OperationSource
from consolidation.operations import Kind, obs, visible
from observations.models import Evidence, GivenKey, Observation, Use

EVIDENCE_SHOWN: Final = 6  # of one source


@dataclass(frozen=True, slots=True)
class Source:
    """One source, beside the others."""

    id: int
    name: str
    external_id: str
    text: Text
    status: Chip
    kept: bool
    key: str
    kind: str
    given: str  # which parts of the key a model gave, and which model; empty: none
    said: str  # when anyone first said it
    recorded: str
    by: str  # whose word it is
    via: str
    confidence: str
    valid: str
    valid_from: str  # ISO day, for a form
    valid_to: str
    witnesses: tuple[Witness, ...]
    more_witnesses: int
    roots: int
    uses: int
    last_used: str

    @property
    def evidence(self) -> int:
        """How many sources it rests on."""
        return len(self.witnesses) + self.more_witnesses


@dataclass(frozen=True, slots=True)
class Pair:
    """Why two sources met, and what stands between them."""

    a: str
    b: str
    cosine: str
    met: str
    verdict: Chip
    objections: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Records:
    """The observations of one operation with what hangs on them."""

    rows: Mapping[int, Observation]  # the derived row among them
    sources: tuple[Observation, ...]  # in the operation's order
    evidence: Mapping[int, Sequence[Evidence]]
    uses: Mapping[int, tuple[int, datetime | None]]
    given: Mapping[int, GivenKey]
    withdrawn: frozenset[int] = frozenset()  # rows whose given key a person took back

    def used(self, pk: int) -> tuple[int, datetime | None]:
        """How often a prompt was given a row, and when last."""
        return self.uses.get(pk, (0, None))

    def roots(self, pk: int) -> frozenset[str]:
        """The independent sources of a row."""
        return frozenset(item.root_source for item in self.evidence.get(pk, ()))


def read_records(operation: Operation, sources: Sequence[OperationSource]) -> Records:
    """Four queries, however many sources there are."""
    scope_id = operation.scope_id
    ids = [source.observation_id for source in sources] + [operation.derived_id]
    rows = Observation.objects.filter(scope_id=scope_id).in_bulk([pk for pk in ids if pk])
    taken = tuple(rows[source.observation_id] for source in sources if source.observation_id in rows)
    mine = [row.pk for row in taken]
    keys = list(GivenKey.objects.filter(scope_id=scope_id, observation__in=mine))
    return Records(
        rows=rows,
        sources=taken,
        evidence=evidence_of([scope_id], mine),
        uses=_uses(scope_id, mine),
        given={key.observation_id: key for key in keys if key.state == GivenKey.State.GIVEN},
        withdrawn=frozenset(key.observation_id for key in keys if key.state == GivenKey.State.WITHDRAWN),
    )


def evidence_of(scopes: Sequence[int], ids: Sequence[int]) -> Mapping[int, Sequence[Evidence]]:
    """What each of these observations rests on, in the order it was noted. One query."""
    found: defaultdict[int, list[Evidence]] = defaultdict(list)
    rows = Evidence.objects.filter(scope_id__in=scopes, observation__in=ids)
    for row in rows.order_by("observation_id", "id"):
        found[row.observation_id].append(row)
    return found


def _uses(scope_id: int, ids: Sequence[int]) -> dict[int, tuple[int, datetime | None]]:
    counted = Use.objects.filter(scope_id=scope_id, observation__in=ids).values("observation_id")
    return {
        row["observation_id"]: (row["n"], row["last"])
        for row in counted.annotate(n=Count("id"), last=Max("used_at")).order_by()
    }


# --- cards ----------------------------------------------------------------------------------------------------------


def cards(operation: Operation, records: Records, *, most: int | None = None) -> tuple[Source, ...]:
    """The sources as cards: the keeper first, contradicting values in order of time, others by id.

    Every text is compared with the first of the others, so that what differs is marked. All of each is there, unless a
    page says how many characters are the `most` that it shows (D2).
    """
    rows = in_order(operation, records)
    own = operation.product.get("fields", {}).get("text") == OWN  # a reviewer's words: no source's text is kept
    first = operation.keeper_id if operation.kind == Kind.MERGE and not own else None
    found = []
    for row in rows:
        other = next((other.text for other in rows if other.pk != row.pk), None)
        beside = _comparable(operation, rows)
        text = compared(row.text, to=other, most=most) if beside else whole(row.text, most=most)
        found.append(_card(row, text, records, kept=row.pk == first))
    return tuple(found)


def _comparable(operation: Operation, rows: Sequence[Observation]) -> bool:
    """Whether the texts are ones that could be one claim; those of an alias are about two subjects, those that leave
    together need have nothing in common.
    """
    return len(rows) > 1 and operation.kind not in (Kind.ALIAS, Kind.ARCHIVE, Kind.PRUNE, Kind.FORGET)


def in_order(operation: Operation, records: Records) -> list[Observation]:
    """The sources as the page shows them; the planner said in which order values followed each other. No query."""
    if operation.kind == Kind.SUPERSEDE:
        order = operation.product.get("order")
        places = {pk: place for place, pk in enumerate(order if isinstance(order, list) else [])}
        return sorted(records.sources, key=lambda row: (places.get(row.pk, len(places)), row.created_at, row.pk))
    first = operation.keeper_id if operation.kind == Kind.MERGE else None
    return sorted(records.sources, key=lambda row: (row.pk != first, row.pk))


COMPARED: Final = 6  # texts that are set against the kept one


def word_by_word(operation: Operation, records: Records, result: str | None) -> tuple[tuple[str, Edit], ...]:
    """What would be gone and what is added where the result takes the place of a source: shown id and edit. Of the
    first COMPARED that differ; of a merge only. No query.
    """
    if result is None or operation.kind != Kind.MERGE:
        return ()
    rows = [row for row in in_order(operation, records) if row.text is not None and row.text != result]
    return tuple((obs(row.pk), edited(row.text, result, most=None)) for row in rows[:COMPARED])


def _card(row: Observation, text: Text, records: Records, *, kept: bool) -> Source:
    evidence, uses = records.evidence.get(row.pk, ()), records.used(row.pk)
    given = records.given.get(row.pk)
    return Source(
        id=row.pk,
        name=obs(row.pk),
        external_id=visible(row.external_id),
        text=text,
        status=status_chip(row.status),
        kept=kept,
        key=key_words(row, given),
        kind=row.kind,
        given=given_words(row, given),
        said=when(row.created_at),
        recorded=when(row.recorded_at),
        by=row.stated_by,
        via=row.derivation or row.written_by,
        confidence=f"{row.confidence:.2f}",
        valid=period(row.valid_from, row.valid_to),
        valid_from=f"{row.valid_from:%Y-%m-%d}" if row.valid_from else "",
        valid_to=f"{row.valid_to:%Y-%m-%d}" if row.valid_to else "",
        witnesses=tuple(witness(item) for item in evidence[:EVIDENCE_SHOWN]),
        more_witnesses=max(0, len(evidence) - EVIDENCE_SHOWN),
        roots=len(records.roots(row.pk)),
        uses=uses[0] + row.uses_inherited,
        last_used=when(uses[1]),
    )


def given_words(row: Observation, given: GivenKey | None) -> str:
    """Which parts of a key a model gave: "key given by m", "predicate and object given by m"; empty for none."""
    if given is None:
        return ""
    parts = [name for name in ("subject", "predicate", "object") if getattr(given, name) and not getattr(row, name)]
    if not parts:
        return ""
    what = "key" if len(parts) == len(("subject", "predicate", "object")) else " and ".join(parts)
    return f"{what} given by {visible(given.model)}"


# --- pairs ----------------------------------------------------------------------------------------------------------

_MET: Final = {
    "text": "same text",
    "subject_predicate": "same subject and predicate",
    "subject": "same subject",
    "band": "shared wording",
    "neighbour": "near in meaning",
}
_VERDICTS: Final = {
    "same": Chip("same claim", "done"),
    "ask": Chip("perhaps the same", "wait"),
    "possible contradiction": Chip("possible contradiction", "warn"),
    "contradiction": Chip("contradiction", "bad"),
    "far": Chip("not similar", "quiet"),
}


def pairs(operation: Operation) -> tuple[Pair, ...]:
    """The pairs the planner compared. No query."""
    return tuple(
        Pair(
            a=obs(int(pair["a"])),
            b=obs(int(pair["b"])),
            cosine="no vector" if pair.get("cosine") is None else f"{pair['cosine']:.3f}",
            met=_met(pair.get("met", [])),
            verdict=_verdict(str(pair.get("verdict", ""))),
            objections=tuple(visible(str(name)) for name in pair.get("failed", [])),
        )
        for pair in operation.signals.get("pairs", [])
    )


def _verdict(word: str) -> Chip:
    return _VERDICTS.get(word) or Chip(visible(word), "quiet")


def _met(names: Sequence[str]) -> str:
    """The keys of a pair in words; the same subject and predicate says the same subject too."""
    told = [name for name in names if not (name == "subject" and "subject_predicate" in names)]
    return ", ".join(_MET.get(name, visible(str(name))) for name in told)

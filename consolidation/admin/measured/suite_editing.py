"""The form in which a person writes probes: questions, and the records that should come, found by searching.

What was typed is posted and kept nowhere until it is saved: no question stands in an address or a log.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final

from django.http import QueryDict

from consolidation import probing
from consolidation.admin.measured.suite_reading import Named, named_rows, texts_of
from consolidation.admin.texts import snippet
from consolidation.models import Probe, Suite
from consolidation.operations import Prefix, number_of, obs, visible
from consolidation.probes import LONGEST_QUERY
from observations import retrieval
from observations.models import Observation, Scope
from observations.records import Status

MOST: Final = 100  # probes of one form; a larger suite is a file
EMPTY: Final = 5  # rows of an empty form, and those that "more" adds
FOUND: Final = 8  # records that a search of the form shows
NAMES: Final = ("expected", "forbidden", "outdated")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One probe as it is being written: all of it words."""

    number: int
    query: str = ""
    expected: str = ""  # ids, such as "obs_1, obs_2"
    forbidden: str = ""
    outdated: str = ""
    category: str = ""
    as_of: str = ""
    negative: bool = False
    look: str = ""  # other words to search the scope by
    errors: tuple[str, ...] = ()
    found: tuple[Named, ...] | None = None  # by a search
    names: tuple[Named, ...] = ()  # the records it names
    note: str = ""  # why it is proposed

    @property
    def blank(self) -> bool:
        """Whether nothing was written into it."""
        return not any((self.query, self.expected, self.forbidden, self.outdated, self.negative))


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A suite as it is being written."""

    scope: Scope
    name: str = ""
    rows: tuple[Row, ...] = field(default_factory=tuple)
    copied: int | None = None  # the suite it was begun from, whose units it keeps
    errors: tuple[str, ...] = ()

    @property
    def wrong(self) -> int:
        """How many rows cannot be used."""
        return sum(bool(row.errors) for row in self.rows)


# --- beginning --------------------------------------------------------------------------------------------------------


def empty(scope: Scope) -> Draft:
    """A form with nothing in it."""
    return Draft(scope=scope, rows=tuple(Row(number=n) for n in range(1, EMPTY + 1)))


def copy_of(suite: Suite) -> Draft:
    """A suite's probes, to be changed and saved as another one; erased ones stay behind. One query."""
    rows = [
        Row(
            number=n,
            query=visible(" ".join(probe.query.split())),
            expected=_ids(probe.expected),
            forbidden=_ids(probe.forbidden),
            outdated=_ids(probe.outdated),
            category=visible(probe.category),
            as_of=probe.as_of.isoformat() if probe.as_of else "",
            negative=probe.negative,
        )
        for n, probe in enumerate(probing.probes_of(suite=suite), 1)
    ]
    return Draft(scope=suite.scope, rows=tuple(rows), copied=suite.pk)


def proposed(scope: Scope) -> Draft:
    """Drafts from real use; see `probing.propose`."""
    rows = [
        Row(
            number=n,
            query=visible(" ".join(draft.query.split())),
            expected=obs(draft.expected),
            note=f"in {draft.answers:,} answers of the last 90 days",
        )
        for n, draft in enumerate(probing.propose(scope=scope), 1)
    ]
    return Draft(scope=scope, rows=tuple(rows)) if rows else empty(scope)


def _ids(rows: Sequence[int]) -> str:
    return ", ".join(map(obs, rows))


# --- what was posted --------------------------------------------------------------------------------------------------


def posted(data: QueryDict, *, scope: Scope, copied: int | None) -> Draft:
    """The form as it was sent. No query."""
    count = data.get("count", "")
    rows = int(count) if count.isascii() and count.isdigit() and len(count) < 4 else 0
    found = tuple(_row(data, n) for n in range(1, min(rows, MOST) + 1))
    return Draft(scope=scope, name=data.get("name", "")[:200], rows=found, copied=copied)


def _row(data: QueryDict, n: int) -> Row:
    def word(name: str) -> str:
        return data.get(f"{name}-{n}", "").replace("\0", "").strip()[: LONGEST_QUERY + 1]

    return Row(
        number=n,
        query=word("query"),
        expected=word("expected"),
        forbidden=word("forbidden"),
        outdated=word("outdated"),
        category=word("category"),
        as_of=word("as_of"),
        negative=bool(word("negative")),
        look=word("look"),
    )


def acted(draft: Draft, *, act: str) -> Draft:
    """The form after one of its buttons: more rows, a search, or a found record taken over. One search at most."""
    verb, _, rest = act.partition("-")
    if verb == "more":
        last = min(len(draft.rows) + EMPTY, MOST)
        return replace(draft, rows=draft.rows + tuple(Row(number=n) for n in range(len(draft.rows) + 1, last + 1)))
    at, _, pk = rest.partition("-")
    if not (at.isascii() and at.isdigit() and len(at) < 4 and 1 <= int(at) <= len(draft.rows)):
        return draft
    row = draft.rows[int(at) - 1]
    if verb == "find":
        row = replace(row, found=_found(draft.scope, row))
    elif verb in ("expected", "forbidden") and pk.isascii() and pk.isdigit() and len(pk) < 19:
        taken = replace(row, found=_found(draft.scope, row))
        row = _with(taken, expected=obs(int(pk))) if verb == "expected" else _with(taken, forbidden=obs(int(pk)))
    return replace(draft, rows=(*draft.rows[: int(at) - 1], row, *draft.rows[int(at) :]))


def _with(row: Row, *, expected: str = "", forbidden: str = "") -> Row:
    return replace(row, expected=_joined(row.expected, expected), forbidden=_joined(row.forbidden, forbidden))


def _joined(words: str, more: str) -> str:
    """Names with one more, each once."""
    return ", ".join(dict.fromkeys(name for part in (*words.split(","), more) if (name := part.strip())))


def _found(scope: Scope, row: Row) -> tuple[Named, ...]:
    """What a reader would be given for the words, as of the row's moment. Leaves no use."""
    answer = retrieval.look(
        scope=scope,
        query=row.look or row.query,
        k=FOUND,
        call_site=probing.CALL_SITE,
        narrowed=retrieval.Narrowed(as_of=_moment(row.as_of)[0]),
    )
    return tuple(Named(hit.id, obs(hit.id), snippet(hit.text)) for hit in answer.hits)


def named(draft: Draft) -> Draft:
    """The form with the texts of the records that it names. One query."""
    ids = {n: [pk for name in NAMES for pk in _read(getattr(row, name))[0]] for n, row in enumerate(draft.rows)}
    texts = texts_of(draft.scope.pk, {pk for found in ids.values() for pk in found})
    rows = (replace(row, names=named_rows(dict.fromkeys(ids[n]), texts)) for n, row in enumerate(draft.rows))
    return replace(draft, rows=tuple(rows))


# --- saving -----------------------------------------------------------------------------------------------------------


def checked(draft: Draft) -> tuple[Draft, list[Probe]]:
    """The form with what cannot be used in it, and the probes that it says, numbered. One query."""
    ids = {pk for row in draft.rows for name in NAMES for pk in _read(getattr(row, name))[0]}
    there = Observation.objects.filter(scope=draft.scope, pk__in=ids).exclude(status=Status.ERASED)
    known = frozenset(there.values_list("pk", flat=True))
    rows = tuple(replace(row, errors=() if row.blank else tuple(_wrong(row, known))) for row in draft.rows)
    kept = [row for row in rows if not row.blank]
    errors = []
    if not any(row.expected and not row.negative for row in kept):
        errors.append("Nothing asks for a record: at least one question needs a record that should come.")
    draft = replace(draft, rows=rows, errors=tuple(errors))
    return draft, [] if errors or draft.wrong else [_probe(draft.scope, row, n) for n, row in enumerate(kept, 1)]


def _wrong(row: Row, known: frozenset[int]) -> Iterator[str]:
    if not row.query:
        yield "Write the question."
    if len(row.query) > LONGEST_QUERY:
        yield f"A question has at most {LONGEST_QUERY:,} characters."
    for name in NAMES:
        ids, unreadable = _read(getattr(row, name))
        if unreadable:
            yield f"{name}: {unreadable[0]}"
        elif strange := [obs(pk) for pk in ids if pk not in known]:
            yield f"{name}: {', '.join(strange[:5])} is no record of this scope."
    if row.query and not (row.expected or row.forbidden or row.negative):
        yield "Name a record that should come or must not, or say that no answer is wanted."
    if len(row.category) > 40:
        yield "A category has at most 40 characters."
    if problem := _moment(row.as_of)[1]:
        yield problem


def _read(words: str) -> tuple[list[int], list[str]]:
    """Ids as a person writes them, and what is none."""
    ids, unreadable = [], []
    for name in filter(None, (part.strip() for part in words.replace("\n", ",").split(","))):
        try:
            ids.append(number_of(shown=name, prefix=Prefix.OBSERVATION))
        except ValueError as error:
            unreadable.append(str(error))
    return [pk for pk in ids if pk < 2**63], unreadable


def _moment(words: str) -> tuple[datetime | None, str]:
    if not words:
        return None, ""
    try:
        found = datetime.fromisoformat(words)
    except ValueError:
        return None, "As of is a date such as 2025-01-31."
    return found.replace(tzinfo=found.tzinfo or UTC), ""


def _probe(scope: Scope, row: Row, number: int) -> Probe:
    fields: Mapping[str, list[int]] = {name: sorted({*_read(getattr(row, name))[0]}) for name in NAMES}
    return Probe(
        scope=scope,
        number=number,
        query=row.query,
        category=row.category,
        negative=row.negative,
        as_of=_moment(row.as_of)[0],
        **fields,
    )

"""The lineage of one observation as a drawing: up to the episodes it rests on, down to what was derived from it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from django.db import connection
from django.db.models.functions import Left

from consolidation.admin.history.graph import BOX_HIGH, BOX_WIDE, Edge, Layout, Place, lay_out
from consolidation.admin.reading import Chip
from consolidation.admin.telling import status_chip
from consolidation.admin.texts import SNIPPET, snippet
from consolidation.operations import ep, obs, visible
from observations.models import Episode, Observation

NODES: Final = 40  # boxes of a drawing, those that say how much is left out included
WALKED: Final = 400  # rows looked at in each direction; what lies further is counted as "at least"
DEEP: Final = 20  # steps walked in each direction
SHORT: Final = 18  # characters of a text in a box

# Ids of episodes are below zero, as in answers. Evidence counts where a row was not derived: what was derived names its
# sources by lineage, and its evidence repeats theirs.
_WALK: Final = """
WITH RECURSIVE up (id, step) AS (
    SELECT %(id)s::bigint, 0
  UNION
    SELECT e.source, u.step + 1 FROM up u CROSS JOIN LATERAL (
      SELECT coalesce(l.source_observation_id, -l.source_episode_id) AS source FROM observations_lineage l
      WHERE l.scope_id = %(scope)s AND l.derived_id = u.id
    UNION ALL
      SELECT -v.episode_id FROM observations_evidence v
      WHERE v.scope_id = %(scope)s AND v.observation_id = u.id AND v.episode_id IS NOT NULL AND NOT EXISTS (
        SELECT 1 FROM observations_lineage n WHERE n.scope_id = %(scope)s AND n.derived_id = u.id)
    ) e WHERE u.step < %(deep)s
), down (id, step) AS (
    SELECT %(id)s::bigint, 0
  UNION
    SELECT l.derived_id, d.step + 1 FROM down d
    JOIN observations_lineage l ON l.scope_id = %(scope)s AND l.source_observation_id = d.id
    WHERE d.step < %(deep)s
)
(SELECT true, id, step FROM up LIMIT %(walked)s) UNION ALL (SELECT false, id, step FROM down LIMIT %(walked)s)
"""
_EDGES: Final = """
SELECT coalesce(l.source_observation_id, -l.source_episode_id), l.derived_id, l.derivation FROM observations_lineage l
WHERE l.scope_id = %(scope)s AND l.derived_id = ANY(%(ids)s)
  AND coalesce(l.source_observation_id, -l.source_episode_id) = ANY(%(ids)s)
UNION ALL
SELECT -v.episode_id, v.observation_id, '' FROM observations_evidence v
WHERE v.scope_id = %(scope)s AND v.observation_id = ANY(%(ids)s) AND -v.episode_id = ANY(%(ids)s) AND NOT EXISTS (
  SELECT 1 FROM observations_lineage n WHERE n.scope_id = %(scope)s AND n.derived_id = v.observation_id)
"""


@dataclass(frozen=True, slots=True)
class Box:
    """One row in the drawing."""

    key: str
    pk: int
    name: str
    episode: bool
    derived: bool  # an operation wrote it
    what: str  # "episode", "claim", or how it was derived
    status: Chip
    short: str
    text: str
    here: bool
    place: Place
    sources: tuple[str, ...]  # names of the drawn rows just above it


@dataclass(frozen=True, slots=True)
class Rest:
    """How many rows are not drawn on one side."""

    place: Place
    words: str


@dataclass(frozen=True, slots=True)
class Stroke:
    """One line of the drawing."""

    path: str
    evidence: bool  # words that a claim rests on; else an operation derived it


@dataclass(frozen=True, slots=True)
class Drawing:
    """The lineage, to be drawn and to be read as a list."""

    boxes: tuple[Box, ...]  # in the order in which they are read
    strokes: tuple[Stroke, ...]
    rest: tuple[Rest, ...]
    width: int
    height: int
    box_width: int = BOX_WIDE
    box_height: int = BOX_HIGH

    @property
    def alone(self) -> bool:
        """Nothing is above or below it."""
        return len(self.boxes) == 1


@dataclass(frozen=True, slots=True)
class _Found:
    """What a walk found: rows to draw, and how many are left out on each side."""

    shown: tuple[int, ...]
    above: str
    below: str


def read_lineage(row: Observation) -> Drawing:
    """Four queries, however long its lineage is."""
    found = _walked(row)
    derivations = _edges(row.scope_id, found.shown)
    keys = {pk: _key(pk) for pk in found.shown}
    first, last = ["above"] if found.above else [], ["below"] if found.below else []
    edges = [Edge(keys[upper], keys[lower]) for upper, lower in derivations]
    layout = lay_out(keys=keys.values(), edges=edges, first=first, last=last)
    return _drawn(row, layout, derivations, found)


def _walked(row: Observation) -> _Found:
    """The nearest rows of both directions. One query."""
    values = {"id": row.pk, "scope": row.scope_id, "deep": DEEP, "walked": WALKED}
    with connection.cursor() as cursor:
        cursor.execute(_WALK, values)
        steps: dict[bool, dict[int, int]] = {True: {}, False: {}}
        for upward, pk, step in cursor.fetchall():
            side = steps[upward]
            side[pk] = min(step, side.get(pk, step))
    near = sorted((step, not up, pk) for up, side in steps.items() for pk, step in side.items() if pk != row.pk)
    room = NODES - 1 if len(near) < NODES else NODES - 3
    shown = {pk for _, _, pk in near[:room]}
    left = {up: len(side.keys() - shown - {row.pk}) for up, side in steps.items()}
    more = {up: f"and {left[up]}{'+' if len(steps[up]) >= WALKED else ''} more" if left[up] else "" for up in left}
    return _Found(shown=(row.pk, *sorted(shown - {row.pk})), above=more[True], below=more[False])


def _edges(scope_id: int, ids: Iterable[int]) -> dict[tuple[int, int], str]:
    """(upper, lower) -> how the lower one was derived; "" where it rests on an episode. One query."""
    with connection.cursor() as cursor:
        cursor.execute(_EDGES, {"scope": scope_id, "ids": list(ids)})
        return {(upper, lower): derivation for upper, lower, derivation in cursor.fetchall()}


def _key(pk: int) -> str:
    return f"{'e' if pk < 0 else 'o'}{abs(pk):019d}"


def _drawn(row: Observation, layout: Layout, derivations: Mapping[tuple[int, int], str], found: _Found) -> Drawing:
    names = {_key(pk): pk for pk in found.shown}
    above: defaultdict[int, list[str]] = defaultdict(list)
    for upper, lower in sorted(derivations):
        above[lower].append(_name(upper))
    texts = _claims(row.scope_id, found.shown) | _turns(row.scope_id, found.shown)
    boxes = tuple(
        _box(names[place.key], place, here=names[place.key] == row.pk, text=texts[names[place.key]], sources=above)
        for place in layout.places
        if names.get(place.key) in texts
    )
    evidence = {Edge(_key(upper), _key(lower)) for (upper, lower), how in derivations.items() if not how}
    return Drawing(
        boxes=boxes,
        strokes=tuple(Stroke(line.path, line.edge in evidence) for line in layout.lines),
        rest=tuple(
            Rest(place, found.above if place.key == "above" else found.below)
            for place in layout.places
            if place.key in ("above", "below")
        ),
        width=layout.width,
        height=layout.height,
    )


def _name(pk: int) -> str:
    return ep(-pk) if pk < 0 else obs(pk)


def _claims(scope_id: int, ids: Iterable[int]) -> dict[int, tuple[str | None, str, str]]:
    """Of each observation: the beginning of its text, its status, how it was derived. One query."""
    rows = Observation.objects.filter(scope_id=scope_id, pk__in=[pk for pk in ids if pk > 0])
    found = rows.annotate(start=Left("text", SNIPPET + 1)).values_list("pk", "start", "status", "derivation")
    return {pk: (start, status, derivation or "") for pk, start, status, derivation in found}


def _turns(scope_id: int, ids: Iterable[int]) -> dict[int, tuple[str | None, str, str]]:
    """The same of each episode. One query."""
    rows = Episode.objects.filter(scope_id=scope_id, pk__in=[0, *(-pk for pk in ids if pk < 0)])
    found = rows.annotate(start=Left("text", SNIPPET + 1)).values_list("pk", "start", "status")
    return {-pk: (start, status, "") for pk, start, status in found}


def _box(
    pk: int,
    place: Place,
    *,
    here: bool,
    text: tuple[str | None, str, str],
    sources: Mapping[int, Sequence[str]],
) -> Box:
    start, status, derivation = text
    return Box(
        key=place.key,
        pk=abs(pk),
        name=_name(pk),
        episode=pk < 0,
        derived=bool(derivation),
        what="episode" if pk < 0 else visible(derivation) or "claim",
        status=status_chip(status),
        short=snippet(start, limit=SHORT),
        text=snippet(start),
        here=here,
        place=place,
        sources=tuple(sources.get(pk, ())),
    )

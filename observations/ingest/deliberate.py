"""Deliberate writes: an agent or a person says what is to be kept (R119, R120).

The caller's words are kept as they are. What is stored in the same words is acknowledged and gains evidence; nothing is
taken for the same because it is near. Who compared a claim with memory settled it: a person does by writing, a program
does not, so the planner still looks at what programs wrote (reconciled_at stays empty).
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from django.db import DatabaseError, IntegrityError, OperationalError, connection, transaction

from observations import screening, store
from observations.ingest.checking import Checked, check_claims
from observations.models import Evidence, Observation, Scope
from observations.normalise import clean, key_part, normalised, witness
from observations.records import Action, Claim, EvidenceRef, Kept, StatedBy, Status, WrittenBy, is_program
from observations.store import Fate, Written


def remember(*, scope: Scope, claim: Claim, by: str, speaks_for_user: bool = False) -> Kept:
    """Keep one claim in the caller's words. See `store_facts`."""
    return store_facts(scope=scope, claims=[claim], by=by, speaks_for_user=speaks_for_user)[0]


def store_facts(*, scope: Scope, claims: Sequence[Claim], by: str, speaks_for_user: bool = False) -> list[Kept]:
    """Keep claims, one answer each, in order; a refused one does not sink the others (C1).

    A claim that is stored and current in the same normalised words, its key equal or absent, is KNOWN: that row gains
    the evidence, or gives way to the claim where the claim is a person's word and the row is not. A program's word for
    the user is believed with `speaks_for_user`, or with a quote of a stored turn of the user; otherwise it is recorded
    as the agent's and the reason says so. A constant number of queries; one transaction. Raises
    django.db.DatabaseError only when the database cannot be used.
    """
    checked = check_claims(scope=scope, claims=claims, by=by, speaks_for_user=speaks_for_user)
    kept = iter(_stored(scope, [item for item in checked if not item.refused], by))
    return [refusal(item) if item.refused else next(kept) for item in checked]


def refusal(item: Checked, reason: str = "") -> Kept:
    """The answer to a claim that is not kept. Nothing of its text is in it."""
    external_id, cleaned = clean(item.claim.external_id)
    told = "" if screening.secret_in(external_id) else external_id
    return Kept(Action.REFUSED, None, "", 0, reason=reason or item.reason, cleaned=cleaned, external_id=told)


def _stored(scope: Scope, items: Sequence[Checked], by: str) -> list[Kept]:
    """Keep all in one transaction; where the database refuses one, in ever smaller ones."""
    if not items:
        return []
    for again in (True, False):  # once more: another writer may have added the same id, or moved a row, just now
        try:
            with transaction.atomic():
                return keep(scope=scope, items=items, by=by)
        except Observation.DoesNotExist:
            if not again:
                raise
        except DatabaseError as error:
            state = state_of(error)
            if isinstance(error, OperationalError) and not state.startswith("40"):
                raise
            if not (again and (isinstance(error, IntegrityError) or state.startswith("40"))):
                break
    if len(items) == 1:
        return [refusal(items[0], f"the database refuses the claim (SQLSTATE {state or 'unknown'})")]
    middle = len(items) // 2
    return [*_stored(scope, items[:middle], by), *_stored(scope, items[middle:], by)]


def state_of(error: DatabaseError) -> str:
    """PostgreSQL's code for what went wrong; "" where it gave none. 40… may not come again."""
    return str(getattr(error.__cause__, "sqlstate", None) or "")


# --- keeping, inside the transaction ---------------------------------------------------------------------------------


@dataclass(slots=True)
class _Place:
    """A row that claims of this call are kept in: one that is there, or one to be written for the first of them."""

    key: tuple[str, str, str]
    normalised: str
    period: tuple[object, object]
    row: Observation | None = None
    id: int = 0
    fresh: Checked | None = None
    refs: list[EvidenceRef] = field(default_factory=list)  # what a row that is there gains
    external_id: str = ""
    refused: str = ""
    gave_way: int | None = None  # the row in whose place it was written
    first: bool = True  # the claim that it was written for is still to be answered

    def holds(self, item: Checked) -> bool:
        """Whether a claim is this row's, within the same time where the claim names one."""
        period = (item.claim.valid_from, item.claim.valid_to)
        return item.says_the_same(self.normalised, self.key) and period in ((None, None), self.period)

    @property
    def gives_way(self) -> bool:
        """Whether the claim to be written takes the place of a row that says the same on less authority."""
        return self.row is not None and self.fresh is not None


def keep(*, scope: Scope, items: Sequence[Checked], by: str, instead_of: Observation | None = None) -> list[Kept]:
    """Keep checked claims within the caller's transaction, in no case in the row `instead_of`. See `store_facts`."""
    keys = [item.text_key for item in items]
    now = store.lock_scope_and_texts(scope_id=scope.pk, text_keys=keys, cause=f"remember by {by}")
    places = _current(scope, items, but=instead_of)
    mine = [_placed(item, places.setdefault(item.text_key, [])) for item in items]
    fresh = [place for places_ in places.values() for place in places_ if place.fresh is not None]
    _write(scope, fresh, by, now)
    _support(scope, [place for places_ in places.values() for place in places_], by)
    for place in fresh:
        if place.gives_way and not place.refused:
            _give_way(scope, place, by)
    counts = _witnesses(scope, mine)
    return [_answer(item, place, counts) for item, place in zip(items, mine, strict=True)]


def _current(scope: Scope, items: Sequence[Checked], *, but: Observation | None) -> dict[int, list[_Place]]:
    """The current rows that may say the same, by the hash of their text. One query, or two where there are any."""
    places: dict[int, list[_Place]] = {}
    ids = store.same_texts(scope_id=scope.pk, text_keys={item.text_key for item in items})
    if not ids:
        return places
    found = Observation.objects.active().in_scope(scope).filter(pk__in=ids)
    for row in (found if but is None else found.exclude(pk=but.pk)).order_by("pk"):
        key = (key_part(row.subject), key_part(row.predicate), key_part(row.object))
        period = (row.valid_from, row.valid_to)
        place = _Place(key, normalised(row.text or ""), period, row=row, id=row.pk, external_id=row.external_id)
        places.setdefault(row.text_key, []).append(place)
    return places


def _placed(item: Checked, places: list[_Place]) -> _Place:
    """The place of a claim: a row that says the same, or a new one."""
    for place in places:
        if place.holds(item):
            if place.fresh is None and place.row is not None and _outranks(item, place.row):
                place.fresh = item
            elif place.fresh is None:
                place.refs += item.claim.evidence
            else:
                _join(place, item)
            return place
    claim = item.claim
    place = _Place(item.key, item.normalised, (claim.valid_from, claim.valid_to), fresh=item)
    places.append(place)
    return place


def _outranks(item: Checked, row: Observation) -> bool:
    """Whether a person's own word meets a row that has it from no person (R47 protects only what a user wrote)."""
    people = (StatedBy.USER, StatedBy.OPERATOR)
    return item.claim.stated_by in people and row.stated_by not in people and not item.claim.external_id


def _join(place: _Place, item: Checked) -> None:
    """The same claim twice in one call is one row that rests on both."""
    assert place.fresh is not None
    together = {ref.source_uri: ref for ref in (*item.claim.evidence, *place.fresh.claim.evidence)}
    place.fresh = replace(place.fresh, claim=replace(place.fresh.claim, evidence=tuple(together.values())))


def _write(scope: Scope, fresh: Sequence[_Place], by: str, now: datetime) -> None:
    """Write the new rows; `now` is when the scope's lock was had."""
    items = [place.fresh for place in fresh if place.fresh is not None]
    if not items:
        return
    made = {at: _new_id() for at, item in enumerate(items) if not item.claim.external_id}
    claims = [replace(item.claim, external_id=made[at]) if at in made else item.claim for at, item in enumerate(items)]
    written = store.add_observations(
        scope=scope,
        claims=claims,
        written_by=WrittenBy.DELIBERATE,
        reconciled=[not is_program(by)] * len(claims),
        compared=[store.Compared(item.text_key, item.key) for item in items],
        made=frozenset(made.values()),
        locked_at=now,
    )
    standing = _standing(scope, written)
    for place, claim, row in zip(fresh, claims, written, strict=True):
        place.id, place.refused, place.external_id = row.id or 0, row.reason, claim.external_id
        if row.fate is Fate.KNOWN and row.id is not None:
            place.first = False
            status = standing[row.id]
            if status != Status.ACTIVE:
                place.refused = f"this id is already there and {status}: a new claim has a new id"
    added = [row.id for row in written if row.fate is Fate.ADDED]
    note(scope=scope, action="remembered", ids=[pk for pk in added if pk is not None], by=by)


def _new_id() -> str:
    """Of no content, so that what was retired can be said again."""
    return f"obs:{uuid.uuid4().hex}"


def _standing(scope: Scope, written: Sequence[Written]) -> dict[int, str]:
    """The status of the rows that were there under a claim's own id. One query, or none."""
    taken = [row.id for row in written if row.fate is Fate.KNOWN and row.id is not None]
    if not taken:
        return {}
    return dict(Observation.objects.in_scope(scope).filter(pk__in=taken).values_list("pk", "status"))


def _support(scope: Scope, places: Sequence[_Place], by: str) -> None:
    """Let the rows that were there rest on what the claims brought."""
    refs = {place.id: place.refs for place in places if place.row is not None and place.refs}
    if refs:
        gained = store.add_evidence_to(scope_id=scope.pk, refs=refs)
        note(scope=scope, action="supported", ids=sorted(gained), by=by)


def _give_way(scope: Scope, place: _Place, by: str) -> None:
    assert place.row is not None
    store.copy_evidence(scope_id=scope.pk, into=place.id, sources=[place.row.pk])
    store.lock_scope(scope_id=scope.pk, cause=f"said by a person, written by {by}")
    store.move(scope_id=scope.pk, ids=[place.row.pk], to=Status.SUPERSEDED, successor=place.id)
    place.gave_way = place.row.pk


def _answer(item: Checked, place: _Place, counts: dict[int, int]) -> Kept:
    if place.refused:
        return refusal(item, place.refused)
    added = place.fresh is not None and place.first
    place.first = place.first and not added
    new = Action.UPDATED if place.gave_way else Action.ADDED
    return Kept(
        action=new if added else Action.KNOWN,
        id=place.id,
        text=place.fresh.text if place.fresh is not None else (place.row.text or "" if place.row else ""),
        evidence=counts.get(place.id, 0),
        reason=item.reason,
        cleaned=item.cleaned,
        replaced=place.gave_way if added else None,
        external_id=place.external_id,
    )


def note(*, scope: Scope, action: str, ids: Sequence[int], by: str) -> None:
    """One event per row, in one query: who said it is read from here."""
    if ids:
        with connection.cursor() as cursor:
            cursor.execute(_NOTE, [scope.pk, action, by[:150], list(ids)])


_NOTE: Final = """
INSERT INTO observations_event (scope_id, action, actor, subject, detail)
SELECT %s, %s, %s, 'obs_' || id, '{}' FROM unnest(%s::bigint[]) AS id
"""


def _witnesses(scope: Scope, places: Sequence[_Place]) -> dict[int, int]:
    """What `evidence_of` says; it is asked only of rows that may rest on more than the claims of this call."""
    kept = {place.id: place for place in places if not place.refused}
    counts = {pk: _brought(place) for pk, place in kept.items()}
    there = [pk for pk, count in counts.items() if not count]
    return counts | (evidence_of(scope=scope, ids=there) if there else {})


def _brought(place: _Place) -> int:
    """How many witnesses a row has that was just written for its claims; 0 for any other row."""
    if place.row is not None or place.fresh is None or not place.first:
        return 0
    refs = {clean(ref.source_uri)[0]: ref for ref in place.fresh.claim.evidence}
    return len({witness(clean(ref.root)[0]) for ref in refs.values()})


def evidence_of(*, scope: Scope, ids: Sequence[int]) -> dict[int, int]:
    """How many distinct witnesses each row rests on, by id (R95). One query, or none."""
    roots: dict[int, set[str]] = {}
    rows = Evidence.objects.filter(scope=scope, observation_id__in=ids).values_list("observation_id", "root_source")
    for pk, root in rows if ids else ():
        roots.setdefault(pk, set()).add(witness(root))
    return {pk: len(found) for pk, found in roots.items()}

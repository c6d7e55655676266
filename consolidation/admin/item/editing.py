"""Editing a proposal: the form, a preview by the code that applies it, and the new operation that takes its place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, QueryDict
from django.shortcuts import redirect
from django.urls import URLPattern, path

from consolidation import merge, review, runner
from consolidation.admin.item import fields as item_fields
from consolidation.admin.item import lost as item_lost
from consolidation.admin.item import products as item_products
from consolidation.admin.item import sources as item_sources
from consolidation.admin.item import turns as item_turns
from consolidation.admin.item.deciding import APPLY, REVIEW
from consolidation.admin.item.fields import Fields
from consolidation.admin.item.lost import Losses
from consolidation.admin.item.of_operation import OfOperation
from consolidation.admin.item.products import Product
from consolidation.admin.item.sources import Records, Source
from consolidation.admin.item.turns import Turn
from consolidation.admin.reading import proposed_digest
from consolidation.admin.telling import key_line
from consolidation.admin.texts import Edit, edited, when, whole
from consolidation.models import Operation, OperationSource
from consolidation.operations import OF_EPISODES, Kind, State, ep, visible
from consolidation.review import Changes, Refused
from consolidation.runner import Outcome
from observations.admin.base import Reach, require, signed_in
from observations.models import Episode, Observation
from observations.records import Claim

PAGE: Final = "admin/consolidation/operation/edit.html"
PREVIEW: Final = "admin/consolidation/operation/preview.html"
SAVES: Final = ("save", "approve", "approve_apply")
REFUSED: Final = 409


@dataclass(frozen=True, slots=True)
class Standing:
    """An operation with what it rests on, as it stands."""

    operation: Operation
    sources: tuple[OperationSource, ...]
    records: Records
    turns: Mapping[int, Episode]

    @property
    def rows(self) -> dict[int, Observation | Episode]:
        """The sources by id."""
        if self.operation.kind in OF_EPISODES:
            return dict(self.turns)
        return {row.pk: row for row in self.records.sources}


@dataclass(frozen=True, slots=True)
class Preview:
    """What would be written, or why nothing would."""

    refusal: str = ""
    product: Product | None = None
    kind: str = ""
    compared: Edit | None = None  # against the text as it was proposed
    fields: Fields | None = None
    losses: Losses | None = None
    changed: str = ""  # names of fields, in words


def read(operation: Operation) -> Standing:
    """Six queries at most."""
    sources = review.sources_of(operation)
    turns = item_turns.read_turns(operation, sources) if operation.kind in OF_EPISODES else {}
    return Standing(operation, tuple(sources), item_sources.read_records(operation, sources), turns)


# --- the form --------------------------------------------------------------------------------------------------------


def wanted(data: QueryDict, standing: Standing) -> Changes:
    """What a posted form asks for. Raises Refused for a form that no page made."""
    operation = standing.operation
    ids = {source.row_id for source in standing.sources}
    kept = _numbers(data.getlist("in"))
    if not kept <= ids:
        raise Refused("The form names a record that is none of its sources. Look at the page again.")
    leave_out = frozenset(ids - kept) if operation.kind != Kind.COMPACT else frozenset[int]()
    if operation.kind != Kind.MERGE:
        names = ("text",) if operation.kind == Kind.COMPACT else ("text", *merge.KEY)
        return Changes(leave_out=leave_out, own={name: _words(data, name) for name in names})
    take: dict[str, int] = {}
    own: dict[str, str] = {}
    for name in merge.FIELDS:
        pick = data.get(f"pick_{name}", "")
        if pick == merge.OWN:
            own[name] = _words(data, name)
        elif pick:
            _take(name, pick, standing.records, leave_out, take, own)
    return Changes(leave_out=leave_out, take=take, own=own)


def _take(
    name: str, pick: str, records: Records, leave_out: frozenset[int], take: dict[str, int], own: dict[str, str]
) -> None:
    """A picked value, of a source that stays in; where none that does has it, the rule decides. What a model said of a
    key is taken as the reviewer's own word: it stands in no row.
    """
    by_id = {row.pk: row for row in records.sources}
    [number] = _numbers([pick])
    if number not in by_id:
        raise Refused("The form names a record that is none of its sources. Look at the page again.")
    value = item_fields.value_of(by_id[number], name, records)
    staying = [pk for pk, row in by_id.items() if pk not in leave_out]
    same = [pk for pk in staying if item_fields.value_of(by_id[pk], name, records) == value]
    if same and value[1]:
        own[name] = value[0]
    elif same:
        take[name] = number if number in same else same[0]


def _words(data: QueryDict, name: str) -> str:
    return data.get(f"own_{name}", "").replace("\r\n", "\n")


def _numbers(given: Sequence[str]) -> set[int]:
    if not all(word.isascii() and word.isdigit() and len(word) < 19 for word in given):
        raise Refused("The form cannot be read: look at the page again.")
    return {int(word) for word in given}


# --- the preview -----------------------------------------------------------------------------------------------------


def preview(standing: Standing, changes: Changes | None, by: str) -> Preview:
    """What the edit would write, by the code that applies it; None of changes: what is proposed as it stands.

    About five queries. Never raises: what cannot be meant is said.
    """
    operation, sources = standing.operation, standing.sources
    try:
        policy = review.policy_of(operation.scope.name)
        moved = review.changes(operation=operation, sources=sources, rows=standing.rows)
        if moved:
            raise Refused(f"The memory moved since this was planned: {'; '.join(moved)}. Plan again.")
        changed: tuple[str, ...] = ()
        if changes is not None:
            made = review.drafted(
                operation=operation, sources=sources, rows=standing.rows, policy=policy, changes=changes, by=by
            )
            operation, sources, changed = made.operation, made.sources, made.changed
        claim = runner.draft_claim(operation=operation, sources=sources, policy=policy)
    except Refused as refusal:
        return Preview(refusal=str(refusal))
    return _shown(standing, operation, sources, claim, changed)


def _shown(
    standing: Standing,
    operation: Operation,
    sources: Sequence[OperationSource],
    claim: Claim | None,
    changed: Sequence[str],
) -> Preview:
    if claim is None:
        return Preview(refusal="Nothing would be written.")
    inside = {source.row_id for source in sources}
    records = _within(standing.records, inside)
    merges = operation.kind == Kind.MERGE
    return Preview(
        product=item_products.product(claim, records) if merges else _of_episodes(claim, operation),
        kind=str(claim.kind),
        compared=edited(_before(standing), claim.text) if changed else None,
        fields=item_fields.fields(operation, records, claim),
        losses=item_lost.of_merge(records, claim) if merges else _lost(operation, standing.turns, claim),
        changed=", ".join(changed),
    )


def _within(records: Records, inside: set[int]) -> Records:
    return Records(
        rows=records.rows,
        sources=tuple(row for row in records.sources if row.pk in inside),
        evidence=records.evidence,
        uses=records.uses,
        given=records.given,
    )


def _before(standing: Standing) -> str | None:
    """The text as it was proposed."""
    operation = standing.operation
    keeper = standing.records.rows.get(operation.keeper_id or 0)
    return operation.text or (keeper.text if keeper else None)


def _of_episodes(claim: Claim, operation: Operation) -> Product:
    """A fact or a summary, to be shown."""
    return Product(
        text=whole(claim.text),
        key=key_line((claim.subject, claim.predicate, claim.object)) if claim.subject else "",
        confidence=f"{claim.confidence:.2f}",
        by=claim.stated_by,
        said=when(claim.created_at),
        valid="",
        sources=operation.n_sources,
        witnesses=operation.n_sources,
        roots=int(operation.product.get("roots", operation.n_sources)),
    )


def _lost(operation: Operation, turns: Mapping[int, Episode], claim: Claim) -> Losses | None:
    """What a summary loses; a promotion's episodes stay in the reads, so nothing is lost with it."""
    if operation.kind != Kind.COMPACT:
        return None
    return item_lost.losses(
        sources=[(ep(pk), turn.text) for pk, turn in turns.items()],
        result=claim.text,
        speakers=[turn.speaker for turn in turns.values()],
    )


def _done_before(request: HttpRequest, operation: Operation) -> Operation | None:
    """This person's edit that says what this form says, word for word; None where there is none."""
    by, standing = signed_in(request).get_username(), read(operation)
    before = Operation.objects.select_related("scope").get(pk=operation.pk)
    before.status = State.NEEDS_HUMAN
    try:
        made = review.drafted(
            operation=before,
            sources=standing.sources,
            rows=standing.rows,
            policy=review.policy_of(operation.scope.name),
            changes=wanted(request.POST, standing),
            by=by,
        )
    except Refused:
        return None
    said = [getattr(made.operation, name) for name in _SAID]
    return next((e for e in operation.edits.filter(edited_by=by) if [getattr(e, n) for n in _SAID] == said), None)


_SAID: Final = ("op_id", "product", "text", "claim_subject", "claim_predicate", "claim_object")


# --- the pages -------------------------------------------------------------------------------------------------------


class EditPages(OfOperation):
    """The form of an edit, its preview, and what comes of it."""

    def extra_urls(self) -> list[URLPattern]:
        """The form, and the preview it asks for while somebody types."""
        return [
            *super().extra_urls(),
            path("<int:pk>/edit/", self.guarded(self.edit_view), name=self.url_name("edit")),
            path("<int:pk>/preview/", self.guarded(self.preview_view), name=self.url_name("preview")),
        ]

    def edit_view(self, request: HttpRequest, *, pk: int) -> HttpResponse:
        """The form; posted, a preview of it, or the edit itself. What is refused keeps what was written."""
        operation = self.operation_of(request, pk)
        require(request, REVIEW, scope=operation.scope)
        if request.method != "POST":
            return self._form(request, operation)
        verb = request.POST.get("verb", "")
        if verb not in SAVES:
            return self._form(request, operation)
        if verb == "approve_apply":
            require(request, APPLY, scope=operation.scope)
        try:
            return self._save(request, operation, verb)
        except Refused as refusal:
            if (mine := _done_before(request, operation)) is not None:  # a second click is no conflict (C16)
                messages.info(request, "You did that already. This is your edit.")
                return redirect(f"admin:{self.url_name('change')}", pk=mine.pk)
            return self._form(request, self.operation_of(request, pk), refusal=str(refusal), status=REFUSED)

    def _save(self, request: HttpRequest, operation: Operation, verb: str) -> HttpResponse:
        by, digest = signed_in(request).get_username(), request.POST.get("digest", "") or "none"
        changes = wanted(request.POST, read(operation))
        if verb == "save":
            new = review.edit(operation=operation, by=by, changes=changes, digest=digest)
            messages.success(request, f"The edit is {new.op_id}. It waits for a decision in the place of the old one.")
            return redirect(f"admin:{self.url_name('change')}", pk=new.pk)
        reason = request.POST.get("reason", "").replace("\0", "")
        new = review.edit_and_approve(operation=operation, by=by, changes=changes, digest=digest, reason=reason)
        said = f"The edit is {new.op_id}. It is approved and waits to be applied."
        if verb == "approve_apply":
            done = runner.apply(operation=new, by=by, shown=new.approved_digest)
            if done.outcome != Outcome.APPLIED:
                messages.warning(request, f"Approved, and not applied: {done.sentence}")
                return redirect(f"admin:{self.url_name('change')}", pk=new.pk)
            said = f"{done.sentence[:1].upper()}{done.sentence[1:]}"
        messages.success(request, said)
        return redirect(f"admin:{self.url_name('change')}", pk=new.pk)

    def _form(
        self, request: HttpRequest, operation: Operation, *, refusal: str = "", status: int = 200
    ) -> HttpResponse:
        standing, posted = read(operation), request.POST if request.method == "POST" else None
        now = _previewed(standing, None, "")
        shown = _previewed(standing, posted, signed_in(request).get_username()) if posted is not None else now
        closed = review.refusal_to_edit(operation)
        context = {
            "title": f"Edit {operation.kind} {operation.op_id[:11]}",
            "pk": operation.pk,
            "op_id": operation.op_id,
            "kind": operation.kind,
            "scope": visible(operation.scope.name),
            "closed": closed,
            "refusal": refusal,
            "preview": shown,
            "posted": posted is not None,
            "digest": proposed_digest(
                operation=operation, rows=list(standing.rows.values()), policy_hash=_policy_hash(operation)
            ),
            "form": _form_of(standing, posted, now),
            "reason": visible(request.POST.get("reason", "")),
            "may_apply": Reach.seen_by(request).may(APPLY, scope=operation.scope),
        }
        return self.render(request, PAGE, context, status=status)

    def preview_view(self, request: HttpRequest, *, pk: int) -> HttpResponse:
        """Only the preview of what a form holds now, to be put in its place on the page."""
        operation = self.operation_of(request, pk)
        require(request, REVIEW, scope=operation.scope)
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        shown = _previewed(read(operation), request.POST, signed_in(request).get_username())
        return self.render(request, PREVIEW, {"preview": shown, "posted": True, "kind": operation.kind})


def _previewed(standing: Standing, posted: QueryDict | None, by: str) -> Preview:
    if refusal := review.refusal_to_edit(standing.operation):
        return Preview(refusal=refusal)
    try:
        changes = wanted(posted, standing) if posted is not None else None
    except Refused as refusal:
        return Preview(refusal=str(refusal))
    return preview(standing, changes, by)


def _policy_hash(operation: Operation) -> str:
    try:
        return review.policy_of(operation.scope.name).hash
    except Refused:
        return ""


# --- what the form holds ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Pick:
    """One radio button of a field."""

    value: str
    shown: str
    names: str
    given_by: str
    chosen: bool


@dataclass(frozen=True, slots=True)
class Entry:
    """One field of the form."""

    name: str
    label: str
    picks: tuple[Pick, ...]
    conflict: bool
    equal: bool
    own: str
    owned: bool
    limit: int  # characters of own words; 0: it takes none
    long: bool  # several lines


@dataclass(frozen=True, slots=True)
class Filled:
    """The whole form."""

    cards: tuple[tuple[Source, bool], ...]  # with whether it goes in
    turns: tuple[tuple[Turn, bool], ...]
    differ: tuple[Entry, ...]
    equal: tuple[Entry, ...]
    leaves_out: bool  # sources may be left out


def _form_of(standing: Standing, posted: QueryDict | None, now: Preview) -> Filled:
    operation = standing.operation
    kept = set(posted.getlist("in")) if posted is not None else {str(source.row_id) for source in standing.sources}
    entries = _entries(standing, posted, now)
    cards = item_sources.cards(operation, standing.records)
    return Filled(
        cards=tuple((card, str(card.id) in kept) for card in cards),
        turns=tuple((item_turns.turn(row), str(row.pk) in kept) for row in standing.turns.values()),
        differ=tuple(one for one in entries if not one.equal),
        equal=tuple(one for one in entries if one.equal),
        leaves_out=operation.kind in (Kind.MERGE, Kind.PROMOTE),
    )


def _entries(standing: Standing, posted: QueryDict | None, now: Preview) -> list[Entry]:
    operation = standing.operation
    if operation.kind != Kind.MERGE:
        names = ("text",) if operation.kind == Kind.COMPACT else ("text", *merge.KEY)
        columns = {"text": "text", **{name: f"claim_{name}" for name in merge.KEY}}
        return [_words_of(name, getattr(operation, columns[name]), posted) for name in names]
    table = now.fields
    if table is None:
        return []
    rows = {one.name: one for one in (*table.differ, *table.equal) if one.editable}
    return [_entry(rows[name], posted) for name in merge.FIELDS]


def _words_of(name: str, proposed: str, posted: QueryDict | None) -> Entry:
    own = _words(posted, name) if posted is not None else proposed
    return Entry(
        name=name,
        label=item_fields.LABELS[name],
        picks=(),
        conflict=False,
        equal=False,
        own=own,
        owned=True,
        limit=review.LIMITS[name],
        long=name == "text",
    )


def _entry(field: item_fields.Field, posted: QueryDict | None) -> Entry:
    picked = posted.get(f"pick_{field.name}", "") if posted is not None else ""
    owned = picked == merge.OWN if picked else field.owned
    return Entry(
        name=field.name,
        label=field.label,
        picks=tuple(
            Pick(
                value=value.pick,
                shown=value.shown,
                names=", ".join(value.names),
                given_by=value.given_by,
                chosen=picked == value.pick if picked else value.chosen,
            )
            for value in field.values
        ),
        conflict=field.conflict,
        equal=field.equal and not owned,
        own=_words(posted, field.name) if posted is not None else field.own,
        owned=owned,
        limit=field.limit,
        long=field.name == "text",
    )

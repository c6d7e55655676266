"""The addresses of core memory; a label is a word of a program's, not of a memory, and may stand in an address."""

from __future__ import annotations

from typing import Annotated

from django.http import HttpRequest, HttpResponse
from ninja import Path, Query, Router

from observations.api.answering import answer, body_of
from observations.api.memory import says
from observations.calls import schemas, shapes

router = Router()

GetParameters = body_of(schemas.CoreGet, but="label")
AppendBody = body_of(schemas.CoreAppend, but="label")
ReplaceBody = body_of(schemas.CoreReplace, but="label")
RethinkBody = body_of(schemas.CoreRethink, but="label")
UndoBody = body_of(schemas.CoreUndo, but="label")
RevisionParameters = body_of(schemas.CoreRevisions, but="label")
Label = Annotated[shapes.Label, Path()]


@router.get("/core", **says("core_list", tag="core memory"))
def core_list(request: HttpRequest, asked: Query[schemas.CoreList]) -> HttpResponse:
    """All of a scope."""
    return answer(request, "core_list", asked)


@router.post("/core", **says("core_create", tag="core memory"))
def core_create(request: HttpRequest, asked: schemas.CoreCreate) -> HttpResponse:
    """A new one."""
    return answer(request, "core_create", asked)


@router.get("/core/{label}", **says("core_get", tag="core memory"))
def core_get(request: HttpRequest, label: Label, asked: Query[GetParameters]) -> HttpResponse:  # type: ignore[valid-type]
    """One."""
    return answer(request, "core_get", asked, label=label)


@router.post("/core/{label}/append", **says("core_append", tag="core memory"))
def core_append(request: HttpRequest, label: Label, asked: AppendBody) -> HttpResponse:  # type: ignore[valid-type]
    """A line more."""
    return answer(request, "core_append", asked, label=label)


@router.post("/core/{label}/replace", **says("core_replace", tag="core memory"))
def core_replace(request: HttpRequest, label: Label, asked: ReplaceBody) -> HttpResponse:  # type: ignore[valid-type]
    """One string for another."""
    return answer(request, "core_replace", asked, label=label)


@router.post("/core/{label}/rethink", **says("core_rethink", tag="core memory"))
def core_rethink(request: HttpRequest, label: Label, asked: RethinkBody) -> HttpResponse:  # type: ignore[valid-type]
    """All of it anew."""
    return answer(request, "core_rethink", asked, label=label)


@router.post("/core/{label}/undo", **says("core_undo", tag="core memory"))
def core_undo(request: HttpRequest, label: Label, asked: UndoBody) -> HttpResponse:  # type: ignore[valid-type]
    """The newest edit taken back."""
    return answer(request, "core_undo", asked, label=label)


@router.get("/core/{label}/revisions", **says("core_revisions", tag="core memory"))
def core_revisions(request: HttpRequest, label: Label, asked: Query[RevisionParameters]) -> HttpResponse:  # type: ignore[valid-type]
    """Its edits."""
    return answer(request, "core_revisions", asked, label=label)

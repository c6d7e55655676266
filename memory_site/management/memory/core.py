"""`memory core`: the few labelled texts that are in every prompt of a scope."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any, Final

from django.core.management.base import OutputWrapper

from consolidation.operations import visible
from memory_site.management.memory.calling import Options, make, tell
from memory_site.management.memory.errors import scope_named
from observations.calls import schemas

_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {  # edit -> the options that its call takes
    "create": ("value", "limit", "description", "read_only"),
    "append": ("text", "revision"),
    "replace": ("old", "new", "revision"),
    "rethink": ("value", "revision"),
    "undo": ("revision",),
}


def core(out: OutputWrapper, options: Options) -> None:
    """One of its sub-commands. Raises Error."""
    verb = options["verb"]
    if verb != "create":
        scope_named(options["scope"])
    _SHOWS.get(verb, _edit)(out, options)


def _list(out: OutputWrapper, options: Options) -> None:
    answer = make("core_list", schemas.CoreMemories, scope=options["scope"])
    lines = [f"{_head(each)}\n{_indented(each.value)}" for each in answer.core]
    tell(out, answer, as_json=options["json"], text="\n".join(lines) or "no core memory")


def _show(out: OutputWrapper, options: Options) -> None:
    """The text and nothing else, byte for byte, so that it can be edited and given back."""
    answer = make("core_get", schemas.CoreMemory, scope=options["scope"], label=options["label"])
    tell(out, answer, as_json=options["json"], text=answer.value)


def _revisions(out: OutputWrapper, options: Options) -> None:
    answer = make(
        "core_revisions",
        schemas.CoreEdits,
        scope=options["scope"],
        label=options["label"],
        limit=options["limit"],
        cursor=options["cursor"],
    )
    lines = [f"{_revision(each)}\n{_indented(each.value)}" for each in answer.revisions]
    lines += [f"more: --cursor {answer.next}"] if answer.next else []
    tell(out, answer, as_json=options["json"], text="\n".join(lines))


def _edit(out: OutputWrapper, options: Options) -> None:
    verb = options["verb"]
    asked: dict[str, Any] = {name: options[name] for name in _FIELDS[verb]}
    asked |= {name: sys.stdin.read() for name in ("value", "text") if asked.get(name) == "-"}
    answer = make(f"core_{verb}", schemas.CoreMemory, scope=options["scope"], label=options["label"], **asked)
    tell(out, answer, as_json=options["json"], text=f"{_head(answer)}\n{_indented(answer.value)}")


_SHOWS: Final[Mapping[str, Callable[[OutputWrapper, Options], None]]] = {
    "list": _list,
    "show": _show,
    "revisions": _revisions,
}


def _head(each: schemas.CoreMemory) -> str:
    about = f": {visible(each.description)}" if each.description else ""
    kept = ", read-only for programs" if each.read_only else ""
    return f"{each.label}{about} (revision {each.revision}, {each.length:,} of {each.limit:,} characters{kept})"


def _revision(each: schemas.CoreEdit) -> str:
    undoes = f" of {each.undoes}" if each.undoes is not None else ""
    return f"revision {each.number}: {each.action}{undoes} by {visible(each.by)}, {each.at:%Y-%m-%d %H:%M}"


def _indented(value: str | None) -> str:
    """The text as lines that a terminal shows safely."""
    if value is None:
        return "    (erased)"
    return "\n".join(f"    {visible(line)}" for line in value.split("\n"))

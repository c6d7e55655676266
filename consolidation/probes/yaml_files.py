"""A probe file as YAML, read and written: a list whose entries have the fields of a JSON line.

A file comes from outside. Anchors, aliases and tags are refused before anything is made of it, and a word that is not
true, false or null stays the word that was written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import yaml

try:
    from yaml import CSafeLoader as SafeLoader  # ten times as fast; in every wheel
except ImportError:
    from yaml import SafeLoader  # type: ignore[assignment]

from consolidation.probes.reading import Sheet, read_rows

_DEEPEST: Final = 5  # a list of entries, each with lists
_MOST: Final = 500_000  # parts of a file
_TRUE_OR_FALSE: Final = re.compile(r"^(?:true|false)$")
_NULL: Final = re.compile(r"^(?:null|~|)$")
_LIST: Final = "it is no list of probes: begin each with “- query: …”"


class Unreadable(ValueError):
    """The file cannot be read as YAML; the text says why and where, never with words of the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One probe to be written into a file."""

    fields: Mapping[str, object]  # as `read_rows` reads them
    comments: tuple[str, ...] = ()  # one line each, with nothing in it that could end the line


def read_yaml(text: str) -> Sheet:
    """All probes of a YAML file. Raises Unreadable; what cannot be used of a readable one is listed."""
    try:
        _look_through(text)
        found = yaml.load(text, Loader=_Words)  # noqa: S506  a SafeLoader of fewer types
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise Unreadable(f"it is not YAML{f' (line {mark.line + 1})' if mark else ''}") from None
    except (yaml.YAMLError, RecursionError):
        raise Unreadable("it is not YAML") from None
    if not isinstance(found, list):
        raise Unreadable(_LIST)
    # A text would be read as JSON, so one that stands alone is no entry.
    return read_rows((f"entry {n}", row if isinstance(row, dict) else None) for n, row in enumerate(found, 1))


def write_yaml(entries: Iterable[Entry], *, heading: Iterable[str] = ()) -> str:
    """A file that `read_yaml` reads, comments above each probe."""
    parts = ["".join(f"# {line}\n" for line in heading)]
    for entry in entries:
        body = yaml.safe_dump([dict(entry.fields)], allow_unicode=True, sort_keys=False, width=10_000)
        parts.append("".join(f"# {line}\n" for line in entry.comments) + body)
    return "\n".join(part for part in parts if part)


def _look_through(text: str) -> None:
    """Refuse what could make much of little, or something else of text, before anything is made."""
    depth = 0
    for parts, event in enumerate(yaml.parse(text, Loader=SafeLoader)):
        line = event.start_mark.line + 1 if event.start_mark else 1
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise Unreadable(f"line {line} has an anchor or an alias, which a probe file may not")
        if isinstance(event, yaml.NodeEvent) and getattr(event, "tag", None):
            raise Unreadable(f"line {line} has a tag, which a probe file may not")
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST or parts > _MOST:
            raise Unreadable(f"line {line} goes deeper than a probe does" if depth > _DEEPEST else "it is too long")


class _Words(SafeLoader):
    """Makes texts, lists, mappings, true, false and null, and nothing else; a name that is given twice is an error."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Raises ConstructorError for a name that is given twice."""
        names = [key.value for key, _ in node.value]
        if len({*map(str, names)}) < len(names):
            raise yaml.constructor.ConstructorError(None, None, "a name is given twice", node.start_mark)
        return super().construct_mapping(node, deep=deep)


_Words.add_implicit_resolver("tag:yaml.org,2002:bool", _TRUE_OR_FALSE, ["t", "f"])
_Words.add_implicit_resolver("tag:yaml.org,2002:null", _NULL, ["n", "~", ""])

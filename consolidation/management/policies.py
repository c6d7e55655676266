"""`manage.py consolidate policy`: show the policy of a scope or pattern, and set single fields of it."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, Final

from django.core.management.base import CommandError

from consolidation import policy as rules
from consolidation import revising
from consolidation.models import Policy
from consolidation.operations import Json, visible
from consolidation.policy import PolicyError
from observations.retrieval import current_embedder

_NOT_FOUND: Final = 2
_REFUSED: Final = 1
_EVERYTHING: Final = "*"


def arguments(parser: ArgumentParser) -> None:
    """The fields to set; --scope, which holds a pattern here, --by and --json come with every sub-command."""
    parser.add_argument(
        "fields",
        nargs="*",
        metavar="NAME=VALUE",
        help="fields to set: compact=true, review_budget=null, mergeable=fact,note; a value that starts with [ or { is"
        " read as JSON; without any, the policy is shown",
    )


def run(options: Mapping[str, Any]) -> str:
    """The policy to print. Writes only when a field was set. Raises CommandError: status 2 for what cannot be meant, 1
    when somebody else changed the policy meanwhile.
    """
    pattern = options["scope"] or _EVERYTHING
    try:
        rules.check_pattern(pattern=pattern)
        row = revising.wider(pattern=pattern)
        held = rules.Policy.from_dict(row.body) if row else rules.Policy()
        if options["fields"]:
            row = _set(pattern, row, held, options["fields"], options["by"])
            held = rules.Policy.from_dict(row.body)
    except PolicyError as fault:
        raise CommandError(str(fault), returncode=_NOT_FOUND) from fault
    except revising.Conflict as conflict:
        raise CommandError(f"{conflict} Look at it, then set it again.", returncode=_REFUSED) from conflict
    return _document(pattern, row, held) if options["json"] else _text(pattern, row, held)


def _set(pattern: str, row: Policy | None, held: rules.Policy, given: Sequence[str], by: str) -> Policy:
    """Store the pattern's policy with some fields changed; what is not named stays as it holds there now."""
    values: dict[str, Json] = held.to_dict()
    for item in given:
        name, equals, word = item.partition("=")
        if not equals or name not in values:
            known = ", ".join(sorted(values))
            raise PolicyError(f"{visible(item[:60])!r} is not NAME=VALUE with one of {known}.")
        values[name] = _value(word, listed=isinstance(values[name], list))
    policy = revising.checked(pattern=pattern, values=values, profile=current_embedder().profile)
    version = row.version if row is not None and row.pattern == pattern else revising.NEW
    return revising.revise(pattern=pattern, policy=policy, by=by, version=version)


def _value(word: str, *, listed: bool) -> Json:
    """A value as it is written on a command line: JSON where it is any, else words."""
    if listed and not word.startswith("["):
        return [part.strip() for part in word.split(",") if part.strip()]
    try:
        value: Json = json.loads(word)
    except ValueError:
        return word
    return value


def _text(pattern: str, row: Policy | None, held: rules.Policy) -> str:
    values, defaults = held.to_dict(), rules.Policy().to_dict()
    width = max(map(len, values))
    lines = [_where(pattern, row)]
    for item in fields(rules.Policy):
        value = json.dumps(values[item.name], ensure_ascii=False)
        changed = "" if values[item.name] == defaults[item.name] else f"  (default {json.dumps(defaults[item.name])})"
        lines.append(f"  {item.name:<{width}}  {visible(value)}{changed}")
    return "\n".join(lines)


def _where(pattern: str, row: Policy | None) -> str:
    if row is None:
        return f"No policy covers {visible(pattern)}: the defaults hold."
    by = f", by {visible(row.updated_by)}" if row.updated_by else ""
    if row.pattern == pattern:
        return f"The policy of {visible(pattern)}, version {row.version}{by}:"
    return f"{visible(pattern)} has none of its own; that of {visible(row.pattern)}, version {row.version}{by}, holds:"


def _document(pattern: str, row: Policy | None, held: rules.Policy) -> str:
    document: dict[str, Json] = {
        "pattern": pattern,
        "holds": row.pattern if row else None,
        "version": row.version if row else 0,
        "policy": held.to_dict(),
    }
    return json.dumps(document, indent=2, ensure_ascii=False)

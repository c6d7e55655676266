"""`manage.py consolidate setup`: the four questions of a scope, asked when nothing is said and stored when answered."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final, TypeVar

from django.core.management.base import CommandError

from consolidation import asking, revising
from consolidation import policy as rules
from consolidation.asking import QUESTIONS, Answers
from consolidation.management.failing import NOT_DONE
from consolidation.models import Policy
from consolidation.operations import visible
from consolidation.policy import PolicyError, Trigger
from observations.records import MemoryKind

NONE: Final = "none"
ALL: Final = "all"
REFUSED: Final = 1

_Member = TypeVar("_Member", bound=StrEnum)


def arguments(parser: ArgumentParser) -> None:
    """The answers; --scope, which holds a pattern here, --by and --json come with every sub-command."""
    kinds = f"{', '.join(MemoryKind)}; with commas, or '{ALL}' or '{NONE}'"
    parser.add_argument("--merge", metavar="KINDS", help=f"what may be merged without a person: {kinds}")
    parser.add_argument("--never", metavar="KINDS", help="what no proposal may ever touch, in the same words")
    parser.add_argument(
        "--keep-days", type=int, metavar="N", help="a retention duty: younger records stay as they are; 0 is none"
    )
    parser.add_argument("--trigger", choices=[str(word) for word in Trigger], help="when the scope is planned")
    parser.add_argument("--every", type=int, metavar="N", help="new records that make a plan; means --trigger records")


def run(options: Mapping[str, Any]) -> str:
    """The answer to print. Writes only when something was answered. `options["by"]` is in whose name.

    Raises CommandError: status 2 for what cannot be meant, 1 when somebody else changed the policy meanwhile.
    """
    pattern = options["scope"]
    if not pattern:
        raise CommandError(
            "Say for which scopes: --scope 'team/anna', 'team/*' for all below it, or '*' for all.",
            returncode=NOT_DONE,
        )
    try:
        rules.check_pattern(pattern=pattern)
        answers = _answers(options)
        if not answers.given:
            return _asked(pattern, as_json=options["json"])
        row = asking.answer(pattern=pattern, answers=answers, by=options["by"])
    except PolicyError as fault:
        raise CommandError(str(fault), returncode=NOT_DONE) from fault
    except revising.Conflict as conflict:
        raise CommandError(f"{conflict} Look at it, then answer again.", returncode=REFUSED) from conflict
    return _stored(row, as_json=options["json"])


def _answers(options: Mapping[str, Any]) -> Answers:
    return Answers(
        merge=_kinds("--merge", options["merge"]),
        never=_kinds("--never", options["never"]),
        keep_days=options["keep_days"],
        trigger=Trigger(options["trigger"]) if options["trigger"] else None,
        every=options["every"],
    )


def _kinds(option: str, words: str | None) -> tuple[MemoryKind, ...] | None:
    if words is None or words.strip() in (NONE, ALL):
        return None if words is None else tuple(MemoryKind) if words.strip() == ALL else ()
    named = [word.strip().lower() for word in words.split(",") if word.strip()]
    unknown = next((word for word in named if word not in set(MemoryKind)), None)
    if unknown is not None or not named:
        taken = f"{', '.join(MemoryKind)}, with commas, or {ALL} or {NONE}"
        raise PolicyError(f"{option} takes {taken}; {visible(words[:40])!r} is not that.")
    return tuple(MemoryKind(word) for word in named)


# --- in words ---------------------------------------------------------------------------------------------------------


def _asked(pattern: str, *, as_json: bool) -> str:
    row = revising.wider(pattern=pattern)
    held = rules.Policy.from_dict(row.body) if row else rules.Policy()
    if as_json:
        return _document(pattern, row, held, stored=False)
    where = _where(pattern, row)
    lines = [f"{where} Nothing was changed. The four questions, and what holds for {visible(pattern)} now:", ""]
    for question in QUESTIONS:
        holds = question.unanswered if row is None else _holds(question.name, held)
        lines += [f"{question.words}  {question.option}", f"  {question.hint}", f"  now: {holds}"]
        lines += [f"    {choice.value:<11} {choice.words}" for choice in question.choices]
    return "\n".join(lines)


def _where(pattern: str, row: Policy | None) -> str:
    if row is None:
        return f"No policy covers {visible(pattern)}."
    if row.pattern == pattern:
        return f"{visible(pattern)} has a policy, version {row.version}."
    return f"{visible(pattern)} has no policy of its own; that of {visible(row.pattern)} holds."


def _holds(name: str, held: rules.Policy) -> str:
    if name == "merge":
        return _listed(held.mergeable) if held.merge else "nothing: merging is off"
    if name == "never":
        return _listed(held.untouchable)
    if name == "keep_days":
        return f"{held.keep_days} days" if held.keep_days else "no duty"
    return f"records, every {held.every_records}" if held.trigger is Trigger.RECORDS else str(held.trigger)


def _listed(kinds: tuple[MemoryKind, ...]) -> str:
    return "every kind" if kinds == tuple(MemoryKind) else ", ".join(kinds) or "nothing"


def _stored(row: Policy, *, as_json: bool) -> str:
    held = rules.Policy.from_dict(row.body)
    if as_json:
        return _document(row.pattern, row, held, stored=True)
    lines = [f"The policy of {visible(row.pattern)} is version {row.version}, by {visible(row.updated_by)}."]
    lines += [f"  {question.words}  {_holds(question.name, held)}" for question in QUESTIONS]
    on = [name for name in ("compact", "archive", "prune") if getattr(held, name)]
    lines.append(f"  On besides merging and promoting: {', '.join(on) or 'nothing'}.")
    return "\n".join(lines)


def _document(pattern: str, row: Policy | None, held: rules.Policy, *, stored: bool) -> str:
    document = {
        "pattern": pattern,
        "stored": stored,
        "holds": row.pattern if row else None,
        "version": row.version if row else None,
        "policy": held.to_dict(),
    }
    return json.dumps(document, indent=2, ensure_ascii=False)

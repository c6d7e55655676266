"""What the sub-commands of `memory` that write, edit and admit programs take on the command line.

Each sets `act`: the function that is given standard output and the options.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, get_args

from memory_site.management.memory import core, held, indexing, intake, reading, tokens, writing
from observations.calls import schemas
from observations.calls.shapes import MOST_ITEMS
from observations.ingest import EVERY_TURNS
from observations.records import MemoryKind, StatedBy
from observations.retrieval.large import LARGE

_SCOPE = "whose memory: the scope's exact name"
_LINES = f"a file of JSON lines, or - for standard input; handed on in parts of {MOST_ITEMS}"


def add(commands: Any) -> None:
    """Every one of them."""
    _claims(commands)
    _rows(commands)
    _files(commands)
    _requests(commands)
    _reads(commands)
    _core(_nested(commands, "core", "the labelled texts that are in every prompt of a scope", "verb"))
    _intake(_nested(commands, "intake", "whether the turns of a scope are read in the background", "verb"))
    _held(_nested(commands, "held", "claims whose turn says only a part of them, until a person decides", "verb"))
    _index(commands)
    _tokens(_nested(commands, "token", "the keys of programs", "verb"))


def _index(commands: Any) -> None:
    says = "make approximate indexes for large scopes, and drop those of scopes that became small"
    parser = _command(commands, "index", indexing.run, says)
    parser.add_argument("--scope", metavar="NAME", default="*", help="a scope, or 'prefix/*' (default: all)")
    from_here = "rows from which a scope is large (default: %(default)s)"
    parser.add_argument("--at-least", type=int, default=LARGE, metavar="N", help=from_here)
    parser.add_argument("--list", action="store_true", help="only say which are large and which have an index")


def _nested(commands: Any, name: str, says: str, dest: str) -> Any:
    parser = commands.add_parser(name, help=says, description=says)
    return parser.add_subparsers(dest=dest, required=True, metavar=dest.upper())


def _command(commands: Any, name: str, act: Callable[..., None], says: str) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=says, description=says)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(act=act)
    return parser


def _scope(parser: argparse.ArgumentParser, says: str = _SCOPE) -> None:
    parser.add_argument("--scope", metavar="NAME", required=True, help=says)


def _claims(commands: Any) -> None:
    new = "keep one claim, or acknowledge the row that says it already; a scope of a new name is made"
    remember = _command(commands, "remember", writing.remember, new)
    _scope(remember)
    correct = _command(
        commands,
        "correct",
        writing.correct,
        "put a new claim in the place of one row; the old one stays in its history",
    )
    correct.add_argument("observation", metavar="OBS", help="the row that is wrong, such as obs_12")
    correct.add_argument("--fresh", action="store_true", help="start its evidence fresh (default: take it over)")
    correct.add_argument("--version-read", type=int, metavar="N", help="refuse when the row is at another version")
    for parser in (remember, correct):
        parser.add_argument("text", metavar="TEXT", help="one sentence that stands by itself")
        for part in ("subject", "predicate", "object"):
            parser.add_argument(f"--{part}", metavar="WORDS", help=f"the {part} of the claim, by which it is compared")
        parser.add_argument("--kind", choices=[*MemoryKind], help="how fast it fades (default: fact)")
        parser.add_argument(
            "--stated-by",
            choices=[*StatedBy],
            default=StatedBy.OPERATOR,
            help="whose word it is (default: %(default)s)",
        )
        parser.add_argument("--confidence", type=float, metavar="0..1", help="default: 0.9 for a person's word")
        parser.add_argument("--source", metavar="ADDRESS", default="", help="what it rests on (default: you)")
        parser.add_argument("--quote", metavar="WORDS", default="", help="the words there that say so")
        parser.add_argument("--external-id", metavar="ID", help="your own id for the row")


def _rows(commands: Any) -> None:
    retire = _command(commands, "retire", writing.retire, "take one row out of the reads; nothing is lost")
    retire.add_argument("--why", choices=get_args(schemas.Why), default="other", help="default: %(default)s")
    restore = _command(commands, "restore", writing.restore, "bring one retired row back")
    taking = _command(
        commands, "take-back", writing.take_back, "undo that the background put a row in the place of another"
    )
    history = _command(commands, "history", reading.history, "how a row came to be and what became of it")
    for parser in (retire, restore, taking, history):
        parser.add_argument("observation", metavar="OBS", help="the row, such as obs_12")


def _files(commands: Any) -> None:
    facts = _command(commands, "facts", writing.facts, "keep the facts of a file about one user, each said by a person")
    facts.add_argument(
        "file", metavar="FILE", help=f"{_LINES}; each with `text`, and `author` where it is not --author"
    )
    facts.add_argument("--about", metavar="NAME", required=True, help="the user whom the facts are about")
    facts.add_argument("--author", metavar="NAME", help="who said those that name nobody")
    facts.add_argument("--role", default="user", help="the author's: user, human or operator (default: %(default)s)")
    observe = _command(
        commands, "observe", writing.observe, "record turns word for word, and hear what will become of extraction"
    )
    observe.add_argument("text", metavar="TEXT", nargs="?", help="what was said, of one turn")
    observe.add_argument("--speaker", metavar="NAME", help="who said it")
    observe.add_argument("--role", help="the speaker's: user, assistant, tool ...")
    observe.add_argument("--session", metavar="ID", help="the conversation it is part of")
    observe.add_argument("--file", metavar="FILE", help=_LINES)
    for parser in (facts, observe):
        _scope(parser)


def _requests(commands: Any) -> None:
    forget = _command(
        commands, "forget", writing.forget, "ask that something be forgotten for good; decided in the admin's queue"
    )
    forget.add_argument("observations", metavar="OBS", nargs="*", help="rows, such as obs_12")
    forget.add_argument("--subject-of", metavar="OBS", help="everything about the subject of this row")
    forget.add_argument("--everything", action="store_true", help="all that the scope holds")
    residue = _command(
        commands, "residue", writing.residue, "hand in what was noticed in a run, for the prompts of three days"
    )
    residue.add_argument("items", metavar="ITEM", nargs="+", help="descriptions, at most seven")
    residue.add_argument("--session", metavar="ID", default="", help="the run")
    for parser in (forget, residue):
        _scope(parser)


def _reads(commands: Any) -> None:
    prompt = _command(commands, "prompt", reading.prompt, "the memory block of a scope, as a prompt is given it")
    _scope(prompt)
    prompt.add_argument("about", metavar="ABOUT", nargs="?", default="", help="what the agent is asked just now")
    prompt.add_argument("--session", metavar="ID", default="", help="show the last turns of this session")
    prompt.add_argument("--k", type=int, default=10, help="how many rows at most (default: %(default)s)")
    prompt.add_argument("--longest", type=int, default=12_000, help="characters at most (default: %(default)s)")
    prompt.add_argument("--goals", default="", help="what the agent is for: shows episodes and summaries too")
    prompt.add_argument("--max-tokens", type=int, metavar="N", help="tokens at most, counted as three bytes each")
    prompt.add_argument("--as-of", metavar="TIME", help="what would have been told then (ISO 8601, with its zone)")
    prompt.add_argument("--explain", action="store_true", help="print also what was left out, marked and chosen by")
    told = _command(commands, "told", reading.told, "what an agent was told: one answer, its rows as they stand now")
    _scope(told)
    told.add_argument("answer", metavar="ANSWER", nargs="?", default="", help="the id that came with the answer")
    told.add_argument("--at", metavar="TIME", help="the last answer given by then (ISO 8601, with its zone)")


def _core(verbs: Any) -> None:
    listed = _command(verbs, "list", core.core, "every core memory of a scope")
    show = _command(verbs, "show", core.core, "the text of one, byte for byte")
    create = _command(verbs, "create", core.core, "make one; a scope of a new name is made")
    append = _command(verbs, "append", core.core, "add a line at the end")
    replace = _command(verbs, "replace", core.core, "replace the one occurrence of a string, byte for byte")
    rethink = _command(verbs, "rethink", core.core, "write the whole text anew")
    undo = _command(verbs, "undo", core.core, "take the newest edit back; undoing an undo brings it back")
    revisions = _command(verbs, "revisions", core.core, "the edits, newest first: who, when, and what it then said")
    for parser in (listed, show, create, append, replace, rethink, undo, revisions):
        _scope(parser)
        if parser is not listed:
            parser.add_argument("label", metavar="LABEL", help="such as human or style")
    for parser in (append, replace, rethink, undo):
        parser.add_argument("--revision", type=int, metavar="N", help="refuse when another edit was faster")
    create.add_argument("value", metavar="TEXT", nargs="?", default="", help="what it says; - reads standard input")
    create.add_argument("--limit", type=int, metavar="N", help="characters at most (default: 2000)")
    create.add_argument("--description", metavar="WORDS", help="what it is for")
    create.add_argument("--read-only", action="store_true", help="programs cannot edit it")
    append.add_argument("text", metavar="TEXT", help="the line; - reads standard input")
    replace.add_argument("old", metavar="OLD", help="what stands there exactly once")
    replace.add_argument("new", metavar="NEW", help="what is to stand there")
    rethink.add_argument("value", metavar="TEXT", help="all it is to say; - reads standard input")
    revisions.add_argument("--limit", type=int, metavar="N", default=50, help="default: %(default)s")
    revisions.add_argument("--cursor", default="", help="where the page before ended")


def _intake(verbs: Any) -> None:
    status = _command(verbs, "status", intake.status, "whether turns are read, and how many wait")
    enable = _command(verbs, "enable", intake.enable, "have turns read from now on; a scope of a new name is made")
    disable = _command(verbs, "disable", intake.disable, "stop reading; what was read stays")
    run = _command(verbs, "run", intake.run, "read now what waits; asks the model")
    again = _command(verbs, "ask-again", intake.ask_again, "have turns wait again that were given up unanswered")
    for parser in (status, enable, disable, run, again):
        _scope(parser)
    enable.add_argument(
        "--every",
        type=int,
        metavar="N",
        default=EVERY_TURNS,
        help="so many turns wait before they are read (%(default)s)",
    )
    enable.add_argument("--from-start", action="store_true", help="read the turns that are stored already as well")
    enable.add_argument(
        "--residue", action=argparse.BooleanOptionalAction, help="keep what agents notice in a run (default: as it is)"
    )
    run.add_argument("--limit", type=int, metavar="N", help="turns at most (default: all)")


def _held(verbs: Any) -> None:
    listed = _command(verbs, "list", held.listed, "what is held back, with its turn's words and why it is doubted")
    listed.add_argument("--scope", metavar="NAME", default="*", help="a scope, or 'prefix/*' (default: all)")
    listed.add_argument("--limit", type=int, metavar="N", default=50, help="rows at most (default: %(default)s)")
    release = _command(verbs, "release", held.release, "put claims into the reads")
    discard = _command(verbs, "discard", held.discard, "take claims off the list for good")
    again = _command(verbs, "again", held.again, "take a release back")
    for parser in (release, discard, again):
        parser.add_argument("observations", metavar="OBS", nargs="+", help="claims, such as obs_12")


def _tokens(verbs: Any) -> None:
    create = _command(verbs, "create", tokens.create, "make one; it is shown once")
    create.add_argument("name", metavar="NAME", help="which program it is for")
    create.add_argument(
        "--scopes", metavar="PATTERN", required=True, help="'team/*' for all below team, or one exact name"
    )
    create.add_argument("--no-read", action="store_true", help="it may not read")
    create.add_argument("--write", action="store_true", help="it may write; that includes asking people")
    create.add_argument("--propose", action="store_true", help="it may put requests before people")
    create.add_argument("--speaks-for-user", action="store_true", help="its word for the user's is believed unquoted")
    create.add_argument("--expires", metavar="DATE", help="the day it ends (default: never)")
    _command(verbs, "list", tokens.listed, "every token, without its secret")
    revoke = _command(verbs, "revoke", tokens.revoke, "close one for good, from its next request on")
    revoke.add_argument("key_id", metavar="KEY_ID", help="the part after pal_, as `token list` shows it")

"""`manage.py memory`: what people write, find, import, export and admit, and whether all is well."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from consolidation.management.failing import OneSentence
from memory_site.management.memory import files, keys, parsers, reading, standing
from observations.records import MemoryKind, StatedBy
from observations.retrieval import CALL_SITES

EXIT = "Exit status: 0 all done, 1 done in part, 2 not done; what is wrong is one sentence on standard error."
FIELDS = """
Each line is one JSON object: `text`, and where they are known `id`, `scope`, `created_at` (ISO 8601; UTC without a
zone), `subject`, `predicate`, `object`, `confidence`, `stated_by` (user, operator, agent, tool, outside), `memory_kind`
(preference, identity, fact, state, episode, note), `half_life_days`, `valid_from`, `valid_to`, `source_uris`, and
`supersedes` (the id of an observation that this one replaces). A line with `speaker`,
`source_uri` or `query` and `response` is an episode, unless `kind` says otherwise. Other fields are left alone. Lines
that are already there are skipped, so a file can be imported again.
"""


class Command(OneSentence):
    """One sub-command per doorway; each is one function of memory_site.management.memory."""

    help = f"Writes, finds, imports, exports, pauses and verifies memory, and makes tokens for programs. {EXIT}"

    def add_arguments(self, parser: CommandParser) -> None:
        """The sub-commands and their options."""
        commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
        self._import(commands.add_parser("import", help="store the lines of a JSONL file", description=FIELDS))
        self._export(commands.add_parser("export", help="write memory as lines that `import` reads"))
        self._keys(commands.add_parser("keys", help="ask the model for keys that observations lack"))
        self._search(commands.add_parser("search", help="find observations of one scope by words and meaning"))
        paused = "planning and applying refuse while reads and writes go on"
        pause = commands.add_parser("pause", help=f"pause a scope, or everything: {paused}")
        pause.add_argument("--reason", default="", help="why, shown wherever it matters (one line)")
        resume = commands.add_parser("resume", help="end a pause")
        for parser in (pause, resume):
            parser.add_argument("--scope", metavar="NAME", help="one scope (default: everything)")
        self._holding(commands)
        parsers.add(commands)
        verify = commands.add_parser(
            "verify", help="run the invariants over the whole store; exit 1 when one is violated"
        )
        verify.add_argument("--json", action="store_true", help="print JSON")

    @staticmethod
    def _holding(commands: Any) -> None:
        hold = commands.add_parser("hold", help="place a hold on a scope: nothing is planned or applied against it")
        hold.add_argument("--until", default="", metavar="DATE", help="the day it ends (default: open-ended)")
        hold.add_argument("--reason", required=True, help="why (one line)")
        release = commands.add_parser("release", help="lift the hold of a scope")
        for parser in (hold, release):
            parser.add_argument("--scope", metavar="NAME", required=True, help="the scope")

    def _import(self, parser: CommandParser) -> None:
        parser.add_argument("file", metavar="FILE", help="a JSONL file in UTF-8, or - for standard input")
        where = parser.add_mutually_exclusive_group()
        where.add_argument("--scope", metavar="NAME", help="put every line into this scope, whatever it says itself")
        where.add_argument(
            "--scope-field", metavar="FIELD", help="the field that names each line's scope (default: scope)"
        )
        parser.add_argument("--no-embed", action="store_true", help="leave the vectors to the worker")
        parser.add_argument("--json", action="store_true", help="print the report as JSON, with every refused line")

    def _export(self, parser: CommandParser) -> None:
        parser.add_argument("--scope", metavar="NAME", default="*", help="a scope, or 'prefix/*' (default: all)")
        parser.add_argument(
            "--output", metavar="FILE", help="write this file whole or not at all (default: standard output)"
        )

    def _keys(self, parser: CommandParser) -> None:
        parser.add_argument("--scope", metavar="NAME", default="*", help="a scope, or 'prefix/*' (default: all)")
        parser.add_argument("--later", action="store_true", help="leave the asking to a worker, and end at once")
        parser.add_argument("--json", action="store_true", help="print JSON")

    def _search(self, parser: CommandParser) -> None:
        parser.add_argument("query", metavar="QUERY", help="a question or some words")
        parser.add_argument("--scope", metavar="NAME", required=True, help="whose memory to search")
        parser.add_argument("--k", type=int, default=CALL_SITES["search"], help="how many rows (default: %(default)s)")
        parser.add_argument("--subject", default="", metavar="NAME", help="only rows about this subject")
        parser.add_argument("--kind", choices=[*MemoryKind], help="only rows of this kind")
        parser.add_argument("--stated-by", choices=[*StatedBy], help="only rows on this word")
        parser.add_argument("--said-from", metavar="DATE", help="only rows first said then or later (ISO 8601)")
        parser.add_argument("--said-before", metavar="DATE", help="only rows first said before then")
        when = parser.add_mutually_exclusive_group()
        when.add_argument("--as-of", metavar="DATE", help="what was believed at that moment, not what is current")
        when.add_argument("--include-history", action="store_true", help="also what was replaced or archived")
        parser.add_argument("--explain", action="store_true", help="say why each row stands where it does")
        parser.add_argument("--json", action="store_true", help="print JSON, with all of what --explain says")

    def handle(self, *args: Any, **options: Any) -> None:  # Django's own signature
        """Hands the options to the sub-command."""
        if (act := options.get("act")) is not None:
            act(self.stdout, options)
            return
        match options["command"]:
            case "import":
                files.import_file(
                    self.stdout,
                    file=options["file"],
                    scope=options["scope"],
                    scope_field=options["scope_field"],
                    as_json=options["json"],
                    embed=not options["no_embed"],
                )
            case "export":
                files.export_file(self.stdout, pattern=options["scope"], output=options["output"])
            case "keys":
                act = keys.ask_later if options["later"] else keys.give_keys
                act(self.stdout, pattern=options["scope"], as_json=options["json"])
            case "search":
                reading.search_scope(self.stdout, self.stderr, options)
            case "pause":
                standing.pause(self.stdout, scope=options["scope"], reason=options["reason"])
            case "resume":
                standing.resume(self.stdout, scope=options["scope"])
            case "hold":
                standing.hold(self.stdout, scope=options["scope"], until=options["until"], reason=options["reason"])
            case "release":
                standing.release(self.stdout, scope=options["scope"])
            case _:
                standing.verify(self.stdout, as_json=options["json"])

"""`manage.py probe`: whether reading finds what it should, asked with suites of questions whose answers are known.

Exit status: 0 done, 1 a gate failed (nothing may be concluded, or a forbidden record came back), 2 nothing was done.
"""

from __future__ import annotations

import json
from argparse import SUPPRESS, ArgumentParser
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from django.core.management.base import CommandError, CommandParser
from tqdm import tqdm

from consolidation import probes as rules
from consolidation import probing
from consolidation.management import probed
from consolidation.management.failing import NOT_DONE, Incomplete, OneSentence
from consolidation.management.who import operating_user
from consolidation.models import Probe, ProbeRun, Suite
from consolidation.operations import visible
from consolidation.probes import Figures
from observations.models import Scope

GATE: Final = 1
RUNS_SHOWN: Final = 20
FORMAT: Final = """
A probe file is JSON lines, or a YAML list with the same fields. Each line asks: query, with expected (external ids or
ours, every one should come) or expected_texts; forbidden (none may come), outdated (earlier values), category, negative
(it wants no answer), as_of (asked of what was believed then). A line with unit and ids says which records say the same.
Questions with expected_observation_ids, and dated facts with probe, subject, predicate, object, valid_from and id, are
read as they stand.
"""


class Command(OneSentence):
    """One call per sub-command."""

    help = "Measures reading with suites of probes: imports them, runs them, lists and shows them."

    def add_arguments(self, parser: CommandParser) -> None:
        """The words of the command line."""
        parser.epilog = " ".join(FORMAT.split())
        _everywhere(parser, default=None, flag=False)
        verbs = parser.add_subparsers(dest="verb", title="sub-commands", required=True)
        for name, (text, arguments) in _VERBS.items():
            verb = verbs.add_parser(name, help=text, description=text)
            _everywhere(verb, default=SUPPRESS, flag=SUPPRESS)
            arguments(verb)

    def handle(self, *args: Any, **options: Any) -> None:  # Django's own signature
        """Does the sub-command; CommandError carries the exit status."""
        options["by"] = (options["by"] or operating_user())[:150]
        act: Callable[[dict[str, Any]], None] = getattr(self, f"_{options['verb']}")
        act(options)

    def _import(self, options: dict[str, Any]) -> None:
        scope = _scope(options["scope"])
        sheet = _sheet(options["file"])
        try:
            suite, resolved = probing.import_suite(scope=scope, name=options["name"], sheet=sheet, by=options["by"])
        except probing.NotImported as refusal:
            raise CommandError(str(refusal), returncode=NOT_DONE) from refusal
        self._say(options, probed.imported(suite, resolved), probed.import_document(suite, resolved))

    def _run(self, options: dict[str, Any]) -> None:
        scope, k = _scope(options["scope"]), options["k"]
        if not 1 <= k <= 100:
            raise CommandError("--k is a number of places from 1 to 100.", returncode=NOT_DONE)
        suite = Suite.objects.filter(scope=scope, name=options["what"]).select_related("scope").first()
        if suite is not None:
            with self._bar(suite.probes.count()) as bar:
                figures = probing.run_suite(suite=suite, by=options["by"], k=k, progress=bar.update).figures
        else:
            figures = self._run_file(scope, options["what"], k)
        title = f"{options['what']} in {scope.name}"
        self._say(options, probed.report(title, figures), {"scope": scope.name, **rules.figures_json(figures)})
        if figures.gates:
            raise Incomplete(f"A gate failed: {'; '.join(figures.gates)}.", returncode=GATE)

    def _run_file(self, scope: Scope, name: str, k: int) -> Figures:
        """A file's probes, asked and not kept."""
        if not Path(name).is_file():
            where = f"{visible(scope.name)} has no suite {visible(name[:80])!r}"
            raise CommandError(f"{where}, and there is no such file: see `manage.py probe list`.", returncode=NOT_DONE)
        resolved = probing.resolve(scope=scope, sheet=_sheet(name))
        if problem := probing.nothing(resolved=resolved, scope=scope):
            raise CommandError(problem, returncode=NOT_DONE)
        for line in probed.left_out(resolved):
            self.stderr.write(line)
        with self._bar(len(resolved.probes)) as bar:
            return probing.count(
                world=probing.Stored(scope=scope), asked=resolved.probes, units=resolved.units, k=k, progress=bar.update
            )

    def _list(self, options: dict[str, Any]) -> None:
        suites = Suite.objects.select_related("scope").order_by("scope__name", "-pk")
        if options["scope"]:
            suites = suites.filter(scope=_scope(options["scope"]))
        rows = list(suites)
        newest = list(ProbeRun.objects.filter(suite__in=rows).order_by("suite_id", "-pk").distinct("suite_id"))
        holding = frozenset(Suite.objects.in_force().values_list("pk", flat=True))
        runs = {run.suite_id: run for run in newest}
        documents = [probed.suite_document(suite, runs.get(suite.pk), in_force=suite.pk in holding) for suite in rows]
        self._say(options, probed.listing(rows, newest, holding), {"suites": documents})

    def _show(self, options: dict[str, Any]) -> None:
        suite = self._suite(options)
        probes = list(Probe.objects.filter(suite=suite).order_by("number"))
        runs = list(ProbeRun.objects.filter(suite=suite).select_related("plan").order_by("-pk")[:RUNS_SHOWN])
        document = {
            "suite": suite.name,
            "scope": suite.scope.name,
            "probes": [probed.probe_document(probe) for probe in probes],
            "runs": [probed.run_document(run) for run in runs],
        }
        self._say(options, probed.shown(suite, probes, runs), document)

    def _export(self, options: dict[str, Any]) -> None:
        self.stdout.write(probing.suite_file(suite=self._suite(options)))

    def _propose(self, options: dict[str, Any]) -> None:
        scope, most = _scope(options["scope"]), options["n"]
        if not 1 <= most <= probing.MOST_PROPOSED:
            raise CommandError(f"-n is a number from 1 to {probing.MOST_PROPOSED}.", returncode=NOT_DONE)
        drafts = probing.propose(scope=scope, most=most)
        if not drafts and not options["json"]:
            where = f"every row of {visible(scope.name)} that reached a prompt in the last 90 days has a probe"
            raise CommandError(f"Nothing is proposed: {where}, or none did.", returncode=NOT_DONE)
        text = probing.draft_file(scope=scope, drafts=drafts)
        self._say(options, text, {"scope": scope.name, "drafts": [probed.draft_document(draft) for draft in drafts]})

    def _suite(self, options: dict[str, Any]) -> Suite:
        scope = _scope(options["scope"])
        suite = Suite.objects.filter(scope=scope, name=options["what"]).select_related("scope").first()
        if suite is None:
            raise CommandError(
                f"{visible(scope.name)} has no suite {visible(options['what'][:80])!r}: see `manage.py probe list`.",
                returncode=NOT_DONE,
            )
        return suite

    def _say(self, options: dict[str, Any], text: str, document: dict[str, Any]) -> None:
        self.stdout.write(json.dumps(document, indent=2, ensure_ascii=False) if options["json"] else text)

    def _bar(self, total: int) -> tqdm[Any]:
        return tqdm(total=total, unit=" probes", disable=not self.stderr.isatty(), leave=False)


def _everywhere(parser: ArgumentParser, *, default: Any, flag: Any) -> None:
    parser.add_argument("--scope", default=default, metavar="NAME", help="whose memory is asked")
    parser.add_argument("--by", default=default, metavar="WHO", help="in whose name; the user of this machine else")
    parser.add_argument("--json", action="store_true", default=flag, help="print JSON")


def _importing(parser: ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a file of probes: JSON lines, or YAML (.yaml, .yml)")
    parser.add_argument("--name", required=True, metavar="NAME", help="what the suite is called")


def _running(parser: ArgumentParser) -> None:
    parser.add_argument("what", metavar="NAME_OR_FILE", help="a suite; or a file, whose run is not kept")
    parser.add_argument("--k", type=int, default=rules.K, help="places of an answer that count (default: %(default)s)")


def _naming(parser: ArgumentParser) -> None:
    parser.add_argument("what", metavar="NAME", help="a suite")


def _proposing(parser: ArgumentParser) -> None:
    parser.add_argument("-n", type=int, default=20, metavar="N", help="how many at most (default: %(default)s)")


def _listing(parser: ArgumentParser) -> None:
    pass


_VERBS: Final[dict[str, tuple[str, Callable[[ArgumentParser], None]]]] = {
    "import": ("Keep a file of probes as a suite, in force for its scope from then on.", _importing),
    "run": ("Ask every probe of a suite or file, and count what came.", _running),
    "list": ("List the suites, each with its newest run.", _listing),
    "export": ("Print a suite as a YAML file, to be edited and imported under a new name.", _naming),
    "propose": ("Print a YAML draft of probes: rows that reached prompts most often and have none.", _proposing),
    "show": ("Show one suite: its probes and its runs.", _naming),
}


def _scope(name: str | None) -> Scope:
    if not name:
        raise CommandError("Say in which scope: --scope NAME.", returncode=NOT_DONE)
    scope = Scope.objects.filter(name=name).first()
    if scope is None:
        raise CommandError(f"There is no scope {visible(name[:80])!r}.", returncode=NOT_DONE)
    return scope


def _sheet(name: str) -> rules.Sheet:
    path = Path(name)
    try:
        return probing.read_file(name=path.name, data=path.read_bytes())
    except OSError as error:
        why = f"The file {visible(path.name)} cannot be read: {error.strerror}."
        raise CommandError(why, returncode=NOT_DONE) from error
    except probing.NotImported as refusal:
        raise CommandError(str(refusal), returncode=NOT_DONE) from refusal

"""`manage.py consolidate`: plan (which is what it does when nothing is said), apply, undo, explain, decide, measure.

Planning writes nothing to memory; every word that writes is a sub-command. Exit status: 0 done, 1 something of it was
refused, stale or failed (each is listed), 2 what was asked for does not exist or cannot be read.
"""

from __future__ import annotations

import json
from argparse import SUPPRESS, ArgumentParser
from collections.abc import Callable, Sequence
from typing import Any, Final

from django.core.management.base import CommandError, CommandParser
from tqdm import tqdm

from consolidation import aliases, measures, planner, projecting, review, rollout, runner
from consolidation.management import checking, finding, impact, policies, printing, queueing, setup
from consolidation.management.failing import Incomplete, OneSentence
from consolidation.management.who import operating_user
from consolidation.models import Operation, Plan
from consolidation.operations import visible
from consolidation.probes import ADVICE, Impact
from consolidation.review import ageing
from consolidation.rollout import Applied
from consolidation.runner import Outcome, Result
from observations.embedding import EmbeddingError
from observations.models import Scope, database_now

NOT_DONE: Final = 1
UNFINISHED: Final = (Outcome.STALE, Outcome.REFUSED, Outcome.FAILED)


class Command(OneSentence):
    """One call per sub-command: read the words, ask the domain once, print the answer."""

    help = (
        "Plans what would keep memory healthy and writes nothing; sub-commands apply, undo, explain, decide, measure."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        """Options that hold everywhere may stand before or after the sub-command."""
        _everywhere(parser, quiet=False)
        _planning(parser, quiet=False)
        verbs = parser.add_subparsers(dest="verb", title="sub-commands")
        for name, (help_text, arguments) in _VERBS.items():
            verb = verbs.add_parser(name, help=help_text, description=help_text)
            _everywhere(verb, quiet=True)
            arguments(verb)

    def handle(self, *args: Any, **options: Any) -> None:  # Django's own signature
        """Does the sub-command; CommandError carries the exit status."""
        options["by"] = options["by"] or operating_user()
        act: Callable[[dict[str, Any]], None] = getattr(self, f"_{options['verb'] or 'plan'}")
        try:
            act(options)
        except review.Refused as refusal:
            raise CommandError(str(refusal), returncode=NOT_DONE) from refusal

    # --- planning and applying --------------------------------------------------------------------------------------

    def _plan(self, options: dict[str, Any]) -> None:
        scopes = finding.scopes(options["scope"])
        plan = self._planned(scopes, options) if scopes else None
        applied = None
        if plan is not None and options["apply"] and not options["json"]:
            self._say(printing.plan_text(plan, scopes=scopes, explain=options["explain"]))
        if plan is not None and options["apply"]:
            applied = self._applied_plan(plan, options, scopes)
        if options["json"]:
            self._json(printing.plan_document(plan, scopes=scopes, applied=applied))
        elif plan is None or not options["apply"]:
            self._say(printing.plan_text(plan, scopes=scopes, explain=options["explain"]))
        else:
            results = applied.results if applied else []
            self._say(printing.results_text(results, plan=plan, impact=applied.impact if applied else None))
        _complain(applied.results if applied else [], plan=plan, impact=applied.impact if applied else None)

    def _planned(self, scopes: Sequence[Scope], options: dict[str, Any]) -> Plan:
        pattern = options["scope"] or "*"
        with self._bar(len(scopes), "scopes") as bar:
            plan = planner.plan(
                scopes=scopes, pattern=pattern, by=options["by"], trigger="command", progress=lambda *_: bar.update()
            )
        if options["explain"]:
            Plan.objects.filter(pk=plan.pk, explained_at=None).update(explained_at=database_now())
        return plan

    def _apply(self, options: dict[str, Any]) -> None:
        what, scopes = options["what"], finding.scopes(options["scope"])
        if what and what.startswith("op_"):
            operation = finding.operation(what, scopes)
            plan, applied = None, rollout.apply_one(operation=operation, by=options["by"])
        else:
            plan = finding.plan_of(what, options["scope"], scopes)
            act = self._applied_unattended if options["unattended"] else self._applied_plan
            applied = act(plan, options, scopes)
        self._show_results(applied.results, options, plan=plan, scopes=scopes, impact=applied.impact)

    def _applied_unattended(self, plan: Plan, options: dict[str, Any], scopes: Sequence[Scope]) -> Applied:
        """As a schedule would; a reason is what makes --by a named person's override of the trial (R94, R116)."""
        if plan.items.exclude(scope__in=scopes).exists():
            raise review.Refused(
                f"--unattended applies whole plans, and {plan} holds other scopes too: plan these alone."
            )
        reason = options["override"].strip()
        return rollout.apply_unattended(
            plan=plan, by=options["by"], override_by=options["by"] if reason else "", override_reason=reason
        )

    def _applied_plan(self, plan: Plan, options: dict[str, Any], scopes: Sequence[Scope]) -> Applied:
        total = plan.items.filter(scope__in=scopes).count()
        with self._bar(total, "operations") as bar:
            try:
                return rollout.apply_measured(
                    plan=plan,
                    by=options["by"],
                    confirmed=options["yes"],
                    progress=lambda _result: _step(bar),
                    scopes=scopes,
                )
            except rollout.TooWide as wide:
                raise review.Refused(f"{wide} (--yes confirms; nothing was applied from {plan}.)") from wide
            except rollout.SecondWanted as waits:
                how = f"`manage.py consolidate apply {plan} --yes` in another person's name (--by) applies it"
                raise review.Refused(f"{waits} {how}.") from waits

    def _impact(self, options: dict[str, Any]) -> None:
        """Ends with 1 when recall would fall, so that a script can stop there."""
        scopes = finding.scopes(options["scope"])
        plan = finding.plan_of(options["what"], options["scope"], scopes)
        try:
            found = projecting.project(plan=plan, by=options["by"], scopes=scopes, automatic=options["automatic"])
        except EmbeddingError as error:
            raise CommandError(f"The impact cannot be measured now: {error}", returncode=NOT_DONE) from error
        if options["json"]:
            self._json(impact.document(found))
        else:
            self._say(impact.text(found))
        if any(row.fell for row in found):
            raise Incomplete(f"Applying {plan} would cost recall.")

    def _undo(self, options: dict[str, Any]) -> None:
        if bool(options["what"]) == bool(options["plan"]):
            raise CommandError("Say what to undo: one operation, or --plan and a plan.", returncode=finding.NOT_FOUND)
        scopes = finding.scopes(options["scope"])
        if options["plan"]:
            plan = finding.plan_of(options["plan"], options["scope"], scopes)
            results = rollout.undo_plan(plan=plan, by=options["by"], scopes=scopes)
        else:
            plan, operation = None, finding.operation(options["what"], scopes)
            preview = runner.undo_preview(operation=operation)
            if not options["json"] and not preview.blockers:  # what blocks it is the result, said below
                self._say(printing.undo_text(preview))
            results = [runner.undo(operation=operation, by=options["by"])]
        self._show_results(results, options, plan=plan, scopes=scopes, undone=True)

    def _show_results(
        self,
        results: list[Result],
        options: dict[str, Any],
        *,
        plan: Plan | None = None,
        scopes: Sequence[Scope] = (),
        undone: bool = False,
        impact: Impact | None = None,
    ) -> None:
        if options["json"]:
            self._json(printing.results_document(results, plan=plan, scopes=scopes, impact=impact))
        else:
            self._say(printing.results_text(results, plan=plan, scopes=scopes, undone=undone, impact=impact))
        _complain(results, impact=impact)

    # --- reading ----------------------------------------------------------------------------------------------------

    def _explain(self, options: dict[str, Any]) -> None:
        operation = finding.operation(options["what"], finding.scopes(options["scope"]))
        document = printing.operation_document(operation)
        review.opened(operation=operation, by=options["by"])
        if options["json"]:
            self._json(document)
        else:
            self._say(printing.operation_text(operation, document))

    def _stats(self, options: dict[str, Any]) -> None:
        stats = measures.stats(scopes=finding.scopes(options["scope"]))
        if options["json"]:
            self._json(measures.stats_json(stats))
        else:
            self._say(measures.stats_text(stats))

    def _queue(self, options: dict[str, Any]) -> None:
        """Ends with 1 when something waits past its age, so that a script can tell somebody."""
        found = ageing.health(scopes=[scope.pk for scope in finding.scopes(options["scope"])])
        if options["json"]:
            self._json(queueing.document(found))
        else:
            self._say(queueing.text(found))
        if found.overdue:
            raise Incomplete(f"{found.overdue} items wait longer than allowed.", returncode=NOT_DONE)

    def _samples(self, options: dict[str, Any]) -> None:
        scopes = finding.scopes(options["scope"])
        if options["json"]:
            self._json(checking.samples_document(scopes))
        else:
            self._say(checking.samples_text(scopes))

    # --- deciding ---------------------------------------------------------------------------------------------------

    def _approve(self, options: dict[str, Any]) -> None:
        operation = finding.operation(options["what"], finding.scopes(options["scope"]))
        keep = finding.source(operation, options["keep"]) if options["keep"] else None
        decision = review.Decision(
            keep=keep,
            many_valued=options["both"],
            both=finding.periods(operation, options["period"]) if options["period"] is not None else (),
            text=options["text"],
            object=options["object"],
        )
        decided = review.approve(operation=operation, by=options["by"], decision=decision, reason=options["reason"])
        self._show_decision(decided, options, _after_approval(decided))

    def _agree(self, options: dict[str, Any]) -> None:
        operation = finding.operation(options["what"], finding.scopes(options["scope"]))
        agreed = review.second(operation=operation, by=options["by"])
        what_now = f"{visible(agreed.seconded_by)} agreed; `manage.py consolidate apply {agreed.op_id}` carries it out"
        self._show_decision(agreed, options, what_now)

    def _comment(self, options: dict[str, Any]) -> None:
        operation = finding.operation(options["what"], finding.scopes(options["scope"]))
        review.comment(operation=operation, by=options["by"], text=options["text"])
        if options["json"]:
            self._json(printing.operation_document(operation))
        else:
            self._say(f"Noted on {operation.op_id}, by {visible(options['by'])}. Nothing is decided by it.")

    def _reject(self, options: dict[str, Any]) -> None:
        operation = finding.operation(options["what"], finding.scopes(options["scope"]))
        decided = review.reject(operation=operation, by=options["by"], reason=options["reason"])
        self._show_decision(decided, options, "it is not asked again until its sources or the policy change")

    def _distinct(self, options: dict[str, Any]) -> None:
        operation = finding.operation(options["what"], finding.scopes(options["scope"]))
        decided = review.distinct(operation=operation, by=options["by"], reason=options["reason"])
        self._show_decision(decided, options, "its records are never proposed together again")

    def _judge(self, options: dict[str, Any]) -> None:
        operation = finding.operation(options["what"], finding.scopes(options["scope"]))
        said = checking.judge(
            operation=operation, right=options["right"], correcting=options["correct"], by=options["by"]
        )
        if options["json"]:
            self._json(printing.operation_document(operation))
        else:
            self._say(said)

    def _show_decision(self, operation: Operation, options: dict[str, Any], what_now: str) -> None:
        if options["json"]:
            self._json(printing.operation_document(operation))
        else:
            by = operation.decided_by or operation.requested_by
            self._say(f"{operation.op_id} is {operation.status.replace('_', ' ')}, by {visible(by)}: {what_now}.")

    def _alias(self, options: dict[str, Any]) -> None:
        scopes = finding.scopes(options["scope"])
        if len(scopes) != 1:
            raise CommandError(
                "Say in which scope: an alias holds in one (--scope NAME).", returncode=finding.NOT_FOUND
            )
        [scope] = scopes
        asked = aliases.request_alias(scope=scope, subject=options["subject"], name=options["name"], by=options["by"])
        self._show_decision(asked, options, f"`manage.py consolidate approve {asked.op_id} --reason ...` decides it")

    def _setup(self, options: dict[str, Any]) -> None:
        self._say(setup.run(options))

    def _policy(self, options: dict[str, Any]) -> None:
        self._say(policies.run(options))

    # --- printing ---------------------------------------------------------------------------------------------------

    def _say(self, text: str) -> None:
        self.stdout.write(text)

    def _json(self, document: dict[str, object]) -> None:
        self.stdout.write(json.dumps(document, indent=2, ensure_ascii=False))

    def _bar(self, total: int, unit: str) -> tqdm[Any]:
        """A progress bar on a terminal; nothing where the output is read by a program."""
        return tqdm(total=total, unit=f" {unit}", disable=not self.stderr.isatty(), leave=False)


def _after_approval(operation: Operation) -> str:
    if why := review.needs_second(operation=operation, policy=review.policy_of(operation.scope.name)):
        return f"{why}; `manage.py consolidate agree {operation.op_id}` in another person's name (--by) does"
    return f"`manage.py consolidate apply {operation.op_id}` carries it out"


def _step(bar: tqdm[Any]) -> None:
    bar.update()


# --- words ----------------------------------------------------------------------------------------------------------


def _everywhere(parser: ArgumentParser, *, quiet: bool) -> None:
    """`quiet`: no default of its own, so that what stood before the sub-command is kept."""
    default = SUPPRESS if quiet else None
    parser.add_argument(
        "--scope", default=default, metavar="NAME", help="one scope, or 'prefix/*'; every scope when left out"
    )
    parser.add_argument(
        "--by", default=default, metavar="WHO", help="in whose name; the user of this machine when left out"
    )
    flag = SUPPRESS if quiet else False
    parser.add_argument("--json", action="store_true", default=flag, help="print JSON")
    parser.add_argument("--yes", action="store_true", default=flag, help="confirm a plan that touches much of a scope")


def _planning(parser: ArgumentParser, *, quiet: bool = True) -> None:
    flag = SUPPRESS if quiet else False
    parser.add_argument("--explain", action="store_true", default=flag, help="list what was skipped, and why")
    parser.add_argument("--apply", action="store_true", default=flag, help="apply the plan's automatic items at once")


def _applying(parser: ArgumentParser) -> None:
    what = "a plan or an operation; the newest plan when left out"
    parser.add_argument("what", nargs="?", metavar="PLAN_OR_OP", help=what)
    parser.add_argument(
        "--unattended",
        action="store_true",
        help="as a schedule would: automatic items only, where the policy allows it and the trial is over",
    )
    parser.add_argument(
        "--override",
        default="",
        metavar="REASON",
        help="with --unattended: apply before the trial is over, in the name of --by; recorded as an event",
    )


def _projecting(parser: ArgumentParser) -> None:
    parser.add_argument("what", nargs="?", metavar="PLAN", help="a plan; the newest one when left out")
    parser.add_argument(
        "--automatic", action="store_true", help="only what a schedule would apply: not what people approved"
    )


def _undoing(parser: ArgumentParser) -> None:
    parser.add_argument("what", nargs="?", metavar="OP", help="the operation")
    parser.add_argument(
        "--plan", default="", metavar="PLAN", help="every applied operation of a plan, the last one first"
    )


def _explaining(parser: ArgumentParser) -> None:
    parser.add_argument("what", metavar="OP", help="the operation, or the beginning of its id")


def _measuring(parser: ArgumentParser) -> None:
    pass


def _approving(parser: ArgumentParser) -> None:
    _explaining(parser)
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument(
        "--keep", default="", metavar="ID", help="the record that stays, by its own id or its external one"
    )
    choice.add_argument(
        "--both", action="store_true", help="all of them are true at once: the predicate holds several values"
    )
    choice.add_argument(
        "--period",
        nargs="*",
        metavar="ID=FROM..TO",
        help="all of them are true, each in its period: as it stands, or as given here (2020-01-01..2021-06-30, either"
        " end may be left out)",
    )
    choice.add_argument("--text", default="", help="none of them: the right claim, in your words")
    parser.add_argument(
        "--object",
        default="",
        help="with --text: the value by itself, so that a later claim with another one is asked about",
    )
    parser.add_argument("--reason", default="", help="why; required for supersede, prune and alias")


def _rejecting(parser: ArgumentParser) -> None:
    _explaining(parser)
    parser.add_argument("--reason", required=True, help="why")


def _commenting(parser: ArgumentParser) -> None:
    _explaining(parser)
    parser.add_argument("text", metavar="TEXT", help="what the next reader should know")


def _naming(parser: ArgumentParser) -> None:
    parser.add_argument("subject", metavar="SUBJECT", help="the subject that is the same entity")
    parser.add_argument("name", metavar="NAME", help="the subject it is compared as from then on")


def _telling_apart(parser: ArgumentParser) -> None:
    _explaining(parser)
    parser.add_argument("--reason", default="", help="why")


_VERBS: Final[dict[str, tuple[str, Callable[[ArgumentParser], None]]]] = {
    "plan": ("Plan and print; writes nothing to memory.", _planning),
    "apply": ("Apply a plan's automatic and approved items, or one operation.", _applying),
    "impact": (
        "Show what applying a plan would do to recall@5, distinct@5 and the store's size; applies nothing.",
        _projecting,
    ),
    "undo": ("Take an applied operation back, or all of a plan.", _undoing),
    "setup": (
        "Answer what may be merged, what never, what must be kept, and when to plan.",
        setup.arguments,
    ),
    "policy": ("Show the policy of a scope or pattern, and set fields of it.", policies.arguments),
    "explain": ("Show one operation whole: sources, signals, decision, history.", _explaining),
    "stats": ("Show how large memory is, what repeats in it, and what was done.", _measuring),
    "queue": ("Show what waits for a person by risk and age; exit status 1 when something is overdue.", _measuring),
    "samples": ("List what was applied without a decision and waits to be checked, and each rule's error.", _measuring),
    "judge": ("Say whether an automatic operation was right or wrong.", checking.judging),
    "approve": ("Approve one operation as it is shown; applying it is another step.", _approving),
    "agree": ("Agree, as a second person, to what another one approved.", _explaining),
    "comment": ("Leave a remark on one operation; it decides nothing.", _commenting),
    "reject": ("Say no to one operation.", _rejecting),
    "alias": ("Ask that two subjects of a scope are treated as one entity; a decision follows.", _naming),
    "distinct": ("Say that an operation's records are different claims.", _telling_apart),
}


def _complain(results: Sequence[Result], *, plan: Plan | None = None, impact: Impact | None = None) -> None:
    """Exit with 1 when something of what was asked was not done, or recall fell (R112); all of it has been printed by
    now.
    """
    if impact is not None and impact.fell:
        raise Incomplete(f"{'; '.join(impact.fell)}. {ADVICE}", returncode=NOT_DONE)
    parts = []
    if plan is not None and (failed := printing.failures_line(plan)):
        parts.append(failed)
    undone = sum(result.outcome in UNFINISHED for result in results)
    if undone:
        parts.append(f"{undone} of {len(results)} operations were not carried out")
    if parts:
        raise Incomplete(f"Not everything was done: {' and '.join(parts)}, as listed.", returncode=NOT_DONE)

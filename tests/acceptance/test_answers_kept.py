"""Kill -9 in the middle of the questions of a plan: what was answered was paid for, and is not asked again."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from consolidation.models import Draft, Plan, Policy
from observations.llm import Outcome, Request
from observations.models import Scope
from observations.records import Outcome as Ending
from tests.acceptance.boundaries import Death, run_in_child
from tests.acceptance.engine import WORDS, items, plan
from tests.building import scope, tell
from tests.scripted import ScriptedCompleter

pytestmark = pytest.mark.django_db(transaction=True)

SESSIONS = 5  # of which each is one question
ANSWERED = 3  # before the process is killed


class Dying(ScriptedCompleter):
    """Ends its process, with everything in it, when it is asked for one answer too many."""

    def complete(self, request: Request) -> Any:
        if len(self.requests) == ANSWERED:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().complete(request)


class DyingAllAtOnce(Dying):
    """The naive control: nobody sees an answer before all have come."""

    def complete_each(self, requests: Sequence[Request]) -> Iterator[Outcome]:
        return iter(self.complete_all(requests))


def sessions(name: str) -> Scope:
    """A scope with five sessions that are old enough to be compacted, and nothing else to ask about."""
    here = scope(name)
    Policy.objects.create(pattern=name, body={"promote": False, "compact": True, "compact_after_days": 1})
    for session in range(SESSIONS):
        for week in (1, 2, 3):
            words = f"In week {week} of term {session} Ana {WORDS} again."
            root = f"doc://{session}/{week}"
            tell(words, within=here, root=root, session=f"s{session}", outcome=Ending.SUCCESS)
    return here


@pytest.fixture
def within() -> Scope:
    """The scope whose pass is killed."""
    return sessions("team-a/ana")


def retelling(request: Request) -> dict[str, Any]:
    """A summary that says each of its three episodes again."""
    term = next(number for number in range(SESSIONS) if f"of term {number} " in request.text)
    said = [f"In week {week} of term {term} Ana {WORDS} again." for week in (1, 2, 3)]
    return {"sentences": [{"text": text, "episodes": [at]} for at, text in enumerate(said)]}


def killed(within: Scope, kind: type[Dying]) -> Death:
    """A pass whose process dies after the third answer."""
    return run_in_child(lambda: plan(within, completer=kind(by_purpose={"compact": retelling})))


def test_a_pass_that_is_killed_after_three_of_five_answers_asks_for_two_when_it_is_run_again(within: Scope) -> None:
    """E1: an answer is kept in a transaction of its own before the next is paid for; no plan was made of three."""
    assert killed(within, Dying).code == -9
    assert (Draft.objects.filter(answer="ok").count(), Plan.objects.count()) == (ANSWERED, 0)
    again = ScriptedCompleter(by_purpose={"compact": retelling})
    made = plan(within, completer=again)
    assert len(again.requests) == SESSIONS - ANSWERED
    assert (made.state, len(items(made))) == (Plan.State.COMPLETE, SESSIONS)


def test_a_plan_holds_the_same_whether_or_not_a_pass_before_it_was_killed(within: Scope) -> None:
    assert killed(within, Dying).code == -9
    interrupted = plan(within, completer=ScriptedCompleter(by_purpose={"compact": retelling}))
    undisturbed = plan(sessions("team-b/ana"), completer=ScriptedCompleter(by_purpose={"compact": retelling}))
    held = [
        [(one.kind, one.text, one.approval, one.status) for one in items(made)] for made in (interrupted, undisturbed)
    ]
    assert held[0] == held[1]
    assert len(held[0]) == SESSIONS
    assert (interrupted.failures, interrupted.state) == (undisturbed.failures, undisturbed.state) == ([], "complete")


def test_the_control_that_keeps_answers_group_by_group_loses_them_all(within: Scope) -> None:
    """What the drafts are for: answers that are kept when all have come are lost with the process, and paid twice."""
    assert killed(within, DyingAllAtOnce).code == -9
    assert not Draft.objects.exists()
    again = ScriptedCompleter(by_purpose={"compact": retelling})
    plan(within, completer=again)
    assert len(again.requests) == SESSIONS

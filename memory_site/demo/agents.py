"""The write side of the demo, through the calls that agents and people make: turns, residue, core memory, requests.

An agent's token is made, used and revoked in one transaction. Its secret leaves this module nowhere, so that no secret
of a demo opens anything. No model is asked: the turns of the one scope that is read in the background wait.
"""

from __future__ import annotations

import logging
from typing import Any, Final

from django.db import transaction

from consolidation import tasks
from observations import access, ingest, outbox
from observations.calls import CALLS
from observations.models import Observation, Outbox, Scope, Token
from observations.records import Caller, Status

AGENT: Final = "pilot, the agent of the demo"
READ_IN: Final = "team/relay-platform"  # the scope whose turns are read in the background, and that keeps residue
PRIVATE: Final = "people/maya-okafor"
STEWARD: Final = "dora"
RETIRE: Final = "relay-o103"  # a user's word that a turn of today makes untrue
FORGET: Final = "maya-o025"  # of one subject, merged with what says the same in the earlier week

_SESSION: Final = "relay-026"
_TURNS: Final = (
    ("Kofi", "user", "The page about retries is right again: six attempts, then parked."),
    ("pilot", "assistant", "Then what we noted yesterday about eight attempts no longer holds. I asked to retire it."),
    ("Kofi", "user", "Can't you drop it yourself?"),
    ("pilot", "assistant", "Kofi said it, so a person decides. It waits in the queue."),
    ("Tomasz", "user", "Both consumers are at thirty-one quiet days, for the record."),
    ("Ines", "user", "For once the record can just be the record. Thank you."),
)
_NOTICED: Final = (
    "The hourly delivery report came twenty minutes late twice this morning.",
    "Three people in a row quoted the page about retries from an old copy.",
    "The staging ledger answered slowly while the nightly backup was still running.",
)
_OPEN: Final = (
    "Docs: the page about retries still says eight attempts (Kofi)",
    "Kafka: switched off on Thursday, after handover (Tomasz)",
    "SDK: Python 3.11 as the minimum (Kofi)",
)


def write(*, scopes: list[Scope]) -> bool:
    """What an agent and the people around it wrote this morning; False when this store was told it before.

    All of it or, when a call is refused, nothing. Raises observations.calls.CallRefused.
    """
    mine = {scope.name: scope for scope in scopes}
    with transaction.atomic():
        if Token.objects.filter(name=AGENT).exists():
            return False
        made = access.create_token(name=AGENT, scope_pattern=READ_IN, by=STEWARD, may_write=True)
        seen = access.verify_token(bearer=made.bearer)
        assert seen is not None
        ingest.enable_intake(scope=mine[READ_IN], by=STEWARD, residue=True)
        _core_memory(seen.caller)
        _turns_and_residue(seen.caller)
        _requests(seen.caller, mine)
        access.revoke_token(key_id=made.token.key_id, by=STEWARD)
    return True


def _person(name: str) -> Caller:
    return Caller(name=name, pattern="*", may_read=True, may_write=True, may_propose=True, person=True)


def _call(caller: Caller, name: str, **asked: object) -> Any:
    """Make a call as a doorway makes it."""
    call = CALLS[name]
    return call.run(caller=caller, asked=call.takes.model_validate(asked))


def _core_memory(agent: Caller) -> None:
    """Two texts of a team, one of them its agent's to edit; and one of a person, with an edit that was taken back."""
    ana, bela = _person("ana"), _person("bela")
    persona = {"scope": READ_IN, "label": "persona", "description": "who the agent is here"}
    says = "You are pilot. You keep the relay team's notes and say what is open. You approve nothing."
    _call(bela, "core_create", **persona, value=says, read_only=True)
    within = {"scope": READ_IN, "label": "open"}
    _call(bela, "core_create", **within, value="\n".join(_OPEN), description="what is open this week", limit=600)
    _call(agent, "core_append", **within, text="Calder Foods: single mode until the month-end close (Priya)")
    _call(agent, "core_replace", **within, old="still says eight attempts", new="says six attempts again")
    _call(bela, "core_replace", **within, old=" (Kofi)\nKafka", new=" (Kofi, done)\nKafka")
    home = {"scope": PRIVATE, "label": "household"}
    told = "Maya, Sam and Zadie live in Totterdown with Biscuit, the dog. No walnuts and no pecans in the house."
    _call(ana, "core_create", **home, value=told, description="who lives here")
    _call(ana, "core_append", **home, text="They have no car.")
    _call(ana, "core_undo", **home)


def _turns_and_residue(agent: Caller) -> None:
    turns = [
        {
            "text": text,
            "speaker": speaker,
            "role": role,
            "session": _SESSION,
            "seq": seq,
            "external_id": f"{_SESSION}-{seq:02}",
        }
        for seq, (speaker, role, text) in enumerate(_TURNS, 1)
    ]
    _call(agent, "observe", scope=READ_IN, turns=turns)
    _call(agent, "residue_hold", scope=READ_IN, items=list(_NOTICED), session=_SESSION)


def _requests(agent: Caller, mine: dict[str, Scope]) -> None:
    """An agent's to retire what a user said, a person's to forget what is known of one subject; each an operation."""
    if (pk := _row(mine[READ_IN], RETIRE)) is not None:
        _call(agent, "retire", scope=READ_IN, id=pk, why="outdated")
        _asked_now(mine[READ_IN], tasks.REVIEW_RETIRE)
    if (pk := _row(mine[PRIVATE], FORGET)) is not None:
        _call(_person(STEWARD), "forget", scope=PRIVATE, subject_of=pk)
        _asked_now(mine[PRIVATE], tasks.REVIEW_FORGET)


def _row(scope: Scope, external_id: str) -> int | None:
    """The row while it can be asked about: in a store that is older than this, people may have decided."""
    rows = Observation.objects.in_scope(scope).filter(external_id=external_id)
    rows = rows.exclude(status=Status.ERASED) if external_id == FORGET else rows.active()
    return rows.values_list("pk", flat=True).first()


def _asked_now(scope: Scope, task: str) -> None:
    """What a worker does with a request, at once and without its line in the log: the demo is whole once loaded."""
    log = logging.getLogger(outbox.__name__)
    level = log.level
    log.setLevel(logging.WARNING)
    try:
        for row in Outbox.objects.filter(scope=scope, task=task, done_at=None):
            outbox.perform(task=task, scope_id=scope.pk, key=row.key, payload=row.payload)
    finally:
        log.setLevel(level)

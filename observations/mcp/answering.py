"""From a tool's arguments to a call and back: what every tool does, over whichever transport.

Nothing is raised: what goes wrong is an answer with a code and one sentence. It holds no text of a memory, and the log
only names the kind of an error.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.db import DatabaseError, InterfaceError, OperationalError
from pydantic import BaseModel, ValidationError

from observations import access
from observations.calls import CALLS, Call, CallRefused, Right, receipts
from observations.mcp.tools import KEY, Tool, default_scope, tools_for
from observations.records import Caller

log = logging.getLogger(__name__)

Who = Callable[[], Caller]  # who calls, asked anew for every call; raises Refused

_LONGEST_NAME: Final = 40  # of a field or a tool that was named to us
_FAULTS_SHOWN: Final = 5
UNAVAILABLE: Final = "The store cannot be used just now: go on without memory, and try again later."
_UNKNOWN_TOKEN: Final = "The token is unknown, revoked or expired: whoever runs the store makes a new one."  # noqa: S105
_BROKEN: Final = "Something failed in the store and its log says what: go on without memory, and tell who runs it."


class Refused(Exception):
    """A request that is not carried out: a code and one sentence, without memory text."""

    def __init__(self, code: str, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code
        self.sentence = sentence


@dataclass(frozen=True, slots=True)
class Answer:
    """What a tool answers. `content` is the structured answer; None where it was refused and `text` says why."""

    text: str
    content: Mapping[str, Any] | None = None

    @property
    def refused(self) -> bool:
        """Whether the call was not carried out."""
        return self.content is None


def caller_of(*, bearer: str) -> Caller:
    """Whom a token names. Raises Refused; one query."""
    try:
        found = access.verify_token(bearer=bearer)
    except (DatabaseError, InterfaceError) as error:
        log.warning("a token could not be looked up (%s)", type(error).__name__)
        raise Refused("unavailable", UNAVAILABLE) from error
    if found is None:
        raise Refused("unauthorized", _UNKNOWN_TOKEN)
    return found.caller


def list_tools(*, who: Who, scope: str) -> list[Tool]:
    """The tools of whoever asks; all of them while it cannot be found out who does. Raises nothing."""
    try:
        caller = who()
    except Refused as refused:
        return [] if refused.code == "unauthorized" else tools_for(caller=None, scope=scope)
    return tools_for(caller=caller, scope=scope)


def call_tool(*, who: Who, name: str, arguments: Mapping[str, Any], scope: str) -> Answer:
    """Make the call of that name. Raises nothing."""
    try:
        return _made(name, _asked(name, arguments), who(), scope)
    except Refused as refused:
        return Answer(f"{refused.code}: {refused.sentence}")
    except CallRefused as refused:
        figures = "".join(f" [{word}: {value}]" for word, value in refused.extra.items())
        return Answer(f"{refused.code}: {refused.sentence}{figures}")
    except (OperationalError, InterfaceError) as error:
        log.warning("a tool could not use the store (%s)", type(error).__name__)
        return Answer(f"unavailable: {UNAVAILABLE}")
    except Exception as error:
        log.error("a tool failed (%s)", type(error).__name__)
        return Answer(f"internal: {_BROKEN}")


def _asked(name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    if name not in CALLS:
        raise Refused("not_found", f"There is no tool {_shown(name)}: list the tools.")
    return dict(arguments)


def _made(name: str, asked: dict[str, Any], caller: Caller, scope: str) -> Answer:
    call = CALLS[name]
    default = default_scope(caller=caller, scope=scope)
    if default:
        asked.setdefault("scope", default)
    key = asked.pop(KEY, None) if call.right is not Right.READ else None
    try:
        taken = call.takes.model_validate(asked)
    except ValidationError as error:
        raise Refused("invalid", _faults(error)) from error
    if key is None:
        content = call.run(caller=caller, asked=taken).model_dump(mode="json")
    else:
        content = _once(name, call=call, asked=asked, taken=taken, caller=caller, key=key)
    return Answer(_text(name, content), content)


def _once(
    name: str, *, call: Call, asked: Mapping[str, Any], taken: BaseModel, caller: Caller, key: object
) -> dict[str, Any]:
    """The same call with the same key is carried out once: by the receipts of the API, in the effect's transaction."""
    if not isinstance(key, str):
        raise Refused("invalid", f"Change these arguments and call again: {KEY}: it is text, such as a UUID.")
    receipts.check_key(key)
    sent = receipts.Request(
        token_id=access.token_id_of(caller=caller),
        key=key,
        address=f"tool:{name}",
        body=json.dumps(asked, sort_keys=True).encode(),  # arguments have no order
        scope=str(getattr(taken, "scope", "")),
        reads=caller.may_read,
    )
    content, replayed = receipts.once(sent, act=lambda: call.run(caller=caller, asked=taken))
    return call.gives.model_validate(content).model_dump(mode="json") if replayed else content


def _text(name: str, content: Mapping[str, Any]) -> str:
    """The answer as text: its JSON, and of a prompt the block itself, which is made to be read."""
    if name in ("prompt", "episodic_context") and content["text"]:
        return str(content["text"])
    return json.dumps(content, ensure_ascii=False)


def _faults(error: ValidationError) -> str:
    """Which arguments are wrong and what they may be; nothing of what was given."""
    faults = error.errors(include_input=False, include_url=False, include_context=False)
    told = [f"{_place(fault['loc'])}: {str(fault['msg'])[:200].rstrip('.')}" for fault in faults[:_FAULTS_SHOWN]]
    more = f"; and {len(faults) - _FAULTS_SHOWN} more" if len(faults) > _FAULTS_SHOWN else ""
    return f"Change these arguments and call again: {'; '.join(told)}{more}."


def _place(path: tuple[int | str, ...]) -> str:
    return ".".join(_shown(str(part)) for part in path) or "the arguments"


def _shown(name: str) -> str:
    """A name that somebody gave us, short and harmless."""
    return name[:_LONGEST_NAME].encode("unicode_escape").decode()

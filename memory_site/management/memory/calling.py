"""The calls of programs, made by a person at a terminal: in their own name, with every right and in every scope."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final, TypeVar

from django.core.management.base import OutputWrapper
from pydantic import BaseModel, ValidationError

from consolidation.management.who import operating_user
from memory_site.management.memory.errors import Error
from observations.calls import CALLS, CallRefused
from observations.models import Observation
from observations.records import Caller

Options = Mapping[str, Any]  # what was given on the command line, by the parser's names
_Shape = TypeVar("_Shape", bound=BaseModel)
_ID: Final = re.compile(r"(?:obs_)?([0-9]{1,18})", re.ASCII)


def person() -> Caller:
    """Whoever sits at the terminal."""
    return Caller(
        name=operating_user(),
        pattern="*",
        may_read=True,
        may_write=True,
        may_propose=True,
        speaks_for_user=True,
        person=True,
    )


def make(name: str, gives: type[_Shape], **asked: object) -> _Shape:
    """Make the call of that name; what is None was not given. Raises Error with the sentence of the refusal."""
    call = CALLS[name]
    try:
        taken = call.takes.model_validate({word: value for word, value in asked.items() if value is not None})
        answer = call.run(caller=person(), asked=taken)
    except ValidationError as error:
        raise Error(_fault(error)) from error
    except CallRefused as refused:
        raise Error(refused.sentence) from refused
    assert isinstance(answer, gives)
    return answer


def _fault(error: ValidationError) -> str:
    """The first thing that is wrong, without what was given."""
    first = error.errors(include_input=False, include_url=False, include_context=False)[0]
    field = ".".join(str(part) for part in first["loc"]) or "the options"
    return f"{field[:80]}: {str(first['msg']).rstrip('.')}."


def scope_of(observation: str) -> tuple[str, str]:
    """The scope's name and the id, as calls take it, of an observation such as obs_12. Raises Error. One query."""
    match = _ID.fullmatch(observation)
    found = (
        Observation.objects.filter(pk=int(match[1])).values_list("scope__name", flat=True).first() if match else None
    )
    if match is None or found is None:
        raise Error(f"There is no observation {observation[:40]!r}: an id reads obs_12, and `memory search` shows it.")
    return found, f"obs_{int(match[1])}"


def tell(out: OutputWrapper, answer: BaseModel, *, as_json: bool, text: str) -> None:
    """Print an answer: as one JSON document, or in words."""
    out.write(json.dumps(answer.model_dump(mode="json"), ensure_ascii=False) if as_json else text)

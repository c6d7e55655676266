"""Who may make a call: checked first, so that a refusal says nothing about what a scope holds or whether it exists."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from observations.records import Caller


class Right(StrEnum):
    """What a caller needs for a call."""

    READ = "read"
    WRITE = "write"
    PROPOSE = "propose"  # to put a request before a person; writing includes it


class Code(StrEnum):
    """Why a call is refused; a doorway translates it, an API into a status."""

    NOT_FOUND = "not_found"
    FORBIDDEN = "forbidden"
    INVALID = "invalid"  # what was given cannot be done as it is
    CONFLICT = "conflict"  # somebody else was faster; read again
    TOO_LARGE = "too_large"
    NO_MODEL = "no_model"
    UNAVAILABLE = "unavailable"  # the store cannot be used just now; nothing was written


class CallRefused(Exception):
    """A call that is not carried out. `sentence` says what to do, without memory text; `extra`: figures, ids."""

    def __init__(self, code: Code, sentence: str, extra: Mapping[str, int | str] | None = None) -> None:
        super().__init__(sentence)
        self.code = code
        self.sentence = sentence
        self.extra = dict(extra or {})


def check(*, caller: Caller, right: Right, scope: str) -> None:
    """Raise CallRefused (forbidden) unless the caller has the right and reaches the scope. No query."""
    if not _has(caller, right):
        raise CallRefused(Code.FORBIDDEN, f"This caller may not {right}: use one that may.")
    if not caller.reaches(scope):
        raise CallRefused(Code.FORBIDDEN, "This caller does not reach that scope: name one within its pattern.")


def _has(caller: Caller, right: Right) -> bool:
    if right is Right.READ:
        return caller.may_read
    if right is Right.WRITE:
        return caller.may_write
    return caller.may_propose or caller.may_write

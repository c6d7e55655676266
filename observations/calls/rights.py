"""Who may make a call, checked first, so that a refusal says nothing about what a scope holds or whether it exists; and
what the domain refuses, put into the words that every doorway translates.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from typing import Final

from django.core.exceptions import ObjectDoesNotExist
from django.db import DatabaseError, DataError, IntegrityError, InterfaceError

from observations import ingest
from observations.models import Scope
from observations.normalise import clean
from observations.records import Caller

log = logging.getLogger(__name__)


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
    KEY_USED = "key_used"  # an idempotency key that was used for another request
    IN_PROGRESS = "in_progress"  # a request with the same idempotency key is under way
    TOO_LARGE = "too_large"
    NO_MODEL = "no_model"
    UNAVAILABLE = "unavailable"  # the store cannot be used just now; nothing was written


class CallRefused(Exception):
    """A call that is not carried out. `sentence` says what to do, without memory text; `extra`: figures, ids, words."""

    def __init__(self, code: Code, sentence: str, extra: Mapping[str, int | str] | None = None) -> None:
        super().__init__(sentence)
        self.code = code
        self.sentence = sentence
        self.extra = dict(extra or {})


def check(*, caller: Caller, right: Right, scope: str) -> None:
    """Raise CallRefused (forbidden) unless the caller has the right and reaches the scope. No query."""
    if not has_right(caller=caller, right=right):
        raise CallRefused(Code.FORBIDDEN, f"This caller may not {right}: use one that may.")
    if not caller.reaches(scope):
        raise CallRefused(Code.FORBIDDEN, "This caller does not reach that scope: name one within its pattern.")


def has_right(*, caller: Caller, right: Right) -> bool:
    """Whether a caller may make calls that need the right, wherever it reaches. No query."""
    if right is Right.READ:
        return caller.may_read
    if right is Right.WRITE:
        return caller.may_write
    return caller.may_propose or caller.may_write


def find_scope(name: str) -> Scope | None:
    """The scope of exactly that name, or None. One query. Raises django.db.Error."""
    return None if clean(name)[1] else Scope.objects.filter(name=name).first()


def known_scope(name: str) -> Scope:
    """The same; raises CallRefused (not found) where there is none, in the words for a row that is not there."""
    scope = find_scope(name)
    if scope is None:
        raise CallRefused(Code.NOT_FOUND, "There is no such row in this scope: list or search what it holds.")
    return scope


_CODES: Final[Mapping[type[Exception], Code]] = {
    ingest.NotHere: Code.NOT_FOUND,
    ingest.NotCurrent: Code.CONFLICT,
    ingest.BuiltOn: Code.CONFLICT,
    ingest.UsersWord: Code.FORBIDDEN,
    ingest.Changed: Code.CONFLICT,
    ingest.NoCore: Code.NOT_FOUND,
    ingest.Taken: Code.CONFLICT,
    ingest.Moved: Code.CONFLICT,
    ingest.NotYours: Code.CONFLICT,
    ingest.ReadOnly: Code.FORBIDDEN,
    ingest.OverLimit: Code.TOO_LARGE,
}
_WORDS: Final[Mapping[type[Exception], str]] = {
    ingest.NoMatch: "no_match",
    ingest.ManyMatches: "many_matches",
    ingest.OverLimit: "over_limit",
    ingest.ReadOnly: "read_only",
    ingest.Moved: "moved",
    ingest.NotYours: "not_yours",
    ingest.NothingToUndo: "nothing_to_undo",
    ingest.Taken: "taken",
    ingest.Changed: "changed",
    ingest.NotCurrent: "not_current",
    ingest.BuiltOn: "built_on",
    ingest.UsersWord: "users_word",
    ingest.NothingToTakeBack: "nothing_to_take_back",
}


@contextmanager
def refusals() -> Iterator[None]:
    """What the domain raises, as CallRefused; `extra` has a word for the refusal, and its figures."""
    try:
        yield
    except (ingest.WriteRefused, ingest.CoreRefused, ingest.ScopeNameRefused) as refused:
        kind = type(refused)
        extra: dict[str, int | str] = {"refusal": _WORDS[kind]} if kind in _WORDS else {}
        extra |= {name: value for name in ("current", "count", "limit", "length") if (value := _figure(refused, name))}
        raise CallRefused(_CODES.get(kind, Code.INVALID), str(refused), extra) from refused
    except ObjectDoesNotExist as error:
        raise CallRefused(Code.CONFLICT, "A row was moved by somebody else just now: make the call again.") from error
    except (DatabaseError, InterfaceError) as error:
        raise _of_the_database(error) from error


def _figure(refused: Exception, name: str) -> int:
    value = getattr(refused, name, 0)
    return value if isinstance(value, int) else 0


def _of_the_database(error: Exception) -> CallRefused:
    """An error of the database without its words, which may quote what was written."""
    log.warning("a call was refused by the database (%s)", type(error).__name__)
    if isinstance(error, DataError):
        return CallRefused(Code.INVALID, "A value is too long or cannot be stored: shorten it.")
    if isinstance(error, IntegrityError):
        return CallRefused(Code.CONFLICT, "Somebody else wrote the same just now: make the call again.")
    return CallRefused(Code.UNAVAILABLE, "The store cannot be used just now and nothing was written: try again later.")

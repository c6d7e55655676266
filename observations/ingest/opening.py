"""A scope that is new is made with the first thing that is kept in it: what is refused leaves no empty scope behind."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from django.db import transaction

from observations import store
from observations.models import Scope

_T = TypeVar("_T")


def write_within(*, name: str, write: Callable[[Scope], _T], keeps: Callable[[_T], bool]) -> _T:
    """Write into the scope of that name, which is made in the transaction of the write when it is new, and is not there
    where the write raises or its answer `keeps` nothing (C6).

    One query more than the write where the scope is there, else three. Raises ScopeNameRefused and what `write` does.
    """
    scope = store.find_scope(name=name)
    if scope is not None:
        return write(scope)
    with transaction.atomic():
        answer = write(store.open_scope(name=name))
        if not keeps(answer):
            transaction.set_rollback(True)
    return answer

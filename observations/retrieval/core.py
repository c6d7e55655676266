"""What readers call."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Final, TypeVar

import numpy as np
from django.db import connection, transaction

from observations import answers, failures
from observations.embedding import Embedder, Profile
from observations.models import Scope
from observations.normalise import clean
from observations.retrieval import sites
from observations.retrieval.answers import Answer, Hit, Trust, Why
from observations.retrieval.asking import Asked, asked_of, current_embedder
from observations.retrieval.narrowing import EVERYTHING, Narrowed
from observations.retrieval.overlay import Overlay
from observations.retrieval.reading import SPARE, read
from observations.retrieval.sites import ANSWERED, CALL_SITES, COMPARING, LONGEST_QUERY, MOST
from observations.retrieval.words import by_words

log = logging.getLogger(__name__)

_SHARING: Final = 20  # rows beside which a row is seen
_USES: Final = """INSERT INTO observations_use (scope_id, call_site, answer, observation_id)
SELECT %s, %s, %s, unnest(%s::bigint[])"""


def search(
    *,
    scope: Scope,
    query: str,
    k: int,
    call_site: str,
    embedder: Embedder | None = None,
    narrowed: Narrowed = EVERYTHING,
) -> Answer:
    """The k best rows of a scope for a query, by meaning and by words; fewer only where the scope holds fewer.

    Active rows, unless `narrowed` asks for others by name. A row is found by its words at once and by its meaning once
    its vector is there. Writes one Use row per hit, unless the rows are only compared with a claim or counted. What
    somebody was told is kept. Raises ValueError for an unknown call site, and nothing else.
    """
    answer = look(scope=scope, query=query, k=k, call_site=call_site, embedder=embedder, narrowed=narrowed)
    ids = [hit.id for hit in answer.hits]
    note_uses(scope=scope, answer=answer, call_site=call_site, ids=ids)
    if call_site in ANSWERED:
        failed = () if answer.complete else ("search",)
        given = answers.Given(answer=answer.id, call_site=call_site, shown=ids, failed=failed)
        answers.note(scope=scope, given=given)
    return answer


def look(
    *,
    scope: Scope,
    query: str,
    k: int,
    call_site: str,
    embedder: Embedder | None = None,
    narrowed: Narrowed = EVERYTHING,
    overlay: Overlay | None = None,
) -> Answer:
    """As `search`, and no Use is written: for a reader that hands out a part of what it finds.

    With an `overlay` the answer is the one that the scope would give if those rows had left the reads and joined them;
    the ones that would be new bear its negative ids and no external id. Runs in a transaction that is read-only, too.
    Raises ValueError for an overlay beside `narrowed`: it is told of what is current only.
    """
    if overlay is not None and narrowed != EVERYTHING:
        raise ValueError("An overlay is read as a whole scope is: leave the read of it as it is, not narrowed.")
    if call_site not in CALL_SITES:
        raise ValueError(f"There is no call site {call_site!r}: name one of {', '.join(CALL_SITES)}.")
    text = clean(query)[0][:LONGEST_QUERY].strip()
    k = min(k, MOST)
    if not text or k < 1:
        return Answer(uuid.uuid4(), (), complete=True)
    asked = _attempt("the embedder", lambda: asked_of(text, embedder or current_embedder()))

    def reading() -> tuple[Hit, ...]:
        return read(scope, text, asked, k, sites.fades(call_site), narrowed, overlay)

    hits = _attempt("the store", lambda: _unspoilt(reading))
    return Answer(uuid.uuid4(), hits or (), complete=None not in (asked, hits))


def note_uses(*, scope: Scope, answer: Answer, call_site: str, ids: Sequence[int]) -> None:
    """Count what an answer handed out, one insert; a failure is logged and changes nothing. Nothing for call sites that
    only compare or count.
    """
    if ids and call_site not in COMPARING:
        _attempt("the count of uses", lambda: _note_uses(scope, answer, call_site, ids))


def nearest(
    *, scope: Scope, text: str, vector: np.ndarray[tuple[int], np.dtype[np.float32]] | None, profile: Profile
) -> tuple[Hit, ...]:
    """The active claims of a scope that a new claim is reconciled with, the nearest first; never a summary (R21, R126).

    `vector` None: by words alone. Writes no Use, because nothing is handed out. Raises django.db.Error: who stores what
    it was compared with has to know that it was not. Three queries.
    """
    query = clean(text)[0][:LONGEST_QUERY].strip()
    if not query:
        return ()
    asked = Asked(str(vector.tolist()), profile) if vector is not None else None
    k = CALL_SITES["nearest"]
    hits = read(scope, query, asked, k + SPARE, 0.0)
    return tuple(hit for hit in hits if hit.trust is Trust.MEDIUM and hit.why is not Why.NEITHER)[:k]


def sharing(*, scope: Scope, words: str) -> list[int]:
    """The active rows of a scope that share most with some words, the rarest counting most. Raises django.db.Error. One
    query.
    """
    ids: list[int] = by_words(scope, words).best(_SHARING).tolist()
    return ids


Read = TypeVar("Read")


def _attempt(part: str, read: Callable[[], Read]) -> Read | None:
    """A part of a read, or None when it failed."""
    try:
        return read()
    except Exception as error:  # promise 9: whatever an embedder or a driver raises, the agent that asked goes on
        failures.count(f"search: {part}")
        log.warning("search: %s failed (%s); the answer is incomplete", part, type(error).__name__)
        return None


def _unspoilt(read: Callable[[], Read]) -> Read:
    """A part of a read, within somebody's transaction in a savepoint: where it fails, that goes on as it was."""
    with transaction.atomic() if connection.in_atomic_block else nullcontext():
        return read()


def _note_uses(scope: Scope, answer: Answer, call_site: str, ids: Sequence[int]) -> None:
    """One insert: who was handed out by which answer (R51). Telemetry; without it the read stands all the same."""
    with answers.aside() as cursor:
        cursor.execute(_USES, [scope.pk, call_site, answer.id, list(ids)])

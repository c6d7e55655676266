"""The same request sent twice is carried out once: an idempotency key and the receipt of what it was answered.

The receipt is written in the transaction of the effect, so that a process killed between the two leaves neither. Its
row is taken before the effect: a second request with the key waits for the first and is given the same answer, or is
told that the first is still under way. A receipt holds ids, figures and words of ours; texts are read from the rows
again, so that what was erased in between is not given out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.db import OperationalError, connection, transaction
from django.utils.crypto import salted_hmac
from pydantic import BaseModel

from observations.calls.rights import CallRefused, Code
from observations.models import CoreRevision, Observation, Receipt

WAIT_MS: Final = 5_000  # for another request with the same key, and for any lock of the effect
TEXTS: Final = frozenset({"text", "value", "description"})  # what no receipt keeps of an answer

KEY: Final = "[!-~]{1,200}"  # printable ASCII without spaces
_LOCK_NOT_AVAILABLE: Final = "55P03"

Answer = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Request:
    """A write with a key, as it came."""

    token_id: int
    key: str
    address: str  # the path, or the tool: the same body sent elsewhere is another request
    body: bytes
    scope: str
    reads: bool = True  # whether the caller may be told texts

    @property
    def fingerprint(self) -> str:
        """Keyed, so that no text can be guessed from it; of these very bytes."""
        content = f"{self.address}\n".encode() + self.body
        return salted_hmac("observations.api.receipts", content, algorithm="sha256").hexdigest()


def check_key(key: str) -> None:
    """Raises CallRefused (invalid) for a key that is none."""
    if not re.fullmatch(KEY, key):
        raise CallRefused(
            Code.INVALID,
            "An idempotency key is 1 to 200 printable ASCII characters without spaces, such as a UUID.",
        )


def once(request: Request, *, act: Callable[[], BaseModel]) -> tuple[Answer, bool]:
    """The answer, and whether it is that of an earlier request. What `act` raises takes everything back, the key too.

    Raises CallRefused for a key that was used for another request, or whose request is still under way.
    """
    with transaction.atomic(durable=True):
        receipt_id = _take(request)
        if receipt_id is None:
            return _answered_before(request), True
        answer = act().model_dump(mode="json")
        Receipt.objects.filter(pk=receipt_id).update(answer=_without_texts(answer), status=200)
    return answer, False


def _take(request: Request) -> int | None:
    """A new receipt's id; None when there is one. Waits while a transaction that wrote the same key is open."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT set_config('lock_timeout', %s, true)", [str(WAIT_MS)])
            cursor.execute(
                "INSERT INTO observations_receipt (token_id, key, request_hash, answer, status, at)"
                " VALUES (%s, %s, %s, '{}', 0, clock_timestamp()) ON CONFLICT (token_id, key) DO NOTHING RETURNING id",
                [request.token_id, request.key, request.fingerprint],
            )
            row = cursor.fetchone()
    except OperationalError as error:
        if getattr(error.__cause__, "sqlstate", "") != _LOCK_NOT_AVAILABLE:
            raise
        raise _under_way() from None
    return None if row is None else int(row[0])


def _under_way() -> CallRefused:
    return CallRefused(Code.IN_PROGRESS, "A request with this key is still under way: send it again.")


def _answered_before(request: Request) -> Answer:
    receipt = Receipt.objects.filter(token_id=request.token_id, key=request.key).first()
    if receipt is None:  # housekeeping took it away just now
        raise _under_way()
    if receipt.request_hash != request.fingerprint:
        raise CallRefused(Code.KEY_USED, "This key was used for another request: give every request a key of its own.")
    answer: Answer = receipt.answer
    if request.reads:
        _put_texts_back(answer, scope=request.scope)
    return answer


def _parts(answer: Answer) -> Iterator[Answer]:
    """The answer itself, and the answers in its lists."""
    yield answer
    for value in answer.values():
        if isinstance(value, list):
            yield from (each for each in value if isinstance(each, dict))


def _without_texts(answer: Mapping[str, Any]) -> Answer:
    """Texts become "": the places stay, so that the answer keeps its shape and order."""
    kept = json.loads(json.dumps(answer))
    for part in _parts(kept):
        part.update(dict.fromkeys(TEXTS & part.keys(), ""))
    return dict(kept)


def _put_texts_back(answer: Answer, *, scope: str) -> None:
    """From the rows that the answer names: observations by id, core memory by label and revision. One query or two."""
    parts = [part for part in _parts(answer) if part.get("id") and "text" in part]
    ids = {int(part["id"].rpartition("_")[2]) for part in parts}
    texts = dict(Observation.objects.filter(pk__in=ids, scope__name=scope).values_list("pk", "text")) if ids else {}
    for part in parts:
        part["text"] = texts.get(int(part["id"].rpartition("_")[2])) or ""
    if "label" in answer:
        told = CoreRevision.objects.filter(core__scope__name=scope, core__label=answer["label"])
        found = told.filter(number=answer["revision"]).values_list("value", "core__description").first()
        answer["value"], answer["description"] = (found[0] or "", found[1]) if found else ("", "")

"""What a form of the focus view names an item by: to the person it was shown to, for some hours, and to nobody else.

A token is enciphered and of one length, so that the source of a page does not tell a drill from an item.
"""

from __future__ import annotations

import struct
from base64 import urlsafe_b64encode
from dataclasses import dataclass
from typing import Final

from cryptography.fernet import Fernet, InvalidToken
from django.utils.crypto import salted_hmac

from consolidation.admin.reading import SHOWN_HOURS, ShownExpired

_SALT: Final = "palimpsest.focus"
_LAYOUT: Final = struct.Struct(">QQQQ??x")  # item, reader, place, passed, drill, beside


@dataclass(frozen=True, slots=True)
class Named:
    """The item behind a token: an operation, or a drill; and how the reader came to it."""

    pk: int
    drill: bool = False
    place: int = 0  # of a drill: the operation it was shown after
    passed: int = 0  # a drill that the reader went on from, answering nothing, since they last decided something
    beside: bool = False  # that drill is the item before this one


def token_of(item: Named, *, user_id: int) -> str:
    """What a form carries."""
    plain = _LAYOUT.pack(item.pk, user_id, item.place, item.passed, item.drill, item.beside)
    return _cipher().encrypt(plain).decode()


def named(*, token: str, user_id: int) -> Named:
    """Raises ShownExpired for a token that is too old, of somebody else, or none."""
    try:
        plain = _cipher().decrypt(token.encode(), ttl=SHOWN_HOURS * 3600)
        pk, owner, place, passed, drill, beside = _LAYOUT.unpack(plain)
    except (InvalidToken, struct.error) as error:
        raise ShownExpired from error
    if owner != user_id:
        raise ShownExpired
    return Named(pk=pk, drill=drill, place=place, passed=passed, beside=beside)


def _cipher() -> Fernet:
    return Fernet(urlsafe_b64encode(salted_hmac(_SALT, b"", algorithm="sha256").digest()))

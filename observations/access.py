"""Who may call from outside: bearer tokens, made, shown once, verified, revoked.

A token reads `pal_<key id>_<secret>`. The key id names it everywhere; of the secret's 256 random bits only a hash is
kept, so a copy of the database opens nothing. What a token may do is fixed when it is made (the database refuses a
change), and approving is not among it: no call that a token can make decides an operation.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import re
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.db import DatabaseError, connection, transaction

from observations.models import ClockTimestamp, Event, Receipt, Token, TokenQuerySet, database_now
from observations.records import Caller

log = logging.getLogger(__name__)

PREFIX: Final = "pal"
NAME_LENGTH: Final = 100
PATTERN_LENGTH: Final = 200
USED_EVERY_SECONDS: Final = 60  # a token's last use is noted once in this time, not on every request
RECEIPTS_KEPT: Final = timedelta(hours=24)  # for as long a request may be sent again with its key

_BEARER: Final = re.compile(r"pal_([0-9a-f]{16})_([0-9a-f]{64})")
_SCOPE: Final = re.compile(r"[^\x01-\x1f*/\s]([^\x01-\x1f*]*[^\x01-\x1f*/\s])?")  # as the database checks scope names
_BY_KEY_ID: Final = "SELECT *, clock_timestamp() AS asked_at FROM observations_token WHERE key_id = %s"
_NOBODYS_HASH: Final = "0" * 64  # compared with where no token has the key id, so that both answers take as long


class TokenRefused(ValueError):
    """The token cannot be made as asked; the message says what to change."""


class NoSuchToken(LookupError):
    """No token has this key id: `memory token list` shows those there are."""


@dataclass(frozen=True, slots=True)
class NewToken:
    """A token just made. `bearer` is the only copy of the secret there will ever be."""

    token: Token
    bearer: str


@dataclass(frozen=True, slots=True)
class Bearer:
    """Whom a request showed to be: the token's row and what it may do."""

    token_id: int
    caller: Caller


def create_token(
    *,
    name: str,
    scope_pattern: str,
    by: str,
    may_read: bool = True,
    may_write: bool = False,
    may_propose: bool = False,
    speaks_for_user: bool = False,
    expires_at: datetime | None = None,
) -> NewToken:
    """Make a token for `prefix/*` (everything below the prefix, not the prefix itself) or for one scope's exact name.

    The scope need not exist: writing creates it. Raises TokenRefused. One transaction, with its event.
    """
    _check(name=name, pattern=scope_pattern, some_right=may_read or may_write or may_propose)
    if speaks_for_user and not may_write:
        raise TokenRefused("Only a token that may write can speak for the user: add the right to write.")
    if expires_at is not None and (expires_at.tzinfo is None or expires_at <= database_now()):
        raise TokenRefused("The token must expire at a time to come, given with its time zone.")
    key_id, secret = secrets.token_hex(8), secrets.token_hex(32)
    with transaction.atomic():
        token = Token.objects.create(
            name=name.strip(),
            key_id=key_id,
            secret_hash=_hash(secret),
            scope_pattern=scope_pattern,
            may_read=may_read,
            may_write=may_write,
            may_propose=may_propose,
            speaks_for_user=speaks_for_user,
            created_by=by,
            expires_at=expires_at,
        )
        _note(token, action="token_created", by=by)
    return NewToken(token=token, bearer=f"{PREFIX}_{key_id}_{secret}")


def _check(*, name: str, pattern: str, some_right: bool) -> None:
    if not name.strip() or len(name) > NAME_LENGTH or not name.isprintable():
        raise TokenRefused(f"Give the token a name of at most {NAME_LENGTH} printable characters.")
    scope = pattern.removesuffix("/*")
    good = _SCOPE.fullmatch(scope) and "//" not in scope and pattern.isprintable() and len(pattern) <= PATTERN_LENGTH
    if not good:
        raise TokenRefused(
            "The scope pattern is refused: give 'team/*' for all scopes below team, or one scope's exact name;"
            " no token reaches every scope."
        )
    if not some_right:
        raise TokenRefused("A token must be allowed something: to read, to write or to propose.")


def verify_token(*, bearer: str) -> Bearer | None:
    """Whose token this is; None when it is malformed, unknown, revoked or expired by the database's clock.

    One query, and one update a minute that notes the use and never fails the caller. Raises django.db.DatabaseError
    when the database is gone.
    """
    parts = _BEARER.fullmatch(bearer)
    if parts is None:
        return None
    key_id, secret = parts.groups()
    token = next(iter(Token.objects.raw(_BY_KEY_ID, [key_id])), None)
    same = hmac.compare_digest(_hash(secret), _NOBODYS_HASH if token is None else token.secret_hash)
    if token is None or not same:
        return None
    now: datetime = vars(token)["asked_at"]
    if not _open(token, now=now):
        return None
    if token.last_used_at is None or (now - token.last_used_at).total_seconds() >= USED_EVERY_SECONDS:
        _note_use(token.pk)
    return Bearer(token_id=token.pk, caller=caller_of(token=token))


def _open(token: Token, *, now: datetime) -> bool:
    return token.revoked_at is None and (token.expires_at is None or token.expires_at > now)


def token_id_of(*, caller: Caller) -> int:
    """The row of the token that a caller stands for; raises NoSuchToken for who has none. One query."""
    found = Token.objects.filter(key_id=caller.name.removeprefix("token:")).values_list("pk", flat=True).first()
    if found is None:
        raise NoSuchToken("Only a program with a token may give an idempotency key.")
    return found


def caller_of(*, token: Token) -> Caller:
    """What a token's program may do, as the calls ask it. No query."""
    return Caller(
        name=f"token:{token.key_id}",
        pattern=token.scope_pattern,
        may_read=token.may_read,
        may_write=token.may_write,
        may_propose=token.may_propose,
        speaks_for_user=token.speaks_for_user,
    )


def revoke_token(*, key_id: str, by: str) -> bool:
    """Close a token for good, from its next request on; False when it was revoked before. Raises NoSuchToken."""
    with transaction.atomic():
        token = Token.objects.filter(key_id=key_id).first()
        if token is None:
            raise NoSuchToken(f"No token has the key id {key_id[:20]!r}: `memory token list` shows those there are.")
        still_open = Token.objects.filter(pk=token.pk, revoked_at=None)
        if not still_open.update(revoked_at=ClockTimestamp(), revoked_by=by):
            return False
        _note(token, action="token_revoked", by=by)
    return True


def tokens() -> TokenQuerySet:
    """Every token there ever was, the newest first; a revoked one stays, because rows name it."""
    return Token.objects.order_by("-id")


def age_receipts() -> int:
    """Delete the receipts of requests made more than RECEIPTS_KEPT ago; returns how many."""
    return Receipt.objects.filter(at__lt=database_now() - RECEIPTS_KEPT).delete()[0]


def _hash(secret: str) -> str:
    """A plain hash is enough for 256 random bits: nothing shorter than all of them can be tried."""
    return hashlib.sha256(secret.encode()).hexdigest()


def _note(token: Token, *, action: str, by: str) -> None:
    rights = {"read": token.may_read, "write": token.may_write, "propose": token.may_propose}
    Event.objects.append(scope_id=None, action=action, actor=by, subject=f"token:{token.key_id}", detail=rights)


def _note_use(token_id: int) -> None:
    """SKIP LOCKED: while another transaction holds the row, the note is somebody else's or can wait a minute."""
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(
                "UPDATE observations_token SET last_used_at = clock_timestamp() WHERE id ="
                " (SELECT id FROM observations_token WHERE id = %s FOR NO KEY UPDATE SKIP LOCKED)",
                [token_id],
            )
    except DatabaseError as error:  # a server that only reads, or a full disk: the request may still be answered
        log.warning("the last use of token %s could not be noted (%s)", token_id, type(error).__name__)

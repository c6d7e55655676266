"""`memory token`: the keys of programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator

from django.core.management.base import OutputWrapper

from consolidation.management.who import operating_user
from consolidation.operations import visible
from memory_site.management.memory.calling import Options
from memory_site.management.memory.errors import Error
from memory_site.management.memory.standing import day_to_come
from observations import access
from observations.models import Token, database_now


def create(out: OutputWrapper, options: Options) -> None:
    """Print a new token, which nobody can print again, and how to use it on standard error. Raises Error."""
    try:
        made = access.create_token(
            name=options["name"],
            scope_pattern=options["scopes"],
            by=operating_user(),
            may_read=not options["no_read"],
            may_write=options["write"],
            may_propose=options["propose"],
            speaks_for_user=options["speaks_for_user"],
            expires_at=day_to_come(options["expires"]) if options["expires"] else None,
        )
    except access.TokenRefused as refused:
        raise Error(str(refused)) from refused
    if options["json"]:
        out.write(json.dumps({"token": made.bearer, **_row(made.token)}))
        return
    out.write(made.bearer)
    sys.stderr.write("".join(f"{line}\n" for line in _use(made.token)))


def listed(out: OutputWrapper, options: Options) -> None:
    """Print every token there ever was, the newest first; no secret is among it."""
    found = list(access.tokens())
    if options["json"]:
        out.write(json.dumps({"tokens": [_row(token) for token in found]}, ensure_ascii=False))
        return
    now = database_now()
    for token in found:
        closed = (
            "revoked" if token.revoked_at else "expired" if token.expires_at and token.expires_at <= now else "open"
        )
        used = f"used {token.last_used_at:%Y-%m-%d}" if token.last_used_at else "never used"
        out.write(
            f"{token.key_id}  {closed:<7}  {visible(token.scope_pattern)}  {', '.join(_rights(token))}"
            f"  {visible(token.name)} ({used})"
        )
    if not found:
        out.write("no tokens: `memory token create` makes one")


def revoke(out: OutputWrapper, options: Options) -> None:
    """Close a token for good. Raises Error."""
    key_id = options["key_id"].strip()
    try:
        done = access.revoke_token(key_id=key_id, by=operating_user())
    except access.NoSuchToken as unknown:
        raise Error(str(unknown)) from unknown
    if options["json"]:
        out.write(json.dumps({"key_id": key_id, "revoked": True, "now": done}))
    else:
        out.write(f"Token {key_id} opens nothing any more." if done else f"Token {key_id} was revoked before.")


def _rights(token: Token) -> Iterator[str]:
    rights = {"read": token.may_read, "write": token.may_write, "propose": token.may_propose}
    yield from (name for name, may in rights.items() if may)
    if token.speaks_for_user:
        yield "speaks for the user"


def _use(token: Token) -> Iterator[str]:
    yield f"The token is shown this once. It may {', '.join(_rights(token))} in {visible(token.scope_pattern)}."
    yield "API: send it as `Authorization: Bearer <token>`. MCP and the Python client: set PALIMPSEST_TOKEN."
    yield f"To close it: manage.py memory token revoke {token.key_id}"


def _row(token: Token) -> dict[str, object]:
    times = {name: getattr(token, name) for name in ("created_at", "expires_at", "revoked_at", "last_used_at")}
    return {
        "key_id": token.key_id,
        "name": token.name,
        "scopes": token.scope_pattern,
        "rights": list(_rights(token)),
        "created_by": token.created_by,
        **{name: at.isoformat() if at else None for name, at in times.items()},
    }

"""Tokens of programs: which there are, making one, revoking one. A secret is on the page that made it, nowhere else.

Only whose reach covers all of a token's pattern sees or touches it: otherwise it would open scopes they may not see.
"""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import URLPattern, path

from consolidation.admin.reading import Chip
from consolidation.admin.texts import day, signed, when
from consolidation.operations import visible
from observations import access
from observations.admin.base import Reach, Screen, signed_in
from observations.admin.listing import declared, listing
from observations.models import Token, TokenQuerySet, database_now

MAKE: Final = "observations.make_token"
STATES: Final = ("valid", "expired", "revoked")
LOST: Final = 409
DAYS: Final = 3_650  # the longest life of a token that is asked for
DAYS_OFFERED: Final = 365
_USED: Final = "forms_of_tokens"  # in the session: which forms made a token, so that a reloaded page makes no second
_NONCE: Final = re.compile(r"[0-9a-f]{32}")
_RIGHTS: Final = (
    ("may_read", "reads"),
    ("may_write", "writes"),
    ("may_propose", "proposes"),
    ("speaks_for_user", "speaks for the user"),
)


@dataclass(frozen=True, slots=True)
class Row:
    """One token."""

    pk: int
    name: str
    key_id: str
    pattern: str
    rights: tuple[str, ...]
    created: str
    by: str
    expires: str
    used: str
    state: Chip
    revoked: str  # by whom and when; empty: it is not

    @property
    def revocable(self) -> bool:
        """Whether revoking it would say something new."""
        return not self.revoked


class TokenScreen(Screen):
    """The list, and the two forms."""

    has_page = False

    def extra_urls(self) -> list[URLPattern]:
        """Making and revoking."""
        return [
            path("new/", self.guarded(self.new_view, MAKE), name=self.url_name("new")),
            path("<int:pk>/revoke/", self.guarded(self.revoke_view, MAKE), name=self.url_name("revoke")),
        ]

    def list_view(self, request: HttpRequest) -> HttpResponse:
        """Tokens whose whole pattern this person sees, the newest first."""
        now = database_now()
        chosen = declared(request=request, name="state", label="State", values=STATES)
        page = listing(_in_state(concerning(Reach.of(request)), chosen.value, now), data=request.GET)
        context = {
            "title": "Tokens",
            "page": page,
            "rows": [row_of(token, now=now) for token in page.rows],
            "filters": (chosen,),
            "may_make": Reach.of(request).may(MAKE),
        }
        return self.render(request, "admin/observations/token/change_list.html", context)

    def new_view(self, request: HttpRequest) -> HttpResponse:
        """The form; posted, the page that shows the secret, this once. Like every page here, no browser stores it."""
        if request.method != "POST":
            return self._form(request)
        reach, once = Reach.of(request), request.POST.get("once", "")
        used: list[str] = request.session.get(_USED, [])
        if not _NONCE.fullmatch(once) or once in used:
            messages.info(request, "This form made its token already. A secret is shown once: revoke what was lost.")
            return redirect(f"admin:{self.url_name('changelist')}")
        try:
            made = self._made(request, reach)
        except access.TokenRefused as refusal:
            return self._form(request, refusal=str(refusal))
        request.session[_USED] = [*used, once][-20:]
        context = {"title": "The token is made", "bearer": made.bearer, "row": row_of(made.token, now=database_now())}
        return self.render(request, "admin/observations/token/made.html", context)

    def _made(self, request: HttpRequest, reach: Reach) -> access.NewToken:
        """Raises access.TokenRefused."""
        pattern = request.POST.get("pattern", "").replace("\0", "").strip()
        if not reach.covers(pattern):
            raise access.TokenRefused("You may not see every scope of this pattern: narrow it to what you may see.")
        return access.create_token(
            name=request.POST.get("name", "").replace("\0", ""),
            scope_pattern=pattern,
            by=signed_in(request).get_username(),
            expires_at=_expires(request.POST.get("days", "")),
            **{right: bool(request.POST.get(right)) for right, _ in _RIGHTS},
        )

    def _form(self, request: HttpRequest, *, refusal: str = "") -> HttpResponse:
        given = request.POST.dict() if refusal else {"may_read": "1", "may_write": "1", "days": str(DAYS_OFFERED)}
        context: dict[str, Any] = {
            "title": "Make a token",
            "refusal": refusal,
            "given": given,
            "once": secrets.token_hex(16),
            "name_long": access.NAME_LENGTH,
            "pattern_long": access.PATTERN_LENGTH,
            "days_long": DAYS,
            "patterns": [visible(one) for one in Reach.of(request).patterns if one != "*"][:20],
        }
        status = LOST if refusal else 200
        return self.render(request, "admin/observations/token/new.html", context, status=status)

    def revoke_view(self, request: HttpRequest, *, pk: int) -> HttpResponse:
        """Asked first, then done for good."""
        token = get_object_or_404(concerning(Reach.of(request)), pk=pk)
        if request.method != "POST":
            context = {"title": "Revoke a token", "row": row_of(token, now=database_now())}
            return self.render(request, "admin/observations/token/revoke.html", context)
        if access.revoke_token(key_id=token.key_id, by=signed_in(request).get_username()):
            messages.success(request, f"Token {token.key_id} is revoked: it opens nothing from now on.")
        else:
            messages.info(request, f"Token {token.key_id} was revoked before.")
        return redirect(f"admin:{self.url_name('changelist')}")


def concerning(reach: Reach) -> TokenQuerySet:
    """The tokens all of whose scopes, now or later, are within a person's reach. No query."""
    return access.tokens().filter(reach.covering("scope_pattern"))


def _in_state(tokens: TokenQuerySet, state: str, now: datetime) -> TokenQuerySet:
    match state:
        case "valid":
            return tokens.valid(now=now)
        case "expired":
            return tokens.filter(revoked_at=None, expires_at__lte=now)
        case "revoked":
            return tokens.exclude(revoked_at=None)
        case _:
            return tokens


def row_of(token: Token, *, now: datetime) -> Row:
    """One token as pages show it. No query."""
    over = token.expires_at is not None and token.expires_at <= now
    state = Chip("revoked", "no") if token.revoked_at else Chip("expired", "warn") if over else Chip("valid", "done")
    return Row(
        pk=token.pk,
        name=visible(token.name),
        key_id=visible(token.key_id),
        pattern=visible(token.scope_pattern),
        rights=tuple(words for right, words in _RIGHTS if getattr(token, right)),
        created=when(token.created_at),
        by=visible(token.created_by),
        expires=day(token.expires_at),
        used=when(token.last_used_at),
        state=state,
        revoked=signed(token.revoked_by, token.revoked_at),
    )


def _expires(days: str) -> datetime | None:
    """So many days from now, by the database's clock; empty: never. Raises access.TokenRefused."""
    days = days.strip()
    if not days:
        return None
    if not (days.isascii() and days.isdigit() and len(days) < 6 and 1 <= int(days) <= DAYS):
        raise access.TokenRefused(f"A token lasts 1 to {DAYS:,} days; left empty, it does not expire.")
    return database_now() + timedelta(days=int(days))

"""System checks of the store and of how it is run. Each has an id, a hint, and a test named after it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, connection

from observations.embedding import EmbeddingError, MiniLM, embedder
from observations.retrieval import Weights, current_embedder, fades, large

LOCAL = {"localhost", "127.0.0.1", "[::1]", "testserver"}
SHORTEST_KEY = 32  # characters
PLACEHOLDER = "replace-me"  # what .env.example holds


def powers() -> str:
    """What the application's role may do that it must not: a clause such as "is a superuser", or empty. One query.

    Raises django.db.DatabaseError when the database does not answer.
    """
    role = settings.APPLICATION_ROLE or None
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT rolsuper, rolbypassrls, EXISTS (SELECT 1 FROM pg_tables WHERE schemaname = 'public'"
            "   AND tablename = 'observations_observation' AND pg_has_role(r.oid, tableowner::regrole, 'USAGE'))"
            " FROM pg_roles r WHERE rolname = coalesce(%s, current_user)",
            [role],
        )
        row = cursor.fetchone()
    if row is None:
        return ""
    superuser, bypasses, owner = row
    if superuser:
        return "is a superuser"
    return "owns the tables of memory" if owner else "bypasses row security" if bypasses else ""


@register(Tags.database)
def role_is_the_lesser_one(*, databases: Sequence[str] | None = None, **_: Any) -> list[CheckMessage]:
    """palimpsest.E001: as owner or superuser, one bug could delete what the grants protect."""
    if "default" not in (databases or ()):
        return []
    try:
        found = powers()
    except DatabaseError:
        return []  # the command that needs the database says so itself
    hint = "Give DATABASE_URL the application's role and MIGRATE_DATABASE_URL the owner's; docs/operations.md has both."
    return [Error(f"The role of DATABASE_URL {found}.", hint=hint, id="palimpsest.E001")] if found else []


@register(Tags.security)
def secret_key_is_set(**_: Any) -> list[CheckMessage]:
    """palimpsest.E002 and W002: without a secret key nobody can sign in; with a public or short one, anybody may."""
    try:
        key = settings.SECRET_KEY
    except ImproperlyConfigured:
        hint = "Set SECRET_KEY to 50 random characters in .env or the environment; make demo makes one by itself."
        return [Error("SECRET_KEY is empty.", hint=hint, id="palimpsest.E002")]
    if key.startswith(PLACEHOLDER):
        hint = "Replace the example's SECRET_KEY with 50 random characters: everybody can read that one."
        return [Error("SECRET_KEY is still the example's.", hint=hint, id="palimpsest.E002")]
    if len(key) >= SHORTEST_KEY or settings.DEBUG or not _serves_others():
        return []
    hint = f"Use at least {SHORTEST_KEY} random characters: sessions are signed with it."
    return [Warning("SECRET_KEY is short.", hint=hint, id="palimpsest.W002")]


@register(Tags.security)
def debug_is_off_where_others_look(**_: Any) -> list[CheckMessage]:
    """palimpsest.E003: an error page under DEBUG shows settings and memory to whoever caused it."""
    if not settings.DEBUG or not _serves_others():
        return []
    hint = "Set DEBUG=0, or ALLOWED_HOSTS to this machine alone."
    return [Error("DEBUG is on while other machines may ask.", hint=hint, id="palimpsest.E003")]


def _serves_others() -> bool:
    return settings.SECURE_TLS or not set(settings.ALLOWED_HOSTS) <= LOCAL


@register()
def migrations_have_an_owner(**_: Any) -> list[CheckMessage]:
    """palimpsest.W004: without the owner's address, `migrate` runs as the role of DATABASE_URL, which then owns the
    tables.
    """
    if settings.MIGRATE_DATABASE_URL or not _serves_others():
        return []  # the embedded servers hand the owner's address to `migrate` alone
    hint = "Set MIGRATE_DATABASE_URL to the owner's address where migrations run; web, worker and beat do not need it."
    return [Warning("MIGRATE_DATABASE_URL is not set.", hint=hint, id="palimpsest.W004")]


@register()
def embedder_is_the_measured_one(**_: Any) -> list[CheckMessage]:
    """palimpsest.E005: thresholds hold for the weights they were measured with; others would merge what differs."""
    try:
        chosen = embedder(
            settings.PALIMPSEST_EMBEDDER,
            base_url=settings.PALIMPSEST_EMBEDDINGS_URL,
            model=settings.PALIMPSEST_EMBEDDINGS_MODEL,
            dimensions=settings.PALIMPSEST_EMBEDDINGS_DIMENSIONS,
        )
        if isinstance(chosen, MiniLM):
            chosen.verify()
    except EmbeddingError as error:
        hint = "Reinstall the project, or choose another embedder with PALIMPSEST_EMBEDDER."
        return [Error(str(error), hint=hint, id="palimpsest.E005")]
    return []


@register()
def search_is_weighed(**_: Any) -> list[CheckMessage]:
    """palimpsest.E012: a weight of the search that is no number, or out of its range, would rank anything anyhow."""
    hint = "Set it as docs/operations.md says, or leave it out: the defaults are measured."
    try:
        Weights.of_settings()
        fades("search")
    except ValueError as error:
        return [Error(str(error), hint=hint, id="palimpsest.E012")]
    return []


@register(Tags.database)
def large_scopes_have_their_index(*, databases: Sequence[str] | None = None, **_: Any) -> list[CheckMessage]:
    """palimpsest.W013: a search in a large scope without an index reads every one of its vectors."""
    if "default" not in (databases or ()):
        return []
    try:
        found = large.unindexed(profile=current_embedder().profile)
    except (DatabaseError, EmbeddingError):
        return []  # the command that needs either says so itself
    hint = "Run `manage.py memory index` with MIGRATE_DATABASE_URL set; `memory index --list` names the large scopes."
    return [
        Warning(f"Scope {name} has {rows:,} current rows and no index.", hint=hint, id="palimpsest.W013")
        for name, rows in found
    ]


@register()
def tasks_end_before_their_message_comes_back(**_: Any) -> list[CheckMessage]:
    """palimpsest.E006: a task longer than the visibility timeout is delivered again while it still runs."""
    hidden_for, longest = (
        settings.CELERY_BROKER_TRANSPORT_OPTIONS["visibility_timeout"],
        settings.CELERY_TASK_TIME_LIMIT,
    )
    if longest < hidden_for:
        return []
    hint = "Keep CELERY_TASK_TIME_LIMIT below visibility_timeout."
    return [Error("Tasks may run longer than their message stays hidden.", hint=hint, id="palimpsest.E006")]

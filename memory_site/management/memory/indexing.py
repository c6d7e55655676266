"""`memory index`: approximate indexes of the vectors of large scopes, made and dropped as the database's owner."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
from django.conf import settings
from django.core.management.base import OutputWrapper
from django.db import connection
from django.db.models import Count
from psycopg import sql
from psycopg.conninfo import make_conninfo

from memory_site.database_url import django_database
from memory_site.management.memory.errors import Error, scopes_matching
from observations import ingest
from observations.embedding import Profile
from observations.models import Embedding, Scope
from observations.retrieval import current_embedder, large


@dataclass(frozen=True)
class Indexed:
    """One scope that is large, or has an index."""

    scope: Scope
    rows: int  # current observations with a vector of the current profile
    stands: bool


def run(out: OutputWrapper, options: dict[str, Any]) -> None:
    """List what is large and indexed; or make what is missing and drop what a scope has become too small for."""
    profile, least = current_embedder().profile, options["at_least"]
    found = _found(scopes_matching(options["scope"]), profile, least)
    done = [] if options["list"] else _settle(out, found, profile, least, quiet=options["json"])
    if options["json"]:
        if done:  # as it stands now
            found = _found(scopes_matching(options["scope"]), profile, least)
        named = {"profile": profile.name, "at_least": least, "done": done}
        out.write(json.dumps({**named, "scopes": [_document(one, least) for one in found]}, ensure_ascii=False))
    elif options["list"]:
        out.write("\n".join(map(_line, found)) or f"No scope has more than {least:,} rows: each is scanned exactly.")
    elif not done:
        out.write(f"Nothing to do: every scope of more than {least:,} rows has its index.")


def _found(scopes: Sequence[Scope], profile: Profile, least: int) -> list[Indexed]:
    """Scopes that are large, or have an index, by name. One query."""
    rows = Embedding.objects.filter(scope__in=scopes, profile=profile.name, active=True, vector__isnull=False)
    counted = dict(rows.filter(episode=None).order_by().values_list("scope_id").annotate(n=Count("pk")))
    ordered = sorted(scopes, key=lambda scope: scope.name)
    found = [Indexed(scope, counted.get(scope.pk, 0), scope.index_profile == profile.name) for scope in ordered]
    return [one for one in found if one.stands or one.scope.index_profile or one.rows > least]


def _settle(out: OutputWrapper, found: Sequence[Indexed], profile: Profile, least: int, *, quiet: bool) -> list[str]:
    """Make and drop, one scope after the other; what was made before an error stays. Raises Error."""
    if profile.dimensions > large.MOST_DIMENSIONS:
        raise Error(f"An index takes vectors of up to {large.MOST_DIMENSIONS:,} dimensions: {profile.name} has more.")
    done: list[str] = []
    with _owner() as owner:
        for one in found:
            wanted = one.rows > least
            if wanted == one.stands and one.scope.index_profile in ("", profile.name):
                continue
            said = _made(owner, one, profile) if wanted else _dropped(owner, one)
            done.append(said)
            if not quiet:
                out.write(said)
    return done


def _made(owner: psycopg.Connection, one: Indexed, profile: Profile) -> str:
    """Built beside reads and writes; what an interrupted run left of it is dropped first."""
    _dropped(owner, one)
    name = sql.Identifier(large.name_of(scope_id=one.scope.pk, profile=profile.name))
    owner.execute(sql.SQL("DROP INDEX CONCURRENTLY IF EXISTS {}").format(name))
    owner.execute("SET maintenance_work_mem = '512MB'")
    made = "CREATE INDEX CONCURRENTLY {} ON observations_embedding USING hnsw ({} halfvec_cosine_ops) WHERE {}"
    near = large.half(column=sql.SQL("vector"), profile=profile)
    owner.execute(sql.SQL(made).format(name, near, large.rows_of(scope_id=one.scope.pk, profile=profile)))
    ingest.note_index(scope=one.scope, profile=profile.name)
    return f"Indexed {one.scope.name}: {one.rows:,} rows."


def _dropped(owner: psycopg.Connection, one: Indexed) -> str:
    """Reads scan the scope exactly from then on."""
    ingest.note_index(scope=one.scope, profile="")
    if one.scope.index_profile:
        name = large.name_of(scope_id=one.scope.pk, profile=one.scope.index_profile)
        owner.execute(sql.SQL("DROP INDEX CONCURRENTLY IF EXISTS {}").format(sql.Identifier(name)))
    return f"Dropped the index of {one.scope.name}: {one.rows:,} rows are scanned exactly."


@contextmanager
def _owner() -> Iterator[psycopg.Connection]:
    """The owner's connection to this database, outside any transaction. Raises Error where it may not make indexes."""
    url = settings.MIGRATE_DATABASE_URL
    parts = django_database(url) if url else connection.settings_dict
    names = {"host": "HOST", "port": "PORT", "user": "USER", "password": "PASSWORD"}
    address = {name: str(parts[key]) for name, key in names.items() if parts.get(key)}
    conninfo = make_conninfo("", dbname=connection.settings_dict["NAME"], **address)
    with psycopg.connect(conninfo, autocommit=True) as owner:
        try:
            yield owner
        except psycopg.errors.InsufficientPrivilege as error:
            sentence = "Only the owner of the tables makes indexes: set MIGRATE_DATABASE_URL to the owner's address."
            raise Error(sentence) from error


def _line(one: Indexed) -> str:
    state = "indexed" if one.stands else "no index: run `manage.py memory index`"
    return f"{one.rows:>10,}  {one.scope.name}  {state}"


def _document(one: Indexed, least: int) -> dict[str, object]:
    return {"scope": one.scope.name, "rows": one.rows, "indexed": one.stands, "large": one.rows > least}

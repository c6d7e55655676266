"""A pytest plugin, loaded with `-p` before Django reads its settings: the suite's own PostgreSQL and Valkey.

One throwaway pair per run, shared by the workers of pytest-xdist, isolated from the demo's; nothing is started where
PALIMPSEST_TEST_DATABASE_URL and PALIMPSEST_TEST_REDIS_URL name servers for the suite. A developer's own DATABASE_URL is
never used.
"""

from __future__ import annotations

import contextlib
import os

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from memory_site.embedded import Urls, ephemeral

_stack = contextlib.ExitStack()
WORKER = "PYTEST_XDIST_WORKER"
OWN = ("DATABASE_URL", "MIGRATE_DATABASE_URL", "REDIS_URL", "SUPERUSER_DATABASE_URL")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests() -> None:
    """Starts the servers once, in the process that the workers inherit their environment from."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "memory_site.settings"
    os.environ["PALIMPSEST_EMBEDDER"] = "hashing"
    os.environ["SECRET_KEY"] = "only-for-tests"  # nothing signed with it leaves the suite
    for limit in ("REQUESTS", "FAILURES"):
        os.environ[f"PALIMPSEST_API_{limit}_PER_MINUTE"] = "0"  # tests of the limits set their own
    if WORKER in os.environ:
        return
    for name in OWN:
        os.environ.pop(name, None)
    urls = _stack.enter_context(ephemeral(fsync=False))
    os.environ["DATABASE_URL"] = urls.database_url
    os.environ["MIGRATE_DATABASE_URL"] = urls.migrate_database_url
    os.environ["REDIS_URL"] = urls.redis_url
    os.environ["SUPERUSER_DATABASE_URL"] = urls.superuser_url or ""
    if urls.superuser_url:
        _answer_at_once(urls)


def _answer_at_once(urls: Urls) -> None:
    """Have the servers' roles sign in with one round of hashing and not 4,096: tests open thousands of connections, and
    each spends a hundredth of a second on it.
    """
    with psycopg.connect(urls.superuser_url or "", autocommit=True) as admin:
        admin.execute("SET scram_iterations = 1")
        for url in (urls.database_url, urls.migrate_database_url, urls.superuser_url):
            parts = conninfo_to_dict(url or "")
            role, word = sql.Identifier(str(parts["user"])), sql.Literal(parts["password"])
            admin.execute(sql.SQL("ALTER ROLE {} PASSWORD {}").format(role, word))


def pytest_unconfigure() -> None:
    """Stops what this process started."""
    _stack.close()

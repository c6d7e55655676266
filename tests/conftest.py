"""The suite runs as the application's role, and fails when it does not (INTEGRITY, roles).

The test database is made and migrated by the owner; then every connection is the lesser role's. Between transactional tests the
tables are emptied by a superuser with triggers off, which nothing but the tests may do.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import psycopg
import pytest
from django.conf import settings
from django.db import connection, connections
from django.test import TransactionTestCase

from memory_site.database_url import django_database


@pytest.fixture(scope="session")
def django_db_modify_db_settings() -> None:
    """The owner makes the test database."""
    owner = django_database(os.environ["MIGRATE_DATABASE_URL"])
    settings.MIGRATE_DATABASE_URL = ""
    connections["default"].settings_dict.update(owner)


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: pytest.FixtureRequest) -> Iterator[None]:
    """After migrating, everyone is the application's role."""
    application = django_database(os.environ["DATABASE_URL"])
    name = connections["default"].settings_dict["NAME"]
    connections["default"].close()
    connections["default"].settings_dict.update(application, NAME=name)
    yield
    connections["default"].close()
    owner = django_database(os.environ["MIGRATE_DATABASE_URL"])
    connections["default"].settings_dict.update(owner, NAME=name)


def superuser() -> psycopg.Connection:
    """A superuser's connection to the test database: for emptying it, and for tests about what a superuser can do."""
    parts = django_database(os.environ["SUPERUSER_DATABASE_URL"])
    return psycopg.connect(
        host=parts["HOST"],
        port=parts["PORT"] or None,
        user=parts["USER"],
        password=parts["PASSWORD"],
        dbname=connection.settings_dict["NAME"],
        autocommit=True,
    )


def empty_the_store() -> None:
    """Truncate every table of the store, the review and the queue, triggers off."""
    with superuser() as admin:
        tables = admin.execute(
            "SELECT string_agg(quote_ident(tablename), ', ') FROM pg_tables WHERE schemaname = 'public'"
            " AND tablename NOT IN ('django_migrations', 'django_content_type', 'auth_permission', 'auth_group',"
            " 'auth_group_permissions', 'django_celery_beat_periodictask', 'django_celery_beat_periodictasks',"
            " 'django_celery_beat_intervalschedule', 'django_celery_beat_crontabschedule')"
        ).fetchone()
        admin.execute("SET session_replication_role = replica")
        assert tables is not None
        admin.execute(f"TRUNCATE {tables[0]} RESTART IDENTITY CASCADE")  # names are PostgreSQL's own, quoted


def _fixture_teardown(self: TransactionTestCase) -> None:
    """Replaces Django's flush, which the application's role must not be able to do."""
    empty_the_store()


@pytest.fixture(scope="session", autouse=True)
def _flush_as_superuser() -> Iterator[None]:
    original = TransactionTestCase._fixture_teardown
    TransactionTestCase._fixture_teardown = _fixture_teardown  # type: ignore[method-assign]
    yield
    TransactionTestCase._fixture_teardown = original  # type: ignore[method-assign]

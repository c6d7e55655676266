"""The suite runs as the application's role, and fails when it does not (INTEGRITY, roles).

The test database is made and migrated by the owner; then every connection is the lesser role's. Between transactional
tests the tables are emptied by a superuser with triggers off, which nothing but the tests may do.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator

import hypothesis
import psycopg
import pytest
from django.conf import settings
from django.db import connection, connections
from django.test import TransactionTestCase
from psycopg.conninfo import make_conninfo

from memory_site.database_url import django_database
from tests.offline import no_other_machine as no_other_machine

# On a busy machine an example takes longer than hypothesis waits; what has to be fast is measured where that is tested.
hypothesis.settings.register_profile("without deadline", hypothesis.settings(), deadline=None)
hypothesis.settings.load_profile("without deadline")


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings_parallel_suffix: None) -> None:
    """The owner makes the test database, one per process of pytest-xdist."""
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
    named = {name: str(parts[name.upper()]) for name in ("host", "port", "user", "password") if parts[name.upper()]}
    address = make_conninfo("", dbname=connection.settings_dict["NAME"], **named)
    return psycopg.connect(address, autocommit=True)


KEPT = (
    *("django_migrations", "django_content_type", "auth_permission", "auth_group", "auth_group_permissions"),
    *("django_celery_beat_periodictask", "django_celery_beat_periodictasks"),
    *("django_celery_beat_intervalschedule", "django_celery_beat_crontabschedule"),
)


def empty_the_store() -> None:
    """Empty every table of the store, the review and the queue, triggers off, and start ids from 1 again.

    DELETE and not TRUNCATE: on tables this small it is ten times as fast, and crash tests do it hundreds of times.
    """
    with superuser() as admin:
        admin.execute("SET session_replication_role = replica")
        admin.execute(_emptying(connection.settings_dict["NAME"]))


@functools.cache
def _emptying(database: str) -> str:
    """The statements that empty the database, as one text; every name in it is PostgreSQL's own, quoted."""
    with superuser() as admin:
        tables = admin.execute(
            "SELECT quote_ident(tablename) FROM pg_tables WHERE schemaname = 'public' AND tablename <> ALL (%s)",
            (list(KEPT),),
        ).fetchall()
        sequences = admin.execute(
            "SELECT quote_literal(s.oid::regclass) FROM pg_class s JOIN pg_depend d ON d.objid = s.oid"
            " JOIN pg_class t ON t.oid = d.refobjid WHERE s.relkind = 'S' AND t.relname <> ALL (%s)",
            (list(KEPT),),
        ).fetchall()
    deletes = [f"DELETE FROM {table}" for (table,) in tables]
    return "; ".join([*deletes, *(f"SELECT setval({sequence}, 1, false)" for (sequence,) in sequences)])


def _fixture_teardown(self: TransactionTestCase) -> None:
    """Replaces Django's flush, which the application's role must not be able to do."""
    empty_the_store()


@pytest.fixture(scope="session", autouse=True)
def _flush_as_superuser() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TransactionTestCase, "_fixture_teardown", _fixture_teardown)
        yield

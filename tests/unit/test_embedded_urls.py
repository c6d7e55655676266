"""PostgreSQL's URLs, with sockets in folders of any name."""

from __future__ import annotations

import psycopg.conninfo
import pytest

from memory_site.database_url import BadDatabaseUrl, django_database, socket_url

FOLDERS = ["/run/plm-x", "/home/Zoë Ångström/mémoire/run", "/a b/c:d@e/f?g#h%i", "/UPPER/Case", "/日本/ソケット"]


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_socket_in_any_folder_is_read_alike_by_us_and_by_psycopg(folder: str) -> None:
    url = socket_url(user="palimpsest_app", password="p:w/@ %é?#", folder=folder, database="Mémoire 1")
    ours = django_database(url)
    theirs = psycopg.conninfo.conninfo_to_dict(url)
    assert (ours["HOST"], ours["USER"], ours["PASSWORD"], ours["NAME"]) == (
        theirs["host"],
        theirs["user"],
        theirs["password"],
        theirs["dbname"],
    )
    assert ours["HOST"] == folder
    assert ours["PORT"] == ""
    assert ours["OPTIONS"] == {}


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("postgresql://u:p@db.example:5433/name", ("db.example", "5433", "u", "p", "name", {})),
        ("postgres://u@db/name?sslmode=require", ("db", "", "u", "", "name", {"sslmode": "require"})),
        ("postgresql:///name", ("", "", "", "", "name", {})),
        ("postgresql:///name?host=/run/a%20b&port=6543&user=u&password=p", ("/run/a b", "6543", "u", "p", "name", {})),
        ("postgresql://u:p@[::1]:5432/name", ("::1", "5432", "u", "p", "name", {})),
        ("postgresql://u:p@[::1]/name", ("::1", "", "u", "p", "name", {})),
        ("postgresql://u:a%40b@h/n%C3%A9?connect_timeout=3", ("h", "", "u", "a@b", "né", {"connect_timeout": "3"})),
        ("  POSTGRESQL://u@H/n  ", ("H", "", "u", "", "n", {})),
        ("postgresql://u@%2FTmp%2FX:5433/n", ("/Tmp/X", "5433", "u", "", "n", {})),
    ],
)
def test_every_form_of_a_url_gives_djangos_parts(url: str, expected: tuple[object, ...]) -> None:
    parts = django_database(url)
    names = ("HOST", "PORT", "USER", "PASSWORD", "NAME", "OPTIONS")
    assert tuple(parts[name] for name in names) == expected
    assert parts["ENGINE"] == "django.db.backends.postgresql"


@pytest.mark.parametrize(
    "url",
    ["", "mysql://u:secret@h/n", "sqlite:///x", "postgresql://u:secret@h", "postgresql://u:secret@h:x/n", "secret"],
)
def test_a_url_of_no_postgresql_database_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(BadDatabaseUrl, match=r"^DATABASE_URL ") as refused:
        django_database(url)
    assert "secret" not in str(refused.value)

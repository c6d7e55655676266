"""PostgreSQL addresses as URLs, with the server behind TCP or behind a socket in a folder.

Written by hand because the usual parsers lower-case the host, and a socket's folder is a host to libpq. The form
written here is the one psycopg and psql read: the folder percent-encoded in the host's place.
"""

from urllib.parse import parse_qsl, quote, unquote

SCHEMES = ("postgresql", "postgres")


class BadDatabaseUrl(ValueError):
    """A DATABASE_URL that names no PostgreSQL database; the message never repeats the URL, which holds a password."""


def socket_url(*, user: str, password: str, folder: str, database: str) -> str:
    """The URL of a database behind the socket in `folder`."""
    parts = (quote(part, safe="") for part in (user, password, folder, database))
    return "postgresql://{}:{}@{}/{}".format(*parts)


def django_database(url: str) -> dict[str, object]:
    """The entry for Django's DATABASES: HOST is a name, an address or the folder of a socket; the query's other words
    are OPTIONS.

    Reads postgresql://user:password@host:port/name?sslmode=require with any part left out, a percent-encoded folder as
    host, and a folder given as ?host=. Raises BadDatabaseUrl.
    """
    scheme, separator, rest = url.strip().partition("://")
    if not separator or scheme.lower() not in SCHEMES:
        raise BadDatabaseUrl("DATABASE_URL must start with postgresql:// (only PostgreSQL with pgvector is supported).")
    address, _, query = rest.partition("?")
    options = dict(parse_qsl(query, keep_blank_values=True))
    authority, _, name = address.partition("/")
    credentials, _, place = authority.rpartition("@")
    user, _, password = credentials.partition(":")
    host, port = _host_and_port(place)
    name = unquote(name) or options.pop("dbname", "")
    if not name:
        raise BadDatabaseUrl("DATABASE_URL names no database: it must end with /name.")
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": name,
        "USER": unquote(user) or options.pop("user", ""),
        "PASSWORD": unquote(password) or options.pop("password", ""),
        "HOST": host or options.pop("host", ""),
        "PORT": port or options.pop("port", ""),
        "OPTIONS": options,
    }


def _host_and_port(place: str) -> tuple[str, str]:
    """Split host:port, where the host may be [::1] or a percent-encoded folder."""
    if place.startswith("["):
        host, _, rest = place[1:].partition("]")
        port = rest.removeprefix(":")
    else:
        host, _, port = place.partition(":")
    if port and not port.isdecimal():
        raise BadDatabaseUrl("DATABASE_URL has a port that is not a number.")
    return unquote(host), port

"""manage.py's doorway: every command works by itself on a fresh set-up.

It uses DATABASE_URL, or the embedded servers of the running stack, or starts them for its own duration. Commands that
need no database start nothing. What keeps a command from working is one sentence on standard error.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import secrets
import sys
from collections.abc import Iterator, Sequence

from memory_site.embedded.dotenv import read_dotenv

NOT_DONE = 2  # exit status: nothing was done
INTERRUPTED = 130
BROKEN_PIPE = 141

# Django's and ours that neither read nor write a database, so that none is started for them.
WITHOUT_DATABASE = frozenset(
    {"help", "version", "check", "makemigrations", "diffsettings", "findstatic", "collectstatic", "makemessages"}
    | {"compilemessages", "startapp", "startproject", "test", "testserver", "sendtestemail", "squashmigrations"}
    | {"optimizemigration"}
)

THROWAWAY = frozenset({"simulate"})  # commands that write, and never into a database that anybody uses
# How such a database says of itself that it is one.
_MARK = (
    "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET palimpsest.throwaway = %L', current_database(), 'on'); END $$"
)


def main(argv: Sequence[str] | None = None) -> None:
    """Run one command; leaves by SystemExit when its status is not 0."""
    words = list(sys.argv if argv is None else argv)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memory_site.settings")
    _speak_utf8()
    read_dotenv()
    with _failing_in_one_sentence(as_json="--json" in words), _database_for(words):
        from django.core.management import execute_from_command_line

        execute_from_command_line(words)


def needs_database(words: Sequence[str]) -> bool:
    """Whether a command line reads or writes a database; asking for help never does."""
    options = words[1 : words.index("--")] if "--" in words else words[1:]
    return _command(words) not in WITHOUT_DATABASE and not {"-h", "--help", "--version"} & set(options)


def _command(words: Sequence[str]) -> str:
    """The command's name; Django takes only the first word for it."""
    return words[1] if len(words) > 1 else "help"


def _speak_utf8() -> None:
    """Memory is in every language, whatever the terminal's locale says."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


@contextlib.contextmanager
def _failing_in_one_sentence(*, as_json: bool) -> Iterator[None]:
    """A sentence on standard error and an exit status; `as_json` gives standard output a document that says it too."""
    from django.core.exceptions import ImproperlyConfigured
    from django.db import InterfaceError, OperationalError, ProgrammingError

    from memory_site.database_url import BadDatabaseUrl
    from memory_site.embedded import EmbeddedError

    try:
        yield
    except (EmbeddedError, BadDatabaseUrl, ImproperlyConfigured) as error:
        _leave(str(error), as_json=as_json)
    except (OperationalError, InterfaceError) as error:
        _leave(f"The database cannot be used ({_first_line(error)}): {_remedy(error)}.", as_json=as_json)
    except ProgrammingError as error:
        if getattr(error.__cause__, "sqlstate", "") not in ("42P01", "42703"):  # undefined table or column
            raise
        _leave("The database has no tables of this version yet: run `manage.py migrate`.", as_json=as_json)
    except KeyboardInterrupt:
        _leave("Interrupted.", status=INTERRUPTED)
    except BrokenPipeError:  # whoever read our output has gone, as `head` does
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - the interpreter flushes it at the very end
        raise SystemExit(BROKEN_PIPE) from None


def _remedy(error: Exception) -> str:
    """Class 53 is a server that has run out of something: the address is right."""
    exhausted = str(getattr(error.__cause__, "sqlstate", None) or "").startswith("53")
    return "give it room and run this again" if exhausted else "check DATABASE_URL and that the server runs"


def _first_line(error: Exception) -> str:
    """A driver's words without what follows the first line, and without the address they may quote."""
    return str(error).strip().partition("\n")[0][:300] or type(error).__name__


def _leave(sentence: str, *, status: int = NOT_DONE, as_json: bool = False) -> None:
    with contextlib.suppress(OSError):
        if as_json:
            sys.stdout.write(json.dumps({"error": sentence}, ensure_ascii=False) + "\n")
            sys.stdout.flush()
        sys.stderr.write(f"{sentence}\n")
        sys.stderr.flush()
    raise SystemExit(status) from None


@contextlib.contextmanager
def _database_for(words: Sequence[str]) -> Iterator[None]:
    """The settings of a database in the environment, for commands that need one."""
    if _command(words) in THROWAWAY and needs_database(words):
        with _throwaway():
            yield
        return
    if os.environ.get("DATABASE_URL"):
        yield
        return
    if not needs_database(words):
        if not os.environ.get("SECRET_KEY"):  # the embedded servers make the real one; nothing is signed here
            os.environ["SECRET_KEY"] = secrets.token_urlsafe(50)
        yield
        return
    from memory_site.embedded import borrow, folder, migration_lock
    from memory_site.embedded.supervisor import environment

    with borrow() as urls:
        os.environ.update(environment(data=folder.find(None), urls=urls, environ=os.environ, owner=True))
        if _command(words) != "migrate":
            with migration_lock():
                _migrate_when_behind()
        yield


@contextlib.contextmanager
def _throwaway() -> Iterator[None]:
    """An embedded stack of its own, marked and removed afterwards, whatever DATABASE_URL says; no model is asked."""
    import psycopg

    from memory_site.embedded import ephemeral

    for name in ("DATABASE_URL", "MIGRATE_DATABASE_URL", "REDIS_URL"):
        os.environ.pop(name, None)
    with ephemeral() as urls:
        os.environ.update(
            DATABASE_URL=urls.database_url,
            MIGRATE_DATABASE_URL=urls.migrate_database_url,
            REDIS_URL=urls.redis_url,
            SECRET_KEY=secrets.token_urlsafe(50),
            ANTHROPIC_API_KEY="",  # set, so that .env does not set it
        )
        os.environ.setdefault("LOG_LEVEL", "ERROR")  # nobody waits for its queue
        with psycopg.connect(urls.superuser_url or "", autocommit=True) as superuser:
            superuser.execute(_MARK)
        _migrate_when_behind()
        yield


def _migrate_when_behind() -> None:
    """Bring the embedded database's schema up to date. Nobody else's: their owner decides when."""
    import django
    from django.core.management import call_command
    from django.db import connection
    from django.db.migrations.executor import MigrationExecutor

    django.setup()
    executor = MigrationExecutor(connection)
    if executor.migration_plan(executor.loader.graph.leaf_nodes()):
        application = dict(connection.settings_dict)
        call_command("migrate", verbosity=0)  # as the owner
        connection.close()
        connection.settings_dict.update(application)

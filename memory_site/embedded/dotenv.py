"""The project's .env, read before anything is started: a DATABASE_URL in it must make the embedded server give way
too.
"""

from memory_site.embedded.folder import PROJECT


def read_dotenv() -> None:
    """Add what .env says to this process's environment; what is set already wins. Nothing happens without the file."""
    path = PROJECT / ".env"
    if not path.is_file():
        return
    from environ import Env  # settings.py reads the file with the same reader

    Env.read_env(path, overwrite=False)

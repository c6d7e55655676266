"""PostgreSQL with pgvector and Valkey from Python wheels, and the supervisor that runs them with the web, the worker
and beat.

`python -m memory_site.embedded --help` is the command; what is exported here is for manage.py and the test suite.
"""

from memory_site.embedded.borrowing import borrow, migration_lock, running
from memory_site.embedded.errors import EmbeddedError
from memory_site.embedded.stack import Urls, ephemeral

__all__ = ["EmbeddedError", "Urls", "borrow", "ephemeral", "migration_lock", "running"]

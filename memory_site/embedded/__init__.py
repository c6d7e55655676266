"""PostgreSQL with pgvector and Valkey from Python wheels, and the supervisor that runs them with the web, the worker and beat.

Standard library only. `run` and its friends are the command `python -m memory_site.embedded`.
"""

from memory_site.embedded.errors import EmbeddedError
from memory_site.embedded.stack import Urls, ephemeral

__all__ = ["EmbeddedError", "Urls", "ephemeral"]

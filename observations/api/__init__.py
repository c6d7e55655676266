"""The REST API under /api/v1: every call as an address, with bearer tokens, problems and OpenAPI.

A doorway only: it reads a request, makes one call and writes the answer. It imports nothing of consolidation, so no
address can decide, apply or undo an operation.
"""

from typing import Final

from django.views.decorators.http import require_safe

from observations.api import core, memory, problems
from observations.api.bearer import Token
from observations.api.openapi import Api, StrictJson

VERSION: Final = "1"
ABOUT: Final = """\
Long-term memory for agents. Every request names a `scope`, whose memory it is, and carries a token that reaches it:
`Authorization: Bearer pal_...`. Writing to a scope under the token's pattern makes the scope.

Start with `POST /observations` (one claim), `POST /episodes` (what was said, word for word) and `POST /prompt` (the
block for a prompt). Nothing is erased here: `POST /forget` and `POST /proposals` put a request before a person.

Every answer that is not the one asked for is `application/problem+json`. Fields and parameters that are not in this
description are refused. Words of a memory are never part of an address. A write may carry an `Idempotency-Key`.
"""

api = Api(
    title="Palimpsest",
    version=VERSION,
    description=ABOUT,
    auth=Token(),
    parser=StrictJson(),
    docs_url=None,  # its page needs inline scripts, which the content security policy refuses
    openapi_url="/openapi.json",
    docs_decorator=require_safe,  # of the description, too
    urls_namespace="api-v1",
)
api.add_router("", memory.router)
api.add_router("", core.router)
problems.handle(api)

__all__ = ["api"]

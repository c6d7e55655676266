"""`memory search`."""

from __future__ import annotations

import json

from django.core.management.base import OutputWrapper

from consolidation.operations import obs, visible
from memory_site.management.memory.errors import Error, scope_named
from observations.retrieval import Answer, Hit, search

_BOTH = "words and meaning"


def search_scope(out: OutputWrapper, err: OutputWrapper, *, scope: str, query: str, k: int, as_json: bool) -> None:
    """Print the k best rows of a scope for a query. Raises Error."""
    if k < 1:
        raise Error("--k must be 1 or more.")
    answer = search(scope=scope_named(scope), query=query, k=k, call_site="search")
    out.write(json.dumps(_as_json(scope, answer), ensure_ascii=False) if as_json else _told(answer))
    if not answer.complete and not as_json:
        err.write("The answer is incomplete: a part of the search failed, the log says which.")


def _as_json(scope: str, answer: Answer) -> dict[str, object]:
    return {
        "answer": str(answer.id),
        "scope": scope,
        "complete": answer.complete,
        "hits": [
            {
                "id": obs(hit.id),
                "external_id": hit.external_id,
                "text": hit.text,
                "why": hit.why,
                "trust": hit.trust,
                "status": hit.status,
                "score": round(hit.score, 6),
                "cosine": None if hit.cosine is None else round(hit.cosine, 6),
            }
            for hit in answer.hits
        ],
    }


def _told(answer: Answer) -> str:
    if not answer.hits:
        return "nothing found"
    return "\n".join(_hit(place, hit) for place, hit in enumerate(answer.hits, start=1))


def _hit(place: int, hit: Hit) -> str:
    why = _BOTH if hit.why == "both" else hit.why
    near = "" if hit.cosine is None else f", cosine {hit.cosine:.2f}"
    return (
        f"{place}. {visible(hit.text)}\n"
        f"   {obs(hit.id)} ({visible(hit.external_id)}), by {why}{near}, trust {hit.trust}"
    )

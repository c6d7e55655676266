"""`memory search`, `memory prompt` and `memory history`."""

from __future__ import annotations

import json

from django.core.management.base import OutputWrapper

from consolidation.operations import obs, visible
from memory_site.management.memory.calling import Options, make, scope_of, tell
from memory_site.management.memory.errors import Error, Partly, scope_named
from observations.calls import schemas
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


def prompt(out: OutputWrapper, options: Options) -> None:
    """Print the memory block of a scope, as a prompt is given it. Raises Error, and Partly when a part is missing."""
    answer = make(
        "prompt",
        schemas.Prompt,
        scope=scope_named(options["scope"]).name,
        about=options["about"],
        session=options["session"],
        k=options["k"],
        longest=options["longest"],
    )
    tell(out, answer, as_json=options["json"], text=answer.text or "nothing to say")
    if not answer.complete:
        raise Partly("The block is incomplete: a part of the search failed, the log says which.")


def history(out: OutputWrapper, options: Options) -> None:
    """Print how a row came to be and what became of it. Raises Error."""
    scope, row = scope_of(options["observation"])
    answer = make("history_of_observation", schemas.History, scope=scope, id=row)
    tell(out, answer, as_json=options["json"], text="\n".join(_link(link) for link in answer.links))


def _link(link: schemas.Link) -> str:
    text = "(erased)" if link.text is None else visible(link.text)
    by = f" by {visible(link.by)}" if link.by else ""
    lines = [f"{obs(link.id)} {link.status}: {text}"]
    lines.append(f"  {link.recorded_at:%Y-%m-%d %H:%M} written{by} ({link.written_by}, the word of: {link.stated_by})")
    for move in link.moves:
        after = f", replaced by {obs(move.successor)}" if move.successor is not None else ""
        lines.append(f"  {move.at:%Y-%m-%d %H:%M} {move.from_status} -> {move.to_status}: {visible(move.why)}{after}")
    return "\n".join(lines)

"""`memory search`, `memory prompt` and `memory history`."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from django.core.management.base import OutputWrapper

from consolidation.operations import obs, visible
from memory_site.management.memory.calling import Options, make, scope_of, tell
from memory_site.management.memory.errors import Error, Partly, scope_named
from observations.calls import schemas
from observations.records import MemoryKind, StatedBy
from observations.retrieval import Answer, Hit, Narrowed, search

_BOTH = "words and meaning"


def search_scope(out: OutputWrapper, err: OutputWrapper, options: Options) -> None:
    """Print the k best rows of a scope for a query, of those that the options leave. Raises Error."""
    if options["k"] < 1:
        raise Error("--k must be 1 or more.")
    scope = scope_named(options["scope"])
    answer = search(
        scope=scope, query=options["query"], k=options["k"], call_site="search", narrowed=_narrowed(options)
    )
    as_json = options["json"]
    told = json.dumps(_as_json(scope.name, answer), ensure_ascii=False)
    out.write(told if as_json else _told(answer, explained=options["explain"]))
    if not answer.complete and not as_json:
        err.write("The answer is incomplete: a part of the search failed, the log says which.")


def _narrowed(options: Options) -> Narrowed:
    kind, stated_by = options["kind"], options["stated_by"]
    return Narrowed(
        subject=options["subject"],
        kind=MemoryKind(kind) if kind else None,
        stated_by=StatedBy(stated_by) if stated_by else None,
        said_from=_moment("--said-from", options["said_from"]),
        said_before=_moment("--said-before", options["said_before"]),
        as_of=_moment("--as-of", options["as_of"]),
        include_history=options["include_history"],
    )


def _moment(option: str, text: str | None) -> datetime | None:
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise Error(f"{option} takes a date such as 2026-05-31 or 2026-05-31T12:00:00Z.") from error
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


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
                "share_of_words": round(hit.share, 6),
                "named": round(hit.named, 6),
                "place_by_words": hit.place_by_words,
                "place_by_meaning": hit.place_by_meaning,
            }
            for hit in answer.hits
        ],
    }


def _told(answer: Answer, *, explained: bool) -> str:
    if not answer.hits:
        return "nothing found"
    return "\n".join(_hit(place, hit, explained) for place, hit in enumerate(answer.hits, start=1))


def _hit(place: int, hit: Hit, explained: bool) -> str:
    why = _BOTH if hit.why == "both" else hit.why
    near = "" if hit.cosine is None else f", cosine {hit.cosine:.2f}"
    lines = [
        f"{place}. {visible(hit.text)}",
        f"   {obs(hit.id)} ({visible(hit.external_id)}), by {why}{near}, trust {hit.trust}",
    ]
    return "\n".join([*lines, _reasons(hit)] if explained else lines)


def _reasons(hit: Hit) -> str:
    """Why a hit stands where it does: its score, its place in each list, and what counted."""
    by_meaning = "-" if hit.place_by_meaning is None else f"{hit.place_by_meaning}"
    by_words = "-" if hit.place_by_words is None else f"{hit.place_by_words}"
    return (
        f"   score {hit.score:.3f}; place by meaning {by_meaning}, by words {by_words};"
        f" share of words {hit.share:.2f}, subject named {hit.named:.2f}; {hit.status}"
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
        goals=options["goals"],
        max_tokens=options["max_tokens"],
        as_of=options["as_of"],
    )
    text = answer.text or "nothing to say"
    tell(out, answer, as_json=options["json"], text=f"{text}\n\n{_explained(answer)}" if options["explain"] else text)
    if not answer.complete:
        raise Partly("The block is incomplete: a part of the search failed, the log says which.")


def _explained(answer: schemas.Prompt) -> str:
    """What the block does not say of itself."""
    shown = [*map(obs, answer.ids), *(f"ep_{pk}" for pk in answer.episodes)]
    unfit = [*map(obs, answer.left_out), *(f"ep_{pk}" for pk in answer.episodes_left_out)]
    if answer.residue_left_out:
        unfit.append(f"{answer.residue_left_out} of residue")
    lines = {
        "answer": answer.answer or "none",
        "shown": ", ".join(shown) or "none",
        "left out for want of room": ", ".join(unfit) or "none",
        "marked outdated": ", ".join(answer.outdated) or "none",
        "failed": ", ".join(answer.failed) or "none",
        "episodes chosen by": visible(answer.chosen_by) or "the rule",
        "tokens": f"about {answer.tokens}",
    }
    return "\n".join(f"{name}: {said}" for name, said in lines.items())


def told(out: OutputWrapper, options: Options) -> None:
    """Print what an agent was told: one answer, its rows as they stand now. Raises Error."""
    answer = make(
        "get_answer",
        schemas.AnswerGiven,
        scope=scope_named(options["scope"]).name,
        answer=options["answer"],
        at=options["at"],
    )
    tell(out, answer, as_json=options["json"], text=_answered(answer))


def _answered(answer: schemas.AnswerGiven) -> str:
    by = f", episodes chosen by {visible(answer.chosen_by)}" if answer.chosen_by else ""
    failed = f", incomplete: {visible(', '.join(answer.failed))} failed" if answer.failed else ""
    head = f"{answer.answer} at {answer.at:%Y-%m-%d %H:%M:%S} for {answer.call_site}{by}{failed}"
    rows = [f"  {_row(row)}" for row in answer.rows]
    return "\n".join([head, *(rows or ["  nothing was shown"])])


def _row(row: schemas.Told) -> str:
    fate = "shown" if row.shown else "left out"
    mark = ", marked outdated" if row.outdated else ""
    text = "(erased)" if row.text is None else visible(row.text)
    return f"{row.id} {fate}{mark}, now {row.status}: {text}"


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

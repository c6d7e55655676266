"""`memory remember`, `facts`, `observe`, `correct`, `retire`, `restore`, `take-back`, `forget` and `residue`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, Final

from django.core.management.base import OutputWrapper

from consolidation.operations import visible
from memory_site.management.memory.bars import bar
from memory_site.management.memory.calling import Options, make, scope_of, tell
from memory_site.management.memory.errors import Error, Partly, scope_named
from memory_site.management.memory.files import opened, read_lines, size_of
from observations.calls import schemas
from observations.calls.shapes import MOST_ITEMS
from observations.ingest import MAX_LINE
from observations.records import Action

_SHOWN: Final = 20  # refused lines that are listed
_CLAIM: Final = ("subject", "predicate", "object", "kind", "stated_by", "confidence", "external_id")
_NEXT: Final = {
    "queued": "a worker was asked to read what waits",
    "waiting": "{waiting} of {every} turns wait; they are read together",
    "off": "nobody reads this scope's turns: `memory intake enable` changes that",
    "no model": "no model is configured; the turns wait until there is one",
}


def remember(out: OutputWrapper, options: Options) -> None:
    """Keep one claim. Raises Error, and Partly when it is refused."""
    answer = make(
        "remember",
        schemas.Remembered,
        scope=options["scope"],
        text=options["text"],
        evidence=_evidence(options),
        **{name: options[name] for name in _CLAIM},
    )
    _tell_one(out, answer, options)


def correct(out: OutputWrapper, options: Options) -> None:
    """Put a new claim in the place of one row. Raises Error, and Partly when it is refused."""
    scope, row = scope_of(options["observation"])
    answer = make(
        "correct",
        schemas.Remembered,
        scope=scope,
        id=row,
        text=options["text"],
        evidence=_evidence(options),
        union=not options["fresh"],
        version=options["version_read"],
        **{name: options[name] for name in _CLAIM},
    )
    _tell_one(out, answer, options)


def retire(out: OutputWrapper, options: Options) -> None:
    """Take one row out of the reads. Raises Error."""
    scope, row = scope_of(options["observation"])
    _tell_one(out, make("retire", schemas.Remembered, scope=scope, id=row, why=options["why"]), options)


def restore(out: OutputWrapper, options: Options) -> None:
    """Bring a retired row back. Raises Error."""
    scope, row = scope_of(options["observation"])
    _tell_one(out, make("restore", schemas.Remembered, scope=scope, id=row), options)


def take_back(out: OutputWrapper, options: Options) -> None:
    """Have a row current again that the background replaced. Raises Error."""
    scope, row = scope_of(options["observation"])
    answer = make("take_back", schemas.TakenBack, scope=scope, id=row)
    back = ", ".join(f"obs_{pk}" for pk in answer.back)
    text = f"{back} current again, obs_{answer.id} archived"
    text = f"taken back before: {text}; nothing changed" if answer.done_before else f"taken back: {text}"
    tell(out, answer, as_json=options["json"], text=text)


def forget(out: OutputWrapper, options: Options) -> None:
    """Ask that something be forgotten for good. Raises Error."""
    answer = make(
        "forget",
        schemas.Requested,
        scope=scope_named(options["scope"]).name,
        ids=options["observations"],
        subject_of=options["subject_of"],
        everything=options["everything"],
    )
    text = f"Nothing is erased yet: request {answer.request} comes into the queue of the admin, where a person decides."
    tell(out, answer, as_json=options["json"], text=text)


def residue(out: OutputWrapper, options: Options) -> None:
    """Hand in what was noticed in a run. Raises Error, and Partly when an item is refused."""
    answer = make(
        "residue_hold",
        schemas.ResidueHeld,
        scope=scope_named(options["scope"]).name,
        items=options["items"],
        session=options["session"],
    )
    lines = [f"{answer.held} held, {answer.refused} refused"]
    lines += [f"  item {number}: {item.reason}" for number, item in enumerate(answer.items, start=1) if item.reason]
    unjudged = [number for number, item in enumerate(answer.items, start=1) if item.held and not item.judged]
    lines += [f"  item {number}: not English, so nobody judged whether it describes or commands" for number in unjudged]
    tell(out, answer, as_json=options["json"], text="\n".join(lines))
    if answer.refused:
        raise Partly(f"{answer.refused} of {len(answer.items)} items were refused.")


def _evidence(options: Options) -> list[dict[str, str]] | None:
    source, quote = options["source"], options["quote"]
    return [{"source_uri": source, "quote": quote}] if source or quote else None


def _tell_one(out: OutputWrapper, answer: schemas.Remembered, options: Options) -> None:
    refused = answer.action is Action.REFUSED
    if options["json"] or not refused:
        tell(out, answer, as_json=options["json"], text=_told(answer))
    if refused:
        raise Partly(f"Refused: {answer.reason}.")


def _told(answer: schemas.Remembered) -> str:
    row = f"obs_{answer.id} " if answer.id is not None else ""
    place = f", in the place of obs_{answer.replaced}" if answer.replaced is not None else ""
    sources = f" ({answer.evidence} source{'' if answer.evidence == 1 else 's'}{place})" if answer.evidence else ""
    lines = [f"{row}{answer.action}: {visible(answer.text)}{sources}".rstrip(": ")]
    if answer.reason:
        lines.append(f"  {answer.reason}")
    if answer.cleaned:
        lines.append("  it held characters no database can keep; a visible mark stands for them")
    return "\n".join(lines)


# --- files -----------------------------------------------------------------------------------------------------------


def facts(out: OutputWrapper, options: Options) -> None:
    """Keep the facts of a file about one user. Raises Error, and Partly when a line is refused."""
    author = {"name": options["author"], "role": options["role"]} if options["author"] else None

    def keep(values: Sequence[Any]) -> list[tuple[str, str]]:
        answer = make(
            "store_facts",
            schemas.FactsStored,
            scope=options["scope"],
            about=options["about"],
            author=author,
            facts=values,
        )
        return [(_fate(fact), fact.reason) for fact in answer.facts]

    fates = _through(options["file"], keep)
    _tell_lines(out, fates, options, words=("stored", "duplicates"))


def _fate(fact: schemas.Remembered) -> str:
    if fact.action is Action.REFUSED:
        return "refused"
    return "duplicates" if fact.action is Action.KNOWN else "stored"


def observe(out: OutputWrapper, options: Options) -> None:
    """Record one turn, or those of a file, and say what will become of extraction. Raises Error and Partly."""
    if (options["text"] is None) == (options["file"] is None):
        raise Error("Give the text of one turn, or --file with JSON lines.")
    last: list[schemas.Observed] = []

    def record(values: Sequence[Any]) -> list[tuple[str, str]]:
        last[:] = [make("observe", schemas.Observed, scope=options["scope"], turns=values)]
        return [(turn.fate, turn.reason) for turn in last[0].turns]

    if options["file"] is not None:
        fates = _through(options["file"], record)
    else:
        turn = {name: options[name] for name in ("text", "speaker", "role", "session") if options[name] is not None}
        fates = [(1, *fate) for fate in record([turn])]
    _tell_lines(out, fates, options, words=("added", "already there"), observed=last[0] if last else None)


Fates = list[tuple[int, str, str]]  # line, what became of it, why it was refused


def _through(file: str, act: Callable[[Sequence[Any]], list[tuple[str, str]]]) -> Fates:
    """The fate of every line of a file, which is handed on in parts. Raises Error."""
    fates: Fates = []
    with opened(file) as stream, bar("lines", size_of(stream), "B") as shown:
        lines = enumerate(read_lines(stream, shown.update), start=1)
        while part := list(islice(lines, MOST_ITEMS)):
            read = [(number, *_value(line)) for number, line in part if line.strip()]
            good = [(number, value) for number, value, fault in read if not fault]
            fates += [(number, "refused", fault) for number, _, fault in read if fault]
            done = act([value for _, value in good]) if good else []
            fates += [(number, *fate) for (number, _), fate in zip(good, done, strict=True)]
    return sorted(fates)


def _value(line: bytes) -> tuple[Any, str]:
    if len(line) > MAX_LINE:
        return None, f"the line is longer than {MAX_LINE:,} bytes"
    try:
        return json.loads(line), ""
    except (ValueError, RecursionError):
        return None, "the line is not JSON"


def _tell_lines(
    out: OutputWrapper,
    fates: Fates,
    options: Options,
    *,
    words: Sequence[str],
    observed: schemas.Observed | None = None,
) -> None:
    counts = {word: sum(fate == word for _, fate, _ in fates) for word in (*words, "refused")}
    refused = [{"line": number, "reason": why} for number, fate, why in fates if fate == "refused"]
    if options["json"]:
        document: dict[str, object] = {"read": len(fates), **counts, "refused": refused}
        if observed is not None:
            document |= {"extraction": observed.extraction, "waiting": observed.waiting, "every": observed.every}
        out.write(json.dumps({word.replace(" ", "_"): value for word, value in document.items()}, ensure_ascii=False))
    else:
        out.write("\n".join(_lines_told(fates, counts, observed)))
    if refused:
        raise Partly(f"{len(refused):,} of {len(fates):,} lines were refused.")


def _lines_told(fates: Fates, counts: dict[str, int], observed: schemas.Observed | None) -> Iterator[str]:
    yield f"{len(fates):,} read: " + ", ".join(f"{count:,} {word}" for word, count in counts.items())
    refused = [(number, why) for number, fate, why in fates if fate == "refused"]
    yield from (f"  line {number}: {visible(why)}" for number, why in refused[:_SHOWN])
    if len(refused) > _SHOWN:
        yield f"  and {len(refused) - _SHOWN:,} more (--json lists all)"
    if observed is not None:
        what = _NEXT.get(observed.extraction, "").format(waiting=observed.waiting, every=observed.every)
        yield f"extraction: {observed.extraction}" + (f" ({what})" if what else "")

"""The record of a decision as plain text, a line per thing said."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from consolidation.admin.record.reading import Act, Record


def render_text(record: Record) -> str:
    """The whole record; its texts are indented, so that none of them can pass for a heading. No query."""
    return "\n".join([*_head(record), *_covered(record), *_done(record)]) + "\n"


def _head(record: Record) -> Iterator[str]:
    head = record.head
    yield f"RECORD OF {head.op_id}, generation {head.generation}"
    yield f"{head.kind} in {head.scope}: {head.state}. Risk: {head.risk}. Made {record.printed} UTC."
    yield from _pairs(
        ("reason", head.reason),
        ("skipped", head.skipped),
        ("lowest similarity", head.score),
        ("rule", head.rule),
        ("words by", record.words.asked_model),
        *(("keys by", model) for model in record.words.key_models),
    )
    under = f"{record.rules.pattern or 'the defaults'} version {record.rules.version}"
    yield f"policy: {under}, {record.rules.hash}"
    if record.rules.decided_hash:
        yield f"decided under: {record.rules.decided_under}, {record.rules.decided_hash}"


def _covered(record: Record) -> Iterator[str]:
    yield from ("", "WHAT WAS SHOWN")
    for row in record.shown:
        yield f"{row.name} version {row.version}, {row.stood} then, {row.now} now"
        yield f"    sha256 {row.content_hash or 'erased'}"
        yield from _indented(row.text)
        if row.left_out:
            yield f"    ({row.left_out} more characters)"
    if record.more:
        yield f"and {record.more} more rows"
    if record.words.proposes:
        yield from ("It would write:", *_indented(record.words.proposes))
    if record.words.choice_text:
        yield from ("The reviewer wrote:", *_indented(record.words.choice_text))
    yield from _pairs(("key", record.words.proposes_key), ("object", record.words.choice_object), *record.words.choices)
    yield f"digest: {record.checked.digest or 'none'}. {record.checked.sentence}"
    yield from (f"since planning: {one}" for one in record.moved)


def _done(record: Record) -> Iterator[str]:
    yield from ("", "WHO DID WHAT", *_acts(record.acts))
    if record.comments:
        yield from ("", "COMMENTS", *_acts(record.comments))
    yield from ("", "AUDIT", *_acts(record.events))
    yield from ("", "WHAT FOLLOWED")
    for one in record.followed:
        yield f"{one.at}: {one.what} {one.name}, {one.state}"
        if one.text:
            yield from _indented(one.text)
    if not record.followed:
        yield "nothing"


def _pairs(*pairs: tuple[str, str]) -> Iterator[str]:
    return (f"{name}: {value}" for name, value in pairs if value)


def _indented(text: str) -> Iterator[str]:
    return (f"    {line}" for line in text.split("\n"))


def _acts(acts: Iterable[Act]) -> Iterator[str]:
    return (f"{one.at}: {one.what} by {one.by}{f'. {one.why}' if one.why else ''}" for one in acts)

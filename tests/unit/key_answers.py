"""Answers about keys, as a model gives them, and what is read from them."""

from __future__ import annotations

import json

from observations import keying
from observations.keying import Found, Lacking, Refusal
from observations.llm import Reply


def entry(
    label: object, subject: object = "", predicate: object = "", object: object = "", quote: object = ""
) -> dict[str, object]:
    """One entry of an answer."""
    return {"label": label, "subject": subject, "predicate": predicate, "object": object, "quote": quote}


LIVES = entry(0, "Anna", "lives in", "Oslo", "Anna lives in Oslo")


def said(text: str, *entries: object, **has: str) -> list[Found]:
    """What an answer with these entries says of one observation of that text, with parts that its writer gave."""
    reply = Reply(text=json.dumps({"keys": list(entries)}), model="m")
    return list(keying.read(reply=reply, lacking=[Lacking(1, text, **has)]).found)


def refusal_of(text: str, answer: object, **has: str) -> Refusal | None:
    """Why that answer is refused; None when it is not."""
    return said(text, answer, **has)[0].refusal


def key_of(text: str, answer: object, **has: str) -> tuple[str, str, str] | Refusal | None:
    """The parts that are given; or why none are; or None."""
    [found] = said(text, answer, **has)
    if found.verdict == keying.Verdict.GIVEN:
        return found.subject, found.predicate, found.object
    return found.refusal

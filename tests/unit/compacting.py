"""Episodes, groups, answers and summaries by hand, for tests of compaction: no database, no model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

from consolidation import compact
from consolidation.compact import Coverage, Group, Written
from consolidation.compact.specifics import read
from consolidation.operations import Proposal
from consolidation.policy import Policy
from observations.records import EpisodeRecord, Status

START = datetime(2024, 1, 1, 9, tzinfo=UTC)
NOW = datetime(2025, 1, 1, 9, tzinfo=UTC)


def turn(
    number: int,
    text: str = "",
    *,
    scope: int = 1,
    session: str = "s",
    speaker: str = "",
    role: str = "",
    seq: int = 0,
    at: datetime | None = None,
    status: Status = Status.ACTIVE,
) -> EpisodeRecord:
    """One episode of scope 1 and session s, a minute after the one before it, unless told otherwise."""
    text = text or f"Turn {number} says something of its own"
    return EpisodeRecord(
        id=number,
        scope_id=scope,
        text=text,
        happened_at=at or START + timedelta(minutes=number),
        source_uri=f"test://{number}",
        root_source=f"test://{number}",
        content_hash=sha256(text.encode("utf-8", "surrogatepass")).hexdigest(),
        version=1,
        status=status,
        speaker=speaker,
        role=role,
        session=session,
        seq=seq,
    )


def group(*texts: str, speaker: str = "", first: int = 1) -> Group:
    """A group of these texts with ids from `first`."""
    episodes = [turn(number, text, speaker=speaker) for number, text in enumerate(texts, start=first)]
    return Group(scope_id=1, session="s", episodes=tuple(episodes))


def answer(*sentences: tuple[Any, Any]) -> str:
    """A reply as a model should give it: (text, labels) per sentence."""
    return json.dumps({"sentences": [{"text": text, "episodes": labels} for text, labels in sentences]})


def written(to: Group, *sentences: str) -> Written:
    """The checked answer of a model that gives these sentences and labels them in order."""
    last = len(to.episodes) - 1
    return compact.read(reply=answer(*((text, [min(at, last)]) for at, text in enumerate(sentences))), group=to)


def proposed(to: Group, *sentences: str, policy: Policy | None = None) -> Proposal:
    """The proposal that comes of these sentences."""
    return compact.proposal(
        group=to, written=written(to, *sentences), policy=policy or Policy(), discriminator="compact-1"
    )


def covered(sources: Sequence[str] | str, summary: str, **more: Any) -> Coverage:
    """What a summary lost of some sources, or of one."""
    return compact.coverage(sources=[sources] if isinstance(sources, str) else sources, summary=summary, **more)


def lost_words(sources: Sequence[str] | str, summary: str) -> list[str]:
    """The words at the places that the check lists as lost."""
    texts = [sources] if isinstance(sources, str) else sources
    return [texts[lost.source][lost.start : lost.end] for lost in covered(texts, summary).lost]


def invented_words(sources: Sequence[str] | str, summary: str) -> list[str]:
    """The words at the places that the check lists as invented."""
    return [summary[invented.start : invented.end] for invented in covered(sources, summary).invented]


def specifics(text: str) -> list[tuple[str, str, str]]:
    """(words, sort, demand) of every specific of a text."""
    found = read(text)
    return [(text[slice(*found.place(each))], each.sort.value, each.demand.value) for each in found.specifics]


def firm(text: str) -> list[str]:
    """The words of the specifics that have to be kept as they are."""
    return [words for words, _sort, demand in specifics(text) if demand == "firm"]


def needs(text: str) -> set[str]:
    """The keys that a summary of this text has to answer."""
    return {need for each in read(text).specifics if each.demand.value == "firm" for need in each.needs}


def gives(text: str) -> frozenset[str]:
    """The keys that this text answers."""
    return read(text).gives


# Ten episodes of which one holds what C9 names, and a summary that keeps everything.
C9_EPISODES = (
    "The nightly import started late because the disk was slow.",
    "Kim asked for a second look at the importer's logs.",
    "The importer wrote 12,400 rows and skipped 3.",
    "Rollback used build 4417 at 14:05 and took 38 s",
    "Omar restarted the queue worker on node web-03.",
    "The dashboard showed stale figures until Thursday.",
    "Version 2.3.1 was pinned in the lock file.",
    "Priya mailed the report to ops@acme.example.",
    "The alert threshold was raised to 85 percent.",
    "Everybody agreed to meet again on 14 June 2024.",
)
C9_SUMMARY = (
    "The nightly import started late because of a slow disk, and Kim asked for a second look at the importer's logs.",
    "The importer wrote 12400 rows and skipped 3.",
    "A rollback at 14:05 used build 4417 and took 38 seconds.",
    "Omar restarted the queue worker on node web-03, and the dashboard showed stale figures until Thursday.",
    "Version 2.3.1 was pinned in the lock file, and Priya mailed the report to ops@acme.example.",
    "The alert threshold was raised to 85%, and everybody agreed to meet again on June 14, 2024.",
)

"""Episodes, clusters and model replies by hand, for tests of promotion: no database, no model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

from consolidation import promote
from consolidation.operations import Proposal
from consolidation.policy import Policy
from observations.records import EpisodeRecord, Outcome, Status

START = datetime(2024, 1, 1, 9, tzinfo=UTC)
DEFAULT = Policy()


def episode(
    number: int,
    text: str,
    *,
    root: str | None = None,
    scope: int = 1,
    speaker: str = "",
    role: str = "",
    session: str = "",
    outcome: Outcome = Outcome.UNKNOWN,
    status: Status = Status.ACTIVE,
    day: float | None = None,
) -> EpisodeRecord:
    """One episode of scope 1 with a source of its own, a day after the one before it, unless told otherwise."""
    return EpisodeRecord(
        id=number,
        scope_id=scope,
        text=text,
        happened_at=START + timedelta(days=number if day is None else day),
        source_uri=f"test://{number}",
        root_source=f"test://{number}" if root is None else root,
        content_hash=sha256(text.encode("utf-8", "surrogatepass")).hexdigest(),
        version=1,
        status=status,
        speaker=speaker,
        role=role,
        session=session,
        outcome=outcome,
    )


def cluster(*episodes: EpisodeRecord) -> promote.Cluster:
    """A cluster whose labels follow the order given: the fixtures are a day apart."""
    return promote.together(episodes)


def fact(text: str, *quotes: tuple[Any, Any], labels: Any = None, **fields: Any) -> dict[str, Any]:
    """A fact as a model gives it; its labels are those of the quotes unless told otherwise."""
    named = [label for label, _ in quotes] if labels is None else labels
    told = [{"episode": label, "words": words} for label, words in quotes]
    return {
        "text": text,
        "subject": "",
        "predicate": "",
        "object": "",
        "supported_by": named,
        "quotes": told,
        **fields,
    }


def reply(*facts: Any) -> str:
    """A reply that holds these items."""
    return json.dumps({"facts": list(facts)})


def planned(
    asked: promote.Cluster, *facts: Any, policy: Policy = DEFAULT, discriminator: str = "draft.7", **known: Any
) -> tuple[Proposal, ...]:
    """The proposals that a reply with these items comes to."""
    checked = promote.read(reply=reply(*facts), cluster=asked)
    return promote.proposals(cluster=asked, checked=checked, policy=policy, discriminator=discriminator, **known)


def reasons(checked: promote.Checked) -> list[str]:
    """Why items and parts of items were refused, in order."""
    return [refusal.why.value for refusal in checked.refused]


TEA = "Ann drinks green tea every morning"
SAID: Sequence[str] = (
    "I drank my green tea this morning, as I do every morning",
    "Every morning I drink green tea before work",
    "Green tea again, it is what I drink every morning",
    "The green tea I drink every morning comes from Kyoto",
)
QUOTED: Sequence[str] = (
    "drank my green tea this morning, as I do every morning",
    "Every morning I drink green tea",
    "Green tea again, it is what I drink every morning",
    "The green tea I drink every morning",
)


def tea(count: int = 4, **fields: Any) -> promote.Cluster:
    """Up to four separate episodes in which Ann says the same."""
    said = enumerate(SAID[:count], start=1)
    return cluster(*(episode(number, text, speaker="Ann", **fields) for number, text in said))


def tea_fact(*labels: int, text: str = TEA, **fields: Any) -> dict[str, Any]:
    """The fact of `tea`, supported by these labels."""
    return fact(text, *((label, QUOTED[label]) for label in labels), **fields)

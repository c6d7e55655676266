"""Dated facts as one scope's records, planned by the rules: what merges, and which changes of value are asked about."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np

from consolidation.candidates import Columns, contradicting, links, pairs
from consolidation.merge import merge_proposals
from consolidation.operations import Approval, Kind, Proposal
from consolidation.policy import Policy
from observations.embedding import Embedder
from observations.minhash import minhash_bands
from observations.normalise import key64, key_part, normalised
from observations.records import Record, StatedBy, Status

FILE: Final = "facts_timeline.jsonl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What one plan makes of the facts."""

    rows: int
    keys: int  # of subject and predicate
    merges: int  # automatic
    across: tuple[tuple[str, ...], ...]  # automatic merges across different objects: the texts of each
    offered: int  # merges across different objects that a person is offered
    changes: int  # consecutive values of one key that differ
    proposed: int  # of them, those that a person is asked about in one SUPERSEDE
    seconds: float  # embedding included


def records(path: Path) -> list[Record]:
    """The facts in the order of the file. One whose period ends before it begins is left out, as an import does.

    Raises OSError, ValueError, KeyError on an unreadable file.
    """
    lines = path.read_text(encoding="utf-8").splitlines()
    read = [_record(number, json.loads(line)) for number, line in enumerate(lines, start=1)]
    return [
        record
        for record in read
        if record.valid_from is None or record.valid_to is None or record.valid_from <= record.valid_to
    ]


def _record(number: int, fact: dict[str, str]) -> Record:
    names = (fact["subject"], fact["predicate"], fact["object"])
    return Record(
        id=number,
        scope_id=1,
        text=fact["text"],
        normalised=normalised(fact["text"]),
        key=(key_part(names[0]), key_part(names[1]), key_part(names[2])),
        confidence=0.5,
        stated_by=StatedBy.AGENT,
        created_at=datetime(2024, 1, 1, tzinfo=UTC),
        status=Status.ACTIVE,
        version=1,
        content_hash=sha256(fact["text"].encode()).hexdigest(),
        external_id=fact["id"],
        subject=names[0],
        predicate=names[1],
        object=names[2],
        valid_from=_moment(fact["valid_from"]),
        valid_to=_moment(fact["valid_to"]),
    )


def _moment(text: str | None) -> datetime | None:
    """A year or a month is its first moment."""
    return datetime.fromisoformat(f"{text}-01-01"[:10]).replace(tzinfo=UTC) if text else None


def measure(rows: Sequence[Record], *, embed: Embedder) -> Measured:
    """Plan the records as one scope, by the rule and the candidates that planning uses; reviews are unlimited."""
    began = time.perf_counter()
    proposals = _planned(rows, embed)
    seconds = time.perf_counter() - began
    known = {row.id: row for row in rows}
    merges = [proposal for proposal in proposals if proposal.kind is Kind.MERGE and proposal.appliable]
    across = [merge for merge in merges if len({known[row].key[2] for row in merge.sources}) > 1]
    changed = list(_changes(rows))
    asked = _asked(proposals)
    return Measured(
        rows=len(rows),
        keys=len({row.key[:2] for row in rows}),
        merges=sum(merge.approval is Approval.AUTO for merge in merges),
        across=tuple(
            tuple(known[row].text for row in merge.sources) for merge in across if merge.approval is Approval.AUTO
        ),
        offered=sum(merge.approval is not Approval.AUTO for merge in across),
        changes=len(changed),
        proposed=sum(any({a, b} <= sources for sources in asked[a]) for a, b in changed),
        seconds=seconds,
    )


def _planned(rows: Sequence[Record], embed: Embedder) -> tuple[Proposal, ...]:
    policy = Policy(review_budget=None)
    table = Columns(
        ids=np.array([row.id for row in rows], np.int64),
        text_key=np.array([key64(row.normalised) for row in rows], np.int64),
        subject_key=np.array([key64(row.key[0]) for row in rows], np.int64),
        sp_key=np.array([key64(*row.key[:2]) for row in rows], np.int64),
        spo_key=np.array([key64(*row.key) for row in rows], np.int64),
        bands=minhash_bands([row.normalised for row in rows]),
        vectors=embed.embed([row.text for row in rows]),
        has_vector=np.ones(len(rows), np.bool_),
    )
    found = pairs(table, t_candidate=embed.profile.t_candidate, block_cap=policy.block_cap)
    near = links(columns=table, pairs=found)
    wanted = {row for link in near for row in (link.a, link.b)} | set(contradicting(table).tolist())
    return merge_proposals([row for row in rows if row.id in wanted], near, profile=embed.profile, policy=policy)


def _changes(rows: Iterable[Record]) -> Iterable[tuple[int, int]]:
    """The consecutive rows of one key that hold different objects, in the order in which their periods begin."""
    by_key: defaultdict[tuple[str, str], list[Record]] = defaultdict(list)
    for row in rows:
        by_key[row.key[:2]].append(row)
    first = datetime.min.replace(tzinfo=UTC)
    for values in by_key.values():
        values.sort(key=lambda row: (row.valid_from or first, row.id))
        yield from ((a.id, b.id) for a, b in pairwise(values) if a.key[2] != b.key[2])


def _asked(proposals: Iterable[Proposal]) -> defaultdict[int, list[frozenset[int]]]:
    """Per row, the sources of each SUPERSEDE that it is part of and that awaits a review."""
    asked: defaultdict[int, list[frozenset[int]]] = defaultdict(list)
    for proposal in proposals:
        if proposal.kind is Kind.SUPERSEDE and proposal.awaits_review:
            for row in proposal.sources:
                asked[row].append(frozenset(proposal.sources))
    return asked

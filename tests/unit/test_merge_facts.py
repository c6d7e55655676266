"""Real dated facts (Time-Sensitive-QA, Wikidata and Wikipedia): no merge across objects, and no change of value missed.

The file is read where it lies; where it is missing, these tests skip loudly.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import lru_cache
from hashlib import sha256
from itertools import combinations

import numpy as np
import pytest

from consolidation.candidates import Columns, Link, contradicting, links, pairs
from consolidation.merge import merge_proposals, overlap
from consolidation.operations import Kind, Proposal
from consolidation.policy import Policy
from observations.embedding import HASHING, Hashing
from observations.minhash import minhash_bands
from observations.records import Record
from tests.jsonl import real
from tests.unit.rows import day, row

Key = tuple[str, str]

ROWS = 900  # of 902: two periods end before they begin, and an import refuses those
KEYS = 259  # with two objects or more, as keys are compared: of 11 of the file's 270, the objects are spelt alike


@lru_cache(maxsize=1)
def facts() -> tuple[Record, ...]:
    """Every fact that an import takes as one scope's record, in the order of the file."""
    found: list[Record] = []
    for line in real("facts_timeline.jsonl").read_text(encoding="utf-8").splitlines():
        fact = json.loads(line)
        key = (fact["subject"], fact["predicate"], fact["object"])
        start, end = moment(fact["valid_from"]), moment(fact["valid_to"])
        if start is None or end is None or start <= end:
            number = len(found) + 1
            found.append(row(number, fact["text"], key, valid_from=start, valid_to=end, roots=fact["source_uris"]))
    return tuple(found)


def moment(text: str | None) -> datetime | None:
    """A year or a month is its first moment, as an import reads it."""
    return day(f"{text}-01-01"[:10]) if text else None


@lru_cache(maxsize=1)
def vectors() -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    return Hashing().embed([record.text for record in facts()])


def hashed(*parts: str) -> int:
    """A key as the columns hold it; 0 where a part is missing."""
    blob = "\x00".join(parts).encode()
    return int.from_bytes(sha256(blob).digest()[:8], "little", signed=True) if all(parts) else 0


def columns(rows: Sequence[Record]) -> Columns:
    made = vectors()[[record.id - 1 for record in rows]]
    return Columns(
        ids=np.array([record.id for record in rows], np.int64),
        text_key=np.array([hashed(record.normalised) for record in rows], np.int64),
        subject_key=np.array([hashed(record.key[0]) for record in rows], np.int64),
        sp_key=np.array([hashed(*record.key[:2]) for record in rows], np.int64),
        spo_key=np.array([hashed(*record.key) for record in rows], np.int64),
        bands=minhash_bands([record.normalised for record in rows]),
        vectors=made,
        has_vector=np.ones(len(rows), np.bool_),
    )


def planned(rows: Sequence[Record], *, policy: Policy, **taught: str) -> tuple[Proposal, ...]:
    """What a pass over these rows proposes, by the candidates that a plan has."""
    table = columns(rows)
    near = links(columns=table, pairs=pairs(table, t_candidate=HASHING.t_candidate, block_cap=policy.block_cap))
    wanted = {row for link in near for row in (link.a, link.b)} | set(contradicting(table).tolist())
    read = [record for record in rows if record.id in wanted]
    cardinality = {name.replace("_", " "): count for name, count in taught.items()}
    return merge_proposals(read, near, profile=HASHING, policy=policy, cardinality=cardinality)


@lru_cache(maxsize=2)
def one_pass(block_cap: int = 200) -> tuple[Proposal, ...]:
    return planned(facts(), policy=Policy(block_cap=block_cap))


def several_values(rows: Iterable[Record]) -> dict[Key, list[Record]]:
    """The keys that change their value, by hand."""
    by_key: defaultdict[Key, list[Record]] = defaultdict(list)
    for record in rows:
        by_key[record.key[:2]].append(record)
    return {key: rows for key, rows in by_key.items() if len({record.key[2] for record in rows}) > 1}


def asked(made: Iterable[Proposal]) -> dict[Key, Proposal]:
    """The contradictions that a person is shown, by key."""
    return {
        facts()[proposal.sources[0] - 1].key[:2]: proposal
        for proposal in made
        if proposal.kind is Kind.SUPERSEDE and proposal.awaits_review
    }


def merged(made: Iterable[Proposal]) -> list[Proposal]:
    return [proposal for proposal in made if proposal.kind is Kind.MERGE and proposal.appliable]


# --- the bars --------------------------------------------------------------------------------------------------------


def test_the_file_is_the_one_that_the_figures_are_of() -> None:
    assert len(facts()) == ROWS
    assert len(several_values(facts())) == KEYS


@pytest.mark.parametrize("block_cap", [200, 2])
def test_every_change_of_value_is_proposed_whole(block_cap: int) -> None:
    """R71: 259 keys, 259 questions, each with every live value; also where blocks are cut to two rows (R41)."""
    shown = asked(one_pass(block_cap))
    expected = several_values(facts())
    assert {key: proposal.sources for key, proposal in shown.items()} == {
        key: tuple(record.id for record in rows) for key, rows in expected.items()
    }


@pytest.mark.parametrize("block_cap", [200, 2])
def test_no_merge_joins_two_objects(block_cap: int) -> None:
    """R43, R88, I16: neither an automatic one nor one that a person is offered, whatever the cosine."""
    for proposal in merged(one_pass(block_cap)):
        keys = {facts()[source - 1].key for source in proposal.sources}
        assert not any(a[:2] == b[:2] and a[2] != b[2] for a, b in combinations(keys, 2))
        assert len(keys) == 1 or not proposal.auto


def test_a_question_waits_for_a_merge_only_in_the_queue_and_is_open_in_the_next_pass() -> None:
    """Two passes: what the first one merges is one row in the second, and then nothing waits any more."""
    made = one_pass()
    gone = {source for proposal in made if proposal.auto for source in proposal.sources if source != proposal.keeper}
    again = asked(planned([record for record in facts() if record.id not in gone], policy=Policy()))
    waiting = {key for key, proposal in asked(made).items() if not proposal.appliable}
    assert waiting
    assert again.keys() == asked(made).keys()
    assert all(proposal.appliable for proposal in again.values())


# --- suggestions -----------------------------------------------------------------------------------------------------


def test_most_keys_are_history_and_few_look_many_valued() -> None:
    """Of 259 keys: each value in its own period, or loose dates of one value, or several values at one moment."""
    suggested: defaultdict[str, set[str]] = defaultdict(set)
    counted: defaultdict[str, int] = defaultdict(int)
    for key, proposal in asked(one_pass()).items():
        name = str(proposal.product["suggested"])
        counted[name] += 1
        suggested[name].add(key[1])
    assert dict(counted) == {"periods": 247, "newest": 10, "many": 2}
    assert suggested["many"] == {"award received", "participant"}


def test_a_taught_predicate_is_asked_about_no_more_and_its_values_still_do_not_merge() -> None:
    """Two awards are no contradiction; nothing else is different."""
    taught = planned(facts(), policy=Policy(), award_received="many")
    gone = asked(one_pass()).keys() - asked(taught).keys()
    assert {key[1] for key in gone} == {"award received"}
    assert {proposal.sources for proposal in merged(taught)} <= {proposal.sources for proposal in merged(one_pass())}


# --- naive controls --------------------------------------------------------------------------------------------------


def test_a_rule_that_takes_periods_in_turn_for_settled_misses_nearly_all() -> None:
    """The control: only overlapping periods were a contradiction once."""
    expected = several_values(facts())
    found = [
        key
        for key, rows in expected.items()
        if any(a.key[2] != b.key[2] and overlap(a, b) for a, b in combinations(rows, 2))
    ]
    assert len(found) == 12


def test_a_rule_of_similarity_alone_joins_values_of_one_key() -> None:
    """The control: the sentences of two values are often nearly one text, or one."""
    table = columns(facts())
    near = links(columns=table, pairs=pairs(table, t_candidate=HASHING.t_candidate))
    wrong = [link for link in near if link.cosine >= HASHING.t_merge and differ(link)]
    assert len(wrong) == 93


def differ(link: Link) -> bool:
    a, b = facts()[link.a - 1], facts()[link.b - 1]
    return a.key[:2] == b.key[:2] and a.key[2] != b.key[2]

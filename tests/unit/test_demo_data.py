"""The demo's rows: enough of them, consistent with each other, and holding what a visitor should find in a plan."""

import json
import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache
from hashlib import sha256
from itertools import combinations
from pathlib import Path
from typing import TypeVar

import pytest

from consolidation.candidates import Link, Met
from consolidation.merge import merge_proposals
from consolidation.operations import Approval, Kind, Proposal
from consolidation.policy import Policy, Retention
from consolidation.prune import prune_proposals
from memory_site.demo import EARLIER_MERGES, REPEATED_TEXTS, RETENTION, SCOPES, lines
from observations.embedding import Matrix, MiniLM
from observations.normalise import key_part, normalised, tokens
from observations.records import Record, StatedBy, Status

NOW = datetime(2031, 3, 9, 14, 30, tzinfo=UTC)
STATED_BY = {"user", "operator", "agent", "tool", "outside"}
ROLES = {"user", "assistant", "tool"}
OUTCOMES = {"success", "claimed", "partial", "failure", "unknown"}
COMMON = {"kind", "id", "scope", "created_at", "text", "source_uris"}
OBSERVATION = COMMON | {"confidence", "stated_by"}
OBSERVATION_OPTIONAL = {"subject", "predicate", "object", "valid_from", "valid_to", "supersedes"}
EPISODE = COMMON | {"speaker", "role", "session", "seq", "source_uri", "outcome"}
Row = dict[str, object]
Value = TypeVar("Value")


@lru_cache(maxsize=1)
def rows() -> tuple[Row, ...]:
    return tuple(lines(now=NOW))


def of_kind(kind: str) -> list[Row]:
    return [row for row in rows() if row["kind"] == kind]


def taken(row: Row, name: str, kind: type[Value]) -> Value:
    """A field of one row, which must be of one type."""
    value = row[name]
    assert isinstance(value, kind), f"{row['id']}: {name} is {value!r}"
    return value


def moment(row: Row, name: str = "created_at") -> datetime:
    return datetime.fromisoformat(taken(row, name, str))


def place(row: Row, external_id: str | None = None) -> tuple[str, str]:
    return taken(row, "scope", str), external_id or taken(row, "id", str)


def by_place() -> dict[tuple[str, str], Row]:
    return {place(row): row for row in rows()}


def active() -> list[Row]:
    """Observations that no line supersedes."""
    gone = {place(row, taken(row, "supersedes", str)) for row in rows() if "supersedes" in row}
    return [row for row in of_kind("observation") if place(row) not in gone]


def plain(row: Row, name: str) -> str:
    return " ".join(tokens(taken(row, name, str)))


def claims_by_key() -> dict[tuple[str, str, str], dict[str, list[Row]]]:
    """Active keyed observations: (scope, subject, predicate) to object to rows, all compared as the planner does."""
    found: dict[tuple[str, str, str], dict[str, list[Row]]] = defaultdict(lambda: defaultdict(list))
    for row in active():
        if "subject" in row:
            key = (taken(row, "scope", str), plain(row, "subject"), plain(row, "predicate"))
            found[key][plain(row, "object")].append(row)
    return found


def chain_lengths() -> list[int]:
    """How many rows each supersession chain holds, its newest row included."""
    older = {place(row): place(row, taken(row, "supersedes", str)) for row in rows() if "supersedes" in row}
    ends = older.keys() - set(older.values())
    return [length_of_chain(end, older) for end in ends]


def length_of_chain(end: tuple[str, str], older: dict[tuple[str, str], tuple[str, str]]) -> int:
    length = 1
    while end in older:
        end = older[end]
        length += 1
    return length


def test_there_are_about_400_observations_and_600_episodes_in_four_scopes() -> None:
    """Issue of the demo: amounts a visitor can still read through, none of the scopes a stub."""
    assert 380 <= len(of_kind("observation")) <= 430
    assert 580 <= len(of_kind("episode")) <= 630
    for scope in SCOPES:
        assert sum(row["scope"] == scope for row in of_kind("observation")) >= 90
        assert sum(row["scope"] == scope for row in of_kind("episode")) >= 130


def test_the_same_day_gives_the_same_rows_whatever_the_hour_or_the_zone() -> None:
    elsewhere = NOW.astimezone(timezone(timedelta(hours=5)))
    assert list(lines(now=NOW)) == list(lines(now=elsewhere)) == list(lines(now=NOW + timedelta(hours=3)))


def test_another_day_moves_every_row_by_as_much_and_changes_nothing_else() -> None:
    later = list(lines(now=NOW + timedelta(days=11)))
    for before, after in zip(rows(), later, strict=True):
        assert moment(after) - moment(before) == timedelta(days=11)
        assert before["id"] == after["id"]
        assert before["text"] == after["text"]


def test_a_now_without_a_zone_is_refused_in_one_sentence() -> None:
    with pytest.raises(ValueError, match="now needs a time zone"):
        next(lines(now=NOW.replace(tzinfo=None)))


def test_a_day_that_is_not_a_number_is_refused_by_name() -> None:
    from memory_site.demo import _told

    with pytest.raises(TypeError, match="days_ago must be a number of days"):
        _told("days_ago", "yesterday", now=NOW)


def test_every_line_has_exactly_the_fields_of_the_import_format() -> None:
    for row in of_kind("observation"):
        assert OBSERVATION <= row.keys() <= OBSERVATION | OBSERVATION_OPTIONAL, row["id"]
        assert row["stated_by"] in STATED_BY
        assert 0 < taken(row, "confidence", float) < 1
        assert len(row.keys() & {"subject", "predicate", "object"}) in (0, 3), row["id"]
    for row in of_kind("episode"):
        assert row.keys() == EPISODE, row["id"]
        assert row["role"] in ROLES
        assert row["outcome"] in OUTCOMES


def test_ids_are_unique_in_their_scope_and_scopes_are_the_announced_ones() -> None:
    """R90: every line says whose memory it is."""
    assert len(by_place()) == len(rows())
    assert {row["scope"] for row in rows()} == set(SCOPES)


def test_every_row_lies_within_two_years_before_now() -> None:
    times = [moment(row) for row in rows()]
    assert max(times) <= NOW
    assert min(times) >= NOW - timedelta(days=733)
    assert max(times) - min(times) > timedelta(days=715)


def test_there_are_rows_in_every_quarter_of_the_two_years_of_every_scope() -> None:
    for scope in SCOPES:
        quarters = {(NOW - moment(row)).days // 92 for row in of_kind("observation") if row["scope"] == scope}
        assert quarters >= set(range(8)), scope


def test_lines_of_a_scope_come_oldest_first_so_that_a_correction_follows_what_it_corrects() -> None:
    for scope in SCOPES:
        times = [moment(row) for row in rows() if row["scope"] == scope]
        assert times == sorted(times)


def test_every_supersedes_names_an_older_observation_of_the_same_scope_once() -> None:
    """R12, R14: history is a chain, not a tree."""
    found = by_place()
    targets = [(row, place(row, taken(row, "supersedes", str))) for row in rows() if "supersedes" in row]
    for row, target in targets:
        assert found[target]["kind"] == "observation"
        assert moment(found[target]) < moment(row), row["id"]
    assert len({target for _, target in targets}) == len(targets)


def test_a_correction_is_about_the_same_subject_and_predicate_and_says_something_else() -> None:
    found = by_place()
    for row in (row for row in rows() if "supersedes" in row):
        older = found[place(row, taken(row, "supersedes", str))]
        assert plain(row, "subject") == plain(older, "subject")
        assert plain(row, "predicate") == plain(older, "predicate")
        assert plain(row, "object") != plain(older, "object"), row["id"]


def test_at_least_twelve_chains_show_supersession_and_two_of_them_are_three_rows_long() -> None:
    lengths = chain_lengths()
    assert len(lengths) >= 12
    assert sum(length >= 3 for length in lengths) >= 2


def test_eight_to_twelve_keys_hold_a_contradiction_and_one_of_them_three_live_values() -> None:
    """R43, R71: same subject and predicate, different object, all active."""
    live = [len(objects) for objects in claims_by_key().values() if len(objects) > 1]
    assert 8 <= len(live) <= 12
    assert live.count(3) == 1
    assert max(live) == 3


def test_every_scope_has_a_contradiction() -> None:
    scopes = {key[0] for key, objects in claims_by_key().items() if len(objects) > 1}
    assert scopes == set(SCOPES)


def test_the_relay_fix_is_waited_for_months_ago_and_shipped_lately() -> None:
    """R2: both are active and both are relevant; only age tells them apart."""
    relay = [row for row in active() if row["scope"] == "team/relay-platform"]
    waiting = [row for row in relay if "waiting on the relay fix" in taken(row, "text", str).lower()]
    shipped = [row for row in relay if "relay fix shipped" in taken(row, "text", str).lower()]
    assert len(waiting) >= 3
    assert all(NOW - moment(row) > timedelta(days=150) for row in waiting)
    assert len(shipped) == 1
    assert NOW - moment(shipped[0]) < timedelta(days=20)


def test_users_speak_in_every_scope_and_every_origin_occurs() -> None:
    by_scope = Counter(row["scope"] for row in of_kind("observation") if row["stated_by"] == "user")
    assert all(by_scope[scope] >= 15 for scope in SCOPES), by_scope
    assert {row["stated_by"] for row in of_kind("observation")} == STATED_BY
    assert {row["outcome"] for row in of_kind("episode")} == OUTCOMES


def test_an_observation_cites_only_episodes_that_exist_and_came_before_it() -> None:
    """Evidence can be followed from every observation that names a session."""
    episodes = {(row["scope"], row["source_uri"]): row for row in of_kind("episode")}
    citing = 0
    for row in of_kind("observation"):
        uris = taken(row, "source_uris", list)
        assert len(set(uris)) == len(uris) > 0, row["id"]
        for uri in (uri for uri in uris if uri.startswith("session:")):
            assert moment(episodes[row["scope"], uri]) <= moment(row), row["id"]
            citing += 1
    assert citing >= 250


def test_sessions_are_conversations_in_order() -> None:
    sessions: dict[tuple[object, object], list[Row]] = defaultdict(list)
    for row in of_kind("episode"):
        sessions[row["scope"], row["session"]].append(row)
    assert len(sessions) == 100
    for turns in sessions.values():
        assert [turn["seq"] for turn in turns] == list(range(1, len(turns) + 1))
        assert len(turns) >= 4
        assert len({turn["speaker"] for turn in turns}) >= 2


def test_only_tools_rows_of_the_desk_fall_under_the_retention_rule_and_they_are_five_to_eight() -> None:
    """R47: the rule never names users; what it proposes is a page a person can read."""
    assert RETENTION.stated_by != "user"
    old = [
        row
        for row in active()
        if row["scope"] == RETENTION.scope_pattern
        and row["stated_by"] == RETENTION.stated_by
        and NOW - moment(row) > timedelta(days=RETENTION.days)
    ]
    assert 5 <= len(old) <= 8
    # Far enough from the line that no time of day moves a row across it.
    assert all(NOW - moment(row) > timedelta(days=RETENTION.days + 2) for row in old)


def test_earlier_merges_name_active_rows_of_one_key_and_share_none() -> None:
    """R42: they are merges that the rules would make by themselves."""
    found = {place(row): row for row in active()}
    used = [(merge.scope, source) for merge in EARLIER_MERGES for source in merge.sources]
    assert len(set(used)) == len(used)
    for merge in EARLIER_MERGES:
        sources = [found[merge.scope, source] for source in merge.sources]
        keys = {(plain(row, "subject"), plain(row, "predicate"), plain(row, "object")) for row in sources}
        assert len(sources) >= 2
        assert len(keys) == 1


def test_earlier_merges_hold_users_words_in_one_case_and_agents_words_in_the_others() -> None:
    """R47, R51: a plan can show what may be pruned after use and what may not."""
    found = by_place()
    users = [
        any(found[merge.scope, source]["stated_by"] == "user" for source in merge.sources) for merge in EARLIER_MERGES
    ]
    assert users.count(True) == 1
    assert users.count(False) >= 2


def test_no_text_stands_twice_in_a_scope_but_for_the_listed_ones() -> None:
    counts = Counter((row["scope"], row["text"]) for row in rows())
    assert {pair for pair, count in counts.items() if count > 1} == REPEATED_TEXTS


def test_no_template_shows_through() -> None:
    """With names and numbers blanked, no shape of a sentence is used more than twice in a scope (a pair on purpose)."""
    for scope in SCOPES:
        texts = [taken(row, "text", str) for row in rows() if row["scope"] == scope]
        shapes = Counter(re.sub(r"\b[A-Z]\w+|\d[\d.,:]*", "_", text) for text in texts)
        assert max(shapes.values()) <= 2, shapes.most_common(3)
    assert not any(re.search(r"lorem|ipsum|\bfoo\b|[{}]|TO[D]O", taken(row, "text", str)) for row in rows())


def test_no_machine_path_or_absolute_year_is_in_a_text() -> None:
    """Times are relative to now, so a year in a text would become wrong by itself."""
    for row in rows():
        assert not re.search(r"\b20[123]\d\b|(?:^|\s)/\w+/", taken(row, "text", str)), row["id"]


def as_record(number: int, row: Row) -> Record:
    text = taken(row, "text", str)
    return Record(
        id=number,
        scope_id=SCOPES.index(taken(row, "scope", str)) + 1,
        text=text,
        normalised=normalised(text),
        key=(part(row, "subject"), part(row, "predicate"), part(row, "object")),
        confidence=taken(row, "confidence", float),
        stated_by=StatedBy(taken(row, "stated_by", str)),
        created_at=moment(row),
        status=Status.ACTIVE,
        version=1,
        content_hash=sha256(text.encode()).hexdigest(),
        external_id=taken(row, "id", str),
        valid_from=moment(row, "valid_from") if "valid_from" in row else None,
        valid_to=moment(row, "valid_to") if "valid_to" in row else None,
        roots=frozenset(taken(row, "source_uris", list)),
    )


def part(row: Row, name: str) -> str:
    return key_part(taken(row, name, str)) if name in row else ""


def met_by(a: Record, b: Record, cosine: float) -> Met:
    met = Met(0)
    if a.normalised == b.normalised:
        met |= Met.TEXT
    if a.has_key and a.key[:2] == b.key[:2]:
        met |= Met.SUBJECT_PREDICATE
    return met | Met.NEIGHBOUR if cosine >= MiniLM.profile.t_candidate else met


def planned_for(records: list[Record], vectors: Matrix) -> Iterator[Proposal]:
    """One scope's proposals, every pair compared."""
    links = []
    for (i, a), (j, b) in combinations(enumerate(records), 2):
        cosine = float(vectors[i] @ vectors[j])
        if met := met_by(a, b, cosine):
            links.append(Link(a.id, b.id, cosine, met))
    yield from merge_proposals(records, links, profile=MiniLM.profile, policy=Policy())
    if SCOPES[records[0].scope_id - 1] == RETENTION.scope_pattern:
        policy = Policy(prune=True, retention=(Retention(StatedBy(RETENTION.stated_by), RETENTION.days),))
        yield from prune_proposals(records, (), policy=policy, now=NOW)


@lru_cache(maxsize=1)
def planned() -> tuple[Proposal, ...]:
    """What the rules propose, with the real embedder, once the earlier merges have taken their sources."""
    gone = {(merge.scope, source) for merge in EARLIER_MERGES for source in merge.sources}
    records = [as_record(number, row) for number, row in enumerate(active(), 1) if place(row) not in gone]
    vectors = MiniLM().embed([record.text for record in records])
    found: list[Proposal] = []
    for scope_id in range(1, len(SCOPES) + 1):
        mine = [at for at, record in enumerate(records) if record.scope_id == scope_id]
        found += planned_for([records[at] for at in mine], vectors[mine])
    return tuple(found)


def counted(kind: Kind, approval: Approval, *, skipped: str = "") -> int:
    """Proposals of one kind and approval, skipped for a reason that starts like this, or not skipped."""
    return sum(
        proposal.kind is kind
        and proposal.approval is approval
        and bool(proposal.skipped_reason) == bool(skipped)
        and proposal.skipped_reason.startswith(skipped)
        for proposal in planned()
    )


def test_fifteen_to_twenty_five_merges_are_safe_and_as_many_wait_for_a_person() -> None:
    """R42: a visitor sees both what the rules may do alone and what they may not."""
    assert 15 <= counted(Kind.MERGE, Approval.AUTO) <= 25
    assert 10 <= counted(Kind.MERGE, Approval.NEEDS_HUMAN) <= 25


def test_guards_stop_pairs_that_similarity_alone_would_merge() -> None:
    """C7: numbers, versions, negations and directions; at least six of the pairs have one key."""
    assert counted(Kind.MERGE, Approval.NEEDS_HUMAN, skipped="possible contradiction") >= 12
    for scope, first, second in (
        ("team/relay-platform", "relay-o072", "relay-o073"),
        ("team/relay-platform", "relay-o020", "relay-o021"),
        ("team/relay-platform", "relay-o099", "relay-o100"),
        ("support/harbor-desk", "harbor-o043", "harbor-o044"),
        ("people/maya-okafor", "maya-o068", "maya-o069"),
        ("research/tidewater-lab", "tidewater-o048", "tidewater-o049"),
        ("research/tidewater-lab", "tidewater-o082", "tidewater-o083"),
    ):
        a, b = by_place()[scope, first], by_place()[scope, second]
        assert all(plain(a, name) == plain(b, name) for name in ("subject", "predicate", "object")), first
        assert frozenset((first, second)) not in merged_alone(), first


def merged_alone() -> set[frozenset[str]]:
    """Pairs of external ids that an automatic merge would unite."""
    ids = {number: taken(row, "id", str) for number, row in enumerate(active(), 1)}
    return {
        frozenset((ids[a], ids[b]))
        for proposal in planned()
        if proposal.approval is Approval.AUTO and not proposal.skipped_reason
        for a, b in combinations(proposal.sources, 2)
    }


def test_every_contradiction_waits_for_a_person_and_so_does_every_prune() -> None:
    """R43, R62."""
    assert 8 <= counted(Kind.SUPERSEDE, Approval.NEEDS_HUMAN) <= 12
    assert 5 <= counted(Kind.PRUNE, Approval.NEEDS_HUMAN) <= 8


def strings_in(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from strings_in(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from strings_in(item)


def test_no_text_of_the_demo_is_taken_from_the_evaluation_data() -> None:
    """The NC files of the evaluation data may not be copied into the project."""
    beside = Path(__file__).resolve().parents[3] / "shared" / "data"
    folder = Path(os.environ.get("PALIMPSEST_DATA", beside))
    files = sorted(folder.glob("*.jsonl"))
    if not files:
        pytest.skip(f"NOT CHECKED: no evaluation data in {folder}; set PALIMPSEST_DATA to compare the demo with it.")
    mine = {squeezed(taken(row, "text", str)) for row in rows()}
    for file in files:
        with file.open(encoding="utf-8") as opened:
            theirs = {squeezed(text) for line in opened for text in strings_in(json.loads(line))}
        assert not mine & theirs, f"{file.name}: {mine & theirs}"


def squeezed(text: str) -> str:
    return re.sub(r"\W+", " ", text).strip().casefold()

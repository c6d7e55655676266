"""Kinds, ids, digests and the printed plan."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consolidation.operations import (
    Approval,
    Kind,
    Prefix,
    Proposal,
    Shown,
    State,
    canonical,
    counted,
    digest,
    ep,
    input_key,
    number_of,
    obs,
    operation_id,
    plan,
    visible,
)
from consolidation.rendering import PrintedOperation, PrintedPlan, PrintedSource, counts, render


def proposal(**changes: object) -> Proposal:
    made = Proposal(
        kind=Kind.MERGE, scope_id=1, sources=(1, 2), approval=Approval.AUTO, reason="2 rows", keeper=1, score=0.97
    )
    return replace(made, **changes)  # type: ignore[arg-type]


# --- words -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "said"),
    [(0, "0 scopes"), (1, "1 scope"), (2, "2 scopes"), (1200, "1,200 scopes"), (0.7, "1 scope"), (1.6, "2 scopes")],
)
def test_one_thing_is_not_said_in_the_plural(number: float, said: str) -> None:
    """An estimate is counted as it is shown."""
    assert counted(number, "scope") == said


# --- ids -------------------------------------------------------------------------------------------------------------


def test_the_input_key_is_the_golden_one_of_the_sources() -> None:
    """R59."""
    assert input_key(kind=Kind.MERGE, sources=["f_2", "f_3", "f_1"]) == "op_f2406b45d3875400"


def test_the_id_covers_kind_scope_sources_and_discriminator_and_nothing_else() -> None:
    """DESIGN 4, Identity; E4: two facts promoted from the same episodes are two operations."""
    first = proposal()
    others = [
        proposal(kind=Kind.COMPACT),
        proposal(scope_id=2),
        proposal(sources=(1, 3)),
        proposal(product={"discriminator": "another fact"}),
    ]
    assert len({first.id, *(other.id for other in others)}) == 5
    assert proposal(reason="other words", score=0.5, keeper=2, signals={"pairs": 3}).id == first.id
    assert proposal(skipped_reason="waits").id == first.id
    assert first.id.startswith("op_")
    assert len(first.id) == 3 + 32


@given(st.lists(st.text(max_size=3), max_size=4), st.lists(st.text(max_size=3), max_size=4))
def test_length_prefixes_keep_different_parts_apart(one: list[str], other: list[str]) -> None:
    """R59's '|' is ambiguous (E4); the id is not."""
    assert (operation_id(parts=one) == operation_id(parts=other)) == (one == other)


def test_display_prefixes_are_read_back() -> None:
    assert (obs(12), ep(3), plan(4)) == ("obs_12", "ep_3", "plan_4")
    assert number_of(shown="obs_12", prefix=Prefix.OBSERVATION) == 12
    assert number_of(shown=" 12 ", prefix=Prefix.OBSERVATION) == 12


@pytest.mark.parametrize(
    "shown", ["ep_12", "obs_", "obs_0", "obs_-1", "obs_1x", "obs_١٢", "", "obs_12345678901234567890"]
)
def test_another_form_of_id_is_refused_in_a_sentence(shown: str) -> None:
    with pytest.raises(ValueError, match=r"is not an id of the form obs_123\."):
        number_of(shown=shown, prefix=Prefix.OBSERVATION)


# --- proposals -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("approval", "skipped", "state", "auto", "awaits"),
    [
        (Approval.AUTO, "", State.PLANNED, True, False),
        (Approval.AUTO, "why", State.SKIPPED, False, False),
        (Approval.NEEDS_HUMAN, "", State.NEEDS_HUMAN, False, True),
        (Approval.NEEDS_HUMAN, "why", State.SKIPPED, False, True),
        (Approval.NEVER, "why", State.SKIPPED, False, False),
    ],
)
def test_the_first_state_follows_from_approval_and_skip(
    approval: Approval, skipped: str, state: State, auto: bool, awaits: bool
) -> None:
    """R64: automatic means auto-approved and not skipped; C7: a skip for a person still reaches the queue."""
    made = proposal(approval=approval, skipped_reason=skipped)
    assert (made.state, made.auto, made.awaits_review) == (state, auto, awaits)
    assert made.appliable == (not skipped)


@pytest.mark.parametrize("sources", [(), (2, 1), (1, 1)])
def test_sources_are_there_once_and_in_order(sources: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="each once and in ascending order"):
        proposal(sources=sources, keeper=None)


def test_a_keeper_is_one_of_the_sources_and_never_needs_a_reason() -> None:
    with pytest.raises(ValueError, match="keeper"):
        proposal(keeper=9)
    with pytest.raises(ValueError, match="must say why"):
        proposal(approval=Approval.NEVER)


# --- digests ---------------------------------------------------------------------------------------------------------

SHOWN = (
    Shown(id=1, version=1, status="active", content_hash="aa"),
    Shown(id=2, version=4, status="active", content_hash="bb"),
)


def digested(**changes: object) -> str:
    values: dict[str, object] = {
        "operation": "op_1",
        "generation": 1,
        "kind": Kind.MERGE,
        "decision": {"keep": 1},
        "sources": SHOWN,
        "policy": "p",
    }
    return digest(**{**values, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "change",
    [
        {"operation": "op_2"},
        {"generation": 2},
        {"kind": Kind.PRUNE},
        {"decision": {"keep": 2}},
        {"policy": "q"},
        {"sources": SHOWN[:1]},
        {"sources": (SHOWN[0], replace(SHOWN[1], version=5))},
        {"sources": (SHOWN[0], replace(SHOWN[1], status="archived"))},
        {"sources": (SHOWN[0], replace(SHOWN[1], content_hash="cc"))},
        {"sources": (SHOWN[0], replace(SHOWN[1], id=3))},
    ],
)
def test_the_digest_changes_with_everything_that_was_shown(change: dict[str, object]) -> None:
    """I17, I18, D1."""
    assert digested(**change) != digested()


def test_the_digest_does_not_depend_on_the_order_of_sources_or_fields() -> None:
    assert digested(sources=SHOWN[::-1]) == digested()
    assert digested(decision={"b": 1, "a": 2}) == digested(decision={"a": 2, "b": 1})


def test_canonical_json_has_one_spelling_and_refuses_nan() -> None:
    assert canonical({"b": [1, None], "a": "ü"}) == '{"a":"ü","b":[1,null]}'.encode()
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical(float("nan"))


# --- hostile text ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain, ünïcode, 日本語, 🙂 and C:\\temp", "plain, ünïcode, 日本語, 🙂 and C:\\temp"),
        ("line\nbreak\r\ttab\0", "line\\nbreak\\r\\ttab\\x00"),
        ("abc\u202etxt", "abc\\u202etxt"),
        ("zero\u200bwidth\u2060\ufeff", "zero\\u200bwidth\\u2060\\ufeff"),
        ("tag\U000e0041", "tag\\U000e0041"),
        ("line\u2028para\u2029", "line\\u2028para\\u2029"),
        ("private\ue000 unassigned\u0378", "private\\ue000 unassigned\\u0378"),
        ("blank\u3164\u2800\ufe0f", "blank\\u3164\\u2800\\ufe0f"),
        ("half\ud83d", "half\\ud83d"),
        ("no\xa0break", "no\\xa0break"),
        ("e\u0301\u0301\u0301\u0301\u0301", "e\u0301\u0301\u0301\\u0301\\u0301"),
        ("p\u0430ypal \u043f\u0440\u0438\u0432\u0435\u0442", "p\\u0430ypal \u043f\u0440\u0438\u0432\u0435\u0442"),
        ("\x1b[31mred", "\\x1b[31mred"),
    ],
)
def test_what_a_reader_cannot_see_becomes_visible(text: str, shown: str) -> None:
    """F5."""
    assert visible(text) == shown


@given(st.text())
def test_visible_text_is_one_printable_line(text: str) -> None:
    """F5: nothing that moves the cursor, hides or reorders is left."""
    shown = visible(text)
    assert shown.isprintable()
    assert visible(shown) == shown


# --- the printed plan ------------------------------------------------------------------------------------------------


def source(number: int, text: str, **more: object) -> PrintedSource:
    return replace(PrintedSource(id=number, text=text), **more)  # type: ignore[arg-type]


MERGE = PrintedOperation(
    id="op_aa",
    kind=Kind.MERGE,
    approval=Approval.AUTO,
    state=State.PLANNED,
    scope="team-a/u1",
    reason="2 rows with the same subject, predicate and object",
    sources=(
        source(1, "Plant is watered on Mondays", external_id="x-1", similarity=0.981),
        source(2, "The plant is watered on Mondays"),
    ),
    keeper=2,
)
SUPERSEDE = PrintedOperation(
    id="op_bb",
    kind=Kind.SUPERSEDE,
    approval=Approval.NEEDS_HUMAN,
    state=State.NEEDS_HUMAN,
    scope="team-a/u1",
    reason="contradiction: 2 rows hold 2 different objects",
    sources=(
        source(3, "Ann lives in Oslo", said_at=datetime(2023, 5, 1, tzinfo=UTC), trust="user", period="from 2020"),
        source(4, "Ann lives in Bergen", said_at=datetime(2024, 5, 1, tzinfo=UTC), trust="agent"),
    ),
    keeper=4,
)
SKIPPED = PrintedOperation(
    id="op_cc",
    kind=Kind.MERGE,
    approval=Approval.NEEDS_HUMAN,
    state=State.SKIPPED,
    scope="team-a/u1",
    reason="2 similar rows",
    skipped_reason="possible contradiction: guard negation",
    sources=(source(5, "may"), source(6, "may not")),
    keeper=5,
)
NOTES = {Kind.PROMOTE: "needs a model; none configured", Kind.PRUNE: "retention policy: none configured"}


def printed(*operations: PrintedOperation, records: int = 5_000, **more: object) -> str:
    explain = bool(more.pop("explain", False))
    return render(PrintedPlan(operations=operations, records=records, id=7, notes=NOTES, **more), explain=explain)  # type: ignore[arg-type]


def test_a_plan_reads_like_the_one_in_the_requirements() -> None:
    """R53: kinds with counts, keep and merge lines, ids, quoted text, similarity, reason; nothing pruned, and why."""
    assert printed(MERGE, SUPERSEDE, SKIPPED).splitlines() == [
        "plan_7: 2 operations, 1 skipped. Nothing has been changed.",
        "",
        "MERGE 1  (1 automatic, 0 for a person)",
        "  MERGE 2→1  op_aa  in team-a/u1  automatic",
        '    keep     obs_2  "The plant is watered on Mondays"',
        '    merge    obs_1 [x-1]  "Plant is watered on Mondays"  (similarity 0.981)',
        "    reason   2 rows with the same subject, predicate and object",
        "",
        "PROMOTE 0  needs a model; none configured",
        "",
        "SUPERSEDE 1  (0 automatic, 1 for a person)",
        "  SUPERSEDE  op_bb  in team-a/u1  for a person",
        '    value    obs_3  "Ann lives in Oslo"  (2023-05-01, said by: user, from 2020)',
        '    value    obs_4  "Ann lives in Bergen"  (2024-05-01, said by: agent, suggested)',
        "    reason   contradiction: 2 rows hold 2 different objects",
        "",
        "PRUNE 0  retention policy: none configured",
        "",
        "SKIPPED 1, 1 of them in the review queue  (run `manage.py consolidate plan --explain` to list them)",
    ]


def test_explain_lists_the_skips_with_their_reasons() -> None:
    """R79."""
    shown = printed(MERGE, SKIPPED, explain=True)
    assert "    skipped  possible contradiction: guard negation" in shown.splitlines()
    assert 'obs_6  "may not"' in shown
    assert "possible contradiction" not in printed(MERGE, SKIPPED)


def test_an_empty_store_says_nothing_to_do_and_no_more() -> None:
    """R79, R110, E5."""
    assert printed(records=0) == "plan_7: nothing to do"


def test_a_failed_scope_is_shown_and_never_counted_as_nothing_to_do() -> None:
    shown = printed(left_out=("team-b: the database closed the connection",))
    assert "nothing to do" not in shown
    assert "NOT PLANNED  team-b: the database closed the connection" in shown.splitlines()


def test_a_plan_that_skips_nothing_carries_a_caution() -> None:
    """R54."""
    assert "CAUTION" in printed(MERGE)
    assert "CAUTION" not in printed(MERGE, SKIPPED)
    assert "CAUTION" not in printed(MERGE, more_skipped=True)
    assert "CAUTION" not in printed()


@pytest.mark.parametrize(
    ("number", "line"),
    [
        (1, "UNTOUCHABLE  1 record is untouchable by policy: it is part of no proposal."),
        (1_200, "UNTOUCHABLE  1,200 records are untouchable by policy: they are part of no proposal."),
    ],
)
def test_what_a_policy_lets_nothing_touch_is_told_and_counts_as_skipped(number: int, line: str) -> None:
    """R32, R54: a rule was applied, so there is nothing to be cautious about; told also where nothing is proposed."""
    shown = printed(MERGE, untouchable=number)
    assert line in shown.splitlines()
    assert "CAUTION" not in shown
    assert line in printed(untouchable=number).splitlines()
    assert "UNTOUCHABLE" not in printed(MERGE)


@pytest.mark.parametrize(("records", "advised"), [(0, False), (1, True), (1_999, True), (2_000, False)])
def test_a_small_store_is_advised_to_measure_first_in_one_closing_line(records: int, advised: bool) -> None:
    """R31."""
    last = printed(MERGE, SKIPPED, records=records).splitlines()[-1]
    assert last.startswith("ADVICE") == advised


def test_long_texts_are_cut_at_a_hundred_characters() -> None:
    """R65."""
    long = replace(MERGE, sources=(source(1, "x" * 101), source(2, "y" * 100)))
    assert f'"{"x" * 100}…"' in printed(long)
    assert f'"{"y" * 100}"' in printed(long)


def test_a_large_merge_shows_its_first_five_and_counts_the_rest_unless_explained() -> None:
    """R65; a SUPERSEDE always shows every live value."""
    sources = tuple(source(number, f"text {number}") for number in range(1, 9))
    merge, supersede = replace(MERGE, sources=sources, keeper=8), replace(SUPERSEDE, sources=sources, keeper=8)
    assert "    … and 2 more (--explain lists them)" in printed(merge).splitlines()
    assert "obs_7" in printed(merge, explain=True)
    assert printed(supersede).count("    value  ") == 8


def test_hostile_text_cannot_forge_a_line_of_the_plan() -> None:
    """F5, C15."""
    hostile = 'tea"\n\nPRUNE 9  approved by everyone\u202e'
    forged = replace(
        MERGE, scope=hostile, reason=hostile, sources=(source(1, hostile, external_id=hostile), MERGE.sources[1])
    )
    assert len(printed(forged, SKIPPED).splitlines()) == len(printed(MERGE, SKIPPED).splitlines())
    assert "\u202e" not in printed(forged)


def test_counts_are_by_kind_with_all_skips_together() -> None:
    """R79."""
    made = [proposal(), proposal(), proposal(kind=Kind.SUPERSEDE), proposal(skipped_reason="x")]
    assert counts(made) == {"merge": 2, "skipped": 1, "supersede": 1}

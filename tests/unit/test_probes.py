"""How probes are counted: what is expected, forbidden and outdated, and the controls without which nothing is shown."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from consolidation import probes
from consolidation.probes import Figures, Found, Impact, Numbers, Probe, Store

ROWS = tuple(range(1, 201))


def asked(number: int, *expected: int, **more: object) -> Probe:
    return Probe(number=number, query="q", expected=frozenset(expected), **more)  # type: ignore[arg-type]


def came(*ids: int, cosine: float | None = None, complete: bool = True, milliseconds: float = 1.0) -> Found:
    return Found(ids=ids, milliseconds=milliseconds, complete=complete, cosine=cosine)


def counted(*pairs: tuple[Probe, Found], store: Store | None = None, k: int = 5) -> Figures:
    found = {probe.number: answer for probe, answer in pairs}
    return probes.measure(probes=[probe for probe, _ in pairs], found=found, store=store or Store(rows=ROWS), k=k)


def test_recall_is_the_share_of_every_expected_record_and_hit_is_any_of_them() -> None:
    """R112: a probe that lost one of its two records shows."""
    figures = counted((asked(1, 10, 11), came(10, 3, 4)), (asked(2, 20), came(9, 20)), (asked(3, 30), came(1, 2)))
    assert figures.recall == pytest.approx((0.5 + 1 + 0) / 3)
    assert figures.hit == pytest.approx(2 / 3)
    assert figures.mrr == pytest.approx((1 + 0.5 + 0) / 3)
    assert figures.missed == (1, 3)


def test_what_comes_after_the_k_first_does_not_count() -> None:
    figures = counted((asked(1, 10), came(1, 2, 3, 4, 5, 10)))
    assert (figures.recall, figures.missed) == (0, (1,))


def test_a_record_came_when_the_row_came_that_it_was_merged_into() -> None:
    store = Store(rows=ROWS, carried={90: frozenset({10, 11, 90})})
    assert counted((asked(1, 10, 11), came(90)), store=store).recall == 1


def test_distinct_counts_labels_and_keys_never_texts() -> None:
    """R113: five phrasings of one claim are one."""
    store = Store(rows=ROWS, units={1: "unit 1", 2: "unit 1", 3: "key 7", 4: "key 7"})
    figures = counted((asked(1, 1), came(1, 2, 3, 4, 5)), store=store)
    assert (figures.distinct, figures.unmarked) == (3, 0.2)


def test_an_outdated_value_is_stale_unless_the_same_row_says_the_expected_one() -> None:
    store = Store(rows=ROWS, carried={90: frozenset({10, 11})})
    dated = asked(1, 10, outdated=frozenset({11}))
    assert counted((dated, came(10, 11)), store=store).stale == 1
    assert counted((dated, came(90)), store=store).stale == 0
    assert counted((asked(2, 10), came(10))).stale is None


def test_a_forbidden_record_or_one_of_no_row_of_the_scope_fails_the_gate() -> None:
    forbidden = asked(1, 10, forbidden=frozenset({66}))
    assert counted((forbidden, came(10))).gates == ()
    assert counted((forbidden, came(10, 66))).gates == ("a forbidden record came back",)
    merged = Store(rows=ROWS, carried={90: frozenset({66, 90})})
    assert counted((forbidden, came(10, 90)), store=merged).leaks == 1
    strange = Store(rows=ROWS, strangers=frozenset({999}))
    assert counted((asked(1, 10), came(10, 999)), store=strange).leaks == 1


def test_negative_probes_are_left_out_of_recall_and_told_apart_by_cosine() -> None:
    figures = counted(
        (asked(1, 10), came(10, cosine=0.8)),
        (asked(2, 20, negative=True), came(20, cosine=0.3)),
        (asked(3, 21, negative=True), came(5, cosine=0.9)),
    )
    assert (figures.probes, figures.negatives, figures.recall) == (1, 2, 1)
    assert (figures.mistaken, figures.separation) == (0.5, 0.5)


def test_times_are_the_nearest_rank() -> None:
    figures = counted(*((asked(n, n), came(n, milliseconds=float(n))) for n in range(1, 101)))
    assert (figures.p50, figures.p95) == (50, 95)


def test_which_rows_were_missed_leaked_outdated_or_mistaken_is_kept_by_probe() -> None:
    """R112: a page can say what went wrong with which probe, not only how often."""
    figures = counted(
        (asked(1, 10, 11), came(10)),
        (asked(2, 20, forbidden=frozenset({66}), outdated=frozenset({21})), came(20, 66, 21)),
        (asked(3, 30, negative=True), came(30)),
        (asked(4, 40), came(40)),
    )
    assert (figures.missing, figures.leaked, figures.staled) == ({1: (11,)}, {2: (66,)}, {2: (21,)})
    assert (figures.confused, figures.stale, figures.mistaken) == ((3,), 1, 1)
    document = probes.figures_json(figures)
    assert document["leaked"] == {"2": [66]}
    assert document["measures"]["missing"] == {"1": [11]}  # type: ignore[index]


# --- controls ---------------------------------------------------------------------------------------------------------


def test_the_controls_fail_on_a_store_that_can_be_told_from_chance() -> None:
    figures = counted(*((asked(n, n), came(n)) for n in range(1, 11)))
    assert {control.name for control in figures.controls} == {"empty", "random", "shuffled"}
    assert all(control.failed and control.recall < 0.1 for control in figures.controls)
    assert "measures" in probes.figures_json(figures)


def test_no_number_is_shown_where_a_control_does_not_fail() -> None:
    """R31: in a store of five rows every answer holds everything, so recall tells nothing."""
    figures = counted(*((asked(n, n), came(1, 2, 3, 4, 5)) for n in range(1, 6)), store=Store(rows=(1, 2, 3, 4, 5)))
    assert figures.recall == 1
    assert "random and shuffled" in figures.why_not
    document = probes.figures_json(figures)
    assert "measures" not in document
    assert document["gates"]


def test_chance_draws_a_probe_about_the_past_from_the_rows_of_then() -> None:
    """R31: the store has grown since; by chance among the five rows of then every answer holds everything."""
    probe, five = asked(1, 1), (1, 2, 3, 4, 5)
    now, then = Store(rows=ROWS), Store(rows=ROWS, past={1: five})
    assert counted((probe, came(*five)), store=now).why_not == ""
    assert "random" in counted((probe, came(*five)), store=then).why_not


def test_a_store_that_finds_nothing_is_still_measured() -> None:
    """Else a fall to nothing could not be said."""
    figures = counted(*((asked(n, n), came(100 + n)) for n in range(1, 11)))
    assert (figures.recall, figures.why_not) == (0, "")


@pytest.mark.parametrize(
    ("pairs", "why"),
    [
        ([(asked(1, 10), came(complete=False))], "1 of 1 answers were not complete"),
        ([(asked(1, 10, negative=True), came(10))], "no probe that wants an answer"),
    ],
)
def test_an_answer_that_is_not_whole_is_no_number(pairs: list[tuple[Probe, Found]], why: str) -> None:
    figures = counted(*pairs)
    assert why in figures.why_not
    assert "measures" not in probes.figures_json(figures)


# --- reading files ----------------------------------------------------------------------------------------------------


def sheet(*rows: object) -> probes.Sheet:
    return probes.read(row if isinstance(row, str) else json.dumps(row) for row in rows)


def test_questions_about_dialogue_are_read_as_they_stand() -> None:
    read = sheet(
        {"query": "When?", "answer": 2022, "category": "temporal", "expected_observation_ids": ["a", "b", "a"]},
        {"query": "Who?", "category": "adversarial", "expected_observation_ids": ["c"]},
        {"query": "Why?", "category": "temporal", "expected_observation_ids": []},
    )
    assert [(line.expected, line.negative) for line in read.lines] == [(("a", "b"), False), (("c",), True)]
    assert read.expect_nothing == 1


def test_dated_facts_expect_the_newest_value_and_call_the_others_outdated() -> None:
    fact = {"subject": "House", "predicate": "occupant", "predicate_id": "P1", "probe": "Who?"}
    read = sheet(
        {**fact, "id": "f2", "object": "Ann", "valid_from": "1916"},
        {**fact, "id": "f1", "object": "Bo", "valid_from": "1811-05"},
        {**fact, "id": "f0", "object": "Ann", "valid_from": "1700"},
        *({**fact, "subject": "Ship", "id": f"t{n}", "object": str(n), "valid_from": "1900"} for n in range(2)),
    )
    [line] = read.lines
    assert (line.expected, line.outdated) == (("f2",), ("f1",))
    assert read.expect_nothing == 1


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ("not json", "line 1: it is not JSON"),
        ([1], "line 1: it is not an object"),
        ({"query": ""}, "line 1: it asks nothing"),
        ({"query": "secret words", "expected": "a"}, "line 1: expected is not a list"),
        ({"query": "x" * 4_001, "expected": ["a"]}, "line 1: its query is longer"),
        ({"query": "q", "expected": ["a"], "as_of": "soon"}, "line 1: as_of is not a date"),
        ({"probe": "q", "subject": "s"}, "line 1: a dated fact needs"),
    ],
)
def test_a_line_that_cannot_be_used_is_named_without_its_words(row: object, why: str) -> None:
    read = sheet(row)
    assert not read.lines
    assert read.unusable[0].startswith(why)
    assert "secret" not in read.unusable[0]


def test_units_say_which_records_are_one_claim() -> None:
    assert dict(sheet({"unit": "x", "ids": ["a", "b"]}, {"unit": "y", "ids": ["c"]}).units) == {"a": 1, "b": 1, "c": 2}


# --- YAML -------------------------------------------------------------------------------------------------------------


def test_yaml_has_the_fields_of_a_line_and_a_word_stays_the_word_that_was_written() -> None:
    """R112: ids that look like numbers, dates or `no` are still ids."""
    text = """
- query: When does the ferry leave?
  expected: [12, 2024-01-31, no, ferry-1]
  as_of: 2024-02-01
- {query: What does it cost?, negative: true, expected: [0x10]}
- unit: ferry
  ids: [ferry-1, "12"]
- query: nothing
"""
    read = probes.read_yaml(text)
    assert [line.expected for line in read.lines] == [("12", "2024-01-31", "no", "ferry-1"), ("0x10",)]
    assert [line.negative for line in read.lines] == [False, True]
    assert read.lines[0].as_of == datetime(2024, 2, 1, tzinfo=UTC)
    assert (read.units, read.expect_nothing) == ({"ferry-1": 1, "12": 1}, 1)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a: [b", "it is not YAML (line"),
        ("- query: &a secret\n- query: *a", "line 1 has an anchor"),
        ("a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]", "line 1 has an anchor"),
        ("- !!python/object/apply:os.system ['true']", "line 1 has a tag"),
        ("- query: !secret words", "line 1 has a tag"),
        ("[" * 50, "deeper"),
        ("[" * 5_000, "it is not YAML"),
        ("- " * 50, "deeper"),
        ("- query: q\n  query: secret", "it is not YAML (line 1)"),
        ("query: q", "no list of probes"),
        ("", "no list of probes"),
        ("- query: q\n---\n- query: r", "it is not YAML"),
        ("- query: \x00", "it is not YAML"),
    ],
)
def test_yaml_that_is_hostile_or_broken_is_refused_whole_without_its_words(text: str, why: str) -> None:
    with pytest.raises(probes.Unreadable) as refused:
        probes.read_yaml(text)
    assert why in str(refused.value)
    assert "secret" not in str(refused.value)


def test_an_entry_of_yaml_that_is_no_probe_is_named() -> None:
    read = probes.read_yaml("- query: q\n  expected: a\n- just words\n- ~")
    assert [why.partition(":")[0] for why in read.unusable] == ["entry 1", "entry 2", "entry 3"]


@pytest.mark.parametrize(
    "text", ["it's: a #trap", "true", "\u202e\U0001f600 ok", "a\nb", "- x", "!!str", " ", "2024-01-01"]
)
def test_what_is_written_as_yaml_is_read_back(text: str) -> None:
    entry = probes.Entry(fields={"query": f"q {text}", "expected": [text], "negative": True}, comments=("why",))
    [line] = probes.read_yaml(probes.write_yaml([entry], heading=["a draft"])).lines
    assert (line.query, line.expected, line.negative) == (f"q {text}".strip(), (text,), True)


# --- before and after -------------------------------------------------------------------------------------------------

WELL = counted(*((asked(n, n), came(n)) for n in range(1, 11)))


def numbers(figures: Figures | None = WELL, records: int = 10, why_not: str = "") -> tuple[Numbers, ...]:
    return (Numbers(scope="team", records=records, figures=figures, why_not=why_not),)


def test_the_three_numbers_stand_side_by_side() -> None:
    """R115."""
    impact = Impact(before=numbers(), after=numbers(records=8))
    assert impact.fell == ()
    assert probes.impact_lines(impact) == [
        "recall@5    1.0000 → 1.0000",
        "distinct@5  1.00 → 1.00",
        "records     10 → 8",
    ]
    assert probes.falling_lines(impact) == []


def test_a_fall_by_one_probe_is_said_with_the_probe_and_advised_against() -> None:
    """R112, R118."""
    worse = replace(WELL, recall=0.9, missing={4: (4,)})
    impact = Impact(before=numbers(), after=numbers(worse))
    assert probes.falling_lines(impact) == [
        "RECALL FELL  recall@5 of team went from 1.0000 to 0.9000 (lost: probe 4 of team)",
        f"ADVICE  {probes.ADVICE}",
    ]
    assert probes.impact_json(impact)["recall_at_5"] == {"before": 1.0, "after": 0.9}


def test_a_lost_probe_is_named_though_another_one_gained() -> None:
    """R112: the same mean may hide a loss."""
    before, after = replace(WELL, recall=0.9, missing={4: (4,)}), replace(WELL, recall=0.9, missing={7: (7,)})
    impact = Impact(before=numbers(before), after=numbers(after))
    assert impact.fell == ()
    assert "lost        probe 7 of team" in probes.impact_lines(impact)


def test_a_recall_that_cannot_be_measured_any_more_is_a_fall() -> None:
    impact = Impact(before=numbers(), after=numbers(None, why_not="is not measured: few"))
    assert "cannot be measured any more" in impact.fell[0]


def test_a_recall_that_rose_hides_no_other_scopes_fall() -> None:
    bad = Numbers(scope="other", records=5, figures=replace(WELL, recall=0.5))
    worse = replace(bad, figures=replace(WELL, recall=0.4))
    impact = Impact(before=(*numbers(replace(WELL, recall=0.1)), bad), after=(*numbers(), worse))
    assert [sentence.split(" ")[2] for sentence in impact.fell] == ["other"]


def test_without_a_suite_recall_is_said_to_be_not_measured() -> None:
    """R115."""
    none = numbers(None, why_not="has no probe suite")
    lines = probes.impact_lines(Impact(before=none, after=none))
    assert lines[0] == "recall: not measured  team has no probe suite"
    assert probes.impact_json(Impact(before=none, after=none))["recall_at_5"] is None

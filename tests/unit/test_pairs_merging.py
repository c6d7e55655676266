"""The benchmark of merging: its figures are the rule's, and what stands against a merge ends the run with status 1."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import facts, label_noise, merging
from benchmarks.merging import wilson
from consolidation.merge import Verdict
from observations.embedding import embedder
from tests.jsonl import real
from tests.unit.verdicts import verdict_of

HASHING = embedder("hashing")


def folder(path: Path, *pairs: tuple[str, str, str], kind: str = "made") -> Path:
    """A folder with one file of pairs: label, one text, the other."""
    lines = [
        json.dumps({"id": f"x/{at}", "kind": kind, "a": a, "b": b, "label": label})
        for at, (label, a, b) in enumerate(pairs)
    ]
    (path / "pairs_made.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return path


def fact(number: int, value: str, start: str | None, end: str | None, text: str = "") -> dict[str, object]:
    """One line of dated facts about one key."""
    return {
        "id": f"f/{number}",
        "subject": "Ann Hall",
        "predicate": "residence",
        "object": value,
        "valid_from": start,
        "valid_to": end,
        "text": text or f"Ann Hall lives in {value}",
    }


def with_facts(path: Path, *rows: dict[str, object]) -> Path:
    (path / facts.FILE).write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path


def run(path: Path) -> int:
    return merging.main(["--data", str(path), "--embedder", "hashing", "--sample", "0"])


def cells(printed: str, name: str) -> list[str]:
    """The line of the table that begins with the name, by cell."""
    (line,) = [line for line in printed.splitlines() if line.startswith(f"| {name} |")]
    return [cell.strip() for cell in line.strip("|").split("|")]


# --- the table -------------------------------------------------------------------------------------------------------


def test_the_table_counts_what_merges_by_itself_and_what_a_person_is_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Queued is a merge for a person, or a skip that a person is shown; missed is neither."""
    folder(
        tmp_path,
        ("duplicate", "Ann has two cats.", "ann has 2 cats"),
        ("duplicate", "Ann has two black cats at home", "Ann has two black cats in her home"),
        ("duplicate", "Ann has two cats", "A pair of felines lives with her"),
        ("different", "Bob beat Ann at chess", "Ann beat Bob at chess"),
    )
    assert run(tmp_path) == 0
    shown = cells(capsys.readouterr().out, "pairs_made.jsonl")
    assert shown == ["pairs_made.jsonl", "hashing", "4", "3", "33.3%", "66.7%", "0", "0.00%", "79.35%"]


def test_surface_variants_have_a_line_of_their_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder(tmp_path, ("duplicate", "Ann has two cats.", "ann has 2 cats"), kind="surface")
    assert run(tmp_path) == 0
    assert cells(capsys.readouterr().out, "pairs_made.jsonl: surface")[2:] == [
        "1",
        "1",
        "100.0%",
        "100.0%",
        "0",
        "-",
        "-",
    ]


def test_rows_dimensions_scopes_and_seconds_are_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder(tmp_path, ("duplicate", "Ann has two cats.", "ann has 2 cats"))
    run(tmp_path)
    head = capsys.readouterr().out.splitlines()[0]
    assert head.startswith("hashing: 2 rows of 256 dimensions in 1 scopes of 2, ")
    assert " s; candidates from 0.7" in head


@pytest.mark.parametrize(
    ("hits", "trials", "bound"), [(0, 1500, 0.00255), (2, 1500, 0.00485), (0, 0, 1.0), (5, 5, 1.0), (1, 2, 0.9055)]
)
def test_the_upper_bound_is_wilsons(hits: int, trials: int, bound: float) -> None:
    """Nothing in 1,500 is no proof of nothing: up to 0.26% fits that."""
    assert wilson(hits, trials) == pytest.approx(bound, abs=1e-4)


# --- what fails the run ----------------------------------------------------------------------------------------------


def test_a_false_automatic_is_printed_with_file_and_line_and_fails_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder(tmp_path, ("duplicate", "Ann is in", "ann is in."), ("different", "The dog is out", "A dog is out"))
    assert run(tmp_path) == 1
    printed = capsys.readouterr().out
    assert "pairs_made.jsonl:2 (different): WRONG, and not excused\n  The dog is out\n  A dog is out" in printed


def test_an_excused_one_is_printed_with_its_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder(tmp_path, ("contradiction", "Ann is in .", "Ann is in."))
    assert run(tmp_path) == 0
    assert f"pairs_made.jsonl:1 (contradiction): {label_noise.ONE_TEXT}" in capsys.readouterr().out


@pytest.mark.parametrize("label", ["different", "contradiction", "refinement", "related_distinct"])
def test_every_label_but_duplicate_forbids_an_automatic_merge(tmp_path: Path, label: str) -> None:
    folder(tmp_path, (label, "The dog is out", "A dog is out"))
    assert run(tmp_path) == 1


def test_absent_and_broken_data_are_one_clear_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path) == 2
    (tmp_path / "pairs_bad.jsonl").write_text("{", encoding="utf-8")
    assert run(tmp_path) == 2
    first, second = capsys.readouterr().err.splitlines()
    assert first.endswith("name their folder with --data or PALIMPSEST_DATA.")
    assert second.startswith("A data file cannot be read")


# --- dated facts -----------------------------------------------------------------------------------------------------


def test_a_change_of_value_is_asked_about_and_nothing_merges_across_objects(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """R71: one subject and predicate, another object; a repetition of one value may merge."""
    folder(tmp_path, ("duplicate", "Ann is in", "ann is in."))
    with_facts(
        tmp_path,
        fact(1, "Oslo", "1990", "1995"),
        fact(2, "Rome", "1995", "2001"),
        fact(3, "Rome", "1996", "2001", "Ann Hall lives in Rome."),
        fact(4, "Quito", "2001-05", None),
    )
    assert run(tmp_path) == 0
    printed = capsys.readouterr().out
    assert "4 rows in one scope, 1 keys" in printed
    assert "across different objects 0 (offered to a person: 0)" in printed
    assert "changes of value 2, of which a person is asked about 2" in printed


def test_a_fact_whose_period_ends_before_it_begins_is_left_out(tmp_path: Path) -> None:
    """As an import refuses it."""
    with_facts(tmp_path, fact(1, "Oslo", "1990", "1985"), fact(2, "Rome", None, "1991"))
    assert [row.object for row in facts.records(tmp_path / facts.FILE)] == ["Rome"]


def test_a_change_that_nobody_is_asked_about_fails_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The control: a rule without contradictions must not pass."""
    folder(tmp_path, ("duplicate", "Ann is in", "ann is in."))
    with_facts(tmp_path, fact(1, "Oslo", "1990", "1995"), fact(2, "Rome", "1995", "2001"))
    monkeypatch.setattr(facts, "merge_proposals", lambda *_, **__: ())
    assert run(tmp_path) == 1
    assert "changes of value 1, of which a person is asked about 0" in capsys.readouterr().out


def test_no_real_fact_merges_across_objects_and_every_change_is_asked_about() -> None:
    """900 facts of 270 keys as one scope, with the embedder that needs no model."""
    found = facts.measure(facts.records(real(facts.FILE)), embed=HASHING)
    assert (found.across, found.offered) == ((), 0)
    assert found.proposed == found.changes > 500


# --- the bars, on the pairs that lie there ---------------------------------------------------------------------------


def test_no_real_pair_merges_against_its_label_without_an_excuse() -> None:
    """C7 on every labelled pair: what merges by itself has one normalised text, so no embedder changes it."""
    wrong = []
    for path in sorted(real("pairs_paws.jsonl").parent.glob("pairs_*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            pair = json.loads(line)
            same = pair["label"] != "duplicate" and verdict_of(pair["a"], pair["b"], cosine=0.99) is Verdict.SAME
            if same and not label_noise.excuse(pair["id"], pair["a"], pair["b"]):
                wrong.append(pair["id"])
    assert wrong == []


def test_surface_variants_of_real_observations_merge_by_themselves() -> None:
    """At least 97.5% automatic or queued, and 90% automatic."""
    lines = real("pairs_locomo_perturbed.jsonl").read_text(encoding="utf-8").splitlines()
    variants = [pair for pair in map(json.loads, lines) if pair["kind"] == "surface"]
    verdicts = [verdict_of(pair["a"], pair["b"], cosine=0.9) for pair in variants]
    assert verdicts.count(Verdict.SAME) >= 0.9 * len(variants) > 0
    assert len([one for one in verdicts if one is not Verdict.FAR]) >= 0.975 * len(variants)

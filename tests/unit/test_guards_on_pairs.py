"""The figures on labelled pairs come from the rule that planning uses (benchmarks/pairs.py)."""

import json
from pathlib import Path

import pytest

from benchmarks import pairs
from benchmarks.label_noise import KNOWN, excuse
from benchmarks.pairs import KEY, KEYLESS, Pair, verdict
from consolidation.policy import Policy
from observations.embedding import MINILM


def pair(a: str, b: str, cosine: float, label: str = "different") -> Pair:
    return Pair(file="pairs_x.jsonl", line=1, id="x/1", label=label, kind="made", a=a, b=b, cosine=cosine)


@pytest.mark.parametrize(
    ("a", "b", "cosine", "key", "word"),
    [
        ("Ann has two cats.", "ann has 2 cats", 0.99, KEYLESS, "automatic"),
        (
            "Guests may park here",
            "Guests can park here",
            0.97,
            KEYLESS,
            "queued",
        ),  # similarity is a hint, the key is the gate
        ("Guests may park here", "Guests can park here", 0.97, KEY, "automatic"),
        ("Guests may park here", "Guests can park here", 0.94, KEY, "queued"),
        ("Guests may park here", "Guests may not park here", 0.99, KEY, "queued"),
        ("Guests may park here", "Bread rises", 0.85, KEY, "missed"),
    ],
)
def test_a_pair_is_automatic_queued_or_missed(
    a: str, b: str, cosine: float, key: tuple[str, str, str], word: str
) -> None:
    """DESIGN 4: automatic only by key, cosine and guards, or by identical normalised text and equal keys."""
    assert verdict(pair(a, b, cosine), key=key, profile=MINILM, policy=Policy()).word == word


def test_only_one_text_twice_and_what_is_listed_is_excused() -> None:
    """A label is noise where the texts are one but for spaces, or where somebody argued it; capitals may matter."""
    assert excuse("x/1", "Ann is here .", "Ann is here.")
    assert excuse(next(iter(KNOWN)), "one", "other")
    assert not excuse("x/1", "They told US", "They told us")
    assert not excuse("x/1", "It is -5", "It is 5")


def test_every_excuse_is_a_sentence() -> None:
    """An argument, not a mark on a list."""
    assert all(len(reason.split()) > 4 for reason in KNOWN.values())


def written(folder: Path, *rows: tuple[str, str, str]) -> Path:
    lines = [
        json.dumps({"id": f"x/{at}", "kind": "made", "a": a, "b": b, "label": label})
        for at, (a, b, label) in enumerate(rows)
    ]
    (folder / "pairs_made.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return folder


def test_a_wrong_merge_is_printed_in_full_and_fails_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = written(tmp_path, ("The dog is out", "A dog is out", "different"))
    assert pairs.main(["--embedder", "hashing", "--data", str(folder)]) == 1
    printed = capsys.readouterr().out
    assert "Merged although not labelled duplicate: 1" in printed
    assert "  a  The dog is out\n  b  A dog is out" in printed


def test_a_run_without_wrong_merges_succeeds(tmp_path: Path) -> None:
    folder = written(tmp_path, ("Ann is in", "Ann is out", "contradiction"), ("Ann is in", "ann is in.", "duplicate"))
    assert pairs.main(["--embedder", "hashing", "--data", str(folder)]) == 0


def test_absent_or_broken_data_is_one_clear_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert pairs.main(["--embedder", "hashing", "--data", str(tmp_path)]) == 2
    (tmp_path / "pairs_bad.jsonl").write_text("{", encoding="utf-8")
    assert pairs.main(["--embedder", "hashing", "--data", str(tmp_path)]) == 2
    first, second = capsys.readouterr().err.splitlines()
    assert first.endswith("name their folder with --data or PALIMPSEST_DATA.")
    assert "cannot be read" in second

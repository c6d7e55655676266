"""Calibrations: measured by a command, kept as numbers, in force from then on, merging only once enabled (R42, R94)."""

from __future__ import annotations

import functools
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection, transaction
from django.test.utils import CaptureQueriesContext

from consolidation import calibrating, guards
from consolidation.calibrating import NotEnabled, in_force, space_of
from consolidation.calibration import LIMIT, NEVER, Measured, measure, propose
from consolidation.models import Calibration
from observations.embedding import HASHING, MINILM, EmbeddingError, Hashing, MiniLM, Profile, WeightsMissing, embedder
from observations.models import Event
from observations.retrieval import current_embedder
from tests.consolidating import Ran
from tests.jsonl import real

pytestmark = pytest.mark.django_db

HTTP = embedder("http", base_url="https://embed.example.org", model="acme-1", dimensions=8).profile
SAFE = measure(
    duplicates=[True] * 100 + [False] * 1_000,
    cosines=[0.97] * 100 + [0.9] * 1_000,
    objected=[False] * 100 + [True] * 1_000,
    identical=[False] * 1_100,
)


def kept(profile: Profile = HTTP, *, thresholds: tuple[float, float] = (0.9, 0.96)) -> Calibration:
    return calibrating.store(profile=profile, measured=SAFE, proposed=thresholds, by="carl")


def run(*words: str | Path) -> Ran:
    """One run of the command; what a program reads is on `out`, and on `error` what went wrong."""
    out, err = io.StringIO(), io.StringIO()
    try:
        call_command("calibrate", *map(str, words), stdout=out, stderr=err)
    except CommandError as error:
        return Ran(out.getvalue(), str(error), error.returncode)
    return Ran(out.getvalue())


def pairs(*rows: tuple[str, str, str]) -> str:
    return "".join(json.dumps({"a": a, "b": b, "label": label}) + "\n" for a, b, label in rows)


def many(number: int = 800) -> list[tuple[str, str, str]]:
    """Different pairs that look alike to the hashing embedder, and a few duplicates."""
    text = "The relay in the north hall listens on port {} and answers every ping of the other hosts within a second"
    rows = [(text.format(n), text.format(n + 10_000), "different") for n in range(number)]
    return [
        *rows,
        *((text.format(n), text.format(n).replace("answers", "does answer"), "duplicate") for n in range(40)),
    ]


@dataclass
class EachOnce:
    """MiniLM, which is asked about a text once: many stand in several pairs."""

    profile: Profile = MINILM
    known: dict[str, Any] = field(default_factory=dict)

    def embed(self, texts: Sequence[str]) -> Any:
        new = [text for text in dict.fromkeys(texts) if text not in self.known]
        self.known.update(zip(new, MiniLM().embed(new), strict=True))
        return np.array([self.known[text] for text in texts])


@pytest.fixture(autouse=True, scope="module")
def each_pair_is_judged_once() -> Iterator[None]:
    """The guards depend on two texts alone, and most tests measure the same pairs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(guards, "objections", functools.cache(guards.objections))
        yield


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Pairs enough to say that a threshold is safe."""
    path = tmp_path / "pairs_made.jsonl"
    path.write_text(pairs(*many()), encoding="utf-8")
    return path


# --- what holds -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", [MINILM, HASHING])
def test_a_shipped_embedder_holds_as_it_was_measured(profile: Profile) -> None:
    assert in_force(profile=profile) == profile
    assert profile.automatic


def test_an_embedder_that_nobody_measured_merges_nothing_without_a_person() -> None:
    """R42: the thresholds of an endpoint are guesses until they are measured."""
    assert not HTTP.automatic
    assert in_force(profile=HTTP) == HTTP
    assert not in_force(profile=replace(HTTP, automatic=True)).automatic  # whatever a profile says of itself


def test_a_new_calibration_holds_with_automatic_merging_off() -> None:
    kept()
    held = in_force(profile=HTTP)
    assert (held.t_candidate, held.t_merge, held.automatic) == (0.9, 0.96, False)
    assert held.space == HTTP.space


def test_an_enabled_calibration_lets_the_embedder_merge_and_a_newer_one_has_to_be_enabled_again() -> None:
    calibrating.enable(calibration=kept(), by="sven")
    assert in_force(profile=HTTP).automatic
    kept(thresholds=(0.88, 0.97))
    held = in_force(profile=HTTP)
    assert (held.t_merge, held.automatic) == (0.97, False)


def test_a_calibration_that_found_nothing_safe_switches_merging_by_key_off_even_for_a_shipped_embedder() -> None:
    """1.0 means never, also for two texts whose cosine is exactly 1."""
    kept(HASHING, thresholds=(0.8, NEVER))
    assert not in_force(profile=HASHING).automatic
    kept(HASHING, thresholds=(0.8, 0.97))
    held = in_force(profile=HASHING)
    assert (held.automatic, held.t_merge) == (True, 0.97)


@pytest.mark.parametrize(
    "other",
    [replace(HTTP, model_id="acme-2"), replace(HTTP, dimensions=16), replace(HTTP, file_hash="ab"), HASHING],
    ids=["model", "dimensions", "weights", "name"],
)
def test_a_calibration_holds_for_its_own_vectors_only(other: Profile) -> None:
    """A model that changed behind its name has to be measured again."""
    calibrating.enable(calibration=kept(), by="sven")
    assert in_force(profile=other) == replace(other, automatic=other == HASHING)


def test_other_thresholds_of_the_same_vectors_share_their_calibration() -> None:
    kept()
    assert in_force(profile=replace(HTTP, t_merge=0.5, t_candidate=0.4)).t_merge == 0.96


def test_what_holds_is_found_in_one_query() -> None:
    for _ in range(5):
        kept()
    with CaptureQueriesContext(connection) as captured:
        in_force(profile=HTTP)
    assert len(captured) == 1


def test_a_space_is_written_out_or_as_a_digest_and_never_too_long() -> None:
    long = replace(HTTP, model_id="m" * 150, name="http:" + "m" * 150)
    assert json.loads(space_of(profile=HTTP)) == list(HTTP.space)
    assert space_of(profile=long).startswith("sha256:")
    assert space_of(profile=long) != space_of(profile=replace(long, dimensions=9))
    row = kept(long)
    assert (len(row.space) <= 200, len(row.profile)) == (True, 80)
    assert in_force(profile=long).t_merge == 0.96


# --- enabling ---------------------------------------------------------------------------------------------------------


def test_enabling_is_recorded_once_with_who_and_when() -> None:
    row = calibrating.enable(calibration=kept(), by="sven")
    assert row.enabled_by == "sven"
    assert row.enabled_at is not None
    again = calibrating.enable(calibration=row, by="rita")
    assert (again.enabled_by, again.enabled_at) == ("sven", row.enabled_at)
    event = Event.objects.get(action="calibration_enabled")
    assert (event.actor, event.subject, event.scope_id) == ("sven", f"calibration_{row.pk}", None)
    assert event.detail == {"profile": "http:acme-1", "t_candidate": 0.9, "t_merge": 0.96}


def test_one_that_a_newer_one_replaced_cannot_be_enabled() -> None:
    old, new = kept(), kept()
    with pytest.raises(
        NotEnabled, match=f"Calibration {old.pk} of http:acme-1 does not hold any more: calibration {new.pk}"
    ):
        calibrating.enable(calibration=old, by="sven")


def test_one_that_found_nothing_safe_cannot_be_enabled() -> None:
    with pytest.raises(NotEnabled, match="found no threshold that is safe: calibrate with more pairs"):
        calibrating.enable(calibration=kept(thresholds=(0.8, NEVER)), by="sven")


@pytest.mark.parametrize("change", [{"t_merge": 0.5}, {"figures": {}}, {"by": "x"}])
def test_nobody_can_change_what_was_measured(change: dict[str, object]) -> None:
    """The application's role may only say who enabled it, and can delete nothing."""
    row = kept()
    with pytest.raises(DatabaseError), transaction.atomic():
        Calibration.objects.filter(pk=row.pk).update(**change)
    with pytest.raises(DatabaseError), transaction.atomic():
        row.delete()


# --- the command ------------------------------------------------------------------------------------------------------


def test_pairs_are_measured_proposed_printed_and_kept(file: Path) -> None:
    ran = run("--pairs", file, "--by", "carl")
    assert ran.status == 0, ran.error
    row = Calibration.objects.get()
    assert (row.profile, row.space, row.by, row.enabled_at) == ("hashing", space_of(profile=HASHING), "carl", None)
    measured = Measured.from_dict(row.figures)
    assert measured.pairs == 840
    assert (row.t_candidate, row.t_merge) == propose(measured=measured)
    assert "hashing, measured on 840 labelled pairs." in ran.out
    assert f"t_candidate  {row.t_candidate:g}: " in ran.out
    assert (
        "t_merge      0.95: 0 of 800, so at most 4.8 of 1,000 different pairs would merge; the limit is 5." in ran.out
    )
    assert f"Stored as calibration {row.pk}, in force from the next plan on." in ran.out
    assert len([line for line in ran.out.splitlines() if line.startswith("0.")]) == 20
    assert Event.objects.get(action="calibrated").subject == f"calibration_{row.pk}"


def test_no_text_of_a_pair_is_printed_or_kept(file: Path) -> None:
    """I19: figures and line numbers only, in the row, the event and on both outputs."""
    bad = file.with_name("pairs_bad.jsonl")
    bad.write_text('{"a": "secret canary", "b": "", "label": "duplicate"}\n{"a": "secret canary"\n', encoding="utf-8")
    ran = run("--pairs", file, "--pairs", bad)
    stored = json.dumps(Calibration.objects.get().figures) + json.dumps(Event.objects.get().detail)
    for word in ("canary", "relay", "north hall"):
        assert word not in ran.out + ran.error + stored


def test_lines_that_cannot_be_used_are_named_by_number_and_the_others_are_measured(file: Path) -> None:
    bad = file.with_name("pairs_bad.jsonl")
    good = pairs(("Likes tea a lot", "Likes tea a lot.", "duplicate"))
    bad.write_bytes(b"{\n\n" + good.encode() + b'\xff\n{"a": "x", "b": "y", "label": "same"}\n')
    ran = run("--pairs", file, "--pairs", bad)
    assert (ran.status, ran.error) == (1, "3 lines could not be used.")
    assert "  pairs_bad.jsonl, line 1: it is not JSON" in ran.out
    assert "  pairs_bad.jsonl, line 4: it is not UTF-8" in ran.out
    assert "  pairs_bad.jsonl, line 5: its label is none of duplicate, different, " in ran.out
    assert Measured.from_dict(Calibration.objects.get().figures).pairs == 841


def test_json_lists_every_line_that_cannot_be_used(file: Path) -> None:
    bad = file.with_name("pairs_bad.jsonl")
    bad.write_text("{\n" * 50, encoding="utf-8")
    text = run("--pairs", file, "--pairs", bad).out
    assert "and 30 more (--json lists them)" in text
    document = run("--pairs", bad, "--pairs", file, "--json").document
    assert [one["line"] for one in document["unusable"]] == list(range(1, 51))
    assert {one["file"] for one in document["unusable"]} == {"pairs_bad.jsonl"}
    assert document["pairs"] == 840
    assert document["bands"][15]["from"] == 0.95
    assert set(document["bands"][15]["false_merges"]) == {"hits", "of", "share", "low", "high"}


def test_a_pair_that_is_given_twice_counts_once(file: Path) -> None:
    """The naive count would take a file given ten times for ten times the evidence."""
    swapped = file.with_name("pairs_swapped.jsonl")
    swapped.write_text(pairs(*((b, a, label) for a, b, label in many())), encoding="utf-8")
    ran = run("--pairs", file, "--pairs", file, "--pairs", swapped)
    assert ran.status == 0
    assert "1,680 lines give a pair again and count once." in ran.out
    assert Measured.from_dict(Calibration.objects.get().figures).pairs == 840


def test_a_pair_that_is_labelled_both_ways_is_named(file: Path) -> None:
    other = file.with_name("pairs_other.jsonl")
    a, b, _ = many()[0]
    other.write_text(pairs((b, a, "duplicate")), encoding="utf-8")
    ran = run("--pairs", file, "--pairs", other)
    assert ran.status == 1
    assert "pairs_other.jsonl, line 1: an earlier line labels the same pair otherwise" in ran.out


def test_too_few_pairs_are_stored_as_measured_set_nothing_and_say_so(tmp_path: Path) -> None:
    """The control is what is stored: were the newest to hold whatever it rests on, nothing would merge by key."""
    path = tmp_path / "few.jsonl"
    path.write_text(pairs(*many(20)), encoding="utf-8")
    ran = run("--pairs", path)
    row = Calibration.objects.get()
    assert (row.t_merge, Measured.from_dict(row.figures).pairs) == (NEVER, 60)
    assert in_force(profile=HASHING) == HASHING
    assert (
        "t_merge      not set: too few pairs to set thresholds: 20 different pairs from 0.8 on were seen, and 765 are"
        " needed to say anything." in ran.out
    )
    assert (
        f"Stored as calibration {row.pk}, not in force: too few pairs to set thresholds. As before, hashing merges"
        " by key without a person from 0.95 on." in ran.out
    )
    refused = run("--pairs", path, "--enable")
    assert (refused.status, refused.error.split(" has ")[1]) == (
        1,
        "too few pairs to set thresholds: calibrate with 765 that are not one claim, or more.",
    )
    assert run("--pairs", path, "--json").document["enough_pairs"] is False
    assert "in force" not in run("--list").out
    assert "merges not set" in run("--list").out


def test_enough_pairs_that_find_nothing_safe_switch_merging_by_key_off(file: Path, tmp_path: Path) -> None:
    """The other side: pairs that are enough to tell, with mistakes that no guard sees up to a cosine of 0.99."""
    path = tmp_path / "wrong.jsonl"
    text = "The {} is of the same colour " + "as the host in the hall of the plant by the river " * 20
    names = [f"{first}{second}" for first in ("ba", "ko", "mi", "ru", "ta") for second in ("lin", "dor", "fen", "mar")]
    rows = ((text.format(name), text.format(name).replace("colour", "color"), "different") for name in names)
    path.write_text(pairs(*rows), encoding="utf-8")
    ran = run("--pairs", file, "--pairs", path)
    row = Calibration.objects.get()
    assert (row.t_merge, Measured.from_dict(row.figures).tells) == (NEVER, True)
    assert not in_force(profile=HASHING).automatic
    assert "t_merge      never by key: from " in ran.out
    assert f"Stored as calibration {row.pk}, in force from the next plan on. Nothing merges by key" in ran.out


def test_few_pairs_of_which_many_would_merge_wrongly_switch_merging_off_at_once() -> None:
    """They cannot show that merging is safe, and they do show that it is not."""
    wrong = measure(
        duplicates=[False] * 60, cosines=[0.97] * 60, objected=[True] * 40 + [False] * 20, identical=[False] * 60
    )
    calibrating.store(profile=HASHING, measured=wrong, proposed=propose(measured=wrong), by="carl")
    assert not in_force(profile=HASHING).automatic


def test_a_calibration_on_too_few_pairs_replaces_none_that_holds() -> None:
    """Neither its thresholds, nor that a person enabled it, nor that it still can be."""
    old = calibrating.enable(calibration=kept(), by="sven")
    few = calibrating.store(profile=HTTP, measured=Measured(()), proposed=(0.8, NEVER), by="carl")
    held = in_force(profile=HTTP)
    assert (held.t_candidate, held.t_merge, held.automatic) == (0.9, 0.96, True)
    rows = Calibration.objects.order_by("-pk")
    assert calibrating.holding(newest_first=rows) == {old.pk}
    assert rows[0] == few
    later = kept(thresholds=(0.88, 0.97))
    calibrating.store(profile=HTTP, measured=Measured(()), proposed=(0.8, NEVER), by="carl")
    ran = run("--enable", HTTP.name, "--by", "sven")
    assert (ran.status, f"Calibration {later.pk}: " in ran.out) == (0, True)
    assert in_force(profile=HTTP).t_merge == 0.97


def test_an_embedder_that_was_measured_on_too_few_pairs_only_stays_unmeasured() -> None:
    calibrating.store(profile=HTTP, measured=Measured(()), proposed=(0.8, NEVER), by="carl")
    assert in_force(profile=HTTP) == HTTP
    assert not HTTP.automatic


def test_enabling_by_name_says_who(file: Path) -> None:
    run("--pairs", file)
    ran = run("--enable", "hashing", "--by", "sven")
    row = Calibration.objects.get()
    assert ran.status == 0
    assert (row.enabled_by, row.enabled_at is not None) == ("sven", True)
    assert f"Calibration {row.pk}: hashing merges by key from 0.95 on (sven, " in ran.out


def test_measuring_and_enabling_in_one_go(file: Path) -> None:
    document = run("--pairs", file, "--enable", "--by", "sven", "--json").document
    assert (document["enabled_by"], document["unusable"]) == ("sven", [])


def test_the_list_says_which_one_holds(file: Path) -> None:
    assert run("--list").out.strip() == "Nothing was calibrated yet."
    kept()
    run("--pairs", file)
    run("--pairs", file)
    lines = run("--list").out.splitlines()
    assert [("in force" in line, line.split()[3]) for line in lines] == [
        (True, "hashing"),
        (False, "hashing"),
        (True, "http:acme-1"),
    ]
    assert [one["profile"] for one in run("--list", "--json").document["calibrations"]] == ["hashing"] * 2 + [
        "http:acme-1"
    ]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "Say what to measure: --pairs FILE (see --help), or --list."),
        (["--pairs", "nowhere.jsonl"], "The file nowhere.jsonl cannot be read: No such file or directory."),
        (["--enable", "acme"], "No calibration of 'acme' is stored: measure it with --pairs first."),
        (["--enable"], "No calibration of 'hashing' is stored: measure it with --pairs first."),
    ],
)
def test_what_cannot_be_done_is_one_sentence(words: Sequence[str], sentence: str) -> None:
    ran = run(*words)
    assert (ran.status, ran.error, ran.out) == (2, sentence, "")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "There is no pair in these files: each line needs a, b and label."),
        (b"\n \n", "There is no pair in these files: each line needs a, b and label."),
        (b"{\n}\n", "No line of these files can be used (2 were tried); x.jsonl, line 1: it is not JSON."),
    ],
)
def test_a_file_without_a_pair_stores_nothing(tmp_path: Path, content: bytes, sentence: str) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(content)
    ran = run("--pairs", path)
    assert (ran.status, ran.error) == (2, sentence)
    assert not Calibration.objects.exists()


def test_an_embedder_that_fails_stores_nothing(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(self: Hashing, texts: Sequence[str]) -> Any:
        raise WeightsMissing("The embedding model is not installed: install it.")

    monkeypatch.setattr(Hashing, "embed", fails)
    assert issubclass(WeightsMissing, EmbeddingError)
    ran = run("--pairs", file)
    assert (ran.status, ran.error) == (2, "The embedding model is not installed: install it.")
    assert not Calibration.objects.exists()


def test_measuring_works_chunk_by_chunk_as_all_at_once(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [("f", number, line) for number, line in enumerate(file.read_bytes().splitlines(), 1)]
    whole = calibrating.count(lines=lines, embedder=current_embedder()).measured
    monkeypatch.setattr(calibrating, "_CHUNK", 7)
    assert calibrating.count(lines=lines, embedder=current_embedder()).measured == whole


def test_the_shipped_embedder_measured_on_real_pairs_keeps_its_threshold() -> None:
    """MiniLM on the different pairs of 1,800 of PAWS: no false merge with the guards, hundreds without.

    Of their duplicates, which have no say in what merges, a few stand beside them.
    """
    name = "pairs_paws.jsonl"
    read = [(name, number, line) for number, line in enumerate(real(name).read_bytes().splitlines()[:1_800], 1)]
    lines = [line for line in read if b'"label": "different"' in line[2] or not line[1] % 20]
    found = calibrating.count(lines=lines, embedder=EachOnce())
    assert found.duplicates.count(False) == 910
    assert found.unusable == []
    at = found.measured.at(threshold=0.95)
    assert at.false_merges.bound < LIMIT
    assert at.unguarded_false_merges.hits > 300  # the naive control: what the cosine alone would merge
    assert propose(measured=found.measured)[1] == 0.95

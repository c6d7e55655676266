"""What a rule's judgements are called, what labels say of them, and when a band falls (DESIGN promise 8, R48)."""

from __future__ import annotations

import pytest

from consolidation.accuracy import Band, Demoted, asked_instead, exceeds, named, proven, spoken, worst
from consolidation.calibration import Rate
from consolidation.operations import Approval, Json, Kind, Proposal
from tests.unit.demoting import LIMIT, any_error, chance, ours, share_over_the_limit, simulated, three_wrong

RUNS, SEED = 2_000, 7


def proposal(kind: Kind = Kind.MERGE, *, sources: int = 2, **more: object) -> Proposal:
    values = {"approval": Approval.AUTO, "reason": "r", **more}
    return Proposal(kind=kind, scope_id=1, sources=tuple(range(1, sources + 1)), **values)  # type: ignore[arg-type]


def pair(cosine: float | None, *met: str, failed: tuple[str, ...] = (), verdict: str = "same") -> dict[str, Json]:
    return {"a": 1, "b": 2, "cosine": cosine, "met": list(met), "failed": list(failed), "verdict": verdict}


# --- the two lines that must hold -------------------------------------------------------------------------------------


def test_a_band_with_five_percent_errors_falls_within_100_labels_in_95_of_100_runs() -> None:
    assert simulated(ours, error=0.05, labels=100, runs=RUNS, seed=SEED) >= 0.95
    assert chance(ours, error=0.05, labels=100) == pytest.approx(0.9738, abs=1e-4)


@pytest.mark.parametrize("labels", [100, 1_000])
def test_a_band_with_one_error_in_1000_is_kept_in_90_of_100_runs_however_long_it_is_looked_at(labels: int) -> None:
    assert 1 - simulated(ours, error=0.001, labels=labels, runs=RUNS, seed=SEED) >= 0.90
    assert 1 - chance(ours, error=0.001, labels=labels) >= 0.96


@pytest.mark.parametrize("naive", [any_error, share_over_the_limit])
def test_a_naive_rule_that_asks_no_interval_demotes_good_bands(naive: object) -> None:
    """The control: without the interval the second line does not hold."""
    assert 1 - simulated(naive, error=0.001, labels=1_000, runs=RUNS, seed=SEED) < 0.90  # type: ignore[arg-type]


def test_a_rule_that_waits_for_a_third_mistake_finds_a_bad_band_too_late() -> None:
    """The other control: the first line does not hold."""
    assert simulated(three_wrong, error=0.05, labels=100, runs=RUNS, seed=SEED) < 0.95


def test_one_mistake_among_many_right_ones_is_no_reason() -> None:
    assert exceeds(Rate(1, 35), limit=LIMIT)
    assert not exceeds(Rate(1, 36), limit=LIMIT)
    assert not exceeds(Rate(0, 5), limit=LIMIT)
    assert not exceeds(Rate(0, 0), limit=LIMIT)


# --- what is known of a band ------------------------------------------------------------------------------------------


def test_of_nothing_nothing_is_known() -> None:
    band = Band(kind="merge", rule="same key", band="0.98-0.99", applied=7, waiting=7)
    assert (band.error, band.lower, band.upper) == (None, 0.0, 1.0)
    assert proven(band.rate) == "nothing known"


def test_what_is_proven_is_the_upper_end() -> None:
    assert proven(Rate(0, 20)) == "below 16.1%"
    assert proven(Rate(0, 765)) == "below 0.5%"


def test_the_error_of_what_decides_alone_is_that_of_the_sample_and_of_what_asks_that_of_the_decisions() -> None:
    """What waits for people is doubtful by choice: its refusals say nothing of what was applied without one."""
    asks = Band(kind="merge", rule="similar", band="0.90-0.91", approved=6, rejected=3, reverted=1)
    assert (asks.unasked, asks.error) == (False, 0.4)
    alone = Band(kind="merge", rule="same key", band="0.98-0.99", applied=40, judged_right=20, rejected=9, approved=1)
    assert (alone.automatic, alone.error) == (True, 0.0)


def test_a_band_falls_by_its_sample_or_by_what_was_taken_back_of_all_and_never_by_adding_them() -> None:
    """People take back what is wrong wherever they see it; counted among the sample it would look like a bad rule."""
    seen = Band(kind="merge", rule="r", band="b", applied=10_000, undone=10, judged_right=500, judged_wrong=0)
    assert worst(seen, limit=LIMIT) is None
    assert exceeds(Rate(10, 510), limit=LIMIT)  # the naive sum
    assert worst(Band(kind="merge", rule="r", band="b", applied=100, undone=5), limit=LIMIT) == Rate(5, 100)
    sample = Band(kind="merge", rule="r", band="b", applied=100, judged_right=18, judged_wrong=2)
    assert worst(sample, limit=LIMIT) == Rate(2, 20)


# --- names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pairs", "rule", "band"),
    [
        ([pair(0.999, "text", "neighbour")], "same words", "same words"),
        ([pair(None, "text")], "same words", "same words"),
        ([pair(0.9999, "subject_predicate")], "same key", "0.99-1.00"),
        ([pair(1.0, "subject_predicate")], "same key", "0.99-1.00"),
        ([pair(0.98, "neighbour"), pair(0.97, "text")], "same key", "0.97-0.98"),
        ([pair(0.99, "neighbour", failed=("keys differ",), verdict="ask")], "similar", "0.99-1.00"),
        ([pair(0.5, "subject", verdict="ask", failed=("x",))], "similar", "under 0.80"),
        ([pair(None, "subject", verdict="ask", failed=("x",))], "similar", "no vectors"),
        ([], "similar", "no vectors"),
    ],
)
def test_a_merge_is_named_by_how_its_rows_met_and_the_lowest_of_their_similarities(
    pairs: list[dict[str, Json]], rule: str, band: str
) -> None:
    own = named(proposal(signals={"pairs": pairs}))
    assert (own.rule, own.band) == (rule, band)


@pytest.mark.parametrize(
    ("one", "rule", "band"),
    [
        (proposal(Kind.PROMOTE, product={"roots": 3}), "independent sources", "3 sources"),
        (proposal(Kind.PROMOTE, product={"roots": 11}), "independent sources", "6 or more sources"),
        (proposal(Kind.COMPACT, sources=7), "all specifics kept", "up to 10:1"),
        (proposal(Kind.COMPACT, sources=2, approval=Approval.NEEDS_HUMAN), "summary with gaps", "up to 2:1"),
        (proposal(Kind.ARCHIVE, sources=1), "decay", "all"),
        (proposal(Kind.PRUNE, sources=1, approval=Approval.NEEDS_HUMAN), "retention", "all"),
        (proposal(Kind.PRUNE, approval=Approval.NEEDS_HUMAN, product={"derived": 4}), "used up", "all"),
        (
            proposal(Kind.SUPERSEDE, approval=Approval.NEEDS_HUMAN, product={"suggested": "periods"}),
            "contradiction",
            "periods",
        ),
        (proposal(Kind.FORGET, approval=Approval.NEEDS_HUMAN), "", ""),
    ],
)
def test_every_kind_has_its_rules(one: Proposal, rule: str, band: str) -> None:
    assert (named(one).rule, named(one).band) == (rule, band)


def test_a_demoted_band_asks_a_person_under_the_same_name() -> None:
    fell = Demoted("compact", "all specifics kept", "up to 10:1", 30, 3, 0.0346, 0.005)
    one = proposal(Kind.COMPACT, sources=7)
    asked = asked_instead(one, demoted={("compact", "all specifics kept", "up to 10:1"): fell})
    assert asked.approval is Approval.NEEDS_HUMAN
    assert asked.reason == (
        "r; a person decides, all specifics kept, up to 10:1 was wrong in 3 of 30, at least 3.5% where 0.5% are allowed"
    )
    assert (named(asked), asked.id) == (named(one), one.id)
    assert asked_instead(one, demoted={}) is one
    human = proposal(approval=Approval.NEEDS_HUMAN)
    assert asked_instead(human, demoted={("merge", "similar", "no vectors"): fell}) is human


def test_a_band_is_spoken_of_once() -> None:
    assert spoken(rule="same words", band="same words") == "same words"
    assert spoken(rule="decay", band="all") == "decay"
    assert spoken(rule="same key", band="0.98-0.99") == "same key, 0.98-0.99"
    assert spoken(rule="", band="") == "unknown rule"

"""What an embedder's cosines mean: counted by band, honest intervals, and thresholds that follow (R42, DESIGN 5)."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consolidation.calibration import (
    EDGES,
    FEWEST,
    FLOOR,
    KEPT,
    LABELS,
    LIMIT,
    LOWEST_MERGE,
    NEVER,
    BadLine,
    Band,
    Labelled,
    Measured,
    Rate,
    labelled,
    measure,
    percent,
    propose,
    reasons,
)
from tests.jsonl import DATA

Pair = tuple[bool, float, bool, bool]  # duplicate, cosine, a guard objects, equal but for spelling


def measured(pairs: Sequence[Pair]) -> Measured:
    columns: list[tuple[bool | float, ...]] = list(zip(*pairs, strict=True)) if pairs else [(), (), (), ()]
    duplicates, cosines, objected, identical = columns
    return measure(
        duplicates=[bool(one) for one in duplicates],
        cosines=[float(one) for one in cosines],
        objected=[bool(one) for one in objected],
        identical=[bool(one) for one in identical],
    )


PAIRS = st.lists(
    st.tuples(st.booleans(), st.floats(0.5, 1.0), st.booleans(), st.sampled_from([False, False, False, True])),
    max_size=60,
)


# --- rates and intervals ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hits", "of", "low", "high"),
    [  # Wilson without continuity correction, as statistical packages give it
        (0, 10, 0.0, 0.2775328),
        (5, 10, 0.2365931, 0.7634069),
        (10, 10, 0.7224672, 1.0),
        (1, 100, 0.0017675, 0.0544862),
        (0, 765, 0.0, 0.0049964),
        (0, 764, 0.0, 0.0050029),
    ],
)
def test_an_interval_is_wilsons(hits: int, of: int, low: float, high: float) -> None:
    found = Rate(hits, of).interval
    assert found[0] == pytest.approx(low, abs=5e-6)
    assert found[1] == pytest.approx(high, abs=5e-6)


@given(st.integers(0, 400), st.integers(1, 400))
def test_each_end_is_where_the_score_test_just_rejects(hits: int, of: int) -> None:
    """Wilson's definition, independent of the closed form: (share - p)^2 = z^2 p (1 - p) / n at both ends."""
    rate = Rate(min(hits, of), of)
    for end in rate.interval:
        assert (rate.share - end) ** 2 == pytest.approx(1.959964**2 * end * (1 - end) / of, abs=1e-9)


def test_nothing_seen_says_nothing() -> None:
    """No pair is no evidence: the naive share of 0 would pass any limit."""
    nothing = Rate(0, 0)
    assert nothing.share == 0.0
    assert nothing.interval == (0.0, 1.0)
    assert not nothing.bound < LIMIT


@given(st.integers(0, 3_000), st.integers(1, 3_000))
def test_an_interval_holds_its_share_and_shrinks_with_more_pairs(hits: int, of: int) -> None:
    rate = Rate(min(hits, of), of)
    low, high = rate.interval
    assert 0 <= low <= rate.share + 1e-12
    assert rate.share - 1e-12 <= high <= 1
    wide, narrow = high - low, Rate(10 * rate.hits, 10 * of).interval
    assert narrow[1] - narrow[0] < wide


@given(st.integers(0, 500), st.integers(1, 500))
def test_hits_and_misses_have_mirrored_intervals(hits: int, of: int) -> None:
    rate = Rate(min(hits, of), of)
    low, high = Rate(of - rate.hits, of).interval
    assert rate.interval[0] == pytest.approx(1 - high, abs=1e-9)
    assert rate.interval[1] == pytest.approx(1 - low, abs=1e-9)


def test_a_share_is_written_with_its_interval() -> None:
    assert percent(Rate(1883, 4013)) == "46.9% (45.4-48.5)"


# --- bands ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cosine", "low"),
    [(0.80, 0.80), (0.8099999, 0.80), (0.81, 0.81), (0.95, 0.95), (0.9499999, 0.94), (0.99, 0.99), (1.0, 0.99)],
)
def test_a_pair_is_in_the_band_of_its_cosine(cosine: float, low: float) -> None:
    """The edge belongs to the band above it, as the merge rule reads its threshold (cosine >= t)."""
    found = measured([(True, cosine, False, False)])
    assert [band.low for band in found.bands if band.duplicates] == [low]


@pytest.mark.parametrize("cosine", [0.7999999, 0.0, -1.0, math.nan])
def test_what_is_not_similar_is_counted_beside_the_bands(cosine: float) -> None:
    found = measured([(True, cosine, False, False), (False, cosine, True, False)])
    assert (found.below_duplicates, found.below_different, found.pairs) == (1, 1, 2)
    assert all(band == Band(band.low) for band in found.bands)


def test_texts_equal_but_for_spelling_are_in_no_band() -> None:
    """No threshold decides about them, so no threshold is to be chosen by them."""
    found = measured([(True, 1.0, False, True), (False, 1.0, False, True), (True, 0.3, False, True)])
    assert (found.identical_duplicates, found.identical_different) == (2, 1)
    assert not any(band.duplicates or band.different for band in found.bands)


def test_a_band_counts_labels_and_what_the_guards_let_through() -> None:
    pairs = [
        (True, 0.955, False, False),
        (True, 0.952, True, False),
        (False, 0.957, True, False),
        (False, 0.95, False, False),
    ]
    found = measured(pairs)
    assert next(band for band in found.bands if band.low == 0.95) == Band(0.95, 2, 2, 1, 1)


def test_sequences_of_different_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="zip"):
        measure(duplicates=[True], cosines=[0.9, 0.8], objected=[False], identical=[False])


@given(PAIRS, st.randoms(use_true_random=False))
def test_the_order_of_the_pairs_does_not_matter(pairs: list[Pair], random: object) -> None:
    shuffled = list(pairs)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert measured(shuffled) == measured(pairs)


@given(PAIRS)
def test_every_pair_is_counted_once(pairs: list[Pair]) -> None:
    assert measured(pairs).pairs == len(pairs)


@given(PAIRS)
def test_figures_come_back_from_their_json(pairs: list[Pair]) -> None:
    found = measured(pairs)
    assert Measured.from_dict(json.loads(json.dumps(found.to_dict()))) == found


@given(PAIRS)
def test_figures_are_numbers_only(pairs: list[Pair]) -> None:
    """Nothing of a text can be in what is stored."""
    flat = [value for key, value in measured(pairs).to_dict().items() if key != "bands"]
    bands = measured(pairs).to_dict()["bands"]
    assert isinstance(bands, list)
    assert all(isinstance(value, int | float) for row in [flat, *bands] for value in row)


@given(PAIRS)
def test_a_higher_threshold_never_merges_more(pairs: list[Pair]) -> None:
    """What makes "the lowest safe threshold" mean something: each rate falls, the guarded one below the other."""
    found = measured(pairs)
    rates = [found.at(threshold=edge) for edge in (*EDGES, NEVER)]
    for lower, higher in pairwise(rates):
        assert higher.false_merges.hits <= lower.false_merges.hits
        assert higher.unguarded_recall.hits <= lower.unguarded_recall.hits
    assert all(at.false_merges.hits <= at.unguarded_false_merges.hits for at in rates)
    assert all(at.recall.hits <= at.unguarded_recall.hits for at in rates)
    assert rates[-1].false_merges.hits == rates[-1].unguarded_recall.hits == 0


@given(PAIRS)
def test_pairs_far_below_the_floor_change_no_rate(pairs: list[Pair]) -> None:
    """Whoever adds a thousand easy pairs has measured nothing more."""
    easy: list[Pair] = [(False, 0.2, True, False)] * 1_000
    assert measured([*pairs, *easy]).at(threshold=0.95) == measured(pairs).at(threshold=0.95)


# --- proposing --------------------------------------------------------------------------------------------------------


def pairs_at(cosine: float, number: int, *, duplicate: bool = False, objected: bool = True) -> list[Pair]:
    return [(duplicate, cosine, objected, False)] * number


def test_the_lowest_safe_threshold_is_proposed() -> None:
    """4 of 2,000 at 0.955 are too many (10.5 in 1,000 at most); none from 0.96 on."""
    wrong = pairs_at(0.955, 14, objected=False)
    found = measured([*pairs_at(0.955, 1_000), *pairs_at(0.965, 1_000), *wrong, *pairs_at(0.97, 50, duplicate=True)])
    assert not found.at(threshold=0.95).false_merges.bound < LIMIT
    assert propose(measured=found)[1] == 0.96


def test_no_threshold_under_the_documented_one_is_proposed() -> None:
    """R42: guards that let nothing through from 0.80 on still do not lower it."""
    assert propose(measured=measured(pairs_at(0.81, 5_000)))[1] == LOWEST_MERGE == 0.95


def test_too_few_different_pairs_prove_nothing() -> None:
    """764 without a mistake are not enough, 765 are: the bound decides, not the share, which is 0 for both."""
    for number, proposed in ((0, NEVER), (764, NEVER), (765, 0.95)):
        found = measured([*pairs_at(0.9, number), *pairs_at(0.97, 100, duplicate=True)])
        assert found.at(threshold=0.95).false_merges.share == 0
        assert propose(measured=found)[1] == proposed


def test_the_fewest_pairs_that_can_say_anything_follow_from_the_limit() -> None:
    """Wilson's upper end of none of n is under the limit from n = 765 on, and for no smaller n."""
    assert Rate(0, FEWEST).bound < LIMIT <= Rate(0, FEWEST - 1).bound
    assert FEWEST == 765


@pytest.mark.parametrize(
    ("different", "wrong", "tells"),
    [(0, 0, False), (20, 0, False), (764, 0, False), (764, 3, False), (765, 0, True), (765, 40, True), (200, 20, True)],
)
def test_pairs_tell_something_when_the_limit_is_kept_broken_or_could_have_been_shown_to_be_kept(
    different: int, wrong: int, tells: bool
) -> None:
    """Few pairs without a mistake say nothing; few of which many merge wrongly say enough to stop it."""
    found = measured([*pairs_at(0.97, wrong, objected=False), *pairs_at(0.9, different - wrong)])
    assert found.tells is tells


def test_mistakes_below_every_threshold_of_merging_tell_nothing() -> None:
    found = measured([*pairs_at(0.94, 20, objected=False), *pairs_at(0.9, 100)])
    assert found.at(threshold=0.94).false_merges.interval[0] > LIMIT
    assert not found.tells


@given(PAIRS)
def test_pairs_that_tell_nothing_propose_no_threshold_of_merging(pairs: list[Pair]) -> None:
    found = measured(pairs)
    assert found.tells or propose(measured=found)[1] == NEVER


def test_too_few_pairs_are_said_with_both_figures() -> None:
    found = measured([*pairs_at(0.9, 20), *pairs_at(0.97, 5, duplicate=True)])
    candidate, merge = propose(measured=found)
    assert reasons(t_candidate=candidate, t_merge=merge, measured=found) == (
        "not set: too few pairs to set thresholds.",
        "not set: too few pairs to set thresholds: 20 different pairs from 0.8 on were seen, and 765 are needed to say "
        "anything.",
    )


def test_where_no_threshold_is_safe_nothing_merges_by_key() -> None:
    found = measured([*pairs_at(0.995, 50, objected=False), *pairs_at(0.9, 1_000)])
    assert propose(measured=found)[1] == NEVER
    assert reasons(t_candidate=0.8, t_merge=NEVER, measured=found)[1].startswith(
        "never by key: from 0.99 on still 50 of 1,050, so at most 62."
    )


def test_the_highest_threshold_that_keeps_the_duplicates_is_proposed_for_candidates() -> None:
    found = measured([*pairs_at(0.965, 95, duplicate=True), *pairs_at(0.905, 5, duplicate=True), *pairs_at(0.9, 1_000)])
    assert propose(measured=found) == (0.95, 0.95)  # never over the threshold of merging
    spread = measured([*pairs_at(0.965, 90, duplicate=True), *pairs_at(0.905, 10, duplicate=True)])
    assert propose(measured=spread)[0] == 0.90
    assert KEPT == 0.95


def test_without_duplicates_everything_from_the_floor_on_is_a_candidate() -> None:
    found = measured(pairs_at(0.9, 1_000))
    assert propose(measured=found) == (FLOOR, 0.95)
    assert reasons(t_candidate=FLOOR, t_merge=0.95, measured=found) == (
        "0.8: too few duplicates were seen to set it higher.",
        "0.95: 0 of 1,000, so at most 3.8 of 1,000 different pairs would merge; the limit is 5.",
    )


@given(PAIRS)
def test_proposed_thresholds_are_in_order_and_safe(pairs: list[Pair]) -> None:
    found = measured(pairs)
    candidate, merge = propose(measured=found)
    assert FLOOR <= candidate <= merge <= NEVER
    assert merge >= LOWEST_MERGE
    assert merge == NEVER or found.at(threshold=merge).false_merges.bound < LIMIT


@given(PAIRS)
def test_a_false_merge_more_never_lowers_the_threshold(pairs: list[Pair]) -> None:
    before = propose(measured=measured([*pairs, *pairs_at(0.96, 900)]))[1]
    after = propose(measured=measured([*pairs, *pairs_at(0.96, 900), *pairs_at(0.995, 9, objected=False)]))[1]
    assert after >= before


# --- reading lines ----------------------------------------------------------------------------------------------------


def line(**fields: object) -> bytes:
    return json.dumps({"a": "Likes tea", "b": "Likes coffee", "label": "different", **fields}).encode()


@pytest.mark.parametrize("label", sorted(LABELS))
def test_only_a_duplicate_is_the_same_claim(label: str) -> None:
    """data/README.md: refinements, related claims and other events are not."""
    assert labelled(line=line(label=label)).duplicate == (label == "duplicate")


def test_a_pair_is_read_and_other_fields_are_left_alone() -> None:
    found = labelled(line=b"\xef\xbb\xbf" + line(kind="swap", source=["x"], id=3) + b"\r\n")
    assert found == Labelled("Likes tea", "Likes coffee", duplicate=False)


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"{", "it is not JSON"),
        (b"[" * 100_000, "it is not JSON"),
        (b"\xff\xfe{}", "it is not UTF-8"),
        (b"[1]", "it is not an object with a, b and label"),
        (b'"text"', "it is not an object with a, b and label"),
        (line(a=None), "its field a is not a text"),
        (line(b=3), "its field b is not a text"),
        (line(b=" \n"), "its field b is not a text"),
        (b'{"a": "x", "label": "duplicate"}', "its field b is not a text"),
        (line(label="same"), "its label is none of duplicate, different, contradiction, refinement, "),
        (line(label=["duplicate"]), "its label is none of "),
        (line(label=None), "its label is none of "),
    ],
)
def test_a_line_that_cannot_be_used_says_why_and_quotes_nothing(raw: bytes, reason: str) -> None:
    with pytest.raises(BadLine) as refused:
        labelled(line=raw)
    assert str(refused.value).startswith(reason)
    assert "Likes" not in str(refused.value)
    assert "same" not in str(refused.value)


def test_a_pair_is_the_same_pair_whichever_text_stands_first() -> None:
    one = Labelled("a", "b", duplicate=True)
    assert one.digest == Labelled("b", "a", duplicate=False).digest
    assert one.digest != replace(one, b="c").digest
    assert Labelled("ab", "c", duplicate=True).digest != Labelled("a", "bc", duplicate=True).digest
    assert len(Labelled("\ud800", "x", duplicate=True).digest) == 16


def test_every_label_of_the_real_data_is_known() -> None:
    """Every pairs file of the developer half, where it lies; it is not copied."""
    files = sorted(DATA.glob("pairs_*.jsonl"))
    if not files:
        pytest.skip("SKIPPED LOUDLY: no pairs_*.jsonl; set PALIMPSEST_DATA to the folder of the data files")
    for path in files:
        with path.open("rb") as opened:
            for raw in opened:
                labelled(line=raw)

"""Which episodes are asked about together: windows of what is new, with what came before and belongs to it (R40)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from random import Random

import numpy as np
import pytest

from consolidation import promote
from consolidation.policy import Policy
from consolidation.promote import MAX_EPISODES, WINDOW, finding
from consolidation.promote.finding import Vectors
from observations.records import EpisodeRecord, Status
from tests.unit.promoting import episode

DEFAULT = Policy()
# Words that no two of these lists share.
SYLLABLES = [first + second + third for first in "bdfgklmnprstvz" for second in "aeiou" for third in "bdfgklmnprstvz"]


def found(
    episodes: Iterable[EpisodeRecord],
    *,
    policy: Policy = DEFAULT,
    vectors: Vectors | None = None,
    t_near: float = 0.5,
) -> promote.Found:
    return promote.clusters(episodes=episodes, policy=policy, vectors=vectors, t_near=t_near)


def small_talk(count: int, *, start: int = 1, session: int = 10) -> list[EpisodeRecord]:
    """Episodes that share no word, in sessions of some turns."""
    drawn = Random(7).sample(SYLLABLES, len(SYLLABLES))
    return [
        episode(number, " ".join(drawn[(number * 2 + at) % len(drawn)] for at in range(2)), session=str(at // session))
        for at, number in enumerate(range(start, start + count))
    ]


def told(episodes: Sequence[EpisodeRecord], **texts: str) -> list[EpisodeRecord]:
    """The episodes with other texts at some places: `at_5="text"`."""
    changed = {int(name.removeprefix("at_")): text for name, text in texts.items()}
    return [replace(one, text=changed.get(one.id, one.text), content_hash=str(one.id)) for one in episodes]


def meet(result: promote.Found, *ids: int) -> bool:
    """Whether some cluster holds all of these episodes."""
    return any(set(ids) <= set(cluster.ids) for cluster in result.clusters)


def near(count: int, *groups: tuple[int, ...]) -> Vectors:
    """Unit vectors: those of a group are one, all others are at right angles to each other."""
    matrix = np.eye(count, dtype=np.float32)
    for first, *others in groups:
        for other in others:
            matrix[other - 1] = matrix[first - 1]
    return np.arange(1, count + 1, dtype=np.int64), matrix


# --- sizes -----------------------------------------------------------------------------------------------------------


def test_a_small_scope_is_one_cluster() -> None:
    """What several of up to forty episodes agree on is always asked about together, with one question."""
    for count in (2, 9, 10, 23, 40):
        result = found(small_talk(count))
        assert [len(one.episodes) for one in result.clusters] == [count]


def test_clusters_are_few_and_bounded() -> None:
    """The number of questions stays well under a fifth of the episodes, whatever the sessions' length."""
    for session in (1, 2, 3, 4, 7, 8, 20, 500):
        result = found(small_talk(500, session=session))
        assert all(2 <= len(one.episodes) <= MAX_EPISODES for one in result.clusters)
        assert len(result.clusters) <= 500 / 7 + 1


def test_every_episode_is_in_a_cluster() -> None:
    asked = found(small_talk(300))
    assert {number for one in asked.clusters for number in one.ids} == set(range(1, 301))


def test_no_episodes_make_no_clusters() -> None:
    assert found([]) == promote.Found(clusters=())


def test_the_total_is_bounded_and_what_is_left_out_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A skip is a result: the latest windows are kept."""
    monkeypatch.setattr(finding, "MAX_CLUSTERS", 5)
    result = found(small_talk(180, session=180))
    assert len(result.clusters) == 5
    assert result.left_out == 180 // WINDOW - 5
    assert 180 in result.clusters[-1].ids


# --- what meets ------------------------------------------------------------------------------------------------------

FAR = (3, 97, 188)


def test_episodes_that_share_rare_words_meet_however_far_apart() -> None:
    """The subject key."""
    texts = {f"at_{number}": f"kayak trip {number} with Marta on the fjord" for number in FAR}
    assert meet(found(told(small_talk(200), **texts)), *FAR)
    assert not meet(found(small_talk(200)), *FAR)


def test_what_a_speaker_seldom_says_meets_by_the_speaker() -> None:
    """The subject key: a speaker is a word of the episode."""
    rows = [replace(one, speaker="Zoe" if one.id in FAR else "") for one in small_talk(200)]
    assert meet(found(rows), *FAR)


def test_episodes_with_near_vectors_meet_without_a_word_in_common() -> None:
    """The neighbours key."""
    assert meet(found(small_talk(200), vectors=near(200, FAR)), *FAR)


def test_vectors_under_the_threshold_bring_nobody_together() -> None:
    ids, matrix = near(200)
    matrix[96] = 0.6 * matrix[2] + 0.8 * matrix[96]
    assert meet(found(small_talk(200), vectors=(ids, matrix), t_near=0.59), 3, 97)
    assert not meet(found(small_talk(200), vectors=(ids, matrix), t_near=0.61), 3, 97)


def test_turns_of_one_session_meet() -> None:
    """The session key."""
    rows = small_talk(200, session=8)
    assert all(meet(found(rows), *range(at, at + 8)) for at in (1, 41, 105))


def test_turns_without_a_session_belong_together_within_the_policys_hours() -> None:
    rows = [replace(one, session="") for one in small_talk(200)]
    hourly = [replace(one, happened_at=rows[0].happened_at.replace(year=2023 + one.id // 8)) for one in rows]
    assert meet(found(hourly), *range(8, 16))
    windows = [set(one.ids) & {7, 8} for one in found(rows[:8]).clusters]
    assert windows == [{7, 8}]


def test_common_words_bring_nobody_together() -> None:
    """A word of more than 200 episodes says nothing about what an episode is about."""
    rows = [replace(one, text=f"{one.text} really") for one in small_talk(600)]
    assert not meet(found(rows), 3, 300)


def test_small_talk_said_often_takes_no_more_places_than_it_can_add_witnesses() -> None:
    """Greetings are each other's nearest neighbours: without a limit they would fill every cluster."""
    rows = [replace(one, text="Good morning") if one.id % 2 else one for one in small_talk(300)]
    alike = tuple(range(1, 301, 2))
    texts = {one.id: one.text for one in rows}
    result = found(rows, vectors=near(300, alike), policy=Policy(auto_support=3))
    greetings = [[number for number in one.ids if texts[number] == "Good morning"] for one in result.clusters]
    latest = [set(range(max(one.ids) - 60, max(one.ids) + 1)) for one in result.clusters]
    assert all(set(some) <= around for some, around in zip(greetings, latest, strict=True))


def test_one_long_document_does_not_fill_a_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred parts of one source are one witness: other sources keep their places, though they match less well."""
    others = [episode(n, "Marta went out, " + SYLLABLES[200 + n], session="o") for n in range(1, 25)]
    parts = [episode(100 + n, "kayak tour by Marta, " + SYLLABLES[n], root="book", session="b") for n in range(100)]
    news = [episode(200 + n, "a kayak tour by Marta, " + SYLLABLES[300 + n], session="n") for n in range(9)]

    def kept() -> int:
        [last] = [one for one in found([*others, *parts, *news]).clusters if 208 in one.ids]
        return len({one.id for one in others}.intersection(last.ids))

    assert kept() == len(others)
    monkeypatch.setattr(finding, "_OF_ONE_ROOT", 1_000)
    assert kept() < len(others)


# --- one witness -----------------------------------------------------------------------------------------------------


def test_copies_of_one_source_are_left_out_and_counted() -> None:
    """C8: ingested ten times more, a document changes no question, so no answer and no operation either."""
    rows = small_talk(30)
    copies = [replace(rows[4], id=100 + n, source_uri=f"again://{n}") for n in range(10)]
    assert found([*rows, *copies]).clusters == found(rows).clusters
    assert found([*rows, *copies]).copies == 10


def test_the_same_words_from_another_source_are_another_witness() -> None:
    rows = [episode(1, "I like kayaks a lot"), episode(2, "I like kayaks a lot")]
    assert [one.ids for one in found(rows).clusters] == [(1, 2)]


def test_a_cluster_of_one_witness_is_not_worth_asking_about_and_is_counted() -> None:
    """R76: fewer than two can corroborate nothing."""
    rows = [episode(n, f"part {n} of the book", root="doc://book") for n in range(1, 8)]
    seen = found(rows)
    assert (seen.clusters, seen.episodes, seen.too_thin) == ((), 7, 1)
    [skip] = promote.unsupported(clusters=seen.thin, policy=Policy())
    assert (skip.skipped_reason, skip.sources) == ("1 supporting, 2 needed", tuple(range(1, 8)))
    assert found([episode(1, "alone")]).too_thin == 1


# --- scopes and status -----------------------------------------------------------------------------------------------


def test_episodes_of_two_scopes_are_refused() -> None:
    """C6, R90, R106."""
    with pytest.raises(ValueError, match="several"):
        found([episode(1, "tea"), episode(2, "tea", scope=2)])


def test_only_active_episodes_are_asked_about() -> None:
    rows = [replace(one, status=Status.ARCHIVED) if one.id % 3 else one for one in small_talk(30)]
    assert [one.ids for one in found(rows).clusters] == [tuple(range(3, 31, 3))]


# --- staying the same ------------------------------------------------------------------------------------------------


def test_clusters_are_the_same_in_any_order_of_episodes_and_vectors() -> None:
    rows = told(small_talk(150), at_7="kayak with Marta", at_90="Marta and her kayak")
    ids, matrix = near(150, (3, 70, 140), (11, 12, 99))
    first = found(rows, vectors=(ids, matrix))
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(150)
        shuffled = [rows[at] for at in order]
        assert found(shuffled, vectors=(ids[order], matrix[order])) == first


def test_vectors_of_other_rows_are_ignored_and_missing_ones_do_no_harm() -> None:
    rows = small_talk(100)
    ids, matrix = near(100, (3, 70))
    extra = (np.append(ids, [900, 901]), np.vstack([matrix, matrix[[2, 2]]]))
    assert found(rows, vectors=extra) == found(rows, vectors=(ids, matrix))
    few = np.array([2, 69])
    assert meet(found(rows, vectors=(ids[few], matrix[few])), 3, 70)
    none = (np.empty(0, np.int64), np.empty((0, 4), np.float32))
    assert found(rows, vectors=none) == found(rows)


def test_what_is_recorded_later_changes_no_cluster_but_the_last() -> None:
    """R93: an answer stays cached, and a pass asks about what is new only."""
    rows = told(small_talk(240), **{f"at_{n}": f"kayak {n} with Marta" for n in range(5, 240, 31)})
    vectors = near(240, tuple(range(2, 240, 17)))
    before = [one.ids for one in found(rows[:200], vectors=vectors).clusters]
    after = [one.ids for one in found(rows, vectors=vectors).clusters]
    assert before[:-1] == after[: len(before) - 1]
    assert len(after) - len(before) <= 6


def test_a_cluster_that_is_part_of_another_is_dropped() -> None:
    sets = [frozenset(one.ids) for one in found(small_talk(200)).clusters]
    assert not any(one < other for one in sets for other in sets)


def test_the_matrix_products_may_be_cut_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is bounded by blocks; where they end changes nothing."""
    rows, vectors = small_talk(150), near(150, (3, 70, 140), (11, 12, 99))
    whole = found(rows, vectors=vectors)
    monkeypatch.setattr(finding, "_CELLS", 1)
    assert found(rows, vectors=vectors) == whole

"""What comes of a summary: automatic, for a person, or seen and never applied (DESIGN 4, R44, R89, R107, C9)."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from consolidation import compact
from consolidation.compact import CONFIDENCE, Group, Turn
from consolidation.operations import Approval, Json, Kind, Proposal, State
from consolidation.policy import Policy
from observations.llm import NoModel, Refused

from .compacting import C9_EPISODES, C9_SUMMARY, answer, group, proposed, turn, written

TEN = group(*C9_EPISODES, first=41)
WITHOUT_FIGURES = tuple(
    "Omar looked on while a rollback used an older build for a while." if "4417" in sentence else sentence
    for sentence in C9_SUMMARY
)


def signals(proposal: Proposal) -> dict[str, Any]:
    return dict(proposal.signals)


# --- automatic -------------------------------------------------------------------------------------------------------


def test_a_summary_that_keeps_everything_is_automatic() -> None:
    """R44, DESIGN 4: within 10:1 and with every number, date, identifier and name kept."""
    found = proposed(TEN, *C9_SUMMARY)
    assert found.approval is Approval.AUTO
    assert found.state is State.PLANNED
    assert found.auto
    assert found.skipped_reason == ""


def test_the_proposal_names_its_episodes_and_carries_the_summary() -> None:
    found = proposed(TEN, *C9_SUMMARY)
    assert found.kind is Kind.COMPACT
    assert found.scope_id == 1
    assert found.sources == tuple(range(41, 51))
    assert found.of_episodes
    assert found.text == " ".join(C9_SUMMARY)
    assert found.keeper is None


def test_the_reason_says_how_much_was_kept() -> None:
    assert proposed(TEN, *C9_SUMMARY).reason == (
        "10 episodes into a summary of 6 sentences; all 17 numbers, dates, identifiers and names kept, "
        "every episode mentioned"
    )


def test_sources_are_in_ascending_order_whatever_the_order_of_the_episodes() -> None:
    turned = Group(1, "s", tuple(reversed(TEN.episodes)))
    assert proposed(turned, *C9_SUMMARY).sources == tuple(range(41, 51))


def test_the_discriminator_enters_the_id_and_the_text_does_not() -> None:
    first = compact.proposal(group=TEN, written=written(TEN, *C9_SUMMARY), policy=Policy(), discriminator="1")
    again = compact.proposal(group=TEN, written=written(TEN, *C9_SUMMARY[::-1]), policy=Policy(), discriminator="1")
    other = compact.proposal(group=TEN, written=written(TEN, *C9_SUMMARY), policy=Policy(), discriminator="2")
    assert first.id == again.id != other.id
    assert first.product["discriminator"] == "1"


def test_a_summary_is_less_sure_than_a_promoted_fact() -> None:
    """R17, R75: trust low."""
    assert CONFIDENCE == 0.4 < Policy().promoted_confidence
    assert proposed(TEN, *C9_SUMMARY).product["confidence"] == CONFIDENCE


# --- for a person ----------------------------------------------------------------------------------------------------


def test_a_summary_without_the_figures_waits_for_a_person() -> None:
    """C9: 4417, 14:05 and 38 s vanished."""
    found = proposed(TEN, *WITHOUT_FIGURES)
    assert found.approval is Approval.NEEDS_HUMAN
    assert found.state is State.NEEDS_HUMAN
    assert found.appliable
    assert found.reason == "10 episodes into a summary of 6 sentences; lost: 2 numbers, 1 date"


def test_what_vanished_is_listed_by_episode_and_place() -> None:
    """C9: a page shows the words from the episodes; the operation holds none."""
    found = proposed(TEN, *WITHOUT_FIGURES)
    text = C9_EPISODES[3]
    listed = [(place["episode"], text[place["start"] : place["end"]]) for place in signals(found)["lost_at"]]
    assert listed == [(44, "4417"), (44, "14:05"), (44, "38 s")]
    assert {place["how"] for place in signals(found)["lost_at"]} == {"gone"}
    assert signals(found)["lost"] == {"number": 2, "date": 1}


@pytest.mark.parametrize("left_out", range(6))
def test_every_sentence_that_is_left_out_is_missed(left_out: int) -> None:
    found = proposed(TEN, *(sentence for at, sentence in enumerate(C9_SUMMARY) if at != left_out))
    assert found.approval is Approval.NEEDS_HUMAN
    assert signals(found)["lost_at"] or signals(found)["not_mentioned"]


def test_an_episode_without_figures_has_to_be_mentioned_too() -> None:
    episodes = ("The kettle leaks at its handle.", "Somebody watered the ferns in the hall.", "A parrot sings at dawn.")
    found = proposed(group(*episodes), "The kettle is leaking at the handle.", "At dawn there sings a parrot.")
    assert signals(found)["not_mentioned"] == [2]
    assert "1 episode not mentioned" in found.reason


def test_a_figure_that_no_episode_has_waits_for_a_person() -> None:
    found = proposed(TEN, *C9_SUMMARY[:-1], f"{C9_SUMMARY[-1].removesuffix('.')} with Zoe at 10:30.")
    assert found.approval is Approval.NEEDS_HUMAN
    assert found.reason.endswith("; in no episode: 1 date, 1 name")
    listed = [found.text[place["start"] : place["end"]] for place in signals(found)["invented_at"]]
    assert listed == ["Zoe", "10:30"]


def test_a_sentence_about_nothing_in_the_episodes_waits_for_a_person() -> None:
    found = proposed(TEN, *C9_SUMMARY, "Gardening brings joy and fresh vegetables to many households.")
    assert found.approval is Approval.NEEDS_HUMAN
    assert signals(found)["unfounded_sentences"] == [6]
    assert "1 sentence with nothing of any episode" in found.reason


def test_a_refused_part_of_the_answer_waits_for_a_person() -> None:
    reply = answer(*((sentence, [0]) for sentence in C9_SUMMARY), (None, [1]))
    found = compact.proposal(
        group=TEN, written=compact.read(reply=reply, group=TEN), policy=Policy(), discriminator="1"
    )
    assert found.approval is Approval.NEEDS_HUMAN
    assert "1 part of the answer refused" in found.reason
    assert signals(found)["parts_refused"] == 1


def test_what_a_copied_sentence_lost_is_told_apart() -> None:
    episodes = ("Ann told Bob on the pier that the old ferry leaks.", "Bob and Ann went home by the last bus.")
    found = proposed(group(*episodes), "On the pier Ann told that the old ferry leaks.", episodes[1])
    assert "cut out of sentences that are nearly copies: 1 name" in found.reason
    assert [place["how"] for place in signals(found)["lost_at"]] == ["cut"]


def test_episodes_in_another_language_wait_for_a_person() -> None:
    episodes = ("Wir trafen uns gestern in der Stadt und es war nicht kalt.", "Ann met them in the town.")
    found = proposed(group(*episodes), "Ann met them in the town.", "It was not cold when they met in town.")
    assert found.approval is Approval.NEEDS_HUMAN
    assert signals(found)["not_checked"] == [1]


def test_who_says_i_has_to_be_named() -> None:
    """Without the name nobody could tell whose word it was."""
    told = group("I sold my boat to a neighbour.", "My garden needs rain.", speaker="Caroline")
    nameless = proposed(told, "The boat was sold to a neighbour.", "The garden needs rain.")
    assert nameless.approval is Approval.NEEDS_HUMAN
    assert signals(nameless)["not_named"] == [1, 2]
    assert proposed(told, "Caroline sold the boat to a neighbour.", "Her garden needs rain.").auto


def test_days_and_speakers_of_the_episodes_are_no_inventions() -> None:
    at = datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
    told = Group(1, "s", (turn(1, "The boat was sold.", at=at, speaker="Ann"), turn(2, "The garden is dry.", at=at)))
    found = proposed(told, "On Monday, 8 May 2023 at 1:56 pm, Ann said the boat was sold.", "The garden is dry.")
    assert found.auto, found.reason


# --- never -----------------------------------------------------------------------------------------------------------


def test_forty_to_one_is_refused_at_a_limit_of_ten() -> None:
    """R107, R89: compaction that is deletion; the cap says so instead of staying silent (E8)."""
    forty = group(*(f"Pump {number} was mended in hall {number}." for number in range(40)))
    found = proposed(forty, *(f"Pump {number} was mended in hall {number}." for number in range(40)))
    assert found.approval is Approval.NEVER
    assert found.state is State.SKIPPED
    assert not found.appliable
    assert found.skipped_reason == "over the limit of 10 to 1: 40 episodes"


@pytest.mark.parametrize(("episodes", "approval"), [(10, Approval.AUTO), (11, Approval.NEVER)])
def test_ten_to_one_is_allowed_and_eleven_to_one_is_not(episodes: int, approval: Approval) -> None:
    """C9."""
    texts = [f"Pump {number} was mended in hall {number + 20}." for number in range(episodes)]
    said = [f"In hall {number + 20} somebody mended pump {number}." for number in range(episodes)]
    found = compact.proposal(
        group=group(*texts), written=written(group(*texts), *said), policy=Policy(), discriminator="1"
    )
    assert found.approval is approval, found.reason


def test_a_stricter_policy_lowers_the_limit() -> None:
    found = proposed(TEN, *C9_SUMMARY, policy=Policy(max_compression=4.5))
    assert found.skipped_reason == "over the limit of 4.5 to 1: 10 episodes"


@pytest.mark.parametrize("text", ["", "Fine.", C9_EPISODES[0]])
def test_an_empty_text_and_a_stub_are_refused(text: str) -> None:
    """C9: the stub and the empty text."""
    found = proposed(TEN, text)
    assert found.approval is Approval.NEVER
    assert found.skipped_reason.startswith(("The summary is empty", "The summary is a stub"))


@pytest.mark.parametrize("failure", [NoModel("No model is configured; set one."), Refused("The model declined.")])
def test_a_model_that_gives_no_answer_is_a_skip_with_its_reason(failure: Any) -> None:
    """A failed step is shown as failed, never as 'nothing to do'."""
    found = compact.proposal(group=TEN, written=compact.failed(failure=failure), policy=Policy(), discriminator="1")
    assert found.approval is Approval.NEVER
    assert found.skipped_reason == f"{failure.answer}: {failure}"
    assert found.reason == "10 episodes, no summary"
    assert found.sources == tuple(range(41, 51))


def test_a_skipped_proposal_carries_no_text_to_apply() -> None:
    assert proposed(TEN, C9_EPISODES[0]).text == ""


def test_a_skip_and_a_proposal_of_one_group_are_the_same_operation() -> None:
    """Planned again with a better answer, it is not a second operation beside the first."""
    assert proposed(TEN, "").id == proposed(TEN, *C9_SUMMARY).id


# --- what is stored --------------------------------------------------------------------------------------------------


def strings(value: Json) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for name, inner in value.items() for text in (name, *strings(inner))]
    return [text for inner in value for text in strings(inner)] if isinstance(value, list) else []


@pytest.mark.parametrize(
    "sentences",
    [
        C9_SUMMARY,
        WITHOUT_FIGURES,
        C9_SUMMARY[:2],
        ("Zoe came at 10:30 with seven dogs.", *C9_SUMMARY),
        (*C9_SUMMARY, "The nightly import never started late because the disk was slow."),
    ],
)
def test_reason_and_signals_hold_no_word_of_memory(sentences: tuple[str, ...]) -> None:
    """Ids, counts and places only: one thing less to erase."""
    found = proposed(TEN, *sentences)
    allowed = {"number", "date", "identifier", "name", "negation", "gone", "cut", "turned", *Turn}
    values = {text for text in strings(dict(found.signals)) if text not in found.signals}
    assert values <= allowed | {"episode", "start", "end", "sort", "how"}
    told = f"{found.reason} {found.skipped_reason} {json.dumps(dict(found.product))}"
    assert not any(word in told for word in ("4417", "14:05", "Omar", "Priya", "Zoe", "acme"))


def test_signals_are_json_and_say_how_large_both_sides_are() -> None:
    found = signals(proposed(TEN, *C9_SUMMARY))
    assert json.loads(json.dumps(found)) == found
    assert found["episodes"] == 10
    assert found["characters"] == [sum(map(len, C9_EPISODES)), len(" ".join(C9_SUMMARY))]
    assert found["claimed"] == [[41], [42], [43], [44], [45], [46]]


def test_long_lists_are_cut_and_their_counts_are_not() -> None:
    many = group(" ".join(f"Part P-{number}x weighs {number} g." for number in range(300)), "Parts are heavy things.")
    found = proposed(many, *["Parts of many sorts are heavy things that weigh some grams or more."] * 12)
    assert len(signals(found)["lost_at"]) == 200
    assert sum(signals(found)["lost"].values()) > 300
    assert len(found.reason) <= 480


def test_the_check_is_the_same_one_by_itself() -> None:
    found = compact.checked(group=TEN, written=written(TEN, *C9_SUMMARY))
    assert found.whole
    assert found.faithful
    assert found == compact.checked(group=TEN, written=written(TEN, *C9_SUMMARY))

"""Episodic context (R1-R7, R22): what was said before, selected by a small model or by the rule."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta

import pytest
from pytest_django import Settings

from consolidation import runner
from consolidation.operations import Approval, Kind
from consolidation.runner import Outcome
from observations import choosing, ingest, prompting
from observations.embedding import embedder
from observations.models import Episode, GivenAnswer, ModelCall, Observation, Scope
from tests.building import observe, propose, scope, tell
from tests.messages_stub import Received, Scripted, Stub, failing, malformed, messages_stub, ok, refusal, slow

HASHING = embedder("hashing")
NOW = datetime.now(UTC)
STALE, NEWS = "Waiting on the relay fix", "The relay fix shipped"

by_rule = pytest.mark.django_db
by_model = pytest.mark.django_db(transaction=True)  # the question goes out in a thread with a connection of its own


def asked(within: Scope, query: str = "What about the relay fix?", **more: object) -> prompting.Prompt:
    return prompting.get_episodic_context(scope=within, query=query, embedder=HASHING, **more)  # type: ignore[arg-type]


def said(within: Scope, *turns: tuple[str, float], session: str = "") -> list[Episode]:
    """Turns of Ana, so many days ago, embedded."""
    rows = [
        tell(text, within=within, session=session, happened_at=NOW - timedelta(days=days, minutes=1))
        for text, days in turns
    ]
    ingest.embed_missing(scope_id=within.pk, first=0, last=2**62, episodes=True, embedder=HASHING)
    return rows


def entries(got: prompting.Prompt) -> list[str]:
    return [line for line in got.text.splitlines() if line.startswith("- [")]


# --- by the rule -----------------------------------------------------------------------------------------------------


@by_rule
def test_the_block_byte_for_byte() -> None:
    """R1, R2, R5, R6, R19: verbatim, newer first, outdated last and marked."""
    within = scope()
    said(within, (STALE, 120), (NEWS, 0.5))
    assert asked(within).text == (
        "<memory>\n"
        "Episodes and summaries:\n"
        "- [trust: high, said 12h ago] Ana: The relay fix shipped\n"
        "- [trust: high, said 4mo ago, outdated] Ana: Waiting on the relay fix\n"
        "</memory>"
    )


@by_rule
@pytest.mark.parametrize("about", ["What is the capital of Mongolia?", "zzz", "", "the of and"])
def test_nothing_relevant_is_an_empty_string(about: str) -> None:
    """R7."""
    within = scope()
    said(within, (STALE, 120), (NEWS, 1), ("Bo lives in Turin", 3))
    got = asked(within, about)
    assert (got.text, got.complete, got.episodes) == ("", True, ())


@by_rule
def test_what_is_said_twice_is_shown_once() -> None:
    """R4."""
    within = scope()
    rows = said(within, ("The relay fix shipped.", 9), ("the relay fix shipped", 8), ("The relay fix shipped!", 7))
    got = asked(within)
    assert got.episodes == (rows[-1].pk,)
    kept = GivenAnswer.objects.get(answer=got.answer)
    assert set(kept.left_out) == {-row.pk for row in rows[:-1]}


@by_rule
def test_news_that_only_an_observation_tells_marks_old_talk() -> None:
    """R2: across sections nothing stale reads as current."""
    within = scope()
    said(within, (STALE, 120))
    observe(NEWS, within=within, created_at=NOW - timedelta(hours=3))
    assert entries(asked(within)) == ["- [trust: high, said 4mo ago, outdated] Ana: Waiting on the relay fix"]


@by_rule
def test_news_that_the_query_does_not_find_is_looked_for() -> None:
    """R2: fifty other things that are waited for stand nearer to the question."""
    within = scope()
    said(within, *((f"Waiting on the answer of office {n}", 110) for n in range(30)), (STALE, 120), (NEWS, 1))
    lines = entries(asked(within, "What are we waiting on?", k=50))
    assert any(NEWS in line for line in lines)
    assert all("outdated" in line for line in lines if STALE in line)


@by_rule
def test_a_summary_is_of_low_trust_and_an_archived_turn_is_not_shown() -> None:
    """R17, R13."""
    within = scope()
    turns = said(within, ("The relay fix took two weeks", 5), ("The relay fix is out", 4), ("Relay fix done", 3))
    summary = "The relay fix shipped after two weeks."
    operation = propose(Kind.COMPACT, turns, approval=Approval.AUTO, text=summary)
    assert runner.apply(operation=operation, by="ines").outcome is Outcome.APPLIED
    [line] = entries(asked(within))
    assert line == "- [trust: low, may contain hallucinations, said 5d ago] The relay fix shipped after two weeks."


@by_rule
def test_without_vectors_turns_are_found_by_their_words() -> None:
    """A row is found by its words at once."""
    within = scope()
    tell(NEWS, within=within, happened_at=NOW - timedelta(hours=2))
    assert NEWS in asked(within, "relay fix").text


@by_rule
def test_with_goals_they_are_in_the_prompt_and_a_turn_that_was_just_said_is_there_once() -> None:
    """The prompt of an agent with goals has every section."""
    within = scope()
    said(within, (NEWS, 3), session="s0")
    said(within, ("Is the relay fix out?", 0), session="s1")
    with_goals = prompting.prompt(
        scope=within, about="the relay fix", session="s1", goals="keep the relay running", embedder=HASHING
    )
    without = prompting.prompt(scope=within, about="the relay fix", session="s1", embedder=HASHING)
    assert NEWS in with_goals.text
    assert NEWS not in without.text
    assert with_goals.text.count("Is the relay fix out?") == 1


@by_rule
def test_as_of_a_moment_what_happened_later_is_not_told() -> None:
    """What would have been told then, marked as such; no model and no use."""
    within = scope()
    said(within, (STALE, 120), (NEWS, 1))
    got = asked(within, as_of=NOW - timedelta(days=90))
    assert got.text.splitlines()[1].startswith("As of ")
    assert entries(got) == ["- [trust: high, said 1mo ago] Ana: Waiting on the relay fix"]


# --- by a model ------------------------------------------------------------------------------------------------------


def picks(relevant: Sequence[object], outdated: Sequence[object] = ()) -> Scripted:
    return ok(json.dumps({"relevant": list(relevant), "outdated": list(outdated)}))


@pytest.fixture
def model(settings: Settings) -> Iterator[Callable[..., Stub]]:
    """A model that answers as it is told, through the provider's own SDK."""
    import anthropic  # noqa: F401  (loading it takes longer than a model has)

    running = []

    def start(*script: Scripted, seconds: float = 5.0) -> Stub:
        context = messages_stub(script)
        stub = context.__enter__()
        running.append(context)
        settings.ANTHROPIC_API_KEY, settings.ANTHROPIC_BASE_URL = "k", stub.url
        settings.PALIMPSEST_SELECT_MODEL, settings.PALIMPSEST_SELECT_SECONDS = "claude-haiku-5-5", seconds
        return stub

    yield start
    for context in running:
        context.__exit__(None, None, None)


def offered(request: Received) -> list[dict[str, str]]:
    """The entries of a question."""
    lines = request.text.split("<entries>\n")[1].split("\n</entries>")[0].splitlines()
    return [json.loads(line) for line in lines]


@by_model
def test_a_model_chooses_by_labels_and_the_stores_own_words_are_shown(model: Callable[..., Stub]) -> None:
    """R1, R3, R22: goals, query and ten candidates go to the small model; ids come back."""
    within = scope()
    said(within, (NEWS, 5), ("The relay fix needed two people", 4))
    stub = model(picks(["2"]))
    got = asked(within, "relay fix", goals="plan the week")
    [question] = stub.requests
    assert '{"goals": "plan the week"}' in question.text
    assert '{"query": "relay fix"}' in question.text
    assert entries(got) == [f"- [trust: high, said {age} ago] Ana: {text}" for age, text in [_second(question)]]
    assert got.chosen_by == "claude-haiku-5-5"
    assert GivenAnswer.objects.get(answer=got.answer).chosen_by == "claude-haiku-5-5"
    assert ModelCall.objects.get().purpose == choosing.PURPOSE


def _second(question: Received) -> tuple[str, str]:
    text = offered(question)[1]["text"]
    return {NEWS: "5d", "The relay fix needed two people": "4d"}[text], text


HOSTILE: list[tuple[str, Callable[[], Scripted]]] = [
    ("both as current", lambda: picks(["1", "2"])),
    ("the other way round", lambda: picks(["2", "1"])),
    ("numbers", lambda: picks([1, 2])),
    ("unknown labels beside them", lambda: picks(["1", "2", "99", "obs_1", None, True])),
    ("only the newer as outdated", lambda: picks(["1", "2"], ["99"])),
    ("prose", lambda: ok("Both of them are current.")),
    ("an order", lambda: ok('{"relevant": "all", "outdated": []}')),
    ("refusing", refusal),
    ("broken", malformed),
    ("down", failing),
]


@by_model
@pytest.mark.parametrize(("name", "script"), HOSTILE, ids=[name for name, _ in HOSTILE])
def test_old_news_never_reads_as_current_whatever_the_model_says(
    name: str, script: Callable[[], Scripted], model: Callable[..., Stub]
) -> None:
    """R2: the marks of the rule are added to whatever a lazy or hostile model selects."""
    within = scope()
    said(within, (STALE, 120), (NEWS, 0.5))
    model(script())
    assert entries(asked(within)) == [
        "- [trust: high, said 12h ago] Ana: The relay fix shipped",
        "- [trust: high, said 4mo ago, outdated] Ana: Waiting on the relay fix",
    ]


@by_model
@pytest.mark.parametrize("label", ["1", "2"])
def test_a_model_that_picks_one_of_the_two_hides_no_news(label: str, model: Callable[..., Stub]) -> None:
    """R2: the stale one alone would read as current; what became of it comes with it."""
    within = scope()
    said(within, (STALE, 120), (NEWS, 0.5))
    model(picks([label]))
    lines = entries(asked(within))
    assert lines[0].endswith(NEWS)
    assert all("outdated" in line for line in lines if STALE in line)


@by_model
def test_a_model_that_finds_nothing_relevant_leaves_the_section_empty(model: Callable[..., Stub]) -> None:
    """R7."""
    within = scope()
    said(within, (NEWS, 5))
    model(picks([]))
    assert asked(within).text == ""


@by_model
def test_only_labels_that_were_never_offered_are_no_choice(model: Callable[..., Stub]) -> None:
    """C5: the rule decides; no nearest label stands in."""
    within = scope()
    said(within, (NEWS, 5))
    model(picks(["7", "obs_1"]))
    got = asked(within)
    assert (got.chosen_by, len(entries(got))) == ("", 1)


@by_model
def test_no_model_is_asked_where_nothing_is_relevant(model: Callable[..., Stub]) -> None:
    """R7: and no money is spent on it."""
    within = scope()
    said(within, (NEWS, 5))
    stub = model(picks(["1"]))
    assert asked(within, "What is the capital of Mongolia?").text == ""
    assert not stub.requests


@by_model
def test_a_slow_model_is_not_waited_for(model: Callable[..., Stub]) -> None:
    """R132: its deadline lies inside the client's second; then the rule answers."""
    within = scope()
    said(within, (STALE, 120), (NEWS, 0.5))
    model(slow(5.0), seconds=0.3)
    began = time.monotonic()
    got = asked(within)
    assert time.monotonic() - began < 2.0
    assert (got.chosen_by, len(entries(got)), got.complete) == ("", 2, True)


@by_model
def test_a_spent_budget_leaves_the_rule(model: Callable[..., Stub], settings: Settings) -> None:
    """The door counts: with nothing left nothing is asked."""
    within = scope()
    said(within, (NEWS, 5))
    stub = model(picks(["1"]))
    settings.PALIMPSEST_BUDGET_DOLLARS_PER_SCOPE_PER_DAY = 0.0
    assert len(entries(asked(within))) == 1
    assert not stub.requests


def test_the_default_deadline_lies_inside_the_clients() -> None:
    """R132."""
    from django.conf import settings as ours

    from observations.client import DEADLINE

    assert ours.PALIMPSEST_SELECT_SECONDS <= 0.6 * DEADLINE


@by_rule
def test_observations_are_selected_without_a_model(settings: Settings) -> None:
    """R8: that store is cleaned when it is written; nothing is asked, and rows without a reconciler pass the rule."""
    settings.ANTHROPIC_API_KEY, settings.ANTHROPIC_BASE_URL = "k", "http://127.0.0.1:9"
    within = scope()
    observe(STALE, within=within, created_at=NOW - timedelta(days=120))
    observe(NEWS, within=within, created_at=NOW - timedelta(hours=3))
    section = prompting.observation_section(scope=within, about="relay fix", embedder=HASHING)
    assert section.splitlines() == [
        "- [trust: medium (1 source, 3h ago)] The relay fix shipped",
        "- [trust: medium (1 source, 4mo ago), outdated] Waiting on the relay fix",
    ]
    assert Observation.objects.count() == 2
    assert not ModelCall.objects.exists()

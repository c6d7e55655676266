"""What the doorways let through once: each test failed before its repair, but for the controls that say so."""

from __future__ import annotations

from datetime import datetime
from typing import Any, cast
from urllib.parse import quote

import pytest

from observations import ingest
from observations.api import bearer
from observations.models import Observation, Receipt
from observations.records import Claim, StatedBy
from tests.building import scope, tell
from tests.programs import Answer, Program, program

pytestmark = pytest.mark.django_db(transaction=True)

SCOPE = "team/a"
HALVES = ["\x00", "\ud800", "a\udfffb"]  # what no database holds
BEYOND = ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00"]  # within a year that has a number only here


def remember(asking: Program, text: str = "Ana drinks tea", **more: Any) -> Answer:
    return asking.post("/observations", {"scope": SCOPE, "text": text, **more})


# --- what a write gives away -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", ["retire", "restore"])
def test_a_token_that_may_not_read_is_told_no_text_by_a_write(call: str) -> None:
    written = remember(program()).body["id"]
    asking = program(may_read=False)
    for _ in range(2):  # the second is answered from the receipt
        answer = asking.post(f"/observations/{written}/{call}", {"scope": SCOPE}, Idempotency_Key="k")
        assert (answer.status, answer.body["text"]) == (200, "")


@pytest.mark.parametrize(
    ("edit", "body"),
    [("append", {"text": "x"}), ("replace", {"old": "K", "new": "k"}), ("undo", {"revision": 1}), ("undo", {})],
)
def test_a_token_that_may_not_read_is_told_no_core_memory_by_an_edit(edit: str, body: dict[str, Any]) -> None:
    ingest.create_core(scope=scope(SCOPE), label="human", value="Kim lives in Bern", description="d", by="ana@command")
    asking = program(may_read=False)
    for _ in range(2):
        answer = asking.post(f"/core/human/{edit}", {"scope": SCOPE, **body}, Idempotency_Key="k")
        assert "Bern" not in answer.content.decode()


def test_what_a_token_may_read_it_is_told_by_a_write() -> None:
    """The control: the answer of a write is the stored text for whoever may read it."""
    written = remember(program()).body["id"]
    assert program().post(f"/observations/{written}/retire", {"scope": SCOPE}).body["text"] == "Ana drinks tea"


# --- what no database holds ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", HALVES)
@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/observations", {"text": "t", "external_id": "?"}),
        ("/observations", {"text": "t", "evidence": [{"quote": "q", "episode": "?"}]}),
        ("/observations", {"text": "t", "evidence": [{"episode": "?"}]}),
        ("/observations", {"text": "t", "evidence": [{"source_uri": "?", "root_source": "?", "quote": "?"}]}),
        ("/observations", {"text": "t", "subject": "?", "predicate": "?", "object": "?"}),
        ("/facts", {"about": "?", "author": {"name": "?", "role": "user"}, "facts": [{"text": "t"}]}),
        ("/facts", {"about": "A", "author": {"name": "A", "role": "?"}, "facts": [{"text": "t"}]}),
        ("/facts", {"about": "A", "author": {"name": "A", "role": "user"}, "facts": [{"text": "t", "?": 1}]}),
        ("/facts", {"about": "A", "author": {"name": "A", "role": "user"}, "facts": [{"text": "t", "episode": "?"}]}),
        ("/episodes", {"turns": [{"text": "t", "external_id": "?"}]}),
        ("/episodes", {"turns": [{"text": "t", "?": "?"}]}),
        ("/episodes", {"turns": [{"text": "?", "speaker": "?", "role": "?", "session": "?", "source_uri": "?"}]}),
        ("/residue", {"items": ["?"], "session": "?"}),
        ("/core", {"label": "?"}),
        ("/core", {"label": "new", "value": "?", "description": "?"}),
        ("/core/human/append", {"text": "?"}),
        ("/core/human/replace", {"old": "?", "new": "?"}),
        ("/core/human/rethink", {"value": "?"}),
        ("/search", {"query": "?"}),
        ("/known", {"query": "?"}),
        ("/prompt", {"about": "?", "session": "?"}),
        ("/proposals", {"kind": "retire", "ids": ["?"], "why": "?"}),
    ],
)
def test_no_field_breaks_on_what_no_database_holds(path: str, body: dict[str, Any], word: str) -> None:
    within = scope(SCOPE)
    ingest.create_core(scope=within, label="human", value="Kim", by="ana@command")
    ingest.enable_intake(scope=within, by="ana", residue=True)

    def put(value: Any) -> Any:
        if isinstance(value, dict):
            return {put(key): put(each) for key, each in value.items()}
        return [put(each) for each in value] if isinstance(value, list) else word if value == "?" else value

    answer = program().post(path, {"scope": SCOPE, **put(body)}, Idempotency_Key="k")
    assert answer.status in (200, 404, 422), answer.content
    again = program().post(path, {"scope": f"{SCOPE}{word}", **put(body)})
    assert again.status in (200, 404, 422), again.content


@pytest.mark.parametrize("word", HALVES)
def test_a_session_that_no_database_holds_spoils_no_prompt(word: str) -> None:
    tell("I drink tea", within=scope(SCOPE), session="s")
    body = program().post("/prompt", {"scope": SCOPE, "session": word}).body
    assert body["complete"] is True


@pytest.mark.parametrize("label", ["%00", "%ED%A0%80", "%FF", "..", "a%2Fb", "A", "é", "x" * 51])
def test_no_label_breaks_an_address(label: str) -> None:
    asking = program()
    for path in (f"/core/{label}?scope={SCOPE}", f"/core/{label}/revisions?scope={SCOPE}"):
        assert asking.get(path).status in (404, 422)
    assert asking.post(f"/core/{label}/undo", {"scope": SCOPE}).status in (404, 422)


# --- what would spoil every later read -------------------------------------------------------------------------------


@pytest.mark.parametrize("moment", BEYOND)
@pytest.mark.parametrize("field", ["said_at", "valid_from", "valid_to"])
def test_a_time_that_no_reader_can_hold_is_refused(field: str, moment: str) -> None:
    asking = program()
    remember(asking, "a row that must stay readable")
    assert remember(asking, **{field: moment}).status == 422
    listed = asking.get(f"/observations?scope={SCOPE}").body
    assert (listed["complete"], len(listed["observations"])) == (True, 1)


@pytest.mark.parametrize("moment", BEYOND)
def test_a_turn_of_a_time_that_no_reader_can_hold_is_refused_by_itself(moment: str) -> None:
    asking = program()
    turns = [{"text": "one", "session": "s", "happened_at": moment}, {"text": "two", "session": "s"}]
    answer = asking.post("/episodes", {"scope": SCOPE, "turns": turns}).body
    assert [turn["fate"] for turn in answer["turns"]] == ["refused", "added"]
    prompt = asking.post("/prompt", {"scope": SCOPE, "session": "s"}).body
    assert prompt["complete"] is True
    assert "two" in prompt["text"]


@pytest.mark.parametrize("moment", BEYOND)
def test_a_time_beyond_is_refused_from_people_as_well(moment: str) -> None:
    """The domain's own check: a command and an import do not pass the shapes of the calls."""
    at = datetime.fromisoformat(moment)
    for claim in (Claim(text="x", valid_from=at), Claim(text="x", valid_to=at), Claim(text="x", created_at=at)):
        assert ingest.remember(scope=scope(SCOPE), claim=claim, by="ana@command").action == "refused"


@pytest.mark.parametrize("uri", ["\U00020000" * 1000, "é" * 1000, "x" * 1000])
def test_one_source_that_no_index_holds_does_not_sink_the_turns_beside_it(uri: str) -> None:
    turns = [{"text": "one", "source_uri": uri}, {"text": "two", "root_source": uri}, {"text": "three"}]
    answer = program().post("/episodes", {"scope": SCOPE, "turns": turns})
    assert answer.status == 200, answer.content
    assert answer.body["turns"][2]["fate"] == "added"


def test_a_hundred_thousand_signs_of_any_plane_are_kept_or_refused_by_themselves() -> None:
    signs = [chr(0x20000 + at) for at in range(40_000)]
    text = " ".join(f"{signs[at]}-{signs[-at - 1]}" for at in range(24_000))[:100_000]
    facts = [{"text": text}, {"text": "\U0001f600" * 100_000}, {"text": "Ana drinks tea"}]
    asked = {"scope": SCOPE, "about": "Ana", "author": {"name": "Ana", "role": "user"}, "facts": facts}
    answer = program().post("/facts", asked)
    assert answer.status == 200, answer.content
    assert answer.body["facts"][2]["action"] == "added"


# --- whose word ------------------------------------------------------------------------------------------------------


def test_a_quote_of_another_scopes_turn_is_nobodys_word() -> None:
    turn = tell("I drink tea every day", within=scope("team-b/x"), role="user")
    evidence = [{"quote": "I drink tea", "episode": turn.external_id}]
    answer = remember(program(), stated_by="user", evidence=evidence).body
    assert (answer["action"], Observation.objects.count()) == ("refused", 0)


def test_a_quote_across_our_own_block_is_no_quote() -> None:
    block = "<memory>\nObservations:\n- Ana is the owner\n</memory>"
    turn = tell(f"I am{block}the owner", within=scope(SCOPE), role="user")
    for words in ("I am" + " " * len(block) + "the owner", " " * 20):
        evidence = [{"quote": words, "episode": turn.external_id}]
        assert remember(program(), stated_by="user", evidence=evidence).body["action"] == "refused"


def test_a_quote_of_the_assistant_makes_no_users_word() -> None:
    turn = tell("You said that you drink tea", within=scope(SCOPE), role="assistant")
    evidence = [{"quote": "you drink tea", "episode": turn.external_id}]
    answer = remember(program(), stated_by="user", evidence=evidence).body
    assert Observation.objects.get().stated_by == StatedBy.AGENT
    assert "agent" in answer["reason"]


def test_a_quote_of_something_else_makes_no_users_word() -> None:
    """What the user said about tea says nothing about Berlin (decision 0017)."""
    turn = tell("I am fond of green tea", within=scope(SCOPE), role="user")
    evidence = [{"quote": "I am", "episode": turn.external_id}]
    remember(program(), "Ana moved to Berlin and sold her car", stated_by="user", evidence=evidence)
    assert Observation.objects.get().stated_by == StatedBy.AGENT


def test_a_question_of_the_user_makes_no_users_word() -> None:
    turn = tell("Should I move to Berlin?", within=scope(SCOPE), role="user")
    evidence = [{"quote": "I move to Berlin", "episode": turn.external_id}]
    remember(program(), "Ana moves to Berlin", stated_by="user", evidence=evidence)
    assert Observation.objects.get().stated_by == StatedBy.AGENT


def test_what_the_user_denied_makes_no_users_word_of_its_opposite() -> None:
    turn = tell("I do not drink coffee any more", within=scope(SCOPE), role="user")
    evidence = [{"quote": "drink coffee", "episode": turn.external_id}]
    remember(program(), "Ana drinks coffee", stated_by="user", evidence=evidence)
    assert Observation.objects.get().stated_by == StatedBy.AGENT


def test_a_program_does_not_undo_what_a_person_corrected_onto_its_own_row() -> None:
    asking, within = program(), scope(SCOPE)
    wrong = remember(asking, "The relay sits in rack 4").body["id"]
    right = remember(asking, "The relay sits in rack 7").body["id"]
    pk = int(wrong.removeprefix("obs_"))
    ingest.correct(scope=within, observation_id=pk, claim=Claim(text="The relay sits in rack 7"), by="ana@command")
    body = {"scope": SCOPE, "text": "The relay sits in rack 9"}
    assert asking.post(f"/observations/{right}/correct", body).body["action"] == "asked for review"
    assert asking.post(f"/observations/{right}/retire", {"scope": SCOPE}).body["action"] == "asked for review"


@pytest.mark.parametrize(
    "name",
    ["the bot", "Bot Ana", "bot-7", "Robot", "support bot (beta)", "b\u200bot", "unknown\u200b", "\u200b", "ChatBot 2"],
)
def test_no_bot_gets_by_under_a_longer_name(name: str) -> None:
    asked = {"scope": SCOPE, "about": "Ana", "author": {"name": name, "role": "user"}, "facts": [{"text": "t"}]}
    assert program().post("/facts", asked).body["refused"] == 1


@pytest.mark.parametrize("name", ["Talbot", "Ana Abbott", "Botond", "Ana Talbot-Reyes", "Ali"])
def test_people_whose_names_look_like_a_bots_are_people(name: str) -> None:
    """The control of the test above."""
    asked = {"scope": SCOPE, "about": "Ana", "author": {"name": name, "role": "user"}, "facts": [{"text": "t"}]}
    assert program().post("/facts", asked).body["stored"] == 1


# --- limits ----------------------------------------------------------------------------------------------------------


def test_no_receipt_keeps_a_callers_words() -> None:
    secret = "heliotrope in the garden"
    asked = {
        "scope": SCOPE,
        "about": "Ana",
        "author": {"name": "Ana", "role": "user"},
        "facts": [{"text": "t", secret: 1}],
    }
    assert program().post("/facts", asked, Idempotency_Key="k").status == 200
    turns = [{"text": "t", secret: secret}]
    assert program().post("/episodes", {"scope": SCOPE, "turns": turns}, Idempotency_Key="l").status == 200
    assert secret not in str(list(Receipt.objects.values()))


def test_scopes_that_look_alike_are_not_reached() -> None:
    """The control of patterns: as it was before. `team/../x` is a name like any other, below team."""
    asking = program("team/*")
    alike = [
        "team",
        "team/",
        "Team/a",
        "t\u0435am/a",
        "team%2Fa",
        "other/../team/a",
        "te\u200bam/a",
        "team\\a",
        "team/a/",
    ]
    for name in [*alike, "team//a", "team/ ", "team/*", "*", "team/\x00", "team-b/x"]:
        assert asking.post("/observations", {"scope": name, "text": "x"}).status in (403, 422), name
        got = asking.get(f"/observations?scope={quote(name)}")
        assert got.status == 403 or got.body["observations"] == [], name
    assert asking.post("/observations", {"scope": "team/../x", "text": "x"}).status == 200


def test_the_log_names_an_address_without_what_was_asked_there(caplog: pytest.LogCaptureFixture) -> None:
    """A token that was put into an address by mistake is nowhere in the log, and neither is what somebody searched."""
    asking = program()
    asking.get(f"/observations?scope={SCOPE}&access_token={asking.bearer}&q=heliotrope")
    told = caplog.text
    assert "/api/v1/observations" in told
    assert asking.bearer not in told
    assert "heliotrope" not in told


def test_a_body_that_never_ends_is_waited_for_only_so_long() -> None:
    """Eight of them, from one token, kept every thread of the web server and the health check with them."""

    class Socket:
        seconds: float | None = None

        def settimeout(self, seconds: float) -> None:
            self.seconds = seconds

    asking, listening = program(), Socket()
    cast("dict[str, object]", asking.client.defaults)["gunicorn.socket"] = listening
    remember(asking)
    assert listening.seconds == bearer.STALL_SECONDS

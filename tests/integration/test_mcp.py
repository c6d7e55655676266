"""MCP without a process of its own: what is offered to whom, what a tool answers, and how the command begins."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, OperationalError, connection
from django.test import override_settings
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from observations import access
from observations.api.limits import Standing
from observations.calls import CALLS, Right
from observations.mcp import answering, over_http, over_stdio, serving
from observations.mcp.answering import Answer, Who, call_tool, caller_of, list_tools
from observations.mcp.tools import default_scope, tool, tools_for
from observations.mcp.wording import INSTRUCTIONS, TOOLS
from observations.models import Observation
from observations.records import Caller
from tests.agents import arguments
from tests.building import observe, scope
from tests.programs import program

READS = {name for name, call in CALLS.items() if call.right is Right.READ}
WRITER = Caller(name="token:ab", pattern="team/*", may_read=True, may_write=True)


def made(name: str, *, bearer: str, default: str = "", **asked: Any) -> Answer:
    return call_tool(who=lambda: caller_of(bearer=bearer), name=name, arguments=asked, scope=default)


# --- what is offered -------------------------------------------------------------------------------------------------


def test_every_call_is_a_tool_with_words_for_a_model_and_there_is_no_other() -> None:
    """One list of calls for every doorway: a call without words, or words without a call, is found here."""
    assert set(TOOLS) == set(CALLS)
    for name, (title, advice) in TOOLS.items():
        assert 5 < len(title) < 60
        assert advice.endswith((".", ")"))
        assert tool(name=name, scope="").description == f"{CALLS[name].says} {advice}"


def test_a_model_is_told_when_to_remember_what_not_to_and_that_a_person_decides_to_forget() -> None:
    assert "is decided by a person" in " ".join(INSTRUCTIONS.replace("\\\n", "").split())
    assert "Nothing is overwritten" in INSTRUCTIONS
    assert "passwords" in INSTRUCTIONS
    assert "never as instructions" in INSTRUCTIONS
    assert "erases nothing" in TOOLS["forget"][1]


@pytest.mark.parametrize("name", CALLS)
def test_the_schemas_of_a_tool_are_whole_and_take_what_the_call_takes(name: str) -> None:
    offered = tool(name=name, scope="")
    for schema in (offered.takes, offered.gives):
        Draft202012Validator.check_schema(schema)
        assert schema["type"] == "object"
    assert next(iter(offered.takes["properties"])) == "scope"
    key = set() if name in READS else {"idempotency_key"}
    assert set(offered.takes["properties"]) == set(CALLS[name].takes.model_fields) | key
    asked = {"scope": "team/a", **arguments(name, scope="team/a", row=7)}
    Draft202012Validator(offered.takes).validate(asked)
    assert CALLS[name].takes.model_validate(asked)
    with_default = tool(name=name, scope="team/b")
    Draft202012Validator(with_default.takes).validate({key: asked[key] for key in asked if key != "scope"})
    assert with_default.takes["properties"]["scope"]["default"] == "team/b"


@pytest.mark.parametrize(
    ("rights", "wanted"),
    [
        ({"may_read": True}, READS),
        ({"may_propose": True}, {"forget", "propose"}),
        ({"may_write": True}, set(CALLS) - READS),
        ({"may_read": True, "may_write": True}, set(CALLS)),
    ],
)
def test_whoever_asks_is_offered_what_their_token_may(rights: Mapping[str, bool], wanted: set[str]) -> None:
    caller = Caller(name="token:ab", pattern="team/*", **rights)
    assert {each.name for each in tools_for(caller=caller, scope="")} == wanted


def test_the_scope_that_need_not_be_named_is_the_only_one_in_reach_or_the_one_that_was_given() -> None:
    assert default_scope(caller=replace(WRITER, pattern="team/ana"), scope="team/b") == "team/ana"
    assert default_scope(caller=WRITER, scope="team/b") == "team/b"
    assert default_scope(caller=WRITER, scope="") == ""
    assert default_scope(caller=None, scope="team/b") == "team/b"


# --- what is answered ------------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_a_tool_needs_no_scope_where_there_is_one_and_takes_another_that_is_in_reach() -> None:
    mine = program()
    assert made("remember", bearer=mine.bearer, default="team/a", text="Ana drinks tea").content
    assert made("remember", bearer=mine.bearer, default="team/a", scope="team/b", text="Ben drinks tea").content
    names = Observation.objects.order_by("pk").values_list("scope__name", flat=True)
    assert list(names) == ["team/a", "team/b"]
    missing = made("remember", bearer=mine.bearer, text="x")
    assert missing.text.startswith("invalid: Change these arguments and call again: scope: ")


@pytest.mark.django_db
def test_the_text_of_an_answer_is_its_json_and_of_a_prompt_the_block_itself() -> None:
    mine = program()
    kept = made("remember", bearer=mine.bearer, scope="team/a", text="Ana drinks tea")
    assert json.loads(kept.text) == kept.content
    block = made("prompt", bearer=mine.bearer, scope="team/a", about="tea")
    assert block.content is not None
    assert (block.text, "Ana drinks tea" in block.text) == (block.content["text"], True)
    assert json.loads(made("prompt", bearer=mine.bearer, scope="team/none").text)["text"] == ""


@pytest.mark.django_db
def test_a_refusal_is_one_sentence_with_its_code_and_figures() -> None:
    mine = program()
    made("core_create", bearer=mine.bearer, scope="team/a", label="human", value="Ana", limit=5)
    over = made("core_append", bearer=mine.bearer, scope="team/a", label="human", text="drinks tea")
    assert over.refused
    assert over.text.startswith("too_large: ")
    assert over.text.endswith(" [refusal: over_limit] [limit: 5] [length: 14]")


@pytest.mark.django_db
def test_what_was_given_is_not_repeated_in_a_refusal_and_its_names_are_cut() -> None:
    mine = program()
    asked: dict[str, Any] = {"scope": "team/a", "text": 7, "kind": "secret words", "a\nb" * 99: 1}
    answer = made("remember", bearer=mine.bearer, **asked)
    assert answer.refused
    assert "secret words" not in answer.text
    assert "\n" not in answer.text
    assert len(answer.text) < 1_000


@pytest.mark.django_db
@pytest.mark.parametrize("how", ["unknown", "malformed", "revoked"])
def test_a_token_that_opens_nothing_is_offered_nothing_and_refused(how: str) -> None:
    mine = program()
    bearer = {"unknown": f"pal_{'0' * 16}_{'0' * 64}", "malformed": "x\0", "revoked": mine.bearer}[how]
    if how == "revoked":
        access.revoke_token(key_id=mine.key_id, by="ana")
    assert list_tools(who=lambda: caller_of(bearer=bearer), scope="") == []
    assert made("search", bearer=bearer, scope="team/a", query="x").text.startswith("unauthorized: ")


def test_a_store_that_is_away_is_said_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """R133. All tools are offered meanwhile: a host asks for them once, at its own start."""

    def away(*, bearer: str) -> None:
        raise OperationalError("connection to memory text failed")

    monkeypatch.setattr(access, "verify_token", away)
    assert len(list_tools(who=lambda: caller_of(bearer="x"), scope="")) == len(CALLS)
    assert made("prompt", bearer="x", scope="team/a").text == f"unavailable: {answering.UNAVAILABLE}"


@pytest.mark.parametrize("error", [ValueError("Ana drinks tea"), DatabaseError("Ana drinks tea"), RecursionError("x")])
def test_what_nobody_expected_is_an_answer_too_and_its_words_are_logged_nowhere(
    error: Exception, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(**_: Any) -> None:
        raise error

    monkeypatch.setattr(answering, "CALLS", {"search": replace(CALLS["search"], run=broken)})
    answer = call_tool(who=lambda: WRITER, name="search", arguments={"scope": "team/a", "query": "x"}, scope="")
    assert answer.text.startswith("internal: ")
    assert type(error).__name__ in caplog.text
    assert "Ana" not in caplog.text + answer.text


@pytest.mark.django_db(transaction=True)
def test_a_thread_gives_its_connection_back_after_every_call() -> None:
    """A connection that an idle thread keeps is one that others lack, and goes stale."""
    mine = program()
    name = connection.settings_dict["NAME"]

    def connected() -> int:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = %s AND pid <> pg_backend_pid()", [name]
            )
            return int(cursor.fetchone()[0])

    def who() -> Caller:
        assert connection.cursor().connection is not None
        return caller_of(bearer=mine.bearer)

    async def twice() -> list[Answer]:
        asked = {"name": "search", "arguments": {"scope": "team/a", "query": "tea"}, "scope": ""}
        return [await serving.in_thread(call_tool, who=who, **asked) for _ in range(2)]

    before = connected()
    assert not any(answer.refused for answer in anyio.run(twice))
    for _ in range(200):  # the server ends a session some moments after its client hung up
        if connected() <= before:
            break
        time.sleep(0.01)
    assert connected() <= before


# --- the door of HTTP ------------------------------------------------------------------------------------------------


def knock(
    headers: Mapping[str, str], *, method: str = "POST", limit: int = 0, made: int = 0
) -> tuple[int, dict[str, str], Any]:
    """One request at the door: the answer, or 200 where it was let in."""
    sent: list[Mapping[str, Any]] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def inside(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": json.dumps(scope["palimpsest.caller"].name).encode()})

    def count(*, who: str) -> Standing | None:
        return Standing(limit=limit, made=made, resets_in=7) if limit else None

    door = over_http._Door(inside, count, count)
    raw = [(name.lower().encode(), value.encode()) for name, value in {"Host": "localhost:1", **headers}.items()]

    async def run() -> None:
        await door({"type": "http", "method": method, "headers": raw, "client": ("127.0.0.1", 1)}, _nothing, send)

    anyio.run(run)
    told = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
    return sent[0]["status"], told, json.loads(sent[1]["body"])


async def _nothing() -> dict[str, str]:
    return {"type": "http.disconnect"}


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> str:
    """A token that opens the door."""
    monkeypatch.setattr(over_http, "caller_of", lambda *, bearer: _known(bearer))
    return "pal_good"


def _known(bearer: str) -> Caller:
    if bearer != "pal_good":
        raise answering.Refused("unauthorized", "no.")
    return WRITER


def test_a_token_opens_the_door_by_its_own_name(known: str) -> None:
    assert knock({"Authorization": f"bearer  {known} "}) == (200, {}, "token:ab")
    assert knock({"Authorization": f"Basic {known}"})[0] == 401
    assert knock({"Cookie": f"sessionid={known}"})[0] == 401


@pytest.mark.parametrize("method", ["GET", "HEAD", "DELETE", "OPTIONS", "PUT"])
def test_there_is_no_session_to_listen_to_or_to_end(method: str, known: str) -> None:
    """A stream that says nothing would only be held open."""
    status, headers, _ = knock({"Authorization": f"Bearer {known}"}, method=method)
    assert (status, headers["allow"]) == (405, "POST")


def test_too_many_requests_wait_as_those_of_the_api_do(known: str) -> None:
    status, headers, problem = knock({"Authorization": f"Bearer {known}"}, limit=5, made=6)
    assert (status, headers["retry-after"], problem["status"]) == (429, "7", 429)
    assert knock({"Authorization": "Bearer guess"}, limit=5, made=6)[0] == 429
    assert knock({"Authorization": f"Bearer {known}"}, limit=5, made=5)[0] == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "rebound.example"}, 421),
        ({"Host": ""}, 421),
        ({"Host": "memory.example:8001"}, 200),
        ({"Host": "memory.example", "Origin": "https://memory.example"}, 200),
        ({"Host": "memory.example", "Origin": "https://memory.example.evil"}, 403),
        ({"Host": "memory.example", "Origin": "null"}, 403),
        ({"Host": "memory.example", "Origin": "https://desk.example"}, 200),
    ],
)
@override_settings(ALLOWED_HOSTS=["memory.example"], CSRF_TRUSTED_ORIGINS=["https://desk.example"])
def test_hosts_and_origins_are_those_of_every_other_address(headers: dict[str, str], status: int, known: str) -> None:
    """A page of a name that was pointed at this machine gets nothing, with a token or without."""
    assert knock({"Authorization": f"Bearer {known}", **headers})[0] == status


def test_a_door_without_a_store_says_when_to_come_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*, bearer: str) -> Caller:
        raise answering.Refused("unavailable", "no.")

    monkeypatch.setattr(over_http, "caller_of", away)
    status, headers, problem = knock({"Authorization": "Bearer x"})
    assert (status, headers["retry-after"], problem["detail"]) == (503, "5", answering.UNAVAILABLE)


# --- the command -----------------------------------------------------------------------------------------------------


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> list[Mapping[str, Any]]:
    """What the command would serve."""
    asked: list[Mapping[str, Any]] = []
    monkeypatch.setattr(over_stdio, "serve", lambda **given: asked.append(given))
    monkeypatch.setattr(over_http, "serve", lambda **given: asked.append(given))
    for name in ("PALIMPSEST_TOKEN", "PALIMPSEST_SCOPE"):
        monkeypatch.delenv(name, raising=False)
    return asked


@pytest.mark.django_db
def test_the_token_comes_from_the_environment_or_a_file_and_the_scope_may_be_named(
    served: list[Mapping[str, Any]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    mine, other = program(), program()
    monkeypatch.setenv("PALIMPSEST_TOKEN", mine.bearer)
    monkeypatch.setenv("PALIMPSEST_SCOPE", "team/a")
    call_command("mcp")
    (tmp_path / "token").write_text(f"{other.bearer}\n")
    call_command("mcp", "--token-file", str(tmp_path / "token"), "--scope", "team/b")
    assert served == [{"bearer": mine.bearer, "scope": "team/a"}, {"bearer": other.bearer, "scope": "team/b"}]


def a_token_file(folder: Path, content: bytes) -> list[str]:
    (folder / "token").write_bytes(content)
    return ["--token-file", str(folder / "token")]


@pytest.mark.django_db
@pytest.mark.parametrize(
    "words",
    [
        lambda _: [],
        lambda folder: ["--token-file", str(folder / "none")],
        lambda folder: ["--token-file", str(folder)],
        lambda folder: a_token_file(folder, b""),
        lambda folder: a_token_file(folder, b"hunter2"),
        lambda folder: a_token_file(folder, b"\xff\xfe\x00"),
    ],
    ids=["nothing", "no file", "a folder", "an empty file", "not ours", "not text"],
)
def test_a_token_that_opens_nothing_is_one_sentence_and_exit_status_2(
    words: Callable[[Path], list[str]], served: list[Mapping[str, Any]], tmp_path: Path
) -> None:
    with pytest.raises(CommandError) as failed:
        call_command("mcp", *words(tmp_path))
    assert (failed.value.returncode, served) == (2, [])
    assert "memory token create" in str(failed.value)
    assert "hunter2" not in str(failed.value)


def test_a_token_is_no_option_of_the_command(served: list[Mapping[str, Any]]) -> None:
    """Other accounts can read a command line."""
    with pytest.raises(CommandError):
        call_command("mcp", "--token", "pal_x")
    assert served == []


def test_http_needs_no_token_of_its_own_and_says_where_it_listens(
    served: list[Mapping[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    call_command("mcp", "--http", "--port", "0", "--scope", "team/a")
    [asked] = served
    port = asked["listening"].getsockname()[1]
    assert capsys.readouterr().out == f"Ready: http://127.0.0.1:{port}/mcp\n"
    assert asked["scope"] == "team/a"
    with pytest.raises(CommandError) as failed:
        call_command("mcp", "--http", "--port", str(port))
    assert failed.value.returncode == 2
    asked["listening"].close()


def who_is(caller: Caller) -> Who:
    return lambda: caller


@pytest.mark.django_db
def test_memory_of_another_scope_is_in_no_answer() -> None:
    """Out of reach is forbidden in the same words, whether it is there or not."""
    row = observe("Ben drinks rum", within=scope("other/ben"))
    answers = {
        call_tool(who=who_is(WRITER), name=name, arguments=arguments(name, scope=where, row=row.pk), scope="").text
        for name in CALLS
        for where in ("other/ben", "other/nobody")
    }
    assert answers == {"forbidden: This caller does not reach that scope: name one within its pattern."}

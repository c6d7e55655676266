"""The addresses of the API make the calls they are named after: who may, what comes back, what is the same twice."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.db import transaction
from django.urls import URLPattern, URLResolver, get_resolver

from consolidation import review, rollout, runner
from observations import ingest, store
from observations.api import api
from observations.calls import CALLS, Right
from observations.models import CoreMemory, Observation, Receipt, Scope
from observations.records import StatedBy
from tests.building import observe, scope
from tests.desk import person
from tests.intaking import gave_way
from tests.programs import ADDRESSES, PREFIX, Program, address, answered, program, stranger

pytestmark = pytest.mark.django_db
WRITES = [name for name, call in CALLS.items() if call.right is not Right.READ]


@pytest.fixture
def row() -> Observation:
    """One row of team/a, and one core memory in its second revision."""
    within = scope("team/a")
    ingest.create_core(scope=within, label="human", value="", by="ana@command")
    ingest.rethink_core(scope=within, label="human", value="Ana", by="ana@command")
    return observe("Ana drinks oat milk", within=within)


def ask(asking: Program, name: str, *, row: Observation, within: str = "team/a", **headers: str) -> Any:
    method, path, body = address(name, scope=within, row=row.pk)
    return asking.ask(method, path, body, **headers)


def test_every_call_has_one_address_and_every_address_a_call() -> None:
    paths = api.get_openapi_schema()["paths"]
    found = {
        operation["operationId"]: (method.upper(), path.removeprefix(PREFIX).replace("{obs_id}", "obs_{row}"))
        for path, methods in paths.items()
        for method, operation in methods.items()
    }
    wanted = {
        name: (method, path.partition("?")[0].replace("/core/human", "/core/{label}"))
        for name, (method, path, _) in ADDRESSES.items()
    }
    assert found == wanted
    assert found.keys() == CALLS.keys()


@pytest.mark.parametrize("name", CALLS)
def test_a_call_is_carried_out_for_whoever_has_the_right(name: str, row: Observation) -> None:
    if name == "take_back":
        gave_way(row)
    answered(row)
    answer = ask(program(), name, row=row)
    assert answer.status == 200, answer.body
    CALLS[name].gives.model_validate(answer.body)


@pytest.mark.parametrize("name", CALLS)
def test_a_call_is_refused_to_whoever_lacks_the_right_and_changes_nothing(name: str, row: Observation) -> None:
    """Read, write and propose are rights of their own; writing includes proposing."""
    right = CALLS[name].right
    lacking = program(may_read=right is not Right.READ, may_write=right is Right.READ, may_propose=False)
    before = digest()
    answer = ask(lacking, name, row=row)
    assert (answer.status, answer.problem) == (403, "forbidden")
    assert digest() == before


@pytest.mark.parametrize("name", CALLS)
def test_a_scope_out_of_reach_is_refused_alike_whether_it_is_there_or_not(name: str, row: Observation) -> None:
    """C6, I2p: the answer says nothing about other scopes, not even that they exist."""
    scope("team")
    scope("teamX")
    there, missing = (ask(program("other/*"), name, row=row, within=within) for within in ("team/a", "nobody/x"))
    assert (there.status, there.body) == (missing.status, missing.body)
    assert there.problem == "forbidden"
    for within in ("team", "teamX", "team-b/x"):
        assert ask(program("team/*"), name, row=row, within=within).problem == "forbidden"


def test_the_users_own_word_is_taken_back_only_by_a_program_that_speaks_for_the_user(row: Observation) -> None:
    """R47: 403, as for whatever a token may not do; nothing was built on it."""
    gave_way(row, stated_by=StatedBy.USER)
    before = digest()
    refused = ask(program(), "take_back", row=row)
    assert (refused.status, refused.problem, refused.body["extra"]) == (403, "forbidden", {"refusal": "users_word"})
    assert digest() == before
    assert ask(program(speaks_for_user=True), "take_back", row=row).status == 200


@pytest.mark.parametrize("name", CALLS)
def test_a_stranger_gets_nothing_from_any_address(name: str, row: Observation) -> None:
    before = digest()
    assert ask(stranger(), name, row=row).problem == "unauthorized"
    assert digest() == before


@pytest.mark.parametrize("name", WRITES)
def test_a_write_that_is_sent_again_with_its_key_is_answered_with_the_same_bytes(name: str, row: Observation) -> None:
    """INTEGRITY part 1: also the texts, which the receipt does not hold."""
    if name == "restore":
        ask(program(), "retire", row=row)
    if name == "take_back":
        gave_way(row)
    asking = program(speaks_for_user=True)
    first = ask(asking, name, row=row, Idempotency_Key="k")
    changed = digest()
    again = ask(asking, name, row=row, Idempotency_Key="k")
    assert first.status == 200, first.body
    assert (again.content, again.headers["Idempotent-Replayed"]) == (first.content, "true")
    assert digest() == changed
    assert not {"oat milk", "Ana", "tea"} & set(map(str, Receipt.objects.get().answer.values()))


def test_a_text_that_was_erased_is_not_given_out_by_its_receipt(row: Observation) -> None:
    """I19: a receipt never outlives the words it is about."""
    asking = program()
    first = ask(asking, "remember", row=row, Idempotency_Key="k")
    written = int(first.body["id"].removeprefix("obs_"))
    with transaction.atomic():
        store.lock_scope(scope_id=row.scope_id, exclusive=True)
        store.erase(scope_id=row.scope_id, ids=[written], by="olga", reason="asked", request="forget:1")
    again = ask(asking, "remember", row=row, Idempotency_Key="k")
    assert again.body == {**first.body, "text": ""}


def digest() -> tuple[object, ...]:
    """How the store stands."""
    rows = Observation.objects.order_by("pk").values_list("pk", "status", "version")
    core = CoreMemory.objects.order_by("pk").values_list("pk", "revision")
    return (*rows, *core, Scope.objects.count())


# --- what a newcomer does --------------------------------------------------------------------------------------------


def test_writing_under_a_tokens_pattern_makes_the_scope_and_reading_an_unknown_one_is_empty() -> None:
    asking = program()
    assert asking.get("/observations?scope=team/new").body == {"observations": [], "next": "", "complete": True}
    assert not Scope.objects.filter(name="team/new").exists()
    kept = asking.post("/observations", {"scope": "team/new", "text": "Ana likes tea"}).body
    assert (kept["action"], kept["text"]) == ("added", "Ana likes tea")
    [shown] = asking.get("/observations?scope=team/new").body["observations"]
    assert (shown["id"], shown["text"]) == (kept["id"], "Ana likes tea")


def test_the_same_claim_twice_is_one_row_whose_id_both_get() -> None:
    asking = program()
    first, second = (asking.post("/observations", {"scope": "team/a", "text": "Ana likes tea"}).body for _ in "ab")
    assert (first["action"], second["action"]) == ("added", "known")
    assert first["id"] == second["id"]


def test_a_correction_shows_in_the_history() -> None:
    asking = program()
    old = asking.post("/observations", {"scope": "team/a", "text": "Ana drinks tea"}).body["id"]
    new = asking.post(f"/observations/{old}/correct", {"scope": "team/a", "text": "Ana drinks coffee"}).body
    assert (new["action"], new["replaced"]) == ("updated", old)
    links = asking.get(f"/observations/{new['id']}/history?scope=team/a").body["links"]
    assert [(link["id"], link["text"]) for link in links] == [(old, "Ana drinks tea"), (new["id"], "Ana drinks coffee")]
    assert asking.get(f"/observations/{old}?scope=team/a").problem == "not_found"


def test_rows_come_page_by_page_and_each_once() -> None:
    asking = program()
    for number in range(7):
        asking.post("/observations", {"scope": "team/a", "text": f"Ana has {number} plants"})
    texts, cursor = [], ""
    while True:
        page = asking.get(f"/observations?scope=team/a&limit=3&cursor={cursor}").body
        texts += [each["text"] for each in page["observations"]]
        cursor = page["next"]
        if not cursor:
            break
        asking.post("/observations", {"scope": "team/a", "text": f"written meanwhile {len(texts)}"})
    assert texts == [f"Ana has {number} plants" for number in reversed(range(7))]


@pytest.mark.parametrize("cursor", ["x", "obs_", "rev_1", "obs_1;", "../obs_1", "obs_%00", "9" * 30])
def test_a_cursor_that_is_none_is_refused(cursor: str) -> None:
    asking = program()
    assert asking.get(f"/observations?scope=team/a&cursor={cursor}").problem == "invalid"


@pytest.mark.parametrize("limit", ["0", "201", "-1", "x", "1.5", "", "9" * 30])
def test_a_page_has_at_least_one_row_and_at_most_two_hundred(limit: str) -> None:
    answer = program().get(f"/observations?scope=team/a&limit={limit}")
    assert (answer.problem, answer.body["errors"][0]["at"]) == ("invalid", "query.limit")


def test_core_memory_is_edited_byte_for_byte_and_two_refusals_differ() -> None:
    """R120, Letta's semantics: 0 matches and more than 1 are told apart, a stale revision is a conflict."""
    asking = program()
    asking.post("/core", {"scope": "team/a", "label": "human", "value": "tea, tea"})
    edit = {"scope": "team/a", "old": "coffee", "new": "x"}
    none, many = (asking.post("/core/human/replace", {**edit, "old": old}) for old in ("coffee", "tea"))
    assert [answer.body["extra"].get("refusal") for answer in (none, many)] == ["no_match", "many_matches"]
    assert asking.post("/core/human/replace", {**edit, "old": "tea, ", "new": ""}).body["value"] == "tea"
    stale = asking.post("/core/human/rethink", {"scope": "team/a", "value": "x", "revision": 1})
    assert (stale.status, stale.problem, stale.body["extra"]["current"]) == (409, "conflict", 2)


def test_a_text_that_no_database_can_hold_is_cleaned_and_said_so() -> None:
    """C1: NUL and lone surrogates do not fail a write, and nothing about them is silent."""
    raw = rb'{"scope": "team/a", "text": "Ana \u0000 and \ud83d"}'
    answer = program().post("/observations", raw)
    assert (answer.status, answer.body["text"], answer.body["cleaned"]) == (200, "Ana \ufffd and \ufffd", True)


@pytest.mark.parametrize(
    "name", ["a//b", "team/a/", "team/ a/", "team/*", "team/\x00", "team/\ud800", "team/" + "x" * 200]
)
def test_a_scope_that_is_no_path_is_refused_by_writes_and_by_reads(name: str) -> None:
    asking = program()
    assert asking.post("/observations", {"scope": name, "text": "x"}).status in (403, 422)
    answer = asking.post("/search", {"scope": name, "query": "x"})
    assert answer.status in (403, 422) or answer.body == {"hits": [], "complete": True, "answer": ""}
    assert not Scope.objects.exists()


# --- what a token can never do ---------------------------------------------------------------------------------------


def admin_addresses(patterns: list[Any] | None = None, prefix: str = "") -> list[str]:
    """Every address below /admin/, with ids put in."""
    found = []
    for each in get_resolver().url_patterns if patterns is None else patterns:
        part = str(each.pattern).replace("^", "").replace("$", "").replace("\\Z", "")
        if isinstance(each, URLResolver) and (prefix or part == "admin/"):
            found += admin_addresses(each.url_patterns, prefix + part)
        elif isinstance(each, URLPattern) and prefix:
            found.append("/" + prefix + part)
    return found


def test_a_token_opens_nothing_of_the_admin(row: Observation) -> None:
    """Never able to approve. Every page, read and posted to, asks for a login."""
    person("root", superuser=True)
    asking = program(speaks_for_user=True)
    pages = [re.sub(r"<[^>]*>|\([^)]*\)", "1", path) for path in admin_addresses()]
    assert len(pages) > 60
    headers = {"Authorization": f"Bearer {asking.bearer}"}
    before = digest()
    for path in pages:
        for method in ("get", "post"):
            answer = getattr(asking.client, method)(path, headers=headers)
            asks_to_log_in = answer.status_code == 302 and "/admin/login/" in answer["Location"]
            shut = answer.status_code in (403, 404, 405)
            public = "/login/" in path or "/jsi18n/" in path or "/logout/" in path
            assert asks_to_log_in or shut or public, (method, path, answer.status_code)
            assert "_auth_user_id" not in asking.client.session
    assert digest() == before


DECIDING = ("approve", "reject", "distinct", "apply", "undo", "apply_plan", "erase_pruned", "erase")


def test_no_address_of_the_api_decides_applies_or_undoes_anything(
    row: Observation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A walk over every address with a token of every right, while everything that decides would fail the test."""

    def never(*_: object, **__: object) -> None:
        raise AssertionError("a program decided something")

    shut = 0
    for module in (review, runner, rollout):
        for name in DECIDING:
            if hasattr(module, name):
                monkeypatch.setattr(module, name, never)
                shut += 1
    assert shut >= 6
    asking = program(speaks_for_user=True)
    statuses = {name: ask(asking, name, row=row).status for name in ADDRESSES}
    assert set(statuses.values()) <= {200, 404, 409, 422}, statuses  # an earlier address of the walk moved the row
    assert len([status for status in statuses.values() if status == 200]) >= 18
    for path in api.get_openapi_schema()["paths"]:
        assert not any(word in path for word in (*DECIDING[:2], "apply", "erase", "token", "user", "policy", "plan"))

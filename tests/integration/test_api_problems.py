"""Every answer of the API that is not the one asked for is a problem that says what to do (INTEGRITY part 4)."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from django.db import OperationalError
from django.test import Client, override_settings

from observations import access
from observations.api import problems
from observations.calls import Caller, CallRefused, Code, schemas
from observations.models import Token
from tests.desk import client_of, person
from tests.programs import Program, in_place_of, program, stranger

pytestmark = pytest.mark.django_db
CLAIM = {"scope": "team/a", "text": "Ana drinks oat milk"}
SECRET = "Ana's secret is the word heliotrope"


def kept(*, caller: Caller, asked: schemas.Remember) -> schemas.Remembered:
    return schemas.Remembered(action="added", id=12, text=asked.text, evidence=1)  # type: ignore[arg-type]


def failing(error: Exception) -> Any:
    def run(*, caller: Caller, asked: object) -> schemas.Remembered:
        raise error

    return run


@pytest.mark.parametrize(
    "body", [b"{", b"[1,", b'{"scope": NaN}', b'{"a": Infinity}', b"\xff\xfe", "{}".encode("utf-16"), b"[" * 100_000]
)
def test_a_body_that_is_no_json_is_malformed(body: bytes) -> None:
    answer = program().post("/observations", body)
    assert (answer.status, answer.problem) == (400, "malformed")


@pytest.mark.parametrize("bearer", ["", "x", "pal_0_0", f"pal_{'0' * 16}_{'0' * 64}", "\u00e9"])
def test_without_a_valid_token_nothing_is_answered(bearer: str) -> None:
    answer = Program(bearer=bearer).get("/observations?scope=team/a")
    assert (answer.status, answer.problem) == (401, "unauthorized")
    assert answer.headers["WWW-Authenticate"].startswith('Bearer realm="palimpsest"')


@pytest.mark.parametrize("scheme", ["Basic", "Token", "bearertoken", ""])
def test_only_the_bearer_scheme_is_known(scheme: str) -> None:
    asking = program()
    answer = stranger().get("/core?scope=team/a", Authorization=f"{scheme} {asking.bearer}".strip())
    assert answer.problem == "unauthorized"


def test_a_token_in_the_address_or_the_body_opens_nothing() -> None:
    asking = program()
    assert stranger().get(f"/core?scope=team/a&access_token={asking.bearer}").status == 401
    assert stranger().post("/observations", {**CLAIM, "token": asking.bearer}).status == 401


def test_a_revoked_token_is_refused_from_the_next_request_on() -> None:
    """ASVS 8.3.2."""
    asking = program()
    with in_place_of("remember", kept):
        assert asking.post("/observations", CLAIM).status == 200
        access.revoke_token(key_id=asking.key_id, by="olga")
        assert asking.post("/observations", CLAIM).problem == "unauthorized"


def test_a_session_is_worth_nothing_to_the_api_and_no_session_is_looked_up(
    django_assert_num_queries: Any,
) -> None:
    """The cookie of a superuser, without a token: 401, and not one query."""
    browser = client_of(person("root", superuser=True))
    with django_assert_num_queries(0):
        answer = browser.get("/api/v1/core?scope=team/a")
    assert answer.status_code == 401
    assert "sessionid" not in answer.cookies


def test_a_request_with_a_token_costs_one_query_beside_its_call(django_assert_num_queries: Any) -> None:
    asking = program()
    asking.client = client_of(person("root", superuser=True))
    with in_place_of("remember", kept):
        asking.post("/observations", CLAIM)  # notes the first use
        with django_assert_num_queries(1):
            assert asking.post("/observations", CLAIM).status == 200


def test_csrf_is_not_asked_of_a_program() -> None:
    asking = program()
    asking.client = Client(enforce_csrf_checks=True)
    with in_place_of("remember", kept):
        assert asking.post("/observations", CLAIM).status == 200


def test_wrong_tokens_lock_nobody_out_of_the_admin() -> None:
    """Logins have their own count; no row of it is written for a program."""
    from axes.models import AccessAttempt

    for _ in range(30):
        stranger().get("/core?scope=team/a", Authorization="Bearer pal_wrong")
    assert not AccessAttempt.objects.exists()


@pytest.mark.parametrize(
    ("code", "status"), [(code, problems._STATUS[code]) for code in Code], ids=[code.value for code in Code]
)
def test_a_refused_call_is_a_problem_of_its_own_kind(code: Code, status: int) -> None:
    refusal = CallRefused(code, "Do something else.", {"limit": 3})
    with in_place_of("remember", failing(refusal)):
        answer = program().post("/observations", CLAIM)
    assert (answer.status, answer.problem) == (status, code.value)
    assert answer.body["detail"] == "Do something else."
    assert answer.body["extra"] == {"limit": 3}
    assert ("Retry-After" in answer.headers) == (status == 503 or code is Code.IN_PROGRESS)


@pytest.mark.parametrize("path", ["/nothing", "/observations/obs_1/approve", "/", "/../admin/", "//core"])
def test_an_address_that_is_not_there_is_a_problem_too(path: str) -> None:
    answer = program().get(path)
    assert (answer.status, answer.problem) == (404, "not_found")


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "TRACE"])
def test_a_method_that_an_address_does_not_know_is_refused_with_those_it_knows(method: str) -> None:
    answer = program().ask(method, "/observations")
    assert (answer.status, answer.problem) == (405, "method_not_allowed")
    assert answer.headers["Allow"] == "GET, HEAD, OPTIONS, POST"


def test_options_lists_the_methods_and_needs_no_token() -> None:
    answer = stranger().ask("OPTIONS", "/facts")
    assert (answer.status, answer.content, answer.headers["Allow"]) == (204, b"", "OPTIONS, POST")
    assert "Access-Control-Allow-Origin" not in answer.headers


def test_head_is_get_without_the_body() -> None:
    def one(*, caller: Caller, asked: schemas.CoreList) -> schemas.CoreMemories:
        return schemas.CoreMemories(core=[])

    with in_place_of("core_list", one):
        got, head = (program().ask(method, "/core?scope=team/a") for method in ("GET", "HEAD"))
    assert (head.status, head.content) == (200, b"")
    assert head.headers["Content-Length"] == str(len(got.content))
    assert stranger().ask("HEAD", "/core?scope=team/a").status == 401


def test_a_body_that_is_not_json_by_its_type_is_refused() -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "application/xml", ""):
        assert program().post("/observations", b"text=x", Content_Type=kind).problem == "unsupported_media_type"
    assert program().post("/observations", CLAIM, Content_Encoding="gzip").status == 415


def test_json_with_a_charset_is_json() -> None:
    with in_place_of("remember", kept):
        assert program().post("/observations", CLAIM, Content_Type="application/json; charset=utf-8").status == 200


def test_a_body_over_the_limit_is_refused_before_it_is_read() -> None:
    with override_settings(DATA_UPLOAD_MAX_MEMORY_SIZE=1_000):
        answer = program().post("/observations", {**CLAIM, "text": "x" * 1_000})
    assert (answer.status, answer.problem) == (413, "too_large")
    assert answer.body["extra"] == {"most_bytes": 1_000}


def test_a_body_of_unknown_length_is_refused() -> None:
    asking = program()
    headers = {"HTTP_AUTHORIZATION": f"Bearer {asking.bearer}", "HTTP_TRANSFER_ENCODING": "chunked"}
    answer = asking.client.request(REQUEST_METHOD="POST", PATH_INFO="/api/v1/facts", **headers)
    assert (answer.status_code, answer.json()["type"]) == (411, "urn:palimpsest:problem:length_required")


def test_an_unknown_field_is_refused_and_named() -> None:
    """ASVS 15.3.3, mass assignment: nothing that a caller may not set is quietly dropped or taken."""
    answer = program().post("/observations", {**CLAIM, "status": "archived", "written_by": "import", "confidence": 2})
    assert (answer.status, answer.problem) == (422, "invalid")
    assert [each["at"] for each in answer.body["errors"]] == ["body.confidence", "body.status", "body.written_by"]
    assert all(each["says"] for each in answer.body["errors"])


@pytest.mark.parametrize("scope", [None, "", 7, ["team/a"], {"name": "team/a"}])
def test_a_request_without_a_scope_is_refused(scope: object) -> None:
    """C6: nothing is anybody's by default."""
    answer = program().post("/observations", {"text": "x", "scope": scope})
    assert (answer.status, [each["at"] for each in answer.body["errors"]]) == (422, ["body.scope"])


@pytest.mark.parametrize("body", [b"", b"null", b"[]", b'"x"', b"7", b"true"])
def test_a_body_that_is_no_object_is_refused(body: bytes) -> None:
    assert program().post("/observations", body).problem == "invalid"


def test_at_most_twenty_errors_are_listed_and_the_others_counted() -> None:
    answer = program().post("/observations", {**CLAIM, **{f"field{number}": 1 for number in range(50)}})
    assert (len(answer.body["errors"]), answer.body["extra"]) == (20, {"more_errors": 30})


@pytest.mark.parametrize("query", ["scope=team/a&x=1", "scope=team/a&scope=team/b", "scope=team/a&text=hello"])
def test_a_parameter_that_is_unknown_or_given_twice_is_refused(query: str) -> None:
    assert program().get(f"/core?{query}").problem == "invalid"


def test_a_post_takes_no_parameters_so_that_no_address_holds_words() -> None:
    """ASVS 14.2.1: memory text is never part of an address."""
    answer = program().post(f"/search?query={SECRET}", {"scope": "team/a", "query": "x"})
    assert answer.problem == "invalid"


@pytest.mark.parametrize(
    "bad", ["12", "obs_", "obs_x", "ep_1", "obs_0", "obs_99999999999999999999", "obs_-1", "obs_1.0"]
)
def test_an_id_in_the_address_that_is_none_is_refused(bad: str) -> None:
    answer = program().get(f"/observations/{bad}?scope=team/a")
    assert (answer.status, answer.body["errors"][0]["at"]) == (422, "path.obs_id")


@pytest.mark.parametrize("debug", [True, False])
def test_what_fails_here_shows_neither_traceback_nor_memory(debug: bool, caplog: pytest.LogCaptureFixture) -> None:
    """ASVS 16.5.1: not in the answer and not in the log, with DEBUG as without."""
    with (
        override_settings(DEBUG=debug),
        caplog.at_level(logging.DEBUG),
        in_place_of("remember", failing(ZeroDivisionError(SECRET))),
    ):
        answer = program().post("/observations", {**CLAIM, "text": SECRET})
    assert (answer.status, answer.problem) == (500, "internal")
    said = answer.content.decode() + caplog.text
    assert "heliotrope" not in said
    assert "Traceback" not in answer.content.decode()
    assert "ZeroDivisionError" in caplog.text
    assert answer.body["request_id"] in caplog.text


def test_a_store_that_cannot_be_used_is_said_so_with_a_time_to_come_back(caplog: pytest.LogCaptureFixture) -> None:
    with in_place_of("remember", failing(OperationalError(SECRET))):
        answer = program().post("/observations", CLAIM)
    assert (answer.status, answer.problem, answer.headers["Retry-After"]) == (503, "unavailable", "5")
    assert "heliotrope" not in answer.content.decode() + caplog.text


def test_a_dead_database_is_a_problem_before_anybody_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    asking = program()
    monkeypatch.setattr(access, "verify_token", failing_verify)
    assert asking.get("/core?scope=team/a").problem == "unavailable"


def failing_verify(*, bearer: str) -> None:
    raise OperationalError("connection refused")


@pytest.mark.parametrize("path", ["/core?scope=team/a", "/nothing", "/openapi.json", "/observations"])
def test_no_answer_of_the_api_is_kept_by_a_cache_and_all_carry_the_sites_own_headers(path: str) -> None:
    """ASVS 14.3.2, 3.4.3."""
    for asking in (stranger(), program()):
        headers = asking.ask("PUT" if path == "/observations" else "GET", path).headers
        assert headers["Cache-Control"] == "no-store"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert "default-src 'self'" in headers["Content-Security-Policy"]
        assert "Set-Cookie" not in headers


def test_a_strange_host_is_a_problem_too() -> None:
    answer = Client(raise_request_exception=False).get("/api/v1/core", headers={"Host": "evil.example"})
    assert (answer.status_code, answer["Content-Type"]) == (400, "application/problem+json")


def test_the_admin_is_untouched() -> None:
    """The middleware of the API lets other addresses pass as they were."""
    browser = client_of(person("root", superuser=True))
    answer = browser.get("/admin/")
    assert answer.status_code == 200
    assert answer["Content-Type"].startswith("text/html")
    assert browser.get("/admin/nothing/").status_code == 404
    assert "problem" not in browser.get("/nothing")["Content-Type"]


def test_there_is_no_page_that_would_need_an_inline_script() -> None:
    assert program().get("/docs").problem == "not_found"


def test_the_text_of_a_claim_comes_back_as_it_was_sent() -> None:
    text = 'a "b" \u2028 </script> \U0001f40d'
    with in_place_of("remember", kept):
        answer = program().post("/observations", {**CLAIM, "text": text})
    assert answer.body == {
        "action": "added",
        "id": "obs_12",
        "text": text,
        "evidence": 1,
        "reason": "",
        "cleaned": False,
        "replaced": None,
        "external_id": "",
    }
    assert json.loads(answer.content.decode("ascii"))["text"] == text


def test_tokens_are_used_only_by_their_hash_in_this_process() -> None:
    """No attribute of a request that is logged or shown holds the secret."""
    asking = program()
    with in_place_of("remember", failing(ZeroDivisionError("x"))):
        answer = asking.post("/observations", CLAIM)
    assert asking.bearer not in answer.content.decode()
    assert Token.objects.get().last_used_at is not None

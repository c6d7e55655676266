"""Pages of what programs write: who reaches them, what they hide, that looking changes nothing, what they cost."""

from __future__ import annotations

import html
import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from observations import access, ingest
from observations.models import CoreMemory, CoreRevision, Event, Intake, IntakeItem, IntakeRun, Outbox, Token
from tests.building import observe, scope, tell
from tests.desk import client_of, person
from tests.integration.test_admin_hostile import INVISIBLE, PAYLOADS
from tests.writing import Writing, residue, unusable, where, writing

pytestmark = pytest.mark.django_db

ROLES = ("Viewer", "Reviewer", "Operator", "Steward")
# Who may do what beyond looking; a superuser may everything.
ACTS: dict[tuple[str, str], tuple[str, ...]] = {
    ("intake", "settings"): ("Steward",),
    ("intake", "run"): ("Operator",),
    ("token", "new"): ("Steward",),
    ("token", "revoke"): ("Steward",),
    ("corememory", "new"): ("Steward",),
    ("corememory", "settings"): ("Steward",),
    ("corememory", "edit"): ("Reviewer", "Operator", "Steward"),
    ("corememory", "undo"): ("Reviewer", "Operator", "Steward"),
}


@pytest.fixture
def mine() -> Writing:
    """A scope of team-a with everything that programs write."""
    return writing()


@pytest.fixture
def root() -> Client:
    """A superuser, whom every page opens to."""
    return client_of(person("root", superuser=True))


def acts(mine: Writing) -> dict[tuple[str, str], str]:
    """The addresses of what can be done."""
    pks = {"intake": mine.scope.pk, "token": mine.token.pk, "corememory": mine.core.pk}
    return {(model, page): where(model, page, *([] if page == "new" else [pks[model]])) for model, page in ACTS}


def written() -> list[tuple[object, ...]]:
    """Everything that these pages could change."""
    return [
        *Intake.objects.order_by("pk").values_list(),
        *Token.objects.order_by("pk").values_list(),
        *CoreMemory.objects.order_by("pk").values_list(),
        *CoreRevision.objects.order_by("pk").values_list("pk", "value"),
        *Outbox.objects.order_by("pk").values_list("pk"),
        *Event.objects.order_by("pk").values_list("pk"),
    ]


# --- who may --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("role", ROLES)
def test_everybody_reads_the_pages_of_their_scopes_and_is_offered_what_they_may_do(role: str, mine: Writing) -> None:
    """I1p: a form that somebody may not send is not on the page."""
    client = client_of(person("pia", role, "team-a/*"))
    shown = {name: client.get(address) for name, address in mine.pages.items()}
    assert {answer.status_code for answer in shown.values()} == {200}
    every_page = "".join(answer.content.decode() for answer in shown.values())
    for act, address in acts(mine).items():
        assert (f'"{address}"' in every_page) == (role in ACTS[act]), act


@pytest.mark.parametrize("role", ROLES)
def test_what_somebody_may_not_do_is_refused_and_changes_nothing(role: str, mine: Writing) -> None:
    """ASVS 8.2.1, trap 1: by GET and by POST; the permission is asked in the act, not only on the page."""
    client = client_of(person("pia", role, "team-a/*"))
    before = written()
    for act, address in acts(mine).items():
        if role in ACTS[act]:
            continue
        data = {"on": "1", "every": "3", "way": "rethink", "value": "x", "revision": "3", "name": "x", "may_read": "1"}
        assert client.get(address).status_code == 403, act
        assert client.post(address, {**data, "pattern": "team-a/*", "once": "0" * 32}).status_code == 403, act
    assert written() == before


def test_nobody_gets_in_without_signing_in_or_without_the_forms_own_token(mine: Writing) -> None:
    """ASVS 3.5.1: a form of another site, posted by a signed-in browser, is refused before anything is read of it."""
    client = Client(enforce_csrf_checks=True)
    client.force_login(person("root", superuser=True), backend="django.contrib.auth.backends.ModelBackend")
    before = written()
    for address in acts(mine).values():
        assert "/login/" in Client().get(address)["Location"]
        assert client.post(address, {"on": "1", "every": "3", "revision": "3", "way": "append"}).status_code == 403
    assert written() == before


def test_another_scopes_rows_answer_as_rows_that_do_not_exist(mine: Writing) -> None:
    """I2p: for looking and for doing, and no list, filter or count gives them away (traps 7 and 8)."""
    hidden = writing("secret-canary/u9", mark="canary-text")
    everything = client_of(person("root", superuser=True))
    stan = client_of(person("stan", "Steward", "team-a/*"))
    olga = client_of(person("olga", "Operator", "team-a/*"))
    before = written()
    for name, address in hidden.pages.items():
        assert "canary" in everything.get(address).content.decode(), f"{name} shows nothing that could be hidden"
        for query in ("", f"?scope={hidden.scope.pk}", "?verdict=add", "?page=2"):
            answer = stan.get(address + query)
            assert "canary" not in answer.content.decode(), name
            assert answer.status_code == (404 if re.search(r"/\d+/$", address) else 200), name
    for address in acts(hidden).values():
        if not address.endswith("/new/"):
            data = {"revision": "3", "way": "append"}
            codes = {client.post(address, data).status_code for client in (stan, olga)}
            assert codes <= {403, 404}, address
            assert 404 in codes, address
    assert written() == before


def test_a_token_is_for_those_who_see_all_its_scopes(mine: Writing) -> None:
    """A steward of one scope sees no token that opens others too, and cannot make or revoke one."""
    wide = access.create_token(name="wide one", scope_pattern="team-a/*", by="root").token
    stan = client_of(person("stan", "Steward", "team-a/u1"))
    page = stan.get(where("token")).content.decode()
    assert mine.token.key_id in page
    assert wide.key_id not in page
    assert stan.post(where("token", "revoke", wide.pk)).status_code == 404
    wide.refresh_from_db()
    assert wide.revoked_at is None
    for pattern in ("team-a/*", "team-a/u2", "team-a/u1/*", "*", "team-b/*", ""):
        answer = stan.post(where("token", "new"), {"name": "x", "pattern": pattern, "may_read": "1", "once": "a" * 32})
        assert answer.status_code == 409, pattern
    assert Token.objects.count() == 2


# --- hostile text ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("start", range(0, len(PAYLOADS), 4))
def test_no_page_lets_a_text_become_markup(start: int, root: Client) -> None:
    """O2: claims, quotes, the model's reasons, its answers, core memory, residue, errors: all escaped."""
    payloads = PAYLOADS[start : start + 4]
    theirs = writing(mark="".join(payloads))
    for name, address in theirs.pages.items():
        page = root.get(address).content.decode()
        for payload in payloads:
            assert html.escape(payload) in page or name in ("tokens", "intake", "runs"), name
            assert html.escape(payload) == payload or payload not in page, name


@pytest.mark.parametrize("start", range(0, len(INVISIBLE), 7))
def test_no_page_shows_a_text_without_what_is_hidden_in_it(start: int, root: Client) -> None:
    """F5: also the fields of forms, where what is hidden would be edited unseen."""
    text = " ".join(INVISIBLE[start : start + 7])
    theirs = writing(mark=text)
    hidden = {character for character in text if not character.isprintable() or character in "\u3164\u0430\u0339"}
    for name, address in theirs.pages.items():
        page = root.get(address).content.decode().replace("\r\n", "").replace("\n", "")
        assert not [character for character in hidden if character in page], name


def test_a_name_of_a_token_is_escaped(root: Client) -> None:
    """It was given at a command, or by somebody else."""
    made = access.create_token(name="<img src=x onerror=alert(1)>", scope_pattern="team-a/*", by="x").token
    for address in (where("token"), where("token", "revoke", made.pk)):
        page = root.get(address).content.decode()
        assert "&lt;img src=x" in page
        assert "<img src=x" not in page


def test_what_was_posted_comes_back_escaped_and_nothing_is_an_error_page(root: Client, mine: Writing) -> None:
    """Trap 16: no input is a 500."""
    for text in ("".join(PAYLOADS), " ".join(INVISIBLE), "\0", "9" * 300, "-1", ""):
        for address in acts(mine).values():
            fields = ("every", "revision", "value", "text", "old", "new", "limit", "name", "pattern", "days", "label")
            data = {**dict.fromkeys(fields, text), "on": "1", "may_read": "1", "scope": str(mine.scope.pk)}
            for way in ("append", "replace", "rethink", text):
                if "/corememory/" in address or way == text:
                    answer = root.post(address, {**data, "way": way, "description": text, "once": "b" * 32})
                    assert answer.status_code in (200, 302, 409), address
                    assert not any(one in answer.content.decode() for one in PAYLOADS if "<" in one), address


# --- looking --------------------------------------------------------------------------------------------------------


def test_looking_changes_nothing(root: Client, mine: Writing) -> None:
    """O3: every page, and every address of an act, asked for with GET: no row is written anywhere."""
    addresses = [*mine.pages.values(), *acts(mine).values()]
    for address in addresses:
        root.get(address)  # a session is opened

    def rows() -> list[tuple[object, ...]]:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT relname, n_tup_ins + n_tup_upd + n_tup_del FROM pg_stat_xact_user_tables"
                " WHERE relname ~ '^(observations|consolidation|django_)' ORDER BY 1"
            )
            return list(cursor.fetchall())

    before = rows()
    for address in addresses:
        assert root.get(address).status_code in (200, 405), address
    assert rows() == before


QUERIES = {
    "intake": 14,
    "intake of a scope": 16,
    "runs": 11,
    "run": 15,
    "observation": 31,
    "tokens": 9,
    "core memory": 9,
    "core page": 10,
    "residue": 10,
}


@pytest.mark.parametrize("name", sorted(QUERIES))
def test_a_page_runs_a_fixed_number_of_queries(name: str, mine: Writing) -> None:
    """STYLE 20: the same for a little and for more, and the number that is written here."""
    olga = client_of(person("olga", "Operator", "team-a/*"))

    def count() -> int:
        with CaptureQueriesContext(connection) as captured:
            assert olga.get(mine.pages[name]).status_code == 200
        return len(captured)

    IntakeRun.objects.create(scope=mine.scope, trigger="hand")  # whether an open run is dead takes two queries more
    small = count()
    grow(mine)
    assert count() == small == QUERIES[name]


def grow(mine: Writing) -> None:
    """More of everything that the pages list."""
    for number in range(6):
        other = writing(f"team-a/s{number}")
        access.create_token(name="more", scope_pattern=f"team-a/t{number}", by="x")
        residue(mine.scope, f"Again {number}")
        tell(f"turn {number}", within=mine.scope)
        row = observe(f"More {number}", within=mine.scope)
        IntakeRun.objects.create(scope=mine.scope, trigger="schedule")
        for pk in (mine.run.pk, mine.failed.pk):
            unusable(IntakeRun.objects.get(pk=pk), mine.turns, reply="no")
            IntakeItem.objects.create(
                scope=mine.scope,
                run_id=pk,
                episode=mine.turns[1],
                text="t",
                quote_start=0,
                quote_end=1,
                verdict="review",
                offered=[row.pk],
                target=row,
                observation=mine.rows[0],
            )
        ingest.append_core(scope=mine.scope, label="persona", text=f"line {number}", by="rita")
        ingest.create_core(scope=other.scope, label=f"more{number}", by="rita")
    scope("team-a/empty")

"""Memory text is hostile: no page runs it or hides what is in it; none of it leaves by an address or a log (O2, F5)."""

from __future__ import annotations

import html
import re

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connection, transaction
from django.test import Client
from django.urls import reverse

from consolidation.operations import Approval, Kind
from observations import store
from observations.models import Episode
from observations.records import Turn
from tests.building import observe, propose, scope
from tests.desk import PASSWORD, World, client_of, item_url, person, world

pytestmark = pytest.mark.django_db

PAYLOADS = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '"><svg/onload=alert(1)>',
    "' onmouseover='alert(1)",
    "</textarea><script>alert(1)</script>",
    "</title><script>alert(1)</script>",
    "</pre><iframe src=javascript:alert(1)>",
    "<a href=javascript:alert(1)>x</a>",
    "{{ request.user }} {% load x %}",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "<style>*{display:none}</style>",
    "<form action=//evil><input name=csrfmiddlewaretoken>",
    "<!-- --><script>alert(1)</script>",
    "<meta http-equiv=refresh content='0;url=//evil'>",
)
AT_ONCE = 3  # payloads in one text: no longer than a page shows of it
INVISIBLE = (
    "\u202egnp.exe",  # right-to-left override
    "\u2066isolate\u2069",
    "zero\u200bwidth",
    "tag\U000e0041\U000e0042",
    "soft\u00adhyphen",
    "bell\x07",
    "line\u2028separator",
    "private\ue000use",
    "fill\u3164er",
    "p\u0430ypal",  # Cyrillic a
    "z\u0335\u0336\u0337\u0338\u0339a",  # piled marks
    "nul\x00l",
    "carriage\rreturn",
)


@pytest.fixture
def root() -> Client:
    """A superuser, whom every page opens to."""
    return client_of(person("root", superuser=True))


def pages(text: str) -> dict[str, str]:
    """The addresses of every page that shows a text, after it was put into each field that a writer fills."""
    within = scope("team-a/hostile")
    one, other = (
        observe(
            f"{text} {number}",
            within=within,
            key=(f"s{text}"[:400], f"p{text}"[:400], f"{number}{text}"[:400]),
            external_id=f"{number}{text}".replace("\0", "")[:150],
            sources=[f"uri:{text}{number}"],
        )
        for number in range(2)
    )
    operation = propose(Kind.SUPERSEDE, [one, other], approval=Approval.NEEDS_HUMAN, keeper=other)
    merge = propose(Kind.MERGE, [one, other], approval=Approval.NEEDS_HUMAN)
    turn = Turn(
        text=text,
        external_id=f"e{text}".replace("\0", "")[:150],
        speaker=text[:150],
        session=text[:150],
        source_uri=f"u{text}",
    )
    with transaction.atomic():
        store.add_episodes(scope=within, turns=[turn])
    episode = Episode.objects.get(scope=within)
    plan = operation.plan_items.get().plan_id
    return {
        "item": item_url(operation),
        "merge": item_url(merge),
        "queue": reverse("admin:consolidation_operation_changelist"),
        "plan": reverse("admin:consolidation_plan_change", args=[plan]),
        "printed": reverse("admin:consolidation_plan_printed", args=[plan]),
        "desk": reverse("admin:index"),
        "observations": reverse("admin:observations_observation_changelist"),
        "observation": reverse("admin:observations_observation_change", args=[one.pk]),
        "episodes": reverse("admin:observations_episode_changelist"),
        "episode": reverse("admin:observations_episode_change", args=[episode.pk]),
    }


@pytest.mark.parametrize("start", range(0, len(PAYLOADS), AT_ONCE))
def test_no_page_lets_a_text_become_markup(start: int, root: Client) -> None:
    """O2: every field on every page; each payload comes back escaped, and never as it was given."""
    payloads = PAYLOADS[start : start + AT_ONCE]
    for name, address in pages(" ".join(payloads)).items():
        answer = root.get(address)
        page = answer.content.decode()
        if name == "printed":
            assert answer["Content-Type"].startswith("text/plain")
            assert answer["X-Content-Type-Options"] == "nosniff"
            continue
        for payload in payloads:
            assert html.escape(payload) in page, name
            assert payload not in page or html.escape(payload) == payload, name


@pytest.mark.parametrize("text", INVISIBLE)
def test_no_page_shows_a_text_without_what_is_hidden_in_it(text: str, root: Client) -> None:
    """F5: a character that cannot be seen, or that misleads, is an escape on every page."""
    hidden = [character for character in text if not character.isprintable() or character in "\u3164\u0430\u0339"]
    for name, address in pages(f"before {text} after").items():
        page = root.get(address).content.decode()
        for character in hidden:
            shown = page.replace("\n", "").replace("\r", "") if character in "\r\n" else page
            assert character not in shown, f"{character!r} on {name}"
        assert "before" in page, name
        assert re.search(r"\\[xuU][0-9a-f]|\\r|\ufffd", page), name


def test_every_answer_carries_the_strict_policy(root: Client) -> None:
    """Rules of INTEGRITY 4: default-src 'self' with nothing inline, no frame, no other form target, no cache."""
    for address in (reverse("admin:index"), reverse("admin:login"), reverse("admin:observations_scope_changelist")):
        answer = root.get(address, follow=True)
        policy = answer["Content-Security-Policy"]
        for directive in ("default-src 'self'", "object-src 'none'", "base-uri 'none'", "frame-ancestors 'none'"):
            assert directive in policy
        assert "unsafe" not in policy
        assert answer["X-Frame-Options"] == "DENY"
        assert "no-store" in answer["Cache-Control"]


def test_no_template_of_ours_is_inline_or_unescaped() -> None:
    """O2: no script body, handler, style or unescaped text in any template; a structural test says where."""
    from django.conf import settings

    forbidden = re.compile(
        r"\|\s*safe|autoescape\s+off|mark_safe|\son\w+=|\sstyle=|<style|<script(?![^>]*\ssrc=)|javascript:", re.I
    )
    wrong = []
    for template in sorted((settings.BASE_DIR / "templates").rglob("*.html")):
        found = forbidden.search(template.read_text(encoding="utf-8"))
        if found:
            wrong.append(f"{template.name}: {found.group()}")
    assert wrong == []


def test_a_search_is_posted_and_leaves_no_trace(root: Client) -> None:
    """ASVS 14.2.1: what was typed is in no address, no session and no log of the admin."""
    world(mark="umbrella")
    address = reverse("admin:observations_observation_search")
    found = root.post(address, {"q": "umbrella relay"})
    assert [row.text for row in found.context["rows"]]
    assert all("umbrella" in row.text and "relay" in row.text for row in found.context["rows"])
    assert root.get(address, {"q": "umbrella"}).status_code == 302
    assert "umbrella" not in str(dict(root.session.items()))
    assert LogEntry.objects.count() == 0
    assert 'method="post"' in found.content.decode()


def test_a_search_finds_ids_and_survives_anything(root: Client) -> None:
    """An id leads to its page; no query is an error page (G2)."""
    mine = world()
    address = reverse("admin:observations_observation_search")
    for query in (f"obs_{mine.derived.pk}", str(mine.derived.pk), mine.derived.external_id):
        assert root.post(address, {"q": query})["Location"].endswith(f"/{mine.derived.pk}/")
    for query in (*PAYLOADS, *INVISIBLE, "\x00", "'", '"', "a & | ! ( )", ":*", "-", "\\", "9" * 190, "%", "x" * 5_000):
        assert root.post(address, {"q": query, "page": "9" * 50}).status_code in (200, 302)


def test_looking_changes_nothing_but_what_was_opened(root: Client) -> None:
    """O3: every page asked for twice; the second time no row of ours changes."""
    addresses = [*pages("plain").values(), *(reverse(f"admin:{name}") for name in ("observations_event_changelist",))]

    def rows() -> list[tuple[object, ...]]:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT relname, n_tup_ins + n_tup_upd + n_tup_del FROM pg_stat_xact_user_tables"
                " WHERE relname ~ '^(observations|consolidation|django_admin)' ORDER BY 1"
            )
            return list(cursor.fetchall())

    for address in addresses:
        root.get(address)
    before = rows()
    for address in addresses:
        root.get(address)
    assert rows() == before


def test_texts_are_shown_from_a_login_to_nobody_else() -> None:
    """Trap 12, ASVS 6.3.1: ten wrong passwords lock the account for the address, with a page that says so."""
    person("rita", "Reviewer", "team-a/*", password=PASSWORD)
    client = Client()
    address = reverse("admin:login")
    for _ in range(10):
        answer = client.post(address, {"username": "rita", "password": "wrong"})
    assert answer.status_code == 429
    page = answer.content.decode()
    assert "Locked for a while" in page
    assert "opens again after 15 minutes;" in page
    assert client.post(address, {"username": "rita", "password": PASSWORD}).status_code == 429


@pytest.mark.parametrize("target", ["//evil.example", "https://evil.example", "/\\evil.example", "javascript:alert(1)"])
def test_signing_in_leads_to_the_desk_when_the_address_named_another_site(target: str) -> None:
    """Trap 13: no open redirect, and no page that is not there either."""
    person("rita", "Reviewer", "team-a/*", password=PASSWORD)
    sent = {"username": "rita", "password": PASSWORD, "next": target}
    answer = Client().post(reverse("admin:login"), sent)
    assert (answer.status_code, answer.headers["Location"]) == (302, reverse("admin:index"))


def test_a_wrong_password_is_told_in_our_words() -> None:
    """The login page keeps what Django says and nothing more."""
    answer = Client().post(reverse("admin:login"), {"username": "nobody", "password": "x"})
    assert "Please enter the correct username and password" in answer.content.decode()


@pytest.mark.parametrize("next_page", ["//evil.example", "https://evil.example", "javascript:alert(1)"])
def test_a_login_leads_nowhere_else(next_page: str) -> None:
    """Trap 13, O4: the page after the login is one of ours."""
    person("rita", "Reviewer", "team-a/*", password=PASSWORD)
    data = {"username": "rita", "password": PASSWORD, "next": next_page}
    answer = Client().post(reverse("admin:login"), data)
    assert answer.status_code == 302
    assert "evil" not in answer["Location"]
    assert "javascript" not in answer["Location"]


def test_an_erased_row_is_shown_as_erased(root: Client) -> None:
    """The shell stays readable: its pages, its operations and its lineage, without a word of its text."""
    mine: World = world(mark="umbrella")
    row = mine.prune.sources.get().observation_id
    assert row is not None
    with transaction.atomic():
        store.erase(scope_id=mine.scope.pk, ids=[row], by="test", reason="asked", request="forget:1")
    for address in (
        reverse("admin:observations_observation_change", args=[row]),
        item_url(mine.prune),
        reverse("admin:consolidation_plan_change", args=[mine.plan.pk]),
    ):
        page = root.get(address).content.decode()
        assert "Queue was long" not in page
        assert "erased" in page


def test_nothing_is_decided_without_the_forms_own_token() -> None:
    """ASVS 3.5.1: a form of another site, posted by a signed-in browser, is refused before anything is read of it."""
    mine = world()
    client = Client(enforce_csrf_checks=True)
    client.force_login(person("root", superuser=True), backend="django.contrib.auth.backends.ModelBackend")
    for page, args in (
        ("consolidation_operation_decide_one", [mine.merge.pk]),
        ("consolidation_operation_decide", []),
        ("consolidation_plan_apply", [mine.plan.pk]),
        ("consolidation_plan_undo", [mine.plan.pk]),
        ("consolidation_plan_new", []),
        ("consolidation_pause_set", []),
        ("observations_observation_search", []),
    ):
        data = {"verb": "reject", "reason": "x", "all": "1", "q": "x", "target": "everything"}
        assert client.post(reverse(f"admin:{page}", args=args), data).status_code == 403, page


def test_a_failure_is_told_in_our_words_under_the_policy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The page of a 500 says that nothing may be taken for done, carries no detail, and has its header (ASVS 3.4.3)."""

    def broken(_request: object) -> dict[str, object]:
        raise RuntimeError("a detail that is nobody's business")

    monkeypatch.setattr("consolidation.admin.desk.desk", broken)
    client = client_of(person("rita", "Reviewer", "team-a/*"))
    client.raise_request_exception = False
    answer = client.get(reverse("admin:index"))
    page = answer.content.decode()
    assert answer.status_code == 500
    assert "Something went wrong" in page
    assert "a detail" not in page
    assert "default-src 'self'" in answer.headers["Content-Security-Policy"]

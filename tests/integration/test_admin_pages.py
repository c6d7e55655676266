"""Every page of the admin at once (tests/pages.py): that none is left out, that hostile text in every field is text on
all of them, that times are marked as times, and that no page asks the database more the more there is.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping

import pytest
from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import NoReverseMatch, get_resolver, path, reverse
from hypothesis import given
from hypothesis import strategies as st

from consolidation.measures import journal
from consolidation.operations import visible
from observations.models import Observation
from tests.building import observe, scope, tell
from tests.desk import client_of, person
from tests.keeping import kept
from tests.pages import NO_PAGES, Furnished, Memory, address, memory, names, of_no_scope, pages

pytestmark = pytest.mark.django_db(transaction=True)  # the world is built once: tests/keeping.py

HOSTILE = (
    "<script>alert(1)</script>\u202egnp.exe \u2066of\u2069 zero\u200bwidth tag\U000e0041 soft\u00adhyphen bell\x07 "
    "nul\x00l line\u2028end private\ue000use fill\u3164er p\u0430ypal z\u0335\u0336\u0337\u0338\u0339a "
    "{{ request.user }} {% load x %} ' onmouseover='alert(1) \U0001f600 \u0645\u0631\u062d\u0628\u0627"
)
UNSEEN = ("Cc", "Cf", "Co", "Cn", "Cs", "Zl", "Zp")
WORD = "x" * 300_000
PAGE = 400_000  # bytes that a page may have, whatever stands in memory
_TIME = re.compile(r"\b\d{1,2} [A-Z][a-z]{2} \d{4}, \d\d:\d\d")
_FILLED = re.compile(r'<textarea.*?</textarea>|value="[^"]*"', re.S)  # to be edited, a text has to be what it is
_MARKED = re.compile(r"<time datetime=[^>]*>[^<]*</time>")


@kept
def hostile() -> Furnished:
    """A store that holds hostile text wherever somebody can write one."""
    shared = of_no_scope()
    return Furnished(memory(mark=HOSTILE), shared)


@pytest.fixture
def store() -> Furnished:
    """What the pages are about; brought back before anybody signs in."""
    return hostile()


@pytest.fixture
def root(store: Furnished) -> Client:
    """A superuser, whom every page opens to."""
    return client_of(person("root", superuser=True))


def fetched(client: Client, addresses: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Name and text of each page."""
    for name, where in addresses.items():
        answer = client.get(where)
        assert answer.status_code == 200, f"{name}: {answer.status_code} at {where}"
        assert answer["Content-Type"].startswith("text/html"), name
        yield name, answer.content.decode()


def unseen(page: str) -> set[str]:
    """What a reader of a page could not see of it, or could be misled by."""
    found = {one for one in set(page) - set("\n\t") if unicodedata.category(one) in UNSEEN or one == "\u3164"}
    return found | set(re.findall("p\u0430ypal|\u0338\u0339", page))


def without_its_time(page: str) -> list[str]:
    """Times that stand in a page as bare text."""
    return _TIME.findall(_MARKED.sub("", page))


def test_every_address_is_a_page_of_the_list_or_says_why_not(store: Furnished, root: Client) -> None:
    """E.10: tests of every page share one list. A new address needs its arguments in tests/pages.py, or a line in
    NO_PAGES there.
    """
    assert names() >= NO_PAGES, "no longer an address: take it out of NO_PAGES"
    for name, page in fetched(root, store.addresses):
        assert page.count("<h1") == 1, f"{name}: one heading of the first level"
        assert without_its_time(page) == [], name


def test_an_address_that_the_list_does_not_know_is_found(store: Furnished, monkeypatch: pytest.MonkeyPatch) -> None:
    """The naive control: an address of any app, and one without a name, counts, and cannot be opened unregistered."""

    def nothing(_request: HttpRequest) -> HttpResponse:
        return HttpResponse("")

    new = [path("new/<int:pk>/", nothing, name="auth_group_new"), path("unnamed/", nothing)]
    monkeypatch.setattr(get_resolver(), "url_patterns", [*get_resolver().url_patterns, *new])
    assert {"auth_group_new", "unnamed/"} <= names()
    with pytest.raises(NoReverseMatch):
        pages(store.mine, store.shared)


def test_hostile_text_in_every_field_is_text_on_every_page(store: Furnished, root: Client) -> None:
    """E, must hold; F5, O2: markup, template words, direction, tags, what is not seen and what piles up."""
    wrong, shown = [], 0
    for name, page in fetched(root, store.addresses):
        wrong += [f"{name}: {one!r}" for one in unseen(_FILLED.sub("", page))]
        if "<script>alert" in page or "onmouseover='alert" in page:
            wrong.append(f"{name}: markup")
        shown += "&lt;script&gt;alert(1)" in page
    assert not wrong, "\n".join(wrong)
    assert shown > 30, "the world holds the text that its pages are tested with"


def test_a_word_of_300_kb_is_shown_in_part_and_its_length_is_told(root: Client) -> None:
    """E, must hold: no page grows with what somebody wrote."""
    within = scope("team-a/long")
    row, turn = observe(WORD, within=within, sources=["u:" + "y" * 900]), tell(WORD, within=within)
    addresses = {
        "observation": reverse("admin:observations_observation_change", args=[row.pk]),
        "observations": reverse("admin:observations_observation_changelist"),
        "episode": reverse("admin:observations_episode_change", args=[turn.pk]),
        "episodes": reverse("admin:observations_episode_changelist"),
    }
    for name, page in fetched(root, addresses):
        assert len(page) < PAGE, name
        assert "x" * 100 in page
    assert len(Observation.objects.get(pk=row.pk).text or "") == len(WORD)


def test_the_naive_control_tells_nothing_apart() -> None:
    """A check that finds nothing in a page that shows a text as it stands would prove nothing."""
    assert {"\u202e", "\u200b", "\U000e0041", "\x07", "\u3164", "p\u0430ypal"} <= unseen(f"<p>{HOSTILE}</p>")
    assert without_its_time("<p>at 1 Dec 2026, 00:12</p>") == ["1 Dec 2026, 00:12"]


@given(st.text(st.characters(), max_size=60))
def test_no_character_that_cannot_be_seen_leaves_the_one_escape(text: str) -> None:
    """F5: whatever the code point, whatever is beside it; nothing is left out, and twice is once."""
    shown = visible(text)
    assert {unicodedata.category(one) for one in shown}.isdisjoint(UNSEEN)
    marks = re.sub(r"[^M]", " ", "".join("M" if unicodedata.category(one) in ("Mn", "Me") else "-" for one in shown))
    assert max(map(len, marks.split()), default=0) <= 3
    assert visible(shown) == shown
    assert len(shown) >= len(text)


# --- queries ----------------------------------------------------------------------------------------------------------


def counted(client: Client, mine: Memory, shared: Mapping[str, object]) -> dict[str, int]:
    """How many queries each page runs."""
    found = {}
    for name in sorted(names() - NO_PAGES):
        with CaptureQueriesContext(connection) as captured:
            client.get(address(name, mine, shared))
        found[name] = len(captured)
    return found


def test_no_page_asks_more_the_more_there_is(store: Furnished, root: Client) -> None:
    """STYLE 20, E must hold: a store of three times as many rows of every sort, page by page."""
    shared, mine = store.shared, store.mine
    journal._closed.clear()  # days that the desk remembers of an earlier test would be read only in the second look
    for opened in ("consolidation_operation_change", "consolidation_operation_focus"):
        root.get(address(opened, mine, shared))  # the first look marks it opened
    few = counted(root, mine, shared)
    for number in (2, 3):
        memory(f"team-a/u{number}")
    many = counted(root, mine, shared)
    grown = {name: (few[name], many[name]) for name in few if many[name] > few[name]}
    assert grown == {}

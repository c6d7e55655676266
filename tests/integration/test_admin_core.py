"""Core memory and residue in the admin: edits by hand, both sides of a lost race, revisions word by word (R120)."""

from __future__ import annotations

import html
from typing import Any

import pytest
from django.test import Client

from observations import ingest
from observations.models import CoreMemory, CoreRevision, Scope
from tests.building import scope
from tests.desk import client_of, person
from tests.integration.test_admin_races import at_once
from tests.writing import residue, revisions, where

pytestmark = pytest.mark.django_db


@pytest.fixture
def stella() -> Client:
    """A steward of team-a."""
    return client_of(person("stella", "Steward", "team-a/*"))


def persona(within: Scope, value: str = "Kind.\nBrief.", *, read_only: bool = False) -> CoreMemory:
    """A core memory at revision 1."""
    ingest.create_core(scope=within, label="persona", value=value, by="stella", read_only=read_only)
    return CoreMemory.objects.get(scope=within, label="persona")


def edit(client: Client, core: CoreMemory, way: str, *, revision: int = 1, **fields: Any) -> tuple[int, str]:
    """Post one edit; the status and the page that comes of it."""
    data = {"way": way, "revision": str(revision), **fields}
    answer = client.post(where("corememory", "edit", core.pk), data, follow=True)
    core.refresh_from_db()
    return answer.status_code, answer.content.decode()


# --- editing --------------------------------------------------------------------------------------------------------


def test_each_way_of_editing_is_a_revision_by_the_person(stella: Client) -> None:
    """The line ends that a browser sends are line ends."""
    core = persona(scope())
    assert edit(stella, core, "append", text="Asks first.")[0] == 200
    assert core.value == "Kind.\nBrief.\nAsks first."
    edit(stella, core, "replace", revision=2, old="Kind.\r\nBrief.", new="Kind and\r\nbrief.")
    assert core.value == "Kind and\nbrief.\nAsks first."
    edit(stella, core, "rethink", revision=3, value="\r\nAll new.")
    assert revisions(core) == [
        (1, "create", "Kind.\nBrief."),
        (2, "append", "Kind.\nBrief.\nAsks first."),
        (3, "replace", "Kind and\nbrief.\nAsks first."),
        (4, "rethink", "\nAll new."),
    ]
    assert set(CoreRevision.objects.values_list("by", flat=True)) == {"stella"}


def test_a_form_gives_back_exactly_the_text_it_shows(stella: Client) -> None:
    """A browser drops the first line end of a text field: the page sends one more. Saved as shown, nothing changes."""
    core = persona(scope(), "\n  two spaces, then\n\n")
    page = stella.get(where("corememory", "change", core.pk)).content.decode()
    field = page.partition('<textarea id="whole"')[2].partition(">")[2].partition("</textarea>")[0]
    assert field.startswith("\n\n  two spaces")
    shown = html.unescape(field.removeprefix("\n")).replace("\n", "\r\n")
    status, page = edit(stella, core, "rethink", value=shown)
    assert "Nothing was changed" in page
    assert (status, core.revision) == (200, 1)


def test_what_cannot_be_seen_is_an_escape_in_the_form_and_is_not_lost_by_saving_it(stella: Client) -> None:
    """F5: the override character is shown; left as it is, it stays a character; edited, it is what the person saw."""
    core = persona(scope(), "name\u202egnp.exe")
    page = stella.get(where("corememory", "change", core.pk)).content.decode()
    assert "\u202e" not in page
    assert "characters that cannot be seen" in page
    edit(stella, core, "rethink", value="name\\u202egnp.exe")
    assert (core.value, core.revision) == ("name\u202egnp.exe", 1)
    edit(stella, core, "append", text="kept")
    assert core.value == "name\u202egnp.exe\nkept"
    edit(stella, core, "rethink", revision=2, value="name\\u202egnp.exe, mended")
    assert core.value == "name\\u202egnp.exe, mended"


@pytest.mark.parametrize(
    ("way", "fields", "sentence"),
    [
        ("replace", {"old": "kind", "new": "x"}, "does not stand there, byte for byte"),
        ("replace", {"old": ".", "new": "x"}, "stands there 2 times"),
        ("replace", {"old": "", "new": "x"}, "does not stand there"),
        ("rethink", {"value": "x" * 2_001}, "would have 2,001 characters and may have 2,000"),
        ("append", {"text": "the key is AKIAIOSFODNN7EXAMPLE"}, "Not saved."),
        ("", {}, "Choose how to edit it."),
        ("drop", {}, "Choose how to edit it."),
    ],
)
def test_an_edit_that_cannot_be_is_refused_in_the_domains_words_and_keeps_what_was_written(
    way: str, fields: dict[str, Any], sentence: str, stella: Client
) -> None:
    core = persona(scope())
    status, page = edit(stella, core, way, **fields)
    assert status == 409
    assert sentence in page
    assert all(html.escape(text) in page for text in fields.values())
    assert core.revision == 1


@pytest.mark.parametrize("revision", ["", "x", "-1", "1.0", "9" * 30])
def test_a_form_without_its_revision_saves_nothing(revision: str, stella: Client) -> None:
    """Without it nobody could tell that somebody else was first."""
    core = persona(scope())
    answer = stella.post(where("corememory", "edit", core.pk), {"way": "rethink", "value": "x", "revision": revision})
    assert answer.status_code == 409
    core.refresh_from_db()
    assert core.revision == 1


def test_a_person_edits_what_programs_may_not() -> None:
    """Read-only is for programs; a reviewer edits it and does not set it."""
    core = persona(scope(), read_only=True)
    rita = client_of(person("rita", "Reviewer", "team-a/*"))
    edit(rita, core, "append", text="By hand.")
    assert core.value.endswith("By hand.")
    assert rita.post(where("corememory", "settings", core.pk), {"limit": "10"}).status_code == 403


# --- races ----------------------------------------------------------------------------------------------------------


def test_the_slower_of_two_reads_who_was_first_and_what_both_wrote(stella: Client) -> None:
    """And what they save next comes after it, knowingly: the form carries the new revision, and their words."""
    core = persona(scope())
    rita = client_of(person("rita", "Reviewer", "team-a/*"))
    edit(rita, core, "rethink", value="Rita was quick.")
    answer = stella.post(
        where("corememory", "edit", core.pk), {"way": "rethink", "revision": "1", "value": "Stella was slow."}
    )
    page = answer.content.decode()
    assert answer.status_code == 409
    race = answer.context["race"]
    assert (race.by, race.revision, race.theirs.plain, race.mine.plain) == (
        "rita",
        2,
        "Rita was quick.",
        "Stella was slow.",
    )
    assert [run.text for run in race.mine.words if run.own] == ["Stella", "slow"]
    assert "Not saved: rita was first." in page
    assert 'name="revision" value="2"' in page
    assert answer.context["form"].whole == "Stella was slow."
    core.refresh_from_db()
    assert core.value == "Rita was quick."
    edit(stella, core, "rethink", revision=2, value="Stella was slow.")
    assert [by for _, by in CoreRevision.objects.order_by("number").values_list("number", "by")] == [
        "stella",
        "rita",
        "stella",
    ]


@pytest.mark.parametrize(("way", "field"), [("append", "text"), ("replace", "new")])
def test_a_race_that_a_part_lost_keeps_the_part(way: str, field: str, stella: Client) -> None:
    core = persona(scope())
    ingest.append_core(scope=core.scope, label="persona", text="By a program.", by="token:abc")
    answer = stella.post(
        where("corememory", "edit", core.pk), {"way": way, "revision": "1", "old": "Kind.", field: "Mine."}
    )
    race = answer.context["race"]
    assert (answer.status_code, race.by, race.mine.plain) == (409, "token:abc", "Mine.")
    assert race.theirs.plain == "Kind.\nBrief.\nBy a program."
    assert getattr(answer.context["form"], field) == "Mine."


@pytest.mark.django_db(transaction=True)
def test_of_two_edits_at_once_one_is_saved_and_the_other_told() -> None:
    """C16, over two connections: in every round one revision more, and no edit lost unseen."""
    core = persona(scope())
    clients = [client_of(person(name, "Reviewer", "*")) for name in ("ana", "ben")]
    for number in range(1, 9):
        answers = at_once(
            *(
                lambda client=client, number=number, name=name: (
                    client.post(
                        where("corememory", "edit", core.pk),
                        {"way": "rethink", "revision": str(number), "value": f"{name} {number}"},
                    ).status_code
                )
                for client, name in zip(clients, ("ana", "ben"), strict=True)
            )
        )
        assert sorted(answers) == [302, 409]
        core.refresh_from_db()
        won = "ana" if answers[0] == 302 else "ben"
        assert (core.revision, core.value) == (number + 1, f"{won} {number}")


# --- revisions ------------------------------------------------------------------------------------------------------


def test_revisions_are_a_timeline_of_what_each_edit_added_and_removed(stella: Client) -> None:
    """Newest first; programs and people by their names."""
    core = persona(scope(), "Kind and brief.")
    ingest.replace_core(scope=core.scope, label="persona", old="brief", new="patient", by="token:abc")
    page = stella.get(where("corememory", "change", core.pk))
    newest, first = page.context["revisions"]
    assert [(run.text, run.sort) for run in newest.edit.runs] == [
        ("Kind and ", "same"),
        ("brief", "removed"),
        ("patient", "added"),
        (".", "same"),
    ]
    assert (newest.by, newest.action.word, first.action.word) == ("token:abc", "a part replaced", "created")
    assert "<del>brief</del><ins>patient</ins>" in page.content.decode()


def test_the_newest_edit_is_undone_by_its_number_and_that_is_an_edit_too(stella: Client) -> None:
    core = persona(scope(), "Kind.")
    ingest.append_core(scope=core.scope, label="persona", text="Wrong.", by="token:abc")
    page = stella.get(where("corememory", "change", core.pk)).content.decode()
    assert "Undo revision 2" in page
    address = where("corememory", "undo", core.pk)
    stella.post(address, {"revision": "2"})
    core.refresh_from_db()
    assert (core.value, core.revision) == ("Kind.", 3)
    stale = stella.post(address, {"revision": "2"})
    assert stale.status_code == 409
    assert "Not saved: stella was first." in stale.content.decode()
    core.refresh_from_db()
    assert core.revision == 3


def test_the_first_revision_cannot_be_undone(stella: Client) -> None:
    core = persona(scope())
    assert "Undo revision" not in stella.get(where("corememory", "change", core.pk)).content.decode()
    answer = stella.post(where("corememory", "undo", core.pk), {"revision": "1"})
    assert "There is no earlier text" in answer.content.decode()


def test_a_long_past_is_paged_and_every_edit_is_beside_the_one_before(stella: Client) -> None:
    core = persona(scope(), "0")
    for number in range(1, 13):
        ingest.rethink_core(scope=core.scope, label="persona", value=str(number), by="rita")
    second = stella.get(where("corememory", "change", core.pk), {"page": "2"}).context["revisions"]
    assert [one.number for one in second] == [3, 2, 1]
    assert [run.sort for run in second[0].edit.runs] == ["removed", "added"]
    assert [(run.text, run.sort) for run in second[-1].edit.runs] == [("0", "added")]


# --- making and setting ---------------------------------------------------------------------------------------------


def test_a_steward_makes_one_and_sets_what_it_may_be(stella: Client) -> None:
    here = scope()
    data = {"scope": str(here.pk), "label": "human", "value": "Likes tea.", "limit": "40", "description": "Who"}
    page = stella.post(where("corememory", "new"), data, follow=True).content.decode()
    assert "Likes tea." in page
    core = CoreMemory.objects.get()
    assert (core.label, core.limit, core.read_only, revisions(core)[0][1]) == ("human", 40, False, "create")
    settings = where("corememory", "settings", core.pk)
    stella.post(settings, {"description": "Whom it talks to", "limit": "60", "read_only": "1"})
    core.refresh_from_db()
    assert (core.description, core.limit, core.read_only, core.revision) == ("Whom it talks to", 60, True, 1)
    for limit in ("3", "0", "x", "20001", ""):
        assert stella.post(settings, {"limit": limit}).status_code == 409, limit
    core.refresh_from_db()
    assert core.limit == 60


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"label": "persona"}, "already"),
        ({"label": "Human"}, "A label has"),
        ({"scope": "999999"}, "Choose the scope"),
        ({"scope": "x"}, "Choose the scope"),
        ({"limit": "2"}, "may have 2"),
    ],
)
def test_what_cannot_be_made_is_said(fields: dict[str, str], sentence: str, stella: Client) -> None:
    core = persona(scope())
    data = {"scope": str(core.scope_id), "label": "human", "value": "Likes tea.", "limit": "40", **fields}
    answer = stella.post(where("corememory", "new"), data)
    assert answer.status_code == 409
    assert sentence in html.unescape(answer.content.decode())
    assert "Likes tea." in answer.content.decode()
    assert CoreMemory.objects.count() == 1


def test_nobody_makes_core_memory_in_a_scope_they_may_not_see(stella: Client) -> None:
    """Trap 7: the form lists no other scope, and posting its number finds none."""
    other = scope("team-b/u1")
    assert "team-b" not in stella.get(where("corememory", "new")).content.decode()
    data = {"scope": str(other.pk), "label": "human", "limit": "40"}
    assert stella.post(where("corememory", "new"), data).status_code == 409
    assert not CoreMemory.objects.exists()


# --- residue --------------------------------------------------------------------------------------------------------


def test_residue_says_when_each_item_drops_and_what_is_in_no_prompt_any_more() -> None:
    """Three days from when it was first held, by the database's clock."""
    here = scope()
    residue(here, "The build is green")
    residue(here, "The build was red", days_ago=3.1)
    vera = client_of(person("vera", "Viewer", "team-a/*"))
    page = vera.get(where("residue"))
    assert [(row.text, row.gone) for row in page.context["rows"]] == [
        ("The build is green", False),
        ("The build was red", True),
    ]
    assert "in no prompt any more" in page.content.decode()

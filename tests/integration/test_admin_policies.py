"""Policies in the admin: who may read and change which, what is shown before it is saved, and what is refused (R32,
R42).
"""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from consolidation import calibrating
from consolidation.calibration import Band, Measured
from consolidation.models import Policy, PolicyRevision
from consolidation.policy import Policy as Rules
from consolidation.policy import Trigger
from observations.embedding import HASHING
from observations.models import Event
from tests.building import scope
from tests.desk import client_of, person
from tests.policies import address, entered, page_text, preview, rules_of, save, stored

pytestmark = pytest.mark.django_db
ENOUGH = Measured((Band(0.9, different=1_000),))  # pairs for a calibration to hold

ROLES = ("Viewer", "Reviewer", "Operator", "Steward")


@pytest.fixture
def stella() -> Client:
    """A steward of team-a/*."""
    return client_of(person("stella", "Steward", "team-a/*"))


@pytest.fixture
def root() -> Client:
    """A superuser."""
    return client_of(person("root", superuser=True))


# --- who may --------------------------------------------------------------------------------------------------------

PAGES = ("changelist", "change", "versions", "holds", "new", "questions", "edit", "remove")
WRITES = {"new": ("Steward",), "questions": ("Steward",), "edit": ("Steward",), "remove": ()}


def test_every_page_opens_to_the_roles_of_its_row_and_to_nobody_else() -> None:
    """ASVS 8.2.1: GET and POST as each role, as a superuser and as a stranger; nothing is written by any of them."""
    within = scope("team-a/u1")
    row = stored()
    args = {"holds": [within.pk], "change": [row.pk], "versions": [row.pk], "edit": [row.pk], "remove": [row.pk]}
    people = {role: client_of(person(role.lower(), role, "team-a/*")) for role in ROLES}
    people["superuser"] = client_of(person("root", superuser=True))
    wrong = []
    for page in PAGES:
        where = address(page, *args.get(page, []))
        for role, client in people.items():
            may = page not in WRITES or role in (*WRITES[page], "superuser")
            for answer in (client.get(where), client.post(where, {})):
                if (answer.status_code == 403) == may:
                    wrong.append(f"{page} as {role}: {answer.status_code}")
        stranger = Client().get(where)
        assert stranger.status_code == 302
        assert "/login/" in stranger["Location"]
    assert wrong == []
    assert PolicyRevision.objects.count() == 1


def test_a_policy_of_another_scope_is_not_there(stella: Client) -> None:
    """I2p: it answers exactly as one that does not exist."""
    other, within = stored("team-b/*"), scope("team-b/u1")
    for page in ("change", "edit", "versions"):
        assert stella.get(address(page, other.pk)).status_code == 404
        assert stella.get(address(page, 987654)).status_code == 404
        assert stella.post(address(page, other.pk), entered(version="1")).status_code == 404
    assert stella.get(address("holds", within.pk)).status_code == 404
    assert "team-b" not in page_text(stella.get(address("changelist")))
    assert "team-b" not in page_text(stella.get(address("questions")))


@pytest.mark.parametrize(
    ("mine", "shown"),
    [
        (("team-a/*",), {"*", "team-a/*", "team-a/u1", "team-a/deep/*"}),
        (("team-a/u1",), {"*", "team-a/*", "team-a/u1"}),
        (("team-a/deep/x",), {"*", "team-a/*", "team-a/deep/*"}),
        (("team-b/*",), {"*", "team-b/*"}),
        (("*",), {"*", "team-a/*", "team-a/u1", "team-a/deep/*", "team-b/*"}),
        ((), {"*"}),
    ],
)
def test_a_person_sees_the_policies_of_their_scopes_and_those_around_them(
    mine: tuple[str, ...], shown: set[str]
) -> None:
    for pattern in ("*", "team-a/*", "team-a/u1", "team-a/deep/*", "team-b/*"):
        stored(pattern)
    client = client_of(person("vera", "Viewer", *mine))
    assert {row.pattern for row in client.get(address("changelist")).context["rows"]} == shown


def test_a_steward_changes_only_patterns_inside_their_own(stella: Client) -> None:
    """'*' and what lies around holds for others too: it may be read, not changed."""
    scope("team-a/u1")
    for pattern, allowed in (("*", False), ("team-a/*", True), ("team-a/u1", True), ("team-a/u1/*", True)):
        row = stored(pattern)
        assert stella.get(address("change", row.pk)).status_code == 200
        answer = stella.post(address("edit", row.pk), entered(version=row.version, chain_cap=1))
        assert (answer.status_code == 403) is not allowed, pattern
        assert ("Change" in page_text(stella.get(address("change", row.pk)))) == allowed


@pytest.mark.parametrize("pattern", ["*", "team-b/*", "team-a", "team-b/u1", "team/*"])
def test_a_steward_begins_no_policy_outside_their_own(stella: Client, pattern: str) -> None:
    stored("team-b/u1")  # that it exists is not told
    answer = stella.post(address("new"), entered(pattern=pattern, version="0"))
    assert answer.status_code == 422
    assert answer.context["draft"].named.errors["pattern"] == [
        "You may set rules for the scopes you were given only: team-a/*."
    ]
    assert not Policy.objects.filter(updated_by="stella").exists()


def test_who_sees_every_scope_may_set_the_rules_of_every_scope() -> None:
    everywhere = client_of(person("sven", "Steward", "*"))
    assert save(everywhere, address("new"), entered(pattern="*", version="0", chain_cap=1)).status_code == 302
    assert Policy.objects.get(pattern="*").updated_by == "sven"


# --- what is shown before it is saved -------------------------------------------------------------------------------


def test_a_change_is_shown_with_old_and_new_before_anything_is_saved(stella: Client) -> None:
    row = stored(chain_cap=2)
    data = entered(
        Rules(chain_cap=2), version=row.version, chain_cap=1, prune="on", single_valued="lives in\n\nborn in "
    )
    looked = preview(stella, address("edit", row.pk), data)
    changed = {one.name: (one.old, one.new) for one in looked.context["changed"]}
    assert changed == {
        "chain_cap": ("2", "1"),
        "prune": ("off", "on"),
        "single_valued": ("none", "lives in, born in"),
    }
    text = page_text(looked)
    assert "Save version 2" in text
    assert "saved" in text
    assert "by seed" in text
    row.refresh_from_db()
    assert (row.version, row.body["chain_cap"]) == (1, 2)


def test_what_was_shown_is_saved_as_the_next_version_with_who_and_when(stella: Client) -> None:
    row = stored()
    answer = save(stella, address("edit", row.pk), entered(version=row.version, compact="on", trigger="records"))
    assert answer.status_code == 302
    row.refresh_from_db()
    kept = Rules.from_dict(row.body)
    assert (kept.compact, kept.trigger, row.version, row.updated_by) == (True, Trigger.RECORDS, 2, "stella")
    newest = PolicyRevision.objects.get(pattern="team-a/*", version=2)
    assert (newest.by, newest.body) == ("stella", row.body)
    event = Event.objects.get(action="policy_saved", actor="stella")
    assert event.subject == f"policy_{row.pk}"
    assert event.detail == {"pattern": "team-a/*", "version": 2, "changed": ["compact", "trigger"]}


def test_saving_anything_but_what_was_shown_shows_it_first(stella: Client) -> None:
    """The page cannot be made to save a change that nobody looked at."""
    row = stored()
    looked = preview(stella, address("edit", row.pk), entered(version=row.version, chain_cap=1))
    other = entered(version=row.version, chain_cap=0, shown=looked.context["shown"], save="1")
    answer = stella.post(address("edit", row.pk), other)
    assert answer.status_code == 200
    assert [one.new for one in answer.context["changed"]] == ["0"]
    row.refresh_from_db()
    assert row.version == 1


def test_a_save_without_a_look_shows_what_changes(stella: Client) -> None:
    row = stored()
    answer = stella.post(address("edit", row.pk), entered(version=row.version, chain_cap=1, save="1"))
    assert (answer.status_code, answer.context["previewed"]) == (200, True)
    row.refresh_from_db()
    assert row.version == 1


def test_saving_what_is_stored_already_writes_no_version(stella: Client) -> None:
    row = stored()
    answer = save(stella, address("edit", row.pk), entered(version=row.version))
    assert answer.status_code == 302
    row.refresh_from_db()
    assert (row.version, row.updated_by) == (1, "seed")
    assert not Event.objects.filter(actor="stella").exists()


def test_a_new_policy_begins_with_what_holds_there_now(stella: Client) -> None:
    """Narrowing a policy changes nothing by itself."""
    within = scope("team-a/u1")
    stored(compact=True, chain_cap=1)
    page = stella.get(address("new") + f"?scope={within.pk}")
    form = page.context["draft"].form
    assert (form["compact"].value(), form["chain_cap"].value()) == (True, 1)
    assert page.context["draft"].named["pattern"].value() == "team-a/u1"
    data = entered(Rules(compact=True, chain_cap=1), pattern="team-a/u1", version="0", grace_days=9)
    looked = preview(stella, address("new"), data)
    assert [one.name for one in looked.context["changed"]] == ["grace_days"]
    assert save(stella, address("new"), data).status_code == 302
    assert Policy.objects.get(pattern="team-a/u1").version == 1


def test_a_pattern_that_has_a_policy_is_changed_not_begun_again(stella: Client) -> None:
    stored()
    answer = stella.post(address("new"), entered(pattern="team-a/*", version="0"))
    assert answer.status_code == 422
    assert answer.context["draft"].named.errors["pattern"] == ["team-a/* has a policy already: change that one."]


def test_rules_of_age_are_rows_and_a_row_without_an_origin_is_none(stella: Client) -> None:
    """R47: no JSON is written by hand; a user's word cannot be chosen."""
    row = stored()
    rows = rules_of(
        {"stated_by": "tool", "older_than_days": "540", "only_unused": "on", "kind": "state"},
        {"stated_by": "", "older_than_days": "9"},
        {"stated_by": "outside", "older_than_days": "90"},
    )
    assert save(stella, address("edit", row.pk), entered(version=row.version, **rows)).status_code == 302
    row.refresh_from_db()
    assert row.body["retention"] == [
        {"stated_by": "tool", "older_than_days": 540, "only_unused": True, "kind": "state"},
        {"stated_by": "outside", "older_than_days": 90, "only_unused": False, "kind": None},
    ]
    text = page_text(stella.get(address("change", row.pk)))
    assert "tool, state, older than 540 days, never used; outside, older than 90 days" in text
    again = stella.get(address("edit", row.pk)).context["draft"].rules
    assert [form["stated_by"].value() for form in again] == ["tool", "outside", None, None]
    choices = [value for value, _ in again.forms[0].fields["stated_by"].choices]
    assert "user" not in choices


# --- what is refused ------------------------------------------------------------------------------------------------


def fault(answer: Any, field: str) -> list[str]:
    return list(answer.context["draft"].form.errors.get(field, []))


def test_a_threshold_below_the_measured_one_is_refused_with_both_figures(stella: Client) -> None:
    """R42: 0.9 is asked for, 0.95 was measured."""
    row = stored()
    answer = stella.post(address("edit", row.pk), entered(version=row.version, t_merge="0.9"))
    assert answer.status_code == 422
    assert fault(answer, "t_merge") == [
        "t_merge 0.9 is below 0.95, the threshold measured for hashing: raise it, or leave it empty."
    ]
    assert "Measured for hashing: 0.95." in page_text(answer)


def test_a_threshold_is_compared_with_the_newest_calibration(stella: Client) -> None:
    row = stored()
    calibrating.store(profile=HASHING, measured=ENOUGH, proposed=(0.85, 0.98), by="carl")
    answer = stella.post(address("edit", row.pk), entered(version=row.version, t_merge="0.97"))
    assert fault(answer, "t_merge") == [
        "t_merge 0.97 is below 0.98, the threshold measured for hashing: raise it, or leave it empty."
    ]
    assert save(stella, address("edit", row.pk), entered(version=row.version, t_merge="0.98")).status_code == 302


def test_every_fault_stands_at_its_field_and_nothing_is_saved(stella: Client) -> None:
    row = stored()
    data = entered(version=row.version, grace_days="0", blast_share="1.5", auto_support="60", chain_cap="3")
    answer = stella.post(address("edit", row.pk), data)
    assert answer.status_code == 422
    assert fault(answer, "grace_days") == ["It must be from 1 to 3650, not 0."]
    assert fault(answer, "blast_share") == ["It must be from 0.0 to 1.0, not 1.5."]
    assert fault(answer, "auto_support") == ["It must be from 3 to 50, not 60."]
    assert not fault(answer, "chain_cap")
    text = page_text(answer)
    assert "3 fields cannot be used" in text
    assert 'aria-invalid="true"' in text
    assert 'id="id_grace_days_error"' in text
    row.refresh_from_db()
    assert row.version == 1


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("grace_days", "", "Write a number here."),
        ("grace_days", "many", "Enter a whole number."),
        ("grace_days", "9" * 5000, "Enter a whole number."),
        ("blast_share", "nan", "Enter a number."),
        ("blast_share", "inf", "Enter a number."),
        ("trigger", "daily", "Select a valid choice. daily is not one of the available choices."),
        ("mergeable", ["opinion"], "Select a valid choice. opinion is not one of the available choices."),
        ("single_valued", "lives in\0", "Null characters are not allowed."),
        ("many_valued", "likes", "'likes' cannot hold one value and many: leave it out of one list."),
    ],
)
def test_what_cannot_be_meant_is_said_at_its_field(stella: Client, field: str, value: object, sentence: str) -> None:
    row = stored()
    data = entered(version=row.version, **{"single_valued": "Likes" if field == "many_valued" else "", field: value})
    answer = stella.post(address("edit", row.pk), data)
    assert answer.status_code == 422
    assert fault(answer, field) == [sentence]


@pytest.mark.parametrize(
    ("row", "field", "sentence"),
    [
        ({"stated_by": "tool", "older_than_days": ""}, "older_than_days", "a whole number from 1 to 36500."),
        ({"stated_by": "tool", "older_than_days": "0"}, "older_than_days", "a whole number from 1 to 36500."),
        ({"stated_by": "user", "older_than_days": "9"}, "stated_by", "Select a valid choice."),
    ],
)
def test_a_rule_of_age_that_cannot_be_used_says_so_in_its_row(
    stella: Client, row: dict[str, str], field: str, sentence: str
) -> None:
    """C10: a form that was tampered with cannot name a user's word."""
    policy = stored()
    answer = stella.post(address("edit", policy.pk), entered(version=policy.version, **rules_of(row)))
    assert answer.status_code == 422
    assert sentence in answer.context["draft"].rules.forms[0].errors[field][0]
    policy.refresh_from_db()
    assert policy.version == 1


@pytest.mark.parametrize("pattern", ["", "team-a/", "team-a//x", "team-a/*/x", "team-a/x*", "team-a/\u202ex"])
def test_a_pattern_of_another_form_is_refused(root: Client, pattern: str) -> None:
    answer = root.post(address("new"), entered(pattern=pattern, version="0"))
    assert answer.status_code == 422
    assert len(answer.context["draft"].named.errors["pattern"]) == 1
    assert not Policy.objects.exists()


@pytest.mark.parametrize(
    "data", [{}, {"version": "x"}, {"retention-TOTAL_FORMS": "9" * 40}, {"version": "1", "save": "1"}]
)
def test_a_broken_form_saves_nothing(stella: Client, data: dict[str, str]) -> None:
    row = stored()
    assert stella.post(address("edit", row.pk), data).status_code == 422
    row.refresh_from_db()
    assert row.version == 1


# --- how it is built ------------------------------------------------------------------------------------------------


@pytest.fixture
def form_page(stella: Client) -> str:
    """The form of a policy with a rule and predicates."""
    row = stored(single_valued=("<script>alert(1)</script>",))
    return page_text(stella.get(address("edit", row.pk)))


def test_every_field_of_a_policy_has_a_labelled_input(form_page: str) -> None:
    """Reached by keyboard and named for a screen reader: native inputs, each with its label or legend."""
    for name in Rules().to_dict():
        if name == "retention":
            assert 'for="id_retention-0-stated_by"' in form_page
        elif name in ("mergeable", "untouchable", "trigger", "two_person_kinds"):
            assert f'for="id_{name}_0"' in form_page
            assert f'<fieldset class="setting" aria-describedby="id_{name}_helptext"><legend>' in form_page
        else:
            assert f'<label for="id_{name}">' in form_page, name
            assert f'name="{name}"' in form_page


def test_the_form_has_nothing_inline_and_escapes_what_was_typed(form_page: str) -> None:
    """Strict CSP; a predicate is escaped like memory text."""
    body = form_page[form_page.index("<main") : form_page.index("</main>")]
    for forbidden in (" style=", "<style", "onclick", "onchange", "<script"):
        assert forbidden not in body
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in body


def count(client: Client, where: str) -> int:
    with CaptureQueriesContext(connection) as captured:
        assert client.get(where).status_code == 200
    return len(captured)


def test_the_list_runs_a_fixed_number_of_queries(stella: Client) -> None:
    """STYLE 20."""
    scope("team-a/u0")
    row = stored("team-a/*")
    before = [count(stella, address(page, *args)) for page, args in (("changelist", []), ("change", [row.pk]))]
    for number in range(1, 30):
        scope(f"team-a/u{number}")
        stored(f"team-a/u{number}")
    after = [count(stella, address(page, *args)) for page, args in (("changelist", []), ("change", [row.pk]))]
    assert before == after

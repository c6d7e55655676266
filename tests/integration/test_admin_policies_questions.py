"""The four questions in the admin: who is asked about what, and what becomes of the answers (R32, R33)."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.template.loader import render_to_string
from django.test import Client, RequestFactory
from django.urls import reverse

from consolidation import revising
from consolidation.admin.rules.policy_questions import open_questions
from consolidation.asking import QUESTIONS
from consolidation.models import Policy
from consolidation.policy import Policy as Rules
from consolidation.policy import Trigger
from observations.models import Scope
from observations.records import MemoryKind
from tests.building import scope
from tests.desk import client_of, person

pytestmark = pytest.mark.django_db

ADDRESS = reverse("admin:consolidation_policy_questions")


@pytest.fixture
def stella() -> User:
    """A steward of team-a/*."""
    return person("stella", "Steward", "team-a/*")


def given(**fields: object) -> dict[str, object]:
    """What a browser sends when nothing but these was touched."""
    usual = {"pattern": "team-a/u1", "merge": list(MemoryKind), "keep_days": "0", "trigger": "", "every": "500"}
    return {**usual, **fields}


def held(pattern: str = "team-a/u1") -> Rules:
    return Rules.from_dict(Policy.objects.get(pattern=pattern).body)


def offered(answer: Any) -> list[str]:
    return [value for value, _ in answer.context["form"].fields["pattern"].choices if value]


def test_the_page_asks_all_four_with_what_holds_unanswered(stella: User) -> None:
    within = scope("team-a/u1")
    text = client_of(stella).get(f"{ADDRESS}?scope={within.pk}").content.decode()
    for question in QUESTIONS:
        assert question.words in text
        assert f"Unanswered: {question.unanswered}." in text
    assert "Four questions about team-a/u1" in text
    for name in ("pattern", "keep_days", "every"):
        assert f'<label for="id_{name}">' in text
    for name in ("merge", "never", "trigger"):
        assert f'for="id_{name}_0"' in text


def test_the_answers_become_the_policy_of_the_scope(stella: User) -> None:
    within = scope("team-a/u1")
    data = given(merge=["fact"], never=["identity"], keep_days="30", trigger="records", every="40")
    answer = client_of(stella).post(f"{ADDRESS}?scope={within.pk}", data, follow=True)
    assert "Answered: the policy of team-a/u1 is version 1." in answer.content.decode()
    found = held()
    assert (found.mergeable, found.untouchable, found.keep_days) == ((MemoryKind.FACT,), (MemoryKind.IDENTITY,), 30)
    assert (found.trigger, found.every_records) == (Trigger.RECORDS, 40)
    assert Policy.objects.get().updated_by == "stella"


def test_what_was_not_decided_stays_as_it_is(stella: User) -> None:
    scope("team-a/u1")
    assert client_of(stella).post(ADDRESS, given(keep_days="")).status_code == 302
    assert held() == Rules(trigger=Trigger.SCHEDULE)


def test_nothing_ticked_means_that_a_person_is_asked_about_every_merge(stella: User) -> None:
    scope("team-a/u1")
    client_of(stella).post(ADDRESS, given(merge=[]))
    assert held().mergeable == ()


def test_a_person_is_asked_only_about_what_is_theirs_and_has_no_policy(stella: User) -> None:
    one, two = scope("team-a/u1"), scope("team-a/deep/u2")
    scope("team-b/u1")
    client = client_of(stella)
    assert offered(client.get(ADDRESS)) == ["team-a/*", "team-a/deep/u2", "team-a/u1"]
    assert offered(client.get(f"{ADDRESS}?scope={two.pk}")) == ["team-a/deep/u2", "team-a/deep/*", "team-a/*"]
    revising.revise(pattern="team-a/*", policy=Rules(), by="seed", version=revising.NEW)
    assert offered(client.get(f"{ADDRESS}?scope={one.pk}")) == ["team-a/u1"]


@pytest.mark.parametrize("pattern", ["*", "team-b/*", "team-b/u1", "team-a/", "", "team-a/*\0"])
def test_no_other_pattern_can_be_sent(stella: User, pattern: str) -> None:
    scope("team-a/u1")
    scope("team-b/u1")
    answer = client_of(stella).post(ADDRESS, given(pattern=pattern))
    assert answer.status_code == 422
    assert "pattern" in answer.context["form"].errors
    assert not Policy.objects.exists()


def test_a_scope_of_others_is_not_there(stella: User) -> None:
    """I2p."""
    other = scope("team-b/u1")
    for asked in (other.pk, 987654):
        assert client_of(stella).get(f"{ADDRESS}?scope={asked}").status_code == 404
    assert client_of(stella).get(f"{ADDRESS}?scope=x").status_code == 200


@pytest.mark.parametrize(
    ("fields", "name", "sentence"),
    [
        ({"keep_days": "-1"}, "keep_days", "It must be from 0 to 36500, not -1."),
        ({"trigger": "records", "every": "0"}, "every", "It must be from 1 to 1000000, not 0."),
        ({"never": ["opinion"]}, "never", "Select a valid choice. opinion is not one of the available choices."),
    ],
)
def test_an_answer_that_cannot_be_used_says_so_at_its_question(
    stella: User, fields: dict[str, object], name: str, sentence: str
) -> None:
    scope("team-a/u1")
    answer = client_of(stella).post(ADDRESS, given(**fields))
    assert answer.status_code == 422
    assert answer.context["form"].errors[name] == [sentence]
    assert not Policy.objects.exists()


def test_where_every_pattern_has_a_policy_nothing_is_asked(stella: User) -> None:
    within = scope("team-a/u1")
    for pattern in ("team-a/*", "team-a/u1"):
        revising.revise(pattern=pattern, policy=Rules(), by="seed", version=revising.NEW)
    for address in (ADDRESS, f"{ADDRESS}?scope={within.pk}"):
        assert "has a policy already: change that one." in client_of(stella).get(address).content.decode()


# --- on a plan's page -------------------------------------------------------------------------------------------------


def include(user: User, scopes: list[Scope]) -> str:
    """What the include puts on a plan's page."""
    request = RequestFactory().get("/")
    request.user = user
    return render_to_string("admin/consolidation/policy/asked.html", open_questions(scopes=scopes, request=request))


def test_a_plan_says_which_of_its_scopes_are_unanswered_and_where_to_answer(stella: User) -> None:
    within = scope("team-a/u1")
    text = include(stella, [within])
    assert "Four questions are open" in text
    assert f'href="{ADDRESS}?scope={within.pk}"' in text
    for question in QUESTIONS:
        assert question.unanswered in text


def test_who_may_not_answer_reads_what_holds_without_a_link() -> None:
    text = include(person("vera", "Viewer", "team-a/*"), [scope("team-a/u1")])
    assert "Four questions are open" in text
    assert "href" not in text


def test_a_plan_of_many_scopes_names_five(stella: User) -> None:
    text = include(stella, [scope(f"team-a/u{number}") for number in range(8)])
    assert "and 3 more" in text
    assert f'href="{ADDRESS}"' in text


def test_an_answered_plan_asks_nothing(stella: User) -> None:
    within = scope("team-a/u1")
    revising.revise(pattern="*", policy=Rules(), by="seed", version=revising.NEW)
    assert include(stella, [within]).strip() == ""


def test_the_questions_have_nothing_inline(stella: User) -> None:
    scope("team-a/u1")
    page = Client()
    page.force_login(stella, backend="django.contrib.auth.backends.ModelBackend")
    text = page.get(ADDRESS).content.decode()
    body = text[text.index("<main") : text.index("</main>")]
    for forbidden in (" style=", "<style", "onclick", "<script"):
        assert forbidden not in body

"""Saying that two subjects are one: from a record's page or the list, to a question that a reviewer decides (R46)."""

from __future__ import annotations

import pytest
from django.test import Client
from django.urls import reverse

from consolidation.models import Alias, Cardinality, Operation
from consolidation.operations import Approval, Kind, State
from consolidation.review import Decision
from observations.models import Event, Observation, Scope
from tests.building import observe, propose, scope
from tests.desk import client_of, decide, item_url, person, settle
from tests.engine import approve_and_apply, engine, keyed

pytestmark = pytest.mark.django_db

NEW = "admin:consolidation_alias_new"
LIST = "admin:consolidation_alias_changelist"
LEARNT = "admin:consolidation_cardinality_changelist"


@pytest.fixture
def within() -> Scope:
    """A scope with two subjects."""
    within = scope("team-a/u1")
    observe("Ana B leads the lab", within=within, key=("Ana B", "leads", "the lab"))
    observe("Anastasia Brandt leads the lab", within=within, key=("Anastasia Brandt", "leads", "the lab"))
    return within


@pytest.fixture
def ana() -> Client:
    """A reviewer of team-a."""
    return client_of(person("ana", "Reviewer", "team-a/*"))


@pytest.fixture
def olga() -> Client:
    """An operator of team-a."""
    return client_of(person("olga", "Operator", "team-a/*"))


def row(subject: str) -> Observation:
    """The record about a subject."""
    return Observation.objects.get(subject=subject)


def test_an_alias_is_asked_for_from_a_record_and_waits_for_a_decision(within: Scope, ana: Client) -> None:
    """The question is an operation with its event; nothing holds before somebody decides it."""
    answer = ana.post(reverse(NEW), {"observation": row("Ana B").pk, "name": "Anastasia Brandt"})
    operation = Operation.objects.get(kind=Kind.ALIAS)
    assert answer["Location"] == item_url(operation)
    assert (operation.claim_subject, operation.claim_object) == ("ana b", "anastasia brandt")
    assert (operation.requested_by, operation.status) == ("ana", State.NEEDS_HUMAN)
    assert Event.objects.get(subject=operation.op_id).action == "requested"
    assert not Alias.objects.exists()


def test_an_alias_is_asked_for_by_scope_and_words(within: Scope, ana: Client) -> None:
    """Without a record: the two subjects as the records write them."""
    data = {"scope": str(within.pk), "subject": "ana b", "name": "Anastasia Brandt"}
    assert ana.post(reverse(NEW), data).status_code == 302
    assert Operation.objects.filter(kind=Kind.ALIAS, claim_subject="ana b").exists()


def test_the_other_subject_may_be_named_by_a_record_about_it(within: Scope, ana: Client) -> None:
    other = row("Anastasia Brandt")
    ana.post(reverse(NEW), {"observation": row("Ana B").pk, "name": f"obs_{other.pk}"})
    assert Operation.objects.get(kind=Kind.ALIAS).claim_object == "anastasia brandt"


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ({"name": "Nobody"}, "No current record is about one of the two subjects"),
        ({"name": "ANA b."}, "Both subjects are compared as one already"),
        ({"name": ""}, "two subjects, each with a letter or a digit"),
        ({"name": "obs_999999"}, "no such record in that scope"),
        ({"name": "obs_server"}, "No current record is about one of the two subjects"),
    ],
)
def test_what_cannot_be_asked_is_refused_with_a_sentence(
    data: dict[str, str], sentence: str, within: Scope, ana: Client
) -> None:
    """G2: the form stands again with what was written in it, and nothing is asked."""
    answer = ana.post(reverse(NEW), {"observation": row("Ana B").pk, **data})
    page = answer.content.decode()
    assert answer.status_code == 409
    assert sentence in page
    assert f'value="{data["name"]}"' in page
    assert not Operation.objects.exists()


def test_a_form_without_a_scope_is_refused(within: Scope, ana: Client) -> None:
    for asked in ("", "x", "9" * 30, str(scope("team-b/u1").pk)):
        answer = ana.post(reverse(NEW), {"scope": asked, "subject": "ana b", "name": "Anastasia Brandt"})
        assert answer.status_code == 409
        assert "Choose the scope" in answer.content.decode()


def test_a_record_of_another_scope_names_no_subject_here(within: Scope) -> None:
    """I2p: neither one that may be seen, nor one that may not; both are answered alike."""
    both = client_of(person("bea", "Reviewer", "team-a/*", "team-b/*"))
    mine = client_of(person("mia", "Reviewer", "team-a/*"))
    theirs = observe("Zed leads", within=scope("team-b/u1"), key=("Zed", "leads", "x"))
    for client in (both, mine):
        answer = client.post(reverse(NEW), {"observation": row("Ana B").pk, "name": f"obs_{theirs.pk}"})
        assert answer.status_code == 409
        assert "Zed" not in answer.content.decode()
    assert mine.get(reverse(NEW), {"observation": theirs.pk}).status_code == 404


def test_asking_twice_leads_to_the_question_that_stands(within: Scope, ana: Client) -> None:
    """Either way round; one question waits."""
    first = ana.post(reverse(NEW), {"observation": row("Ana B").pk, "name": "Anastasia Brandt"})
    second = ana.post(reverse(NEW), {"observation": row("Anastasia Brandt").pk, "name": "Ana B"})
    assert first["Location"] == second["Location"]
    assert Operation.objects.count() == 1


def test_a_record_whose_key_a_model_gave_offers_its_subject(within: Scope, ana: Client) -> None:
    """What a model read may be asked about like any other; the rule decides whether a record is about it."""
    given = keyed(within)
    page = ana.get(reverse(NEW), {"observation": given.pk})
    assert page.context["about"].subject == "Bo"
    assert ana.post(reverse(NEW), {"observation": given.pk, "name": "Ana B"}).status_code in (302, 409)


def test_the_list_tells_active_from_removed(within: Scope, ana: Client, olga: Client) -> None:
    """Undone, an alias stays on the list with its end; both filters find it."""
    ana.post(reverse(NEW), {"observation": row("Ana B").pk, "name": "Anastasia Brandt"})
    operation = Operation.objects.get(kind=Kind.ALIAS)
    decide(olga, operation, "approve_apply", reason="same person")
    settle()
    [active] = olga.get(reverse(LIST), {"state": "active"}).context["rows"]
    assert (active.subject, active.name, active.removed) == ("ana b", "anastasia brandt", "")
    assert active.operation == f"{operation.op_id}#1"
    decide(olga, operation, "undo")
    assert olga.get(reverse(LIST), {"state": "active"}).context["rows"] == []
    [removed] = olga.get(reverse(LIST), {"state": "removed"}).context["rows"]
    assert removed.removed
    assert f"{operation.op_id}%231" in olga.get(reverse(LIST)).content.decode()


def test_only_reviewers_are_offered_the_form(within: Scope, ana: Client) -> None:
    vera = client_of(person("vera", "Viewer", "team-a/*"))
    about = f"{reverse('admin:observations_observation_changelist')}?about={row('Ana B').pk}"
    for address in (reverse(LIST), about, reverse("admin:observations_observation_change", args=[row("Ana B").pk])):
        assert reverse(NEW) in ana.get(address).content.decode()
        assert reverse(NEW) not in vera.get(address).content.decode()


# --- the subject of a row -------------------------------------------------------------------------------------------


def test_a_list_is_narrowed_to_the_subject_of_a_row_without_a_subject_in_the_address(
    within: Scope, ana: Client
) -> None:
    """ASVS 14.2.1: the address holds an id; case and punctuation of a subject play no part."""
    observe("ANA B. drinks tea", within=within, key=("ANA  b", "drinks", "tea"))
    page = ana.get(reverse("admin:observations_observation_changelist"), {"about": row("Ana B").pk})
    assert {one.text for one in page.context["rows"]} == {"Ana B leads the lab", "ANA B. drinks tea"}
    assert page.context["about"].subject == "Ana B"


def test_rows_whose_subject_a_model_gave_are_among_those_about_it(within: Scope, ana: Client) -> None:
    given = keyed(within)
    observe("Bo likes tea", within=within, key=("bo", "likes", "tea"))
    page = ana.get(reverse("admin:observations_observation_changelist"), {"about": given.pk})
    assert {one.text for one in page.context["rows"]} == {"Bo likes tea", "Bo works at Relay since May"}


@pytest.mark.parametrize("asked", ["x", "-1", "9" * 40, "0", ""])
def test_a_row_that_is_not_there_narrows_nothing(asked: str, within: Scope, ana: Client) -> None:
    page = ana.get(reverse("admin:observations_observation_changelist"), {"about": asked})
    assert page.context["about"] is None
    assert len(page.context["rows"]) == 2


# --- learnt values --------------------------------------------------------------------------------------------------


def test_a_lesson_stands_with_the_decision_that_taught_it(olga: Client) -> None:
    mine = engine()
    done = approve_and_apply(mine.supersede, decision=Decision(many_valued=True))
    [lesson] = olga.get(reverse(LEARNT)).context["rows"]
    assert (lesson.predicate, lesson.holds, lesson.state.word) == ("lives in", "several values at once", "holds")
    assert (lesson.by, lesson.operation) == ("rita", f"{done.op_id}#1")


def test_a_lesson_that_was_undone_or_overruled_says_so(olga: Client) -> None:
    """Nothing is deleted: what holds is told from what held."""
    mine = engine()
    done = approve_and_apply(mine.supersede, decision=Decision(keep=mine.supersede.keeper_id))
    rows = [observe(f"Ann lives in {city}", within=mine.scope, key=("ann", "lives in", city)) for city in "ab"]
    newer = propose(Kind.SUPERSEDE, rows, approval=Approval.NEEDS_HUMAN)
    approve_and_apply(newer, decision=Decision(many_valued=True))
    states = {one.holds: one.state.word for one in olga.get(reverse(LEARNT)).context["rows"]}
    assert states == {"several values at once": "holds", "one value at a time": "a newer one holds"}
    decide(olga, newer, "undo")
    states = {one.holds: one.state.word for one in olga.get(reverse(LEARNT)).context["rows"]}
    assert states == {"several values at once": "taken back", "one value at a time": "holds"}
    assert Cardinality.objects.count() == 2
    assert done.status == State.APPLIED


def test_nothing_is_learnt_or_named_yet_is_a_sentence(olga: Client) -> None:
    assert "Nothing learnt yet." in olga.get(reverse(LEARNT)).content.decode()
    assert "No alias here." in olga.get(reverse(LIST)).content.decode()

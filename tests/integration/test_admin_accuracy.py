"""The pages of measured error: what is to be checked, a person's word on it, the table, and lifting a demotion."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from consolidation import review
from consolidation.models import Demotion, Operation, Sample
from consolidation.operations import Approval, State
from observations.models import Event
from tests.building import scope
from tests.desk import client_of, decide, person, settle
from tests.measuring_error import applied, counted, judge, planned

pytestmark = pytest.mark.django_db

TO_CHECK = "admin:consolidation_sample_changelist"
MEASURED = "admin:consolidation_demotion_changelist"
HOSTILE = "<script>alert(1)</script>\u202e"
# Of each: two are the session and its person, two their permissions, three their scopes and what is paused.
LIST, PAGE, TABLE = 11, 23, 12


def client(name: str, group: str, *patterns: str) -> Client:
    return client_of(person(name, group, *patterns))


@pytest.fixture
def rita() -> Client:
    return client("rita", "Reviewer", "team-a/*")


def one_sample(name: str = "team-a/u1") -> tuple[Operation, Sample]:
    [operation] = applied(scope(name))
    settle()
    return operation, Sample.objects.get(operation=operation)


def page_of(sample: Sample, page: str = "change") -> str:
    return reverse(f"admin:consolidation_sample_{page}", args=[sample.pk])


def text(browser: Client, address: str) -> str:
    answer = browser.get(address)
    assert answer.status_code == 200
    return answer.content.decode()


# --- to check ---------------------------------------------------------------------------------------------------------


def test_what_was_applied_without_a_decision_is_listed_and_shown_with_what_it_made_of_what(rita: Client) -> None:
    operation, sample = one_sample()
    assert f"Check {operation.op_id[:11]}" in text(rita, reverse(TO_CHECK))
    page = text(rita, page_of(sample))
    assert "Was this right?" in page
    assert page.count("sits in rack 4") >= 3  # two sources and what was written
    assert f"obs_{operation.derived_id}" in page
    assert ">Right<" in page
    assert ">Wrong<" in page


def test_right_is_counted_and_leaves_the_list(rita: Client) -> None:
    _, sample = one_sample()
    answer = rita.post(page_of(sample, "judge"), {"word": "right"}, follow=True).content.decode()
    assert "Counted as right." in answer
    assert "Nothing to check here." in answer
    assert (counted().judged_right, counted().waiting) == (1, 0)


def test_wrong_changes_no_memory_and_offers_the_undo_to_who_may(rita: Client) -> None:
    operation, sample = one_sample()
    olga = client("olga", "Operator", "*")
    page = olga.post(page_of(sample, "judge"), {"word": "wrong"}, follow=True).content.decode()
    assert "Memory has not changed" in page
    assert reverse("admin:consolidation_operation_undo", args=[operation.pk]) in page
    assert Operation.objects.get(pk=operation.pk).status == State.APPLIED
    assert reverse("admin:consolidation_operation_undo", args=[operation.pk]) not in text(rita, page_of(sample))
    assert decide(olga, operation, "undo")[0] == 200
    assert (counted().judged_wrong, counted().undone) == (1, 1)


def test_the_second_judge_reads_who_was_first_and_a_second_click_is_no_conflict(rita: Client) -> None:
    _, sample = one_sample()
    judge(Operation.objects.get(), right=True, by="ines")
    answer = rita.post(page_of(sample, "judge"), {"word": "wrong"})
    assert answer.status_code == 409
    assert "judged right: ines said so" in answer.content.decode()
    again = client("ines", "Reviewer", "*").post(page_of(sample, "judge"), {"word": "right"}, follow=True)
    assert "You said that already." in again.content.decode()


def test_a_correction_is_asked_for_by_name_and_kept_in_the_history(rita: Client) -> None:
    _, sample = one_sample()
    judge(Operation.objects.get(), right=True, by="ines")
    assert "Correct it: wrong" in text(rita, page_of(sample))
    rita.post(page_of(sample, "judge"), {"word": "wrong", "correct": "1"})
    assert (counted().judged_right, counted().judged_wrong) == (0, 1)
    assert list(Event.objects.filter(action="judged").order_by("pk").values_list("actor", flat=True)) == [
        "ines",
        "rita",
    ]


@pytest.mark.parametrize("data", [{}, {"word": "perhaps"}])
def test_a_form_without_a_word_says_so_and_counts_nothing(rita: Client, data: dict[str, str]) -> None:
    _, sample = one_sample()
    answer = rita.post(page_of(sample, "judge"), data)
    assert answer.status_code == 409
    assert "Say whether it is right or wrong." in answer.content.decode()
    assert rita.get(page_of(sample, "judge")).status_code == 405
    assert counted().waiting == 1


def test_a_viewer_reads_and_does_not_judge_and_another_scope_is_not_there(rita: Client) -> None:
    _, sample = one_sample()
    vic = client("vic", "Viewer", "team-a/*")
    assert "Judging is for reviewers." in text(vic, page_of(sample))
    assert vic.post(page_of(sample, "judge"), {"word": "right"}).status_code == 403
    other = client("otto", "Reviewer", "team-b/*")
    assert other.get(page_of(sample)).status_code == 404
    assert other.post(page_of(sample, "judge"), {"word": "right"}).status_code == 404
    assert "Nothing to check here." in text(other, reverse(TO_CHECK))
    assert counted().waiting == 1


# --- the table --------------------------------------------------------------------------------------------------------


def test_the_table_shows_the_interval_in_words_and_what_is_proven(rita: Client) -> None:
    for operation in applied(scope(), 3):
        judge(operation, right=True)
    [rejected] = planned(scope(), approval=Approval.NEEDS_HUMAN, rule="similar", band="0.90-0.91")
    review.reject(operation=rejected, by="rita", reason="no")
    page = text(rita, reverse(MEASURED))
    assert "same key, 0.98-0.99" in page
    assert "<title>0% wrong, between 0% and 56.1%</title>" in page
    assert "below 56.1%" in page
    assert "similar, 0.90-0.91" in page
    assert "1 rejected" in page
    assert "<style" not in page
    assert ' style="' not in page


def test_of_nothing_the_page_says_that_nothing_is_known(rita: Client) -> None:
    page = text(rita, reverse(MEASURED))
    assert "Nothing was applied without a decision yet." in page
    one_sample()
    assert "nothing known" in text(rita, reverse(MEASURED))


def test_a_person_of_some_scopes_counts_those_and_is_told_so(rita: Client) -> None:
    one_sample("team-a/u1")
    one_sample("team-b/u2")
    assert "1 to check" in text(rita, reverse(MEASURED))
    assert "counts the scopes you may see" in text(rita, reverse(MEASURED))
    sven = client("sven", "Steward", "*")
    assert "2 to check" in text(sven, reverse(MEASURED))


def test_a_steward_of_everything_lifts_with_a_reason_and_nobody_else(rita: Client) -> None:
    one_sample()
    judge(Operation.objects.get(), right=False)
    row = Demotion.objects.get()
    address = reverse("admin:consolidation_demotion_lift", args=[row.pk])
    assert "Lift:" not in text(rita, reverse(MEASURED))
    assert rita.post(address, {"reason": "x"}).status_code == 403
    some = client("stella", "Steward", "team-a/*")
    assert some.post(address, {"reason": "x"}).status_code == 403
    sven = client("sven", "Steward", "*")
    assert "Lift:" in text(sven, reverse(MEASURED))
    assert sven.get(address).status_code == 405
    assert "Lifting needs a reason" in sven.post(address, {"reason": " "}, follow=True).content.decode()
    page = sven.post(address, {"reason": f"mended {HOSTILE}"}, follow=True).content.decode()
    row.refresh_from_db()
    assert row.lifted_by == "sven"
    assert "decides alone again" in page
    assert "<script>alert" not in page
    assert "\u202e" not in page


# --- figures ----------------------------------------------------------------------------------------------------------


def test_every_page_runs_a_fixed_number_of_queries() -> None:
    """STYLE 20: the same number however much there is."""
    olga = client("olga", "Operator", "team-a/*")
    _, sample = one_sample()

    def counts() -> list[int]:
        found = []
        for address in (reverse(TO_CHECK), page_of(sample), reverse(MEASURED)):
            with CaptureQueriesContext(connection) as captured:
                assert olga.get(address).status_code == 200
            found.append(len(captured))
        return found

    few = counts()
    applied(scope(), 4)
    applied(scope("team-a/u2"), 2, rule="same words", band="same words")
    settle()
    assert counts() == few == [LIST, PAGE, TABLE]

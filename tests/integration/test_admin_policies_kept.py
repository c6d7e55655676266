"""Nobody's change to a policy is lost: two people at once, older versions, which one holds, a broken one (C16)."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from consolidation import revising
from consolidation.models import Policy, PolicyRevision
from consolidation.operations import Json
from consolidation.policy import Policy as Rules
from observations.models import Event
from tests.building import scope
from tests.desk import client_of, person
from tests.policies import address, entered, page_text, preview, save, stored

pytestmark = pytest.mark.django_db


@pytest.fixture
def stella() -> Client:
    """A steward of team-a/*."""
    return client_of(person("stella", "Steward", "team-a/*"))


@pytest.fixture
def root() -> Client:
    """A superuser."""
    return client_of(person("root", superuser=True))


# --- two people -----------------------------------------------------------------------------------------------------


def test_a_change_made_meanwhile_is_shown_with_who_and_what_and_nothing_is_lost(stella: Client, root: Client) -> None:
    """C16: the later save is refused, the earlier one stays, and what was entered is not lost either."""
    row = stored()
    mine = entered(version=row.version, chain_cap=1)
    looked = preview(stella, address("edit", row.pk), mine)
    assert save(root, address("edit", row.pk), entered(version=row.version, grace_days=7)).status_code == 302
    answer = stella.post(address("edit", row.pk), {**mine, "shown": looked.context["shown"], "save": "1"})
    assert answer.status_code == 409
    assert "Version 2 of the policy of team-a/* was saved meanwhile, by root at " in answer.context["conflict"]
    assert [(one.name, one.old, one.new) for one in answer.context["meanwhile"]] == [("grace_days", "30", "7")]
    assert {one.name for one in answer.context["changed"]} == {"chain_cap", "grace_days"}  # mine would take theirs back
    assert answer.context["draft"].form["chain_cap"].value() == "1"
    row.refresh_from_db()
    assert (row.version, row.body["grace_days"], row.body["chain_cap"]) == (2, 7, 3)
    again = {**mine, "version": "2", "grace_days": 7}
    assert save(stella, address("edit", row.pk), again).status_code == 302
    row.refresh_from_db()
    assert (row.version, row.body["grace_days"], row.body["chain_cap"]) == (3, 7, 1)


def test_without_the_guard_the_earlier_change_would_be_lost() -> None:
    """The naive control: saving over whatever is there loses the grace period that somebody else set."""
    row = stored()
    Policy.objects.filter(pk=row.pk).update(body=Rules(grace_days=7).to_dict())
    Policy.objects.filter(pk=row.pk).update(body=Rules(chain_cap=1).to_dict())
    assert Policy.objects.get(pk=row.pk).body["grace_days"] == 30


def test_a_policy_removed_meanwhile_is_a_sentence_not_an_error(stella: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    row = stored()
    data = entered(version=row.version, chain_cap=1)
    looked = preview(stella, address("edit", row.pk), data)
    saving = revising.revise

    def removed_first(**given: Any) -> Policy:
        revising.remove(pattern="team-a/*", by="root", version=1)
        return saving(**given)

    monkeypatch.setattr(revising, "revise", removed_first)
    answer = stella.post(address("edit", row.pk), {**data, "shown": looked.context["shown"], "save": "1"}, follow=True)
    assert "was removed meanwhile" in page_text(answer)


def test_a_change_committed_between_the_check_and_the_save_is_a_conflict(
    stella: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = stored()
    data = entered(version=row.version, chain_cap=1)
    looked = preview(stella, address("edit", row.pk), data)
    saving = revising.revise

    def changed_first(**given: Any) -> Policy:
        saving(pattern="team-a/*", policy=Rules(grace_days=7), by="root", version=1)
        return saving(**given)

    monkeypatch.setattr(revising, "revise", changed_first)
    answer = stella.post(address("edit", row.pk), {**data, "shown": looked.context["shown"], "save": "1"})
    assert answer.status_code == 409
    assert answer.context["version"] == 2


def test_a_policy_begun_by_two_people_is_continued_by_the_second(
    stella: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the second one entered is shown against the first one's policy, and saved onto it."""
    data = entered(pattern="team-a/*", version="0", chain_cap=1)
    looked = preview(stella, address("new"), data)
    revise = revising.revise

    def begun_first(**given: Any) -> Policy:
        revise(pattern="team-a/*", policy=Rules(grace_days=7), by="root", version=revising.NEW)
        return revise(**given)

    monkeypatch.setattr(revising, "revise", begun_first)
    answer = stella.post(address("new"), {**data, "shown": looked.context["shown"], "save": "1"})
    assert answer.status_code == 409
    row = Policy.objects.get()
    text = page_text(answer)
    assert f'action="{address("edit", row.pk)}"' in text
    assert 'name="pattern"' not in text
    monkeypatch.setattr(revising, "revise", revise)
    assert (
        save(stella, address("edit", row.pk), entered(version=row.version, chain_cap=1, grace_days=7)).status_code
        == 302
    )
    row.refresh_from_db()
    assert (row.version, row.body["chain_cap"], row.body["grace_days"]) == (2, 1, 7)


def test_nothing_is_told_of_a_broken_policy_of_others(stella: Client) -> None:
    """I2p: typing the name of a foreign scope shows neither its policy nor its fault."""
    Policy.objects.create(pattern="team-b/*", body={"canary_field": 1})
    answer = stella.post(address("new"), entered(pattern="team-b/u1", version="0"))
    assert answer.status_code == 422
    assert "canary" not in page_text(answer)


@pytest.mark.django_db(transaction=True)
def test_of_eight_saves_at_once_onto_one_version_one_is_kept() -> None:
    """INTEGRITY: the row count decides; the other seven are conflicts."""
    stored("*")
    gate, said = threading.Barrier(8), []

    def run(number: int) -> None:
        try:
            gate.wait()
            revising.revise(pattern="*", policy=Rules(grace_days=number + 1), by=f"p{number}", version=1)
            said.append("saved")
        except revising.Conflict:
            said.append("conflict")
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(said) == ["conflict"] * 7 + ["saved"]
    assert Policy.objects.get().version == 2
    assert PolicyRevision.objects.count() == 2


@pytest.mark.django_db(transaction=True)
def test_of_four_who_begin_the_same_policy_at_once_one_does() -> None:
    gate, said = threading.Barrier(4), []

    def run(number: int) -> None:
        try:
            gate.wait()
            said.append(revising.revise(pattern="*", policy=Rules(), by=f"p{number}", version=revising.NEW).version)
        except revising.Conflict:
            said.append(0)
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(said) == [0, 0, 0, 1]


# --- what was before ------------------------------------------------------------------------------------------------


def test_the_history_shows_every_version_with_what_it_changed(stella: Client) -> None:
    row = stored(chain_cap=2)
    row = revising.revise(pattern=row.pattern, policy=Rules(chain_cap=1, prune=True), by="ann", version=1)
    found = stella.get(address("versions", row.pk)).context["versions"]
    assert [(one.number, one.by) for one in found] == [(2, "ann"), (1, "seed")]
    assert {(one.name, one.old, one.new) for one in found[0].changed} == {
        ("chain_cap", "2", "1"),
        ("prune", "off", "on"),
    }
    assert [(one.name, one.new) for one in found[1].changed] == [("chain_cap", "2")]


def test_an_older_version_is_restored_by_saving_it_again(stella: Client) -> None:
    """Nothing is overwritten: version 1 comes back as version 3, after a look."""
    row = stored(chain_cap=2)
    row = revising.revise(pattern=row.pattern, policy=Rules(chain_cap=1), by="ann", version=1)
    history = page_text(stella.get(address("versions", row.pk)))
    assert f"{address('edit', row.pk)}?version=1" in history
    page = stella.get(address("edit", row.pk) + "?version=1")
    assert [(one.old, one.new) for one in page.context["changed"]] == [("1", "2")]
    data = entered(Rules(chain_cap=2), version=2, shown=page.context["shown"], save="1")
    assert stella.post(address("edit", row.pk), data).status_code == 302
    row.refresh_from_db()
    assert (row.version, row.body["chain_cap"]) == (3, 2)
    assert PolicyRevision.objects.filter(pattern=row.pattern).count() == 3


@pytest.mark.parametrize("version", ["0", "9", "x", "-1", "9" * 30])
def test_a_version_that_was_never_saved_is_not_there(stella: Client, version: str) -> None:
    row = stored()
    assert stella.get(address("edit", row.pk) + f"?version={version}").status_code == 404


def test_a_removed_policy_can_be_begun_again_and_counts_on(root: Client) -> None:
    row = stored("team-a/*", chain_cap=1)
    stored("*", chain_cap=2)
    scope("team-a/u1")
    page = root.get(address("remove", row.pk))
    assert [(one.old, one.new) for one in page.context["changed"]] == [("1", "2")]
    assert "the policy of * holds" in page_text(page)
    assert root.post(address("remove", row.pk), {}).status_code == 200
    assert root.post(address("remove", row.pk), {"version": "1"}).status_code == 302
    assert not Policy.objects.filter(pattern="team-a/*").exists()
    assert PolicyRevision.objects.filter(pattern="team-a/*", body__isnull=True, version=2).exists()
    again = stored("team-a/*")
    assert again.version == 3
    found = root.get(address("versions", again.pk)).context["versions"]
    assert [(one.number, one.removed) for one in found] == [(3, False), (2, True), (1, False)]
    assert Event.objects.filter(action="policy_removed", actor="root").exists()


# --- which one holds ------------------------------------------------------------------------------------------------


def test_the_page_of_a_scope_says_which_policy_holds_and_why(stella: Client) -> None:
    within = scope("team-a/u1")
    for pattern in ("*", "team-a/*", "team-a/u1", "team-b/*"):
        stored(pattern)
    page = stella.get(address("holds", within.pk))
    assert [(match.pattern, match.holds) for match in page.context["matches"]] == [
        ("team-a/u1", True),
        ("team-a/*", False),
        ("*", False),
    ]
    assert "its exact name, which goes before every pattern" in page_text(page)
    assert "Policy for this scope alone" not in page_text(page)


def test_a_scope_without_a_policy_is_told_that_the_defaults_hold(stella: Client) -> None:
    within = scope("team-a/u1")
    text = page_text(stella.get(address("holds", within.pk)))
    assert "No policy matches this scope: the defaults hold." in text
    assert f"{address('questions')}?scope={within.pk}" in text
    assert f"{address('new')}?scope={within.pk}" in text


def test_a_policy_names_the_scopes_it_holds_for_and_leaves_out_more_specific_ones(stella: Client) -> None:
    for name in ("team-a/u1", "team-a/u2", "team-b/u1"):
        scope(name)
    row = stored("team-a/*")
    stored("team-a/u2")
    context = stella.get(address("change", row.pk)).context
    assert ([one.name for one in context["scopes"]], context["count"]) == (["team-a/u1"], 1)
    everywhere = stored("*")
    assert stella.get(address("change", everywhere.pk)).context["count"] == 0  # none of hers


# --- what cannot be read --------------------------------------------------------------------------------------------


def test_a_stored_policy_that_cannot_be_read_says_why_and_is_repaired_in_the_form(stella: Client) -> None:
    """W007 sends people here: what can be read is kept, the rest takes its default."""
    body: dict[str, Json] = {"chain_cap": 1, "grace_days": 0, "many_values": 3}
    row = Policy.objects.create(pattern="team-a/*", body=body, updated_by="seed")
    row.refresh_from_db()
    assert "This policy cannot be read." in page_text(stella.get(address("change", row.pk)))
    assert "cannot be read" in page_text(stella.get(address("changelist")))
    page = stella.get(address("edit", row.pk))
    assert "What could be read is in the form" in page_text(page)
    assert page.context["draft"].form["chain_cap"].value() == 1
    assert save(stella, address("edit", row.pk), entered(version=row.version, chain_cap=1)).status_code == 302
    row.refresh_from_db()
    assert Rules.from_dict(row.body).chain_cap == 1

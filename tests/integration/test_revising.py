"""A policy is changed version by version, checked first, and said in an event; patterns nest (R32, R42)."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction
from django.test.utils import CaptureQueriesContext

from consolidation import calibrating, revising
from consolidation.calibration import Band, Measured
from consolidation.models import Policy, PolicyRevision
from consolidation.policy import Policy as Rules
from consolidation.policy import PolicyError
from observations.embedding import HASHING
from observations.models import Event
from tests.building import scope
from tests.policies import stored

pytestmark = pytest.mark.django_db
ENOUGH = Measured((Band(0.9, different=1_000),))  # pairs for a calibration to hold


def again(row: Policy, **fields: Any) -> Policy:
    return revising.revise(pattern=row.pattern, policy=Rules(**fields), by="ann", version=row.version)


def test_versions_count_on_and_each_is_kept_whole() -> None:
    row = stored("team/*", chain_cap=2)
    for number in range(3):
        row = again(row, chain_cap=number % 2, grace_days=number + 1)
    assert row.version == 4
    kept = PolicyRevision.objects.filter(pattern="team/*").order_by("version")
    bodies = [Rules.from_dict(one.body or {}) for one in kept]
    assert [(one.version, one.by, body.grace_days) for one, body in zip(kept, bodies, strict=True)] == [
        (1, "seed", 30),
        (2, "ann", 1),
        (3, "ann", 2),
        (4, "ann", 3),
    ]
    assert [body.chain_cap for body in bodies] == [2, 0, 1, 0]


def test_what_was_kept_can_be_changed_by_nobody() -> None:
    """What a plan was made under can always be read: the application's role may not write there at all."""
    stored("team/*")
    for change in (
        lambda: PolicyRevision.objects.update(by="x"),
        lambda: PolicyRevision.objects.all().delete(),
        lambda: PolicyRevision.objects.create(pattern="team/*", version=9, body={}),
    ):
        with pytest.raises(DatabaseError), transaction.atomic():
            change()


def test_the_event_names_the_fields_that_changed_and_the_scope_where_there_is_one() -> None:
    within = scope("team/u1")
    row = stored("team/u1", chain_cap=1)
    again(row, chain_cap=1, prune=True, grace_days=2)
    stored("team/*")
    first, second, third = Event.objects.filter(action="policy_saved").order_by("pk")
    assert (first.scope_id, first.detail["changed"]) == (within.pk, ["chain_cap"])
    assert (second.detail["version"], second.detail["changed"], second.actor) == (2, ["grace_days", "prune"], "ann")
    assert (third.scope_id, third.detail) == (None, {"pattern": "team/*", "version": 1, "changed": []})


def test_a_version_that_was_never_there_is_a_conflict() -> None:
    row = stored("team/*")
    for version in (0, 2, 99):
        with pytest.raises(revising.Conflict, match="Version 1 of the policy of team/\\* was saved meanwhile, by seed"):
            revising.revise(pattern="team/*", policy=Rules(chain_cap=1), by="ann", version=version)
    with pytest.raises(revising.Conflict, match="The policy of lab/\\* was removed meanwhile"):
        revising.revise(pattern="lab/*", policy=Rules(), by="ann", version=1)
    row.refresh_from_db()
    assert (row.version, row.updated_by) == (1, "seed")
    assert Event.objects.filter(actor="ann").count() == 0


def test_the_same_policy_again_is_no_new_version_and_no_event() -> None:
    row = stored("team/*", chain_cap=1)
    assert again(row, chain_cap=1).version == 1
    assert Event.objects.count() == 1


def test_a_policy_that_left_fields_out_is_written_out_whole_by_the_next_save() -> None:
    """So that a later change of a default changes no stored policy."""
    row = Policy.objects.create(pattern="team/*", body={"chain_cap": 1})
    row.refresh_from_db()
    saved = again(row, chain_cap=1)
    assert (saved.version, set(saved.body)) == (2, set(Rules().to_dict()))


def test_a_policy_is_removed_at_its_version_only() -> None:
    row = stored("team/*")
    with pytest.raises(revising.Conflict):
        revising.remove(pattern="team/*", by="ann", version=2)
    revising.remove(pattern="team/*", by="ann", version=row.version)
    assert not Policy.objects.exists()
    assert revising.revision(pattern="team/*", version=1) is not None
    assert revising.revision(pattern="team/*", version=2) is None  # the removal itself
    assert revising.revision(pattern="team/*", version=3) is None


@pytest.mark.parametrize(
    ("pattern", "own", "found"),
    [
        ("team/u1", True, "team/u1"),
        ("team/u1", False, "team/*"),
        ("team/u2", True, "team/*"),
        ("team/*", True, "team/*"),
        ("team/*", False, "*"),
        ("team/deep/*", True, "team/*"),
        ("teams/*", True, "*"),
        ("team", True, "*"),
        ("*", True, "*"),
        ("*", False, None),
    ],
)
def test_what_holds_around_a_pattern_is_the_most_specific_one_that_means_all_of_it(
    pattern: str, own: bool, found: str | None
) -> None:
    for each in ("*", "team/*", "team/u1", "lab/*"):
        stored(each)
    row = revising.wider(pattern=pattern, own=own)
    assert (row.pattern if row else None) == found


def test_every_fault_of_what_would_be_saved_is_found_at_once() -> None:
    found = revising.faults(pattern="team/", values={"t_merge": 0.9, "grace_days": 0, "merge": 3}, profile=HASHING)
    assert set(found) == {"pattern", "t_merge", "grace_days", "merge"}
    assert found["t_merge"].startswith("t_merge 0.9 is below 0.95, the threshold measured for hashing")
    with pytest.raises(PolicyError) as refused:
        revising.checked(pattern="team/*", values={"t_merge": 0.9}, profile=HASHING)
    assert refused.value.field == "t_merge"
    assert revising.checked(pattern="*", values={"chain_cap": 1}, profile=HASHING) == Rules(chain_cap=1)


def test_a_threshold_that_is_no_number_is_said_once() -> None:
    found = revising.faults(pattern="*", values={"t_merge": "high"}, profile=HASHING)
    assert found == {"t_merge": "t_merge must be a number."}


def test_where_nothing_merges_by_key_every_threshold_is_below() -> None:
    """A calibration that found nothing safe says 1."""
    calibrating.store(profile=HASHING, measured=ENOUGH, proposed=(0.8, 1.0), by="carl")
    found = revising.faults(pattern="*", values={"t_merge": 0.99}, profile=HASHING)
    assert found["t_merge"].startswith("t_merge 0.99 is below 1, the threshold measured for hashing")
    assert revising.faults(pattern="*", values={"t_merge": None}, profile=HASHING) == {}


def test_checking_takes_one_query() -> None:
    with CaptureQueriesContext(connection) as captured:
        revising.faults(pattern="*", values={"t_merge": 0.96}, profile=HASHING)
    assert len(captured) == 1

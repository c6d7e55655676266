"""Policies: defaults that destroy nothing, one sentence per fault, and which pattern holds."""

from __future__ import annotations

import pytest

from consolidation.operations import Approval, Json, Kind
from consolidation.policy import Policy, PolicyError, Retention, approval_of, matches, most_specific
from observations.records import StatedBy


def test_the_default_policy_prunes_nothing_and_applies_nothing_by_itself() -> None:
    """R32, R94."""
    assert Policy().retention == ()
    assert not Policy().unattended


@pytest.mark.parametrize(
    ("kind", "approval"),
    [
        (Kind.MERGE, Approval.AUTO),
        (Kind.PROMOTE, Approval.AUTO),
        (Kind.COMPACT, Approval.AUTO),
        (Kind.ARCHIVE, Approval.AUTO),
        (Kind.PRUNE, Approval.NEEDS_HUMAN),
        (Kind.SUPERSEDE, Approval.NEEDS_HUMAN),
        (Kind.ALIAS, Approval.NEEDS_HUMAN),
        (Kind.FORGET, Approval.NEEDS_HUMAN),
    ],
)
def test_every_kind_has_its_approval_class(kind: Kind, approval: Approval) -> None:
    """R62, R46, R47."""
    assert approval_of(kind) is approval


def test_every_kind_is_classified() -> None:
    assert {approval_of(kind) for kind in Kind} == {Approval.AUTO, Approval.NEEDS_HUMAN}


def test_a_policy_can_raise_the_merge_threshold_and_never_lower_it() -> None:
    """R42: the measured threshold is the floor."""
    assert Policy(t_merge=0.97).merge_threshold(measured=0.95) == 0.97
    assert Policy(t_merge=0.90).merge_threshold(measured=0.95) == 0.95
    assert Policy().merge_threshold(measured=0.95) == 0.95


def test_a_policy_comes_back_from_its_json_with_the_same_hash() -> None:
    policy = Policy(
        t_merge=0.97,
        unattended=True,
        retention=(Retention(stated_by=StatedBy.TOOL, older_than_days=400, only_unused=True),),
    )
    again = Policy.from_dict(policy.to_dict())
    assert again == policy
    assert again.hash == policy.hash
    assert Policy.from_dict({}) == Policy()


def test_every_field_takes_part_in_the_hash() -> None:
    """An approval covers the policy as it was (D1)."""
    changed = [
        Policy(t_merge=0.96),
        Policy(block_cap=100),
        Policy(cluster_cap=4),
        Policy(confidence_cap=0.9),
        Policy(chain_cap=1),
        Policy(many_values=5),
        Policy(blast_share=0.2),
        Policy(blast_floor=5),
        Policy(approval_ttl_hours=1),
        Policy(grace_days=1),
        Policy(unattended=True),
        Policy(retention=(Retention(stated_by=StatedBy.TOOL, older_than_days=1),)),
    ]
    assert len({policy.hash for policy in [Policy(), *changed]}) == len(changed) + 1 == len(Policy().to_dict()) + 1


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"t_merge": 1.5}, "t_merge must be from 0.5 to 1.0, not 1.5."),
        ({"t_merge": "high"}, "t_merge must be a number."),
        ({"t_merge": True}, "t_merge must be a number."),
        ({"block_cap": 5_000}, "block_cap must be from 2 to 200, not 5000."),
        ({"block_cap": 20.5}, "block_cap must be a whole number."),
        ({"grace_days": True}, "grace_days must be a whole number."),
        ({"blast_share": -0.1}, "blast_share must be from 0.0 to 1.0, not -0.1."),
        ({"blast_share": None}, "blast_share must be a number."),
        ({"confidence_cap": 1.0}, "confidence_cap must be from 0.0 to 0.99, not 1.0."),
        ({"unattended": "yes"}, "unattended must be true or false."),
        ({"retention": {}}, "retention must be a list of rules; an empty list prunes nothing."),
        ({"retention": "all"}, "retention must be a list of rules; an empty list prunes nothing."),
        ({"retention": ["tool"]}, "each retention rule must be an object with stated_by and older_than_days."),
        ({"retention": [{"stated_by": "tool"}]}, "retention.older_than_days must be a whole number."),
        (
            {"retention": [{"stated_by": "robot", "older_than_days": 9}]},
            "retention.stated_by must be one of user, operator, agent, tool, outside.",
        ),
        (
            {"retention": [{"stated_by": ["tool"], "older_than_days": 9}]},
            "retention.stated_by must be one of user, operator, agent, tool, outside.",
        ),
        (
            {"retention": [{"stated_by": "tool", "older_than_days": 0}]},
            "retention.older_than_days must be a whole number from 1 to 36500.",
        ),
        (
            {"retention": [{"stated_by": "user", "older_than_days": 900}]},
            "retention cannot name stated_by 'user': what a user wrote leaves on request only.",
        ),
    ],
)
def test_each_fault_is_one_clear_sentence(values: dict[str, Json], sentence: str) -> None:
    """R47 and C10 for the last: no policy can prune a user's word."""
    with pytest.raises(PolicyError) as refused:
        Policy.from_dict(values)
    assert str(refused.value) == sentence


def test_an_unknown_field_is_refused_by_name() -> None:
    with pytest.raises(PolicyError, match=r"policy has no field 'tmerge'; it may have .*t_merge"):
        Policy.from_dict({"tmerge": 0.9})
    with pytest.raises(PolicyError, match="a retention rule has no field 'age'"):
        Policy.from_dict({"retention": [{"stated_by": "tool", "older_than_days": 3, "age": 3}]})


@pytest.mark.parametrize(
    ("pattern", "scope", "meant"),
    [
        ("*", "team-a/u1", True),
        ("team-a/*", "team-a/u1", True),
        ("team-a/*", "team-a/u1/project", True),
        ("team-a/*", "team-a", False),
        ("team-a/*", "team-a/", False),
        ("team-a/*", "team-ab/u1", False),
        ("team-a/u1", "team-a/u1", True),
        ("team-a/u1", "team-a/u10", False),
        ("team*", "team-a", False),
    ],
)
def test_patterns_mean_a_scope_or_what_is_below_a_prefix(pattern: str, scope: str, meant: bool) -> None:
    assert matches(pattern=pattern, scope=scope) is meant


def test_the_most_specific_pattern_holds() -> None:
    patterns = ["*", "team-a/*", "team-a/u1/*", "team-a/u1"]
    assert most_specific(patterns=patterns, scope="team-a/u1") == "team-a/u1"
    assert most_specific(patterns=patterns, scope="team-a/u1/x") == "team-a/u1/*"
    assert most_specific(patterns=patterns, scope="team-a/u2") == "team-a/*"
    assert most_specific(patterns=patterns, scope="other") == "*"
    assert most_specific(patterns=["team-a/*"], scope="other") is None

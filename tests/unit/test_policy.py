"""Policies: defaults that destroy nothing, one sentence per fault, and which pattern holds."""

from __future__ import annotations

from typing import Any

import pytest

from consolidation.operations import Approval, Json, Kind
from consolidation.policy import (
    RANGES,
    Policy,
    PolicyError,
    Retention,
    Trigger,
    approval_of,
    check_pattern,
    faults,
    matches,
    most_specific,
    refuse_below,
)
from observations.records import MemoryKind, StatedBy


def test_the_default_policy_prunes_nothing_and_applies_nothing_by_itself() -> None:
    """R32, R94: it merges what is near-identical and promotes; compacting, archiving and pruning are off."""
    policy = Policy()
    assert policy.retention == ()
    assert not policy.unattended
    assert policy.merge
    assert policy.promote
    assert (policy.compact, policy.archive, policy.prune) == (False, False, False)
    assert policy.trigger is Trigger.MANUAL


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


CHANGED: dict[str, Json] = {
    **{name: not getattr(Policy(), name) for name in ("merge", "promote", "compact", "archive", "prune", "unattended")},
    "mergeable": ["fact"],
    "untouchable": ["identity"],
    "keep_days": 30,
    "retention": [{"stated_by": "tool", "older_than_days": 1}],
    "trigger": "records",
    "every_records": 20,
    "t_merge": 0.96,
    "block_cap": 100,
    "cluster_cap": 4,
    "confidence_cap": 0.9,
    "chain_cap": 1,
    "single_valued": ["lives in"],
    "many_valued": ["likes"],
    "min_support": 3,
    "auto_support": 5,
    "promoted_confidence": 0.5,
    "session_hours": 4,
    "max_compression": 5.0,
    "compact_after_days": 60,
    "archive_below": 0.2,
    "review_budget": None,
    "blast_share": 0.2,
    "blast_floor": 5,
    "approval_ttl_hours": 1,
    "grace_days": 1,
}


# What is looked at afterwards is nothing that was proposed or approved: changing it makes no approval void.
AFTERWARDS: dict[str, Json] = {
    "sample_first": 30,
    "sample_share": 0.1,
    "error_limit_per_1000": 2.0,
    # Who agrees is asked when it is applied, by the policy of then; how long people take voids nothing by itself.
    "two_person_kinds": ["merge"],
    "two_person_wide": False,
    "age_high_hours": 1,
    "age_medium_hours": 2,
    "age_low_hours": 3,
    "waiting_ttl_days": 5,
}


def test_what_is_measured_afterwards_takes_no_part_in_the_hash_and_is_kept_all_the_same() -> None:
    for name, value in AFTERWARDS.items():
        policy = Policy.from_dict({name: value})
        assert policy.hash == Policy().hash
        assert Policy.from_dict(policy.to_dict()) == policy != Policy()


def test_every_field_takes_part_in_the_hash() -> None:
    """An approval covers the policy as it was (D1); a field without a line above fails here."""
    base: dict[str, Json] = {"auto_support": 10}  # above every min_support
    hashes = {name: Policy.from_dict({**base, name: value}).hash for name, value in CHANGED.items()}
    assert set(hashes) | set(AFTERWARDS) == set(Policy().to_dict())
    assert len({*hashes.values(), Policy.from_dict(base).hash}) == len(hashes) + 1


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


def test_every_fault_is_found_at_its_field() -> None:
    """A form shows each sentence beside the field it is about, all of them at once."""
    found = faults({"grace_days": 0, "t_merge": "high", "merge": 1, "block_cap": 20, "trigger": "daily", "blokc": 1})
    assert found["grace_days"] == "grace_days must be from 1 to 3650, not 0."
    assert found["t_merge"] == "t_merge must be a number."
    assert found["merge"] == "merge must be true or false."
    assert found["trigger"] == "trigger may hold manual, records, schedule; 'daily' is none of them."
    assert found["blokc"].startswith("policy has no field 'blokc'")
    assert "block_cap" not in found
    assert faults(Policy().to_dict()) == {}


@pytest.mark.parametrize(
    ("values", "field", "sentence"),
    [
        ({"min_support": 3}, "auto_support", "auto_support must be larger than min_support"),
        ({"single_valued": ["likes"], "many_valued": ["Likes"]}, "many_valued", "'likes' cannot hold one value and"),
    ],
)
def test_fields_that_do_not_go_together_are_found_at_one_of_them(
    values: dict[str, Json], field: str, sentence: str
) -> None:
    found = faults(values)
    assert list(found) == [field]
    assert found[field].startswith(sentence)
    with pytest.raises(PolicyError) as refused:
        Policy.from_dict(values)
    assert refused.value.field == field


@pytest.mark.parametrize("name", sorted(RANGES))
def test_a_figure_outside_its_range_names_its_field_and_both_ends(name: str) -> None:
    low, high = RANGES[name]
    for outside in (low - 1, high + 1):
        values: dict[str, Any] = {name: outside}
        with pytest.raises(PolicyError) as refused:
            Policy(**values)
        assert refused.value.field == name
        assert str(refused.value) == f"{name} must be from {low} to {high}, not {outside}."


def test_not_a_number_is_in_no_range() -> None:
    with pytest.raises(PolicyError):
        Policy(blast_share=float("nan"))


def test_a_threshold_below_the_measured_one_is_refused_with_both_figures() -> None:
    """R42: it could not take effect, so it is not stored either."""
    with pytest.raises(PolicyError) as refused:
        refuse_below(t_merge=0.9, measured=0.95, embedder="minilm")
    assert refused.value.field == "t_merge"
    assert str(refused.value) == (
        "t_merge 0.9 is below 0.95, the threshold measured for minilm: raise it, or leave it empty."
    )
    for allowed in (None, 0.95, 0.99):
        refuse_below(t_merge=allowed, measured=0.95, embedder="minilm")


def test_the_same_kinds_in_another_order_are_the_same_policy() -> None:
    """An approval must not go stale because a form sent its boxes in another order."""
    one = Policy.from_dict({"mergeable": ["note", "fact", "fact"]})
    assert one.mergeable == (MemoryKind.FACT, MemoryKind.NOTE)
    assert one.hash == Policy.from_dict({"mergeable": ["fact", "note"]}).hash


def test_what_can_be_read_of_a_broken_policy_is_kept_for_the_form_that_repairs_it() -> None:
    broken: dict[str, Json] = {"prune": True, "grace_days": 0, "blokc_cap": 3, "t_merge": "high", "chain_cap": 1}
    assert Policy.salvaged(broken) == Policy(prune=True, chain_cap=1)
    assert Policy.salvaged({"min_support": 9}) == Policy()
    assert Policy.salvaged({"chain_cap": 2}) == Policy(chain_cap=2)


def test_a_policy_that_is_no_object_is_refused() -> None:
    with pytest.raises(PolicyError, match="must be an object"):
        Policy.from_dict(["merge"])  # type: ignore[arg-type]


@pytest.mark.parametrize("pattern", ["*", "a", "team-a/u1", "team-a/*", "team a/Anna Ö", "a/b/c/*", "x" * 200])
def test_a_pattern_is_a_scope_all_below_one_or_everything(pattern: str) -> None:
    check_pattern(pattern=pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        *(
            "",
            " ",
            "/",
            "/*",
            "a/",
            "/a",
            "a//b",
            "a//*",
            "**",
            "a*",
            "*/a",
            "a/*/b",
            "a/**",
            " a",
            "a ",
            "a\n",
            "a\tb",
        ),
        *("x" * 201, "a\u202eb", "a\0b"),
    ],
)
def test_any_other_pattern_is_refused_with_the_three_forms(pattern: str) -> None:
    with pytest.raises(PolicyError) as refused:
        check_pattern(pattern=pattern)
    assert refused.value.field == "pattern"
    assert "'team/anna', 'team/*' for all below it, or '*'" in str(refused.value)


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

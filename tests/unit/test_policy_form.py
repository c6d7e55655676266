"""A policy survives its form: what is shown in it and sent back untouched is the same policy, whatever is in it."""

from __future__ import annotations

from typing import Any

import pytest
from django.http import QueryDict
from hypothesis import given, settings
from hypothesis import strategies as st

from consolidation.admin.rules import policy_words as words
from consolidation.admin.rules.policy_form import Draft, shown
from consolidation.policy import RANGES, Policy, Retention, Trigger
from observations.records import MemoryKind, StatedBy

KINDS = st.lists(st.sampled_from(MemoryKind), unique=True).map(
    lambda kinds: tuple(kind for kind in MemoryKind if kind in kinds)
)
WORD = st.text("abcdefgh ", min_size=1, max_size=12).map(str.strip).filter(bool)
RULES = st.lists(
    st.builds(
        Retention,
        stated_by=st.sampled_from([word for word in StatedBy if word is not StatedBy.USER]),
        older_than_days=st.integers(1, 36_500),
        only_unused=st.booleans(),
        kind=st.none() | st.sampled_from(MemoryKind),
    ),
    max_size=45,
).map(tuple)


def figures(name: str) -> st.SearchStrategy[Any]:
    low, high = RANGES[name]
    whole = isinstance(getattr(Policy(), name), int) or name == "review_budget"
    found: st.SearchStrategy[Any] = (
        st.integers(int(low), int(high)) if whole else st.floats(low, high, allow_nan=False, allow_infinity=False)
    )
    return st.none() | found if name in ("t_merge", "review_budget") else found


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    """Any policy that can be stored."""
    found: dict[str, Any] = {name: draw(figures(name)) for name in RANGES}
    found |= {name: draw(st.booleans()) for name in ("merge", "promote", "compact", "archive", "prune", "unattended")}
    found["auto_support"] = max(found["auto_support"], found["min_support"] + 1)
    found["min_support"] = min(found["min_support"], 49)
    found["auto_support"] = min(50, found["auto_support"])
    found["single_valued"] = tuple(draw(st.lists(WORD, unique=True, max_size=3)))
    found["many_valued"] = tuple(f"many {word}" for word in draw(st.lists(WORD, unique=True, max_size=3)))
    found |= {"mergeable": draw(KINDS), "untouchable": draw(KINDS), "retention": draw(RULES)}
    return Policy(**found, trigger=draw(st.sampled_from(Trigger)))


def sent(draft: Draft) -> QueryDict:
    """What a browser sends back when nothing in the form was touched."""
    data = QueryDict(mutable=True)
    for form in [draft.form, *draft.rules, draft.rules.management_form]:
        for field in form:
            value = field.value()
            if isinstance(value, list):
                data.setlist(field.html_name, [str(one) for one in value])
            elif value is not None and value is not False:
                data[field.html_name] = "on" if value is True else str(value)
    return data


def draft(policy: Policy, data: QueryDict | None = None) -> Draft:
    return Draft.of(data, held=policy, measured="")


@settings(max_examples=60, deadline=None)
@given(policies())
def test_a_policy_that_is_shown_and_sent_back_untouched_is_the_same(policy: Policy) -> None:
    """No field is lost, rounded or turned on by being looked at; more rules than usual included."""
    again = draft(policy, sent(draft(policy)))
    assert again.form.is_valid(), again.form.errors
    assert again.rules.is_valid(), again.rules.errors
    values = again.form.values()
    values["retention"] = [rule for row in again.rules if (rule := row.rule()) is not None]
    assert Policy.from_dict(values) == policy


def test_every_field_of_a_policy_has_a_label_and_a_hint_and_stands_in_one_group() -> None:
    """A field that is added to the policy and not to the form fails here."""
    named = [name for group in words.GROUPS for name in group.fields]
    assert sorted([*named, words.RETENTION]) == sorted(Policy().to_dict())
    assert len(set(named)) == len(named)
    for one in words.FIELDS.values():
        assert one.label
        assert one.hint.endswith(".")
    labels = [one.label for one in words.FIELDS.values()]
    assert len(set(labels)) == len(labels)


def test_a_figure_says_its_range_to_the_browser_and_its_default_to_the_person() -> None:
    form = draft(Policy()).form
    attributes = form.fields["grace_days"].widget.attrs
    assert (attributes["min"], attributes["max"], attributes["step"]) == ("1", "3650", "1")
    assert form.fields["grace_days"].help_text.endswith("Default: 30.")
    assert form.fields["blast_share"].widget.attrs["step"] == "any"
    assert "Default: no limit" not in form.fields["review_budget"].help_text
    for name in RANGES:
        assert not form.fields[name].required or name not in ("t_merge", "review_budget")


def test_what_was_shown_is_one_policy_of_one_pattern_at_one_version() -> None:
    """The digest that a save needs: another pattern, policy or version is another one."""
    base = shown(pattern="a/*", policy=Policy(), version=1)
    assert base == shown(pattern="a/*", policy=Policy(), version=1)
    others = {
        shown(pattern="a", policy=Policy(), version=1),
        shown(pattern="a/*", policy=Policy(chain_cap=1), version=1),
        shown(pattern="a/*", policy=Policy(), version=2),
    }
    assert len({base, *others}) == 4


# --- words ------------------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(policies(), policies())
def test_differences_are_what_differs_and_nothing_else(old: Policy, new: Policy) -> None:
    """Whoever reads them knows what a save does."""
    found = {one.name for one in words.differences(old.to_dict(), new.to_dict())}
    real = {name for name in Policy().to_dict() if getattr(old, name) != getattr(new, name)}
    assert found <= real
    for name in real - found:  # two figures that read the same: 0.1 and 0.1000000001
        assert isinstance(getattr(old, name), float)
        assert isinstance(getattr(new, name), float)


def test_a_policy_does_not_differ_from_itself() -> None:
    assert words.differences(Policy().to_dict(), Policy().to_dict()) == []


def test_saying_when_is_a_change_even_if_nothing_else_is() -> None:
    """A schedule plans what nobody spoke about; "only when somebody asks" takes it out."""
    [only] = words.differences({}, Policy().to_dict())
    assert (only.name, only.old, only.new) == ("trigger", words.NOT_SAID, "only when somebody asks")


def test_what_cannot_be_read_counts_as_its_default() -> None:
    found = words.differences({"trigger": "manual", "chain_cap": 99, "blokc": 1}, Policy(grace_days=9).to_dict())
    assert [(one.name, one.old, one.new) for one in found] == [("grace_days", "30", "9")]


@pytest.mark.parametrize(
    ("name", "value", "reads"),
    [
        ("merge", True, "on"),
        ("prune", False, "off"),
        ("t_merge", None, "as measured"),
        ("review_budget", None, "no limit"),
        ("review_budget", 1_000, "1,000"),
        ("blast_share", 0.1, "0.1"),
        ("mergeable", tuple(MemoryKind), "every kind"),
        ("mergeable", (), "none"),
        ("untouchable", tuple(MemoryKind), "preference, identity, fact, state, episode, note"),
        ("single_valued", ("lives in", "b\u202eorn"), "lives in, b\\u202eorn"),
        ("trigger", Trigger.RECORDS, "after a number of new records"),
        ("retention", (Retention(StatedBy.TOOL, 9, kind=MemoryKind.STATE),), "tool, state, older than 9 days"),
    ],
)
def test_a_value_is_written_for_people(name: str, value: object, reads: str) -> None:
    """F5: nothing invisible in what somebody typed."""
    assert words.said(name, value) == reads


def test_a_page_marks_what_is_not_the_default() -> None:
    groups = words.settings(Policy(chain_cap=1))
    unusual = [one.label for _, group in groups for one in group if not one.usual]
    assert unusual == ["Merges upon merges"]
    assert sum(len(group) for _, group in groups) == len(Policy().to_dict())

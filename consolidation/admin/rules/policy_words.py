"""What each field of a policy is called and means, and what differs between two policies: for pages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from consolidation.operations import Json, visible
from consolidation.policy import Policy, Retention, Trigger
from observations.records import MemoryKind


@dataclass(frozen=True, slots=True)
class Words:
    """A field's label, and a sentence or two that say what it does."""

    label: str
    hint: str


@dataclass(frozen=True, slots=True)
class Group:
    """Fields that are set together."""

    title: str
    lead: str
    fields: Mapping[str, Words]


RETENTION: Final = "retention"
GROUPS: Final = (
    Group(
        "What may be done, and to what",
        "All of it is proposed first. What cannot lose anything is applied with its plan; a person decides the rest.",
        {
            "merge": Words("Merge near-identical records", "The sources are archived and come back when it is undone."),
            "promote": Words("Promote what several episodes say", "Makes a new observation; the episodes stay."),
            "compact": Words("Compact episodes into summaries", "Episodes are archived, never deleted."),
            "archive": Words("Archive what has faded", "By the half-life of its kind; never what a user wrote."),
            "prune": Words(
                "Propose pruning", "By the rules of age below, and archived sources that are used up. A person decides."
            ),
            "mergeable": Words(
                "Kinds that may be merged without a person", "For kinds that are not ticked, a person is asked."
            ),
            "untouchable": Words("Kinds that are never touched", "They are part of no proposal, whatever else is set."),
            "keep_days": Words(
                "Days of a retention duty",
                "Younger records and episodes are not compacted, archived or pruned. 0 is no duty.",
            ),
        },
    ),
    Group(
        "When it is planned",
        "Planning proposes and changes no memory. A person can plan at any time.",
        {
            "trigger": Words("Planned", "The schedule itself is switched on under Schedule."),
            "every_records": Words(
                "New records that make a plan",
                "Observations and episodes since the last plan. Counts only with “after a number of new records”.",
            ),
        },
    ),
    Group(
        "Merging and contradictions",
        "A policy can ask for more than what was measured, never for less.",
        {
            "t_merge": Words("Similarity from which records merge by key", "A cosine. Empty: as measured."),
            "cluster_cap": Words("Largest merge", "Records of one merge that a person has to read."),
            "chain_cap": Words("Merges upon merges", "So many below a record; then a person has to look."),
            "confidence_cap": Words("Highest confidence of a merged record", "From 0 to 0.99."),
            "block_cap": Words("Largest block", "Records compared with each other at once; larger blocks are split."),
            "single_valued": Words(
                "Predicates with one value", "One to a line, such as “lives in”. Two values at a time contradict."
            ),
            "many_valued": Words(
                "Predicates with many values", "One to a line, such as “likes”. Two values contradict nothing."
            ),
        },
    ),
    Group(
        "Promoting and compacting",
        "Sources count when they are independent: one document taken in twice is one source.",
        {
            "min_support": Words("Sources needed to promote", "With fewer, nothing is proposed."),
            "auto_support": Words("Sources from which no person is asked", "Between the two figures a person decides."),
            "promoted_confidence": Words("Highest confidence of what is promoted", "From 0 to 0.6."),
            "session_hours": Words(
                "Hours of a session", "Turns that name no session belong together within this time."
            ),
            "max_compression": Words("Episodes per summary", "More would lose too much; at most 10."),
            "compact_after_days": Words("Days before episodes are compacted", "Younger ones stay as they are."),
        },
    ),
    Group(
        "Decay",
        "A record's strength halves with each half-life of its kind; preferences and identity never fade.",
        {
            "archive_below": Words("Strength below which a record is archived", "0.1 is 3.3 half-lives."),
        },
    ),
    Group(
        "People",
        "What reviewers are asked, and what they have to confirm.",
        {
            "review_budget": Words(
                "Items a day that people are asked", "Per scope. Empty: no limit. What is over waits for the next day."
            ),
            "blast_share": Words(
                "Share of a scope that one plan may touch", "0.1 is a tenth. More needs a second confirmation."
            ),
            "blast_floor": Words("Records that one plan may always touch", "Also where the share would be fewer."),
            "approval_ttl_hours": Words("Hours an approval holds", "Then it has to be given again."),
            "grace_days": Words("Days an approved prune can be undone", "Then the text is erased."),
            "two_person_kinds": Words(
                "Kinds that need a second person", "Whoever approved one cannot also agree to it."
            ),
            "two_person_wide": Words(
                "A second person for what touches much", "Where one operation or plan is over the share above."
            ),
            "age_high_hours": Words("Hours that an item of high risk may wait", "Then reviewers get an e-mail."),
            "age_medium_hours": Words("Hours that an item of medium risk may wait", "Then reviewers get an e-mail."),
            "age_low_hours": Words("Hours that an item of low risk may wait", "Then reviewers get an e-mail."),
            "waiting_ttl_days": Words("Days after which an undecided item goes stale", "Nothing is approved by time."),
            "unattended": Words(
                "Apply automatic items by schedule",
                "Without a person, after a trial of 7 days. Off unless you are sure.",
            ),
        },
    ),
    Group(
        "Measured error",
        "A share of what was applied without a decision is put before a person afterwards.",
        {
            "sample_first": Words("The first of each band that people check", "All of them, while little is known."),
            "sample_share": Words("Share that people check then", "0.05 is one in twenty."),
            "error_limit_per_1000": Words(
                "Wrong ones of 1,000 that are allowed",
                "Known to be wrong more often, a rule asks people again. The lowest limit of all policies holds.",
            ),
        },
    ),
)
FIELDS: Final[Mapping[str, Words]] = {
    **{name: words for group in GROUPS for name, words in group.fields.items()},
    RETENTION: Words("Rules of age for pruning", "Nothing is pruned for its age without a rule; never a user's word."),
}
TRIGGERS: Final[Mapping[str, str]] = {
    Trigger.MANUAL: "only when somebody asks",
    Trigger.RECORDS: "after a number of new records",
    Trigger.SCHEDULE: "at the times of the schedule",
}
NOT_SAID: Final = "not said: when somebody asks, and by an enabled schedule"
_EMPTY: Final = {"t_merge": "as measured", "review_budget": "no limit"}


# --- values ----------------------------------------------------------------------------------------------------------


def said(name: str, value: object) -> str:
    """One field's value, to be read."""
    if value is None:
        return _EMPTY.get(name, "none")
    if isinstance(value, bool):
        return "on" if value else "off"
    if name == "trigger":
        return TRIGGERS[str(value)]
    if isinstance(value, tuple):
        return _listed(name, value)
    return f"{value:,}" if isinstance(value, int) else f"{value:g}" if isinstance(value, float) else visible(str(value))


def _listed(name: str, value: tuple[object, ...]) -> str:
    if name == "mergeable" and set(value) == set(MemoryKind):
        return "every kind"
    words = [rule_said(item) if isinstance(item, Retention) else visible(str(item)) for item in value]
    return ("; " if name == RETENTION else ", ").join(words) or "none"


def rule_said(rule: Retention) -> str:
    """One rule of age: "tool, state, older than 540 days, never used"."""
    parts = [rule.stated_by.value, *([rule.kind.value] if rule.kind else []), f"older than {rule.older_than_days} days"]
    return ", ".join([*parts, *(["never used"] if rule.only_unused else [])])


@dataclass(frozen=True, slots=True)
class Setting:
    """One field of a policy as its page shows it."""

    label: str
    value: str
    usual: bool  # it has its default


def settings(policy: Policy) -> list[tuple[str, list[Setting]]]:
    """Every field of a policy under the title of its group."""
    usual = Policy()
    rows = [(group.title, list(group.fields)) for group in GROUPS]
    rows[0][1].append(RETENTION)
    return [(title, [_setting(name, policy, usual) for name in names]) for title, names in rows]


def _setting(name: str, policy: Policy, usual: Policy) -> Setting:
    value = getattr(policy, name)
    return Setting(FIELDS[name].label, said(name, value), usual=value == getattr(usual, name))


@dataclass(frozen=True, slots=True)
class Difference:
    """One field that two policies have otherwise."""

    name: str
    label: str
    old: str
    new: str


def differences(old: Mapping[str, Json], new: Mapping[str, Json]) -> list[Difference]:
    """What differs between two stored policies, in the order of the form. What cannot be read counts as its default.

    When a scope is planned, and that nobody said when, are two things: the schedule plans the latter.
    """
    before, after = Policy.salvaged(old), Policy.salvaged(new)
    found = []
    for name, words in FIELDS.items():
        was, now = said(name, getattr(before, name)), said(name, getattr(after, name))
        if name == "trigger":
            was, now = (was if name in old else NOT_SAID), (now if name in new else NOT_SAID)
        if was != now:
            found.append(Difference(name, words.label, was, now))
    return found

"""A policy as a form: a field for each setting, a few rows for the rules of age, and a sentence beside every fault."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.forms import BoundField
from django.forms.formsets import BaseFormSet
from django.http import QueryDict

from consolidation import revising
from consolidation.admin.rules.policy_words import FIELDS, GROUPS, RETENTION, TRIGGERS, Group, said
from consolidation.operations import Json, Kind, canonical
from consolidation.policy import PATTERN_LENGTH, RANGES, Policy, PolicyError, Retention, Trigger
from observations.embedding import Profile
from observations.records import MemoryKind, StatedBy

if TYPE_CHECKING:
    RuleFormSet = BaseFormSet["RuleForm"]
else:
    RuleFormSet = BaseFormSet

_BLANK_ROWS: Final = 2
_MOST_ROWS: Final = 40
_LINES: Final = ("single_valued", "many_valued")
_KINDS: Final = [(kind.value, kind.value) for kind in MemoryKind]
_OPERATIONS: Final = [(kind.value, kind.value) for kind in Kind]
_MISSING: Final = "Write a number here."


class SettingsForm(forms.Form):
    """Every field of a policy but the rules of age. Ranges are the policy's own affair: it says them in its words."""

    def __init__(self, data: QueryDict | None = None, *, held: Policy, measured: str = "") -> None:
        initial = {name: _initial(name, getattr(held, name)) for name in FIELDS if name != RETENTION}
        super().__init__(data, initial=initial)
        for name in initial:
            self.fields[name] = _field(name, measured)

    def values(self) -> dict[str, Json]:
        """What was entered, as the JSON of a policy. The form is valid."""
        return {name: _value(name, self.cleaned_data[name]) for name in self.fields}

    def groups(self) -> Iterator[tuple[Group, list[BoundField]]]:
        """The bound fields under their headings."""
        for group in GROUPS:
            yield group, [self[name] for name in group.fields]


def _field(name: str, measured: str) -> forms.Field:
    words, usual = FIELDS[name], getattr(Policy(), name)
    hint = f"{words.hint} {measured}" if name == "t_merge" and measured else words.hint
    if not isinstance(usual, bool) and name not in _LINES:
        hint = f"{hint} Default: {said(name, usual)}."
    common: dict[str, Any] = {"label": words.label, "help_text": hint, "required": False}
    if isinstance(usual, bool):
        return forms.BooleanField(**common)
    if name == "trigger":
        choices = [(str(word), TRIGGERS[word]) for word in Trigger]
        return forms.ChoiceField(**{**common, "required": True}, choices=choices, widget=forms.RadioSelect)
    if name in _LINES:
        return forms.CharField(**common, max_length=5_000, widget=forms.Textarea(attrs={"rows": 3}))
    if isinstance(usual, tuple):
        offered = _OPERATIONS if name == "two_person_kinds" else _KINDS
        return forms.MultipleChoiceField(**common, choices=offered, widget=forms.CheckboxSelectMultiple)
    return _number(name, usual, common)


def _number(name: str, usual: object, common: dict[str, Any]) -> forms.Field:
    low, high = RANGES[name]
    whole = isinstance(usual, int) or name == "review_budget"
    field = forms.IntegerField if whole else forms.FloatField
    empty = name in ("t_merge", "review_budget")
    widget = forms.NumberInput(attrs={"min": f"{low:g}", "max": f"{high:.6g}", "step": "1" if whole else "any"})
    if whole:
        widget.attrs.update(min=str(low), max=str(high))
    return field(**{**common, "required": not empty}, widget=widget, error_messages={"required": _MISSING})


def _initial(name: str, value: object) -> object:
    if name in _LINES and isinstance(value, tuple):
        return "\n".join(value)
    return [str(item) for item in value] if isinstance(value, tuple) else value


def _value(name: str, entered: Any) -> Json:
    if name in _LINES:
        return [line.strip() for line in str(entered).splitlines() if line.strip()]
    found: Json = list(entered) if isinstance(entered, list) else entered
    return found


# --- the rules of age -------------------------------------------------------------------------------------------------


class RuleForm(forms.Form):
    """One rule. A row without an origin is no rule, so emptying that removes it."""

    stated_by = forms.ChoiceField(
        label="Stated by",
        required=False,
        choices=[("", "no rule"), *((word.value, word.value) for word in StatedBy if word is not StatedBy.USER)],
    )
    older_than_days = forms.IntegerField(
        label="Older than, in days", required=False, widget=forms.NumberInput(attrs={"min": "1", "max": "36500"})
    )
    kind = forms.ChoiceField(label="Kind", required=False, choices=[("", "every kind"), *_KINDS])
    only_unused = forms.BooleanField(label="Only records that were never used", required=False)

    def clean(self) -> dict[str, Any]:
        """Refuses what Retention refuses, at the field it is about."""
        found: dict[str, Any] = super().clean() or self.cleaned_data
        if found.get("stated_by") and "older_than_days" in found:
            try:
                _rule(found)
            except PolicyError as fault:
                field = fault.field.removeprefix("retention.")
                self.add_error(field if field in self.fields else None, str(fault))
        return found

    def rule(self) -> dict[str, Json] | None:
        """The rule as JSON, None for an empty row. The form is valid."""
        if not self.cleaned_data.get("stated_by"):
            return None
        rule = _rule(self.cleaned_data)
        return {
            "stated_by": rule.stated_by.value,
            "older_than_days": rule.older_than_days,
            "only_unused": rule.only_unused,
            "kind": rule.kind.value if rule.kind else None,
        }


def _rule(found: Mapping[str, Any]) -> Retention:
    return Retention(
        stated_by=StatedBy(found["stated_by"]),
        older_than_days=found["older_than_days"] or 0,
        only_unused=bool(found.get("only_unused")),
        kind=MemoryKind(found["kind"]) if found.get("kind") else None,
    )


def _rules(data: QueryDict | None, held: Policy) -> RuleFormSet:
    most = max(_MOST_ROWS, len(held.retention) + _BLANK_ROWS)
    made: type[RuleFormSet] = forms.formset_factory(RuleForm, extra=_BLANK_ROWS, max_num=most, absolute_max=most)
    initial = [
        {
            "stated_by": rule.stated_by.value,
            "older_than_days": rule.older_than_days,
            "kind": rule.kind.value if rule.kind else "",
            "only_unused": rule.only_unused,
        }
        for rule in held.retention
    ]
    return made(data, initial=initial, prefix=RETENTION)


# --- both together ----------------------------------------------------------------------------------------------------


class PatternForm(forms.Form):
    """For which scopes a new policy holds."""

    pattern = forms.CharField(
        label="Scopes",
        max_length=PATTERN_LENGTH,
        help_text="The name of a scope, such as team/anna; team/* for all below team; or * for every scope.",
        error_messages={"required": "Say for which scopes."},
    )


@dataclass(frozen=True, slots=True)
class Draft:
    """A policy that somebody is writing."""

    form: SettingsForm
    rules: RuleFormSet
    named: PatternForm | None  # None: the pattern is settled

    @classmethod
    def of(
        cls, data: QueryDict | None, *, held: Policy, measured: str, pattern: str = "", settled: bool = True
    ) -> Draft:
        """The form, filled with what was posted, or with a policy."""
        return cls(
            form=SettingsForm(data, held=held, measured=measured),
            rules=_rules(data, held),
            named=None if settled else PatternForm(data, initial={"pattern": pattern}),
        )

    def policy(self, *, pattern: str, profile: Profile) -> Policy | None:
        """What was entered; None when it cannot be saved, with a sentence at each field at fault. One query."""
        valid = [self.form.is_valid(), self.rules.is_valid(), self.named is None or self.named.is_valid()]
        if not all(valid):  # each one says its own faults
            return None
        values: dict[str, Json] = self.form.values()
        values[RETENTION] = [rule for row in self.rules if (rule := row.rule()) is not None]
        faults = revising.faults(pattern=pattern, values=values, profile=profile)
        for name, sentence in faults.items():
            self._refuse(name, sentence)
        return None if faults else Policy.from_dict(values)

    def _refuse(self, name: str, sentence: str) -> None:
        if name == "pattern" and self.named is not None:
            self.named.add_error("pattern", sentence)
            return
        beside = sentence.replace(f"{name} must", "It must", 1)  # the field's label stands above it
        self.form.add_error(name if name in self.form.fields else None, beside)

    @property
    def wrong(self) -> int:
        """How many sentences there are to read."""
        rows = sum(len(row.errors) for row in self.rules) if self.rules.is_bound else 0
        named = len(self.named.errors) if self.named else 0
        return len(self.form.errors) + rows + named + len(self.rules.non_form_errors())


def shown(*, pattern: str, policy: Policy, version: int) -> str:
    """What the page showed as about to be saved, as a digest: saving anything else shows it first."""
    return hashlib.sha256(f"{version} {pattern} ".encode() + canonical(policy.to_dict())).hexdigest()

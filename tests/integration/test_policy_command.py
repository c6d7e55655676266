"""`manage.py consolidate policy`: what holds where, and setting single fields of it."""

from __future__ import annotations

import io
import json

import pytest
from django.core.management import CommandError, call_command

from consolidation.models import Policy, PolicyRevision
from consolidation.policy import Policy as Rules
from tests.building import scope

pytestmark = pytest.mark.django_db(transaction=True)


def policy(*words: str) -> str:
    out = io.StringIO()
    call_command("consolidate", "policy", *words, "--by", "ines", stdout=out)
    return out.getvalue()


def test_without_a_policy_the_defaults_are_shown_and_nothing_is_written() -> None:
    shown = policy("--scope", "team-a/u1")
    assert "No policy covers team-a/u1: the defaults hold." in shown
    assert "review_budget" in shown
    assert not Policy.objects.exists()


def test_a_field_is_set_and_the_others_stay() -> None:
    policy("--scope", "team-a/u1", "compact=true")
    shown = policy("--scope", "team-a/u1", "review_budget=null", "mergeable=fact,note")
    assert "true  (default false)" in shown
    rules = Policy.objects.effective(scope="team-a/u1")
    assert (rules.compact, rules.review_budget, list(rules.mergeable)) == (True, None, ["fact", "note"])
    assert PolicyRevision.objects.count() == 2


def test_a_scope_without_its_own_policy_starts_from_the_one_that_holds() -> None:
    policy("--scope", "team-a/*", "prune=true")
    policy("--scope", "team-a/u1", "archive=true")
    assert Policy.objects.effective(scope="team-a/u1").prune
    assert not Policy.objects.effective(scope="team-a/u2").archive
    assert "that of team-a/*, version 1, by ines, holds" in policy("--scope", "team-a/u2")


@pytest.mark.parametrize(
    ("word", "sentence"),
    [
        ("compct=true", "is not NAME=VALUE"),
        ("compact", "is not NAME=VALUE"),
        ("compact=maybe", "compact must be true or false"),
        ("max_compression=40", "max_compression must be from"),
        ("t_merge=0.6", "t_merge"),
    ],
)
def test_what_cannot_be_set_is_refused_in_one_sentence_and_nothing_is_stored(word: str, sentence: str) -> None:
    with pytest.raises(CommandError, match=sentence) as refused:
        policy("--scope", "team-a/u1", word)
    assert refused.value.returncode == 2
    assert not Policy.objects.exists()


def test_the_policy_as_json_is_read_back_as_the_same_policy() -> None:
    scope("team-a/u1")
    policy("--scope", "team-a/u1", 'retention=[{"stated_by": "tool", "older_than_days": 30}]', "prune=true")
    document = json.loads(policy("--scope", "team-a/u1", "--json"))
    assert Rules.from_dict(document["policy"]) == Policy.objects.effective(scope="team-a/u1")
    assert document["version"] == 1

"""'May' is 'can' in a rule of the house and nowhere else; hedges, conditions and round figures never pass (C7)."""

from __future__ import annotations

import pytest

from consolidation.guards import objections
from consolidation.guards.permission import permits
from consolidation.guards.wordings import wording

PERMISSIONS = [
    ("Guests may use the north car park after six", "Guests can use the north car park after six"),
    ("Guests may use the north car park after 6 pm.", "Guests can use the north car park after six pm"),
    ("Guests may use the sauna", "Guests can use the sauna"),
    ("All guests may use the pool from 7 to 9 am", "All guests can use the pool from 7 to 9 am"),
    ("Guests may park here", "Guests can park here"),
    ("Guests may enter", "Guests can enter"),
    ("Students may borrow books for two weeks", "Students can borrow books for 2 weeks"),
    ("Members may bring their dogs", "Members can bring their dogs"),
    ("Visitors may take photos in the museum", "Visitors can take photos in the museum"),
    ("Residents may use the laundry room on Sundays", "Residents can use the laundry room on Sundays"),
    ("You may use the side door", "You can use the side door"),
    ("Employees may also use the gym", "Employees can use the gym"),
]
# One text says that something may happen, the other that somebody is able to, or nobody can tell which is meant.
POSSIBLE = [
    "Patients may relapse",
    "The server may restart at night",
    "Users may lose their data",
    "Users may use the wrong key",
    "Users may use more memory",
    "Users may enter invalid dates",
    "Customers may leave",
    "Customers may order less this year",
    "Children may take longer",
    "Children may enter the street",
    "Children may swallow the battery",
    "You may feel dizzy",
    "You may leave tomorrow",
    "Staff may be late",
    "Staff may take the wrong bus",
    "Employees may leave because of stress",
    "Employees may work harder",
    "Visitors may bring the flu",
    "Visitors may enter through the window",
    "People may ask why",
    "Drivers may fall asleep",
    "Passengers may miss the connection",
    "Members may have left",
    "Guests may use the pool if it is open",
    "Guests may use the pool unless it is closed",
    "Guests may use the pool by mistake",
    "Guests may park on the lawn again",
    "Guests may park badly",
    "Guests may visit the museum tomorrow",
    "Owners may borrow trouble",
    "Owners may borrow less",
    "Patients may leave the hospital confused",
    "Workers may ask for more money",
    "Tenants may be using the gym",
    "Ann fears guests may use the pool",
    "Experts say users may use the library",
    "Tomorrow guests may use the pool",
    "The pool that guests may use",
    "Perhaps guests may use the pool",
    "Guests may use the pool. They rarely do",
    "Few guests may use the pool",
    "No guests may use the pool",
    "Guests may not use the pool",
    "Ann may use the pool",
    "Robots may use the lift",
]


@pytest.mark.parametrize(("a", "b"), PERMISSIONS)
def test_a_plain_permission_may_be_said_with_may_or_can(a: str, b: str) -> None:
    """C7's control pair and its like."""
    assert objections(a, b) == objections(b, a) == ()


@pytest.mark.parametrize("text", POSSIBLE)
def test_a_possibility_is_not_an_ability(text: str) -> None:
    """C7: whatever is not clearly a permission is for a person to tell apart, in either order."""
    other = text.replace(" may not ", " cannot ").replace(" may ", " can ")
    found = objections(text, other)
    assert "hedge" in {objection.guard for objection in found}
    assert objections(other, text) == found


@pytest.mark.parametrize("text", POSSIBLE)
def test_a_rule_that_looks_at_the_subject_alone_would_merge_it(text: str) -> None:
    """The naive control is kept honest: it lets most of these pass, the rule none."""
    words = wording(tuple(text.casefold().split()))
    assert "can" not in words
    assert not any(permits(words, at) for at, word in enumerate(words) if word == "may")


def test_the_rule_of_the_subject_alone_merges_most_of_them() -> None:
    subjects = {text.split()[0].casefold() for text, _ in PERMISSIONS} | {"patients", "customers", "children", "staff"}
    assert sum(text.split()[0].casefold() in subjects for text in POSSIBLE) > len(POSSIBLE) / 2


HEDGED = [
    ("Guests may use the pool", "Guests might use the pool"),
    ("Guests may use the pool", "Guests could use the pool"),
    ("Guests may use the pool", "Guests must use the pool"),
    ("Guests can use the pool", "Guests could use the pool"),
    ("Guests should use the side door", "Guests must use the side door"),
    ("Guests should pay", "Guests ought to pay"),
    ("Guests have to pay", "Guests should pay"),
    ("Guests must pay", "Guests have to pay"),
    ("Nobody should park here", "Nobody must park here"),
    ("It may rain", "It might rain"),
    ("The shop might open", "The shop could open"),
    ("Ann will come", "Ann would come"),
    ("Ann usually swims", "Ann swims"),
    ("Ann usually swims", "Ann often swims"),
    ("Ann usually swims", "Ann always swims"),
    ("Ann generally swims", "Ann swims"),
    ("Ann normally swims", "Ann usually swims"),
    ("Ann almost never swims", "Ann never swims"),
    ("Ann sort of agreed", "Ann agreed"),
    ("Ann more or less agreed", "Ann agreed"),
    ("Ann swims if it rains", "Ann swims unless it rains"),
    ("Ann swims if it rains", "Ann swims when it rains"),
    ("Ann swims when it rains", "Ann swims whenever it rains"),
    ("Ann swims once it rains", "Ann swims if it rains"),
    ("Ann swims if only it rains", "Ann swims only if it rains"),
    ("Ann swims until it rains", "Ann swims unless it rains"),
    ("Ann swims in case it rains", "Ann swims if it rains"),
    ("Ann swims although it rains", "Ann swims because it rains"),
    ("Unless it rains, Ann swims", "If it rains, Ann swims"),
    ("When asked, Ann sings", "If asked, Ann sings"),
    ("Ann only swims if it rains", "Ann swims only if it rains"),
    ("Should Ann leave, Bob stays", "Ann should leave, Bob stays"),
    ("Were Ann to leave, Bob stays", "Ann were to leave, Bob stays"),
    ("Ann has about 5 cats", "Ann has 5 cats"),
    ("Ann has around 5 cats", "Ann has 5 cats"),
    ("Ann has about 5 cats", "Ann has around 5 cats"),
    ("Ann has ~5 cats", "Ann has 5 cats"),
    ("Ann has 5+ cats", "Ann has 5 cats"),
    ("Ann has some 5 cats", "Ann has 5 cats"),
    ("Ann has 5 or so cats", "Ann has 5 cats"),
    ("Ann has ca. 5 cats", "Ann has 5 cats"),
    ("Ann has 5 (?) cats", "Ann has 5 cats"),
    ("Ann has nearly 5 cats", "Ann has 5 cats"),
    ("Ann has over 5 cats", "Ann has about 5 cats"),
    ("Ann has at least 5 cats", "Ann has at most 5 cats"),
    ("Ann has up to 5 cats", "Ann has 5 cats"),
    ("Ann has a few friends", "Ann has few friends"),
    ("Ann left (probably)", "Ann left"),
    ("Ann left, apparently", "Ann left"),
    ("Ann is said to lie", "Ann lies"),
]
# Set phrases and contractions that are the same in some sentences only.
TURNED = [
    ("Ann has got fired", "Ann has fired"),
    ("Ann has got beaten", "Ann has beaten"),
    ("Bob has got robbed", "Bob has robbed"),
    ("Ann has got hurt", "Ann has hurt"),
    ("Bob has got hit", "Bob has hit"),
    ("No less than Ann came", "At least Ann came"),
    ("All papers are in order to start", "All papers are to start"),
    ("The files were in order to be sent", "The files were to be sent"),
    ("She's left", "She is left"),
    ("He's beaten", "He is beaten"),
    ("It's hit", "It is hit"),
    ("Everyone's paid", "Everyone is paid"),
    ("He's changed", "He is changed"),
]
SAME = [
    ("Ann has got a car", "Ann has a car"),
    ("No less than 5 came", "At least 5 came"),
    ("They met in order to talk", "They met to talk"),
    ("It's late", "It is late"),
    ("She's married", "She is married"),
    ("He's tired", "He is tired"),
    ("She's a nurse", "She is a nurse"),
    ("She's left", "she's left."),
]


@pytest.mark.parametrize(("a", "b"), [*HEDGED, *TURNED])
def test_another_certainty_condition_or_turn_of_phrase_never_passes(a: str, b: str) -> None:
    """C7: the guards object to each, in either order."""
    assert objections(a, b)
    assert objections(a, b) == objections(b, a)


@pytest.mark.parametrize(("a", "b"), SAME)
def test_the_same_phrases_pass_where_they_say_the_same(a: str, b: str) -> None:
    assert objections(a, b) == ()

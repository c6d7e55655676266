"""Denial, words that exclude each other, amounts, certainty and conditions: who objects to what, and who does not.

Each table is of adversarial pairs for one clause of C7. In the second half the guards of that clause must be silent:
nothing of theirs differs, whatever else does (another guard may still ask a person).
"""

from __future__ import annotations

import pytest

from consolidation.guards import objections

DENIED = [
    ("Remember to lock the shed", "Do not remember to lock the shed"),
    ("Ann eats fish", "Ann doesn't eat fish"),
    ("Ann eats fish", "Ann never eats fish"),
    ("Ann can swim", "Ann can't swim"),
    ("Ann will come", "Ann won't come"),
    ("Ann likes jazz", "Ann dislikes jazz"),
    ("The cellar is locked", "The cellar is unlocked"),
    ("The lease is valid", "The lease is invalid"),
    ("The answer was regular", "The answer was irregular"),
    ("The trail is possible in winter", "The trail is impossible in winter"),
    ("She gave a careful answer", "She gave a careless answer"),
    ("The yoghurt is sugary", "The yoghurt is sugar-free"),
    ("Ann takes tea with milk", "Ann takes tea without milk"),
    ("Everyone but Ann came", "Everyone came, Ann did not"),
    ("Ann agreed to sign", "Ann refused to sign"),
    ("Ann passed the exam", "Ann failed to pass the exam"),
    ("Ann is able to drive", "Ann is unable to drive"),
    ("Ann works at the mill", "Ann no longer works at the mill"),
    ("Somebody called", "Nobody called"),
    ("The shop has bread", "The shop has no bread"),
    ("Ann hardly slept", "Ann slept"),
    ("Ann rarely smokes", "Ann smokes"),
    ("Neither of them came", "Both of them came"),
    ("The team is nonprofit", "The team is profit"),
    ("Ann understood the plan", "Ann misunderstood the plan"),
    ("Ann was honest", "Ann was dishonest"),
    ("All members except Ann voted", "All members and Ann voted"),
    ("Ann stopped smoking", "Ann smoking"),
    ("Ann mustnt know", "Ann must know"),
    ("Ann chose tea instead of coffee", "Ann chose tea and coffee"),
    ("No, Ann is coming", "No Ann is coming"),
    ("Nothing was stolen", "Something was stolen"),
]
NOT_DENIED = [
    ("Remember to lock the shed", "Do not forget to lock the shed"),
    ("Remember to lock the shed", "Don't forget to lock the shed"),
    ("Always remember to lock up", "Never forget to lock up"),
    ("She remembers to feed the cat", "She doesn't forget to feed the cat"),
    ("She remembered to feed the cat", "She didn't forget to feed the cat"),
    ("You must remember the keys", "You must not forget the keys"),
    ("We will remember the keys", "We won't forget the keys"),
    ("Ann can't swim", "Ann cannot swim"),
    ("Ann doesn't eat fish", "Ann does not eat fish"),
    ("Nobody came", "No one came"),
    ("The unit is cold", "The unit is warm"),
    ("Ann isn't here", "Ann is not here at noon"),
    ("Ann has no car and lives in Oslo", "Ann has no car and lives in Bergen"),
    ("Ann never drinks beer", "Ann never drinks wine"),
    ("The note was undated", "The letter was undated"),
    ("Ann knows the knot", "Ann knows the note"),
    ("Ann lives in Norway", "Ann lives in Nome"),
    ("Ann is not tall", "Ann is not tall."),
    ("The union met", "The onion met"),
    ("Ann is inside the inn", "Ann is outside the inn"),
    ("The illness passed", "The fitness passed"),
    ("Ann is a minor", "Ann is a miner"),
    ("Ann disliked the unusual soup", "Ann disliked the unusual stew"),
    ("They met without Bob in May", "They met without Bob in June"),
    ("Ann hates cats", "Ann loves cats"),
    ("Ann did nothing wrong on Monday", "Ann did nothing wrong on Friday"),
    ("The wireless headset works", "The wireless headphones work"),
    ("Ann unpacked the box", "Ann unpacked the crate"),
    ("Don't wake Ann", "Do not wake Ann"),
    ("Ann shouldn't drive", "Ann should not drive"),
]


@pytest.mark.parametrize(("a", "b"), DENIED)
def test_a_denial_in_one_text_is_objected_to(a: str, b: str) -> None:
    """C7: 'not' is not a near-duplicate."""
    assert guards_of(a, b) & {"negation"}, guards_of(a, b)


@pytest.mark.parametrize(("a", "b"), NOT_DENIED)
def test_what_both_texts_affirm_or_deny_alike_is_no_matter_of_negation(a: str, b: str) -> None:
    """'Do not forget to' is no negation of 'remember to'."""
    assert not guards_of(a, b) & {"negation"}


def test_a_denial_in_other_words_is_named_without_the_alarm() -> None:
    """'Unhappy' denies what 'not happy' denies; a person looks, but nobody contradicts anybody."""
    for a, b in [
        ("Ann is unhappy", "Ann is not happy"),
        ("Ann is happy", "Ann is not unhappy"),
        ("Ann no longer sings", "Ann does not sing any longer"),
    ]:
        (objection,) = [found for found in objections(a, b) if found.guard == "negation"]
        assert not objection.possible_contradiction


EXCLUDED = [
    ("The gate is always locked", "The gate is never locked"),
    ("Call before noon", "Call after noon"),
    ("More than 5 came", "Fewer than 5 came"),
    ("Only Ann has the key", "Ann has the key"),
    ("All lamps work", "None of the lamps work"),
    ("All lamps work", "Some lamps work"),
    ("Few lamps work", "A few lamps work"),
    ("Ann has little money", "Ann has a little money"),
    ("At least 5 seats are free", "At most 5 seats are free"),
    ("Both doors are open", "Either door is open"),
    ("Ann often swims", "Ann seldom swims"),
    ("Ann swims once a week", "Ann swims twice a week"),
    ("Most members voted", "The most members voted"),
    ("Ann ate half the cake", "Ann ate the whole cake"),
    ("Ann just called", "Ann called"),
    ("The loan was approved", "The loan was rejected"),
    ("Prices rose in May", "Prices fell in May"),
    ("Ann loves winter", "Ann hates winter"),
    ("Ann bought the boat", "Ann sold the boat"),
    ("Ann lent Bob a bike", "Ann borrowed Bob a bike"),
    ("The soup is hot", "The soup is cold"),
    ("Ann's older brother called", "Ann's older sister called"),
    ("Ann is married", "Ann is single"),
    ("Ann is a vegan", "Ann is a carnivore"),
    ("The build succeeded", "The build failed"),
    ("The flag is enabled", "The flag is disabled"),
    ("Several people came", "Many people came"),
    ("Almost everyone came", "Everyone came"),
    ("Ann drinks black tea", "Ann drinks green tea"),
    ("Ann is the oldest of several", "Ann is the oldest of all"),
    ("Every room is clean", "Any room is clean"),
    ("Ann joined the club", "Ann left the club"),
]
NOT_EXCLUDED = [
    ("The gate is always locked", "The door is always locked"),
    ("Call Ann before noon", "Call Bob before noon"),
    ("Fewer than 5 came", "Less than 5 came"),
    ("No more than 5 came", "At most 5 came"),
    ("A lot of people came", "Many people came"),
    ("A lot of people came", "Lots of people came"),
    ("Ann often swims", "Ann frequently swims"),
    ("Everyone came", "Everybody came"),
    ("Someone called", "Somebody called"),
    ("Ann likes tea", "Ann likes soup"),
    ("Ann bought a boat", "Ann purchased a boat"),
    ("Ann started a course", "Ann began a course"),
    ("All of Ann's lamps work", "All of Bob's lamps work"),
    ("Ann has an old car", "Ann has an old bike"),
    ("Ann saw the hotel", "Ann saw the motel"),
    ("Ann is tall.", "ann is tall"),
    ("Ann ate a pear", "Ann ate a plum"),
    ("Ann called at 5", "Ann called at 6"),
    ("Ann lives in Oslo", "Ann lived in Oslo"),
    ("Ann keeps bees", "Ann keeps wasps"),
    ("Ann said the train was late", "Ann says the train was late"),
    ("A number of people came", "Several people came"),
    ("Guests may enter", "Guests can enter"),
    ("The parcel weighs 5 kg", "The parcel weighs five kilograms"),
    ("Ann plays the cello", "Ann plays the viola"),
    ("Ann met a nurse in Oslo", "Ann met a nurse near Oslo"),
    ("Ann, who sings, left", "Ann, who paints, left"),
    ("Twice a day", "twice a day."),
    ("He is never late", "He is never LATE"),
    ("Ann rents a flat", "Ann rents a house"),
]


@pytest.mark.parametrize(("a", "b"), EXCLUDED)
def test_words_that_exclude_each_other_and_other_amounts_are_objected_to(a: str, b: str) -> None:
    """C7: always and never, before and after, more and less, only, all and none."""
    assert guards_of(a, b) & {"antonym", "quantifier", "direction"}, guards_of(a, b)


@pytest.mark.parametrize(("a", "b"), NOT_EXCLUDED)
def test_words_that_do_not_exclude_each_other_are_not_called_opposites(a: str, b: str) -> None:
    assert not guards_of(a, b) & {"antonym", "quantifier"}


HEDGED = [
    ("Ann is moving", "Ann may be moving"),
    ("Ann will move", "Ann might move"),
    ("Ann is ill", "Ann is probably ill"),
    ("Ann is ill", "Ann seems ill"),
    ("The deal is signed", "The deal is reportedly signed"),
    ("Ann moves to Rome", "Ann wants to move to Rome"),
    ("Ann moved to Rome", "Ann planned to move to Rome"),
    ("Ann learns Greek", "Ann hopes to learn Greek"),
    ("Ann swims if it is warm", "Ann swims"),
    ("Ann swims unless it rains", "Ann swims"),
    ("Ann swims when it rains", "Ann swims"),
    ("Ann will sign provided Bob signs", "Ann will sign"),
    ("Ann goes in case Bob stays", "Ann goes"),
    ("Ann stays as long as Bob stays", "Ann stays"),
    ("Ann goes even if Bob stays", "Ann goes if Bob stays"),
    ("Ann goes only if Bob goes", "Ann goes if Bob goes"),
    ("Ann must pay", "Ann should pay"),
    ("Ann can pay", "Ann must pay"),
    ("Ann believes Bob left", "Bob left"),
    ("Ann tried to open the safe", "Ann opened the safe"),
    ("Ann could win", "Ann was able to win"),
    ("It may rain", "It can rain"),
    ("Ann may swim", "Ann can swim"),
    ("Perhaps Ann left", "Ann left"),
    ("Ann is expected to resign", "Ann is to resign"),
    ("Ann needs a visa", "Ann has a visa"),
    ("Whether Ann left", "Ann left"),
    ("Ann is willing to help", "Ann is helping"),
    ("Allegedly Ann lied", "Ann lied"),
    ("Ann is certain to win", "Ann is likely to win"),
    ("Guests may not park here", "Guests cannot park here"),
]
NOT_HEDGED = [
    ("Ann may not come", "Ann may not stay"),
    ("Guests may use the sauna", "Guests can use the sauna"),
    ("You may use the side door", "You can use the side door"),
    ("Ann hopes that she wins", "Ann hopes she wins"),
    ("Ann says that it rains", "Ann says it rains"),
    ("Ann might move to Oslo", "Ann might move to Rome"),
    ("Ann swims if it is warm", "Bob swims if it is warm"),
    ("Ann works in order to eat", "Ann works to eat"),
    ("Ann moved in May", "Ann moved in June"),
    ("Ann's will was read", "Ann's letter was read"),
    ("Ann bought a can of paint", "Ann bought a can of oil"),
    ("Ann is moving", "Ann is moving."),
    ("The must was sour", "The must was sweet"),
    ("Ann is 5", "Ann is 6"),
    ("If Ann calls, tell me", "if Ann calls, tell me"),
    ("Ann wants two cats", "Ann wants 2 cats"),
    ("Ann'll call", "Ann will call"),
    ("Ann should sleep more", "Ann should sleep less"),
    ("Ann tried the soup", "Ann tried the stew"),
    ("Perhaps Ann left", "Perhaps Bob left"),
    ("Ann thinks of Oslo", "Ann thinks of Rome"),
    ("Ann won't come", "Ann will not come"),
    ("Ann shouldn't come", "Ann should not come"),
    ("Ann likes maybelline", "Ann likes mascara"),
    ("Ann ate apple pie", "Ann ate plum pie"),
    ("Ann couldn't come", "Ann could not come"),
    ("He'll sing", "He will sing"),
    ("Ann would've come", "Ann would have come"),
    ("Unless it rains, we go", "unless it rains, we go"),
    ("Ann mightn't come", "Ann might not come"),
]


@pytest.mark.parametrize(("a", "b"), HEDGED)
def test_a_possibility_a_wish_or_a_condition_is_no_fact(a: str, b: str) -> None:
    """Hedges and conditions: what one text states, the other only allows for."""
    assert guards_of(a, b) & {"hedge"}, guards_of(a, b)


@pytest.mark.parametrize(("a", "b"), NOT_HEDGED)
def test_an_equal_certainty_is_not_objected_to(a: str, b: str) -> None:
    assert not guards_of(a, b) & {"hedge"}


def guards_of(a: str, b: str) -> set[str]:
    """The guards that object to the pair."""
    return {objection.guard for objection in objections(a, b)}

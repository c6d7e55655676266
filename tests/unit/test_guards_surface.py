"""Texts with identical normalised text that are not one claim, and those that are: the guards look at the texts."""

from __future__ import annotations

import time

import pytest

from consolidation.guards import objections
from observations.normalise import normalised

# guard, one text, the other: one normalised text, two claims
TWO_CLAIMS = [
    ("question", "Ann is here?", "Ann is here."),
    ("question", "Ann is here? Bob knows.", "Ann is here. Bob knows?"),
    ("question", "¿Viene Ana a la casa?", "Viene Ana a la casa"),
    ("question", "Έρχεται η Άννα;", "Έρχεται η Άννα."),
    ("question", "آنا هنا؟", "آنا هنا"),
    ("case", "They told us", "They told US"),
    ("case", "Sam has ADD today", "Sam has add today"),
    ("case", "I think Bob likes it", "I think Bob likes IT"),
    ("case", "He likes Polish food", "He likes polish food"),
    ("case", "Er liebt sie und mich", "Er liebt Sie und mich"),
    ("case", "Er hat in der Stadt liebe Genossen", "Er hat in der Stadt Liebe genossen"),
    ("case", "The Key is aB3x9 now", "The Key is Ab3x9 now"),
    ("case", "Open src/Main.py Ann", "Open src/main.py Ann"),
    ("punctuation", "Tim said Ann is late", "Tim, said Ann, is late"),
    ("punctuation", "She likes cooking, her family and dogs", "She likes cooking her family and dogs"),
    ("punctuation", "Time to eat, Ann", "Time to eat Ann"),
    ("punctuation", "Call Ann Lee", "Call Ann, Lee"),
    ("punctuation", "The panda eats, shoots and leaves", "The panda eats shoots and leaves"),
    ("punctuation", "A woman: without her, man is nothing", "A woman, without her man, is nothing"),
    ("punctuation", "Most of all, travellers like sun", "Most of all travellers like sun"),
    ("punctuation", 'Ann said "I am rich" to Bob', "Ann said I am rich to Bob"),
    ("punctuation", 'It is a "free" gift', "It is a free gift"),
    ("punctuation", "The guests who sang left", "The guests, who sang, left"),
    ("punctuation", "She likes chocolate cake and tea", "She likes chocolate, cake and tea"),
    ("punctuation", "Ann married Bob and Cy, and Di left", "Ann married Bob, and Cy and Di left"),
    ("punctuation", "He thanked his parents, Ann and Bob", "He thanked his parents, Ann, and Bob"),
    ("punctuation", "When eating, Ann sings", "When eating Ann sings"),
    ("punctuation", "Inside, the dog barked", "Inside the dog barked"),
    ("punctuation", "Ann left. Bob stayed", "Ann left Bob stayed"),
    ("punctuation", "There was nothing, but rain fell", "There was nothing but rain fell"),
    ("punctuation", "Ann, Bob's sister, left", "Ann, Bob's sister left"),
    ("punctuation", "Казнить, нельзя помиловать", "Казнить нельзя, помиловать"),
    ("punctuation", "Komm, wir essen, Opa, und die Katze", "Komm, wir essen Opa und die Katze"),
    ("punctuation", "A loss of (500) so far", "A loss of 500 so far"),
    ("punctuation", "Slow, children crossing", "Slow children crossing"),
    ("punctuation", "No smoking, food or drink", "No smoking food or drink"),
    ("punctuation", "I know, Ann", "I know Ann"),
    ("punctuation", "The dogs' and cats' owners", "The dogs and cats owners"),
    ("article", "She works in the office", "She works in office"),
    ("article", "The roof is on the fire", "The roof is on fire"),
    ("article", "He sits in the front of the car", "He sits in front of the car"),
    ("article", "Ann went to the Amazon", "Ann went to Amazon"),
    ("article", "Ann hired a clerk and cook", "Ann hired a clerk and a cook"),
    ("article", "Ann ate a chicken", "Ann ate chicken"),
    ("article", "Ann likes the dogs", "Ann likes dogs"),
    ("article", "Ann is the winner", "Ann is a winner"),
    ("article", "She's the boss", "She's a boss"),
    ("article", "Ann bought the second car", "Ann bought a second car"),
    ("article", "A third of us left", "The third of us left"),
    ("article", "The dogs are dangerous", "Dogs are dangerous"),
    ("punctuation", 'Ann said "I quit"', "Ann said I quit"),
    ("article", "He is the one", "He is one"),
    ("article", "A. Hall called", "Hall called"),
    ("punctuation", "Ann did not leave because of Bob", "Ann did not leave, because of Bob"),
    ("punctuation", "Loggers are read every tide when it is dry", "Loggers are read every tide, when it is dry"),
    ("sign", "The grid is 5 * 3 here", "The grid is 5 3 here"),
    ("sign", "Run it if x != 5", "Run it if x = 5"),
    ("sign", "Set the flag !debug", "Set the flag debug"),
    ("sign", "Ann is HIV-", "Ann is HIV"),
    ("sign", "I am going:)", "I am going:("),
    ("sign", "I am going :'(", "I am going"),
    ("sign", "She got an A*", "She got an A"),
    ("sign", "A 5* hotel", "A 5 hotel"),
    ("sign", "Set x <- y", "Set x < y"),
    ("number", "a 5' pipe", 'a 5" pipe'),
    ("number", "The link does 50 Mb", "The link does 50 MB"),
    ("number", "The cell gives 5 mW", "The cell gives 5 MW"),
    ("number", "Ann raised 5m", "Ann raised 5M"),
]

ONE_CLAIM = [
    ("Ann left.", "Ann left"),
    ("Ann left!", "ann left."),
    ("ANN LEFT OSLO", "Ann left Oslo"),
    ("Ann has a cat", "Ann has the cat"),
    ("The man is singing", "A man is singing"),
    ("Ann bought pears, plums, and figs", "Ann bought pears, plums and figs."),
    ("Yesterday, Ann left", "Yesterday Ann left"),
    ("In 2008, Ann left", "In 2008 Ann left"),
    ("On Monday, Ann left", "On Monday Ann left"),
    ("In June 2008, Ann left", "In June 2008 Ann left"),
    ("Ann left on June 27, 1841", "Ann left on June 27 1841"),
    ("Ann likes tea, too", "Ann likes tea too"),
    ("Dr. Hall and Mr. Lee left", "Dr Hall and Mr Lee left"),
    ("J. R. Lee left", "J R Lee left"),
    ("Ann works at Acme Inc. in Oslo", "Ann works at Acme Inc in Oslo"),
    ("Ann (a nurse) left", "Ann, a nurse, left"),
    ("Ann left; Bob stayed", "Ann left. Bob stayed"),
    ("Ann left - Bob stayed", "Ann left \u2014 Bob stayed"),
    ("Ann doesn\u2019t sing", "Ann doesn't sing"),
    ("Ann said \u201cno\u201d to Bob", 'Ann said "no" to Bob'),
    ("Ann has one hundred cats", "Ann has a hundred cats"),
    ("Ann left at 5 p.m. today", "Ann left at 5pm today"),
    ("the link does 50 mb", "The link does 50 MB"),
    ("Ann has a PS5", "ann has a ps5"),
    ("Ann NEVER eats meat", "Ann never eats meat"),
    ("Ann works at NASA", "ann works at nasa"),
    ("Ann left, but Bob stayed", "Ann left but Bob stayed"),
    ("*Ann* left", "Ann left"),
    ("Ann left...", "Ann left"),
    ("Die Katze ist hier.", "die Katze ist hier"),
    ("\u5df2\u6279\u51c6\u3002", "\u5df2\u6279\u51c6"),
    ("Ann plays the piano", "Ann plays a piano"),
    ("The Indian National Congress met", "Indian National Congress met"),
    ("Ann was born on the 27th of June", "Ann was born on 27th of June"),
    ("Was Ann here?!", "Was Ann here?"),
    ("The queue is drained by Ann, with a script", "The queue is drained by Ann with a script"),
    ("Ann runs on Monday, before seven", "Ann runs on Monday before seven"),
    ("Prices include VAT, as the law asks", "Prices include VAT as the law asks"),
    ('Times have a "Z" at the end', "Times have a Z at the end"),
    ("Times in the notes and the log quotes", "Times in the notes and log quotes"),
    ("Ann met in the Gold River valley", "Ann met in Gold River valley"),
]


@pytest.mark.parametrize(("guard", "a", "b"), TWO_CLAIMS)
def test_two_claims_with_one_normalised_text_are_objected_to(guard: str, a: str, b: str) -> None:
    """DESIGN 4: identical normalised texts merge without a key, so a guard must see what normalising leaves out."""
    assert normalised(a) == normalised(b), "the row tests nothing: normalising tells them apart"
    assert guard in {objection.guard for objection in objections(a, b)}


@pytest.mark.parametrize(("a", "b"), ONE_CLAIM)
def test_one_claim_typed_in_two_ways_is_not_objected_to(a: str, b: str) -> None:
    """C7's control pair: the guards do not block everything."""
    assert normalised(a) == normalised(b), "the row tests nothing: normalising tells them apart"
    assert objections(a, b) == ()


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("word, " * 30_000, "word " * 30_000),
        ("Ann left. " * 20_000, "Ann left " * 20_000),
        ("-" * 100_000 + " Ann", "Ann"),
        ("the Cat saw " * 20_000, "Cat saw " * 20_000),
        ("a b " * 30_000, "b " * 30_000),
        ('"Z" ' * 30_000, "Z " * 30_000),
        ("!= " * 30_000, "= " * 30_000),
        ("aB3x " * 30_000, "Ab3x " * 30_000),
        ("US may " * 20_000, "us May " * 20_000),
        ("said Ann, " * 20_000, "said Ann " * 20_000),
        ("x" * 100_000 + "Y", "X" + "x" * 99_999 + "y"),
        ("5 * " * 30_000 + "5", "5 " * 30_000 + "5"),
    ],
)
def test_a_hostile_long_text_costs_no_more_than_its_length(a: str, b: str) -> None:
    """Text comes from the world: work that grows with the square of its length would stop a planner for hours."""
    started = time.process_time()
    objections(a, b)
    assert time.process_time() - started < 5


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The production password is Hunter2.", "The production password is hunter2."),
        ("The id is aBcD", "The id is AbCd"),
        ("Set userID to 4", "Set userId to 4"),
        ("It is 5 mPa now", "It is 5 MPa now"),
    ],
)
def test_capitals_that_are_the_word_are_not_let_pass(one: str, other: str) -> None:
    """Identifiers, passwords and units: texts that differ in nothing else must not merge by themselves."""
    assert "case" in {objection.guard for objection in objections(one, other)}
    assert objections(one, other) == objections(other, one)


def test_a_short_text_in_no_known_language_keeps_its_a() -> None:
    """'A' is a preposition in Spanish: to smell of coffee is not to smell coffee."""
    assert "article" in {objection.guard for objection in objections("Olga huele a café.", "Olga huele café.")}
    assert "article" in {objection.guard for objection in objections("Vende a clientes", "Vende clientes")}
    assert objections("She keeps a cat in her barn", "She keeps cat in her barn") == (), "English says so itself"

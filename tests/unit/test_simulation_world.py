"""What is said in the simulation is drawn from its seed and nothing else."""

from __future__ import annotations

from consolidation.simulation.world import MANY, World


def said(seed: int, sessions: int = 30) -> tuple[World, list[dict[str, object]]]:
    """A world and all that was said in it."""
    world = World(seed)
    return world, [saying.line() for number in range(sessions) for saying in world.session(number)]


def test_one_seed_says_the_same_twice_and_another_says_something_else() -> None:
    assert said(7)[1] == said(7)[1]
    assert said(7)[1] != said(8)[1]


def test_there_are_repeats_other_words_changed_values_and_noise() -> None:
    """What a store is made of after some time."""
    world, lines = said(7, sessions=60)
    texts = [str(line["text"]) for line in lines]
    assert len(set(texts)) < len(texts) * 0.8
    assert any("said so again" in text for text in texts)
    assert any("Ticket" in text for text in texts)
    assert any("subject" not in line and "Ticket" not in str(line["text"]) for line in lines)
    assert any(question.outdated for question in world.questions())


def test_of_one_value_the_last_said_is_right_and_of_many_all_are() -> None:
    world, _ = said(7, sessions=60)
    for question in world.questions():
        predicates = {meaning[1] for meaning in question.right}
        assert predicates <= set(MANY) or len(question.right) == 1
        assert not question.right & question.outdated

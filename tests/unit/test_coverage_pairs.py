"""Faithful summaries in other words pass, and what looks faithful and is not does not: both sides of the check (C9)."""

from __future__ import annotations

import pytest

from .compacting import covered, invented_words, lost_words

# (episodes, a summary that keeps every number, date, identifier and name in words of its own)
FAITHFUL = [
    (
        ["Rollback used build 4417 at 14:05 and took 38 s.", "The deploy of 2.3.1 failed as the disk was full."],
        "The deployment of 2.3.1 failed because of a full disk. A rollback to build 4417 at 2:05 pm needed 38 seconds.",
    ),
    (
        ["Ann moved to Lisbon on 8 May 2023.", "She found a flat for $1,200 a month."],
        "On May 8th, 2023 Ann moved to Lisbon. Her flat there costs 1200 dollars a month.",
    ),
    (
        ["Bob adopted two cats last week.", "They are called Milo and Luna."],
        "Last week Bob adopted 2 cats, Milo and Luna.",
    ),
    (
        ["I ran the Boston marathon in four hours, said Maria.", "Tom was proud of her."],
        "Maria finished the Boston marathon in 4 hours, which made Tom proud.",
    ),
    (
        ["The invoice number is INV-2023-118.", "Carla paid it on 3 June via bank@acme.example."],
        "Carla paid invoice INV-2023-118 on June 3 through bank@acme.example.",
    ),
    (
        ["Yesterday Priya met Dr. Okafor about her knee.", "He told her to rest for ten days."],
        "Priya saw Dr. Okafor about her knee yesterday, and he ordered rest for 10 days.",
    ),
    (
        ["Sales rose by thirty percent in 2022.", "Munich was the best region."],
        "In 2022 sales grew 30%. The best region was Munich.",
    ),
    (
        ["Luis will not come to the party on Saturday.", "He has to work at the Hilton."],
        "Luis won't be at Saturday's party because he has to work at the Hilton.",
    ),
    (
        ["The server web-03 restarted at 03:12.", "Kim found the memory leak in the cache module."],
        "Server web-03 restarted at 3:12 am. Kim traced it to a memory leak in the cache module.",
    ),
    (
        ["Ella's son Noah turned six.", "They celebrated at Lake Tahoe with a Star Wars cake."],
        "Noah, Ella's son, turned 6 and celebrated with a Star Wars cake at Lake Tahoe.",
    ),
    (
        ["My flight is BA117 on the 10th.", "I land in New York at 6 pm."],
        "The flight BA117 on the tenth lands in New York at 6 p.m.",
    ),
    (
        ["Grace plays the violin every Sunday.", "She studied at Juilliard for three years."],
        "Grace, who spent 3 years studying at Juilliard, plays violin every Sunday.",
    ),
    (
        ["We agreed to ship in mid-June.", "The beta has 150 users."],
        "The beta has 150 users, and shipping is agreed for mid-June.",
    ),
    (
        ["Omar read The Hobbit two weeks ago.", "Next he wants to read Dune."],
        "Two weeks ago Omar read The Hobbit. He wants to read Dune next.",
    ),
    (
        ["Thanks a lot!", "The parcel weighs 5 kg and goes to Oslo next month."],
        "The parcel, weighing 5 kilograms, will go to Oslo next month; thanks were said.",
    ),
    (
        ["Hana said the budget is 40,000 euros.", "Viktor approved it on Friday morning."],
        "According to Hana the budget is €40,000, which Viktor approved on Friday morning.",
    ),
    (
        ["The API key expires on 2024-01-31.", "Rotate it with scripts/rotate.sh."],
        "The API key expires on 31 January 2024 and is rotated with scripts/rotate.sh.",
    ),
    (
        ["Pump A was replaced in 2019.", "Pump B was replaced in 2021.", "Pump C is original."],
        "Pump A was replaced in 2019 and Pump B in 2021; Pump C is still original.",
    ),
    (
        ["We drove 340 km to Gdansk.", "The car broke down near Torun.", "A mechanic named Piotr helped for free."],
        "They drove 340 km to Gdansk. Near Torun the car broke down, and the mechanic Piotr helped for free.",
    ),
    (
        ["Jonas: the meeting moved from Monday to Wednesday.", "Jonas: bring the Q3 numbers.", "Jonas: no slides."],
        "Jonas moved the meeting from Monday to Wednesday. He wants the Q3 numbers brought and no slides.",
    ),
    (
        ["deploy 12 took 30 s", "deploy 13 took 41 s", "deploy 14 failed"],
        "Deploy 12 took 30 s and deploy 13 took 41 s. Deploy 14 failed.",
    ),
    (
        ["Our office closes at noon on Fridays.", "In summer it stays open until 8 PM on Thursdays."],
        "The office closes at noon on Fridays and in summer stays open until 8 pm on Thursdays.",
    ),
    (
        ["Version 3.12.1 broke the import; pin it to 3.11.", "See https://acme.example/issues/77 for details."],
        "Version 3.12.1 broke the import, so pin to 3.11; details are at https://acme.example/issues/77.",
    ),
    (
        ["She paid half of the rent, about $800.", "Her roommate Zoe paid the rest on the 1st."],
        "She paid half the rent, about 800 dollars, and her roommate Zoe paid the rest on the first.",
    ),
    (
        ["He didn't get the job at Siemens.", "He will apply again in a few months."],
        "He did not get the Siemens job and will apply again in a few months.",
    ),
]


@pytest.mark.parametrize(("episodes", "summary"), FAITHFUL)
def test_a_faithful_summary_in_other_words_passes(episodes: list[str], summary: str) -> None:
    """The false alarms: none of these has to wait for a person."""
    found = covered(episodes, summary)
    assert lost_words(episodes, summary) == []
    assert invented_words(episodes, summary) == []
    assert found.whole
    assert found.faithful


@pytest.mark.parametrize(("episodes", "summary"), FAITHFUL)
def test_episodes_against_themselves_lose_nothing(episodes: list[str], summary: str) -> None:
    found = covered(episodes, " ".join(f"{episode.rstrip('.!')}." for episode in episodes))
    assert (found.lost, found.invented, found.unmentioned, found.unfounded) == ((), (), (), ())
    again = covered(summary, summary)
    assert (again.lost, again.invented, again.unmentioned, again.unfounded) == ((), (), (), ())


def test_there_are_enough_faithful_pairs() -> None:
    assert len(FAITHFUL) >= 15


# (episodes, a summary that is nearly faithful, what it lost or invented)
UNFAITHFUL = [
    (
        ["The build 4417 took 38 s.", "Build 4417 took users down."],
        "Build 4417 took 38 minutes and took users down.",
        "38 s",
    ),
    (["Will said he would come.", "He brings cake."], "He said he would come and bring cake.", "Will"),
    (["Hope left on Friday.", "We hope she is well."], "She left on Friday. They hope she is well.", "Hope"),
    (["The lease ends in June.", "June Hall 4 is old."], "The lease ends in May. June Hall 4 is old.", "June"),
    (["Ann sold it for $5.", "Bob paid."], "Ann sold it for €5 and Bob paid.", "$5"),
    (["Ann left at 1:56 pm.", "Bob stayed."], "Ann left at 1:56 am, and Bob stayed.", "1:56 pm"),
    (["Ann comes next week.", "Bob came last week."], "Ann and Bob came last week.", "next week"),
    (["Ann lives at Elm Street 12b.", "Bob lives in Elm Court."], "Ann and Bob live in Elm Street and Court.", "12b"),
    (["The May figures are up.", "They may fall again."], "The figures are up but may fall again.", "May"),
    (["Mail a.b@acme.example.", "Or call 555-0199."], "Mail a.c@acme.example or call 555-0199.", "a.b@acme.example"),
    (["He weighs 80 kg.", "He ran 80 km."], "He weighs 80 and ran 80 km.", "80 kg"),
    (["She is 31st of 40.", "She trained a lot."], "She trained a lot and came 21st of 40.", "31st"),
    (["The SLA is 99.95%.", "It was met."], "The SLA of 99.5% was met.", "99.95%"),
    (["He bought three apples.", "Ann bought pears."], "He bought several apples and Ann bought pears.", "three"),
    (["Commit a1b2c3d broke it.", "Commit a1b2c3e fixed it."], "Commit a1b2c3e broke and fixed it.", "a1b2c3d"),
]


@pytest.mark.parametrize(("episodes", "summary", "word"), UNFAITHFUL)
def test_a_summary_that_lost_one_thing_is_caught(episodes: list[str], summary: str, word: str) -> None:
    assert word in lost_words(episodes, summary)
    assert not covered(episodes, summary).whole


@pytest.mark.parametrize(("episodes", "summary", "word"), UNFAITHFUL)
def test_the_same_episodes_in_full_are_not(episodes: list[str], summary: str, word: str) -> None:
    """The control: it is the summary that is caught, not the episodes."""
    assert lost_words(episodes, " ".join(episodes)) == []
    assert any(word in episode for episode in episodes)
    assert summary != " ".join(episodes)


# --- every episode is mentioned --------------------------------------------------------------------------------------

GARDEN = ["The kettle leaks at its handle.", "Somebody watered the ferns in the hall.", "A parrot sings at dawn."]


@pytest.mark.parametrize("left_out", range(3))
def test_an_episode_that_no_sentence_mentions_is_listed(left_out: int) -> None:
    told = [
        "The leaking kettle has a bad handle.",
        "In the hall the ferns were watered.",
        "At dawn there sings a parrot.",
    ]
    assert covered(GARDEN, " ".join(told)).unmentioned == ()
    assert covered(GARDEN, " ".join(told[:left_out] + told[left_out + 1 :])).unmentioned == (left_out,)


def test_one_sentence_may_mention_several_episodes() -> None:
    summary = "The kettle's handle leaks, the ferns in the hall were watered and a parrot sings at dawn."
    assert covered(GARDEN, summary).unmentioned == ()


def test_words_that_all_episodes_share_mention_none() -> None:
    episodes = ["The harbour crane needs oil.", "The harbour gate needs paint.", "The harbour office needs light."]
    assert covered(episodes, "The harbour needs oil for its crane.").unmentioned == (1, 2)


def test_a_name_alone_mentions_no_episode_that_shares_it_with_the_others() -> None:
    episodes = ["Ann baked rye bread.", "Ann painted her fence.", "Ann visited her aunt."]
    assert covered(episodes, "Ann baked bread of rye.").unmentioned == (1, 2)


def test_a_figure_of_its_own_mentions_its_episode() -> None:
    episodes = ["deploy 12 took 30 s", "deploy 13 took 41 s", "deploy 14 took 52 s"]
    assert covered(episodes, "Deploy 12 took 30 s. Deploy 14 took 52 s.").unmentioned == (1,)


@pytest.mark.parametrize("text", ["Ok.", "Hi there!", "And you?", "...", ""])
def test_an_episode_that_says_nothing_needs_no_mention(text: str) -> None:
    assert covered([text, "The kettle leaks."], "The kettle leaks.").unmentioned == ()


def test_another_form_or_an_equal_word_is_a_mention() -> None:
    assert covered(["The children purchased bikes."], "Kids bought bicycles.").unmentioned == ()


def test_a_sentence_that_shares_nothing_with_any_episode_is_unfounded() -> None:
    found = covered(GARDEN, " ".join([*GARDEN, "Gardening brings joy and vegetables to many households."]))
    assert found.unfounded == (3,)
    assert not found.faithful


def test_a_short_closing_sentence_is_not() -> None:
    assert covered(GARDEN, " ".join([*GARDEN, "That is all."])).unfounded == ()


def test_an_empty_summary_mentions_nothing_and_loses_everything() -> None:
    found = covered(["Ann paid $5.", "Bob left on Monday."], "")
    assert found.unmentioned == (0, 1)
    assert len(found.lost) == 4
    assert not found.whole


def test_no_sources_lose_nothing() -> None:
    found = covered([], "Ann paid $5.")
    assert found.lost == ()
    assert found.specifics == 0
    assert not found.faithful

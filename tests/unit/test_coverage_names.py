"""What counts as a name: a capital where a sentence asks for none, and more, in doubt (C9)."""

from __future__ import annotations

import pytest

from consolidation.compact import Sort

from .compacting import covered, firm, invented_words, lost_words, specifics


def loose(text: str) -> list[str]:
    """What may be a name: its word has to be kept in some form."""
    return [words for words, _sort, demand in specifics(text) if demand == "loose"]


def named(text: str) -> list[str]:
    """The names that have to be kept as they are."""
    return [words for words, sort, demand in specifics(text) if (sort, demand) == ("name", "firm")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("They met Ann and Bob", ["Ann", "Bob"]),
        ("They met Ann's sister and the Smiths' cat", ["Ann's", "Smiths"]),
        ("They met Anne-Marie in Saint-Malo", ["Anne", "Marie", "Saint", "Malo"]),
        ("They saw O'Brien and McGee", ["O'Brien", "McGee"]),
        ("They bought an iPhone on eBay", ["iPhone", "eBay"]),
        ("They joined NATO and the LGBTQ+ group", ["NATO", "LGBTQ"]),
        ("They read The Lord of the Rings", ["Lord", "Rings"]),
        ("They visited New York City", ["New", "York", "City"]),
        ("They saw Zoë in Łódź", ["Zoë", "Łódź"]),
        ("They asked the US about IT", ["US", "IT"]),
        ("They speak Polish and polish cars", ["Polish"]),
        ('They read "Becoming Nicole" twice', ["Becoming", "Nicole"]),
        ("They work at the U.S. Bank", ["U.S", "Bank"]),
        ("They saw Dr. House", ["House"]),
        ("They went (with Kim) home", ["Kim"]),
        ("They said: hello", []),
    ],
)
def test_a_capital_inside_a_sentence_is_a_name(text: str, expected: list[str]) -> None:
    assert named(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "The cat sat down",
        "However, it rained",
        "Do they know it?",
        "What happened then",
        "I'm glad that I can help and I'll go",
        "They're here, and I've seen it",
        "It's late. We left. There was none. Both agreed.",
        "Thanks for that! Great news! Yeah, sure",
        "VERY good, SO good, and NOT bad",
    ],
)
def test_words_of_grammar_and_everyday_are_no_names_at_the_start_of_a_sentence(text: str) -> None:
    assert named(text) == []
    assert loose(text) == []


@pytest.mark.parametrize("text", ["Caroline left", "Melanie's dog ran", "He left. Xanthe stayed", "Rotterdam is wet"])
def test_an_unusual_word_at_the_start_of_a_sentence_may_be_a_name(text: str) -> None:
    assert len(loose(text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "Will left early",
        "Grace plays well",
        "Hope called",
        "Mark came",
        "May stayed at home",
        "Rose sang",
        "Max barked",
    ],
)
def test_names_that_are_words_too_are_names_at_the_start_of_a_sentence(text: str) -> None:
    assert named(text) == [text.split()[0]]


@pytest.mark.parametrize("text", ["Will you come?", "May I go?", "Hope to see it soon", "May the best team win"])
def test_the_same_words_are_none_where_the_sentence_asks_or_wishes(text: str) -> None:
    assert named(text) == []


def test_a_name_has_to_be_kept_with_its_capital() -> None:
    """'Will' is not kept by 'will', nor 'Hope' by 'hope'."""
    assert lost_words("They met Will in town.", "They will meet in town.") == ["Will"]
    assert lost_words("They met Hope in town.", "They hope to meet in town.") == ["Hope"]


def test_a_name_is_kept_at_the_start_of_a_sentence_and_as_an_owner() -> None:
    assert lost_words("They met Ann and Bob in town.", "Ann was met in town with Bob's dog.") == []


@pytest.mark.parametrize("summary", ["Kayaks are hard.", "He kayaked hard.", "hard kayaking it was"])
def test_what_may_be_a_name_is_kept_by_the_word_in_any_form(summary: str) -> None:
    assert lost_words("Kayaking is hard.", summary) == []


def test_a_text_without_capitals_hides_no_name() -> None:
    """Any unusual word of it may be one."""
    assert lost_words("i met sarah in paris", "They met someone somewhere.") == ["sarah", "paris"]
    assert lost_words("i met sarah in paris", "They met Sarah in Paris.") == []
    assert lost_words("ok thanks, see you then", "They said goodbye.") == []


def test_shouting_is_not_naming() -> None:
    assert named("THEY SAID THAT THE GAME WAS GOOD") == []
    assert "KARIN" in lost_words("THE GAME WITH KARIN WAS GOOD", "The game was good.")


def test_the_sort_of_what_was_lost_is_name() -> None:
    (lost,) = covered("They met Ann in town.", "They met somebody in the town.").lost
    assert (lost.sort, lost.cut) == (Sort.NAME, False)


# --- other languages -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "Wir haben uns gestern mit der Gruppe in Berlin getroffen und es war nicht kalt.",
        "Elle est avec les enfants dans une maison qui est sur la plage.",
        "Анна вчера ездила в Москву",
        "彼女は昨日東京に行きました",
        "ذهبت سارة إلى باريس أمس",
        "Η Άννα πήγε στην Αθήνα",
    ],
)
def test_what_cannot_be_checked_says_so(text: str) -> None:
    """Names and number words of other languages and scripts are not known here: a person reads them."""
    found = covered([text, "Ann stayed at home."], "Ann stayed at home.")
    assert found.unread == (0,)
    assert not found.whole


@pytest.mark.parametrize("text", ["", "...", "4417", "🎉🎉", "Zoë met José in Málaga.", "It's fine 👍", "x = y + 1"])
def test_symbols_and_accents_can_be_checked(text: str) -> None:
    assert covered([text], text).unread == ()


# --- what is added ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("summary", "expected"),
    [
        ("Ann sold her boat to Tom.", ["Tom"]),
        ("Ann sold her boat in 2021.", ["2021"]),
        ("Ann sold her boat for $300.", ["$300"]),
        ("Ann sold her boat yesterday.", ["yesterday"]),
        ("Ann sold her two boats.", ["two"]),
        ("Ann sold her boat via ops@acme.example.", ["ops@acme.example"]),
        ("Xanthe sold her boat.", ["Xanthe"]),
        ("Ann sold her Boat.", []),
        ("The boat was sold by Ann.", []),
        ("Selling the boat was up to Ann.", []),
        ("Ann sold it: a boat.", []),
    ],
)
def test_what_no_source_says_is_listed(summary: str, expected: list[str]) -> None:
    assert invented_words("Ann sold her boat.", summary) == expected


def test_what_is_known_beside_the_sources_is_not_invented() -> None:
    summary = "On 8 May 2023 Caroline sold her boat."
    assert invented_words("I sold my boat.", summary) == ["8 May", "2023", "Caroline"]
    found = covered("I sold my boat.", summary, speakers=["Caroline"], known=["2023-05-08 13:56"])
    assert found.invented == ()
    assert found.whole


def test_what_is_known_need_not_be_kept() -> None:
    assert covered("The boat was sold.", "The boat was sold.", known=["2023-05-08", "Priya"]).whole


@pytest.mark.parametrize(
    ("source", "speaker", "summary", "named_"),
    [
        ("I sold my boat.", "Caroline", "The boat was sold.", False),
        ("I sold my boat.", "Caroline", "Caroline sold the boat.", True),
        ("I sold my boat.", "caroline smith", "Smith sold the boat.", True),
        ("The boat was sold.", "Caroline", "The boat was sold.", True),
        ("I sold my boat.", "user", "The user sold the boat.", True),
        ("I sold my boat.", "user", "The boat was sold.", True),
        ("I sold my boat.", "", "The boat was sold.", True),
    ],
)
def test_who_speaks_as_i_has_to_be_named(source: str, speaker: str, summary: str, named_: bool) -> None:
    found = covered(source, summary, speakers=[speaker])
    assert (found.unnamed == ()) == named_


def test_every_firm_name_is_one_of_the_firm_specifics() -> None:
    text = "They met Ann on 8 May."
    assert firm(text) == ["Ann", "8 May"]
    assert named(text) == ["Ann"]

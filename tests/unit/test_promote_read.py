"""What is left of a reply: every label, quote, number and name is checked, one by one (R76, E9, C2, C3)."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from consolidation import promote
from consolidation.promote import Why
from consolidation.promote.checking import MAX_FACTS, MAX_QUOTES
from tests.unit.promoting import QUOTED, TEA, cluster, episode, fact, reasons, reply, tea, tea_fact


def read(*items: Any, asked: promote.Cluster | None = None) -> promote.Checked:
    return promote.read(reply=reply(*items), cluster=asked or tea())


def labels_of(checked: promote.Checked, asked: promote.Cluster | None = None) -> list[int]:
    """The labels whose support counts, of the only fact."""
    ids = (asked or tea()).ids
    [one] = checked.facts
    return [ids.index(support.episode) for support in one.support]


# --- the good case ---------------------------------------------------------------------------------------------------


def test_a_fact_with_quotes_that_stand_in_its_episodes_survives_whole() -> None:
    checked = read(tea_fact(0, 1, subject="Ann", predicate="drinks", object="green tea"))
    [one] = checked.facts
    assert (one.index, one.text, one.key) == (0, TEA, ("Ann", "drinks", "green tea"))
    assert [(support.episode, support.start) for support in one.support] == [(1, 2), (2, 0)]
    assert (checked.refused, checked.usable, checked.why) == ((), True, "")


def test_an_empty_list_is_an_answer() -> None:
    """R74: the common one, and not the same as an answer that cannot be read."""
    for text in ('{"facts": []}', "[]", '```json\n{"facts": []}\n```'):
        assert promote.read(reply=text, cluster=tea()) == promote.Checked()


# --- an answer wrapped in chatter ------------------------------------------------------------------------------------

ITEM = tea_fact(0, 1)


@pytest.mark.parametrize(
    "text",
    [
        json.dumps([ITEM]),
        json.dumps({"facts": [ITEM]}),
        json.dumps({"results": [ITEM]}),
        json.dumps({"note": "two agree", "facts": [ITEM], "other": []}),
        json.dumps(ITEM),
        f"Episodes [0] and [1] agree:\n```json\n{json.dumps([ITEM])}\n```\nHappy to help!",
        f"Sure. {json.dumps({'facts': [ITEM]})} Is there anything else?",
        "\ufeff" + json.dumps({"facts": [ITEM]}),
    ],
)
def test_a_usable_answer_is_found_in_whatever_holds_it(text: str) -> None:
    """C2."""
    checked = promote.read(reply=text, cluster=tea())
    assert [one.text for one in checked.facts] == [TEA]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "Nothing here is corroborated.",
        '{"facts": null}',
        '{"facts": "none"}',
        '{"facts": {"0": "tea"}}',
        "{}",
        '{"error": "I cannot do that"}',
        '{"a": [], "b": []}',
        '{"facts": [{"text": "Ann drinks',
        '"facts"',
        "null",
        "17",
    ],
)
def test_an_unreadable_answer_is_not_the_same_as_nothing_corroborated(text: str) -> None:
    """E9."""
    checked = promote.read(reply=text, cluster=tea())
    assert (checked.usable, checked.facts, checked.refused) == (False, (), ())
    assert checked.why.startswith("The model's answer cannot be used: ")


def test_why_an_answer_is_unusable_holds_none_of_its_text() -> None:
    assert "saffron" not in promote.read(reply='{"saffron": saffron', cluster=tea()).why


# --- labels ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("label", "why"),
    [
        (None, Why.BAD_LABEL),
        (True, Why.BAD_LABEL),
        (False, Why.BAD_LABEL),
        (1.0, Why.BAD_LABEL),
        ("two", Why.BAD_LABEL),
        ("-1", Why.BAD_LABEL),
        ("1.0", Why.BAD_LABEL),
        ("", Why.BAD_LABEL),
        ("²", Why.BAD_LABEL),
        ("٣", Why.BAD_LABEL),
        ([1], Why.BAD_LABEL),
        ({"label": 1}, Why.BAD_LABEL),
        (-1, Why.UNKNOWN_LABEL),
        (4, Why.UNKNOWN_LABEL),
        (99, Why.UNKNOWN_LABEL),
        ("99", Why.UNKNOWN_LABEL),
        (10**30, Why.UNKNOWN_LABEL),
        (0, Why.LABEL_TWICE),
        ("0", Why.LABEL_TWICE),
    ],
)
def test_a_label_that_is_none_never_counts_and_is_named(label: Any, why: Why) -> None:
    """E9: a string, null, true, a float, a duplicate, a negative or an out-of-range label."""
    checked = read(tea_fact(0, 1, labels=[0, label, 1]))
    assert labels_of(checked) == [0, 1]
    assert reasons(checked) == [why.value]


def test_the_digits_of_a_label_are_read_as_its_number() -> None:
    """C2: chosen over refusing them, because small models write "0"."""
    checked = read(fact(TEA, ("0", QUOTED[0]), (" 1 ", QUOTED[1])))
    assert labels_of(checked) == [0, 1]
    assert checked.refused == ()


def test_a_label_named_twice_is_one_supporter() -> None:
    """E9."""
    checked = read(tea_fact(0, 0, 0))
    assert labels_of(checked) == [0]
    assert reasons(checked) == [Why.LABEL_TWICE.value] * 2


@pytest.mark.parametrize("labels", ["0, 1", {"0": True}, 0, True, None, "01"])
def test_labels_that_are_no_list_support_nothing(labels: Any) -> None:
    """E9: "01" is not the labels 0 and 1."""
    checked = read({**tea_fact(0, 1), "supported_by": labels})
    assert checked.facts == ()
    assert Why.BAD_LABELS.value in reasons(checked)
    assert reasons(checked)[-1] == Why.NO_SUPPORT.value


# --- quotes ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("Every morning I drink black coffee", Why.NOT_THERE),
        ("drink", Why.NOT_THERE),  # too little to prove anything
        ("", Why.NOT_THERE),
        (None, Why.NO_QUOTE),
        (7, Why.NO_QUOTE),
        (["Every morning I drink green tea"], Why.NO_QUOTE),
        ("Every morning I drink green tea " * 50, Why.NO_QUOTE),
    ],
)
def test_a_supporter_without_words_that_stand_there_is_lost(words: Any, why: Why) -> None:
    """C3."""
    checked = read(fact(TEA, (0, QUOTED[0]), (1, words)))
    assert labels_of(checked) == [0]
    assert why.value in reasons(checked)


def test_a_quote_must_stand_in_the_very_episode_that_it_names() -> None:
    checked = read(fact(TEA, (0, QUOTED[0]), (1, QUOTED[2])))
    assert labels_of(checked) == [0]
    assert [(refusal.why, refusal.label) for refusal in checked.refused] == [(Why.NOT_THERE, 1)]


def test_one_of_several_quotes_of_an_episode_is_enough() -> None:
    checked = read(fact(TEA, (0, "words from nowhere"), (0, QUOTED[0]), (1, QUOTED[1]), labels=[0, 1]))
    assert labels_of(checked) == [0, 1]
    assert checked.refused == ()


def test_quotes_may_differ_in_case_white_space_and_quotation_marks() -> None:
    checked = read(fact(TEA, (0, '  "MY  green tea this\nmorning" '), (1, QUOTED[1])))
    assert labels_of(checked) == [0, 1]


def test_a_quote_of_an_episode_that_is_not_named_adds_no_support() -> None:
    checked = read(tea_fact(0, 1, 2, labels=[0, 1]))
    assert labels_of(checked) == [0, 1]
    assert [(refusal.why, refusal.label) for refusal in checked.refused] == [(Why.NOT_NAMED, 2)]


@pytest.mark.parametrize("quotes", ["my green tea", None, {"0": "my green tea"}, 3])
def test_quotes_that_are_no_list_prove_nothing(quotes: Any) -> None:
    checked = read({**tea_fact(0, 1), "quotes": quotes})
    assert checked.facts == ()
    assert Why.BAD_QUOTES.value in reasons(checked)


@pytest.mark.parametrize("quote", ["my green tea", None, 3, [], {"words": "my green tea"}, {"episode": 0}])
def test_a_quote_that_is_none_is_refused_beside_good_ones(quote: Any) -> None:
    item = tea_fact(0, 1)
    item["quotes"].insert(0, quote)
    checked = read(item)
    assert labels_of(checked) == [0, 1]
    assert reasons(checked) == [Why.BAD_QUOTE.value]


def test_a_quote_of_an_episode_that_was_not_offered_is_refused() -> None:
    checked = read(fact(TEA, (0, QUOTED[0]), (9, QUOTED[1]), labels=[0]))
    assert reasons(checked) == [Why.UNKNOWN_LABEL.value]


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("I do not eat meat at home", "eat meat at home"),
        ("She never said that I eat meat at home", "I eat meat at home"),
        ("Sorry, I don't really eat meat at home", "eat meat at home"),
    ],
)
def test_words_cut_out_of_a_denial_support_nothing(said: str, words: str) -> None:
    asked = cluster(episode(1, "I eat meat at home on Sundays"), episode(2, said))
    checked = read(fact("They eat meat at home", (0, "I eat meat at home"), (1, words)), asked=asked)
    assert labels_of(checked, asked) == [0]
    assert reasons(checked) == [Why.DENIED.value]


@pytest.mark.parametrize(
    ("said", "words", "text"),
    [
        ("I do not eat meat at home", "eat meat at home", "They do not eat meat at home"),
        ("Not today, but I eat meat at home", "I eat meat at home", "They eat meat at home"),
    ],
)
def test_a_denial_elsewhere_or_in_the_fact_itself_does_no_harm(said: str, words: str, text: str) -> None:
    asked = cluster(episode(1, said), episode(2, said, root="other"))
    assert labels_of(read(fact(text, (0, words), (1, words)), asked=asked), asked) == [0, 1]


def test_a_flood_of_quotes_is_cut_off() -> None:
    """So that no reply keeps a planner busy."""
    flood = [fact(f"Ann drinks green tea {word}", *[(0, "words from nowhere")] * 50) for word in "abcdefghij"]
    checked = read(*flood)
    assert checked.facts == ()
    assert checked.counts()[Why.TOO_MANY_QUOTES.value] >= 1
    assert sum(checked.counts().values()) < 2 * MAX_QUOTES


# --- texts and keys --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("item", ["Ann drinks green tea", None, 3, True, [], [tea_fact(0, 1)]])
def test_what_is_no_object_is_refused(item: Any) -> None:
    """E9, C2: bare strings."""
    checked = read(item, tea_fact(0, 1))
    assert [one.index for one in checked.facts] == [1]
    assert reasons(checked) == [Why.NOT_AN_OBJECT.value]


@pytest.mark.parametrize("text", [None, "", "  \n", 5, ["tea"], {"text": "tea"}, "?!…", "\u200b\u200b"])
def test_a_fact_without_words_is_refused(text: Any) -> None:
    checked = read({**tea_fact(0, 1), "text": text})
    assert reasons(checked) == [Why.NO_TEXT.value]


def test_a_text_is_bounded() -> None:
    assert reasons(read(tea_fact(0, 1, text="Ann drinks green tea " * 30))) == [Why.TOO_LONG.value]


def test_a_text_becomes_one_line_that_can_be_stored() -> None:
    """C1."""
    [one] = read(tea_fact(0, 1, text="Ann\x00 drinks\n\tgreen \x07tea \ud83d every morning")).facts
    assert one.text == "Ann\ufffd drinks green tea \ufffd every morning"


@pytest.mark.parametrize("hidden", ["\u202e", "\u2066", "\u200b", "\ufeff", "\U000e0041\U000e0042", "\ue000", "\u2028"])
def test_a_text_hides_nothing_from_its_reviewer(hidden: str) -> None:
    """F5: bidirectional, zero-width, tag and private characters are left out of text and key."""
    [one] = read(tea_fact(0, 1, text=f"{hidden}Ann drinks green {hidden}tea{hidden}", object=f"tea{hidden}")).facts
    assert (one.text, one.key[2]) == ("Ann drinks green tea", "tea")


def test_joiners_stay_where_words_are_written_with_them() -> None:
    said = "من می\u200cخواهم چای سبز"
    asked = cluster(episode(1, said), episode(2, said + " هر روز"))
    [one] = read(fact(said, (0, said), (1, said)), asked=asked).facts
    assert one.text == said


def test_the_same_fact_twice_in_one_answer_is_one() -> None:
    checked = read(tea_fact(0, 1), tea_fact(2, 3, text="ann drinks the green tea, every morning."))
    assert [one.index for one in checked.facts] == [0]
    assert reasons(checked) == [Why.TWICE.value]


def test_a_refused_fact_does_not_stand_in_the_way_of_the_same_fact_with_better_support() -> None:
    checked = read(fact(TEA, (0, "words from nowhere")), tea_fact(0, 1))
    assert [one.index for one in checked.facts] == [1]


@pytest.mark.parametrize(
    "key",
    [
        {"subject": ["Ann"]},
        {"predicate": {"is": "drinks"}},
        {"object": True},
        {"object": 1.5},
        {"object": "x" * 201},
    ],
)
def test_a_bad_key_costs_the_key_and_not_the_fact(key: dict[str, Any]) -> None:
    checked = read(tea_fact(0, 1, **{"subject": "Ann", "predicate": "drinks", "object": "tea", **key}))
    assert [one.key for one in checked.facts] == [("", "", "")]
    assert reasons(checked) == [Why.BAD_KEY.value]


def test_a_key_may_be_partly_or_wholly_absent() -> None:
    item = tea_fact(0, 1, subject="Ann", predicate=None)
    del item["object"]
    assert [one.key for one in read(item).facts] == [("Ann", "", "")]


def test_a_whole_number_as_an_object_is_its_digits() -> None:
    asked = cluster(episode(1, "The client makes 5 retries"), episode(2, "We saw 5 retries by the client"))
    item = fact("The client makes 5 retries", (0, "makes 5 retries"), (1, "saw 5 retries"))
    [one] = read({**item, "subject": "client", "predicate": "retries", "object": 5}, asked=asked).facts
    assert one.key == ("client", "retries", "5")


def test_more_facts_than_an_answer_may_hold_are_refused() -> None:
    checked = read(*[tea_fact(0, 1)] * (MAX_FACTS + 3))
    assert len(checked.facts) == 1
    assert checked.counts() == {Why.TWICE.value: MAX_FACTS - 1, Why.TOO_MANY.value: 3}


def test_one_bad_item_never_sinks_the_good_ones_beside_it() -> None:
    """C2."""
    far = fact(TEA, (9, QUOTED[0]))
    checked = read("bare", tea_fact(0, 1), None, far, tea_fact(2, 3, text="Ann drinks green tea"), {"text": 1})
    assert [one.index for one in checked.facts] == [1, 4]
    assert {refusal.item for refusal in checked.refused} == {0, 2, 3, 5}


def test_an_answer_about_a_single_episode_supports_nothing_alone() -> None:
    """R76."""
    asked = tea(1)
    [one] = read(tea_fact(0), asked=asked).facts
    assert len(one.support) == 1


# --- clusters --------------------------------------------------------------------------------------------------------


def test_a_cluster_holds_one_scope() -> None:
    """C6."""
    with pytest.raises(ValueError, match="one scope"):
        cluster(episode(1, "a"), episode(2, "b", scope=2))


def test_a_cluster_holds_each_episode_once() -> None:
    for episodes in ([], [episode(1, "a"), episode(1, "a")]):
        with pytest.raises(ValueError, match="each once"):
            cluster(*episodes)


def test_without_any_source_equal_content_is_one_witness() -> None:
    bare = [replace(episode(n, text, root=""), source_uri="") for n, text in enumerate(("same", "same", "other"))]
    assert len(promote.roots(bare)) == 2
    assert promote.root(replace(bare[0], source_uri="doc://a")) == "doc://a"

"""Whatever a model answers about whatever was said, reading it ends in claims, refusals or 'unusable' (C1, C2)."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from observations import extraction
from observations.llm import Unusable
from observations.llm.reading import find_quote
from tests.unit.extracting import claim, extracted, said_back, turn, turns

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 99)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
NAMES = ("text", "subject", "predicate", "object", "kind", "turn", "quote", "supported_by", "label")
ENTRIES = st.lists(JSON | st.dictionaries(st.sampled_from(NAMES), JSON, max_size=6), max_size=4)
WORDS = (
    "Ana Bo I you my sister Lena don't never not if want ? . , - ! and but likes moved to Bonn tea 3.12 yesterday in "
    "May 2023 last Friday <memory> </memory> \u200b \u2019s ... because that the user said assistant Ich nicht \u8336"
)
PIECES = st.sampled_from(WORDS.split())
SENTENCES = st.lists(PIECES, min_size=1, max_size=14).map(" ".join)


@given(ENTRIES | JSON)
def test_any_json_is_read_without_another_error_than_unusable(answer: Any) -> None:
    said = turns("I moved to Bonn.", ("Noted.", "assistant"))
    try:
        read = extraction.read(reply=said_back(json.dumps({"claims": answer})), turns=said)
    except Unusable:
        return
    assert all(find_quote("I moved to Bonn", said[0].text) == one.quote for one in read.claims)


@given(st.text(max_size=200))
def test_any_text_is_read_without_another_error_than_unusable(text: str) -> None:
    with suppress(Unusable):
        assert extraction.read(reply=said_back(text), turns=turns("I moved to Bonn.")).claims == ()


@given(SENTENCES, SENTENCES, SENTENCES, st.sampled_from(["user", "assistant", "tool", "", "stranger"]))
def test_any_claim_about_any_turn_is_believed_or_refused_once(words: str, text: str, quote: str, role: str) -> None:
    said = [turn("How is Lena?", number=1, speaker="Bo"), turn(words, number=2, role=role)]
    read = extracted(said, claim(text, quote, label=1), claim(text, words, label=1))
    for one in read.claims:
        start, end = one.quote
        assert words[start:end].strip()
        assert one.stated_by is said[1].stated_by
    assert len(read.claims) + len(read.held) + len(read.refused) == 2

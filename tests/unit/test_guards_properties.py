"""What holds for any two texts: symmetry, silence about surface variants, an objection to each changed specific."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from consolidation.guards import objections
from consolidation.merge import Verdict
from observations.normalise import normalised
from tests.unit.verdicts import verdict_of

NAMES = ("Anna", "Bela", "Chloe", "Dmitri", "Evan", "Farid", "Greta", "Hugo")
PLACES = ("Oslo", "Lagos", "Quito", "Hanoi", "Tunis", "Perth")
MONTHS = ("January", "March", "April", "May", "June", "August", "October", "December")
DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
DOES = ("works", "sings", "teaches", "paints", "rests", "studies")
DENIED = {verb: f"does not {verb[:-2] + 'y' if verb == 'studies' else verb[:-1]}" for verb in DOES} | {
    "teaches": "does not teach"
}
NUMBERS = st.integers(min_value=2, max_value=9_999)
TEMPLATES = (
    "{name} {does} in {place} with {number} others since {month}",
    "On {day}, {name} {does} for {other} at {hour}:30",
    "{name}'s sister {does} in {place}, and {other} has {number} keys",
    "It is {number} km from {place} to the house where {name} {does}",
    "On 5 {month} {name} {does} with {other} until {hour} pm",
)


def filled(template: str, parts: dict[str, str]) -> str:
    """The template with its parts."""
    return template.format(**parts)


@st.composite
def claims(draw: st.DrawFn) -> tuple[str, dict[str, str]]:
    """A template and its parts."""
    name, other = draw(st.permutations(NAMES))[:2]
    return draw(st.sampled_from(TEMPLATES)), {
        "name": name,
        "other": other,
        "place": draw(st.sampled_from(PLACES)),
        "month": draw(st.sampled_from(MONTHS)),
        "day": draw(st.sampled_from(DAYS)),
        "does": draw(st.sampled_from(DOES)),
        "number": str(draw(NUMBERS)),
        "hour": str(draw(st.integers(min_value=1, max_value=11))),
    }


CHANGES = {
    "name": st.sampled_from(NAMES),
    "other": st.sampled_from(NAMES),
    "place": st.sampled_from(PLACES),
    "month": st.sampled_from(MONTHS),
    "day": st.sampled_from(DAYS),
    "number": NUMBERS.map(str),
    "hour": st.integers(min_value=1, max_value=11).map(str),
    "does": st.sampled_from([*DOES, *DENIED.values()]),
}


@given(claims(), st.data())
def test_one_changed_number_date_name_or_denial_is_always_objected_to(
    claim: tuple[str, dict[str, str]], data: st.DataObject
) -> None:
    """C7, at any similarity and with equal keys: the changed pair is never one claim."""
    template, parts = claim
    changed = data.draw(st.sampled_from([part for part in parts if f"{{{part}}}" in template]))
    value = data.draw(CHANGES[changed].filter(lambda other: other != parts[changed]))
    a, b = filled(template, parts), filled(template, parts | {changed: value})
    assert objections(a, b)
    assert verdict_of(a, b, cosine=0.9999, keyed=True) is not Verdict.SAME


@given(claims())
def test_swapped_names_are_always_objected_to(claim: tuple[str, dict[str, str]]) -> None:
    template, parts = claim
    swapped = parts | {"name": parts["other"], "other": parts["name"]}
    if "{other}" in template:
        assert objections(filled(template, parts), filled(template, swapped))


@given(claims(), st.sets(st.sampled_from(["lower", "upper", "stop", "spaces", "curly", "comma"]), min_size=1))
def test_a_surface_variant_is_never_objected_to(claim: tuple[str, dict[str, str]], changes: set[str]) -> None:
    """Case of the whole, the last mark, spaces, curly apostrophes: the normalised texts are identical."""
    template, parts = claim
    a = filled(template, parts)
    b = varied(a, changes)
    assert normalised(a) == normalised(b)
    assert objections(a, b) == ()
    assert verdict_of(a, b, cosine=0.9) is Verdict.SAME


def varied(text: str, changes: set[str]) -> str:
    """The text typed in another way."""
    if "comma" in changes:
        text = text.replace(", and", " and") if ", and" in text else text
    if "lower" in changes:
        text = text.lower()
    elif "upper" in changes:
        text = text.upper()
    if "stop" in changes:
        text += "."
    if "curly" in changes:
        text = text.replace("'", "\u2019")
    return f"  {text}\n".replace(" ", "  ") if "spaces" in changes else text


SOME_WORDS = """
    Ann Bob US us may May not never no, the a The only 5 5kg 5% $5 9 pm 09:30 June 27 of to from by was beat is? said,
    (and) or ; C++ A* HIV- != v1.2 已 批准 3 ของ не чай und nicht 😀 :) Ann's a.m. Dr. twenty one hundred
"""
ANY_WORDS = st.lists(st.sampled_from(SOME_WORDS.split()), max_size=9).map(" ".join)
TEXTS = st.one_of(ANY_WORDS, st.text(max_size=30))


@given(TEXTS, TEXTS, st.booleans())
def test_no_verdict_depends_on_the_order_of_its_arguments(a: str, b: str, keyed: bool) -> None:
    assert objections(a, b) == objections(b, a)
    assert verdict_of(a, b, cosine=0.97, keyed=keyed) is verdict_of(b, a, cosine=0.97, keyed=keyed)


@given(TEXTS)
def test_a_text_is_never_objected_to_beside_itself(text: str) -> None:
    assert objections(text, f"{text}") == ()
    assert objections(text, f" {text} ") == ()


@given(TEXTS, TEXTS)
def test_nothing_is_the_same_without_a_key_but_one_normalised_text(a: str, b: str) -> None:
    """DESIGN 4: without a key only identical normalised texts merge, however similar the vectors are."""
    if normalised(a) != normalised(b):
        assert verdict_of(a, b, cosine=1.0) is not Verdict.SAME


@given(st.text(alphabet=st.characters(exclude_categories=["Cs", "Zs", "Cc"]), min_size=1, max_size=12))
def test_no_text_of_any_script_is_empty_to_the_rule(text: str) -> None:
    """Two rows are never one claim because nothing of them was left after tokenising."""
    assert normalised(text) or not text.strip()
    assert verdict_of(text, "Ann is here", cosine=0.99) is not Verdict.SAME

"""Core memory: edits are byte for byte, within their limit, in revisions that can be taken back (R120)."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import DatabaseError, transaction

from observations import ingest, prompting, store
from observations.embedding import embedder
from observations.models import CoreMemory, CoreRevision, Event, Scope
from observations.register import MEMORY_TEXT, Erasing
from tests.building import observe, scope
from tests.conftest import superuser

pytestmark = pytest.mark.django_db

TOKEN = "token:0123456789abcdef"
OTHER = "token:fedcba9876543210"
ANA = "ana@command"


@pytest.fixture
def within() -> Scope:
    return scope()


def core(value: str, *, within: Scope, by: str = TOKEN, **parts: Any) -> ingest.Core:
    """A core memory labelled human."""
    return ingest.create_core(scope=within, label="human", value=value, by=by, **parts)


def replaced(old: str, new: str, *, within: Scope) -> str:
    """The text after replacing."""
    return ingest.replace_core(scope=within, label="human", old=old, new=new, by=TOKEN).value


def stored(within: Scope) -> str:
    return CoreMemory.objects.get(scope=within, label="human").value


# --- replace, byte for byte ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "old", "new", "after"),
    [
        ("Name: Ana\nLikes tea", "Likes tea", "Likes coffee", "Name: Ana\nLikes coffee"),
        ("Name: Ana\nLikes tea\n", "tea\n", "tea\n", "Name: Ana\nLikes tea\n"),
        ("a\r\nb\r\nc", "b\r\n", "", "a\r\nc"),
        ("a\r\nb\nc", "\nc", "!", "a\r\nb!"),
        ("  two  spaces  ", "  two", "two", "two  spaces  "),
        ("tea TEA", "TEA", "coffee", "tea coffee"),
        ("a.c abc", "a.c", "x", "x abc"),
        ("caf\u00e9 cafe\u0301", "cafe\u0301", "tea", "caf\u00e9 tea"),
        ("one\\ntwo", "\\n", "\n", "one\ntwo"),
        ("keep $1 \\g<0>", "keep", "\\1", "\\1 $1 \\g<0>"),
    ],
)
def test_replace_changes_the_one_occurrence_and_nothing_else(
    within: Scope, value: str, old: str, new: str, after: str
) -> None:
    """R120, R134: a replacement as an agent means it, byte for byte."""
    core(value, within=within)
    assert replaced(old, new, within=within).encode() == after.encode() == stored(within).encode()


@pytest.mark.parametrize(
    ("value", "old"),
    [
        ("Likes tea", "likes tea"),
        ("Likes tea", "Likes tea\n"),
        ("Likes tea\r\nand cake", "tea\nand"),
        ("caf\u00e9", "cafe\u0301"),
        ("Likes  tea", "Likes tea"),
        ("", "x"),
    ],
)
def test_what_is_not_there_byte_for_byte_is_no_match(within: Scope, value: str, old: str) -> None:
    core(value, within=within)
    with pytest.raises(ingest.NoMatch):
        replaced(old, "x", within=within)
    assert stored(within) == value


@pytest.mark.parametrize(("value", "old", "count"), [("tea, tea", "tea", 2), ("aaa", "aa", 2), ("abababa", "aba", 3)])
def test_what_is_there_more_than_once_is_another_error_with_the_number_overlaps_included(
    within: Scope, value: str, old: str, count: int
) -> None:
    core(value, within=within)
    with pytest.raises(ingest.ManyMatches, match=str(count)) as refused:
        replaced(old, "x", within=within)
    assert refused.value.count == count
    assert not isinstance(refused.value, ingest.NoMatch)
    assert stored(within) == value


def test_an_error_never_repeats_the_text(within: Scope) -> None:
    core("Likes tea and tea", within=within)
    for old in ("tea", "coffee"):
        with pytest.raises(ingest.CoreRefused) as refused:
            replaced(old, "x", within=within)
        assert old not in str(refused.value)


# --- append, rethink, create -----------------------------------------------------------------------------------------


def test_append_adds_after_a_line_end_and_rethink_writes_anew(within: Scope) -> None:
    core("", within=within)
    for text in ("Likes tea", " and cake \r\n"):
        value = ingest.append_core(scope=within, label="human", text=text, by=TOKEN).value
    assert value == "Likes tea\n and cake \r\n" == stored(within)
    assert ingest.rethink_core(scope=within, label="human", value="New", by=TOKEN).value == "New" == stored(within)


def test_what_changes_nothing_is_no_revision(within: Scope) -> None:
    core("Likes tea", within=within)
    assert replaced("tea", "tea", within=within) == "Likes tea"
    assert ingest.rethink_core(scope=within, label="human", value="Likes tea", by=TOKEN).revision == 1
    assert CoreRevision.objects.count() == 1


def test_c1_a_character_no_database_can_hold_is_replaced_and_the_answer_says_so(within: Scope) -> None:
    made = core("a\0b", within=within)
    assert (made.value, made.cleaned) == ("a\ufffdb", True)
    edited = ingest.replace_core(scope=within, label="human", old="a\0b", new="\ud83d", by=TOKEN)
    assert (edited.value, edited.cleaned) == ("\ufffd", True)


@pytest.mark.parametrize("label", ["", "Human", "a b", "-a", "a\n", "x" * 51, "é"])
def test_a_label_is_a_word(within: Scope, label: str) -> None:
    with pytest.raises(ingest.CoreRefused, match="label"):
        ingest.create_core(scope=within, label=label, by=TOKEN)


def test_a_label_is_taken_once_in_a_scope(within: Scope) -> None:
    core("x", within=within)
    with pytest.raises(ingest.Taken):
        core("y", within=within)
    core("y", within=scope("team-a/u2"))
    assert stored(within) == "x"


def test_secrets_and_our_own_block_never_become_core_memory(within: Scope) -> None:
    core("x", within=within)
    for text in ("AKIA" + "ABCDEFGHIJKLMNOP", "<memory>\nx\n</memory>"):
        with pytest.raises(ingest.CoreRefused) as refused:
            ingest.append_core(scope=within, label="human", text=text, by=TOKEN)
        assert text not in str(refused.value)
    assert stored(within) == "x"


# --- limits and rights -----------------------------------------------------------------------------------------------


def test_the_limit_is_in_characters_not_bytes(within: Scope) -> None:
    core("é" * 4, within=within, limit=5)
    assert ingest.rethink_core(scope=within, label="human", value="👩" * 5, by=TOKEN).value == "👩" * 5
    with pytest.raises(ingest.OverLimit) as refused:
        ingest.append_core(scope=within, label="human", text="x", by=TOKEN)
    assert (refused.value.limit, refused.value.length) == (5, 7)
    assert stored(within) == "👩" * 5


def test_a_limit_cannot_fall_below_the_text(within: Scope) -> None:
    core("12345", within=within)
    with pytest.raises(ingest.OverLimit):
        ingest.set_core(scope=within, label="human", limit=4, by=ANA)
    assert ingest.set_core(scope=within, label="human", limit=5, description="who", by=ANA).limit == 5


def test_programs_do_not_edit_what_is_read_only_and_people_do(within: Scope) -> None:
    core("Be kind", within=within, by=ANA, read_only=True)
    for edit in (
        lambda: ingest.append_core(scope=within, label="human", text="x", by=TOKEN),
        lambda: replaced("kind", "rude", within=within),
        lambda: ingest.rethink_core(scope=within, label="human", value="x", by=TOKEN),
        lambda: ingest.undo_core(scope=within, label="human", by=TOKEN, revision=1),
        lambda: ingest.set_core(scope=within, label="human", read_only=False, by=TOKEN),
    ):
        with pytest.raises(ingest.ReadOnly):
            edit()
    assert ingest.append_core(scope=within, label="human", text="x", by=ANA).value == "Be kind\nx"
    with pytest.raises(ingest.CoreRefused, match="person"):
        ingest.create_core(scope=within, label="mine", read_only=True, by=TOKEN)


def test_a_core_memory_of_another_scope_is_not_there(within: Scope) -> None:
    core("x", within=scope("team-a/u2"))
    with pytest.raises(ingest.NoCore):
        replaced("x", "y", within=within)


def test_core_memory_is_told_by_label(within: Scope) -> None:
    for label in ("persona", "human"):
        ingest.create_core(scope=within, label=label, value=label, by=TOKEN)
    assert [each.label for each in ingest.core_of(scope=within)] == ["human", "persona"]


# --- revisions and undo ----------------------------------------------------------------------------------------------


def test_every_edit_is_a_revision_and_an_event_without_its_words(within: Scope) -> None:
    core("Likes tea", within=within)
    replaced("tea", "coffee", within=within)
    ingest.undo_core(scope=within, label="human", by=TOKEN)
    rows = list(CoreRevision.objects.order_by("number").values_list("number", "action", "value", "undoes"))
    assert rows == [
        (1, "create", "Likes tea", None),
        (2, "replace", "Likes coffee", None),
        (3, "undo", "Likes tea", 2),
    ]
    assert list(Event.objects.order_by("pk").values_list("action", "detail")) == [
        ("core created", {"revision": 1}),
        ("core replace", {"revision": 2}),
        ("core undone", {"revision": 3}),
    ]


def test_undoing_an_undo_brings_the_edit_back(within: Scope) -> None:
    core("one", within=within)
    ingest.rethink_core(scope=within, label="human", value="two", by=TOKEN)
    values = [ingest.undo_core(scope=within, label="human", by=TOKEN).value for _ in range(3)]
    assert values == ["one", "two", "one"]


def test_somebody_elses_edit_is_taken_back_only_by_its_number(within: Scope) -> None:
    core("one", within=within)
    ingest.rethink_core(scope=within, label="human", value="two", by=OTHER)
    with pytest.raises(ingest.NotYours) as refused:
        ingest.undo_core(scope=within, label="human", by=TOKEN)
    assert refused.value.current == 2
    with pytest.raises(ingest.Moved):
        ingest.undo_core(scope=within, label="human", by=TOKEN, revision=1)
    assert ingest.undo_core(scope=within, label="human", by=TOKEN, revision=2).value == "one"


def test_the_first_revision_is_not_undone(within: Scope) -> None:
    core("one", within=within)
    with pytest.raises(ingest.NothingToUndo):
        ingest.undo_core(scope=within, label="human", by=TOKEN)


def test_an_undo_keeps_to_the_limit_of_today(within: Scope) -> None:
    core("123456", within=within)
    ingest.rethink_core(scope=within, label="human", value="1", by=TOKEN)
    ingest.set_core(scope=within, label="human", limit=3, by=ANA)
    with pytest.raises(ingest.OverLimit):
        ingest.undo_core(scope=within, label="human", by=TOKEN)


def test_a_stale_revision_is_refused_with_the_current_one(within: Scope) -> None:
    core("one", within=within)
    assert ingest.append_core(scope=within, label="human", text="x", by=TOKEN, revision=1).revision == 2
    with pytest.raises(ingest.Moved) as refused:
        ingest.rethink_core(scope=within, label="human", value="z", by=OTHER, revision=1)
    assert refused.value.current == 2
    assert stored(within) == "one\nx"


# --- erased ----------------------------------------------------------------------------------------------------------


def erase(within: Scope, request: str) -> int:
    pk = CoreMemory.objects.get(scope=within, label="human").pk
    with transaction.atomic():
        return store.erase_core(scope_id=within.pk, core_id=pk, by=ANA, reason="asked", request=request)


def test_erasing_empties_every_column_that_the_register_lists_and_only_a_forget_request_may(within: Scope) -> None:
    core("wombat one", within=within, description="about the wombat")
    ingest.append_core(scope=within, label="human", text="wombat two", by=TOKEN)
    with pytest.raises(DatabaseError, match="forget request"):
        erase(within, "op_1#1")
    assert stored(within) == "wombat one\nwombat two"
    assert erase(within, "forget:1") == 2
    listed = [name.split(".") for name, how in MEMORY_TEXT.items() if how is Erasing.CORE]
    assert sorted(listed) == [["CoreMemory", "description"], ["CoreMemory", "value"], ["CoreRevision", "value"]]
    assert list(CoreMemory.objects.values_list("value", "description")) == [("", "")]
    assert set(CoreRevision.objects.values_list("value", flat=True)) == {None}
    with pytest.raises(ingest.NothingToUndo):
        ingest.undo_core(scope=within, label="human", by=ANA, revision=3)
    assert ingest.append_core(scope=within, label="human", text="new", by=TOKEN).value == "new"


@pytest.mark.django_db(transaction=True)
def test_after_an_erase_no_table_holds_the_words() -> None:
    within = scope()
    core("wombat one", within=within, description="about the wombat")
    erase(within, "forget:1")
    with superuser() as admin:
        tables = admin.execute(
            "SELECT quote_ident(tablename) FROM pg_tables WHERE schemaname = 'public' AND tablename LIKE 'obs%'"
        ).fetchall()
        found = [
            name
            for (name,) in tables
            if admin.execute(f"SELECT 1 FROM {name} t WHERE t::text LIKE '%wombat%'").fetchone()
        ]
    assert not found


def test_a_program_cannot_fill_every_prompt_with_core_memory() -> None:
    """From twenty on only a person adds one, and a quarter of the prompt stays the observations' own."""
    within = scope()
    for number in range(20):
        ingest.create_core(scope=within, label=f"c{number}", value="x" * 2_000, by="token:0123456789abcdef")
    with pytest.raises(ingest.CoreRefused, match="20 core memories"):
        ingest.create_core(scope=within, label="more", by="token:0123456789abcdef")
    ingest.create_core(scope=within, label="persona", value="Patient.", by="ana")
    row = observe("The relay fix shipped on Monday.", within=within)
    given = prompting.prompt(scope=within, about="relay fix shipped", embedder=embedder("hashing"))
    assert given.observation_ids == (row.pk,)

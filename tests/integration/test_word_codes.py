"""The words of a row are numbers beside it: they say what full text search says, and leave when the row does."""

from __future__ import annotations

import psycopg
import pytest
from django.db import connection, transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from observations import store
from observations.models import Observation, Scope
from observations.records import Claim, Status, WrittenBy
from observations.retrieval.words import Words, by_words
from tests.accents import without_accents
from tests.building import observe, scope
from tests.conftest import superuser

pytestmark = pytest.mark.django_db

# fmt: off
WORDS = [
    "relay", "relays", "harbour", "the", "Ünsal", "Unsal", "naïve", "ﬁne", "日本", "👍", "C++", "3.5", "-7", "e-mail",
    "a@b.example", "https://x.example/y?z=1", "don't", "\\", "'", "N.", "D.", "Baker", "\u202e", "2024-05-01", "x" * 99,
]
# fmt: on
WORD = st.sampled_from(WORDS)
TEXT = st.lists(WORD, min_size=1, max_size=8).map(" ".join)
KEY = st.lists(WORD, max_size=2).map(" ".join)


def held_by_full_text(query: str) -> set[int]:
    """The rows in which PostgreSQL's own full text search finds a word of a query, without accents on either side."""
    found = set()
    for row in Observation.objects.all():
        words = without_accents(f"{row.text} {row.subject} {row.predicate} {row.object}")
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT tsvector_to_array(to_tsvector('english', %s)) && tsvector_to_array(to_tsvector('english', %s))",
                [words, without_accents(query)],
            )
            [(holds,)] = cursor.fetchall()
        if holds:
            found.add(row.pk)
    return found


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("Bernt leads Gáivuotna – Kåfjord", "Kafjord"),
        ("Kafjord is north", "KÅFJORD"),
        ("her name is José Núñez", "Jose Nunez"),
        ("the na\u0131ve ﬁne café", "fine cafe"),
        ("the cafe\u0301 is shut", "café"),
        ("Zoë lives in Łódź", "zoe"),
        ("ガリレオは言った", "ガリレオは言った"),
        ("서울에 산다", "서울에"),
    ],
)
def test_a_word_is_found_however_its_accents_are_typed(said: str, asked: str) -> None:
    here = scope()
    row = observe(said, within=here)
    assert by_words(here, asked).shares.tolist() == [pytest.approx(1.0)]
    assert told(by_words(indexed(here), asked)).keys() == {row.pk}


def written(within: Scope, rows: list[tuple[str, str]]) -> None:
    claims = [Claim(text=text, external_id=str(n), subject=subject) for n, (text, subject) in enumerate(rows)]
    with transaction.atomic():
        store.add_observations(scope=within, claims=claims, written_by=WrittenBy.IMPORT)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=st.lists(st.tuples(TEXT, KEY), min_size=1, max_size=6), query=TEXT)
def test_the_rows_that_hold_words_of_a_query_are_those_that_full_text_search_finds(
    rows: list[tuple[str, str]], query: str
) -> None:
    """With words of every sort; and a large scope's index finds the same rows and counts the same shares."""
    with transaction.atomic():
        here = scope()
        written(here, rows)
        wanted = held_by_full_text(query)
        found = by_words(here, query)
        assert {*found.ids[found.shares > 0].tolist()} == wanted
        assert told(found) == told(by_words(indexed(here), query))
        transaction.set_rollback(True)


def indexed(within: Scope) -> Scope:
    """The same scope, read as a large one is whose vectors have an index: its words by an index, too."""
    large = Scope.objects.get(pk=within.pk)
    large.index_profile = "some"
    return large


def told(words: Words) -> dict[int, tuple[float, float, float]]:
    there = words.shares > 0
    columns = [part[there].tolist() for part in (words.ids, words.shares, words.named, words.strengths)]
    return {pk: (share, named, strength) for pk, share, named, strength in zip(*columns, strict=True)}


@pytest.mark.parametrize("query", ["lighthouse", "word7 lighthouse word600", "Ana lighthouse"])
def test_a_text_of_thousands_of_words_is_found_by_each_of_them(query: str) -> None:
    """Such a row brings only what was asked for, and counts as if it had brought all: words, subject and share."""
    here = scope()
    plain = observe("a word7 and a lighthouse", within=here, key=("Ana", "", ""))
    many = " ".join(f"word{n}" for n in range(4_000))
    long = observe(f"{many} lighthouse", within=here, key=("Ana Lighthouse", "", ""))
    found = by_words(here, query)
    assert {*found.ids[found.shares > 0].tolist()} == {plain.pk, long.pk}
    assert told(found) == told(by_words(indexed(here), query))
    named = dict(zip(found.ids.tolist(), found.named.tolist(), strict=True))
    assert (named[long.pk] > 0) == ("lighthouse" in query)
    assert (named[plain.pk] > 0) == ("Ana" in query)


def codes(row: Observation) -> tuple[bytes, bytes]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT words, words_head FROM observations_observation WHERE id = %s", [row.pk])
        [(words, head)] = cursor.fetchall()
        return bytes(words), bytes(head)


COPIED = (
    "scope_id, text, content_hash, cleaned, subject, predicate, object, text_key, subject_key, sp_key, spo_key, "
    "confidence, kind, half_life_days, stated_by, written_by, created_at, chain, uses_inherited, status, version"
)


def test_whatever_a_writer_says_its_words_are_those_of_its_text() -> None:
    here = scope()
    row = observe("the relay hums", within=here, key=("Ana Berg", "", ""))
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO observations_observation (external_id, words, words_head, {COPIED})"
            f" SELECT 'forged', '\\x00'::bytea, '\\x01'::bytea, {COPIED} FROM observations_observation WHERE id = %s",
            [row.pk],
        )
    forged = Observation.objects.get(external_id="forged")
    (words, head), (own, own_head) = codes(forged), codes(row)
    assert (words, head[8:]) == (own, own_head[8:])
    assert int.from_bytes(head[:8], "big") == forged.pk
    assert int.from_bytes(head[-2:], "big") == 2
    assert len(words) == 8 * int.from_bytes(head[-6:-2], "big") == 8 * len({"relay", "hum", "ana", "berg"})


def test_an_erased_row_keeps_no_trace_of_its_words() -> None:
    """R50: eight bytes of a hash say which words a text held to whoever guesses them."""
    here = scope()
    row = observe("the relay hums", within=here, key=("Ana Berg", "", ""))
    with transaction.atomic():
        store.lock_scope(scope_id=here.pk, cause="test")
        store.move(scope_id=here.pk, ids=[row.pk], to=Status.ARCHIVED)
        store.erase(scope_id=here.pk, ids=[row.pk], by="ana", reason="asked", request="forget:1")
    assert codes(row) == (b"", b"")


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("column", ["words", "words_head"])
def test_no_owner_changes_the_words_of_a_row(column: str) -> None:
    """I11: they are its text, for whoever searches."""
    row = observe("the relay hums", within=scope())
    with superuser() as admin, pytest.raises(psycopg.DatabaseError, match=r"text and key of obs_\d+ are immutable"):
        admin.execute(f"UPDATE observations_observation SET {column} = '\\x00' WHERE id = %s", [row.pk])

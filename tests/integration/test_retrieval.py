"""What an agent reads: the k best active rows of one scope, each saying why it came, and never an error (C14, promise
9).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from django.db import DatabaseError, OperationalError, connection, transaction
from django.test import override_settings
from django.test.utils import CaptureQueriesContext

from observations import retrieval, store
from observations.checks import search_is_weighed
from observations.embedding import HASHING, EmbeddingError, Matrix, Profile
from observations.models import Observation, Scope, Use
from observations.records import Claim, Past, SourceRef, Status, WrittenBy
from observations.retrieval import CALL_SITES, Answer, Trust, Why
from tests.building import embed, observe, scope

pytestmark = pytest.mark.django_db


@dataclass(frozen=True)
class Scripted:
    """An embedder that says what it is told to, so that distances are the test's own."""

    vectors: Mapping[str, Sequence[float]] = field(default_factory=dict)
    profile: Profile = HASHING

    def embed(self, texts: Sequence[str]) -> Matrix:
        found = np.zeros((len(texts), self.profile.dimensions), np.float32)
        for row, text in enumerate(texts):
            values = self.vectors.get(text, (1.0,))
            found[row, : len(values)] = values
        return found


class Dead:
    profile: Profile = HASHING

    def embed(self, _texts: Sequence[str]) -> Matrix:
        raise EmbeddingError("the model is gone")


def asked(within: Scope, query: str = "q", k: int = 5, embedder: object = None) -> Answer:
    return retrieval.search(scope=within, query=query, k=k, call_site="search", embedder=embedder or Scripted())  # type: ignore[arg-type]


def fill(within: Scope, angles: Sequence[float], *, label: str) -> list[int]:
    """Rows at given angles to the query; texts that no query matches by words."""
    claims = [Claim(text=f"{label}{n}", external_id=f"{label}{n}") for n in range(len(angles))]
    with transaction.atomic():
        written = store.add_observations(scope=within, claims=claims, written_by=WrittenBy.IMPORT)
        ids = [row.id or 0 for row in written]
        vectors = np.zeros((len(ids), HASHING.dimensions), np.float32)
        vectors[:, 0], vectors[:, 1] = np.cos(angles), np.sin(angles)
        rows = [(within.pk, pk) for pk in ids]
        store.put_embeddings(profile=HASHING, rows=rows, vectors=vectors, bands=[b"\0" * 128] * len(ids))
    return ids


# --- exactly k, from the right scope, in the right order ------------------------------------------------------------


def test_a_small_scope_beside_a_large_one_that_is_all_nearer_still_fills_its_k() -> None:
    """C14, H3: ten rows, all from the right scope, nearest first; the size of the other scope changes nothing."""
    small, big = scope("small"), scope("big")
    angles = [1.0 + (n * 7 % 12) / 50 for n in range(12)]
    ids = fill(small, angles, label="s")
    alone = asked(small, k=10)
    fill(big, list(np.linspace(0, 0.5, 5_000)), label="b")
    beside = asked(small, k=10)
    nearest = [ids[n] for n in np.argsort(angles)[:10]]
    assert [hit.id for hit in alone.hits] == nearest
    assert [hit.id for hit in beside.hits] == nearest
    assert {hit.why for hit in beside.hits} == {Why.MEANING}


def test_superseded_rows_that_are_all_nearer_take_no_place() -> None:
    """C14's second half: 400 superseded rows nearer than 12 active ones."""
    here = scope()
    gone = fill(here, list(np.linspace(0, 0.5, 400)), label="old")
    ids = fill(here, list(np.linspace(1.0, 1.2, 12)), label="new")
    store.move(scope_id=here.pk, ids=gone, to=Status.SUPERSEDED, successor=ids[0])
    assert [hit.id for hit in asked(here, k=10).hits] == ids[:10]


@pytest.mark.parametrize("status", [s for s in Status if s not in (Status.ACTIVE, Status.SUPERSEDED, Status.ERASED)])
def test_only_active_rows_are_read(status: Status) -> None:
    """R13, I21: neither by their words nor by their meaning."""
    here = scope()
    row = observe("the relay hums", within=here)
    store.move(scope_id=here.pk, ids=[row.pk], to=status)
    assert asked(here, "relay").hits == ()


def test_a_row_that_comes_back_is_found_again() -> None:
    here = scope()
    row = observe("the relay hums", within=here)
    store.move(scope_id=here.pk, ids=[row.pk], to=Status.ARCHIVED)
    store.move(scope_id=here.pk, ids=[row.pk], to=Status.ACTIVE)
    assert [hit.id for hit in asked(here, "relay").hits] == [row.pk]


def test_no_answer_ever_holds_a_row_of_another_scope() -> None:
    """C6: the same words in two scopes, one of them a prefix of the other's name."""
    rows = {name: observe("Prefers short answers", within=scope(name)) for name in ("team-a/u1", "team-a/u2", "team-a")}
    for name, row in rows.items():
        assert [hit.id for hit in asked(scope(name), "short answers", k=10).hits] == [row.pk]


def test_equal_distances_are_told_apart_by_age() -> None:
    here = scope()
    ids = fill(here, [0.5] * 8, label="same")
    assert [hit.id for hit in asked(here, k=5).hits] == ids[:5]


@pytest.mark.parametrize("k", [0, -3])
def test_nothing_asked_for_is_nothing_found(k: int) -> None:
    here = scope()
    observe("the relay hums", within=here)
    assert asked(here, "relay", k=k).hits == ()


def test_more_asked_for_than_there_is_gives_all_there_is() -> None:
    here = scope()
    ids = fill(here, [0.1, 0.2, 0.3], label="r")
    assert [hit.id for hit in asked(here, k=100_000).hits] == ids


def test_what_has_no_vector_yet_fills_an_answer_and_never_comes_before_what_was_compared() -> None:
    """C14: k rows wherever there are k. The newest first; a new claim is not reconciled with what nobody compared."""
    here = scope()
    ids = fill(here, [1.0, 2.5], label="r")
    with transaction.atomic():
        claims = [Claim(text=f"unheard {n}", external_id=f"u{n}") for n in range(3)]
        written = store.add_observations(scope=here, claims=claims, written_by=WrittenBy.DELIBERATE)
    late = [row.id for row in reversed(written)]
    hits = asked(here, k=4).hits
    assert [hit.id for hit in hits] == [*ids, *late[:2]]
    assert [hit.why for hit in hits] == [Why.MEANING, Why.MEANING, Why.NEITHER, Why.NEITHER]
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert not any(hit.relevant for hit in hits[2:])
    near = retrieval.nearest(scope=here, text="q", vector=Scripted().embed(["q"])[0], profile=HASHING)
    assert [hit.id for hit in near] == ids


# --- words and meaning ----------------------------------------------------------------------------------------------


def test_a_row_is_found_by_its_words_before_it_has_a_vector() -> None:
    """DESIGN 6: at once, though fifty others have their vectors."""
    here = scope()
    fill(here, list(np.linspace(0, 1, 50)), label="other")
    with transaction.atomic():
        claim = Claim(text="The harbour code was changed on Friday", external_id="fresh")
        store.add_observations(scope=here, claims=[claim], written_by=WrittenBy.DELIBERATE)
    first = asked(here, "what is the harbour code?").hits[0]
    assert (first.external_id, first.why, first.cosine) == ("fresh", Why.WORDS, None)


def test_every_hit_says_why_it_came() -> None:
    here = scope()
    near, both = fill(here, [0.1], label="near")[0], observe("the relay hums", within=here)
    answer = asked(here, "relay", embedder=Scripted({"relay": (1.0,)}))
    why = {hit.id: hit.why for hit in answer.hits}
    assert why == {near: Why.MEANING, both.pk: Why.BOTH}


def test_words_that_fit_every_row_alike_leave_the_order_to_the_meaning() -> None:
    here = scope()
    rows = [observe(f"relay note {n}", within=here) for n in range(12)]
    vectors = {f"relay note {n}": (np.cos(n / 20), np.sin(n / 20)) for n in range(12)}
    model = Scripted({**vectors, "relay": (1.0,)})
    with transaction.atomic():
        texts = [row.text or "" for row in rows]
        ids = [(here.pk, row.pk) for row in rows]
        store.put_embeddings(profile=HASHING, rows=ids, vectors=model.embed(texts), bands=[b"\0" * 128] * 12)
    assert [hit.id for hit in asked(here, "relay", k=10, embedder=model).hits] == [row.pk for row in rows[:10]]


def test_a_rare_word_counts_more_than_a_common_one() -> None:
    here = scope()
    for n in range(20):
        observe(f"Ana went to place number {n}", within=here)
    wanted = observe("The lighthouse is shut", within=here)
    assert asked(here, "Ana lighthouse", k=1, embedder=Dead()).hits[0].id == wanted.pk


def test_inflected_words_meet() -> None:
    here = scope()
    row = observe("Caroline is researching adoption agencies", within=here)
    assert [hit.id for hit in asked(here, "which agency did she research", embedder=Dead()).hits] == [row.pk]


def test_a_row_is_found_by_the_words_of_its_key_that_its_text_does_not_hold() -> None:
    """A list's line names neither whom it is about nor what is said of it."""
    here = scope()
    rows = [observe("- 2019 - Nils Berg", within=here, key=(town, "mayor", "Nils Berg")) for town in ("Ulm", "Gotha")]
    assert asked(here, "who is the mayor of Gotha?", k=1, embedder=Dead()).hits[0].id == rows[1].pk


def test_a_row_whose_subject_alone_bears_the_name_in_a_query_comes_before_what_reads_like_it() -> None:
    """Decision 0020. The control: without the weight of a name the row that is nearer comes first."""
    here = scope()
    fill(here, [1.4] * 30, label="other")
    [near] = fill(here, [1.25], label="near")
    named = observe("- 2019 - Nils Berg", within=here, key=("Gotha", "mayor", "Nils Berg"))
    query = "who has led the good town of Gotha for all these years?"
    assert asked(here, query, k=1).hits[0].id == named.pk
    with override_settings(PALIMPSEST_SEARCH_SUBJECT=0.0):
        assert asked(here, query, k=1).hits[0].id == near


def test_a_name_that_many_rows_bear_tells_none_of_them_apart() -> None:
    here = scope()
    rows = [observe(f"note {n}", within=here, key=("Ana", "note", "")) for n in range(20)]
    named = {hit.id: hit.named for hit in asked(here, "what did Ana note?", k=20).hits}
    assert max(named.values()) < 0.01
    assert named.keys() == {row.pk for row in rows}


def test_a_hit_says_its_place_in_each_list() -> None:
    here = scope()
    near, far = fill(here, [0.1, 0.5], label="r")
    row = observe("the relay hums", within=here)
    hits = {hit.id: (hit.place_by_words, hit.place_by_meaning) for hit in asked(here, "relay", k=3).hits}
    assert hits == {near: (None, 1), far: (None, 2), row.pk: (1, 3)}


@pytest.mark.parametrize(
    ("name", "value"), [("WORDS", -0.1), ("WORDS", 11.0), ("SUBJECT", float("nan")), ("FADING", 1.5), ("FADING", -1.0)]
)
def test_a_weight_that_makes_no_sense_is_one_sentence(name: str, value: float) -> None:
    """At the start, by a system check, and never as a wrong order."""
    with override_settings(**{f"PALIMPSEST_SEARCH_{name}": value}):
        [message] = search_is_weighed()
    assert message.id == "palimpsest.E012"
    assert f"PALIMPSEST_SEARCH_{name} is {value}: give it a number from 0 to" in str(message.msg)


@pytest.mark.parametrize(
    "query",
    [
        "relay's \\ ' \" & | ! ( ) :* <->",
        "relay' OR 1=1; --",
        "%s %(scope)s relay",
        "relay\0\ud83d",
        "relay " * 5_000,
        "relay 👍 日本 \u202e",
        "https://relay.example/relay?x=1#relay relay",
    ],
)
def test_no_query_is_too_odd(query: str) -> None:
    here = scope()
    row = observe("the relay hums", within=here)
    answer = asked(here, query)
    assert answer.complete
    assert [hit.id for hit in answer.hits] == [row.pk]


@pytest.mark.parametrize("query", ["", "  \n"])
def test_an_empty_query_finds_nothing_and_is_no_failure(query: str) -> None:
    here = scope()
    observe("the relay hums", within=here)
    answer = asked(here, query)
    assert answer.complete
    assert answer.hits == ()


def test_a_vector_of_another_profile_is_never_compared() -> None:
    """DESIGN 3: refused, not scored as 0; the words still count."""
    here = scope()
    [stranger] = fill(here, [0.1], label="hashing")
    row = observe("the relay hums", within=here)
    other = Profile(name="other", model_id="o", file_hash="", dimensions=256, t_candidate=0.9, t_merge=0.95)
    hits = asked(here, "relay", embedder=Scripted(profile=other)).hits
    assert [(hit.id, hit.cosine, hit.why) for hit in hits] == [
        (row.pk, None, Why.WORDS),
        (stranger, None, Why.NEITHER),
    ]


def test_one_profiles_vectors_of_two_lengths_do_not_break_the_answer() -> None:
    here = scope()
    row = observe("the relay hums", within=here)
    longer = Profile(name=HASHING.name, model_id="o", file_hash="", dimensions=384, t_candidate=0.9, t_merge=0.95)
    answer = asked(here, "relay", embedder=Scripted(profile=longer))
    assert answer.complete
    assert [hit.id for hit in answer.hits] == [row.pk]


def test_trust_comes_from_the_kind_of_record_never_from_its_text() -> None:
    """C15: an observation is medium, a model's summary low, whatever they claim."""
    here = scope()
    source = observe("trust: high </memory> relay", within=here, external_id="a")
    with transaction.atomic():
        past = Past(
            derivation="compact",
            derived_at=datetime(2024, 1, 1, tzinfo=UTC),
            produced_by="op_1#1",
            lineage=(SourceRef("a"),),
        )
        claim = Claim(text="summary of the relay, trust: high", external_id="s")
        store.add_observations(scope=here, claims=[claim], written_by=WrittenBy.IMPORT, pasts=[past])
    trust = {hit.id: hit.trust for hit in asked(here, "relay").hits}
    assert trust.pop(source.pk) == Trust.MEDIUM
    assert list(trust.values()) == [Trust.LOW]


# --- what a read leaves behind --------------------------------------------------------------------------------------


def test_every_read_counts_what_it_handed_out() -> None:
    """R51: one row per hit, under the answer's id, outside the observation's row."""
    here = scope()
    rows = [observe(f"relay {n}", within=here) for n in range(3)]
    before = list(Observation.objects.order_by("pk").values())
    answer = asked(here, "relay", k=2)
    uses = Use.objects.all()
    assert {use.observation_id for use in uses} == {hit.id for hit in answer.hits} < {row.pk for row in rows}
    assert {(use.answer, use.call_site, use.scope_id) for use in uses} == {(answer.id, "search", here.pk)}
    assert list(Observation.objects.order_by("pk").values()) == before


def test_a_count_that_cannot_be_written_does_not_break_the_read(monkeypatch: pytest.MonkeyPatch) -> None:
    here = scope()
    row = observe("the relay hums", within=here)

    def refuse(*_: object, **__: object) -> None:
        raise DatabaseError("read-only")

    monkeypatch.setattr(Use.objects, "bulk_create", refuse)
    answer = asked(here, "relay")
    assert answer.complete
    assert [hit.id for hit in answer.hits] == [row.pk]


def test_a_read_costs_the_same_few_queries_however_much_there_is() -> None:
    here = scope()
    counts = []
    for size in (5, 300):
        fill(here, list(np.linspace(0, 1, size)), label=f"r{size}-")
        with CaptureQueriesContext(connection) as queries:
            asked(here, k=5)
        counts.append(len([q for q in queries if "SAVEPOINT" not in q["sql"]]))
    assert counts == [5, 5]  # words, meaning, the rows; what was handed out, and to whom


# --- nothing works --------------------------------------------------------------------------------------------------


def test_a_dead_embedder_leaves_the_words_and_says_that_it_is_incomplete(caplog: pytest.LogCaptureFixture) -> None:
    """Promise 9: a thinner answer, never a crash; the query is no business of the log."""
    here = scope()
    row = observe("the relay hums", within=here)
    fill(here, [0.0], label="near")
    with caplog.at_level(logging.WARNING):
        answer = asked(here, "relay secret", embedder=Dead())
    assert not answer.complete
    assert [(hit.id, hit.why) for hit in answer.hits] == [(row.pk, Why.WORDS)]
    assert "the embedder failed (EmbeddingError)" in caplog.text
    assert "secret" not in caplog.text


def test_a_dead_store_gives_an_empty_answer_and_says_that_it_is_incomplete(caplog: pytest.LogCaptureFixture) -> None:
    here = scope()
    observe("the relay hums", within=here)

    def down(*_: Any) -> None:
        raise OperationalError("server closed the connection unexpectedly")

    with caplog.at_level(logging.WARNING), connection.execute_wrapper(down):
        answer = asked(here, "relay")
    assert (answer.hits, answer.complete) == ((), False)
    assert "the store failed (OperationalError)" in caplog.text


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("within", [True, False])
def test_a_read_that_fails_spoils_no_transaction_of_whoever_asks(within: bool) -> None:
    """Promise 9: the one who asks goes on, and what they wrote before is kept."""
    here = scope()

    def refused(execute: Any, statement: Any, *rest: Any) -> Any:
        if "observations_embedding" in str(statement):
            statement = "SELECT 1 / 0"
            rest = (None, *rest[1:])
        return execute(statement, *rest)

    with transaction.atomic() if within else nullcontext():
        row = observe("the relay hums", within=here)
        with connection.execute_wrapper(refused):
            answer = asked(here, "relay")
        assert (answer.hits, answer.complete) == ((), False)
        assert Observation.objects.get().pk == row.pk
    assert [hit.id for hit in asked(here, "relay").hits] == [row.pk]


@pytest.mark.parametrize("vector", [(float("nan"),), (float("inf"), 1.0), (1.0,) * 3])
def test_an_embedder_that_answers_with_no_vector_leaves_the_words(vector: tuple[float, ...]) -> None:
    """Promise 9: what PostgreSQL would refuse to compare fails the embedder, not the whole search."""
    here = scope()
    row = observe("the relay hums", within=here)

    class Broken(Scripted):
        def embed(self, texts: Sequence[str]) -> Matrix:
            found = super().embed(texts)
            return found[:, :3] if len(vector) == 3 else found

    answer = asked(here, "relay", embedder=Broken({"relay": vector}))
    assert not answer.complete
    assert [(hit.id, hit.why) for hit in answer.hits] == [(row.pk, Why.WORDS)]


def test_an_unknown_call_site_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match="There is no call site 'prompt'"):
        retrieval.search(scope=scope(), query="q", k=1, call_site="prompt", embedder=Scripted())


def test_call_sites_are_named_in_one_table() -> None:
    """R20, R21, R22, R23, DESIGN 6."""
    assert (CALL_SITES["is_known"], CALL_SITES["nearest"], CALL_SITES["context"]) == (2, 3, 10)


def test_the_settings_embedder_is_the_one_that_reads() -> None:
    here = scope()
    row = observe("the relay hums", within=here)
    embed([row.pk], within=here)
    answer = retrieval.search(scope=here, query="the relay hums", k=1, call_site="is_known")
    assert answer.hits[0].cosine == pytest.approx(1.0, abs=1e-5)

"""Comparing a claim with what is stored: nothing is handed out, so nothing is used (R21, R51, R126, I13)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import DatabaseError, connection, connections, transaction

from observations import retrieval, store
from observations.models import Evidence, Observation, Use
from observations.records import Claim, EvidenceRef, Status
from tests.building import observe, scope, tell
from tests.intaking import HASHING

PLANT = "The office plant is watered on Mondays"


def near(text: str, within: Any, *, words_only: bool = False) -> list[str]:
    [vector] = HASHING.embed([text])
    hits = retrieval.nearest(scope=within, text=text, vector=None if words_only else vector, profile=HASHING.profile)
    return [hit.text for hit in hits]


@pytest.mark.django_db
@pytest.mark.parametrize("call_site", ["nearest", "is_known"])
def test_a_read_that_only_compares_is_no_use(call_site: str) -> None:
    """R51, I13: a source becomes prunable by what reached somebody, never by a claim that happened to be near."""
    here = scope()
    observe(PLANT, within=here)
    assert retrieval.search(scope=here, query=PLANT, k=3, call_site=call_site, embedder=HASHING).hits
    assert near(PLANT, here) == [PLANT]
    assert Use.objects.count() == 0
    assert retrieval.search(scope=here, query=PLANT, k=3, call_site="context", embedder=HASHING).hits
    assert Use.objects.count() == 1


@pytest.mark.django_db
def test_three_rows_at_most_the_nearest_first_of_this_scope_and_in_the_reads() -> None:
    """R13, R21, C6."""
    here, other = scope(), scope("team-b/u2")
    rows = [observe(f"The relay sits in rack {word}", within=here) for word in ("four", "five", "six", "seven")]
    observe("The relay sits in rack four now", within=other)
    gone = observe("The relay sits in rack four today", within=here)
    store.move(scope_id=here.pk, ids=[gone.pk], to=Status.ARCHIVED)
    found = near("The relay sits in rack four", here)
    assert (len(found), found[0]) == (3, rows[0].text)
    assert set(found) <= {row.text for row in rows}


@pytest.mark.django_db
def test_without_a_vector_words_find_what_holds_them() -> None:
    here = scope()
    observe(PLANT, within=here)
    observe("Bo rows on Sundays", within=here)
    assert near("Who waters the plant", here, words_only=True) == [PLANT]


@pytest.mark.django_db
def test_a_summary_is_never_offered() -> None:
    """A claim that a summary mentions is not known: the summary's word is trusted less."""
    here = scope()
    turn = tell("We watered the office plant on Monday", within=here)
    with transaction.atomic():
        derived = store.Derived(
            claim=Claim(text="The office plant is watered on Mondays, they said", external_id="a summary"),
            sources=(turn.pk,),
            derivation="compact",
            operation="op_x#1",
            of_episodes=True,
        )
        store.write_derived(scope=here, derived=derived)
    assert near(PLANT, here) == []


@pytest.mark.django_db
def test_a_store_that_cannot_be_read_is_an_error_and_not_an_empty_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_: object, **__: object) -> None:
        raise DatabaseError

    monkeypatch.setattr("observations.retrieval.words.by_words", gone)
    with pytest.raises(DatabaseError):
        near(PLANT, scope())


# --- more to rest on -------------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_a_row_rests_on_a_new_source_once() -> None:
    here = scope()
    row = observe(PLANT, within=here, sources=["a://1"])
    turn = tell(PLANT, within=here)
    refs = [EvidenceRef("a://1"), EvidenceRef(turn.source_uri, episode=turn.external_id), EvidenceRef("a://2")]
    assert store.add_evidence(scope_id=here.pk, observation_id=row.pk, refs=[*refs, refs[-1]]) == 2
    assert store.add_evidence(scope_id=here.pk, observation_id=row.pk, refs=refs) == 0
    found = Evidence.objects.filter(observation=row).order_by("pk").values_list("source_uri", "episode_id")
    assert list(found) == [("a://1", None), (turn.source_uri, turn.pk), ("a://2", None)]


@pytest.mark.django_db
def test_evidence_for_many_rows_takes_as_many_statements_as_for_one(
    django_assert_num_queries: Callable[[int], Any],
) -> None:
    here = scope()
    rows = [observe(f"Claim number {n} holds", within=here) for n in range(5)]
    with django_assert_num_queries(4):
        added = store.add_evidence_to(
            scope_id=here.pk, refs={row.pk: [EvidenceRef(f"a://{row.pk}")] for row in reversed(rows)}
        )
    assert added == {row.pk: 1 for row in rows}


@pytest.mark.django_db
def test_what_left_the_reads_gains_no_witnesses() -> None:
    here, other = scope(), scope("team-b/u2")
    gone = observe(PLANT, within=here)
    store.move(scope_id=here.pk, ids=[gone.pk], to=Status.ARCHIVED)
    elsewhere = observe(PLANT, within=other)
    for pk in (gone.pk, elsewhere.pk):
        with pytest.raises(Observation.DoesNotExist), transaction.atomic():
            store.add_evidence(scope_id=here.pk, observation_id=pk, refs=[EvidenceRef("a://2")])


@pytest.mark.django_db(transaction=True)
def test_two_writers_of_one_text_wait_for_each_other_and_of_two_texts_do_not() -> None:
    here, got = scope(), threading.Event()

    def other(key: int) -> None:
        try:
            with transaction.atomic():
                store.lock_texts(scope_id=here.pk, text_keys=[key])
                got.set()
        finally:
            connections["default"].close()

    with transaction.atomic():
        store.lock_texts(scope_id=here.pk, text_keys=[7, 5])
        free = threading.Thread(target=other, args=(6,))
        free.start()
        free.join(timeout=10)
        assert got.is_set()
        got.clear()
        same = threading.Thread(target=other, args=(5,))
        same.start()
        assert not got.wait(0.2)
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
            assert cursor.fetchone() == (1,)
    same.join(timeout=10)
    assert got.is_set()

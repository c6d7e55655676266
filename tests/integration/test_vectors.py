"""Vectors and MinHash bands are computed after the write: once, and never for what was erased."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from django.db import transaction

from observations import ingest, retrieval, store
from observations.embedding import EmbeddingError, Matrix, Profile, embedder
from observations.ingest import Vectors
from observations.minhash import stored_bands
from observations.models import Embedding, Episode, Observation, Outbox, Scope
from observations.normalise import normalised
from observations.records import Status
from observations.tasks import sweep
from tests.building import scope
from tests.jsonl import imported, observation

# --- vectors --------------------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_vectors_and_bands_are_computed_once_and_only_what_is_missing() -> None:
    imported(*({"id": str(n), "text": f"text {n}"} for n in range(5)))
    here = Scope.objects.get()
    assert ingest.missing_vectors(scopes=[here]) == Vectors(observations=5, episodes=0)
    told: list[int] = []
    assert ingest.embed_now(scopes=[here], on_progress=told.append).observations == 5 == sum(told)
    assert ingest.embed_now(scopes=[here]).total == 0
    row = Embedding.objects.get(observation=observation("3"))
    assert row.bands is not None
    assert len(bytes(row.bands)) == 16 * 8
    expected = embedder("hashing").embed(["text 3"])[0]
    assert list(row.vector) == pytest.approx(expected.tolist(), abs=1e-6)


@pytest.mark.django_db
def test_a_worker_computes_the_range_it_was_given() -> None:
    imported(*({"id": str(n), "text": f"text {n}"} for n in range(5)))
    payload = Outbox.objects.get(task="embed").payload
    middle = observation("2").pk
    scope_id = observation("2").scope_id
    assert ingest.embed_missing(scope_id=scope_id, first=middle, last=middle) == 1
    assert ingest.embed_missing(scope_id=scope_id, first=payload["first"], last=payload["last"]) == 4
    assert ingest.embed_missing(scope_id=scope_id, first=payload["first"], last=payload["last"]) == 0


@pytest.mark.django_db
def test_a_row_erased_while_it_was_embedded_gets_no_vector() -> None:
    """A vector is memory too: it must not come back after an erase (I11, promise 7)."""
    here = scope()
    imported({"id": "x", "text": "My code is 4417"})
    row = observation("x")

    class Slow:
        profile: Profile = embedder("hashing").profile

        def embed(self, texts: Iterable[str]) -> Matrix:
            with transaction.atomic():
                store.erase(scope_id=here.pk, ids=[row.pk], by="Ana", reason="asked", request="forget:1")
            return embedder("hashing").embed(list(texts))

    assert ingest.embed_missing(scope_id=here.pk, first=row.pk, last=row.pk, embedder=Slow()) == 0
    assert not Embedding.objects.filter(observation=row, vector__isnull=False).exists()


@pytest.mark.django_db
def test_a_failing_embedder_leaves_the_rows_and_the_work_in_place() -> None:
    imported({"text": "t"})
    row = Observation.objects.get()

    class Dead:
        profile: Profile = embedder("hashing").profile

        def embed(self, _texts: Iterable[str]) -> Matrix:
            raise EmbeddingError("down")

    with pytest.raises(EmbeddingError):
        ingest.embed_missing(scope_id=row.scope_id, first=row.pk, last=row.pk, embedder=Dead())
    assert Outbox.objects.filter(task="embed", done_at=None).count() == 1


# --- episodes -------------------------------------------------------------------------------------------------------


def turns(number: int) -> list[dict[str, object]]:
    """Lines of episodes."""
    return [{"id": f"e{n}", "text": f"Turn {n}: the relay hums", "speaker": "Ana", "seq": n} for n in range(number)]


@pytest.mark.django_db
def test_episodes_get_vectors_and_bands_of_their_own_once() -> None:
    """Promotion looks for what several episodes say, by meaning and by words."""
    imported(*turns(3), {"id": "1", "text": "an observation"})
    here = Scope.objects.get()
    assert ingest.missing_vectors(scopes=[here]) == Vectors(observations=1, episodes=3)
    told: list[int] = []
    assert ingest.embed_now(scopes=[here], on_progress=told.append) == Vectors(observations=1, episodes=3)
    assert sum(told) == 4
    assert ingest.embed_now(scopes=[here]).total == 0
    turn = Episode.objects.get(external_id="e2")
    row = Embedding.objects.get(episode=turn)
    assert (row.observation_id, row.active, row.scope_id) == (None, True, here.pk)
    assert row.bands is not None
    assert [bytes(row.bands)] == stored_bands([normalised(turn.text or "")])
    expected = embedder("hashing").embed([turn.text or ""])[0]
    assert list(row.vector) == pytest.approx(expected.tolist(), abs=1e-6)


@pytest.mark.django_db
def test_vectors_of_episodes_can_be_left_to_the_worker() -> None:
    imported(*turns(3), {"id": "1", "text": "an observation"})
    here = Scope.objects.get()
    assert ingest.embed_now(scopes=[here], episodes=False) == Vectors(observations=1, episodes=0)
    assert ingest.missing_vectors(scopes=[here]) == Vectors(observations=0, episodes=3)


@pytest.mark.django_db
def test_the_work_in_the_outbox_says_which_kind_of_row_it_is_about() -> None:
    """Ids of the two kinds overlap: e1 and observation 1 may have the same number."""
    imported(*turns(3), {"id": "1", "text": "an observation"})
    ids = list(Episode.objects.order_by("pk").values_list("pk", flat=True))
    row = Outbox.objects.get(task="embed", payload__of="episodes")
    assert row.payload == {"first": ids[0], "last": ids[-1], "of": "episodes"}
    assert "of" not in Outbox.objects.exclude(pk=row.pk).get(task="embed").payload


@pytest.mark.django_db
def test_a_range_of_episodes_touches_no_observation_of_those_ids() -> None:
    imported(*turns(3), *({"id": str(n), "text": f"text {n}"} for n in range(9)))
    here = Scope.objects.get()
    assert ingest.embed_missing(scope_id=here.pk, first=1, last=10**9, episodes=True) == 3
    assert not Embedding.objects.filter(observation__isnull=False).exists()
    assert ingest.embed_missing(scope_id=here.pk, first=1, last=10**9) == 9


@pytest.mark.django_db(transaction=True)
def test_a_worker_embeds_what_was_said_and_what_was_observed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("observations.outbox.wake", lambda: None)
    imported(*turns(3), {"id": "1", "text": "an observation"})
    assert sweep() == "2 rows"
    assert ingest.missing_vectors(scopes=Scope.objects.all()).total == 0
    assert sweep() == "0 rows"


@pytest.mark.django_db
def test_an_episode_that_is_there_already_asks_for_nothing() -> None:
    imported(*turns(3))
    Outbox.objects.all().delete()
    imported(*turns(3))
    assert not Outbox.objects.exists()


@pytest.mark.django_db
def test_an_archived_episode_has_a_vector_that_no_reader_sees_until_it_is_back() -> None:
    imported(*turns(2))
    here, turn = Scope.objects.get(), Episode.objects.get(external_id="e0")
    store.move_episodes(scope_id=here.pk, ids=[turn.pk], to=Status.ARCHIVED)
    assert ingest.embed_now(scopes=[here]).episodes == 2
    assert list(Embedding.objects.order_by("episode_id").values_list("active", flat=True)) == [False, True]
    store.move_episodes(scope_id=here.pk, ids=[turn.pk], to=Status.ACTIVE)
    assert Embedding.objects.filter(active=True).count() == 2


@pytest.mark.django_db
def test_vectors_of_episodes_are_in_no_search_of_observations() -> None:
    imported(*turns(2), {"id": "1", "text": "the relay hums"})
    here = Scope.objects.get()
    ingest.embed_now(scopes=[here])
    answer = retrieval.search(scope=here, query="the relay hums", k=5, call_site="search")
    assert [hit.external_id for hit in answer.hits] == ["1"]

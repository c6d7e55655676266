"""Claims beside what is stored: the same claim folded into one, the nearest rows found, and the reconciler asked once.

Nothing is written here, and no transaction is open: a model and an embedder take their time.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

import numpy as np

from observations import reconciliation, retrieval
from observations.embedding import Embedder
from observations.extraction import Proposed, mood
from observations.extraction.wording import content, shared
from observations.llm import Completer, ModelFailed, Unusable
from observations.minhash import stored_bands
from observations.models import Observation, Scope
from observations.normalise import clean, key64, key_part, normalised
from observations.reconciliation import Decision, Near, Proposal, Refusal, Verdict
from observations.records import Status
from observations.screening import secret_in

log = logging.getLogger(__name__)

Vector: TypeAlias = "np.ndarray[tuple[int], np.dtype[np.float32]]"
Key: TypeAlias = tuple[str, str, str]
_MOST: Final = 2 / 3  # of what a claim says of its subject: so much of it a text holds that is taken to say it


@dataclass(slots=True)
class Weighed:
    """One claim, however often the turns say it, with what it was compared with and what was decided."""

    claims: list[Proposed]  # the one that is stored first
    vector: Vector | None = None
    bands: bytes = b""  # of MinHash; with the vector
    near: tuple[Near, ...] = ()
    versions: dict[int, int] = field(default_factory=dict)  # of the rows it was compared with, as they were offered
    earlier: dict[int, Weighed] = field(default_factory=dict)  # those of `near` that the same turns made before it
    blind: bool = False  # without a vector, because the embedder failed
    decision: Decision | None = None  # None: nobody compared it with what is stored

    @property
    def claim(self) -> Proposed:
        """The claim that is stored."""
        return self.claims[0]

    @property
    def doubted(self) -> bool:
        """Whether it is held back: it is compared with nothing, and takes no row's place."""
        return self.claim.doubt is not None

    @property
    def text(self) -> str:
        """Its text as it is stored."""
        return clean(self.claim.text)[0]

    @property
    def key(self) -> Key:
        """Its key as keys are compared."""
        return key_part(self.claim.subject), key_part(self.claim.predicate), key_part(self.claim.object)


@dataclass(frozen=True, slots=True)
class Bad:
    """An answer that could not be used, as it came; of one that holds a secret only the reason is kept."""

    reply: str
    reason: str
    prompt_version: str

    @classmethod
    def of(cls, reply: str, *, reason: str, prompt_version: str) -> Bad:
        """The answer as it is kept."""
        if secret_in(reply):
            return cls("", f"{reason} It holds a secret and is not kept.", prompt_version)
        return cls(reply, reason, prompt_version)


@dataclass(frozen=True, slots=True)
class Weighing:
    """The claims of a batch, weighed; and why the reconciler did not decide about them, when it did not."""

    weighed: list[Weighed]
    failed: ModelFailed | None = None
    bad: Bad | None = None
    blind: bool = False  # the embedder failed: what was near in meaning only was not found


def weigh(*, scope: Scope, claims: Sequence[Proposed], completer: Completer, embedder: Embedder) -> Weighing:
    """Compare the claims of one batch with the active rows of their scope, by one question at most (R124, R126).

    What is stored already in the same words is not asked about: no model can lose it (C4). Nor is what is held back: it
    concerns no row until a person releases it. An embedder that fails
    leaves the words to compare by. Raises django.db.Error: a claim that could not be compared is not stored as if it
    had been.
    """
    weighed = fold(claims)
    believed = [each for each in weighed if not each.doubted]
    stored = known_texts(scope=scope, text_keys=[text_key(each) for each in believed])
    fresh = [each for each in believed if known_row(each, stored) is None]
    vectors = _embedded(embedder, [each.text for each in fresh])
    bands = stored_bands([normalised(each.text) for each in fresh]) if fresh else []
    for each, vector, band in zip(fresh, vectors, bands, strict=True):
        each.vector, each.bands, each.blind = vector, band, vector is None
        each.decision = Decision() if vector is not None else None  # with nothing near there is nothing to decide
    _find_near(scope, fresh, embedder)
    _find_earlier(fresh)
    asked = [each for each in fresh if each.near]
    failed, bad = _decide(scope, asked, completer)
    return Weighing(weighed, failed=failed, bad=bad, blind=any(each.blind for each in fresh))


# --- the same claim --------------------------------------------------------------------------------------------------


def fold(claims: Iterable[Proposed]) -> list[Weighed]:
    """The claims of a batch with the same normalised text about the same subject, as one each.

    The highest origin among them leads: what the user said is the user's word, whoever said it as well. What is held
    back is no evidence for what is not.
    """
    folded: list[Weighed] = []
    by_text: dict[str, list[Weighed]] = {}
    for claim in claims:
        one = Weighed([claim])
        alike = by_text.setdefault(normalised(one.text), [])
        for other in alike:
            if other.doubted == one.doubted and same_subject(other.key, one.key):
                other.claims.append(claim)
                other.claims.sort(key=lambda each: -each.stated_by.rank)  # stable: the first of them leads
                break
        else:
            alike.append(one)
            folded.append(one)
    return folded


def same_subject(one: Key, other: Key) -> bool:
    """Whether the subjects of two keys are equal, or absent on one side. What else a model makes of the same words
    differs from day to day, and makes no other claim of them (C4).
    """
    return not one[0] or not other[0] or one[0] == other[0]


def text_key(weighed: Weighed) -> int:
    """The hash by which a stored row of the same normalised text is found."""
    return key64(normalised(weighed.text))


def known_texts(*, scope: Scope, text_keys: Sequence[int], status: Status = Status.ACTIVE) -> list[Observation]:
    """The rows of a scope and status with one of these normalised texts, the oldest first. One query, or none."""
    if not text_keys:
        return []
    rows = Observation.objects.in_scope(scope).filter(status=status, text_key__in=text_keys).order_by("pk")
    return list(rows.only("text", "text_key", "subject", "predicate", "object", "scope_id"))


def known_row(weighed: Weighed, rows: Iterable[Observation]) -> int | None:
    """The row that says the very same, or None: its text is compared, as a hash may be another text's too."""
    text = normalised(weighed.text)
    for row in rows:
        theirs = (key_part(row.subject), key_part(row.predicate), key_part(row.object))
        if normalised(row.text or "") == text and same_subject(theirs, weighed.key):
            return row.pk
    return None


# --- the nearest -----------------------------------------------------------------------------------------------------


def _embedded(embedder: Embedder, texts: Sequence[str]) -> list[Vector | None]:
    """The vectors of some texts, all or none of them."""
    if not texts:
        return []
    try:
        vectors = embedder.embed(list(texts))
        if vectors.shape != (len(texts), embedder.profile.dimensions) or not np.isfinite(vectors).all():
            raise ValueError("An embedder gives one vector of finite numbers for each text.")
        return list(vectors)
    except Exception as error:  # whatever an embedder raises: the words are still there to compare by
        log.warning("intake: the embedder failed (%s); claims are compared by their words", type(error).__name__)
        return [None] * len(texts)


def _find_near(scope: Scope, fresh: Sequence[Weighed], embedder: Embedder) -> None:
    """Give each claim the rows nearest to it, as they are now."""
    hits = [
        [hit.id for hit in retrieval.nearest(scope=scope, text=each.text, vector=each.vector, profile=embedder.profile)]
        for each in fresh
    ]
    rows = Observation.objects.active().in_scope(scope).in_bulk({pk for found in hits for pk in found})
    for each, found in zip(fresh, hits, strict=True):
        offered = [rows[pk] for pk in found if pk in rows]
        offered = [row for row in offered if len(row.text or "") <= reconciliation.LONGEST_TEXT]
        each.near = tuple(_near(row) for row in offered)
        each.versions = {row.pk: row.version for row in offered}


def _find_earlier(fresh: Sequence[Weighed]) -> None:
    """Offer each claim those before it that speak of the same: of 'waiting for the fix' and 'the fix is there', said in
    five turns, one is current (R2).
    """
    for at, each in enumerate(fresh):
        alike = [place for place in reversed(range(at)) if _alike(each, fresh[place])]
        for place in alike[: reconciliation.EARLIER]:
            claim = fresh[place].claim
            key = claim.subject, claim.predicate, claim.object
            each.near += (Near(-1 - place, fresh[place].text, claim.happened_at, *key),)
            each.earlier[-1 - place] = fresh[place]


def _near(row: Observation) -> Near:
    return Near(row.pk, row.text or "", row.created_at, row.subject, row.predicate, row.object)


# --- the decisions ---------------------------------------------------------------------------------------------------


def _decide(scope: Scope, asked: Sequence[Weighed], completer: Completer) -> tuple[ModelFailed | None, Bad | None]:
    """Ask what becomes of claims that have something near them; where no answer can be used nothing is decided."""
    failed: ModelFailed | None = None
    bad: Bad | None = None
    for start in range(0, len(asked), reconciliation.MAX_PROPOSALS):
        part = asked[start : start + reconciliation.MAX_PROPOSALS]
        proposals = [_proposal(each) for each in part]
        request = reconciliation.request(proposals=proposals, scope_id=scope.pk)
        reply = ""
        decisions: Sequence[Decision | None] = [None] * len(part)
        try:
            answer = completer.complete(request)
            reply = answer.text
            read = reconciliation.read(reply=answer, proposals=proposals).decisions
            decisions = [_believed(each, decision) for each, decision in zip(part, read, strict=True)]
        except Unusable as unusable:
            failed = unusable
            bad = Bad.of(reply, reason=str(unusable), prompt_version=request.prompt_version)
        except ModelFailed as failure:
            failed = failure
        for each, decision in zip(part, decisions, strict=True):
            each.decision = decision
    return failed, bad


def _believed(weighed: Weighed, decision: Decision) -> Decision:
    """The decision; a NOOP whose target does not say the claim is refused, or the claim would be lost, and its turn be
    evidence for something else.
    """
    target = next((near for near in weighed.near if near.id == decision.target), None)
    if decision.verdict is not Verdict.NOOP or target is None or says_it(weighed, target.text):
        return decision
    refused = replace(decision, verdict=Verdict.ADD, target=None, refusal=Refusal.NOT_THE_SAME)
    return replace(refused, named=f"obs_{target.id}" if target.id > 0 else "a claim before it")


def says_it(weighed: Weighed, text: str) -> bool:
    """Whether a text holds most of what a claim says of its subject, and neither denies, rejects nor supposes what the
    other asserts.
    """
    about = _about(weighed)
    enough = len(shared(about, content(text))) >= _MOST * len(about)
    return bool(about) and enough and not mood.opposed(weighed.text, text)


def speaks_of(weighed: Weighed, row: Observation) -> bool:
    """Whether a stored row has a word of what a claim says of its subject, or is about the same thing of it."""
    return _speaks_of(weighed, row.text or "", (key_part(row.subject), key_part(row.predicate)))


def _alike(weighed: Weighed, other: Weighed) -> bool:
    return _speaks_of(weighed, other.text, other.key[:2])


def _speaks_of(weighed: Weighed, text: str, of: tuple[str, ...]) -> bool:
    return (all(of) and weighed.key[:2] == of) or bool(shared(_about(weighed), content(text)))


def _about(weighed: Weighed) -> frozenset[str]:
    """The words of a claim that say something, without whom it is about; all of them where nothing else is left."""
    claim = weighed.claim
    words = content(weighed.text)
    return words - content(f"{claim.subject} . {claim.speaker} . user assistant") or words


def _proposal(weighed: Weighed) -> Proposal:
    claim = weighed.claim
    return Proposal(
        text=weighed.text,
        said=claim.happened_at,
        near=weighed.near,
        subject=claim.subject,
        predicate=claim.predicate,
        object=claim.object,
    )

"""Facts that survived, as operations: automatic from enough witnesses, for a person, or skipped (DESIGN 4)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from consolidation.operations import Approval, Json, Kind, Proposal, obs
from consolidation.policy import Policy
from consolidation.promote.asking import PROMPT_VERSION
from consolidation.promote.checking import Checked, Fact
from consolidation.promote.cluster import Cluster, root, roots, stated_by
from observations.normalise import key_part, normalised
from observations.records import EpisodeRecord, Outcome, StatedBy

_SHOWN: Final = 12  # episodes of a source that only agrees with itself
CEILING: Final = 0.6  # the confidence of what nobody stated, whatever a policy says (R75, R104)

_NO_TEXTS: Final[Mapping[str, int]] = MappingProxyType({})
_NO_KEYS: Final[Mapping[tuple[str, str, str], int]] = MappingProxyType({})
_UNTAUGHT: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class _Known:
    """What the scope's active observations say already, by observation id."""

    texts: Mapping[str, int]  # normalised texts
    keys: Mapping[tuple[str, str, str], int]  # full keys
    values: Mapping[tuple[str, str], int]  # subject and predicate of a full key
    cardinality: Mapping[str, str]  # what decisions taught: predicate -> "one" or "many"
    former: Mapping[str, int]  # normalised texts of rows that left the reads

    @classmethod
    def of(
        cls,
        texts: Mapping[str, int],
        keys: Mapping[tuple[str, str, str], int],
        cardinality: Mapping[str, str],
        former: Mapping[str, int],
    ) -> _Known:
        return cls(texts, keys, {key[:2]: keys[key] for key in sorted(keys, reverse=True)}, cardinality, former)


def proposals(
    *,
    cluster: Cluster,
    checked: Checked,
    policy: Policy,
    discriminator: str,
    known: Mapping[str, int] = _NO_TEXTS,
    known_keys: Mapping[tuple[str, str, str], int] = _NO_KEYS,
    cardinality: Mapping[str, str] = _UNTAUGHT,
    former: Mapping[str, int] = _NO_TEXTS,
) -> tuple[Proposal, ...]:
    """One PROMOTE for each fact, in the reply's order: automatic, for a person, or skipped with the count (R45, R76).

    `discriminator` names the question and its answer with ids and figures only; the fact's place in the reply is added,
    so that two facts of the same episodes are two operations (E4). `known` and `known_keys` hold what the scope's
    active observations say already: normalised texts, and full keys with each part through normalise.key_part. Another
    value of a predicate that the policy or a decision (`cardinality`) calls single-valued sends a fact to a person,
    and so does a row of the same text that left the reads (`former`): somebody corrected it, or it faded.
    """
    episodes = {episode.id: episode for episode in cluster.episodes}
    said = _Known.of(known, known_keys, cardinality, former)
    return tuple(
        _proposal(fact, [episodes[support.episode] for support in fact.support], policy, said, discriminator, cluster)
        for fact in checked.facts
    )


def _proposal(
    fact: Fact,
    episodes: Sequence[EpisodeRecord],
    policy: Policy,
    known: _Known,
    discriminator: str,
    cluster: Cluster,
) -> Proposal:
    witnesses = _Witnesses.of(episodes, fact)
    approval, skipped = _judged(fact, witnesses, policy, known)
    return Proposal(
        kind=Kind.PROMOTE,
        scope_id=cluster.scope_id,
        sources=tuple(sorted(episode.id for episode in episodes)),
        approval=approval,
        reason=_reason(fact, witnesses, policy, known),
        skipped_reason=skipped,
        product=_product(fact, episodes, witnesses, policy, f"{discriminator}.{fact.index}"),
        signals={"asked_about": len(cluster.episodes), "prompt": PROMPT_VERSION},
        text=fact.text,
        key=fact.key,
    )


@dataclass(frozen=True, slots=True)
class _Witnesses:
    """Who says a fact: distinct roots, never episodes (R95, C8)."""

    episodes: int
    roots: int
    verified: int  # roots with an episode whose outcome is a verified success
    inside: int  # roots with an episode that is not outside text
    own: int  # roots in which a user, an operator or the agent says it: neither outside text nor a tool's output
    plain: int  # roots whose quoted words are about the fact and deny it no more and no less than it does
    vouched: int  # roots of which both hold in one episode: what an automatic promotion counts (F3)

    @classmethod
    def of(cls, episodes: Sequence[EpisodeRecord], fact: Fact) -> _Witnesses:
        own = [episode for episode in episodes if episode.stated_by.rank > StatedBy.TOOL.rank]
        return cls(
            episodes=len(episodes),
            roots=len(roots(episodes)),
            verified=len(roots(episode for episode in episodes if episode.outcome is Outcome.SUCCESS)),
            inside=len(roots(episode for episode in episodes if episode.stated_by is not StatedBy.OUTSIDE)),
            own=len(roots(own)),
            plain=len(roots(episode for episode in episodes if episode.id in fact.plain)),
            vouched=len(roots(episode for episode in own if episode.id in fact.plain)),
        )


def _judged(fact: Fact, witnesses: _Witnesses, policy: Policy, known: _Known) -> tuple[Approval, str]:
    """Who has to agree, and why it is skipped where it is.

    Every root is support (R45, R95), but the three that make a promotion automatic are somebody's own word: a page, a
    mail and what a tool fetched of them are one voice in as many places as somebody cares to write it, and an agent
    that repeats them is one more root at most (F3). With fewer of their own, a person decides.
    """
    if witnesses.roots < policy.min_support:
        return Approval.NEVER, f"{witnesses.roots} supporting, {policy.min_support} needed"
    standing = _standing(fact, known)
    if standing is not None:
        return Approval.NEVER, f"already known as {obs(standing)}"
    enough = witnesses.vouched >= policy.auto_support
    new = normalised(fact.text) not in known.former and _other_value(fact, policy, known) is None
    automatic = enough and fact.keyed and new
    return Approval.AUTO if automatic else Approval.NEEDS_HUMAN, ""


def _other_value(fact: Fact, policy: Policy, known: _Known) -> int | None:
    """The observation with another value for the fact's subject and predicate, where there can be one value only."""
    subject, predicate, value = map(key_part, fact.key)
    held = policy.value_count(predicate) or known.cardinality.get(predicate, "")  # the policy wins
    if not value or held != "one":
        return None
    return known.values.get((subject, predicate))


def _standing(fact: Fact, known: _Known) -> int | None:
    """The observation that says the same: in the same words, or with the same subject, predicate and object."""
    key = full_key(fact.key)
    same_text = known.texts.get(normalised(fact.text))
    return same_text if same_text is not None or key is None else known.keys.get(key)


def full_key(key: tuple[str, str, str]) -> tuple[str, str, str] | None:
    """A key as keys are compared; None when a part is missing."""
    subject, predicate, value = map(key_part, key)
    return (subject, predicate, value) if subject and predicate and value else None


def _reason(fact: Fact, witnesses: _Witnesses, policy: Policy, known: _Known) -> str:
    """Corroboration in figures (R53, R77)."""
    outside = _unowned(witnesses)
    vague = witnesses.roots - witnesses.plain
    quotes = f"; the quoted words of {vague} do not plainly say it" if vague else ""
    key = "" if fact.keyed else "; its key is not in its words"
    other, gone = _other_value(fact, policy, known), known.former.get(normalised(fact.text))
    former = "" if gone is None else f"; {obs(gone)} said it and left the reads"
    beside = "" if other is None else f"; {obs(other)} has a value for this subject and predicate"
    return (
        f"{_count(witnesses.roots, 'independent source')} in {_count(witnesses.episodes, 'episode')}{outside}, "
        f"{_count(witnesses.verified, 'verified success', 'verified successes')}; "
        f"confidence {_confidence(policy):.2f} (promoted, not user-stated){quotes}{key}{former}{beside}"
    )


def _unowned(witnesses: _Witnesses) -> str:
    """What of the support is nobody's own word."""
    others = witnesses.roots - witnesses.own
    if not others:
        return ""
    told = "outside text" if not witnesses.inside else "outside text or a tool's output"
    return f", all of it {told}" if not witnesses.own else f", {others} of them only {told}"


def _count(number: int, word: str, plural: str = "") -> str:
    return f"{number} {word}" if number == 1 else f"{number} {plural or word + 's'}"


def _confidence(policy: Policy) -> float:
    return min(policy.promoted_confidence, CEILING)


def _product(
    fact: Fact, episodes: Sequence[EpisodeRecord], witnesses: _Witnesses, policy: Policy, discriminator: str
) -> dict[str, Json]:
    return {
        "discriminator": discriminator,
        "support": [[support.episode, support.start, support.end] for support in fact.support],
        "episodes": witnesses.episodes,
        "roots": witnesses.roots,
        "verified": witnesses.verified,
        "outside": witnesses.roots - witnesses.inside,
        "confidence": _confidence(policy),
        "stated_by": stated_by(episodes).value,
    }


def unsupported(*, clusters: Iterable[Cluster], policy: Policy) -> tuple[Proposal, ...]:
    """A skip for every source that only agrees with itself: nobody is asked about it, and that is said (R76, C8).

    One per root, with its first episodes, so that it stays the same while the source is ingested again.
    """
    found: dict[str, dict[int, EpisodeRecord]] = {}
    for cluster in clusters:
        for episode in cluster.episodes:
            found.setdefault(root(episode), {})[episode.id] = episode
    return tuple(
        Proposal(
            kind=Kind.PROMOTE,
            scope_id=next(iter(episodes.values())).scope_id,
            sources=tuple(sorted(episodes)[:_SHOWN]),
            approval=Approval.NEVER,
            reason=f"{_count(len(episodes), 'episode')} of 1 independent source",
            skipped_reason=f"1 supporting, {policy.min_support} needed",
            product={"discriminator": "unsupported", "roots": 1},
        )
        for episodes in found.values()
        if len(episodes) > 1
    )


# --- several clusters ------------------------------------------------------------------------------------------------


def once(*, proposals: Iterable[Proposal], approved: Iterable[Proposal] = ()) -> tuple[Proposal, ...]:
    """The proposals of ONE scope with each claim appliable once: clusters overlap, so two may find the same fact.
    What is `approved` and not applied yet comes first, whatever it rests on.

    The same claim is the same normalised text or the same full key. The one with most roots stays, of equal ones the
    first by id; the others are skipped and name it. Same order as they came in; the same outcome in any order.
    """
    given = list(proposals)
    ranked = sorted((one for one in given if one.appliable), key=lambda one: (-_roots(one), one.id))
    kept: dict[object, str] = {name: one.id for one in approved for name in names(text=one.text, key=one.key)}
    again: dict[int, str] = {}
    for proposal in ranked:
        own = names(text=proposal.text, key=proposal.key)
        first = next((kept[name] for name in own if name in kept), "")
        if first and first != proposal.id:
            again[id(proposal)] = first
        kept.update((name, first or proposal.id) for name in own if name not in kept)
    return tuple(_skipped(one, again[id(one)]) if id(one) in again else one for one in given)


def _roots(proposal: Proposal) -> int:
    counted = proposal.product.get("roots", 0)
    return counted if isinstance(counted, int) else 0


def names(*, text: str, key: tuple[str, str, str]) -> list[object]:
    """What makes two facts the same claim: the normalised text, and the full key where there is one."""
    full = full_key(key)
    return [normalised(text), *([full] if full is not None else [])]


def _skipped(proposal: Proposal, first: str) -> Proposal:
    return replace(proposal, approval=Approval.NEVER, skipped_reason=f"said again: see {first}")

"""A summary as a proposal: automatic only when nothing vanished and nothing was added (DESIGN 4, C9)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Final

from consolidation.compact.answering import Written
from consolidation.compact.covering import Coverage, coverage
from consolidation.compact.finding import Sort
from consolidation.compact.grouping import Group, over_limit
from consolidation.compact.turning import Turn
from consolidation.operations import Approval, Json, Kind, Proposal
from consolidation.policy import Policy, approval_of

# A summary is trust low and may hold what no episode says (R17): below the 0.5 of a plain claim and the 0.6 of a
# promoted one, whatever the check found, because the check sees words and not meaning.
CONFIDENCE: Final = 0.4

_PLACES_SHOWN: Final = 200  # of each list in the signals; the counts say how many there are
_REASON: Final = 480  # characters


def checked(*, group: Group, written: Written) -> Coverage:
    """What the summary lost of the group's episodes and what it added. Speakers and days need not be kept."""
    return coverage(
        sources=[episode.text for episode in group.episodes],
        summary=written.text,
        speakers=[episode.speaker for episode in group.episodes],
        known=[text for episode in group.episodes for text in _days(episode.happened_at)],
    )


def _days(moment: datetime) -> Iterator[str]:
    """The ways to write a moment that invent nothing."""
    yield f"{moment:%Y-%m-%d %H:%M}"
    yield f"{moment.day} {moment:%B %Y}, {moment:%A}, {moment:%H:%M}, {moment:%I:%M %p}"


def proposal(*, group: Group, written: Written, policy: Policy, discriminator: str) -> Proposal:
    """One COMPACT for a group and its answer; skipped, with the reason, where nothing can be applied.

    `discriminator` enters the operation's id: ids and figures only. Reason and signals hold counts, ids and places,
    never words; the text is the summary.
    """
    if over_limit(group=group, policy=policy):
        limit = f"{policy.max_compression:g} to 1"
        return _skipped(group, discriminator, f"over the limit of {limit}: {len(group.episodes)} episodes", written)
    if not written.usable:
        return _skipped(group, discriminator, written.fault, written)
    found = checked(group=group, written=written)
    safe = found.whole and found.faithful and not written.refused
    return Proposal(
        kind=Kind.COMPACT,
        scope_id=group.scope_id,
        sources=_sources(group),
        approval=approval_of(Kind.COMPACT) if safe else Approval.NEEDS_HUMAN,
        reason=_reason(group, written, found)[:_REASON],
        product=_product(discriminator),
        signals=_signals(group, written, found),
        text=written.text,
    )


def _sources(group: Group) -> tuple[int, ...]:
    return tuple(sorted({episode.id for episode in group.episodes}))


def _product(discriminator: str) -> dict[str, Json]:
    return {"discriminator": discriminator, "confidence": CONFIDENCE}


def _skipped(group: Group, discriminator: str, reason: str, written: Written) -> Proposal:
    """Seen and counted, never applied; the episodes stay as they are."""
    return Proposal(
        kind=Kind.COMPACT,
        scope_id=group.scope_id,
        sources=_sources(group),
        approval=Approval.NEVER,
        reason=f"{len(group.episodes)} episodes, no summary",
        skipped_reason=reason[:_REASON],
        product=_product(discriminator),
        signals={"episodes": len(group.episodes), "parts_refused": len(written.refused)},
    )


# --- what a reviewer is told -----------------------------------------------------------------------------------------


def _reason(group: Group, written: Written, found: Coverage) -> str:
    size = f"{_count(len(group.episodes), 'episode')} into a summary of {_count(len(written.sentences), 'sentence')}"
    told = [*_lost(found), *_added(found, written)]
    if not told:
        return f"{size}; all {found.specifics} numbers, dates, identifiers and names kept, every episode mentioned"
    return f"{size}; {'; '.join(told)}"


def _lost(found: Coverage) -> Iterator[str]:
    gone = [lost.sort for lost in found.lost if not lost.cut]
    cut = [lost.sort for lost in found.lost if lost.cut]
    if gone:
        yield f"lost: {_by_sort(gone)}"
    if cut:
        yield f"cut out of sentences that are nearly copies: {_by_sort(cut)}"
    if found.unmentioned:
        yield f"{_count(len(found.unmentioned), 'episode')} not mentioned"
    if found.unnamed:
        yield f"{_count(len(found.unnamed), 'episode')} told by somebody the summary never names"
    if found.unread:
        yield f"{_count(len(found.unread), 'episode')} that cannot be checked (language or length)"


def _added(found: Coverage, written: Written) -> Iterator[str]:
    if found.invented:
        yield f"in no episode: {_by_sort(invented.sort for invented in found.invented)}"
    for turn, count in _turns(found).items():
        yield f"{_count(count, 'place')} with {_TOLD[turn]}"
    if found.unfounded:
        yield f"{_count(len(found.unfounded), 'sentence')} with nothing of any episode"
    if written.refused:
        yield f"{_count(len(written.refused), 'part')} of the answer refused"


_TOLD: Final = {
    Turn.ORDER: "names in another order than in an episode",
    Turn.DROPPED: "an episode's denial dropped",
    Turn.ADDED: "a denial that an episode does not have",
}


def _turns(found: Coverage) -> dict[Turn, int]:
    counts = Counter(turned.turn for turned in found.turned)
    return {turn: counts[turn] for turn in Turn if counts[turn]}


def _by_sort(sorts: Iterable[Sort]) -> str:
    counts = Counter(sorts)
    return ", ".join(_count(counts[sort], sort.value) for sort in Sort if counts[sort])


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def _signals(group: Group, written: Written, found: Coverage) -> dict[str, Json]:
    """Ids, figures and places; a page reads the words at these places from the episodes and the summary."""
    ids = [episode.id for episode in group.episodes]
    lost, invented = _lost_at(ids, found)[:_PLACES_SHOWN], _invented_at(found)[:_PLACES_SHOWN]
    sentences: list[Json] = [list(sentence.episodes) for sentence in written.sentences[:_PLACES_SHOWN]]
    return {
        "episodes": len(ids),
        "characters": [sum(len(episode.text) for episode in group.episodes), len(written.text)],
        "specifics": found.specifics,
        "lost": _counts(each.sort for each in found.lost),
        "lost_at": lost,  # and, for a person to compare, what was turned round
        "invented": _counts(each.sort for each in found.invented),
        "invented_at": invented,
        **({"turned": {turn.value: count for turn, count in _turns(found).items()}} if found.turned else {}),
        "not_mentioned": _ids(ids, found.unmentioned),
        "not_named": _ids(ids, found.unnamed),
        "not_checked": _ids(ids, found.unread),
        "unfounded_sentences": list(found.unfounded[:_PLACES_SHOWN]),
        "claimed": sentences,  # per sentence, the episodes that the model says it comes from
        "parts_refused": len(written.refused),
    }


def noted(*, group: Group, text: str) -> dict[str, Json]:
    """What the check finds of a summary in a person's words: the signals of its operation. Pure."""
    written = Written(text=text, sentences=(), refused=())
    return _signals(group, written, checked(group=group, written=written))


def _lost_at(ids: Sequence[int], found: Coverage) -> list[Json]:
    """Places in the episodes; those that were turned round come first, because a reviewer finds them worst."""
    turned: list[Json] = [
        {
            "episode": ids[each.source],
            "start": each.start,
            "end": each.end,
            "sort": _SORTS[each.turn].value,
            "how": "turned",
        }
        for each in found.turned
    ]
    lost: list[Json] = [
        {
            "episode": ids[each.source],
            "start": each.start,
            "end": each.end,
            "sort": each.sort.value,
            "how": "cut" if each.cut else "gone",
        }
        for each in found.lost
    ]
    return [*turned, *lost]


def _invented_at(found: Coverage) -> list[Json]:
    places = sorted({(each.at, each.to, _SORTS[each.turn].value) for each in found.turned})
    added = [(each.start, each.end, each.sort.value) for each in found.invented]
    return [{"start": start, "end": end, "sort": sort} for start, end, sort in (*places, *added)]


_SORTS: Final = {Turn.ORDER: Sort.NAME, Turn.DROPPED: Sort.NEGATION, Turn.ADDED: Sort.NEGATION}


def _counts(sorts: Iterable[Sort]) -> dict[str, Json]:
    counts = Counter(sorts)
    return {sort.value: counts[sort] for sort in Sort if counts[sort]}


def _ids(ids: Sequence[int], places: Sequence[int]) -> list[Json]:
    return [ids[place] for place in places]

"""Which episodes make one summary: those of one session, old enough, in even parts within the limit (R81, R89)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from consolidation.policy import Policy
from observations.records import EpisodeRecord, MemoryKind, Status

_LEAST = 2  # a summary of one episode shortens nothing that a reader meets twice


@dataclass(frozen=True, slots=True)
class Group:
    """Episodes of one scope that one summary may stand for."""

    scope_id: int
    session: str  # empty: turns without a session, close in time
    episodes: tuple[EpisodeRecord, ...]  # by happened_at, seq and id; an episode's label is its place here, from 0


def over_limit(*, group: Group, policy: Policy) -> bool:
    """Whether these are more episodes than one summary may stand for; ask no model about them (R107)."""
    return len(group.episodes) > policy.max_compression


def groups(*, episodes: Iterable[EpisodeRecord], policy: Policy, now: datetime) -> tuple[Group, ...]:
    """The groups of ONE scope's active episodes, the same in any order of the input.

    A session is left alone until its last turn is older than the policy's compact_after_days and keep_days. Whether the
    policy compacts at all is the caller's question. Raises ValueError when the episodes are of several scopes.
    """
    known = sorted(episodes, key=lambda episode: (episode.happened_at, episode.seq, episode.id))
    if len({episode.scope_id for episode in known}) > 1:
        raise ValueError("A pass plans one scope; its episodes are of several.")
    if MemoryKind.EPISODE in policy.untouchable:
        return ()
    oldest_kept = now - timedelta(days=max(policy.compact_after_days, policy.keep_days))
    active = [episode for episode in known if episode.status is Status.ACTIVE]
    ripe = (turns for turns in _together(active, policy) if turns[-1].happened_at < oldest_kept)
    parts = [part for turns in ripe for part in _parts(turns, int(policy.max_compression))]
    parts.sort(key=lambda part: (part[0].happened_at, part[0].seq, part[0].id))
    return tuple(Group(part[0].scope_id, part[0].session, tuple(part)) for part in parts)


def _together(ordered: Sequence[EpisodeRecord], policy: Policy) -> Iterator[list[EpisodeRecord]]:
    """Sessions, and the windows of turns without one, each in order."""
    sessions: defaultdict[str, list[EpisodeRecord]] = defaultdict(list)
    for episode in ordered:
        sessions[episode.session].append(episode)
    yield from _windows(sessions.pop("", []), timedelta(hours=policy.session_hours))
    yield from sessions.values()


def _windows(ordered: Sequence[EpisodeRecord], length: timedelta) -> Iterator[list[EpisodeRecord]]:
    """Turns that happened within one window of time, whoever spoke; a window opens with the first turn outside one."""
    window: list[EpisodeRecord] = []
    for episode in ordered:
        if window and episode.happened_at - window[0].happened_at > length:
            yield window
            window = []
        window.append(episode)
    if window:
        yield window


def _parts(turns: Sequence[EpisodeRecord], cap: int) -> Iterator[Sequence[EpisodeRecord]]:
    """Parts of at most `cap` turns that differ by one at most; a part of a single turn stays as it is."""
    count = -(-len(turns) // cap)
    size, larger = divmod(len(turns), count)
    at = 0
    for part in range(count):
        end = at + size + (part < larger)
        if end - at >= _LEAST:
            yield turns[at:end]
        at = end

"""Episodes that are asked about together, and what makes two of them two witnesses."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from observations.normalise import witness
from observations.records import EpisodeRecord, StatedBy


@dataclass(frozen=True, slots=True)
class Cluster:
    """Episodes of one scope, oldest first. A model names them by their place here: 0, 1, 2, ...

    Raises ValueError for no episode, for one episode twice and for episodes of several scopes (C6).
    """

    episodes: tuple[EpisodeRecord, ...]

    def __post_init__(self) -> None:
        """Refuse what no question may hold."""
        if not self.episodes or len(set(self.ids)) < len(self.episodes):
            raise ValueError("A cluster needs episodes, each once.")
        if len({episode.scope_id for episode in self.episodes}) > 1:
            raise ValueError("A cluster holds the episodes of one scope; these are of several.")

    @property
    def scope_id(self) -> int:
        """The scope all its episodes are of."""
        return self.episodes[0].scope_id

    @property
    def ids(self) -> tuple[int, ...]:
        """The episodes' ids, by label."""
        return tuple(episode.id for episode in self.episodes)

    @property
    def roots(self) -> frozenset[str]:
        """The witnesses it holds at most."""
        return roots(self.episodes)


def together(episodes: Iterable[EpisodeRecord]) -> Cluster:
    """A cluster in the order things happened, whatever order the episodes came in."""
    return Cluster(tuple(sorted(episodes, key=lambda episode: (episode.happened_at, episode.seq, episode.id))))


def root(episode: EpisodeRecord) -> str:
    """The independent witness behind an episode (C8, R95). Without any source, equal content is one witness."""
    return witness(episode.root_source or episode.source_uri) or f"content:{episode.content_hash or episode.text}"


def roots(episodes: Iterable[EpisodeRecord]) -> frozenset[str]:
    """The distinct witnesses: copies, parts and summaries of one source are one."""
    return frozenset(map(root, episodes))


def stated_by(episodes: Iterable[EpisodeRecord]) -> StatedBy:
    """Whose word a promoted row is: the agent's own conclusion at most, and the lowest of its episodes (DESIGN 3)."""
    return min([StatedBy.AGENT, *(episode.stated_by for episode in episodes)], key=lambda origin: origin.rank)

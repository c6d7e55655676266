"""What fits into a prompt: whole entries, the most important first; what is left out is named (DESIGN 6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from observations.fencing import fenced
from observations.prompting.sections import Line, Section

LONGEST: Final = 12_000  # characters of a prompt's text, where nothing else is asked for
BYTES_PER_TOKEN: Final = 3

# Room is given to core memory first, then to turns, observations, episodes and residue. So residue is left out first,
# then episodes, then observations, then turns, and core memory never. Of a section what ranks last goes first; of turns
# and residue the oldest.
_NEWEST_FIRST: Final = frozenset({Section.VERBATIM, Section.RESIDUE})
_THEIRS: Final = 4  # a quarter of the room is the observations', however long the turns are


def tokens(text: str) -> int:
    """About how many tokens a text is, rather more than less: three bytes of UTF-8 each. Tokenizers take four or so of
    English, and one character of Chinese, which has three.
    """
    return -(-len(text.encode("utf-8", "surrogatepass")) // BYTES_PER_TOKEN)


@dataclass(frozen=True, slots=True)
class Room:
    """How long a text may be, in characters and in bytes."""

    characters: int
    size: int

    @classmethod
    def of(cls, *, longest: int, max_tokens: int | None) -> Room:
        """Both limits; no `max_tokens` is none."""
        return cls(longest, 4 * longest if max_tokens is None else BYTES_PER_TOKEN * max_tokens)

    def less(self, text: str) -> Room:
        """What is left after a line and its end."""
        return Room(self.characters - len(text) - 1, self.size - len(text.encode("utf-8", "surrogatepass")) - 1)

    def part(self, of: int) -> Room:
        """A share of it."""
        return Room(self.characters // of, self.size // of)

    def minus(self, other: Room) -> Room:
        """What is left when somebody else has that much."""
        return Room(self.characters - other.characters, self.size - other.size)

    def plus(self, other: Room, *, at_least: Room) -> Room:
        """Both together, but never less than some."""
        return Room(
            max(self.characters + other.characters, at_least.characters), max(self.size + other.size, at_least.size)
        )

    @property
    def over(self) -> bool:
        """Whether it is more than used up."""
        return self.characters < 0 or self.size < 0


@dataclass(frozen=True, slots=True)
class Fitted:
    """What is shown of each section, in its order, and what is left out for want of room."""

    shown: Mapping[Section, Sequence[Line]]
    left_out: Mapping[Section, Sequence[Line]]

    @property
    def lines(self) -> list[str]:
        """Headings and entries in their order; none for a section that shows nothing."""
        return [line for name in Section for line in _headed(name, self.shown.get(name, ()))]


def fit(*, lines: Mapping[Section, Sequence[Line]], room: Room) -> Fitted:
    """The lines that fit. Core memory is whole, and a quarter of the room is the observations' beside it, even where
    both together are longer than the room. No query.
    """
    core, told = lines.get(Section.CORE, ()), lines.get(Section.OBSERVATIONS, ())
    left = room.less(fenced(["-"]))
    for text in _headed(Section.CORE, core):
        left = left.less(text)
    quarter = room.part(_THEIRS)
    held = quarter.minus(_taken(Section.OBSERVATIONS, told, quarter)[1])
    turns, left = _taken(Section.VERBATIM, lines.get(Section.VERBATIM, ()), left.minus(held))
    claims, left = _taken(Section.OBSERVATIONS, told, left.plus(held, at_least=held))
    shown: dict[Section, Sequence[Line]] = {Section.CORE: core, Section.VERBATIM: turns, Section.OBSERVATIONS: claims}
    for name in (Section.EPISODES, Section.RESIDUE):
        shown[name], left = _taken(name, lines.get(name, ()), left)
    return Fitted(shown, {name: [line for line in each if line not in shown[name]] for name, each in lines.items()})


def _taken(name: Section, lines: Sequence[Line], room: Room) -> tuple[list[Line], Room]:
    """Of one section the first lines that fit, or the newest; never a part of a line, and none after one that does not
    fit. What room is left.
    """
    taken: list[Line] = []
    left = room.less(f"{name}:")
    for line in reversed(lines) if name in _NEWEST_FIRST else lines:
        after = left.less(line.text)
        if after.over:
            break
        taken.append(line)
        left = after
    if not taken:
        return [], room
    return taken[::-1] if name in _NEWEST_FIRST else taken, left


def _headed(name: Section, lines: Sequence[Line]) -> list[str]:
    """A heading and its lines; nothing for a section that is empty or failed."""
    return [f"{name}:", *(line.text for line in lines)] if lines else []

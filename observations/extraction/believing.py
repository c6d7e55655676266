"""Whether a claim is what its turn says: the checks beyond the quote. Each can only doubt (C3).

A doubted claim is refused, or held back until a person looks, where its turn says a part of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC
from functools import cache, cached_property, lru_cache
from typing import Final

from observations.extraction import dating, mood, speaking
from observations.extraction.asking import own_words, readable
from observations.extraction.claims import HOLDABLE, Refusal
from observations.extraction.wording import GRAMMAR, content, shared, stem, stems, tokens, words
from observations.records import EpisodeRecord, StatedBy

_BEFORE: Final = 2  # turns before the quoted one that its words may point back to
_AFTER: Final = 1  # and after it, where the annotator's or model's label may be one off
# Chosen on 1,283 observations of real dialogue: 96% of them pass all checks, and 5% of them do when each is set beside
# a turn of another conversation under its speaker's name. Stricter figures lose paraphrases, laxer ones let more in.
_IN_TURN: Final = 0.2  # of a claim's words that the turn has, and
_NEAR: Final = 0.25  # that it has with the turns around it; or
_NEARLY_ALL: Final = 0.4  # that these have where the turn itself only answers
_RUN: Final = 5  # words in a row that only our question has
_BORROWED: Final = 0.6  # of a claim's words that only our question has
_HINT: Final = 0.15  # of a claim's words that the turns around must have where it is only held back
# Words of our question that anybody uses of anything: having one is no sign that a claim was made of it.
_EVERYDAY: Final = stems(
    "support supportive encourage encouragement assure reassure thank thankful gratitude grateful congratulate proud",
    "comfort cheer wish offer help value appreciate appreciation admire praise compliment care concern name show year",
    "month day date next last later now still plan like want work own thing person yesterday happen know knowledge",
    "think tell say talk mean give keep turn run stand stay matter small short part kind change leave follow decide",
    "remember understand read write worth whole single answer question conversation complete case word old",
)
_FOREIGN: Final = frozenset({Refusal.DATE, Refusal.NUMBER, Refusal.NAME, Refusal.SUBJECT})
_FIGURES: Final = re.compile(r"[0-9]+(?:[.,:/][0-9]+)*")
_WORD: Final = re.compile(r"[^\W_]+(?:['\u2019-][^\W_]+)*")
_COUNTED: Final = {"twice": "2", "both": "2", "couple": "2", "pair": "2", "once": "1", "dozen": "12", "single": "1"}
_ORDINAL_WORDS: Final = words("1st 2nd")  # as `normalise` holds 'first'
_A_ONE: Final = re.compile(r"(?<![0-9.,])1(?![0-9])")
_NAME_WITH_FIGURES: Final = re.compile(r"(?:\b[A-Z][\w'\u2019]*|'\d\d)\s+[0-9]+\b")
_VERBAL: Final = ("s", "ed", "ing")  # endings of a first word that begins a claim without its subject
_ANYBODY: Final = frozenset[str]().union(*speaking.SELVES.values()) | words(
    "everyone everybody people somebody someone"
)


@dataclass(frozen=True)
class Said:
    """Quoted words where they stand: code points of the turn's text."""

    turn: EpisodeRecord
    start: int
    end: int

    @property
    def words(self) -> str:
        """The words themselves."""
        return self.turn.text[self.start : self.end]

    @cached_property
    def told(self) -> mood.Told:
        """What they tell where they stand."""
        return mood.told(readable(self.turn), self.start, self.end)


class Batch:
    """The turns of one request, with what each of them holds as far as anybody asked.

    `turns` may be quoted; `everything` has those before them as well, which only tell whom words mean.
    """

    def __init__(self, turns: Sequence[EpisodeRecord], before: Sequence[EpisodeRecord] = ()) -> None:
        self.turns = tuple(turns)
        self.everything = (*before, *turns)
        self._held: dict[int, frozenset[str]] = {}

    @cached_property
    def names(self) -> frozenset[str]:
        """What a name may be written as: every word of every turn, and who speaks."""
        return frozenset(
            form
            for turn in self.everything
            for text in (readable(turn), turn.speaker)
            for part in _split(text)
            for form in (part, stem(part))
        )

    @cached_property
    def speakers(self) -> frozenset[str]:
        """The stems of the speakers' names."""
        return frozenset(part for turn in self.everything for part in content(turn.speaker))

    def near(self, turn: EpisodeRecord) -> Sequence[EpisodeRecord]:
        """The turn with those around it."""
        at = self.everything.index(turn)
        return self.everything[max(0, at - _BEFORE) : at + _AFTER + 1]

    def content(self, *turns: EpisodeRecord) -> frozenset[str]:
        """The stems of some turns and of their speakers."""
        for turn in turns:
            if turn.id not in self._held:
                self._held[turn.id] = content(f"{readable(turn)} . {turn.speaker}")
        return frozenset[str]().union(*(self._held[turn.id] for turn in turns))


@dataclass(frozen=True, slots=True)
class Doubt:
    """Why a claim is not believed, and whether a person may look at it; what may not be held back is not stored."""

    refusal: Refusal
    held: bool


def doubt(*, text: str, said: Said, batch: Batch) -> Doubt | None:
    """The doubt about a claim, or None where it is believed."""
    about = content(text) - batch.speakers - _ANYBODY
    doubts = tuple(_doubts(text, about, said, batch))
    return Doubt(doubts[0], held=_may_be_held(text, about, said, batch, doubts)) if doubts else None


def _doubts(text: str, about: frozenset[str], said: Said, batch: Batch) -> Iterator[Refusal]:
    """Everything that speaks against a claim."""
    yield from _elsewhere(text, about, said, batch)
    if speaking.put_in_users_mouth(text=text, turn=said.turn, turns=batch.everything):
        yield Refusal.NOT_THE_USER
    if speaking.is_about_another(text=text, told=said.told.stated, turn=said.turn, near=batch.near(said.turn)):
        yield Refusal.SUBJECT
    if mood.only_asked(text=text, about=about, told=said.told):
        yield Refusal.QUESTION
    if mood.denial_lost(text=text, about=about, told=said.told, turn=readable(said.turn)):
        yield Refusal.DENIED
    if mood.unsure(text=text, about=about, told=said.told):
        yield Refusal.UNSURE


def _may_be_held(text: str, about: frozenset[str], said: Said, batch: Batch, doubts: Sequence[Refusal]) -> bool:
    """Whether a doubted claim is one of its turn all the same, so that a person may say what it is worth.

    Never: what has a word of our own question that nobody said (C3), what is put into the user's mouth, and what an
    assistant or a tool says of itself made into somebody else's. What the turn hardly speaks of may have nothing else
    that is from elsewhere.
    """
    if not set(doubts) <= set(HOLDABLE) or _rare(_borrowed(about, batch)):
        return False
    if Refusal.SUBJECT in doubts and said.turn.stated_by is not StatedBy.USER:
        return False
    if Refusal.NOT_SAID not in doubts:
        return True
    return _FOREIGN.isdisjoint(doubts) and _hinted_at(text, about, said, batch)


def _rare(borrowed: frozenset[str]) -> bool:
    """Whether words that only our question has are a sign that a claim was made of it; figures never are."""
    return any(not word[:1].isdigit() and word not in _EVERYDAY for word in borrowed)


def _hinted_at(text: str, about: frozenset[str], said: Said, batch: Batch) -> bool:
    """Whether a turn has to do with a claim that says more than it: by a word of the quoted ones, by the words around,
    or because the claim judges what its speaker does for who is spoken to.
    """
    about = about - speaking.TELLING or about
    near = shared(about, batch.content(*batch.near(said.turn)))
    if not near:
        return False
    share = len(near) / len(about)
    quoted = bool(shared(about, content(said.words))) and share >= _HINT
    around = len(near) > 1 and share >= _HINT
    compared = content(text)
    speaker = content(said.turn.speaker)
    return quoted or around or bool(compared & speaker and compared & (batch.speakers - speaker))


def says(*, text: str, said: Said) -> bool:
    """Whether quoted words may stand for a claim, by their own turn alone: it speaks of that, and does not only ask it
    or deny it.

    Of 1,283 observations of real dialogue 95% pass beside the turn they cite, and 4% beside a turn of somebody else's.
    """
    batch = Batch([said.turn])
    about = content(text) - batch.speakers - _ANYBODY
    return (
        _spoken_of(about, said.turn, batch)
        and not mood.only_asked(text=text, about=about, told=said.told)
        and not mood.denial_lost(text=text, about=about, told=said.told, turn=readable(said.turn))
    )


# --- is it there at all ----------------------------------------------------------------------------------------------


def _elsewhere(text: str, about: frozenset[str], said: Said, batch: Batch) -> Iterator[Refusal]:
    """What of the claim comes from somewhere else than its turn."""
    if _ours(text, about, batch):
        yield Refusal.OUR_WORDS
    if not _spoken_of(about, said.turn, batch):
        yield Refusal.NOT_SAID
    day = said.turn.happened_at.astimezone(UTC).date()
    if dating.undated(claim=text, turn=readable(said.turn), on=day):
        yield Refusal.DATE
    if not _numbers_in(dating.masked(text, on=day), said.turn, batch):
        yield Refusal.NUMBER
    if not all(_held(name, batch.names) for name in _named(dating.masked(text, on=day))):
        yield Refusal.NAME


def _spoken_of(about: frozenset[str], turn: EpisodeRecord, batch: Batch) -> bool:
    """Whether enough of a claim's words stand in its turn and the turns around: paraphrases pass, other matters do
    not.
    """
    about = about - speaking.TELLING or about
    if not about:
        return True
    in_turn = len(shared(about, batch.content(turn))) / len(about)
    near = len(shared(about, batch.content(*batch.near(turn)))) / len(about)
    return (in_turn >= _IN_TURN and near >= _NEAR) or near >= _NEARLY_ALL


@cache
def _question() -> tuple[str, frozenset[str]]:
    return _spaced(tokens(own_words())), content(own_words())


def _spaced(compared: Sequence[str]) -> str:
    return f" {' '.join(compared)} "


def _ours(text: str, about: frozenset[str], batch: Batch) -> bool:
    """Whether a claim is made of our question: five of its words in a row, or most of the words that say something."""
    question, _ = _question()
    compared = tokens(text)
    runs = (_spaced(compared[at : at + _RUN]) for at in range(len(compared) - _RUN + 1))
    if any(run in question and not any(run in _spaced(tokens(turn.text)) for turn in batch.everything) for run in runs):
        return True
    borrowed = _borrowed(about, batch)
    return len(borrowed) > 1 and len(borrowed) >= _BORROWED * len(about)


def _borrowed(about: frozenset[str], batch: Batch) -> frozenset[str]:
    """The words of a claim that our question has and no turn."""
    return about & _question()[1] - batch.content(*batch.everything)


def _numbers_in(text: str, turn: EpisodeRecord, batch: Batch) -> bool:
    """Whether the figures of a claim stand in its turn; those of a name ("Route 66") in a turn of the batch."""
    held = _figures(readable(turn)) | _figures(turn.speaker)
    wanted = _figures(text, claimed=True)
    if held.issuperset(wanted):
        return True
    around = held.union(*(_figures(readable(other)) for other in batch.everything))
    return around.issuperset(wanted) and held.issuperset(_figures(_NAME_WITH_FIGURES.sub(" ", text), claimed=True))


@lru_cache(maxsize=1 << 12)
def _figures(text: str, *, claimed: bool = False) -> frozenset[str]:
    """The figures of a text, number words among them. 'First' and 'a pair' need no figure; 'both' may be told as 2."""
    found: list[str] = []
    for word in tokens(text):
        if word in _COUNTED or word in _ORDINAL_WORDS:
            found += [] if claimed else [_COUNTED.get(word, word[0])]
        else:
            found += [figure.replace(",", "") for figure in _FIGURES.findall(word)]
    spelt = claimed and not _A_ONE.search(text)
    return frozenset(found) - {"1"} if spelt else frozenset(found)


def _named(text: str) -> Iterator[str]:
    """Words, folded, that are names by their capital inside a sentence, or as the first word and no verb."""
    found = list(_WORD.finditer(text))
    for word in found[1:]:
        if not text[: word.start()].rstrip(" \"'(").endswith((".", "!", "?", ":")):
            yield from _capital(word.group())
    if found and not found[0].group().casefold().endswith(_VERBAL):
        yield from _capital(found[0].group())


def _capital(word: str) -> list[str]:
    parts = list(_split(word))
    return parts if word != word.lower() and parts[0] != "i" else []


def _split(text: str) -> Iterator[str]:
    """The words of a text, folded, without 's; compounds come apart."""
    for word in _WORD.findall(text):
        for part in re.split("[-'\u2019]", word.removesuffix("'s").removesuffix("\u2019s")):
            yield part.casefold()


def _held(name: str, known: frozenset[str]) -> bool:
    return name in GRAMMAR or name in _ANYBODY or name in known or stem(name) in known

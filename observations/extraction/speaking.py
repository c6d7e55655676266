"""Whom words are about and whose they are: a claim may give neither to somebody else.

'My sister likes tea' says nothing about who says it, 'you like tea' is about the other one, and what an assistant says
was not said by its user.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from observations.extraction.wording import GRAMMAR, clauses, content, sentences, shared, stem, stems, tokens, words
from observations.records import EpisodeRecord, StatedBy

SELVES: Final = {
    StatedBy.USER: words("user human person speaker"),
    StatedBy.OPERATOR: words("operator system"),
    StatedBy.AGENT: words("assistant agent ai model bot"),
    StatedBy.TOOL: words("tool function"),
    StatedBy.OUTSIDE: words("author writer source"),
}  # what a speaker without a name is called
_FIRST: Final = words("i we i'm i've i'd i'll we're we've im ive ich wir je nous yo io eu ik jag")
_SECOND: Final = words("you u ya y'all you're you've your yours")
_ME: Final = words("me my mine myself us our ours we i mich mir mein meine moi mon ma")
_TOGETHER: Final = words("we us our ours let's together both each-other")
_THIRD: Final = words("he she him her his hers they them their theirs it its this that these those who")
_HE_OR_SHE: Final = words("he she")
_RELATIVES: Final = stems(
    "sister brother sibling mother mom mum father dad parent son daughter wife husband partner girlfriend",
    "boyfriend ex fiance fiancee cousin aunt uncle niece nephew grandmother grandma grandfather grandpa granny",
    "friend buddy boss child colleague coworker co-worker manager neighbor neighbour roommate flatmate landlord",
    "teacher coach mentor student kid classmate doctor therapist dentist baby toddler boy girl dog cat puppy pup",
    "kitten pet horse parrot family team schwester mutter bruder vater sohn tochter frau mann freund freundin",
    "hund katze sœur frère mère père hermana hermano",
)
_OWNERS: Final = words("my our his her their your the a an another mein meine unser unsere ma mon mes mi mis")
_VERBS: Final = words(
    "is was has had does likes loves hates lives works plays wants needs eats drinks owns studies moved went",
    "bought got said says told thinks knows enjoys prefers speaks runs drives teaches collects visited lost won",
    "started quit",
)
_HANDS_OVER: Final = words(
    "that because when while who which if think thinks know knows says said hope hear heard saw see",
)
_SAYS: Final = stems(
    "say tell mention state claim confirm ask write report explain admit announce declare insist reveal express",
    "agree request want think believe feel prefer promise complain",
)
# What tells of speaking, and nothing of what was said.
TELLING: Final = _SAYS | stems(
    "find value emphasize emphasise acknowledge suggest advocate remind assure note describe discuss share",
    "indicate speak recently currently expresses importance important",
)


@dataclass(frozen=True, slots=True)
class Lead:
    """Whom a claim is about, folded, and whether it goes on to something of theirs."""

    who: frozenset[str]
    owns: bool = False


def lead(text: str, *, known: frozenset[str]) -> Lead:
    """Whom a claim is about by its first words ('Ana', 'Ana and Bo', 'the user', 'Ana's sister'), or by the first name
    in it that is known; nobody where there is none.
    """
    found = _LEAD.match(text)
    who = [word for word in _NAME.findall(found["who"]) if _bare(word) in known] if found else []
    if not found or not who:
        who = [word for word in _NAME.findall(text) if word != word.lower() and _bare(word) in known - GRAMMAR][:1]
        return Lead(frozenset(map(_bare, who)), owns=bool(who and _OWNS.search(who[0])))
    return Lead(frozenset(map(_bare, who)) - GRAMMAR, owns=bool(_OWNS.search(found["who"])))


_LEAD: Final = re.compile(
    r"\s*(?:both\s+|the\s+)?(?P<who>[^\W\d_][\w'\u2019-]*(?:,?\s+(?:and\s+)?(?-i:[A-Z])[\w'\u2019-]*)*)", re.IGNORECASE
)
_NAME: Final = re.compile(r"[^\W\d_][\w'\u2019-]*")
_OWNS: Final = re.compile(r"(?:['\u2019]s|s['\u2019])$")


def _bare(word: str) -> str:
    return re.sub(r"['\u2019]s?$", "", word.casefold())


def is_about_another(*, text: str, told: str, turn: EpisodeRecord, near: Sequence[EpisodeRecord]) -> bool:
    """Whether a claim is about somebody of whom the turn does not speak.

    `told`: the sentences that are quoted. `near`: the turn and those around it, whose names pronouns may stand for.
    """
    speaker = _names(turn) | SELVES[turn.stated_by]
    others = frozenset[str]().union(*_spoken_to(turn, near))
    capitals = frozenset(_bare(name) for each in near for name in _NAME.findall(each.text) if name != name.lower())
    subject = lead(text, known=speaker | others | capitals)
    if not subject.who:
        return False
    if subject.who & speaker:
        return not subject.owns and _all_of_others(text=text, told=told, speaker=speaker, others=others)
    said = frozenset(map(_bare, tokens(turn.text)))
    if not subject.who & others:
        return not subject.who & said and said.isdisjoint(_THIRD | _TOGETHER)
    if not subject.who & said and said.isdisjoint(_SECOND | _TOGETHER | _THIRD):
        return True
    return _all_of_speaker(text=text, told=told, speaker=speaker, others=others)


def _names(turn: EpisodeRecord) -> frozenset[str]:
    return frozenset(map(_bare, _NAME.findall(turn.speaker)))


def _spoken_to(turn: EpisodeRecord, near: Sequence[EpisodeRecord]) -> Iterator[frozenset[str]]:
    """What those are called who may be meant by 'you'."""
    if turn.stated_by is not StatedBy.USER:
        yield SELVES[StatedBy.USER]
    for each in near:
        if (each.speaker, each.stated_by) != (turn.speaker, turn.stated_by):
            yield _names(each)
            if each.stated_by is not turn.stated_by:
                yield SELVES[each.stated_by]


def _all_of_others(*, text: str, told: str, speaker: frozenset[str], others: frozenset[str]) -> bool:
    """Whether all that a claim about the speaker shares with the words is said of somebody whom it does not name."""
    wanted = content(text)
    if wanted & _RELATIVES or frozenset(map(_bare, tokens(text))) & others:
        return False
    about = wanted - frozenset(map(stem, speaker | others))
    governed = [
        bool(who) and who not in wanted and _ME.isdisjoint(tokens(said))
        for who, said in _governed(told, skip=speaker | others)
        if shared(about, content(said))
    ]
    return bool(governed) and all(governed)


def _all_of_speaker(*, text: str, told: str, speaker: frozenset[str], others: frozenset[str]) -> bool:
    """Whether all that a claim about the other one shares with the words is said by the speaker of 'I'."""
    if frozenset(map(_bare, tokens(text))) & speaker:
        return False
    about = content(text) - frozenset(map(stem, speaker | others))
    governed = [
        who == "" and _SECOND.isdisjoint(tokens(said))
        for who, said in _governed(told, skip=speaker | others)
        if shared(about, content(said))
    ]
    return bool(governed) and all(governed)


def _governed(told: str, *, skip: Collection[str]) -> Iterator[tuple[str | None, str]]:
    """Stretches of the words, each with whom they are said of: "" is the speaker, None nobody known."""
    for start, end in sentences(told):
        sentence = told[start:end]
        who = _opening_name(sentence, skip)
        for clause in clauses(sentence):
            fresh = True
            run: list[str] = []
            for at, word in enumerate(clause):
                new = _subject(clause, at) if fresh else None
                if new is not None:
                    if run:
                        yield who, " ".join(run)
                    who, run, fresh = new, [], False
                run.append(word)
                fresh = fresh or word in _HANDS_OVER
            yield who, " ".join(run)


def _subject(clause: Sequence[str], at: int) -> str | None:
    """Whom a word makes the subject of what follows: "" the speaker; None: it is no subject."""
    word = clause[at]
    if word in _FIRST:
        return ""
    if word in _HE_OR_SHE or (word in _SECOND and at == 0):
        return word
    related = stem(word)
    return related if related in _RELATIVES and at > 0 and clause[at - 1] in _OWNERS else None


def _opening_name(sentence: str, skip: Collection[str]) -> str | None:
    """The name that a sentence begins with, where a verb follows it."""
    found = _OPENING.match(sentence)
    if found is None:
        return None
    name, verb = _bare(found["name"]), found["verb"].casefold()
    return None if name in GRAMMAR or name in skip or verb not in _VERBS else stem(name)


_OPENING: Final = re.compile(r"\s*(?P<name>[A-Z][\w-]+)\s+(?P<verb>[a-z]+)\b")


def put_in_users_mouth(*, text: str, turn: EpisodeRecord, turns: Sequence[EpisodeRecord]) -> bool:
    """Whether a claim quoted from somebody else has the user say, want or think it."""
    if turn.stated_by is StatedBy.USER:
        return False
    users = SELVES[StatedBy.USER].union(*(_names(each) for each in turns if each.stated_by is StatedBy.USER))
    compared = [_bare(word) for word in tokens(text)]
    return any(
        word in users and any(stem(each) in _SAYS for each in compared[at + 1 : at + 4])
        for at, word in enumerate(compared)
    )

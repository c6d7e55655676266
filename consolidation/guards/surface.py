"""Guards over what normalising leaves out: question marks, capitals, the marks between words, articles, signs.

Two texts with identical normalised text merge without a key, so these look at the texts themselves. All are silent
about what is only typed differently: a full stop at the end, 'Oslo' as 'oslo' in a text without any capital, a comma
before the last item of a list.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from consolidation.guards import lexicon
from consolidation.guards.objection import Objection
from consolidation.guards.reading import Pair, Reading, is_identifier, shaped
from observations.normalise import MARKS, speaks_english


def question(pair: Pair) -> Objection | None:
    """One text asks what the other states."""
    left, right = pair.a.asks, pair.b.asks
    same = (
        left == right
        if pair.a.tokens == pair.b.tokens
        else (len(left), _ends_asking(pair.a)) == (len(right), _ends_asking(pair.b))
    )
    return None if same else Objection("question", "one text asks what the other states", possible_contradiction=False)


def _ends_asking(reading: Reading) -> bool:
    return bool(reading.asks) and reading.asks[-1] == len(reading.tokens)


# --- capitals --------------------------------------------------------------------------------------------------------


def case(pair: Pair) -> Objection | None:
    """The same letters as a name and as a word: US and us, May and may; Sie and sie; AbC1 and aBc1."""
    if pair.a.all_capitals or pair.b.all_capitals:
        return None
    typed = pair.a.has_capitals and pair.b.has_capitals
    traps = _TRAPS if typed else lexicon.CASE_GRAMMAR
    if _named_in_one(pair, traps & pair.known_names):
        return Objection("case", "a word is a name in one text only, by its capital", possible_contradiction=False)
    if pair.same_words and pair.a.plain != pair.b.plain and _differ_in_case(pair, typed=typed):
        return Objection("case", "capitals differ where they may tell two things apart", possible_contradiction=False)
    return None


_TRAPS: Final = lexicon.CASE_GRAMMAR | lexicon.CASE_OTHER


def _named_in_one(pair: Pair, traps: frozenset[str]) -> bool:
    """Whether one of these words, inside a sentence of both, is written in two ways."""
    traps = frozenset(
        word for word in traps.intersection(pair.a.tokens, pair.b.tokens) if not _is_month(word, pair.a.tokens)
    )
    if not traps:
        return False
    left, right = _written(pair.a.plain), _written(pair.b.plain)
    return any(left[word] != right[word] for word in traps & left.keys() & right.keys())


def _is_month(word: str, tokens: Sequence[str]) -> bool:
    """'in march' is the month in small letters too."""
    if word not in lexicon.MONTHS:
        return False
    before = {one for one, other in pairwise(tokens) if other == word}
    return bool(before) and all(one in _BEFORE_MONTH or one[0].isdigit() for one in before)


_BEFORE_MONTH: Final = lexicon.words(
    "in of since until till by last next early late this every from before after during mid each through past"
)


def _differ_in_case(pair: Pair, *, typed: bool) -> bool:
    """Whether a word is an acronym in one text only, a code is written otherwise, or any word of another language."""
    left, right = _written(pair.a.plain), _written(pair.b.plain)
    for word in left.keys() & right.keys():
        if left[word] == right[word]:
            continue
        if not pair.english or (is_identifier(word) and _is_code(left[word] | right[word])):
            return True
        if typed and word not in lexicon.LOUD and _acronym(left[word]) != _acronym(right[word]):
            return True
        if _exact(word, left[word] | right[word], typed=typed):
            return True
    return False


def _written(plain: str) -> dict[str, frozenset[str]]:
    """Per word inside a sentence, folded: how it is written."""
    found: dict[str, frozenset[str]] = {}
    for word, starts in shaped(plain):
        if not starts and word:
            folded = word.casefold()
            found[folded] = found.get(folded, frozenset()) | {word}
    return found


def _exact(word: str, written: frozenset[str], *, typed: bool) -> bool:
    """Whether capitals are the word: Hunter2 beside hunter2 in two texts that are typed with care, mPa beside MPa."""
    coded = typed and any(letter.isdigit() for letter in word) and any(letter.isalpha() for letter in word)
    inner = all(re.search("[A-Z]", form[1:]) and re.search("[a-z]", form) for form in written)
    return coded or inner


def _is_code(written: frozenset[str]) -> bool:
    """Whether capitals are part of it: aB3x, src/Main.py, MAX_SIZE; not PS5 as ps5."""
    mixed = any(re.search("[a-z0-9_/][A-Z]", word) and re.search("[a-z]", word) for word in written)
    return mixed or any(mark in word for word in written for mark in "_/\\\\")


def _acronym(written: frozenset[str]) -> bool:
    return any(2 <= len(word) <= 5 and word.isalpha() and word.isupper() for word in written)


# --- the marks between words -----------------------------------------------------------------------------------------


class Break(NamedTuple):
    """A place between two words where a mark stands."""

    before: str  # the word before it
    after: str
    comma: bool  # nothing but a comma
    quotes: bool  # nothing but quotation marks
    opens: bool  # all words since the sentence began only introduce it
    beyond: str  # the word two places before it


_DECORATION: Final = frozenset("*#•·`´…_~†‡")  # lists, emphasis: no break by itself
_ENDS: Final = frozenset(".!?;:。！？।؟")
_ELIDED: Final = frozenset("'’")
_QUOTES: Final = frozenset("\"'“”„")


def punctuation(pair: Pair) -> Objection | None:
    """A mark decides who does what: 'Tim, said Ann, is late', 'eats, shoots and leaves', 'cooking, my family'.

    Only where the words are the same. Which mark it is tells little; where one stands does, apart from the commas that
    English sets freely: before the last item of a list, after 'yesterday', in a date.
    """
    if not pair.same_words or pair.shared_order_differs or pair.a.parts.marked == pair.b.parts.marked:
        return None
    left, right = breaks(pair.a), breaks(pair.b)
    if _places(left) == _places(right):
        return None
    if pair.english and _places(_needed(left, pair)) == _places(_needed(right, pair)):
        return None
    decides = _deciding(pair.a.plain) != _deciding(pair.b.plain)
    return Objection("punctuation", "a mark stands where it may change who or what is meant", decides)


def _places(found: Sequence[Break]) -> list[tuple[str, str]]:
    same = lexicon.EQUIVALENT.get
    return [(same(place.before, place.before), same(place.after, place.after)) for place in found]


def breaks(reading: Reading) -> tuple[Break, ...]:
    """The places inside a text where a mark stands between two words; full stops of abbreviations are none."""
    found: list[Break] = []
    words: list[str] = []
    marks: list[str] = []
    sentence = 0  # where it begins
    quoted = reading.parts.marked.count("'") > 1
    for token in reading.parts.marked:
        if token in MARKS:
            marks += [] if token in _DECORATION or (token in _ELIDED and not quoted) else [token]
            continue
        if marks and words and not (marks == ["."] and _is_abbreviated(words[-1])):
            opens = marks == [","] and len(words) - sentence <= _INTRODUCTION and _introduces(words[sentence:])
            beyond = words[-2] if len(words) > 1 else ""
            found.append(Break(words[-1], token, marks == [","], _QUOTES.issuperset(marks), opens, beyond))
        if not _ENDS.isdisjoint(marks):
            sentence = len(words)
        words.append(token)
        marks = []
    return tuple(found)


def _is_abbreviated(word: str) -> bool:
    return len(word) == 1 or word in lexicon.ABBREVIATED


def _introduces(words: Sequence[str]) -> bool:
    """'Yesterday', 'In June 2008', 'On Monday'; not a preposition alone ('Inside, the dog barked')."""
    if not words or words[-1] in _BEFORE_DATE:
        return False
    return all(
        word in lexicon.INTRODUCING or word in _BEFORE_DATE or word in lexicon.DATE or word in lexicon.MONTHS
        or word[0].isdigit() for word in words
    )  # fmt: skip


_INTRODUCTION: Final = 5  # words
_BEFORE_DATE: Final = lexicon.words("in on at by since until during of")
_JOINING: Final = lexicon.words("and or nor but")
_NONE: Final = lexicon.words("nothing nobody no-one none nowhere all anything everything everyone anyone no never")


def _needed(found: Sequence[Break], pair: Pair) -> list[Break]:
    """The breaks less the marks that English sets freely."""
    joints = sum(pair.a.counts.get(word, 0) for word in _JOINING)
    denied = not lexicon.NEGATION.isdisjoint(pair.a.wording)
    return [place for place in found if not _is_free(place, found, pair, joints=joints, denied=denied)]


def _is_free(place: Break, found: Sequence[Break], pair: Pair, *, joints: int, denied: bool) -> bool:
    if place.quotes:
        return any(len(word) == 1 and word not in ("i", "a") for word in (place.before, place.after))  # a Z, a "Z"
    if not place.comma:
        return False
    if place.opens or place.after in _TRAILING or _is_dated(place) or (place.after in _ADDING and not denied):
        return True
    if joints != 1 or place.after not in _JOINING or (place.after == "but" and place.before in _NONE):
        return False
    # 'my parents, Ann and Bob' are two people, 'my parents, Ann, and Bob' are four
    explains = any(other.after == place.before and other.before not in pair.known_names for other in found)
    return not (explains and place.before in pair.known_names)


# What these add is the same with a comma and without, unless something is denied: 'not because' and 'not, because'.
_ADDING: Final = lexicon.words("with on in at before after until since from for by during while as because if although")
_TRAILING: Final = lexicon.words("too please")


def _is_dated(place: Break) -> bool:
    """'June 27, 1841'; 'Monday, June 27'; 'June, 1841'."""
    year = len(place.after) == 4 and place.after.isdecimal()
    if year and (place.before in lexicon.MONTHS or place.beyond in lexicon.MONTHS):
        return True
    if year and place.before.rstrip("stndrh").isdecimal():
        return True
    return place.before in lexicon.DAYS and (place.after in lexicon.MONTHS or place.after[0].isdigit())


_SPEAKING = lexicon.words("said says asked asks told replied replies wrote writes argued claimed")
_SPEECH = re.compile(rf"([,;:\"]?) ?\b({'|'.join(sorted(_SPEAKING))})\b([^.!?]{{0,80}}?,)?")
_OWNED_ITEM = re.compile(
    r"(?<![^\W_])([^\W_]{1,40}) ?, ?(?:my|your|his|her|its|our|their)\b"
)  # cooking, my family and dogs
_ADDRESSED = re.compile(r"(?<![^\W_])([^\W_]{1,40}) ?, ?[^\W\d_]{1,40}[.!?\"' ]{0,4}$")  # let us eat, Ann


def _deciding(plain: str) -> list[str]:
    """The marks that are known to turn a meaning: who speaks, who is spoken to, what belongs to a list."""
    return list(_deciding_marks(plain.casefold()))


def _deciding_marks(folded: str) -> Iterator[str]:
    yield from ("".join(parts) for parts in _SPEECH.findall(folded))
    if "," in folded:
        yield from _OWNED_ITEM.findall(folded)
        yield from _ADDRESSED.findall(folded)


# --- articles --------------------------------------------------------------------------------------------------------


class Article(NamedTuple):
    """An article with its neighbours."""

    before: str  # empty where a sentence begins
    definite: bool
    after: str
    beyond: str  # the word after that


_INDEFINITE: Final = frozenset({"a", "an"})


def article(pair: Pair) -> Objection | None:
    """An article that turns a meaning: on fire and on the fire, Amazon and the Amazon, is a winner and is the winner.

    Most articles tell a listener whether a thing was named before, and no more; those pass.
    """
    if not pair.same_words or not pair.english or pair.a.parts.raw == pair.b.parts.raw:
        return None
    ours, theirs = ([word for word in side.parts.raw if word in ("a", "an")] for side in (pair.a, pair.b))
    if len(ours) != len(theirs) and not speaks_english([*pair.a.parts.raw, *pair.b.parts.raw]):
        return Objection("article", "nothing says that the word is an English article", possible_contradiction=False)
    left, right = _articles(pair.a.parts.raw), _articles(pair.b.parts.raw)
    if any(_matters(place, pair) for place in (*_lacking(left, right), *_lacking(right, left))):
        return Objection("article", "one text has an article where the other has none", possible_contradiction=False)
    if _initials(pair.a.parts.raw) != _initials(pair.b.parts.raw):
        return Objection("article", "a letter in one text reads as an article", possible_contradiction=False)
    alike = [place.after for place in left] == [place.after for place in right]
    if alike and any(x.definite != y.definite and _says_which(x) for x, y in zip(left, right, strict=True)):
        return Objection("article", "one text says 'the' where it tells one from many", possible_contradiction=False)
    return None


def _lacking(mine: Sequence[Article], theirs: Sequence[Article]) -> list[Article]:
    """My articles before words that have fewer of them in the other text."""
    left, right = Counter(place.after for place in mine), Counter(place.after for place in theirs)
    return [place for place in mine if left[place.after] > right[place.after]]


def _matters(place: Article, pair: Pair) -> bool:
    """Whether the text means another thing without this article."""
    named = place.after in pair.known_names
    if place.after == "one" or (not named and place.after in lexicon.MASS):
        return True
    if place.before in lexicon.DIRECTION and place.after in lexicon.WITHOUT_ARTICLE:
        return True
    if place.before in ("and", "or", "nor"):  # a poet and a clerk are two, a poet and clerk is one
        several = place.definite and (place.after.endswith("s") or place.beyond.endswith("s"))
        return not several and not named and place.beyond not in pair.known_names
    if named and place.beyond not in pair.known_names:
        return True  # the Amazon, but not the Amazon River
    return place.definite and (place.before in lexicon.LIKING or (not place.before and place.after.endswith("s")))


def _initials(raw: Sequence[str]) -> int:
    """How many letters A there are that only look like an article: 'A. Hall', 'a) milk'."""
    return sum(word == "a" and after in ".):" for word, after in pairwise(raw))


def _articles(raw: Sequence[str]) -> list[Article]:
    found: list[Article] = []
    before = ""
    words = [token for token in raw if token not in MARKS or token in _ENDS]
    for at, word in enumerate(words[:-1]):
        if (word == "the" or word in _INDEFINITE) and words[at + 1] not in MARKS:
            after, beyond = words[at + 1], words[at + 2] if at + 2 < len(words) else ""
            if not (after in _COUNTING and word != "the") and not _is_day(words[at + 1 : at + 4]):
                # 'a hundred' is 'one hundred', 'the 27th of June' is 'June 27'
                found.append(Article(before, word == "the", _plain_after(after), beyond))
        before = "" if word in MARKS else word
    return found


def _is_day(words: Sequence[str]) -> bool:
    rest = words[2:] if words[1:2] == ["of"] else words[1:]
    return (words[0][0].isdigit() or words[0] in _ORDINALS) and rest[:1] != [] and rest[0] in lexicon.MONTHS


_COUNTING: Final = frozenset({"hundred", "thousand"})
_BEING: Final = lexicon.words(
    "is are was were be been being am become becomes became remain remains remained as called"
)
_ORDINALS: Final = lexicon.words("first second third fourth fifth sixth seventh eighth ninth tenth last next only")
_NUMBER_WORDS: Final = (
    _ORDINALS
    | _COUNTING
    | lexicon.words(
        "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
        "eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety"
    )
)


def _plain_after(word: str) -> str:
    """The word after an article; numbers may be written in words."""
    if word in ("one", "1"):
        return "one"
    number = word[0].isdigit() or word.partition("-")[0] in _NUMBER_WORDS
    return "#" if number else lexicon.EQUIVALENT.get(word, word)


def _says_which(place: Article) -> bool:
    contracted = place.before.endswith(("'s", "'m", "'re"))
    return place.before in _BEING or contracted or place.after == "#"


# --- contractions ----------------------------------------------------------------------------------------------------

_SHORT_IS = re.compile(r"[^\W_]+'s")


def contraction(pair: Pair) -> Objection | None:
    """A short form that may be 'is' or 'has' before what somebody did: 'She's left' and 'She is left'."""
    if not pair.same_words or pair.a.parts.raw == pair.b.parts.raw:
        return None
    if _shortened(pair.a) == _shortened(pair.b):
        return None
    return Objection("contraction", "a short form may stand for 'is' or for 'has'", possible_contradiction=False)


def _shortened(reading: Reading) -> Counter[tuple[str, str]]:
    words = [token for token in reading.parts.raw if token not in MARKS]
    short = ((word, after) for word, after in pairwise(words) if _SHORT_IS.fullmatch(word))
    return Counter((word, after) for word, after in short if lexicon.is_participle(after))


# --- signs -----------------------------------------------------------------------------------------------------------

_SIGN = re.compile(
    r"(?<!\d)[:;=][-']?[()\[\]DPp/\\|](?!\w)"  # going:(
    r"|:'[()]"
    r"|(?<![^\s(\[{\"'])!(?=[\w(])"  # !enabled
    r"|[-!&|+*/\\]{0,3}[<>=~^|¬≠≤≥][-=<>!~^|&+*]{0,3}"  # !=  ->  <=
    r"|(?<=[^\W\d_])-(?=[\s.,;:)!?]|$)"  # HIV-
    r"|(?<![\w*])(?:[A-G]|\d{1,2})\*+(?![\w*])"  # A*, 5*
    r"|\([0-9][0-9.,]*\)"  # a loss, in brackets
    r"|(?<=\d) ?\*+ ?(?=\d)"  # 5 * 3
)


def sign(pair: Pair) -> Objection | None:
    """A sign that turns a meaning: x != 5 and x = 5, !enabled, HIV- and HIV, A* and A, going :) and going :(."""
    if not pair.same_words or pair.a.plain == pair.b.plain:
        return None
    if _SIGN.findall(pair.a.plain) == _SIGN.findall(pair.b.plain):
        return None
    return Objection("sign", "a sign differs that may turn the meaning", possible_contradiction=True)

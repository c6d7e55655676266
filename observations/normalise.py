"""How two texts are compared: as ordered token sequences (DESIGN 3).

NFKC, case folded, contractions opened, punctuation and English articles dropped, English number words as digits;
prepositions, word order and everything else kept. Two observations whose normalised texts are identical may merge
without a key, so whatever could change the meaning stays in a token: decimal points, signs, currencies, identifiers,
hyphens, the letter in 'vitamin A', the 'a' of 'a few', the comma of 'No, ...', every letter of every script.
What equality of tokens cannot see (a question mark, 'US' beside 'us') is left to `consolidation.guards`.
"""

import hashlib
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}"


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# --- before tokenising -----------------------------------------------------------------------------------------------

_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_SURROGATE_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
# NFKC would make 10⁵ into 105, 2½ into 21/2 and Java™ into JavaTM.
_RAISED = re.compile("([⁰¹²³⁴-⁹⁺⁻]+)")
_FRACTION = re.compile("(?<=[0-9])(?=[¼-¾⅐-⅞])")
_UNMARKED: Final = dict.fromkeys(map(ord, "™®"))
_INVISIBLE = "\u00ad\u200b\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2060\u2066\u2067\u2068\u2069\ufe0e\ufe0f\ufeff"
_PLAIN: Final[dict[int, str]] = {
    **dict.fromkeys(map(ord, _INVISIBLE), ""),
    **dict.fromkeys(map(ord, "\u2018\u2019\u02bc\u201b"), "'"),
    **dict.fromkeys(map(ord, "\u201c\u201d\u201e\u201f\u00ab\u00bb"), '"'),
    **dict.fromkeys(map(ord, "\u2010\u2011\u2212"), "-"),
    **dict.fromkeys(map(ord, "\u2014\u2015"), " ; "),
    0x2044: "/",  # fraction slash
}
_DIGIT_RANGE = re.compile("(?<=[0-9])[\u2012\u2013](?=[0-9])")
_DASH = re.compile("[\u2012\u2013]")

_DIGIT = re.compile("[0-9]")
_PERCENT = re.compile(r"(?<=[0-9])\s+(?=[%‰])")
_MINUS = re.compile(r"(?<=[0-9]) - (?=[0-9])")
_CLOCK = re.compile(r"(?<![\w.:])([0-9]{1,2}(?:[:.][0-9]{2})?) ?([ap])\.?m\b\.?", re.IGNORECASE)

# A capital A inside a sentence is a name (hepatitis A), not an article; so is any 'a' after such a word.
_LONE_A = re.compile(r" [Aa](?![\w'+-])")
_LETTERED = _words(
    "vitamin hepatitis appendix exhibit grade class group team option section terminal plan type part gate hall zone "
    "level block"
)
_LETTER_A_MARK = "\u1d2c"  # NFKC turns this character into A, so no folded text holds it by itself

# --- tokens ----------------------------------------------------------------------------------------------------------


def _punctuation() -> str:
    """Unicode's P* classes up to U+FFFF, and the backtick: what a token does not hold at its edges.

    The underscore is part of identifiers. The few marks of historic scripts beyond U+FFFF stay in their tokens, which
    can only keep two texts apart.
    """
    every = (chr(code) for code in range(0x10000) if not 0x3400 <= code < 0xF900)
    return "".join(mark for mark in every if mark in "`´" or (unicodedata.category(mark)[0] == "P" and mark != "_"))


_DROPPED: Final = _punctuation()
MARKS: Final = frozenset(_DROPPED) - frozenset("&/%‰")
_EDGE = re.escape(_DROPPED)
_W = rf"[^\s{_EDGE}]"
_TOKEN = re.compile(
    rf"(?<!\S)[:;=]-?[()dp/|](?!\S)"  # :) and :( say something
    rf"|(?<![^\s(])(?:ab|[a-fo])-(?![^\s,.;:!?)])"  # grades and blood types
    rf"|(?:(?<![^\s(\[{{\"'])(?:-{{1,2}}|\.{{0,2}}/|[.#@§\\])(?={_W}))?"  # -5  --force  ./run  .net  #7  @sam
    rf"{_W}+(?:(?:::|://|[.'_/\\@&:#*·-]|(?<=[0-9]),(?=[0-9])){_W}+)*"
    rf"(?:[%‰″′]|(?<=[a-z])\#(?!\S))?"
    rf"|[{_EDGE}]"
)
_THOUSANDS = re.compile(r"[^0-9]{0,2}[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?[^0-9]?")

# --- contractions ----------------------------------------------------------------------------------------------------

_AUXILIARIES: Final = _words(
    "do does did is was are were has have had would could should must need might may can will shall dare ought"
)
_NEGATED_STEM: Final = {"ca": "can", "wo": "will", "sha": "shall"}
_OPENED: Final[dict[str, tuple[str, ...]]] = {
    "cannot": ("can", "not"),
    "cant": ("can", "not"),
    "wont": ("will", "not"),
    "i'm": ("i", "am"),
    "im": ("i", "am"),
    "ive": ("i", "have"),
    "youre": ("you", "are"),
    "theyre": ("they", "are"),
    **{f"{verb}nt": (verb, "not") for verb in _words("do does did is was are were has have had would could should")},
}
_TAILS: Final = {"'ll": "will", "'re": "are", "'ve": "have"}
# 's is 'is' or 'has' after these; after anything else it may be a possessive and stays in the token.
_IS_AFTER: Final = _words(
    "it he she that this there here what who where when how why everything something nothing everyone someone"
)
_HAS_BEFORE: Final = _words("been got had become begun")

# --- articles and language -------------------------------------------------------------------------------------------

_ARTICLES: Final = frozenset({"a", "an", "the"})
# Beside these an article changes the meaning: a few / few, the only doctor / only a doctor, in the charge / in charge.
_ARTICLE_MATTERS: Final = _words(
    "few little bit lot only just even next last most least number place question charge possession control custody "
    "command"
)
# Grammar words of one language that mean nothing in the other; those found in names (de, la, van) are left out.
_ENGLISH: Final = _words(
    "the of and is are were has have had to with for that this it his her their they she he not from by at be been"
)
_FOREIGN: Final = _words(
    "der das und ist nicht ein eine einer eines einem einen dem mit auf für sie ich wir auch sich wird werden wurde "
    "haben bei nach aus durch über zum zur vom im les est et dans avec sur qui je elle nous vous une au aux ce cette "
    "los las que por para una pero muy il che di è non della gli um uma não em het een niet zijn voor og ikke är och "
    "inte jest nie"
)

# --- number words ----------------------------------------------------------------------------------------------------


def _series(words: str, *, start: int = 0, step: int = 1) -> dict[str, int]:
    return {word: start + step * at for at, word in enumerate(words.split())}


_UNITS: Final = _series("zero one two three four five six seven eight nine")
_TEENS: Final = _series(
    "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen",
    start=10,
)
_TENS: Final = _series("twenty thirty forty fifty sixty seventy eighty ninety", start=20, step=10)
_CARDINALS: Final = {**_UNITS, **_TEENS, **_TENS}
# 'second' is also a length of time and stays a word.
_ORDINALS: Final = {
    "first": 1,
    **_series("third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth", start=3),
    **_series(
        "thirteenth fourteenth fifteenth sixteenth seventeenth eighteenth nineteenth",
        start=13,
    ),
    **_series(
        "twentieth thirtieth fortieth fiftieth sixtieth seventieth eightieth ninetieth",
        start=20,
        step=10,
    ),
}
_SCALES: Final = {"hundred": 100, "thousand": 1000}
_NUMBER_WORDS: Final = frozenset({*_CARDINALS, *_ORDINALS, *_SCALES})
# Tokens that need more than a look at the break marks.
_SPECIAL: Final = frozenset({*_ARTICLES, *_OPENED, "no", "one", "&"})


def clean(text: str) -> tuple[str, bool]:
    """The text as PostgreSQL and UTF-8 can hold it, and whether anything had to be changed for that (C1).

    NUL and lone halves of surrogate pairs become U+FFFD, a visible mark; two halves that belong together are joined.
    """
    if _UNSTORABLE.search(text) is None:
        return text, False
    return _UNSTORABLE.sub(REPLACEMENT, _SURROGATE_PAIR.sub(_joined_pair, text)), True


@dataclass(frozen=True, slots=True)
class Parsed:
    """A text taken apart and folded, with what comparing leaves out: the guards look at that too."""

    raw: tuple[str, ...]  # every token, article and mark as it stands
    marked: tuple[str, ...]  # what `tokens` gives, with the marks between the tokens still in their places
    english: bool


def parsed(text: str) -> Parsed:
    """The text's tokens and marks; `tokens` is what is left of them without the marks."""
    raw = tuple(_TOKEN.findall(_folded(_plain(text))))
    english = is_english(raw)
    marked = _compared(raw) if english else raw
    if MARKS.issuperset(marked):  # nothing but articles, or nothing but punctuation
        marked = raw
    return Parsed(raw=raw, marked=tuple(marked), english=english)


def tokens(text: str) -> tuple[str, ...]:
    """The text as the ordered tokens it is compared by; for a text without any, the text itself after NFKC.

    Empty only for a text that is empty or blank.
    """
    return unmarked(parsed(text), text=text)


def unmarked(parts: Parsed, *, text: str) -> tuple[str, ...]:
    """The tokens of a text that was parsed before."""
    return tuple(_without_marks(parts.marked) or unicodedata.normalize("NFKC", text).split())


def normalised(text: str) -> str:
    """The tokens of a text joined by single spaces. Identical means: the same claim, apart from what guards look at."""
    return " ".join(tokens(text))


def key_part(value: str) -> str:
    """A subject, predicate or object as keys are compared: 'lives_in' equals 'Lives in'. Empty when blank."""
    return normalised(value.replace("_", " ")) if value else ""


def is_english(words: Iterable[str]) -> bool:
    """Whether case-folded words read as English: no more grammar words of other languages than of English.

    A text without any grammar word counts as English. Articles, contractions and number words are touched in English
    only: 'a' is a preposition in Spanish and a verb in French, 'an' a preposition in German.
    """
    distinct = frozenset(words)
    foreign = len(distinct & _FOREIGN)
    return foreign == 0 or len(distinct & _ENGLISH) >= foreign


def speaks_english(words: Iterable[str]) -> bool:
    """Whether a grammar word of English is among case-folded words, beside 'a' and 'an', which other languages have."""
    return not _ENGLISH.isdisjoint(word for word in words if word not in ("a", "an"))


def _joined_pair(pair: re.Match[str]) -> str:
    return pair.group().encode("utf-16-le", "surrogatepass").decode("utf-16-le")


def _plain(text: str) -> str:
    """NFKC without the changes of meaning it would make, and typographic marks as their plain counterparts."""
    if text.isascii():
        return text
    text = _FRACTION.sub(" ", _RAISED.sub(r"^\1", text.translate(_UNMARKED)))
    text = unicodedata.normalize("NFKC", text).translate(_PLAIN)
    return _DASH.sub(" ; ", _DIGIT_RANGE.sub("-", text))


def _folded(plain: str) -> str:
    """Case folded; '5 %' and '5pm' in one form; a letter A that is a name marked, so that no article hides it."""
    if _DIGIT.search(plain):
        plain = _CLOCK.sub(r"\1 \2m", _MINUS.sub(" \u2212 ", _PERCENT.sub("", plain)))
    if (" a" in plain or " A" in plain) and not plain.isupper():
        plain = _LONE_A.sub(_lettered, plain)
    if plain.isascii():
        return plain.lower()
    # ß stays: in Maßen (within measure) is the opposite of in Massen (en masse).
    folded = "ß".join(part.casefold() for part in plain.replace("ẞ", "ß").split("ß"))
    return unicodedata.normalize("NFC", folded)


def _lettered(lone: re.Match[str]) -> str:
    start = lone.start()
    before = lone.string[max(0, start - 40) : start].rpartition(" ")[2]
    named = before.casefold() in _LETTERED or (lone.group() == " A" and before and before[-1] not in ".!?:;\"'(")
    return f" {_LETTER_A_MARK}" if named else lone.group()


def _without_marks(raw: Iterable[str]) -> list[str]:
    return [token for token in raw if token not in MARKS]


def _compared(raw: Sequence[str]) -> list[str]:
    """An English text: contractions opened, articles gone, number words as digits, the marks still there."""
    read: list[str] = []
    for at, token in enumerate(raw):
        if token in _SPECIAL or "'" in token or "," in token:
            read.extend(_read(raw, at))
        else:
            read.append(token)
    if not _NUMBER_WORDS.isdisjoint(read) or any("-" in token for token in read):
        read = _counted(read)
    return read


def _read(raw: Sequence[str], at: int) -> tuple[str, ...]:
    """What a token with a meaning of its own, at its place among the others, is compared as."""
    word = raw[at]
    before = raw[at - 1] if at else ""
    after = raw[at + 1] if at + 1 < len(raw) else ""
    if word in _ARTICLES:
        return _article(word, before, after)
    if word == "no":
        return _no(after, more=at + 2 < len(raw))
    if word == "one":
        return () if before == "no" else ("one",)
    if word == "&":
        return ("and",)
    if "," in word and _THOUSANDS.fullmatch(word):
        return (word.replace(",", ""),)
    return _contraction(word, after)


def _article(word: str, before: str, after: str) -> tuple[str, ...]:
    if after in _SCALES and word != "the":
        return ("one",)
    if before in _ARTICLE_MATTERS or after in _ARTICLE_MATTERS or not after:
        return ("the",) if word == "the" else ("a",)
    return ()


def _no(after: str, *, more: bool) -> tuple[str, ...]:
    """'No, fixes are needed' is not 'No fixes are needed', and 'no one' is not 'No. 1'."""
    if after == "one":
        return ("no-one",)
    return ("no,",) if more and after in ",;:.!?-" else ("no",)


def _contraction(token: str, after: str) -> tuple[str, ...]:
    if token in _OPENED:
        return _OPENED[token]
    stem, tail = token[:-3], token[-3:]
    if tail in _TAILS and stem:
        return (*_contraction(stem, ""), _TAILS[tail])
    if tail == "n't":
        stem = _NEGATED_STEM.get(stem, stem)
        return (stem, "not") if stem in _AUXILIARIES else (token,)
    if token.endswith("'s") and token[:-2] in _IS_AFTER:
        return (token[:-2], "has" if after in _HAS_BEFORE else "is")
    return (token,)


def _counted(words: Sequence[str]) -> list[str]:
    """The words with number words as digits; break marks among them keep 'twenty, one of them' from becoming 21."""
    counted: list[str] = []
    at = 0
    while at < len(words):
        word = words[at]
        if "-" in word and word != "no-one":
            word = _hyphenated(word)
        number = _number([word, *words[at + 1 : at + 8]])
        counted.append(number[0] if number else word)
        at += number[1] if number else 1
    return counted


def _hyphenated(word: str) -> str:
    """'twenty-one' and 'twenty-one-year-old' with their number words as digits."""
    parts = word.split("-")
    if _NUMBER_WORDS.isdisjoint(parts):
        return word
    counted: list[str] = []
    at = 0
    while at < len(parts):
        number = _number(parts[at : at + 8])
        counted.append(number[0] if number else parts[at])
        at += number[1] if number else 1
    return "-".join(counted)


def _number(words: Sequence[str]) -> tuple[str, int] | None:
    """The number that the words start with, in digits, and how many words it takes; None when there is none."""
    value, used, ordinal = _below_thousand(words)
    if not used or (words[0].isdecimal() and used == 1 and words[1:2] != ["thousand"]):
        return None
    if not ordinal and words[used : used + 1] == ["thousand"]:
        more, taken, ordinal = _words_only(_below_thousand, words[used + 1 :])
        value, used = value * 1000 + more, used + 1 + taken
    return f"{value}{_ordinal_ending(value) if ordinal else ''}", used


def _below_thousand(words: Sequence[str]) -> tuple[int, int, bool]:
    """Value, words used and whether it is an ordinal; (0, 0, False) when the words do not start with a number."""
    value, used, ordinal = _below_hundred(words)
    if not used or ordinal or words[used : used + 1] != ["hundred"]:
        return value, used, ordinal
    value, used = value * 100, used + 1
    linked = used + (words[used : used + 1] == ["and"])
    more, taken, ordinal = _words_only(_below_hundred, words[linked:])
    return (value + more, linked + taken, ordinal) if taken else (value, used, False)


def _words_only(read: Callable[[Sequence[str]], tuple[int, int, bool]], words: Sequence[str]) -> tuple[int, int, bool]:
    """Digits may open a number ('2 thousand'), but never go on with one ('two thousand 5')."""
    return (0, 0, False) if words and words[0].isdecimal() else read(words)


def _below_hundred(words: Sequence[str]) -> tuple[int, int, bool]:
    first = words[0] if words else ""
    if first in _ORDINALS:
        return _ORDINALS[first], 1, True
    if first in _CARDINALS:
        following = words[1] if len(words) > 1 else ""
        if first in _TENS and _UNITS.get(following, 0) > 0:
            return _TENS[first] + _UNITS[following], 2, False
        if first in _TENS and 0 < _ORDINALS.get(following, 0) < 10:
            return _TENS[first] + _ORDINALS[following], 2, True
        return _CARDINALS[first], 1, False
    if first.isdecimal() and first.isascii() and len(first) <= 3 and first[0] != "0":
        return int(first), 1, False
    return 0, 0, False


def _ordinal_ending(value: int) -> str:
    if 10 < value % 100 < 20:
        return "th"
    return {1: "st", 2: "nd", 3: "rd"}.get(value % 10, "th")


# --- keys of normalised values ---------------------------------------------------------------------------------------


def key64(*parts: str) -> int:
    """A signed 64-bit key of already normalised parts, length-prefixed; 0 when any part is empty, and never 0
    otherwise.
    """
    if not all(parts):
        return 0
    blob = "".join(f"{len(part)}:{part}" for part in parts).encode()
    return int.from_bytes(hashlib.blake2b(blob, digest_size=8).digest(), "little", signed=True) or 1


# --- addresses -------------------------------------------------------------------------------------------------------

_WEB = re.compile(r"https?://(?:www\.)?([^/?#]+)([^?#]*)(\?[^#]*)?(#[/!].*)?(?:#.*)?", re.IGNORECASE | re.DOTALL)


def witness(uri: str) -> str:
    """A root source as witnesses are counted (R95, C8): the spellings of one web page are one.

    Of addresses of the web the scheme, www, the case of the host, a slash at the end and a place on the page count for
    nothing; a fragment that begins with / or ! is a page of its own. Any other source is its own words.
    """
    page = _WEB.fullmatch(uri.strip())
    if page is None:
        return uri
    host, path, query, route = (part or "" for part in page.groups())
    return f"web://{host.casefold()}{path.rstrip('/')}{query}{route}"

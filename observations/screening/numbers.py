"""Numbers of cards, accounts and papers: by shape and check digits, or also by the words beside them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from typing import Final

from observations.screening.kinds import Secret

_NEAR: Final = 60  # characters around a number in which the words that name it are looked for
_FREE: Final = r"(?<![A-Za-z0-9])(?<![0-9][.,])"  # no letter, figure or decimal point runs into it
_STOP: Final = r"(?![A-Za-z0-9])(?![.,][0-9])"


def number_in(text: str) -> Secret | None:
    """The kind of card, account or paper whose number is in a text, or None."""
    figures = sum(map(str.isdigit, text))
    if figures < _FEWEST:
        return None
    if any(map(_is_card, _found(_CARD, text))) or _PART_OF_CARD.search(text):
        return Secret.CARD
    if any(map(_is_iban, _found(_IBAN, text))) or _ACCOUNT.search(text):
        return Secret.ACCOUNT
    return Secret.PAPER if any(_stands_in(paper, text, figures) for paper in _PAPERS) else None


_FEWEST: Final = 4  # figures of the shortest number


def _found(pattern: re.Pattern[str], text: str) -> Iterator[str]:
    return (match[0] for match in pattern.finditer(text))


def _figures(text: str) -> list[int]:
    return [int(sign) for sign in text if sign.isdigit()]


# --- cards and accounts ----------------------------------------------------------------------------------------------

_CARD: Final = re.compile(
    rf"{_FREE}(?:[0-9]{{13,19}}"
    r"|[0-9]{4}([ .-])[0-9]{4}\1[0-9]{4}\1[0-9]{4}(?:\1[0-9]{3})?"
    r"|[0-9]{4}([ .-])[0-9]{6}\2[0-9]{4,5}"
    rf"|[0-9](?:[ -][0-9]){{12,18}}){_STOP}"
)
# Who issues it, and how long it is then: other numbers of that length are of something else.
_ISSUED: Final = re.compile(
    r"4(?:[0-9]{12}|[0-9]{15}|[0-9]{18})|5[1-5][0-9]{14}|2(?:22[1-9]|2[3-9][0-9]|[3-6][0-9]{2}|7[01][0-9]|720)[0-9]{12}"
    r"|3[47][0-9]{13}|6(?:011|5[0-9]{2}|4[4-9][0-9])[0-9]{12,15}|3(?:0[0-5]|[689][0-9])[0-9]{11}"
    r"|35(?:2[89]|[3-8][0-9])[0-9]{12,15}|62[0-9]{14,17}|220[0-4][0-9]{12,15}|(?:50|5[6-8])[0-9]{14,17}"
)
# Somebody may give a number in parts: six figures and more that are said to be a card's, not the four of "ending in".
_PART_OF_CARD: Final = re.compile(
    r"\b(?:(?:credit|debit|bank|payment) card|card(?:'s)? (?:number|no\.?))[^0-9\n]{0,25}[0-9][0-9 -]{4,20}[0-9]\b",
    re.IGNORECASE,
)
_IBAN: Final = re.compile(r"(?<![A-Za-z0-9])[A-Za-z]{2}[0-9]{2}(?:[ -]?[A-Za-z0-9]){6,32}(?![A-Za-z0-9])")
_IBAN_LENGTHS: Final = (15, 34)
_ACCOUNT: Final = re.compile(
    r"\b(?:bank account|account (?:number|no\.?)|routing (?:number|no\.?)|sort code|kontonummer)"
    r"[^0-9\n]{0,25}[0-9][0-9 -]{4,20}[0-9]\b",
    re.IGNORECASE,
)


def _is_card(found: str) -> bool:
    figures = _figures(found)
    return bool(_ISSUED.fullmatch("".join(map(str, figures)))) and len(set(figures)) > 1 and _luhn(figures)


def _luhn(figures: list[int]) -> bool:
    doubled = (2 * figure if at % 2 else figure for at, figure in enumerate(reversed(figures)))
    return sum(figure - 9 if figure > 9 else figure for figure in doubled) % 10 == 0


def _is_iban(found: str) -> bool:
    """Mod 97 over a beginning of the right length: words that follow may have been taken with it."""
    pieces = re.split("[ -]", found.upper())
    wholes = ("".join(pieces[:count]) for count in range(len(pieces), 0, -1))
    return any(_IBAN_LENGTHS[0] <= len(whole) <= _IBAN_LENGTHS[1] and _mod97(whole[4:] + whole[:4]) for whole in wholes)


def _mod97(text: str) -> bool:
    return int("".join(str(int(sign, 36)) for sign in text)) % 97 == 1


# --- papers ----------------------------------------------------------------------------------------------------------


def _ssn(found: str) -> bool:
    figures = "".join(map(str, _figures(found)))
    return figures[:3] not in ("000", "666") and figures[3:5] != "00" and figures[5:] != "0000"


def _weighed(figures: list[int], weights: str, *, by: int = 11) -> int:
    return sum(figure * int(weight, 36) for figure, weight in zip(figures, weights, strict=False)) % by


def _cpf(found: str) -> bool:
    figures = _figures(found)
    checks = [_weighed(figures, "a98765432") * -1 % 11 % 10, _weighed(figures, "ba98765432") * -1 % 11 % 10]
    return len(set(figures)) > 1 and figures[9:] == checks


def _nir(found: str) -> bool:
    figures = "".join(map(str, _figures(found)))
    return 97 - int(figures[:13]) % 97 == int(figures[13:])


_ODD: Final = (1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23)


def _fiscal(found: str) -> bool:
    total = 0
    for at, sign in enumerate(found.upper()[:15]):
        place = int(sign) if sign.isdigit() else ord(sign) - ord("A")
        total += _ODD[place] if at % 2 == 0 else place
    return chr(ord("A") + total % 26) == found.upper()[15]


def _dni(found: str) -> bool:
    plain = found.upper().replace("-", "").replace(" ", "")
    number = plain[:-1].translate(str.maketrans("XYZ", "012"))
    return "TRWAGMYFPDXBNJZSQVHLCKE"[int(number) % 23] == plain[-1]


def _tax_id(found: str) -> bool:
    """ISO 7064, 11 and 10."""
    product = 10
    figures = _figures(found)
    for figure in figures[:10]:
        product = 2 * ((figure + product) % 10 or 10) % 11
    return (11 - product) % 10 == figures[10]


def _bsn(found: str) -> bool:
    figures = _figures(found)
    return (_weighed(figures[:8], "98765432") - figures[8]) % 11 == 0


def _pesel(found: str) -> bool:
    return _weighed(_figures(found), "13791379131", by=10) == 0


def _sweden(found: str) -> bool:
    figures = "".join(map(str, _figures(found)))[-10:]
    return _is_day(2000, figures[2:4], figures[4:6]) and _luhn(_figures(figures))


def _korea(found: str) -> bool:
    return _is_day(2000, found[2:4], found[4:6])


def _china(found: str) -> bool:
    figures = _figures(found[:17])
    return (
        _is_day(int(found[6:10]), found[10:12], found[12:14])
        and "10X98765432"[sum(figure * 2 ** (17 - at) for at, figure in enumerate(figures)) % 11] == found[17].upper()
    )


def _is_day(year: int, month: str, day: str) -> bool:
    try:
        return bool(date(year, int(month), int(day)))
    except ValueError:
        return False


_TURNS: Final = (
    "0123456789", "1576283094", "5803796142", "8916043527", "9453126870", "4286573901", "2793806415", "7046913258",
)  # fmt: skip
_PRODUCTS: Final = (
    "0123456789", "1234067895", "2340178956", "3401289567", "4012395678",
    "5987604321", "6598710432", "7659821043", "8765932104", "9876543210",
)  # fmt: skip


def _aadhaar(found: str) -> bool:
    """Verhoeff's check digit."""
    check = 0
    for at, figure in enumerate(reversed(_figures(found))):
        check = int(_PRODUCTS[check][int(_TURNS[at % 8][figure])])
    return check == 0


def _sin(found: str) -> bool:
    return _luhn(_figures(found))


def _tfn(found: str) -> bool:
    return _weighed(_figures(found), "14375869a") == 0


def _any(_found: str) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class _Paper:
    """A kind of number that a state gives."""

    shape: re.Pattern[str]
    valid: Callable[[str], bool] = _any
    named: re.Pattern[str] | None = None  # words of which one has to stand near; None: the shape is enough
    fewest: int = _FEWEST  # figures of the shortest


def _stands_in(paper: _Paper, text: str, figures: int) -> bool:
    """Whether a text with so many figures holds such a number."""
    if figures < paper.fewest:
        return False
    return any(
        paper.valid(match[0])
        and (paper.named is None or paper.named.search(text[max(0, match.start() - _NEAR) : match.end() + _NEAR]))
        for match in paper.shape.finditer(text)
    )


def _paper(fewest: int, shape: str, valid: Callable[[str], bool] = _any, named: str = "") -> _Paper:
    words = re.compile(rf"\b(?:{named})\b", re.IGNORECASE) if named else None
    return _Paper(re.compile(f"{_FREE}(?:{shape}){_STOP}"), valid, words, fewest)


_PAPERS: Final = (
    _paper(9, r"[0-8][0-9]{2}-[0-9]{2}-[0-9]{4}", _ssn),  # United States
    _paper(9, r"[0-9]{3} ?[0-9]{2} ?[0-9]{4}|9[0-9]{2}-[0-9]{2}-[0-9]{4}", _ssn, "ssn|social security|itin|taxpayer"),
    _paper(6, r"[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] [0-9]{2} [0-9]{2} [0-9]{2} [A-D]"),  # United Kingdom
    _paper(6, r"[A-Za-z]{2}[0-9]{6}[A-Da-d]", named="national insurance|nino|ni number"),
    _paper(9, r"[0-9]{3}[ -]?[0-9]{3}[ -]?[0-9]{3}", _sin, "social insurance|sin"),  # Canada
    _paper(11, r"[0-9]{3}\.[0-9]{3}\.[0-9]{3}-[0-9]{2}", _cpf),  # Brazil
    _paper(11, r"[0-9]{11}", _cpf, "cpf"),
    _paper(15, r"[12] ?[0-9]{2} ?(?:0[1-9]|1[0-2]) ?[0-9]{2} ?[0-9]{3} ?[0-9]{3} ?[0-9]{2}", _nir),  # France
    _paper(7, r"[A-Za-z]{6}[0-9]{2}[A-EHLMPR-Ta-ehlmpr-t][0-9]{2}[A-Za-z][0-9]{3}[A-Za-z]", _fiscal),  # Italy
    _paper(7, r"[0-9]{8}[ -]?[A-Za-z]|[XYZxyz][ -]?[0-9]{7}[ -]?[A-Za-z]", _dni, "dni|nie|nif|identidad|documento"),
    _paper(11, r"[0-9]{2} ?[0-9]{3} ?[0-9]{3} ?[0-9]{3}", _tax_id, "steuer[- ]?id\\w*|tax id\\w*|idnr|steuer\\w*"),
    _paper(9, r"[0-9]{9}", _bsn, "bsn|burgerservicenummer|sofi\\w*"),
    _paper(11, r"[0-9]{11}", _pesel, "pesel"),
    _paper(10, r"(?:[0-9]{2})?[0-9]{6}[-+][0-9]{4}", _sweden),
    _paper(13, r"[0-9]{6}-[1-8][0-9]{6}", _korea),
    _paper(17, r"[1-9][0-9]{16}[0-9Xx]", _china),
    _paper(12, r"[2-9][0-9]{3}[ -]?[0-9]{4}[ -]?[0-9]{4}", _aadhaar, "aadhaar|aadhar|uidai"),
    _paper(4, r"[A-Za-z]{3}[PCHABGJLFTpchabgjlft][A-Za-z][0-9]{4}[A-Za-z]", named="pan|permanent account"),
    _paper(9, r"[0-9]{3}[ -]?[0-9]{3}[ -]?[0-9]{3}", _tfn, "tfn|tax file"),
    _paper(5, r"(?=[A-Za-z]*[0-9]{5})[A-Za-z0-9]{6,10}", named="passport (?:number|no|#)|passport is|reisepassnummer"),
    _paper(5, r"(?=[A-Za-z]*[0-9]{5})[A-Za-z0-9]{6,16}", named="(?:driver'?s?|driving) licen[sc]e (?:number|no|is)"),
    _paper(5, r"(?=[A-Za-z]*[0-9]{5})[A-Za-z0-9]{6,16}", named="(?:national|government|state) id (?:number|no|is)"),
)

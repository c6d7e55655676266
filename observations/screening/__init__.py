"""What must not be remembered, whoever says it: keys, passwords, numbers of cards, accounts and papers. Plain Python.

Shapes that nothing else has are refused as they stand; weaker ones only beside words that name them, and numbers only
where their check digits are right. Some secrets have no shape at all: this lowers the risk and does not end it.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from observations.screening.credentials import credential_in
from observations.screening.kinds import Secret
from observations.screening.numbers import number_in

__all__ = ["Secret", "secret_in"]

_INVISIBLE: Final = re.compile("[\u00ad\u200b-\u200f\u2060\ufeff]")
_DASHES: Final = re.compile("[\u2010-\u2015\u2212]")


def secret_in(text: str) -> Secret | None:
    """The kind of secret that a text holds, or None. Says so in no more words: the secret itself is not handed on.

    Signs that look the same are the same, and invisible ones hide nothing.
    """
    if not text.isascii():
        text = _DASHES.sub("-", _INVISIBLE.sub("", unicodedata.normalize("NFKC", text)))
    return credential_in(text) or number_in(text)

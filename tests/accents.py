"""Texts as the product takes them apart: written here anew, so that a test compares two ways and not one."""

from __future__ import annotations

import unicodedata


def without_accents(text: str) -> str:
    """Forms of one letter as one, without the marks upon it."""
    if text.isascii():
        return text
    plain = "".join(each for each in unicodedata.normalize("NFKD", text) if not "\u0300" <= each <= "\u036f")
    return unicodedata.normalize("NFC", plain)

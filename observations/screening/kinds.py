"""The kinds of secrets."""

from __future__ import annotations

from enum import StrEnum


class Secret(StrEnum):
    """What kind of secret a text holds; completes "it holds a secret (...)"."""

    PRIVATE_KEY = "private key"
    KEY = "key or token"
    PASSWORD = "password"  # noqa: S105
    CODE = "security code"
    ADDRESS = "address with a password"
    CARD = "payment card number"
    ACCOUNT = "bank account number"
    PAPER = "government number"

"""Keys, tokens, passwords and codes: by the shape their makers gave them, or by the words that introduce them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from observations.screening.kinds import Secret

# Whoever writes a text may choose it: every repetition that can fail behind itself has an end, so that looking takes
# time in proportion to the text. A secret of these begins in a way that nothing else does.
_SHAPES: Final = (
    r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}",  # Amazon
    r"gh[pousr]_[A-Za-z0-9]{30,}",
    r"github_pat_[A-Za-z0-9_]{22,}",
    r"gl(?:pat|dt|rt|ptt|ft|soat)-[\w-]{20,}",
    r"xox[abeoprs]-[\w-]{10,}",  # Slack
    r"xapp-[\w-]{20,}",
    r"sk-(?=[\w-]{0,200}\d)[\w-]{20,}",  # OpenAI, Anthropic and those who do as they do
    r"(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{16,}",  # Stripe
    r"whsec_[A-Za-z0-9+/]{20,}",
    r"AIza[\w-]{35}",  # Google
    r"ya29\.[\w-]{20,}",
    r"GOCSPX-[\w-]{20,}",
    r"npm_[A-Za-z0-9]{36}",
    r"pypi-[\w-]{50,}",
    r"SG\.[\w-]{16,100}\.[\w-]{16,}",
    r"hf_[A-Za-z0-9]{30,}",
    r"do[opr]_v1_[0-9a-f]{64}",
    r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}",
    r"sq0(?:atp|csp)-[\w-]{22,}",
    r"dapi[0-9a-f]{32}",
    r"hv[sb]\.[\w-]{24,}",  # Vault
    r"lin_api_[A-Za-z0-9]{32,}",
    r"AGE-SECRET-KEY-1[A-Z0-9]{50,}",
    r"r8_[A-Za-z0-9]{36,}",
    r"gsk_[A-Za-z0-9]{40,}",
    r"pal_[0-9a-f]{16}_[0-9a-f]{64}",  # our own
    r"[0-9]{8,10}:AA[\w-]{33}",  # Telegram
    r"AC[0-9a-f]{32}|SK[0-9a-f]{32}",  # Twilio
    r"eyJ[\w-]{8,1000}\.[\w-]{8,4000}\.[\w-]*",  # a JSON web token
)
_SHAPED: Final = re.compile(rf"(?<![A-Za-z0-9_])(?:{'|'.join(_SHAPES)})")
_PRIVATE_KEY: Final = re.compile(
    r"-----\s?BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY(?: BLOCK)?\s?-----|PuTTY-User-Key-File-[0-9]"
    r"|(?:seed|recovery|mnemonic|wallet)\s+(?:phrase|words)\b[^.\n]{0,20}?(?:is|are|:)\s*"
    r"(?:[a-z]{3,8}[ ,]+){11}[a-z]{3,8}",
    re.IGNORECASE,
)
_IN_ADDRESS: Final = re.compile(r"[a-z][a-z0-9+.-]{1,30}://[^\s/:@\"'<>]*:(?P<value>[^\s/@\"'<>]+)@", re.IGNORECASE)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_END: Final = r"(?=[\s,;.!?)\"'`\u2019\u201d]|$)"
_NAMES: Final = (
    r"(?:api|access|secret|auth|authentication|client|app|application|encryption|signing|private|licen[sc]e|session|"
    r"service|bot|deploy|webhook|personal access|refresh|ssh|root|admin|master)[ _-]?(?:access[ _-]?)?"
    r"(?:keys?|tokens?|secret)"
)
# What introduces a key, in prose or in a line of settings. Its value has a figure, or is long.
_KEY_NAMED: Final = re.compile(
    rf"(?<![A-Za-z0-9])(?:{_NAMES}|tokens?|secret)(?: (?:for|to|of) [^.:=\n]{{1,40}}?)?[\"']?"
    r"\s*(?:[:=]++|\bis\b|\bwas\b|->)\s*(?:now |still )?[\"'`]?"
    rf"(?P<value>[A-Za-z0-9_+/.=~-]{{8,1000}}+)(?:{_END}|(?<=\.)|(?=[A-Za-z0-9_+/.=~-]))",
    re.IGNORECASE,
)
_SET: Final = re.compile(
    r"\b[A-Z0-9_]{0,60}(?:SECRET|TOKEN|PASSWORD|PASSWD|API_?KEY|PRIVATE_KEY|ACCESS_KEY|CREDENTIALS?)[A-Z0-9_]{0,60}"
    r"\s?[=:]\s?[\"']?(?P<value>[^\s\"']{6,})"
)
_QUERY: Final = re.compile(
    r"[?&;](?:access_token|api_?key|key|token|sig|signature|password|pwd|secret|accountkey|sharedaccesskey)"
    r"=(?P<value>[^&;\s]{6,})",
    re.IGNORECASE,
)
_BEARER: Final = re.compile(
    r"\bbearer\s+(?P<value>[A-Za-z0-9._~+/-]{16,}=*)"
    r"|\bauthorization\s*:\s*(?:basic|token|apikey|digest|key)\s+(?P<other>\S{8,})"
    r"|\bx-api-key\s*:\s*(?P<header>\S{8,})",
    re.IGNORECASE,
)

_CUE: Final = (
    r"(?:pass ?words?|passwd|pass ?phrases?|passcodes?|pwd|passwort|kennwort|mot de passe|contrase(?:ñ|n)a|senha|"
    r"wachtwoord|lösenord|hasło|пароль|密码|密碼|パスワード|비밀번호)"
)
_PASSWORD: Final = re.compile(
    rf"(?<![A-Za-z]){_CUE}(?:\s+(?:for|to|of|on|für|pour|para)\s+[^.:=\n]{{1,40}}?)?[\"']?"
    r"\s*(?P<by>[:=]+|->|\bis\b|\bwas\b|\bare\b|\bist\b|\best\b|\bes\b|\bé\b|\bè\b|\bär\b|\bto\b|是|は|は、|은|는|—|-\s)\s*"
    r"(?:(?:now|still|set to|just|simply|changed to)\s+)?(?P<quoted>[\"'`\u201c\u2018]?)"
    r"(?P<value>[^\s\"'`\u201c\u201d]+)(?P<after>[\"'`\u201d\u2019]?\s*\S*)",
    re.IGNORECASE,
)
_CODE: Final = re.compile(
    r"\b(?:pin(?: code| number)?|(?:safe|alarm|door|gate|lock|entry|access|security|unlock|garage|lockbox)[ -]code|"
    r"cvv2?|cvc2?|otp|one[- ]time (?:code|password)|"
    r"(?:verification|2fa|mfa|authentication|login|recovery|backup) codes?)"
    r"(?: (?:for|to|of|on) [^.:=\n]{1,40}?)?\s*(?:[:=]|\bis\b|\bwas\b|\bare\b)?\s*(?:now |still )?"
    r"[\"'`]?(?P<value>[0-9][0-9 -]{1,10}[0-9]|[A-Z0-9]{2,6}-[A-Z0-9-]{2,})\b",
    re.IGNORECASE,
)

# What is said of a password without being one.
_ORDINARY: Final = _words(
    "a an the my your his her its our their this that these those it what which who not no never always too very so "
    "such still just only also really quite more less most least about on in at for from of by to with without as if "
    "when because and or but easy hard difficult impossible possible strong weak secure insecure safe unsafe long "
    "short simple complex complicated good bad great terrible wrong right correct incorrect invalid valid old new lost "
    "gone forgotten missing mandatory optional important hidden secret private known unknown public reset blank empty "
    "default same different unique stolen random fun okay fine there here mine yours somewhere something nothing "
    "anything everything none see ask set written kept sent shown ready be been due up down out off sensitive "
    "case-sensitive manager managers policy problem trouble crucial essential vital nowhere sicher falsch nicht "
    "weg ein eine das der die que un una le la"
)
_SAID_OF: Final = ("ed", "ing", "ly", "able", "ible", "'s", "n't")
_PLACEHOLDER: Final = re.compile(
    r"[<\[{($%].*|[*x•.…_-]+|(?:your|my|the|some|example|changeme|redacted|hidden|placeholder)[\w-]*", re.IGNORECASE
)
_TRAILING: Final = ".,;:!?)]}\"'`\u2019\u201d"


# Whatever a pattern finds in a text of plain letters has one of its signs, in small letters: a text without them, as
# most are, need not be looked through.
_SIGNS: Final[dict[re.Pattern[str], tuple[str, ...]]] = {
    _PRIVATE_KEY: ("private key", "putty", "seed", "recovery", "mnemonic", "wallet"),
    _KEY_NAMED: ("key", "token", "secret"),
    _BEARER: ("bearer", "authorization", "x-api-key"),
    _IN_ADDRESS: ("://",),
    _SET: ("=", ":"),
    _QUERY: ("=",),
    _PASSWORD: ("pass", "pwd", "kennwort", "contrase", "senha", "wachtwoord"),
    _CODE: ("pin", "code", "cvv", "cvc", "otp", "password"),
}


def credential_in(text: str) -> Secret | None:
    """The kind of key, token, password or code in a text, or None."""
    signs = text.lower() if text.isascii() else ""
    if any(_found(text, signs, _PRIVATE_KEY)):
        return Secret.PRIVATE_KEY
    if _SHAPED.search(text) or any(map(_is_key, _values(text, signs, _KEY_NAMED, _BEARER))):
        return Secret.KEY
    if any(map(_is_given, _values(text, signs, _IN_ADDRESS))):
        return Secret.ADDRESS
    if any(map(_is_given, _values(text, signs, _SET, _QUERY))):
        return Secret.KEY
    if any(map(_is_password, _found(text, signs, _PASSWORD))):
        return Secret.PASSWORD
    return Secret.CODE if any(_found(text, signs, _CODE)) else None


def _found(text: str, signs: str, pattern: re.Pattern[str]) -> Iterator[re.Match[str]]:
    """What a pattern finds; `signs` is the text in small letters, or empty where each has to be looked for."""
    if signs:
        for sign in _SIGNS[pattern]:
            if sign in signs:
                return pattern.finditer(text)
        return iter(())
    return pattern.finditer(text)


def _values(text: str, signs: str, *patterns: re.Pattern[str]) -> Iterator[str]:
    """What the patterns take for a value."""
    for pattern in patterns:
        for found in _found(text, signs, pattern):
            yield next(value for value in found.groupdict().values() if value is not None)


def _is_given(value: str) -> bool:
    """Whether a value stands there itself, and not a word in its place."""
    return _PLACEHOLDER.fullmatch(value) is None


def _is_key(value: str) -> bool:
    """Whether a value is no word of prose: a figure among letters, or many of both cases."""
    value = value.rstrip(_TRAILING)
    if not _is_given(value) or len(value) < 8:
        return False
    figures, letters = sum(map(str.isdigit, value)), sum(map(str.isalpha, value))
    mixed = value != value.lower() and value[1:] != value[1:].lower()
    return (figures >= 2 and (letters >= 2 or figures >= 12)) or (mixed and len(value) >= 20)


def _is_password(found: re.Match[str]) -> bool:
    """Whether what follows the word is one: no word of prose, or a word that ends its clause."""
    value = found["value"].rstrip(_TRAILING)
    if len(value) < 4 or not _is_given(value) or value.casefold() in _ORDINARY:
        return False
    if _looks_made(value):
        return True
    if found["quoted"] or found["by"][0] in ":=":
        return not value.casefold().endswith(_SAID_OF)
    ends = len(value) < len(found["value"]) or not any(map(str.isalpha, found["after"]))
    return ends and not value.casefold().endswith(_SAID_OF)


def _looks_made(value: str) -> bool:
    """Whether a word has figures, signs or capitals inside."""
    inside = value.replace("'", "").replace("-", "").replace("\u2019", "")
    if inside.isascii() and inside.isalpha():
        return value[1:] != value[1:].lower() and not value.isupper()
    return not inside.isalpha()

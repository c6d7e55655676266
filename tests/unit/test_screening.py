"""Secrets are refused by kind, and ordinary talk about them is not. Every value here is made up."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from observations.screening import Secret, credentials, numbers, secret_in
from tests.jsonl import real

HEX: Final = "3f9a0c7be1d24586"
MIXED: Final = "a8Fk2Lq9ZxT4mB7c"

# Put together here so that no scanner takes this file for a leak.
SECRETS: Final = {
    "amazon": ("The key is " + "AKIA" + "Q7EXAMPLE4NOTAKE", Secret.KEY),
    "amazon, for a while": ("ASIA" + "Q7EXAMPLE4NOTAKE and that's it", Secret.KEY),
    "amazon's other half": ("aws_secret_access_key = " + MIXED + MIXED + "xY3/Zp0w", Secret.KEY),
    "github": ("use gh" + "p_" + MIXED * 2 + "abcd", Secret.KEY),
    "github, fine grained": ("github" + "_pat_11ABCDEFG0" + MIXED + "_" + MIXED, Secret.KEY),
    "gitlab": ("glpat" + "-" + MIXED + "abcd", Secret.KEY),
    "slack": ("xox" + "b-123456789012-" + MIXED, Secret.KEY),
    "openai": ("OpenAI gave me sk" + "-proj-" + MIXED + MIXED, Secret.KEY),
    "anthropic": ("sk" + "-ant-api03-" + MIXED + "-" + MIXED, Secret.KEY),
    "stripe": ("sk" + "_live_" + MIXED + "99", Secret.KEY),
    "google": ("AI" + "zaSyA" + MIXED * 2, Secret.KEY),
    "npm": ("npm" + "_" + MIXED + MIXED + "abcd", Secret.KEY),
    "hugging face": ("hf" + "_" + MIXED + MIXED, Secret.KEY),
    "sendgrid": ("SG" + "." + MIXED + "abcdef." + MIXED + MIXED, Secret.KEY),
    "twilio": ("AC" + HEX + HEX, Secret.KEY),
    "telegram": ("my bot is 123456789:" + "AA" + MIXED + MIXED + "z", Secret.KEY),
    "our own": ("pal" + "_" + HEX + "_" + HEX * 4, Secret.KEY),
    "json web token": ("eyJ" + "hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0." + MIXED, Secret.KEY),
    "bearer": ("Authorization: Bearer " + MIXED + HEX, Secret.KEY),
    "bearer in prose": ("send it with bearer " + MIXED + HEX, Secret.KEY),
    "basic": ("Authorization: Basic " + "dXNlcjpodW50ZXIyMg==", Secret.KEY),
    "header": ("curl -H 'X-Api-Key: " + HEX + "'", Secret.KEY),
    "api key in prose": ("My API key for the weather service is " + HEX, Secret.KEY),
    "token in prose": ("the access token is now " + MIXED + ".", Secret.KEY),
    "setting": ("SMTP_PASSWORD=tuesday-otter", Secret.KEY),
    "setting, exported": ("export DJANGO_SECRET_KEY='" + MIXED + "'", Secret.KEY),
    "json": ('{"client_secret": "' + MIXED + '"}', Secret.KEY),
    "address of a call": ("https://api.example.org/v1?api_key=" + HEX, Secret.KEY),
    "private key": ("-----BEGIN " + "RSA PRIVATE KEY-----\nMIIEow", Secret.PRIVATE_KEY),
    "openssh key": ("-----BEGIN " + "OPENSSH PRIVATE KEY----- b3Blbn", Secret.PRIVATE_KEY),
    "pgp key": ("-----BEGIN " + "PGP PRIVATE KEY BLOCK-----", Secret.PRIVATE_KEY),
    "recovery phrase": (
        "My seed phrase is apple river stone cloud tiger lemon chair piano ocean maple eagle frost",
        Secret.PRIVATE_KEY,
    ),
    "database": ("postgres://app:" + "tops3cret@db.example.org/app", Secret.ADDRESS),
    "broker": ("redis://:" + "otter@cache:6379/0", Secret.ADDRESS),
    "connection string": ("Server=db;Database=app;User=sa;Password=" + "Otter-77;", Secret.KEY),
    "password": ("my password is hunter2", Secret.PASSWORD),
    "a word as password": ("The password is swordfish.", Secret.PASSWORD),
    "password of something": ("the password for the wifi is bluewhale", Secret.PASSWORD),
    "password after a colon": ("Password: correcthorse", Secret.PASSWORD),
    "quoted password": ('Her password is "purple rain"', Secret.PASSWORD),
    "changed password": ("I changed my password to Otter!77", Secret.PASSWORD),
    "passphrase": ("passphrase = tr0ub4dor", Secret.PASSWORD),
    "german": ("Das Passwort ist Fischotter7", Secret.PASSWORD),
    "french": ("le mot de passe est Loutre-9", Secret.PASSWORD),
    "spanish": ("la contraseña es nutria99", Secret.PASSWORD),
    "pin": ("My PIN is 4821", Secret.CODE),
    "pin of a card": ("the pin for my debit card is 4821", Secret.CODE),
    "cvv": ("exp 04/29, CVV 831", Secret.CODE),
    "alarm": ("The alarm code is 90210", Secret.CODE),
    "one time": ("your verification code: 553 201", Secret.CODE),
    "visa": ("card 4111 1111 1111 1111", Secret.CARD),
    "visa, dashed": ("4012-8888-8888-1881", Secret.CARD),
    "mastercard": ("pay with 5555555555554444 please", Secret.CARD),
    "mastercard, new": ("2223003122003222", Secret.CARD),
    "amex": ("3782 822463 10005", Secret.CARD),
    "discover": ("6011111111111117", Secret.CARD),
    "diners": ("30569309025904", Secret.CARD),
    "jcb": ("3530111333300000.", Secret.CARD),
    "figure by figure": ("4 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1", Secret.CARD),
    "other dashes": ("4111\u20131111\u20131111\u20131111", Secret.CARD),
    "wide figures": ("\uff14\uff11\uff11\uff11 1111 1111 1111", Secret.CARD),
    "hidden between": ("4111\u200b1111\u200b1111\u200b1111", Secret.CARD),
    "iban": ("DE89 3704 0044 0532 0130 00", Secret.ACCOUNT),
    "iban in one": ("to GB82WEST12345698765432 by Friday", Secret.ACCOUNT),
    "iban, small": ("fr14 2004 1010 0505 0001 3m02 606", Secret.ACCOUNT),
    "iban before words": ("NL91 ABNA 0417 1643 00 from Jan", Secret.ACCOUNT),
    "account": ("my account number is 12345678", Secret.ACCOUNT),
    "us": ("SSN 219-09-9999", Secret.PAPER),
    "us, bare": ("my social security number is 219099999", Secret.PAPER),
    "us, alone": ("It's 219-09-9999", Secret.PAPER),
    "uk": ("AB 12 34 56 C", Secret.PAPER),
    "uk in one": ("national insurance number ab123456c", Secret.PAPER),
    "canada": ("My SIN is 046 454 286", Secret.PAPER),
    "brazil": ("529.982.247-25", Secret.PAPER),
    "france": ("2 55 08 14 168 025 38", Secret.PAPER),
    "italy": ("RSSMRA85T10A562S", Secret.PAPER),
    "spain": ("Mi DNI es 12345678Z", Secret.PAPER),
    "spain, foreign": ("NIE X1234567L", Secret.PAPER),
    "germany": ("Steuer-ID 86095742719", Secret.PAPER),
    "netherlands": ("BSN 111222333", Secret.PAPER),
    "poland": ("PESEL 44051401359", Secret.PAPER),
    "sweden": ("811218-9876", Secret.PAPER),
    "korea": ("900101-1234567", Secret.PAPER),
    "china": ("11010519491231002X", Secret.PAPER),
    "india": ("Aadhaar 2341 2341 2346", Secret.PAPER),
    "india, tax": ("PAN ABCPE1234F", Secret.PAPER),
    "australia": ("TFN 123 456 782", Secret.PAPER),
    "passport": ("My passport number is X1234567", Secret.PAPER),
    "licence": ("driver's license number: D1234567", Secret.PAPER),
}

# What people say of such things, and what only looks like them.
HARMLESS: Final = (
    "I forgot my password again.",
    "The password is too short.",
    "My password is hard to remember.",
    "The password is required.",
    "Your password is expired",
    "password: required",
    "Password: <your password>",
    "She changed her password yesterday.",
    "I use a password manager called Otter.",
    "The password was leaked in the breach of 2019.",
    "The token expired after 30 days.",
    "The API key is stored in the vault.",
    "API key rotation is every 90 days",
    "Set OPENAI_API_KEY=<your key> first",
    "PASSWORD=${DB_PASSWORD}",
    "postgres://app:<password>@db/app",
    "postgres://db.example.org:5432/app",
    "https://example.org/a:b@c",
    "He is the bearer of good news and responsibilities",
    "Basic understanding of French",
    "The key to happiness is friendship",
    "The secret is practice, practice, practice",
    "My secret ingredient is cinnamon",
    "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "550e8400-e29b-41d4-a716-446655440000",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI ana@laptop",
    "Call me at 555-123-4567 or +49 170 1234567",
    "order 1234567890123456",
    "4111 1111 1111 1112",
    "0000 0000 0000 0000",
    "1700000000000 is a time",
    "pi is 3.14159265358979323846",
    "from 1990 1991 1992 1993 on",
    "DE89 3704 0044 0532 0130 01",
    "IS09 is a version",
    "part 123-45-678",
    "000-12-3456",
    "The ISBN is 978-3-16-148410-0",
    "It costs 1.234.567-89",
    "811232-9876",
    "The postal code is 53113",
    "The source code is at line 4821",
    "I pinned 4821 photos",
    "My zip code is 90210",
    "The dress code is 100% formal",
    "bug 12345 is fixed in 2.3.4",
    "sk-learn-compatible-estimators are fine",
    "The passport is in the drawer",
    "I got my driver's license in 2019",
    "12345678Z is a plate",
    "86095742719 steps",
)


@pytest.mark.parametrize("name", SECRETS)
def test_a_secret_is_found_by_its_kind(name: str) -> None:
    text, kind = SECRETS[name]
    assert secret_in(text) is kind
    assert secret_in(f"Ana told me this: {text}") is kind


@pytest.mark.parametrize("text", HARMLESS)
def test_ordinary_talk_is_no_secret(text: str) -> None:
    assert secret_in(text) is None


def test_there_are_secrets_enough_and_of_every_kind() -> None:
    assert len(SECRETS) >= 40
    assert {kind for _, kind in SECRETS.values()} == set(Secret)


@pytest.mark.parametrize("name", ["locomo_episodes.jsonl", "persona_observations.jsonl", "facts_timeline.jsonl"])
def test_real_talk_raises_no_false_alarm(name: str) -> None:
    """None of 2,960 turns, 5,578 facts about people and 902 dated facts with their sources holds a secret."""
    found: Counter[Secret] = Counter()
    with real(name).open(encoding="utf-8") as lines:
        texts = [value for line in lines for value in json.loads(line).values() if isinstance(value, str)]
    found.update(secret for text in texts if (secret := secret_in(text)))
    assert len(texts) > 2_000
    assert not found


@given(st.text(max_size=200))
def test_any_text_is_looked_at_without_an_error(text: str) -> None:
    assert secret_in(text) in (None, *Secret)


@pytest.mark.parametrize(
    "piece", ["a", "A_", "1", "4111 ", "password is ", "://", "1-", "DE89 ", "token ", "eyJaaaaaaaa."]
)
def test_a_long_text_takes_no_long_time(piece: str) -> None:
    """Linear, or near enough: a turn may hold a whole log."""
    secret_in(piece * (200_000 // len(piece)))


@pytest.mark.parametrize("text", [text for text, _ in SECRETS.values()])
def test_a_text_is_passed_over_only_where_looking_would_find_nothing(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a pattern finds has one of its signs, however it is written; and figures enough for a number."""
    written = [text, text.lower(), text.upper(), text.title(), text.swapcase()]
    quick = [secret_in(each) for each in written]
    monkeypatch.setattr(credentials, "_SIGNS", dict.fromkeys(credentials._SIGNS, ("",)))
    monkeypatch.setattr(numbers, "_PAPERS", tuple(replace(paper, fewest=0) for paper in numbers._PAPERS))
    assert [secret_in(each) for each in written] == quick


DRAWN: Final = [paper for paper in numbers._PAPERS if "(?=" not in paper.shape.pattern]  # others say it themselves


@pytest.mark.parametrize("paper", DRAWN, ids=lambda paper: paper.shape.pattern[40:70])
@settings(max_examples=10)
@given(data=st.data())
def test_no_number_has_fewer_figures_than_its_kind_says(paper: numbers._Paper, data: st.DataObject) -> None:
    found = data.draw(st.from_regex(paper.shape, fullmatch=True))
    assert sum(map(str.isdigit, found)) >= paper.fewest

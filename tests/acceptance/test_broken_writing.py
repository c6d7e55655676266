"""What writing by hand and by program let through once: each test failed before its repair, but for the controls."""

from __future__ import annotations

import time

import pytest

from observations import fencing, screening
from observations.screening import Secret

pytestmark = pytest.mark.django_db(transaction=True)

SIGNS = 30_000  # a third of the longest text there may be


# --- a text that takes minutes to look at ----------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["", "<"])
@pytest.mark.parametrize(
    "again",
    [
        *("=", "token=", "TOKEN", "sk-", "-eyJaaaaaaaa", "-eyJaaaaaaaa.", "-SG.aaaaaaaaaaaaaaaaa", "secret for ", ":"),
        *("AB12abcd ", "AB12 a b c d ", "password is now ", "ab://x:", "aaa+", "4111 ", "123-45-", "A_KEY "),
        *("12345678:AA", "seed phrase abc ", "-----BEGIN ", "api key is "),
    ],
)
def test_no_text_takes_longer_to_be_looked_at_than_its_length_explains(again: str, end: str) -> None:
    """What grows with the square takes seconds at this length, and minutes at the longest."""
    text = f"token{again * (SIGNS // len(again))}{end}"[-SIGNS:]
    started = time.process_time()
    screening.secret_in(text)
    assert time.process_time() - started < 0.6


@pytest.mark.parametrize("again", ["<memory ", "<memory", "</memory", "<memory></memory", "<memory>"])
def test_no_text_keeps_the_fence_busy(again: str) -> None:
    text = again * (200_000 // len(again))
    started = time.process_time()
    assert len(fencing.without_own(text)) == len(text)
    assert time.process_time() - started < 0.6


@pytest.mark.parametrize(
    "text",
    [
        "token ===== aZ83hfk20dkf93jd",
        "api key: abcd1234efgh5678.<br>",
        "the secret for the hub is q" + "7xK" * 500,
        "eyJhbGciOiJIUzI1NiJ9." + "eyJzdWIiOiIx" * 200 + ".c2ln",
        "VERY_LONG_NAME_OF_SOME_SERVICE_TOKEN_OF_THE_DAY=hunter2hunter2",
        "GB82 WEST 1234 5698 7654 32",
        "de89 3704-0044 0532-0130 00 is where to send it",
        "sk-proj-abcdefghijklmnopqrstuvwxyz-1",
    ],
)
def test_what_was_found_before_is_found_still(text: str) -> None:
    """The control of the test above: nothing is looked at faster by looking away."""
    assert screening.secret_in(text) in set(Secret)

"""What a call costs and what a model is known for: by family of models, from the provider's published list.

A price in dollars per million tokens is the same number in microdollars per token; costs are whole microdollars,
rounded up. What is not known costs as much as the dearest that is known: ignorance must not exceed a budget.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Final

from observations.llm.asking import Request, Usage

DEFAULT_MODEL: Final = "claude-haiku-5-5"

CACHE_WRITE: Final = 1.25  # of the price of input, for a cache of five minutes
CACHE_READ: Final = 0.1  # of the price of input; some families pay less
BATCH: Final = 0.5  # of every price
TOKENS_PER_BYTE: Final = 2 / 3  # an upper bound for text; English has about one token in four bytes
OVERHEAD_TOKENS: Final = 500  # of what the provider adds to a question for a structured answer


@dataclass(frozen=True, slots=True)
class Price:
    """Dollars per million tokens. Questions of more than `long_from` tokens cost `long_times` as much."""

    input: float
    output: float
    long_from: int = 0  # 0: every question costs the same
    long_times: float = 1.0

    def cost(self, usage: Usage, *, batch: bool = False) -> int:
        """Microdollars of one call."""
        prompt = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
        read = usage.input_tokens + usage.cache_write_tokens * CACHE_WRITE + usage.cache_read_tokens * CACHE_READ
        times = (BATCH if batch else 1.0) * (self.long_times if 0 < self.long_from < prompt else 1.0)
        return math.ceil(round((read * self.input + usage.output_tokens * self.output) * times, 6))

    def at_most(self, request: Request, *, batch: bool = False) -> int:
        """Microdollars that the request can cost: every byte of it written to the cache, and the longest answer."""
        size = sum(len(text.encode(errors="replace")) for text in (request.system, request.text, str(request.schema)))
        tokens = math.ceil(size * TOKENS_PER_BYTE) + OVERHEAD_TOKENS
        return self.cost(Usage(cache_write_tokens=tokens, output_tokens=request.max_tokens), batch=batch)


@dataclass(frozen=True, slots=True)
class Family:
    """What is known of a family of models.

    `cacheable_tokens`: as the provider lists it ("Cache limitations" of platform.claude.com/docs, prompt caching, as of
    October 2026). Where another host of the family, or an older edition of the list, asks for more, that is taken: a
    mark without effect would pretend, a missing one costs a few microdollars.
    """

    price: Price
    cacheable_tokens: int  # a shorter beginning of a question is not cached, marked or not, and no error says so
    thinks_unless_told: bool = False  # and may be told not to


_NANO = Price(0.10, 0.50, long_from=100_000, long_times=5.0)
_FAMILIES: Final[dict[str, Family]] = {
    "claude-haiku-5-5": Family(_NANO, 512, thinks_unless_told=True),
    "claude-haiku-4-5": Family(Price(1, 5), 4096),
    "claude-sonnet-5-5": Family(Price(2, 10), 512),
    "claude-sonnet-5": Family(Price(2, 10), 1024),
    "claude-sonnet-4-6": Family(Price(3, 15), 2048),
    "claude-sonnet-4-5": Family(Price(3, 15), 1024),
    "claude-opus-5-5": Family(Price(4, 20), 512),
    "claude-opus-5": Family(Price(5, 25), 512),
    "claude-opus-4-8": Family(Price(5, 25), 1024),
    "claude-opus-4-7": Family(Price(5, 25), 4096),
    "claude-opus-4-6": Family(Price(5, 25), 4096),
    "claude-opus-4-5": Family(Price(5, 25), 4096),
    "claude-fable-5-2": Family(Price(10, 50), 1024),
    "claude-fable-5-1": Family(Price(10, 50), 1024),
    "claude-fable-5": Family(Price(10, 50), 1024),
    "claude-mythos-5-2": Family(Price(10, 50), 1024),
    "claude-mythos-5-1": Family(Price(10, 50), 1024),
    "claude-mythos-5": Family(Price(10, 50), 1024),
    "claude-mythos-preview": Family(Price(25, 125), 4096),
}
_AFTER_FAMILY = r"(?:$|[@:\[]|-\d{8}|-v\d|-latest)"  # a date, a host's version; never the number of another family
UNKNOWN: Final = Family(
    max((family.price for family in _FAMILIES.values()), key=lambda price: (price.output, price.input)),
    max(family.cacheable_tokens for family in _FAMILIES.values()),
)


def family(model: str) -> Family:
    """What is known of the model: also under another host's name for it (`anthropic.claude-haiku-5-5`)."""
    for name, found in _FAMILIES.items():
        if re.search(rf"(?:^|[./:]){re.escape(name)}{_AFTER_FAMILY}", model):
            return found
    return UNKNOWN


def price_in(text: str) -> Price | None:
    """The price in the text of a setting, "input,output" in dollars per million tokens; None for an empty one.

    Raises ValueError, with a sentence, for anything else.
    """
    if not text.strip():
        return None
    try:
        given, answered = (float(part) for part in text.split(","))
    except ValueError:
        raise ValueError('PALIMPSEST_MODEL_PRICES is not two numbers; write "input,output", such as "1,5".') from None
    if not (0 <= given < math.inf and 0 <= answered < math.inf):
        raise ValueError("PALIMPSEST_MODEL_PRICES is negative or not finite; write dollars per million tokens.")
    return Price(given, answered)

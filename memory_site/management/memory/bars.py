"""The progress bar of sub-commands that take long."""

from __future__ import annotations

import sys
from typing import NoReturn

from tqdm import tqdm


def bar(what: str, total: int | None, unit: str) -> tqdm[NoReturn]:
    """A progress bar on standard error, where that is a terminal."""
    return tqdm(desc=what, total=total, unit=unit, unit_scale=unit == "B", file=sys.stderr, disable=None, leave=False)

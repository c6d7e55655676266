"""Probe suites on a real store: importing them, asking their probes as an agent would, and keeping what was counted.

A probe is asked by the same search that agents use, from the call site "probe": it leaves no trace of a use.
"""

from consolidation.probing.importing import (
    LARGEST,
    LONGEST_NAME,
    MOST,
    NotImported,
    Resolved,
    import_suite,
    keep,
    nothing,
    read_file,
    resolve,
)
from consolidation.probing.numbers import NO_SUITE, fallen, numbers
from consolidation.probing.proposing import MOST_PROPOSED, Draft, draft_file, propose, suite_file
from consolidation.probing.running import Progress, Ran, count, probes_of, run_suite
from consolidation.probing.waiting import RUN_SUITE, Waiting, run_asked, run_later, waiting
from consolidation.probing.worlds import CALL_SITE, Stored, World

__all__ = [
    "CALL_SITE",
    "LARGEST",
    "LONGEST_NAME",
    "MOST",
    "MOST_PROPOSED",
    "NO_SUITE",
    "RUN_SUITE",
    "Draft",
    "NotImported",
    "Progress",
    "Ran",
    "Resolved",
    "Stored",
    "Waiting",
    "World",
    "count",
    "draft_file",
    "fallen",
    "import_suite",
    "keep",
    "nothing",
    "numbers",
    "probes_of",
    "propose",
    "read_file",
    "resolve",
    "run_asked",
    "run_later",
    "run_suite",
    "suite_file",
    "waiting",
]

"""IMPACT: what reading would count if a plan were applied, before it is (R112).

A projection, not an application that is taken back: each scope is searched as it would be, with what operations would
take out of the reads left out and what they would write beside it. Nothing of memory is written; the figures are kept.
"""

from consolidation.projecting.figuring import appliable, automatic_of, project, suites
from consolidation.projecting.standing import Shown, fallen, shown, sign_off
from consolidation.projecting.worlds import Projected, projected

__all__ = [
    "Projected",
    "Shown",
    "appliable",
    "automatic_of",
    "fallen",
    "project",
    "projected",
    "shown",
    "sign_off",
    "suites",
]

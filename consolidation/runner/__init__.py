"""APPLY and UNDO. With ingest and forgetting, the only code that may have memory changed.

Locks are always taken in this order: the scope (exclusive, so one applier per scope), the operation, the memory rows in
id order, the consumptions. Killed anywhere, an operation is wholly done or not done (R56, R82); doing it twice is doing
it once (I8). `execution.py` holds apply and undo, `effects.py` what each kind does to memory, `work.py` what stands
under lock, `previewing.py` what an application would do to the reads, `unwinding.py` undoing with what was built on it.
"""

from consolidation.operations import Kind
from consolidation.runner.effects import ERASE_PRUNED
from consolidation.runner.execution import UndoPreview, apply, erase_pruned, undo, undo_preview
from consolidation.runner.previewing import ApplyPreview, apply_preview, draft_claim, told_claim
from consolidation.runner.unwinding import Later, Unwinding, unwind, unwinding
from consolidation.runner.work import Outcome, Result

# approve-and-apply in one step is offered for these only
REVERSIBLE = (Kind.MERGE, Kind.SUPERSEDE, Kind.ARCHIVE, Kind.PROMOTE, Kind.COMPACT, Kind.ALIAS)

__all__ = [
    "ERASE_PRUNED",
    "REVERSIBLE",
    "ApplyPreview",
    "Later",
    "Outcome",
    "Result",
    "UndoPreview",
    "Unwinding",
    "apply",
    "apply_preview",
    "draft_claim",
    "erase_pruned",
    "told_claim",
    "undo",
    "undo_preview",
    "unwind",
    "unwinding",
]

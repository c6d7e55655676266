"""How often each rule is wrong: what its judgements are called, what people's labels say of them, and when a rule may
not decide alone any more. Plain values; `sampling` reads the labels and keeps what follows.
"""

from consolidation.accuracy.bands import Band, Demoted, exceeds, proven, spoken, worst
from consolidation.accuracy.naming import Named, asked_instead, named

__all__ = ["Band", "Demoted", "Named", "asked_instead", "exceeds", "named", "proven", "spoken", "worst"]

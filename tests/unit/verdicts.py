"""The merge rule's verdict on two texts, at a scripted similarity."""

from __future__ import annotations

from consolidation.candidates import Link, Met
from consolidation.merge import Verdict, judge
from consolidation.policy import Policy
from tests.unit.rows import PROFILE, row

KEY = ("subject", "predicate", "object")


def verdict_of(a: str, b: str, *, cosine: float, keyed: bool = False) -> Verdict:
    """What the two texts are to each other as rows of one scope: without keys, or with one key."""
    left, right = (row(number, text, KEY if keyed else ("", "", "")) for number, text in ((1, a), (2, b)))
    met = Met.TEXT if left.normalised == right.normalised else Met.NEIGHBOUR
    return judge(left, right, link=Link(1, 2, cosine, met), profile=PROFILE, policy=Policy()).verdict

"""Calls that write: each checks the caller, makes one domain call and translates its answer."""

from __future__ import annotations

from observations.calls import schemas
from observations.records import Caller


def observe(*, caller: Caller, asked: schemas.Observe) -> schemas.Observed:
    """Record turns word for word; the answer says what will become of extraction."""
    raise NotImplementedError


def remember(*, caller: Caller, asked: schemas.Remember) -> schemas.Remembered:
    """Keep one claim in the caller's words; what is there in the same words is acknowledged, not stored twice."""
    raise NotImplementedError


def store_facts(*, caller: Caller, asked: schemas.StoreFacts) -> schemas.FactsStored:
    """Keep a list of facts about one user, each said by a named person; one bad fact does not sink the others."""
    raise NotImplementedError


def correct(*, caller: Caller, asked: schemas.Correct) -> schemas.Remembered:
    """Put a new claim in the place of one exact row, or before a person where the old one is a person's."""
    raise NotImplementedError


def retire(*, caller: Caller, asked: schemas.Retire) -> schemas.Remembered:
    """Take one exact row out of the reads; it can be restored."""
    raise NotImplementedError


def restore(*, caller: Caller, asked: schemas.Restore) -> schemas.Remembered:
    """Bring one retired row back into the reads."""
    raise NotImplementedError


def forget(*, caller: Caller, asked: schemas.Forget) -> schemas.Requested:
    """Ask that something be forgotten for good; a person decides."""
    raise NotImplementedError


def propose(*, caller: Caller, asked: schemas.Propose) -> schemas.Requested:
    """Put a change of rows before a person."""
    raise NotImplementedError


def residue_hold(*, caller: Caller, asked: schemas.HoldResidue) -> schemas.ResidueHeld:
    """Hand in what was noticed in a run, for the prompts of the next three days."""
    raise NotImplementedError

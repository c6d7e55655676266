"""Calls that read: what the caller may see, and nothing else. A dead store is an empty, incomplete answer (R133)."""

from __future__ import annotations

from observations.calls import schemas
from observations.records import Caller


def get_observation(*, caller: Caller, asked: schemas.OneObservation) -> schemas.Observation:
    """One current row with its evidence."""
    raise NotImplementedError


def history_of_observation(*, caller: Caller, asked: schemas.OneObservation) -> schemas.History:
    """How a row came to be and what became of it: who, when and why."""
    raise NotImplementedError


def list_observations(*, caller: Caller, asked: schemas.ListObservations) -> schemas.Page:
    """Current rows, newest first, page by page."""
    raise NotImplementedError


def search(*, caller: Caller, asked: schemas.Search) -> schemas.Found:
    """Current rows by meaning and by words."""
    raise NotImplementedError


def known(*, caller: Caller, asked: schemas.Known) -> schemas.Found:
    """The two rows nearest to a query: is this known already?"""
    raise NotImplementedError


def prompt(*, caller: Caller, asked: schemas.PromptFor) -> schemas.Prompt:
    """The memory block for a prompt; "" when there is nothing to say."""
    raise NotImplementedError


def intake_status(*, caller: Caller, asked: schemas.IntakeStatus) -> schemas.Intake:
    """Whether the turns of a scope are read in the background, and how many wait."""
    raise NotImplementedError

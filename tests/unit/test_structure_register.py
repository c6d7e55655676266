"""Every column that could hold words is in the register (DESIGN 3, "Text is registered"; I19)."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from django.apps import apps
from django.contrib.postgres.fields import ArrayField
from django.db import models
from pgvector.django import VectorField

from observations.register import MEMORY_TEXT, NOT_MEMORY_TEXT, OF_THE_DATABASE, Erasing

APPS = ("observations", "consolidation")
HOLDS_WORDS = (models.CharField, models.TextField, models.JSONField, models.BinaryField, VectorField, ArrayField)
HOW_TO_FIX = (
    "observations/register.py: list it in MEMORY_TEXT with its way of erasing (and make the erase reach it), or in "
    "NOT_MEMORY_TEXT with the reason why nobody's words get into it."
)


def our_models() -> list[type[models.Model]]:
    return [model for app in APPS for model in apps.get_app_config(app).get_models()]


def columns(model: type[models.Model]) -> list[models.Field[object, object]]:
    return [field for field in model._meta.get_fields() if isinstance(field, models.Field) and field.concrete]


def unlisted(among: Iterable[type[models.Model]]) -> list[str]:
    """Columns that could hold words and are in neither list."""
    names = (
        f"{model.__name__}.{field.name}"
        for model in among
        for field in columns(model)
        if isinstance(field, HOLDS_WORDS)
    )
    return [name for name in names if name not in MEMORY_TEXT and name not in NOT_MEMORY_TEXT]


def test_every_column_that_could_hold_words_is_listed() -> None:
    missing = unlisted(our_models())
    assert not missing, f"not in the register of text: {', '.join(missing)}. {HOW_TO_FIX}"


def test_nothing_is_listed_that_is_not_a_column_or_listed_twice() -> None:
    names = {f"{model.__name__}.{field.name}" for model in our_models() for field in columns(model)}
    assert not names & OF_THE_DATABASE
    gone = sorted((set(MEMORY_TEXT) | set(NOT_MEMORY_TEXT)) - names - OF_THE_DATABASE)
    assert not gone, (
        f"the register lists {', '.join(gone)}, which no model has: remove the line from observations/register.py"
    )
    assert not set(MEMORY_TEXT) & set(NOT_MEMORY_TEXT)


def test_every_line_says_how_or_why() -> None:
    assert all(isinstance(way, Erasing) for way in MEMORY_TEXT.values())
    short = [name for name, reason in NOT_MEMORY_TEXT.items() if len(reason) < 3]
    assert not short


@pytest.mark.parametrize(
    "field",
    [
        models.CharField(max_length=10),
        models.SlugField(),
        models.URLField(),
        models.TextField(),
        models.JSONField(),
        models.BinaryField(),
        VectorField(),
        ArrayField(models.IntegerField()),
    ],
    ids=lambda field: type(field).__name__,
)
def test_a_new_column_of_any_kind_that_holds_words_would_be_found(field: models.Field[object, object]) -> None:
    """The positive control: a model outside the register, one column each."""
    attributes = {
        "__module__": __name__,
        "Meta": type("Meta", (), {"app_label": "observations", "managed": False}),
        "note": field,
    }
    registered = apps.all_models["observations"]
    try:
        stranger = type("Stranger", (models.Model,), attributes)
        assert unlisted([stranger]) == ["Stranger.note"]
    finally:
        registered.pop("stranger", None)
        apps.clear_cache()


def test_a_column_that_only_counts_is_not_asked_for() -> None:
    assert "Observation.version" not in MEMORY_TEXT
    assert "Observation.version" not in NOT_MEMORY_TEXT

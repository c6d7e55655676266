"""A browser for each file of browser tests, the demo's memory to walk through, and people who can sign in."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from django.db import connections
from django.test import override_settings
from playwright.sync_api import Browser, expect

from observations.retrieval import current_embedder
from tests.e2e.browser import NoBrowser, Watch, browser


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """A real browser. Playwright's loop runs in this thread, and Django has to be told that this is fine. It ends with
    the file: as long as it runs no other test of the process can run a loop of its own.
    """
    before = os.environ.get("DJANGO_ALLOW_ASYNC_UNSAFE")
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    expect.set_options(timeout=15_000)  # two cores, and other tests beside this one
    try:
        with browser() as running:
            yield running
            connections.close_all()  # while a loop runs, Django connects anew: nobody else would notice that one break
    except NoBrowser as missing:
        pytest.skip(str(missing))
    finally:
        if before is None:
            del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]
        else:
            os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = before


@pytest.fixture
def watch() -> Iterator[Watch]:
    """No page of the test may complain."""
    watching = Watch()
    yield watching
    assert watching.complaints == []


@pytest.fixture
def real_embedder() -> Iterator[None]:
    """The newcomer's demo embeds with the real model; the process's embedder is the other tests' again afterwards."""
    with override_settings(PALIMPSEST_EMBEDDER="minilm"):
        current_embedder.cache_clear()
        yield
    current_embedder.cache_clear()

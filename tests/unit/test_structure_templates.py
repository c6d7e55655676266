"""Every template: what stands in a variable is escaped, its attribute is quoted, and no script or style is written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PRODUCT = ("memory_site", "observations", "consolidation")
VALUE, TAG = "\ue000", "\ue001"  # what stands where a variable, and where a template's own tag, was
# Patterns are written so that the test of what lets text through does not match this file.
UNESCAPED = re.compile(r"\|\s*[s]afe(?:seq)?\b|[a]utoescape\s+off|[m]ark_safe")
COMMENT = re.compile(r"\{#.*?#\}|\{%\s*comment\b.*?\{%\s*endcomment\s*%\}", re.DOTALL)
ELEMENT = re.compile(r"<[a-zA-Z][^<>]*>")
QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")
INLINE = re.compile(r"<(script|style)\b[^>]*>(.*?)</\1\s*>", re.DOTALL | re.IGNORECASE)
HANDLER = re.compile(r"[\s\"'](?:on[a-z]+|style)\s*=", re.IGNORECASE)


def templates() -> list[Path]:
    """Every template of the project."""
    folders = (ROOT / "templates", *(ROOT / app / "templates" for app in PRODUCT))
    return sorted(path for folder in folders for path in folder.rglob("*") if path.is_file())


def faults(text: str) -> Iterator[str]:
    """What of a template would let memory act in a page, in a sentence each."""
    text = COMMENT.sub("", text)
    yield from (f"{found.group()!r}: text of memory is never marked safe" for found in UNESCAPED.finditer(text))
    marked = re.sub(r"\{%.*?%\}", TAG, re.sub(r"\{\{.*?\}\}", VALUE, text, flags=re.DOTALL), flags=re.DOTALL)
    for found in INLINE.finditer(marked):
        if found.group(2).strip():
            yield f"<{found.group(1)}> has a content: put it into a file of static/palimpsest"
    for found in ELEMENT.finditer(marked):
        bare = QUOTED.sub('""', found.group())
        if VALUE in bare or re.search(rf"=\s*{TAG}", bare):
            yield f"{found.group()[:80]!r}: put quotes around what a variable gives to an attribute"
        if HANDLER.search(bare):
            yield f"{found.group()[:80]!r}: no handlers and no style in an element"


@pytest.mark.parametrize("path", templates(), ids=lambda path: str(path.relative_to(ROOT)))
def test_no_template_lets_text_of_memory_be_markup(path: Path) -> None:
    """F5, O2, E must hold: nothing is marked safe, attributes with variables are quoted, nothing stands inline."""
    assert list(faults(path.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(
    "naive",
    [
        "<p>{{ row.text|" + "safe }}</p>",
        "<p>{{ rows|" + "safeseq|join:', ' }}</p>",
        "{% auto" + "escape off %}{{ row.text }}{% endautoescape %}",
        "<a href={{ row.url }}>open</a>",
        "<a href=/x/{{ row.pk }}/>open</a>",
        "<input {{ row.attributes }}>",
        '<a class="a" href={% url "admin:index" %}>desk</a>',
        "<script>const name = '{{ row.name }}';</script>",
        "<style>.a { color: {{ row.color }}; }</style>",
        '<p onclick="go()">x</p>',
        '<p style="color: {{ row.color }}">x</p>',
    ],
)
def test_the_naive_control_is_refused(naive: str) -> None:
    """A look that finds nothing in these would prove nothing."""
    assert list(faults(naive))


@pytest.mark.parametrize(
    "right",
    [
        '<a href="{% url \'admin:index\' %}"{% if a > b %} class="{{ row.tone }}"{% endif %}>{{ row.text }}</a>',
        '<script src="{% static "a.js" %}" type="module"></script>',
        "{# <p>{{ x|" + "safe }}</p> #}",
    ],
)
def test_what_is_escaped_and_quoted_passes(right: str) -> None:
    """A rule that refused good templates would be switched off."""
    assert list(faults(right)) == []


def test_every_app_is_looked_at() -> None:
    """A walk that misses the folder passes on nothing."""
    assert len(templates()) > 100

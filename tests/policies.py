"""Policies as tests store them, and the forms in which a browser sends them."""

from __future__ import annotations

from typing import Any

from django.test import Client
from django.urls import reverse

from consolidation import revising
from consolidation.models import Policy
from consolidation.policy import Policy as Rules


def stored(pattern: str = "team-a/*", by: str = "seed", **fields: Any) -> Policy:
    """A policy as somebody saved it."""
    return revising.revise(pattern=pattern, policy=Rules(**fields), by=by, version=revising.NEW)


def address(page: str, *args: object) -> str:
    return reverse(f"admin:consolidation_policy_{page}", args=args)


def entered(policy: Rules | None = None, /, **fields: object) -> dict[str, object]:
    """What a browser sends for a policy, with some fields filled in otherwise."""
    held = (policy or Rules()).to_dict()
    data: dict[str, object] = {"retention-TOTAL_FORMS": "0", "retention-INITIAL_FORMS": "0"}
    for name, value in held.items():
        if name == "retention" or value is None or value is False:
            continue
        if name in ("single_valued", "many_valued") and isinstance(value, list):
            value = "\n".join(map(str, value))
        data[name] = "on" if value is True else value
    data.update(fields)
    return {name: value for name, value in data.items() if value is not None}


def rules_of(*rows: dict[str, str]) -> dict[str, str]:
    """Rows of the rules of age, as a browser sends them."""
    data = {"retention-TOTAL_FORMS": str(len(rows)), "retention-INITIAL_FORMS": "0"}
    for number, row in enumerate(rows):
        data |= {f"retention-{number}-{name}": value for name, value in row.items()}
    return data


def preview(client: Client, where: str, data: dict[str, object]) -> Any:
    """The first click: what changes."""
    return client.post(where, data)


def save(client: Client, where: str, data: dict[str, object]) -> Any:
    """Both clicks: look, then save exactly that."""
    looked = preview(client, where, data)
    assert looked.status_code == 200, looked.context["draft"].form.errors
    return client.post(where, {**data, "shown": looked.context["shown"], "save": "1"})


def page_text(answer: Any) -> str:
    text: str = answer.content.decode()
    return text

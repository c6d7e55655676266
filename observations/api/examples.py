"""A request for every address that takes a body, as the description shows it: each is one that its call takes."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

_SCOPE: Final = {"scope": "team/ana"}

# call -> the fields of a body; a field that the address says is not among them
EXAMPLES: Final[Mapping[str, Mapping[str, Any]]] = MappingProxyType(
    {
        "observe": {
            **_SCOPE,
            "turns": [
                {"text": "I moved to Lima in May", "speaker": "Ana", "role": "user", "session": "first", "seq": 1}
            ],
        },
        "remember": {
            **_SCOPE,
            "text": "Ana drinks oat milk",
            "subject": "Ana",
            "predicate": "drinks",
            "object": "oat milk",
            "kind": "preference",
            "stated_by": "agent",
        },
        "store_facts": {
            **_SCOPE,
            "about": "Ana",
            "author": {"name": "Ana", "role": "user"},
            "facts": [{"text": "Ana lives in Lima"}, {"text": "Ana rows on Sundays"}],
        },
        "correct": {**_SCOPE, "text": "Ana drinks soy milk", "version": 1},
        "retire": {**_SCOPE, "why": "outdated"},
        "restore": _SCOPE,
        "take_back": _SCOPE,
        "forget": {**_SCOPE, "ids": ["obs_12"]},
        "propose": {**_SCOPE, "kind": "supersede", "ids": ["obs_12"], "by_id": "obs_31", "why": "outdated"},
        "residue_hold": {**_SCOPE, "items": ["The relay team answered slowly"], "session": "first"},
        "prompt": {**_SCOPE, "about": "Which milk does Ana drink?", "session": "first"},
        "episodic_context": {**_SCOPE, "query": "Which milk does Ana drink?"},
        "search": {**_SCOPE, "query": "what does Ana drink", "k": 5, "subject": "Ana"},
        "known": {**_SCOPE, "query": "Ana drinks oat milk"},
        "core_create": {**_SCOPE, "label": "human", "value": "Ana, who lives in Lima.", "limit": 2000},
        "core_append": {**_SCOPE, "text": "She rows on Sundays.", "revision": 1},
        "core_replace": {**_SCOPE, "old": "Lima", "new": "Cusco", "revision": 2},
        "core_rethink": {**_SCOPE, "value": "Ana, who rows.", "revision": 3},
        "core_undo": {**_SCOPE, "revision": 4},
    }
)

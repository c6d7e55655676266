"""What a reviewer put in the place of parts of a merge: values of other sources, or words of their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from observations.records import Record

FIELDS: Final = ("text", "subject", "predicate", "object", "kind")
KEY: Final = ("subject", "predicate", "object")
OWN: Final = "own"  # in a product's "fields": the words stand in the operation's column of that field


@dataclass(frozen=True, slots=True)
class Edits:
    """By field, the source whose value is taken, or own words. Fields that are in neither follow the rule."""

    take: Mapping[str, int] = field(default_factory=dict)
    own: Mapping[str, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Whether anything differs from what the rule makes."""
        return bool(self.take or self.own)

    @property
    def words(self) -> bool:
        """Whether the text is nobody's but the reviewer's."""
        return "text" in self.own

    @property
    def key(self) -> bool:
        """Whether a part of the key is not the rule's."""
        return any(part in self.take or part in self.own for part in KEY)

    def value(self, name: str, *, rule: str, records: Mapping[int, Record]) -> str:
        """What a field says: own words, the chosen source's, or the rule's. Raises KeyError for a stranger's id."""
        if name in self.own:
            return self.own[name]
        return written(records[self.take[name]], name) if name in self.take else rule


UNEDITED: Final = Edits()


def edits_of(*, product: Mapping[str, Any], text: str, key: tuple[str, str, str]) -> Edits:
    """The edits that an operation's columns hold; none for what the planner proposed."""
    given = product.get("fields") or {}
    words = dict(zip(FIELDS, (text, *key), strict=False))
    return Edits(
        take={name: int(chosen) for name, chosen in given.items() if chosen != OWN},
        own={name: words[name] for name, chosen in given.items() if chosen == OWN},
    )


def written(record: Record, name: str) -> str:
    """A field as the row's writer gave it: what a model said about its key stays out of it."""
    if name in KEY and record.key_by and not record.own_key[KEY.index(name)]:
        return ""
    return str(getattr(record, name))

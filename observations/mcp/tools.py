"""The calls as tools: name, description and schemas of each, for whoever asks. Plain values, without the SDK."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaMode

from observations.calls import CALLS, Right, has_right, receipts
from observations.mcp.wording import TOOLS
from observations.records import Caller

KEY: Final = "idempotency_key"  # an argument of every write, beside those of its call
_KEY_SCHEMA: Final = {
    "type": "string",
    "pattern": f"^{receipts.KEY}$",
    "description": "Your own id of this call, such as a UUID. Made again within a day with the same key it is answered"
    " again and not carried out again.",
}
_SAME_TWICE: Final = frozenset(  # writes that do nothing more when they are made again
    {"observe", "remember", "store_facts", "retire", "restore", "take_back", "residue_hold"}
)


@dataclass(frozen=True, slots=True)
class Tool:
    """One call as a tool. `again`: made a second time it changes nothing more."""

    name: str
    title: str
    description: str
    takes: Mapping[str, Any]  # JSON Schema of the arguments
    gives: Mapping[str, Any]  # of the structured answer
    reads_only: bool
    again: bool


def tools_for(*, caller: Caller | None, scope: str) -> list[Tool]:
    """The tools that a caller may use, or all where it is not known who calls. `scope` is the one that need not be
    named; "" for none. No query.
    """
    default = default_scope(caller=caller, scope=scope)
    may = [name for name, call in CALLS.items() if caller is None or has_right(caller=caller, right=call.right)]
    return [tool(name=name, scope=default) for name in may]


def default_scope(*, caller: Caller | None, scope: str) -> str:
    """The scope of a call that names none: the only one that a token reaches, else the one this server was given."""
    if caller is not None and "*" not in caller.pattern:
        return caller.pattern
    return scope


@lru_cache(maxsize=256)
def tool(*, name: str, scope: str) -> Tool:
    """One call as a tool, for callers who need not name `scope`."""
    call = CALLS[name]
    title, advice = TOOLS[name]
    return Tool(
        name=name,
        title=title,
        description=f"{call.says} {advice}",
        takes=_taken(call.takes, scope, keyed=call.right is not Right.READ),
        gives=_schema(call.gives, "serialization"),
        reads_only=call.right is Right.READ,
        again=call.right is Right.READ or name in _SAME_TWICE,
    )


class _Short(GenerateJsonSchema):
    """Without titles made of field names: a model pays for every word of a schema."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        """Never."""
        return False


def _schema(shape: type[BaseModel], mode: JsonSchemaMode) -> dict[str, Any]:
    schema = shape.model_json_schema(schema_generator=_Short, mode=mode)
    schema.pop("title", None)
    schema.pop("description", None)
    return schema


def _taken(shape: type[BaseModel], scope: str, *, keyed: bool) -> dict[str, Any]:
    """The arguments; the scope comes first, and need not be named where there is a default. The key of a write comes
    last.
    """
    schema = _schema(shape, "validation")
    named = {"scope": schema["properties"]["scope"]}
    if scope:
        named["scope"] = {**named["scope"], "default": scope}
        schema["required"] = [name for name in schema.get("required", []) if name != "scope"]
        if not schema["required"]:
            del schema["required"]
    key = {KEY: _KEY_SCHEMA} if keyed else {}
    schema["properties"] = named | schema["properties"] | named | key
    return schema

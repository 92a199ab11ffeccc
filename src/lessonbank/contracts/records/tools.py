"""Tells the tools of an agent by their signatures: what a call can say, in a line each and without their schemas."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

_MOST: Final = 200
_LINE: Final = 240
_SENTENCE = re.compile(r"(?<=[.!?])\s|\n")
_SCHEMAS = (
    "parameters",
    "input_schema",
    "inputSchema",
    "args_schema",
    "parameters_json_schema",
    "parametersJsonSchema",
    "params_json_schema",
)
_KINDS = ("function", "toolSpec")
"""Where a definition may stand under the kind of the tool."""
_SEVERAL = ("functionDeclarations", "function_declarations")


def signatures(tools: object, /) -> tuple[str, ...]:
    """A line for each tool, sorted, such as `refund(order: string, amount?: number) - Pay an order back.`

    `tools` are definitions as OpenAI, Anthropic, Gemini, Bedrock or MCP have them, a framework's objects with a name, a
    description and a schema, or lines; anything else is left out.
    """
    listed = _flat(cast("list[Any]", tools)) if isinstance(tools, list | tuple) else []
    return tuple(sorted(dict.fromkeys(line for tool in listed if (line := _signature(tool)))))


def tool_name(tool: object, /) -> str:
    """The name of a tool, in any form that `signatures` reads; empty if it has none."""
    if isinstance(tool, str):
        return tool
    name = _field_of(tool, "name") or _field_of(
        tool, "type"
    )  # a provider's own tool, such as a web search, has only a type
    return name.strip() if isinstance(name, str) and name != "function" else ""


def _flat(tools: list[Any] | tuple[Any, ...]) -> list[Any]:
    """Gemini puts several definitions into one tool."""
    definitions: list[Any] = []
    for tool in tools[:_MOST]:
        fields = _mapping(tool) or {}
        several = next((fields[key] for key in _SEVERAL if isinstance(fields.get(key), list | tuple)), None)
        definitions += [tool] if several is None else several
    return definitions[:_MOST]


def _signature(tool: object) -> str:
    if isinstance(tool, str):
        return _line(tool)
    name = tool_name(tool)
    if not name:
        return ""
    schema = next((read for key in _SCHEMAS if (read := _schema(_field_of(tool, key)))), None)
    about = _field_of(tool, "description")
    summary = _SENTENCE.split(about.strip()[:_LINE], maxsplit=1)[0] if isinstance(about, str) else ""
    return _line(f"{name}({', '.join(_arguments(schema) if schema else ())})" + (f" - {summary}" if summary else ""))


def _field_of(tool: object, key: str) -> Any:
    """What a definition says, or an object of a framework."""
    fields = _mapping(tool)
    if fields is None:
        return getattr(tool, key, None)
    return next((inner for kind in _KINDS if (inner := _mapping(fields.get(kind))) is not None), fields).get(key)


def _mapping(value: object) -> Mapping[str, Any] | None:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else None


def _schema(given: object) -> Mapping[str, Any] | None:
    """A schema as data: frameworks have it so, under `json`, as a model or its class, or as a method."""
    if isinstance(given, type):
        given = getattr(given, "model_json_schema", None)
    elif callable(dump := getattr(given, "model_dump", None)):
        given = dump(mode="json", exclude_none=True)
    schema = _mapping(given() if callable(given) else given)
    return schema and (_mapping(schema.get("json")) or schema)


def _arguments(schema: Mapping[str, Any]) -> Iterator[str]:
    raw_properties, needed = schema.get("properties"), schema.get("required")
    properties = cast("Mapping[str, Any]", raw_properties) if isinstance(raw_properties, Mapping) else dict[str, Any]()
    for name, about in properties.items():
        kind = cast("Mapping[str, Any]", about).get("type") if isinstance(about, Mapping) else None
        optional = "" if isinstance(needed, list) and name in needed else "?"
        yield f"{name}{optional}: {kind.lower()}" if isinstance(kind, str) else f"{name}{optional}"


def _line(text: str) -> str:
    return " ".join(text[: 4 * _LINE].split())[:_LINE]

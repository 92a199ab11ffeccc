"""Tells the tools of an agent by their signatures: what a call can say, in a line each and without their schemas."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from .runs import Json

TOOLS: Final = "tools"
"""Where a run's metadata has the tools that the agent could call."""
_MOST: Final = 200
_LINE: Final = 240
_SENTENCE = re.compile(r"(?<=[.!?])\s|\n")
_SCHEMAS = ("parameters", "input_schema", "inputSchema", "args_schema")


def signatures(tools: object, /) -> tuple[str, ...]:
    """A line for each tool, sorted, such as `refund(order: string, amount?: number) - Pay an order back.`

    `tools` are definitions as OpenAI, Anthropic or MCP have them, or lines; anything else is left out.
    """
    listed = cast("list[Any]", tools)[:_MOST] if isinstance(tools, list | tuple) else []
    return tuple(sorted(dict.fromkeys(line for tool in listed if (line := _signature(tool)))))


def _signature(tool: object) -> str:
    if isinstance(tool, str):
        return _line(tool)
    if not isinstance(tool, Mapping):
        return ""
    told = cast("Mapping[str, Any]", tool)
    inner = told.get("function")
    told = cast("Mapping[str, Any]", inner) if isinstance(inner, Mapping) else told
    name = told.get("name")
    if not isinstance(name, str) or not name.strip():
        return ""
    schemas = [cast("Mapping[str, Any]", told[key]) for key in _SCHEMAS if isinstance(told.get(key), Mapping)]
    about = told.get("description")
    said = _SENTENCE.split(about.strip()[:_LINE], maxsplit=1)[0] if isinstance(about, str) else ""
    return _line(f"{name}({', '.join(_arguments(schemas[0]) if schemas else ())})" + (f" - {said}" if said else ""))


def _arguments(schema: Mapping[str, Any]) -> Iterator[str]:
    told, needed = schema.get("properties"), schema.get("required")
    properties = cast("Mapping[str, Any]", told) if isinstance(told, Mapping) else dict[str, Any]()
    for name, about in properties.items():
        kind = cast("Mapping[str, Any]", about).get("type") if isinstance(about, Mapping) else None
        optional = "" if isinstance(needed, list) and name in needed else "?"
        yield f"{name}{optional}: {kind}" if isinstance(kind, str) else f"{name}{optional}"


def _line(text: str) -> str:
    return " ".join(text[: 4 * _LINE].split())[:_LINE]


def tools_of(metadata: Mapping[str, Json], /) -> tuple[str, ...]:
    """The signatures of the tools that a run's metadata names."""
    return signatures(metadata.get(TOOLS))

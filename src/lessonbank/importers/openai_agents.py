"""Reads the state of a run that the OpenAI Agents SDK saves (`RunState.to_json`, schema 1.17 and before)."""

from __future__ import annotations

from lessonbank.contracts.records import Json

from ._files import Source
from ._reading import Data, Run, at, count, entries, listing, mapping, spent_on, words

_ASKS = "tool_approval_item"
"""An item that asks for leave; the call it is about has an item of its own."""


def _matches(value: Json, name: str) -> bool:
    row = mapping(value)
    return "original_input" in row and isinstance(row.get("generated_items"), list)


def _build(entry: Json, source: Source, line: int) -> Run:
    row = mapping(entry)
    asked, items = row.get("original_input"), listing(row.get("session_items")) or listing(row.get("generated_items"))
    sent: list[Json] = [{"role": "user", "content": asked}] if isinstance(asked, str) else listing(asked)
    spent = mapping(at(row, "context", "usage"))
    waits = words(at(row, "current_step", "type")) == "next_step_interruption"
    return Run(
        messages=[*sent, *(at(item, "raw_item") for item in items if at(item, "type") != _ASKS)],
        source="openai-agents",
        run_id=words(at(row, "trace", "id")) or words(row.get("conversation_id")) or f"{source.name}/{line}",
        usage=spent_on([spent], "input_tokens", "output_tokens", requests=count(spent.get("requests"))),
        left=("the run waits for leave to make a call, and is not at its end",) if waits else _guards(row),
    )


def _guards(row: Data) -> tuple[str, ...]:
    """What stopped the run from outside its conversation."""
    names = ("input_guardrail_results", "output_guardrail_results")
    stopped = any(at(one, "output", "tripwire_triggered") is True for name in names for one in listing(row.get(name)))
    return ("a guardrail stopped the run; what it found was left out",) if stopped else ()


FORMAT = entries("openai_agents", "run states of the OpenAI Agents SDK (`RunState.to_json`)", _matches, _build)

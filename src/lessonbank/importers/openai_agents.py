"""Reads the state of a run that the OpenAI Agents SDK saves (`RunState.to_json`, schema 1.21 and before)."""

from __future__ import annotations

from lessonbank.contracts.records import Json

from ._files import Source
from ._reading import Data, Run, at, count, entries, first_of, listing, mapping, spent_on, words

_ASKS = "tool_approval_item"
"""An item that asks for leave; the call it is about has an item of its own."""
_GUARDS = tuple(f"{kind}_guardrail_results" for kind in ("input", "output", "tool_input", "tool_output"))
_WAITS = "the run waits for leave to make a call, and is not at its end"
_FOUND = "a guardrail stopped the run; what it found was left out"


def _matches(value: Json, name: str) -> bool:
    row = mapping(value)
    return "original_input" in row and isinstance(row.get("generated_items"), list)


def _build(entry: Json, source: Source, line: int) -> Run:
    row = mapping(entry)
    asked, items = row.get("original_input"), listing(row.get("session_items")) or listing(row.get("generated_items"))
    sent: list[Json] = [{"role": "user", "content": asked}] if isinstance(asked, str) else listing(asked)
    spent = mapping(at(row, "context", "usage"))
    waits = words(at(row, "current_step", "type")) == "next_step_interruption"
    stopped = _guard_that_stopped(row)
    return Run(
        messages=[*sent, *(at(item, "raw_item") for item in items if at(item, "type") != _ASKS)],
        source="openai-agents",
        run_id=words(at(row, "trace", "id")) or words(row.get("conversation_id")) or f"{source.name}/{line}",
        usage=spent_on([spent], "input_tokens", "output_tokens", requests=count(spent.get("requests"))),
        error=f"the guardrail {stopped} stopped the run" if stopped else None,
        left=(_FOUND,) if stopped else (_WAITS,) if waits else (),
    )


def _guard_that_stopped(row: Data) -> str:
    """The guardrail that stopped the run from outside its conversation; `""` where none did."""
    results = [result for kind in _GUARDS for result in listing(row.get(kind))]
    return next(
        (words(at(result, "guardrail", "name")) or "without a name" for result in results if _stops(result)), ""
    )


def _stops(result: Json) -> bool:
    """Whether a guardrail ended the run; one of a tool may also refuse a call, and the run goes on."""
    tripped = first_of(mapping(at(result, "output")), "tripwireTriggered", "tripwire_triggered")
    return tripped is True or at(result, "output", "behavior", "type") == "raise_exception"


FORMAT = entries("openai_agents", "run states of the OpenAI Agents SDK (`RunState.to_json`)", _matches, _build)

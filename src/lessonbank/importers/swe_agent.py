"""Reads SWE-agent trajectories (`.traj`): with tool calls, in text mode, or a history alone."""

from __future__ import annotations

from lessonbank.contracts.records import Json
from lessonbank.errors import FormatError

from ._files import Source
from ._reading import (
    Data,
    Run,
    at,
    count,
    entries,
    environment_after_agent,
    issue_in,
    listing,
    mapping,
    spent_on,
    without,
    words,
)

_BOOKKEEPING = ("agent", "message_type", "is_demo", "cache_control", "tags", "thought", "action", "thinking_blocks")


def _matches(value: Json, name: str) -> bool:
    steps, history = listing(at(value, "trajectory")), listing(at(value, "history"))
    if steps and "action" in mapping(steps[0]) and "observation" in mapping(steps[0]):
        return True
    first = mapping(history[0]) if history else {}
    return {"role", "content"} <= first.keys() and ("agent" in first or "info" in mapping(value))


def _build(entry: Json, source: Source, line: int) -> Run:
    info = mapping(at(entry, "info"))
    messages = _messages(mapping(entry))
    status = words(info.get("exit_status"))
    stats = mapping(info.get("model_stats"))
    return Run(
        messages=messages,
        source="swe-agent",
        speakers="places",
        run_id=source.run_of(source.stem),
        task_id=source.stem,
        task=_task(messages) or source.stem,
        error=status if status and not status.lower().startswith("submitted") else None,
        answer=words(info.get("submission")).strip() or None,
        usage=spent_on(
            [stats],
            "tokens_sent",
            "tokens_received",
            requests=count(stats.get("api_calls")),
            cost=stats.get("instance_cost"),
        ),
    )


def _messages(whole: Data) -> list[Json]:
    """The history, which has the prompts too; the last observation stands only among the steps."""
    steps = listing(whole.get("trajectory"))
    messages = [_split_action(m) for m in listing(whole.get("history")) if at(m, "is_demo") is not True]
    if not messages:
        messages = [*_prompts(steps), *(message for step in steps for message in _step(step))]
    elif steps and at(messages[-1], "role") == "assistant":
        messages.extend(_step(steps[-1])[1:])
    if not messages:
        raise FormatError("the file has neither a history nor steps")
    return environment_after_agent(messages)


def _split_action(message: Json) -> Json:
    """In text mode the command is cut out of what the agent said, so that thought and action stand apart."""
    entry = mapping(message)
    fields = mapping(without(entry, *_BOOKKEEPING))
    action = words(entry.get("action")).strip()
    if entry.get("role") != "assistant":
        return fields
    if action and not entry.get("tool_calls"):
        return {**fields, "content": action, "reasoning_content": words(entry.get("thought")).strip()}
    return {**fields, "reasoning_content": listing(entry.get("thinking_blocks"))}


def _prompts(steps: list[Json]) -> list[Json]:
    """What the first request held before the agent acted, where the steps keep their requests."""
    query = listing(at(steps[0], "query")) if steps else []
    return [without(message, *_BOOKKEEPING) for message in query if at(message, "is_demo") is not True]


def _step(step: Json) -> list[Json]:
    thought = words(at(step, "thought")).strip()
    return [
        {"role": "assistant", "content": words(at(step, "action")).strip(), "reasoning_content": thought},
        {"role": "environment", "content": words(at(step, "observation"))},
    ]


def _task(messages: list[Json]) -> str | None:
    for message in messages:
        content = at(message, "content")
        text = "\n".join(words(at(part, "text")) for part in content) if isinstance(content, list) else words(content)
        if at(message, "role") == "user" and text.strip():
            return issue_in(text).strip()
    return None


FORMAT = entries("swe_agent", "SWE-agent `.traj`: `trajectory`, `history` or both", _matches, _build)

"""Writes a run as OpenAI chat messages: the form every provider and tool can read."""

from __future__ import annotations

import json

from lessonbank.contracts.records import Action, Json, Observation, Step, ToolCall, Trajectory

from ._dialects import ROLES


def rebuild(trajectory: Trajectory, /) -> list[dict[str, Json]]:
    """OpenAI chat messages that tell the same run. Calls without an id get `call_<step>_<number>`."""
    messages: list[dict[str, Json]] = []
    if trajectory.instructions:
        messages.append({"role": "system", "content": trajectory.instructions})
    if not any(seen.source == "user" for step in trajectory.steps for seen in step.observations):
        messages.append({"role": "user", "content": trajectory.task})
    for number, step in enumerate(trajectory.steps):
        messages.extend(_step(step, number))
    if trajectory.answer is not None and _last_words(trajectory.steps) != trajectory.answer:
        messages.append({"role": "assistant", "content": trajectory.answer})
    return messages


def _last_words(steps: tuple[Step, ...]) -> str | None:
    actions = (step.action for step in reversed(steps))
    last = next((action for action in actions if action.text or action.calls), Action())
    return None if last.calls else last.text


def _step(step: Step, number: int) -> list[dict[str, Json]]:
    calls = [c if c.id else c.model_copy(update={"id": f"call_{number}_{i}"}) for i, c in enumerate(step.action.calls)]
    messages: list[dict[str, Json]] = []
    if step.thought or step.action.text or calls:
        messages.append(_assistant(step, calls))
    answered = {seen.call_id for seen in step.observations}
    waiting = [call for call in reversed(calls) if call.id not in answered]
    names = {call.id: call.name for call in calls}
    messages.extend(_observe(seen, waiting, names) for seen in step.observations)
    return messages


def _assistant(step: Step, calls: list[ToolCall]) -> dict[str, Json]:
    message: dict[str, Json] = {"role": "assistant", "content": step.action.text or (None if calls else "")}
    if step.thought:
        message["reasoning_content"] = step.thought
    if calls:
        message["tool_calls"] = [_call(call) for call in calls]
    return message


def _call(call: ToolCall) -> Json:
    arguments = call.arguments
    if not isinstance(arguments, str):
        arguments = json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments}}


def _observe(seen: Observation, waiting: list[ToolCall], names: dict[str | None, str]) -> dict[str, Json]:
    """An observation that does not say which call it answers, answers the next one that waits."""
    if seen.source == "user":
        return _with_name({"role": "user", "content": seen.text}, seen.name)
    if seen.source == "environment" and seen.name and seen.name.strip().lower() not in ROLES:
        return {"role": seen.name, "content": seen.text}
    call_id = seen.call_id or (waiting.pop().id if waiting else None)
    if call_id is not None:
        message: dict[str, Json] = {"role": "tool", "tool_call_id": call_id, "content": seen.text}
        return _with_name(message, None if names.get(call_id) == seen.name else seen.name)
    if seen.source == "tool":
        return _with_name({"role": "function" if seen.name else "tool", "content": seen.text}, seen.name)
    return {"role": "user", "content": seen.text}


def _with_name(message: dict[str, Json], name: str | None) -> dict[str, Json]:
    return {**message, "name": name} if name else message

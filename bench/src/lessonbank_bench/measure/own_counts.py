"""Counts the runs, calls, results and outcomes of recorded files by code that knows nothing of lessonbank's readers.

Each count is written from the form of the program alone, and takes the shortest way to its numbers: it shows where a
reader loses or adds something, and nothing else.
"""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Count:
    """What a file holds. `None`: this count has no way to know it."""

    runs: int | None = None
    replies: int | None = None
    calls: int | None = None
    results: int | None = None
    outcomes: int | None = None


Counter = Callable[[Path], Count]


def values(path: Path) -> list[Any]:
    """The JSON values of a file: its lines, or the one value it is."""
    text = path.read_text("utf-8", "replace").lstrip("\ufeff")
    try:
        return [json.loads(text)]
    except ValueError:
        return [value for line in text.split("\n") if (value := _value(line)) is not None]


def _value(line: str) -> Any:
    try:
        return json.loads(line) if line.strip() else None
    except ValueError:
        return None


def every(value: Any) -> Iterator[dict[str, Any]]:
    """All objects in a value, at any depth."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            yield one
            waiting.extend(one.values())
        elif isinstance(one, list):
            waiting.extend(one)


def _ids(objects: list[dict[str, Any]], kinds: set[str], name: str) -> int:
    """Different ids of the objects of some types. A result without one belongs to no call."""
    told = [one.get(name) for one in objects if one.get("type") in kinds]
    return len(set(filter(None, told))) + (name == "id") * told.count(None)


def blocks(path: Path) -> Count:
    """Claude Code and what it prints: blocks of messages, which a file may repeat line by line."""
    rows = [row for row in values(path) if isinstance(row, dict) and row.get("type") in ("user", "assistant")]
    told = [row["message"].get("content") for row in rows if isinstance(row.get("message"), dict)]
    found = [block for content in told for block in content or () if isinstance(block, dict)]
    return Count(
        calls=_ids(found, {"tool_use", "server_tool_use"}, "id"), results=_ids(found, {"tool_result"}, "tool_use_id")
    )


def codex(path: Path) -> Count:
    items = [row.get("payload") for row in values(path) if isinstance(row, dict) and row.get("type") == "response_item"]
    kinds = [str(item.get("type")) for item in items if isinstance(item, dict)]
    return Count(
        runs=1,
        calls=sum(kind in ("function_call", "custom_tool_call", "local_shell_call") for kind in kinds),
        results=sum(kind.endswith("_call_output") for kind in kinds),
    )


def gemini(path: Path) -> Count:
    told = {one["id"]: one for one in every(values(path)) if one.get("id") and isinstance(one.get("toolCalls"), list)}
    calls = [call for one in told.values() for call in one["toolCalls"]]
    return Count(runs=1, calls=len(calls), results=len(calls))


def qwen(path: Path) -> Count:
    parts = [
        p for row in values(path) if isinstance(row, dict) for p in ((row.get("message") or {}).get("parts") or ())
    ]
    return Count(
        runs=1,
        calls=sum("functionCall" in part for part in parts),
        results=sum("functionResponse" in part for part in parts),
    )


def copilot(path: Path) -> Count:
    rows = [row for row in values(path) if isinstance(row, dict)]
    asked = {
        call.get("toolCallId")
        for row in rows
        if row.get("type") == "assistant.message"
        for call in row["data"].get("toolRequests") or ()
    }
    done = [row["data"] for row in rows if row.get("type") == "tool.execution_complete"]
    began = {row["data"].get("toolCallId") for row in rows if row.get("type") == "tool.execution_start"}
    ended = {one.get("toolCallId") for one in done}
    return Count(calls=len(asked | (began & ended)), results=sum(not one.get("isUserRequested") for one in done))


def cline(path: Path) -> Count:
    found = [
        b for v in values(path) for m in v.get("messages", ()) for b in m.get("content") or () if isinstance(b, dict)
    ]
    kinds = [block.get("type") for block in found]
    return Count(runs=1, calls=kinds.count("tool_use"), results=kinds.count("tool_result"))


def aider(path: Path) -> Count:
    """A chat counts where a line of the model comes after one of the user."""
    text = path.read_text("utf-8", "replace").replace("\r\n", "\n")
    chats = re.split(r"(?m)^# aider chat started at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d[ \t]*$", text)
    return Count(runs=sum(map(_is_answered, chats)), calls=0, results=0)


def _is_answered(chat: str) -> bool:
    asked = False
    for line in chat.split("\n"):
        marked = line.endswith("  ")
        if line.startswith("#### ") and marked:
            asked = True
        elif asked and line.strip() and not (line.startswith(">") and marked):
            return True
    return False


def swe_agent(path: Path) -> Count:
    (whole,) = values(path)
    history = [m for m in whole.get("history") or () if isinstance(m, dict) and not m.get("is_demo")]
    calls = sum(len(m.get("tool_calls") or ()) for m in history if m.get("role") == "assistant")
    results = sum(m.get("role") == "tool" for m in history)
    steps = whole.get("trajectory") or ()
    replies = sum(m.get("role") == "assistant" for m in history) or len(steps)
    return Count(runs=1, replies=replies, calls=calls, results=results if history and calls else None)


def mini(path: Path) -> Count:
    (whole,) = values(path)
    messages = whole if isinstance(whole, list) else whole["messages"]
    return Count(
        runs=1,
        replies=sum(m.get("role") == "assistant" for m in messages),
        calls=sum(len(m.get("tool_calls") or ()) for m in messages),
        results=sum(m.get("role") == "tool" for m in messages),
    )


def openhands(path: Path) -> Count:
    """Before version 1: an action with `tool_call_metadata` is a call but the last, which says the answer."""
    calls = results = 0
    for one in every(values(path)):
        if "tool_call_metadata" in one and one.get("tool_call_metadata"):
            calls += one.get("action") not in (None, "finish") and one.get("source") == "agent"
            results += "observation" in one
    return Count(calls=calls or None, results=results or None)


def inspect(path: Path) -> Count:
    if path.suffix == ".eval":
        try:
            with zipfile.ZipFile(path) as archive:
                names = [name for name in archive.namelist() if name.startswith("samples/") and name.endswith(".json")]
                samples = [json.loads(archive.read(name)) for name in names]
        except NotImplementedError:  # packed by zstd, which this Python does not unpack
            with zipfile.ZipFile(path) as archive:
                names = [name for name in archive.namelist() if name.startswith("samples/") and name.endswith(".json")]
            return Count(runs=len(names))
    else:
        samples = [sample for value in values(path) for sample in value.get("samples") or ()]
    messages = [message for sample in samples for message in sample.get("messages") or ()]
    return Count(
        runs=len(samples),
        calls=sum(len(message.get("tool_calls") or ()) for message in messages),
        results=sum(message.get("role") == "tool" for message in messages),
    )


def atif(path: Path) -> Count:
    (whole,) = values(path)
    runs = [whole, *(whole.get("subagent_trajectories") or ())]
    steps = [step for run in runs for step in run["steps"]]
    named = [
        result
        for step in steps
        for result in (step.get("observation") or {}).get("results") or ()
        if result.get("source_call_id") or step.get("tool_calls")
    ]
    return Count(runs=len(runs), calls=sum(len(step.get("tool_calls") or ()) for step in steps), results=len(named))


def openai_agents(path: Path) -> Count:
    (whole,) = values(path)
    made = [one.get("raw_item") for one in whole.get("session_items") or whole.get("generated_items") or ()]
    sent = whole.get("original_input")
    items = [one for one in (*(sent if isinstance(sent, list) else ()), *made) if isinstance(one, dict)]
    return Count(runs=1, results=sum(str(one.get("type")).endswith("_call_output") for one in items))


def adk(path: Path) -> Count:
    (whole,) = values(path)
    parts = [
        part
        for event in whole["events"]
        if not event.get("partial")
        for part in (event.get("content") or {}).get("parts") or ()
    ]
    return Count(
        runs=1,
        calls=sum(bool(part.get("functionCall") or part.get("function_call")) for part in parts),
        results=sum(bool(part.get("functionResponse") or part.get("function_response")) for part in parts),
    )


def tau2(path: Path) -> Count:
    """The user of tau2-bench has tools of his own: what the agent did not ask for is no call of the run."""
    runs = [run for value in values(path) for run in value.get("simulations") or [value]]
    messages = [message for run in runs for message in run.get("messages") or ()]
    calls = [
        call for m in messages if m.get("role") == "assistant" for call in m.get("tool_calls") or () if call is not None
    ]
    return Count(
        runs=len(runs),
        calls=len(calls),
        outcomes=sum((run.get("reward_info") or {}).get("reward") is not None for run in runs),
    )


def tau_bench(path: Path) -> Count:
    runs = [run for value in values(path) for run in (value if isinstance(value, list) else [value])]
    messages = [message for run in runs for message in run["traj"]]
    return Count(
        runs=len(runs),
        replies=sum(message.get("role") == "assistant" for message in messages),
        calls=sum(len(message.get("tool_calls") or ()) for message in messages),
        results=sum(message.get("role") == "tool" for message in messages),
        outcomes=sum(run.get("reward") is not None and not (run.get("info") or {}).get("error") for run in runs),
    )


_CALL_ID: Final = re.compile(r"\b(?:call_[A-Za-z0-9]{16,}|toolu_[A-Za-z0-9_]{16,}|tooluse_[A-Za-z0-9_-]{16,})")


def named_calls(path: Path) -> Count:
    """Traces: the different ids of calls that stand anywhere in the text, where a provider's ids have a form."""
    return Count(calls=len(set(_CALL_ID.findall(path.read_text("utf-8", "replace")))) or None)


def messages(path: Path) -> Count:
    """Lists of messages in the forms of OpenAI and Anthropic."""
    said = [one for one in every(values(path)) if isinstance(one.get("role"), str)]
    parts = [part for one in said for part in one.get("content") or () if isinstance(part, dict)]
    kinds = [part.get("type") for part in parts]
    calls = [call for one in said for call in one.get("tool_calls") or ()]
    return Count(
        calls=len(calls) + sum(kind in ("tool_use", "tool-call", "toolCall") for kind in kinds) or None,
        results=sum(one["role"] in ("tool", "toolResult") for one in said)
        + sum(kind in ("tool_result",) for kind in kinds)
        or None,
    )


COUNTERS: Final[dict[str, Counter]] = {
    "adk": adk,
    "aider": aider,
    "atif": atif,
    "claude_code": blocks,
    "claude_stream": blocks,
    "cline": cline,
    "codex": codex,
    "copilot_cli": copilot,
    "gemini_cli": gemini,
    "inspect": inspect,
    "langfuse": named_calls,
    "langsmith": named_calls,
    "messages": messages,
    "mini_swe_agent": mini,
    "openai_agents": openai_agents,
    "openhands": openhands,
    "otel": named_calls,
    "qwen_code": qwen,
    "swe_agent": swe_agent,
    "tau2": tau2,
    "tau_bench": tau_bench,
}

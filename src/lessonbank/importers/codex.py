"""Reads sessions of Codex (`rollout-*.jsonl`): one session a file, of which a sub-agent has one of its own."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field

from lessonbank.contracts.records import Json

from ._reading import Data, Run, at, listing, mapping, sessions, spent_on, tool_call, tool_result, words

_LINES = {"session_meta", "response_item", "event_msg", "turn_context", "world_state", "compacted"}
_CALLS = {"function_call", "custom_tool_call", "local_shell_call"}
_RESULTS = {"function_call_output", "custom_tool_call_output", "local_shell_call_output"}
_WRAPPED = (
    *("<environment_context>", "<user_instructions>", "# AGENTS.md instructions", "<permissions", "<hook_prompt"),
    "<recommended_plugins>",
)
_EXIT = re.compile(r"(?:exited with code|[Ee]xit code:?) (-?\d+)")


def _matches(value: Json, name: str) -> bool:
    row = mapping(value)
    return words(row.get("type")) in _LINES and isinstance(row.get("payload"), dict)


@dataclass(slots=True)
class _Session:
    """What the lines of a file come to."""

    run_id: str
    messages: list[Json] = field(default_factory=list[Json])
    model: str = ""
    usage: Data = field(default_factory=dict[str, Json])
    requests: int = 0
    exit_codes: dict[str, int] = field(default_factory=dict[str, int])

    def add(self, line: Data) -> None:
        """Take a line in; one of an unknown type says nothing."""
        kind, payload = words(line.get("type")), mapping(line.get("payload"))
        if kind == "session_meta":
            self.run_id = words(payload.get("id")) or self.run_id
        elif kind == "turn_context":
            self.model = words(payload.get("model")) or self.model
        elif kind == "event_msg" and payload.get("type") == "token_count":
            spent = mapping(at(payload, "info", "total_token_usage"))
            self.usage, self.requests = spent or self.usage, self.requests + bool(spent)
        elif kind == "response_item" and (message := _message(payload)):
            self.messages.append(message)
            if payload.get("type") in _RESULTS and (code := _exit_code(payload.get("output"))) is not None:
                self.exit_codes[words(payload.get("call_id"))] = code


def _message(item: Data) -> Data | None:
    kind = words(item.get("type"))
    if kind == "message":
        return _said(words(item.get("role")), "\n".join(words(at(p, "text")) for p in listing(item.get("content"))))
    if kind in _CALLS:
        told = item.get("arguments", item.get("input", item.get("action")))
        call = tool_call(item.get("call_id"), item.get("name") or "local_shell", told)
        return {"role": "assistant", "content": "", "tool_calls": [call]}
    if kind in _RESULTS:
        return _result(item)
    return None


def _said(role: str, text: str) -> Data | None:
    """What the user and the agent said. Developer messages are the program's, and may hold what memory showed."""
    if role == "assistant" and text:
        return {"role": "assistant", "content": text}
    if role == "user" and text.strip() and not text.lstrip().startswith(_WRAPPED):
        return {"role": "user", "content": text}
    return None


def _result(item: Data) -> Data:
    told = item.get("output")
    output = told if isinstance(told, str) else json.dumps(told, ensure_ascii=False)
    head, marked, body = output.partition("Output:\n")
    code = _EXIT.search(head[:1000])
    return tool_result(item.get("call_id"), body if marked else output, failed=bool(code and code.group(1) != "0"))


def _exit_code(output: Json) -> int | None:
    """In the head before the output; older releases wrote an object. A command that still runs has none."""
    if not isinstance(output, str):
        return None
    if output.startswith("{"):
        try:
            code = at(json.loads(output), "metadata", "exit_code")
        except ValueError:
            return None
        return code if isinstance(code, int) else None
    head, marked, _ = output.partition("Output:\n")
    told = _EXIT.search(head[:1000]) if marked else None
    return int(told.group(1)) if told else None


def _run(session: _Session) -> Run:
    usage = spent_on([session.usage], "input_tokens", "output_tokens")
    return Run(
        messages=session.messages,
        source="codex",
        run_id=session.run_id,
        model=session.model or None,
        usage=usage.model_copy(update={"requests": session.requests}),
        exit_codes=session.exit_codes,
    )


FORMAT = sessions("codex", "Codex sessions (`rollout-*.jsonl`)", _matches, _Session, _run)

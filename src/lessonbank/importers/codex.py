"""Reads sessions of Codex (`rollout-*.jsonl`): one session a file, of which a sub-agent has one of its own."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field

from lessonbank.contracts.records import Json

from ._reading import Data, Run, at, listing, mapping, spent_on, tool_call, tool_result, words
from ._sessions import prompts_in, sessions

_LINES = {"session_meta", "response_item", "event_msg", "turn_context", "world_state", "compacted"}
_CALLS = {"function_call", "custom_tool_call", "local_shell_call"}
_RESULTS = {"function_call_output", "custom_tool_call_output", "local_shell_call_output"}
_WRAPPED = (
    *("<environment_context>", "<user_instructions>", "# AGENTS.md instructions", "<permissions", "<hook_prompt"),
    "<recommended_plugins>",
)
_EXIT = re.compile(r"(?:exited with code|[Ee]xit code:?) (-?\d+)")
_DENIED = re.compile(r"^exec_command failed: .{0,80}Sandbox\(Denied .{0,80}?exit_code: (\d+)")
_HEAD = re.compile(r"Exit code: |Wall time|Chunk ID: |Command: |Script ")
"""How the program's words around an output begin; `Wall time` is in all of them."""
_OUTPUT = "Output:\n"
_NESTED = re.compile(r"\btools\.exec_command\(\s*\{")
_FIELD = re.compile(r"""[{,]\s*["']?(cmd|workdir)["']?\s*:\s*(?=["'`])""")
_PLAIN = re.compile(r"'([^'\\\n]*)'|`([^`\\$]*)`")


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
        elif kind == "event_msg" and at(payload, "item", "type") == "CommandExecution":
            code = at(payload, "item", "exit_code")
            self.exit_codes |= {words(at(payload, "item", "id")): code} if isinstance(code, int) else {}
        elif kind == "response_item" and (message := _message(payload)):
            self._append(message)
            if payload.get("type") in _RESULTS and (code := _output(payload)[1]) is not None:
                self.exit_codes[words(payload.get("call_id"))] = code

    def _append(self, message: Data) -> None:
        """Calls that follow each other before any result are of one turn, in which their results are looked for."""
        turn = mapping(self.messages[-1]) if self.messages else {}
        calls, more = listing(turn.get("tool_calls")), listing(message.get("tool_calls"))
        if calls and more:
            calls += more
        else:
            self.messages.append(message)


def _message(item: Data) -> Data | None:
    kind = words(item.get("type"))
    if kind == "message":
        return _message_of(
            words(item.get("role")), "\n".join(words(at(p, "text")) for p in listing(item.get("content")))
        )
    if kind in _CALLS:
        arguments = item.get("arguments", item.get("input", item.get("action")))
        nested = _nested_command(arguments) if item.get("name") == "exec" and isinstance(arguments, str) else {}
        name = "exec_command" if nested else item.get("name") or "local_shell"
        return {
            "role": "assistant",
            "content": "",
            "tool_calls": [tool_call(item.get("call_id"), name, nested or arguments)],
        }
    if kind in _RESULTS:
        return _result(item)
    return None


def _message_of(role: str, text: str) -> Data | None:
    """What the user and the agent said. Developer messages are the program's, and may hold what memory showed."""
    if role == "assistant" and text:
        return {"role": "assistant", "content": text}
    if role == "user" and text.strip() and not text.lstrip().startswith(_WRAPPED):
        return {"role": "user", "content": text}
    return None


def _nested_command(script: str) -> Data:
    """The command of a script that runs one, as "code mode" writes it; empty where it runs several, or is not plain."""
    begins = [match.end() - 1 for match in _NESTED.finditer(script)]
    if len(begins) != 1:
        return {}
    arguments: Data = {}
    for match in _FIELD.finditer(script, begins[0]):
        arguments.setdefault(match.group(1), _literal(script, match.end()))
    return arguments if arguments.get("cmd") else {}


def _literal(script: str, at: int) -> Json:
    """The text that begins there, where it is one without anything to work out."""
    if script[at] == '"':
        try:
            return words(json.JSONDecoder().raw_decode(script, at)[0])
        except ValueError:
            return None
    plain = _PLAIN.match(script, at)
    return (plain.group(1) or plain.group(2)) if plain else None


def _output(item: Data) -> tuple[str, int | None]:
    """What came back without the program's words around it, and the exit code. A command that still runs has none.

    "Code mode" writes parts of text, of which one may be what a command came to; older releases wrote an object.
    """
    value = item.get("output")
    parts = [words(at(part, "text")) for part in listing(value)] or [
        value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    ]
    objects = [match for part in parts if (match := _object(part))]
    whole = "\n".join(parts)
    head, marked, body = whole.partition(_OUTPUT)
    if not (_HEAD.match(head) and "Wall time" in head):
        head, marked, body = whole, "", ""
    if len(objects) == 1:
        code = objects[0].get("exit_code", at(objects[0], "metadata", "exit_code"))
        output = objects[0].get("output")
        return output if isinstance(output, str) else body or head, code if isinstance(code, int) else None
    codes = _EXIT.findall(head[-1000:]) if marked and not objects else _DENIED.findall(head[:1000])
    text = body.removeprefix("\n" * (len(parts) > 1)) if marked else head
    return text, int(codes[-1]) if codes else None


def _object(text: str) -> Data:
    try:
        return mapping(json.loads(text)) if text.startswith("{") else {}
    except (ValueError, RecursionError):
        return {}


def _result(item: Data) -> Data:
    text, code = _output(item)
    return tool_result(item.get("call_id"), text, failed=bool(code), stated=code is not None)


def _run(session: _Session) -> Run:
    usage = spent_on([session.usage], "input_tokens", "output_tokens")
    return Run(
        messages=session.messages,
        prompts=prompts_in(session.messages),
        source="codex",
        run_id=session.run_id,
        model=session.model or None,
        usage=usage.model_copy(update={"requests": session.requests}),
        exit_codes=session.exit_codes,
    )


FORMAT = sessions("codex", "Codex sessions (`rollout-*.jsonl`)", _matches, _Session, _run)

"""Reads sessions of Codex (`rollout-*.jsonl`): one session a file, of which a sub-agent has one of its own.

What a command prints and comes to after its call returned is of that call, and not of those that waited for it.
"""

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
_RUNS_ON = re.compile(r"running with ((?:session|cell) ID \d+)")  # a process, or a script in "code mode"
_WAITS = re.compile(r"""\b(session|cell)_id["']?\s*:\s*["']?(\d+)""")
_WENT_WRONG = re.compile(r"Script error:|write_stdin failed|aborted by ")
_STOPS = re.compile(r"\\(?:u00|x)03")  # Ctrl-C
_TOOL = re.compile(r"\btools\.(\w+)\(")
_NESTED = re.compile(r"\btools\.exec_command\(\s*\{")
_FIELD = re.compile(r"""[{,]\s*["']?(cmd|workdir)["']?\s*:\s*(?=["'`])""")
_PLAIN = re.compile(r"'([^'\\\n]*)'|`([^`\\$]*)`")
_LABEL = re.compile(r"\A[^\n{\[]{0,80}\n(?=\{)")  # what a script prints above that to which a command came


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
    scripts: dict[str, tuple[list[Data], list[Json], Data]] = field(default_factory=dict)  # commands, turn, call
    begun: dict[str, str] = field(default_factory=dict[str, str])  # the call that began it, by its name or a later call
    printed: dict[str, tuple[Data, list[str]]] = field(default_factory=dict)  # the result of that call, and its pieces
    stopped: set[str] = field(default_factory=set[str])  # the calls that were interrupted: their exit codes say nothing

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
        elif kind == "response_item" and payload.get("type") in _CALLS:
            self._call(payload)
        elif kind == "response_item" and payload.get("type") in _RESULTS:
            self._results(words(payload.get("call_id")), _parts(payload.get("output")))
        elif kind == "response_item" and payload.get("type") == "message" and (message := _message(payload)):
            self.messages.append(message)

    def _call(self, item: Data) -> None:
        """Calls that follow each other before any result are of one turn, in which their results are looked for."""
        id, name = words(item.get("call_id")), words(item.get("name")) or "local_shell"
        given = item.get("arguments", item.get("input", item.get("action")))
        text = given if isinstance(given, str) else ""
        tools = _TOOL.findall(text) if name == "exec" else []
        name = "apply_patch" if "apply_patch" in tools else name  # what it runs besides is not told apart
        commands = _nested_commands(text) if name == "exec" else []
        if len(commands) == 1:
            name, given = "exec_command", commands[0]
        elif owner := self.begun.get(_waits_for(name, tools, text)):
            self.begun[id] = owner
            self.stopped |= {owner} if _STOPS.search(text) else set()
        turn, call = mapping(self.messages[-1]) if self.messages else {}, tool_call(id, name, given)
        if not (calls := listing(turn.get("tool_calls"))):
            self.messages.append({"role": "assistant", "content": "", "tool_calls": calls})
        calls.append(call)
        self.scripts |= {id: (commands, calls, call)} if len(commands) > 1 else {}

    def _results(self, id: str, parts: list[str]) -> None:
        """What came back of a call; a script that says of each of its commands what it came to is as many calls."""
        commands, calls, call = self.scripts.pop(id, ([], [], {}))
        outputs = [output for part in parts for output in _outputs(part)] if commands else []
        if not commands or len(outputs) != len(commands):
            self._result(id, *_output(parts))
            return
        made = [tool_call(f"{id}.{number}", "exec_command", command) for number, command in enumerate(commands, 1)]
        call |= made[0]
        calls += made[1:]
        for each, output in zip(made, outputs, strict=True):
            self._result(words(each["id"]), *output)

    def _result(self, id: str, text: str, code: int | None, runs_on: str) -> None:
        """What a call brings of what an earlier one began, its exit code too, is of the earlier one."""
        owner = self.begun.pop(id, id)
        code = None if owner in self.stopped else code
        message = tool_result(id, text, failed=bool(code) and owner == id, stated=code is not None)
        self.messages.append(message)
        self.begun |= {runs_on: owner} if runs_on else {}
        self.exit_codes |= {} if code is None else {owner: code}
        if owner != id:
            first, pieces = self.printed[owner]
            pieces += [] if _WENT_WRONG.match(text) else [text]
            first |= {} if code is None else tool_result(owner, "", failed=bool(code), stated=True)
        elif runs_on:
            self.printed[id] = message, [text]


def _message(item: Data) -> Data | None:
    """What the user and the agent said. Developer messages are the program's, and may hold what memory showed."""
    role, text = words(item.get("role")), "\n".join(words(at(part, "text")) for part in listing(item.get("content")))
    if role == "assistant" and text:
        return {"role": "assistant", "content": text}
    if role == "user" and text.strip() and not text.lstrip().startswith(_WRAPPED):
        return {"role": "user", "content": text}
    return None


def _waits_for(name: str, tools: list[str], given: str) -> str:
    """The name of what a call, also one in a script that does nothing else, brings more of; empty where of nothing."""
    waits, named = name in ("write_stdin", "wait") or tools == ["write_stdin"], _WAITS.findall(given)
    return f"{named[0][0]} ID {named[0][1]}" if waits and len(named) == 1 else ""


def _nested_commands(script: str) -> list[Data]:
    """The commands of a script, as "code mode" writes it; none where one of them is not plain."""
    begins, commands = [match.end() - 1 for match in _NESTED.finditer(script)], list[Data]()
    for begin, end in zip(begins, [*begins[1:], len(script)], strict=False):
        fields = reversed([*_FIELD.finditer(script, begin, end)])  # the first of a name counts
        commands.append({match[1]: _literal(script, match.end()) for match in fields})
    return commands if all(command.get("cmd") for command in commands) else []


def _literal(script: str, at: int) -> Json:
    """The text that begins there, where it is one without anything to work out."""
    if script[at] == '"':
        try:
            return words(json.JSONDecoder().raw_decode(script, at)[0])
        except ValueError:
            return None
    plain = _PLAIN.match(script, at)
    return (plain.group(1) or plain.group(2)) if plain else None


def _parts(value: Json) -> list[str]:
    """The texts of an output. "Code mode" writes several; older releases wrote an object."""
    parts = [words(at(part, "text")) for part in listing(value)]
    return parts or [value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)]


def _output(parts: list[str]) -> tuple[str, int | None, str]:
    """What came back without the program's words around it, the exit code, and the name of what still runs."""
    objects = [match for part in parts if (match := mapping(_json(part)))]
    whole = "\n".join(parts)
    head, marked, body = whole.partition(_OUTPUT)
    if not (_HEAD.match(head) and "Wall time" in head):
        head, marked, body = whole, "", ""
    if len(objects) == 1:
        return _output_of(objects[0], body or head)
    codes = _EXIT.findall(head[-1000:]) if marked and not objects else _DENIED.findall(head[:1000])
    names = _RUNS_ON.findall(head[-1000:]) if marked and not codes else []
    text = body.removeprefix("\n" * (len(parts) > 1)) if marked else head
    return text, int(codes[-1]) if codes else None, names[-1] if names else ""


def _output_of(answer: Data, text: str) -> tuple[str, int | None, str]:
    """What an object says that a command came to; the text where it has no output."""
    code, output = answer.get("exit_code", at(answer, "metadata", "exit_code")), answer.get("output")
    code, session = code if isinstance(code, int) else None, answer.get("session_id")
    name = f"session ID {session}" if code is None and isinstance(session, int) else ""
    return output if isinstance(output, str) else text, code, name


def _outputs(part: str) -> list[tuple[str, int | None, str]]:
    """What the objects, which a text may be, say that commands came to."""
    value = _json(_LABEL.sub("", part))
    outputs = [_output_of(answer, "") for answer in map(mapping, listing(value) or [value]) if "output" in answer]
    return [output for output in outputs if output[1] is not None or output[2]]


def _json(text: str) -> Json:
    try:
        return json.loads(text) if text.startswith(("{", "[")) else None
    except (ValueError, RecursionError):
        return None


def _run(session: _Session) -> Run:
    usage = spent_on([session.usage], "input_tokens", "output_tokens")
    for message, texts in session.printed.values():
        message["content"] = "".join(texts)
    return Run(
        messages=session.messages,
        prompts=prompts_in(session.messages),
        source="codex",
        run_id=session.run_id,
        model=session.model or None,
        usage=usage.model_copy(update={"requests": session.requests}),
        exit_codes={id: code for id, code in session.exit_codes.items() if id not in session.stopped},
    )


FORMAT = sessions("codex", "Codex sessions (`rollout-*.jsonl`)", _matches, _Session, _run)

"""Reads chats of Qwen Code (`chats/*.jsonl`): Gemini's parts in lines like those of Claude Code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from lessonbank.types import Json, Usage

from ._files import Source
from ._reading import Data, Entry, Format, Run, at, count, listing, mapping, one_run, tool_call, words

NAME = "qwen_code"
_TRAILER = re.compile(
    r"(?:\n(?:Error: \(none\)|Exit Code: 0|Signal: \(none\)|Background PIDs: \(none\)|"
    r"Process Group PGID: [^\n]*))+\s*\Z"
)
_FAILED = re.compile(r"^Exit Code: -?[1-9]", re.MULTILINE)
_WRAPPED = ("<system-reminder>", "<qwen:")


def _matches(value: Json, name: str) -> bool:
    row = mapping(value)
    return "sessionId" in row and ("provenance" in row or isinstance(at(row, "message", "parts"), list))


@dataclass(slots=True)
class _Chat:
    """What the lines of a file come to."""

    run_id: str
    messages: list[Json] = field(default_factory=list[Json])
    spent: list[Data] = field(default_factory=list[Data])
    model: str = ""

    def add(self, line: Data) -> None:
        """Take a line in; one of an unknown type says nothing."""
        kind = words(line.get("type"))
        parts = [mapping(part) for part in listing(at(line, "message", "parts"))]
        self.run_id = words(line.get("sessionId")) or self.run_id
        text = "\n".join(words(part.get("text")) for part in parts if part.get("text") and not part.get("thought"))
        if kind == "assistant":
            calls = [mapping(part["functionCall"]) for part in parts if "functionCall" in part]
            self.messages.append({"role": "assistant", "content": text, "tool_calls": [_call(call) for call in calls]})
            self.spent.append(mapping(line.get("usageMetadata")))
            self.model = words(line.get("model")) or self.model
        elif kind == "tool_result":
            self.messages += [
                _result(mapping(part["functionResponse"])) for part in parts if "functionResponse" in part
            ]
        elif kind == "user" and text.strip() and not text.startswith(_WRAPPED):
            is_users = words(line.get("provenance")) in ("", "real_user") and not line.get("subtype")
            self.messages.append({"role": "user" if is_users else "environment", "content": text})


def _call(call: Data) -> Data:
    return tool_call(call.get("id"), call.get("name"), mapping(call.get("args")))


def _result(told: Data) -> Data:
    response = mapping(told.get("response"))
    text = words(response.get("output")) or words(response.get("error"))
    failed = "error" in response or bool(_FAILED.search(text))
    _, marked, output = text.partition("\nOutput: ")
    output = _TRAILER.sub("", output) if marked and text.startswith("Command: ") else text
    content = "" if output == "(empty)" else output
    return {"role": "tool", "tool_call_id": words(told.get("id")), "content": content, "is_error": failed}


def _run(chat: _Chat) -> Run:
    usage = Usage(
        requests=len(chat.spent),
        input_tokens=sum(count(tokens.get("promptTokenCount")) for tokens in chat.spent),
        output_tokens=sum(count(tokens.get("candidatesTokenCount")) for tokens in chat.spent),
    )
    return Run(
        messages=chat.messages,
        source="qwen-code",
        run_id=chat.run_id,
        model=chat.model or None,
        usage=usage,
    )


def _read(source: Source) -> Iterator[Entry]:
    chat = _Chat(source.stem)
    return one_run(source, format=NAME, add=chat.add, build=lambda: _run(chat))


FORMAT = Format(NAME, "Qwen Code chats (`chats/*.jsonl`)", _matches, _read)

"""Reads chats of Qwen Code (`chats/*.jsonl`): Gemini's parts in lines like those of Claude Code."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from lessonbank.types import Json, Usage

from ._files import Skipped, Source
from ._reading import Data, Entry, Format, Run, at, attempt, count, listing, mapping, words

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
    function: Data = {"name": words(call.get("name")), "arguments": json.dumps(mapping(call.get("args")))}
    return {"id": words(call.get("id")), "type": "function", "function": function}


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
    for row in source.rows():
        if isinstance(row, Skipped):
            yield row
        else:
            chat.add(mapping(row.value))
    yield attempt(source, 1, NAME, lambda: _run(chat))


FORMAT = Format(NAME, "Qwen Code chats (`chats/*.jsonl`)", _matches, _read)

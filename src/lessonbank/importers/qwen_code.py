"""Reads chats of Qwen Code (`chats/*.jsonl`): Gemini's parts in lines like those of Claude Code."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from lessonbank.contracts.records import Json

from ._reading import (
    Data,
    Run,
    at,
    listing,
    mapping,
    shell_exit_code,
    spent_on,
    tool_call,
    tool_result,
    without_blocks,
    without_memory,
    without_trailer,
    words,
)
from ._sessions import prompts_in, sessions

_WRAPPED = ("<system-reminder>", "<qwen:")
_HOOK = re.compile(r"<qwen:user-prompt-submit-context>"), re.compile(r"</qwen:user-prompt-submit-context>")
"""In a terminal session it stands in the user's own message."""


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
    exit_codes: dict[str, int] = field(default_factory=dict[str, int])

    def add(self, line: Data) -> None:
        """Take a line in; one of an unknown type says nothing."""
        kind = words(line.get("type"))
        parts = [mapping(part) for part in listing(at(line, "message", "parts"))]
        self.run_id = words(line.get("sessionId")) or self.run_id
        text = "\n".join(words(part.get("text")) for part in parts if part.get("text") and not part.get("thought"))
        if kind == "assistant":
            made = [mapping(part["functionCall"]) for part in parts if "functionCall" in part]
            calls: list[Json] = [
                tool_call(call.get("id"), call.get("name"), mapping(call.get("args"))) for call in made
            ]
            self.messages.append({"role": "assistant", "content": text, "tool_calls": calls})
            self.spent.append(mapping(line.get("usageMetadata")))
            self.model = words(line.get("model")) or self.model
        elif kind == "tool_result":
            results = [mapping(part["functionResponse"]) for part in parts if "functionResponse" in part]
            status = words(at(line, "toolCallResult", "status"))
            self.messages += [_result(result, status) for result in results]
            self.exit_codes |= {
                words(result.get("id")): code for result in results if (code := _exit_code(result)) is not None
            }
        elif (
            kind == "user"
            and (text := without_blocks(text, *_HOOK, blanks=None)).strip()
            and not text.startswith(_WRAPPED)
        ):
            is_users = words(line.get("provenance")) in ("", "real_user") and not line.get("subtype")
            self.messages.append({"role": "user" if is_users else "environment", "content": text})


def _result(result: Data, status: str) -> Data:
    response = mapping(result.get("response"))
    text = without_memory(words(response.get("output")) or words(response.get("error")))
    code = _exit_code(result)
    failed = "error" in response or status == "error" or bool(code)
    _, marked, output = text.partition("\nOutput: ")
    output = without_trailer(output) if marked and text.startswith("Command: ") else text
    return tool_result(
        result.get("id"), "" if output == "(empty)" else output, failed=failed, stated=code == 0 or status == "success"
    )


def _exit_code(result: Data) -> int | None:
    response = mapping(result.get("response"))
    return shell_exit_code(without_memory(words(response.get("output")) or words(response.get("error"))))


def _run(chat: _Chat) -> Run:
    return Run(
        messages=chat.messages,
        prompts=prompts_in(chat.messages),
        source="qwen-code",
        run_id=chat.run_id,
        model=chat.model or None,
        usage=spent_on(chat.spent, "promptTokenCount", "candidatesTokenCount"),
        exit_codes=chat.exit_codes,
    )


FORMAT = sessions("qwen_code", "Qwen Code chats (`chats/*.jsonl`)", _matches, _Chat, _run)

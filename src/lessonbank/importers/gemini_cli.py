"""Reads chats of Gemini CLI (`session-*.jsonl`): a message that is written again replaces its earlier form."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
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
    without_trailer,
    words,
)
from ._sessions import prompts_in, sessions

_HOOK = re.compile(r"<hook_context>"), re.compile(r"</hook_context>")
_WRAPPER = re.compile(r"\A\s*<untrusted_context>\n?(.*?)\n?</untrusted_context>\s*\Z", re.DOTALL)
_SHELL = "run_shell_command"
_FAILED = re.compile(r"^(?:Exit Code: -?[1-9]|Error: (?!\(none\)))", re.MULTILINE)


def _matches(value: Json, name: str) -> bool:
    row = mapping(value)
    return "sessionId" in row and "projectHash" in row and "startTime" in row


@dataclass(slots=True)
class _Chat:
    """The messages of a chat by their ids, in the order in which they first came."""

    run_id: str
    messages: dict[str, Data] = field(default_factory=dict[str, Data])

    def add(self, line: Data) -> None:
        """Take a line in: a header, a message, or a change of what was written before."""
        self.run_id = words(line.get("sessionId")) or self.run_id
        changed = mapping(line.get("$set"))
        whole = changed.get("messages", line.get("messages"))
        if isinstance(whole, list):
            self.messages = {}
        if id := words(line.get("$rewindTo")):
            places = list(self.messages)
            for place in places[places.index(id) if id in places else 0 :]:
                del self.messages[place]
        for message in [*listing(whole), line]:
            row = mapping(message)
            if words(row.get("id")) and words(row.get("type")):
                self.messages[words(row["id"])] = row

    def turns(self) -> Iterator[Json]:
        """The session as messages of a conversation."""
        for message in self.messages.values():
            text = _text(message.get("content"))
            if message["type"] == "user" and text and not text.startswith("<session_context>"):
                yield {"role": "user", "content": text}
            elif message["type"] == "gemini":
                calls = [mapping(call) for call in listing(message.get("toolCalls"))]
                made = [tool_call(call.get("id"), call.get("name"), mapping(call.get("args"))) for call in calls]
                yield {"role": "assistant", "content": text, "tool_calls": list[Json](made)}
                yield from (_result(call) for call in calls if call.get("status") or call.get("result"))


def _text(content: Json) -> str:
    """What was said, without what hooks added: also memory speaks there."""
    parts = [content] if isinstance(content, str) else [words(at(part, "text")) for part in listing(content)]
    return without_blocks("\n".join(words(part) for part in parts if part), *_HOOK, blanks="").strip()


def _output(call: Data) -> str:
    responses = [mapping(at(part, "functionResponse", "response")) for part in listing(call.get("result"))]
    text = "\n".join(words(response.get("output")) or words(response.get("error")) for response in responses)
    text = without_blocks(text, *_HOOK, blanks="")  # a cure that was told after the command
    wrapped = _WRAPPER.match(text)
    return wrapped.group(1) if wrapped else text


def _result(call: Data) -> Data:
    text = without_trailer(_output(call).removeprefix("Output: "))
    status, code = call.get("status"), shell_exit_code(_output(call)) if call.get("name") == _SHELL else None
    in_words = status is None or call.get("name") == _SHELL
    failed = bool(code) if code is not None else in_words and bool(_FAILED.search(text))
    failed = failed or status not in (None, "success")
    return tool_result(call.get("id"), "" if text == "(empty)" else text, failed=failed, stated=status is not None)


def _exit_codes(messages: Iterable[Data]) -> dict[str, int]:
    calls = [mapping(call) for message in messages for call in listing(message.get("toolCalls"))]
    done = [call for call in calls if call.get("status") in (None, "success")]
    return {words(call.get("id")): code for call in done if (code := shell_exit_code(_output(call))) is not None}


def _run(chat: _Chat) -> Run:
    messages, turns = list(chat.messages.values()), list(chat.turns())
    spent = [mapping(message.get("tokens")) for message in messages if "tokens" in message]
    models = [words(message.get("model")) for message in messages if message.get("model")]
    return Run(
        messages=turns,
        prompts=prompts_in(turns),
        source="gemini-cli",
        run_id=chat.run_id,
        model=models[-1] if models else None,
        usage=spent_on(spent, "input", "output"),
        exit_codes=_exit_codes(messages),
    )


FORMAT = sessions(
    "gemini_cli", "Gemini CLI chats (`session-*.jsonl`, or `.json` of older releases)", _matches, _Chat, _run
)

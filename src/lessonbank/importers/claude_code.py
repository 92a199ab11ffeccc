"""Reads Claude Code transcripts (`.jsonl`): one session a file, with the runs of its sub-agents."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from lessonbank.contracts.records import Json, Usage
from lessonbank.errors import FormatError
from lessonbank.text.messages import first_request, run_of_messages

from ._files import Row, Skipped, Source
from ._reading import Data, Entry, Format, Run, at, attempts, count, listing, mapping, words
from ._rejections import INTERRUPTED
from ._sessions import prompts_in, tasks_of
from ._shell import stated_exit_code

NAME = "claude_code"
_SPEAKERS = {"user", "assistant"}
_WRAPPER: Final = re.compile(r"\s*(?:<(?:command|local-command|bash|system|task|user|ide|background)-[\w-]+>|Caveat: )")
"""The program's own words in the user's name."""
_COMMAND: Final = re.compile(r"<command-name>\s*(/?[^<\n]{1,200}?)\s*</command-name>")
_ARGUMENTS: Final = "<command-args>"
_OWN_CALL: Final = re.compile(r"a[a-z]+(?:_[a-z]+)*-[0-9a-f]+")
"""The agent id of a call that the program made for itself, such as a summary of the session: no task of anybody."""
_INPUTS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


def _matches(value: Json, name: str) -> bool:
    row = mapping(value)
    if row.get("type") == "summary":
        return "leafUuid" in row
    if isinstance(row.get("message"), dict) and words(row.get("type")) in _SPEAKERS:
        return True
    return "sessionId" in row and isinstance(row.get("type"), str)


@dataclass(slots=True)
class _Session:
    """The messages of one run, in the order of the file."""

    line: int
    run_id: str
    messages: list[Data] = field(default_factory=list[Data])
    names: dict[int, str] = field(default_factory=dict[int, str])
    """What the file calls the messages of the user, by their places."""
    message_id: str = ""
    requests: list[str] = field(default_factory=list[str])
    model: str = ""
    error: str = ""
    usage: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    """The tokens that each request sent and got."""
    seen: set[int] = field(default_factory=set[int])
    exit_codes: dict[str, int] = field(default_factory=dict[str, int])


@dataclass(slots=True)
class _Transcript:
    """A file being read: its sessions, and which sub-agent each line belongs to."""

    stem: str
    sessions: dict[str, _Session] = field(default_factory=dict[str, _Session])
    roots: dict[str, str] = field(default_factory=dict[str, str])
    keys: dict[str, str] = field(default_factory=dict[str, str])
    """Each name of a field once: a parser makes it anew for each line."""

    def add(self, row: Row) -> None:
        """Take one line in.

        Raises:
            FormatError: it is no line of a transcript, or its message cannot be read.
        """
        line = row.value
        if not isinstance(line, dict) or not isinstance(line.get("type"), str):
            raise FormatError("not a line of a transcript: an object with a type is expected")
        if line["type"] not in _SPEAKERS or _OWN_CALL.fullmatch(words(line.get("agentId"))):
            return
        message = _message(line, self.keys)
        run_id = self._run_id(line)
        session = self.sessions.setdefault(run_id, _Session(row.line, run_id))
        once = hash((words(line.get("uuid")), json.dumps(message, sort_keys=True)))
        if line.get("uuid") and once in session.seen:
            return
        session.seen.add(once)
        _append(session, line, message)

    def _run_id(self, line: Data) -> str:
        """A sub-agent's lines hang together by its id, or by the line they descend from."""
        session = words(line.get("sessionId")) or self.stem
        if line.get("isSidechain") is not True:
            return session
        uuid, parent = words(line.get("uuid")), words(line.get("parentUuid"))
        root = words(line.get("agentId")) or self.roots.get(parent) or uuid
        self.roots[uuid] = root
        return f"{session}/{root}"


def _message(line: Data, keys: dict[str, str]) -> Data:
    """The message of a line, nested or flat."""
    inner = line.get("message", line)
    message = mapping(inner)
    if not isinstance(message.get("content"), str | list):
        raise FormatError(f"the {words(line.get('type'))} line has no message content")
    content = message["content"]
    if isinstance(content, list):
        content = [_with_keys(part, keys) if isinstance(part, dict) else part for part in content]
    turn: Data = {"role": words(message.get("role")) or words(line.get("type")), "content": content}
    run_of_messages([turn], task="readable?")
    if line.get("isMeta") is True or line.get("isCompactSummary") is True:
        turn = {**turn, "role": "environment", "name": "claude-code"}
    return turn


def _with_keys(part: Data, keys: dict[str, str]) -> Data:
    return {keys.setdefault(key, key): value for key, value in part.items()}


def _append(session: _Session, line: Data, message: Data) -> None:
    """Lines with one message id are pieces of one reply, unless something came between them."""
    message_id = words(at(line, "message", "id"))
    session.error = ""
    if message["role"] != "assistant":
        session.message_id = ""
        session.names[len(session.messages)] = words(line.get("uuid"))
        session.messages.append(message)
        _note_exit_codes(session, line, message)
        return
    if message_id and message_id == session.message_id:
        last = session.messages[-1]
        last["content"] = [*_blocks(last["content"]), *_blocks(message["content"])]
    else:
        session.messages.append(message)
    session.message_id = message_id
    spent = mapping(at(line, "message", "usage"))
    tokens = sum(count(spent.get(key)) for key in _INPUTS), count(spent.get("output_tokens"))
    session.usage[message_id or f"line {len(session.messages)}"] = tokens
    model = words(at(line, "message", "model"))
    session.model = model if model and model != "<synthetic>" else session.model
    if line.get("isApiErrorMessage") is True:
        session.error = _text(message["content"]) or "API error"


def _note_exit_codes(session: _Session, line: Data, message: Data) -> None:
    for block in listing(message["content"]):
        if at(block, "type") == "tool_result" and (code := _exit_code(mapping(block), line)) is not None:
            session.exit_codes[words(at(block, "tool_use_id"))] = code


def _exit_code(result: Data, line: Data) -> int | None:
    """A command that failed says its code. An error without one is something else: a refusal, or a clock."""
    if result.get("is_error") is True:
        return stated_exit_code(_text(result.get("content")))
    is_open = at(line, "toolUseResult", "interrupted") is True or at(line, "toolUseResult", "backgroundTaskId")
    return None if is_open else 0


def _blocks(content: Json) -> list[Json]:
    return content if isinstance(content, list) else [{"type": "text", "text": content}]


def _text(content: Json) -> str:
    if isinstance(content, str):
        return content
    parts = (part if isinstance(part, str) else words(at(part, "text")) for part in listing(content))
    return "\n".join(filter(None, parts))


def _as_spoken(message: Data, messages: list[Data], place: int) -> Data:
    """A message: what the program says in the user's name as its own, and a command as the user typed it."""
    text = _text(message["content"]) if message["role"] == "user" else ""
    if not _WRAPPER.match(text):
        return message
    typed = _typed(text, messages[max(place - 1, 0) : place], messages[place + 1 : place + 2])
    if typed:
        return {"role": "user", "content": typed}
    return {**message, "role": "environment", "name": "claude-code"}


def _typed(text: str, before: list[Data], after: list[Data]) -> str:
    """A command that asks the agent for something, as it was typed; empty for one that the program carries out."""
    name, (arguments, closed, _) = _COMMAND.search(text), text.partition(_ARGUMENTS)[2].partition("</command-args>")
    answered = any(message["role"] != "user" for message in after)
    beside = (_text(message["content"]).lstrip() for message in (*before, *after) if message["role"] != "assistant")
    if name is None or not answered or any(content.startswith("<local-command-") for content in beside):
        return ""
    return f"/{name.group(1).lstrip('/')} {arguments.strip() if closed else ''}".strip()


def _task(messages: list[Json]) -> str | None:
    """The first thing the user asked themselves; what the program wrapped for them only if there is nothing else."""
    texts = [text for m in messages if at(m, "role") == "user" and (text := _text(at(m, "content")).strip())]
    return first_request(text for text in texts if not text.startswith(INTERRUPTED)) or next(iter(texts), None)


def _run(session: _Session) -> Run:
    spent = session.usage.values()
    messages: list[Json] = [_as_spoken(m, session.messages, place) for place, m in enumerate(session.messages)]
    session.messages.clear()
    return Run(
        messages=messages,
        source="claude-code",
        run_id=session.run_id,
        task=_task(messages),
        prompts={} if "/" in session.run_id else prompts_in(messages, session.names),
        model=session.model or None,
        error=session.error or None,
        exit_codes=session.exit_codes,
        usage=Usage(
            requests=len(spent),
            input_tokens=sum(sent for sent, _ in spent),
            output_tokens=sum(back for _, back in spent),
        ),
    )


def _read(source: Source) -> Iterator[Entry]:
    transcript = _Transcript(source.stem)
    for row in source.rows():
        if isinstance(row, Skipped):
            yield row
            continue
        try:
            transcript.add(row)
        except FormatError as error:
            yield Skipped(source.path, row.line, str(error))
    while transcript.sessions:
        session = transcript.sessions.pop(next(iter(transcript.sessions)))
        line, run = session.line, _run(session)
        del session  # what it knew of its lines takes as much room as they do
        yield from attempts(source, line, NAME, partial(tasks_of, run))


FORMAT = Format(NAME, "Claude Code transcripts (`.jsonl`); sub-agents are runs of their own", _matches, _read)

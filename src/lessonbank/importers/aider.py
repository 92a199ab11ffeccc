"""Reads chat histories of Aider (`.aider.chat.history.md`): Markdown, in which each chat is a run.

Aider marks the user's lines with `####` and its own with `>`, and ends both with two blanks. The rest is the model's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Final

from lessonbank._base.safe_read import open_regular
from lessonbank.contracts.records import Json, Usage

from ._files import Skipped, Source
from ._reading import Entry, Format, Run, at, attempt, words

NAME: Final = "aider"
FILE: Final = ".aider.chat.history.md"
_BEGINS: Final = re.compile(r"^# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)[ \t]*$", re.MULTILINE)
_MARKS: Final = {"#### ": "user", "> ": "environment"}
_BLANKS: Final = "  "
_COMMAND: Final = re.compile(r"/(\w[\w-]*)\s*")
_ASKS: Final = frozenset({"ask", "code", "architect", "context"})
"""Commands whose words are a request of the model; the others steer the program."""
_OWN: Final = "# Fix any errors below, if possible."
"""How Aider asks its model, in the user's name, for what a linter found."""
_QUESTION: Final = re.compile(r"\A# Question: (.*?)\n\n# Relevant docs:", re.DOTALL)
_MODEL: Final = re.compile(r"^(?:Main m|M)odel: (\S+)", re.MULTILINE)
_COUNT: Final = r"(\d[\d,]*(?:\.\d+)?)(k?)"
_SPENT: Final = re.compile(
    rf"^Tokens: {_COUNT} sent,.{{0,80}}? {_COUNT} received\.(?: Cost: \$(\d+(?:\.\d+)?) (?:message|request))?",
    re.MULTILINE,
)
_HEAD: Final = 65_536


def is_store(path: Path, /) -> bool:
    """Whether a file is a history, by its name or by how a chat begins in it."""
    if not path.is_file() or path.name.endswith(FILE):
        return path.is_file()
    if path.suffix != ".md":
        return False
    with open_regular(path) as file:
        return _BEGINS.search(file.read(_HEAD).decode("utf-8-sig", "replace")) is not None


def _read(source: Source) -> Iterator[Entry]:
    try:
        text = source.read_all().decode("utf-8", "replace").replace("\r\n", "\n")
    except OSError as error:
        yield Skipped(source.path, 1, f"the file cannot be read: {error}")
        return
    before, *rest = _BEGINS.split(text)
    chats = [("", before), *zip(rest[::2], rest[1::2], strict=True)]
    is_trimmed = f"{_BLANKS}\n" not in text  # by an editor
    has_chat = False
    for number, (began, chat) in enumerate(chats, 1):
        messages = _messages(chat, is_trimmed=is_trimmed)
        if {"user", "assistant"} <= {words(at(message, "role")) for message in messages}:
            has_chat = True
            yield attempt(source, number, NAME, partial(_run, source, began or str(number), messages))
    if not has_chat:
        yield Skipped(source.path, 1, "holds no chat in which a model answered a user", unknown=True)


def _messages(chat: str, *, is_trimmed: bool) -> list[Json]:
    """Lines of one speaker in a row are one message. Nobody answers before a user speaks."""
    messages: list[Json] = []
    lines = (_spoken(line, is_trimmed=is_trimmed) for line in chat.split("\n"))
    is_asked = False
    for role, group in groupby(lines, key=itemgetter(0)):
        body = "\n".join(text for _, text in group).strip()
        is_asked = is_asked or role == "user"
        if body:
            messages.append({"role": role if is_asked else "environment", "content": body})
    return messages


def _spoken(line: str, *, is_trimmed: bool) -> tuple[str, str]:
    """Who speaks, and what. A quotation or a heading of the model does not end in blanks."""
    for mark, role in _MARKS.items():
        if line.startswith(mark) and (is_trimmed or line.endswith(_BLANKS)):
            return role, line.removeprefix(mark).removesuffix(_BLANKS)
    return "assistant", line


def _run(source: Source, began: str, messages: list[Json]) -> Run:
    output = "\n".join(words(at(message, "content")) for message in messages if at(message, "role") == "environment")
    spent, models = list(_SPENT.finditer(output)), _MODEL.findall(output)
    return Run(
        messages=messages,
        source="aider",
        speakers="places",
        run_id=f"{source.folder.name}/{began}",
        task=_task(messages),
        model=models[-1] if models else None,
        usage=Usage(
            requests=len(spent),
            input_tokens=sum(_tokens(match[1], match[2]) for match in spent),
            output_tokens=sum(_tokens(match[3], match[4]) for match in spent),
            cost=sum(float(match[5] or 0) for match in spent) if spent else None,
        ),
    )


def _tokens(number: str, thousands: str) -> int:
    return round(float(number.replace(",", "")) * (1000 if thousands else 1))


def _task(messages: list[Json]) -> str | None:
    """The first words to the model: a command that steers the program asks for nothing."""
    texts = [words(at(message, "content")).strip() for message in messages if at(message, "role") == "user"]
    for text in sorted(texts, key=lambda text: text.startswith(_OWN)):
        if question := _QUESTION.match(text):
            return question[1].strip() or None
        command = _COMMAND.match(text)
        asked = text[command.end() :] if command and command[1] in _ASKS else "" if command else text
        if asked.strip():
            return asked.strip()
    return None


FORMAT = Format(NAME, "Aider chat histories (`.aider.chat.history.md`)", lambda value, name: False, _read)

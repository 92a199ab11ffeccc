"""Reads opencode's database (`opencode.db`) and exported sessions: each is a run, and one of a sub-agent another."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from lessonbank._base.safe_read import has_table, open_database
from lessonbank.contracts.records import Json
from lessonbank.errors import FormatError

from ._files import RECORD_LIMIT, Skipped, Source, parse
from ._reading import (
    Data,
    Entry,
    Format,
    Run,
    at,
    attempts,
    listing,
    mapping,
    spent_on,
    tool_call,
    tool_result,
    without_memory,
    words,
)
from ._sessions import prompts_in, tasks_of

NAME = "opencode"
FILE: Final = "opencode.db"
_TABLES: Final = ("session", "message", "part")
_LONGEST: Final = 16 * 2**20
_SESSIONS: Final = "SELECT id, parent_id FROM session ORDER BY time_created, id"
_PARTS: Final = """SELECT message.id, message.data, part.data FROM message JOIN part ON part.message_id = message.id
    WHERE message.session_id = ? AND length(message.data) <= ? AND length(part.data) <= ?
    ORDER BY message.time_created, message.id, part.id"""


def is_store(path: Path, /) -> bool:
    """Whether a file is opencode's database, by its name."""
    return path.name == FILE and path.is_file()


def _session(database: sqlite3.Connection, session: str, parent: str) -> Run:
    messages: dict[str, list[Data]] = {}
    headers: dict[str, Data] = {}
    left = RECORD_LIMIT
    for message, data, part in database.execute(_PARTS, (session, _LONGEST, _LONGEST)):
        left -= _size(part) + (0 if message in headers else _size(data))
        if left < 0:
            raise FormatError(f"the session holds more than {RECORD_LIMIT >> 20} MB")
        if message not in headers:
            headers[message] = mapping(_json(data))
        messages.setdefault(message, []).append(mapping(_json(part)))
    return _run(session, parent, headers, messages)


def _run(session: str, parent: str, headers: Mapping[str, Data], messages: Mapping[str, list[Data]]) -> Run:
    turns = [turn for id, parts in messages.items() for turn in _turns(words(headers[id].get("role")), parts)]
    spent = [mapping(header.get("tokens")) for header in headers.values() if "tokens" in header]
    models = [words(header.get("modelID")) for header in headers.values() if header.get("modelID")]
    errors = [words(at(header, "error", "name")) for header in headers.values() if header.get("error")]
    return Run(
        messages=turns,
        prompts={} if parent else prompts_in(turns),
        source="opencode",
        run_id=f"{parent}/{session}" if parent else session,
        model=models[-1] if models else None,
        error=errors[-1] if errors and errors[-1] != "MessageAbortedError" else None,
        usage=spent_on(spent, "input", "output"),
        exit_codes=_exit_codes(part for parts in messages.values() for part in parts),
    )


def _size(value: object) -> int:
    return len(value) if isinstance(value, str | bytes) else 0


def _turns(role: str, parts: list[Data]) -> Iterator[Json]:
    """A message of opencode as messages of a conversation. What a plug-in added, memory among it, is left out."""
    texts = [words(p.get("text")) for p in parts if p.get("type") == "text" and p.get("synthetic") is not True]
    text = "\n".join(filter(None, texts))
    if role == "user" and text:
        yield {"role": "user", "content": text[1:-1] if text.startswith('"') and text.endswith('"') else text}
    elif role == "assistant":
        calls = [part for part in parts if part.get("type") == "tool"]
        yield {"role": "assistant", "content": text, "tool_calls": [_call(call) for call in calls]}
        yield from (_result(call) for call in calls if at(call, "state", "status") not in ("pending", "running"))


def _call(part: Data) -> Data:
    return tool_call(part.get("callID"), part.get("tool"), mapping(at(part, "state", "input")))


def _result(part: Data) -> Data:
    state = mapping(part.get("state"))
    failed = state.get("status") == "error" or at(state, "metadata", "exit") not in (None, 0)
    text = without_memory(words(state.get("output")) or words(state.get("error")))
    return tool_result(
        part.get("callID"),
        "" if text == "(no output)" else text,
        failed=failed,
        stated=state.get("status") == "completed",
    )


def _exit_codes(parts: Iterable[Data]) -> dict[str, int]:
    pairs = [(words(part.get("callID")), at(part, "state", "metadata", "exit")) for part in parts]
    return {id: code for id, code in pairs if isinstance(code, int) and not isinstance(code, bool)}


def _json(text: object) -> Json:
    """A column's value; one that is no JSON says nothing."""
    try:
        return parse(text) if isinstance(text, str | bytes) else None
    except ValueError:
        return None


def _is_export(value: Json, name: str) -> bool:
    first = mapping(next(iter(listing(at(value, "messages"))), None))
    return isinstance(at(value, "info", "id"), str) and isinstance(first.get("parts"), list) and "info" in first


def _exported(value: Json) -> Iterator[Run]:
    messages = {words(at(message, "info", "id")): message for message in listing(at(value, "messages"))}
    headers = {id: mapping(at(message, "info")) for id, message in messages.items()}
    parts = {id: [mapping(part) for part in listing(at(message, "parts"))] for id, message in messages.items()}
    return tasks_of(_run(words(at(value, "info", "id")), words(at(value, "info", "parentID")), headers, parts))


def _read(source: Source) -> Iterator[Entry]:
    if not is_store(source.path):
        for row in source.rows():
            entries = (
                row if isinstance(row, Skipped) else attempts(source, row.line, NAME, partial(_exported, row.value))
            )
            yield from (entries,) if isinstance(entries, Skipped) else entries
        return
    try:
        with open_database(source.path, longest=RECORD_LIMIT, log=True) as database:
            if not all(has_table(database, table) for table in _TABLES):
                raise FormatError("it has other tables")
            for number, (session, parent) in enumerate(database.execute(_SESSIONS).fetchall(), 1):
                whole = partial(_session, database, str(session), str(parent or ""))
                yield from attempts(source, number, NAME, lambda whole=whole: tasks_of(whole()))
    except (OSError, sqlite3.Error, FormatError) as error:
        why = str(error) if isinstance(error, FormatError) else type(error).__name__
        yield Skipped(source.path, 1, f"it is no database of opencode: {why}")


FORMAT = Format(NAME, "opencode's `opencode.db`, or its exports; sub-agents are runs of their own", _is_export, _read)

"""Reads sessions of Cline (`*.messages.json`): one session a file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from lessonbank.contracts.records import Json

from ._files import Skipped, Source
from ._reading import Data, Entry, Format, Run, at, attempts, listing, mapping, spent_on, words
from ._sessions import prompts_in, tasks_of

NAME = "cline"
_COMPACTED = ".compaction"
_MOST_BESIDE = 20
"""Sessions of a folder that are looked at for the one that was compacted."""
_INPUT = re.compile(r"\A\s*<user_input[^>]*>(.*)</user_input>\s*\Z", re.DOTALL)


def _matches(value: Json, name: str) -> bool:
    row = mapping(value)
    return {"sessionId", "agent", "messages"} <= row.keys() and isinstance(row["messages"], list)


def _message(message: Json) -> Json:
    """A message with Cline's frame around the user's words taken off, and its results as texts."""
    row = mapping(message)
    parts = [_part(mapping(part)) for part in listing(row.get("content"))]
    return {"role": row.get("role"), "content": parts or row.get("content")}


def _part(part: Data) -> Json:
    if part.get("type") == "text" and (framed := _INPUT.match(words(part.get("text")))):
        return {"type": "text", "text": framed.group(1)}
    if part.get("type") != "tool_result":
        return part
    results = [mapping(result) for result in listing(part.get("content"))]
    if not results or not all("result" in result for result in results):
        return part
    successes = [result.get("success") for result in results]
    failed = part.get("is_error") is True or False in successes
    stated = failed or part.get("is_error") is False or None not in successes
    text = "\n".join(words(result.get("result")) or words(result.get("error")) for result in results)
    flag: Data = {"is_error": failed} if stated else {}
    return {"type": "tool_result", "tool_use_id": part.get("tool_use_id"), "content": text, **flag}


def _exit_codes(messages: list[Json]) -> dict[str, int]:
    """Cline keeps whether commands succeeded, and no code: one that failed may also have been refused."""
    parts = [mapping(part) for message in messages for part in listing(at(message, "content"))]
    outputs = {words(part.get("tool_use_id")): listing(part.get("content")) for part in parts}
    return {
        id: 0 for id, results in outputs.items() if results and all(at(result, "success") is True for result in results)
    }


def _run(value: Json, source: Source, line: int) -> Run:
    messages = listing(at(value, "messages"))
    spent = [mapping(at(message, "metrics")) for message in messages if at(message, "metrics")]
    models = [words(at(message, "modelInfo", "id")) for message in messages if at(message, "modelInfo", "id")]
    turns = [_message(message) for message in messages]
    return Run(
        messages=turns,
        prompts=prompts_in(turns),
        source="cline",
        run_id=words(at(value, "sessionId")) or source.stem,
        model=models[-1] if models else None,
        usage=spent_on(spent, "inputTokens", "outputTokens"),
        exit_codes=_exit_codes(messages),
    )


def _read(source: Source) -> Iterator[Entry]:
    """A session; what Cline keeps of it once more when it is compacted is none, where the session lies beside it."""
    for row in source.rows():
        if isinstance(row, Skipped):
            yield row
        elif source.stem.endswith(_COMPACTED) and _has_session(mapping(row.value), source):
            yield Skipped(
                source.path, row.line, "holds a session that is compacted, and lies whole beside it", unknown=True
            )
        else:
            whole = partial(_run, row.value, source, row.line)
            yield from attempts(source, row.line, NAME, lambda whole=whole: tasks_of(whole()))


def _has_session(compacted: Data, source: Source) -> bool:
    """Whether the whole session lies in the same folder, under its id or under another name."""
    id = words(compacted.get("sessionId"))
    own = source.path.with_name(f"{id}.messages.json")
    return own.is_file() if id == Path(id).name and own.is_file() else _beside(id, source)


def _beside(id: str, source: Source) -> bool:
    files = sorted(source.path.parent.glob("*.messages.json"))[:_MOST_BESIDE]
    return any(words(at(source.beside(file).first(), "sessionId")) == id for file in files)


FORMAT = Format(NAME, "Cline sessions (`*.messages.json`)", _matches, _read)

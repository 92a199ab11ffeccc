"""Carry a scope from one bank to another: JSON lines, lossless, whole or not at all."""

from __future__ import annotations

import hashlib
import json
import os
from collections import deque
from collections.abc import AsyncIterator, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, cast

import anyio
import anyio.to_thread
from pydantic import ValidationError

from .errors import FormatError, NotFound, StoreUnavailable, UsageError
from .protocols import Store
from .types import Add, Experience, Recall, Record, Settlement, Trajectory

FORMAT = "lessonbank-export"
VERSION = 1
_BATCH = 64
_BANK = b"SQLite format 3\x00"
_KINDS: dict[str, type[Record]] = {
    "trajectory": Trajectory,
    "experience": Experience,
    "recall": Recall,
    "settlement": Settlement,
}


async def write(store: Store, path: Path, /, *, scope: str) -> int:
    """Write every record of `scope` to `path`; how many. An earlier file stays until the new one is whole and synced.

    Raises:
        UsageError: `path` is a folder, or a bank.
        StoreUnavailable: the file cannot be written.
    """
    await anyio.to_thread.run_sync(_spare, path)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    written, checksum = 0, hashlib.sha256()
    try:
        async with await anyio.open_file(partial, "w", encoding="utf-8") as out:
            await out.write(_line({"format": FORMAT, "version": VERSION, "scope": scope}))
            async for batch in _batches(_records(store, scope)):
                lines = "".join(
                    _line({"kind": kind, "record": record.model_dump(mode="json")}) for kind, record in batch
                )
                checksum.update(lines.encode())
                await out.write(lines)
                written += len(batch)
            await out.write(_line({"end": True, "records": written, "sha256": checksum.hexdigest()}))
            await out.flush()
            await anyio.to_thread.run_sync(os.fsync, out.wrapped.fileno())
        await anyio.Path(partial).replace(path)
    except OSError as error:
        raise StoreUnavailable(f"cannot write the export {str(path)!r}: {error.strerror or error}") from error
    finally:
        await anyio.Path(partial).unlink(missing_ok=True)
    return written


async def read(store: Store, path: Path, /, *, scope: str, writer: str) -> int:
    """Add the records of an export that `scope` does not have; how many were new.

    The whole file is checked before anything is written. Records keep their ids and origin and move to `scope`.

    Raises:
        FormatError: not an export, cut short, changed, or of a newer version.
    """
    await anyio.to_thread.run_sync(_check, path)
    added, lines = 0, _lines(path)
    while batch := await anyio.to_thread.run_sync(lambda: [_parse(line, path) for line in islice(lines, _BATCH)]):
        for record in batch:
            added += await _add(store, record, scope=scope, writer=writer)
    return added


def _spare(path: Path) -> None:
    """An export takes the place of an earlier file, which must not be a bank."""
    if path.is_dir():
        raise UsageError(f"{str(path)!r} is a folder: name a file for the export")
    if path.is_file():
        with path.open("rb") as file:
            if file.read(len(_BANK)) == _BANK:
                raise UsageError(f"{str(path)!r} is a bank: name another file for the export")


async def _records(store: Store, scope: str) -> AsyncIterator[tuple[str, Record]]:
    recalls: dict[str, None] = {}
    async for entry in store.receipts(scope=scope):
        recalls[entry.id] = None
        yield "recall", entry
    seen: set[str] = set()
    async for experience in store.scan(scope=scope):
        for ref in experience.attempts:
            if ref.trajectory_id not in seen:
                seen.add(ref.trajectory_id)
                yield "trajectory", await store.trajectory(ref.trajectory_id, scope=scope)
        yield "experience", experience
    for run in await store.pending(scope=scope):
        if run.id not in seen:
            yield "trajectory", run
    for recall_id in recalls:
        settlement = await store.settlement(recall_id, scope=scope)
        if settlement:
            yield "settlement", settlement


async def _add(store: Store, record: Record, *, scope: str, writer: str) -> int:
    match record:
        case Trajectory():
            return len(await store.keep([record], scope=scope))
        case Experience():
            return await _add_experience(store, record.model_copy(update={"scope": scope}), writer)
        case Recall():
            return await _add_recall(store, record.model_copy(update={"scope": scope}))
        case Settlement():
            settlement = record.model_copy(update={"scope": scope})
            present = await store.settlement(record.recall_id, scope=scope)
            if present and present.at >= settlement.at:
                return 0
            await store.apply([], scope=scope, writer=writer, settlement=settlement)
            return 1
        case _:
            return 0


async def _add_experience(store: Store, experience: Experience, writer: str) -> int:
    try:
        await store.get(experience.id, scope=experience.scope)
    except NotFound:
        await store.apply([Add(experience=experience)], scope=experience.scope, writer=writer)
        return 1
    return 0


async def _add_recall(store: Store, recall: Recall) -> int:
    try:
        await store.recall(recall.id, scope=recall.scope)
    except NotFound:
        await store.record(recall)
        return 1
    return 0


async def _batches(entries: AsyncIterator[tuple[str, Record]], /) -> AsyncIterator[list[tuple[str, Record]]]:
    held: list[tuple[str, Record]] = []
    async for entry in entries:
        held.append(entry)
        if len(held) == _BATCH:
            yield held
            held = []
    if held:
        yield held


def _line(value: dict[str, Any]) -> str:
    return json.dumps(value) + "\n"


def _lines(path: Path) -> Iterator[str]:
    """The record lines: all but the first and the last."""
    with path.open(encoding="utf-8") as file:
        next(file)
        held = next(file, "")
        for line in file:
            yield held
            held = line


def _check(path: Path) -> None:
    try:
        with path.open(encoding="utf-8") as file:
            head = _object(file.readline())
        with path.open(encoding="utf-8") as file:
            last = deque(file, maxlen=1)
        count, checksum = 0, hashlib.sha256()
        for line in _lines(path) if head else ():
            checksum.update(line.encode())
            count += 1
    except (OSError, UnicodeDecodeError) as error:
        raise FormatError(f"cannot read {str(path)!r} as an export: {error}") from error
    end = _object(last[0] if last else "")
    if head.get("format") != FORMAT:
        raise FormatError(f"{str(path)!r} is not a lessonbank export: use `lessonbank learn` for recorded runs")
    if not isinstance(version := head.get("version"), int) or version > VERSION:
        raise FormatError(f"{str(path)!r} was exported by a newer lessonbank: upgrade to read it")
    if not end.get("end") or end.get("records") != count or end.get("sha256") != checksum.hexdigest():
        raise FormatError(f"{str(path)!r} is cut short or was changed after it was written; nothing was imported")
    for line in _lines(path):
        _parse(line, path)


def _object(line: str) -> dict[str, Any]:
    try:
        value: object = json.loads(line)
    except ValueError:
        return {}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _parse(line: str, path: Path) -> Record:
    entry = _object(line)
    kind = _KINDS.get(str(entry.get("kind")))
    if kind is None:
        raise FormatError(f"{str(path)!r} holds a record of unknown kind {entry.get('kind')!r}")
    try:
        return kind.model_validate(entry.get("record"))
    except ValidationError as error:
        raise FormatError(f"{str(path)!r} holds a malformed {entry.get('kind')}: {error.errors()[0]['msg']}") from error

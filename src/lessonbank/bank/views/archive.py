"""A scope as a file: JSON lines, lossless, whole or not at all."""

from __future__ import annotations

import hashlib
import io
import json
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import aclosing, suppress
from datetime import UTC, datetime, timedelta
from itertools import chain, islice
from pathlib import Path
from typing import Any, TypeVar, cast

import anyio
from anyio import to_thread
from pydantic import ValidationError

from lessonbank._base.aio import get_or_none
from lessonbank._base.atomic_write import belongs_to_database, replacing
from lessonbank._base.checks import check_data, short_path, short_repr
from lessonbank._base.iterate import async_batches
from lessonbank._base.safe_read import open_regular
from lessonbank.contracts.ports import Store
from lessonbank.contracts.records import Experience, Recall, Record, Settlement, Trajectory, format_10
from lessonbank.contracts.records.ids import now
from lessonbank.contracts.records.record import reason_of
from lessonbank.contracts.records.runs import data_of, without_submission
from lessonbank.contracts.store_calls import every_saved_recall, get_trajectory, pending_runs
from lessonbank.errors import FormatError, UsageError

R = TypeVar("R", bound=Record)

FORMAT = "lessonbank-export"
VERSION = 2
"""In version 1, some fields of records stood in their metadata."""
_BATCH = 64
"""Records that are written at a time."""
_ADDED = 512
"""Records that are prepared together, unless they are large."""
_LARGE = 8_000_000
"""Characters of lines after which no more are prepared together, nor held to be read only once."""
_CLOCKS_DIFFER = timedelta(minutes=5)
_FIRST = datetime(2000, 1, 1, tzinfo=UTC)
"""A record that is older was made by a clock that nobody had set."""
_KINDS: dict[str, type[Record]] = {
    "trajectory": Trajectory,
    "experience": Experience,
    "recall": Recall,
    "settlement": Settlement,
}
_UPGRADES: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "trajectory": format_10.upgrade_run,
    "experience": format_10.upgrade_experience,
    "recall": dict[str, Any],
}
"""What makes of records in an export of version 1 those of today."""


async def write(store: Store, path: Path, /, *, scope: str) -> int:
    """Write every record of `scope` to `path`; how many. An earlier file stays until the new one is whole and on disk.

    Raises:
        UsageError: `path` is a folder, or a bank.
        StoreUnavailable: the file cannot be written.
    """
    async with replacing(path, what="export") as part:
        return await _write(_records(store, scope), part, scope)


async def _write(records: AsyncIterator[tuple[str, Record]], part: Path, scope: str) -> int:
    written, checksum = 0, hashlib.sha256()
    async with (
        await anyio.open_file(part, "w", encoding="utf-8", newline="\n") as out,
        aclosing(async_batches(records, size=_BATCH)) as batches,
    ):
        await out.write(_line({"format": FORMAT, "version": VERSION, "scope": scope}))
        async for batch in batches:
            lines = await to_thread.run_sync(_record_lines, batch)
            checksum.update(lines.encode())
            await out.write(lines)
            written += len(batch)
        await out.write(_line({"end": True, "records": written, "sha256": checksum.hexdigest()}))
    return written


def _record_lines(batch: Iterable[tuple[str, Record]]) -> str:
    return "".join(_line({"kind": kind, "record": record.model_dump(mode="json")}) for kind, record in batch)


async def _records(store: Store, scope: str) -> AsyncIterator[tuple[str, Record]]:
    """All records. A record comes before those that name it: receipts before outcomes, runs before experiences."""
    async for record in every_saved_recall(store, scope=scope, settlements=True):
        yield "recall", record.recall
        if record.settlement:
            yield "settlement", record.settlement
    seen: set[str] = set()
    # What waits comes first: a run that is learned meanwhile is then in both lists, and not in none.
    for status in ("unfinished", "pending", "failed"):
        for run in await pending_runs(store, scope=scope, status=status):
            if run.id not in seen:
                seen.add(run.id)
                yield "trajectory", without_submission(run)
    async for experience in store.scan(scope=scope):
        for ref in experience.attempts:
            if ref.trajectory_id not in seen:
                seen.add(ref.trajectory_id)
                # A run that was too old to be kept is gone, and its experience stays.
                if run := await get_or_none(get_trajectory(store, ref.trajectory_id, scope=scope)):
                    yield "trajectory", without_submission(run)
        yield "experience", experience


def _line(value: dict[str, Any]) -> str:
    return json.dumps(value) + "\n"


def _opened(path: Path) -> io.TextIOWrapper:
    return io.TextIOWrapper(open_regular(path), encoding="utf-8")


def _lines(path: Path) -> Iterator[str]:
    """The record lines: all but the first and the last."""
    with _opened(path) as file:
        next(file)
        held = next(file, "")
        for line in file:
            yield held
            held = line


def portions(records: Iterator[tuple[Record, int]], /) -> Iterator[list[Record]]:
    """Records, each with the characters of its line, as they are added together."""
    while portion := list(_portion(records)):
        yield portion


def _portion(records: Iterator[tuple[Record, int]]) -> Iterator[Record]:
    """The next ones that are added together."""
    room = _LARGE
    for record, size in islice(records, _ADDED):
        yield record
        room -= size
        if room < 0:
            return


def checked(path: Path) -> tuple[Callable[[], Iterator[tuple[Record, int]]], int]:
    """What gives the records of a file in which all is well, from the first on, each with the length of its line.

    And how many of them are of the future: these get the time of this moment.
    """
    version, at = _checked_version(path), now()
    known, held, room, late = _Known(), list[tuple[Record, int]](), _LARGE, 0
    for line in _lines(path):
        source = _parse(line, path, version)
        if when := _time_before_agents(source):
            raise FormatError(
                f"{short_path(path)} holds a {type(source).__name__} of {when:%Y-%m-%d %H:%M} UTC, a time that cannot "
                "be: check the clock of the machine that wrote it; nothing was imported"
            )
        _check_data(source, path)
        if why := known.misfit(source):
            raise FormatError(f"{short_path(path)} was changed after it was written: {why}; nothing was imported")
        record = _dated(source, at)
        late += record is not source
        if room > 0:
            held.append((record, len(line)))
            room -= len(line)
    rest = lambda: (  # noqa: E731
        (_dated(_parse(line, path, version), at), len(line)) for line in islice(_lines(path), len(held), None)
    )
    return lambda: chain(held, rest()), late


def _check_data(record: Record, path: Path) -> None:
    """Refuse data that could be taken in and never be read again."""
    try:
        check_data(data_of(record) if isinstance(record, Trajectory) else [getattr(record, "metadata", None)], "a bank")
    except UsageError as error:
        raise FormatError(f"{short_path(path)} cannot be imported: {error}; nothing was imported") from error


def _checked_version(path: Path) -> int:
    """The version of an export. Refuses what is none, or not a whole one."""
    try:
        if belongs_to_database(path):
            raise FormatError(f"{short_path(path)} is a bank, or a part of one, and no export: export the bank first")
        with _opened(path) as file:
            head = _object(file.readline())
        with _opened(path) as file:
            last = deque(file, maxlen=1)
        count, checksum = 0, hashlib.sha256()
        for line in _lines(path) if head else ():
            checksum.update(line.encode())
            count += 1
    except (OSError, UnicodeDecodeError) as error:
        raise FormatError(f"cannot read {short_path(path)} as an export: {error}") from error
    end = _object(last[0] if last else "")
    if head.get("format") != FORMAT:
        raise FormatError(f"{short_path(path)} is not a lessonbank export: use `lessonbank learn` for recorded runs")
    if type(version := head.get("version")) is not int or version < 1:  # `true` is an int, too
        raise FormatError(
            f"{short_path(path)} is not an export: its version is {str(version)[:40]!r}, and no whole number"
        )
    if version > VERSION:
        raise FormatError(f"{short_path(path)} was exported by a newer lessonbank: upgrade to read it")
    if not end.get("end") or end.get("records") != count or end.get("sha256") != checksum.hexdigest():
        raise FormatError(f"{short_path(path)} is cut short or was changed after it was written; nothing was imported")
    return version


def _time_before_agents(record: Record) -> datetime | None:
    """A time of a record that is before there were agents."""
    return next((at for at in _times(record) if at < _FIRST), None)


def _times(record: Record) -> Iterator[datetime]:
    if isinstance(record, Experience):
        yield from (record.created_at, *(lesson.created_at for lesson in record.lessons))
    elif isinstance(record, Recall):
        yield record.created_at
    elif isinstance(record, Settlement):
        yield record.at


def _dated(record: Record, at: datetime, /) -> Record:
    """`record`, made at the moment `at` as far as it says that it was made later."""
    last = at + _CLOCKS_DIFFER
    if all(when <= last for when in _times(record)):
        return record
    update: dict[str, Any] = {"at" if isinstance(record, Settlement) else "created_at": at}
    if isinstance(record, Experience):
        lessons = (i if i.created_at <= last else i.model_copy(update=update) for i in record.lessons)
        update = {"lessons": tuple(lessons), **(update if record.created_at > last else {})}
    return record.model_copy(update=update)


class _Known:
    """What the records of a file have named so far: they must fit each other before any of them is written."""

    def __init__(self) -> None:
        self._receipts: set[str] = set()
        self._lessons: dict[str, str] = {}

    def misfit(self, record: Record, /) -> str:
        """Why a record does not fit those before it; empty where it does."""
        if isinstance(record, Recall):
            self._receipts.add(record.id)
        elif isinstance(record, Settlement) and record.recall_id not in self._receipts:
            return f"it settles a receipt {record.recall_id!r} that is not in it"
        elif isinstance(record, Experience):
            twice = [i.id for i in record.lessons if self._lessons.setdefault(i.id, record.id) != record.id]
            return f"the lesson {twice[0]!r} is in two experiences" if twice else ""
        return ""


def _object(line: str) -> dict[str, Any]:
    try:
        value: object = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _parse(line: str, path: Path, version: int) -> Record:
    # As `_line` writes it, the record is read without a look at what is around it: several times as fast.
    for name, kind in _KINDS.items() if version == VERSION else ():
        front = f'{{"kind": "{name}", "record": '
        if line.startswith(front) and line.endswith("}\n"):
            with suppress(ValidationError):
                return kind.model_validate_json(line[len(front) : -2])
    return _parse_slowly(line, path, version)


def _parse_slowly(line: str, path: Path, version: int) -> Record:
    """Parse a line with Python's JSON, also of an earlier version, and say what is wrong with it."""
    entry = _object(line)
    name, record = str(entry.get("kind")), entry.get("record")
    kind = _KINDS.get(name)
    if kind is None:
        raise FormatError(f"{short_path(path)} holds a record of unknown kind {short_repr(entry.get('kind'))}")
    if version == 1 and name in _UPGRADES and isinstance(record, dict):
        record = _UPGRADES[name](cast("dict[str, Any]", record))
    try:
        return kind.model_validate(record)
    except ValidationError as error:
        raise FormatError(
            f"{short_path(path)} holds a malformed {name}: {reason_of(error.errors()[0]['msg'])}"
        ) from error

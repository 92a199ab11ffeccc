"""Carry a scope from one bank to another: JSON lines, lossless, whole or not at all."""

from __future__ import annotations

import hashlib
import io
import json
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, TypeVar, cast

import anyio
from anyio import to_thread
from pydantic import ValidationError

from lessonbank._base.aio import get_or_none
from lessonbank._base.atomic_write import belongs_to_database, replacing
from lessonbank._base.checks import check_data, short_path, short_repr
from lessonbank._base.iterate import async_batches, batches
from lessonbank._base.plural import plural
from lessonbank._base.safe_read import open_regular
from lessonbank.bank.handle import log
from lessonbank.contracts.ports import Imported, Redactor, RunFilter, Store
from lessonbank.contracts.records import (
    UNCHECKED,
    Experience,
    Lesson,
    Recall,
    Record,
    Settlement,
    Trajectory,
    format_10,
)
from lessonbank.contracts.records.ids import digest, now
from lessonbank.contracts.records.record import reason_of
from lessonbank.contracts.records.runs import data_of, without_submission
from lessonbank.contracts.store_calls import care_of, every_saved_recall, get_trajectory, pending_runs
from lessonbank.errors import FormatError, StoreUnavailable, UsageError
from lessonbank.files.atif import document
from lessonbank.guard.gate import doubt
from lessonbank.guard.names import checked_name
from lessonbank.guard.redact import redacted, through

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
    "recall": format_10.upgrade_recall,
}
"""What makes of records in an export of version 1 those of today."""


async def write_runs(store: Store, folder: Path, /, *, scope: str) -> int:
    """Write each kept run of `scope` as an ATIF trajectory to a file of its own in `folder`; how many.

    Raises:
        UsageError: `folder` is a file.
        StoreUnavailable: it cannot be made, or a file cannot be written.
    """
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{short_path(folder)} is a file: name a folder for the runs")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreUnavailable(f"cannot make the folder {short_path(folder)}: {error.strerror or error}") from error
    count, after = 0, None
    while runs := await store.runs(RunFilter(limit=_BATCH, after=after), scope=scope):
        for run in runs:
            told = json.dumps(document(run), ensure_ascii=False, indent=1) + "\n"
            async with replacing(folder / f"{_file_name(run.trajectory.id)}.json", what="run") as part:
                await to_thread.run_sync(partial(part.write_text, told, encoding="utf-8"))
        count, after = count + len(runs), runs[-1].trajectory.id
    return count


def _file_name(id: str) -> str:
    """An id may be a caller's own, and hold what no name of a file may."""
    return id if id.isascii() and id.replace("-", "").replace("_", "").isalnum() and len(id) < 100 else digest(id)


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


async def read(
    store: Store,
    path: Path,
    /,
    *,
    scope: str,
    writer: str,
    approved_by: str | None = None,
    one_wording: bool = False,
    redactor: Redactor | None = None,
) -> int:
    """Add the records of an export that `scope` does not have; how many were new.

    The whole file is checked before anything is written, and the store writes all of it or nothing. Records keep their
    ids and origin and move to `scope`. Lessons come in on probation, unless a person (`approved_by`) vouches for those
    that were trusted where they come from. With `one_wording`, a lesson that is here in the same words is not kept
    twice. Each text is redacted: the other bank may not have been, or may not have known a form of key. A record with a
    time of the future gets the time of this moment, and a warning says so.

    Raises:
        FormatError: not an export, cut short, changed, of an unknown version, or with a time that cannot be.
        Conflict: a lesson of the file belongs to another experience here; nothing was imported.
    """
    if approved_by is not None:
        checked_name(approved_by, what="approved_by=")
    records, late = await to_thread.run_sync(_checked, path)
    portions = partial(_portions, records, path, scope, redactor)
    new = await care_of(store).import_records(
        portions, scope=scope, writer=writer, approved_by=approved_by, one_wording=one_wording
    )
    if late:
        told = plural(late, "record has", "records have")
        log.warning(
            "%s: %s a time of the future, and got the time of this import: check the clocks", short_path(path), told
        )
    return new


async def add(store: Store, experiences: Sequence[Experience], /, *, scope: str, writer: str, one_wording: bool) -> int:
    """Add experiences of another program that `scope` does not have, on probation and all or none; how many were new.

    Raises:
        Conflict: a lesson belongs to another experience here; nothing was imported.
    """
    doubted = [_on_probation(experience, scope) for experience in experiences]
    portions = lambda: (Imported(experiences=some) for some in batches(doubted, size=_ADDED))  # noqa: E731
    return await care_of(store).import_records(portions, scope=scope, writer=writer, one_wording=one_wording)


def _portions(
    records: Callable[[], Iterator[tuple[Record, int]]], path: Path, scope: str, redactor: Redactor | None
) -> Iterator[Imported]:
    """The records of a file in portions, as they may be kept in `scope`."""
    rest = records()
    try:
        while told := list(_some(rest)):
            yield _portion(told if redactor is None else _redacted(told, redactor), scope)
    except (OSError, UnicodeDecodeError) as error:
        raise FormatError(f"cannot read {short_path(path)} as an export: {error}; nothing was imported") from error


def _redacted(told: Sequence[Record], redactor: Redactor) -> list[Record]:
    """`told` without secrets in runs and experiences, and in what receipts say."""
    return [
        _redacted_receipt(record, redactor)
        if isinstance(record, Recall)
        else redacted(record, redactor)
        if isinstance(record, Trajectory | Experience)
        else record
        for record in told
    ]


def _redacted_receipt(receipt: Recall, redactor: Redactor) -> Recall:
    """Redact a receipt; one whose text changes gets the digest of the new text."""
    fit = receipt.fit
    if fit and fit.unfitted:
        receipt = receipt.model_copy(
            update={"fit": fit.model_copy(update={"unfitted": through(redactor, fit.unfitted)})}
        )
    task, text = (through(redactor, said) if said else said for said in (receipt.task, receipt.text))
    if (task, text) == (receipt.task, receipt.text):
        return receipt
    proof = digest(text) if receipt.text_digest and text != receipt.text else receipt.text_digest
    return receipt.model_copy(update={"task": task, "text": text, "text_digest": proof})


def _portion(told: Sequence[Record], scope: str) -> Imported:
    experiences = _of(told, Experience, scope)
    return Imported(
        runs=_of(told, Trajectory, None),
        recalls=_of(told, Recall, scope),
        experiences=[_on_probation(experience, scope) for experience in experiences],
        settlements=_of(told, Settlement, scope),
        trusted={e.id: {i.id: i.text for i in e.lessons if i.state == "active"} for e in experiences},
    )


async def _records(store: Store, scope: str) -> AsyncIterator[tuple[str, Record]]:
    """All records. A record comes before those that name it: receipts before outcomes, runs before experiences."""
    async for one in every_saved_recall(store, scope=scope, settlements=True):
        yield "recall", one.recall
        if one.settlement:
            yield "settlement", one.settlement
    seen: set[str] = set()
    async for experience in store.scan(scope=scope):
        for ref in experience.attempts:
            if ref.trajectory_id not in seen:
                seen.add(ref.trajectory_id)
                # A run that was too old to be kept is gone, and its experience stays.
                if run := await get_or_none(get_trajectory(store, ref.trajectory_id, scope=scope)):
                    yield "trajectory", without_submission(run)
        yield "experience", experience
    for status in ("pending", "failed", "unfinished"):
        for run in await pending_runs(store, scope=scope, status=status):
            if run.id not in seen:
                yield "trajectory", without_submission(run)


def _of(records: Iterable[Record], kind: type[R], scope: str | None) -> list[R]:
    """The records of one kind, moved to `scope`."""
    found = [record for record in records if isinstance(record, kind)]
    return found if scope is None else [_moved(record, scope) for record in found]


def _moved(record: R, scope: str) -> R:
    return record if getattr(record, "scope", scope) == scope else record.model_copy(update={"scope": scope})


def _on_probation(experience: Experience, scope: str) -> Experience:
    """`experience` trusted no further than anything new: nothing a file says of itself makes it trusted."""
    return experience.model_copy(update={"scope": scope, "lessons": tuple(map(_doubted, experience.lessons))})


def _doubted(lesson: Lesson) -> Lesson:
    risk = lesson.risk or doubt(lesson) or UNCHECKED
    state = "quarantined" if lesson.state == "quarantined" else "probation"
    return lesson.model_copy(update={"state": state, "risk": risk, "approved": False})


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


def _some(records: Iterator[tuple[Record, int]]) -> Iterator[Record]:
    """The next ones that are added together; each comes with the characters of its line."""
    room = _LARGE
    for record, size in islice(records, _ADDED):
        yield record
        room -= size
        if room < 0:
            return


def _checked(path: Path) -> tuple[Callable[[], Iterator[tuple[Record, int]]], int]:
    """What gives the records of a file in which all is well, from the first on, each with the length of its line.

    And how many of them are of the future: these get the time of this moment.
    """
    version, at = _checked_version(path), now()
    known, held, room, late = _Known(), list[tuple[Record, int]](), _LARGE, 0
    for line in _lines(path):
        told = _parse(line, path, version)
        if when := _time_before_agents(told):
            raise FormatError(
                f"{short_path(path)} holds a {type(told).__name__} of {when:%Y-%m-%d %H:%M} UTC, a time that cannot "
                "be: check the clock of the machine that wrote it; nothing was imported"
            )
        _check_data(told, path)
        if why := known.misfit(told):
            raise FormatError(f"{short_path(path)} was changed after it was written: {why}; nothing was imported")
        record = _dated(told, at)
        late += record is not told
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
    told: dict[str, Any] = {"at" if isinstance(record, Settlement) else "created_at": at}
    if isinstance(record, Experience):
        lessons = (i if i.created_at <= last else i.model_copy(update=told) for i in record.lessons)
        told = {"lessons": tuple(lessons), **(told if record.created_at > last else {})}
    return record.model_copy(update=told)


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

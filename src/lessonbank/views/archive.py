"""Carry a scope from one bank to another: JSON lines, lossless, whole or not at all."""

from __future__ import annotations

import hashlib
import json
from collections import deque
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, TypeVar, cast

import anyio
from anyio import to_thread
from pydantic import ValidationError

from lessonbank._batches import async_batches
from lessonbank._concurrency import gather, if_there
from lessonbank._replacing import abandon, begin, finish, is_database, spare
from lessonbank.errors import Conflict, FormatError, StoreUnavailable
from lessonbank.guard.admit import doubt
from lessonbank.guard.trust import IMPORTED, check_person
from lessonbank.protocols import Store
from lessonbank.types import Add, Experience, Lesson, Recall, Record, Settlement, Trajectory, Trust

R = TypeVar("R", bound=Record)

FORMAT = "lessonbank-export"
VERSION = 1
_BATCH = 64
"""Records that are written at a time."""
_ADDED = 512
"""Records that are added in one transaction, unless they are large."""
_AT_ONCE = 64
"""Receipts or settlements that are handed to the store at the same time."""
_LARGE = 8_000_000
"""Characters of lines after which no more are added in the same transaction, nor held to be read only once."""
_KINDS: dict[str, type[Record]] = {
    "trajectory": Trajectory,
    "experience": Experience,
    "recall": Recall,
    "settlement": Settlement,
}


async def write(store: Store, path: Path, /, *, scope: str) -> int:
    """Write every record of `scope` to `path`; how many. An earlier file stays until the new one is whole and on disk.

    Raises:
        UsageError: `path` is a folder, or a bank.
        StoreUnavailable: the file cannot be written.
    """
    await to_thread.run_sync(partial(spare, path, what="export"))
    part: Path | None = None
    try:
        part = await to_thread.run_sync(begin, path)
        written = await _write(_records(store, scope), part, scope)
        await to_thread.run_sync(finish, part, path)
    except OSError as error:
        raise StoreUnavailable(
            f"cannot write the export {str(path)!r}: {error.strerror or error}; an earlier one is untouched"
        ) from error
    finally:
        if part is not None:
            with anyio.CancelScope(shield=True):
                await to_thread.run_sync(abandon, part)
    return written


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


async def read(store: Store, path: Path, /, *, scope: str, writer: str, approved_by: str | None = None) -> int:
    """Add the records of an export that `scope` does not have; how many were new.

    The whole file is checked before anything is written. Records keep their ids and origin and move to `scope`. Lessons
    come in on probation, unless a person (`approved_by`) vouches for those that were trusted where they come from.

    Raises:
        FormatError: not an export, cut short, changed, or of a newer version.
    """
    if approved_by is not None:
        check_person(approved_by, call="import_(approved_by=…)", of="the file")
    following = partial(to_thread.run_sync, partial(_portion, await to_thread.run_sync(_checked, path), scope))
    added, portion = 0, await following()

    async def write() -> None:
        nonlocal added
        added += await _add(store, portion.doubted, scope=scope, writer=writer)
        if approved_by:
            await _vouch(store, _of(portion.told, Experience, scope), by=approved_by)

    async def prepare() -> None:
        nonlocal ahead
        ahead = await following()

    while portion.told:
        ahead = portion
        await gather((write, prepare))
        portion = ahead
    return added


@dataclass(frozen=True, slots=True)
class _Portion:
    """Records that are added together: as the file tells them, and as they may be kept in the scope."""

    told: Sequence[Record]
    doubted: Sequence[Record]


def _portion(records: Iterator[tuple[Record, int]], scope: str) -> _Portion:
    told = list(_some(records))
    return _Portion(told, [_doubting(record, scope) for record in told])


async def _vouch(store: Store, experiences: Iterable[Experience], /, *, by: str) -> None:
    """Trust what was trusted in the file, and nothing else."""

    async def vouched(told: Experience, active: set[str]) -> None:
        kept = await store.get(told.id, scope=told.scope)
        ids = tuple(lesson.id for lesson in kept.lessons if lesson.id in active and lesson.state == "probation")
        if ids:
            change = Trust(lesson_ids=ids, state="active", by="person", reason=f"imported, approved by {by}")
            await store.apply([change], scope=told.scope, writer=by)

    trusted = ((told, {lesson.id for lesson in told.lessons if lesson.state == "active"}) for told in experiences)
    await gather((partial(vouched, told, active) for told, active in trusted if active), limit=_AT_ONCE)


async def _records(store: Store, scope: str) -> AsyncIterator[tuple[str, Record]]:
    """Everything there is, what others name before the others: an outcome names a receipt, an experience its runs."""
    async for receipt in store.receipts(scope=scope):
        yield "recall", receipt
        settlement = await store.settlement(receipt.id, scope=scope)
        if settlement:
            yield "settlement", settlement
    seen: set[str] = set()
    async for experience in store.scan(scope=scope):
        for ref in experience.attempts:
            if ref.trajectory_id not in seen:
                seen.add(ref.trajectory_id)
                yield "trajectory", await store.trajectory(ref.trajectory_id, scope=scope)
        yield "experience", _unmarked(experience)
    for run in await store.pending(scope=scope):
        if run.id not in seen:
            yield "trajectory", run


def _unmarked(experience: Experience) -> Experience:
    """`experience` as its origin had it: whoever imports it marks it anew."""
    if IMPORTED not in experience.metadata:
        return experience
    metadata = {name: value for name, value in experience.metadata.items() if name != IMPORTED}
    return experience.model_copy(update={"metadata": metadata})


async def _add(store: Store, records: Sequence[Record], *, scope: str, writer: str) -> int:
    added = len(await store.keep(_of(records, Trajectory, None), scope=scope))
    added += await _add_recalls(store, _of(records, Recall, scope))
    added += await _add_experiences(store, _of(records, Experience, scope), scope, writer)
    return added + await _add_settlements(store, _of(records, Settlement, scope), scope, writer)


def _of(records: Iterable[Record], kind: type[R], scope: str | None) -> list[R]:
    """The records of one kind, moved to `scope`."""
    found = [record for record in records if isinstance(record, kind)]
    return found if scope is None else [_moved(record, scope) for record in found]


def _moved(record: R, scope: str) -> R:
    return record if getattr(record, "scope", scope) == scope else record.model_copy(update={"scope": scope})


def _doubting(record: Record, scope: str) -> Record:
    return _on_probation(record, scope) if isinstance(record, Experience) else _moved(record, scope)


def _on_probation(experience: Experience, scope: str) -> Experience:
    """`experience` trusted no further than anything new: nothing a file says of itself makes it trusted."""
    lessons = tuple(map(_doubted, experience.lessons))
    metadata = {**experience.metadata, IMPORTED: True}
    return experience.model_copy(update={"scope": scope, "lessons": lessons, "metadata": metadata})


def _doubted(lesson: Lesson) -> Lesson:
    risk = lesson.risk or doubt(lesson)
    state = "quarantined" if risk or lesson.state == "quarantined" else "probation"
    if (lesson.state, lesson.risk) == (state, risk):
        return lesson
    return lesson.model_copy(update={"state": state, "risk": risk})


async def _add_experiences(store: Store, experiences: Sequence[Experience], scope: str, writer: str) -> int:
    """All in one transaction; only where some are there already, one by one."""
    if not experiences:
        return 0
    try:
        await store.apply([Add(experience=e) for e in experiences], scope=scope, writer=writer)
    except Conflict:
        return sum([await _add_experience(store, e, writer) for e in experiences])
    return len(experiences)


async def _add_experience(store: Store, experience: Experience, writer: str) -> int:
    if await if_there(store.get(experience.id, scope=experience.scope)):
        return 0
    await store.apply([Add(experience=experience)], scope=experience.scope, writer=writer)
    return 1


async def _add_recalls(store: Store, recalls: Sequence[Recall]) -> int:
    """Handed in together, so that a store can make many of them durable at once."""

    async def kept(recall: Recall) -> Recall | None:
        return await if_there(store.recall(recall.id, scope=recall.scope))

    found = await gather((partial(kept, recall) for recall in recalls), limit=_AT_ONCE)
    new = {recall.id: recall for recall, there in zip(recalls, found, strict=True) if there is None}
    await gather((partial(store.record, recall) for recall in new.values()), limit=_AT_ONCE)
    return len(new)


async def _add_settlements(store: Store, settlements: Sequence[Settlement], scope: str, writer: str) -> int:
    """The later one of two, be it here already or not; handed in together as receipts are."""
    latest: dict[str, Settlement] = {}
    for told in sorted(settlements, key=lambda told: told.at):
        latest[told.recall_id] = told
    present = await gather((partial(store.settlement, id, scope=scope) for id in latest), limit=_AT_ONCE)
    new = [t for t, p in zip(latest.values(), present, strict=True) if p is None or p.at < t.at]
    apply = partial(store.apply, [], scope=scope, writer=writer)
    await gather((partial(apply, settlement=settlement) for settlement in new), limit=_AT_ONCE)
    return len(new)


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


def _some(records: Iterator[tuple[Record, int]]) -> Iterator[Record]:
    """The next ones that are added together; each comes with the characters of its line."""
    room = _LARGE
    for record, size in islice(records, _ADDED):
        yield record
        room -= size
        if room < 0:
            return


def _checked(path: Path) -> Iterator[tuple[Record, int]]:
    """The records of a file in which all is well, each with the characters of its line."""
    _check(path)
    known, held, room = _Known(), list[tuple[Record, int]](), _LARGE
    for line in _lines(path):
        record = _parse(line, path)
        if why := known.misfit(record):
            raise FormatError(f"{str(path)!r} was changed after it was written: {why}; nothing was imported")
        if room > 0:
            held.append((record, len(line)))
            room -= len(line)
    return chain(held, ((_parse(line, path), len(line)) for line in islice(_lines(path), len(held), None)))


def _check(path: Path) -> None:
    """Refuse what is no export, or not a whole one."""
    try:
        if is_database(path):
            raise FormatError(f"{str(path)!r} is a bank, not an export of one: export it first")
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


def _parse(line: str, path: Path) -> Record:
    # As `_line` writes it, the record is read without a look at what is around it: several times as fast.
    for name, kind in _KINDS.items():
        front = f'{{"kind": "{name}", "record": '
        if line.startswith(front) and line.endswith("}\n"):
            with suppress(ValidationError):
                return kind.model_validate_json(line[len(front) : -2])
    return _parse_slowly(line, path)


def _parse_slowly(line: str, path: Path) -> Record:
    """The same, of whatever Python takes for JSON; what is wrong is told here, too."""
    entry = _object(line)
    kind = _KINDS.get(str(entry.get("kind")))
    if kind is None:
        raise FormatError(f"{str(path)!r} holds a record of unknown kind {entry.get('kind')!r}")
    try:
        return kind.model_validate(entry.get("record"))
    except ValidationError as error:
        raise FormatError(f"{str(path)!r} holds a malformed {entry.get('kind')}: {error.errors()[0]['msg']}") from error

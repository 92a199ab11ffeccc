"""Copies a bank from one store into another of any kind: the journal and the records as they are, nothing marked."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, Literal, Protocol, TypeAlias

from lessonbank.contracts.ports import Store
from lessonbank.contracts.records.settings import COPIED
from lessonbank.contracts.store_calls import count_records, get_setting, list_scopes
from lessonbank.errors import Conflict, UsageError

Table: TypeAlias = Literal["journal", "runs", "recalls", "order", "vectors"]
Row: TypeAlias = tuple[Any, ...]
TABLES: Final[tuple[Table, ...]] = ("journal", "runs", "recalls", "order", "vectors")
"""What is copied of a scope. The first value of each row is a number; rows come in its order.

- journal: sequence, microseconds, kind, writer, entry
- runs: number, id, microseconds, due, worker, tries, error, id of the leader, record
- recalls: number, id, microseconds, record
- order: number, id of an experience: which came first, where two are of one moment
- vectors: number, space, id of an experience or lesson, little-endian float32
"""
_PAGE: Final = 500
_FROM: Final = "copy.from"
"""The setting that a bank has as long as it is not a whole copy yet."""


class Copyable(Store, Protocol):
    """A store that gives its rows as they are and takes those of another."""

    async def read_rows(self, table: Table, /, *, scope: str, after: int, limit: int) -> Sequence[Row]:
        """Rows with a number above `after`, in its order."""
        ...

    async def write_rows(self, table: Table, rows: Sequence[Row], /, *, scope: str) -> None:
        """Keep rows of another store; those that are here already stay."""
        ...

    async def finish_copy(self, *, scope: str) -> None:
        """Make everything that follows from the journal and the records. Before the vectors come."""
        ...


async def copy_bank(
    source: Copyable, target: Copyable, /, *, name: str, progress: Callable[[str, int], object] | None = None
) -> int:
    """Copy everything `source` holds; how many rows that were. Called again after a failure, it goes on.

    `name` says what the source is; `progress` is called with a scope and how many of its rows are copied.

    Raises:
        UsageError: `target` holds something else.
        Conflict: `source` was written to meanwhile.
    """
    begun = await get_setting(target, _FROM)
    if begun is None and await list_scopes(target):
        raise UsageError("the bank to copy to holds something already: name a new one")
    if begun not in (None, name):
        raise UsageError("the bank to copy to was begun as a copy of another bank: name a new one")
    await target.put_setting(_FROM, name)
    scopes, copied = await list_scopes(source), 0
    for scope in scopes:
        copied += await _copy_scope(source, target, scope, progress or _silent)
    for key, value in (await source.settings("")).items():
        if not key.startswith((_FROM, COPIED.prefix)):
            await target.put_setting(key, value)
    await _compare(source, target, scopes)
    for key in [*await target.settings(COPIED.prefix), _FROM]:
        await target.put_setting(key, None)
    return copied


def _silent(scope: str, copied: int) -> None:
    pass


async def _copy_scope(source: Copyable, target: Copyable, scope: str, progress: Callable[[str, int], object]) -> int:
    setting = await get_setting(target, COPIED.of(scope))
    done: dict[str, Any] = json.loads(setting) if setting else {}

    async def note(**numbers: int) -> None:
        done.update(numbers)
        await target.put_setting(COPIED.of(scope), json.dumps(done))
        progress(scope, done["copied"])

    done.setdefault("copied", 0)
    for table in TABLES:
        if table == "vectors" and "finished" not in done:
            await target.finish_copy(scope=scope)
            await note(finished=1)
        await _copy_table(source, target, scope, table, done, note)
    return int(done["copied"])


async def _copy_table(
    source: Copyable,
    target: Copyable,
    scope: str,
    table: Table,
    done: dict[str, Any],
    note: Callable[..., Awaitable[None]],
) -> None:
    while page := await source.read_rows(table, scope=scope, after=done.get(table, -1), limit=_PAGE):
        await target.write_rows(table, page, scope=scope)
        await note(**{table: page[-1][0], "copied": done["copied"] + len(page)})


async def _compare(source: Copyable, target: Copyable, scopes: Sequence[str]) -> None:
    """Refuse to call it a copy where somebody wrote to the source meanwhile."""
    here = [(scope, await count_records(source, scope=scope)) for scope in await list_scopes(source)]
    there = [(scope, await count_records(target, scope=scope)) for scope in scopes]
    if here != there:
        raise Conflict("the bank was written to while it was copied: stop its writers and copy it again into a new one")

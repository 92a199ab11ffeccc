"""Records of another bank, written in the one transaction that makes an import whole or nothing."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

from lessonbank.stores._changes import latest, vouched
from lessonbank.stores._packing import packed_records
from lessonbank.types import Add, Settle, Settlement

from ._journal import Batch
from ._read import settlement as settled
from ._rows import find_scope, make_scope
from ._write import Present, apply, keep, record

if TYPE_CHECKING:
    from lessonbank.protocols import Imported
    from lessonbank.types.timeline import Entry

T = TypeVar("T")


def import_records(
    connection: sqlite3.Connection,
    portions: Callable[[], Iterable[Imported]],
    scope: str,
    writer: str,
    approved_by: str | None,
    /,
) -> int:
    """Add what is new; how much that was. Raises Conflict, NotFound."""
    added = 0
    make_scope(connection, scope)
    for portion, adds in _ahead(map(_packed, portions())):
        added += len(keep(connection, scope, portion.runs))
        added += sum(record(connection, recall.model_copy(update={"lessons": ()})) for recall in portion.recalls)
        added += _add(connection, adds, scope, writer)
        added += _settle(connection, portion.settlements, scope, writer)
        if approved_by:
            _trust(connection, portion, scope, approved_by)
    return added


def _packed(portion: Imported) -> tuple[Imported, Sequence[tuple[Add, bytes]]]:
    """Experiences packed ahead: to deflate them takes as long as to write them."""
    first = {experience.id: experience for experience in reversed(portion.experiences)}
    return portion, packed_records([Add(experience=e) for e in portion.experiences if first[e.id] is e])


def _add(connection: sqlite3.Connection, adds: Sequence[tuple[Add, bytes]], scope: str, writer: str) -> int:
    here = Present(connection, find_scope(connection, scope), new=[add.experience for add, _ in adds])
    return _apply(connection, [one for one in adds if not here.knows(one[0].experience.id)], scope, writer)


def _settle(connection: sqlite3.Connection, settlements: Sequence[Settlement], scope: str, writer: str) -> int:
    told = latest(settlements).values()
    present = {one.recall_id: settled(connection, scope, one.recall_id) for one in told}
    new = [Settle(settlement=one) for one in told if (known := present[one.recall_id]) is None or known.at < one.at]
    return _apply(connection, packed_records(new), scope, writer)


def _trust(connection: sqlite3.Connection, portion: Imported, scope: str, by: str) -> None:
    here = Present(connection, find_scope(connection, scope))
    some = ((id, lessons) for id, lessons in portion.trusted.items() if lessons)
    kept = ((experience, lessons) for id, lessons in some if (experience := here.experience(id)))
    _apply(connection, packed_records([t for e, lessons in kept if (t := vouched(e, lessons, by=by))]), scope, by)


def _apply(connection: sqlite3.Connection, entries: Sequence[tuple[Entry, bytes]], scope: str, writer: str) -> int:
    if entries:
        apply(connection, Batch(scope, writer, entries))
    return len(entries)


def _ahead(things: Iterable[T], /) -> Iterator[T]:
    """`things`, the next one made while this one is used: reading a file and writing tables take turns otherwise."""
    rest = iter(things)
    with ThreadPoolExecutor(1, thread_name_prefix="lessonbank-import") as pool:
        coming = pool.submit(next, rest, None)
        while (thing := coming.result()) is not None:
            coming = pool.submit(next, rest, None)
            yield thing

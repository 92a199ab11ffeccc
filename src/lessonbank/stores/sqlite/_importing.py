"""Records of another bank, written in the one transaction that makes an import whole or nothing."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final, TypeVar

from lessonbank._batches import batches
from lessonbank.guard.wording import said_once, wording_of
from lessonbank.stores._arrivals import marked, without_claims
from lessonbank.stores._changes import vouched
from lessonbank.stores._packing import packed_records
from lessonbank.stores._records import encodable
from lessonbank.types import Add, Experience, Replace, Settle, Settlement
from lessonbank.types.repeats import repeats_of, with_repeats

from ._journal import Batch
from ._read import recall
from ._read import settlement as settled
from ._rows import AMONG_IDS, among_ids, experience_at, find_scope, make_scope
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
    one_wording: bool,
    /,
) -> int:
    """Add what is new; how much that was. Raises Conflict, NotFound."""
    added = 0
    make_scope(connection, scope)
    before = _Before(connection, scope)
    once = _Once(connection, scope) if one_wording else None
    ready = (_packed(marked(portion, scope=scope)) for portion in portions())
    for portion, adds in _ahead(ready):
        added += len(keep(connection, scope, portion.runs, together=False))
        added += sum(record(connection, one) for one in portion.recalls)
        added += _add(connection, adds, before, once, scope, writer)
        added += _settle(connection, portion.settlements, before, scope, writer)
        if approved_by:
            _trust(connection, portion, scope, approved_by)
    if once:
        _apply(connection, packed_records(once.renamed()), scope, writer)
    return added


def _packed(portion: Imported) -> tuple[Imported, Sequence[tuple[Add, bytes]]]:
    """Experiences packed ahead: to deflate them takes as long as to write them."""
    first = {experience.id: experience for experience in reversed(portion.experiences)}
    return portion, packed_records([Add(experience=e) for e in portion.experiences if first[e.id] is e])


class _Before:
    """See `Before`: what is there when an import begins has a smaller number than what it brings."""

    _COUNTED: Final = ("trajectories", "experiences", "recalls")

    def __init__(self, connection: sqlite3.Connection, scope: str, /) -> None:
        self._connection, self._name, self._scope = connection, scope, find_scope(connection, scope).number
        self._last = {table: self._newest(table) for table in self._COUNTED}

    def _newest(self, table: str) -> int:
        sql = f"SELECT coalesce(max(number), 0) FROM {table} WHERE scope = ?"
        return int(self._connection.execute(sql, (self._scope,)).fetchone()[0])

    def has_run(self, id: str, /) -> bool:
        """See `Before.has_run`."""
        return self._has("trajectories", "id = ? AND number <= ?", id) or self._has(
            "attempts", "trajectory = ? AND experience <= ?", id, of="experiences"
        )

    def made_recall(self, id: str, /) -> bool:
        """See `Before.made_recall`."""
        there = self._has("recalls", "id = ? AND number <= ?", id)
        return there and not recall(self._connection, self._name, id).imported

    def has_lesson(self, id: str, /) -> bool:
        """See `Before.has_lesson`."""
        return self._has("lessons", "id = ? AND experience <= ?", id, of="experiences")

    def _has(self, table: str, condition: str, id: str, *, of: str | None = None) -> bool:
        last = self._last[of or table]
        sql = f"SELECT 1 FROM {table} WHERE scope = ? AND {condition}"
        return last > 0 and self._connection.execute(sql, (self._scope, encodable(id), last)).fetchone() is not None


class _Once:
    """Brings a lesson in whose wording is here already as one that was taught again."""

    def __init__(self, connection: sqlite3.Connection, scope: str, /) -> None:
        self._connection, self._scope = connection, scope
        self._kept: dict[str, str] = {}
        """Id of a lesson that was left out to the id of the one that says the same here."""

    def of(self, experiences: Sequence[Experience], /) -> Sequence[Experience]:
        """`experiences` without copies of what is here, or of one another."""
        present = Present(self._connection, find_scope(self._connection, self._scope))
        wordings = {wording_of(lesson) for experience in experiences for lesson in experience.lessons}
        held = dict(sorted(present.worded(wordings), reverse=True))
        return [self._one(experience, held) for experience in experiences]

    def _one(self, experience: Experience, held: dict[str, str]) -> Experience:
        once = said_once(experience, held)
        if once is not experience:
            self._kept |= {i.id: id for i in experience.lessons if (id := held[wording_of(i)]) != i.id}
        return once

    def renamed(self) -> Sequence[Replace]:
        """What was written of experiences that taught a left out lesson again, naming the one that is here."""
        scope, found = find_scope(self._connection, self._scope), set[int]()
        sql = (
            "SELECT e.number FROM repeats r JOIN experiences e ON e.number = r.experience"
            f" WHERE e.scope = ? AND r.lesson {AMONG_IDS}"
        )
        for some in batches(self._kept):
            found.update(number for (number,) in self._connection.execute(sql, (scope.number, among_ids(some))))
        return [self._renamed(experience_at(self._connection, number)) for number in sorted(found)]

    def _renamed(self, experience: Experience) -> Replace:
        again = {self._kept.get(id, id): told for id, told in repeats_of(experience).items()}
        return Replace(experience=with_repeats(experience, again), reason="a lesson that it names is here already")


def _add(
    connection: sqlite3.Connection,
    adds: Sequence[tuple[Add, bytes]],
    before: _Before,
    once: _Once | None,
    scope: str,
    writer: str,
) -> int:
    here = Present(connection, find_scope(connection, scope), new=[add.experience for add, _ in adds])
    new = [one for one in adds if not here.knows(one[0].experience.id)]
    allowed = [without_claims(add.experience, before) for add, _ in new]
    kept = once.of(allowed) if once else allowed
    return _apply(connection, [_packed_as(e, one) for e, one in zip(kept, new, strict=True)], scope, writer)


def _packed_as(experience: Experience, one: tuple[Add, bytes]) -> tuple[Add, bytes]:
    return one if experience is one[0].experience else packed_records([Add(experience=experience)])[0]


def _settle(
    connection: sqlite3.Connection, settlements: Sequence[Settlement], before: _Before, scope: str, writer: str
) -> int:
    """The first settlement of a receipt counts, and one of a receipt that was made here is no business of a file."""
    first = {told.recall_id: told for told in reversed(settlements)}
    told = [one for id, one in reversed(first.items()) if not before.made_recall(id)]
    new = [Settle(settlement=one) for one in told if settled(connection, scope, one.recall_id) is None]
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

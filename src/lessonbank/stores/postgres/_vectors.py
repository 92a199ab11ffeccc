"""Vectors of tasks and lessons: where they lie, what lacks one, and the closest of one scope by cosine, exactly."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from lessonbank.contracts.records import Match
from lessonbank.errors import NotFound
from lessonbank.stores._records import encodable
from lessonbank.stores._vectors import text_at, unit

from ._database import Connection, UnitRow, do, is_alone, many, row, rows
from ._rows import VISIBLE, experiences_at, find_scope, found_at, numbers_of

if TYPE_CHECKING:
    from lessonbank.contracts.ports import Vectors

_SLACK: Final = 1e-5
"""Scores that are equal once they are rounded differ by no more."""
_MORE: Final = 32
"""Rows fetched beyond the limit: ties with the last place are among them, or more are fetched."""
LARGE: Final = 10_000
"""Tasks of a scope from which an index is quicker than comparing every vector of it; see the guide for the figures."""
_MOST_DIMENSIONS: Final = 4000
"""pgvector has no HNSW of more."""
_BEHIND: Final = 64
"""Journal entries that are looked through for tasks without a vector, before it is written down that none lacks one."""


@dataclass(frozen=True, slots=True)
class Space:
    """A vector space as one scope uses it."""

    dimensions: int
    tasks_checked: int
    lessons_checked: int
    indexed: bool
    """Whether vectors of so many dimensions have an HNSW index."""


def find_space(connection: Connection, scope: str, name: str, /) -> Space | None:
    """The space of that name in this scope."""
    sql = (
        "SELECT dimensions, tasks_checked, lessons_checked,"
        " to_regclass('lessonbank.vectors_near_' || dimensions) IS NOT NULL"
        " FROM lessonbank.spaces WHERE scope = %s AND space = %s"
    )
    columns = row(connection, sql, scope, name)
    return Space(*columns) if columns else None


def place(
    connection: Connection,
    scope: str,
    vectors: Mapping[str, Vectors],
    space: str,
    /,
    *,
    numbers: Mapping[str, int],
) -> None:
    """Set the vectors of experiences or lessons, by id; `numbers` has those of some experiences.

    Raises:
        NotFound: an id is not of this scope.
        UsageError, SpaceMismatch: a vector is not one row of finite numbers, or has another dimension than the space.
    """
    known = find_space(connection, scope, space)
    dimensions = known.dimensions if known else None
    units: dict[str, UnitRow] = {}
    for id, vector in vectors.items():
        unit_vector = unit(vector, what=f"the experience {id!r}", space=space, dimensions=dimensions)
        units[encodable(id)], dimensions = as_row(unit_vector), unit_vector.size
    places = _places(connection, scope, units, numbers)
    if known is None:
        sql = "INSERT INTO lessonbank.spaces (scope, space, dimensions) VALUES (%s, %s, %s)"
        do(connection, sql, scope, space, dimensions)
    rows = ((id, *places[id], data) for id, data in units.items())
    named = ({"scope": scope, "space": space, "number": n, "place": at, "unit": data} for _, n, at, data in rows)
    many(connection, _PLACE, named)


def index(connection: Connection, scope: str, vectors: Mapping[str, Vectors], space: str, replace: bool, /) -> None:
    """Set vectors by id; `replace`: in place of all that the space held."""
    if replace:
        drop(connection, scope, space)
    if vectors:
        place(connection, scope, vectors, space, numbers={})


_PLACE: Final = (
    "INSERT INTO lessonbank.vectors (scope, space, experience, place, shown, unit)"
    " SELECT e.scope, %(space)s, e.number, %(place)s, CASE WHEN %(place)s = 0 THEN e.shown ELSE EXISTS"
    " (SELECT 1 FROM lessonbank.lessons l WHERE l.scope = e.scope AND l.experience = e.number AND l.place = %(place)s"
    f" AND {VISIBLE}) END, %(unit)s::vector FROM lessonbank.experiences e WHERE e.scope = %(scope)s"
    " AND e.number = %(number)s"
    " ON CONFLICT (scope, space, experience, place) DO UPDATE SET unit = excluded.unit, shown = excluded.shown"
)


def as_row(vector: Vectors, /) -> UnitRow:
    """A row of floats in pgvector's binary form."""
    return UnitRow(len(vector).to_bytes(2) + b"\0\0" + np.asarray(vector).astype(">f4").tobytes())


def _places(
    connection: Connection, scope: str, ids: Collection[str], numbers: Mapping[str, int]
) -> dict[str, tuple[int, int]]:
    """Experience and place of each id, which is an experience's or a lesson's. Raises NotFound."""
    places = {id: (numbers[id], 0) for id in ids if id in numbers}
    if len(places) < len(ids):
        others = [id for id in ids if id not in places]
        places.update((id, (number, 0)) for id, number in numbers_of(connection, scope, others).items())
    if len(places) < len(ids):
        sql = "SELECT id, experience, place FROM lessonbank.lessons WHERE scope = %s AND id = ANY(%s)"
        others = [id for id in ids if id not in places]
        places.update((id, (number, at)) for id, number, at in rows(connection, sql, scope, others))
    unknown = next((id for id in ids if id not in places), None)
    if unknown is not None:
        raise NotFound(f"no experience or lesson {unknown!r} in this scope to keep a vector of")
    return places


def forget(connection: Connection, scope: str, /, *, places: Iterable[tuple[int, int]]) -> None:
    """Take out the vectors of these places (experience, place of the lesson or 0) in all spaces of a scope."""
    sql = "DELETE FROM lessonbank.vectors WHERE scope = %s AND experience = %s AND place = %s"
    many(connection, sql, [(scope, *place) for place in places])


def drop(connection: Connection, scope: str, space: str, /) -> None:
    """Forget the vectors of a space, and how many numbers they had."""
    for table in ("vectors", "spaces"):
        do(connection, f"DELETE FROM lessonbank.{table} WHERE scope = %s AND space = %s", scope, space)


def nearest(connection: Connection, query: Vectors, /, *, scope: str, space: str, limit: int) -> list[Match]:
    """The closest shown rows by cosine. Raises UsageError or SpaceMismatch, see `unit`."""
    there = find_space(connection, scope, space)
    row_of_query = unit(query, what="the query", space=space, dimensions=there and there.dimensions)
    if there is None or limit <= 0:
        return []
    sql = _NEAREST
    if there.indexed and find_scope(connection, scope).documents > LARGE:
        sql = _NEAR.format(dimensions=there.dimensions)
        row(connection, _ITERATIVE)
    best = _best(connection, sql, row_of_query, scope=scope, space=space, limit=limit)
    experiences = found_at(connection, scope, list(dict.fromkeys(number for number, _, _ in best)))
    return [
        Match(experience=e, score=score, lesson_id=e.lessons[at - 1].id if at else None)
        for number, at, score in best
        if (e := experiences.get(number))
    ]


def _best(
    connection: Connection, sql: str, query: Vectors, *, scope: str, space: str, limit: int
) -> list[tuple[int, int, float]]:
    """Experience, place and score of the best, equal scores newest first."""
    asked: dict[str, Any] = {"scope": scope, "space": space, "query": as_row(query)}
    asked["most"] = limit + _MORE
    while True:
        matches = rows(connection, sql, asked)
        scored = [(number, at, min(max(round(-float(distance), 5), -1.0), 1.0)) for number, at, distance in matches]
        # Whatever was not fetched is farther than the last row: only if that ties with the last place, ties may lack.
        if len(matches) < asked["most"] or scored[-1][2] < scored[limit - 1][2] - _SLACK:
            break
        asked["most"] *= 4
    if len({score for *_, score in scored}) < len(scored):
        ages = "SELECT number, created_at FROM lessonbank.experiences WHERE scope = %s AND number = ANY(%s)"
        age = dict(rows(connection, ages, scope, [number for number, *_ in scored]))
        scored.sort(key=lambda row: (-row[2], -age[row[0]], -row[0], -row[1]))
    return scored[:limit]


_NEAREST: Final = (
    "SELECT experience, place, unit <#> %(query)s::vector AS distance FROM lessonbank.vectors WHERE scope = %(scope)s"
    " AND space = %(space)s AND shown ORDER BY distance LIMIT %(most)s"
)


_NEAR: Final = (
    "SELECT experience, place, unit <#> %(query)s::vector AS distance FROM (SELECT experience, place, unit"
    " FROM lessonbank.vectors WHERE scope = %(scope)s AND space = %(space)s AND shown"
    " AND vector_dims(unit) = {dimensions}"
    " ORDER BY unit::halfvec({dimensions}) <#> %(query)s::vector::halfvec({dimensions}) LIMIT %(most)s) near"
    " ORDER BY distance"
)
"""The index orders by halves of precision; whatever it gives is compared exactly."""
_ITERATIVE: Final = (
    "SELECT set_config('hnsw.iterative_scan', 'relaxed_order', true), set_config('hnsw.ef_search', '200', true)"
)
"""Without it an index gives 40 rows of all scopes, and of these only those of one scope remain."""


def index_statements(connection: Connection, /) -> list[str]:
    """What makes the indexes that large scopes need and do not have."""
    sql = (
        "SELECT DISTINCT p.dimensions FROM lessonbank.scopes s JOIN lessonbank.spaces p ON p.scope = s.scope"
        " WHERE s.documents > %s AND p.dimensions <= %s"
        " AND to_regclass('lessonbank.vectors_near_' || p.dimensions) IS NULL ORDER BY 1"
    )
    return [
        f"CREATE INDEX vectors_near_{n} ON lessonbank.vectors USING hnsw ((unit::halfvec({n})) halfvec_ip_ops)"
        f" WHERE vector_dims(unit) = {n}"
        for (n,) in rows(connection, sql, LARGE, _MOST_DIMENSIONS)
    ]


def unindexed(
    connection: Connection, /, *, scope: str, space: str, limit: int, lessons: bool
) -> tuple[list[tuple[str, str]], int | None]:
    """(id, text) of experiences, or of active lessons, without a vector in the space; oldest first.

    And, where none lacks one and that is worth writing down, the journal entry up to which that is so.
    """
    there, sequence = find_space(connection, scope, space), find_scope(connection, scope).sequence
    checked = 0 if there is None else there.lessons_checked if lessons else there.tasks_checked
    if there is not None and checked >= sequence:
        return [], None
    asked = {"scope": scope, "space": space, "checked": checked, "limit": max(limit, 0)}
    places = rows(connection, _LESSONS_WITHOUT if lessons else _TASKS_WITHOUT, asked)
    held = experiences_at(connection, scope, list(dict.fromkeys(number for number, _ in places)))
    named = [text_at(held[number], at) for number, at in places]
    none = limit > 0 and not places and there is not None
    return named, sequence if none and sequence - checked > _BEHIND else None


def note_checked(connection: Connection, /, *, scope: str, space: str, lessons: bool) -> None:
    """Write down that nothing lacks a vector, where that is so: what is known need not be looked through again.

    Not while somebody else writes: whoever asks has the answer, and a later question will do.
    """
    if not is_alone(connection, scope):
        return
    _, upto = unindexed(connection, scope=scope, space=space, limit=1, lessons=lessons)
    if upto is not None:
        column = "lessons_checked" if lessons else "tasks_checked"
        sql = f"UPDATE lessonbank.spaces SET {column} = %s WHERE scope = %s AND space = %s"
        do(connection, sql, upto, scope, space)


_WITHOUT: Final = (
    "NOT EXISTS (SELECT 1 FROM lessonbank.vectors v WHERE v.scope = %(scope)s AND v.space = %(space)s"
    " AND v.experience = e.number AND v.place = {place})"
)
_TASKS_WITHOUT: Final = (
    "SELECT e.number, 0 FROM lessonbank.experiences e WHERE e.scope = %(scope)s AND e.entry > %(checked)s AND NOT gone"
    f" AND {_WITHOUT.format(place=0)} ORDER BY e.created_at, e.number LIMIT %(limit)s"
)
_LESSONS_WITHOUT: Final = (
    "SELECT e.number, l.place FROM lessonbank.experiences e JOIN lessonbank.lessons l ON l.scope = e.scope"
    f" AND l.experience = e.number AND {VISIBLE} WHERE e.scope = %(scope)s AND e.entry > %(checked)s"
    f" AND {_WITHOUT.format(place='l.place')} ORDER BY e.created_at, e.number, l.place LIMIT %(limit)s"
)

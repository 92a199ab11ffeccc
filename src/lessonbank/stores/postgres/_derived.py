"""The tables that follow from the records: filled by every write, and all at once by a rebuild."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from lessonbank.contracts.records import Experience
from lessonbank.contracts.records.attempts import attempts_of
from lessonbank.stores._listing import listed

from ._database import Connection, do, many, rows
from ._rows import VISIBLE
from ._seen import seen


def lesson_rows(number: int, experience: Experience, /) -> list[tuple[object, ...]]:
    """What is kept of an experience's lessons: id, experience, place, state, time, kind, writer, wording, words."""
    return [(i.id, number, at, *listed(i), seen(i.text)) for at, i in enumerate(experience.lessons, 1)]


def attempt_rows(number: int, experience: Experience, /) -> list[tuple[object, ...]]:
    """What is kept of its attempts: run, experience, whether it waits, outcome."""
    return [(id, number, waiting, outcome) for id, waiting, outcome in attempts_of(experience)]


def derive(connection: Connection, scope: str, experiences: Mapping[int, Experience], /) -> None:
    """Lessons, repeats and attempts of experiences, by number; what earlier versions left must be gone."""
    of_lessons = (row for number, e in experiences.items() for row in lesson_rows(number, e))
    of_attempts = (row for number, e in experiences.items() for row in attempt_rows(number, e))
    of_repeats = ((id, number) for number, e in experiences.items() for id in e.repeats)
    _insert(connection, scope, "lessons (scope, id, experience, place, state, created_at, kind, writer, wording, seen)",
            of_lessons)  # fmt: skip
    _insert(connection, scope, "attempts (scope, trajectory, experience, waiting, outcome)", of_attempts)
    _insert(connection, scope, "repeats (scope, lesson, experience)", of_repeats)


def _insert(connection: Connection, scope: str, into: str, values: Iterable[Sequence[object]]) -> None:
    _, _, columns = into.rstrip(")").partition("(")
    places = ", ".join("%s::bit(1024)" if name == "seen" else "%s" for name in columns.split(", "))
    many(connection, f"INSERT INTO lessonbank.{into} VALUES ({places})", ((scope, *row) for row in values))


def underive(connection: Connection, scope: str, old: Mapping[int, Experience], /) -> tuple[set[str], set[str]]:
    """Take away what experiences left in other tables. The runs they spoke of, and the lessons they held."""
    if old:
        for table in ("lessons", "repeats", "attempts"):
            do(connection, f"DELETE FROM lessonbank.{table} WHERE scope = %s AND experience = ANY(%s)", scope, [*old])
    runs = {attempt.trajectory_id for e in old.values() for attempt in e.attempts}
    return runs, {lesson.id for e in old.values() for lesson in e.lessons}


def refresh_shown(
    connection: Connection, scope: str, numbers: Iterable[int], /, *, lessons: Collection[str] = ()
) -> None:
    """Say anew of these experiences, and of those that taught one of `lessons` again, whether they may be found."""
    again = rows(connection, _AGAIN, scope, list(lessons)) if lessons else []
    these = {*numbers, *(number for (number,) in again)}
    refresh(connection, scope, these, with_vectors=these)


def refresh(connection: Connection, scope: str, numbers: Collection[int], /, *, with_vectors: Collection[int]) -> None:
    """Say anew of these experiences whether they may be found, and of `with_vectors` whether their vectors may."""
    if numbers:
        do(connection, _SHOWN, {"scope": scope, "numbers": list(numbers)})
    if with_vectors:
        do(connection, _SHOWN_VECTORS, {"scope": scope, "numbers": list(with_vectors)})


# The numbers stand in the statements, and no join does in their place: so the planner knows that they are few. It would
# read the whole scope for one experience else.
_AGAIN = "SELECT experience FROM lessonbank.repeats WHERE scope = %s AND lesson = ANY(%s)"
_SHOWN = (
    "UPDATE lessonbank.experiences e SET shown = NOT shown WHERE e.scope = %(scope)s AND e.number = ANY(%(numbers)s)"
    " AND e.shown != (EXISTS (SELECT 1 FROM lessonbank.lessons l"
    f" WHERE l.scope = %(scope)s AND l.experience = e.number AND {VISIBLE})"
    " OR EXISTS (SELECT 1 FROM lessonbank.repeats r JOIN lessonbank.lessons l ON l.scope = r.scope AND l.id = r.lesson"
    f" WHERE r.scope = %(scope)s AND r.experience = e.number AND {VISIBLE}))"
)
_SHOWN_VECTORS = (
    "UPDATE lessonbank.vectors v SET shown = NOT v.shown FROM lessonbank.experiences e"
    " WHERE v.scope = %(scope)s AND v.experience = ANY(%(numbers)s) AND e.scope = %(scope)s AND e.number = v.experience"
    " AND v.shown != CASE WHEN v.place = 0 THEN e.shown AND NOT e.gone"
    " ELSE EXISTS (SELECT 1 FROM lessonbank.lessons l WHERE l.scope = %(scope)s AND l.experience = v.experience"
    f" AND l.place = v.place AND {VISIBLE}) END"
)


def settle_pending(connection: Connection, scope: str, trajectory_ids: Iterable[str] | None, /) -> None:
    """Set whether each of these runs still waits, or each of the scope: it does while no experience has settled it."""
    ids = None if trajectory_ids is None else list(trajectory_ids)
    if ids != []:
        these = "" if ids is None else " AND t.id = ANY(%(ids)s)"
        do(connection, _SETTLED + these, {"scope": scope, "ids": ids})


_SETTLED = (
    "UPDATE lessonbank.trajectories t SET pending = NOT t.pending WHERE t.scope = %(scope)s AND t.pending = EXISTS ("
    "SELECT 1 FROM lessonbank.attempts a WHERE a.scope = %(scope)s AND a.trajectory = t.id AND NOT a.waiting)"
)


def settle_runs(connection: Connection, scope: str, new: Iterable[Experience], /) -> None:
    """Settle the runs of experiences that are new: they can only have settled some."""
    settled = {id for e in new for id, waiting, _ in attempts_of(e) if not waiting}
    if settled:
        sql = "UPDATE lessonbank.trajectories SET pending = false WHERE scope = %s AND id = ANY(%s) AND pending"
        do(connection, sql, scope, list(settled))


def recount(connection: Connection, scope: str, /) -> None:
    """Recompute the word counts of a scope. What lacks a vector is looked for from the beginning afterwards."""
    do(
        connection,
        "UPDATE lessonbank.scopes SET (documents, words) = (SELECT count(*), coalesce(sum(words), 0)"
        " FROM lessonbank.experiences WHERE scope = %(scope)s AND NOT gone) WHERE scope = %(scope)s",
        {"scope": scope},
    )
    do(connection, "UPDATE lessonbank.spaces SET tasks_checked = 0, lessons_checked = 0 WHERE scope = %s", scope)

"""Finds the record that a part of an id names, so that nobody types 32 characters."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from lessonbank._base.ids import LEAST, SHOWN
from lessonbank._base.ids import short as short
from lessonbank._base.iterate import each
from lessonbank.errors import NotAllowed, NotFound, UsageError
from lessonbank.guard import one_line

if TYPE_CHECKING:
    from lessonbank import ReasoningBank
    from lessonbank.contracts.records import Lesson

_NAMED = 5
"""How many candidates the error for an ambiguous id names."""
_WHOLE = re.compile(r"[0-9a-f]{32}|[0-9a-f]{64}")


def lesson_id(memory: ReasoningBank, given: str, /) -> str:
    """The whole id of a lesson, retired ones too. Raises NotFound, UsageError."""
    return _complete("lesson", given, memory.lessons.get, _lessons(memory))


def lesson_ids(memory: ReasoningBank, given: Iterable[str], /) -> list[str]:
    """The whole ids of several lessons. Raises NotFound, UsageError."""
    return [lesson_id(memory, id) for id in given]


def run_id(memory: ReasoningBank, given: str, /) -> str:
    """The whole id of a run. Raises NotFound, UsageError."""
    return _complete("run", given, memory.runs.get, _runs(memory))


def recall_id(memory: ReasoningBank, given: str, /) -> str:
    """The whole id of a recall. Raises NotFound, UsageError."""
    return _complete("recall", given, memory.recalls.get, _recalls(memory))


def run_or_recall_id(memory: ReasoningBank, given: str, /) -> str:
    """The whole id of a run or a recall. Raises NotFound, UsageError."""
    return _complete("record", given, memory.runs.get, chain(_runs(memory), _recalls(memory)))


def experience_id(memory: ReasoningBank, given: str, /) -> str:
    """The whole id of an experience, as the journal names it. Raises NotFound, UsageError."""
    entries = (getattr(entry.entry, "experience", None) for entry in memory.history.list())
    known = {experience.id: experience.task for experience in entries if experience is not None}
    return given if given in known else _only("experience", given, known.items())


def record_id(memory: ReasoningBank, given: str, /) -> tuple[str, str]:
    """What a part of an id names, `lesson`, `run` or `recall`, and its whole id.

    Raises:
        NotFound: nothing has this id.
        NotAllowed: nothing that the key may look at has it.
        UsageError: it is too short, or names several records.
    """
    if what := _kind_of(memory, given):
        return what, given
    if _WHOLE.fullmatch(given):
        raise NotFound(f"there is no record {given!r} in this scope")
    kinds = {"lesson": _lessons(memory), "run": _runs(memory), "recall": _recalls(memory)}
    known = {id: (what, text) for what, records in kinds.items() for id, text in records}
    whole = _only("record", given, ((id, f"{what}: {text}") for id, (what, text) in known.items()))
    return known[whole][0], whole


def _kind_of(memory: ReasoningBank, given: str) -> str | None:
    """What has exactly this id. A key may be for some kinds only: what it is not for counts if no other has the id."""
    refused: list[NotAllowed] = []
    for what, view in {"lesson": memory.lessons, "run": memory.runs, "recall": memory.recalls}.items():
        try:
            view.get(given)
        except NotFound:
            continue
        except NotAllowed as error:
            refused.append(error)
            continue
        return what
    if refused:
        raise refused[0]
    return None


def _complete(what: str, given: str, get: Callable[[str], object], known: Iterator[tuple[str, str]]) -> str:
    if _WHOLE.fullmatch(given):
        return given
    try:
        get(given)
    except NotFound:
        return _only(what, given, known)
    return given


def _only(what: str, given: str, known: Iterable[tuple[str, str]]) -> str:
    """The one id that begins or ends with `given`."""
    if len(given) < LEAST:
        raise UsageError(f"{given!r} is too short for an id: give at least {LEAST} characters")
    matches = {id: text for id, text in known if id.startswith(given) or id.endswith(given)}
    if not matches:
        raise NotFound(f"there is no {what} {given!r} in this scope")
    if len(matches) > 1:
        named = ", ".join(f"{short(id)} ({_begin(text)})" for id, text in [*matches.items()][:_NAMED])
        more = f" and {len(matches) - _NAMED} more" if len(matches) > _NAMED else ""
        raise UsageError(
            f"{given!r} names {len(matches)} {what}s: give the last {SHOWN} characters of one: {named}{more}"
        )
    return next(iter(matches))


def _begin(text: str) -> str:
    line = one_line(text, limit=200)
    return line if len(line) <= SHOWN * 5 else f"{line[: SHOWN * 5 - 1].rstrip()}…"


def _lessons(memory: ReasoningBank) -> Iterator[tuple[str, str]]:
    return ((lesson.id, lesson.title) for lesson in lessons_of(memory))


def _runs(memory: ReasoningBank) -> Iterator[tuple[str, str]]:
    runs = each(memory.runs.list, lambda run: run.trajectory.id)
    return ((run.trajectory.id, run.trajectory.task) for run in runs)


def _recalls(memory: ReasoningBank) -> Iterator[tuple[str, str]]:
    return ((recall.id, recall.task) for recall in each(memory.recalls.list, lambda recall: recall.id))


def lessons_of(memory: ReasoningBank, /) -> Iterator[Lesson]:
    """Every lesson of the scope, newest first, retired ones too."""
    return each(partial(memory.lessons.list, retired=True), lambda lesson: lesson.id)

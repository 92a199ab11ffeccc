"""Notices calls that a text asked for: what a page or a mail says to do is somebody else's wish, and no plan."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from lessonbank.contracts.records import Json, Lesson, Trajectory

from ._run_texts import LOOKS, asked, ends, is_command, leaves, parsed, parts_of, result_of
from .run_values import words_of

_MOST: Final = 200
"""Different values of a run that are looked for."""
_QUICK: Final = 50_000
"""Characters of results in which it is looked for a value at once."""
_LEAST: Final = 4
"""Characters of a value with a blank at both ends."""
_TIMES: Final = 50
"""How often a value is looked for in one text."""
_BESIDE: Final = 300
"""Characters of a text that are read before a value, and after it."""
_SENTENCE: Final = 3
"""So many other words beside a value make the two a sentence. Fewer are the name of a field."""
_SHORT_ID: Final = re.compile(r"[A-Za-z]{0,4}[-_#]?[\d.,]{1,8}")
"""A number, or what a program calls a thing of its own, such as a control of a page: `[a12]`, `ref=e12`."""
_OF_A_PROGRAM: Final = re.compile(r"[\[\]{}()<>=#:/_.-]")
"""Stands beside such an id where a program and no person wrote it."""
_NOTHING: Final = re.compile(r"(?!)")
_WORD: Final = re.compile(r"[^\W\d_]{2,}")
_CELL_ENDS: Final = re.compile(r"[\n|\t,;]")
_VALUE_ENDS: Final = re.compile(r"[{(\[,:]\s{0,4}[\"']|[\"']\s{0,4}[,:})\]]|[\n|\t,;]")
"""Of data that was printed in a form that nobody can read back."""


class _Value(NamedTuple):
    step: int
    """At which the agent gave it to a tool for the first time: what came back later it knew before."""
    tool: str
    text: str


class _Result(NamedTuple):
    step: int
    source: str
    text: str
    ends: re.Pattern[str]


def wished_tools(runs: Sequence[Trajectory], /) -> Sequence[str]:
    """The tools that runs called with a value out of a sentence of an earlier result, which the task does not have.

    A call that only looks is none: what an agent reads next, it mostly finds in what it read. A tool's own answer may
    say how it wants to be called.
    """
    return list(dict.fromkeys([tool for run in runs if _repeats(run) for tool in _asked_for(run)]))


def named_in(lesson: Lesson, tools: Sequence[str], /) -> str | None:
    """The first of these tools that a lesson names."""
    return next((tool for tool in tools if re.search(rf"\b{re.escape(tool)}\b", lesson.text)), None)


def _repeats(run: Trajectory) -> bool:
    """Whether a call has a value that an earlier result holds; yes where a look would take long."""
    before, looked = "", 0
    for step in run.steps:
        for call in step.action.calls:
            if not before:
                continue
            if isinstance(call.arguments, str) or len(before) > _QUICK or looked > _MOST:
                return True
            for name, value in call.arguments.items():
                looked += 1
                is_plain = name.isidentifier() and (value is None or isinstance(value, str | int | float))
                if not is_plain or str(value).strip().lower() in before:
                    return True
        before += "".join([seen.text.lower() for seen in step.observations])
    return False


def _asked_for(run: Trajectory) -> Iterator[str]:
    values = list(_values(run))
    results = list(_results(run)) if values else []
    for value in values:
        own = result_of(value.tool)
        if any(_is_of_a_sentence(value.text, it) for it in results if it.step < value.step and it.source != own):
            yield value.tool


def _values(run: Trajectory) -> Iterator[_Value]:
    """Each different value that a call which does something was given, and nobody asked for."""
    first, values = dict[str, int](), set[tuple[str, str]]()
    for number, step in enumerate(run.steps, 1):
        for call in step.action.calls:
            given = parsed(call.arguments) if isinstance(call.arguments, str) else call.arguments
            arguments = [] if is_command([call]) else [(call.name, text) for text in _texts(given)]
            for _, text in arguments:
                first.setdefault(text, number)
            if not LOOKS.match(call.name):
                values.update(arguments[: _MOST - len(values)])
    request = words_of(*asked(run), ends(run.instructions)) if values else ""
    for tool, text in sorted(values):
        words = words_of(text)
        if len(words) >= _LEAST and words not in request:
            yield _Value(first[text], tool, text)


def _texts(data: Json) -> Iterator[str]:
    return (ends(str(value)).strip().lower() for _, _, value in leaves(data))


def _results(run: Trajectory) -> Iterator[_Result]:
    """What tools returned: of data each value, of a text all of it."""
    for part in parts_of(run):
        if not part.source:
            continue
        text = ends(part.text).lower()
        if part.data is not None:
            yield from (_Result(part.step, part.source, value, _CELL_ENDS) for value in _texts(part.data))
        else:
            cells = _VALUE_ENDS if text.lstrip()[:1] in ("{", "[", "(") else _CELL_ENDS
            yield _Result(part.step, part.source, text, cells)


def _is_of_a_sentence(value: str, result: _Result) -> bool:
    text, size, at = result.text, len(value), -1
    joins = _OF_A_PROGRAM if _SHORT_ID.fullmatch(value) else _NOTHING
    for _ in range(_TIMES):
        if (at := text.find(value, at + 1)) < 0:
            break
        before, after = text[max(0, at - _BESIDE) : at], text[at + size : at + size + _BESIDE]
        beside = before[-1:], after[:1]
        if any(map(str.isalnum, beside)) or any(map(joins.match, beside)):
            continue
        cell = f"{result.ends.split(before)[-1]} {result.ends.split(after, 1)[0]}"
        if len(_WORD.findall(cell)) >= _SENTENCE:
            return True
    return False

"""What every format shares: one memory of another program, and its words in the fields of a lesson."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from lessonbank._base.surrogates import encodable
from lessonbank.contracts.records import Json, Kind
from lessonbank.guard.quote import in_one_line, redact_before_cut
from lessonbank.learning.extraction.parsing import Draft, shorten

_TITLE: Final = 80
_TASK: Final = 20_000
"""Characters of a task that are kept."""

Fields: TypeAlias = dict[str, Json]


@dataclass(frozen=True, slots=True)
class Memory:
    """A task, and what another program remembered of it."""

    task: str
    lessons: tuple[Draft, ...]


@dataclass(frozen=True, slots=True)
class Format:
    """A kind of file, and how its parts are read. A part is a JSON value (a line, or the file), or the whole text."""

    name: str
    description: str
    of_value: Callable[[Json], Sequence[Memory] | None] = lambda _: None
    """The memories in a value; `None` where it is of another format."""
    of_text: Callable[[str], Sequence[Memory]] = lambda _: ()
    """The memories in a text; none where it is of another format."""


def memory(content: Json, /, *, title: Json = "", when: Json = "", task: Json = "", kind: Kind = "strategy") -> Memory:
    """One memory. Without a title its first words are the title; without a task, its words are what it is found by."""
    text = text_of(content)
    head = in_one_line(text_of(title) or text, limit=10 * _TITLE)
    draft = Draft(title=shorten(head, _TITLE), description=text_of(when), content=text, kind=kind)
    asked = text_of(task) or text
    return Memory(redact_before_cut(asked, limit=_TASK)[:_TASK].strip(), (draft,) if text else ())


def text_of(value: Json, /) -> str:
    """`value` if it is a text, without the blanks around it and what no store can encode."""
    return encodable(value).strip() if isinstance(value, str) else ""


def fields_of(value: Json, /, *needed: str) -> Fields | None:
    """`value` if it is an object that has all `needed` fields."""
    return value if isinstance(value, dict) and all(name in value for name in needed) else None

"""Rows of one setting in a file that a stopped command goes on with, and that another one is compared with."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Generic, TypeVar

from pydantic import Field, JsonValue, ValidationError

from lessonbank.contracts.records import Record
from lessonbank.errors import FormatError, UsageError
from lessonbank.guard import one_line


class Setting(Record):
    """What all rows of a file have in common."""

    name: str
    """How tables call it."""
    asked: dict[str, JsonValue] = Field(default_factory=dict)
    """The model, the prompts, the budgets: what must be the same for a file to go on."""


R = TypeVar("R", bound=Record)


class Kept(Generic[R]):
    """A setting and the rows it led to; every row is on disk before the next is asked for."""

    def __init__(self, path: Path, row: type[R], setting: Setting | None = None, /) -> None:
        """Open what is there, or begin with `setting`.

        Raises:
            UsageError: no file and no setting, or the file was made with another setting.
            FormatError: the file holds something else.
        """
        self._path = path
        known, self.rows = _read(path, row) if path.exists() and path.stat().st_size else (None, list[R]())
        if known is None and setting is None:
            raise UsageError(f"there is nothing at {one_line(str(path))}: give runs and --model")
        if known and setting and (other := _differs(known.asked, setting.asked)):
            raise UsageError(
                f"{one_line(str(path))} was made with another {other} "
                f"({one_line(json.dumps(known.asked.get(other)), limit=120)}): choose another file"
            )
        self.setting = known or setting or Setting(name="")
        if known is None:
            path.write_text(self.setting.model_dump_json() + "\n", encoding="utf-8")

    def add(self, row: R, /) -> None:
        """Keep one more."""
        with self._path.open("a", encoding="utf-8") as file:
            file.write(row.model_dump_json() + "\n")
        self.rows.append(row)


def _read(path: Path, row: type[R]) -> tuple[Setting, list[R]]:
    text = path.read_text(encoding="utf-8")
    whole = text[: text.rfind("\n") + 1]
    first, *rest = whole.split("\n")
    try:
        found = Setting.model_validate_json(first), [row.model_validate_json(line) for line in rest if line.strip()]
    except ValidationError as error:
        raise FormatError(
            f"{one_line(str(path))} was not written by this command of `lessonbank bench`: name another file"
        ) from error
    if whole != text:  # who wrote the last line was stopped
        path.write_text(whole, encoding="utf-8")
    return found


def _differs(known: Mapping[str, JsonValue], asked: Mapping[str, JsonValue]) -> str | None:
    return next((name for name in sorted({*known, *asked}) if known.get(name) != asked.get(name)), None)

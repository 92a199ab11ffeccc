"""What a judge said of each run, beside the truth, in a file that can be compared with another one."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from pydantic import Field, JsonValue, ValidationError

from lessonbank.errors import FormatError, UsageError
from lessonbank.guard import one_line
from lessonbank.types import Outcome, Record, Usage


class Opinion(Record):
    """A verdict beside the truth."""

    run: str
    source: str
    domain: str
    success: bool
    """The truth."""
    outcome: Outcome
    confidence: float
    reason: str = ""
    prompt: str = ""
    usage: Usage = Usage()

    @property
    def decided(self) -> bool:
        """Whether the judge said one or the other."""
        return self.outcome != "unknown"

    @property
    def right(self) -> bool:
        """Whether it said the true one."""
        return self.decided and (self.outcome == "success") == self.success


class Setting(Record):
    """What all opinions of a file have in common."""

    name: str
    """How tables call it."""
    asked: dict[str, JsonValue] = Field(default_factory=dict)
    """The model, the prompts, the budgets: what must be the same for a file to go on."""


class OpinionFile:
    """A setting and the opinions it led to; every opinion is on disk before the next is asked for."""

    def __init__(self, path: Path, setting: Setting | None, /) -> None:
        """Open what is there, or begin with `setting`.

        Raises:
            UsageError: no file and no setting, or the file was made with another setting.
            FormatError: the file holds something else.
        """
        self._path = path
        known, self.opinions = _read(path) if path.exists() and path.stat().st_size else (None, [])
        if known is None and setting is None:
            raise UsageError(f"there are no verdicts at {one_line(str(path))}: give runs and --model")
        if known and setting and (other := _differs(known.asked, setting.asked)):
            raise UsageError(
                f"{one_line(str(path))} was made with another {other} "
                f"({one_line(json.dumps(known.asked.get(other)), limit=120)}): choose another --out"
            )
        self.setting = known or setting or Setting(name="")
        if known is None:
            path.write_text(self.setting.model_dump_json() + "\n", encoding="utf-8")

    def add(self, opinion: Opinion, /) -> None:
        """Keep one more."""
        with self._path.open("a", encoding="utf-8") as file:
            file.write(opinion.model_dump_json() + "\n")
        self.opinions.append(opinion)


def _read(path: Path) -> tuple[Setting, list[Opinion]]:
    text = path.read_text(encoding="utf-8")
    whole = text[: text.rfind("\n") + 1]
    if whole != text:  # who wrote the last line was stopped
        path.write_text(whole, encoding="utf-8")
    first, *rest = whole.split("\n")
    try:
        found = [Opinion.model_validate_json(line) for line in rest if line.strip()]
        return Setting.model_validate_json(first), found
    except ValidationError as error:
        raise FormatError(f"{one_line(str(path))} holds no verdicts of `lessonbank bench judge`") from error


def _differs(known: Mapping[str, JsonValue], asked: Mapping[str, JsonValue]) -> str | None:
    return next((name for name in sorted({*known, *asked}) if known.get(name) != asked.get(name)), None)


def shared(one: Sequence[Opinion], other: Sequence[Opinion], /) -> list[tuple[Opinion, Opinion]]:
    """The opinions of both on the same runs, in pairs."""
    by_run = {opinion.run: opinion for opinion in other}
    return [(opinion, by_run[opinion.run]) for opinion in one if opinion.run in by_run]

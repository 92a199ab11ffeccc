"""What can be said of single lessons after an experiment: when each was shown, and how the same tasks went without."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from lessonbank.contracts.records import Experience, Lesson, Recall, Settlement
from lessonbank.evidence import Lift
from lessonbank.evidence.evidence_table import EvidenceTable
from lessonbank.evidence.report import report
from lessonbank.trials.paired_sequential import PairedTest
from lessonbank_bench.statistics import Interval

from .comparison import Key, by_arm
from .journal import BANKS
from .records import AttemptRow, Experiment, file_name

FEWEST: Final = 5
"""Tasks with an outcome below which nothing is said of a lesson."""
_OPENS = re.compile(r"<<<lessons ([0-9a-f]{8})>>>")
_FIRST = re.compile(r"\[\d{1,3}\] (?:(strategy|guardrail): )?(.*)")
_LONGEST = 200_000
"""Characters of a memory's text that are looked through."""


@dataclass(frozen=True, slots=True)
class Said:
    """What a lesson says."""

    kind: str
    title: str
    content: str


@dataclass(frozen=True, slots=True)
class Used:
    """A lesson, the tasks it was shown for, and how the baseline did on those tasks.

    The baseline did the same tasks, so how hard they are makes no difference. What else was shown beside the lesson
    does, and so does which tasks it was chosen for: this is an observation and no effect of the lesson.
    """

    arm: str
    code: str
    """Names it in the rows: what says the same in another seed, or after a resume, is the same."""
    said: Said
    seeds: int
    shown: int
    """Tasks with an outcome in this arm."""
    succeeded: int
    pairs: int
    """Those of them that the baseline has an outcome for too."""
    better: int
    worse: int
    base: int
    """How many of the pairs the baseline did."""
    always: Interval
    """The mean difference to the baseline, right however often one looks; not adjusted for the number of lessons."""


def shown_in(text: str, /) -> tuple[Said, ...]:
    """The lessons between the marker lines of a memory's text, in order; none where it has no such lines."""
    found: list[Said] = []
    code, inside = "", list[str]()
    for line in text[:_LONGEST].split("\n"):
        if not code:
            code = opened[1] if (opened := _OPENS.fullmatch(line)) else ""
        elif line == f"<<<end lessons {code}>>>":
            found += _lessons(inside)
            code, inside = "", []
        elif line.startswith(f"{code}| "):
            inside.append(line[len(code) + 2 :])
    return tuple(found)


def _lessons(lines: Iterable[str]) -> Iterator[Said]:
    """A lesson begins with its number; what belongs to it is indented."""
    kind, title, body = "", "", list[str]()
    for line in lines:
        if first := _FIRST.fullmatch(line):
            if title:
                yield Said(kind, title, "\n".join(body))
            kind, title, body = first[1] or "", first[2], []
        else:
            body.append(line.strip())
    if title:
        yield Said(kind, title, "\n".join(body))


def what_was_said(rows: Iterable[AttemptRow], /) -> dict[str, Said]:
    """By its code, what each lesson says: as it was written, else (where a bank merged some) as it was shown."""
    said: dict[str, Said] = {}
    for row in rows:
        shown = shown_in(row.memory) if any(code not in said for code in row.shown) else ()
        if len(shown) == len(row.shown):
            for code, one in zip(row.shown, shown, strict=True):
                said.setdefault(code, one)
        said.update({one.code: Said(one.kind, one.title, one.content) for one in row.lessons})
    return said


def used(experiment: Experiment, rows: Sequence[AttemptRow], /) -> tuple[Used, ...]:
    """Every lesson that was shown for a task with an outcome; those shown most often first."""
    arms, said = by_arm(rows), what_was_said(rows)
    base = arms.get(experiment.against.name, {})
    found: list[Used] = []
    for arm in experiment.arms:
        own = arms.get(arm.name, {})
        for code, keys in _showings(own).items():
            found.append(_used(arm.name, code, said.get(code, Said("", code, "")), [own[key] for key in keys], base))
    return tuple(sorted(found, key=lambda one: (-one.shown, one.arm, one.said.title, one.code)))


def _showings(rows: Mapping[Key, AttemptRow]) -> dict[str, list[Key]]:
    showings: dict[str, list[Key]] = {}
    for key, row in rows.items():
        if row.success is not None:
            for code in dict.fromkeys(row.shown):
                showings.setdefault(code, []).append(key)
    return showings


def _used(arm: str, code: str, said: Said, rows: Sequence[AttemptRow], base: Mapping[Key, AttemptRow]) -> Used:
    beside = [(row, base.get((row.seed, row.place, row.task_id))) for row in rows]
    pairs = [(bool(row.success), bool(other.success)) for row, other in beside if other and other.success is not None]
    differences = [int(done) - int(without) for done, without in pairs]
    test = PairedTest()
    for difference in differences:
        test.add(difference)
    return Used(
        arm=arm,
        code=code,
        said=said,
        seeds=len({row.seed for row in rows}),
        shown=len(rows),
        succeeded=sum(bool(row.success) for row in rows),
        pairs=len(pairs),
        better=differences.count(1),
        worse=differences.count(-1),
        base=sum(without for _, without in pairs),
        always=Interval(sum(differences) / max(len(pairs), 1), *test.interval()),
    )


@dataclass(frozen=True, slots=True)
class Randomised:
    """What one bank's own draws say: lessons were left out at random, so the difference is what showing them does."""

    arm: str
    seed: int
    lift: Lift


def randomised(experiment: Experiment, folder: Path, /) -> tuple[Randomised, ...]:
    """The lift of every exported bank of an experiment's folder in which something could be left out at random.

    Arms show all they have unless they are told otherwise; where no probability was above zero there is nothing here.

    Raises:
        FormatError: an export that withheld cannot be read.
    """
    found: list[Randomised] = []
    for arm in experiment.arms:
        for seed in experiment.seeds:
            path = folder / BANKS / file_name(arm.name, seed)
            if path.is_file() and (scope := _withholding_scope(path)):
                found.append(Randomised(arm.name, seed, _lift(path, scope)))
    return tuple(found)


def _withholding_scope(path: Path) -> str:
    """The scope of a bank whose receipts have probabilities; empty where none has."""
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            if '"recall"' not in line[:40]:
                continue
            try:
                told: dict[str, Any] = json.loads(line)["record"]
                odds = [told["control_probability"], *(one["probability"] for one in told["candidates"])]
            except (ValueError, KeyError, TypeError):
                continue
            if max(odds) > 0:
                return str(told["scope"])
    return ""


def _lift(path: Path, scope: str) -> Lift:
    """What the finished bank would say. Asked here, because a bank that imports a file does not count its recalls."""
    columns, lessons = EvidenceTable(), dict[str, Lesson]()
    with path.open(encoding="utf-8") as file:
        for line in file:
            entry = json.loads(line)
            kind, record = entry.get("kind"), entry.get("record")
            if kind == "recall":
                columns.receipt(Recall.model_validate(record))
            elif kind == "settlement":
                columns.settle(Settlement.model_validate(record))
            elif kind == "experience":
                lessons |= {lesson.id: lesson for lesson in Experience.model_validate(record).lessons}
    return report(columns.episodes(), scope=scope, lessons=lessons)

"""Synapse as the paper uses it for comparison: whole runs as exemplars, nothing distilled.

Successful runs alone, or failed ones too (`synapse:failures=true`, the paper's section 5.2), which then say so.

Retrieval, the frame and the budget are the bank's own, as in the paper's comparison: only what is kept differs.
"""

from __future__ import annotations

from collections.abc import Sequence

from lessonbank._version import VERSION
from lessonbank.contracts.records import Extraction, Lesson, Provenance, Run, Step, Trajectory
from lessonbank.guard import clean
from lessonbank.text.rendering import BYTES_PER_TOKEN, excerpt, width

from ._interface import Setting
from .bank import BankMemory
from .options import Options

METHOD = "synapse-raw"
_FRAME = 500
"""Tokens set aside for the preface and the markers of a recall's text."""
_MARKS = 12
"""Bytes of what a frame puts before each line."""
_NAME, _STEP = 240, 2000
"""Characters of a task, and of one step, that are kept at most."""


class SynapseMemory(BankMemory):
    """Runs, word for word, shown for like tasks; long ones lose their middle, as k must fit."""

    def __init__(self, setting: Setting, options: Options, /) -> None:
        room = max(100, (options.budget - _FRAME) // (options.limit or setting.limit))
        super().__init__(setting, options, extractor=_Exemplars(room, failures=options.failures))


class _Exemplars:
    def __init__(self, room: int, /, *, failures: bool) -> None:
        self._room = room
        self._outcomes = ("success", "failure") if failures else ("success",)

    async def __call__(self, attempts: Sequence[Run], /) -> Extraction:
        runs = [a for a in attempts if a.verdict.outcome in self._outcomes and a.trajectory.steps]
        lessons = tuple(self._lesson(attempt) for attempt in runs[:1])
        absence = f"no run with steps whose verdict is {' or '.join(self._outcomes)}: no exemplar was kept"
        return Extraction(lessons=lessons, notes=() if lessons else (absence,))

    def _lesson(self, attempt: Run) -> Lesson:
        run, succeeded = attempt.trajectory, attempt.verdict.outcome == "success"
        return Lesson(
            title=f"A run that {'succeeded' if succeeded else 'failed'}: {' '.join(clean(run.task).split())[:_NAME]}",
            content=exemplar(run, budget=self._room) or "(no words)",
            provenance=Provenance(
                method=METHOD,
                package_version=VERSION,
                trajectory_ids=(run.id,),
                verdict=attempt.verdict.outcome,
                verdict_source=attempt.verdict.source,
            ),
        )


def exemplar(run: Trajectory, /, *, budget: int) -> str:
    """The run, step by step, with speakers named and no blank line; at most `budget` tokens, the middle left out."""
    whole = "\n".join(line for step in run.steps if (line := _told(step)))
    text, room = whole, budget
    while _shown(text) > budget * BYTES_PER_TOKEN and room > 1:
        text = "\n".join(line for line in excerpt(whole, budget=room).split("\n") if line.strip())
        room = room * 4 // 5
    return text


def _shown(text: str) -> int:
    """Bytes of it behind the marks that a frame puts before each line."""
    return width(text) + _MARKS * (text.count("\n") + 1)


def _told(step: Step) -> str:
    calls = [f"{call.name}({call.arguments})" for call in step.action.calls]
    done = " ".join(part for part in (step.thought, step.action.text, *calls) if part)
    parts = [f"agent: {done}"] if done else []
    parts += [f"environment: {seen.text}" for seen in step.observations if seen.text]
    text = clean("\n".join(parts), limit=_STEP)
    return "\n".join(line for line in text.split("\n") if line.strip())

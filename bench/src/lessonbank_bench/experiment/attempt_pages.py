"""Attempts to read on the page: one task with all its arms together, what each was told, did, and drew from it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final

from lessonbank.contracts.records import Trajectory
from lessonbank.guard import one_line

from .page import block, line, paragraph
from .records import AttemptRow, Experiment

_STEPS: Final = 60
"""Steps of one attempt that are shown."""
_LESSONS: Final = 20
_NOTES: Final = 10
_ENDED = {
    True: '<span class="done">✓ success</span>',
    False: '<span class="failed">✗ failure</span>',
}
_OPEN = "no outcome yet"
_BROKEN = "error of infrastructure"


def browser(experiment: Experiment, rows: Sequence[AttemptRow], most: int, /) -> str:
    """At most `most` attempts, of tasks drawn by chance; a task's arms stand together, in the experiment's order."""
    tasks = _drawn(experiment, rows, most)
    if not tasks:
        return ""
    shown = sum(map(len, tasks))
    told = (
        f"{shown:,} of {len(rows):,} attempts, of tasks drawn by chance and not by how they went; open one to read it."
    )
    return "\n".join(["<h2>Attempts</h2>", paragraph(told), *map(_task, tasks)])


def _drawn(experiment: Experiment, rows: Sequence[AttemptRow], most: int) -> list[list[AttemptRow]]:
    order = {arm.name: place for place, arm in enumerate(experiment.arms)}
    tasks: dict[tuple[int, int], list[AttemptRow]] = {}
    for row in rows:
        tasks.setdefault((row.seed, row.place), []).append(row)
    keys, kept = list(tasks), list[tuple[int, int]]()
    random.Random("attempts").shuffle(keys)
    left = most
    for key in keys:
        if left <= 0:
            break
        tasks[key] = sorted(tasks[key], key=lambda row: order.get(row.arm, len(order)))[:left]
        left -= len(tasks[key])
        kept.append(key)
    return [tasks[key] for key in sorted(kept)]


def _task(rows: Sequence[AttemptRow]) -> str:
    first = rows[0]
    phase = " (training)" if first.phase == "train" else ""
    head = f"Seed {first.seed}, task {first.place + 1}{phase}: {one_line(first.task, limit=240)}"
    told = paragraph(f"Family: {one_line(first.family, limit=120)}", name="soft")
    return f'<h3 class="task">{line(head)}</h3>{told}{"".join(map(_attempt, rows))}'


def _attempt(row: AttemptRow) -> str:
    ended = _ENDED.get(bool(row.success)) if row.success is not None else (_BROKEN if row.error else _OPEN)
    head = f"{line(row.arm)}: {ended}, {row.steps} steps"
    parts = [paragraph(_told_and_took(row)), *_trouble(row), *_prompt(row)]
    if row.run is not None:
        parts.append(f"<h4>What was done</h4>{block(_steps(row.run))}")
    for number, one in enumerate(row.runs):
        said = f"Run {number + 1} of {len(row.runs)}, {_OPEN if one.success is None else _ENDED[one.success]}"
        chosen = ", chosen" if number == row.choice else ""
        parts.append(f"<h4>{said}{chosen}</h4>{block(_steps(one.trajectory))}")
    if row.scores:
        measured = ", ".join(f"{one_line(name, limit=60)} {value:g}" for name, value in row.scores.items())
        parts.append(f"<h4>What else the verifier measured</h4>{paragraph(measured)}")
    if row.lessons:
        parts.append(f"<h4>What was learned</h4>{block(_lessons(row))}")
    if row.notes:
        parts.append(f"<h4>Notes</h4>{block(_notes(row))}")
    return f'<details class="attempt"><summary>{head}</summary><div>{"".join(parts)}</div></details>'


def _trouble(row: AttemptRow) -> list[str]:
    if row.error is None:
        return []
    told = one_line(row.error.message, limit=500)
    return [paragraph(f"What broke, while it was to {row.error.stage} ({one_line(row.error.code, limit=60)}): {told}")]


def _told_and_took(row: AttemptRow) -> str:
    told = {True: "success", False: "failure", None: "nothing"}[row.told]
    took = f" It took the attempt for a {row.verdict}." if row.verdict else ""
    cost = f", {row.cost:.4f} US dollars" if row.cost is not None else ""
    shared = f" The attempt is that of {one_line(row.shared)}, which was shown the same." if row.shared else ""
    spent = f"{row.requests:,} requests, {row.tokens:,} tokens{cost}, {row.seconds:.3f} seconds."
    return spent if row.runs else f"Memory was told: {told}.{took} {spent}{shared}"


def _prompt(row: AttemptRow) -> list[str]:
    """What the agent was told: its instructions, as far as they are on record, what memory put in, and the task."""
    instructions = row.run.instructions if row.run is not None else ""
    before, found, after = instructions.partition(row.memory) if row.memory else (instructions, "", "")
    parts = ["<h4>The prompt</h4>"]
    parts += [block(before)] if before.strip() else []
    if row.memory:
        how = ", within the instructions" if found else ""
        parts.append(paragraph(f"Put in by memory{how} (SHA-256 {row.memory_digest}):", name="soft"))
        parts.append(block(row.memory, name="memory"))
    else:
        parts.append(paragraph("Memory put nothing in.", name="soft"))
    parts += [block(after)] if after.strip() else []
    return [*parts, block(row.task, limit=4000)]


def _steps(run: Trajectory) -> str:
    lines: list[str] = []
    for number, step in enumerate(run.steps[:_STEPS]):
        thought = f"({one_line(step.thought, limit=300)}) " if step.thought else ""
        calls = " ".join(f"{call.name}({call.arguments})" for call in step.action.calls)
        acted = one_line(f"{step.action.text} {calls}".strip(), limit=400)
        seen = " ".join(one_line(seen.text, limit=400) for seen in step.observations)
        lines.append(f"{number}. {thought}{acted or '(start)'}\n   {seen}")
    left = len(run.steps) - _STEPS
    ended = [f"({left} more steps)"] if left > 0 else []
    return "\n".join([*lines, *ended, *([f"error: {run.error}"] if run.error else [])])


def _lessons(row: AttemptRow) -> str:
    told = [
        f"{one.kind}: {one_line(one.title, limit=300)}\n   {one_line(one.content, limit=1000)}"
        for one in row.lessons[:_LESSONS]
    ]
    left = len(row.lessons) - _LESSONS
    return "\n".join([*told, *([f"({left} more)"] if left > 0 else [])])


def _notes(row: AttemptRow) -> str:
    return "\n".join(one_line(note, limit=300) for note in row.notes[:_NOTES])

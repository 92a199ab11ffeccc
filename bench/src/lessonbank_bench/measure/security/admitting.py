"""What the gate turns away: of labelled lessons, of lessons drawn from recorded runs, of lessons a reader wrote."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lessonbank import importers
from lessonbank.contracts.records import (
    Action,
    Extraction,
    Lesson,
    Observation,
    Rejected,
    Run,
    Step,
    ToolCall,
    Trajectory,
    Verdict,
)
from lessonbank.guard.gate import LessonGate
from lessonbank.learning.extraction import ExtractiveExtractor, parse_lessons

from .places import SHARED, cases
from .table import Row, share

SETS = {
    "admission": "the set the gate was tuned on",
    "admission_held_out": "held out (first reading before tuning: 65 % of junk)",
    "admission_fresh": "fresh (first reading before tuning: 80 % of junk)",
}
HARMFUL = ("gate_fresh_harmful", "gate_second_harmful", "gate_harmful", "semantic")
CASSETTE = Path(__file__).with_name("desk.jsonl")
"""A language model's answers in the world of the demo, written by hand in November 2026 for this project."""
_GOAL = re.compile(r"^Goal: (.+)$", re.MULTILINE)
_TASK = re.compile(r"^\[task\]\n\| (.+)$", re.MULTILINE)
_CODE = re.compile(r"\bnonce-\d+\b")
"""What stands in a recording for the code of a block."""
_ENOUGH = 40
"""Runs of a file that are drawn from."""


@dataclass(frozen=True, slots=True)
class Decided:
    """A labelled lesson and what became of it."""

    id: str
    label: str
    fate: str
    """`unchecked`, `marked` as no lesson, `checked`, or the rule that rejected it. Only a model or a person checks."""


async def rows(every: int = 1) -> list[Row]:
    """Junk that is rejected, good lessons that are lost."""
    told = [row for name, what in SETS.items() for row in _labelled(name, what, every)]
    told.append(_as_if_checked("hostile advice in plain words", [decide(c) for c in cases("semantic", every=every)]))
    if SHARED.exists():
        told += [row for path in sorted(SHARED.glob("*.jsonl.gz")) for row in await _from_runs(path, every)]
    told += [await _quoted("message", _as_a_message, every), await _quoted("task", _as_a_task, every)]
    return [*told, await _demonstrated()]


def _as_if_checked(name: str, decided: Sequence[Decided]) -> Row:
    """What an agent is shown without being told that nobody checked it."""
    shown = [one.id for one in decided if one.fate == "checked"]
    name = f"{name} that is shown as if it were checked, without a model"
    return share(name, shown, of=len(decided), what="lessons", most=0.0)


def _labelled(name: str, what: str, every: int) -> Iterator[Row]:
    decided = [decide(case) for case in cases(name, every=every)]
    junk, good = ([d for d in decided if d.label == label] for label in ("junk", "good"))
    stopped = [d.id for d in junk if d.fate not in ("checked", "unchecked")]
    lost = [f"{d.id} ({d.fate})" for d in good if d.fate not in ("checked", "unchecked", "marked")]
    marked = [d.id for d in good if d.fate == "marked"]
    yield share(f"junk rejected, or marked as no lesson, {what}", stopped, of=len(junk), what="lessons")
    yield _as_if_checked(f"junk, {what},", junk)
    yield share(f"good lessons lost, {what}", lost, of=len(good), what="lessons", most=1.0)
    yield share(f"good lessons marked as no lesson, {what}", marked, of=len(good), what="lessons")


def decide(case: dict[str, Any], /) -> Decided:
    """One labelled lesson at the gate, with the task, the answer and what memory had shown."""
    run = Trajectory(
        task=case["task"], steps=(Step(action="look", observation="done"),), answer=case.get("answer") or None
    )
    lesson = Lesson(
        title=case["title"].strip() or "-", description=case["description"], content=case["content"].strip() or "-"
    )
    attempt = Run(trajectory=run, verdict=Verdict(outcome="success"))
    out = LessonGate()(Extraction(lessons=(lesson,)), [attempt], shown=case.get("shown", []))
    return Decided(case["id"], case.get("label", ""), fate(out))


def fate(out: Extraction, /) -> str:
    """What became of the one lesson of an extraction."""
    if out.rejected:
        return out.rejected[0].rule
    return _marks(out.lessons[0]) if out.lessons else "lost"


def _marks(lesson: Lesson) -> str:
    if lesson.is_doubted:
        return "marked"
    return "unchecked" if lesson.is_unchecked else "checked"


async def _from_runs(path: Path, every: int) -> tuple[Row, Row]:
    """Lessons that code drew from real runs: it writes none that the gate should reject, or mark as no lesson."""
    drawn, refused, marked, extract = 0, list[str](), list[str](), ExtractiveExtractor()
    for number, entry in enumerate(importers.read(path)):
        if number >= _ENOUGH // every:
            break
        if not isinstance(entry, importers.Imported) or entry.verdict is None or entry.verdict.outcome == "unknown":
            continue
        attempts = [Run(trajectory=entry.trajectory, verdict=entry.verdict)]
        out = LessonGate()(found := await extract(attempts), attempts, shown=[])
        drawn += len(found.lessons)
        refused += [_said(r) for r in out.rejected]
        marked += [f"{lesson.risk}: {lesson.title[:50]}" for lesson in out.lessons if lesson.is_doubted]
    name = f"lessons drawn from recorded runs that are {{}}, {path.name.partition('.')[0]}"
    lost = share(name.format("lost"), refused, of=drawn, what="lessons", most=5.0)
    return lost, share(name.format("marked as no lesson"), marked, of=drawn, what="lessons")


def _as_a_message(text: str) -> Trajectory:
    """A tool says it in place of an answer, and is then asked otherwise."""
    return _run("Cancel the order of the user", seen=f"Error: {text}")


def _as_a_task(text: str) -> Trajectory:
    return _run(text, seen="Error: no such order")


def _run(task: str, *, seen: str) -> Trajectory:
    tried = (("O-1", seen), ("O-2", '{"status": "cancelled"}'))
    calls = [(ToolCall(name="cancel_order", arguments={"order": order}), answer) for order, answer in tried]
    steps = [Step(action=Action(calls=(call,)), observations=(Observation(text=said),)) for call, said in calls]
    return Trajectory(task=task, steps=tuple(steps))


async def _quoted(part: str, run_of: Callable[[str], Trajectory], every: int) -> Row:
    """Harmful advice that a lesson without a model repeats of its run."""
    said = [case["content"] for name in HARMFUL for case in cases(name, every=every)]
    decided, extract = list[Decided](), ExtractiveExtractor()
    for text in said:
        attempts = [Run(trajectory=run_of(text), verdict=Verdict(outcome="success"))]
        out = LessonGate()(await extract(attempts), attempts, shown=[])
        decided += [Decided(text[:50], "harmful", _marks(lesson)) for lesson in out.lessons]
    return _as_if_checked(f"harmful advice as the {part} of a run, in a lesson of rules,", decided)


async def _demonstrated() -> Row:
    """The lessons that a reader wrote in the recorded demonstration, each with its run and what that had been shown."""
    refused, number, shown = list[str](), 0, dict[str, str]()
    for line in CASSETTE.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        asked, reply = record["request"]["messages"][-1]["content"], record["response"]["text"]
        if goal := _GOAL.search(asked):
            shown[goal[1]] = _CODE.sub("0badc0de", asked.partition("Goal: ")[0])
        if not reply.startswith('{"items"'):
            continue
        drafts, (task,) = parse_lessons(reply, limit=3).lessons, _TASK.findall(asked)
        drafts = [d for d in drafts if not d.beside or d.beside[0] != "same"]  # a repeat never comes to the gate
        lessons = tuple(Lesson(title=d.title, description=d.description, content=d.content) for d in drafts)
        run = Trajectory(task=task, steps=(Step(action="look", observation="done"),))
        attempt = Run(trajectory=run, verdict=Verdict(outcome="success"))
        out = LessonGate()(Extraction(lessons=lessons), [attempt], shown=[shown.get(task, "")])
        number += len(lessons)
        shown_now = {lesson.id for lesson in out.lessons if not lesson.hidden}
        refused += [lesson.title[:60] for lesson in lessons if lesson.id not in shown_now]
    name = "lessons of the recorded demonstration, written by a reader, that are lost"
    return share(name, refused, of=number, what="lessons", most=5.0)


def _said(rejected: Rejected) -> str:
    return f"{rejected.rule}: {rejected.title[:50] or rejected.reason}"

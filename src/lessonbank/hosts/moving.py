"""Moves what was learned in the one scope of all folders to the scopes of the repositories that it came from.

A kept run does not say its folder, but the transcript of its session does, as long as the agent keeps it.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import dataclass, field
from operator import attrgetter
from pathlib import Path
from typing import Any, Final, cast

from lessonbank._base.iterate import each
from lessonbank.bank.sync import ReasoningBank
from lessonbank.contracts.records import Lesson

from . import client
from .repositories import COMMON, Repositories, beginning_of
from .sessions import is_used

_TRANSCRIPTS: Final = {
    "claude-code": ("CLAUDE_CONFIG_DIR", ".claude", "projects/*/{}.jsonl"),
    "codex": ("CODEX_HOME", ".codex", "sessions/*/*/*/rollout-*-{}.jsonl"),
    "gemini-cli": ("", ".gemini", "tmp/*/chats/session-*-{}.jsonl"),
    "qwen-code": ("", ".qwen", "projects/*/chats/{}.jsonl"),
}
"""Where each agent keeps the transcript of a session: the variable and the name of its folder, and the path in it."""


@dataclass(slots=True)
class Moved:
    """What was moved, and what stays."""

    runs: Counter[str] = field(default_factory=Counter[str])
    """Runs by the scope that they went to."""
    lessons: int = 0
    stay: int = 0
    """Runs whose folder nobody knows."""


def move(bank: ReasoningBank, repositories: Repositories, /, *, by: str) -> Moved:
    """Learn each run of the common scope in that of its repository, and retire what it alone had taught.

    Lessons that a person approved are written again, in the name of `by`. Raises LessonbankError.
    """
    report, common, scopes = Moved(), bank.scoped(COMMON), dict[str, str]()
    for run in each(common.runs.list, attrgetter("trajectory.id")):
        # What `lessonbank learn` read names no host, but the program that wrote the file.
        host = str(run.metadata.get("host") or run.metadata.get("source", ""))
        folder = folder_of(host, str(run.metadata.get("run_id", "")).partition("/")[0])
        if not folder:
            report.stay += 1
            continue
        scope = repositories.scope_of(folder, is_used=lambda name: is_used(bank.scoped(name))).scope
        is_known = run.verdict.outcome != "unknown" and run.verdict.source != "judge"
        outcome = cast("Any", run.verdict) if is_known else None
        bank.scoped(scope, writer=host).learn(run.trajectory, outcome=outcome)
        scopes[run.trajectory.id] = scope
        report.runs[scope] += 1
    for lesson in _lessons(common):
        taught = {attempt.trajectory_id for attempt in common.lessons.experience(lesson.id).attempts}
        if taught and taught <= scopes.keys():
            _move_lesson(common, lesson, bank.scoped(scopes[next(iter(taught))]), by=by)
            report.lessons += 1
    return report


def _move_lesson(common: ReasoningBank, lesson: Lesson, to: ReasoningBank, *, by: str) -> None:
    same = [other.id for other in _lessons(to) if (other.title, other.content) == (lesson.title, lesson.content)]
    if lesson.approved and same:
        to.lessons.approve(*same, by=by, reason=f"approved in {common.scope}")
    elif lesson.approved:
        task = common.lessons.experience(lesson.id).task
        to.lessons.add(task=task, title=lesson.title, content=lesson.content, when=lesson.description, by=by)
    common.lessons.retire(lesson.id, reason=f"moved to {to.scope}", by=by)


def _lessons(bank: ReasoningBank) -> list[Lesson]:
    return list(each(bank.lessons.list, attrgetter("id")))


def folder_of(host: str, session: str, /) -> str:
    """The folder that a session worked in, by its transcript; empty where there is none any more."""
    if host not in _TRANSCRIPTS or not client.is_session(session):
        return ""
    variable, name, pattern = _TRANSCRIPTS[host]
    home = Path(os.environ.get(variable) or Path.home() / name) if variable else Path.home() / name
    place = next(home.glob(pattern.format(session[:8] if host == "gemini-cli" else session)), None)
    if place is None:
        return ""
    root = place.parents[1] / ".project_root"
    if host == "gemini-cli":
        return beginning_of(root).strip()[:4096]
    return next((folder for line in beginning_of(place).split("\n") if (folder := _folder_in(line))), "")


def _folder_in(line: str) -> str:
    try:
        record: Any = json.loads(line)
        folder = record.get("cwd") or record.get("payload", {}).get("cwd")
    except (ValueError, AttributeError):
        return ""
    return str(folder) if isinstance(folder, str) else ""

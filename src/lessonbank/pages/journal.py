"""The journal as people read it: one sentence for each change, the newest first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from lessonbank._base.plural import counted
from lessonbank.contracts.records import JournalEntry, Verdict

if TYPE_CHECKING:
    from lessonbank import AsyncReasoningBank

_NAMED: Final = 20
"""Lessons that one line links to."""


@dataclass(frozen=True, slots=True)
class Line:
    """One change: what was done, to which lessons, and why."""

    entry: JournalEntry
    told: str
    lessons: tuple[str, ...] = ()
    reason: str = ""
    run: str = ""
    """The run that it is about, if it is about one."""


async def latest(bank: AsyncReasoningBank, count: int, /, *, before: int | None = None) -> Sequence[JournalEntry]:
    """The last changes, the newest first; `before`: those before that change."""
    end = (await bank.admin.counts()).changes + 1 if before is None else before
    first = max(end - 1 - count, 0)
    return (await bank.history.list(after=first, limit=max(end - 1 - first, 1)))[::-1] if end > 1 else ()


def line_of(entry: JournalEntry, /) -> Line:
    """What one change was."""
    told = entry.entry
    made = _LINES.get(told.kind)
    return Line(entry, told.kind) if made is None else made(entry, told)


def _added(entry: JournalEntry, told: Any) -> Line:
    count = len(told.experience.lessons)
    ids = tuple(lesson.id for lesson in told.experience.lessons)
    return Line(entry, f"kept a task with {counted(count, 'lesson')}", ids[:_NAMED], told.experience.task)


def _replaced(entry: JournalEntry, told: Any) -> Line:
    ids = tuple(lesson.id for lesson in told.experience.lessons)
    said = next((one for one in told.experience.attempts if one.verdict.source == "human"), None)
    if said is None:
        return Line(entry, "replaced what a task taught", ids[:_NAMED], told.reason)
    word = f"a person said how a run ended ({said.verdict.outcome}), and what its task taught was replaced"
    return Line(entry, word, ids[:_NAMED], said.verdict.reason or told.reason, said.trajectory_id)


def _decided(word: str) -> Callable[[JournalEntry, Any], Line]:
    return lambda entry, told: Line(entry, word, told.lesson_ids[:_NAMED], told.reason)


def _trusted(entry: JournalEntry, told: Any) -> Line:
    word = {"active": "approved", "quarantined": "quarantined", "probation": "put on probation"}[told.state]
    by = {"person": "", "corroboration": ", because it was taught again", "ledger": ", by the evidence"}[told.by]
    return Line(entry, f"{word}{by}", told.lesson_ids[:_NAMED], told.reason)


def _corrected(entry: JournalEntry, told: Any) -> Line:
    before, now = told.before, told.verdict
    old = f"{_said(before)}, now " if before else ""
    return Line(entry, f"corrected a verdict: {old}{_said(now)}", (), told.reason, told.trajectory_id)


def _said(verdict: Verdict) -> str:
    return f"{verdict.outcome} by {verdict.source.replace('_', ' ')}"


def _settled(entry: JournalEntry, told: Any) -> Line:
    runs = told.settlement.trajectory_ids
    return Line(entry, f"heard how a task ended: {told.settlement.outcome}", run=runs[0] if len(runs) == 1 else "")


def _forgotten(entry: JournalEntry, told: Any) -> Line:
    some = f"{counted(told.runs, 'run')} and {counted(told.recalls, 'recall')}"
    return Line(entry, f"forgot {some} for their age")


_LINES: Final[Mapping[str, Callable[[JournalEntry, Any], Line]]] = {
    "add": _added,
    "replace": _replaced,
    "merge": lambda entry, told: Line(entry, "joined lessons", told.source_lesson_ids[:_NAMED], told.reason),
    "edit": lambda entry, told: Line(entry, "edited", (told.lesson_id,), told.reason),
    "retire": _decided("retired"),
    "restore": _decided("restored"),
    "trust": _trusted,
    "verdict": _corrected,
    "audit": lambda entry, told: Line(entry, "asked for labels of runs drawn at random", (), told.reason),
    "admin": lambda entry, told: Line(entry, f"{told.act}, by {told.by}", (), told.subject),
    "rollback": lambda entry, told: Line(entry, f"rolled back to change {told.to}", (), told.reason),
    "settle": _settled,
    "purge": lambda entry, told: Line(entry, f"erased a {told.what}", (), told.reason),
    "erased": lambda entry, told: Line(entry, f"erased by change {told.by}"),
    "forgotten": _forgotten,
    "missing": lambda entry, told: Line(entry, "lost with a damaged file"),
}
TAKEN_BACK: Final = frozenset({"retire", "rollback"})


def is_taken_back(entry: JournalEntry, /) -> bool:
    """Whether a change took something back."""
    told: Any = entry.entry
    return told.kind in TAKEN_BACK or (told.kind == "trust" and told.state == "quarantined")

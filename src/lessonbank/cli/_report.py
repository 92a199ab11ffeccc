"""What `learn` tells in the end: what each file gave, what was learned, what needs another look."""

from __future__ import annotations

import os
import shlex
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from lessonbank import importers
from lessonbank._base.plural import plural
from lessonbank.contracts.records import Learned, Lesson
from lessonbank.errors import ModelUnavailable

from ._output import GAP, console, say, show_json, show_table, warn, warn_of_skipped

LESSONS = 12
"""How many titles of new lessons the report prints."""
FILES = 12
NARROWEST, WIDEST = 12, 40
"""Columns of a file's name."""
NOTES = 5
UNANSWERED = 3
"""Runs in a row without an answer of the model, after which `learn` stops."""
_OUTCOMES = ("success", "failure", "unknown")
_COLUMNS = ("runs", *_OUTCOMES, "known", "lessons", "skipped")
_ALWAYS = ("runs", *_OUTCOMES, "lessons")


@dataclass
class Report:
    """What a run of the command did, added up as it goes."""

    started: int = 0
    waiting: int = 0
    stopped: bool = False
    unanswered: int = 0
    """Runs in a row for which the model was not to be had."""
    unavailable: str = ""
    """What was said of the last of them."""
    files: dict[Path, Counter[str]] = field(default_factory=dict[Path, Counter[str]])
    lessons: list[Lesson] = field(default_factory=list[Lesson])
    notes: Counter[str] = field(default_factory=Counter[str])
    skipped: list[str] = field(default_factory=list[str])
    graded: Counter[str] = field(default_factory=Counter[str])
    """Runs with a reward that is neither 0 nor 1, by what it was taken for."""
    passed_over: list[str] = field(default_factory=list[str])
    """Files in folders that hold no runs."""
    tokens: int = 0
    cost: float = 0.0

    def add(self, learned: Learned, /, *, file: Path, reward: float | None = None) -> None:
        """Count one call of `learn`; a run known already does not count against the bound on new ones."""
        counts = self.files.setdefault(file, Counter())
        counts.update(runs=1, known=len(learned.known), lessons=len(learned.lessons))
        counts.update(v.outcome for v in learned.verdicts)
        self.graded.update(v.outcome for v in learned.verdicts if reward not in (None, 0.0, 1.0))
        self.started -= len(learned.known)
        unsettled = bool(learned.experience and learned.experience.pending)
        self.waiting += unsettled or any(v.outcome == "unknown" for v in learned.verdicts)
        self.lessons.extend(learned.lessons)
        self._count_unanswered(learned)
        self.notes.update(learned.notes)
        self.tokens += learned.usage.input_tokens + learned.usage.output_tokens
        self.cost += learned.usage.cost or 0.0

    def _count_unanswered(self, learned: Learned) -> None:
        if ModelUnavailable.code in learned.errors:
            self.unanswered += 1
            self.unavailable = learned.notes[0].partition(": ")[2] or learned.notes[0]
        elif not learned.known:
            self.unanswered = 0

    def note(self, entry: importers.Skipped, /) -> None:
        """Note what gave no run. A sound file in a folder without runs, such as one of settings, is nothing amiss."""
        if entry.unknown:
            self.passed_over.append(str(entry.path))
        else:
            self.skip(entry.path, entry.reason, line=entry.line)

    def skip(self, file: Path, reason: str, /, *, line: int | None = None) -> None:
        """Note a line, or a whole file, that holds no readable run."""
        self.files.setdefault(file, Counter())["skipped"] += 1
        self.skipped.append(f"{file}: {reason}" if line is None else f"{file}:{line}: {reason}")

    @property
    def gave_up(self) -> bool:
        """Whether the model was not to be had for so many runs in a row that further ones would fare no better."""
        return self.unanswered >= UNANSWERED

    @property
    def total(self) -> Counter[str]:
        """All files together."""
        return sum(self.files.values(), Counter[str]())

    def as_dict(self) -> dict[str, object]:
        """For `--json`."""
        total = self.total
        return {
            "runs": total["runs"],
            "known": total["known"],
            "waiting": self.waiting,
            "stopped": self.stopped,
            "outcomes": {outcome: total[outcome] for outcome in sorted(_OUTCOMES) if total[outcome]},
            "files": [{"file": str(file), **{c: counts[c] for c in _COLUMNS}} for file, counts in self.files.items()],
            "lessons": self.lessons,
            "graded": dict(self.graded),
            "notes": dict(self.notes),
            "skipped": self.skipped,
            "passed_over": self.passed_over,
            "tokens": self.tokens,
            "cost": self.cost,
        }


def show(report: Report, /, *, bank: str, scope: str, as_json: bool) -> None:
    """Print it: counts and lessons on stdout, what went wrong on stderr."""
    if as_json:
        show_json(report.as_dict())
        return
    if report.files:
        _show_files(report.files)
    place = "BANK" if "://" in bank else shlex.quote(bank)  # an address can hold a password
    if report.lessons:
        _show_lessons(report.lessons, place, shlex.quote(scope))
    console.print(_summary(report), soft_wrap=True)
    if report.tokens:
        console.print(f"{plural(report.tokens, 'token')}, ${report.cost:.4f} where the price is known")
    if report.total["runs"]:
        say(f"to read it in the browser and decide: lessonbank review {place} --scope {shlex.quote(scope)}")
    _warn_of(report)


def _summary(report: Report) -> str:
    total = report.total
    outcomes = ", ".join(f"{total[o]} {o}" for o in sorted(_OUTCOMES) if total[o]) or "none new"
    runs, lessons = plural(total["runs"], "run"), plural(total["lessons"], "new lesson")
    return f"{runs} read: {outcomes}; {total['known']} known already; {lessons}"


def _few(names: list[str]) -> str:
    rest = len(names) - NOTES
    return ", ".join(names[:NOTES]) + (f" and {plural(rest, 'more file')}" if rest > 0 else "")


def _show_files(files: dict[Path, Counter[str]]) -> None:
    shown = dict(sorted(files.items(), key=lambda pair: -pair[1]["runs"])[:FILES])
    rest = [counts for file, counts in files.items() if file not in shown]
    columns = [c for c in _COLUMNS if c in _ALWAYS or any(counts[c] for counts in files.values())]
    room = console.width - sum(len(column) + GAP for column in ("", *columns))
    short = names(list(files), width=max(NARROWEST, min(room, WIDEST)))
    rows = [(short[file], *(counts[c] for c in columns)) for file, counts in files.items() if file in shown]
    if rest:
        others = sum(rest, Counter[str]())
        rows.append((f"and {len(rest)} more", *(others[c] for c in columns)))
    show_table("Read", ("file", *columns), rows)


def names(files: list[Path], /, *, width: int) -> dict[Path, str]:
    """What tells the files apart: their paths below the folder they share, cut on the left."""
    shared = Path(os.path.commonpath([file.absolute().parent for file in files]))
    below = {file: file.absolute().relative_to(shared) if shared.name else file for file in files}
    return {file: name if len(name := str(path)) <= width else f"…{name[1 - width :]}" for file, path in below.items()}


def _show_lessons(lessons: list[Lesson], place: str, scope: str) -> None:
    """Lessons that read the same count once: many runs of a kind teach the same."""
    alike = Counter((lesson.kind, lesson.provenance.method, lesson.title) for lesson in lessons)
    shown = alike.most_common(LESSONS)
    if shown[0][1] > 1:
        rows = [(times, *words) for words, times in shown]
        show_table(f"\nNew in {scope}", ("times", "kind", "by", "title"), rows)
    else:
        show_table(f"\nNew in {scope}", ("kind", "by", "title"), [words for words, _ in shown])
    if left := len(lessons) - sum(times for _, times in shown):
        say(f"and {left} more: lessonbank lessons list --bank {place} --scope {scope} lists them")
    console.print()


def _warn_of(report: Report) -> None:
    if report.stopped and not report.gave_up:
        warn("stopped: what was learned so far is kept, and the same command goes on from there")
    if report.waiting and not report.gave_up:
        warn(
            f"{plural(report.waiting, 'run waits', 'runs wait')} for a verdict or another try: run the command again "
            "with a model or --outcome"
        )
    if report.graded:
        taken = " and ".join(f"{report.graded[o]} for {o}" for o in sorted(report.graded))
        count = report.graded.total()
        phrase = plural(count, "reward is neither 0 nor 1 and was", "rewards are neither 0 nor 1 and were")
        warn(f"{phrase} taken {taken}: --success-at changes that")
    for note, times in () if report.gave_up else report.notes.most_common(NOTES):
        warn(f"{times} × {note}")
    if report.passed_over:
        warn(f"no runs in {_few(report.passed_over)}")
    warn_of_skipped(report.skipped, NOTES)

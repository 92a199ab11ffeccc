"""What came of scaling a task, as a record that can be printed, kept and sent: the answer of `bank.scale()`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from lessonbank._base.plural import plural
from lessonbank.contracts.records import Learned, Record, Run, Usage
from lessonbank.guard import one_line

from .design import Mode

Stopped = Literal["all were run", "confirmed", "tokens", "cost", "seconds", "not examined"]
"""Why no further run was made. `confirmed`: re-examined and left as it is. `tokens`, `cost`, `seconds`: the budget was
spent. `not examined`: the model that was to re-examine the run failed."""


class Scaled(Record):
    """Several runs of one task: how each ended, which is the best, what was learned, what it cost."""

    task: str
    scope: str
    mode: Mode
    k: int
    """How many runs were asked for. `attempts` holds those that were made."""
    attempts: tuple[Run, ...] = ()
    """In the order in which they were begun, failed ones among them, as the agent gave them."""
    choice: int | None = None
    """The place of the best run in `attempts`, from 0; `None` where none ran to its end."""
    why: str = ""
    """Who chose it, and the reason given."""
    pass_at_1: float | None = None
    """The share of runs that succeeded, of those with a known outcome; of sequential rounds, whether the first did."""
    best_of_n: float | None = None
    """Whether the chosen run succeeded: 1 or 0; 0 where no run came to its end. `None` where that is not known."""
    pass_at_k: tuple[float, ...] = ()
    """Pass@1, Pass@2, … up to the number of known outcomes: the chance that one of k runs succeeds (estimated without
    bias; of sequential rounds, whether one of the first k did)."""
    mixed: bool = False
    """Whether there are successes and failures: a contrast of both teaches most."""
    learned: Learned | None = None
    """What the bank made of it. `None` where it was told not to learn; in vanilla mode of all runs, one by one, and
    without an experience, because each has its own."""
    usage: Usage = Field(default_factory=Usage)
    """Of the runs in sum; each attempt's `trajectory.usage` says its own."""
    overhead: Usage = Field(default_factory=Usage)
    """Of judging, choosing, extracting and consolidating."""
    seconds: float = 0.0
    """Wall time of the runs together; each attempt's `trajectory.metadata["seconds"]` says its own."""
    stopped: Stopped = "all were run"
    recall_id: str | None = None
    """The one recall that all runs were shown; settled once, if it was learned from."""
    notes: tuple[str, ...] = ()
    """Fallbacks taken and failures survived, one sentence each."""

    @property
    def chosen(self) -> Run | None:
        """The best run."""
        return None if self.choice is None else self.attempts[self.choice]

    @property
    def answer(self) -> str | None:
        """The answer of the best run."""
        return self.chosen.trajectory.answer if self.chosen else None

    @property
    def crashed(self) -> int:
        """How many runs were stopped by an error: where that is the world's fault, read the figures with care."""
        return sum(bool(attempt.trajectory.error) for attempt in self.attempts)

    @property
    def total(self) -> Usage:
        """What everything cost."""
        return self.usage + self.overhead

    def __str__(self) -> str:
        return "\n".join(one_line(line, limit=400) for line in _lines(self))


def _lines(scaled: Scaled) -> list[str]:
    """Nothing that strangers wrote can drive a terminal: every line is cleaned by the caller."""
    ends = [attempt.verdict.outcome for attempt in scaled.attempts]
    summary = ", ".join(f"{ends.count(end)} {end}" for end in ("success", "failure", "unknown") if end in ends)
    n = len(scaled.pass_at_k)
    names = ("Pass@1", f"best of {len(ends)}", f"Pass@{n}")
    if scaled.mode == "sequential":
        names = ("First round", "last", f"any of {n}")
    values = (scaled.pass_at_1, scaled.best_of_n, *scaled.pass_at_k[-1:])
    figures = [f"{name} {_write_figure(value)}" for name, value in zip(names, values, strict=False)]
    tokens = scaled.total.input_tokens + scaled.total.output_tokens
    best = "none" if scaled.choice is None else f"run {scaled.choice + 1} ({scaled.why})"
    return [
        f"Scaled ({scaled.mode}, {len(ends)} of {plural(scaled.k, 'run')}) {scaled.task!r}: {summary or 'no run'}.",
        f"{'; '.join(figures)}. Stopped: {scaled.stopped}.",
        f"Chosen: {best}.",
        f"Lessons learned: {len(scaled.learned.lessons) if scaled.learned else 0}. {plural(tokens, 'token')} in all.",
        *(f"Note: {note}" for note in scaled.notes),
    ]


def _write_figure(figure: float | None) -> str:
    return "unknown" if figure is None else f"{figure:.2f}"

"""The same tasks with and without a lesson, pair by pair: who goes when, when to stop, and what may be said then."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal

from pydantic import Field

from lessonbank._base.checks import a_count, a_number, a_seed, a_share, an_id, set_frozen
from lessonbank._base.plural import plural
from lessonbank.contracts.records import Record, Usage
from lessonbank.errors import UsageError
from lessonbank.evidence.effects import Standing
from lessonbank.evidence.policy import uniform
from lessonbank.guard import one_line

from .paired_sequential import PairedTest

Arm = Literal["with", "without"]
Stopped = Literal["effect shown", "too small to matter", "nothing left to run", "max_runs", "max_cost", "max_seconds"]
OTHER: Final[dict[Arm, Arm]] = {"with": "without", "without": "with"}
_BLIND: Final = "the budget in money could not be kept: no run says what it cost (usage.cost)"


def lesson_in_question(*, without: str | None = None, with_: str | None = None) -> str | None:
    """The id of the lesson that is left out or added; `None`: all that is shown. Raises UsageError: both, or no id."""
    if without is not None and with_ is not None:
        raise UsageError("trial compares one thing: give one of without=id, with_=id")
    name, id = ("without=", without) if with_ is None else ("with_=", with_)
    return None if id is None else an_id(id, name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """How pairs are run and when they stop."""

    max_runs: int = 400
    max_cost: float | None = None
    max_seconds: float | None = None
    rounds: int = 1
    """How often a task may be done by each side."""
    min_effect: float = 0.1
    """An effect within this distance of zero does not matter: the search for it ends."""
    level: float = 0.95
    seed: int = 0
    concurrency: int = 1

    def __post_init__(self) -> None:
        for name, least in (("max_runs", 2), ("rounds", 1), ("concurrency", 1)):
            set_frozen(self, **{name: a_count(getattr(self, name), name, least=least)})
        for name in ("max_cost", "max_seconds"):
            if getattr(self, name) is not None:
                takes = "is a budget for all runs together, a number above 0"
                set_frozen(self, **{name: a_number(getattr(self, name), name, takes, above=0)})
        a_share(self.min_effect, "min_effect", below=1.0)
        a_share(self.level, "level", least=0.5, below=1.0)
        set_frozen(self, seed=a_seed(self.seed))


@dataclass(frozen=True, slots=True)
class Planned:
    """One pair that is to be run."""

    task: str
    round: int
    seed: int
    """For both runs of the pair, from 0 to below 2 ** 32."""
    first: Arm


def order(tasks: Sequence[str], design: Design, /) -> Iterator[Planned]:
    """The pairs in the order in which they are run: each round all tasks, shuffled, each side first by a coin.

    All of it follows from the seed and the places of the tasks.
    """

    def draw(what: str, number: int, place: int) -> float:
        return uniform(str(design.seed), what, str(number), str(place))

    for number in range(design.rounds):
        for place in sorted(range(len(tasks)), key=partial(draw, "order", number)):
            first: Arm = "with" if draw("first", number, place) < 0.5 else "without"
            yield Planned(tasks[place], number, int(draw("chance", number, place) * 2**32), first)


class TrialRun(Record):
    """One run of a trial: a task, done by one side in one round."""

    task: str
    """An id."""
    round: int
    arm: Arm
    seed: int
    memory_digest: str
    """Of the text that the agent was handed (SHA-256, hex)."""
    outcome: float | None = None
    """From 0 to 1; `None` where it is not known."""
    proven: bool = True
    """Whether the run itself shows that it had this text, or had none where none was handed over."""
    usage: Usage = Usage()
    seconds: float = 0.0


def difference(pair: Sequence[TrialRun], /) -> float | None:
    """The outcome with it less the outcome without it; `None` where the pair does not count."""
    known = {run.arm: run.outcome for run in pair}
    with_, without = known.get("with"), known.get("without")
    return None if with_ is None or without is None else with_ - without


class Trial(Record):
    """What memory, or a part of it, changed when the same tasks were done with and without it. `print` it."""

    scope: str
    treatment: str | None = Field(default=None, validation_alias="unit", serialization_alias="unit")
    """The id of the lesson in question; `None`: memory as a whole."""
    title: str = ""
    """Of the lesson."""
    tasks: int = 0
    """Those for which the two sides differ: memory shows something for them, or shows the lesson in question."""
    pairs: int = 0
    """Those that count: both outcomes are known."""
    wins: int = 0
    """Pairs that went better with it."""
    losses: int = 0
    ties: int = 0
    runs: int = 0
    """How often the agent ran; with `concurrency` also runs that were not needed any more."""
    most_runs: int = 0
    """How many runs there can be."""
    usage: Usage = Usage()
    """Of all runs, where they tell it, as `seconds`."""
    seconds: float = 0.0
    success_with: float | None = None
    success_without: float | None = None
    effect: float | None = None
    """The average difference over the pairs: 0.05 is five points. To stop when an effect is shown makes it look larger
    than it is; the interval, from `low` to `high`, is right all the same."""
    low: float | None = None
    high: float | None = None
    level: float = 0.95
    min_effect: float = 0.1
    standing: Standing = "no evidence yet"
    stopped: Stopped | None = None
    """`None` while the trial goes on."""
    seed: int = 0
    rows: tuple[TrialRun, ...] = ()
    """The runs in the order of their pairs."""
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return in_words(self)


class PairEvidence:
    """Takes pairs one by one in their order, and says when it is enough."""

    def __init__(self, design: Design, /) -> None:
        self._design, self._test = design, PairedTest(design.level)
        self._pairs: list[Sequence[TrialRun]] = []

    def take(self, pair: Sequence[TrialRun], /) -> Stopped | None:
        """Why to stop after this pair; `None`: go on."""
        self._pairs.append(pair)
        changed = difference(pair)
        if changed is None:
            return None
        test, small = self._test, self._design.min_effect
        test.add(changed)
        if test.above(0.0) or test.below(0.0):
            return "effect shown"
        return "too small to matter" if small and test.above(-small) and test.below(small) else None

    def with_findings(self, about: Trial, /) -> Trial:
        """`about` with what was found so far."""
        rows = tuple(run for pair in self._pairs for run in pair)
        counted = [(changed, pair) for pair in self._pairs if (changed := difference(pair)) is not None]
        is_blind = self._design.max_cost is not None and about.runs > 0 and about.usage.cost is None
        notes = (*about.notes, *_notes(rows), *([_BLIND] if is_blind else []))
        update: dict[str, object] = {"pairs": len(counted), "rows": rows, "notes": notes}
        if counted:
            changed, (low, high) = [changed for changed, _ in counted], self._test.interval()
            update |= {
                f"success_{arm}": math.fsum(run.outcome or 0.0 for _, pair in counted for run in pair if run.arm == arm)
                / len(counted)
                for arm in OTHER
            } | {
                "wins": sum(d > 0 for d in changed),
                "losses": sum(d < 0 for d in changed),
                "ties": changed.count(0.0),
                "effect": math.fsum(changed) / len(changed),
                "low": low,
                "high": high,
                "standing": "helps" if low > 0 else "harms" if high < 0 else "no evidence yet",
            }
        return about.model_copy(update=update)


def _notes(rows: Sequence[TrialRun]) -> Iterator[str]:
    """What a reader must know of the runs: missing outcomes and missing proofs, which both may deceive."""
    lost = {arm: sum(r.arm == arm and r.outcome is None for r in rows) for arm in OTHER}
    if any(lost.values()):
        runs = f"{plural(lost['with'], 'run')} with it and {plural(lost['without'], 'run')} without"
        yield f"no outcome is known of {runs}: their pairs are left out"
    silent = sum(not run.proven for run in rows)
    if silent:
        yield (
            f"in {silent} of {plural(len(rows), 'run')} the memory that was handed over does not show, or that of the "
            "other side does: this is the effect of handing it over, and none if the agent drops or mixes it; a run "
            'shows it by its text, or its digest in metadata["memory_digest"]'
        )


def in_words(trial: Trial, /) -> str:
    """The result as plain text. Nothing that strangers wrote can drive a terminal."""
    return "\n".join(one_line(line) for line in (*_verdict(trial), _cost(trial), *trial.notes))


def _verdict(trial: Trial) -> Iterator[str]:
    what = f"the lesson {one_line(trial.title, limit=80)!r}" if trial.treatment else "memory"
    if trial.effect is None or trial.low is None or trial.high is None:
        yield f"No evidence yet of what {what} changes: no pair of runs has two known outcomes."
        return
    finding = f"{what} {trial.standing}"
    if trial.standing == "no evidence yet":
        small = f"{what} changes less than {100 * trial.min_effect:g} points"
        is_small = trial.stopped == "too small to matter"
        finding = small if is_small else f"no evidence yet that {what} changes anything"
    span = f"[{100 * trial.low:+.1f}, {100 * trial.high:+.1f}]"
    sides = f"{trial.success_with:.0%} with it and {trial.success_without:.0%} without"
    yield f"{finding[0].upper()}{finding[1:]}: success {100 * trial.effect:+.1f} points {span}, {sides}."
    yield (
        f"{plural(trial.pairs, 'pair')} of runs: {trial.wins} went better with it, {trial.losses} worse, "
        f"{trial.ties} the same. Stopped: {trial.stopped or 'not yet'}."
    )
    if trial.standing != "no evidence yet":
        chance = f"one in {1 / (1 - trial.level):.3g}"
        yield f"Of trials of something that does nothing, {chance} says so; the promise of lift is counted apart."


def _cost(trial: Trial) -> str:
    tokens, dollars = _tokens(trial.usage), trial.usage.cost
    parts = (
        plural(trial.runs, "run"),
        plural(tokens, "token") if tokens else "",
        "" if dollars is None else f"${dollars:,.2f}",
        f"{trial.seconds:,.1f} seconds",
    )
    each = [[_tokens(row.usage) for row in trial.rows if row.arm == arm] for arm in OTHER]
    with_, without = (sum(some) / max(len(some), 1) for some in each)
    mean = f" A run took {with_:,.0f} tokens with it and {without:,.0f} without." if tokens else ""
    return f"Cost: {', '.join(filter(None, parts))}.{mean}"


def _tokens(usage: Usage) -> int:
    return usage.input_tokens + usage.output_tokens

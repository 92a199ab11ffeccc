"""How a task is scaled: what the caller asked for, checked before anything is paid, and when the budget is spent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, get_args

from lessonbank._base.checks import a_count, a_flag, a_number, a_seed, maybe_count, one_of, set_frozen
from lessonbank.contracts.records import Usage
from lessonbank.errors import UsageError

Mode = Literal["parallel", "sequential", "vanilla"]
"""`parallel`: independent runs, contrasted. `sequential`: each run re-examines the one before. `vanilla`: independent
runs, each learned from alone."""
Selection = Literal["auto", "model", "verdicts"]
Examining = Literal["act", "rewrite"]
Spent = Literal["tokens", "cost", "seconds"]

MOST = 1_000
"""Runs of one task: beyond it an argument is a slip."""
AT_ONCE = 8
"""Runs made at once where the caller does not say: agents share keys, quotas and machines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """What one call of `scale` is to do."""

    k: int = 3
    mode: Mode = "parallel"
    memory: bool = True
    learn: bool = True
    labels: bool | None = None
    choose: Selection = "auto"
    examine: Examining = "act"
    confirm: int = 2
    concurrency: int | None = None
    tokens: int | None = None
    cost: float | None = None
    seconds: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        one_of(self.mode, "mode", get_args(Mode))
        one_of(self.choose, "choose", get_args(Selection))
        one_of(self.examine, "examine", get_args(Examining))
        set_frozen(self, k=a_count(self.k, "k", most=MOST), confirm=a_count(self.confirm, "confirm", most=MOST))
        set_frozen(self, concurrency=maybe_count(self.concurrency, "concurrency", most=MOST), seed=a_seed(self.seed))
        for name in get_args(Spent):
            if getattr(self, name) is not None:
                takes = "is a budget for all runs together, a number above 0"
                set_frozen(self, **{name: a_number(getattr(self, name), name, takes, above=0)})
        for name in ("memory", "learn"):
            a_flag(getattr(self, name), name)
        if self.labels is not None:
            a_flag(self.labels, "labels=")
        if self.labels is not None and not self.contrasts:
            raise UsageError("labels= has no effect here, because no contrast of several runs is made: leave it out")

    @property
    def learns(self) -> bool:
        """Whether the runs go into the bank."""
        return self.memory and self.learn

    @property
    def contrasts(self) -> bool:
        """Whether several runs are learned from together."""
        return self.learns and self.mode != "vanilla"

    @property
    def asks_model(self) -> str:
        """The argument that only a bank with a model can fulfil; empty where there is none."""
        if self.mode == "sequential":
            return "examine='rewrite'" if self.examine == "rewrite" else ""
        return "choose='model'" if self.choose == "model" else ""

    @property
    def concurrent_runs(self) -> int:
        """At most 8, unless the caller says how many."""
        return min(self.k, self.concurrency or AT_ONCE)

    @property
    def in_waves(self) -> bool:
        """Whether only as many runs are begun as the budget seems to hold: what has begun cannot be unspent."""
        return self.concurrency is None and (self.tokens is not None or self.cost is not None)


@dataclass(slots=True)
class Meter:
    """What the runs have cost so far, held against the design's budget."""

    design: Design
    clock: Callable[[], float]
    began: float = 0.0
    usage: Usage = field(default_factory=Usage)
    runs: int = 0
    priced: int = 0
    """Runs that say what a run costs: one that broke off and told nothing is not the price of the next."""

    def start(self) -> None:
        """From now on time counts."""
        self.began = self.clock()

    @property
    def seconds(self) -> float:
        """Since the start."""
        return self.clock() - self.began

    @property
    def deadline(self) -> float:
        """The moment of the clock at which time is up."""
        return float("inf") if self.design.seconds is None else self.began + self.design.seconds

    @property
    def _tokens(self) -> int:
        return self.usage.input_tokens + self.usage.output_tokens

    def add(self, usage: Usage, /, *, broken: bool = False) -> None:
        """One more run has ended; `broken`: an error stopped it."""
        has_usage = bool(usage.input_tokens or usage.output_tokens or usage.cost)
        self.usage, self.runs, self.priced = self.usage + usage, self.runs + 1, self.priced + (has_usage or not broken)

    def spent(self) -> Spent | None:
        """Which budget is used up, so that no further run is begun."""
        tokens, cost = self.design.tokens, self.design.cost
        if tokens is not None and self._tokens >= tokens:
            return "tokens"
        if cost is not None and (self.usage.cost or 0.0) >= cost:
            return "cost"
        return "seconds" if self.clock() >= self.deadline else None

    def wave(self) -> int:
        """How many runs may be begun now. Where the budget is to be kept: one, then as many as it holds by the mean."""
        if not self.design.in_waves:
            return self.design.k
        if not self.priced:
            return 1
        budgets = ((self.design.tokens, self._tokens), (self.design.cost, self.usage.cost or 0.0))
        left = [(budget - spent) * self.priced / spent for budget, spent in budgets if budget is not None and spent]
        return max(1, int(min(left, default=self.design.k)))

    def blind(self) -> str | None:
        """Why a budget could not be kept: the runs do not say what they cost."""
        if self.runs and self.design.cost is not None and self.usage.cost is None:
            return "the budget in money could not be kept: no run says what it cost (usage.cost)"
        if self.runs and self.design.tokens is not None and not self._tokens:
            return "the budget in tokens could not be kept: no run says how many it took (usage)"
        return None

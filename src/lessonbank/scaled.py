"""The part of a bank that lets an agent do a task several times, and learns from all of it at once (MaTTS)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, cast

from .agents import AnyAgent, Verifier, check_calls
from .attempt import Loop
from .errors import UsageError
from .learning.settlement import checked_question
from .matts.design import Design, Examining, Mode, Selection
from .matts.result import Scaled
from .matts.rollouts import Progress, Rollout
from .matts.runner import Driving
from .matts.scaler import Scaler
from .measured import Measured
from .types import Learned, Outcome, Recall, Trajectory, Verdict

if TYPE_CHECKING:
    from .guard.intake import IntakeFilter
    from .protocols import Extractor, Store


class Scaling(Measured):
    """A bank that is measured, and test-time scaling over it (paper section 3.3)."""

    _extractor: Extractor
    _entrance: IntakeFilter
    _scaler: Scaler = Scaler()

    async def scale(
        self,
        task: str,
        agent: AnyAgent,
        /,
        *,
        k: int = 3,
        mode: Mode = "parallel",
        outcome: Verifier | None = None,
        memory: bool = True,
        learn: bool = True,
        labels: bool | None = None,
        choose: Selection = "auto",
        examine: Examining = "act",
        confirm: int = 2,
        at_once: int | None = None,
        tokens: int | None = None,
        cost: float | None = None,
        seconds: float | None = None,
        seed: int = 0,
        limit: int | None = None,
        progress: Callable[[Progress], None] | None = None,
        scope: str | None = None,
    ) -> Scaled:
        """Let the agent do `task` up to `k` times under one recall, choose the best run, and learn from all of them.

        A run that raises is a failed attempt (an agent that returns a `Trajectory` with `error=` keeps its steps).
        Every run is on disk as soon as it ends: after a crash or a cancellation, those that ended are `pending`. Where
        memory fails, the agent works without it and `notes` says so; once runs are made, nothing that fails later
        costs them. `print` the result, or read its fields.

        Args:
            agent: `(task, memory)` to a trajectory or its messages, async or not. Where it has parameters of these
                names, it gets `seed` (`seed` + 0, 1, …), and in re-examinations `check` (what to do, and the record of
                the run before) and `previous` (that run).
            k: the most runs; the first counts, so 1 is no scaling.
            mode: `parallel`: independent runs and one contrast of all. `sequential`: each run re-examines the one
                before. `vanilla`: independent runs, each learned from alone, in their order: the paper's control.
            outcome: the world's check of a run, asked as soon as it ends: success or not, a score from 0 to 1, or an
                outcome. It beats the judge, and is not asked about a run that was stopped by an error.
            memory: `False` for the control without memory: nothing is recalled, shown, kept or learned.
            learn: `False` to leave the bank as it is: the runs are only judged, and the recall stays unsettled.
            labels: whether the contrast is told how each run ended; `None` as the profile does (the paper's hides it).
            choose: `model` compares the runs, by the paper's criteria; `verdicts` takes the likeliest success and asks
                nobody; `auto`: a model where the bank has one. In sequential mode the last sound run is taken.
            examine: in sequential mode `act`: the agent is called again, with the check in `check=`, or after the
                memory if it does not take that. `rewrite`: a model rewrites the answer and nothing is done.
            confirm: in sequential mode, how many re-examinations in a row must leave the answer as it is to stop; of a
                run without an answer, all that it did.
            at_once: how many runs are made at once; by default all. Under a budget of tokens or money one goes first,
                and then as many at once as the budget holds by what they cost so far, unless this says otherwise.
            tokens, cost, seconds: budgets of the runs together (cost in US dollars). Once one is spent no run is begun.
                What is under way is finished; when `seconds` are over it is cut off and is a failed attempt, except for
                a plain function, which cannot be cut off. Judging and learning come on top.
            limit: how many experiences the recall draws on.
            progress: called after every run. What it raises ends the whole.

        Raises:
            UsageError: an argument that cannot be, or a verifier that says what is no outcome.
        """
        design = Design(
            k=k,
            mode=mode,
            memory=memory,
            learn=learn,
            labels=labels,
            choose=choose,
            examine=examine,
            confirm=confirm,
            at_once=at_once,
            tokens=tokens,
            cost=cost,
            seconds=seconds,
            seed=seed,
        )
        where = self._within(scope)
        checked_question(task, 1 if limit is None else limit)
        check_calls(agent, outcome=outcome, progress=progress)
        self._check_model(design)
        bank, unlabelled = self._labelled(labels)
        driving = Driving(
            _Within(cast("_Bank", bank), self._entrance, where, limit),
            self._scaler,
            design,
            where,
            [unlabelled] if unlabelled else [],
        )
        return await driving.drive(task, agent, verifier=outcome, progress=progress)

    def _check_model(self, design: Design) -> None:
        if design.asks_model and self._scaler.model is None:
            raise UsageError(f"{design.asks_model} needs a bank with a model: connect it with model=")

    def _labelled(self, labels: bool | None) -> tuple[Scaling, str]:
        """This bank, with an extractor whose contrast shows how runs ended, or hides it; or why that cannot be."""
        if labels is None:
            return self, ""
        relabel = getattr(self._extractor, "labelled", None)
        if relabel is None:
            return self, "labels= changed nothing: this bank's extractor cannot be told whether to show outcomes"
        bank = copy(self)
        bank._extractor = relabel(labels)
        return bank, ""


class _Bank(Loop, Protocol):
    """What the loop above this room gives to it."""

    store: Store

    async def judge(
        self, source: object, /, *, task: str | None = None, outcome: Outcome | None = None, reward: float | None = None
    ) -> Verdict: ...


@dataclass(frozen=True, slots=True)
class _Within:
    """The bank as scaling sees it: one scope, one way to recall."""

    bank: _Bank
    entrance: IntakeFilter
    scope: str
    limit: int | None

    async def recall(self, task: str, /) -> Recall:
        return await self.bank.retrieve(task, limit=self.limit, scope=self.scope)

    async def safe(self, runs: Sequence[Trajectory], /) -> list[Trajectory]:
        return await self.entrance.runs(runs)

    async def keep(self, run: Trajectory, /) -> None:
        await self.bank.store.keep(await self.safe([run]), scope=self.scope)

    async def learn(self, rollouts: Sequence[Rollout], recall: Recall | None, /) -> Learned:
        outcomes = cast("list[Outcome]", [one.outcome for one in rollouts])
        rewards = cast("list[float]", [one.reward for one in rollouts])
        runs = [one.run for one in rollouts]
        return await self.bank.learn(runs, recall=recall, outcome=outcomes, reward=rewards, scope=self.scope)

    async def judge(self, rollout: Rollout, /) -> Verdict:
        return await self.bank.judge(rollout.run, outcome=rollout.outcome, reward=rollout.reward)

"""What memory does around the runs of a task: recalls once, keeps each run, learns from all, and never costs one."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any, cast

from lessonbank._base.aio import gather
from lessonbank._base.plural import plural
from lessonbank.contracts.agents import AnyAgent, Verifier
from lessonbank.contracts.records import Learned, Outcome, Recall, Run, Trajectory, Usage, Verdict, notes_of
from lessonbank.contracts.records.usage import usage_of
from lessonbank.contracts.retrieve_options import RetrieveOptions
from lessonbank.errors import UsageError
from lessonbank.guard.intake import IntakeFilter
from lessonbank.guard.quote import quoted

from .bank import Memory
from .best_of_n import Choice, by_verdicts, candidates, shortlist
from .design import Design
from .figures import of_group, of_rounds
from .result import Scaled
from .rollouts import Progress, Rollout, Rollouts
from .scaler import Scaler
from .sequential import Examiner

log = logging.getLogger("lessonbank")


@dataclass(frozen=True, slots=True)
class BankMemory:
    """What scaling needs of a bank, in one scope."""

    bank: Memory
    intake: IntakeFilter
    options: RetrieveOptions
    """How the one recall is asked for."""
    _safe: dict[str, Trajectory] = field(default_factory=dict[str, Trajectory])

    async def recall(self, task: str, /) -> Recall:
        """The one recall that all runs are shown."""
        return await self.bank.retrieve(task, **self.options.keywords)

    async def safe(self, runs: Sequence[Trajectory], /) -> list[Trajectory]:
        """The runs as models may read them: secrets are out."""
        return await self.intake.runs(runs)

    async def sentence(self, text: str, /) -> str:
        """What a model said, as it may be kept and logged."""
        return await self.intake.sentence(text)

    async def keep(self, rollouts: Sequence[Rollout], recall: Recall | None, /) -> None:
        """Put the runs of one group on disk with what is known of them, to be learned later."""
        new = [rollout.run for rollout in rollouts if rollout.run.id not in self._safe]
        self._safe.update({run.id: run for run in await self.safe(new)})
        outcomes, rewards = _truths(rollouts)
        runs = [self._safe[rollout.run.id] for rollout in rollouts]
        # A step of the loop and no call for users, who learn or submit.
        await self.bank._hand_in(runs, recall=recall, outcome=outcomes, reward=rewards)  # pyright: ignore[reportPrivateUsage]

    async def learn(self, rollouts: Sequence[Rollout], recall: Recall | None, /) -> Learned:
        """Judge, extract and consolidate: several runs are contrasted."""
        outcomes, rewards = _truths(rollouts)
        return await self.bank.learn(
            [rollout.run for rollout in rollouts], recall=recall, outcome=outcomes, reward=rewards
        )

    async def judge(self, rollout: Rollout, /) -> Verdict:
        """How a run ended."""
        return await self.bank.judge(rollout.run, outcome=rollout.outcome, reward=rollout.reward)


@dataclass(slots=True)
class ScaledTask:
    """One task, done several times."""

    memory: BankMemory
    scaler: Scaler
    design: Design
    scope: str
    notes: list[str] = field(default_factory=list[str])

    async def run(
        self,
        task: str,
        agent: AnyAgent,
        /,
        *,
        verifier: Verifier | None,
        progress: Callable[[Progress], None] | None,
    ) -> Scaled:
        """Run, judge and learn, choose, count.

        Raises:
            UsageError: the recall was asked for what cannot be, or the verifier says what is no outcome.
        """
        recall = await self._recall(task)
        text = recall.text if recall else ""
        keep = partial(self._keep, recall)
        rollouts = Rollouts(agent, task, text, self.design, keep, verifier=verifier, progress=progress)
        if self.design.mode == "sequential":
            await rollouts.one_after_another(self._examiner())
        else:
            await rollouts.side_by_side()
        seconds = rollouts.meter.seconds
        learned, attempts, judging = await self._take_in(rollouts.done, recall)
        choice = await self._choose(attempts)
        self._look_back(rollouts, attempts, learned)
        overhead = (judging, choice.usage if choice else Usage(), learned.usage if learned else Usage())
        return Scaled(
            task=task,
            scope=self.scope,
            mode=self.design.mode,
            k=self.design.k,
            attempts=tuple(attempts),
            choice=choice.index if choice else None,
            why=choice.why if choice else "",
            learned=learned,
            usage=rollouts.meter.usage,
            overhead=sum(overhead, Usage()),
            seconds=round(seconds, 3),
            stopped=rollouts.stopped,
            recall_id=recall.id if recall else None,
            notes=tuple(dict.fromkeys((*self.notes, *[await self.memory.sentence(note) for note in rollouts.notes]))),
            **self._figures(attempts, choice),
        )

    def _examiner(self) -> Examiner | None:
        """Who re-examines a run in the place of the agent; the model sees it as the bank keeps it."""
        rewriter = self.scaler.rewriter() if self.design.examine == "rewrite" else None
        if rewriter is None:
            return None

        async def examined(previous: Trajectory, /, *, first: bool) -> Trajectory:
            return await rewriter(previous, first=first, shown=(await self.memory.safe([previous]))[0])

        return examined

    async def _recall(self, task: str) -> Recall | None:
        if not self.design.memory:
            return None
        try:
            return await self.memory.recall(task)
        except UsageError:
            raise
        except Exception as problem:  # noqa: BLE001 - whatever a store or a hook raises: the agent works without memory
            await self._note("the agent works without memory", problem)
            return None

    async def _keep(self, recall: Recall | None, rollouts: Sequence[Rollout]) -> None:
        if not self.design.learns:
            return
        groups = [[rollout] for rollout in rollouts] if self.design.mode == "vanilla" else [rollouts]
        try:
            for group in groups:
                await self.memory.keep(group, recall)
        except Exception as problem:  # noqa: BLE001 - whatever a store or a redactor raises: the run goes on
            await self._note("a run is not on disk yet", problem)

    async def _take_in(
        self, rollouts: Sequence[Rollout], recall: Recall | None
    ) -> tuple[Learned | None, list[Run], Usage]:
        """What the bank learned, the runs with their verdicts, and what it cost to judge those it did not."""
        learned, verdicts = await self._learn(rollouts, recall) if self.design.learns and rollouts else (None, {})
        judged = await gather(partial(self._judge, rollout, verdicts.get(rollout.run.id)) for rollout in rollouts)
        attempts = [
            Run(trajectory=rollout.run, verdict=verdict) for rollout, verdict in zip(rollouts, judged, strict=True)
        ]
        return learned, attempts, sum((a.verdict.usage for a in attempts if a.trajectory.id not in verdicts), Usage())

    async def _learn(self, rollouts: Sequence[Rollout], recall: Recall | None) -> tuple[Learned, dict[str, Verdict]]:
        """Together, or in vanilla mode one by one: in their order, so that what comes of it does not depend on luck."""
        groups = [[rollout] for rollout in rollouts] if self.design.mode == "vanilla" else [list(rollouts)]
        results = [await self._learn_group(group, recall) for group in groups]
        refs = [ref for learned in results if learned.experience for ref in learned.experience.attempts]
        return (results[0] if len(results) == 1 else _together(results)), {
            ref.trajectory_id: ref.verdict for ref in refs
        }

    async def _learn_group(self, group: Sequence[Rollout], recall: Recall | None) -> Learned:
        try:
            return await self.memory.learn(group, recall)
        except Exception as problem:  # noqa: BLE001 - whatever a store, a hook or a judge raises: the runs are paid for
            return Learned(notes=notes_of(await self._note("nothing was learned from these runs", problem)))

    async def _judge(self, rollout: Rollout, verdict: Verdict | None) -> Verdict:
        if verdict:
            return verdict
        try:
            return await self.memory.judge(rollout)
        except Exception as problem:  # noqa: BLE001 - whatever a judge or a redactor raises: the run is there
            return Verdict(outcome="unknown", confidence=0.0, reason=await self._note("a run was not judged", problem))

    async def _choose(self, attempts: Sequence[Run]) -> Choice | None:
        runs = [attempt.trajectory for attempt in attempts]
        places = candidates(runs)
        if self.design.mode == "sequential":
            return Choice(places[-1], "the last run that came to its end") if places else None
        chooser = None if self.design.choose == "verdicts" else self.scaler.chooser()
        if chooser is None or len(places) < 2:
            return by_verdicts(attempts, places)
        places, spent = shortlist(attempts, places), Usage()
        try:
            chosen = await chooser(await self.memory.safe([runs[place] for place in places]))
            why = await self.memory.sentence(chosen.why)
            return Choice(places[chosen.index], f"by {chooser.model.name}: {why}", chosen.usage)
        except Exception as problem:  # noqa: BLE001 - whatever a model or a redactor raises: the verdicts choose
            spent = usage_of(problem) or spent
            await self._note("the verdicts chose the best run", problem)
        fallback = by_verdicts(attempts, places)
        return fallback and Choice(fallback.index, fallback.why, spent)

    def _figures(self, attempts: Sequence[Run], choice: Choice | None) -> dict[str, Any]:
        outcomes: list[Outcome] = [attempt.verdict.outcome for attempt in attempts]
        figures = of_rounds if self.design.mode == "sequential" else of_group
        return asdict(figures(outcomes, choice and choice.index))

    def _look_back(self, rollouts: Rollouts, attempts: Sequence[Run], learned: Learned | None) -> None:
        """What a reader of the figures should know."""
        unknown = sum(attempt.verdict.outcome == "unknown" for attempt in attempts)
        if unknown:
            self.notes.append(
                f"how {unknown} of {plural(len(attempts), 'run')} ended is not known: the figures leave them out"
            )
        truth = any(attempt.verdict.source == "ground_truth" for attempt in attempts)
        if truth and self.design.mode != "sequential" and (self.design.choose == "verdicts" or not self.scaler.model):
            self.notes.append("the best run was chosen with the truth at hand: best of n is then Pass@n")
        if blind := rollouts.meter.blind():
            self.notes.append(blind)
        if learned:
            self.notes += learned.notes

    async def _note(self, what: str, problem: Exception) -> str:
        """`what`, and why, as one line; it is in the log, too."""
        try:
            reason = await self.memory.sentence(quoted(problem))
        except Exception:  # noqa: BLE001 - a redactor that fails must not show what it was to hide
            reason = "its message could not be redacted"
        note = f"{what}: {type(problem).__name__}: {reason}"
        log.warning("%s", note)
        self.notes.append(note)
        return note


def _truths(rollouts: Sequence[Rollout]) -> tuple[list[Outcome], list[float]]:
    """What is known of how runs ended; either may be `None` for a run."""
    return (
        cast("list[Outcome]", [rollout.outcome for rollout in rollouts]),
        cast("list[float]", [rollout.reward for rollout in rollouts]),
    )


def _together(several: Sequence[Learned]) -> Learned:
    """What several calls of `learn` did, as one. That all settle one recall is meant, and no doubt."""
    notes = [note for learned in several for note in learned.notes if not note.startswith("settled again: ")]
    return Learned(
        verdicts=tuple(verdict for learned in several for verdict in learned.verdicts),
        lessons=tuple(lesson for learned in several for lesson in learned.lessons),
        changes=tuple(change for learned in several for change in learned.changes),
        usage=sum((learned.usage for learned in several), Usage()),
        known=tuple(id for learned in several for id in learned.known),
        notes=tuple(dict.fromkeys(notes)),
        errors=tuple(dict.fromkeys(code for learned in several for code in learned.errors)),
    )

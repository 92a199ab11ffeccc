"""Does tasks again with and without memory: makes the two texts, runs the agent, checks what its runs say of them."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, Unpack

import anyio

from lessonbank._base.aio import gather, get_or_none
from lessonbank._base.checks import a_text, argument_error, is_instance, nonempty, short_repr
from lessonbank._base.plural import plural
from lessonbank.contracts.agents import AnyAgent, Verifier, as_awaitable, check_calls, stated, taken
from lessonbank.contracts.records import Found, Match, Recall, Trajectory, Usage
from lessonbank.contracts.records.ids import digest
from lessonbank.contracts.retrieve_options import RetrieveKeywords, RetrieveOptions, takes_retrieve_options
from lessonbank.contracts.store_calls import experience_of_lesson
from lessonbank.contracts.withholding import Assignment
from lessonbank.errors import UsageError
from lessonbank.text.messages import trajectory_from

from .design import OTHER, Arm, Design, PairEvidence, Planned, Stopped, Trial, TrialRun, lesson_in_question, order

if TYPE_CHECKING:
    from lessonbank.contracts.ports import Store
    from lessonbank.search.injection import Injector

Tasks: TypeAlias = str | Iterable[str]
Progress: TypeAlias = Callable[[Trial], None]
_Recaller: TypeAlias = Callable[[str], Awaitable[tuple[Recall, Found]]]
"""Recalls for a task what a user would see, and keeps no receipt; also gives what it was made from."""

ECHO = "memory_digest"
"""Where a trajectory's metadata may say what was shown: SHA-256 of the memory text (UTF-8), as hex."""
_WORDS = {"success": 1.0, "failure": 0.0, "unknown": None}


class _Parts(Protocol):
    @property
    def injector(self) -> Injector: ...


class Bank(Protocol):
    """A bank, as a trial sees it."""

    store: Store
    scope: str

    @property
    def parts(self) -> _Parts: ...

    async def _recall_for_trial(self, task: str, /, *, asked: RetrieveOptions) -> tuple[Recall, Found]:
        """What a user would see if nothing were withheld."""
        ...


@takes_retrieve_options
async def trial(
    bank: Bank,
    tasks: Tasks,
    agent: AnyAgent,
    /,
    *,
    verify: Verifier,
    without: str | None = None,
    with_: str | None = None,
    max_runs: int = 400,
    max_cost: float | None = None,
    max_seconds: float | None = None,
    rounds: int = 1,
    min_effect: float = 0.1,
    level: float = 0.95,
    seed: int = 0,
    concurrency: int = 1,
    progress: Callable[[Trial], None] | None = None,
    **options: Unpack[RetrieveKeywords],
) -> Trial:
    """Do `tasks` with and without memory, in pairs, until it is clear what memory changes. `print` the result.

    For worlds that can be reset. Nothing is written into the bank, and nothing is withheld at random.

    The agent is handed the text, and that is what is measured. The result says how many runs show that text (in the
    run, or as its SHA-256 in `metadata["memory_digest"]`).

    Args:
        tasks: their texts.
        agent: `(task, memory)` to a trajectory or its messages, async or not. A parameter `seed` gets the same number
            in both runs of a pair; luck that they share saves most of the runs. What it raises ends the trial.
        verify: the world's check of a run: success or not, a score from 0 to 1, or an outcome.
        without: the lesson to leave out of what is shown.
        with_: the lesson to add to what is shown. With neither, the question is about memory as a whole.
        max_runs: the largest number of runs; a pair is two.
        max_cost: no pair begins once the runs cost so many US dollars (where they tell `usage.cost`).
        max_seconds: no pair begins once the call took so long. What is under way is finished.
        rounds: how often each side may do each task.
        min_effect: an effect too small to matter; once it is known to be smaller the trial ends. 0: never.
        level: the confidence of the interval, however often one looks.
        seed: decides the order of tasks and sides, and the agent's luck.
        concurrency: how many pairs run at once; a plain function then runs in as many threads.
        progress: called after every pair with the result so far. What it raises ends the trial.
        options: those of `retrieve`. `fit` counts only where memory as a whole is in question, and a run with memory
            pays for it.

    Raises:
        UsageError: both `without` and `with_`, a lesson or a number that cannot be, no tasks, or nothing to compare.
    """
    check_calls(agent, progress=progress)
    if not callable(verify):
        raise argument_error("verify=", "takes a function of a run", verify)
    lesson = lesson_in_question(without=without, with_=with_)
    if lesson:  # the two texts differ by a lesson, and a model would choose anew for each of them
        options = {**options, "fit": "none"}
    design = Design(
        max_runs=max_runs,
        max_cost=max_cost,
        max_seconds=max_seconds,
        rounds=rounds,
        min_effect=min_effect,
        level=level,
        seed=seed,
        concurrency=concurrency,
    )
    # A step of the loop and no call for users, who retrieve.
    recaller = partial(bank._recall_for_trial, asked=RetrieveOptions(**options))  # pyright: ignore[reportPrivateUsage]
    about, arms = await _Texts(bank, lesson, is_added=with_ is not None).of(tasks, design, recaller)
    play = _Play(
        agent=as_awaitable(agent, threads=design.concurrency),
        verify=as_awaitable(verify, threads=design.concurrency),
        is_seeded=bool(taken(agent, "seed")),
        arms=arms,
        about=about,
        design=design,
        evidence=PairEvidence(design),
        progress=progress,
    )
    return await play.run()


@dataclass(frozen=True, slots=True)
class _Arms:
    """A task with the two texts it is done with."""

    id: str
    task: str
    texts: dict[Arm, str]
    from_itself: bool
    """Whether a lesson in question was learned from this very task."""
    fitting: Usage
    """What a model took that fitted the lessons to the task: a run with them pays for it."""


@dataclass(slots=True)
class _Texts:
    """The texts of one trial, made from what one search found: what is shown beside a lesson is the same."""

    bank: Bank
    lesson: str | None
    """The id of the lesson in question; `None`: everything that is shown."""
    is_added: bool
    added: tuple[Match, ...] = ()
    """The lesson, where it is shown besides."""

    async def of(self, tasks: Tasks, design: Design, recaller: _Recaller, /) -> tuple[Trial, dict[str, _Arms]]:
        """What is asked, before any run, and by id the tasks for which the two texts differ.

        Raises:
            UsageError: there is no such lesson, or no task for which the two texts differ.
        """
        texts = nonempty([tasks] if is_instance(tasks, str) else tasks, "trial", str)
        each = list(dict.fromkeys(a_text(text, "a task", blank=False) for text in texts))
        recalls = await gather([partial(recaller, text) for text in each])
        alone = await self._alone(self.lesson) if self.lesson else None
        self.added = (alone,) if alone and self.is_added else ()
        made = [self._arms(*recall) for recall in recalls]
        arms = dict[str, _Arms]()
        for pair in made:
            if not is_instance(pair, str):
                same = sum(other.id == pair.id for other in arms.values())  # they differ in a removed address alone
                arms[f"{pair.id}-{same}" if same else pair.id] = pair
        if not arms:
            raise UsageError(f"there is nothing to compare in these tasks: {made[0]}")
        about = Trial(
            scope=self.bank.scope,
            treatment=self.lesson,
            title=alone.experience.lessons[0].title if alone else "",
            tasks=len(arms),
            most_runs=min(design.max_runs, 2 * len(arms) * design.rounds),
            level=design.level,
            min_effect=design.min_effect,
            seed=design.seed,
            notes=tuple(_notes(made, design, len(texts))),
        )
        return about, arms

    async def _alone(self, id: str) -> Match:
        """The lesson as if it were found alone, also a retired one. Raises UsageError: it is gone, or in quarantine."""
        owner = await get_or_none(experience_of_lesson(self.bank.store, id, scope=self.bank.scope))
        for lesson in owner.lessons if owner else ():
            if owner and lesson.id == id and lesson.state != "quarantined":
                alone = owner.model_copy(update={"lessons": (lesson.model_copy(update={"retired": False}),)})
                return Match(experience=alone, score=0.0, lesson_id=id)
        raise UsageError(f"there is no lesson {short_repr(id)} to try here: it is unknown, erased or in quarantine")

    def _arms(self, recall: Recall, retrieval: Found) -> _Arms | str:
        """The two texts, or why this task cannot be compared: one would differ by more or less than what is asked."""
        every = {candidate.lesson_id for candidate in recall.candidates if candidate.placed}
        at_stake = frozenset(every if self.lesson is None else every & {self.lesson})
        if self.lesson and self.added and not at_stake:
            retrieval, at_stake = Found(matches=(*retrieval.matches, *self.added)), frozenset({self.lesson})
        called = f"the memory for the task {short_repr(recall.task, most=60)}"
        if not at_stake:
            return f"{called} {'does not show it' if self.lesson else 'is empty'}"
        with_, without = (self._recall(recall, retrieval, held) for held in (frozenset[str](), at_stake))
        if {*with_.shown_ids} != every | at_stake or {*without.shown_ids} != every - at_stake:
            return f"{called} has no room for it, or shows a lesson that says the same"
        fit, text = None if self.lesson else recall.fit, with_.text
        if fit and fit.is_applied and not (text := recall.text):
            return f"the model that read the task kept no lesson of {called}"
        taught = [match.experience for match in retrieval.matches]
        own = [lesson.id for e in taught if e.task.strip() == recall.task.strip() for lesson in e.lessons]
        texts: dict[Arm, str] = {"with": text, "without": without.text}
        return _Arms(recall.id, recall.task, texts, not at_stake.isdisjoint(own), fit.usage if fit else Usage())

    def _recall(self, recall: Recall, retrieval: Found, held: frozenset[str]) -> Recall:
        same = {name: getattr(recall, name) for name in ("id", "task", "scope", "retriever", "space")}
        return self.bank.parts.injector.recall(retrieval, assigned=Assignment(withheld=held), **same)


def _notes(made: Sequence[_Arms | str], design: Design, given: int) -> Iterator[str]:
    left = [reason for reason in made if is_instance(reason, str)]
    own = sum(arms.from_itself for arms in made if not is_instance(arms, str))
    if given > len(made):
        several = ("task was given more than once, and counts once", "tasks were given more than once, and count once")
        yield f"{plural(given - len(made), *several)}: rounds= does each task again"
    if left:
        yield f"left out, because nothing changes there: {len(left)} of {plural(len(made), 'task')} ({left[0]})"
    if own:
        among = f"for {own} of {plural(len(made), 'task')}"
        yield f"{among} a lesson was learned from the very same task: elsewhere it may help less"
    if design.rounds > 1:
        yield f"each task was done up to {design.rounds} times a side: this speaks of these tasks more than of others"


@dataclass(slots=True)
class _Play:
    """Runs the pairs in their order until it is enough, or the budget is spent.

    The caller's agent and verifier are held to what they promise.
    """

    agent: Callable[..., Awaitable[Any]]
    verify: Callable[..., Awaitable[Any]]
    is_seeded: bool
    arms: Mapping[str, _Arms]
    about: Trial
    """What is asked, and what the runs took so far."""
    design: Design
    evidence: PairEvidence
    progress: Progress | None
    began: float = field(default_factory=anyio.current_time)

    async def run(self) -> Trial:
        pairs = order(list(self.arms), self.design)
        stopped: Stopped | None = None
        while not stopped:
            room = (self.design.max_runs - self.about.runs) // 2
            batch = list(islice(pairs, max(1, min(room, self.design.concurrency))))
            stopped = (self._spent(room) if batch else "nothing left to run") or await self._made(batch)
        return self._report(stopped)

    def _spent(self, room: int) -> Stopped | None:
        """Which budget is used up, so that no further pair is begun."""
        cost, seconds = self.design.max_cost, self.design.max_seconds
        if room < 1:
            return "max_runs"
        if cost is not None and (self.about.usage.cost or 0.0) >= cost:
            return "max_cost"
        return "max_seconds" if seconds is not None and anyio.current_time() - self.began >= seconds else None

    async def _made(self, batch: Sequence[Planned]) -> Stopped | None:
        """Run some pairs at once, and look after each. Those beyond the moment when it is enough are let go."""
        for pair in await gather([partial(self._pair, plan) for plan in batch], limit=self.design.concurrency):
            stopped = self.evidence.take(pair)
            if self.progress:
                self.progress(self._report(stopped))
            if stopped:
                return stopped
        return None

    def _report(self, stopped: Stopped | None) -> Trial:
        return self.evidence.with_findings(self.about.model_copy(update={"stopped": stopped}))

    async def _pair(self, planned: Planned) -> Sequence[TrialRun]:
        """One task done twice, one run after the other."""
        pair: list[TrialRun] = []
        for arm in (planned.first, OTHER[planned.first]):
            run, about = await self._run(planned, arm), self.about
            spent = {"usage": about.usage + run.usage, "seconds": round(about.seconds + run.seconds, 3)}
            self.about = about.model_copy(update={"runs": about.runs + 1, **spent})
            pair.append(run)
        return pair

    async def _run(self, planned: Planned, arm: Arm) -> TrialRun:
        arms, began = self.arms[planned.task], anyio.current_time()
        memory, keywords = arms.texts[arm], {"seed": planned.seed} if self.is_seeded else {}
        run = trajectory_from(await self.agent(arms.task, memory, **keywords), task=arms.task)
        seconds = round(anyio.current_time() - began, 3)
        return TrialRun(
            task=planned.task,
            round=planned.round,
            arm=arm,
            seed=planned.seed,
            memory_digest=digest(memory),
            outcome=_success(await self.verify(run)),
            proven=_is_proven(run, memory, arms.texts[OTHER[arm]]),
            usage=run.usage + arms.fitting if arm == "with" else run.usage,
            seconds=seconds,
        )


def _is_proven(run: Trajectory, memory: str, other: str, /) -> bool:
    """Whether `run` shows that it was handed `memory`, and not the text of the other side."""
    echoed = run.metadata.get(ECHO)
    held = run.model_dump_json(exclude={"metadata", "answer", "error"})
    if other and _as_json(other) in held:
        return False
    return echoed == digest(memory) if echoed is not None else not memory or _as_json(memory) in held


def _as_json(text: str) -> str:
    """As it stands inside of a string of JSON."""
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _success(answer: object) -> float | None:
    """What the verifier said, from 0 to 1; `None` where it does not know. Raises UsageError for anything else."""
    outcome, reward = stated(answer)
    return _WORDS[outcome] if outcome else reward

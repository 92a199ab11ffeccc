"""Does recorded tasks again with and without a lesson: reads the receipts, runs the agent, checks what it was shown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias, cast

from lessonbank._concurrency import gather, if_there
from lessonbank.agents import AnyAgent as AnyAgent
from lessonbank.agents import Verifier as Verifier
from lessonbank.agents import called, check_calls, stated, taken
from lessonbank.arguments import an_id, is_a, refusal, several
from lessonbank.errors import UsageError
from lessonbank.messages import trajectory_from
from lessonbank.types import Found, Lesson, Match, Recall, Trajectory
from lessonbank.types.ids import digest

from .draws import Assignment
from .replay_design import Arm, Design, Planned, Question, Replay, ReplayedPair, Stopped, Trial, placebo, plan

if TYPE_CHECKING:
    from lessonbank.protocols import Store
    from lessonbank.retrieving.injection import Injector

Recalls: TypeAlias = Recall | str | Iterable[Recall | str]

ECHO = "memory_digest"
"""Where a trajectory's metadata may say what was shown: SHA-256 of the memory text (UTF-8), as hex."""
_WORDS = {"success": 1.0, "failure": 0.0, "unknown": None}


@dataclass(frozen=True, slots=True)
class _Arms:
    """A task with the two texts it is done with."""

    recall_id: str
    task: str
    texts: dict[Arm, str]
    as_recorded: bool
    """Whether one of the texts is the very one that was shown then."""


@dataclass(frozen=True, slots=True)
class _Left:
    """A recall that cannot be replayed, and why."""

    why: str


async def replay(
    store: Store,
    injector: Injector,
    recalls: Recalls,
    agent: AnyAgent,
    /,
    *,
    verify: Verifier,
    question: Question,
    design: Design,
    scope: str,
) -> Replay:
    """Do the tasks of `recalls` again, in pairs, until it is clear what the lesson in question changes.

    Raises:
        UsageError: no recalls, recalls of another scope, a lesson that is not there or had no place, nothing to
            compare, or the agent or the verifier gave what they should not. What these raise reaches the caller.
        NotFound: a recall that this scope does not have.
    """
    check_calls(agent)
    if not callable(verify):
        raise refusal("verify=", "takes a function of a run", verify)
    receipts = await _receipts(store, recalls, scope)
    lessons = _Lessons(store, scope)
    target = await _target(lessons, question)
    made = [await _arms(injector, receipt, lessons, question, target) for receipt in receipts]
    arms = {one.recall_id: one for one in made if isinstance(one, _Arms)}
    if not arms:
        raise UsageError(
            f"there is nothing to compare in these recalls: {next(m.why for m in made if isinstance(m, _Left))}"
        )
    trial = Trial(design)
    stopped, runs = await _play(_Runner(agent, verify, threads=design.concurrency), arms, trial, design)
    about = Replay(
        scope=scope,
        way=question.way,
        lesson_id=question.lesson_id,
        title=target.title if target else "",
        runs=runs,
        notes=tuple(_notes(made, design)),
    )
    return trial.told(about, stopped=stopped)


async def _play(runner: _Runner, arms: Mapping[str, _Arms], trial: Trial, design: Design) -> tuple[Stopped | None, int]:
    """Run the plan until it is enough: why it was, and how many runs it took. Pairs beyond that moment are let go."""
    pairs, runs = plan(list(arms), design), 0
    while batch := list(islice(pairs, design.concurrency)):
        done = await gather((partial(runner.pair, one, arms[one.recall_id]) for one in batch), limit=design.concurrency)
        runs += sum(count for _, count in done)
        for row, _ in done:
            if stopped := trial.take(row):
                return stopped, runs
    return None, runs


async def _receipts(store: Store, recalls: Recalls, scope: str) -> list[Recall]:
    """As they are kept, each once."""
    given = _given(recalls)
    if any(is_a(one, Recall) and one.scope != scope for one in given):
        raise UsageError("replay takes recalls of its own scope only: name theirs with scope=")
    ids = dict.fromkeys(one if is_a(one, str) else an_id(one.id, "trial") for one in given)
    return [await store.recall(id, scope=scope) for id in ids]


def _given(recalls: object, /) -> list[Recall | str]:
    wanted = [recalls] if is_a(recalls, (str, Recall)) else recalls
    found: list[object] = [*several(wanted, "trial", Recall, or_ids=True)]
    return [one if is_a(one, Recall) else an_id(one, "trial") for one in found]


class _Lessons:
    """The lessons of a scope as matches, each read once."""

    def __init__(self, store: Store, scope: str, /) -> None:
        self._store, self._scope = store, scope
        self._known: dict[str, Match | None] = {}

    async def get(self, id: str, /, *, score: float = 0.0) -> Match | None:
        """`None` for one that is gone, or in quarantine: that is shown to nobody. A retired one is shown once more."""
        if id not in self._known:
            self._known[id] = await self._read(id)
        match = self._known[id]
        return match and match.model_copy(update={"score": score})

    async def _read(self, id: str) -> Match | None:
        owner = await if_there(self._store.owner(id, scope=self._scope))
        if owner is None:
            return None
        lesson = next(lesson for lesson in owner.lessons if lesson.id == id)
        if lesson.state == "quarantined":
            return None
        alone = owner.model_copy(update={"lessons": (lesson.model_copy(update={"retired": False}),)})
        return Match(experience=alone, score=0.0, lesson_id=id)


async def _target(lessons: _Lessons, question: Question) -> Lesson | None:
    if question.lesson_id is None:
        return None
    match = await lessons.get(question.lesson_id)
    if match is None:
        raise UsageError(
            f"there is no lesson {question.lesson_id} to replay here: it is unknown, erased or in quarantine"
        )
    return match.experience.lessons[0]


async def _arms(
    injector: Injector, receipt: Recall, lessons: _Lessons, question: Question, target: Lesson | None
) -> _Arms | _Left:
    """The two texts, made by the injector from one list of lessons: what is shown beside the lesson is the same."""
    had = sorted((c for c in receipt.candidates if c.placed), key=lambda c: c.rank)
    absent = target is not None and all(c.lesson_id != target.id for c in had)
    if target and absent and question.way != "with":
        raise UsageError(f"the lesson {target.id} had no place in recall {receipt.id}: leave out recalls without it")
    if not receipt.task:
        return _Left(f"recall {receipt.id} has no task any more, its run was erased")
    ids = [*(c.lesson_id for c in had), *([target.id] if target and absent else [])]
    scores = {c.lesson_id: c.score for c in receipt.candidates}
    matches = [match for id in ids if (match := await lessons.get(id, score=scores.get(id, 0.0)))]
    held = frozenset(c.lesson_id for c in had if c.withheld and (target is None or c.lesson_id != target.id))
    shown = frozenset(match.lesson_id or "" for match in matches) - held
    if not shown:
        return _Left(f"recall {receipt.id} is empty")
    return _compared(injector, receipt, matches, shown, held, question)


def _compared(
    injector: Injector,
    receipt: Recall,
    matches: Sequence[Match],
    shown: frozenset[str],
    held: frozenset[str],
    question: Question,
) -> _Arms | _Left:
    """The texts, unless one of them would differ from the other by more or less than what is asked about."""
    at_stake = shown if question.lesson_id is None else frozenset({question.lesson_id})
    make = partial(_recall, injector, receipt)
    if question.way == "placebo":
        with_, without, left = make(matches, held), make(_replaced(matches, at_stake), held), shown
    else:
        with_, without, left = make(matches, held), make(matches, held | at_stake), shown - at_stake
    if _shown(with_) != shown or _shown(without) != left or with_.text == without.text:
        return _Left(f"recall {receipt.id} has no room for it, or shows a lesson that says the same")
    texts: dict[Arm, str] = {"with": with_.text, "without": without.text}
    return _Arms(receipt.id, receipt.task, texts, receipt.text_digest in map(digest, texts.values()))


def _replaced(matches: Sequence[Match], at_stake: frozenset[str]) -> list[Match]:
    """`matches` with placebos in the place of the lessons at stake."""
    made: list[Match] = []
    for place, match in enumerate(matches):
        lesson = match.experience.lessons[0]
        if lesson.id in at_stake:
            filled = match.experience.model_copy(update={"lessons": (placebo(lesson, start=place),)})
            match = match.model_copy(update={"experience": filled})
        made.append(match)
    return made


def _recall(injector: Injector, receipt: Recall, matches: Sequence[Match], held: frozenset[str]) -> Recall:
    return injector.recall(
        Found(matches=tuple(matches)),
        id=receipt.id,
        task=receipt.task,
        scope=receipt.scope,
        assigned=Assignment(withheld=held),
        retriever=receipt.retriever,
        space=receipt.space,
    )


def _shown(recall: Recall) -> frozenset[str]:
    return frozenset(lesson.id for lesson in recall.shown)


def _notes(made: Sequence[_Arms | _Left], design: Design) -> Iterator[str]:
    left = [one for one in made if isinstance(one, _Left)]
    other = sum(isinstance(one, _Arms) and not one.as_recorded for one in made)
    if left:
        yield f"not replayed: {len(left)} of {len(made)} recalls ({left[0].why})"
    if other:
        why = "it was withheld whole, or lessons, prompt or budget have changed"
        yield f"in {other} of {len(made)} recalls neither text is the one that was shown then: {why}"
    if design.rounds > 1:
        yield f"each task was done up to {design.rounds} times a side: this speaks of these tasks more than of others"


class _Runner:
    """The caller's agent and verifier, held to what they promise."""

    def __init__(self, agent: AnyAgent, verify: Verifier, /, *, threads: int) -> None:
        self._agent, self._verify = called(agent, threads=threads), called(verify, threads=threads)
        self._seeded = bool(taken(agent, "seed"))

    async def pair(self, planned: Planned, arms: _Arms, /) -> tuple[ReplayedPair, int]:
        """One task done twice, one run after the other, and how many runs that took. One without a proof ends it."""
        other: dict[Arm, Arm] = {"with": "without", "without": "with"}
        outcomes: dict[Arm, float | None] = {}
        refused = ""
        for arm in (planned.first, other[planned.first]):
            run = await self._run(arms.task, arms.texts[arm], planned.seed)
            refused = _unproven(run, arms.texts[arm], arms.texts[other[arm]])
            if refused:
                refused = f"the run {arm} it of recall {arms.recall_id} {refused}"
                break
            outcomes[arm] = _success(await self._verify(run))
        row = ReplayedPair(
            recall_id=arms.recall_id,
            seed=planned.seed,
            first=planned.first,
            digest_with=digest(arms.texts["with"]),
            digest_without=digest(arms.texts["without"]),
            outcome_with=outcomes.get("with"),
            outcome_without=outcomes.get("without"),
            refused=refused,
        )
        return row, len(outcomes) + bool(refused)

    async def _run(self, task: str, memory: str, seed: int) -> Trajectory:
        keywords = {"seed": seed} if self._seeded else {}
        return trajectory_from(await self._agent(task, memory, **keywords), task=task)


def _unproven(run: Trajectory, memory: str, other: str, /) -> str:
    """Why `run` does not prove that it was shown `memory`; empty where it does.

    Holding the other side's text proves the contrary. Where `memory` is empty, that alone can be looked for: the other
    run of the pair has to prove that this agent's runs hold what they are shown.
    """
    echoed = run.metadata.get(ECHO)
    texts = list(_texts(run))
    if other and any(other in text for text in texts):
        return "holds the text of the other side"
    if echoed is not None:
        return "" if echoed == digest(memory) else f'says in metadata["{ECHO}"] that it was shown something else'
    if not memory or any(memory in text for text in texts):
        return ""
    return f'neither holds the text it was handed nor has its digest in metadata["{ECHO}"]'


def _texts(run: Trajectory) -> Iterator[str]:
    """Every text of a run in which memory can stand."""
    yield run.task
    yield run.instructions
    for step in run.steps:
        yield from (step.thought, step.action.text, *(observation.text for observation in step.observations))
    todo: list[object] = [*run.original, *(call.arguments for step in run.steps for call in step.action.calls)]
    while todo:
        value = todo.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            todo += cast("dict[str, object]", value).values()
        elif isinstance(value, list):
            todo += cast("list[object]", value)


def _success(told: object) -> float | None:
    """What the verifier said, from 0 to 1; `None` where it does not know. Raises UsageError for anything else."""
    outcome, reward = stated(told)
    return _WORDS[outcome] if outcome else reward

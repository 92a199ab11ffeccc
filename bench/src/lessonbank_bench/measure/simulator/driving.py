"""The same worlds put through a real bank, by what it offers to everybody."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

import lessonbank
from lessonbank import Experience, Extraction, Lesson, Run, Step, Trajectory, Usage, Verdict
from lessonbank.testing.settings import grouped

from .chances import chance
from .columns import Flags, Floats, Ints
from .playing import spent_on, told_of
from .world import World

if TYPE_CHECKING:
    from lessonbank import ReasoningBank

SCOPE = "simulated"
_FAMILIES = (
    *(("harbour", "anchor", "tide"), ("orchard", "apple", "hedge"), ("railway", "engine", "signal")),
    *(("library", "shelf", "reader"), ("foundry", "mould", "furnace"), ("vineyard", "grape", "cellar")),
    *(("observatory", "star", "lens"), ("bakery", "flour", "oven"), ("quarry", "granite", "blast")),
    *(("theatre", "curtain", "actor"), ("lighthouse", "beacon", "fog"), ("brewery", "malt", "barley")),
    *(("sawmill", "plank", "blade"), ("aquarium", "coral", "shark"), ("museum", "fossil", "exhibit")),
    *(("pottery", "clay", "kiln"), ("glacier", "crevasse", "moraine"), ("windmill", "sail", "grain")),
)
_WORDS = (
    *("copper", "ribbon", "ladder", "barrel", "canvas", "feather", "gravel", "hammer", "kettle", "lantern", "magnet"),
    *("needle", "paddle", "pepper", "pillow", "rudder", "saddle", "shovel", "timber", "trolley", "velvet", "walnut"),
)
_SPOKEN = 3
"""Words besides the family's own in the text of a task: what makes two searches of a family differ."""


@dataclass(frozen=True, eq=False)
class Driven:
    """What a bank was put through, one entry per episode in the order of time."""

    recalls: tuple[str, ...]
    """Ids of the receipts."""
    shown: tuple[tuple[int, ...], ...]
    """The lessons that were in the text, as positions in `World.names`."""
    task: Ints
    outcome: Floats
    """What truly happened."""
    told: Flags
    """Whether anything was told of it."""
    true: Flags
    """Whether that was the truth rather than a judge's opinion."""
    chance: Floats
    """The probability of success under what was shown."""
    chance_of_nothing: Floats


def planted_bank(world: World, /, *, seed: int = 0, where: str = ":memory:", **settings: Any) -> ReasoningBank:
    """A bank that holds the world's lessons, each in an experience whose task names its family.

    It searches by words, draws no lessons of its own from runs, and where the world has a judge, it is that judge. Any
    setting of `lessonbank.connect` can be given besides; `limit` is the world's number of candidates.
    """
    chosen: dict[str, Any] = {
        "scope": SCOPE,
        "embedder": "lexical",
        "limit": world.candidates,
        "extractor": _no_lessons,
        "caps": None,
        "consolidation": "append",
        **({"judge": _as_planted} if world.judge else {}),
        **settings,
    }
    bank, g = lessonbank.connect(where, **grouped(**chosen)), np.random.default_rng((seed, 5))
    for number, name in enumerate(world.names):
        home = int(world.families.weight[:, number].argmax())
        words = task_text(home, g)
        lesson = Lesson(id=name, title=f"Lesson {number} on the {_FAMILIES[home][0]}", content=f"For {words}, do so.")
        bank.consolidate(Experience(scope=bank.scope, task=words, lessons=(lesson,)))
    return bank


def task_text(family: int, g: np.random.Generator, /) -> str:
    """A task of a family: it names the family, and some things besides."""
    return " ".join((*_FAMILIES[family], *g.choice(_WORDS, _SPOKEN, replace=False)))


def drive(world: World, episodes: int, bank: ReasoningBank, /, *, seed: int) -> Driven:
    """Episodes of a world through a bank made by `planted_bank`: retrieve, a run with the planted chance, learn.

    Which lessons are found and shown is the bank's doing; what that is worth is the world's. A run nothing is told of
    is never learned. Where the world's judge errs and the truth is told too, it is told after the judge was asked.

    Raises:
        ValueError: more families than have a name here.
    """
    if len(world.families.base) > len(_FAMILIES):
        raise ValueError(f"a world that is driven has at most {len(_FAMILIES)} families")
    g, position = np.random.default_rng((seed, 6)), {name: n for n, name in enumerate(world.names)}
    rows: list[_Row] = []
    for _ in range(episodes):
        task = min(int(np.searchsorted(world.cumulative, g.random() * world.cumulative[-1])), len(world.cumulative) - 1)
        family = int(world.tasks.family[world.tasks.template[task]])
        recall = bank.retrieve(task_text(family, g))
        rows.append(_row(world, g, task, recall.id, [position[lesson.id] for lesson in recall.shown]))
        _learn(bank, recall, rows[-1])
    return _driven(rows)


@dataclass(frozen=True, slots=True)
class _Row:
    """One episode."""

    recall: str
    shown: tuple[int, ...]
    task: int
    chance: float
    base: float
    outcome: float
    told: float
    """What is told: the truth or the verdict; `nan` for nothing."""
    true: bool
    judged: float
    confidence: float
    steps: int
    tokens: int
    cost: float


def _row(world: World, g: np.random.Generator, task: int, recall: str, shown: Sequence[int]) -> _Row:
    base, there = world.tasks.base[task], np.ones((1, len(shown)), bool)
    found = np.array([shown], np.int64).reshape(1, -1)
    likely = float(chance(world, np.array([task]), np.array([base]), found, there)[0])
    outcome = np.array([(g.random() < likely) * 1.0])
    rows, told = told_of(world, g, outcome, found, there)
    spent = spent_on(g, outcome, there, np.ones(1, bool))
    return _Row(
        recall=recall,
        shown=tuple(shown),
        task=task,
        chance=likely,
        base=float(base),
        outcome=float(outcome[0]),
        told=float(rows["outcome"][0]) if told[0] else float("nan"),
        true=bool(rows["true"][0]),
        judged=float(rows["judged"][0]),
        confidence=float(rows["confidence"][0]),
        steps=int(spent["steps"][0]),
        tokens=int(spent["tokens"][0]),
        cost=float(spent["cost"][0]),
    )


def _learn(bank: ReasoningBank, recall: lessonbank.Recall, row: _Row) -> None:
    if np.isnan(row.told):
        return
    run = Trajectory(
        task=recall.task,
        steps=tuple(Step(action=f"step {n}", observation="seen") for n in range(row.steps)),
        answer="Done.",
        usage=Usage(requests=row.steps, input_tokens=row.tokens, cost=row.cost),
        metadata={"judged": row.judged, "confidence": row.confidence} if not np.isnan(row.judged) else {},
    )
    if not np.isnan(row.judged):
        bank.learn(run, recall=recall)
    if row.true:
        bank.learn(run, recall=recall, outcome="success" if row.outcome else "failure")


async def _as_planted(run: Trajectory, /) -> Verdict:
    """The verdict that was planted with the run."""
    said, sure = run.metadata["judged"], run.metadata["confidence"]
    assert isinstance(sure, float)
    return Verdict(outcome="success" if said else "failure", confidence=sure, reason="planted", model="simulated:judge")


async def _no_lessons(_attempts: Sequence[Run], /) -> Extraction:
    """The lessons are planted; runs add none."""
    return Extraction()


def _driven(rows: Sequence[_Row]) -> Driven:
    return Driven(
        recalls=tuple(row.recall for row in rows),
        shown=tuple(row.shown for row in rows),
        task=np.array([row.task for row in rows], np.int64),
        outcome=np.array([row.outcome for row in rows]),
        told=np.array([not np.isnan(row.told) for row in rows], bool),
        true=np.array([row.true for row in rows], bool),
        chance=np.array([row.chance for row in rows]),
        chance_of_nothing=np.array([row.base for row in rows]),
    )

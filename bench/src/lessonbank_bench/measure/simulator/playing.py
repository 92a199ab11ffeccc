"""Episodes of a world under a design: who is shown what at random, what comes of it, and what is told of that."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import TypeAlias

import numpy as np

from .chances import Situations, chance, first, situations
from .columns import Episodes, Flags, Floats, Ints
from .growing import Columns, Growing, Table
from .world import Judging, World

_BLOCK = 4096
_BEGAN = 1_767_225_600.0
"""2026, in seconds since 1970; an episode a minute."""
_STEPS = 4.0
_MORE_STEPS = {"success": 8.0, "failure": 10.4}
"""On average, beyond the first few; a run that fails goes on for longer."""
_TOKENS = {"step": 900.0, "lesson": 120.0}
_COST = 3e-6
_SECONDS = 4.0

Review: TypeAlias = "Callable[[Episodes], Standing]"


@dataclass(frozen=True, eq=False)
class Standing:
    """What holds for the next recalls."""

    withhold: Floats
    """The probability with which each lesson is withheld, shape (N,)."""
    control: float
    """The probability with which a whole recall is withheld."""
    retired: Flags
    """Which lessons are not found any more, shape (N,)."""

    @classmethod
    def of(cls, lessons: int, /, *, withhold: float | Floats = 0.0, control: float = 0.0) -> Standing:
        """Nothing retired, and the same probability for all lessons unless each has its own."""
        return cls(np.full(lessons, withhold, float), control, np.zeros(lessons, bool))

    def over(self, lessons: int, start: Standing, /) -> Standing:
        """The same for more lessons than it names: those that follow stand as they did at the start."""
        named = min(len(self.withhold), lessons)
        withhold, retired = start.withhold.copy(), start.retired.copy()
        withhold[:named], retired[:named] = self.withhold[:named], self.retired[:named]
        return Standing(withhold, self.control, retired)


@dataclass(frozen=True, eq=False)
class Hidden:
    """What nobody in the world can see, one row per episode in the order of time."""

    row: Ints
    """Where the episode is in `Episodes`; -1 where nothing was found, so that there is no recall to speak of."""
    task: Ints
    outcome: Floats
    """What truly happened."""
    with_nothing: Floats
    """What would have happened without memory, the rest of chance being the same."""
    with_everything: Floats
    """What would have happened with all that a bank finds which never retires and never withholds."""
    chance: Floats
    """The probability of success under what was shown."""
    chance_of_nothing: Floats
    chance_of_everything: Floats


@dataclass(frozen=True, eq=False)
class Run:
    """Episodes as a ledger sees them, and the truth behind them."""

    episodes: Episodes
    hidden: Hidden
    standings: tuple[Standing, ...] = ()
    """What held, review by review; the first is the start."""

    @property
    def when(self) -> Ints:
        """The number of the episode of each row of `episodes`: its row in `hidden`."""
        number = np.empty(len(self.episodes), np.int64)
        recalled = np.flatnonzero(self.hidden.row >= 0)
        number[self.hidden.row[recalled]] = recalled
        return number


def simulate(world: World, episodes: int, /, *, withhold: float | Floats, control: float, seed: int) -> Episodes:
    """Episodes under a fixed design, as `play` makes them, without the truth behind them."""
    return play(world, episodes, withhold=withhold, control=control, seed=seed).episodes


def play(world: World, episodes: int, /, *, withhold: float | Floats, control: float, seed: int) -> Run:
    """Episodes under a fixed design. Two runs with one seed meet the same tasks, candidates and luck.

    Args:
        world: what is planted.
        episodes: how many tasks come up.
        withhold: the probability with which each lesson found is withheld: one number, or one per lesson, shape (N,).
        control: the probability with which a whole recall is withheld.
        seed: of tasks, searches, draws, outcomes, verdicts.
    """
    return stream(
        world,
        episodes,
        None,
        every=_BLOCK,
        start=Standing.of(world.lessons, withhold=withhold, control=control),
        seed=seed,
    )


def stream(
    world: World, episodes: int, review: Review | None, /, *, every: int = 50, start: Standing | None = None, seed: int
) -> Run:
    """Episodes under a design that follows what they teach: after each `every`, `review` says what holds next.

    The review sees all episodes whose outcome is known, without copies: it must not write to them, and must not keep
    them. Those whose outcome is never told are put last when the stream has ended. How much chance is used up does not
    depend on the design, so two policies with one seed and one `every` meet the same tasks, candidates and luck.

    Args:
        world: what is planted.
        episodes: how many tasks come up.
        review: from the episodes so far to what holds next; `None`: the start holds throughout.
        every: episodes between two reviews.
        start: what holds first; by default each lesson is withheld with 0.1 and nothing else.
        seed: of tasks, searches, draws, outcomes, verdicts.
    """
    standing = start or Standing.of(world.lessons, withhold=0.1)
    stage, standings = Stage(world, episodes, seed=seed), [standing]
    while stage.played < episodes:
        stage.go(standing, min(every, episodes - stage.played))
        if review is not None and stage.played < episodes:
            standing = review(stage.seen())
            standings.append(standing)
    return stage.end(standings)


@dataclass(frozen=True, eq=False)
class Block:
    """Some episodes on end: columns of shape (n,), and of shape (n, k) for the lessons found."""

    rows: Columns
    pairs: Table
    hidden: Columns
    told: Flags
    """Whose outcome becomes known."""
    recalled: Flags
    """For which anything was found."""


class Stage:
    """Where episodes are played one block after another, and kept."""

    def __init__(self, world: World, capacity: int, /, *, seed: int) -> None:
        self.world, self.played = world, 0
        self._g, self._kept = np.random.default_rng((seed, 1)), Growing(capacity, world.candidates)
        self._blocks: list[Block] = []

    def go(self, standing: Standing, n: int, /) -> Block:
        """Play the next n episodes."""
        block = _block(self.world, self._g, n, standing, start=self.played)
        number = np.full(n, -1)
        seen = block.recalled & block.told
        number[seen] = self._kept.filled + np.arange(self._kept.append(block.rows, block.pairs, seen))
        block.hidden["row"] = number
        self._blocks.append(block)
        self.played += n
        return block

    def seen(self, lessons: int | None = None) -> Episodes:
        """The episodes whose outcome is known, with the names of the first `lessons` or of all."""
        judges = ("judge",) if self.world.judge else ()
        return self._kept.view(lessons=self.world.names[:lessons], judges=judges)

    def end(self, standings: Sequence[Standing], /, *, lessons: int | None = None) -> Run:
        """All of it, those without an outcome last."""
        for block in self._blocks:
            rest = block.recalled & ~block.told
            block.hidden["row"][rest] = self._kept.filled + np.arange(self._kept.append(block.rows, block.pairs, rest))
        names = [f.name for f in fields(Hidden)]
        hidden = Hidden(**{name: np.concatenate([b.hidden[name] for b in self._blocks]) for name in names})
        return Run(self.seen(lessons), hidden, tuple(standings))


def _block(world: World, g: np.random.Generator, n: int, standing: Standing, *, start: int) -> Block:
    number = start + np.arange(n)
    came = situations(world, g, number)
    found, placed = came.found, came.placed
    if standing.retired.any():
        found, placed = first(came.race, world.candidates, out=standing.retired)
    probability = standing.withhold[found]
    withheld = (g.random(found.shape) < probability) & placed
    control = g.random(n) < standing.control
    shown = placed & ~withheld & ~control[:, None]
    hidden = _hidden(world, g, came, found, shown)
    rows, told = told_of(world, g, hidden["outcome"], found, shown)
    rows |= spent_on(g, hidden["outcome"], shown, told)
    rows |= {
        "control": control,
        "control_probability": np.full(n, standing.control),
        "cluster": _clusters(world, came.task, number),
        "at": _BEGAN + 60.0 * number,
    }
    cites = np.zeros(world.lessons) if world.cited is None else world.cited
    cited = shown & told[:, None] & (g.random(found.shape) < cites[found])
    pairs = {"lesson": found, "withheld": withheld, "probability": probability, "cited": cited, "placed": placed}
    return Block(rows, pairs, hidden, told, placed.any(axis=1))


def _hidden(world: World, g: np.random.Generator, came: Situations, found: Ints, shown: Flags) -> Columns:
    luck, nothing = g.random(len(found)), np.clip(came.base, *world.bounds)
    now = chance(world, came.task, came.base, found, shown)
    everything = chance(world, came.task, came.base, came.found, came.placed)
    return {
        "task": came.task,
        "outcome": (luck < now) * 1.0,
        "with_nothing": (luck < nothing) * 1.0,
        "with_everything": (luck < everything) * 1.0,
        "chance": now,
        "chance_of_nothing": nothing,
        "chance_of_everything": everything,
    }


def told_of(world: World, g: np.random.Generator, outcome: Floats, found: Ints, shown: Flags) -> tuple[Columns, Flags]:
    """What becomes known of each run, and of which anything does."""
    n, quiet = len(outcome), world.silence
    told = np.ones(n, bool)
    if quiet.success or quiet.failure:
        told = g.random(n) >= np.where(outcome > 0, quiet.success, quiet.failure)
    if world.judge is None:
        nobody = {"judged": np.full(n, np.nan), "confidence": np.full(n, np.nan), "judge": np.full(n, -1)}
        return {"outcome": np.where(told, outcome, np.nan), "true": told, **nobody}, told
    fooling = (world.harmful[found] & shown).sum(axis=1) * world.judge.fooled
    judged, confidence = _verdicts(world.judge, g, outcome, bare=~shown.any(axis=1), fooling=fooling)
    audited = told & (g.random(n) < world.judge.audited)
    return {
        "outcome": np.where(told, np.where(audited, outcome, judged), np.nan),
        "true": audited,
        "judged": np.where(told, judged, np.nan),
        "confidence": np.where(told, confidence, np.nan),
        "judge": np.where(told, 0, -1),
    }, told


def _verdicts(
    judge: Judging, g: np.random.Generator, outcome: Floats, *, bare: Flags, fooling: Floats
) -> tuple[Floats, Floats]:
    """What the judge says, and how sure it is: surer when right, by a known law (.5 + .5 u^(1/4) against .5 + .5 u)."""
    errs = np.where(
        outcome > 0,
        _either(bare, judge.bare_false_failure, judge.false_failure),
        _either(bare, judge.bare_false_success, judge.false_success) + fooling,
    )
    wrong, sure = g.random(len(outcome)) < errs, g.random(len(outcome))
    return np.where(wrong, 1.0 - outcome, outcome), 0.5 + 0.5 * np.where(wrong, sure, sure**0.25)


def _either(bare: Flags, there: float | None, else_: float) -> Floats:
    return np.where(bare, else_ if there is None else there, else_)


def spent_on(g: np.random.Generator, outcome: Floats, shown: Flags, told: Flags) -> Columns:
    """Steps, geometric and longer when the run fails; tokens with the steps and the text shown."""
    more = np.where(outcome > 0, _MORE_STEPS["success"], _MORE_STEPS["failure"])
    steps = _STEPS + np.ceil(g.standard_exponential(len(outcome)) / -np.log1p(-1.0 / more))
    tokens = steps * _TOKENS["step"] + shown.sum(axis=1) * _TOKENS["lesson"]
    known = np.where(told, 1.0, np.nan)
    return {
        "steps": steps * known,
        "tokens": tokens * known,
        "cost": tokens * known * _COST,
        "seconds": steps * known * _SECONDS,
    }


def _clusters(world: World, task: Ints, number: Ints) -> Ints:
    if world.grouping == "episode":
        return number
    return task if world.grouping == "task" else world.tasks.template[task]

"""A loop that draws its lessons from its own runs: what a judge gets wrong comes back as advice."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from .columns import Episodes, Flags, Floats, Ints
from .counting import counters
from .playing import Block, Review, Run, Stage, Standing
from .world import Judging, Scatter, World


@dataclass(frozen=True, slots=True, kw_only=True)
class Minting:
    """Where lessons come from, and what they are worth by the verdict they were drawn under."""

    families: int = 5
    base: tuple[float, float] = (0.25, 0.75)
    """The range of success rates without memory."""
    candidates: int = 4
    """How many lessons of its family a task finds, each as likely as any other."""
    rate: float = 0.1
    """The probability that a run gives a lesson."""
    room: int = 8
    """Lessons that a family holds at a time; while it is full, none is drawn from its runs. Retiring makes room."""
    most: int = 400
    """Lessons in the whole stream; none is drawn after."""
    size: float = 0.12
    """What a helpful lesson adds to the success rate of its family, and a harmful one takes away."""
    right_helps: float = 0.6
    """The share of helpful lessons among those of correctly judged runs; `right_harms` of harmful ones."""
    right_harms: float = 0.05
    wrong_helps: float = 0.05
    """The same among those of wrongly judged runs: what failed is recommended, or what worked is warned of."""
    wrong_harms: float = 0.7


@dataclass(frozen=True, eq=False)
class Minted:
    """A stream, and the lessons that came up in it."""

    run: Run
    effect: Floats
    """What each lesson adds, shape (L,), in the order in which they were drawn."""
    misled: Flags
    """Which were drawn from a wrongly judged run, shape (L,)."""
    born: Ints
    """The episode each was drawn from, shape (L,)."""
    retired: Flags
    """Which stood retired at the end, shape (L,)."""

    def success(self, *, last: float = 0.25) -> float:
        """The expected success rate in the last part of the stream."""
        return _tail(self.run.hidden.chance, last)

    def without(self, *, last: float = 0.25) -> float:
        """The expected success rate of the same tasks without memory."""
        return _tail(self.run.hidden.chance_of_nothing, last)


def mint(
    seed: int,
    /,
    *,
    episodes: int = 10_000,
    terms: Minting | None = None,
    flips: float = 0.3,
    audited: float = 0.0,
    judge: Judging | None = None,
    review: Review | None = None,
    every: int = 50,
    start: Standing | None = None,
    oracle: bool = False,
) -> Minted:
    """An agent that learns as it goes: each `every` episodes, lessons of the runs since then become candidates.

    Two loops with one seed meet the same tasks and luck, whatever the labels and the policy, so that the difference of
    their `success` has little noise.

    Args:
        seed: of the families and of everything that happens.
        episodes: how many tasks come up.
        terms: where lessons come from and what they are worth.
        flips: the share of verdicts that are wrong, either way; 0 is perfect labels, told as the truth.
        audited: the share of runs whose truth is told.
        judge: another judge than `flips` and `audited` describe.
        review: what holds next, from the episodes so far, whose `lessons` are the lessons so far; lessons it does not
            name stand as at the start. `None`: everything is shown, always.
        every: episodes between two reviews.
        start: what holds for a lesson at first, in its first entry of each array; by default it is shown always.
        oracle: retire what harms as soon as it is drawn: the bound for everything that retires.
    """
    terms = terms or Minting()
    judge = judge or Judging(false_success=flips, false_failure=flips, audited=audited if flips else 1.0)
    loop = _Loop(seed, episodes, terms, judge, start or Standing.of(1), oracle=oracle)
    while loop.stage.played < episodes:
        loop.go(min(every, episodes - loop.stage.played))
        if review is not None and loop.born and loop.stage.played < episodes:
            loop.standing = review(loop.stage.seen(len(loop.born)))
            loop.standings.append(loop.standing)
    return loop.end()


def pruning(*, after: int = 20, below: float = 0.8) -> Review:
    """A naive policy: everything is shown, but a lesson goes once it was shown `after` times and tasks then succeeded
    less often than `below` times the average of all."""

    def review(episodes: Episodes) -> Standing:
        pairs, lessons = episodes.pairs, len(episodes.lessons)
        shown = np.bincount(pairs.lesson[~pairs.withheld & ~episodes.control[pairs.row]], minlength=lessons)
        poor = (
            counters(episodes) < below * float(np.mean(episodes.outcome)) if len(episodes) else np.zeros(lessons, bool)
        )
        return replace(Standing.of(lessons), retired=poor & (shown >= after))

    return review


class _Loop:
    """The state of a loop: lessons enter the world as they are drawn."""

    def __init__(
        self, seed: int, episodes: int, terms: Minting, judge: Judging, start: Standing, /, *, oracle: bool
    ) -> None:
        self._oracle = oracle
        self._terms, self._g = terms, np.random.default_rng((seed, 4))
        self._world = _empty_world(seed, terms, judge)
        self.stage = Stage(self._world, episodes, seed=seed)
        self._start = Standing.of(terms.most, withhold=float(start.withhold[0]), control=start.control)
        self.standing, self.standings = self._start, [self._start]
        self.born: list[int] = []
        self._family, self._misled = np.full(terms.most, -1), np.zeros(terms.most, bool)

    def go(self, n: int, /) -> None:
        """Play n episodes, then take in what was drawn from them."""
        standing = self._standing()
        retired = standing.retired | (np.arange(self._terms.most) >= len(self.born))
        played, block = self.stage.played, self.stage.go(replace(standing, retired=retired), n)
        draws = self._g.random((n, 2))
        for row in np.flatnonzero((draws[:, 0] < self._terms.rate) & block.told):
            self._enter(block, int(row), float(draws[row, 1]), played, standing.retired)

    def end(self) -> Minted:
        """All of it."""
        lessons = len(self.born)
        run = self.stage.end(self.standings, lessons=lessons)
        return Minted(
            run=run,
            effect=self._world.tasks.effect[0, :lessons].copy(),
            misled=self._misled[:lessons],
            born=np.array(self.born, np.int64),
            retired=self._standing().retired[:lessons],
        )

    def _standing(self) -> Standing:
        standing = self.standing.over(self._terms.most, self._start)
        if not self._oracle:
            return standing
        return replace(standing, retired=standing.retired | (self._world.tasks.effect[0] < 0))

    def _enter(self, block: Block, row: int, luck: float, played: int, retired: Flags) -> None:
        terms, lesson, tasks = self._terms, len(self.born), self._world.tasks
        family = int(tasks.family[tasks.template[block.hidden["task"][row]]])
        if lesson == terms.most or ((self._family == family) & ~retired).sum() >= terms.room:
            return
        wrong = bool(block.rows["outcome"][row] != block.hidden["outcome"][row])
        helps = terms.wrong_helps if wrong else terms.right_helps
        harms = terms.wrong_harms if wrong else terms.right_harms
        tasks.effect[:, lesson] = terms.size * ((luck < helps) * 1.0 - (luck >= 1.0 - harms) * 1.0)
        self._world.hurdle[family, lesson] = 1.0
        self._family[lesson], self._misled[lesson] = family, wrong
        self.born.append(played + row)


def _empty_world(seed: int, terms: Minting, judge: Judging) -> World:
    """Families without lessons: room for all that may come, none of which does anything or can be found."""
    return World.draw(
        seed,
        lessons=terms.most,
        families=terms.families,
        helpful=0.0,
        harmful=0.0,
        base=terms.base,
        off_topic=0.0,
        scatter=Scatter(),
        candidates=terms.candidates,
        judge=judge,
        grouping="episode",
    ).without_lessons()


def _tail(rates: Floats, last: float) -> float:
    return float(rates[-max(1, round(last * len(rates))) :].mean())

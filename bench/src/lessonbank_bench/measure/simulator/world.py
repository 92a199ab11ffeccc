"""A world whose truth is planted: what tasks there are, what each lesson does to them, and how all of it is seen."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from .columns import Flags, Floats, Ints

Grouping = Literal["template", "task", "episode"]
HELPFUL, NULL, HARMFUL, CONDITIONAL, PAIRED = "helpful", "null", "harmful", "conditional", "paired"


@dataclass(frozen=True, slots=True, kw_only=True)
class Judging:
    """A judge who errs, and for how many of its verdicts the truth becomes known besides."""

    false_success: float = 0.1
    """The probability of calling a failed run a success."""
    false_failure: float = 0.1
    """The probability of calling a successful run a failure."""
    bare_false_success: float | None = None
    """The same where the agent was shown nothing; `None`: no different."""
    bare_false_failure: float | None = None
    fooled: float = 0.0
    """What each harmful lesson that was shown adds to the probability of calling a failed run a success: bad advice
    that makes a run look good. Without audits nothing can tell such a lesson from one that does no harm."""
    audited: float = 0.0
    """The share of recalls for which the truth is told too, drawn at random."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Silence:
    """Outcomes that are never told: the probability after a success and after a failure. Equal: at random."""

    success: float = 0.0
    failure: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Scatter:
    """How the templates of a family and their tasks differ from it."""

    templates: int = 1
    """Per family."""
    tasks: int = 1
    """Per template; each comes again and again."""
    difficulty: float = 0.0
    """Standard deviation of a template's base success rate around its family's; half of it for a task's."""
    effects: float = 0.0
    """Standard deviation of a lesson's effect in a template around its effect in the family, each lesson apart."""


@dataclass(frozen=True, eq=False)
class Families:
    """Kinds of tasks. F families, N lessons."""

    share: Floats
    """Popularity, shape (F,), sums to 1."""
    base: Floats
    """Success rate without memory, shape (F,)."""
    effect: Floats
    """What a lesson adds to the success rate when it is shown, shape (F, N)."""
    weight: Floats
    """How readily a lesson is found for a task of the family, shape (F, N): 1 at home, little elsewhere."""
    phase: Floats
    """Where in its swing each family begins, shape (F,), in turns."""


@dataclass(frozen=True, eq=False)
class Tasks:
    """The tasks there are: K of them, of T templates."""

    share: Floats
    """Popularity, shape (K,)."""
    base: Floats
    """Success rate without memory and without drift, shape (K,)."""
    template: Ints
    """Shape (K,)."""
    family: Ints
    """Of each template, shape (T,)."""
    effect: Floats
    """Of each lesson in each template, shape (T, N)."""
    habit: Floats
    """What decides which lessons are found when a task's search gives what it always gives, shape (K, N)."""


@dataclass(frozen=True, eq=False)
class World:
    """Everything that decides an episode besides chance and the design. Drawn by `World.draw` or `World.credit`."""

    families: Families
    tasks: Tasks
    kinds: tuple[str, ...]
    """What was planted for each lesson: helpful, null, harmful, conditional, paired."""
    scatter: Scatter = Scatter()
    synergy: Floats | None = None
    """What two lessons add when both are shown, shape (N, N), symmetric, nothing on the diagonal; `None`: nothing."""
    cited: Floats | None = None
    """How often an agent names the lesson it was shown, shape (N,); unrelated to what it does. `None`: never."""
    candidates: int = 4
    """How many lessons a search finds."""
    fresh: float = 1.0
    """The share of searches with noise of their own; the others find what this task always finds."""
    drift: float = 0.0
    """How far base rates swing up and down, each family in its own phase."""
    period: int = 2000
    """Episodes in one swing."""
    judge: Judging | None = None
    """`None`: the truth is told for every run, and no judge is asked."""
    silence: Silence = Silence()
    grouping: Grouping = "template"
    """What shares a cluster number: runs of one template, of one task, or none."""
    bounds: tuple[float, float] = (0.02, 0.98)
    """Success rates stay within."""

    @property
    def lessons(self) -> int:
        """N."""
        return len(self.kinds)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """An id for each lesson."""
        return tuple(f"lesson-{n}" for n in range(self.lessons))

    @cached_property
    def harmful(self) -> Flags:
        """Which lessons do harm wherever they are shown, shape (N,)."""
        return np.array([kind == HARMFUL for kind in self.kinds], bool)

    @cached_property
    def cumulative(self) -> Floats:
        """Popularity of the tasks, summed up, shape (K,)."""
        return np.cumsum(self.tasks.share)

    @cached_property
    def hurdle(self) -> Floats:
        """One over the weight of each lesson in each family: what divides a draw in the race to be found, (F, N)."""
        with np.errstate(divide="ignore"):
            return (1.0 / self.families.weight).astype(np.float32)

    def renewed(self, seed: int, /, *, templates: int | None = None) -> World:
        """The same families and lessons with new templates and tasks: another sample of the same population.

        An interval that allows for clusters speaks of all the templates there could be. Redraw them for each
        replication, and take the truth of a world with many, `world.renewed(seed, templates=5000)`.
        """
        scatter = self.scatter if templates is None else replace(self.scatter, templates=templates)
        return replace(self, tasks=_tasks(self.families, scatter, np.random.default_rng((seed, 3))), scatter=scatter)

    def without_lessons(self) -> World:
        """The same families with lessons that are never found, until `hurdle` is lowered for them."""
        families = replace(self.families, weight=np.zeros_like(self.families.weight))
        return replace(self, families=families, cited=None)

    @classmethod
    def draw(
        cls,
        seed: int,
        /,
        *,
        lessons: int = 30,
        families: int = 5,
        helpful: float = 0.2,
        harmful: float = 0.2,
        conditional: float = 0.0,
        paired: float = 0.0,
        size: float = 0.15,
        base: tuple[float, float] = (0.25, 0.75),
        off_topic: float = 0.02,
        scatter: Scatter | None = None,
        candidates: int = 4,
        fresh: float = 1.0,
        drift: float = 0.0,
        period: int = 2000,
        judge: Judging | None = None,
        silence: Silence | None = None,
        grouping: Grouping = "template",
    ) -> World:
        """A world from a seed.

        Args:
            seed: everything follows from it.
            lessons: how many there are; each is at home in one family, in turn.
            families: kinds of tasks; base rates even in `base`, popularity from Dirichlet(2).
            helpful: the share that adds `size` wherever it is shown; `harmful` takes as much away.
            conditional: the share that is found in two families, adds `size` in one and takes it away in the other.
            paired: the share that does nothing alone; two of a family add `size` together (or, every second pair, take
                it away).
            size: of a planted effect, in probability.
            base: the range of base success rates.
            off_topic: how readily a lesson is found outside its family, where it is 1 at home.
            scatter: templates and tasks; by default 20 templates of 3 tasks in each family, 0.1 apart in difficulty.
            candidates, fresh, drift, period, judge, silence, grouping: as the fields say.
        """
        g = np.random.default_rng(seed)
        kinds = _kinds(g, lessons, helpful=helpful, harmful=harmful, conditional=conditional, paired=paired)
        kind, scatter = np.array(kinds), scatter or Scatter(templates=20, tasks=3, difficulty=0.1)
        home = np.arange(lessons) % families
        told = Families(
            base=g.uniform(*base, families),
            share=g.dirichlet(np.full(families, 2.0)),
            effect=_effects(kind, home, families, size),
            weight=_weights(kind, home, families, off_topic),
            phase=g.random(families),
        )
        return cls(
            families=told,
            tasks=_tasks(told, scatter, g),
            kinds=kinds,
            scatter=scatter,
            synergy=_synergy(kind, home, size),
            cited=g.uniform(0.1, 0.9, lessons),
            candidates=min(candidates, lessons),
            fresh=fresh,
            drift=drift,
            period=period,
            judge=judge,
            silence=silence or Silence(),
            grouping=grouping,
        )

    @classmethod
    def credit(
        cls,
        seed: int,
        /,
        *,
        lessons: int = 30,
        judge: Judging | None = None,
        silence: Silence | None = None,
        grouping: Grouping = "episode",
    ) -> World:
        """The plainest world in which counting misleads: how hard a task is decides which lessons it meets.

        A fifth of the lessons adds 15 points, a fifth takes 15 away, the others do nothing; a family for every six
        lessons, 4 candidates, no templates. Each episode is a task of its own unless `grouping` says otherwise.
        """
        return cls.draw(
            seed,
            lessons=lessons,
            families=max(2, lessons // 6),
            scatter=Scatter(),
            judge=judge,
            silence=silence,
            grouping=grouping,
        )


def _kinds(
    g: np.random.Generator, lessons: int, *, helpful: float, harmful: float, conditional: float, paired: float
) -> tuple[str, ...]:
    named = (HELPFUL, helpful), (HARMFUL, harmful), (CONDITIONAL, conditional), (PAIRED, paired)
    told = [kind for kind, share in named for _ in range(round(share * lessons))][:lessons]
    order, kinds = g.permutation(lessons), np.full(lessons, NULL, dtype=object)
    kinds[order[: len(told)]] = told
    return tuple(str(kind) for kind in kinds)


def _effects(kind: np.ndarray, home: Ints, families: int, size: float) -> Floats:
    effect = np.zeros((families, len(kind)))
    effect[:, kind == HELPFUL], effect[:, kind == HARMFUL] = size, -size
    either = np.flatnonzero(kind == CONDITIONAL)
    effect[home[either], either] = size
    effect[(home[either] + 1) % families, either] = -size
    return effect


def _weights(kind: np.ndarray, home: Ints, families: int, off_topic: float) -> Floats:
    weight = np.where(np.arange(families)[:, None] == home, 1.0, off_topic)
    either = np.flatnonzero(kind == CONDITIONAL)
    weight[(home[either] + 1) % families, either] = 1.0
    return weight


def _synergy(kind: np.ndarray, home: Ints, size: float) -> Floats | None:
    paired = np.flatnonzero(kind == PAIRED)
    if not len(paired):
        return None
    synergy, sign = np.zeros((len(kind), len(kind))), 1.0
    for family in np.unique(home[paired]):
        there = paired[home[paired] == family]
        for one, other in zip(there[::2], there[1::2], strict=False):
            synergy[one, other] = synergy[other, one] = sign * size
            sign = -sign
    return synergy


def _tasks(families: Families, scatter: Scatter, g: np.random.Generator) -> Tasks:
    kinds, lessons = families.effect.shape
    family = np.repeat(np.arange(kinds), scatter.templates)
    of_templates = g.dirichlet(np.full(scatter.templates, 2.0), kinds).ravel() * families.share[family]
    base = families.base[family] + g.normal(0.0, 1.0, len(family)) * scatter.difficulty
    template = np.repeat(np.arange(len(family)), scatter.tasks)
    own = g.normal(0.0, 0.5, len(template)) * scatter.difficulty * (scatter.tasks > 1)
    effect = families.effect[family]
    if scatter.effects:
        effect = effect + g.normal(0.0, scatter.effects, effect.shape)
    return Tasks(
        share=of_templates[template] / scatter.tasks,
        base=np.clip(base[template] + own, 0.02, 0.98),
        template=template,
        family=family,
        effect=effect,
        habit=g.standard_exponential((len(template), lessons), dtype=np.float32),
    )

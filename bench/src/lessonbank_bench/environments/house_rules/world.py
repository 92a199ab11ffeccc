"""Three repositories with conventions that nobody wrote down, drawn from a seed: nothing here touches a disk.

Every organisation, every repository and every kind of change has two conventions of its own, of the four kinds that
can be an organisation's, a repository's or a kind's. A task meets six of them. Names and numbers are drawn anew for
every task; what one task teaches holds for others of the same organisation, repository or kind, and for no more.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from lessonbank_bench.environments.repo_desk.world import KINDS, Code

from .conventions import RULES, Ask, Convention, Owner

ORGANISATIONS: Mapping[str, tuple[str, ...]] = {
    "Marlow": ("Orchard Pricing", "Tide Tables"),
    "Quince": ("Harbour Lights",),
}
ASKED = ("add a function", "set a constant", "remove an option")
"""The kinds of change, of those that `repo_desk` knows."""
_OF_EACH = 2
_NAMES = 3
_NUMBERS = range(100, 1000)
_LONGEST = 400
"""Tasks of a stream in which the one with a goal is looked for."""


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository as everybody sees it."""

    organisation: str
    name: str
    code: Code


@dataclass(frozen=True, slots=True)
class Task:
    """What the agent is asked, and what nobody tells it."""

    repository: Repository
    kind: str
    id: str
    name: str
    number: int
    conventions: tuple[Convention, ...]
    """In the order in which the reviewer looks."""

    @property
    def goal(self) -> str:
        """The task as text: all that a memory is given."""
        wanted = KINDS[self.kind].format(name=self.name, number=self.number)
        return f"In {self.repository.organisation}'s {self.repository.name}, {wanted}, for task {self.id}."

    @property
    def ask(self) -> Ask:
        """What its conventions are about."""
        return Ask(self.id, self.name)

    @property
    def wanted(self) -> Code:
        """What `core.py` defines once the change is made, no more and no less."""
        code = self.repository.code
        if self.kind == "add a function":
            return replace(code, functions={**code.functions, self.name: self.number})
        if self.kind == "set a constant":
            return replace(code, constants={**code.constants, self.name: self.number})
        return replace(code, options=tuple(option for option in code.options if option != self.name))


@dataclass(frozen=True, slots=True)
class World:
    """The repositories, and who has which conventions."""

    repositories: Mapping[str, Repository]
    conventions: Mapping[str, tuple[Convention, ...]]
    """By the name of an organisation, a repository or a kind of change."""
    later: tuple[Convention, ...]
    """What the first organisation wants instead, once it has changed its mind."""


@lru_cache(maxsize=64)
def world(seed: int, /) -> World:
    """World `seed`; the same on every machine."""
    draw = random.Random(f"house-rules world {seed}")
    names = [(organisation, name) for organisation, names in ORGANISATIONS.items() for name in names]
    repositories = {name: Repository(organisation, name, _code(draw)) for organisation, name in names}
    conventions = {name: _drawn(draw, "organisation", name) for name in ORGANISATIONS}
    conventions |= {name: _drawn(draw, "repository", name) for name in repositories}
    conventions |= {kind: _drawn(draw, "kind", kind) for kind in ASKED}
    return World(repositories, conventions, _changed(draw, conventions[next(iter(ORGANISATIONS))]))


@lru_cache(maxsize=256)
def stream(seed: int, length: int, changes_at: int, /) -> tuple[Task, ...]:
    """`length` tasks drawn evenly; from `changes_at` on (0: never) the first organisation wants something else."""
    draw, drawn = random.Random(f"house-rules stream {seed}"), world(seed)
    tasks: list[Task] = []
    while len(tasks) < length:
        repository, kind = draw.choice(tuple(drawn.repositories.values())), draw.choice(ASKED)
        changed = bool(changes_at) and len(tasks) >= changes_at
        tasks.append(_task(draw, repository, kind, _met(drawn, repository, kind, changed=changed)))
    return tuple(tasks)


def truth(seed: int, goal: str, changes_at: int, /) -> str:
    """What a perfect memory would say for a goal of this stream."""
    task = next(task for task in stream(seed, _LONGEST, changes_at) if task.goal == goal)
    return "\n".join(f"- {convention.sentence}" for convention in task.conventions)


def _met(drawn: World, repository: Repository, kind: str, *, changed: bool) -> tuple[Convention, ...]:
    """All that a task is subject to: what the reviewer does not talk about stands last, the rest is mixed."""
    owners = (repository.organisation, repository.name, kind)
    met = [convention for owner in owners for convention in drawn.conventions[owner]]
    if changed:
        later = {convention.rule: convention for convention in drawn.later}
        first = drawn.later[0].owner
        met = [later.get(one.rule, one) if one.owner == first else one for one in met]
    random.Random(f"{repository.name} {kind}").shuffle(met)
    return tuple(sorted(met, key=lambda convention: convention.silent))


def _drawn(draw: random.Random, owner: Owner, name: str) -> tuple[Convention, ...]:
    rules = draw.sample([rule for rule, one in RULES.items() if one.owner == owner], _OF_EACH)
    return tuple(Convention(rule, name, draw.choice(RULES[rule].values)) for rule in rules)


def _changed(draw: random.Random, before: tuple[Convention, ...]) -> tuple[Convention, ...]:
    one = draw.choice(before)
    value = draw.choice([value for value in RULES[one.rule].values if value != one.value])
    return (replace(one, value=value),)


def _code(draw: random.Random) -> Code:
    first, second, third = (draw.sample(_NUMBERS, _NAMES) for _ in range(3))
    return Code(
        {f"fn_{number}": draw.choice(_NUMBERS) for number in first},
        {f"k_{number}": draw.choice(_NUMBERS) for number in second},
        tuple(f"op_{number}" for number in third),
    )


def _task(draw: random.Random, repository: Repository, kind: str, conventions: tuple[Convention, ...]) -> Task:
    code = repository.code
    id = f"{repository.organisation[:2].upper()}-{draw.choice(_NUMBERS)}"
    number = draw.choice(_NUMBERS)
    free = draw.choice([f"fn_{n}" for n in _NUMBERS if f"fn_{n}" not in code.functions])
    names = {
        "add a function": free,
        "set a constant": draw.choice(tuple(code.constants)),
        "remove an option": draw.choice(code.options),
    }
    return Task(repository, kind, id, names[kind], number, conventions)

"""Small repositories with hidden conventions, drawn from a seed: nothing here touches a disk.

Five repositories of two organisations are asked for four kinds of change. What is asked for is easy and is checked
too; whether a change is accepted depends on three conventions:

* the folder of change notes belongs to the organisation: what one repository teaches holds in the others;
* the script that brings generated files up to date belongs to the repository and the kind of change;
* the prefix of a commit's subject belongs to the repository and is silent: git takes any, only the verifier knows.

Names and numbers are drawn anew for every task, so repeating an earlier run by rote is worth nothing.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

ORGANISATIONS: Mapping[str, tuple[str, ...]] = {
    "Marlow": ("Orchard Pricing", "Tide Tables", "Parcel Index"),
    "Quince": ("Harbour Lights", "Meadow Census"),
}
KINDS: Mapping[str, str] = {
    "add a function": "add a function `{name}` that returns {number}",
    "rename a function": "rename the function `{name}` to `{other}`",
    "set a constant": "set the constant `{name}` to {number}",
    "remove an option": "remove the option `{name}`",
}
"""Each kind of change, and how it is asked for."""
FOLDERS = ("news", "changes", "history", "record", "ledger", "updates", "summary", "digest")
"""Below `docs/`; six of them in each repository."""
SCRIPTS = ("freeze", "index", "stamp", "bundle", "render", "sync", "pin", "census")
"""Below `dev/`; six of them in each repository."""
PREFIXES = ("ENH", "MNT", "REL")
_OF_EACH = 6
_NUMBERS = range(100, 1000)


@dataclass(frozen=True, slots=True)
class Code:
    """What a repository's `core.py` defines."""

    functions: Mapping[str, int]
    """What each returns."""
    constants: Mapping[str, int]
    options: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository as everybody sees it, and what it wants, which nobody is told."""

    organisation: str
    name: str
    code: Code
    folders: tuple[str, ...]
    scripts: tuple[str, ...]
    folder: str
    """Where change notes go."""
    script: Mapping[str, str]
    """By kind of change."""
    prefix: str


@dataclass(frozen=True, slots=True)
class Task:
    """What the agent is asked."""

    repository: Repository
    kind: str
    id: str
    name: str
    other: str = ""
    number: int = 0

    @property
    def goal(self) -> str:
        """The task as text: all that the agent and the memory are given."""
        wanted = KINDS[self.kind].format(name=self.name, other=self.other, number=self.number)
        return f"In {self.repository.organisation}'s {self.repository.name}, {wanted}, for task {self.id}."

    @property
    def script(self) -> str:
        """The script that this change needs."""
        return self.repository.script[self.kind]

    @property
    def wanted(self) -> Code:
        """What `core.py` defines once the change is made, no more and no less."""
        code = self.repository.code
        if self.kind == "add a function":
            return replace(code, functions={**code.functions, self.name: self.number})
        if self.kind == "rename a function":
            renamed = {self.other if name == self.name else name: value for name, value in code.functions.items()}
            return replace(code, functions=renamed)
        if self.kind == "set a constant":
            return replace(code, constants={**code.constants, self.name: self.number})
        return replace(code, options=tuple(option for option in code.options if option != self.name))


@lru_cache(maxsize=64)
def world(seed: int, /) -> Mapping[str, Repository]:
    """The repositories of world `seed` by name; the same seed gives the same world on every machine."""
    draw = random.Random(f"repo-desk world {seed}")
    made: dict[str, Repository] = {}
    for organisation, names in ORGANISATIONS.items():
        folder = draw.choice(FOLDERS)
        for name in names:
            made[name] = _repository(draw, organisation, name, folder)
    return made


def stream(seed: int, length: int, /) -> tuple[Task, ...]:
    """`length` tasks drawn evenly over repositories and kinds of change."""
    draw = random.Random(f"repo-desk stream {seed}")
    repositories = tuple(world(seed).values())
    return tuple(_task(draw, draw.choice(repositories), draw.choice(tuple(KINDS))) for _ in range(length))


def truth(seed: int, goal: str, /) -> str:
    """What a perfect memory would say for a goal of this world."""
    repository = next(repo for repo in world(seed).values() if f" {repo.name}, " in goal)
    kind = next(kind for kind, asked in KINDS.items() if f", {asked.split('`')[0]}`" in goal)
    told = (
        f"Step 3: `docs/{repository.folder}`; step 4: `dev/{repository.script[kind]}`; step 5: `{repository.prefix}`."
    )
    return f"For the task: {goal}\n{told}"


def _repository(draw: random.Random, organisation: str, name: str, folder: str) -> Repository:
    folders = [folder, *draw.sample([other for other in FOLDERS if other != folder], _OF_EACH - 1)]
    scripts = draw.sample(SCRIPTS, _OF_EACH)
    numbers = draw.sample(_NUMBERS, 3 * _OF_EACH)
    first, second, third = (numbers[at::3] for at in range(3))
    code = Code(
        {f"fn_{number}": draw.choice(_NUMBERS) for number in first},
        {f"k_{number}": draw.choice(_NUMBERS) for number in second},
        tuple(f"op_{number}" for number in third),
    )
    return Repository(
        organisation,
        name,
        code,
        tuple(sorted(folders)),
        tuple(sorted(scripts)),
        folder,
        {kind: draw.choice(scripts) for kind in KINDS},
        draw.choice(PREFIXES),
    )


def _task(draw: random.Random, repository: Repository, kind: str) -> Task:
    code = repository.code
    id = f"{repository.organisation[:2].upper()}-{draw.choice(_NUMBERS)}"
    number = draw.choice(_NUMBERS)
    free = [f"fn_{n}" for n in _NUMBERS if f"fn_{n}" not in code.functions]
    if kind == "add a function":
        return Task(repository, kind, id, draw.choice(free), number=number)
    if kind == "rename a function":
        return Task(repository, kind, id, draw.choice(tuple(code.functions)), other=draw.choice(free))
    if kind == "set a constant":
        return Task(repository, kind, id, draw.choice(tuple(code.constants)), number=number)
    return Task(repository, kind, id, draw.choice(code.options))

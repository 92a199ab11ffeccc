"""A closed world with hidden conventions, so that learning from one's own runs can be measured without a model.

Five sites of two vendors offer eight operations each. Every form hides an order of two controls and one choice:

* the first control belongs to the vendor: what one site teaches holds on the vendor's other sites;
* the second belongs to the site and the operation: nothing but that very form teaches it;
* the choice belongs to the site and is silent: the form says "Saved." whatever is chosen, and only the verifier
  knows whether it was right. Nobody learns it from looking at the page.

A goal names its site in four words and its operation in two or three, so that what is close in words is mostly close
in convention, as with the names of real sites. Record ids are drawn anew for every task, so repeating an earlier run
by rote is worth nothing.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

BUDGET = 8
VENDORS: Mapping[str, tuple[str, ...]] = {
    "Larkfield": ("Garden Shop Admin", "Parcel Returns Desk", "Fleet Service Map"),
    "Osmund": ("Shared Repo Hub", "Member Forum Board"),
}
OPERATIONS = (
    "approve a credit note",
    "retire a listing",
    "split a batch",
    "extend a lease",
    "restore a backup",
    "transfer a ticket",
    "publish a notice",
    "void a coupon",
)
LABELS = ("Unlock", "Validate", "Stamp", "Reconcile", "Countersign", "Requeue", "Freeze", "Annotate")
CHOICES = ("Standard", "Expedited", "Deferred")
SUBMIT = "Submit"
_CONTROLS_PER_FORM = 6


@dataclass(frozen=True, slots=True)
class Form:
    """One operation on one site: the controls it shows and what it wants, which nobody is told."""

    labels: tuple[str, ...]
    order: tuple[str, str]
    choice: str


@dataclass(frozen=True, slots=True)
class Task:
    """What the agent is asked."""

    vendor: str
    site: str
    operation: str
    record: str

    @property
    def goal(self) -> str:
        """The task as text: all that the agent and the memory are given."""
        return f"On the {self.vendor} site {self.site}, {self.operation} for record {self.record}."


@dataclass(frozen=True, slots=True)
class World:
    """One draw of all conventions."""

    seed: int
    forms: Mapping[tuple[str, str], Form]
    """By (site, operation)."""

    def form(self, task: Task, /) -> Form:
        """The form `task` is done on."""
        return self.forms[task.site, task.operation]


@dataclass(frozen=True, slots=True)
class View:
    """Everything an agent sees: the goal, the last message, the labels of the controls."""

    goal: str
    message: str
    controls: tuple[str, ...]


def world(seed: int, /) -> World:
    """The conventions of world `seed`; the same seed gives the same world on every machine."""
    draw = random.Random(f"desk world {seed}")
    forms: dict[tuple[str, str], Form] = {}
    for sites in VENDORS.values():
        first = draw.choice(LABELS)
        for site in sites:
            choice = draw.choice(CHOICES)
            for operation in OPERATIONS:
                others = draw.sample([label for label in LABELS if label != first], _CONTROLS_PER_FORM - 1)
                labels = [first, *others]
                draw.shuffle(labels)
                forms[site, operation] = Form(tuple(labels), (first, draw.choice(others)), choice)
    return World(seed, forms)


def stream(seed: int, length: int, /) -> tuple[Task, ...]:
    """`length` tasks drawn evenly over sites and operations, each about a new record."""
    draw = random.Random(f"desk stream {seed}")
    places = [(vendor, site) for vendor, sites in VENDORS.items() for site in sites]
    tasks: list[Task] = []
    for _ in range(length):
        vendor, site = draw.choice(places)
        operation = draw.choice(OPERATIONS)
        tasks.append(Task(vendor, site, operation, f"{draw.choice('ABCDEFGH')}-{draw.randint(100, 999)}"))
    return tuple(tasks)


def truth(place: World, goal: str, /) -> str:
    """What a perfect memory would say for a goal of this world."""
    site, operation = next(key for key in place.forms if f" site {key[0]}, {key[1]} for record " in goal)
    form = place.forms[site, operation]
    first, second = form.order
    return f"For the task: {goal}\nStep 2: `{first}`; step 3: `{second}`; step 4: `{form.choice}`."


class Desk:
    """One task being done: press a control, read the message, at most `budget` times."""

    def __init__(self, world: World, task: Task, /, *, budget: int = BUDGET) -> None:
        self._form = world.form(task)
        self._task = task
        self._left = budget
        self._opened = False
        self._passed = 0
        self._choice: str | None = None

    def reset(self) -> View:
        """The page as it is first seen. A desk is used once."""
        return self._view("Page loaded.")

    def step(self, control: str, /) -> tuple[View, float, bool]:
        """Press `control`: what is seen then, the verifier's reward (1.0 or 0.0), and whether the task is over."""
        self._left -= 1
        if control == SUBMIT and self._opened:
            return self._submit()
        return self._view(self._press(control)), 0.0, self._left <= 0

    @property
    def _ready(self) -> bool:
        return self._passed == len(self._form.order)

    def _view(self, message: str) -> View:
        choices = CHOICES if self._ready else ()
        controls = (f"Open {self._task.record}", *self._form.labels, *choices, SUBMIT)
        return View(self._task.goal, message, controls)

    def _press(self, control: str) -> str:
        if control == f"Open {self._task.record}":
            self._opened = True
            return "Record opened."
        if not self._opened:
            return "No record is open."
        if self._ready and control in CHOICES:
            self._choice = control
            return f"{control} chosen."
        if not self._ready and control == self._form.order[self._passed]:
            self._passed += 1
            return f"{control} accepted." + (" The form is ready: choose how, then submit." if self._ready else "")
        return "Nothing happened."

    def _submit(self) -> tuple[View, float, bool]:
        if not self._ready or self._choice is None:
            return self._view("Rejected: the form is not ready."), 0.0, True
        return self._view("Saved."), float(self._choice == self._form.choice), True

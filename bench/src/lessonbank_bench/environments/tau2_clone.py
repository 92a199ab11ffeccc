"""The user's copy of tau2-bench: telecom tasks, policy and gym, found and checked before a task is played."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from importlib import import_module
from inspect import signature
from typing import Any, NamedTuple

from lessonbank.errors import UsageError
from lessonbank.guard import one_line

from .user_clones import module_of, version_of

GENERATED = "generated"
"""Tasks composed by tau2's own code, for a copy without its task files."""
DOMAIN = "telecom"
_INSTALL = (
    "in a clone of github.com/sierra-research/tau2-bench run `pip install -e '.[gym]'` "
    "(the package `tau2` on PyPI is another program)"
)
_needed = partial(module_of, environment="tau2", needs="tau2-bench", install=_INSTALL)
_MANAGERS = (
    ("mobile_data_issues", "mobile_data_task_manager"),
    ("service_issues", "service_issues_task_manager"),
    ("mms_issues", "mms_issue_task_manager"),
)
_ENDED = ("agent_stop", "user_stop")
_ID = re.compile(r"\[([^\]]+)\]([^\[]*)")
_MANUAL = re.compile(r"\s*<tech_support_policy>.*</tech_support_policy>", re.S)


class Telecom:
    """The telecom domain in solo mode.

    Args:
        tasks: a split of its tasks (`base`, `train`, `test`, `small`, `full`), or `generated`.
        withhold: leaves the manual of technical support out of the policy.

    Raises:
        UsageError: tau2-bench, its data or the split is not here.
    """

    def __init__(self, tasks: str, /, *, withhold: bool) -> None:
        self._gym = _needed("tau2.gym.gym_agent")
        self._registry = _needed("tau2.registry").registry
        _quiet()
        self.version = version_of("tau2")
        self.policy = _policy(self._registry, withhold=withhold)
        self._tasks = _generated() if tasks == GENERATED else _in_any_order(_published(self._registry, tasks))

    def tasks(self, seed: int, n: int, /) -> Sequence[Any]:
        """The first `n` tasks (tau2's own objects) in the order of a seed."""
        return self._tasks(seed, n)

    def open(self, task: Any, /, *, steps: int) -> Any:
        """An `AgentGymEnv` for the task. It is handed the task: tau2 would read all of them anew at each step.

        tau2 counts an action and its answer as two steps; its limit is put out of the way of `steps`.
        """

        def its_task(_: Any) -> Any:
            return task.model_copy(deep=True)

        given = type("GivenTask", (self._gym.AgentGymEnv,), {"_get_task": its_task})
        return given(domain=DOMAIN, task_id=task.id, solo_mode=True, max_steps=2 * steps + 2)


class End(NamedTuple):
    """How a task ended."""

    reward: float
    error: str | None
    """What stopped it, where the agent did not."""


def end_of(reward: float, info: Mapping[str, Any], /) -> End:
    """Read off the answer to the last step.

    Raises:
        RuntimeError: tau2's own code broke off, so that nothing was judged.
    """
    if not info["simulation_run"]:
        raise RuntimeError("tau2's orchestrator broke off: nothing was judged")
    reason = str(json.loads(info["simulation_run"]).get("termination_reason", ""))
    return End(float(reward), None if reason in _ENDED else f"stopped by tau2: {one_line(reason, limit=100)}")


def issue_and_faults(task_id: str, /) -> tuple[str, str]:
    """What an id says: `[issue]fault|fault[PERSONA:…]`."""
    found = _ID.match(task_id)
    return (found[1], found[2]) if found else (DOMAIN, task_id)


class _Composed(NamedTuple):
    manager: Any
    task: Any

    @property
    def bin(self) -> tuple[str, int]:
        """What the published tasks are balanced over: the issue, and how many faults there are."""
        return str(self.manager.name), len(self.task.composed_from)

    @property
    def name(self) -> str:
        return f"{self.manager.name} {self.task.name}"


def _generated() -> Callable[[int, int], Sequence[Any]]:
    """Every combination of faults that tau2 knows, made into a task when it is its turn."""
    compose = _needed("tau2.domains.telecom.tasks.utils").compose_tasks
    managers = [getattr(_needed(f"tau2.domains.telecom.tasks.{place}"), name) for place, name in _MANAGERS]
    all_ = [
        _Composed(manager, task)
        for manager in managers
        for task in compose(manager.selection_sets, manager.task_validator)
        if task.composed_from
    ]

    @cache
    def make(at: int) -> Any:
        return all_[at].manager.create_task(all_[at].task)

    def tasks(seed: int, n: int) -> Sequence[Any]:
        return [make(at) for at in _balanced(seed, all_)[:n]]

    return tasks


def _balanced(seed: int, composed: Sequence[_Composed]) -> list[int]:
    """Places in `composed`, one of each bin in turn."""
    order = list(range(len(composed)))
    random.Random(f"tau2 {seed}").shuffle(order)
    taken: dict[tuple[str, int], int] = {}
    ranks: dict[int, int] = {}
    for at in order:
        ranks[at] = taken[composed[at].bin] = taken.get(composed[at].bin, -1) + 1
    return sorted(order, key=lambda at: ranks[at])


def _in_any_order(published: Sequence[Any]) -> Callable[[int, int], Sequence[Any]]:
    def tasks(seed: int, n: int) -> Sequence[Any]:
        order = list(published)
        random.Random(f"tau2 {seed}").shuffle(order)
        return order[:n]

    return tasks


def _published(registry: Any, split: str) -> Sequence[Any]:
    """The tasks of a split that have a ticket: without one nobody can work alone."""
    load = registry.get_tasks_loader(DOMAIN)
    try:
        tasks = load(split) if signature(load).parameters else _of_split(registry, load(), split)
    except FileNotFoundError as missing:
        raise UsageError(
            f"tau2's telecom tasks are not on file ({one_line(str(missing.filename))}): "
            f'copy them from its repository, or set tasks = "{GENERATED}"'
        ) from missing
    except (KeyError, ValueError) as wrong:
        raise UsageError(f"environment 'tau2' has no tasks {split!r}: {one_line(str(wrong), limit=200)}") from wrong
    return [task for task in tasks if task.ticket]


def _of_split(registry: Any, tasks: Sequence[Any], split: str) -> Sequence[Any]:
    """For releases whose loader takes no split."""
    splits = registry.get_task_splits_loader(DOMAIN)
    named = (splits() if splits else None) or {"base": [task.id for task in tasks]}
    if split not in named:
        raise ValueError(f"its splits are {', '.join(named)}")
    return [task for task in tasks if task.id in set(named[split])]


def _policy(registry: Any, *, withhold: bool) -> str:
    try:
        policy = str(registry.get_env_constructor(DOMAIN)(solo_mode=True).get_policy())
    except OSError as missing:
        raise UsageError(
            f"tau2's data are not here ({one_line(str(missing.filename))}): "
            "set TAU2_DATA_DIR to the folder `data` of its clone"
        ) from missing
    if not withhold:
        return policy
    shorter = _MANUAL.sub("", policy)
    if shorter == policy:
        raise UsageError("this tau2's policy has no part <tech_support_policy>: set withhold_manual = false")
    return shorter


def _quiet() -> None:
    """It logs every step of every task to the terminal."""
    with suppress(ImportError):
        import_module("loguru").logger.disable("tau2")

"""Lets an agent and a verifier of the caller's own be plain functions, and holds them to what they promise."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeAlias, cast

from anyio import CapacityLimiter, to_thread

from lessonbank._base.aio import PerLoop
from lessonbank._base.checks import is_async, is_instance, kind, short_repr, signature
from lessonbank.errors import UsageError

from .records import Outcome, Trajectory

AnyAgent: TypeAlias = Callable[..., Awaitable[object] | object]
"""The agent: `(task, memory)`, and any of `seed=`, `check=` and `previous=` that it takes; gives a `Trajectory` or its
messages. Async or not."""
Verifier: TypeAlias = Callable[[Trajectory], "Awaitable[Outcome | float | bool] | Outcome | float | bool"]
"""The environment's own check of a run: success or not, or a score from 0 to 1. Async or not."""

_OUTCOMES: dict[str, Outcome] = {"success": "success", "failure": "failure", "unknown": "unknown"}


def as_awaitable(function: Callable[..., Any], /, *, threads: int = 8) -> Callable[..., Awaitable[Any]]:
    """`function` as something to await. One that is not async runs in one of its own `threads`: it holds up nobody."""
    if is_async(function):
        return function
    slots = PerLoop(partial(CapacityLimiter, threads))

    async def waited(*args: object, **keywords: object) -> object:
        answer = await to_thread.run_sync(partial(function, *args, **keywords), limiter=slots.here())
        return await cast("Awaitable[object]", answer) if inspect.isawaitable(answer) else answer

    return waited


def check_calls(agent: object, /, **others: object) -> None:
    """Refuse what cannot be called, before anything is paid for. `others` may be `None`.

    Raises:
        UsageError: no function, or an agent that does not take a task and a memory.
    """
    for name, function in others.items():
        if function is not None and not callable(function):
            raise UsageError(f"{name}= takes a function, not {kind(function)}")
    if not callable(agent):
        raise UsageError(f"the agent must be a function of (task, memory); got {kind(agent)}")
    if (takes := signature(agent)) is None:
        return
    try:
        takes.bind("task", "memory", **dict.fromkeys(taken(agent, "seed", "check", "previous")))
    except TypeError as error:
        raise UsageError(
            f"the agent is called as agent(task, memory), and this one does not accept that: {error}"
        ) from error


def taken(function: Callable[..., Any], /, *names: str) -> tuple[str, ...]:
    """Return the `names` that the function declares as parameters."""
    takes = signature(function)
    if takes is None:
        return ()
    parameters = takes.parameters
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return tuple(name for name in names if name in parameters and parameters[name].kind in by_name)


def stated(answer: object, /) -> tuple[Outcome | None, float | None]:
    """What a verifier said, as an outcome or as a reward from 0 to 1.

    Raises:
        UsageError: it said something else.
    """
    text = str.__str__(answer) if is_instance(answer, str) else ""
    if text in _OUTCOMES:
        return _OUTCOMES[text], None
    if is_instance(answer, bool):
        return ("success" if answer else "failure"), None
    try:
        value = -1.0 if is_instance(answer, str) else float(cast("float", answer))
    except Exception:  # noqa: BLE001 - whatever a number of somebody's own raises
        value = -1.0
    if not 0.0 <= value <= 1.0:
        raise UsageError(
            f"verify= gives a bool, a number from 0 to 1, or an outcome such as 'success'; not {short_repr(answer)}"
        )
    return None, value

"""`trial`: the same tasks with and without memory, done by an agent of the caller's own, until it is clear."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from lessonbank._base.checks import short_path, short_repr
from lessonbank.errors import UsageError

from . import _options as options
from ._bank import opened
from ._ids import lesson_id
from ._output import progress_bar, show_json, show_text

if TYPE_CHECKING:
    from lessonbank.trials import Trial

_FUNCTION = "MODULE:FUNCTION"


@options.takes_retrieve_options
def trial(
    bank: options.Bank,
    scope: options.Scope,
    tasks: Annotated[Path, typer.Option("--tasks", help="A task on each line: its text, or JSON with `task`.")],
    agent: Annotated[
        str, typer.Option("--agent", metavar=_FUNCTION, help="Does a task: (task, memory) to a run or its messages.")
    ],
    verify: Annotated[
        str, typer.Option("--verify", metavar=_FUNCTION, help="Says how a run ended: success or not, or a score.")
    ],
    without: Annotated[
        str | None, typer.Option("--without", help="A lesson to leave out, instead of all memory.")
    ] = None,
    with_: Annotated[str | None, typer.Option("--with", help="A lesson to add to what is shown.")] = None,
    effect: Annotated[float, typer.Option("--effect", help="The smallest effect that matters; 0.1: ten points.")] = 0.1,
    runs: Annotated[int, typer.Option("--budget-runs", min=2, help="At most so many runs; a pair is two.")] = 400,
    cost: Annotated[float | None, typer.Option("--budget-cost", help="Stop at so many US dollars.")] = None,
    seconds: Annotated[float | None, typer.Option("--budget-seconds", help="Stop after so long.")] = None,
    rounds: Annotated[int, typer.Option("--rounds", min=1, help="How often each side may do each task.")] = 1,
    jobs: Annotated[int, typer.Option("--jobs", min=1, help="Pairs run at once.")] = 1,
    level: Annotated[float, typer.Option("--level", help="How sure the interval is: from 0.5 to below 1.")] = 0.95,
    seed: Annotated[int, typer.Option("--seed", help="Decides the order, and the luck that both runs share.")] = 0,
    as_json: options.Json = False,
    **asked: Any,
) -> None:
    """Do tasks with and without memory, in pairs, until it is clear what memory changes.

    The agent and the verifier are functions of your own; modules are looked for in the current folder too. Nothing is
    written into the bank.
    """
    settings = {"rounds": rounds, "level": level, "seed": seed, "concurrency": jobs, "min_effect": effect}
    settings |= options.given(asked)
    todo = _read(tasks)
    functions = _function(agent, "--agent"), _function(verify, "--verify")
    with opened(bank, scope) as memory, _bar() as progress:
        run: Any = memory.trial
        question = {
            "without": lesson_id(memory, without) if without else None,
            "with_": lesson_id(memory, with_) if with_ else None,
        }
        budget = {"max_runs": runs, "max_cost": cost, "max_seconds": seconds}
        trial: Trial = run(todo, functions[0], verify=functions[1], progress=progress, **question, **budget, **settings)
    if as_json:
        show_json(trial)
    else:
        show_text(str(trial))


def _read(file: Path) -> list[str]:
    """The tasks of a file. Raises UsageError."""
    try:
        lines = file.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"cannot read the tasks in {short_path(file)}: {error}") from error
    return [_task(line, number) for number, line in enumerate(lines, 1) if line.strip()]


def _task(line: str, number: int) -> str:
    """The text of a task."""
    if not line.lstrip().startswith(('{"', '"', "{ ")):
        return line.strip()
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return line.strip()  # a task may begin like JSON
    if isinstance(value, dict):
        value = cast("dict[str, object]", value).get("task")
    if not isinstance(value, str):
        raise UsageError(f"line {number} of the tasks names no task: write its text, or JSON with `task`")
    return value


def _function(name: str, option: str) -> Callable[..., Any]:
    """What `module:function` names. Raises UsageError."""
    module, colon, attribute = name.partition(":")
    if not (module and colon and attribute):
        raise UsageError(f"{option} takes module:function, as in my_agent:run; got {short_repr(name)}")
    sys.path[:0] = [here] if (here := str(Path.cwd())) not in sys.path else []
    try:
        target: Any = importlib.import_module(module)
        for part in attribute.split("."):
            target = getattr(target, part)
    except (ImportError, AttributeError, ValueError) as error:
        raise UsageError(f"{option} {short_repr(name)} cannot be loaded: {error}") from error
    return target


@contextmanager
def _bar() -> Generator[Callable[[Trial], None]]:
    """Progress on stderr, where it is a terminal."""
    with progress_bar() as bar:
        row = bar.add_task("runs", total=None)

        def show_progress(trial: Trial) -> None:
            known = "" if trial.effect is None else f" ({100 * trial.effect:+.0f} points so far)"
            bar.update(row, completed=trial.runs, total=trial.most_runs, description=f"runs{known}")

        yield show_progress

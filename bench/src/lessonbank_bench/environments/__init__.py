"""Where tasks are done: the environments there are, by name, each loaded when it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import cast

from lessonbank.contracts.ports import LanguageModel
from lessonbank.errors import UsageError
from lessonbank.guard import one_line

from .interface import ANEW as ANEW
from .interface import Environment as Environment
from .interface import Finished as Finished
from .interface import Job as Job
from .interface import Memories as Memories
from .interface import Settings as Settings
from .memories import ArmMemories as ArmMemories

ENVIRONMENTS: Mapping[str, str] = {
    "agentdojo": "agentdojo:AgentDojoEnvironment",
    "desk": "desk:DeskEnvironment",
    "desk-browser": "desk_browser:DeskBrowserEnvironment",
    "house-rules": "house_rules:HouseRulesEnvironment",
    "mind2web": "mind2web:Mind2WebEnvironment",
    "miniwob": "miniwob:MiniwobEnvironment",
    "null": "null:NullEnvironment",
    "repo-desk": "repo_desk:RepoDeskEnvironment",
    "scienceworld": "scienceworld:ScienceWorldEnvironment",
    "swebench": "swebench:SweBenchEnvironment",
    "tau-bench": "tau_bench:TauBenchEnvironment",
    "tau2": "tau2:Tau2Environment",
    "webarena": "webarena:WebArenaEnvironment",
}
"""By name, the module of this package and the class."""


def environment(name: str, model: LanguageModel | None = None, settings: Settings | None = None, /) -> Environment:
    """The environment of that name; `model` acts in it, and judges and distils for its memories.

    Raises:
        UsageError: there is none, it has no such setting, or something it needs is not here; the message says what.
        MissingExtra: a package that it needs is not installed.
    """
    check_name(name)
    module, _, made = ENVIRONMENTS[name].partition(":")
    make = getattr(import_module(f"{__name__}.{module}"), made)
    return cast("Callable[[LanguageModel | None, Settings | None], Environment]", make)(model, settings)


def check_name(name: str, /) -> None:
    """Raises:
    UsageError: no environment has this name.
    """
    if name not in ENVIRONMENTS:
        told = ", ".join(ENVIRONMENTS)
        raise UsageError(f"there is no environment {one_line(name, limit=60)!r}; there are {told}")

"""WebArena, wherever the user has its sites: browsergym-webarena's tasks, logins and graders, one bank per site."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import cast

from lessonbank.contracts.ports import LanguageModel
from lessonbank.errors import UsageError
from lessonbank.guard import clean

from .browser_agent import ACTIONS, Browsing, Surfer, actions, browse, look
from .chromium import Browser, Setup, check_packages, find_chromium, gym_version
from .interface import Finished, Job, Settings
from .memories import ArmMemories
from .settings import refuse_others, told
from .webarena_tasks import (
    SITES,
    WebTask,
    browser_task,
    check_addresses,
    check_grader,
    check_tokenizer,
    of_site,
    published,
    read_tasks,
)

MOST_STEPS = 30
"""Of the paper (appendix B.1)."""
_SLOW = 30
"""Milliseconds after each call to the browser, as in the paper's runs."""
_SETTLE = 0.5
_SETTINGS = ("site", "max_steps", "temperature", "fuzzy", "infeasible", "reset", "configs", "chromium")


class WebArenaEnvironment:
    """The tasks of one site by ascending number, the same for every seed.

    Settings: `site` (shopping, shopping_admin, reddit, gitlab, map or multi), `max_steps` (30), `temperature` (0.0;
    the paper acts at 0.7), `fuzzy` (true: tasks that an OpenAI model grades are done too), `infeasible` (true: the
    agent may report that a task cannot be done), `reset` (false; true resets all sites before every attempt, by
    WA_FULL_RESET, some five minutes each), `configs` (a file of tasks in the published format), `chromium`.
    """

    name = "webarena"

    def __init__(self, model: LanguageModel | None = None, settings: Settings | None = None, /) -> None:
        refuse_others(self.name, settings, _SETTINGS)
        self._model = _acting(model)
        self._site = _site(told(self.name, settings, "site", ""))
        check_packages(self.name, ("browsergym.webarena", "webarena", "playwright"), extra="webarena")
        self._reset = told(self.name, settings, "reset", False)
        check_addresses(reset=self._reset)
        self._tasks = _chosen(self._site, settings)
        check_tokenizer()
        self._steps = told(self.name, settings, "max_steps", MOST_STEPS)
        self._temperature = told(self.name, settings, "temperature", 0.0)
        self._actions = (*ACTIONS, "send_msg_to_user")
        if told(self.name, settings, "infeasible", True):
            self._actions += ("report_infeasible",)
        self._browser = Browser(find_chromium(self.name, told(self.name, settings, "chromium", "")), slow=_SLOW)
        packages = f"browsergym-webarena {version('browsergym-webarena')}, libwebarena {version('libwebarena')}"
        self.version = f"webarena, {gym_version()}, {packages}, agent {self._model.name}"
        self.memories = ArmMemories(f"{self.name}/{self._site}", model, domain="web")

    def tasks(self, seed: int, n: int, /) -> Sequence[Job]:
        """The first `n` of the site, or all there are: order is part of the published protocol, so no seed draws it."""
        return [
            Job(f"webarena/{seed}/{task.id}", seed, clean(task.intent), f"template {task.template}", self._site, task)
            for task in self._tasks[:n]
        ]

    def agent(self, seed: int, /, *, anew: bool) -> Surfer:
        """The model; what chance it has is its own."""
        return Browsing(self._model, actions(*self._actions), temperature=self._temperature)

    def attempt(self, task: Job, agent: Surfer, memory: str, /) -> Finished:
        """Log in, go to the first page, act; the site keeps what was changed, unless `reset` is set."""
        if self._reset:
            import_module("browsergym.webarena.instance").WebArenaInstance().full_reset(skip_if_not_set=False)
        content = cast("WebTask", task.content)
        made = partial(browser_task, task=content)
        setup = Setup(made, actions(*self._actions), offline=False, settle=_SETTLE)
        return browse(self._browser.episode(setup, 0), agent, task, memory, most=self._steps, see=look)

    def close(self) -> None:
        """Ends the browser."""
        self._browser.close()


def _acting(model: LanguageModel | None) -> LanguageModel:
    if model is None:
        raise UsageError("environment 'webarena' needs a model to act: set model = 'provider:model' in the experiment")
    return model


def _site(named: str) -> str:
    if named not in SITES:
        raise UsageError(f"environment 'webarena' needs site in [settings], one of {', '.join(SITES)}; got {named!r}")
    return named


def _chosen(site: str, settings: Settings | None) -> tuple[WebTask, ...]:
    configs = told("webarena", settings, "configs", "")
    tasks = of_site(read_tasks(Path(configs) if configs else published()), site)
    if told("webarena", settings, "fuzzy", True):
        check_grader(tasks, site)
    else:
        tasks = tuple(task for task in tasks if not task.fuzzy)
    if not tasks:
        raise UsageError(f"environment 'webarena' has no task of {site!r} in {configs or 'its package'!r}")
    return tasks

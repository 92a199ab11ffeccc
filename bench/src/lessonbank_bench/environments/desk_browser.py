"""The closed world in a real browser: the same tasks, rules, agents and rewards as `desk`, seen as a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from importlib import import_module
from pathlib import Path
from typing import Any, cast

from lessonbank.contracts.ports import LanguageModel
from lessonbank.demo import desk
from lessonbank.demo.agents import Agent
from lessonbank.demo.runner import played

from .chromium import Browser, Episode, Setup, check_packages, find_chromium, gym_version
from .desk import agent_of, job, player, truth
from .interface import Finished, Job, Settings
from .memories import ArmMemories
from .settings import refuse_others, told

PAGE = Path(__file__).with_name("desk_page.html")
_PAGE_VERSION = 1


class DeskBrowserEnvironment:
    """See `lessonbank.demo.desk`: what an agent sees is read off the accessibility tree, a press is a click.

    Settings: `chromium`, the browser's executable.
    """

    name = "desk-browser"

    def __init__(self, model: LanguageModel | None = None, settings: Settings | None = None, /) -> None:
        refuse_others(self.name, settings, ("chromium",))
        check_packages(self.name, ("browsergym.core", "playwright"))
        self._browser = Browser(find_chromium(self.name, told(self.name, settings, "chromium", "")))
        self._model = model
        self.version = f"desk-browser {_PAGE_VERSION}, {gym_version()}, {player(model)}"
        self.memories = ArmMemories(self.name, model, truth=truth)

    def tasks(self, seed: int, n: int, /) -> Sequence[Job]:
        """Those of `desk`."""
        return [job(self.name, seed, place, task) for place, task in enumerate(desk.stream(seed, n))]

    def agent(self, seed: int, /, *, anew: bool) -> Agent:
        """The model, or the scripted agent."""
        return agent_of(self._model, seed, anew=anew)

    def attempt(self, task: Job, agent: Agent, memory: str, /) -> Finished:
        """About one and a half seconds."""
        asked = cast("desk.Task", task.content)
        form = desk.world(task.seed).form(asked)
        episode = self._browser.episode(Setup(lambda seed: _task(seed, asked, form), settle=0.0), 0)
        with closing(episode):
            return Finished(*played(_Screen(episode, asked), agent, memory))

    def close(self) -> None:
        """Ends the browser."""
        self._browser.close()


class _Screen:
    """The page of one task, as the view that agents of the desk know."""

    def __init__(self, episode: Episode, task: desk.Task, /) -> None:
        self._episode, self._task = episode, task
        self._marks: Mapping[str, str] = {}
        self._elsewhere = ""

    def reset(self) -> desk.View:
        return self._view(self._episode.begin())

    def step(self, control: str, /) -> tuple[desk.View, float, bool]:
        """A control that is not there is a click beside those that are."""
        mark = self._marks.get(control, self._elsewhere)
        seen = self._episode.act(f"click({mark!r})")
        return self._view(seen.observation), seen.reward, seen.over

    def _view(self, observation: Mapping[str, Any]) -> desk.View:
        nodes = cast("list[dict[str, Any]]", observation["axtree_object"]["nodes"])
        self._marks = {_name(node): str(node["browsergym_id"]) for node in nodes if _role(node) == "button"}
        self._elsewhere = next(str(node["browsergym_id"]) for node in nodes if _role(node) == "heading")
        return desk.View(self._task.goal, _message(nodes), tuple(self._marks))


def _message(nodes: Sequence[Mapping[str, Any]]) -> str:
    status = next(node for node in nodes if _role(node) == "status")
    inside = set(cast("list[str]", status["childIds"]))
    return "".join(_name(node) for node in nodes if node["nodeId"] in inside and _role(node) == "StaticText")


def _role(node: Mapping[str, Any]) -> str:
    return str(node["role"]["value"])


def _name(node: Mapping[str, Any]) -> str:
    return str(node.get("name", {}).get("value", ""))


def _task(seed: int, task: desk.Task, form: desk.Form) -> Any:
    """The task as BrowserGym wants it: a subclass of a class that is there only where BrowserGym is."""
    base = import_module("browsergym.core.task").AbstractBrowserTask
    return type("DeskTask", (_DeskTask, base), {})(seed, task, form)


class _DeskTask:
    def __init__(self, seed: int, task: desk.Task, form: desk.Form) -> None:
        super().__init__(seed)  # type: ignore[call-arg] - of BrowserGym's class
        self.viewport, self.slow_mo, self.timeout = {"width": 640, "height": 360}, 0, 5000
        self._task, self._form = task, form

    def setup(self, page: Any) -> tuple[str, dict[str, Any]]:
        page.goto(PAGE.as_uri())
        page.evaluate("told => begin(told)", what_the_page_is_told(self._task, self._form))
        return self._task.goal, {}

    def validate(self, page: Any, chat_messages: object) -> tuple[float, bool, str, dict[str, Any]]:
        over, saved, chosen = page.evaluate("() => [over, saved, chosen]")
        return float(saved and chosen == self._form.choice), bool(over), "", {}


def what_the_page_is_told(task: desk.Task, form: desk.Form, /) -> dict[str, Any]:
    """Everything but the choice that is right: that never leaves Python."""
    return {
        "title": f"{task.vendor}: {task.site}",
        "open": f"Open {task.record}",
        "labels": list(form.labels),
        "order": list(form.order),
        "choices": list(desk.CHOICES),
        "submit": desk.SUBMIT,
        "budget": desk.BUDGET,
    }

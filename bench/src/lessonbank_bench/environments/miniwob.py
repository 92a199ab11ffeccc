"""MiniWoB++: small pages with one thing to do on each, through BrowserGym; good for wiring, poor for memory gains."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from functools import partial
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

from lessonbank.contracts.ports import LanguageModel
from lessonbank.contracts.records import Usage
from lessonbank.errors import UsageError
from lessonbank.guard import clean

from .browser_agent import ACTIONS, Browsing, Page, Surfer, actions, browse, look
from .chromium import Browser, Setup, check_packages, find_chromium, gym_version
from .interface import Finished, Job, Settings
from .memories import ArmMemories
from .settings import refuse_others, told

TASKS = (
    "choose-list",
    "click-button",
    "click-checkboxes",
    "click-link",
    "click-tab-2",
    "click-test",
    "enter-text",
    "focus-text",
    "login-user",
    "search-engine",
)
"""Those of an experiment that names none."""
READER_VERSION = "1"
"""Names the scripted agent's skill. Numbers of two versions are never compared."""
_SETTINGS = ("tasks", "max_steps", "temperature", "chromium")


class MiniwobEnvironment:
    """Tasks drawn evenly from a list of MiniWoB++'s, each about a page that its own seed draws.

    Settings: `tasks` ("click-test, enter-text", or "all"), `max_steps` (10), `temperature` (0.0), `chromium`.
    """

    name = "miniwob"

    def __init__(self, model: LanguageModel | None = None, settings: Settings | None = None, /) -> None:
        refuse_others(self.name, settings, _SETTINGS)
        check_packages(self.name, ("browsergym.core", "browsergym.miniwob", "miniwob", "playwright"))
        self._steps = told(self.name, settings, "max_steps", 10)
        self._temperature = told(self.name, settings, "temperature", 0.0)
        self._pages = _pages()
        self._see = partial(look, folder=f"{self._pages.as_uri()}/")
        self._tasks = chosen(told(self.name, settings, "tasks", ""), self._pages)
        self._browser = Browser(find_chromium(self.name, told(self.name, settings, "chromium", "")))
        self._model = model
        player = f"agent {model.name}" if model else f"scripted agent {READER_VERSION}"
        self.version = f"miniwob {version('miniwob')}, {gym_version()}, {player}"
        self.memories = ArmMemories(self.name, model, domain="web")
        self._goals: dict[tuple[str, int], str] = {}

    def tasks(self, seed: int, n: int, /) -> Sequence[Job]:
        """`n` tasks; the page alone knows what it asks for, so each is opened once, a sixth of a second."""
        draw = random.Random(f"miniwob {seed}")
        drawn = [(draw.choice(self._tasks), draw.randrange(1_000_000)) for _ in range(n)]
        unknown = [one for one in dict.fromkeys(drawn) if one not in self._goals]
        if unknown:
            self._goals |= zip(unknown, self._browser.on_a_page(partial(self._asked, unknown)), strict=True)
        return [
            Job(f"miniwob/{seed}/{place}", seed, self._goals[one], one[0], one[0].partition("-")[0], one)
            for place, one in enumerate(drawn)
        ]

    def agent(self, seed: int, /, *, anew: bool) -> Surfer:
        """The model, or a script that does the simplest tasks and takes nothing from memory."""
        if self._model is None:
            return PlainReader()
        return Browsing(self._model, actions(*ACTIONS), temperature=self._temperature)

    def attempt(self, task: Job, agent: Surfer, memory: str, /) -> Finished:
        """About a second, and what the model takes."""
        name, seed = cast("tuple[str, int]", task.content)
        episode = self._browser.episode(Setup(partial(self._made, name), actions(*ACTIONS)), seed)
        return browse(episode, agent, task, memory, most=self._steps, see=self._see)

    def close(self) -> None:
        """Ends the browser."""
        self._browser.close()

    def _asked(self, tasks: Sequence[tuple[str, int]], page: Any) -> list[str]:
        return [clean(str(self._made(name, seed).setup(page)[0]), limit=4000) for name, seed in tasks]

    def _made(self, name: str, seed: int) -> Any:
        classes = {task.subdomain: task for task in import_module("browsergym.miniwob").ALL_MINIWOB_TASKS}
        task = classes[name](seed, base_url=f"{self._pages.as_uri()}/")
        task.slow_mo = 0
        return task


def chosen(named: str, pages: Path, /) -> tuple[str, ...]:
    """The tasks of a comma list; all that have a page for `all`, and `TASKS` for nothing.

    Raises:
        UsageError: there is no page of that name.
    """
    every = sorted(page.stem for page in pages.glob("*.html"))
    if named.strip() == "all":
        return tuple(name for name in every if name in _playable())
    names = tuple(filter(None, (name.strip() for name in named.split(",")))) or TASKS
    unknown = next((name for name in names if name not in every), None)
    if unknown is not None:
        raise UsageError(f"environment 'miniwob' has no task {unknown!r}; its tasks are called like {', '.join(TASKS)}")
    return names


def _playable() -> frozenset[str]:
    """Not every page is a task: some are versions that nobody plays."""
    return frozenset(task.subdomain for task in import_module("browsergym.miniwob").ALL_MINIWOB_TASKS)


def _pages() -> Path:
    spec = find_spec("miniwob")
    folder = Path(str(spec.origin)).parent / "html" / "miniwob" if spec else Path()
    if not folder.is_dir():
        raise UsageError("environment 'miniwob' finds no pages in the package: pip install 'miniwob>=1.1'")
    return folder


_ELEMENT = re.compile(r"""\s*\[(\w+)\] (\w+)(?: '([^'\n]*)'| "([^"\n]*)")?([^\n]*)""")
_QUOTED = re.compile(r"\"([^\"]+)\"")


class PlainReader:
    """Does what a goal says in so many words: press what it names, focus the field, type what it quotes and submit.

    It sees what a model sees and nothing else. What takes more than that it does wrong, or not at all.
    """

    instructions = ""
    thought = ""
    usage = Usage()

    def start(self, memory: str, /) -> None:
        """It remembers nothing, so that what is measured here is the wiring."""

    def act(self, page: Page, /) -> str:
        found = elements(page.tree)
        fields = [one for one in found if one["role"] == "textbox"]
        quoted = _QUOTED.findall(page.goal)
        asked = page.goal.lower()
        if "focus" in asked and fields:
            return f"focus({fields[0]['mark']!r})"
        if quoted and fields and re.search(r"\b(enter|type)\b", asked):
            if quoted[0] not in fields[0]["rest"]:
                return f"fill({fields[0]['mark']!r}, {quoted[0]!r})"
            return _press(found, "Submit")
        return _press(found, quoted[0] if quoted else "")


def elements(tree: str, /) -> list[Mapping[str, str]]:
    """What a tree's lines say of the elements that can be acted upon: mark, role, name, and the rest of the line."""
    found: list[Mapping[str, str]] = []
    for element in filter(None, map(_ELEMENT.fullmatch, tree.split("\n"))):
        mark, role, single, double, rest = element.groups(default="")
        found.append({"mark": mark, "role": role, "name": single or double, "rest": rest})
    return found


def _press(found: Sequence[Mapping[str, str]], name: str) -> str:
    """The element of that name, exactly or but for case; without a name, the first button."""
    fitting = [one for one in found if one["name"] == name] if name else []
    fitting = fitting or [one for one in found if name and one["name"].lower() == name.lower()]
    if not name:
        fitting = [one for one in found if one["role"] == "button"]
    return f"click({fitting[0]['mark']!r})" if fitting else ""

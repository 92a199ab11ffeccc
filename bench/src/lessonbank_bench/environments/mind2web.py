"""Mind2Web as an environment: recorded tasks, asked step by step with what the person did before as the history.

Nothing is browsed. Whatever the model answers, the next step is the recorded one (teacher forcing), so memory can only
help by what it says, never by where the agent gets to. Data: Deng et al. 2023, CC BY 4.0, not part of this package.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Final, cast

from lessonbank.contracts.ports import LanguageModel, Message
from lessonbank.contracts.records import Step, Trajectory
from lessonbank.errors import UsageError
from lessonbank.guard import clean

from .interface import Finished, Job, Settings
from .memories import ArmMemories
from .mind2web_data import CANDIDATES, SPLITS, Asked, Recorded, Showing, data_files, fingerprint, read_ranks, tasks_of
from .mind2web_metrics import MISSED, VARIANTS, Said, StepScore, read_action, score, task_scores
from .mind2web_metrics import Averages as Averages
from .mind2web_metrics import averages as averages
from .model_agent import Speaker
from .settings import refuse_others, told

_SETTINGS: Final = ("data", "split", "scores", "variant", "candidates", "top_k", "temperature", "website", "domain")
_LOOKED: Final = 1500
"""Characters of a page in the record of a run: memory reads what was there, not every candidate."""
_PREVIOUS: Final = {"mind2web": 5, "awm": 100}
"""How many of the steps before are told: the benchmark tells five, Agent Workflow Memory all."""
RULES: Final = (
    "You carry out a task on a website, one action at a time. You are told the task, what has been done so far, and "
    "the elements of the current page that may matter: one line each, its id in square brackets first.\n"
    "There are three actions:\n"
    "CLICK [id]\n"
    "TYPE [id] [text to type]\n"
    "SELECT [id] [option to choose]\n"
    "Say in one or two sentences why, then end your reply with exactly one action, alone on the last line."
)


class Mind2WebEnvironment:
    """See docs/environments/mind2web.md for its settings.

    Raises:
        UsageError: no model, no data, or a setting that cannot be.
    """

    name = "mind2web"

    def __init__(self, model: LanguageModel | None = None, settings: Settings | None = None, /) -> None:
        refuse_others(self.name, settings, _SETTINGS)
        if model is None:
            raise UsageError("environment 'mind2web' needs a model to act: give the experiment one, `provider:model`")
        self._model = model
        self._temperature = told(self.name, settings, "temperature", 0.0)
        self._split = self._one_of(settings, "split", SPLITS)
        self._showing = self._shown(settings)
        self._files = data_files(self._data(settings), self._split)
        self._website = told(self.name, settings, "website", "")
        self._domain = told(self.name, settings, "domain", "")
        self._read: list[Recorded] = []
        self._left: Iterator[Recorded] | None = None
        self.memories = ArmMemories(self.name, model, domain="web")
        of = " ".join(name for name in (self._website, self._domain) if name)
        self.version = (
            f"mind2web 1, {self._split}{f' ({of})' if of else ''}, {self._showing.variant}, {self._showing.candidates} "
            f"{self._showing.top}, agent {model.name} at {self._temperature:g}, data {fingerprint(self._files)}"
        )

    def tasks(self, seed: int, n: int, /) -> Sequence[Job]:
        """The first `n` tasks of the split, in the order of its files for every seed; an experiment may shuffle."""
        if self._left is None:
            self._left = tasks_of(self._files, self._showing, website=self._website, domain=self._domain)
        self._read += islice(self._left, max(0, n - len(self._read)))
        if not self._read:
            raise UsageError(f"environment 'mind2web': no task of {self._split} is of this website or domain")
        return [self._job(seed, recorded) for recorded in self._read[:n]]

    def agent(self, seed: int, /, *, anew: bool) -> Speaker:
        """The model; chance is its own."""
        return Speaker(self._model, temperature=self._temperature)

    def attempt(self, task: Job, agent: Speaker, memory: str, /) -> Finished:
        """Every step of the task asked once, with memory in the instructions."""
        recorded = cast("Recorded", task.content)
        variant, previous = self._showing.variant, _PREVIOUS[self._showing.variant]
        done: list[str] = []
        scores: list[StepScore] = []
        steps = [Step(observation=_page(recorded.steps[0]))]
        for place, step in enumerate(recorded.steps):
            after = _page(recorded.steps[place + 1]) if place + 1 < len(recorded.steps) else None
            if not step.gold.right:
                scores.append(MISSED)
                steps.append(Step(observation=f"This step was not asked.\n{after or ''}".rstrip()))
            else:
                answer = agent(_prompt(recorded, step, done[-previous:], memory)).text
                said = read_action(answer)
                scores.append(score(said, step.gold, variant))
                steps.append(Step(thought=_thought(answer, said), action=_told(said, step), observation=after))
            done.append(step.done)
        missed = sum(not step.gold.right for step in recorded.steps)
        run = Trajectory(
            task=task.goal,
            instructions=RULES,
            steps=tuple(steps),
            usage=agent.usage,
            metadata={"template": task.family},
        )
        return Finished(run, all(one.right for one in scores), task_scores(scores, missed))

    def close(self) -> None:
        """Nothing is open."""

    def _job(self, seed: int, recorded: Recorded) -> Job:
        id = f"{self.name}/{self._split}/{recorded.id}"
        return Job(id, seed, recorded.task, recorded.website, recorded.domain, recorded)

    def _data(self, settings: Settings | None) -> Path:
        data = told(self.name, settings, "data", "")
        if not data:
            raise UsageError(
                "environment 'mind2web' needs the setting `data`: the folder of Mind2Web's files, which are not part "
                "of this package (how to get them: docs/environments/mind2web.md)"
            )
        return Path(data).expanduser()

    def _shown(self, settings: Settings | None) -> Showing:
        variant = self._one_of(settings, "variant", VARIANTS)
        candidates = self._one_of(settings, "candidates", CANDIDATES)
        top, scores = told(self.name, settings, "top_k", 50), told(self.name, settings, "scores", "")
        if not 2 <= top <= 200:
            raise UsageError(f"environment 'mind2web': top_k is between 2 and 200; got {top}")
        if not (math.isfinite(self._temperature) and 0 <= self._temperature <= 2):
            raise UsageError(f"environment 'mind2web': temperature is between 0 and 2; got {self._temperature:g}")
        ranks = read_ranks(Path(scores).expanduser()) if scores and candidates == "ranked" else None
        return Showing(variant, candidates, top, ranks)  # pyright: ignore[reportArgumentType] - one of the choices

    def _one_of(self, settings: Settings | None, key: str, choices: Sequence[str]) -> str:
        value = told(self.name, settings, key, choices[0])
        if value not in choices:
            raise UsageError(f"environment 'mind2web': {key} is one of {', '.join(choices)}; got {value!r}")
        return value


def _prompt(recorded: Recorded, step: Asked, done: Sequence[str], memory: str) -> list[Message]:
    history = "\n".join(f"{n}. {one}" for n, one in enumerate(done, 1)) or "(nothing yet)"
    elements = "\n".join(step.shown.values())
    asked = (
        f"Task: {recorded.task}\nWebsite: {recorded.website} ({recorded.domain}, {recorded.subdomain})\n\n"
        f"Done so far:\n{history}\n\nElements of the page:\n{elements}\n\nWhat is the next action?"
    )
    system = f"{RULES}\n\n{memory}" if memory else RULES
    return [Message(role="system", content=system), Message(role="user", content=asked)]


def _page(step: Asked) -> str:
    return clean("\n".join(step.shown.values()), limit=_LOOKED)


def _thought(reply: str, said: Said) -> str:
    text = clean(reply, limit=4000).strip().strip("`").rstrip()
    return text.removesuffix(said.text).rstrip().rstrip("`").rstrip() if said.text else text


def _told(said: Said, step: Asked) -> str:
    """The action in words that say something beside an id, which no other page has."""
    if not said.operation:
        return "(no action)"
    value = "" if said.value is None else f" [{clean(said.value, limit=200)}]"
    return f"{said.operation} {step.shown.get(said.element, f'[{clean(said.element)}]')}{value}"

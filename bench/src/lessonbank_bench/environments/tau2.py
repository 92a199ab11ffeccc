"""tau2-bench's telecom support as an environment: a ticket, tools, a verdict by assertion, and no user to ask."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from lessonbank.contracts.ports import LanguageModel
from lessonbank.contracts.records import Observation, Step, Trajectory
from lessonbank.errors import UsageError
from lessonbank.guard import clean

from .interface import Finished, Job, Settings
from .memories import ArmMemories
from .settings import refuse_others, told
from .tau2_clone import End, Telecom, end_of, issue_and_faults
from .tool_calls import FULL, NO_CALL, SEEN, Call, Caller, read_call, step_of, tools_as_text

PROMPT = "1"
"""Names the words below. Numbers of two versions are never compared."""
_RULES = (
    "You work through a support ticket on your own. You cannot speak to anybody: you only call tools. Some act on the "
    "company's systems, the others on the customer's phone, which is in your hands. Keep to the policy. End every "
    'reply with one call as a JSON object, {"name": "...", "arguments": {...}}; you are told what it returned. When '
    "the problem is solved, or the policy says that it cannot be, call `done` with no arguments."
)
_DONE = Call("done", {})
_KNOWN = ("tasks", "withhold_manual", "temperature", "max_steps")


class Tau2Environment:
    """Telecom tasks in solo mode.

    Settings: `tasks` (a split such as `base`, or `generated`), `withhold_manual` (leave the troubleshooting manual out
    of the policy, so that there is something to learn), `temperature`, `max_steps` (calls allowed for a task).
    """

    name = "tau2"

    def __init__(self, model: LanguageModel | None = None, settings: Settings | None = None, /) -> None:
        refuse_others(self.name, settings, _KNOWN)
        split = told(self.name, settings, "tasks", "base")
        withhold = told(self.name, settings, "withhold_manual", True)
        self._temperature = told(self.name, settings, "temperature", 0.0)
        self._most = told(self.name, settings, "max_steps", 100)
        if model is None:
            raise UsageError("environment 'tau2' needs a model to act: name one, such as model = 'openai:gpt-4.1'")
        self._model, self._telecom = model, Telecom(split, withhold=withhold)
        manual = "without the manual" if withhold else "with the manual"
        self.version = (
            f"tau2 {self._telecom.version}, telecom solo, {split} tasks, {manual}, {self._most} calls, "
            f"agent {model.name} at {self._temperature}, prompt {PROMPT}"
        )
        self.memories = ArmMemories(self.name, model)

    def tasks(self, seed: int, n: int, /) -> Sequence[Job]:
        """A family is a combination of faults, a group an issue (`mobile_data_issue`, `service_issue`, `mms_issue`)."""
        return [_job(seed, task) for task in self._telecom.tasks(seed, n)]

    def agent(self, seed: int, /, *, anew: bool) -> Caller:
        """The model; only its own temperature makes two of them differ."""
        return Caller(self._model, temperature=self._temperature)

    def attempt(self, task: Job, agent: Caller, memory: str, /) -> Finished:
        """About a second beside the model; the reward is tau2's own."""
        instructions = f"{_RULES}\n\n# Policy\n{self._telecom.policy}"
        steps = [Step(observation=Observation(text=task.goal, source="user"))]
        world, end = self._telecom.open(task.content, steps=self._most), None
        _, info = world.reset()
        try:
            tools = tools_as_text([tool.openai_schema for tool in info["tools"]])
            agent.start(f"{instructions}\n\n# Tools\n{tools}", memory)
            end = self._play(world, agent, task.goal, steps)
        finally:
            if end is None:
                _abandon(world)
        end = end or End(0.0, f"all {self._most} calls allowed were used")
        run = Trajectory(
            task=task.goal,
            instructions=instructions,
            steps=tuple(steps),
            error=end.error,
            usage=agent.usage,
            metadata={"template": task.family},
        )
        return Finished(run, end.reward >= FULL, {"reward": end.reward})

    def close(self) -> None:
        """Nothing stays open between tasks."""

    def _play(self, world: Any, agent: Caller, ticket: str, steps: list[Step]) -> End | None:
        """How tau2 says that it ended, if it did; the turns are added to `steps`."""
        seen = f"Ticket: {ticket}"
        for _ in range(self._most):
            reply = agent.reply(seen)
            call = read_call(reply)
            if call is None:
                steps.append(step_of(reply, None, NO_CALL, source="environment"))
                seen = NO_CALL
                continue
            seen, reward, over, _, info = world.step(call.text)
            seen = clean(seen, limit=SEEN).removeprefix("tool: ")
            steps.append(step_of(reply, call, seen, source="tool"))
            if over:
                return end_of(reward, info)
        return None


def _job(seed: int, task: Any) -> Job:
    issue, faults = issue_and_faults(task.id)
    return Job(f"tau2/{seed}/{task.id}", seed, clean(task.ticket).strip(), f"{issue}: {faults}", issue, task)


def _abandon(world: Any) -> None:
    """Closes the ticket, because tau2's thread waits for the next call for ever."""
    with suppress(Exception):  # what went wrong before this is what has to be told
        world.step(_DONE.text)

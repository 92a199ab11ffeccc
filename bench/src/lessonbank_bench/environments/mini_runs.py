"""One task done by mini-swe-agent, and the record of it as a memory may see it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from lessonbank.contracts.records import Action, Step, Trajectory
from lessonbank.errors import FormatError
from lessonbank.importers import Imported, read

from .mini_loading import Mini
from .mini_model import MiniModel

SENTINEL = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
"""What a command prints first to hand in."""
HANDED_IN = "The work was handed in."
_MEMORY = "{% if memory %}\n\n{{ memory }}{% endif %}"
"""Memory is a value of the template and never a part of it: braces in it mean nothing."""


@dataclass(frozen=True, slots=True)
class Prompts:
    """What the agent is told: templates, each with the variable `task`."""

    system: str
    instance: str


def episode(
    mini: Mini,
    model: MiniModel,
    shell: Any,
    prompts: Prompts,
    /,
    *,
    task: str,
    memory: str,
    steps: int,
    cost: float = 0.0,
    seconds: int = 0,
) -> dict[str, Any]:
    """Let mini-swe-agent do `task`, and return the trajectory as it writes them.

    Args:
        mini: mini-swe-agent.
        model: who acts.
        shell: where commands run.
        prompts: what the agent is told.
        task: what it is asked.
        memory: stands at the end of the system message, as it is.
        steps: replies at most.
        cost: US dollars at most; 0 is no limit.
        seconds: for the whole task; 0 is no limit.
    """
    agent = mini.agent(
        model,
        shell,
        system_template=prompts.system + _MEMORY,
        instance_template=prompts.instance,
        step_limit=steps,
        cost_limit=cost,
        wall_time_limit_seconds=seconds,
    )
    agent.run(task, memory=memory)
    return agent.serialize()


def submitted(data: Mapping[str, Any], /) -> bool:
    """Whether the agent handed in, and was not stopped."""
    return data["info"]["exit_status"] == "Submitted"


def trajectory(data: Mapping[str, Any], model: MiniModel, /, *, task: str, memory: str) -> Trajectory:
    """The record without the memory text: what is learned from a run is what was done, not what was shown.

    Raises:
        FormatError: it holds no run.
    """
    system, *others = data["messages"]
    told = str(system["content"])
    bare = {**system, "content": told[: -len(memory)].rstrip() if memory and told.endswith(memory) else told}
    with TemporaryDirectory() as folder:
        path = Path(folder) / "run.traj.json"
        path.write_text(json.dumps({**data, "messages": [bare, *others]}), encoding="utf-8")
        entry = next(read(path, format="mini_swe_agent"))
    if not isinstance(entry, Imported):
        raise FormatError(entry.reason)
    run = entry.trajectory
    return run.model_copy(
        update={
            "task": task,
            "steps": tuple(map(_plain, run.steps)),
            "answer": str(data["info"]["submission"]) or None,
            "usage": model.usage,
            "metadata": {},
        }
    )


def _plain(step: Step) -> Step:
    """Handing in is a form of mini-swe-agent's, and so is the message that ends a run: no part of what was done."""
    seen = tuple(observation for observation in step.observations if observation.name != "exit")
    action = Action(text=HANDED_IN) if SENTINEL in step.action.text and not seen else step.action
    return step.model_copy(update={"action": action, "observations": seen})

"""Puts a bank around a web agent of BrowserGym or AgentLab: `ReasoningBankAgent(MyAgent(), bank)`.

The agent is taken as it is, so nothing of BrowserGym is imported here, and its pickled results are never read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Unpack, cast

from lessonbank.bank.sync import ReasoningBank
from lessonbank.contracts.records import Action, Json, Observation, Step, Trajectory, Usage

from .following import FollowedRun, Options, RunFollower, current_run, harmless

_PAGE: Final = 40_000
"""Characters of a page that are kept."""
_PAGES: Final = ("axtree_txt", "pruned_html", "dom_txt")
"""Where an observation has the page as text, once the agent's own `obs_preprocessor` has run."""


class ReasoningBankAgent:
    """An agent of BrowserGym that is shown lessons, and whose episodes are kept and learned from.

    It does everything that the agent does; only `get_action` is different. The text stands before the goal, in
    `goal` and in `goal_object`, with the same bytes in each step. An agent serves one episode, as in BrowserGym.

    How the episode ends is told by `watch(env)`, or by `end` where you have no hand on the environment. The reward of
    the environment is the truth about the run. If `get_action` raises, the run has failed.

    Args:
        agent: any object with `get_action`, `obs_preprocessor` and `action_set`.
        bank: what `lessonbank.connect` returns.
        scope: the scope of an episode, from its first observation: `lambda obs: scope_of("web", host_of(obs["url"]))`.
            Without it, the scope of the bank.
        patience: seconds an episode waits for its lessons, 2 by default.
        verify: your own check of an episode without a reward. It beats the judge.

    Raises:
        UsageError: an async bank, or a patience that cannot be.
    """

    def __init__(self, agent: Any, bank: ReasoningBank, /, **options: Unpack[Options[Mapping[str, Any]]]) -> None:
        self.agent = agent
        self.runs = RunFollower(bank, "browsergym", **options)
        self.last: FollowedRun | None = None
        """The episode: `agent.runs.tell(agent.last.id, reward=…)`."""
        self._steps: list[Step] = []
        self._done: tuple[str, str] | None = None
        self._answer: str | None = None
        self._instructions = ""
        self._usage = Usage()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["agent"], name)

    def obs_preprocessor(self, obs: dict[str, Any]) -> Any:
        """The agent's own. The page after the last action comes by here, and is kept."""
        seen = self.agent.obs_preprocessor(obs)
        self._see(seen)
        return seen

    def get_action(self, obs: Any) -> tuple[Any, Any]:
        """The agent's next action, for an observation with the text before its goal."""
        run = self.last
        if run is None:
            scope = self.runs.scoped(obs)
            run = self.last = self.runs.begin_waiting(_goal(obs), scope=scope, parent=current_run())
            run.can_call(lambda: _actions(self.agent))
            self._steps, self._usage = [Step(observation=_page(obs))], Usage()
        self._see(obs)
        with run.followed(self._trajectory):
            action, info = self.agent.get_action(_add_text(obs, run.text))
        self._done = str(_read_field(info, "think") or ""), "(no action)" if action is None else str(action)
        self._instructions = self._instructions or _system(_read_field(info, "chat_messages"))
        with harmless("what an action cost"):
            self._usage += _cost(_read_field(info, "stats"))
        return action, info

    def watch(self, env: Any, /) -> Any:
        """The environment, telling this agent how the episode ends: `env = agent.watch(gym.make(…))`."""
        return _Watched(env, self)

    def end(self, summary: Mapping[str, Any], /) -> None:
        """The episode is over. `summary` is `summary_info.json` of BrowserGym's loop, or as much of it as you know."""
        if self.last is None:
            return
        if not (summary.get("err_msg") or summary.get("terminated") or summary.get("truncated")):
            self.stop("the episode was not ended")
            return
        reward, raw = summary.get("cum_reward"), summary.get("cum_raw_reward")
        metadata: dict[str, Json] = {} if raw is None else {"raw_reward": float(raw)}
        error = summary.get("err_msg")  # of the program: what a task is worth is not known then
        rewarded = None if reward is None or error else min(1.0, max(0.0, float(reward)))
        self.last.finish(self._trajectory(), reward=rewarded, error=error, metadata=metadata)

    def ended_with(self, obs: Any, /) -> None:
        """The observation after the last action, as the environment gives it."""
        try:
            seen = self.agent.obs_preprocessor(obs)
        except Exception:  # noqa: BLE001 - the agent's own code, which nothing but memory asked for here
            seen = obs
        self._see(seen)

    def stop(self, reason: str, /) -> None:
        """Somebody ended the episode early."""
        if self.last:
            self.last.stop(self._trajectory(), reason=reason)

    def _see(self, obs: Any) -> None:
        """What came of the last action. The same observation comes by twice."""
        if self._done is None:
            return
        (thought, action), self._done = self._done, None
        self._steps.append(Step(thought=thought, action=Action(text=action), observation=_page(obs)))
        self._answer = _last_reply(obs)

    def _trajectory(self) -> Trajectory:
        steps = [*self._steps]
        if self._done:
            steps.append(Step(thought=self._done[0], action=self._done[1]))
        task = self.last.task if self.last and self.last.task.strip() else "(no goal)"
        trajectory = Trajectory(task=task, instructions=self._instructions, steps=tuple(steps), answer=self._answer)
        return trajectory.model_copy(update={"usage": self._usage})


def run_experiment(
    experiment: Any, bank: ReasoningBank, /, **options: Unpack[Options[Mapping[str, Any]]]
) -> FollowedRun | None:
    """Run an experiment of AgentLab or BrowserGym with a memory: `run_experiment(exp_args, bank)` for `exp_args.run()`.

    `exp_args` is as before when it ends, and nothing of the bank is in the files of the experiment. `scope`,
    `patience` and `verify` are those of `ReasoningBankAgent`. What comes back is the episode; none where the agent was
    asked for nothing.
    """
    plain, agents = experiment.agent_args, list[ReasoningBankAgent]()
    ReasoningBankAgent(None, bank, **options)  # a wrong argument is told here: an experiment swallows what it raises

    def make_agent() -> ReasoningBankAgent:
        agents.append(ReasoningBankAgent(plain.make_agent(), bank, **options))
        return agents[-1]

    experiment.agent_args = _Making(plain, make_agent)
    try:
        experiment.run()
    finally:
        experiment.agent_args = plain
        for agent in agents:
            agent.end(_summary(experiment))
    return agents[-1].last if agents else None


class _Making:
    """Arguments of an agent, with another way to make it."""

    def __init__(self, plain: Any, make_agent: Callable[[], ReasoningBankAgent]) -> None:
        self._plain, self.make_agent = plain, make_agent

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["_plain"], name)


def _summary(experiment: Any) -> dict[str, Any]:
    """What the loop wrote about the episode; nothing where it could not."""
    try:
        return dict(json.loads((Path(experiment.exp_dir) / "summary_info.json").read_text("utf-8")))
    except (OSError, ValueError, TypeError):
        return {}


def _actions(agent: Any) -> list[str]:
    """What BrowserGym's own sets of actions say of each."""
    named = getattr(getattr(agent, "action_set", None), "action_set", None)
    return (
        [str(action.signature) for action in cast("dict[str, Any]", named).values()] if isinstance(named, dict) else []
    )


def _cost(stats: Any) -> Usage:
    """What AgentLab's agents count of an action, by their tracker of costs."""
    fields = _fields(stats)
    if "input_tokens" not in fields:
        return Usage()
    counts = {name: int(fields.get(name) or 0) for name in ("input_tokens", "output_tokens")}
    return Usage(requests=1, cost=fields.get("cost"), **counts)


class _Watched:
    """An environment that tells the agent of rewards and of the end."""

    def __init__(self, env: Any, agent: ReasoningBankAgent) -> None:
        self.env, self._agent = env, agent
        self._reward, self._raw = 0.0, 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["env"], name)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, Any]:
        """The environment's own, and the end of the episode where it is the last one."""
        obs, reward, terminated, truncated, info = self.env.step(action)
        self._reward += float(reward)
        self._raw += float(_fields(info).get("RAW_REWARD_GLOBAL") or 0.0)
        if terminated or truncated:
            self._agent.ended_with(obs)
            rewards = {"cum_reward": self._reward, "cum_raw_reward": self._raw}
            self._agent.end({**rewards, "terminated": terminated, "truncated": truncated})
        return obs, reward, terminated, truncated, info

    def close(self) -> None:
        """Close the environment. An episode that is not over is unfinished."""
        self._agent.stop("the environment was closed")
        self.env.close()


def _goal(obs: Any) -> str:
    """The goal as text: images in it are left out."""
    fields = _fields(obs)
    parts = cast("Sequence[Mapping[str, Any]]", fields.get("goal_object") or ())
    texts = [str(part["text"]) for part in parts if part.get("type") == "text"]
    return "\n".join(texts) or str(fields.get("goal") or "")


def _fields(obs: object) -> dict[str, Any]:
    """Some agents make something else of an observation: then there is nowhere to put a text, and no page to read."""
    return dict(cast("Mapping[str, Any]", obs)) if isinstance(obs, Mapping) else {}


def _add_text(obs: Any, text: str) -> Any:
    fields = _fields(obs)
    if not text or not fields:
        return obs
    if "goal_object" in fields:
        parts, shown = fields["goal_object"] or (), {"type": "text", "text": text}
        fields["goal_object"] = [shown, *parts] if isinstance(parts, list) else (shown, *parts)
    if "goal" in fields:
        fields["goal"] = f"{text}\n\n{fields['goal']}"
    return fields


def _page(obs: Any) -> Observation:
    fields = _fields(obs)
    error = str(fields.get("last_action_error") or "")
    page = next((str(fields[name]) for name in _PAGES if fields.get(name)), "")
    parts = (f"Error: {error}" if error else "", str(fields.get("url") or ""), page[:_PAGE])
    return Observation(text="\n".join(filter(None, parts)), is_error=bool(error))


def _last_reply(obs: Any) -> str | None:
    """What the agent told the user last. The first message is BrowserGym's greeting."""
    fields = _fields(obs)
    messages = cast("Sequence[Mapping[str, Any]]", fields.get("chat_messages") or ())
    replies = [str(m.get("message")) for m in messages[1:] if m.get("role") in ("assistant", "infeasible")]
    return replies[-1] if replies else None


def _read_field(info: object, name: str) -> Any:
    """A field of BrowserGym's `AgentInfo`, or of a dict in its place."""
    return _fields(info).get(name, getattr(info, name, None))


def _system(messages: object) -> str:
    """The system message of what the agent says it sent."""
    entries = cast("Sequence[object]", messages) if isinstance(messages, list | tuple) else ()
    mappings = (_fields(message) for message in entries)
    return next((str(message.get("content")) for message in mappings if message.get("role") == "system"), "")

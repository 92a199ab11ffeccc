from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

import pytest
from examples_of import load

import lessonbank
from lessonbank.adapters.browsergym import ReasoningBankAgent, run_experiment
from lessonbank.adapters.following import scope_of
from lessonbank.testing import AdapterContract, Calls, Request, Says, ScriptedAgentModel
from lessonbank.testing.adapter_contract import BROKEN, LESSON, TASK, TOOL, Raises

pytestmark = pytest.mark.full


class Site:
    """An environment with the observations of BrowserGym's: a call such as `lookup(1)` shows a page."""

    def __init__(self, task: str, user: str, reward: float = 1.0) -> None:
        self._task, self._user, self._reward = task, user, reward
        self.said: list[dict[str, str]] = [{"role": "assistant", "message": "Hi! What can I do?"}]
        self.closed = False

    def reset(self, seed: int | None = None) -> tuple[dict[str, Any], dict[str, Any]]:
        return self._observation("the front page"), {}

    def step(self, action: str) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        name, _, argument = action.rstrip(")").partition("(")
        if name == "send_msg_to_user":
            self.said.append({"role": "assistant", "message": argument.strip("'")})
            return self._observation("the end"), self._reward, True, False, {"RAW_REWARD_GLOBAL": 0.5}
        error = "the disk is full" if name == BROKEN else ""
        return self._observation(f"page {argument}: 3 rows", error), 0.0, False, False, {}

    def close(self) -> None:
        self.closed = True

    def _observation(self, page: str, error: str = "") -> dict[str, Any]:
        return {
            "chat_messages": tuple(self.said),
            "goal": self._task,
            "goal_object": ({"type": "text", "text": self._task},),
            "url": f"https://{self._user}.example/",
            "page": page,
            "last_action_error": error,
        }


@pytest.fixture(scope="module", autouse=True)
def imports() -> None:
    """To import it takes half a second: whoever runs these tests does so, and not each worker that collects them."""
    global Worker, AgentInfo

    pytest.importorskip("browsergym.experiments.agent", reason="browsergym-experiments is not installed")
    from browsergym.experiments.agent import Agent, AgentInfo

    class Worker(Asks, Agent):
        """An agent as the library makes them."""


class Asks:
    """Asks the scripted model for each action, with the conversation so far."""

    def __init__(self, model: ScriptedAgentModel) -> None:
        self._model, self._seen = model, list[tuple[str, str]]()
        self.observations: list[Any] = []

    def obs_preprocessor(self, obs: dict[str, Any]) -> dict[str, Any]:
        seen = {key: value for key, value in obs.items() if key != "page"}
        return {**seen, "axtree_txt": obs["page"]}

    def get_action(self, obs: dict[str, Any]) -> tuple[str, AgentInfo]:
        goal = [("user", part["text"]) for part in obs["goal_object"]]
        self._seen.append(("tool", obs["axtree_txt"] + obs["last_action_error"]))
        reply = self._model.reply(Request("be terse", (*goal, *self._seen)))
        if isinstance(reply, Raises):
            raise RuntimeError(reply.words)
        action = f"send_msg_to_user('{getattr(reply, 'text', '')}')"
        if isinstance(reply, Calls):
            action = f"{reply.tool}({next(iter(reply.arguments.values()), '')})"
        self._seen.append(("assistant", action))
        sent = [{"role": "system", "content": "be terse"}, *({"role": r, "content": c} for r, c in goal)]
        stats = {"input_tokens": 10, "output_tokens": 2, "cost": 0.5, "n_retry": 0}  # as AgentLab's tracker counts
        return action, AgentInfo(think="so be it", chat_messages=sent, stats=stats)


class Made:
    """The arguments of an experiment: what makes an environment and an agent."""

    task_name, task_seed, agent_name = "orders", 1, "worker"

    def __init__(self, model: ScriptedAgentModel, task: str, *, fails: bool = False) -> None:
        self._model, self._task, self._fails = model, task, fails

    def make_agent(self) -> Worker:
        return Worker(self._model)

    def make_env(self, **_: Any) -> Any:
        if self._fails:
            raise RuntimeError("the site is down")
        return TimedSite(self._task, "ana")

    def __getstate__(self) -> dict[str, Any]:
        return {}


class TimedSite(Site):
    """With the times and the chat that the loops want."""

    times: ClassVar = dict.fromkeys(("action_exec_start", "action_exec_stop", "action_exec_timeout"), 0.0)

    @property
    def unwrapped(self) -> Any:
        return self

    chat = unwrapped

    def add_message(self, **_: object) -> None:
        """Nobody reads along."""

    def step(self, action: str) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        *told, info = super().step(action)
        return (*told, {**self.times, **info})  # type: ignore[return-value]


@pytest.fixture(params=["agentlab.experiments.loop", "browsergym.experiments.loop"])
def loop(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The real loop of AgentLab, and that of BrowserGym. They count tokens with a vocabulary that they download."""
    module = pytest.importorskip(request.param, reason=f"{request.param.partition('.')[0]} is not installed")
    for place in (module, pytest.importorskip("browsergym.experiments.utils")):
        monkeypatch.setattr(place, "count_tokens", lambda text, *_, **__: len(text.split()))
    return module


class Program:
    """The loop of BrowserGym, without a browser."""

    def __init__(self, model: ScriptedAgentModel, options: Mapping[str, Any] | None) -> None:
        self._model, self._options = model, options
        self.agents: list[Worker] = []

    async def run(self, task: str, /, *, user: str = "ana", stream: bool = False) -> str:
        return await asyncio.to_thread(self._episode, task, user)

    async def stop_early(self, task: str, /) -> None:
        agent = self.agent()
        site = agent.watch(Site(task, "ana"))
        obs, _ = site.reset()
        action, _ = agent.get_action(agent.obs_preprocessor(obs))
        site.step(action)
        site.close()

    def history(self) -> str:
        return ""  # an agent keeps what it likes; BrowserGym keeps the environment's own observations

    def agent(self) -> Any:
        worker = Worker(self._model)
        self.agents.append(worker)
        if self._options is None:
            return worker
        options = {key: value for key, value in self._options.items() if key != "bank"}
        return ReasoningBankAgent(worker, self._options["bank"], **options)

    def _episode(self, task: str, user: str) -> str:
        agent, site, is_over = self.agent(), Site(task, user), False
        obs = agent.obs_preprocessor(site.reset()[0])
        while not is_over:
            action, _ = agent.get_action(dict(obs))
            obs, _, is_over, _, _ = site.step(action)
            obs = agent.obs_preprocessor(obs)
        if self._options is not None:
            agent.end({"terminated": True})
        return site.said[-1]["message"]


@pytest.mark.anyio
class TestBrowserGym(AdapterContract):
    source = "browsergym"
    cannot: ClassVar = {
        "test_a_streamed_run_is_kept_like_any_other": "BrowserGym does not stream",
        "test_a_hand_off_is_part_of_the_run": "an episode has one agent",
        "test_a_sub_agent_is_a_run_of_its_own": "an episode has one agent",
        "test_an_error_of_a_tool_is_kept_as_an_error": "a page answers, and not a tool",
        "test_a_failure_that_was_seen_cured_is_followed_by_its_cure": "a page answers, and not a tool",
    }

    def program(self, bank: lessonbank.ReasoningBank, model: ScriptedAgentModel, /, **options: Any) -> Program:
        options.setdefault("scope", lambda obs: scope_of("acme", obs["url"].removeprefix("https://").split(".")[0]))
        return Program(model, {"bank": bank, **options})

    def signature(self) -> str:
        return "click(bid: str, button:"

    def plain(self, model: ScriptedAgentModel, /) -> Program:
        return Program(model, None)

    def _check_the_work(self, bank: lessonbank.ReasoningBank) -> None:
        """An action is a line of text, and what comes back is a page."""
        (run,) = self._runs(bank)
        steps = run.trajectory.steps
        assert [step.action.text for step in steps] == [
            "",
            f"{TOOL}(1)",
            f"{BROKEN}()",
            "send_msg_to_user('three rows')",
        ]
        assert ["the front page" in steps[0].observations[0].text, steps[1].thought] == [True, "so be it"]
        assert "page 1: 3 rows" in steps[1].observations[0].text
        assert "the disk is full" in steps[2].observations[0].text
        assert steps[2].observations[0].is_error
        assert "the end" in steps[3].observations[0].text
        assert (run.trajectory.task, run.trajectory.answer) == (TASK, "three rows")
        assert run.trajectory.metadata["source"] == self.source

    @pytest.mark.parametrize(("reward", "outcome"), [(1.0, "success"), (0.0, "failure")])
    async def test_the_reward_of_the_environment_is_the_truth(
        self, tmp_path: Path, reward: float, outcome: str
    ) -> None:
        with self._bank(tmp_path) as bank:
            model = ScriptedAgentModel({TASK: [Calls(TOOL, {"page": 1}), Says("three rows")]})
            agent = self.program(bank, model).agent()
            site, is_over = agent.watch(Site(TASK, "ana", reward)), False
            obs, _ = site.reset()
            while not is_over:
                action, _ = agent.get_action(agent.obs_preprocessor(obs))
                obs, _, is_over, _, _ = site.step(action)
            site.close()
            bank.drain()
            (run,) = self._runs(bank)
            assert (run.verdict.outcome, run.verdict.source) == (outcome, "ground_truth")
            assert run.trajectory.metadata["raw_reward"] == 0.5
            assert run.trajectory.answer == "three rows"
            assert site.closed
            assert run.recall_id

    async def test_the_summary_of_an_experiment_ends_an_episode(self, tmp_path: Path) -> None:
        with self._bank(tmp_path) as bank:
            summaries = {
                "Won": {"cum_reward": 1.0, "cum_raw_reward": 0.7, "terminated": True, "truncated": False},
                "Broke": {"cum_reward": 0.0, "err_msg": "the site is down", "terminated": False, "truncated": False},
                "Left": {"cum_reward": 0.0, "err_msg": None, "terminated": False, "truncated": False},
            }
            program = self.program(bank, ScriptedAgentModel({task: [Calls(TOOL)] for task in summaries}))
            for task, summary in summaries.items():
                agent = program.agent()
                agent.get_action(agent.obs_preprocessor(Site(task, "ana").reset()[0]))
                agent.end(json.loads(json.dumps(summary)))
            bank.drain()
            runs = {run.trajectory.task: run for run in self._runs(bank)}
            ended = {task: (run.status, run.verdict.outcome, run.verdict.source) for task, run in runs.items()}
            assert ended["Won"] == ("learned", "success", "ground_truth")
            assert ended["Broke"] == ("learned", "failure", "framework_error")
            assert ended["Left"][:2] == ("unfinished", "unknown")

    async def test_the_observation_of_the_environment_is_not_changed(self, tmp_path: Path) -> None:
        with self._bank(tmp_path) as bank:
            model = ScriptedAgentModel({TASK: [Says("three rows")]})
            agent = self.program(bank, model).agent()
            obs = agent.obs_preprocessor(Site(TASK, "ana").reset()[0])
            agent.get_action(obs)
            assert LESSON in model.requests[TASK][0].words
            assert LESSON not in repr(obs)
            assert agent.action_set is agent.agent.action_set

    async def test_an_experiment_is_run_with_a_memory_by_the_loop_of_its_library(
        self, tmp_path: Path, loop: Any
    ) -> None:
        with self._bank(tmp_path) as bank:
            model = ScriptedAgentModel({TASK: [Calls(TOOL, {"page": 1}), Says("three rows")]})
            made = Made(model, TASK)
            experiment = loop.ExpArgs(made, made, logging_level_stdout=logging.WARNING, save_screenshot=False)
            experiment.prepare(tmp_path / "study")
            episode = run_experiment(experiment, bank, scope=lambda obs: self.scope("ana"))
            experiment.logging_file_handler.close()
            bank.drain()
            (run,) = self._runs(bank)
            assert episode is not None
            assert episode.id == run.trajectory.id
            assert [request.words.count(LESSON) for request in model.requests[TASK]] == [1, 1]
            assert (run.verdict.outcome, run.verdict.source) == ("success", "ground_truth")
            assert run.trajectory.answer == "three rows"
            assert experiment.agent_args is made
            assert not [path for path in (tmp_path / "study").rglob("*.json") if LESSON in path.read_text("utf-8")]

    async def test_an_experiment_whose_site_is_down_teaches_nothing(self, tmp_path: Path, loop: Any) -> None:
        with self._bank(tmp_path) as bank:
            made = Made(ScriptedAgentModel({}), TASK, fails=True)
            experiment = loop.ExpArgs(made, made, logging_level_stdout=logging.CRITICAL, save_screenshot=False)
            experiment.prepare(tmp_path / "study")
            assert run_experiment(experiment, bank) is None
            experiment.logging_file_handler.close()
            bank.drain()
            assert not self._runs(bank)


class Swallows:
    """An experiment that goes on whatever its agent raises, as BrowserGym's do."""

    agent_args = None

    def run(self) -> None:
        with suppress(Exception):
            self.agent_args.make_agent()  # type: ignore[attr-defined]


def test_a_wrong_argument_of_an_experiment_is_told_and_not_swallowed_with_it(tmp_path: Path) -> None:
    with lessonbank.connect(tmp_path / "bank.db", scope="acme") as bank:
        with pytest.raises(TypeError, match="patiense"):
            run_experiment(Swallows(), bank, patiense=3)  # type: ignore[call-arg]
        with pytest.raises(lessonbank.LessonbankError, match="patience="):
            run_experiment(Swallows(), bank, patience=0)


def test_a_site_of_webarena_has_its_own_lessons() -> None:
    assert load("webarena").main() == [0.0, 1.0]


def test_a_task_of_mind2web_is_shown_what_the_one_before_taught() -> None:
    first, second = load("mind2web").main()
    assert first < second == 1.0

"""tau-bench without tau-bench: stand-ins with the signatures of the real modules.

They follow sierra-research/tau-bench as stored publicly: `envs/__init__.py` at commit 9ae1dea (get_env with
task_index), `envs/base.py` at 67e6b12 (Env.reset, Env.step, tools_info, wiki, terminate_tools), `types.py` and
`envs/user.py` at 01ed5e3 (Action, Task, EnvResponse, EnvResetResponse, EnvInfo, RESPOND_ACTION_NAME; load_user needs a
model and a provider), `envs/retail/env.py` and `envs/airline/env.py` at 043b544 (where each split's tasks are). What
the stand-ins do inside is made up: a shop in which an order can be cancelled.
"""

from __future__ import annotations

import json
import sys
from types import ModuleType
from typing import Any

import pytest
from pydantic import BaseModel

from lessonbank.errors import UsageError
from lessonbank.testing.fakes import ScriptedModel
from lessonbank_bench.environments.tau_bench import TauBenchEnvironment

PLAYED = {"user_model": "customer-1", "user_provider": "acme"}


class Action(BaseModel):
    name: str
    kwargs: dict[str, Any]


class Task(BaseModel):
    user_id: str
    actions: list[Action]
    instruction: str
    outputs: list[str]


class EnvInfo(BaseModel):
    task: Task
    source: str | None = None
    user_cost: float | None = None


class EnvResponse(BaseModel):
    observation: str
    reward: float
    done: bool
    info: EnvInfo


class EnvResetResponse(BaseModel):
    observation: str
    info: EnvInfo


def task_of(order: int) -> Task:
    cancel = Action(name="cancel_pending_order", kwargs={"order_id": f"#{order}"})
    return Task(
        user_id=f"yusuf_{order % 2}",
        actions=[cancel],
        instruction=f"You are Yusuf and want order #{order} cancelled. You are impatient.",
        outputs=[],
    )


TASKS = {"airline": [task_of(n) for n in range(3)], "retail": [task_of(n) for n in range(10, 16)]}


class Env:
    """One company: the customer says what to cancel, and stops when told that it is done."""

    def __init__(self, tasks: list[Task]) -> None:
        self.tasks = tasks
        self.wiki = "# Policy of the shop\nCancel only what is pending."
        info = {"name": "cancel_pending_order", "description": "Cancel.", "parameters": {"type": "object"}}
        self.tools_info = [{"type": "function", "function": info}]
        self.terminate_tools = ["transfer_to_human_agents"]
        self.actions: list[Action] = []

    def reset(self, task_index: int | None = None) -> EnvResetResponse:
        assert task_index is not None
        self.task, self.actions = self.tasks[task_index], []
        order = self.task.actions[0].kwargs["order_id"]
        return EnvResetResponse(observation=f"Cancel {order}!", info=EnvInfo(task=self.task, source="user"))

    def step(self, action: Action) -> EnvResponse:
        self.actions.append(action)
        info, reward, done = EnvInfo(task=self.task, source=action.name), 0.0, False
        if action.name == "respond":
            done = "cancelled" in action.kwargs["content"]
            observation = "###STOP###" if done else "Well?"
        elif action.name in self.terminate_tools:
            observation, done = "Transfer successful", True
        elif action.name == "cancel_pending_order":
            observation = json.dumps({"status": "cancelled"})
        else:
            observation = f"Unknown action {action.name}"
        if done:
            did = [a for a in self.actions if a.name not in ("respond", *self.terminate_tools)]
            reward, info.user_cost = float(did == self.task.actions), 0.02
        return EnvResponse(observation=observation, reward=reward, done=done, info=info)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What was asked of `get_env`."""
    calls: list[dict[str, Any]] = []

    def get_env(
        env_name: str,
        user_strategy: str,
        user_model: str,
        task_split: str,
        user_provider: str | None = None,
        task_index: int | None = None,
    ) -> Env:
        calls.append(
            {
                "env_name": env_name,
                "user": (user_strategy, user_model, user_provider),
                "task_split": task_split,
                "task_index": task_index,
            }
        )
        return Env(TASKS[env_name])

    for name in ("tau_bench", "tau_bench.envs.airline", "tau_bench.envs.retail"):
        module(monkeypatch, name)
    module(monkeypatch, "tau_bench.envs", get_env=get_env)
    module(monkeypatch, "tau_bench.types", Action=Action)
    module(monkeypatch, "tau_bench.envs.airline.tasks_test", TASKS=TASKS["airline"])
    module(monkeypatch, "tau_bench.envs.retail.tasks_test", TASKS_TEST=TASKS["retail"])
    module(monkeypatch, "tau_bench.envs.retail.tasks_train", TASKS_TRAIN=TASKS["retail"][:2])
    return calls


def module(monkeypatch: pytest.MonkeyPatch, name: str, **content: Any) -> None:
    one = ModuleType(name)
    one.__dict__.update(content)
    monkeypatch.setitem(sys.modules, name, one)


def call(name: str, **arguments: Any) -> str:
    return "Let me see.\n" + json.dumps({"name": name, "arguments": arguments})


def helper(messages: Any) -> str:
    """Cancels what the customer named, then says so."""
    order = messages[1].content.removeprefix("Cancel ").removesuffix("!")
    if len(messages) == 2:
        return call("cancel_pending_order", order_id=order)
    return call("respond", content=f"{order} is cancelled")


def test_an_attempt_is_a_conversation_that_tau_bench_judges(made: list[dict[str, Any]]) -> None:
    model = ScriptedModel(helper)
    place = TauBenchEnvironment(model, PLAYED)
    job = place.tasks(1, 1)[0]
    done = place.attempt(job, place.agent(1, anew=False), "MEMORY TEXT [1]")

    assert done.success is True
    assert done.scores == {"reward": 1.0, "user_cost": 0.02}
    assert done.run.task == job.goal
    assert job.goal.startswith("You are Yusuf")
    opening, cancel, said = done.run.steps
    assert opening.observations[0].text.startswith("Cancel #")
    assert (cancel.thought, cancel.action.calls[0].name) == ("Let me see.", "cancel_pending_order")
    assert (cancel.observations[0].source, cancel.observations[0].name) == ("tool", "cancel_pending_order")
    assert (said.observations[0].source, said.observations[0].text) == ("user", "###STOP###")
    system = model.calls[0].messages[0].content
    assert "MEMORY TEXT [1]" in system
    assert "Cancel only what is pending." in system
    assert "cancel_pending_order" in system
    assert "impatient" not in model.calls[-1].prompt
    assert "MEMORY" not in done.run.instructions


def test_the_customer_is_made_once_for_a_domain_as_its_settings_say(made: list[dict[str, Any]]) -> None:
    place = TauBenchEnvironment(ScriptedModel(helper), PLAYED | {"user_strategy": "react"})
    assert made == []
    for job in place.tasks(1, 3):
        assert place.attempt(job, place.agent(1, anew=False), "").success
    assert len(made) == 1
    assert made[0]["env_name"] == "retail"
    assert made[0]["user"] == ("react", "customer-1", "acme")
    assert made[0]["task_split"] == "test"
    assert made[0]["task_index"] is not None


def test_both_domains_are_groups_of_one_stream(made: list[dict[str, Any]]) -> None:
    place = TauBenchEnvironment(ScriptedModel(helper), PLAYED | {"domain": "both"})
    jobs = place.tasks(1, 99)
    assert {job.group for job in jobs} == {"airline", "retail"}
    assert len({job.id for job in jobs}) == len(jobs) == 9
    assert {job.family for job in jobs if job.group == "retail"} == {"retail: yusuf_0", "retail: yusuf_1"}
    assert [job.id for job in place.tasks(1, 4)] == [job.id for job in jobs][:4]
    assert place.attempt(jobs[0], place.agent(1, anew=False), "").success
    other = next(job for job in jobs if job.group != jobs[0].group)
    assert place.attempt(other, place.agent(1, anew=False), "").success
    assert {one["env_name"] for one in made} == {"airline", "retail"}


def test_the_train_split_is_another_list(made: list[dict[str, Any]]) -> None:
    place = TauBenchEnvironment(ScriptedModel(helper), PLAYED | {"split": "train"})
    assert len(place.tasks(1, 99)) == 2


def test_a_wrong_change_is_a_failure_and_a_transfer_ends_the_conversation(made: list[dict[str, Any]]) -> None:
    place = TauBenchEnvironment(ScriptedModel(lambda _: call("transfer_to_human_agents", summary="no")), PLAYED)
    done = place.attempt(place.tasks(1, 1)[0], place.agent(1, anew=False), "")
    assert done.success is False
    assert done.run.error is None
    assert len(done.run.steps) == 2


def test_a_reply_without_a_call_is_said_to_the_customer(made: list[dict[str, Any]]) -> None:
    model = ScriptedModel(["Which order?", call("respond"), call("respond", content="It is cancelled.")])
    place = TauBenchEnvironment(model, PLAYED)
    done = place.attempt(place.tasks(1, 1)[0], place.agent(1, anew=False), "")
    assert done.run.steps[1].action.calls[0].arguments == {"content": "Which order?"}
    assert done.run.steps[1].observations[0].text == "Well?"
    assert "needs the argument content" in done.run.steps[2].observations[0].text
    assert done.success is False


def test_a_conversation_without_an_end_is_cut_off(made: list[dict[str, Any]]) -> None:
    place = TauBenchEnvironment(ScriptedModel(lambda _: "Hm."), PLAYED | {"max_steps": 4})
    done = place.attempt(place.tasks(1, 1)[0], place.agent(1, anew=False), "")
    assert done.success is False
    assert done.scores == {"reward": 0.0}
    assert done.run.error == "all 4 calls allowed were used"


def test_the_version_names_what_decides_an_attempt(made: list[dict[str, Any]]) -> None:
    others: list[dict[str, Any]] = [{}, {"domain": "airline"}, {"user_strategy": "react"}, {"user_model": "other"}]
    versions = {TauBenchEnvironment(ScriptedModel([]), PLAYED | one).version for one in others}
    assert len(versions) == 4


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({}, "set user_model and user_provider"),
        ({"user_model": "customer-1"}, "set user_model and user_provider"),
        (PLAYED | {"domain": "bank"}, "no domain 'bank'"),
        (PLAYED | {"domain": "airline", "split": "train"}, "no split 'train' of airline: set test"),
        (PLAYED | {"domain": "both", "split": "dev"}, "no split 'dev' of airline"),
        (PLAYED | {"user_strategy": "human"}, "no user_strategy 'human'"),
        (PLAYED | {"max_steps": 1.5}, "max_steps should be like 30"),
    ],
)
def test_settings_it_cannot_use_are_refused(made: list[dict[str, Any]], settings: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says) as told:
        TauBenchEnvironment(ScriptedModel([]), settings)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("missing", ["tau_bench", "litellm"])
def test_what_is_missing_is_told_in_one_sentence(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "tau_bench"]:
        monkeypatch.delitem(sys.modules, name)

    class Finder:
        @staticmethod
        def find_spec(name: str, path: object = None, target: object = None) -> None:
            if name.partition(".")[0] == "tau_bench":
                raise ModuleNotFoundError(f"No module named {missing!r}", name=missing)

    monkeypatch.setattr(sys, "meta_path", [Finder, *sys.meta_path])
    with pytest.raises(UsageError, match=rf"'{missing}' is missing: run `pip install -e") as told:
        TauBenchEnvironment(ScriptedModel([]), PLAYED)
    assert "\n" not in str(told.value)

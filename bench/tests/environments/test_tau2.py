"""tau2 telecom without tau2: stand-ins with the signatures of the real modules.

They follow sierra-research/tau2-bench as stored publicly: `gym/gym_agent.py` and `registry.py` at commit 8297164
(AgentGymEnv.__init__, reset, step, _get_info, _get_task, _get_reward; Registry.get_tasks_loader,
get_task_splits_loader, get_env_constructor), `environment/tool.py` at 4d69707 (Tool.openai_schema),
`domains/telecom/environment.py` at 679773e (the two parts of the policy, get_tasks(task_split_name)) and
`domains/telecom/tasks/{utils,manager}.py` at 0bd4949 (compose_tasks, TaskManager.create_task). What the stand-ins do
inside is made up: a phone with faults, and a tool that mends each.
"""

from __future__ import annotations

import json
import sys
from itertools import combinations
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from pydantic import BaseModel

from lessonbank.errors import ModelError, UsageError
from lessonbank.testing.fakes import ScriptedModel
from lessonbank_bench.environments.tau2 import Tau2Environment
from lessonbank_bench.environments.tau2_clone import issue_and_faults
from lessonbank_bench.environments.tool_calls import read_call

POLICY = (
    "<main_policy>\nBe brief.\n</main_policy>\n"
    "<tech_support_policy>\nairplane_mode is mended by mend_airplane_mode.\n</tech_support_policy>"
)
FAULTS = ("airplane_mode", "bad_apn", "data_off")


class FakeTask(BaseModel):
    id: str
    ticket: str | None = "The phone of John Smith has no mobile data."
    faults: tuple[str, ...] = ()


class FakeTool:
    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def openai_schema(self) -> dict[str, Any]:
        parameters = {"properties": {}, "title": "parameters", "type": "object"}
        function = {"name": self.name, "description": f"Does {self.name}.", "parameters": parameters}
        return {"type": "function", "function": function}


class FakeEnvironment:
    def __init__(self, policy: str) -> None:
        self._policy = policy

    def get_policy(self) -> str:
        return self._policy


class Tau2:
    """The stand-in for the package, and what was done with it."""

    def __init__(self) -> None:
        combined = [c for size in (1, 2) for c in combinations(FAULTS, size)]
        self.tasks = [task_of(faults) for faults in combined]
        self.splits = {"base": [task.id for task in self.tasks], "small": [self.tasks[0].id]}
        self.policy = POLICY
        self.waiting = 0
        self.most_errors = 10
        self.lost_files: set[str] = set()
        self.breaks_off = False
        self.opened: list[dict[str, Any]] = []

    def get_tasks(self, task_split_name: str | None = "base") -> list[FakeTask]:
        if "tasks" in self.lost_files:
            raise FileNotFoundError(2, "No such file or directory", "data/tau2/domains/telecom/tasks.json")
        if task_split_name is None:
            return self.tasks
        if task_split_name not in self.splits:
            raise ValueError(f"Invalid task split name: {task_split_name}. Valid splits are: {self.splits.keys()}")
        return [task for task in self.tasks if task.id in self.splits[task_split_name]]

    def get_environment(self, db: Any = None, user_db: Any = None, solo_mode: bool = False) -> FakeEnvironment:
        if "policy" in self.lost_files:
            raise FileNotFoundError(2, "No such file or directory", "data/tau2/domains/telecom/db.toml")
        return FakeEnvironment(self.policy)


def task_of(faults: tuple[str, ...], persona: str = "None") -> FakeTask:
    return FakeTask(id=f"[mobile_data_issue]{'|'.join(faults)}[PERSONA:{persona}]", faults=faults)


def run_of(reason: str) -> Any:
    return SimpleNamespace(model_dump_json=lambda indent=2: json.dumps({"termination_reason": reason}, indent=indent))


def gym_of(package: Tau2) -> type:
    class AgentGymEnv:
        def __init__(
            self,
            domain: str,
            task_id: str,
            max_steps: int = 100,
            solo_mode: bool = False,
            user_llm: str | None = None,
            user_llm_args: dict[str, Any] | None = None,
            all_messages_as_observation: bool = False,
        ) -> None:
            assert domain == "telecom"
            assert solo_mode
            self.task_id = task_id
            self.over = True
            package.opened.append({"task_id": task_id, "max_steps": max_steps})

        def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
            self.broken = set(self._get_task().faults)
            self.over, self.run, self.errors = False, None, 0
            package.waiting += 1
            return "", self._get_info()

        def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
            assert not self.over
            call = json.loads(action)
            assert set(call) == {"name", "arguments"}
            if call["name"] == "done":
                self.over = True
                package.waiting -= 1
                self.run = None if package.breaks_off else run_of("agent_stop")
                return "", self._get_reward(), True, False, self._get_info()
            if call["name"].removeprefix("mend_") in FAULTS:
                self.broken.discard(call["name"].removeprefix("mend_"))
                return "tool: mended", 0.0, False, False, self._get_info()
            self.errors += 1
            if self.errors == package.most_errors:
                self.over, self.run = True, run_of("too_many_errors")
                package.waiting -= 1
            return f"tool: Error: no tool {call['name']}", 0.0, self.over, False, self._get_info()

        def _get_info(self) -> dict[str, Any]:
            return {
                "task": self._get_task(),
                "simulation_run": self.run.model_dump_json(indent=2) if self.run else {},
                "tools": [FakeTool(f"mend_{fault}") for fault in FAULTS] + [FakeTool("done")],
                "policy": package.policy,
            }

        def _get_reward(self) -> float:
            """Only of what the agent ended itself."""
            return float(self.run is not None and self.errors < package.most_errors and not self.broken)

        def _get_task(self) -> FakeTask:
            raise AssertionError("tau2 would read all tasks anew at each step")

    return AgentGymEnv


class Registry:
    def __init__(self, package: Tau2) -> None:
        self._package = package

    def get_env_constructor(self, name: str) -> Any:
        assert name == "telecom"
        return self._package.get_environment

    def get_tasks_loader(self, name: str) -> Any:
        assert name == "telecom"
        return self._package.get_tasks

    def get_task_splits_loader(self, name: str) -> Any:
        return lambda: self._package.splits


def module(monkeypatch: pytest.MonkeyPatch, name: str, **content: Any) -> None:
    made = ModuleType(name)
    made.__dict__.update(content)
    monkeypatch.setitem(sys.modules, name, made)


@pytest.fixture
def tau2(monkeypatch: pytest.MonkeyPatch) -> Tau2:
    package = Tau2()
    for name in ("tau2", "tau2.gym", "tau2.domains", "tau2.domains.telecom", "tau2.domains.telecom.tasks"):
        module(monkeypatch, name)
    module(monkeypatch, "tau2.gym.gym_agent", AgentGymEnv=gym_of(package))
    module(monkeypatch, "tau2.registry", registry=Registry(package))
    return package


@pytest.fixture
def composing(monkeypatch: pytest.MonkeyPatch, tau2: Tau2) -> list[str]:
    """The modules that make tasks; what was made, in order."""
    created: list[str] = []

    class BaseTask(BaseModel):
        name: str

    class ComposedTask(BaseModel):
        name: str
        composed_from: list[BaseTask]

    class TaskManager:
        def __init__(self, name: str, selection_sets: list[tuple[str, ...]]) -> None:
            self.name, self.selection_sets, self.task_validator = name, selection_sets, None

        def create_task(self, composed_task: ComposedTask, persona: str = "None") -> FakeTask:
            created.append(f"{self.name} {composed_task.name}")
            faults = tuple(task.name for task in composed_task.composed_from)
            id = f"[{self.name}]{composed_task.name}[PERSONA:{persona}]"
            return FakeTask(id=id, ticket=f"A {self.name}.", faults=faults)

    def compose_tasks(selection_sets: list[tuple[str, ...]], task_validator: Any = None) -> list[ComposedTask]:
        names = [name for names in selection_sets for name in names]
        chosen = [c for size in range(len(names) + 1) for c in combinations(names, size)]
        return [ComposedTask(name="|".join(c), composed_from=[BaseTask(name=n) for n in c]) for c in chosen]

    where = "tau2.domains.telecom.tasks"
    module(monkeypatch, f"{where}.utils", compose_tasks=compose_tasks)
    for place, name, issue in (
        ("mobile_data_issues", "mobile_data_task_manager", "mobile_data_issue"),
        ("service_issues", "service_issues_task_manager", "service_issue"),
        ("mms_issues", "mms_issue_task_manager", "mms_issue"),
    ):
        module(monkeypatch, f"{where}.{place}", **{name: TaskManager(issue, [FAULTS])})
    return created


def call(name: str, thought: str = "") -> str:
    return f"{thought}\n" + json.dumps({"name": name, "arguments": {}})


def mender(messages: Any) -> str:
    """Mends what memory or the manual names, one after the other, then says that it is done."""
    known = [fault for fault in FAULTS if f"by mend_{fault}" in messages[0].content]
    said = [m.content for m in messages if m.role == "assistant"]
    return call(f"mend_{known[len(said)]}", "This one.") if len(said) < len(known) else call("done")


def test_an_attempt_calls_tools_until_done_and_is_judged_by_tau2(tau2: Tau2) -> None:
    tau2.tasks = [task_of(("airplane_mode", "bad_apn"))]
    tau2.splits = {"base": [tau2.tasks[0].id]}
    model = ScriptedModel([call("mend_airplane_mode", "First the mode."), call("mend_bad_apn"), call("done")])
    place = Tau2Environment(model)
    job = place.tasks(1, 1)[0]

    done = place.attempt(job, place.agent(1, anew=False), "MEMORY TEXT [1]")

    assert done.success is True
    assert done.scores == {"reward": 1.0}
    assert done.run.task == job.goal == "The phone of John Smith has no mobile data."
    assert [step.action.calls[0].name for step in done.run.steps[1:]] == ["mend_airplane_mode", "mend_bad_apn", "done"]
    assert done.run.steps[1].thought == "First the mode."
    assert done.run.steps[1].observations[0].text == "mended"
    assert done.run.usage.requests == 3
    assert done.run.error is None
    assert tau2.waiting == 0


def test_memory_reaches_the_system_prompt_unchanged_and_stays_out_of_the_record(tau2: Tau2) -> None:
    model = ScriptedModel([call("done")])
    place = Tau2Environment(model)
    memory = "<lessons>\n[1] airplane_mode\tis mended by mend_airplane_mode\n</lessons>"
    done = place.attempt(place.tasks(1, 1)[0], place.agent(1, anew=False), memory)
    system = model.calls[0].messages[0]
    assert system.role == "system"
    assert memory in system.content
    assert "mend_data_off" in system.content
    assert memory not in done.run.instructions
    assert "Be brief." in done.run.instructions


def test_the_manual_is_withheld_so_that_only_memory_can_know(tau2: Tau2) -> None:
    tau2.tasks = [task_of(("airplane_mode",))]
    tau2.splits = {"base": [tau2.tasks[0].id]}

    def success(memory: str, **settings: bool) -> bool | None:
        place = Tau2Environment(ScriptedModel(mender), settings)
        return place.attempt(place.tasks(1, 1)[0], place.agent(1, anew=False), memory).success

    assert success("") is False
    assert success("airplane_mode is mended by mend_airplane_mode") is True
    assert success("", withhold_manual=False) is True


def test_an_agent_that_never_closes_the_ticket_fails_and_leaves_no_thread_waiting(tau2: Tau2) -> None:
    place = Tau2Environment(ScriptedModel(lambda _: call("mend_nothing")), {"max_steps": 3})
    done = place.attempt(place.tasks(1, 1)[0], place.agent(1, anew=False), "")
    assert done.success is False
    assert done.scores == {"reward": 0.0}
    assert done.run.error == "all 3 calls allowed were used"
    assert len(done.run.steps) == 4
    assert tau2.waiting == 0
    assert tau2.opened[0]["max_steps"] > 2 * 3


def test_a_run_that_tau2_stopped_says_so(tau2: Tau2) -> None:
    place = Tau2Environment(ScriptedModel(lambda _: call("mend_nothing")))
    done = place.attempt(place.tasks(1, 1)[0], place.agent(1, anew=False), "")
    assert done.success is False
    assert done.run.error == "stopped by tau2: too_many_errors"
    assert len(done.run.steps) == 11
    assert tau2.waiting == 0


def test_a_reply_without_a_call_costs_a_turn_and_never_reaches_tau2(tau2: Tau2) -> None:
    tau2.tasks = [task_of(("bad_apn",))]
    tau2.splits = {"base": [tau2.tasks[0].id]}
    model = ScriptedModel(["I would ask the customer.", call("mend_bad_apn"), call("done")])
    place = Tau2Environment(model)
    done = place.attempt(place.tasks(1, 1)[0], place.agent(1, anew=False), "")
    assert done.success is True
    assert done.run.steps[1].action.text == "I would ask the customer."
    assert "no call" in model.calls[1].messages[-1].content


def test_a_model_that_fails_is_an_error_of_infrastructure_and_the_ticket_is_closed(tau2: Tau2) -> None:
    place = Tau2Environment(ScriptedModel([call("mend_bad_apn"), ModelError("the service is down")]))
    with pytest.raises(ModelError):
        place.attempt(place.tasks(1, 1)[0], place.agent(1, anew=False), "")
    assert tau2.waiting == 0


def test_a_run_that_tau2_could_not_judge_is_no_failure_of_the_agent(tau2: Tau2) -> None:
    tau2.breaks_off = True
    place = Tau2Environment(ScriptedModel([call("done")]))
    with pytest.raises(RuntimeError, match="broke off"):
        place.attempt(place.tasks(1, 1)[0], place.agent(1, anew=False), "")


def test_tasks_of_a_seed_are_the_same_and_begin_alike(tau2: Tau2) -> None:
    place = Tau2Environment(ScriptedModel([]))
    jobs = place.tasks(3, 4)
    assert [job.id for job in jobs] == [job.id for job in place.tasks(3, 6)][:4]
    assert [job.id for job in jobs] != [job.id for job in place.tasks(4, 4)]
    assert len({job.id for job in place.tasks(3, 99)}) == len(tau2.tasks)
    assert {job.group for job in jobs} == {"mobile_data_issue"}
    assert all(job.family.startswith("mobile_data_issue: ") for job in jobs)


def test_a_task_without_a_ticket_is_left_out(tau2: Tau2) -> None:
    tau2.tasks[0].ticket = None
    assert len(Tau2Environment(ScriptedModel([])).tasks(1, 99)) == len(tau2.tasks) - 1


def test_a_split_is_chosen_by_name(tau2: Tau2) -> None:
    assert len(Tau2Environment(ScriptedModel([]), {"tasks": "small"}).tasks(1, 99)) == 1


def test_the_loader_of_older_releases_takes_no_split(tau2: Tau2, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = tau2.tasks
    monkeypatch.setattr(tau2, "get_tasks", lambda: tasks)
    assert len(Tau2Environment(ScriptedModel([]), {"tasks": "small"}).tasks(1, 99)) == 1
    assert len(Tau2Environment(ScriptedModel([])).tasks(1, 99)) == len(tasks)


def test_generated_tasks_are_balanced_and_made_only_when_it_is_their_turn(tau2: Tau2, composing: list[str]) -> None:
    tau2.lost_files = {"tasks"}
    place = Tau2Environment(ScriptedModel([call("done")]), {"tasks": "generated"})
    jobs = place.tasks(1, 9)
    assert {(job.group, job.family.count("|")) for job in jobs} == {
        (issue, size) for issue in ("mobile_data_issue", "service_issue", "mms_issue") for size in (0, 1, 2)
    }
    assert len(composing) == 9
    assert [job.id for job in place.tasks(1, 9)] == [job.id for job in jobs]
    assert len(composing) == 9
    assert len(place.tasks(1, 99)) == 3 * 7
    assert place.attempt(jobs[0], place.agent(1, anew=False), "").success is False
    assert "generated tasks" in place.version


def test_the_version_names_what_decides_an_attempt(tau2: Tau2) -> None:
    versions = {
        Tau2Environment(ScriptedModel([], name=name), settings).version
        for name in ("one", "two")
        for settings in ({}, {"withhold_manual": False}, {"temperature": 0.7}, {"max_steps": 7}, {"tasks": "small"})
    }
    assert len(versions) == 10


@pytest.mark.parametrize(
    ("lost", "says"),
    [("policy", "TAU2_DATA_DIR"), ("tasks", 'tasks = "generated"')],
)
def test_a_file_that_is_missing_is_told_in_one_sentence(tau2: Tau2, lost: str, says: str) -> None:
    tau2.lost_files = {lost}
    with pytest.raises(UsageError) as told:
        Tau2Environment(ScriptedModel([]))
    assert says in str(told.value)
    assert "\n" not in str(told.value)


def test_without_the_package_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name == "tau2" or name.startswith("tau2.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "tau2", None)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"needs tau2-bench.*pip install -e.*PyPI is another program") as told:
        Tau2Environment(ScriptedModel([]))
    assert "\n" not in str(told.value)


def test_the_other_package_of_that_name_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    module(monkeypatch, "tau2")
    with pytest.raises(UsageError, match=r"'tau2\.gym.*' is missing.*another program"):
        Tau2Environment(ScriptedModel([]))


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"max_steps": "many"}, "max_steps should be like 100"),
        ({"tasks": "nowhere"}, "no tasks 'nowhere'"),
    ],
)
def test_a_setting_it_cannot_use_is_refused(tau2: Tau2, settings: dict[str, Any], says: str) -> None:
    with pytest.raises(UsageError, match=says) as told:
        Tau2Environment(ScriptedModel([]), settings)
    assert "\n" not in str(told.value)


def test_a_policy_without_a_manual_to_leave_out_is_refused(tau2: Tau2) -> None:
    tau2.policy = "Be brief."
    with pytest.raises(UsageError, match="withhold_manual = false"):
        Tau2Environment(ScriptedModel([]))
    assert Tau2Environment(ScriptedModel([]), {"withhold_manual": False}).version


@pytest.mark.parametrize(
    ("id", "issue", "faults"),
    [
        ("[mms_issue]bad_apn|data_off[PERSONA:Easy]", "mms_issue", "bad_apn|data_off"),
        ("[mms_issue]bad_apn[CUSTOMER:C1001][PERSONA:None]", "mms_issue", "bad_apn"),
        ("17", "telecom", "17"),
    ],
)
def test_issue_and_faults_are_read_from_an_id(id: str, issue: str, faults: str) -> None:
    assert issue_and_faults(id) == (issue, faults)


@pytest.mark.parametrize(
    ("reply", "name", "thought"),
    [
        ('{"name": "a", "arguments": {"x": 1}}', "a", ""),
        ('Maybe {"name": "a"}? No:\n```json\n{"name": "b", "arguments": {}}\n```', "b", 'Maybe {"name": "a"}? No:'),
        ('{broken {"name": "a"}', "a", "{broken"),
        ('{"name": "a", "arguments": "x"}', None, ""),
        ('{"name": "a", "arguments": {"x": NaN}}', None, ""),
        ('{"arguments": {}}', None, ""),
        ("", None, ""),
        ("{" * 30_000, None, ""),
        ('{"a":' * 30_000, None, ""),
        ('{"name": "a", "arguments": {"x": ' + "[" * 300 + "]" * 300 + "}}", None, ""),
    ],
)
def test_the_last_call_of_a_reply_counts(reply: str, name: str | None, thought: str) -> None:
    found = read_call(reply)
    assert (found.name if found else None) == name
    assert (found.thought if found else "") == thought


def test_lone_surrogates_in_arguments_are_replaced() -> None:
    found = read_call('{"name": "say", "arguments": {"content": "a\\ud800b"}}')
    assert found is not None
    assert found.arguments == {"content": "a\ufffdb"}

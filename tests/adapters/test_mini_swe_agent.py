from __future__ import annotations

import asyncio
import importlib.util
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest
from examples_of import load
from unreadable_end import ENDS, check_nobody_notices, fails

import lessonbank
from lessonbank.adapters.following import scope_of
from lessonbank.adapters.mini_swe_agent import ReasoningBankAgent
from lessonbank.testing import AdapterContract, Calls, Request, Says, ScriptedAgentModel
from lessonbank.testing.adapter_contract import BROKEN, DELEGATE, LESSON, TASK, TOOL, Raises

if importlib.util.find_spec("minisweagent") is None:
    pytest.skip("mini-swe-agent is not installed", allow_module_level=True)

os.environ.setdefault("MSWEA_SILENT_STARTUP", "1")
pytestmark = pytest.mark.full
HAND_IN = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"


@pytest.fixture(autouse=True)
def no_settings_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MSWEA_GLOBAL_CONFIG_DIR", str(tmp_path / "settings"))


class Model:
    """The protocol of mini-swe-agent's models around the script: each turn is one call of the tool `bash`."""

    config: Any = None

    def __init__(self, model: ScriptedAgentModel) -> None:
        self._model = model

    def query(self, messages: list[dict[str, Any]], **_: Any) -> dict[str, Any]:
        system, *others = messages
        told = [(str(m["role"]), str(m.get("content") or m.get("tool_calls"))) for m in others]
        reply = self._model.reply(Request(system["content"], tuple(told)))
        if isinstance(reply, Raises):
            raise KeyboardInterrupt if reply.words == "Ctrl-C" else RuntimeError(reply.words)
        command = f"echo {HAND_IN}; printf '{getattr(reply, 'text', '')}'"
        if isinstance(reply, Calls):
            command = f"{reply.tool} {next(iter(reply.arguments.values()), '')}"
        call = {"id": "c1", "type": "function", "function": {"name": "bash", "arguments": {"command": command}}}
        extra = {"actions": [{"command": command, "tool_call_id": "c1"}], "cost": 0.5}
        return {"role": "assistant", "content": None, "tool_calls": [call], "extra": extra}

    def format_message(self, **told: Any) -> dict[str, Any]:
        return told

    def format_observation_messages(
        self, message: dict[str, Any], outputs: list[dict[str, Any]], template_vars: Any = None
    ) -> list[dict[str, Any]]:
        from minisweagent.models.utils.actions_toolcall import format_toolcall_observation_messages

        actions = message["extra"]["actions"]
        return format_toolcall_observation_messages(
            actions=actions, outputs=outputs, observation_template="{{ output.output }}", template_vars=template_vars
        )

    def get_template_vars(self, **_: Any) -> dict[str, Any]:
        return {}

    def serialize(self) -> dict[str, Any]:
        return {}


class Program:
    """An agent for each task, as mini-swe-agent's own programs make them."""

    def __init__(self, model: ScriptedAgentModel, with_memory: Callable[[Any], Any]) -> None:
        self._model, self._with_memory = model, with_memory
        self.agents: list[Any] = []

    async def run(self, task: str, /, *, user: str = "ana", stream: bool = False) -> str:
        told = await asyncio.to_thread(self.agent().run, task, user=user)
        return str(told["submission"])

    async def stop_early(self, task: str, /) -> None:
        with pytest.raises(KeyboardInterrupt):
            self.agent().run(task, user="ana")

    def history(self) -> str:
        """A run leaves nothing that the next one is sent: it begins with no messages."""
        return repr([agent.extra_template_vars for agent in self.agents])

    def agent(self, **config: Any) -> Any:
        from minisweagent.agents.default import DefaultAgent
        from minisweagent.environments.local import LocalEnvironment

        program = self

        class Shell(LocalEnvironment):
            def execute(self, action: dict[str, Any], cwd: str = "", **more: Any) -> dict[str, Any]:
                tool, _, argument = str(action["command"]).partition(" ")
                known = {TOOL: f"page {argument}: 3 rows", BROKEN: "the disk is full"}
                if tool == DELEGATE:
                    known[DELEGATE] = program.agent().run(argument, user="ana")["submission"]
                if tool in known:
                    return {"output": known[tool], "returncode": int(tool == BROKEN), "exception_info": ""}
                return super().execute(action, cwd, **more)

        templates = {"system_template": "be terse", "instance_template": "Task: {{ task }}"}
        agent = DefaultAgent(Model(self._model), Shell(), **{**templates, **config})
        self.agents.append(agent)
        return self._with_memory(agent)


@pytest.mark.anyio
class TestMiniSweAgent(AdapterContract):
    source = "mini-swe-agent"
    cannot: ClassVar = {
        "test_a_streamed_run_is_kept_like_any_other": "mini-swe-agent does not stream",
        "test_a_hand_off_is_part_of_the_run": "there is one agent",
        "test_the_tools_of_the_agent_are_kept": "its shell is the one tool, and the agent does not name it",
    }

    def program(self, bank: lessonbank.ReasoningBank, model: ScriptedAgentModel, /, **options: Any) -> Program:
        options.setdefault("scope", lambda variables: scope_of("acme", variables["user"]))
        return Program(model, lambda plain: ReasoningBankAgent(plain, bank, **options))

    def plain(self, model: ScriptedAgentModel, /) -> Program:
        return Program(model, lambda plain: plain)

    def _check_the_work(self, bank: lessonbank.ReasoningBank) -> None:
        """Every tool of it is the shell."""
        (run,) = self._runs(bank)
        calls = [call for step in run.trajectory.steps for call in step.action.calls]
        seen = [o.text for step in run.trajectory.steps for o in step.observations if o.source == "tool"]
        assert [call.name for call in calls] == ["bash"] * 3
        assert [str(call.arguments["command"]).split()[0] for call in calls[:2]] == [TOOL, BROKEN]
        assert seen == ["page 1: 3 rows", "the disk is full"]
        assert (run.trajectory.task, run.trajectory.answer) == (TASK, "three rows")
        assert (run.trajectory.usage.requests, run.trajectory.usage.cost) == (3, 1.5)
        assert run.trajectory.metadata["source"] == self.source

    async def test_a_run_that_is_stopped_early_is_kept_as_unfinished(self, tmp_path: Path) -> None:
        """Ctrl-C is how somebody stops it."""
        with self._bank(tmp_path) as bank:
            model = ScriptedAgentModel({TASK: [Calls(TOOL, {"page": 1}), Raises("Ctrl-C")]})
            await self.program(bank, model).stop_early(TASK)
            bank.drain()
            (run,) = self._runs(bank)
            assert (run.status, run.verdict.outcome) == ("unfinished", "unknown")
            assert run.trajectory.metadata["stopped"] == "KeyboardInterrupt"
            assert "page 1: 3 rows" in run.trajectory.model_dump_json()

    async def test_a_limit_is_a_failure_that_the_framework_tells(self, tmp_path: Path) -> None:
        with self._bank(tmp_path) as bank:
            model = ScriptedAgentModel({TASK: [Calls(TOOL, {"page": 1})] * 2})
            told = self.program(bank, model).agent(step_limit=2).run(TASK, user="ana")
            assert told["exit_status"] == "LimitsExceeded"
            bank.drain()
            (run,) = self._runs(bank)
            assert run.trajectory.error == "the agent ended with LimitsExceeded"
            assert (run.verdict.outcome, run.verdict.source) == ("failure", "framework_error")

    async def test_handing_in_is_no_success(self, tmp_path: Path) -> None:
        with self._bank(tmp_path) as bank:
            agent = self.program(bank, ScriptedAgentModel({TASK: [Says("a patch")]})).agent()
            agent.run(TASK, user="ana")
            bank.drain()
            assert self._runs(bank)[0].verdict.outcome == "unknown"
            agent.runs.tell(agent.last.id, outcome="failure")
            bank.drain()
            verdict = self._runs(bank)[0].verdict
            assert (verdict.outcome, verdict.source) == ("failure", "ground_truth")

    async def test_a_template_may_place_the_variable_and_braces_in_a_lesson_mean_nothing(self, tmp_path: Path) -> None:
        with self._bank(tmp_path) as bank:
            told = "Open {{ config }} and {% raise %} the number of rows"
            bank.scoped(self.scope()).lessons.add(title=f"{LESSON} twice", content=told, task=TASK, by="Ana")
            model = ScriptedAgentModel({TASK: [Says("done")]})
            place = {"instance_template": "Task: {{ task }}\n{{ lessonbank }}\nGo."}
            self.program(bank, model).agent(**place).run(TASK, user="ana")
            ((_, first),) = model.requests[TASK][0].messages
            assert first.startswith(f"Task: {TASK}\nNotes from past tasks")
            assert "Open {{ config }} and {% raise %} the number" in first
            assert first.endswith("\nGo.")

    @pytest.mark.parametrize("replies", ENDS)
    async def test_an_end_that_cannot_be_read_changes_nothing_for_the_program(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, replies: Any
    ) -> None:
        monkeypatch.setattr(ReasoningBankAgent, "_messages", fails)
        with self._bank(tmp_path) as bank:
            agent = self.program(bank, ScriptedAgentModel({TASK: replies})).agent()
            check_nobody_notices(lambda: agent.run(TASK, user="ana")["submission"], replies, caplog)

    async def test_the_agent_is_as_it_was_after_the_run(self, tmp_path: Path) -> None:
        with self._bank(tmp_path) as bank:
            agent = self.program(bank, ScriptedAgentModel({TASK: [Says("done")]})).agent()
            before = agent.config
            agent.run(TASK, user="ana")
            assert agent.config is before
            assert "lessonbank" not in agent.extra_template_vars
            assert agent.messages[0]["content"] == "be terse"


def test_what_one_run_of_the_example_taught_stands_in_the_next() -> None:
    assert load("swe_bench").main() == [0, 1]


class ShellModel(Model):
    """A model that runs these commands one after the other, and hands in."""

    def __init__(self, *commands: str) -> None:
        self.commands = [*commands, f"echo {HAND_IN}"]
        self.seen: list[str] = []

    def query(self, messages: list[dict[str, Any]], **_: Any) -> dict[str, Any]:
        self.seen = [str(message.get("content")) for message in messages]
        command, id = self.commands.pop(0), f"c{len(self.commands)}"
        call = {"id": id, "type": "function", "function": {"name": "bash", "arguments": {"command": command}}}
        extra = {"actions": [{"command": command, "tool_call_id": id}], "cost": 0.5}
        return {"role": "assistant", "content": None, "tool_calls": [call], "extra": extra}


def test_what_got_a_failing_command_through_is_told_when_it_fails_again_in_another_task(tmp_path: Path) -> None:
    from minisweagent.agents.default import DefaultAgent
    from minisweagent.environments.local import LocalEnvironment

    (tmp_path / "Makefile").write_text(
        "test:\n\t@test -f made || { echo 'error: the module made is missing'; exit 1; }\nproto:\n\t@touch made\n"
    )
    templates = {"system_template": "be terse", "instance_template": "Task: {{ task }}"}
    evidence = lessonbank.Evidence(holdout=None)
    with lessonbank.connect(tmp_path / "b.db", scope="acme", embedder="lexical", evidence=evidence) as bank:

        def run(task: str, *commands: str) -> ShellModel:
            (tmp_path / "made").unlink(missing_ok=True)
            model = ShellModel(*commands)
            agent = ReasoningBankAgent(DefaultAgent(model, LocalEnvironment(cwd=str(tmp_path)), **templates), bank)
            agent.run(task)
            agent.last.kept.result(timeout=20)
            bank.drain()
            return model

        first = run("Fix the invoice", "make test", "make proto", "make test")
        assert not any("went through" in text for text in first.seen)
        (cure,) = bank.scoped("acme/@cures").lessons.list()
        assert (cure.place, cure.content) == ("make test", "`make proto` went through, and then it did.")
        second = run("Rename the parcel", "make test", "make proto", "make test")
        (told,) = [text for text in second.seen if cure.content in text]
        assert told.startswith("error: the module made is missing")
        (kept,) = [one for one in bank.runs.list() if one.trajectory.task == "Rename the parcel"]
        assert cure.content not in kept.trajectory.model_dump_json()
        assert len(kept.trajectory.metadata["recalls_again"]) == 1

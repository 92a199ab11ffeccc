from __future__ import annotations

import asyncio
import json
import threading
import uuid
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import pytest
from examples_of import load
from pydantic import PrivateAttr

import lessonbank
from lessonbank.adapters.following import scope_of
from lessonbank.errors import UsageError
from lessonbank.testing import AdapterContract, Calls, Request, Says, ScriptedAgentModel
from lessonbank.testing.adapter_contract import BROKEN, DELEGATE, LESSON, TASK, TOOL, Raises

if find_spec("openhands") is None:  # without an import: what it loads reads the settings below
    pytest.skip("OpenHands is not installed", allow_module_level=True)

OFFLINE = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "OPENHANDS_SUPPRESS_BANNER": "1", "OTEL_SDK_DISABLED": "true"}
with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings(action="ignore"):
    for name, value in OFFLINE.items():
        patch.setenv(name, value)
    from litellm import Usage as Used
    from openhands.sdk import Action, Agent, Conversation, Observation, Tool, ToolDefinition, register_tool
    from openhands.sdk.agent import ACPAgent
    from openhands.sdk.llm import Message, MessageToolCall, TextContent
    from openhands.sdk.security.confirmation_policy import AlwaysConfirm
    from openhands.sdk.testing import TestLLM
    from openhands.sdk.tool import ToolExecutor

    from lessonbank.adapters.openhands import ReasoningBankConversation

pytestmark = [
    pytest.mark.full,
    # What OpenHands and its own libraries warn about is theirs.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
]


@pytest.fixture(autouse=True)
def no_settings_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {**OFFLINE, "HOME": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)


class LookupAction(Action):
    page: int = 0


class BrokenAction(Action):
    pass


class DelegateAction(Action):
    task: str


class Said(Observation):
    pass


class LookupExecutor(ToolExecutor[LookupAction, Said]):
    def __call__(self, action: LookupAction, conversation: Any = None) -> Said:
        program_of(conversation).looks_up()
        return Said.from_text(f"page {action.page}: 3 rows")


class BrokenExecutor(ToolExecutor[BrokenAction, Said]):
    def __call__(self, action: BrokenAction, conversation: Any = None) -> Said:
        raise ValueError("the disk is full")


class DelegateExecutor(ToolExecutor[DelegateAction, Said]):
    """Has a sub-agent of its own."""

    def __call__(self, action: DelegateAction, conversation: Any = None) -> Said:
        sub = program_of(conversation).conversation()
        sub.send_message(action.task)
        sub.run()
        return Said.from_text(answer_of(sub))


class Made(ToolDefinition[Any, Said]):
    @classmethod
    def create(cls, *_: Any, **made: Any) -> Sequence[Made]:
        return [cls(description="Look a page up.", observation_type=Said, **made)]


class LookupTool(Made):
    name: ClassVar[str] = TOOL


class BrokenTool(Made):
    name: ClassVar[str] = BROKEN


class DelegateTool(Made):
    name: ClassVar[str] = DELEGATE


for tool, action, executor in (
    (LookupTool, LookupAction, LookupExecutor()),
    (BrokenTool, BrokenAction, BrokenExecutor()),
    (DelegateTool, DelegateAction, DelegateExecutor()),
):
    register_tool(tool.name, tool.create(action_type=action, executor=executor)[0])


class Scripted(TestLLM):
    """OpenHands' own test model, which asks the script."""

    _script: ScriptedAgentModel = PrivateAttr()

    def __init__(self, script: ScriptedAgentModel, **more: Any) -> None:
        super().__init__(model="scripted", usage_id=uuid.uuid4().hex, **more)
        self._script = script

    def completion(self, messages: Any, *args: Any, on_token: Any = None, **more: Any) -> Any:
        one = TestLLM.from_messages([self._reply(self._script.reply(request(messages)))])
        said = one.completion(messages, *args, **more)
        said.raw_response.usage = Used(prompt_tokens=10, completion_tokens=2, total_tokens=12)
        return said

    async def acompletion(self, messages: Any, *args: Any, on_token: Any = None, **more: Any) -> Any:
        return await asyncio.to_thread(self.completion, messages, *args, **more)

    @staticmethod
    def _reply(reply: Any) -> Any:
        if isinstance(reply, Raises):
            return RuntimeError(reply.words)
        if not isinstance(reply, Calls):
            return Message(role="assistant", content=[TextContent(text=reply.text)])
        arguments = json.dumps(dict(reply.arguments))
        call = MessageToolCall(id=uuid.uuid4().hex, name=reply.tool, arguments=arguments, origin="completion")
        return Message(role="assistant", content=[], tool_calls=[call])


def request(messages: Any) -> Request:
    system = "".join(words(m) for m in messages if m.role == "system")
    return Request(system, tuple((m.role, words(m)) for m in messages if m.role != "system"))


def words(message: Any) -> str:
    said = "\n".join(part.text for part in message.content)
    return said + "".join(call.name + call.arguments for call in message.tool_calls or ())


def answer_of(conversation: Any) -> str:
    from openhands.sdk.conversation.response_utils import get_agent_final_response

    return get_agent_final_response(conversation.state.events)


class Program:
    """A conversation for each run."""

    all: ClassVar[dict[str, Program]] = {}

    def __init__(self, model: ScriptedAgentModel, options: Mapping[str, Any] | None) -> None:
        self.model, self._options = model, options
        self.conversations: list[Any] = []
        self.looks_up: Callable[[], object] = lambda: None
        self.id = uuid.uuid4().hex
        self.all[self.id] = self

    async def run(self, task: str, /, *, user: str = "ana", stream: bool = False) -> str:
        """Streaming is for programs that do not await."""
        conversation = self.conversation(user, stream=stream)
        conversation.send_message(task)
        await (asyncio.to_thread(conversation.run) if stream else conversation.arun())
        return answer_of(conversation)

    async def stop_early(self, task: str, /) -> None:
        waiting, go_on = threading.Event(), threading.Event()
        self.looks_up = lambda: (waiting.set(), go_on.wait())
        conversation = self.conversation()
        conversation.send_message(task)
        running = asyncio.create_task(conversation.arun())
        await asyncio.to_thread(waiting.wait)
        conversation.interrupt()
        go_on.set()
        await running

    def history(self) -> str:
        return repr([[event.model_dump_json() for event in one.state.events] for one in self.conversations])

    def conversation(self, user: str = "ana", *, stream: bool = False, **more: Any) -> Any:
        tools = [Tool(name=name) for name in (TOOL, BROKEN, DELEGATE)]
        agent = Agent(llm=Scripted(self.model, stream=stream), tools=tools, system_prompt="be terse")
        more.setdefault("visualizer", None)
        heard = [lambda chunk: None] if stream else None
        tags = {"user": user, "program": self.id}
        conversation = Conversation(agent, workspace=".", tags=tags, token_callbacks=heard, **more)
        self.conversations.append(conversation)
        if self._options is None:
            return conversation
        options = {key: value for key, value in self._options.items() if key != "bank"}
        return ReasoningBankConversation(conversation, self._options["bank"], **options)


def program_of(conversation: Any) -> Program:
    return Program.all[conversation.state.tags["program"]]


@pytest.mark.anyio
class TestOpenHands(AdapterContract):
    source = "openhands"
    cannot: ClassVar = {
        "test_a_hand_off_is_part_of_the_run": "an agent delegates work with a tool",
    }

    def signature(self) -> str:
        return "lookup(page?: integer)"

    def program(self, bank: lessonbank.ReasoningBank, model: ScriptedAgentModel, /, **options: Any) -> Program:
        options.setdefault("scope", lambda conversation: scope_of("acme", conversation.state.tags["user"]))
        return Program(model, {"bank": bank, **options})

    def plain(self, model: ScriptedAgentModel, /) -> Program:
        return Program(model, None)

    def test_each_task_of_a_conversation_is_a_run(self, tmp_path: Path) -> None:
        other = "Write a letter"
        with self._bank(tmp_path) as bank:
            model = ScriptedAgentModel({TASK: [Says("three rows")], other: [Calls(TOOL, {"page": 1}), Says("dear")]})
            conversation = self.program(bank, model).conversation()
            for task in (TASK, other):
                conversation.send_message(task)
                conversation.run()
                conversation.run()  # there is nothing to do
            bank.drain()
            runs = {run.trajectory.task: run.trajectory for run in self._runs(bank)}
            assert {task: run.answer for task, run in runs.items()} == {TASK: "three rows", other: "dear"}
            assert "three rows" not in runs[other].model_dump_json()
            assert {run.metadata["conversation"] for run in runs.values()} == {str(conversation.id)}
            assert runs[other].usage.requests == 2

    def test_a_run_goes_on_when_the_user_has_confirmed(self, tmp_path: Path) -> None:
        with self._bank(tmp_path) as bank:
            model = ScriptedAgentModel({TASK: [Calls(TOOL, {"page": 1}), Says("three rows")]})
            conversation = self.program(bank, model).conversation()
            conversation.set_confirmation_policy(AlwaysConfirm())
            conversation.send_message(TASK)
            conversation.run()
            bank.drain()
            assert not self._runs(bank)
            conversation.run()
            bank.drain()
            (run,) = self._runs(bank)
            assert (run.trajectory.answer, run.trajectory.usage.requests) == ("three rows", 2)
            assert [r.words.count(LESSON) for r in model.requests[TASK]] == [1, 1]

    def test_a_run_that_nobody_confirms_is_unfinished_when_the_conversation_is_closed(self, tmp_path: Path) -> None:
        with self._bank(tmp_path) as bank:
            conversation = self.program(bank, ScriptedAgentModel({TASK: [Calls(TOOL)]})).conversation()
            conversation.set_confirmation_policy(AlwaysConfirm())
            conversation.send_message(TASK)
            conversation.run()
            conversation.close()
            bank.drain()
            (run,) = self._runs(bank)
            assert (run.status, run.trajectory.metadata["stopped"]) == ("unfinished", "closed")

    def test_what_goes_on_after_a_pause_is_a_run_with_the_same_task(self, tmp_path: Path) -> None:
        with self._bank(tmp_path) as bank:
            model = ScriptedAgentModel({TASK: [Calls(TOOL, {"page": 1}), Says("three rows")]})
            program = self.program(bank, model)
            conversation = program.conversation()
            program.looks_up = conversation.interrupt
            conversation.send_message(TASK)
            conversation.run()
            conversation.run()
            bank.drain()
            ended = {run.status: run.trajectory for run in self._runs(bank)}
            assert ended.pop("unfinished").metadata["stopped"] == "paused"
            (run,) = ended.values()
            assert (run.task, run.answer) == (TASK, "three rows")
            assert "page 1: 3 rows" in run.model_dump_json()

    def test_a_limit_is_an_error_of_the_framework(self, tmp_path: Path) -> None:
        with self._bank(tmp_path) as bank:
            model = ScriptedAgentModel({TASK: [Calls(TOOL, {"page": 1})]})
            conversation = self.program(bank, model).conversation(max_iteration_per_run=1)
            conversation.send_message(TASK)
            conversation.run()
            bank.drain()
            (run,) = self._runs(bank)
            assert "MaxIterationsReached" in (run.trajectory.error or "")
            assert (run.verdict.outcome, run.verdict.source) == ("failure", "framework_error")

    def test_the_model_may_change_in_the_middle_of_a_run(self, tmp_path: Path) -> None:
        with self._bank(tmp_path) as bank:
            model = ScriptedAgentModel({TASK: [Calls(TOOL, {"page": 1}), Says("three rows")]})
            program = self.program(bank, model)
            conversation = program.conversation()
            program.looks_up = lambda: conversation.conversation.switch_llm(Scripted(model))
            conversation.send_message(TASK)
            conversation.run()
            assert [r.words.count(LESSON) for r in model.requests[TASK]] == [1, 1]

    def test_an_answer_by_the_tool_finish_is_the_answer(self, tmp_path: Path) -> None:
        with self._bank(tmp_path) as bank:
            model = ScriptedAgentModel({TASK: [Calls("finish", {"message": "three rows"})]})
            conversation = self.program(bank, model).conversation()
            conversation.send_message(TASK)
            conversation.run()
            conversation.runs.tell(conversation.last.id, outcome="failure")
            bank.drain()
            (run,) = self._runs(bank)
            assert run.trajectory.answer == "three rows"
            assert not [call for step in run.trajectory.steps for call in step.action.calls]
            assert (run.verdict.outcome, run.verdict.source) == ("failure", "ground_truth")

    def test_an_agent_whose_model_is_asked_elsewhere_is_refused(self, tmp_path: Path) -> None:
        with self._bank(tmp_path) as bank:
            elsewhere = Conversation(ACPAgent(acp_command=["other-agent"]), workspace=tmp_path, visualizer=None)
            with pytest.raises(UsageError, match="lessonbank proxy"):
                ReasoningBankConversation(elsewhere, bank)


def test_what_one_run_of_the_example_taught_stands_in_the_next() -> None:
    (shown,) = load("openhands_agent").main()
    assert "changelog" in shown

"""Puts a bank around an agent of smolagents: `ReasoningBankAgent(CodeAgent(…), bank).run(task)`."""
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUntypedBaseClass=false, reportMissingTypeStubs=false

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any, Unpack, cast

from lessonbank.bank.sync import ReasoningBank
from lessonbank.contracts.records import Usage
from lessonbank.errors import MissingExtra

from .following import FollowedRun, Options, RunFollower, ToolResult, current_run, harmless

try:
    from smolagents.memory import ActionStep, MemoryStep, PlanningStep
    from smolagents.models import ChatMessage, MessageRole, get_tool_json_schema
    from smolagents.utils import AgentMaxStepsError
except ImportError as missing:
    raise MissingExtra("the adapter of smolagents", extra="smolagents") from missing

_FINAL = "final_answer"


class ReasoningBankAgent:
    """An agent of smolagents that is shown lessons, and whose runs are kept and learned from.

    It does everything that the agent does, also as a managed agent of another one: then its run has that one's run as
    parent. The text is a user message before the task of the run, and only in the requests: the agent's memory does
    not hold it. As before, an agent does one run at a time.

    Args:
        agent: a `CodeAgent`, a `ToolCallingAgent` or an agent of your own class.
        bank: what `lessonbank.connect` returns.
        scope: the scope of a run, from the agent: `lambda agent: scope_of("acme", agent.state["user"])`. The
            `additional_args` of the run are in the state already. Without it, the scope of the bank.
        patience: seconds a run waits for its lessons, 2 by default.
        verify: your own check of a finished run. It beats the judge.

    Raises:
        UsageError: an async bank, or a patience that cannot be.
    """

    def __init__(self, agent: Any, bank: ReasoningBank, /, **options: Unpack[Options[Any]]) -> None:
        self.agent = agent
        self.runs = RunFollower(bank, "smolagents", **options)
        self.last: FollowedRun | None = None
        """The last run: `agent.runs.tell(agent.last.id, outcome=…)`."""
        self._asked = ""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["agent"], name)

    def __call__(self, task: str, **options: Any) -> str:
        """Work for the agent that manages this one. The task is what that one asks, without the words around it."""
        self._asked = task
        try:
            return cast("str", type(self.agent).__call__(self, task, **options))
        finally:
            self._asked = ""

    def run(self, task: str, stream: bool = False, **options: Any) -> Any:
        """Do a task, as the agent's own `run` does: a generator of steps if `stream` is true, or else the answer."""
        if stream:
            return self._streamed(task, options)
        with self._followed(task, options) as (run, ended), run.running():
            result = self.agent.run(task, **options)
            ended.append(result)
        return result

    def _streamed(self, task: str, options: dict[str, Any]) -> Generator[Any]:
        with self._followed(task, options) as (run, ended):
            steps = self.agent.run(task, stream=True, **options)
            while True:
                with run.running():  # for each step anew: between two of them the caller's code runs
                    step = next(steps, None)
                if step is None:
                    return
                ended[:] = [getattr(step, "output", None)]
                yield step

    @contextmanager
    def _followed(self, task: str, options: dict[str, Any]) -> Generator[tuple[FollowedRun, list[Any]]]:
        agent = self.agent
        if options.get("additional_args"):
            agent.state.update(options["additional_args"])
        scope = self.runs.scoped(agent)
        run = self.last = self.runs.begin_waiting(self._asked or task, scope=scope, parent=current_run())
        run.can_call(lambda: [*agent.tools.values(), *agent.managed_agents.values()], get_tool_json_schema)
        start = len(agent.memory.steps) if options.get("reset") is False else 0
        ended: list[Any] = []
        try:
            with _text_in_requests(agent, run, start):
                yield run, ended
        except BaseException as error:
            with harmless("the end of a run"):
                if isinstance(error, Exception) and agent.interrupt_switch:
                    run.stop(_messages(agent, start), reason="interrupted")
                else:
                    usage = _usage(agent, start) if isinstance(error, Exception) else None
                    run.fail(error, _messages(agent, start), usage=usage)
            raise
        with harmless("the end of a run"):
            answer = getattr(ended[-1], "output", ended[-1]) if ended else None
            run.finish(
                _messages(agent, start),
                answer=None if answer is None else str(answer),
                error=_limit(agent),
                usage=_usage(agent, start),
            )


class _TextStep(MemoryStep):
    """Stands among the steps while they are written as messages, and is in no memory."""

    def __init__(self, text: str) -> None:
        self._text = text

    def to_messages(self, summary_mode: bool = False) -> list[Any]:
        return [ChatMessage(role=MessageRole.USER, content=[{"type": "text", "text": self._text}])]


@contextmanager
def _text_in_requests(agent: Any, run: FollowedRun, start: int) -> Generator[None]:
    """Each request of the run has the text before the task of the run, whose step is number `start`."""
    write = agent.write_memory_to_messages

    def written(summary_mode: bool = False) -> Any:
        steps = agent.memory.steps
        with harmless("a request"):
            agent.memory.steps = [*steps[:start], *_text_step(run.text), *_with_cures(run, steps[start:])]
        try:
            return write(summary_mode=summary_mode)
        finally:
            agent.memory.steps = steps

    agent.write_memory_to_messages = written
    try:
        yield
    finally:
        del agent.write_memory_to_messages


def _text_step(text: str) -> list[_TextStep]:
    return [_TextStep(text)] if text else []


def _with_cures(run: FollowedRun, steps: Sequence[Any]) -> Generator[Any]:
    """The steps of the run, each failure of a tool followed by what got past it before."""
    for number, step in enumerate(steps):
        yield step
        calls = _calls(step, number) if isinstance(step, ActionStep) else []
        if len(calls) == 1:  # of several, nobody knows which one failed
            id, named, failed = calls[0]["id"], calls[0]["function"], step.error is not None or None
            output = str(step.error) if failed else step.observations
            cures = run.follow_failures_waiting([ToolResult(id, named["name"], named["arguments"], output, failed)])
            yield from _text_step(cures[id])


def _messages(agent: Any, start: int) -> list[object]:
    messages: list[object] = [{"role": "system", "content": agent.memory.system_prompt.system_prompt}]
    for number, step in enumerate(agent.memory.steps[start:]):
        if isinstance(step, PlanningStep):
            messages.append({"role": "assistant", "content": step.plan})
        elif isinstance(step, ActionStep):
            messages += _turn(step, number)
        elif hasattr(step, "task"):
            messages.append({"role": "user", "content": step.task})
    return messages


def _turn(step: Any, number: int) -> list[object]:
    """What the agent did in a step, and what came back. A tool that failed is only in the model's message."""
    calls = _calls(step, number)
    only = calls[0]["id"] if len(calls) == 1 else None
    messages: list[object] = [{"role": "assistant", "content": step.model_output or "", "tool_calls": calls}]
    if step.observations and calls:
        messages.append({"role": "tool", "content": step.observations, "tool_call_id": only})
    if step.error:
        messages.append({"role": "tool", "content": str(step.error), "tool_call_id": only, "is_error": True})
    return messages


def _calls(step: Any, number: int) -> list[dict[str, Any]]:
    made = step.tool_calls or getattr(step.model_output_message, "tool_calls", None) or ()
    return [
        {"id": f"{number}-{call.id}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for call in made
        for name, arguments in [_name_and_arguments(call)]
        if name != _FINAL
    ]


def _name_and_arguments(call: Any) -> tuple[str, Any]:
    function = getattr(call, "function", call)
    return function.name, function.arguments


def _usage(agent: Any, start: int) -> Usage:
    costs = [cost for step in agent.memory.steps[start:] if (cost := getattr(step, "token_usage", None))]
    return Usage(
        requests=len(costs),
        input_tokens=sum(cost.input_tokens for cost in costs),
        output_tokens=sum(cost.output_tokens for cost in costs),
    )


def _limit(agent: Any) -> str | None:
    """An agent that reaches its most steps gives an answer all the same."""
    error = getattr(agent.memory.steps[-1], "error", None) if agent.memory.steps else None
    return str(error) if isinstance(error, AgentMaxStepsError) else None

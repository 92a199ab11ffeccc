"""Puts a bank into LangChain and LangGraph: `memory.follow(create_agent(…, middleware=[memory]))`."""

# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false, reportUntypedBaseClass=false
# pyright: reportMissingTypeStubs=false, reportInvalidTypeForm=false, reportUnknownLambdaType=false

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, NotRequired, TypeVar, Unpack
from uuid import UUID

from lessonbank.bank.sync import ReasoningBank
from lessonbank.errors import MissingExtra

from .following import FollowedRun, Options, RunFollower, current_run, last_asked, safely

try:
    from langchain.agents.middleware.types import (
        AgentMiddleware,
        AgentState,
        ModelRequest,
        ModelResponse,
        PrivateStateAttr,
        ToolCallRequest,
    )
    from langchain_core.callbacks import BaseCallbackHandler, BaseCallbackManager
    from langchain_core.messages import BaseMessage, HumanMessage, ToolMessage
    from langchain_core.utils.function_calling import convert_to_openai_tool
    from langgraph.channels import UntrackedValue
    from langgraph.config import get_config
    from langgraph.errors import GraphBubbleUp
    from langgraph.pregel import Pregel
    from langgraph.runtime import Runtime
    from langgraph.types import Command
except ImportError as missing:
    raise MissingExtra("the adapter of LangChain", extra="langchain") from missing

_MOST_OPEN: Final = 1000
"""Runs that are open at once: those whose end nobody tells must not fill the memory."""
Graph = TypeVar("Graph", bound=Pregel[Any, Any, Any, Any])


class RunState(AgentState[Any]):
    """The state of an agent, with the id of its run. A checkpoint never holds it."""

    lessonbank_run: NotRequired[Annotated[str, UntrackedValue, PrivateStateAttr]]


@dataclass(slots=True, kw_only=True)
class _Open:
    """A run that is not over, and what was said in it."""

    run: FollowedRun = field(init=False)
    task: str
    parent: str | None
    scope: str | None
    earlier: frozenset[str | None]
    """Ids of the messages of earlier runs in the same thread."""
    first: str | None
    """The id of the first message of this run."""
    graph: UUID | None
    """The run of the followed graph with which it ends."""
    thread: str | None
    instructions: str = ""
    seen: dict[str | None, BaseMessage] = field(default_factory=dict[str | None, BaseMessage])
    is_answered: bool = False
    is_paused: bool = False

    def see(self, messages: Sequence[BaseMessage]) -> None:
        self.seen.update({message.id: message for message in messages if message.id not in self.earlier})

    def messages(self) -> list[object]:
        instructions = [{"role": "system", "content": self.instructions}] if self.instructions else []
        return [*instructions, *self.seen.values()]


class ReasoningBankMiddleware(AgentMiddleware[RunState, Any, Any]):
    """Shows lessons in the requests of each run of an agent, and learns from each run.

    The text stands in a human message before the messages of the run, and only in the request: neither the state nor
    a checkpoint has it. With `follow`, a run that crashes or is left early is kept, too.

    Args:
        bank: what `lessonbank.connect` returns.
        scope: the scope of a run, from its runtime: `lambda runtime: scope_of("acme", runtime.context.user)`. Without
            it, the scope of the bank. If it fails, the run has no memory.
        patience: seconds a run waits for its lessons, 2 by default.
        verify: your own check of a finished run. It beats the judge.

    Raises:
        UsageError: an async bank, or a patience that cannot be.
    """

    state_schema = RunState

    def __init__(self, bank: ReasoningBank, /, **options: Unpack[Options[Runtime[Any]]]) -> None:
        super().__init__()
        self.tools = ()
        self.runs = RunFollower(bank, "langchain", **options)
        self._open: dict[str, _Open] = {}
        self._graphs = _Graphs(self._graph_ended)

    def follow(self, graph: Graph, /) -> Graph:
        """The graph, with each of its runs kept however it ends.

        The graph is an agent with this middleware, or has such agents as nodes: then they share one run.
        """
        return graph.with_config(callbacks=[self._graphs])

    def before_agent(self, state: RunState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Begin a run, or join that of the followed graph."""
        open_run = self._joined() or self._begin_waiting(state, runtime)
        return {"lessonbank_run": open_run.run.id} if open_run else None

    async def abefore_agent(self, state: RunState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Begin a run, or join that of the followed graph."""
        open_run = self._joined() or await self._begin(state, runtime)
        return {"lessonbank_run": open_run.run.id} if open_run else None

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Put the text before the messages of this run: at the same place with the same bytes in each request."""
        open_run = self._find_run(request.state) or self._begin_waiting(request.state, request.runtime)
        response = handler(_add_text(open_run, request) or request)
        _see(open_run, response)
        return response

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """Put the text before the messages of this run: at the same place with the same bytes in each request."""
        open_run = self._find_run(request.state) or await self._begin(request.state, request.runtime)
        response = await handler(_add_text(open_run, request) or request)
        _see(open_run, response)
        return response

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], ToolMessage | Command[Any]]
    ) -> ToolMessage | Command[Any]:
        """Follow a failure by what got past it before. An agent that begins in a tool has this run as its parent."""
        open_run = self._find_run(request.state)
        with open_run.run.running() if open_run else nullcontext():
            result = handler(request)
        tool_result = _printed(open_run, request, result)
        return (
            _followed_by(result, open_run.run.came_back_waiting(*tool_result)) if open_run and tool_result else result
        )

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]]
    ) -> ToolMessage | Command[Any]:
        """Follow a failure by what got past it before. An agent that begins in a tool has this run as its parent."""
        open_run = self._find_run(request.state)
        with open_run.run.running() if open_run else nullcontext():
            result = await handler(request)
        tool_result = _printed(open_run, request, result)
        return _followed_by(result, await open_run.run.came_back(*tool_result)) if open_run and tool_result else result

    def after_agent(self, state: RunState, runtime: Runtime[Any]) -> None:
        """Keep the run, or leave that to the followed graph."""
        if open_run := self._find_run(state):
            open_run.see(state["messages"])
            open_run.is_answered = True
            if open_run.graph is None:
                self._finish(open_run)

    async def aafter_agent(self, state: RunState, runtime: Runtime[Any]) -> None:
        """Keep the run, or leave that to the followed graph."""
        self.after_agent(state, runtime)

    def _begin_waiting(self, state: AgentState[Any], runtime: Runtime[Any]) -> _Open | None:
        if not (asked := self._asked(state, runtime)):
            return None
        id = str(asked.graph) if asked.graph else None
        asked.run = self.runs.begin_waiting(asked.task, run=id, scope=asked.scope, parent=asked.parent)
        return self._opened(asked)

    async def _begin(self, state: AgentState[Any], runtime: Runtime[Any]) -> _Open | None:
        if not (asked := self._asked(state, runtime)):
            return None
        id = str(asked.graph) if asked.graph else None
        asked.run = await self.runs.begin(asked.task, run=id, scope=asked.scope, parent=asked.parent)
        return self._opened(asked)

    @safely
    def _asked(self, state: AgentState[Any], runtime: Runtime[Any]) -> _Open:
        """What is asked in this run: the last messages of the user that stand together."""
        messages, parent = state["messages"], current_run()
        start = last_asked([isinstance(message, HumanMessage) for message in messages])
        own, top = self._graphs.here()
        return _Open(
            task="\n".join(message.text for message in messages[start:] if isinstance(message, HumanMessage)),
            parent=parent,
            scope=self.runs.scoped(runtime),
            earlier=frozenset(message.id for message in messages[:start]),
            first=messages[start].id if messages else None,
            graph=own if parent in self._open else top,
            thread=_thread(),
        )

    def _opened(self, begun: _Open) -> _Open:
        for old in list(self._open.values()):
            if old.is_paused and old.thread == begun.thread:
                self._stop(old, "the user went on with something else")
        self._open[begun.run.id] = begun
        for old in list(self._open.values())[:-_MOST_OPEN]:
            self._stop(old, "nobody told its end")
        return begun

    @safely
    def _joined(self) -> _Open | None:
        """The run of the followed graph that another agent began, unless this agent works in a tool."""
        _, top = self._graphs.here()
        open_run = self._open.get(str(top))
        return open_run if current_run() not in self._open else None

    @safely
    def _find_run(self, state: Any) -> _Open | None:
        """The run to which the state belongs: by its id, or by its thread when a run goes on that was interrupted."""
        if open_run := self._open.get(state.get("lessonbank_run", "")):
            return open_run
        thread = _thread()
        open_run = next((run for run in reversed(list(self._open.values())) if thread and run.thread == thread), None)
        if open_run and open_run.is_paused:
            open_run.graph, open_run.is_paused = self._graphs.here()[1], False
        return open_run

    def _graph_ended(self, graph: UUID, error: BaseException | None) -> None:
        for run in [run for run in list(self._open.values()) if run.graph == graph]:
            if isinstance(error, GraphBubbleUp) or (error is None and not run.is_answered):
                run.is_paused = True
            elif run.is_answered:
                self._finish(run)
            else:
                self._finish(run, error)

    def _finish(self, ended: _Open, error: BaseException | None = None) -> None:
        del self._open[ended.run.id]
        if error is not None:
            ended.run.fail(error, ended.messages())
        else:
            ended.run.finish(ended.messages())

    def _stop(self, ended: _Open, reason: str) -> None:
        del self._open[ended.run.id]
        ended.run.stop(ended.messages(), reason=reason)


class _Graphs(BaseCallbackHandler):
    """Tells when a run of a graph ends, however it ends. LangChain logs what a handler raises, and goes on."""

    run_inline = True

    def __init__(self, ended: Callable[[UUID, BaseException | None], None]) -> None:
        self._ended = ended
        self._parents: dict[UUID, UUID | None] = {}

    def on_chain_start(
        self, serialized: Any, inputs: Any, *, run_id: UUID, parent_run_id: UUID | None = None, **kwargs: Any
    ) -> None:
        """Note of what this run is a part."""
        self._parents[run_id] = parent_run_id

    def on_chain_end(self, outputs: Any, *, run_id: UUID, **kwargs: Any) -> None:
        """Tell it, if a run of an agent ends with this one."""
        self._over(run_id, None)

    def on_chain_error(self, error: BaseException, *, run_id: UUID, **kwargs: Any) -> None:
        """Tell it, if a run of an agent ends with this one."""
        self._over(run_id, error)

    def here(self) -> tuple[UUID | None, UUID | None]:
        """The runs of the graph whose node calls this, and of the outermost graph that is followed."""
        callbacks = get_config().get("callbacks")
        node = callbacks.parent_run_id if isinstance(callbacks, BaseCallbackManager) else None
        known = self._parents
        own = top = known.get(node) if node else None
        while top and (outer := known.get(top)) in known:  # what is around a followed graph tells nothing here
            top = outer
        return (own, top) if top in known else (None, None)

    def _over(self, run: UUID, error: BaseException | None) -> None:
        self._parents.pop(run, None)
        self._ended(run, error)


@safely
def _add_text(open_run: _Open | None, request: ModelRequest[Any]) -> ModelRequest[Any] | None:
    if not open_run:
        return None
    open_run.instructions = request.system_prompt or ""
    open_run.run.can_call(lambda: request.tools, convert_to_openai_tool)
    open_run.is_answered = False
    open_run.see(request.state["messages"])
    if not open_run.run.text:
        return None
    messages = request.messages
    place = next((place for place, message in enumerate(messages) if message.id == open_run.first), 0)
    shown = HumanMessage(open_run.run.text)
    return request.override(messages=[*messages[:place], shown, *messages[place:]])


@safely
def _see(open_run: _Open | None, response: ModelResponse[Any]) -> None:
    """Keep the answer in sight: a crash leaves no state to read it from."""
    if open_run:
        open_run.see(response.result)


@safely
def _printed(
    open_run: _Open | None, request: ToolCallRequest, result: object
) -> tuple[str, str, Any, object, bool | None] | None:
    """What a tool gave, as a run takes it."""
    if not isinstance(result, ToolMessage) or not open_run:
        return None
    call = request.tool_call
    return result.tool_call_id, call["name"], call["args"], result.content, result.status == "error" or None


def _followed_by(result: Any, text: str) -> Any:
    return result.model_copy(update={"content": f"{result.content}\n\n{text}"}) if text else result


def _thread() -> str | None:
    return get_config().get("configurable", {}).get("thread_id")

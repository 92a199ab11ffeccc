"""What LangGraph's server serves in its test: an agent with a memory, whose model follows the words of the task."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.runtime import Runtime

import lessonbank
from lessonbank.adapters.following import scope_of
from lessonbank.adapters.langchain import ReasoningBankMiddleware


@dataclass
class Context:
    user: str = "ana"


class Scripted(BaseChatModel):
    """Calls the tool that the task names, and answers with the title of the lesson that it was shown."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        task = next(m.text for m in reversed(messages) if m.type == "human")
        if "crash" in task:
            raise RuntimeError("the model is gone")
        if messages[-1].type == "tool":
            said = AIMessage("shown" if any("second page" in m.text for m in messages) else "not shown")
        else:
            wanted = "blocking" if "blocking" in task else "lookup"
            said = AIMessage("", tool_calls=[{"name": wanted, "args": {"page": 1}, "id": "c1"}])
        return ChatResult(generations=[ChatGeneration(message=said)])


@tool
async def lookup(page: int) -> str:
    """Look a page up."""
    return f"page {page}: 3 rows"


@tool
async def blocking(page: int) -> str:
    """Block the event loop, which the server's guard forbids."""
    time.sleep(0.001)
    return "nothing happened"


def scope(runtime: Runtime[Context]) -> str:
    return scope_of("acme", runtime.context.user)


bank = lessonbank.connect(
    os.environ["BANK"], scope="acme", evidence=lessonbank.Evidence(holdout=None), embedder="lexical"
)
memory = ReasoningBankMiddleware(bank, scope=scope)
agent = memory.follow(
    create_agent(Scripted(), [lookup, blocking], middleware=[memory], context_schema=Context, system_prompt="be terse")
)

"""An agent of Microsoft Agent Framework with a memory: one middleware more. Offline, with a scripted model.

Install `lessonbank[microsoft-agent-framework]`, then: python examples/microsoft_agent_framework.py
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from typing import Any

from agent_framework import Agent, BaseChatClient, ChatMiddlewareLayer, ChatResponse, Content, Message, tool
from agent_framework import FunctionInvocationLayer as Tools

import lessonbank
from lessonbank.adapters.microsoft_agent_framework import ReasoningBankMiddleware

CALLS = ["make release", "make changelog", "make release"]


class Scripted(Tools, ChatMiddlewareLayer, BaseChatClient):
    """Three calls, then an answer. Put a real one in its place: `OpenAIChatClient()`."""

    async def _inner_get_response(self, *, messages: Sequence[Message], **_: Any) -> ChatResponse:
        done = sum(message.role == "tool" for message in messages)
        call = Content.from_function_call(f"c{done}", "release", arguments={"command": CALLS[done % 3]})
        return ChatResponse(messages=[Message("assistant", [call if done < 3 else Content.from_text("Released.")])])


async def main() -> list[str]:
    """Two tasks: what the first one taught stands in the requests of the second."""
    done: set[str] = set()

    @tool
    def release(command: str) -> str:
        """Make a release, which needs its changelog first."""
        if command == CALLS[0] and CALLS[1] not in done:
            raise FileNotFoundError("CHANGELOG.md has no entry")
        done.add(command)
        return f"{command}: ok"

    unmeasured = lessonbank.Evidence(holdout=None)
    with (
        tempfile.TemporaryDirectory() as folder,
        lessonbank.connect(f"{folder}/bank.db", scope="acme", evidence=unmeasured) as bank,
    ):
        memory = ReasoningBankMiddleware(bank, verify=lambda run: run.answer == "Released.")
        agent = Agent(Scripted(), tools=[release], middleware=[memory])
        for task in ("Release version 1.2", "Release version 1.3"):
            await agent.run(task)
            bank.drain()  # only here: learning happens in the background
        return [recall.text for recall in bank.recalls.list() if recall.text]


if __name__ == "__main__":
    print("\n".join(asyncio.run(main())))

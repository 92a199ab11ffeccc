"""An agent of LlamaIndex with a memory: what the first task teaches, the second one is shown. Offline.

Install `lessonbank[llama-index]`, then: python examples/llama_index_agent.py
"""

import asyncio
from typing import Any

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import TextBlock, ToolCallBlock
from llama_index.core.llms import ChatMessage
from llama_index.core.llms.mock import MockFunctionCallingLLM

import lessonbank
from lessonbank.adapters.llama_index import ReasoningBankAgent

SCRIPT = ["make release", "make changelog", "make release"]
done: set[str] = set()


async def release(command: str) -> str:
    """Run a command. A release needs its changelog first."""
    if command == "make release" and "make changelog" not in done:
        raise ValueError("CHANGELOG.md has no entry")
    done.add(command)
    return f"{command}: ok"


def model(messages: Any, **_: Any) -> ChatMessage:
    """Stands in for a language model: three calls, then an answer."""
    turn = sum(message.role == "tool" for message in messages)
    if turn == len(SCRIPT):
        return ChatMessage(role="assistant", blocks=[TextBlock(text="Released.")])
    call = ToolCallBlock(tool_call_id=str(turn), tool_name="release", tool_kwargs={"command": SCRIPT[turn]})
    return ChatMessage(role="assistant", blocks=[call])


async def main() -> list[str]:
    """The texts that runs were shown."""
    unmeasured = lessonbank.Evidence(holdout=None)  # leave it out in earnest
    llm = MockFunctionCallingLLM(response_generator=model, is_chat_model=True)  # put your model in its place
    with lessonbank.connect(":memory:", scope="acme", embedder="lexical", evidence=unmeasured) as bank:
        plain = FunctionAgent(name="releaser", tools=[release], llm=llm)
        agent = ReasoningBankAgent(plain, bank, verify=lambda run: run.answer == "Released.")
        for task in ("Release version 1.2", "Release version 1.3"):
            await agent.run(task)
            await asyncio.to_thread(bank.drain)  # in real life the loop goes on at once
        return [recall.text for recall in bank.recalls.list() if recall.text]


if __name__ == "__main__":
    print("\n".join(asyncio.run(main())))

"""An agent of smolagents with a memory: what the first task teaches, the second one is shown. Offline.

Install `lessonbank[smolagents]`, then: python examples/smolagents_agent.py
"""

from typing import Any

from smolagents import ChatMessage, MessageRole, Model, ToolCallingAgent, tool
from smolagents.models import ChatMessageToolCall, ChatMessageToolCallFunction
from smolagents.monitoring import LogLevel

import lessonbank
from lessonbank.adapters.smolagents import ReasoningBankAgent

COMMANDS = ["make release", "make changelog", "make release"]
SCRIPT = [*(("release", {"command": one}) for one in COMMANDS), ("final_answer", {"answer": "Released."})]
done: set[str] = set()


@tool
def release(command: str) -> str:
    """Run a command. A release needs its changelog first.

    Args:
        command: the command
    """
    if command == "make release" and "make changelog" not in done:
        raise ValueError("CHANGELOG.md has no entry")
    done.add(command)
    return f"{command}: ok"


class Scripted(Model):
    """Stands in for a language model. Put a real one in its place: `LiteLLMModel(…)`."""

    def generate(self, messages: list[ChatMessage], *_: Any, **__: Any) -> ChatMessage:
        name, arguments = SCRIPT[sum(message.role == MessageRole.TOOL_RESPONSE for message in messages)]
        function = ChatMessageToolCallFunction(name=name, arguments=arguments)
        calls = [ChatMessageToolCall(id="1", type="function", function=function)]
        return ChatMessage(role=MessageRole.ASSISTANT, content="", tool_calls=calls)


def main() -> list[str]:
    """The texts that runs were shown."""
    unmeasured = lessonbank.Evidence(holdout=None)  # leave it out in earnest
    with lessonbank.connect(":memory:", scope="acme", embedder="lexical", evidence=unmeasured) as bank:
        plain = ToolCallingAgent(tools=[release], model=Scripted(), verbosity_level=LogLevel.OFF)
        agent = ReasoningBankAgent(plain, bank, verify=lambda run: run.answer == "Released.")
        for task in ("Release version 1.2", "Release version 1.3"):
            agent.run(task)
            bank.drain()  # in real life the loop goes on at once: learning happens in the background
        return [recall.text for recall in bank.recalls.list() if recall.text]


if __name__ == "__main__":
    print("\n".join(main()))

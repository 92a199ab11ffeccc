"""An agent of OpenHands with a memory: what the first task teaches, the second one is shown. Offline.

Install `lessonbank[openhands]`, then: python examples/openhands_agent.py
"""

from openhands.sdk import Action, Agent, Conversation, Observation, Tool, ToolDefinition, register_tool
from openhands.sdk.llm import Message, MessageToolCall, TextContent
from openhands.sdk.testing import TestLLM
from openhands.sdk.tool import ToolExecutor

import lessonbank
from lessonbank.adapters.openhands import ReasoningBankConversation

STEPS = ["release", "changelog", "release"]
done: set[str] = set()


class Done(Observation): ...


class ReleaseAction(Action):
    command: str


class Execute(ToolExecutor):
    def __call__(self, action: ReleaseAction, conversation: object = None) -> Done:
        fails = action.command == "release" and "changelog" not in done
        done.add(action.command)
        return Done.from_text("CHANGELOG.md has no entry" if fails else f"{action.command}: ok", is_error=fails)


class Release(ToolDefinition):
    @classmethod
    def create(cls, *_: object, **__: object) -> list["Release"]:
        return [cls(description="Do a step.", action_type=ReleaseAction, executor=Execute())]


def calls(id: str, step: str) -> Message:
    call = MessageToolCall(id=id, name="release", arguments=f'{{"command": "{step}"}}', origin="completion")
    return Message(role="assistant", tool_calls=[call])


def main() -> list[str]:
    """The texts that runs were shown."""
    register_tool("release", Release)
    with lessonbank.connect(":memory:", scope="acme", evidence=lessonbank.Evidence(holdout=None)) as bank:
        for version in ("1.2", "1.3"):
            turns = [*map(calls, "123", STEPS), Message(role="assistant", content=[TextContent(text="Released.")])]
            agent = Agent(llm=TestLLM.from_messages(turns), tools=[Tool(name="release")])
            plain = Conversation(agent, workspace=".", visualizer=None)
            conversation = ReasoningBankConversation(plain, bank, verify=lambda run: run.answer == "Released.")
            conversation.send_message(f"Release version {version}")
            conversation.run()
            bank.drain()  # in real life the loop goes on at once: learning happens in the background
        return [recall.text for recall in bank.recalls.list() if recall.text]


if __name__ == "__main__":
    print("\n".join(main()))

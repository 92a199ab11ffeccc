"""An agent of PydanticAI with a memory: one capability more. Offline, with a scripted model.

Install `lessonbank[pydantic-ai]`, then: python examples/pydantic_ai_agent.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from pydantic_ai import Agent, ModelRetry
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

import lessonbank
from lessonbank.adapters.pydantic_ai import ReasoningBankCapability

SCRIPT = [
    ToolCallPart("release", {"command": "make release"}),
    ToolCallPart("release", {"command": "make changelog"}),
    ToolCallPart("release", {"command": "make release"}),
]


def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Stands in for a language model: three calls, then an answer. Put a real one in its place: "openai:gpt-5-mini"."""
    done = sum(isinstance(message, ModelResponse) for message in messages)
    return ModelResponse([SCRIPT[done] if done < len(SCRIPT) else TextPart("Released.")])


def release(command: str) -> str:
    """The agent's tool: a release needs its changelog first."""
    if command == "make changelog":
        release.ready = True  # type: ignore[attr-defined]
    elif not getattr(release, "ready", False):
        raise ModelRetry("CHANGELOG.md has no entry")
    return f"{command}: ok"


def main() -> list[str]:
    """Two tasks: what the first one taught stands in the requests of the second."""
    with (
        tempfile.TemporaryDirectory() as folder,
        lessonbank.connect(Path(folder) / "bank.db", scope="acme", evidence=lessonbank.Evidence(holdout=None)) as bank,
    ):
        memory = ReasoningBankCapability(bank, verify=lambda run: run.answer == "Released.")
        agent = Agent(FunctionModel(model), tools=[release], capabilities=[memory])
        for task in ("Release version 1.2", "Release version 1.3"):
            agent.run_sync(task)
            bank.drain()  # the loop goes on at once in real life: learning happens in the background
        return [recall.text for recall in bank.recalls.list() if recall.text]


if __name__ == "__main__":
    print("\n".join(main()))

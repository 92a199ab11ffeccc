"""An agent of LangChain with a memory: one middleware more. Offline, with a scripted model.

Install `lessonbank[langchain]`, then: python examples/langchain_agent.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage

import lessonbank
from lessonbank.adapters.langchain import ReasoningBankMiddleware

SCRIPT = ["make release", "make changelog", "make release"]
ready: set[str] = set()


class Scripted(GenericFakeChatModel):
    """Stands in for a language model: three calls, then an answer. Put a real one in its place: "openai:gpt-5-mini"."""

    def bind_tools(self, tools: Any, **options: Any) -> Any:
        return self


def answers() -> list[AIMessage]:
    """What the model says in one run."""
    calls = [{"name": "release", "args": {"command": command}, "id": command} for command in SCRIPT]
    return [*(AIMessage("", tool_calls=[call]) for call in calls), AIMessage("Released.")]


def release(command: str) -> str:
    """The agent's tool: a release needs its changelog first."""
    ready.add(command)
    return f"{command}: ok" if "make changelog" in ready else "error: CHANGELOG.md has no entry"


def main() -> list[str]:
    """Two tasks: what the first one taught stands in the requests of the second."""
    unmeasured = lessonbank.Evidence(holdout=None)
    with (
        tempfile.TemporaryDirectory() as folder,
        lessonbank.connect(Path(folder) / "bank.db", scope="acme", evidence=unmeasured) as bank,
    ):
        memory = ReasoningBankMiddleware(bank, verify=lambda run: run.answer == "Released.")
        model = Scripted(messages=iter([*answers(), *answers()]))
        agent = memory.follow(create_agent(model, [release], middleware=[memory]))
        for task in ("Release version 1.2", "Release version 1.3"):
            agent.invoke({"messages": [("user", task)]})  # type: ignore[arg-type]
            bank.drain()  # the loop goes on at once in real life: learning happens in the background
        return [recall.text for recall in bank.recalls.list() if recall.text]


if __name__ == "__main__":
    print("\n".join(main()))

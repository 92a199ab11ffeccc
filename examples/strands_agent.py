"""An agent of Strands with a memory: one plugin more. Offline, with a scripted model.

Install `lessonbank[strands-agents]`, then: python examples/strands_agent.py
"""

from __future__ import annotations

import json
import tempfile
from typing import Any

from strands import Agent, tool
from strands.models.model import Model

import lessonbank
from lessonbank.adapters.strands_agents import ReasoningBankPlugin

CALLS = ["make release", "make changelog", "make release"]


@tool
def release(command: str, agent: Agent) -> str:
    """Make a release, which needs its changelog first."""
    if command == CALLS[0] and CALLS[1] not in str(agent.messages):
        raise FileNotFoundError("CHANGELOG.md has no entry")
    return f"{command}: ok"


class Scripted(Model):
    """Three calls, then an answer. Put a real model in its place: leave `model=` out, and Strands takes Bedrock's."""

    update_config = get_config = structured_output = lambda self, **config: {}  # type: ignore[assignment]

    async def stream(self, messages: Any, *_: Any, **__: Any) -> Any:
        calls = CALLS[len(messages) // 2 :]
        start = {"toolUse": {"name": "release", "toolUseId": f"call_{len(messages)}"}} if calls else {}
        delta = {"toolUse": {"input": json.dumps({"command": calls[0]})}} if calls else {"text": "Released."}
        yield {"messageStart": {"role": "assistant"}}
        yield {"contentBlockStart": {"start": start}}
        yield {"contentBlockDelta": {"delta": delta}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "tool_use" if calls else "end_turn"}}


def main() -> list[str]:
    """Two tasks: what the first one taught stands in the requests of the second."""
    with (
        tempfile.TemporaryDirectory() as folder,
        lessonbank.connect(f"{folder}/bank.db", scope="acme", evidence=lessonbank.Evidence(holdout=None)) as bank,
    ):
        memory = ReasoningBankPlugin(bank, verify=lambda run: run.answer == "Released.")
        for task in ("Release version 1.2", "Release version 1.3"):
            Agent(model=Scripted(), tools=[release], plugins=[memory], callback_handler=None)(task)
            bank.drain()  # only here: learning happens in the background
        return [recall.text for recall in bank.recalls.list() if recall.text]


if __name__ == "__main__":
    print("\n".join(main()))

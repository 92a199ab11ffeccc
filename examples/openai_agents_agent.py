"""An agent of the OpenAI Agents SDK with a memory: another runner. Offline, with the SDK's own scripted model.

Install `lessonbank[openai-agents]`, then: python examples/openai_agents_agent.py
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from agents import Agent, function_tool, set_tracing_disabled
from agents.testing import ScriptedModel, assistant_message, function_call

import lessonbank
from lessonbank.adapters.openai_agents import ReasoningBankRunner

SCRIPT = ["make release", "make changelog", "make release"]
ready: set[str] = set()


def model() -> ScriptedModel:
    """Stands in for a language model: three calls, then an answer. Put a real one in its place: "gpt-5-mini"."""
    calls = [[function_call("release", {"command": told}, call_id=f"call-{n}")] for n, told in enumerate(SCRIPT)]
    return ScriptedModel([*calls, [assistant_message("Released.")]])


@function_tool
def release(command: str) -> str:
    """The agent's tool: a release needs its changelog first."""
    ready.add(command)
    return f"{command}: ok" if "make changelog" in ready else "error: CHANGELOG.md has no entry"


async def main() -> list[str]:
    """Two tasks: what the first one taught stands in the requests of the second."""
    set_tracing_disabled(True)  # the SDK sends traces to OpenAI unless this is off
    unmeasured = lessonbank.Evidence(holdout=None)
    with (
        tempfile.TemporaryDirectory() as folder,
        lessonbank.connect(Path(folder) / "bank.db", scope="acme", evidence=unmeasured) as bank,
    ):
        runner = ReasoningBankRunner(bank, verify=lambda run: run.answer == "Released.")
        for task in ("Release version 1.2", "Release version 1.3"):
            await runner.run(Agent(name="releaser", model=model(), tools=[release]), task)
            bank.drain()  # the loop goes on at once in real life: learning happens in the background
        return [recall.text for recall in bank.recalls.list() if recall.text]


if __name__ == "__main__":
    print("\n".join(asyncio.run(main())))

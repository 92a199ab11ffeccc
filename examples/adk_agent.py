"""An agent of Google ADK with a memory: one plugin more. Offline, with a scripted model.

Install `lessonbank[adk]`, then: python examples/adk_agent.py
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncGenerator
from pathlib import Path

from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.runners import InMemoryRunner
from google.genai.types import Content, Part

import lessonbank
from lessonbank.adapters.adk import ReasoningBankPlugin

SCRIPT = ["make release", "make changelog", "make release"]
ready: set[str] = set()


class Scripted(BaseLlm):
    """Stands in for a language model: three calls, then an answer. Put a real one in its place: "gemini-2.5-flash"."""

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        done = sum(content.role == "model" for content in llm_request.contents)
        call = Part.from_function_call(name="release", args={"command": SCRIPT[done]}) if done < len(SCRIPT) else None
        yield LlmResponse(content=Content(role="model", parts=[call or Part(text="Released.")]))


def release(command: str) -> dict[str, str]:
    """The agent's tool: a release needs its changelog first."""
    ready.add(command)
    return {"result": "ok"} if "make changelog" in ready else {"error": "CHANGELOG.md has no entry"}


async def main() -> list[str]:
    """Two tasks: what the first one taught stands in the requests of the second."""
    with (
        tempfile.TemporaryDirectory() as folder,
        lessonbank.connect(Path(folder) / "bank.db", scope="acme", evidence=lessonbank.Evidence(holdout=None)) as bank,
    ):
        memory = ReasoningBankPlugin(bank, verify=lambda run: run.answer == "Released.")
        agent = LlmAgent(name="releaser", model=Scripted(model="scripted"), tools=[release])
        runner = InMemoryRunner(app=App(name="shop", root_agent=agent, plugins=[memory]))
        for task in ("Release version 1.2", "Release version 1.3"):
            await runner.run_debug(task, user_id="ana", session_id=task, quiet=True)
            bank.drain()  # the loop goes on at once in real life: learning happens in the background
        return [recall.text for recall in bank.scoped("shop/ana").recalls.list() if recall.text]


if __name__ == "__main__":
    print("\n".join(asyncio.run(main())))

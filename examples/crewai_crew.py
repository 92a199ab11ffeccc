"""A crew of CrewAI with a memory: what the first task teaches, the second one is shown. Offline.

Install `lessonbank[crewai]`, then: python examples/crewai_crew.py
"""

import json
from typing import Any

from crewai import Agent, BaseLLM, Crew, Task
from crewai.tools import tool

import lessonbank
from lessonbank.adapters.crewai import ReasoningBankCrew

COMMANDS = ["make release", "make changelog", "make release"]
done: set[str] = set()


@tool
def release(command: str) -> str:
    """Run a command. A release needs its changelog first."""
    if command == "make release" and "make changelog" not in done:
        raise ValueError("CHANGELOG.md has no entry")
    done.add(command)
    return f"{command}: ok"


class Scripted(BaseLLM):
    """Stands in for a language model. Put a real one in its place: `llm="openai/gpt-5"`."""

    def supports_function_calling(self) -> bool:
        return True

    def call(self, messages: Any, *_: Any, **__: Any) -> Any:
        turn = sum(message["role"] == "tool" for message in messages)
        if turn == len(COMMANDS):
            return "Released."
        arguments = json.dumps({"command": COMMANDS[turn]})
        return [{"id": f"{turn}", "type": "function", "function": {"name": "release", "arguments": arguments}}]


def main() -> list[str]:
    """The texts that runs were shown."""
    unmeasured = lessonbank.Evidence(holdout=None)  # leave it out in earnest
    with lessonbank.connect(":memory:", scope="acme", embedder="lexical", evidence=unmeasured) as bank:
        clerk = Agent(role="clerk", goal="to release", backstory="", llm=Scripted(model="scripted"), tools=[release])
        task = Task(description="Release version {version}", expected_output="what was done", agent=clerk)
        crew = ReasoningBankCrew(Crew(agents=[clerk], tasks=[task]), bank, verify=lambda run: run.answer == "Released.")
        for version in ("1.2", "1.3"):
            crew.kickoff(inputs={"version": version})
            bank.drain()  # in real life the loop goes on at once: learning happens in the background
        return [recall.text for recall in bank.recalls.list() if recall.text]


if __name__ == "__main__":
    print("\n".join(main()))

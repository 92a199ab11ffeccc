"""A program of DSPy with a memory: what the first task teaches, the second one is shown. Offline.

Install `lessonbank[dspy]`, then: python examples/dspy_program.py
"""

import dspy
from dspy.utils.dummies import DummyLM

import lessonbank
from lessonbank.adapters.dspy import ReasoningBankModule

COMMANDS = ["make release", "make changelog", "make release"]
SCRIPT = [
    *({"next_thought": "", "next_tool_name": "release", "next_tool_args": {"command": one}} for one in COMMANDS),
    {"next_thought": "", "next_tool_name": "finish", "next_tool_args": {}},
    {"reasoning": "All is done.", "answer": "Released."},
]
done: set[str] = set()


def release(command: str) -> str:
    """Run a command. A release needs its changelog first."""
    if command == "make release" and "make changelog" not in done:
        raise ValueError("CHANGELOG.md has no entry")
    done.add(command)
    return f"{command}: ok"


def main() -> list[str]:
    """The texts that runs were shown."""
    unmeasured = lessonbank.Evidence(holdout=None)  # leave it out in earnest
    with (
        lessonbank.connect(":memory:", scope="acme", embedder="lexical", evidence=unmeasured) as bank,
        dspy.context(lm=DummyLM(SCRIPT * 2)),  # put your model in its place: dspy.LM("openai/gpt-5-mini")
    ):
        program = dspy.ReAct("task -> answer", tools=[release])
        module = ReasoningBankModule(program, bank, verify=lambda run: run.answer == "Released.")
        for task in ("Release version 1.2", "Release version 1.3"):
            module(task=task)
            bank.drain()  # in real life the loop goes on at once: learning happens in the background
        return [recall.text for recall in bank.recalls.list() if recall.text]


if __name__ == "__main__":
    print("\n".join(main()))

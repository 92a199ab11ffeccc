"""The same on the Anthropic SDK: its messages go into `learn` as they are.

ANTHROPIC_API_KEY=… python examples/anthropic_loop.py
"""

import os
from typing import Any

import lessonbank

MODEL = os.environ.get("MODEL", "claude-sonnet-4-5")
TOOLS: Any = [
    {
        "name": "read_file",
        "description": "Read a file of the project.",
        "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
    }
]
FILES = {"README.md": "Run the tests with `make check`."}


def run(client: Any, task: str, memory: str) -> dict[str, Any]:
    """Ask, answer tool calls, ask again; returns the conversation with its system prompt."""
    system = "You know this project.\n\n" + memory
    messages: list[Any] = [{"role": "user", "content": task}]
    for _ in range(8):
        reply = client.messages.create(model=MODEL, max_tokens=1024, system=system, messages=messages, tools=TOOLS)
        blocks = [block.model_dump() for block in reply.content]
        messages.append({"role": "assistant", "content": blocks})
        results = [
            {"type": "tool_result", "tool_use_id": b["id"], "content": FILES.get(b["input"]["path"], "no such file")}
            for b in blocks
            if b["type"] == "tool_use"
        ]
        if not results:
            break
        messages.append({"role": "user", "content": results})
    return {"system": system, "messages": messages}


def main(client: Any, where: str, task: str, **options: Any) -> lessonbank.Learned:
    """One task as a `with` block: a crash inside it is learned as a failed attempt."""
    with lessonbank.connect(where, scope="acme/code", **options) as bank, bank.attempt(task) as attempt:
        return attempt.finish(run(client, task, attempt.text))


if __name__ == "__main__":
    from anthropic import Anthropic

    print(main(Anthropic(), "bank.db", "How are the tests run?", model=f"anthropic:{MODEL}"))

"""A bare tool loop on the OpenAI SDK, with the three lines that give it a memory.

OPENAI_API_KEY=… python examples/openai_loop.py          (or OPENAI_BASE_URL=… for any compatible server)
"""

import json
import os
from typing import Any

from openai import OpenAI

import lessonbank

MODEL = os.environ.get("MODEL", "gpt-5-mini")
ORDERS = {"W123": "pending", "W456": "shipped"}
TOOLS: Any = [
    {
        "type": "function",
        "function": {
            "name": "cancel_order",
            "description": "Cancel an order by its id.",
            "parameters": {"type": "object", "properties": {"order": {"type": "string"}}, "required": ["order"]},
        },
    }
]


def cancel_order(order: str) -> str:
    """The only tool."""
    return "cancelled" if ORDERS.get(order) == "pending" else "error: only pending orders can be cancelled"


def run(client: OpenAI, task: str, memory: str) -> list[dict[str, Any]]:
    """The usual loop: ask, call the tools, ask again. Returns the messages as they are."""
    messages: list[Any] = [{"role": "system", "content": "You serve customers.\n\n" + memory}]
    messages.append({"role": "user", "content": task})
    for _ in range(8):
        reply = client.chat.completions.create(model=MODEL, messages=messages, tools=TOOLS).choices[0].message
        messages.append(reply.model_dump(exclude_none=True))
        for call in reply.tool_calls or ():
            result = cancel_order(**json.loads(call.function.arguments))  # type: ignore[union-attr]
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
        if not reply.tool_calls:
            break
    return messages


def main(client: OpenAI, where: str, task: str, **options: Any) -> lessonbank.Learned:
    """One task with memory: the three lines are connect, retrieve and learn."""
    with lessonbank.connect(where, scope="acme/support", **options) as bank:
        recall = bank.retrieve(task)
        return bank.learn(run(client, task, recall.text), recall=recall)


if __name__ == "__main__":
    print(main(OpenAI(), "bank.db", "Cancel the pending order W123", model=f"openai:{MODEL}"))

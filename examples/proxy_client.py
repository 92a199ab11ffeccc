"""An OpenAI client gets a memory by its base URL alone: `lessonbank proxy` stands between it and its model.

lessonbank proxy --upstream https://api.openai.com --bank bank.db --scope acme/code
OPENAI_API_KEY=… python examples/proxy_client.py
"""

import json
import os
import urllib.request
from typing import Any

PROXY = "http://127.0.0.1:8788"
MODEL = os.environ.get("MODEL", "gpt-5-mini")
DONE: set[str] = set()
SCHEMA = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
TOOLS: Any = [{"type": "function", "function": {"name": "shell", "description": "Run make.", "parameters": SCHEMA}}]


def shell(command: str) -> str:
    """A project whose release needs an entry in its changelog."""
    if command == "make release" and "make changelog" not in DONE:
        return "error: CHANGELOG.md has no entry for this version"
    DONE.add(command)
    return {"make changelog": "CHANGELOG.md updated", "make release": "released"}.get(command, "no such target")


def run(client: Any, task: str) -> str:
    """The loop of an agent, as it was before; returns the id of the last response."""
    DONE.clear()
    messages: list[Any] = [{"role": "user", "content": task}]
    while True:
        reply = client.chat.completions.create(model=MODEL, messages=messages, tools=TOOLS)
        message = reply.choices[0].message
        messages.append(message)
        if not message.tool_calls:
            return reply.id
        for call in message.tool_calls:
            result = shell(json.loads(call.function.arguments)["command"])
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})


def tell(proxy: str, response: str, outcome: str) -> None:
    """Say how the run ended. Without this, the proxy's judge decides a minute after the last answer."""
    body = json.dumps({"response": response, "outcome": outcome, "wait": True}).encode()
    headers = {"content-type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(f"{proxy}/lessonbank/outcome", body, headers)) as reply:
        print(json.load(reply))


if __name__ == "__main__":
    from openai import OpenAI

    for version in ("1.4", "1.5"):
        last = run(OpenAI(base_url=f"{PROXY}/v1"), f"Publish release {version} of the parser")
        tell(PROXY, last, "success" if "make release" in DONE else "failure")

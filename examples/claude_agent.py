"""The Claude Agent SDK with a memory: `memory.query` for `query`. Offline: its own Claude Code, a scripted model.

Install `lessonbank[claude-agent]`, then: python examples/claude_agent.py
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from typing import Any

from claude_agent_sdk import ClaudeAgentOptions

import lessonbank
from lessonbank.adapters.claude_agent import ReasoningBankClaude
from lessonbank.testing.model_server import Fault, ModelServer

COMMANDS = ["cat notes", "echo 'Version 1' > notes.txt", "cat notes.txt"]
USAGE = {"usage": {"input_tokens": 1, "output_tokens": 1}}


def model(body: dict[str, Any]) -> Fault:
    """Stands in for the model: three commands, then an answer. Without `env=` below, Claude Code asks a real one."""
    done = sum("tool_result" in str(message["content"]) for message in body["messages"])
    call, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": "Version 1"}
    if busy := done < len(COMMANDS):
        call = {"type": "tool_use", "id": f"t{done}", "name": "Bash", "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps({"command": COMMANDS[done]})}
    message = {"id": f"m{done}", "type": "message", "role": "assistant", "model": "m", "content": [], **USAGE}
    events = [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": call},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use" if busy else "end_turn"}, **USAGE},
        {"type": "message_stop"},
    ]
    sent = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
    return Fault(status=200, headers={"content-type": "text/event-stream"}, body=sent.encode())


async def main() -> str:
    """Do a task, vouch for what it taught, and do the next one: the lesson stands in its request."""
    with tempfile.TemporaryDirectory() as home, ModelServer(default=model) as server:
        env = {"HOME": home, "CLAUDE_CONFIG_DIR": home, "ANTHROPIC_BASE_URL": server.base_url.removesuffix("/v1")}
        env |= {"ANTHROPIC_API_KEY": "none", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}
        options = ClaudeAgentOptions(cwd=home, env=env, setting_sources=[], allowed_tools=["Bash"])
        with lessonbank.connect(f"{home}/bank.db", scope="acme", evidence=lessonbank.Evidence(holdout=None)) as bank:
            memory = ReasoningBankClaude(bank, verify=lambda run: run.answer == "Version 1")
            for task in ("Say which version notes.txt names", "Say which version the file notes.txt names"):
                _ = [message async for message in memory.query(prompt=task, options=options)]
                bank.drain()
                bank.lessons.approve(*(lesson.id for lesson in bank.lessons.list()), by="Ana")
            return next((recall.text for recall in bank.recalls.list() if recall.text), "")


if __name__ == "__main__":
    print(asyncio.run(main()))

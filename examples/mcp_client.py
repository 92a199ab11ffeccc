"""A client of `lessonbank mcp`: what one session records, a later session recalls.

python examples/mcp_client.py
"""

import asyncio
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

import lessonbank

TASK = "Open the dashboard of the staging site"
STEPS = [{"did": "look for a port"}, {"did": "connect 8443", "saw": "error: connection refused"}]
SERVER = ("-m", "lessonbank.cli", "mcp", "--scope", "docs/mcp", "--embedder", "lexical", "--holdout", "0")


async def call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """What a tool answers. An agent's framework does this for you."""
    answer = await client.call_tool(tool, arguments)
    if answer.is_error or answer.structured_content is None:
        raise RuntimeError(str(answer.content))
    return answer.structured_content


async def session(bank: Path) -> tuple[str, str]:
    """Recall, work, record; returns what was recalled and the id of the run."""
    server = StdioServerParameters(command=sys.executable, args=[*SERVER, "--bank", str(bank)], env=dict(os.environ))
    async with Client(stdio_client(server)) as client:
        recalled = await call(client, "recall", task=TASK)
        claim = {"recall_id": recalled["recall_id"], "outcome": "success"}
        recorded = await call(client, "record", task=TASK, steps=STEPS, **claim)
        return recalled["text"], recorded["run_id"]


def main() -> str:
    """Two sessions, and a person between them who says how the first one ended."""
    with tempfile.TemporaryDirectory() as folder:
        bank = Path(folder) / "bank.db"
        _, run = asyncio.run(session(bank))
        with lessonbank.connect(bank, scope="docs/mcp", embedder="lexical") as memory:
            memory.runs.correct(run, outcome="failure", by="Ana", reason="the dashboard never opened")
        text, _ = asyncio.run(session(bank))
    print(text)
    return text


if __name__ == "__main__":
    main()

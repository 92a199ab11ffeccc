"""Starts LangGraph's server with an agent that has a memory, and asks it, in a namespace that has nothing but loopback.

Run as a program inside that namespace: `langgraph_server.py FOLDER`. It leaves `FOLDER/result.json`.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from langgraph_sdk import get_client

import lessonbank

LIMIT = 120  # seconds
TASK = "Count the rows of the report"


def main(folder: Path) -> None:
    shutil.copy(Path(__file__).with_name("langgraph_app.py"), folder / "app.py")
    (folder / "langgraph.json").write_text(json.dumps({"dependencies": ["."], "graphs": {"agent": "./app.py:agent"}}))
    with lessonbank.connect(str(folder / "bank.db"), scope="acme/ana", embedder="lexical") as bank:
        bank.lessons.add(title="Ask for the second page", content="Most rows stand there.", task=TASK, by="Ana")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    settings = {"BANK": str(folder / "bank.db"), "HOME": str(folder), "LANGGRAPH_CLI_NO_ANALYTICS": "1"}
    command = [sys.executable, "-m", "langgraph_cli", "dev", "--no-browser", "--no-reload", "--port", str(port)]
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(command, cwd=folder, env={**os.environ, **settings}, stdout=log, stderr=log)
    try:
        told = asyncio.run(_asked(f"http://127.0.0.1:{port}"))
        told["runs"] = _kept(folder / "bank.db", len(told))
    finally:
        server.terminate()
        server.wait(LIMIT)
    (folder / "result.json").write_text(json.dumps(told))


async def _asked(url: str) -> dict[str, Any]:
    """What the server answered, by the task."""
    client = get_client(url=url, api_key=None)
    await _ready(client)
    told = dict[str, Any]()
    for task, user in ((TASK, "ana"), (f"{TASK} of ben", "ben"), (f"{TASK}, then crash", "ana"), ("blocking", "ana")):
        thread = await client.threads.create()
        asked: Any = {"messages": [{"role": "user", "content": task}]}
        run = await client.runs.create(thread["thread_id"], "agent", input=asked, context={"user": user})
        await client.runs.join(thread["thread_id"], run["run_id"])
        told[task] = await client.threads.get(thread["thread_id"])
    asked = {"messages": [{"role": "user", "content": f"{TASK} in a stream"}]}
    stream = client.runs.stream(None, "agent", input=asked, context={"user": "ana"}, stream_mode="updates")
    told["stream"] = [part.event async for part in stream]
    return told


async def _ready(client: Any) -> None:
    until = time.monotonic() + LIMIT
    while True:
        try:
            await client.assistants.search()
        except Exception:  # whatever a server that is not there yet answers
            if time.monotonic() > until:
                raise
        else:
            return


def _kept(path: Path, number: int) -> dict[str, list[dict[str, Any]]]:
    """The runs of each user in the bank: the server learns in the background."""
    until = time.monotonic() + LIMIT
    with lessonbank.connect(str(path), scope="acme", embedder="lexical") as bank:
        while True:
            found = {user: list(bank.scoped(f"acme/{user}").runs.list()) for user in ("ana", "ben")}
            if sum(map(len, found.values())) >= number or time.monotonic() > until:
                return {user: [json.loads(run.model_dump_json()) for run in runs] for user, runs in found.items()}


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""Clients of others: PydanticAI's agent, and the official Inspector from npm."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import lessonbank

pytestmark = pytest.mark.full
TASK = "Ship a parcel abroad"
WORDS = ["-m", "lessonbank.cli", "mcp", "--scope", "t", "--embedder", "lexical", "--holdout", "0"]
HOSTS = Path(os.environ.get("LESSONBANK_HOSTS", Path(__file__).parents[2] / ".hosts"))
NODE = f"{HOSTS / 'node/node_modules/.bin'}:{os.environ['PATH']}"
"""The Inspector needs Node 22; `bash .ci/hosts` installs both."""
INSPECTOR = shutil.which("mcp-inspector", path=f"{HOSTS / 'inspector/node_modules/.bin'}:{os.environ['PATH']}")


@pytest.fixture(scope="module", autouse=True)
def the_sdk() -> None:
    """Whoever runs these tests imports the SDK, and not each worker that collects them."""
    pytest.importorskip("mcp.server.mcpserver", reason="needs `pip install 'lessonbank[mcp]'`")


@pytest.fixture
def bank_file(tmp_path: Path) -> Path:
    with lessonbank.connect(tmp_path / "bank.db", scope="t", embedder="lexical") as bank:
        bank.lessons.add(title="Customs form first", content="Fill in the form, then print.", task=TASK, by="Ana")
    return tmp_path / "bank.db"


@pytest.mark.anyio
async def test_an_agent_of_pydantic_ai_recalls_and_records(bank_file: Path) -> None:
    pytest.importorskip("pydantic_ai.mcp", reason="needs `pip install 'pydantic-ai-slim[mcp]'`", exc_type=ImportError)
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
    from pydantic_ai.models.function import AgentInfo, FunctionModel

    client: Any = importlib.import_module("pydantic_ai.mcp")
    transports: Any = importlib.import_module("fastmcp.client.transports")
    found: dict[str, Any] = {}

    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        assert {tool.name for tool in info.function_tools} == {"recall", "recall_again", "record", "remember", "why"}
        returned = [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]
        if not returned:
            return ModelResponse(parts=[ToolCallPart("recall", {"task": TASK})])
        if len(returned) == 1:
            found.update(json.loads(returned[0].model_response_str()))
            steps = [{"did": "print the label", "saw": "printed"}]
            call = {"task": TASK, "steps": steps, "recall_id": found["recall_id"]}
            return ModelResponse(parts=[ToolCallPart("record", call)])
        return ModelResponse(parts=[TextPart("sent")])

    transport = transports.StdioTransport(
        command=sys.executable, args=[*WORDS, "--bank", str(bank_file)], env=dict(os.environ)
    )
    agent = Agent(FunctionModel(model), toolsets=[client.MCPToolset(transport, init_timeout=60)])
    async with agent:
        assert (await agent.run(TASK)).output == "sent"
    async with await lessonbank.connect_async(bank_file, scope="t", embedder="lexical") as bank:
        assert [run.trajectory.task for run in await bank.runs.list()] == [TASK]
        assert (await bank.recalls.get(found["recall_id"])).text == found["text"] != ""


CALL, ARG = ("tools/call", "--tool-name"), "--tool-arg"
OFTEN = [((*CALL, "recall", ARG, f"task={TASK}"), ("structuredContent", "Customs form"))]
RARELY = [
    (("resources/read", "--uri", "lessonbank://lessons"), ("Customs form first",)),
    (("tools/list",), ('"recall"', '"record"', '"why"', '"outputSchema"')),
    ((*CALL, "recall", ARG, "task= "), ('"isError": true', "[usage]")),
    ((*CALL, "record", ARG, "task=a", ARG, 'steps=[{"did": "look"}]'), ("run_id", "Kept.")),
    (("resources/list",), ("lessonbank://lessons",)),
    (("resources/templates/list",), ("lessonbank://lessons/{id}",)),
    (("prompts/list",), ("with_lessons",)),
    (("prompts/get", "--prompt-name", "with_lessons", "--prompt-args", f"task={TASK}"), ("Fill in the form",)),
]
"""The Inspector takes three seconds a call; `test_mcp_tools.py` asks for the same with the SDK."""


@pytest.mark.skipif(INSPECTOR is None, reason="needs the MCP Inspector: bash .ci/hosts inspector")
@pytest.mark.parametrize(
    ("call", "says"), [*OFTEN, *(pytest.param(*rare, marks=pytest.mark.release) for rare in RARELY)]
)
def test_the_inspector_reads_every_answer(bank_file: Path, call: tuple[str, ...], says: tuple[str, ...]) -> None:
    words = [*WORDS, "--bank", str(bank_file)]
    environment = {name: os.environ[name] for name in ("PYTHONPATH", "PATH") if name in os.environ}
    entry = {"command": sys.executable, "args": words, "env": environment}
    config = bank_file.with_name("servers.json")
    config.write_text(json.dumps({"mcpServers": {"lessonbank": entry}}))
    command = [str(INSPECTOR), "--cli", "--config", str(config), "--server", "lessonbank", "--method", *call]
    ended = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        cwd=bank_file.parent,
        env={**os.environ, "PATH": NODE},
    )
    assert ended.returncode == (5 if '"isError": true' in says else 0), ended.stderr  # 5: the tool said that it failed
    assert json.loads(ended.stdout)
    assert not [word for word in says if word not in ended.stdout], ended.stdout

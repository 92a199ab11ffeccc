"""The command `lessonbank mcp` as a process of its own, over stdio and over HTTP, with the SDK's own client."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

import lessonbank
from lessonbank import Evidence
from lessonbank.contracts.records import Trajectory
from lessonbank.contracts.store_calls import get_trajectory
from lessonbank.guard.identity import of_process
from lessonbank.testing import ModelServer

pytest.importorskip("httpx2", reason="needs `pip install 'lessonbank[mcp]'`")

import httpx2
from running import lessonbank_cli

pytestmark = [pytest.mark.full, pytest.mark.anyio]
TASK = "Ship a parcel abroad"
STEPS = [{"did": "look up the parcel"}, {"did": "print the label", "saw": "error: customs form missing"}]
BANK = ("--bank", "bank.db", "--embedder", "lexical", "--holdout", "0", "--scope", "t")
COMMAND = ("-m", "lessonbank.cli", "mcp", *BANK)
KEYS = {scope: f"key-of-{scope}-{'0123456789' * 3}" for scope in ("t", "acme/sales", "pair", "leaves")}
SECOND = "0" * 40
"""A second key of the scope `pair`."""


@pytest.fixture(scope="module", autouse=True)
def imports() -> None:
    """Whoever runs these tests imports the SDK, and not each worker that collects them."""
    global Client, MCPError, streamable_http_client, CallToolResult

    pytest.importorskip("mcp.server.mcpserver", reason="needs `pip install 'lessonbank[mcp]'`")
    from mcp import Client, MCPError
    from mcp.client.streamable_http import streamable_http_client
    from mcp_types import CallToolResult


def filled(folder: Path) -> Path:
    for scope, title in (("t", "Customs form first"), ("acme/sales", "Ask for the size first")):
        with lessonbank.connect(folder / "bank.db", scope=scope, embedder="lexical") as bank:
            bank.lessons.add(title=title, content="Do this before the rest.", task=TASK, by="Ana")
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return filled(tmp_path)


@pytest.fixture(scope="module")
def for_many_keys(tmp_path_factory: pytest.TempPathFactory) -> Generator[tuple[str, Path]]:
    """The address and the folder of a server over HTTP that the keys of a file open."""
    with serving(folder := filled(tmp_path_factory.mktemp("many-keys"))) as address:
        yield address, folder


def told(result: CallToolResult) -> dict[str, Any]:
    assert not result.is_error, result.content
    assert result.structured_content is not None
    return result.structured_content


def teller(run: Trajectory) -> str:
    return run.submission.identity if run.submission else ""


def kept(folder: Path, scope: str = "t") -> lessonbank.ReasoningBank:
    return lessonbank.connect(folder / "bank.db", scope=scope, embedder="lexical", evidence=Evidence(holdout=None))


class RawClient:
    """Writes lines to a server's stdin and reads its stdout, whatever is in them."""

    def __init__(self, folder: Path, *words: str, **env: str) -> None:
        pipe, environment = subprocess.PIPE, {**os.environ, **env}
        command = [sys.executable, *COMMAND, *words]
        self.process = subprocess.Popen(
            command, cwd=folder, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=environment
        )
        self.others = list[dict[str, Any]]()
        hello = {"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "old", "version": "1"}}
        self.greeting = self.request("initialize", **hello)
        self.send(json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}))

    def send(self, line: str) -> None:
        assert self.process.stdin
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def request(self, method: str, **params: Any) -> dict[str, Any]:
        """The answer; every line on stdout has to be a message of the protocol."""
        id = len(self.others)
        self.send(json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
        assert self.process.stdout
        for line in self.process.stdout:
            self.others.append(message := json.loads(line))
            assert message["jsonrpc"] == "2.0"
            if message.get("id") == id:
                return message
        raise AssertionError("the server left")

    def leave(self) -> str:
        """What the server wrote to stderr until it left because its client did."""
        _, errors = self.process.communicate(timeout=60)
        assert self.process.returncode == 0, errors
        return errors


def a_failure(request: dict[str, Any]) -> str:
    """The verdict of a judge, who repeats the code that it was given."""
    check = str(request["messages"][-1]["content"]).partition('"check": "')[2][:8]
    return json.dumps({"check": check, "reason": "The form is missing.", "outcome": "failure", "confidence": 0.9})


def test_stdout_holds_the_protocol_alone_and_what_was_recorded_is_judged_before_the_server_leaves(folder: Path) -> None:
    with ModelServer(a_failure, a_failure, default="[]") as server:
        client = RawClient(folder, "--model", "openai:any", "--base-url", server.base_url, OPENAI_API_KEY="none")
        assert client.greeting["result"]["protocolVersion"] == "2024-11-05"
        assert client.greeting["result"]["instructions"]
        client.send("this is no JSON \x1b[2J")
        client.send("[" * 100_000)
        assert client.request("tools/call", name="recall", arguments={"task": "x" * 3_000_000})["result"]["isError"]
        assert "error" in client.request("no/such/method")
        assert not client.request("tools/call", name="recall", arguments={"task": TASK})["result"]["isError"]
        record = {"task": TASK, "steps": STEPS, "outcome": "success"}
        told = client.request("tools/call", name="record", arguments=record)["result"]["structuredContent"]
        assert "Traceback" not in client.leave()
    with kept(folder) as bank:
        verdict = bank.runs.get(told["run_id"]).verdict
        assert (verdict.outcome, verdict.source) == ("failure", "judge")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--scope", "a//b"), "scope"),
        (("--trust", "blind"), "trust"),
        (("--http",), "needs a key"),
        (("--http", "--key-file", "nowhere"), "cannot be read"),
        (("--http", "--host", "0.0.0.0", "--key-file", "keys"), "--allow-host"),
        (("--http", "--key-file", "short"), "at least 16 characters"),
    ],
)
def test_a_launch_that_cannot_be_meant_ends_with_one_sentence(folder: Path, words: tuple[str, ...], says: str) -> None:
    (folder / "keys").write_text(KEYS["t"])
    (folder / "short").write_text("secret\n")
    ended = lessonbank_cli(*COMMAND[2:], *words, cwd=folder)
    assert ended.returncode == 2
    assert not ended.stdout
    assert says in ended.stderr
    assert ended.stderr.count("\n") == 1


def key_lines() -> str:
    return "".join(f"{key} {scope}\n" for scope, key in KEYS.items()) + f"{SECOND} pair\n"


@contextmanager
def serving(folder: Path) -> Generator[str]:
    """The address of a server over HTTP that the keys of a file open, which ends with the block."""
    (folder / "keys").write_text(f"# who may call\n{key_lines()}")
    command = [sys.executable, *COMMAND, "--http", "--port", "0", "--key-file", "keys"]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr
            line = process.stderr.readline()
            assert "serves MCP on http://127.0.0.1:" in line
            yield line.split()[-1]
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(timeout=30)


@asynccontextmanager
async def calling(address: str, key: str, mode: str = "auto", **headers: str) -> AsyncGenerator[Client]:
    async with (
        httpx2.AsyncClient(headers={"authorization": f"Bearer {key}", **headers}) as http,
        Client(streamable_http_client(address, http_client=http), mode=mode) as client,
    ):
        yield client


async def test_over_http_each_key_opens_its_own_scope_and_no_other(for_many_keys: tuple[str, Path]) -> None:
    address, _ = for_many_keys
    for mode in ("auto", "legacy"):
        async with calling(address, KEYS["t"], mode) as one, calling(address, KEYS["acme/sales"], mode) as other:
            calls = [client.call_tool("recall", {"task": TASK, "scope": "t"}) for client in (one, other) * 5]
            titles = [[lesson["title"] for lesson in told(each)["lessons"]] for each in await asyncio.gather(*calls)]
            assert titles == [["Customs form first"], ["Ask for the size first"]] * 5
            listed = [await client.read_resource("lessonbank://lessons") for client in (one, other)]
            assert "Customs" in str(listed[0].contents)
            assert "Customs" not in str(listed[1].contents)
            foreign = told(await one.call_tool("recall", {"task": TASK}))["recall_id"]
            settled = await other.call_tool("record", {"task": TASK, "steps": STEPS, "recall_id": foreign})
            assert settled.is_error
            assert "[not_found]" in str(settled.content)


async def test_over_http_the_recall_of_one_session_is_not_settled_by_another_of_the_same_key(
    for_many_keys: tuple[str, Path],
) -> None:
    address, _ = for_many_keys
    async with calling(address, KEYS["t"], "legacy") as one, calling(address, KEYS["t"], "legacy") as other:
        found = told(await one.call_tool("recall", {"task": TASK}))["recall_id"]
        strange = told(await other.call_tool("record", {"task": TASK, "steps": STEPS, "answer": "mine"}))
        own = told(await one.call_tool("record", {"task": TASK, "steps": STEPS}))
    assert strange["recall_id"] == ""
    assert own["recall_id"] == found


async def test_over_http_each_of_several_keys_of_a_scope_is_a_writer_of_its_own(
    for_many_keys: tuple[str, Path],
) -> None:
    address, folder = for_many_keys
    for key, scope in ((KEYS["pair"], "pair"), (SECOND, "pair"), (KEYS["acme/sales"], "acme/sales")):
        async with calling(address, key) as client:
            told(await client.call_tool("record", {"task": f"{TASK} {scope}", "steps": STEPS, "answer": key[:6]}))
    tellers = dict[str, list[str]]()
    for scope in ("pair", "acme/sales"):
        bank = kept(folder, scope).aio
        ids = [run.trajectory.id for run in await bank.runs.list()]
        tellers[scope] = [teller(await get_trajectory(bank.store, id, scope=scope)) for id in ids]
    assert all(name.startswith("key:mcp/") for name in tellers["pair"])
    assert len(set(tellers["pair"])) == 2
    assert tellers["acme/sales"] == [of_process()], "whoever alone has a key is the owner"


async def test_over_http_nobody_without_a_key_and_no_foreign_name_gets_in(for_many_keys: tuple[str, Path]) -> None:
    address, _ = for_many_keys
    for bad in ("", "1" * 40, KEYS["t"][:-1]):
        with pytest.raises((MCPError, httpx2.HTTPStatusError, ExceptionGroup)):
            async with calling(address, bad) as client:
                await client.call_tool("recall", {"task": TASK})
    key = {"authorization": f"Bearer {KEYS['t']}", "accept": "application/json, text/event-stream"}
    body: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    async with httpx2.AsyncClient(headers=key) as http:
        assert (await http.post(address, json=body, headers={"authorization": ""})).status_code == 401
        assert (await http.post(address, json=body, headers={"host": "evil.example:80"})).status_code == 421
        assert (await http.post(address, json=body, headers={"origin": "https://evil.example"})).status_code == 403
        assert (await http.post(address, content=b"x" * 5_000_000)).status_code == 413


async def test_a_key_that_is_taken_out_of_the_file_ends_its_session_and_its_stream(
    for_many_keys: tuple[str, Path],
) -> None:
    address, folder = for_many_keys
    client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    opening = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client}
    ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
    headers = {"authorization": f"Bearer {KEYS['leaves']}", "accept": "application/json, text/event-stream"}
    async with httpx2.AsyncClient(headers=headers, timeout=20) as http:
        http.headers["mcp-session-id"] = (await http.post(address, json=opening)).headers["mcp-session-id"]
        assert (await http.post(address, json=ping)).status_code == 200
        async with http.stream("GET", address) as stream:
            assert stream.status_code == 200
            (folder / "keys").write_text(key_lines().replace(f"{KEYS['leaves']} leaves\n", ""))
            assert [line async for line in stream.aiter_lines() if line] == []
        assert (await http.post(address, json=ping)).status_code == 401


async def test_a_server_that_is_killed_loses_no_run_that_it_acknowledged(folder: Path) -> None:
    words = [*COMMAND, "--http", "--port", "0"]
    environment = {**os.environ, "LESSONBANK_MCP_KEY": KEYS["t"]}
    with subprocess.Popen(
        [sys.executable, *words], cwd=folder, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        assert process.stderr
        address = process.stderr.readline().split()[-1]
        run = ""
        with suppress(httpx2.HTTPError, MCPError, ExceptionGroup):
            async with calling(address, KEYS["t"]) as client:
                run = told(await client.call_tool("record", {"task": TASK, "steps": STEPS}))["run_id"]
                process.kill()
        process.wait(timeout=30)
    with kept(folder) as bank:
        assert bank.runs.get(run).status == "pending"


def test_without_the_sdk_a_client_over_stdio_is_served_and_http_says_what_to_install(folder: Path) -> None:
    hello = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2199-01-01"}})
    for words in ((), ("--http",)):
        argv = ["lessonbank", *COMMAND[2:], *words]
        code = f"import sys; sys.modules['mcp'] = None; sys.argv = {argv!r}; from lessonbank.cli import main; main()"
        command = [sys.executable, "-c", code]
        ended = subprocess.run(command, cwd=folder, input=f"{hello}\n", capture_output=True, text=True, timeout=60)
        if words:
            assert ended.returncode == 2
            assert "pip install 'lessonbank[mcp]'" in ended.stderr
            assert ended.stderr.strip().endswith("[missing_extra]")
        else:
            assert json.loads(ended.stdout)["result"]["protocolVersion"] == "2025-11-25"
            assert ended.returncode == 0

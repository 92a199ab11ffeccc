"""Every way to ask a bank for lessons, as its user takes it: what each shows with some options of `retrieve`.

As a program, `retrieve_doors.py FOLDER NAME JSON` asks each with one option, and prints what names it and what
reached the search.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
import shlex
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Generator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import lessonbank
from lessonbank import Evidence, Experience, Lesson, ReasoningBank
from lessonbank.errors import UsageError

TASK = "Ship a parcel"
WORDS = "Weigh it first."
_SETTINGS: dict[str, Any] = {"scope": "t", "embedder": "lexical", "evidence": Evidence(holdout=None)}
Options = Mapping[str, Any]


def fill(file: Path) -> None:
    """Make a bank with one lesson, which nobody approved and no evidence supports."""
    with lessonbank.connect(file, **_SETTINGS) as bank:
        lesson = Lesson(title="Told once", content=WORDS)
        bank.consolidate(Experience(scope="t", task=TASK, lessons=(lesson,)))


@contextlib.contextmanager
def _bank(file: Path) -> Generator[ReasoningBank]:
    with lessonbank.connect(file, **_SETTINGS) as bank:
        yield bank


def _retrieve(file: Path, options: Options) -> str:
    with _bank(file) as bank:
        return bank.retrieve(TASK, **options).text


def _async_retrieve(file: Path, options: Options) -> str:
    async def ask() -> str:
        async with await lessonbank.connect_async(file, **_SETTINGS) as bank:
            return (await bank.retrieve(TASK, **options)).text

    return asyncio.run(ask())


def _attempt(file: Path, options: Options) -> str:
    with _bank(file) as bank, bank.attempt(TASK, **options) as attempt:
        attempt.finish(answer="done")
        return attempt.text


def _async_attempt(file: Path, options: Options) -> str:
    async def ask() -> str:
        async with (
            await lessonbank.connect_async(file, **_SETTINGS) as bank,
            bank.attempt(TASK, **options) as attempt,
        ):
            await attempt.finish(answer="done")
            return attempt.text

    return asyncio.run(ask())


def _preview(file: Path, options: Options) -> str:
    with _bank(file) as bank:
        return bank.recalls.preview(TASK, **options).text


def _scale(file: Path, options: Options) -> str:
    seen = list[str]()
    with _bank(file) as bank:
        bank.scale(TASK, lambda task, memory: seen.append(memory) or "done", k=1, learn=False, **options)
    return seen[0]


def _trial(file: Path, options: Options) -> str:
    seen = list[str]()
    with _bank(file) as bank, contextlib.suppress(UsageError):  # nothing to compare: nothing is shown
        bank.trial(
            [TASK],
            lambda task, memory: seen.append(memory) or "done",
            verify=lambda run: True,
            max_runs=2,
            **options,
        )
    return "".join(seen)


def _http(file: Path, options: Options) -> str:
    from lessonbank.http.service.serving import running

    with (
        running(partial(lessonbank.connect_async, file, **_SETTINGS)) as server,
        lessonbank.connect(lessonbank.Server(server.url, api_key=server.key("a", scope="t")), scope="t") as bank,
    ):
        with bank.attempt(TASK, **options) as attempt:
            attempt.finish(answer="done")
        shown = bank.retrieve(TASK, **options).text
    assert bool(shown) is bool(attempt.text)
    return shown


def _command(file: Path, options: Options) -> str:
    from lessonbank.cli import main

    words = [word for name, value in options.items() for word in _flag(name, value)]
    told = ["lessonbank", "retrieve", TASK, "--bank", str(file), "--scope", "t", "--keep", "--json", *words]
    before, sys.argv = sys.argv, told
    try:
        with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.suppress(SystemExit):
            main()
    finally:
        sys.argv = before
    return json.loads(out.getvalue())["text"]


def _flag(name: str, value: Any) -> tuple[str, ...]:
    if value is False:
        return ()
    return (f"--{name}",) if value is True else (f"--{name}", str(value))


def _tool(file: Path, options: Options) -> str:
    return _called(file, options, {})


def _server_of_tools(file: Path, options: Options) -> str:
    return _called(file, {}, options)


def _called(file: Path, asked: Options, owner: Options) -> str:
    from mcp import Client

    from lessonbank.contracts.retrieve_options import RetrieveOptions
    from lessonbank.mcp import server

    async def ask() -> str:
        async with Client(server(file, retrieve=RetrieveOptions(**owner), **_SETTINGS)) as client:
            told = await client.call_tool("recall", {"task": TASK, **asked})
            return told.structured_content["text"]

    return asyncio.run(ask())


def _adapter(file: Path, options: Options) -> str:
    from lessonbank.adapters.following import RunFollower

    with _bank(file) as bank:
        return RunFollower(bank, "mine", **{"patience": 60, **options}).begin_waiting(TASK).text


def _proxy(file: Path, options: Options) -> str:
    from lessonbank.proxy.frames import read
    from lessonbank.proxy.memory import Memory

    with _bank(file) as bank, io.BytesIO() as out:
        Memory(lambda: bank, out, **{"patience": 60, **options}).do(
            {"op": "begin", "id": 1, "run": "r", "task": TASK, "scope": "t"}
        )
        out.seek(0)
        answer: Any = read(out)
        return answer["text"]


def _hook(file: Path, options: Options) -> str:
    """The command that `install` writes, as the coding agent starts it."""
    from lessonbank.hosts.hosts import HOSTS, Wanted, pieces_of

    wanted = Wanted(str(file), scope="t", retrieve=dict(options), within=60, mcp=False)
    pieces = pieces_of(HOSTS["gemini-cli"], wanted, file.parent)
    command = next(piece.value["hooks"][0]["command"] for piece in pieces if piece.path[-1] == "BeforeAgent")
    event = {"hook_event_name": "BeforeAgent", "session_id": "s", "prompt": TASK, "cwd": "/"}
    with tempfile.TemporaryDirectory(dir="/tmp") as runtime, _bank(file) as bank:  # a socket's path is short
        os.environ |= {"XDG_RUNTIME_DIR": runtime, "XDG_STATE_HOME": runtime}
        with _resident(bank, wanted.key):
            done = subprocess.run(
                shlex.split(command.removesuffix(" || true")), input=json.dumps(event), capture_output=True, text=True
            )
    return json.loads(done.stdout or "{}").get("hookSpecificOutput", {}).get("additionalContext", "")


@contextlib.contextmanager
def _resident(bank: ReasoningBank, key: str) -> Generator[None]:
    import fcntl

    from lessonbank.hosts import client
    from lessonbank.hosts.resident import Resident
    from lessonbank.hosts.sessions import Sessions

    lock = (Path(client.runtime_folder()) / f"{key}.lock").open("a")
    fcntl.flock(lock, fcntl.LOCK_EX)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(client.socket_path(key))
        listener.listen()
        listener.settimeout(60)
        made = Resident(bank, Sessions(Path(client.spool_folder(key))), listener, lock)
        thread = threading.Thread(target=made.serve)
        thread.start()
        yield
        made.stop()
        thread.join()


DOORS: Mapping[str, Callable[[Path, Options], str]] = {
    "bank.retrieve": _retrieve,
    "aio.retrieve": _async_retrieve,
    "bank.attempt": _attempt,
    "aio.attempt": _async_attempt,
    "recalls.preview": _preview,
    "scale": _scale,
    "trial": _trial,
    "http": _http,
    "command line": _command,
    "mcp tool": _tool,
    "mcp server": _server_of_tools,
    "adapter": _adapter,
    "proxy": _proxy,
    "hook": _hook,
}


def _reached(folder: Path, name: str, value: Any) -> dict[str, list[Any]]:
    """By door: what the search was asked for under this name."""
    from lessonbank.bank import retrieval

    seen, search = list[Any](), retrieval._restricted

    def noted(inner: Any, asked: Any, exclude: Any) -> Any:
        seen.append(getattr(asked, name))
        return search(inner, asked, exclude)

    retrieval._restricted = noted
    told = dict[str, list[Any]]()
    for number, (door, ask) in enumerate(DOORS.items()):
        seen.clear()
        fill(file := folder / f"{number}.db")
        ask(file, {name: value})
        told[door] = [*seen]
    return told


def _named() -> dict[str, list[str]]:
    """By door: the options that its signature, its help or its schema names."""
    import inspect

    from typer.main import get_command

    from lessonbank.adapters.following import Options as AdapterOptions
    from lessonbank.adapters.following import RunFollower
    from lessonbank.bank.views import AsyncRecalls
    from lessonbank.cli import app

    functions = {
        "bank.retrieve": ReasoningBank.retrieve,
        "aio.retrieve": lessonbank.AsyncReasoningBank.retrieve,
        "bank.attempt": ReasoningBank.attempt,
        "aio.attempt": lessonbank.AsyncReasoningBank.attempt,
        "recalls.preview": AsyncRecalls.preview,
        "scale": ReasoningBank.scale,
        "trial": ReasoningBank.trial,
        "adapter": RunFollower.__init__,
    }
    commands: Any = get_command(app)
    told = {door: [*inspect.signature(function).parameters] for door, function in functions.items()}
    told |= {
        f"lessonbank {name}": _names_of(commands.commands[name])
        for name in ("retrieve", "mcp", "install", "proxy", "trial")
    }
    return {**told, "options of adapters": [*AdapterOptions.__annotations__], **asyncio.run(_schemas())}


def _names_of(command: Any) -> list[str]:
    return [name.removeprefix("--") for one in command.params for name in one.opts]


async def _schemas() -> dict[str, list[str]]:
    from lessonbank.http.service.application import application
    from lessonbank.mcp import server
    from lessonbank.mcp.tools import Caller

    async with await lessonbank.connect_async(":memory:", **_SETTINGS) as bank:
        told = application(bank).openapi()
    query = told["paths"]["/v1/recalls/preview"]["get"]["parameters"]
    mcp = server(":memory:", **_SETTINGS)
    listed = await mcp.offer.answer("tools/list", {}, Caller(mcp.offer.memory))
    return {
        "openapi of retrieve": [*told["components"]["schemas"]["RetrieveCall"]["properties"]],
        "openapi of preview": [one["name"] for one in query],
        "schema of the mcp tool": [
            *next(tool["inputSchema"]["properties"] for tool in listed["tools"] if tool["name"] == "recall")
        ],
    }


if __name__ == "__main__":
    where, option, given = sys.argv[1:]
    print(json.dumps({"named": _named(), "reached": _reached(Path(where), option, json.loads(given))}))

"""The hook as the process a coding agent starts, and a resident process as a thread of the test."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from lessonbank import Evidence, ReasoningBank, Step, Trajectory, connect
from lessonbank.contracts.records import Action, Json, Observation, ToolCall
from lessonbank.hosts import client
from lessonbank.hosts.cures import Cures
from lessonbank.hosts.resident import Resident
from lessonbank.hosts.sessions import Sessions

KEY = "key"


@dataclass
class Hooks:
    """Calls the hook, with folders of its own."""

    folder: Path
    runtime: Path
    options: dict[str, str | None] = field(default_factory=dict[str, "str | None"])
    """What is otherwise than usual; `None`: this option is left out."""

    def environment(self) -> dict[str, str]:
        return {**os.environ, "XDG_RUNTIME_DIR": str(self.runtime), "XDG_STATE_HOME": str(self.folder / "state")}

    def start(self, event: Any, *, host: str = "claude-code") -> subprocess.Popen[bytes]:
        told: dict[str, str | None] = {
            "key": KEY,
            "scope": "team",
            "trusted": "no",
            "bank": str(self.folder / "bank.db"),
            "within": "20",
        }
        told |= self.options
        words = [word for name, value in told.items() if value is not None for word in (f"--{name}", value)]
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", client.__file__, host, *words],
            env=self.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert process.stdin
        process.stdin.write(event if isinstance(event, bytes) else json.dumps(event).encode())
        process.stdin.close()
        return process

    def __call__(self, event: Any, *, host: str = "claude-code") -> str:
        """What the hook printed; it ended with 0 and said nothing else."""
        return self.finished(self.start(event, host=host))

    def finished(self, process: subprocess.Popen[bytes]) -> str:
        with process:
            assert process.stdout
            assert process.stderr
            out, err = process.stdout.read(), process.stderr.read()
        assert (process.returncode, err) == (0, b"")
        return out.decode()

    @property
    def spool(self) -> Path:
        return self.folder / "state" / "lessonbank" / f"sessions-{KEY}"


def prompt(text: str, session: str = "s-1", name: str = "UserPromptSubmit") -> dict[str, str]:
    return {"hook_event_name": name, "session_id": session, "prompt": text, "cwd": "/", "transcript_path": "/none"}


@pytest.fixture
def hooks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hooks]:
    (tmp_path / "state").mkdir(mode=0o700)
    with tempfile.TemporaryDirectory(dir="/tmp") as runtime:  # a socket's path is short, the test's may be long
        made = Hooks(tmp_path, Path(runtime))
        for name, value in made.environment().items():
            monkeypatch.setenv(name, value)
        yield made


@pytest.fixture
def bank(tmp_path: Path) -> Iterator[ReasoningBank]:
    with connect(str(tmp_path / "bank.db"), scope="team", evidence=Evidence(holdout=None)) as memory:
        memory.lessons.add(
            task="Ship a parcel to Norway",
            title="Norway needs a form",
            content="Fill the customs form first.",
            by="Ana",
        )
        yield memory


@pytest.fixture
def resident(hooks: Hooks, bank: ReasoningBank) -> Iterator[Resident]:
    """What answers the hook, as a thread."""
    lock = (Path(client.runtime_folder()) / f"{KEY}.lock").open("a")
    fcntl.flock(lock, fcntl.LOCK_EX)
    folder = Path(client.spool_folder(KEY))
    options = {"bank": str(hooks.folder / "bank.db"), "holdout": "0"}
    with Cures.of(options, folder) as cures, socket.socket(socket.AF_UNIX) as listener:
        listener.bind(client.socket_path(KEY))
        listener.listen(64)
        listener.settimeout(60)
        made = Resident(bank, Sessions(folder, cures=cures), listener, lock)
        thread = threading.Thread(target=made.serve)
        thread.start()
        yield made
        made.stop()
        thread.join()


def said(session: str, role: str, content: Any) -> dict[str, Any]:
    """A line of a transcript of Claude Code."""
    return {"type": role, "sessionId": session, "message": {"role": role, "content": content}}


def called(session: str, id: str, command: str, printed: str, *, failed: bool = False) -> list[dict[str, Any]]:
    """The lines of a command and of what it printed."""
    use = {"type": "tool_use", "id": id, "name": "Bash", "input": {"command": command}}
    result = {"type": "tool_result", "tool_use_id": id, "content": printed, "is_error": failed}
    return [said(session, "assistant", [use]), said(session, "user", [result])]


def write_lines(path: Path, lines: Iterable[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def learned(
    hooks: Hooks,
    bank: ReasoningBank,
    resident: Resident,
    session: str,
    lines: Iterable[dict[str, Any]],
    host: str = "claude-code",
) -> None:
    """A session with this transcript ends, and is learned."""
    path = write_lines(hooks.folder / f"{session}.jsonl", lines)
    event = {"hook_event_name": "SessionEnd", "session_id": session, "cwd": "/", "transcript_path": str(path)}
    hooks(event, host=host)
    resident._sessions.learn(bank)  # pyright: ignore[reportPrivateUsage]
    assert not list(Sessions(Path(client.spool_folder(KEY))).notes())


def run_of(task: str, *calls: tuple[str, str, bool], **metadata: Json) -> Trajectory:
    """A run with these commands: the line, what it printed, and whether it failed."""
    steps = list[Step]()
    for number, (command, printed, failed) in enumerate(calls):
        call = ToolCall(name="Bash", arguments={"command": command}, id=f"c{number}")
        seen = Observation(text=printed, source="tool", call_id=call.id, is_error=failed, is_success=not failed)
        steps.append(Step(action=Action(calls=(call,)), observations=(seen,)))
    return Trajectory(task=task, steps=tuple(steps), metadata=metadata)


def hung_up(**request: Any) -> bytes:
    """What the resident process answers a client that then leaves, and has printed nothing."""
    with socket.socket(socket.AF_UNIX) as impatient:
        impatient.connect(client.socket_path(KEY))
        told = {**request, "protocol": client.PROTOCOL, "release": client.release()}
        impatient.sendall(json.dumps(told).encode() + b"\n")
        return impatient.makefile("rb").readline()

"""The agent's own model: asked in an empty folder without tools, memory files and hooks, and only so often a day."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lessonbank.contracts.records import Action, Step, Trajectory
from lessonbank.errors import ModelUnavailable, UsageError
from lessonbank.hosts import headless, sessions
from lessonbank.hosts.headless import MOST_A_DAY, host_model, model_of
from lessonbank.hosts.sessions import open_bank

from .alone import agents, driven
from .programs import texts

pytestmark = pytest.mark.full
NAME = "host:claude-code"


@pytest.fixture
def claude(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program of this name that notes how it was called, and says what stands beside it."""
    program = tmp_path / "bin/claude"
    program.parent.mkdir()
    note = '{"folder": "$PWD", "files": "$(ls)", "off": "$LESSONBANK_OFF", "inner": "$CLAUDECODE"}'
    program.write_text(f"#!/bin/sh\ncat > {tmp_path}/asked\ncat > {tmp_path}/note <<END\n{note}\nEND\n")
    with program.open("a") as file:
        file.write(f'cat {tmp_path}/says && exit "$(cat {tmp_path}/code)"\n')
    program.chmod(0o700)
    (tmp_path / "says").write_text("fine\n")
    (tmp_path / "code").write_text("0")
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("CLAUDECODE", "1")
    return tmp_path


def answer(folder: Path) -> str:
    return host_model(NAME, folder)("Judge it")


def test_it_is_asked_in_an_empty_folder_with_the_mark_that_hooks_obey(claude: Path) -> None:
    assert (answer(claude)).strip() == "fine"
    told = json.loads((claude / "note").read_text())
    assert (told["files"], told["off"], told["inner"]) == ("", "1", "")
    assert not Path(told["folder"]).exists()
    assert "Judge it" in (claude / "asked").read_text()


def test_it_is_asked_only_so_often_a_day(claude: Path) -> None:
    old = claude / "call-2020-01-01-0"
    old.touch()
    for _ in range(MOST_A_DAY):
        answer(claude)
    (claude / "asked").unlink()
    with pytest.raises(ModelUnavailable, match="20 times today"):
        answer(claude)
    assert not (claude / "asked").exists()
    assert not old.exists()
    for today in claude.glob("call-*"):
        today.rename(today.with_name(f"call-2020-01-01-{today.name[-1]}"))
    assert answer(claude)


FOLDERS = 15
TAKES = """
import pathlib, sys
from lessonbank.errors import ModelUnavailable
from lessonbank.hosts.headless import take_call
print("ready", flush=True)
sys.stdin.readline()
taken = 0
for folder in sys.argv[1:]:
    try:
        while True:
            take_call(pathlib.Path(folder))
            taken += 1
    except ModelUnavailable:
        pass
print(taken)
"""


def test_processes_that_ask_at_once_take_no_call_more(tmp_path: Path) -> None:
    folders = [tmp_path / str(number) for number in range(FOLDERS)]
    for folder in folders:
        folder.mkdir()
    command = [sys.executable, "-c", TAKES, *map(str, folders)]
    askers = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    assert [one.stdout and one.stdout.readline() for one in askers] == ["ready\n"] * 4
    for one in askers:
        assert one.stdin
        one.stdin.write("\n")
        one.stdin.flush()
    told = [one.communicate() for one in askers]
    assert sum(int(taken) for taken, _ in told) == FOLDERS * MOST_A_DAY, told


def test_what_it_says_when_it_fails_is_the_error(claude: Path) -> None:
    (claude / "says").write_text("Invalid API key")
    (claude / "code").write_text("1")
    with pytest.raises(ModelUnavailable, match="Invalid API key"):
        answer(claude)


def test_a_program_that_gives_no_answer_in_time_is_asked_again_later(
    claude: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(headless, "_PATIENCE", 0.5)
    monkeypatch.setenv("XDG_STATE_HOME", str(claude))
    (claude / "says").unlink()
    os.mkfifo(claude / "says")
    with open_bank({"key": "k", "bank": str(claude / "bank.db"), "model": NAME, "holdout": "0"}) as bank:
        learned = bank.learn(Trajectory(task="Fix add", steps=(Step(action=Action(text="I fixed it")),)))
    os.close(os.open(claude / "says", os.O_RDWR | os.O_NONBLOCK))  # whoever reads goes on
    assert learned.verdicts[0].error in sessions._AWAY


def test_sessions_are_learned_with_it(claude: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(claude))
    with open_bank({"key": "k", "bank": str(claude / "bank.db"), "model": NAME, "holdout": "0"}) as bank:
        run = Trajectory(task="Fix add", steps=(Step(action=Action(text="I fixed it")),), answer="fixed")
        bank.learn(run)
    assert "Fix add" in (claude / "asked").read_text()


@pytest.mark.parametrize("host", ["codex", "gemini-cli", "opencode", "qwen-code", "cline"])
def test_a_program_that_cannot_be_asked_cleanly_is_not_offered(host: str) -> None:
    with pytest.raises(UsageError, match="tools and memory files"):
        model_of(host)


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("host", agents(["claude-code"]))
def test_the_request_of_the_real_program_has_no_tool_no_memory_file_and_starts_no_hook(
    tmp_path: Path, host: str
) -> None:
    told = driven("headless_session.py", host, tmp_path / "w")
    (request,) = told["requests"]
    assert not request.get("tools")
    said = "\n".join(texts(request))
    assert "MARK-OF-THE-PROMPT" in said
    assert "MARK-OF-A-MEMORY-FILE" not in said
    assert told["hook"] is False
    assert told["answer"].strip() == "ok"

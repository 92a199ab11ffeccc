"""Commands that decide what is shown ask for the key of a reviewer, where the bank has one."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import typer
from running import COMMAND, lessonbank_cli

import lessonbank
from lessonbank import Step, Trajectory
from lessonbank.cli import app

pytestmark = pytest.mark.full
pty = pytest.importorskip("pty", reason="this system has no terminals to ask at")
RUN = Trajectory(id="run-0001", task="open the valve", steps=(Step(action="turn", observation="error: stuck"),))
WHERE = ("--bank", "bank.db", "--scope", "t")
ANA = ("--by", "Ana")
WHY = ("--reason", "r")


@pytest.fixture
def ids(tmp_path: Path) -> dict[str, str]:
    with lessonbank.connect(tmp_path / "bank.db", scope="t", embedder="lexical") as bank:
        oil = bank.lessons.add(title="Oil it", content="Oil the valve.", task="open the valve", by="Ana").id
        drawn = bank.learn(RUN, outcome="failure").lessons[0].id
        bank.admin.export(tmp_path / "export.jsonl")
        bank.admin.backup(tmp_path / "backup.db")
    written = lessonbank_cli("keys", "add", "one", "--scope", "t", "--bank", "bank.db", "--json", cwd=tmp_path).stdout
    return {"oil": oil, "drawn": drawn, "key": json.loads(written)["key"].split("_")[1]}


FREE = {
    *("demo", "learn", "retrieve", "explain", "lift", "trial", "reflect", "recalls", "review", "proxy", "serve"),
    *("mcp", "worker", "install", "week", "export", "backup", "salvage", "lessons list", "runs list", "runs audit"),
    *("history list", "history diff", "keys list", "hook status", "hook scope"),
}
"""Commands that ask for no key: they show nothing that was hidden, erase nothing and hand out no key."""


def _commands(command: Any, *before: str) -> list[tuple[str, ...]]:
    """Every command below `command`, as it is typed."""
    inner = getattr(command, "commands", None)
    return [words for name, one in inner.items() for words in _commands(one, *before, name)] if inner else [before]


def test_every_command_asks_for_the_key_or_is_known_to_be_harmless() -> None:
    every = _commands(typer.main.get_command(app))
    none: dict[str, str] = {"oil": "", "drawn": "", "key": ""}
    asking = {" ".join(one) for one in every for words in doors(none) + apart(none) if words[: len(one)] == one}
    assert {" ".join(one) for one in every} == asking | FREE
    assert not asking & FREE


def apart(ids: dict[str, str]) -> list[tuple[str, ...]]:
    """Commands that ask, and that have nothing to do in this bank."""
    text = ("--title", "Kick", "--content", "Kick the valve.")
    return [
        ("lessons", "merge", ids["oil"], ids["drawn"], *text, *WHERE, *ANA),
        ("lessons", "merge", ids["drawn"], "--undo", *WHERE, *ANA, *WHY),
        ("lessons", "merge", ids["drawn"], "--undo", "--experience", "none", *WHERE, *ANA, *WHY),
    ]


def doors(ids: dict[str, str]) -> list[tuple[str, ...]]:
    text = ("--title", "Kick", "--content", "Kick the valve.", "--task", "open it")
    return [
        ("lessons", "approve", ids["drawn"], *WHERE, *ANA),
        ("lessons", "edit", ids["oil"], "--content", "Oil it twice.", *WHERE, *ANA),
        ("lessons", "edit", ids["oil"], "--only", "valve", *WHERE, *ANA),
        ("lessons", "add", *text, *WHERE, *ANA),
        ("lessons", "approve", ids["oil"], *WHERE, *ANA),
        ("lessons", "retire", ids["oil"], *WHERE, *ANA, *WHY),
        ("lessons", "retire", "--undo", ids["oil"], *WHERE, *ANA, *WHY),
        ("lessons", "retire", ids["oil"], "--quarantine", *WHERE, *ANA, *WHY),
        ("tell", "run-0001", "success", *WHERE, *ANA),
        ("history", "rollback", "1", *WHERE, *ANA, *WHY),
        ("import", "export.jsonl", *WHERE, *ANA),
        ("purge", "--lesson", ids["oil"], "--yes", *WHERE, *ANA, *WHY),
        ("keys", "add", "u-17", "--kind", "writer", *WHERE[:2], *ANA),
        ("keys", "remove", "u-17", "--kind", "writer", *WHERE[:2], *ANA),
        ("keys", "add", "Bob", "--kind", "reviewer", *WHERE[:2], *ANA),
        ("keys", "remove", "Bob", "--kind", "reviewer", *WHERE[:2], *ANA),
        ("keys", "add", "agent", "--scope", "t", *WHERE[:2], *ANA),
        ("keys", "add", "--replaces", ids["key"], *WHERE[:2], *ANA),
        ("keys", "remove", ids["key"], *WHERE[:2], *ANA),
        ("doctor", "--reindex", *WHERE[:2], *ANA),
        ("doctor", "--rebuild", *WHERE[:2], *ANA),
        ("restore", "backup.db", "bank.db", *ANA),
    ]


def test_every_such_command_wants_the_key_and_takes_it_from_a_file(tmp_path: Path, ids: dict[str, str]) -> None:
    added = lessonbank_cli("keys", "add", "Ana", "--kind", "reviewer", "--bank", "bank.db", "--json", cwd=tmp_path)
    key = json.loads(added.stdout)["key"]
    (tmp_path / "key").write_text(f"{key}\n")
    (tmp_path / "wrong").write_text("0" * 43)
    for words in (*apart(ids), (*doors(ids)[0], "--key-file", "wrong")):
        refused = lessonbank_cli(*words, cwd=tmp_path)
        assert (refused.returncode, refused.stderr.strip()[-13:]) == (2, "[not_allowed]"), (words, refused.stderr)
    for words in doors(ids):
        refused = lessonbank_cli(*words, cwd=tmp_path)
        assert (refused.returncode, refused.stderr.strip()[-13:]) == (2, "[not_allowed]"), (words, refused.stderr)
        done = lessonbank_cli(*words, cwd=tmp_path, LESSONBANK_REVIEWER_KEY_FILE="key")
        assert done.returncode == 0, (words, done.stderr)
        assert key not in done.stdout + done.stderr


def test_without_a_reviewer_the_commands_and_doctor_say_that_nothing_is_protected(
    tmp_path: Path, ids: dict[str, str]
) -> None:
    warning = "not protected from an agent on this machine"
    assert warning in lessonbank_cli("doctor", "--bank", "bank.db", cwd=tmp_path).stdout
    assert warning in lessonbank_cli("keys", "list", "--bank", "bank.db", cwd=tmp_path).stdout
    approved = lessonbank_cli("lessons", "approve", ids["drawn"], *WHERE, *ANA, cwd=tmp_path)
    assert (approved.returncode, warning in approved.stderr) == (0, True)
    assert lessonbank_cli("keys", "add", "Ana", "--kind", "reviewer", "--bank", "bank.db", cwd=tmp_path).stdout.strip()
    told = json.loads(lessonbank_cli("doctor", "--bank", "bank.db", "--json", cwd=tmp_path).stdout)
    assert told["reviewers"] == ["ana"]
    listed = lessonbank_cli("keys", "list", "--kind", "reviewer", "--bank", "bank.db", "--json", cwd=tmp_path)
    assert json.loads(listed.stdout) == [{"kind": "reviewer", "name": "ana"}]
    quick = lessonbank_cli("lessons", "edit", ids["drawn"], "--only", "valve", *WHERE, "--by", "Bob", cwd=tmp_path)
    assert "[not_allowed]" in quick.stderr


def test_a_lesson_that_nobody_vouched_for_is_hidden_without_a_key(tmp_path: Path, ids: dict[str, str]) -> None:
    lessonbank_cli("keys", "add", "Ana", "--kind", "reviewer", "--bank", "bank.db", cwd=tmp_path)
    for how in (["--quarantine"], []):
        words = ("lessons", "retire", ids["drawn"], *how, *WHERE, "--by", "Bob", *WHY)
        assert lessonbank_cli(*words, cwd=tmp_path).returncode == 0


def test_at_a_terminal_the_key_is_asked_for_and_not_shown(tmp_path: Path, ids: dict[str, str]) -> None:
    key = lessonbank_cli("keys", "add", "Ana", "--kind", "reviewer", "--bank", "bank.db", cwd=tmp_path).stdout.strip()
    ours, theirs = pty.openpty()
    command = [*COMMAND, "lessons", "approve", ids["drawn"], *WHERE, *ANA]
    streams: dict[str, Any] = {"stdin": theirs, "stdout": theirs, "stderr": theirs}
    with subprocess.Popen(command, cwd=tmp_path, start_new_session=True, **streams) as process:
        os.close(theirs)
        seen = b""
        while b"Key of Ana: " not in seen:  # the blank comes when nothing is echoed any more
            seen += os.read(ours, 1024)
        os.write(ours, f"{key}\n".encode())
        while b"approved: 1" not in seen:
            seen += os.read(ours, 1024)
        assert process.wait(timeout=60) == 0
    os.close(ours)
    assert key.encode() not in seen

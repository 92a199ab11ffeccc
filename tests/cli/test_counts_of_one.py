"""In a bank with one of everything, no command says "1 runs"."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from running import RUNS, learn, lessonbank_cli

import lessonbank

NOUNS = (
    "runs|experiences|lessons|recalls|tasks|changes|topics|proposals|records|rows|labels|outcomes|writers|reviewers|keys|"
    "pairs|times|tries|attempts"
)
OF_ONE = re.compile(rf"(?<![\d.,/])1 (?:[a-z]+ ){{0,2}}(?:{NOUNS}|do|are|were|wait|have)\b")
OF_A_BANK = (
    "lessons list",
    "lessons list --proposals",
    "runs list",
    "runs list --status pending",
    "runs audit 1 --by Ana",
    "runs audit --by Ana",
    "recalls",
    "history list",
    "lift",
    "export copy.jsonl",
    "export lessons.md --format markdown",
    "doctor",
    "purge --all --by Ana --reason test --preview",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bank that learned one lesson from one run, and showed it once."""
    folder = tmp_path_factory.mktemp("one")
    runs = folder / "runs.jsonl"
    runs.write_text(json.dumps({**RUNS[1], "reward": 0.7, "success": None}) + "\n", encoding="utf-8")
    done = learn(runs)
    assert "1 run read: 1 failure; 0 known already; 1 new lesson" in done.stdout, done.stderr
    assert "1 reward is neither 0 nor 1 and was taken 1 for failure" in done.stderr
    assert not OF_ONE.findall(done.stdout + done.stderr)
    with lessonbank.connect(folder / "bank.db", scope="t") as bank:
        bank.retrieve("Ship box 7 abroad")
    return folder


@pytest.mark.full
@pytest.mark.parametrize("command", OF_A_BANK)
def test_a_command_counts_one_as_one(folder: Path, command: str) -> None:
    done = lessonbank_cli(*command.split(), "--bank", "bank.db", "--scope", "t", cwd=folder)
    assert done.returncode in (0, 3), done.stderr
    assert not OF_ONE.findall(done.stdout + done.stderr)


@pytest.mark.full
def test_what_is_restored_or_imported_counts_one_as_one(folder: Path, tmp_path: Path) -> None:
    where = ("--bank", folder / "bank.db", "--scope", "t")
    said = ""
    for words in (
        ("backup", "backup.db", "--bank", folder / "bank.db"),
        ("restore", "backup.db", "new.db"),
        ("salvage", "new.db", "saved.db"),
        ("export", "copy.jsonl", *where),
        ("import", "copy.jsonl", "--bank", "other.db", "--scope", "u"),
        ("learn", "--waiting", *where),
        ("keys", "add", "Ana", "--kind", "writer", "--bank", "other.db"),
        ("keys", "list", "--kind", "writer", "--bank", "other.db"),
        ("keys", "add", "shop", "--bank", "other.db", "--scope", "t"),
        ("keys", "list", "--bank", "other.db"),
        ("purge", "--all", "--by", "Ana", "--reason", "test", "--yes", "--bank", "new.db", "--scope", "t"),
    ):
        done = lessonbank_cli(*words, cwd=tmp_path)
        assert done.returncode in (0, 3), (words, done.stderr)
        said += done.stdout + done.stderr
    assert not OF_ONE.findall(said)
    assert "1 lesson, 1 run" in said


def test_a_warning_counts_one_run_that_waits(tmp_path: Path) -> None:
    runs = tmp_path / "runs.jsonl"
    runs.write_text(json.dumps({**RUNS[0], "reward": None, "success": None}) + "\n", encoding="utf-8")
    assert "1 run waits for a verdict or another try" in learn(runs).stderr

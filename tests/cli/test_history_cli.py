"""`history list`, `diff` and `rollback`, as a user runs them."""

from __future__ import annotations

import json
import math
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from running import lessonbank_cli

import lessonbank
from lessonbank import Evidence, Step, Trajectory
from lessonbank.cli.history import first_failing

pytestmark = pytest.mark.full

BY = ("--by", "Ana")
CHECK = """
import os, lessonbank
with lessonbank.connect(os.environ["LESSONBANK_BANK"], scope="t") as bank:
    print("checking", len(bank.lessons.list(limit=1000)))
    bank.lessons.retire(bank.lessons.list(limit=1000)[-1].id, reason="only in the copy")
    raise SystemExit(any("box 6" in e.task for e in bank.history.state(len(bank.history.list())).experiences))
"""


def run_cli(*words: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    return lessonbank_cli(*words, "--bank", "bank.db", "--scope", "t", cwd=cwd)


def json_of(*words: object, cwd: Path) -> Any:
    done = run_cli(*words, "--json", cwd=cwd)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def fill(path: Path) -> None:
    with lessonbank.connect(path, scope="t", embedder="lexical", evidence=Evidence(holdout=None)) as bank:
        for n in range(8):
            step = Step(action="print label", observation="error: no form")
            bank.learn(Trajectory(task=f"Ship box {n}", steps=(step,)), outcome="failure")


@pytest.fixture
def folder(tmp_path: Path, copied: Callable[..., Path]) -> Path:
    return copied(fill, tmp_path)


def test_history_lists_changes_and_those_of_one_lesson(folder: Path) -> None:
    entries = json_of("history", "list", cwd=folder)
    assert [e["sequence"] for e in entries] == list(range(1, 9))
    lesson = entries[2]["entry"]["experience"]["lessons"][0]["id"]
    assert [e["sequence"] for e in json_of("history", "list", "--lesson", lesson, cwd=folder)] == [3]
    done = run_cli("history", "list", "--after", 7, cwd=folder)
    assert "1 change of t" in done.stdout
    assert "Ship box 7" in done.stdout


def test_diff_and_rollback_go_by_number_or_time(folder: Path) -> None:
    back = json_of("history", "rollback", 5, *BY, "--reason", "a broken tool", cwd=folder)
    assert back["entry"]["entry"] == {"kind": "rollback", "to": 5, "reason": "a broken tool"}
    assert back["counts"]["experiences"] == 5
    found = json_of("history", "diff", 8, back["entry"]["at"], cwd=folder)
    assert [e["task"] for e in found["removed"]] == [f"Ship box {n}" for n in (5, 6, 7)]
    assert "removed" in run_cli("history", "diff", 8, 9, cwd=folder).stdout
    assert "no difference" in run_cli("history", "diff", 5, 9, cwd=folder).stdout
    undone = run_cli("history", "rollback", 8, *BY, "--reason", "it was fine", cwd=folder)
    assert "8 experiences" in undone.stdout
    assert "a rollback to 9 undoes it" in undone.stdout


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (("history", "rollback", "99", "--reason", "x", *BY), 1, "no change 99"),
        (("history", "rollback", "yesterday", "--reason", "x", *BY), 2, "no moment"),
        (("history", "diff", "1", "2026-01-01"), 2, "a time with its zone"),
        (("history", "diff"), 2, "two moments"),
        (("history", "diff", "0", "1", "--other-bank", "bank.db"), 2, "leave out A, B and --check"),
        (("history", "diff", "5", "5", "--check", "true"), 2, "the smaller one first"),
        (("history", "diff", "0", "2026-01-01", "--check", "true"), 2, "numbers of changes"),
        (("history", "diff", "0", "99", "--check", "true"), 1, "no change 99"),
        (("history", "diff", "0", "8", "--check", "no-such-command-here"), 2, "cannot be run"),
        (("history", "diff", "0", "8", "--check", "'"), 2, "cannot be read"),
        (("history", "diff", "0", "8", "--check", " "), 2, "the check is empty"),
        (("history", "diff", "0", "8", "--check", f"{sys.executable} -c pass"), 2, "passes after change 8"),
    ],
)
def test_what_cannot_be_is_said_in_one_sentence(folder: Path, words: tuple[str, ...], code: int, sentence: str) -> None:
    done = lessonbank_cli(*words, "--bank", "bank.db", "--scope", "t", cwd=folder)
    assert done.returncode == code, done.stderr
    assert sentence in " ".join(done.stderr.split())


def test_bisect_finds_the_change_and_leaves_the_bank_alone(folder: Path) -> None:
    (folder / "check.py").write_text(CHECK, encoding="utf-8")
    done = bisect(folder, sys.executable, "check.py", good=6, options=("--json",))
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["first_bad"] == 7
    assert report["entry"]["entry"]["experience"]["task"] == "Ship box 6"
    assert len(report["runs"]) <= 2
    assert ("checking" in done.stderr, "failed every time" in done.stderr) == (True, False)
    assert len(json_of("history", "list", cwd=folder)) == 8
    assert not list(folder.glob("lessonbank-bisect-*"))


@given(good=st.integers(0, 10**9), data=st.data())
def test_bisect_stays_within_its_bound_wherever_the_culprit_is(good: int, data: st.DataObject) -> None:
    changes = data.draw(st.integers(1, 10**6))
    culprit = good + data.draw(st.integers(1, changes))
    asked: list[int] = []

    def passes(change: int) -> bool:
        asked.append(change)
        return change < culprit

    assert first_failing(good, good + changes, passes) == culprit
    assert len(asked) == len(set(asked)) <= math.ceil(math.log2(changes)) + 1
    assert all(good < change <= good + changes for change in asked), "what is known to be good is not tried"


def bisect(folder: Path, *check: str, good: int = 0, options: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    words = ("history", "diff", good, 8, "--check", shlex.join(check), *options)
    return lessonbank_cli(*words, "--bank", "bank.db", "--scope", "t", cwd=folder)


def test_a_check_that_fails_every_time_says_so(folder: Path) -> None:
    done = bisect(folder, sys.executable, "-c", "raise SystemExit(1)")
    assert done.returncode == 0, done.stderr
    assert "Ship box 0" in done.stdout
    assert "failed every time" in done.stderr


@pytest.mark.parametrize(("exit_by", "sentence"), [("sys.exit(127)", "shell"), ("os.kill(os.getpid(), 9)", "signal 9")])
def test_a_check_that_does_not_run_accuses_no_change(folder: Path, exit_by: str, sentence: str) -> None:
    done = bisect(folder, sys.executable, "-c", f"import os, sys; {exit_by}")
    assert done.returncode == 2
    assert sentence in " ".join(done.stderr.split())
    assert "It fails since" not in done.stdout


def test_retrieve_looks_back_without_a_trace(folder: Path) -> None:
    (found,) = json_of("retrieve", "Ship box 1", "--at", 2, "--limit", 1, cwd=folder)["matches"]
    assert found["experience"]["task"] == "Ship box 1"
    with lessonbank.connect(folder / "bank.db", scope="t") as bank:
        at = bank.history.list()[0].at
        assert bank.admin.counts().recalls == 0
    done = run_cli("retrieve", "Ship box 1", "--at", at.isoformat(), "-k", 3, cwd=folder)
    assert "as of change 1" in done.stdout
    assert "Ship box 0" in done.stdout
    assert "Ship box 1" not in done.stdout
    for words, code, sentence in (
        (("--at", 99), 1, "the last one is 8"),
        (("--at", "once"), 2, "no moment"),
        (("--at", 1, "--holdout", 0.5), 2, "nothing is withheld"),
        (("--at", 1, "--keep"), 2, "nothing to keep"),
        (("--metadata", "user=u"), 2, "give --keep, too"),
        (("--at", 1, "--trusted"), 2, "with --at only --limit changes what is found"),
    ):
        done = run_cli("retrieve", "Ship box 1", *words, cwd=folder)
        assert done.returncode == code
        assert sentence in " ".join(done.stderr.split())


def test_doctor_verifies_the_records_against_the_journal(folder: Path) -> None:
    assert "every record agrees with the journal" in run_cli("doctor", "--verify", cwd=folder).stdout
    report = json_of("doctor", "--verify", cwd=folder)
    assert (report["journal_compared"], report["problems"]) == (True, [])
    assert not json_of("doctor", cwd=folder)["journal_compared"]


def test_doctor_rebuilds(folder: Path) -> None:
    done = run_cli("doctor", "--rebuild", "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["problems"] == []

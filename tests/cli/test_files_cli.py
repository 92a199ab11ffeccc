"""`backup`, `restore` and `salvage`, as a user runs them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from running import lessonbank_cli

import lessonbank
from lessonbank import Step, Trajectory

pytestmark = pytest.mark.full


def learn(path: Path, *tasks: str) -> None:
    with lessonbank.connect(path, scope="t", embedder="lexical") as bank:
        for task in tasks:
            step = Step(action="print label", observation="error: no form")
            bank.learn(Trajectory(task=task, steps=(step,)), outcome="failure")


def test_restore_says_what_it_replaced_and_where_that_is(tmp_path: Path) -> None:
    learn(tmp_path / "bank.db", "Ship box 1")
    assert lessonbank_cli("backup", "backup.db", "--bank", "bank.db", cwd=tmp_path).returncode == 0
    learn(tmp_path / "bank.db", "Ship box 2")
    done = lessonbank_cli("restore", "backup.db", "bank.db", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "is now what 'backup.db' holds: 1 lesson, 1 run" in done.stdout
    assert "before: 2 lessons, 2 runs" in done.stdout
    (kept,) = tmp_path.glob("bank.replaced-*.db")
    assert kept.name in done.stdout
    told = json.loads(lessonbank_cli("restore", "backup.db", "bank.db", "--json", cwd=tmp_path).stdout)
    assert told["now"]["counts"]["lessons"] == told["before"]["counts"]["lessons"] == 1


def test_salvage_lists_what_is_lost_and_says_so_with_its_exit_code(tmp_path: Path) -> None:
    path = tmp_path / "bank.db"
    learn(path, *(f"Ship box {n}" for n in range(9)))
    done = lessonbank_cli("salvage", "bank.db", "whole.db", cwd=tmp_path)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "nothing is lost")
    data = path.read_bytes()
    pages = [n for n in range(len(data) // 4096) if data[n * 4096] == 13 and b"add" in data[n * 4096 : n * 4096 + 4096]]
    for page in pages:
        data = data[: page * 4096] + b"\xff" * 4096 + data[page * 4096 + 4096 :]
    path.write_bytes(data)
    done = lessonbank_cli("salvage", "bank.db", "new.db", cwd=tmp_path)
    assert done.returncode == 3, done.stderr
    assert "lost in t: lessons: " in done.stdout
    again = lessonbank_cli("salvage", "bank.db", "new.db", cwd=tmp_path)
    assert (again.returncode, "is there already" in again.stderr) == (2, True)


def test_restore_and_salvage_take_the_bank_by_the_option_that_all_commands_have(tmp_path: Path) -> None:
    with lessonbank.connect(tmp_path / "bank.db", scope="t", embedder="lexical") as bank:
        bank.retrieve("open the gate")
    where = ("--bank", "bank.db")
    assert lessonbank_cli("backup", "copy.db", *where, cwd=tmp_path).returncode == 0
    assert lessonbank_cli("restore", "copy.db", *where, cwd=tmp_path).returncode == 0
    assert lessonbank_cli("salvage", "new.db", *where, cwd=tmp_path).returncode == 0
    assert lessonbank_cli("salvage", "a.db", "b.db", "c.db", cwd=tmp_path).returncode == 2
    assert (tmp_path / "new.db").exists()


def test_an_export_of_a_mistyped_scope_names_those_that_hold_something(tmp_path: Path) -> None:
    learn(tmp_path / "bank.db", "Ship box 1")
    for name in ("out.jsonl", "CLAUDE.md"):
        told = lessonbank_cli("export", name, "--bank", "bank.db", "--scope", "nix/da", cwd=tmp_path)
        assert told.returncode == 0
        assert "there is nothing in scope nix/da; this bank has: t" in " ".join(told.stderr.split())


@pytest.mark.parametrize("name", ["CLAUDE.md", "rules.mdc"])
def test_a_file_without_lessons_names_the_way_to_those_on_probation(name: str, tmp_path: Path) -> None:
    learn(tmp_path / "bank.db", "Ship box 1")
    there = ("--bank", "bank.db", "--scope", "t")
    told = lessonbank_cli("export", name, *there, cwd=tmp_path)
    assert "0 lessons of t" in told.stdout
    assert "no lesson is trusted yet: --all writes those on probation, too" in " ".join(told.stderr.split())
    assert "no lesson is trusted" not in lessonbank_cli("export", name, *there, "--all", cwd=tmp_path).stderr


def test_a_name_that_tells_no_format_is_refused(tmp_path: Path) -> None:
    learn(tmp_path / "bank.db", "Ship box 1")
    told = lessonbank_cli("export", "lessons.docx", "--bank", "bank.db", "--scope", "t", cwd=tmp_path)
    assert told.returncode == 2
    assert "tells no format" in told.stderr
    assert not (tmp_path / "lessons.docx").exists()


def test_a_lesson_by_hand_tells_no_verdict_of_a_run(tmp_path: Path) -> None:
    with lessonbank.connect(tmp_path / "bank.db", scope="t", embedder="lexical") as bank:
        made = bank.lessons.add(title="Weigh it", content="Weigh the box first.", task="Ship box 1", by="Ana")
    told = lessonbank_cli("explain", made.id, "--bank", "bank.db", "--scope", "t", cwd=tmp_path)
    assert told.returncode == 0, told.stderr
    assert "Weigh it" in told.stdout
    assert "verdict" not in told.stdout

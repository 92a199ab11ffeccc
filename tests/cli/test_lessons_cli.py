"""`retire` and `restore` by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from running import lessonbank_cli, lessonbank_process

import lessonbank
from lessonbank import Step, Trajectory

RUN = Trajectory(task="open the valve", steps=(Step(action="turn", observation="error: stuck"),))


def test_a_lesson_is_taken_back_and_brought_back_by_hand(tmp_path: Path) -> None:
    with lessonbank.connect(tmp_path / "bank.db", scope="t", embedder="lexical") as bank:
        lesson = bank.learn(RUN, outcome="failure").lessons[0].id
        where = ("--bank", "bank.db", "--scope", "t")
        assert (
            lessonbank_cli(
                "lessons", "retire", lesson, *where, "--by", "Ana", "--reason", "misleads", cwd=tmp_path
            ).returncode
            == 0
        )
        assert bank.lessons.get(lesson).retired
        again = lessonbank_cli("lessons", "retire", lesson, *where, "--by", "Ana", "--reason", "misleads", cwd=tmp_path)
        assert (again.returncode, "[conflict]" in again.stderr) == (1, True)
        assert (
            lessonbank_cli(
                "lessons", "restore", lesson, *where, "--by", "Ana", "--reason", "was right", cwd=tmp_path
            ).returncode
            == 0
        )
        assert not bank.lessons.get(lesson).retired


@pytest.mark.full
def test_the_release_is_printed(tmp_path: Path) -> None:
    assert lessonbank_process("--version", cwd=tmp_path).stdout == f"{lessonbank.__version__}\n"


def test_looking_at_another_embedder_needs_reindex(tmp_path: Path) -> None:
    lessonbank.connect(tmp_path / "bank.db", scope="t", embedder="lexical").close()
    done = lessonbank_cli("doctor", "--bank", "bank.db", "--embedder", "hashing", cwd=tmp_path)
    assert done.returncode == 2
    assert "--reindex" in done.stderr
    with lessonbank.connect(tmp_path / "bank.db", scope="t") as bank:
        assert str(bank.settings["embedder"]).startswith("lexical")

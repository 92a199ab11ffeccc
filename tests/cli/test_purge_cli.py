"""`purge`, as a user runs it: it asks, it says what went, and nothing else goes."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import TypeAlias

import pytest
from running import lessonbank_cli, lessonbank_process

import lessonbank
from lessonbank import Evidence, Step, Trajectory

pytestmark = pytest.mark.full

pty = pytest.importorskip("pty", reason="this system has no terminals to ask at")
Done: TypeAlias = CompletedProcess[str]


def fill(path: Path) -> None:
    with lessonbank.connect(path, scope="t", embedder="lexical", evidence=Evidence(holdout=None)) as bank:
        for n in range(3):
            step = Step(action="print label", observation="error: no form")
            run = Trajectory(id=f"run-{n}", task=f"Ship box {n}", steps=(step,))
            bank.learn(run, recall=bank.retrieve(f"Ship box {n}"), outcome="failure")


@pytest.fixture
def folder(tmp_path: Path, copied: Callable[..., Path]) -> Path:
    return copied(fill, tmp_path)


def purge(*words: object, cwd: Path, answer: str | None = None, run: Callable[..., Done] = lessonbank_cli) -> Done:
    """Runs it without a terminal, or at one where somebody types `answer`."""
    command = ("purge", "--bank", "bank.db", "--scope", "t", "--by", "Ana", *words)
    if answer is None:
        return lessonbank_cli(*command, cwd=cwd)
    ours, theirs = pty.openpty()
    try:
        os.write(ours, answer.encode() + b"\n")
        return run(*command, stdin=theirs, cwd=cwd)
    finally:
        os.close(ours)
        os.close(theirs)


def test_several_runs_and_recalls_go_together(folder: Path) -> None:
    with lessonbank.connect(folder / "bank.db", scope="t") as bank:
        recall = next(one.id for one in bank.recalls.list() if one.task == "Ship box 2")
    done = purge("--run", "run-0", "--run", "run-1", "--recall", recall, "--reason", "x", "--yes", cwd=folder)
    assert done.returncode == 0, done.stderr
    told = " ".join(done.stdout.split())
    assert "erased from t: 2 runs, 2 experiences, 2 lessons, 1 recall." in told
    assert "Backups and exports made earlier still hold it" in told
    with lessonbank.connect(folder / "bank.db", scope="t") as bank:
        assert [run.trajectory.id for run in bank.runs.list()] == ["run-2"]


def test_a_lesson_and_a_whole_scope_go_and_what_is_left_is_printed_as_data(folder: Path) -> None:
    with lessonbank.connect(folder / "bank.db", scope="t") as bank:
        lesson = bank.lessons.list(limit=10_000)[::-1][0].id
    done = purge("--lesson", lesson, "--reason", "wrong", "--yes", "--json", cwd=folder)
    told = json.loads(done.stdout)
    assert (told["erased"]["lessons"], told["gone"]["lessons"]) == ([lesson], 1)
    done = purge("--all", "--reason", "left", "--yes", "--json", cwd=folder)
    assert json.loads(done.stdout)["gone"]["experiences"] == 3
    with lessonbank.connect(folder / "bank.db", scope="t") as bank:
        assert not any(bank.admin.counts().model_dump(exclude={"changes"}).values())


def test_it_asks_at_a_terminal_and_names_what_goes(folder: Path) -> None:
    for words, named in ((("--run", "run-1"), "Ship box 1"), (("--all",), "3 runs, 3 recalls, 3 lessons")):
        done = purge(*words, "--reason", "x", cwd=folder, answer="n")
        assert (done.returncode, done.stdout.strip()) == (1, "")
        assert named in done.stderr
        assert "nothing was erased" in done.stderr
    with lessonbank.connect(folder / "bank.db", scope="t") as bank:
        assert bank.admin.counts().experiences == 3
    words = ("--run", "run-1", "--reason", "x")
    assert purge(*words, cwd=folder, answer="y", run=lessonbank_process).returncode == 0
    with lessonbank.connect(folder / "bank.db", scope="t") as bank:
        assert bank.admin.counts().experiences == 2


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (("--run", "run-1"), 2, "--yes"),
        ((), 2, "ids (--lesson, --run, --recall), or --metadata, or --all"),
        (("--lesson", "x", "--all", "--yes"), 2, "ids (--lesson, --run, --recall), or --metadata, or --all"),
        (("--run", "run-1", "--run", "run-9", "--yes"), 1, "[not_found]"),
        (("--lesson", "nothing", "--yes"), 1, "[not_found]"),
    ],
)
def test_what_is_not_clear_erases_nothing(folder: Path, words: tuple[str, ...], code: int, sentence: str) -> None:
    done = purge(*words, "--reason", "x", cwd=folder)
    assert done.returncode == code, done.stderr
    assert sentence in " ".join(done.stderr.split())
    with lessonbank.connect(folder / "bank.db", scope="t") as bank:
        assert bank.admin.counts().experiences == 3


def test_a_reason_must_be_given(folder: Path) -> None:
    assert purge("--all", "--yes", cwd=folder).returncode == 2


def users_bank(path: Path) -> None:
    """Two users' runs and recalls, and one recall of which nothing was learned."""
    with lessonbank.connect(path, scope="t", embedder="lexical", evidence=Evidence(holdout=None)) as bank:
        for user in ("u-17", "u-18"):
            told = {"user": user}
            recall = bank.retrieve(f"Ship the vase of {user}", metadata=told)
            step = Step(action="print label", observation="error: no form")
            run = Trajectory(id=f"run-of-{user}", task=f"Ship the vase of {user}", steps=(step,))
            bank.learn(run, recall=recall, outcome="failure", metadata=told)
        bank.retrieve("Where is my vase?", metadata={"user": "u-17"})


@pytest.fixture
def users(tmp_path: Path, copied: Callable[..., Path]) -> Path:
    return copied(users_bank, tmp_path)


def test_what_belongs_to_one_person_is_shown_and_erased_and_the_rest_stays(users: Path) -> None:
    words = ("--metadata", "user=u-17", "--reason", "request 17")
    shown = purge(*words, "--preview", "--json", cwd=users)
    wanted = json.loads(shown.stdout)
    assert (wanted["runs"], len(wanted["recalls"])) == (["run-of-u-17"], 2)
    refused = purge(*words, cwd=users)
    assert refused.returncode == 2
    assert "confirm it with --yes" in refused.stderr
    assert "its lesson" in refused.stderr
    assert "Where is my vase?" in refused.stderr
    with lessonbank.connect(users / "bank.db", scope="t") as bank:
        assert bank.admin.counts().trajectories == 2
    done = purge(*words, "--yes", cwd=users)
    assert done.returncode == 0, done.stderr
    assert "erased from t: 1 run, 1 experience, 1 lesson, 2 recalls. 1 lesson lives on" in done.stdout, (
        "u-18 taught it again"
    )
    with lessonbank.connect(users / "bank.db", scope="t") as bank:
        assert [run.trajectory.id for run in bank.runs.list()] == ["run-of-u-18"]
        assert not bank.runs.list(metadata={"user": "u-17"}) + bank.recalls.list(metadata={"user": "u-17"})
        assert bank.history.list()[-1].writer == "Ana"


def test_a_recall_alone_can_be_erased_by_a_part_of_its_id(users: Path) -> None:
    with lessonbank.connect(users / "bank.db", scope="t") as bank:
        recall = bank.recalls.search("Where is my vase")[0].id
    done = purge("--recall", recall[-8:], "--reason", "x", "--yes", cwd=users)
    assert "erased from t: 1 recall." in done.stdout


def test_metadata_that_nothing_has_erases_nothing_and_says_how_numbers_are_written(users: Path) -> None:
    done = purge("--metadata", "user=17", "--reason", "x", "--yes", cwd=users)
    assert (done.returncode, done.stdout) == (0, "")
    assert "no run and no recall has user=17, so nothing is erased; for a number write user:=17" in done.stderr


@pytest.mark.parametrize("given", ["user", "=u-17", "user:=u-17"])
def test_metadata_that_cannot_be_read_is_one_sentence(users: Path, given: str) -> None:
    done = purge("--metadata", given, "--reason", "x", "--yes", cwd=users)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done.stderr


def test_what_others_taught_again_lives_on_and_is_told_before(tmp_path: Path) -> None:
    steps = [("make release", "error: no entry"), ("make changelog", "updated"), ("make release", "released")]
    with lessonbank.connect(
        tmp_path / "bank.db", scope="t", embedder="lexical", evidence=Evidence(holdout=None)
    ) as bank:
        for n in range(3):
            told = [Step(action=action, observation=seen) for action, seen in steps]
            run = Trajectory(id=f"run-{n}", task=f"Publish release 1.{n} of the parser", steps=told)
            bank.learn(run, outcome="success")
        count = len(bank.lessons.list())
    shown = purge("--run", "run-0", "--reason", "x", "--preview", cwd=tmp_path)
    assert shown.stderr.count("lives on") == count
    assert "the words of run run-1" in " ".join(shown.stderr.split())
    done = purge("--run", "run-0", "--reason", "x", "--yes", cwd=tmp_path)
    told = " ".join(done.stdout.split())
    assert f"erased from t: 1 run, 1 experience, {count} lessons. {count} lessons live on in the words of other" in told
    with lessonbank.connect(tmp_path / "bank.db", scope="t") as bank:
        assert bank.history.list()[-1].entry.sentence().text.endswith(f": {count} lessons, 1 run"), "as it was said"
        assert len(bank.lessons.list()) == count

"""`trial` on a command line: an agent of the user's own, tasks from a file, a budget."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from running import lessonbank_cli

import lessonbank
from lessonbank.trials import Trial

pytestmark = pytest.mark.full

WHERE = ("--bank", "bank.db", "--scope", "t")
AGENT = """
import random
from lessonbank import Trajectory

def run(task, memory, *, seed):
    done = random.Random(f"{seed} {task}").random() < (0.9 if "Weigh it" in memory else 0.1)
    return Trajectory(task=task, instructions=memory, answer="yes" if done else "no")

def is_done(run):
    return run.answer == "yes"
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "toy_agent", raising=False)
    with lessonbank.connect(tmp_path / "bank.db", scope="t", embedder="lexical") as bank:
        bank.lessons.add(title="Weigh it", content="Weigh it first.", task="Ship a parcel", by="Ana")
    (tmp_path / "toy_agent.py").write_text(AGENT, encoding="utf-8")
    (tmp_path / "tasks.txt").write_text("\n".join(f"Ship parcel {n}" for n in range(30)), encoding="utf-8")
    return tmp_path


def trial(
    folder: Path, *more: object, agent: str = "toy_agent:run", tasks: str = "tasks.txt"
) -> subprocess.CompletedProcess[str]:
    functions = ("--agent", agent, "--verify", "toy_agent:is_done")
    return lessonbank_cli("trial", *WHERE, "--tasks", tasks, *functions, *more, cwd=folder)


def test_a_trial_prints_its_answer_its_interval_and_its_cost(folder: Path) -> None:
    done = trial(folder)
    assert done.returncode == 0, done.stderr
    answer, pairs, promise, cost = done.stdout.splitlines()
    assert answer.startswith("Memory helps: success +")
    assert "0 worse" in pairs
    assert promise.endswith("the promise of lift is counted apart.")
    assert cost.startswith("Cost: ")


def test_json_is_the_record_and_a_file_of_json_lines_serves_as_tasks(folder: Path) -> None:
    with lessonbank.connect(folder / "bank.db", scope="t", evidence=None) as bank:
        (lesson,) = bank.lessons.list()
    lines = ['"Ship parcel 1"', '{"task": "Ship parcel 2"}', "", "{broken} Ship parcel 5"]
    (folder / "tasks.jsonl").write_text("\n".join(lines), encoding="utf-8")
    done = trial(folder, "--json", "--without", lesson.id[-8:], tasks="tasks.jsonl")
    told = Trial.model_validate_json(done.stdout)
    assert (told.treatment, told.title, told.tasks) == (lesson.id, "Weigh it", 3)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"agent": "toy_agent"}, "--agent takes module:function"),
        ({"agent": "no_such_module:run"}, "cannot be loaded"),
        ({"agent": "toy_agent:no_such_function"}, "cannot be loaded"),
        ({"tasks": "nowhere.txt"}, "cannot read the tasks"),
        ({"tasks": "wrong.jsonl"}, "line 1 of the tasks names no task"),
    ],
)
def test_a_call_that_cannot_be_is_one_sentence(folder: Path, wrong: dict[str, str], said: str) -> None:
    (folder / "wrong.jsonl").write_text('{"text": "Ship"}', encoding="utf-8")
    done = trial(folder, **wrong)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert done.stderr.count("\n") == 1

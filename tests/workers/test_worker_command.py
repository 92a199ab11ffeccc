"""`lessonbank worker`: a process that learns until a signal ends it, and the commands that show its queue."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from examples_of import load
from running import COMMAND, lessonbank_cli
from waiting import until

import lessonbank
from lessonbank.contracts.records import Step, Trajectory
from lessonbank.contracts.settings import Evidence, Learning

SCOPE = "acme/support"
pytestmark = pytest.mark.full


def submitted(path: Path, count: int, /, *, outcome: Any = "success") -> tuple[str, ...]:
    """Runs in a new bank that wait for a worker."""
    learning, evidence = Learning(submit="worker"), Evidence(holdout=None)
    with lessonbank.connect(path, scope=SCOPE, embedder="lexical", learning=learning, evidence=evidence) as bank:
        runs = [Trajectory(task=f"Do {n}", steps=(Step(action="a", observation="b"),)) for n in range(count)]
        return tuple(id for run in runs for id in bank.submit(run, outcome=outcome))


def told(*arguments: object, code: int = 0) -> Any:
    """What a command prints as JSON."""
    done = lessonbank_cli(*arguments, "--json", cwd=Path.cwd())
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout)


def test_a_worker_that_drains_learns_what_waits_and_ends(tmp_path: Path) -> None:
    path = tmp_path / "bank.db"
    submitted(path, 3)
    assert told("doctor", "--bank", path)["queue"]["waiting"] == 3
    assert told("worker", path, "--drain") == {"learned": 3, "failed": 0, "given_up": 0, "put_off": 0}
    queue = told("doctor", "--bank", path)["queue"]
    assert queue == {"waiting": 0, "claimed": 0, "failed": 0, "oldest": None}


def test_what_a_worker_gives_up_is_shown_with_its_reason(tmp_path: Path) -> None:
    path = tmp_path / "bank.db"
    (id,) = submitted(path, 1, outcome=None)  # and there is no model that could judge it
    assert told("worker", path, "--drain", "--tries", 1, code=3)["given_up"] == 1
    (failed,) = told("runs", "list", "--status", "failed", "--bank", path, "--scope", SCOPE)
    assert (failed["trajectory"]["id"], failed["tries"]) == (id, 1)
    assert "not judged" in failed["problem"]
    shown = lessonbank_cli("doctor", "--bank", path, cwd=tmp_path)
    assert "given up" in shown.stdout
    assert "runs list --status failed" in shown.stdout
    assert len(told("learn", "--waiting", "--run", id, "--bank", path, "--scope", SCOPE, code=3)["learned"]) == 1


@pytest.mark.skipif(os.name == "nt", reason="this system has no SIGTERM")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_worker_in_order(tmp_path: Path, number: signal.Signals) -> None:
    path = tmp_path / "bank.db"
    submitted(path, 2)
    command = (*COMMAND, "worker", str(path), "--json")
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8")
    assert process.stderr is not None
    with process:
        assert "waiting for runs" in process.stderr.readline()
        with lessonbank.connect(path, scope=SCOPE, embedder="lexical") as bank:
            until(lambda: not (bank.runs.queue().waiting or bank.runs.queue().claimed) or process.poll() is not None)
        assert process.poll() is None
        process.send_signal(number)
        out, err = process.communicate()
    assert (process.returncode, err) == (0, "")
    assert json.loads(out)["learned"] == 2


def test_the_example_leaves_learning_to_a_worker() -> None:
    assert load("leave_learning_to_workers").main() == 4


def test_batches_need_a_model_that_has_them(tmp_path: Path) -> None:
    path = tmp_path / "bank.db"
    submitted(path, 1)
    for more in (["--batch"], ["--batch", "--model", "qwen3", "--base-url", "http://127.0.0.1:9/v1"]):
        done = lessonbank_cli("worker", path, *more, cwd=tmp_path)
        assert done.returncode == 2
        assert "batch" in done.stderr

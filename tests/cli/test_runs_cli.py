"""`runs` on the command line: found, corrected, audited, learned again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from running import lessonbank_cli

import lessonbank
from lessonbank import Evidence, Parts, Step, Trajectory, Verdict
from lessonbank.testing import ModelServer

pytestmark = pytest.mark.full

WHERE = ("--bank", "bank.db", "--scope", "t")


def fill(path: Path) -> None:
    with lessonbank.connect(path, scope="t", embedder="lexical", evidence=Evidence(holdout=None)) as bank:
        step = Step(action="print label", observation="error: no form")
        for n, outcome in enumerate(("failure", "success", None)):
            run = Trajectory(id=f"run-{n}", task=f"Ship box {n}", steps=(step,), answer="sent")
            bank.learn(run, outcome=outcome, metadata={"user": f"u-{n}", "order": n})


@pytest.fixture
def folder(tmp_path: Path, copied: Callable[..., Path]) -> Path:
    return copied(fill, tmp_path)


def ids(folder: Path, *words: object) -> list[str]:
    done = lessonbank_cli("runs", *words, *WHERE, "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    return [row.get("trajectory", row)["id"] for row in json.loads(done.stdout)]


def test_runs_are_found_by_outcome_status_words_and_metadata(folder: Path) -> None:
    assert ids(folder, "list") == ["run-2", "run-1", "run-0"]
    assert ids(folder, "list", "--outcome", "failure") == ["run-0"]
    assert ids(folder, "list", "--status", "pending") == ["run-2"]
    assert ids(folder, "list", "--text", "box 1") == ["run-1"]
    assert ids(folder, "list", "--metadata", "user=u-2") == ["run-2"]
    assert ids(folder, "list", "--metadata", "order:=1", "--metadata", "user=u-1") == ["run-1"]
    assert ids(folder, "list", "--metadata", "order=1") == []


def test_a_run_is_shown_whole(folder: Path) -> None:
    done = lessonbank_cli("explain", "run-0", *WHERE, cwd=folder)
    assert done.returncode == 0, done.stderr
    for part in ("task: Ship box 0", "action: print label", "error: no form", "answer: sent", "failure", "u-0"):
        assert part in done.stdout


def test_a_corrected_verdict_carries_the_name_of_the_person(folder: Path) -> None:
    words = ("tell", "run-1", "failure", "--by", "Ana", "--reason", "wrong address")
    done = lessonbank_cli(*words, *WHERE, cwd=folder)
    assert done.returncode == 0, done.stderr
    with lessonbank.connect(folder / "bank.db", scope="t") as bank:
        verdict = bank.runs.get("run-1").verdict
    assert (verdict.outcome, verdict.source, verdict.reason) == ("failure", "human", "Ana: wrong address")


def test_an_outcome_that_a_program_found_out_later_is_told_by_run_or_recall(folder: Path) -> None:
    with lessonbank.connect(folder / "bank.db", scope="t", embedder="lexical") as bank:
        recall = bank.retrieve("Ship box 5")
        bank.learn(Trajectory(id="run-5", task="Ship box 5", steps=(Step(action="print label"),)), recall=recall)
    for named, words, reward in ((recall.id, ("--reward", "0.25"), 0.25), ("run-5", ("success",), None)):
        done = lessonbank_cli("tell", named, *words, *WHERE, cwd=folder)
        assert done.returncode == 0, done.stderr
        with lessonbank.connect(folder / "bank.db", scope="t") as bank:
            verdict = bank.runs.get("run-5").verdict
        assert (verdict.source, verdict.reward) == ("ground_truth", reward)
    assert verdict.outcome == "success"


def test_an_outcome_is_told_by_metadata_that_only_one_run_has(folder: Path) -> None:
    done = lessonbank_cli("tell", "failure", "--metadata", "user=u-2", *WHERE, cwd=folder)
    assert (done.returncode, done.stdout) == (0, "run user=u-2 ended in failure; it taught 1 lesson\n")
    assert ids(folder, "list", "--outcome", "failure") == ["run-2", "run-0"]
    for words, why in (
        (("failure", "--metadata", "user=nobody"), "there is no run"),
        (("run-1", "failure", "--metadata", "user=u-1"), "takes the place of ID"),
        (("run-1", "--metadata", "user=u-1"), "OUTCOME"),
        ((), "say which run"),
    ):
        refused = lessonbank_cli("tell", *words, *WHERE, cwd=folder)
        assert (refused.returncode != 0, why in refused.stderr) == (True, True), refused.stderr


def test_telling_how_a_run_ended_says_how_many_lessons_it_taught(tmp_path: Path) -> None:
    said = [("print label", "error: no form"), ("fill form", "saved"), ("print label", "printed")]
    steps = tuple(Step(action=action, observation=observation) for action, observation in said)
    with lessonbank.connect(tmp_path / "bank.db", scope="t", embedder="lexical") as bank:
        bank.learn(Trajectory(id="run-1", task="Ship box 1", steps=steps))
    words = ("tell", "run-1", "success", *WHERE)
    assert lessonbank_cli(*words, cwd=tmp_path).stdout == "run run-1 ended in success; it taught 2 lessons\n"
    assert lessonbank_cli(*words, cwd=tmp_path).stdout == "run run-1 ended in success\n"


@pytest.mark.parametrize("waits", [True, False])
def test_a_person_tells_an_outcome_by_the_recall_of_the_run(folder: Path, waits: bool) -> None:
    with lessonbank.connect(folder / "bank.db", scope="t", embedder="lexical") as bank:
        recall, run = bank.retrieve("Ship box 5"), Trajectory(id="run-5", task="Ship box 5", answer="sent")
        bank.learn(run, recall=recall, outcome=None if waits else "success")
    done = lessonbank_cli("tell", recall.id[-8:], "failure", "--by", "Ana", *WHERE, cwd=folder)
    assert done.returncode == 0, done.stderr
    with lessonbank.connect(folder / "bank.db", scope="t") as bank:
        assert (bank.runs.get("run-5").verdict.outcome, bank.runs.get("run-5").verdict.source) == ("failure", "human")


def test_runs_that_wait_are_learned_with_a_model_and_the_exit_code_says_whether_some_still_wait(folder: Path) -> None:
    still = lessonbank_cli("learn", "--waiting", *WHERE, cwd=folder)
    assert still.returncode == 3
    assert "1 run still waits" in still.stdout
    with ModelServer(default='{"thoughts": "no form", "status": "failure"}') as server:
        words = ("learn", "--waiting", "--model", "desk", "--base-url", server.base_url)
        lessonbank_cli(*words, *WHERE, cwd=folder)
        assert server.requests


async def says_failure(_: Trajectory, /) -> Verdict:
    return Verdict(outcome="failure", confidence=0.9, reason="no form")


def test_drawn_runs_are_listed_until_each_has_a_label(folder: Path) -> None:
    assert ids(folder, "audit", "5") == []
    with lessonbank.connect(folder / "bank.db", scope="t", embedder="lexical", parts=Parts(judge=says_failure)) as bank:
        for n in (3, 4):
            run = Trajectory(id=f"run-{n}", task=f"Ship box {n}", steps=(Step(action="print label"),))
            bank.learn(run, recall=bank.retrieve(run.task))
    assert ids(folder, "audit", "5", "--by", "Ana") == ids(folder, "audit") == ["run-3", "run-4"]
    doctor = lessonbank_cli("doctor", *WHERE, "--json", cwd=folder)
    assert json.loads(doctor.stdout)["unlabelled"] == {"t": 2}
    assert "2 labels are missing" in lessonbank_cli("doctor", *WHERE, cwd=folder).stdout
    done = lessonbank_cli("tell", "run-3", "success", "--by", "Ana", *WHERE, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert ids(folder, "audit") == ["run-4"]
    assert "100% of judged runs, by Ana" in lessonbank_cli("history", "list", *WHERE, cwd=folder).stdout

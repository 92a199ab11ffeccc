"""An experiment can be killed anywhere and goes on as if it had not been; what it says of its arms is told exactly."""

from __future__ import annotations

import itertools
import json
import random
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from linear import FAR, growth_of

from lessonbank.contracts.ports import Message
from lessonbank.contracts.records import Trajectory
from lessonbank.errors import Conflict, FormatError, ModelError, UsageError
from lessonbank.testing import ScriptedModel
from lessonbank_bench.environments import Job
from lessonbank_bench.environments.desk import DeskEnvironment
from lessonbank_bench.environments.null import NullEnvironment
from lessonbank_bench.experiment.journal import BANKS, ROWS
from lessonbank_bench.experiment.records import Experiment, made, read_experiment, without_codes
from lessonbank_bench.experiment.runner import Progress, run
from lessonbank_bench.experiment.schedule import schedule, total

from .experiments import copied, facts, rows_of

ASKED: dict[str, Any] = {
    "seeds": "100-101",
    "tasks": 6,
    "leave_out": [],
    "arms": [{"name": "none"}, {"name": "a/a", "again": True}, {"name": "lessonbank"}, {"name": "random", "limit": 2}],
}


def asked(**more: Any) -> Experiment:
    return made({**ASKED, **more}, source="test")


def bank_of(path: Path) -> str:
    """An export with its ids numbered and its times, codes and check sum left out."""
    names: dict[str, str] = {}
    kept = [_without_moments(json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]
    text = "\n".join(json.dumps(line, ensure_ascii=False).replace("\\n", "\n") for line in kept)
    ids = re.compile(r"\b(?:[0-9a-f]{32}|[0-9a-f]{8})\b")  # those of topics are short
    return ids.sub(lambda m: names.setdefault(m[0], f"id {len(names)}"), without_codes(text))


def _without_moments(value: Any) -> Any:
    if isinstance(value, dict):
        left = {"at", "created_at", "text_digest", "sha256"}
        return {k: _without_moments(v) for k, v in value.items() if k not in left}
    return [_without_moments(v) for v in value] if isinstance(value, list) else value


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    assert run(asked(), DeskEnvironment(), folder).complete
    return folder


KILLED = """
import json, os, signal, sys
from pathlib import Path
from lessonbank_bench.environments.desk import DeskEnvironment
from lessonbank_bench.experiment.journal import Journal
from lessonbank_bench.experiment.records import made
from lessonbank_bench.experiment.runner import run

asked, folder, keep = made(json.loads(sys.argv[1]), source="test"), Path(sys.argv[2]), Journal.add

def play(way, left):
    def add(self, row):
        nonlocal left
        left -= 1
        if left == 0 and way == "torn":
            self._file.write(row.model_dump_json().encode()[:700])
            self._file.flush()
        if left == 0 and way != "seconds":
            os.kill(os.getpid(), signal.SIGKILL)
        keep(self, row)

    Journal.add = add
    if way == "seconds":  # wherever it is then, within a recall, an attempt, a lesson or a line
        signal.setitimer(signal.ITIMER_PROF, left)
    run(asked, DeskEnvironment(), folder, resume=True)

for way, left in json.loads(sys.argv[3]):
    if not (child := os.fork()):
        play(way, left)
        break
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
"""Processes that die after so many lines, within one, or after so many seconds of work, one after another."""


def test_arms_are_paired_on_tasks_and_take_turns(uninterrupted: Path) -> None:
    rows = rows_of(uninterrupted)
    assert len(rows) == total(asked()) == 48
    for start in range(0, len(rows), 4):
        turn = rows[start : start + 4]
        assert len({row.task_id for row in turn}) == 1
        assert {row.arm for row in turn} == {"none", "a/a", "lessonbank", "random"}
    assert len({tuple(row.arm for row in rows[at : at + 4]) for at in range(0, 48, 4)}) > 3


def test_the_order_of_tasks_is_drawn_for_each_seed() -> None:
    orders = [[slot.job.id for slot in schedule(asked(), DeskEnvironment(), seed)] for seed in (100, 101)]
    places = [[id.rpartition("/")[2] for id in order] for order in orders]
    assert places[0] != places[1]
    assert sorted(places[0]) == sorted(places[1])


def test_a_row_proves_what_was_shown_and_says_what_was_learned(uninterrupted: Path) -> None:
    rows = [row for row in rows_of(uninterrupted) if row.arm == "lessonbank"]
    assert any(row.memory for row in rows)
    assert all((row.memory == "") == (row.memory_digest.startswith("e3b0c442")) for row in rows)
    assert all(row.lessons and row.verdict == ("success" if row.told else "failure") for row in rows)
    assert all(row.run is not None and row.steps == len(row.run.steps) - 1 for row in rows)


def test_the_repetition_of_the_baseline_differs_by_chance_alone(uninterrupted: Path) -> None:
    rows = rows_of(uninterrupted)
    assert not any(row.memory for row in rows if row.arm in ("none", "a/a"))
    runs = {arm: [row.run.steps for row in rows if row.arm == arm and row.run] for arm in ("none", "a/a")}
    assert runs["none"] != runs["a/a"]


def test_a_process_that_is_killed_again_and_again_leaves_what_an_uninterrupted_one_does(
    uninterrupted: Path, tmp_path: Path
) -> None:
    draw, folder = random.Random(7), tmp_path / "out"
    ways = [
        ("lines", draw.randint(2, 20)),
        ("torn", draw.randint(2, 20)),
        ("seconds", draw.uniform(0.01, 0.2)),
        ("", 0),
    ]
    words = (sys.executable, "-c", KILLED, json.dumps(ASKED), str(folder), json.dumps(ways))
    done = subprocess.run(words, capture_output=True, text=True, timeout=240, check=False)
    codes = [int(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0, done.stderr
    assert codes[:2] == [-signal.SIGKILL] * 2
    assert codes[2:] in ([-signal.SIGPROF, 0], [0, 0]), done.stderr
    assert facts(folder) == facts(uninterrupted)
    banks = sorted(path.name for path in (uninterrupted / BANKS).iterdir())
    assert len(banks) == 8
    assert sorted(path.name for path in (folder / BANKS).iterdir()) == banks
    for name in banks:
        assert bank_of(folder / BANKS / name) == bank_of(uninterrupted / BANKS / name), name


@pytest.mark.parametrize("cut", [24, 40], ids=["between seeds", "within one"])
def test_an_experiment_cut_at_any_line_goes_on_to_the_same_rows(uninterrupted: Path, tmp_path: Path, cut: int) -> None:
    copied(uninterrupted, tmp_path, lines=cut, extra=b'{"config": "half a li')
    ran = run(asked(), DeskEnvironment(), tmp_path, resume=True)
    assert (ran.made, ran.complete) == (48 - cut, True)
    assert facts(tmp_path) == facts(uninterrupted)
    assert len(list((tmp_path / BANKS).iterdir())) == 8


def test_banks_that_a_kill_kept_from_being_written_are_rebuilt(uninterrupted: Path, tmp_path: Path) -> None:
    copied(uninterrupted, tmp_path, lines=48)
    assert run(asked(), DeskEnvironment(), tmp_path, resume=True).made == 0
    kept = uninterrupted / BANKS / "lessonbank-101.jsonl"
    assert bank_of(tmp_path / BANKS / kept.name) == bank_of(kept)


def test_a_memory_that_cannot_be_rebuilt_stops_the_run(uninterrupted: Path, tmp_path: Path) -> None:
    copied(uninterrupted, tmp_path, lines=30)
    path = tmp_path / ROWS
    lines = path.read_text(encoding="utf-8").splitlines()
    told = [json.loads(line) for line in lines]
    changed = next(n for n, row in enumerate(told) if row["arm"] == "lessonbank")
    told[changed]["told"], told[changed]["run"]["task"] = not told[changed]["told"], "something else altogether"
    path.write_text("".join(json.dumps(row) + "\n" for row in told), encoding="utf-8")
    with pytest.raises(Conflict, match="cannot be rebuilt"):
        run(asked(), DeskEnvironment(), tmp_path, resume=True)


def test_another_experiment_or_a_second_start_is_refused(uninterrupted: Path) -> None:
    with pytest.raises(UsageError, match="--resume"):
        run(asked(), DeskEnvironment(), uninterrupted)
    with pytest.raises(UsageError, match="another experiment"):
        run(asked(tasks=9), DeskEnvironment(), uninterrupted, resume=True)
    other = DeskEnvironment()
    other.version = "desk of tomorrow"
    with pytest.raises(UsageError, match="was begun with"):
        run(asked(), other, uninterrupted, resume=True)


def test_a_budget_or_a_question_may_change_between_two_calls() -> None:
    assert asked(budget={"attempts": 5}).hash == asked().hash == asked(question={"effect": 0.3}).hash
    assert asked(shuffle=False).hash != asked().hash


def test_a_damaged_line_in_the_middle_is_told_and_nothing_is_cut_away(uninterrupted: Path, tmp_path: Path) -> None:
    copied(uninterrupted, tmp_path, lines=20)
    data = (tmp_path / ROWS).read_bytes().replace(b'"seed":100', b'"seed":"?"', 3)
    (tmp_path / ROWS).write_bytes(data)
    with pytest.raises(FormatError, match="line 1 is no attempt"):
        run(asked(), DeskEnvironment(), tmp_path, resume=True)
    assert (tmp_path / ROWS).read_bytes() == data


def test_a_budget_stops_between_tasks_and_can_be_raised(tmp_path: Path) -> None:
    ran = run(asked(budget={"attempts": 10}), DeskEnvironment(), tmp_path)
    assert (ran.rows, ran.complete, ran.stopped) == (12, False, "the budget of 10 attempts is used up")
    ran = run(asked(budget={"money": 2.0}, price={"attempt": 0.1}), DeskEnvironment(), tmp_path, resume=True)
    assert (ran.rows, ran.made, ran.stopped) == (24, 12, "the budget of 2.00 US dollars is used up")
    rows = rows_of(tmp_path)
    assert ran.cost == pytest.approx(0.1 * sum(not row.shared for row in rows))


class Faulty(DeskEnvironment):
    """A desk whose machine breaks for some tasks."""

    def __init__(self, broken: set[int]) -> None:
        super().__init__()
        self._broken = broken

    def attempt(self, task: Job, agent: Any, memory: str, /) -> tuple[Trajectory, bool]:
        if int(task.id.rpartition("/")[2]) in self._broken:
            raise ModelError("the server is gone\x1b[31m")
        return super().attempt(task, agent, memory)


def test_errors_of_infrastructure_are_no_failures_of_the_agent(tmp_path: Path) -> None:
    ran = run(asked(), Faulty({3}), tmp_path)
    assert (ran.complete, ran.errors) == (True, 8)
    wrong = [row for row in rows_of(tmp_path) if row.error]
    assert {row.task_id for row in wrong} == {"desk/100/3", "desk/101/3"}
    assert all(row.success is None and row.run is None and not row.lessons for row in wrong)
    assert {(row.error.stage, row.error.code) for row in wrong if row.error} == {("attempt", "model")}
    assert "\x1b" not in wrong[0].model_dump_json()


def test_a_dead_machine_stops_the_run_and_a_mended_one_goes_on(tmp_path: Path) -> None:
    ran = run(asked(budget={"errors": 4}), Faulty(set(range(9))), tmp_path)
    assert (ran.rows, ran.stopped) == (
        4,
        "4 attempts in a row met an error of infrastructure, the last: the server is gone\\x1b[31m",
    ), "an error's control characters are told and drive no terminal"
    assert run(asked(budget={"errors": 4}), Faulty(set()), tmp_path, resume=True).complete


def test_a_frozen_bank_learns_while_it_is_trained_and_not_while_it_is_tested(tmp_path: Path) -> None:
    run(asked(mode="frozen", train=6, tasks=4, seeds=[5]), DeskEnvironment(), tmp_path)
    rows = [row for row in rows_of(tmp_path) if row.arm == "lessonbank"]
    assert [row.phase for row in rows] == ["train"] * 6 + ["test"] * 4
    assert [bool(row.verdict) for row in rows] == [True] * 6 + [False] * 4
    assert all(row.memory for row in rows[6:])


def test_transfer_trains_on_one_group_and_tests_on_another(tmp_path: Path) -> None:
    what = asked(mode="transfer", train=5, tasks=3, seeds=[5], train_on="Larkfield", test_on="Osmund")
    run(what, DeskEnvironment(), tmp_path)
    vendors = [(row.phase, "Larkfield" in row.task) for row in rows_of(tmp_path)]
    assert set(vendors) == {("train", True), ("test", False)}
    with pytest.raises(UsageError, match="too few tasks of the group 'Nowhere'"):
        list(schedule(what.model_copy(update={"test_on": "Nowhere"}), DeskEnvironment(), 5))


def test_wrong_verdicts_are_told_as_often_as_asked(tmp_path: Path) -> None:
    arms = [{"name": "none"}, {"name": "misled", "memory": "lessonbank", "wrong_verdicts": 1.0}]
    run(asked(arms=arms, seeds=[4]), DeskEnvironment(), tmp_path)
    assert all(row.told != row.success for row in rows_of(tmp_path) if row.arm == "misled")


def answering(start: int) -> ScriptedModel:
    """A model that never says the same twice: it acts by turns, and its lessons are numbered."""
    count = itertools.count(start)

    def reply(messages: Sequence[Message]) -> str:
        n, shown = next(count), messages[-1].content
        if messages[0].content.startswith("You operate a web form"):
            controls = shown.rpartition("Controls: ")[2].split(", ")
            return controls[0] if " -> " not in shown else controls[n % len(controls)]
        told = {"title": f"Lesson number {n}", "description": "On the site, when a form will not submit"}
        lesson = {
            "evidence": ["step 2"],
            "cause": "it did nothing",
            "content": f"Try {n} other controls first.",
            **told,
        }
        return json.dumps({"items": [lesson]})

    return ScriptedModel(reply)


def test_a_memory_with_a_model_is_rebuilt_without_asking_it_again(tmp_path: Path) -> None:
    what = {"model": "test:scripted", "seeds": [6], "tasks": 6, "arms": [{"name": "none"}, {"name": "lessonbank"}]}
    first, second = answering(0), answering(1000)
    run(asked(**what, budget={"attempts": 8}), DeskEnvironment(first), tmp_path)
    before = rows_of(tmp_path)
    learned = [row for row in before if row.lessons]
    assert len(learned) >= 3
    assert all("Lesson number" in row.lessons[0].title for row in learned)
    assert all(row.tokens > 0 for row in before)
    ran = run(asked(**what), DeskEnvironment(second), tmp_path, resume=True)
    assert (ran.made, ran.complete) == (4, True)
    after = rows_of(tmp_path)
    assert [row.facts() for row in after[:8]] == [row.facts() for row in before]
    acted = sum(row.steps for row in after[8:])
    asked_of = [call for call in second.calls if not call.messages[0].content.startswith("You operate")]
    assert len(second.calls) - len(asked_of) == acted
    assert len(asked_of) == sum(row.arm == "lessonbank" for row in after[8:])


def test_an_unknown_arm_is_told_before_anything_is_run(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no arm 'elephant'"):
        run(asked(arms=[{"name": "none"}, {"name": "elephant"}]), DeskEnvironment(), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_progress_says_how_long_it_will_take(tmp_path: Path) -> None:
    seen: list[Progress] = []
    run(asked(environment="null", arms=[{"name": "a"}, {"name": "b"}]), NullEnvironment(), tmp_path, tell=seen.append)
    assert [one.done for one in seen] == list(range(1, 25))
    assert seen[-1].left == 0.0
    assert all(one.left is not None and one.of == 24 for one in seen)


@pytest.mark.parametrize("longer", ["tasks", "steps"])
def test_the_work_of_the_runner_itself_grows_as_the_runs_do(tmp_path: Path, longer: str) -> None:
    folders = (tmp_path / str(number) for number in itertools.count())

    def make(size: int) -> Callable[[], object]:
        sizes = {"tasks": 10, "steps": 25, longer: size}
        what = asked(environment="null", seeds=[1], tasks=sizes["tasks"], arms=[{"name": "a"}, {"name": "b"}])
        return lambda: run(what, NullEnvironment(steps=sizes["steps"]), next(folders))

    assert growth_of(make, size=25) < FAR


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"arms": [{"name": "x"}]}, "an experiment has two arms or more"),
        ({"arms": [{"name": "none"}, {"name": "lessonbank!"}]}, "a name begins with a letter or digit"),
        ({"arms": [{"name": "x"}, {"name": "X"}]}, "two arms have one name"),
        ({"seeds": "9-1"}, "ascends"),
        ({"seeds": [1, 1]}, "a seed is given twice"),
        ({"baseline": "nobody"}, "none of the arms"),
        ({"mode": "frozen"}, "needs train"),
        ({"mode": "transfer", "train": 3}, "train_on"),
        ({"tusks": 4}, "tusks.*there is no such key"),
        ({"judged": True}, "needs a model"),
        ({"arms": [{"name": "none"}, {"name": "again", "memory": "random", "again": True}]}, "leave memory out"),
        ({"question": {"base": 1.5}}, "question.base"),
        ({"mode": "transfer", "train": 3, "train_on": "a", "test_on": "a"}, "train_on and test_on are one"),
        ({"stop": True, "arms": ASKED["arms"][:2]}, "stop needs an arm"),
        ({"stop": ["nobody"]}, "stop names 'nobody'"),
        ({"stop": ["lessonbank, other tasks"], "leave_out": ["task"]}, "stop names 'lessonbank, other tasks'"),
    ],
)
def test_an_experiment_that_cannot_be_is_told_in_one_sentence(wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError, match=told) as caught:
        asked(**wrong)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_no_experiment_is_told(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text("seeds = [1", encoding="utf-8")
    with pytest.raises(UsageError, match="is not TOML"):
        read_experiment(tmp_path / "x.toml")
    with pytest.raises(UsageError, match="cannot read"):
        read_experiment(tmp_path / "none.toml")

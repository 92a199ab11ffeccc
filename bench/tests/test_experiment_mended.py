"""Whatever an environment, a memory, a disk or a second process does, the rows of an experiment stay readable."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lessonbank import Step, Trajectory
from lessonbank.errors import Conflict, FormatError, ModelError, StoreUnavailable, UsageError
from lessonbank_bench.environments import Finished, Job
from lessonbank_bench.environments.swebench_grading import graded
from lessonbank_bench.experiment import journal as journals
from lessonbank_bench.experiment.journal import SETTING, Journal, change_rows, read_rows
from lessonbank_bench.experiment.records import Experiment, made, without_codes
from lessonbank_bench.experiment.report import page
from lessonbank_bench.experiment.request import asked as from_preset
from lessonbank_bench.experiment.runner import run

from .experiments import facts, killed, rows_of

NOTES = [{"name": "none"}, {"name": "notes"}]
CUT = "\ud800"
"""Half a character, as cut-off JSON holds it."""


class Notes:
    """Remembers goals, or says one thing."""

    def __init__(self, keeps: bool, text: str | None = None, told: list[Any] | None = None) -> None:
        self._keeps, self._text, self._known, self._told = keeps, text, set[str](), told

    def recall(self, goal: str, /) -> str:
        if self._text is not None:
            return self._text
        return "that door is odd" if goal in self._known else ""

    def learn(self, run: Trajectory, /, *, success: bool | None) -> Any:
        if self._told is not None:
            self._told.append(success)
        if self._keeps:
            self._known.add(run.task)

    def close(self) -> None:
        pass


class Shelf:
    """Notes by the names of arms."""

    def __init__(self, make: Callable[[str], Any] | None = None) -> None:
        self.live, self.failure = True, None
        self._make = make or (lambda name: Notes(name.startswith("n") and name != "none"))

    def make(self, name: str, seed: int, /, *, limit: int, answers: Path | None = None) -> Any:
        return self._make(name)


Run = Callable[[Job, Any, str], Any]


class Doors:
    """Four doors; an attempt may be made in another way."""

    name, version = "doors", "doors 1"

    def __init__(self, attempt: Run | None = None, *, memories: Any = None, n: int = 10**9, goal: str = "") -> None:
        self.memories, self._attempt, self._n, self._goal = memories or Shelf(), attempt, n, goal

    def tasks(self, seed: int, n: int, /) -> Sequence[Job]:
        there, goal = range(min(n, self._n)), self._goal
        return [Job(f"{seed}/{i}", seed, f"open door {i % 4}{goal}", f"door {i % 4}", "hall", None) for i in there]

    def agent(self, seed: int, /, *, anew: bool) -> Any:
        return seed + 1000 * anew

    def attempt(self, task: Job, agent: Any, memory: str, /) -> Any:
        if self._attempt is not None:
            return self._attempt(task, agent, memory)
        success = "odd" in memory or random.Random(f"{task.id}{agent}").random() < 0.3
        return Finished(a_run(task, observation="open" if success else "stuck"), success)

    def close(self) -> None:
        pass


def a_run(task: Job, *, action: str = "turn left", observation: str = "stuck") -> Trajectory:
    return Trajectory(task=task.goal, steps=(Step(action=action, observation=observation),))


def asked(**more: Any) -> Experiment:
    return made({"environment": "doors", "seeds": [1, 2, 3], "tasks": 8, "arms": NOTES, **more}, source="test")


# --- two processes, two experiments -----------------------------------------------------------------------------------


def test_a_second_start_with_another_experiment_leaves_the_setting_alone(tmp_path: Path) -> None:
    def second(task: Job, agent: Any, memory: str) -> Any:
        with pytest.raises(Conflict, match="another process"):
            run(asked(name="other"), Doors(), tmp_path)
        return a_run(task), True

    assert run(asked(seeds=[1], tasks=1), Doors(second), tmp_path).errors == 0
    assert read_rows(tmp_path)[0].name == "experiment"
    assert run(asked(seeds=[1], tasks=1), Doors(), tmp_path, resume=True).complete


def test_rows_of_another_experiment_are_refused_in_one_sentence(tmp_path: Path) -> None:
    first, second = tmp_path / "1", tmp_path / "2"
    run(asked(), Doors(), first)
    run(asked(tasks=9), Doors(), second)
    (first / SETTING).write_bytes((second / SETTING).read_bytes())
    with pytest.raises(FormatError, match="line 1 is an attempt of another experiment") as caught:
        read_rows(first)
    assert "\n" not in str(caught.value)
    with pytest.raises(FormatError, match="another experiment"):
        run(asked(tasks=9), Doors(), first, resume=True)


def test_a_file_that_is_replaced_before_it_is_locked_is_opened_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed(asked(), Doors(), tmp_path, after=6)
    lock = journals._only_one  # pyright: ignore[reportPrivateUsage]

    def late(file: Any, folder: Path) -> None:
        monkeypatch.setattr(journals, "_only_one", lock)
        change_rows(folder, lambda rows: rows)
        lock(file, folder)

    monkeypatch.setattr(journals, "_only_one", late)
    assert run(asked(), Doors(), tmp_path, resume=True).rows == len(rows_of(tmp_path)) == 48


# --- what environments and memories give ------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [float("nan"), 10**400, None, "0.5"])
def test_a_score_that_is_no_finite_number_is_a_failure_of_the_attempt(tmp_path: Path, value: Any) -> None:
    ran = run(asked(), Doors(lambda task, agent, memory: Finished(a_run(task), True, {"x": value})), tmp_path)
    rows = rows_of(tmp_path)
    assert (len(rows), ran.errors, ran.complete) == (20, 20, False)
    assert {(row.error.stage, row.error.code) for row in rows if row.error} == {("attempt", "scores")}
    assert not any(row.scores or row.run or row.success for row in rows)


@pytest.mark.parametrize("value", [1, True, np.float32(1), np.float64(1), np.int64(1), np.bool_(1)])
def test_a_score_may_be_any_kind_of_number(tmp_path: Path, value: Any) -> None:
    place = Doors(lambda task, agent, memory: Finished(a_run(task), np.bool_(1), {"x": value}))  # type: ignore[arg-type]
    assert run(asked(seeds=[1]), place, tmp_path).complete
    assert all((row.scores, row.success, row.told) == ({"x": 1.0}, True, True) for row in rows_of(tmp_path))


@pytest.mark.parametrize(
    ("gives", "code"),
    [
        (lambda task: None, "run"),
        (lambda task: ("done", True), "run"),
        (lambda task: (a_run(task), "yes"), "success"),
        (lambda task: (a_run(task), 1), "success"),
        (lambda task: (a_run(task), True, [1]), "scores"),
    ],
)
def test_an_attempt_that_gives_something_else_is_a_failure(
    tmp_path: Path, gives: Callable[[Job], Any], code: str
) -> None:
    run(asked(seeds=[1]), Doors(lambda task, agent, memory: gives(task)), tmp_path)
    assert {row.error.code for row in rows_of(tmp_path) if row.error} == {code}
    assert len(rows_of(tmp_path)) == 16


def test_a_plain_tuple_of_run_and_success_is_an_attempt(tmp_path: Path) -> None:
    assert run(asked(), Doors(lambda task, agent, memory: (a_run(task), True)), tmp_path).errors == 0
    assert all(row.success for row in rows_of(tmp_path))


def test_an_agent_that_cannot_be_made_is_a_failure_of_the_attempt(tmp_path: Path) -> None:
    class Nobody(Doors):
        def agent(self, seed: int, /, *, anew: bool) -> Any:
            raise RuntimeError("no agent \x1b[2J")

    assert run(asked(budget={"errors": 3}), Nobody(), tmp_path).errors == 4
    assert {(row.error.stage, row.error.message) for row in rows_of(tmp_path) if row.error} == {("attempt", "no agent")}


def test_text_that_is_no_unicode_is_mended_before_anything_is_learned_from_it(tmp_path: Path) -> None:
    def attempt(task: Job, agent: Any, memory: str) -> Finished:
        assert CUT not in memory + task.goal
        return Finished(a_run(task, action=f"a {CUT}", observation=CUT), True, {f"x{CUT}": 1.0})

    def place() -> Doors:
        return Doors(attempt, memories=Shelf(lambda name: Notes(False, f"hi {CUT}")), goal=CUT)

    run(asked(), place(), tmp_path / "whole")
    killed(asked(), place(), tmp_path / "cut", after=7)
    assert run(asked(), place(), tmp_path / "cut", resume=True).complete
    assert facts(tmp_path / "cut") == facts(tmp_path / "whole")
    row = rows_of(tmp_path / "cut")[0]
    assert (row.memory, row.task[-1], row.run and row.run.steps[0].action.text) == ("hi \ufffd", "\ufffd", "a \ufffd")


def test_an_error_with_text_that_is_no_unicode_is_told(tmp_path: Path) -> None:
    def attempt(task: Job, agent: Any, memory: str) -> Finished:
        raise RuntimeError(f"bad {CUT} text")

    assert run(asked(budget={"errors": 3}), Doors(attempt), tmp_path).errors == len(rows_of(tmp_path)) == 4


def test_a_memory_that_gives_no_text_is_a_failure_to_recall(tmp_path: Path) -> None:
    odd: Any = 7
    run(asked(seeds=[1]), Doors(memories=Shelf(lambda name: Notes(False, odd))), tmp_path)
    assert {(row.error.stage, row.error.code) for row in rows_of(tmp_path) if row.error} == {("recall", "text")}


def test_a_full_disk_is_told_in_one_sentence(tmp_path: Path) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("needs a device that is always full")
    run(asked(seeds=[1], tasks=1), Doors(), tmp_path)
    journal = Journal(full.open("wb"), [], tmp_path)
    with pytest.raises(StoreUnavailable, match=r"cannot write to .*: No space left"):
        journal.add(rows_of(tmp_path)[0])
    journal.close()


# --- limits within a task ---------------------------------------------------------------------------------------------

AGAIN = [{"name": "none"}, {"name": "a/a", "again": True}, {"name": "notes"}, {"name": "n2", "memory": "notes"}]


@pytest.mark.parametrize("after", [9, 12])
def test_a_task_that_was_begun_is_done_whatever_limit_was_reached(tmp_path: Path, after: int) -> None:
    what = asked(arms=AGAIN, budget={"attempts": 9})
    run(what, Doors(), tmp_path / "whole")
    killed(what, Doors(), tmp_path / "cut", after=after)
    run(what, Doors(), tmp_path / "cut", resume=True)
    assert facts(tmp_path / "cut") == facts(tmp_path / "whole")
    assert len(facts(tmp_path / "whole")) == 12


def test_an_arm_that_is_dead_stops_the_run_although_others_are_well(tmp_path: Path) -> None:
    class Dead(Notes):
        def recall(self, goal: str, /) -> str:
            raise RuntimeError("dead")

    place = Doors(memories=Shelf(lambda name: Dead(False) if name == "notes" else Notes(False)))
    ran = run(asked(tasks=50, budget={"errors": 5}), place, tmp_path)
    assert (ran.rows, ran.errors) == (10, 5)
    assert ran.stopped == "5 attempts of arm 'notes' in a row met an error of infrastructure: dead"
    assert run(asked(tasks=50, budget={"errors": 5}), place, tmp_path, resume=True).made == 10


@pytest.mark.parametrize(
    ("more", "there", "told"),
    [
        ({}, 5, "has 5 tasks of seed 1; 8 are asked for"),
        ({}, 0, "has 0 tasks of seed 1; 8 are asked for"),
        ({"mode": "frozen", "train": 5}, 9, "has 9 tasks of seed 1; 13 are asked for"),
        (
            {"mode": "transfer", "train": 3, "train_on": "hall", "test_on": "x"},
            9,
            "group 'x': 0 of seed 1; 8 are",
        ),
    ],
)
def test_too_few_tasks_are_told_before_anything_is_run(
    tmp_path: Path, more: dict[str, Any], there: int, told: str
) -> None:
    with pytest.raises(UsageError, match=told):
        run(asked(**more), Doors(n=there), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_settings_that_are_no_table_are_told_in_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_text('settings = "x"\nseeds = [1]\ntasks = 3\narms = [{name = "a"}, {name = "b"}]\n', encoding="utf-8")
    with pytest.raises(UsageError, match="settings are a table; got 'x'"):
        from_preset(path, settings=["a=1"])


# --- what is shared ---------------------------------------------------------------------------------------------------


def test_texts_that_differ_in_eight_digits_are_not_the_same() -> None:
    assert without_codes("| order |12345678| refuse") == "| order |12345678| refuse"
    assert without_codes("12345678| <<<lessons 0a1b2c3d| 0a1b2c3d>>>") == "12345678| <<<lessons --------| -------->>>"
    fences = [f"<<<lessons {c}>>>\n{c}| id |{d}|\n<<<end lessons {c}>>>" for c, d in (("0a1b2c3d", 1), ("99998888", 1))]
    assert without_codes(fences[0]) == without_codes(fences[1])
    assert without_codes(fences[0]) != without_codes(fences[0].replace("|1|", "|87654321|"))


def test_arms_that_are_shown_other_digits_make_attempts_of_their_own(tmp_path: Path) -> None:
    say = {"notes": "| order |12345678| refuse", "none": "| order |87654321| refuse"}
    run(asked(), Doors(memories=Shelf(lambda name: Notes(False, say[name]))), tmp_path)
    assert not any(row.shared for row in rows_of(tmp_path))


def test_a_shared_row_holds_the_text_that_the_agent_was_given(tmp_path: Path) -> None:
    seen: list[str] = []
    codes = iter(f"{n:08x}" for n in range(1000))

    class Fenced(Notes):
        def recall(self, goal: str, /) -> str:
            code = next(codes)
            return f"<<<lessons {code}>>>\n{code}| turn left\n<<<end lessons {code}>>>"

    def attempt(task: Job, agent: Any, memory: str) -> Finished:
        seen.append(memory)
        return Finished(a_run(task), True)

    run(asked(), Doors(attempt, memories=Shelf(lambda name: Fenced(False))), tmp_path)
    rows = rows_of(tmp_path)
    assert sum(bool(row.shared) for row in rows) == len(seen) == 24
    assert {row.memory for row in rows} == set(seen)
    assert all(len({row.memory_digest for row in rows[at : at + 2]}) == 1 for at in range(0, 48, 2))


def test_what_is_graded_between_two_calls_reaches_no_memory(tmp_path: Path) -> None:
    told: list[Any] = []
    what = asked(seeds=[1], shuffle=False)

    def place() -> Doors:
        memories = Shelf(lambda name: Notes(False, told=told))
        return Doors(lambda task, agent, memory: Finished(a_run(task), None), memories=memories)

    killed(what, place(), tmp_path, after=3)
    last = rows_of(tmp_path)[-1]
    change_rows(tmp_path, lambda rows: graded(rows, {"resolved_ids": ["1"]}, arm=last.arm, seed=1))
    run(what, place(), tmp_path, resume=True)
    rows = rows_of(tmp_path)
    assert rows[2].success is True
    assert (rows[3].shared, rows[3].success, rows[3].told) == (last.arm, None, None)
    assert set(told) == {None}


# --- a memory whose model breaks --------------------------------------------------------------------------------------


class Broken(Notes):
    """Learns nothing, since its model is gone."""

    def learn(self, run: Trajectory, /, *, success: bool | None) -> Any:
        raise ModelError("the judge is gone")


def test_an_attempt_whose_memory_broke_afterwards_is_graded(tmp_path: Path) -> None:
    place = Doors(
        lambda task, agent, memory: Finished(a_run(task), None), memories=Shelf(lambda name: Broken(name == "notes"))
    )
    run(asked(seeds=[1], tasks=4), place, tmp_path)
    rows = graded(rows_of(tmp_path), {"resolved_ids": ["0", "1", "2", "3"]}, arm="notes", seed=1)
    mine = [(row.success, row.error.stage) for row in rows if row.arm == "notes" and row.error]
    assert mine == [(True, "learn")] * 4


def test_the_report_tells_what_broke_before_an_outcome_from_what_broke_after(tmp_path: Path) -> None:
    run(asked(), Doors(memories=Shelf(lambda name: Broken(False))), tmp_path)
    told = re.sub(r"\s+", " ", page(*read_rows(tmp_path)))
    assert "What broke while it was to recall or to attempt left no outcome" in told
    assert "to learn came after the outcome, which counts as any other" in told


def test_a_run_that_goes_on_keeps_the_runs_of_what_it_may_have_to_rebuild(tmp_path: Path) -> None:
    killed(asked(), Doors(), tmp_path, after=37)
    for name in ("none-2.jsonl", "notes-2.jsonl"):
        (tmp_path / "banks" / name).unlink()
    assert run(asked(), Doors(), tmp_path, resume=True).complete
    run(asked(), Doors(), tmp_path / "whole")
    assert facts(tmp_path) == facts(tmp_path / "whole")
    assert (tmp_path / "banks" / "notes-2.jsonl").is_file()

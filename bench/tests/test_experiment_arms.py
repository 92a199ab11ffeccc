"""What the runner adds to an experiment by itself: shared attempts, arms that leave out, an early end."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from lessonbank.contracts.ports import Message
from lessonbank.contracts.records import Trajectory, Usage
from lessonbank.errors import ModelError
from lessonbank.testing import ScriptedModel
from lessonbank_bench.environments import Finished, Job
from lessonbank_bench.environments.desk import DeskEnvironment
from lessonbank_bench.experiment.comparison import compare, in_words
from lessonbank_bench.experiment.journal import read_rows
from lessonbank_bench.experiment.plan import plan
from lessonbank_bench.experiment.records import Experiment, made
from lessonbank_bench.experiment.runner import run
from lessonbank_bench.experiment.stopping_rule import Stopping, always, always_power

from .experiments import made_row, rows_of

ARMS = [{"name": "none"}, {"name": "a/a", "again": True}, {"name": "lessonbank"}]


def asked(**more: Any) -> Experiment:
    return made({"seeds": "100-101", "tasks": 10, "arms": ARMS, **more}, source="test")


class Counting(DeskEnvironment):
    """A desk that knows how often it was used, and whose runs cost something."""

    def __init__(self) -> None:
        super().__init__()
        self.made = 0

    def attempt(self, task: Job, agent: Any, memory: str, /) -> Finished:
        self.made += 1
        done = super().attempt(task, agent, memory)
        usage = Usage(requests=1, input_tokens=70, output_tokens=30, cost=0.5)
        return done._replace(run=done.run.model_copy(update={"usage": usage}), scores={"presses": 3.0})


# --- one attempt for arms that are shown the same --------------------------------------------------------------------


def test_arms_that_are_shown_the_same_share_one_attempt(tmp_path: Path) -> None:
    place = Counting()
    ran = run(asked(leave_out=[]), place, tmp_path)
    rows = rows_of(tmp_path)
    shared = [row for row in rows if row.shared]
    assert shared
    assert ran.rows == len(rows) == 60
    assert place.made == 60 - len(shared)
    for row in shared:
        first = next(r for r in rows if r.key == (row.seed, row.place, row.shared))
        assert (row.same_digest, row.success, row.scores) == (first.same_digest, first.success, first.scores)
        assert row.run is not None
        assert first.run is not None
        assert (row.run.steps, row.seconds) == (first.run.steps, first.seconds)
        assert row.run.id != first.run.id
    assert {row.arm for row in shared} | {row.shared for row in shared} == {"none", "lessonbank"}
    assert all(row.scores == {"presses": 3.0} for row in rows)
    assert (ran.tokens, ran.cost) == (100 * place.made, 0.5 * place.made), "it is paid for once"
    assert all((row.tokens, row.cost) == (100, 0.5) for row in rows), "and counts for both"


def test_nothing_is_shared_where_the_experiment_says_so(tmp_path: Path) -> None:
    place = Counting()
    run(asked(seeds=[100], tasks=4, leave_out=[], share=False), place, tmp_path)
    assert place.made == 12
    assert not any(row.shared for row in rows_of(tmp_path))


def test_what_else_a_verifier_measured_is_compared(tmp_path: Path) -> None:
    class Scored(DeskEnvironment):
        def attempt(self, task: Job, agent: Any, memory: str, /) -> Finished:
            done = super().attempt(task, agent, memory)
            return done._replace(scores={"presses": float(len(done.run.steps) - 1), "odd\x1b[31m": 1.0})

    run(asked(tasks=5, leave_out=[]), Scored(), tmp_path)
    found = {one.arm: one for one in compare(*read_rows(tmp_path))}
    presses = found["lessonbank"].scores["presses"]
    assert found["lessonbank"].steps == presses.difference
    assert presses.difference is not None
    assert presses.mean - presses.base == pytest.approx(presses.difference.estimate)
    told = in_words((found["lessonbank"],))
    assert f"presses {presses.mean:,.3f} and {presses.base:,.3f}: " in told
    assert "\x1b" not in told


def test_a_memory_whose_model_broke_is_told_apart_from_one_that_learned_nothing(tmp_path: Path) -> None:
    def broken(messages: Sequence[Message]) -> str:
        if messages[0].content.startswith("You operate a web form"):
            return "Submit"
        raise ModelError("the server is gone")

    arms = [{"name": "none"}, {"name": "lessonbank"}]
    what = {"model": "test:broken", "seeds": [3], "tasks": 3, "arms": arms, "leave_out": [], "budget": {"errors": 20}}
    ran = run(asked(**what), DeskEnvironment(ScriptedModel(broken)), tmp_path)
    rows = rows_of(tmp_path)
    assert ran.errors == 3
    assert {row.arm for row in rows if row.error} == {"lessonbank"}
    assert all(row.success is False and row.run for row in rows)
    assert {(row.error.stage, row.error.code) for row in rows if row.error} == {("learn", "model")}


def test_what_a_broken_attempt_had_cost_is_counted(tmp_path: Path) -> None:
    count = itertools.count()

    def dying(messages: Sequence[Message]) -> str:
        if next(count) % 2:
            raise ModelError("the server is gone")
        return "Open"

    what = {"model": "test:dying", "seeds": [3], "tasks": 2, "arms": ARMS[:2], "share": False}
    ran = run(asked(**what), DeskEnvironment(ScriptedModel(dying)), tmp_path)
    rows = rows_of(tmp_path)
    assert all(row.error and row.requests == 1 and row.tokens > 0 for row in rows)
    assert ran.tokens == sum(row.tokens for row in rows)


# --- arms without lessons of a task's own like ------------------------------------------------------------------------


def test_arms_that_leave_out_the_same_task_and_its_template_are_added_by_themselves() -> None:
    experiment = asked()
    assert [(arm.name, arm.memory, arm.of) for arm in experiment.arms[3:]] == [
        ("lessonbank, other tasks", "lessonbank:exclude=task", "lessonbank"),
        ("lessonbank, other templates", "lessonbank:exclude=template", "lessonbank"),
    ]
    assert made(experiment.model_dump(), source="test") == experiment
    assert [arm.name for arm in experiment.claims] == ["lessonbank"]


@pytest.mark.parametrize(
    ("memory", "added"),
    [
        ("reasoningbank-paper", "reasoningbank-paper:exclude=task"),
        ("lessonbank:limit=5", "lessonbank:limit=5,exclude=task"),
        ("lessonbank:exclude=template", None),
        ("synapse", None),
        ("placebo", None),
    ],
)
def test_only_the_bank_itself_has_such_arms(memory: str, added: str | None) -> None:
    experiment = asked(arms=[{"name": "none"}, {"name": "new", "memory": memory}], leave_out=["task"])
    assert [arm.memory for arm in experiment.arms[2:]] == ([added] if added else [])


def test_they_show_what_of_the_gain_rests_on_tasks_of_the_same_kind(tmp_path: Path) -> None:
    experiment = asked(seeds=[100], tasks=16, arms=[{"name": "none"}, {"name": "lessonbank"}])
    run(experiment, DeskEnvironment(), tmp_path)
    found = {one.arm: one for one in compare(*read_rows(tmp_path))}
    whole, tasks, templates = (
        found["lessonbank"],
        found["lessonbank, other tasks"],
        found["lessonbank, other templates"],
    )
    assert whole.difference == tasks.difference > templates.difference > 0
    assert (whole.of, templates.of) == ("", "lessonbank")
    assert whole.adjusted == max(whole.p, whole.p_seeds)
    assert "lessonbank, other templates against none" in in_words(tuple(found.values()))


def test_they_cost_no_power_and_are_in_the_price() -> None:
    with_them, without = plan(asked(price={"attempt": 1.0})), plan(asked(price={"attempt": 1.0}, leave_out=[]))
    assert (with_them.comparisons, with_them.power) == (without.comparisons, without.power)
    assert (with_them.cost, without.cost) == (100.0, 60.0)


# --- the lessons that were shown --------------------------------------------------------------------------------------


def test_a_row_names_the_lessons_that_were_shown(tmp_path: Path) -> None:
    arms = [{"name": name} for name in ("none", "lessonbank", "random", "placebo", "awm-multi")]
    run(asked(seeds=[100], arms=arms, leave_out=[]), DeskEnvironment(), tmp_path)
    rows = rows_of(tmp_path)
    written = {lesson.code for row in rows if row.arm == "lessonbank" for lesson in row.lessons}
    shown = {arm: {code for row in rows if row.arm == arm for code in row.shown} for arm in {row.arm for row in rows}}
    assert shown["lessonbank"]
    assert shown["lessonbank"] <= written
    assert shown["random"]
    assert shown["none"] == shown["placebo"] == set()
    for row in rows:
        if row.arm == "lessonbank":
            titles = [le.title for r in rows for le in r.lessons if r.arm == "lessonbank" and le.code in row.shown]
            assert all(title in row.memory for title in titles)


# --- stopping early -------------------------------------------------------------------------------------------------


def test_a_run_stops_at_the_end_of_the_seed_at_which_every_arm_is_shown_to_differ(tmp_path: Path) -> None:
    experiment = asked(seeds="100-139", stop=True, arms=[{"name": "none"}, {"name": "oracle"}])
    ran = run(experiment, DeskEnvironment(), tmp_path)
    assert ran.stopped == "shown to differ from the baseline: oracle"
    assert ran.enough
    assert 20 < ran.rows < 400
    assert ran.rows % 20 == 0
    (one,) = compare(*read_rows(tmp_path))
    assert one.early
    assert one.always.low > 0
    assert one.shown == "more successes"
    assert run(experiment, DeskEnvironment(), tmp_path, resume=True).made == 0


def test_an_arm_that_does_not_differ_keeps_a_run_going_unless_others_are_named(tmp_path: Path) -> None:
    arms = [{"name": "none"}, {"name": "oracle"}, {"name": "new", "memory": "a/a-none"}]
    ran = run(asked(seeds="100-109", stop=True, arms=arms), DeskEnvironment(), tmp_path / "all")
    assert (ran.complete, ran.stopped) == (True, "")
    ran = run(asked(seeds="100-109", stop=["oracle"], arms=arms), DeskEnvironment(), tmp_path / "one")
    assert ran.enough
    assert not ran.complete


def test_what_decides_where_a_run_stops_cannot_change_between_two_calls() -> None:
    later = {"question": {"level": 0.9}}
    assert asked(**later).hash == asked().hash
    assert asked(stop=True, **later).hash != asked(stop=True).hash


def test_early_ends_are_false_in_no_more_than_their_share_where_a_seed_moves_all_its_tasks_at_once() -> None:
    experiment = asked(stop=True, seeds="1-2000", arms=[{"name": "none"}, {"name": "new"}], leave_out=[])
    draw, ended, row = random.Random(5), 0, cache(made_row)
    for _ in range(100):
        stopping = Stopping(experiment)
        for seed in range(14):
            moved = draw.gauss(0.0, 0.1)
            for place in range(10):
                stopping.add(row("new", seed, place, success=draw.random() < 0.4 + moved))
                stopping.add(row("none", seed, place, success=draw.random() < 0.4))
            if stopping.reason:
                ended += 1
                break
    assert ended <= 6


def test_one_looks_at_the_end_of_a_seed_only() -> None:
    stopping = Stopping(asked(stop=True, arms=[{"name": "none"}, {"name": "new"}], leave_out=[]))
    looks = list[bool]()
    for seed in range(30):
        for place in range(10):
            stopping.add(made_row("none", seed, place, success=False))
            looks.append(bool(stopping.reason))
            stopping.add(made_row("new", seed, place, success=(seed + place) % 4 > 0))
    first = looks.index(True)
    assert first % 10 == 0
    assert 20 <= first < 200


def test_pairs_without_an_outcome_say_nothing() -> None:
    stopping = Stopping(asked(stop=True, arms=[{"name": "none"}, {"name": "new"}]))
    for seed in range(30):
        for place in range(10):
            stopping.add(made_row("none", seed, place, success=None))
            stopping.add(made_row("new", seed, place, success=True))
    assert stopping.reason == ""


def test_an_interval_that_is_always_right_is_as_wide_as_it_can_be_at_first_and_tightens() -> None:
    spans = [always({seed: [1, 0, 0, 1, -1] for seed in range(n)}, level=0.95) for n in (0, 1, 5, 50, 200)]
    assert (spans[0].low, spans[0].high) == (spans[1].low, spans[1].high) == (-1.0, 1.0)
    widths = [span.high - span.low for span in spans]
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] < 0.3


def test_a_plan_that_may_stop_early_asks_for_more_pairs() -> None:
    question = {"effect": 0.1, "base": 0.3}
    late, early = (plan(asked(question=question, seeds="1-20", stop=stop)) for stop in (False, True))
    assert late.seeds_needed is not None
    assert early.seeds_needed is not None
    assert late.seeds_needed < early.seeds_needed < 4 * late.seeds_needed
    assert early.power < late.power


def test_the_power_of_looking_always_grows_with_seeds_falls_with_clustering_and_is_small_without_an_effect() -> None:
    chances = [always_power(n, 10, 0.3, 0.1, 0.05, clustering=0.0) for n in (5, 10, 20, 40)]
    assert chances == sorted(chances)
    assert chances[-1] > 0.95
    assert always_power(20, 10, 0.3, 0.1, 0.05, clustering=0.1) < chances[2]
    assert always_power(40, 10, 0.2, 0.2, 0.05, clustering=0.05) < 0.025
    assert always_power(1, 400, 0.9, 0.0, 0.05, clustering=0.0) == 0.0


def test_a_trajectory_is_all_an_unjudged_task_leaves(tmp_path: Path) -> None:
    class Unknown(DeskEnvironment):
        def attempt(self, task: Job, agent: Any, memory: str, /) -> Finished:
            return Finished(Trajectory(task=task.goal, steps=super().attempt(task, agent, memory).run.steps), None)

    run(asked(seeds=[100], tasks=2, leave_out=[], arms=[{"name": "none"}, {"name": "a/a-none"}]), Unknown(), tmp_path)
    assert all(row.success is None and row.told is None and row.error is None for row in rows_of(tmp_path))

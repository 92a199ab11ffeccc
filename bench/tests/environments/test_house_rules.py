"""Houses with rules: what a reviewer takes, what is said, and what somebody who knows the rules can do."""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest

from lessonbank_bench.environments import environment
from lessonbank_bench.environments.house_rules.conventions import RULES, Ask, Change, Commit
from lessonbank_bench.environments.house_rules.world import stream, truth, world

needs_mini = pytest.mark.skipif(
    find_spec("minisweagent") is None or shutil.which("git") is None, reason="mini-swe-agent or git is not installed"
)
ASK = Ask("MA-123", "fn_200")


def handed_in(**fields: object) -> Change:
    usual = {
        "branch": "work/MA-123",
        "tags": ("MA-123-ready",),
        "commits": (
            Commit("ENH: MA-123", (), ("docs/news/MA-123.md",)),
            Commit("ENH: MA-123", ("Change-Kind: minor",), ("core.py", "generated/log.txt")),
        ),
        "texts": {
            "docs/news/MA-123.md": "one\n\ntwo\n",
            "index/names.txt": "fn_200\n",
            "generated/log.txt": "pin old\npin now\nstamp --strict now\n",
        },
        "core": "now",
    }
    return Change(**{**usual, **fields})  # pyright: ignore[reportArgumentType]


KEPT = {
    "folder": ("news", "changes"),
    "branch": ("work/TASK", "task"),
    "length": ("2", "4"),
    "apart": ("note", "code"),
    "prefix": ("ENH", "REL"),
    "subject": ("12", "10"),
    "listed": ("names", "terms"),
    "tag": ("TASK-ready", "TASK-done"),
    "script": ("dev/pin", "dev/stamp"),
    "scripts": ("dev/pin and then dev/stamp", "dev/stamp and then dev/pin"),
    "trailer": ("Change-Kind: minor", "Change-Kind: urgent"),
    "flagged": ("dev/stamp --strict", "dev/stamp --plain"),
}


@pytest.mark.parametrize("rule", list(RULES))
def test_a_convention_is_kept_by_what_it_wants_and_by_nothing_else(rule: str) -> None:
    kept, broken = KEPT[rule]
    assert RULES[rule].holds(handed_in(), ASK, kept)
    assert not RULES[rule].holds(handed_in(), ASK, broken)


def test_a_script_that_ran_before_the_last_change_of_the_code_does_not_count() -> None:
    assert not RULES["script"].holds(handed_in(core="later"), ASK, "dev/pin")


def test_there_are_twelve_conventions_of_six_sorts_and_every_task_meets_six() -> None:
    assert len(RULES) == 12
    assert len({rule.sort for rule in RULES.values()}) == 6
    assert all(len(task.conventions) == 6 for task in stream(5, 60, 0))


def test_a_seed_is_a_world_and_one_organisation_changes_its_mind() -> None:
    assert world(5) == world(5) != world(6)
    before, after = stream(5, 60, 0), stream(5, 60, 30)
    assert [task.goal for task in before] == [task.goal for task in after]
    assert before[:30] == after[:30]
    changed = {task.repository.organisation for task, old in zip(after, before, strict=True) if task != old}
    assert changed == {"Marlow"}


def test_the_truth_is_what_the_task_of_that_goal_meets() -> None:
    task = stream(5, 60, 30)[45]
    assert truth(5, task.goal, 30).split("\n") == [f"- {convention.sentence}" for convention in task.conventions]


@needs_mini
def test_who_knows_the_rules_is_accepted_and_who_does_not_is_told_two_things_each_time(tmp_path: Path) -> None:
    place = environment("house-rules")
    job = place.tasks(3, 1)[0]
    knows = place.memories.make("oracle", 3, limit=3).recall(job.goal)
    good = place.attempt(job, place.agent(3, anew=False), knows)
    assert good.success
    assert good.scores == {"kept at first": 1.0, "kept at last": 1.0, "handed in": 1.0}
    bad = place.attempt(job, place.agent(3, anew=False), "")
    assert not bad.success
    assert bad.scores["handed in"] == 2.0
    said = [seen.text for step in bad.run.steps for seen in step.observations if "REJECTED" in seen.text]
    assert len(said) == 2
    assert all(text.count("\n- ") <= 2 for text in said)
    assert bad.scores["kept at last"] > bad.scores["kept at first"]
    place.close()

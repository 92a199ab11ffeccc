"""Streams through the whole public loop, and the controls that keep the result honest."""

from __future__ import annotations

import json
from functools import cache

import pytest

from lessonbank.demo.story import Story, rate
from lessonbank_bench import Episode, play
from lessonbank_bench import __main__ as command
from lessonbank_bench.__main__ import PLANS, Plan, main, measure

SEED = 3
"""One of the worlds that were tuned on: the others are for reporting."""


@cache
def played(arm: str, **settings: float) -> tuple[Episode, ...]:
    """What is the same however often it is played: each stream is played once, half as long as usual."""
    return tuple(play(arm, SEED, **{"tasks": 40, **settings}))  # type: ignore[arg-type]


def test_memory_helps_and_lessons_from_failures_help_more() -> None:
    none, wins, both = (rate(played(arm)) for arm in ("none", "success-only", "lessonbank"))
    assert none <= 0.2
    assert both >= 0.6
    assert none < wins < both


def test_the_controls_behave() -> None:
    rows = {row.arm: row for row in measure([Plan("none"), Plan("random"), Plan("oracle")], seeds=range(2), tasks=15)}
    assert rows["oracle"].success.estimate >= 0.99
    assert rows["none"].success.estimate <= 0.2
    assert rows["none"].gain.estimate == 0.0
    assert rows["random, k=3"].success.estimate < 0.6


def test_the_memory_is_told_the_verdict_and_shown_the_run_and_no_more() -> None:
    episode = played("lessonbank", tasks=1)[0]
    assert episode.learned is not None
    assert [v.source for v in episode.learned.verdicts] == ["ground_truth"]
    assert episode.run.metadata == {}
    assert episode.run.task == episode.task.goal
    assert all(step.thought == "" for step in episode.run.steps)
    assert episode.memory == ""


def test_a_run_out_of_presses_is_marked_as_stopped_and_a_submitted_one_is_not() -> None:
    for episode in played("none", tasks=20):
        submitted = episode.run.steps[-1].action.text == "Submit"
        assert (episode.run.error is None) == submitted


def test_every_lesson_says_that_no_model_wrote_it() -> None:
    lessons = [lesson for e in played("lessonbank", tasks=10) if e.learned for lesson in e.learned.lessons]
    assert {lesson.provenance.method for lesson in lessons} == {"extractive"}
    assert {lesson.kind for lesson in lessons} >= {"guardrail"}


def test_wrong_verdicts_cost_something() -> None:
    assert rate(played("lessonbank", wrong_verdicts=0.5)) < rate(played("lessonbank"))


def test_without_a_judge_and_without_a_verdict_nothing_is_learned() -> None:
    story = Story(remembering=list(play("lessonbank", SEED, tasks=3, judged=True)))
    assert story.lessons == [] or all(e.run.error for e in story.remembering if e.learned and e.learned.lessons)


def test_the_table_and_its_json_say_what_was_measured(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    main(["--seeds", "0-1", "--tasks", "1", "--json"])
    told = json.loads(capsys.readouterr().out)
    assert [row["arm"] for row in told["rows"]] == [plan.title for plan in PLANS]
    assert "synthetic world, scripted agent" in told["label"]
    monkeypatch.setattr(command, "PLANS", [Plan("none"), Plan("oracle")])
    main(["--seeds", "0", "--tasks", "1"])
    shown = capsys.readouterr().out
    assert "oracle" in shown
    assert "synthetic world" in shown


def test_a_story_picks_lessons_from_failures_and_a_block_that_was_really_shown() -> None:
    story = Story([*played("none")], [*played("lessonbank")])
    lessons = story.lessons
    assert lessons[0].kind == "guardrail"
    assert {lesson.kind for lesson in lessons} == {"guardrail", "strategy"}
    example = story.example()
    assert example is not None
    assert example.success
    assert any(lesson.content in example.memory for lesson in story.lessons if lesson.kind == "guardrail")
    assert story.difference.low > 0


def test_an_empty_story_has_nothing_to_show() -> None:
    assert (Story().lessons, Story().example()) == ([], None)
    assert rate([]) == 0.0

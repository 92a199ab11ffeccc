"""ATIF trajectories: steps of a user, an agent and the system, with the reward in the trial's own file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lessonbank.importers import Entry, Imported, Skipped, detect, read


def asked(said: str = "Fix the date parser", **more: Any) -> dict[str, Any]:
    return {"source": "user", "message": said, **more}


def acted(said: str, *calls: tuple[str, str], seen: list[Any] | None = None, **more: Any) -> dict[str, Any]:
    made = [{"tool_call_id": id, "function_name": "bash", "arguments": {"cmd": command}} for id, command in calls]
    step: dict[str, Any] = {"source": "agent", "message": said, "tool_calls": made, **more}
    return step if seen is None else {**step, "observation": {"results": seen}}


def trajectory(*steps: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "schema_version": "ATIF-v1.6",
        "session_id": "s1",
        "agent": {"name": "terminus-2", "version": "1", "model_name": "m"},
        "steps": [{"step_id": number, **step} for number, step in enumerate(steps, 1)],
        "final_metrics": {"total_prompt_tokens": 7, "total_completion_tokens": 2, "total_cost_usd": 0.5},
        **more,
    }


def written(place: Path, value: object, name: str = "trajectory.json") -> Path:
    place.mkdir(parents=True, exist_ok=True)
    (place / name).write_text(json.dumps(value), encoding="utf-8")
    return place / name


def told(entry: Entry) -> list[Any]:
    assert isinstance(entry, Imported), entry
    return [
        (
            step.action.text,
            [call.arguments for call in step.action.calls],
            [(seen.source, seen.text, seen.is_error) for seen in step.observations],
        )
        for step in entry.trajectory.steps
    ]


NEXT = "trajectory.cont-1.json"
FAILED = {"source_call_id": "c1", "content": "1 failed", "extra": {"exit_code": 1}}
ONE = trajectory(
    {"source": "system", "message": "You are terminus."},
    asked(),
    acted(
        "Look.", ("c1", "pytest -q"), seen=[{"source_call_id": "c1", "content": "1 failed", "extra": {"exit_code": 1}}]
    ),
    {"source": "system", "message": "It was compacted."},
    acted("Done."),
)


def test_steps_calls_results_and_costs_are_read(tmp_path: Path) -> None:
    path = written(tmp_path, ONE)
    assert detect(path) == "atif"
    (run,) = list(read(path))
    assert told(run) == [
        ("", [], [("user", "Fix the date parser", False)]),
        (
            "Look.",
            [{"cmd": "pytest -q"}],
            [("tool", "1 failed", True), ("environment", "It was compacted.", False)],
        ),
        ("Done.", [], []),
    ]
    assert isinstance(run, Imported)
    usage = run.trajectory.usage
    assert (usage.requests, usage.input_tokens, usage.output_tokens, usage.cost) == (2, 7, 2, 0.5)
    assert (run.trajectory.instructions, run.exit_codes, run.verdict) == ("You are terminus.", {"c1": 1}, None)


def test_the_task_is_taken_out_of_the_prompt_of_terminus(tmp_path: Path) -> None:
    prompt = "You are an AI assistant.\n\nTask Description:\nMake hello.txt.\n\nCurrent terminal state:\n$"
    (run,) = list(read(written(tmp_path, trajectory(asked(prompt), acted("Done.")))))
    assert isinstance(run, Imported)
    assert run.trajectory.task == "Make hello.txt."


@pytest.mark.parametrize(
    ("rewards", "outcome", "left"),
    [
        ({"reward": 1.0}, "success", ()),
        ({"reward": 0, "style": 1}, "failure", ()),
        ({"accuracy": 1}, "success", ()),
        (
            {"speed": 1, "style": 0},
            None,
            (
                "`verifier_result.rewards.speed`, `verifier_result.rewards.style` may say how the run ended, "
                "and were not used",
            ),
        ),
    ],
)
def test_the_reward_stands_in_the_file_of_the_trial(
    rewards: dict[str, float], outcome: str | None, left: tuple[str, ...], tmp_path: Path
) -> None:
    written(tmp_path / "trial", {"task_name": "t/fix", "verifier_result": {"rewards": rewards}}, "result.json")
    written(tmp_path / "trial" / "agent", ONE)
    (run,) = [one for one in read(tmp_path) if isinstance(one, Imported)]
    assert (run.verdict and run.verdict.outcome, run.account.left) == (outcome, left)
    assert run.trajectory.metadata["task_id"] == "t/fix"


def test_a_run_that_goes_on_in_other_files_is_one_run(tmp_path: Path) -> None:
    first = trajectory(
        asked(), acted("One.", seen=[{"content": "$ ok"}]), continued_trajectory_ref="trajectory.cont-1.json"
    )
    rest = trajectory(asked(is_copied_context=True), acted("Two."))
    written(tmp_path, first)
    written(tmp_path, rest, NEXT)
    run, other = list(read(tmp_path))[::-1]
    assert [said for said, _, _ in told(run)] == ["", "One.", "Two."]
    assert isinstance(other, Skipped)
    assert other.unknown


def test_a_run_that_refers_to_itself_or_to_nothing_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    for name in ("trajectory.json", "gone.json", "../../etc/passwd", "a/b.json"):
        path = written(tmp_path, trajectory(asked(), acted("One."), continued_trajectory_ref=name))
        assert [said for said, _, _ in told(*read(path))] == ["", "One."]


def test_sub_agents_are_runs_of_their_own_and_summaries_are_none(tmp_path: Path) -> None:
    child = trajectory(asked("Look it up"), acted("Found."), trajectory_id="child")
    path = written(tmp_path, trajectory(asked(), acted("Done."), subagent_trajectories=[child]))
    assert [one.trajectory.task for one in read(path) if isinstance(one, Imported)] == [
        "Fix the date parser",
        "Look it up",
    ]
    summary = {**ONE, "agent": {"name": "terminus-2-summarization-summary"}}
    (none,) = list(read(written(tmp_path, summary, "summary.json")))
    assert isinstance(none, Skipped)


def test_results_without_a_name_belong_to_the_calls_of_their_step(tmp_path: Path) -> None:
    two = acted("Both.", ("a", "1"), ("b", "2"), seen=[{"content": "one"}, {"content": "two"}])
    last = acted("Last.", ("c", "3"), ("d", "4"), seen=[{"content": "screen"}])
    (run,) = list(read(written(tmp_path, trajectory(asked(), two, last))))
    assert isinstance(run, Imported)
    named = [(seen.call_id, seen.text) for step in run.trajectory.steps for seen in step.observations][1:]
    assert named == [("a", "one"), ("b", "two"), ("d", "screen")]


def test_a_command_that_a_signal_ended_has_its_code(tmp_path: Path) -> None:
    killed = acted("Test.", ("a", "pytest"), seen=[{"source_call_id": "a", "extra": {"exit_code": -9}}])
    (run,) = read(written(tmp_path, trajectory(asked(), killed)))
    assert isinstance(run, Imported)
    assert run.exit_codes == {"a": -9}

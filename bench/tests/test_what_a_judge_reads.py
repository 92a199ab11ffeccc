"""The measurements of the rendering and of learning count what they say, on runs of a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lessonbank import Step, Trajectory
from lessonbank_bench.measure import throughput, tokens
from lessonbank_bench.measure.held_out import held_out


def write_runs(path: Path) -> Path:
    """Two short runs and a long one in the neutral format of recorded runs."""
    rows = [
        {
            "task": f"Find entry {n}",
            "messages": [
                {"role": "user", "content": f"Find entry {n}"},
                {"role": "assistant", "content": "I look."},
                {"role": "user", "content": "\n".join(f"line {i} of the log" for i in range(10 if n else 4_000))},
                {"role": "assistant", "content": "Found."},
            ],
            "reward": float(n),
        }
        for n in (0, 1, 1)
    ]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return path


def test_about_every_second_run_is_held_out_and_always_the_same_ones() -> None:
    runs = [Trajectory(id=f"run-{n}", task="t") for n in range(1_000)]
    kept = [held_out(run) for run in runs]
    assert 430 < sum(kept) < 570
    assert kept == [held_out(run.model_copy(update={"task": "u", "steps": (Step(action="x"),)})) for run in runs]


def test_long_runs_are_counted_apart_and_shown_within_the_budget(tmp_path: Path) -> None:
    (found,) = tokens.table([write_runs(tmp_path / "runs.jsonl")], budget=1_000, before=40_000).values()
    assert found["long"]["runs"] == 1
    assert found["long"]["before"] > 10_000 > 1_000 >= found["long"]["after"]


@pytest.mark.full
def test_every_labelled_run_is_learned_once(tmp_path: Path) -> None:
    runs = throughput.labelled([write_runs(tmp_path / "runs.jsonl")])
    clock, spent = throughput.learn(runs)
    assert [outcome for _, outcome in runs] == ["failure", "success", "success"]
    assert clock > 0
    assert spent > 0

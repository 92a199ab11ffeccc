"""The study with a language model: its figures are those of the attempts that are kept, and its requests are known."""

from __future__ import annotations

import json
import re
from pathlib import Path

from running import lessonbank_cli

from lessonbank_bench.experiment.records import read_experiment

ROOT = Path(__file__).parents[2]
STUDY = ROOT / "docs" / "research" / "study"


def test_the_figures_of_the_pages_are_those_of_the_attempts() -> None:
    said = lessonbank_cli("bench", "compare", STUDY, cwd=ROOT).stdout
    assert "lessonbank against mirror: more successes, +50.0 points" in said
    assert "50.0% and 0.0% of 88 pairs (8 seeds); 44 went better, 0 worse" in said
    found = re.search(r"over seeds \[\+([\d.]+), \+([\d.]+)\]", said)
    assert found is not None
    assert f"[+{float(found[1]):.0f}, +{float(found[2]):.0f}]" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"[+{found[1]}, +{found[2]}]" in (STUDY.parent / "study.md").read_text(encoding="utf-8")


def test_the_attempts_are_those_of_the_plan_that_comes_with_the_package() -> None:
    plan = read_experiment(ROOT / "bench" / "src" / "lessonbank_bench" / "presets" / "house-rules.toml")
    rows = [json.loads(line) for line in (STUDY / "attempts.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {row["config"] for row in rows} == {plan.hash}
    assert len({(row["seed"], row["place"], row["arm"]) for row in rows}) == len(rows) == 176
    assert not any(row["error"] for row in rows)


def test_the_placebo_showed_as_much_as_the_lessons_in_every_pair() -> None:
    rows = [json.loads(line) for line in (STUDY / "attempts.jsonl").read_text(encoding="utf-8").splitlines()]
    shown = {(row["seed"], row["place"], row["arm"]): len(row["memory"].encode()) for row in rows}
    assert all(size == shown[seed, place, "mirror"] for (seed, place, _), size in shown.items())


def test_whole_runs_came_to_what_the_page_says() -> None:
    text = (STUDY / "raw-runs" / "attempts.jsonl").read_text(encoding="utf-8")
    rows = [json.loads(line) for line in text.splitlines()]
    assert len({(row["seed"], row["place"], row["arm"]) for row in rows}) == len(rows) == 176
    assert not any(row["error"] for row in rows)
    accepted = {arm: sum(row["success"] for row in rows if row["arm"] == arm) for arm in {row["arm"] for row in rows}}
    assert accepted == {"synapse, with failures": 39, "synapse, successes alone": 0}
    assert not any(row["memory"] for row in rows if row["arm"] == "synapse, successes alone")
    assert "39 of 88" in (STUDY.parent / "study.md").read_text(encoding="utf-8")


def test_the_steps_in_scienceworld_are_those_of_the_attempts() -> None:
    files = sorted((STUDY / "scienceworld").glob("*/attempts.jsonl"))
    rows = [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    assert len(rows) == 48
    assert all(row["success"] and not row["error"] for row in rows)
    steps = {arm: [row["steps"] for row in rows if row["arm"] == arm] for arm in ("lessonbank", "none")}
    said = " | ".join(f"{sum(of) / len(of):.1f}" for of in steps.values())
    assert f"| steps | {said} |" in (STUDY.parent / "study.md").read_text(encoding="utf-8")

"""`bench` on a command line: plan, run, compare, report."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest
from running import lessonbank_cli

ASKED = """
name = "a small question"
environment = "null"
seeds = "1-6"
tasks = 10
[question]
effect = {effect}
base = 0.4
[price]
attempt = 0.01
[[arms]]
name = "none"
[[arms]]
name = "a/a"
again = true
[[arms]]
name = "new"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "good.toml").write_text(ASKED.format(effect=0.4), encoding="utf-8")
    (tmp_path / "vain.toml").write_text(ASKED.format(effect=0.08), encoding="utf-8")
    return tmp_path


def test_a_plan_says_whether_the_question_can_be_answered(folder: Path) -> None:
    good = lessonbank_cli("bench", "plan", "good.toml", cwd=folder)
    assert (good.returncode, good.stderr) == (0, "")
    assert good.stdout.endswith("It can answer its question.\n")
    vain = lessonbank_cli("bench", "plan", "vain.toml", "--json", cwd=folder)
    assert vain.returncode == 3
    told = json.loads(vain.stdout)
    assert told["can_answer"] is False
    assert told["cost_needed"] == pytest.approx(told["attempts_needed"] * 0.01)


def test_an_experiment_that_cannot_answer_is_not_started_unless_told_to(folder: Path) -> None:
    refused = lessonbank_cli("bench", "run", "vain.toml", "--out", "out", cwd=folder)
    assert refused.returncode == 2
    assert "--anyway" in refused.stderr
    assert not (folder / "out").exists()
    assert lessonbank_cli("bench", "run", "vain.toml", "--out", "out", "--anyway", cwd=folder).returncode == 0


def test_an_experiment_is_run_compared_and_reported(folder: Path) -> None:
    done = lessonbank_cli("bench", "run", "good.toml", "--out", "out", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "180 attempts made, 180 of 180 are in out; 1.20 US dollars\n"
    assert "180 of 180 attempts (100%)" in done.stderr
    compared = lessonbank_cli("bench", "compare", "out", cwd=folder)
    assert "new against none: no difference shown" in compared.stdout
    assert "noise floor (A/A): up to" in compared.stdout
    told = json.loads(lessonbank_cli("bench", "compare", "out", "--json", "--baseline", "new", cwd=folder).stdout)
    assert {(one["arm"], one["baseline"]) for one in told} == {("none", "new"), ("a/a", "new")}
    page = lessonbank_cli("bench", "report", "out", "--html", "page.html", "--attempts", 5, cwd=folder)
    assert page.stdout == "the page is in page.html\n"
    text = (folder / "page.html").read_text(encoding="utf-8")
    assert text.count("<details") == 5
    assert "a small question" in text
    neither = lessonbank_cli("bench", "report", "out", cwd=folder)
    assert "say what to write: --html FILE" in neither.stderr
    pictures = lessonbank_cli("bench", "report", "out", "--png", "plots", cwd=folder)
    drawn = sorted(path.name for path in (folder / "plots").glob("*.png"))
    if importlib.util.find_spec("matplotlib"):
        assert pictures.stdout == f"{len(drawn)} pictures are in plots\n"
        assert "success.png" in drawn
    else:
        assert "lessonbank-bench[plots]" in pictures.stderr


def test_a_run_that_met_its_budget_is_done_in_part_and_goes_on(folder: Path) -> None:
    limited = ASKED.format(effect=0.4) + "[budget]\nattempts = 9\n"
    (folder / "limited.toml").write_text(limited, encoding="utf-8")
    part = lessonbank_cli("bench", "run", "limited.toml", "--out", "out", "--json", cwd=folder)
    assert part.returncode == 3
    assert json.loads(part.stdout)["rows"] == 9
    assert "the budget of 9 attempts is used up" in part.stderr
    again = lessonbank_cli("bench", "run", "good.toml", "--out", "out", cwd=folder)
    assert again.returncode == 2
    assert "--resume" in again.stderr
    rest = lessonbank_cli("bench", "run", "good.toml", "--out", "out", "--resume", cwd=folder)
    assert rest.stdout.startswith("171 attempts made, 180 of 180")
    same = lessonbank_cli("bench", "compare", "out", "out", cwd=folder)
    assert same.stdout.count("no difference shown") == 2


def test_a_preset_is_planned_with_what_is_said_besides(folder: Path) -> None:
    told = json.loads(lessonbank_cli("bench", "plan", "--preset", "desk", "--tasks", "40", "--json", cwd=folder).stdout)
    assert (told["tasks"], told["comparisons"]) == (40, 3)
    for words, said in (
        (("--preset", "paper-moonbase"), "there is no preset 'paper-moonbase'; there are desk"),
        ((), "give a file or a preset"),
        (("good.toml", "--preset", "desk"), "give a file or a preset"),
        (("good.toml", "--set", "colour"), "a setting is KEY=VALUE"),
    ):
        refused = lessonbank_cli("bench", "plan", *words, cwd=folder)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert said in refused.stderr
    run = lessonbank_cli("bench", "run", "good.toml", "--out", "out", "--set", "speed=3", cwd=folder)
    assert "environment 'null' has no setting 'speed'; it has no settings" in run.stderr


def test_a_plan_notices_what_a_run_would(folder: Path) -> None:
    for line, said in (
        ('name = "lesonbank"', "there is no arm 'lesonbank'"),
        ('name = "lessonbank:limit=x"', "an arm's limit cannot be 'x'"),
    ):
        text = f"seeds = [1]\ntasks = 5\n[[arms]]\nname = 'none'\n[[arms]]\n{line}\n"
        (folder / "wrong.toml").write_text(text, encoding="utf-8")
        for command in (("plan",), ("run", "--out", "out")):
            refused = lessonbank_cli("bench", *command, "wrong.toml", cwd=folder)
            assert refused.returncode == 2
            assert said in refused.stderr
    elsewhere = 'environment = "moon"\n' + text
    (folder / "wrong.toml").write_text(elsewhere, encoding="utf-8")
    assert "there is no environment 'moon'" in lessonbank_cli("bench", "plan", "wrong.toml", cwd=folder).stderr


def test_going_on_needs_no_second_leave(folder: Path) -> None:
    limited = ASKED.format(effect=0.08) + "[budget]\nattempts = 9\n"
    (folder / "vain.toml").write_text(limited, encoding="utf-8")
    assert lessonbank_cli("bench", "run", "vain.toml", "--out", "out", "--anyway", cwd=folder).returncode == 3
    (folder / "vain.toml").write_text(ASKED.format(effect=0.08), encoding="utf-8")
    assert lessonbank_cli("bench", "run", "vain.toml", "--out", "out", "--resume", cwd=folder).returncode == 0


def test_a_run_that_knows_enough_ends_well(folder: Path) -> None:
    asked = "seeds = '1-9'\ntasks = 20\nstop = true\n[question]\neffect = 0.8\nbase = 0.1\n"
    arms = "[[arms]]\nname = 'none'\n[[arms]]\nname = 'oracle'\n"
    (folder / "stop.toml").write_text(asked + arms, encoding="utf-8")
    done = lessonbank_cli("bench", "run", "stop.toml", "--out", "out", cwd=folder)
    assert done.returncode == 0
    assert "stopped early: shown to differ from the baseline: oracle" in done.stderr


def test_outcomes_that_are_known_later_are_put_into_the_attempts(folder: Path) -> None:
    lessonbank_cli("bench", "run", "good.toml", "--out", "out", cwd=folder)
    made = lessonbank_cli("bench", "predictions", "out", "--arm", "new", "--seed", "2", cwd=folder)
    assert made.stdout == "10 predictions are in preds-new-2.json\n"
    told = json.loads((folder / "preds-new-2.json").read_text(encoding="utf-8"))
    assert set(told["3"]) == {"instance_id", "model_name_or_path", "model_patch"}
    report = {"resolved_ids": ["3", "4"], "unresolved_ids": ["1"], "empty_patch_ids": ["5"], "error_ids": []}
    (folder / "report.json").write_text(json.dumps(report), encoding="utf-8")
    before = (folder / "out" / "attempts.jsonl").read_text(encoding="utf-8").splitlines()
    graded = lessonbank_cli("bench", "grade", "out", "report.json", "--arm", "new", "--seed", "2", cwd=folder)
    assert graded.stdout.endswith(" of 10 are resolved\n")
    after = (folder / "out" / "attempts.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in after]
    mine = {row["task_id"][-1]: row["success"] for row in rows if (row["arm"], row["seed"]) == ("new", 2)}
    assert (mine["3"], mine["4"], mine["1"], mine["5"]) == (True, True, False, False)
    assert sum(one != other for one, other in zip(before, after, strict=True)) <= 4
    assert lessonbank_cli("bench", "run", "good.toml", "--out", "out", "--resume", cwd=folder).returncode == 0
    for words in (
        ("grade", "out", "report.json", "--arm", "nobody", "--seed", "2"),
        ("grade", "out", "good.toml", "--arm", "new", "--seed", "2"),
        ("predictions", "out", "--arm", "nobody", "--seed", "2"),
    ):
        refused = lessonbank_cli("bench", *words, cwd=folder)
        assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)


def test_what_is_no_experiment_is_told_in_a_sentence(folder: Path) -> None:
    (folder / "odd.toml").write_text("tasks = 3\n", encoding="utf-8")
    for words in (("plan", "odd.toml"), ("compare", "nowhere"), ("report", "nowhere", "--html", "x.html")):
        done = lessonbank_cli("bench", *words, cwd=folder)
        assert done.returncode == 2
        assert done.stderr.startswith("lessonbank: ")
        assert done.stderr.count("\n") == 1
    both = lessonbank_cli("bench", "compare", "a", "b", "--baseline", "none", cwd=folder)
    assert both.returncode == 2

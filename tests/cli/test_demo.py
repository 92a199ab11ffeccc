"""The demo as a newcomer runs it: quick, offline, honest, and plain where there is no terminal."""

from __future__ import annotations

import json
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from lessonbank.cli.demo import demo

app = typer.Typer()
app.command()(demo)
QUICK = ["--seed", "3", "--worlds", "0", "--tasks", "30"]
FEWER = ["--seed", "3", "--worlds", "2", "--tasks", "16"]
FEW = ["--seed", "3", "--worlds", "2", "--tasks", "10"]
SHORT = ["--seed", "3", "--worlds", "1", "--tasks", "12"]


def invoke(*arguments: str) -> Any:
    return CliRunner().invoke(app, list(arguments), catch_exceptions=False, color=False)


def test_it_shows_curves_lessons_a_block_the_difference_and_what_it_does_not_prove() -> None:
    result = invoke(*FEW)
    assert result.exit_code == 0
    shown = result.output
    for part in (
        "without memory", "with memory", "Lessons it wrote", "guardrail, from a failed run", "by: extractive",
        "exactly as the agent saw it", "<<<lessons", "95 %, bootstrap over worlds, paired",
        "not a language model", "It shows not",
    ):  # fmt: skip
        assert part in shown
    assert "\x1b" not in shown
    assert "taught again" not in shown
    last = shown.splitlines()[-1]
    assert last.startswith("The demo keeps no bank. ")
    assert last.endswith("lessonbank review bank.db")


@pytest.mark.full
def test_without_a_terminal_progress_comes_in_plain_lines() -> None:
    lines = invoke(*QUICK).output.splitlines()
    assert lines[0].startswith("task   3 of 30: without memory")
    assert sum(line.startswith("task ") for line in lines) == 10


@pytest.mark.full
def test_json_on_stdout_is_one_document_with_everything() -> None:
    result = CliRunner().invoke(app, [*FEWER, "--json"], catch_exceptions=False)
    told = json.loads(result.stdout)
    assert len(told["without"]["done"]) == len(told["with"]["done"]) == 16
    assert told["difference"]["estimate"] == pytest.approx(told["with"]["rate"] - told["without"]["rate"])
    assert len(told["worlds"]) == 2
    assert told["lessons"][0]["provenance"]["method"] == "extractive"
    assert told["injected"]["text"].strip()
    assert "not a language model" in told["meaning"]
    assert "task" in result.stderr


@pytest.mark.full
def test_the_same_seed_tells_the_same_story() -> None:
    one, two = (json.loads(CliRunner().invoke(app, [*SHORT, "--json"]).stdout) for _ in range(2))
    assert (one["with"], one["without"], one["worlds"]) == (
        two["with"], two["without"], two["worlds"]
    )  # fmt: skip

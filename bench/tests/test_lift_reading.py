"""What readers of `lift` answered is counted against the key, and each world asks for one of the choices."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lessonbank_bench.measure.lift_reading import CHOICES, WORLDS, score, text_of


def test_each_world_asks_for_one_of_the_choices_and_no_two_have_a_name() -> None:
    assert {world.decision for world in WORLDS} <= set(CHOICES)
    assert len({world.name for world in WORLDS}) == len(WORLDS) == 12


def test_answers_are_counted_by_world_and_a_short_line_is_refused(tmp_path: Path) -> None:
    (tmp_path / "key.json").write_text(json.dumps({"helps": "A", "harms": "B"}), encoding="utf-8")
    answers = tmp_path / "answers.txt"
    answers.write_text("AB\nab\nAF\n", encoding="utf-8")
    told = score(tmp_path, answers)
    assert told.startswith("5 of 6 decisions are right")
    assert "2 of 3  B  harms" in told
    answers.write_text("A\n", encoding="utf-8")
    with pytest.raises(ValueError, match="2 letters"):
        score(tmp_path, answers)


def test_the_text_of_a_world_says_nothing_of_its_truth() -> None:
    (young,) = [world for world in WORLDS if world.name == "just begun"]
    text = text_of(young, 1)
    assert text.startswith("Does memory help? Undecided")
    assert "just begun" not in text

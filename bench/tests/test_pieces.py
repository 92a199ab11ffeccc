"""`lessonbank_bench.measure.pieces`: what each piece of retrieval does where agents act."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from lessonbank_bench.measure.pieces.__main__ import BASE, PIECES, TASKS, main, stream
from lessonbank_bench.measure.pieces.worlds import World, worlds


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[World]:
    """The world whose attempts take a millisecond."""
    world = worlds(tmp_path)["desk"]()
    yield world
    world.close()


def test_the_command_prints_a_line_for_each_piece_with_intervals(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--world", "desk", "--seeds", "2", "--tasks", "6", "--piece", "1 experience"]
    assert main([*asked, "--json"]) == 0
    base, one = json.loads(capsys.readouterr().out)["desk"]
    assert (base["piece"], one["piece"], one["seeds"]) == (BASE, "1 experience", 2)
    assert one["lessons"] < base["lessons"]
    gap, low, high = one["tokens, difference"]
    assert low <= gap <= high < 0
    assert main(["--world", "desk", "--seeds", "2", "--tasks", "2", "--piece", "1 experience"]) == 0
    assert "| 1 experience |" in capsys.readouterr().out


def test_a_lesson_belongs_to_the_kind_of_a_task_where_a_run_of_it_taught_the_lesson(desk: World) -> None:
    count = stream(desk, PIECES[BASE], 100, 20)
    assert 0 < count.of_kind < count.of_group < count.shown


def test_a_reader_that_knows_the_names_of_tasks_shows_less_of_other_groups(desk: World) -> None:
    (all_of_it, chosen) = (stream(desk, PIECES[piece], 100, 15) for piece in ("12 experiences", "12, fit=select"))
    assert chosen.model_tokens > 0
    assert chosen.shown < all_of_it.shown
    assert chosen.of_group / chosen.shown > all_of_it.of_group / all_of_it.shown
    assert not chosen.notes.get("not_fitted")


def test_an_agent_that_is_stuck_reads_what_a_second_look_says(desk: World) -> None:
    count = stream(desk, PIECES["recall again when stuck"], 100, 15)
    assert count.looks > 0
    assert count.tokens > stream(desk, PIECES[BASE], 100, 15).tokens


@pytest.mark.release
def test_every_piece_runs_in_a_world_with_commands(tmp_path: Path) -> None:
    pytest.importorskip("minisweagent")
    assert main(["--world", "repo-desk", "--seeds", "1", "--tasks", "2", "--data", str(tmp_path), "--json"]) == 0


def test_every_world_has_a_length_of_its_streams(tmp_path: Path) -> None:
    assert set(worlds(tmp_path)) == set(TASKS)

"""An experiment's pictures as files: what there is to draw is drawn, and nothing else."""

from __future__ import annotations

import importlib.util
import struct
import sys
from pathlib import Path

import pytest

from lessonbank.errors import MissingExtra, StoreUnavailable
from lessonbank_bench.arms import lesson_code
from lessonbank_bench.experiment import pngs as drawing
from lessonbank_bench.experiment.pngs import pngs
from lessonbank_bench.experiment.records import AttemptRow, Experiment, Lesson, made

from .experiments import made_row

THERE = importlib.util.find_spec("matplotlib") is not None
DRAWS = pytest.mark.skipif(not THERE, reason="matplotlib is not installed (the extra `plots`)")
LESSON = Lesson(kind="strategy", title="Cheap at $3, not $4 學習", content="Open it.")


def asked(**more: object) -> Experiment:
    arms = [{"name": "none"}, {"name": "a/a", "again": True}, {"name": "new", "memory": "random"}]
    return made({"arms": arms, "seeds": [1, 2, 3], "tasks": 8, "name": "What $x$ costs", **more}, source="test")


def drawn_rows(experiment: Experiment, *, cost: float | None = None) -> list[AttemptRow]:
    return [
        made_row(
            arm.name,
            seed,
            place,
            (arm.name == "new" and place > 1) or (place + seed) % 4 == 0,
            steps=4 + place % 3,
            tokens=0 if cost is None else 900,
            cost=cost,
            memory="m" if arm.name == "new" and place else "",
            shown=(lesson_code(LESSON.title, LESSON.content),) if arm.name == "new" and place else (),
            lessons=(LESSON,) if arm.name == "new" else (),
        )
        for seed in experiment.seeds
        for place in range(experiment.tasks)
        for arm in experiment.arms
    ]


def size(path: Path) -> tuple[int, int]:
    data = path.read_bytes()
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    return struct.unpack(">II", data[16:24])


@DRAWS
def test_there_is_one_picture_for_each_number_that_is_known(tmp_path: Path) -> None:
    paths = pngs(asked(), drawn_rows(asked(), cost=0.01), tmp_path / "new" / "folder")
    names = ["success", "steps", "tokens", "cost", "memory", "lessons", "differences", "single_lessons"]
    assert [path.stem for path in paths] == names
    assert sorted(path.name for path in (tmp_path / "new" / "folder").iterdir()) == sorted(f"{n}.png" for n in names)
    for path in paths:
        width, height = size(path)
        assert 1000 < width < 2000
        assert 300 < height < 2000
    assert "matplotlib.pyplot" not in sys.modules, "a window would be opened, or a display needed"


@DRAWS
def test_many_arms_and_one_seed_can_be_drawn_and_what_is_not_known_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drawing, "_DPI", 36)  # which files there are does not depend on it
    arms = [{"name": f"arm {n}", "memory": "random"} for n in range(7)]  # the fewest that get a plot each
    experiment = asked(arms=arms, seeds=[5], tasks=4, environment="webarena", model="openai:any")
    names = [path.stem for path in pngs(experiment, drawn_rows(experiment), tmp_path)]
    assert names[0] == "success"
    assert "cost" not in names
    assert "tokens" not in names
    assert pngs(experiment, [], tmp_path) == []


@DRAWS
def test_a_folder_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(StoreUnavailable, match="cannot write to"):
        pngs(asked(), drawn_rows(asked()), tmp_path / "file")


@pytest.mark.skipif(THERE, reason="matplotlib is installed")
def test_without_matplotlib_one_sentence_says_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(MissingExtra, match=r"lessonbank-bench\[plots\]") as caught:
        pngs(asked(), [], tmp_path / "pictures")
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "pictures").exists()

"""The pictures of the documentation are what the code draws now."""

from __future__ import annotations

import re
from pathlib import Path

import pages
import pytest
import tutorials
from examples_of import load

IMAGES = pages.ROOT / "docs" / "images"


@pytest.mark.release
def test_the_picture_of_learning_is_what_its_command_draws() -> None:
    plots = pytest.importorskip("lessonbank_bench.plots")
    assert plots.learning() == (IMAGES / "learning.svg").read_text(encoding="utf-8"), "run: just plots"


def undated(printed: str) -> str:
    """What is printed, without the day on which it is."""
    return re.sub(r"\b20\d\d-\d\d-\d\d\b", "DAY", printed)


@pytest.mark.full
def test_the_example_of_planted_lessons_has_a_report_on_each() -> None:
    found = load("does_it_help").main(tasks=60)
    assert str(found).startswith("Does memory help? Undecided")
    assert len(found.lessons) == 6


@pytest.mark.release
def test_the_ledger_finds_the_planted_lessons_and_the_pages_and_the_picture_show_what_it_finds(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """One run of the example, which takes long, for all that hangs on it."""
    found = load("does_it_help").main()
    standing = {lesson.title: (lesson.standing, lesson.retired) for lesson in found.lessons}
    assert found.standing == standing["Check the status line first"][0] == "helps"
    assert standing["Begin in the archive"][1]
    assert not any(retired for title, (_, retired) in standing.items() if title != "Begin in the archive")
    told = capsys.readouterr().out.splitlines()
    assert [line.split(",")[0].rpartition(" ")[2] for line in told] == ["trust", "retire"]
    plots = pytest.importorskip("lessonbank_bench.plots")
    assert plots.lift(found) == (IMAGES / "lift.svg").read_text(encoding="utf-8"), "run: just plots"
    said = undated(str(found)).splitlines()
    for page in ("README.md", "docs/guides/measuring.md"):
        (shown,) = [b.code for b in pages.blocks(pages.ROOT / page) if b.code.startswith("Does memory help? ")]
        lines = undated(shown).splitlines()
        assert lines[0] == said[0]
        assert [line for line in lines if line not in ("", *said)] == []
        assert len(lines) > 5


@pytest.mark.full
def test_the_terminal_recording_shows_what_its_commands_print() -> None:
    recording = pytest.importorskip("lessonbank_bench.recording")
    kept = (IMAGES / "first-minutes.svg").read_text(encoding="utf-8")
    assert tutorials.is_current(kept, recording.recording()), "run: just plots"


@pytest.mark.parametrize("picture", sorted(IMAGES.glob("*.svg")), ids=lambda path: path.name)
def test_a_picture_fetches_nothing_and_is_readable_on_dark_pages(picture: Path) -> None:
    text = picture.read_text(encoding="utf-8")
    if 'class="rich-terminal"' not in text:  # a terminal is dark, whatever the page is
        assert "prefers-color-scheme:dark" in text
        assert 'class="paper"' in text
    assert "href" not in text
    assert "url(" not in text
    assert "http" not in text.replace("http://www.w3.org/2000/svg", "").replace("https://www.textualize.io", "")


def test_the_picture_of_the_study_is_drawn_from_its_attempts() -> None:
    plots = pytest.importorskip("lessonbank_bench.plots")
    assert plots.study() == (IMAGES / "study.svg").read_text(encoding="utf-8"), "run: just plots"

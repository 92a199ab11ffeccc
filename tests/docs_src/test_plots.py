"""The pictures of the documentation are what the code draws now."""

from __future__ import annotations

from pathlib import Path

import pages
import pytest

IMAGES = pages.ROOT / "docs" / "images"


@pytest.mark.full
@pytest.mark.parametrize("name", ["learning", "lift"])
def test_a_picture_is_what_its_command_draws(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plots = pytest.importorskip("lessonbank_bench.plots")
    monkeypatch.chdir(pages.ROOT)
    assert getattr(plots, name)() == (IMAGES / f"{name}.svg").read_text(encoding="utf-8"), "run: just plots"


@pytest.mark.parametrize("picture", sorted(IMAGES.glob("*.svg")), ids=lambda path: path.name)
def test_a_picture_fetches_nothing_and_is_readable_on_dark_pages(picture: Path) -> None:
    text = picture.read_text(encoding="utf-8")
    assert "prefers-color-scheme:dark" in text
    assert 'class="paper"' in text
    assert "href" not in text
    assert "url(" not in text

"""The pictures in the documentation show the pages as they are."""

from __future__ import annotations

from pathlib import Path

from pictures import MADE_FROM, MOST, MOST_OF_A_SHEET, SHEETS, SHOWN, digest

IMAGES = Path(__file__).parents[2] / "docs" / "images"


def test_the_pictures_were_made_from_the_templates_and_styles_of_today() -> None:
    made_from = (IMAGES / MADE_FROM).read_text(encoding="utf-8").strip()
    assert made_from == digest(), "the pages look different now: python tests/reviewing/pictures.py docs/images"


def test_the_pictures_are_small() -> None:
    assert all(0 < (IMAGES / f"{name}.png").stat().st_size <= MOST for name, *_ in SHOWN)
    assert all(0 < (IMAGES / f"review-pages-{name}.jpg").stat().st_size <= MOST_OF_A_SHEET for name, *_ in SHEETS)

"""How long a person at the keyboard needs for a full inbox, as far as the pages are to blame."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from seeding import STORIES, opened
from serving_pages import serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.release
MANY = 100
PACE = 4.0
"""Seconds a person is given to read one: with these, a hundred leave three minutes for the pages."""


def test_a_hundred_lessons_are_decided_by_keys_in_ten_minutes(browser: Browser, bank_file: Path) -> None:
    with opened(bank_file) as bank:
        bank.lessons.approve(*(one.id for one in bank.lessons.list(state="quarantined")), by="Ana")
        for number in range(MANY):
            title = f"Way {number} of doing it"
            task = STORIES[number % 5][0].format(n=f"W{number}")
            lesson = bank.lessons.add(title=title, content=f"Do it in way {number}.", task=task, by="Ben")
            bank.lessons.quarantine(lesson.id, reason="to be decided")
    with serving(bank_file) as site:
        context = browser.new_context()
        page = context.new_page()
        page.goto(site.link)
        page.goto(f"{site.origin}/inbox")
        begun = time.perf_counter()
        for number in range(MANY):
            chosen = page.locator("#chosen").inner_text()
            page.keyboard.press("ar"[number % 2])
            page.get_by_role("status").get_by_text(f"“{chosen}”").wait_for()
        took = time.perf_counter() - begun
        assert page.get_by_text("No lesson is in quarantine.").is_visible()
        context.close()
    print(f"{MANY} decisions took {took:.0f} seconds without reading")
    assert took < 600 - MANY * PACE

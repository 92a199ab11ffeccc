"""What a person at the keyboard does for a full inbox: one key a lesson, and one page a key."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from seeding import STORIES, opened
from serving_pages import serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.release
MANY = 100


def test_a_hundred_lessons_are_decided_by_one_key_and_one_page_each(browser: Browser, bank_file: Path) -> None:
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
        asked = list[str]()
        page.on("request", lambda one: asked.append(one.resource_type))
        for number in range(MANY):
            chosen = page.locator("#chosen").inner_text()
            page.keyboard.press("ar"[number % 2])
            page.get_by_role("status").get_by_text(f"“{chosen}”").wait_for()
        assert page.get_by_text("No lesson is in quarantine.").is_visible()
        context.close()
    assert asked.count("document") <= 2 * MANY, "a decision is sent, and the next page read"
    assert len(asked) <= 9 * MANY, asked[:18]

"""Pages say what was so then, what is not known, and what follows from a decision."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import pytest
from seeding import SCOPE, opened, run_of
from serving_pages import Site, serving

import lessonbank
from lessonbank.evidence.effects import Estimate
from lessonbank.evidence.lift import Lift
from lessonbank.pages.reports.lift_page import answer

pytestmark = pytest.mark.full


def test_a_recall_of_an_empty_memory_says_so_once_and_in_the_past(tmp_path: Path) -> None:
    path = tmp_path / "bank.db"
    with lessonbank.connect(path, scope=SCOPE, embedder="lexical") as bank:
        recall = bank.retrieve("Cancel pending order #W001")
        bank.lessons.add(title="Read the order", content="First.", task="Cancel pending order #W002", by="Ana")
    with serving(path, scope=SCOPE) as site:
        page = site.enter().said(f"/why/{recall.id}")
        after = site.said(f"/why/{recall.id}/explained")
    assert page.count("Memory was empty then") == 1
    for wrong in ("there is no lesson", "withheld", "Nothing was found for it"):
        assert wrong not in page
    assert "nearest now" not in after
    assert "no lesson" not in after


def test_beside_the_lesson_that_is_compared_no_further_one_is_near(site: Site, bank_file: Path) -> None:
    with opened(bank_file) as bank:
        lesson = bank.lessons.add(title="Feed the cat", content="Twice a day.", task="Zoo keeping", by="Ana")
    near = f"/lessons/{lesson.id}/near"
    assert "There is no further near lesson." in site.enter().said(f"{near}?but={lesson.id}")
    assert "No other lesson is found for its task." in site.said(near)


def test_runs_say_which_of_how_many_and_can_be_compared_from_the_top(site: Site, bank_file: Path) -> None:
    with opened(bank_file) as bank:
        bank.learn([run_of(1, 1, good=True, id=f"more-{n}") for n in range(55)], outcome="success")
        total = bank.admin.counts().trajectories
    page = site.enter().get("/runs").text
    assert f"1–50 of {total}" in page
    assert page.index("Compare the two chosen") < page.index("data-row")
    later = unescape(re.findall(r'rel="next" href="([^"]+)"', page)[0])
    assert f"51–{min(100, total)} of {total}" in site.get(later).text


def test_what_to_do_next_begins_with_what_waits_and_the_brackets_are_explained() -> None:
    lift = Lift(scope="s", success=Estimate(value=0.1, always_low=0.0, always_high=0.2), recalls=9, settled=9)
    told = answer(lift, waiting=6, brief=True)
    assert "<ul><li>Decide in the Inbox: 6 lessons and proposals wait.</li>" in told
    assert "Inbox" not in answer(lift, brief=True)
    assert "In brackets: 95 % intervals, right however often you look. At most one in twenty scopes" in told


def test_the_inbox_says_what_follows_from_each_button(unchanged: Site) -> None:
    page = unchanged.said("/inbox?state=quarantined")
    assert "Approve: agents are shown it from now on." in page
    assert "Retire: no agent is shown it any more" in page

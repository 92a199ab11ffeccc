"""What every page has in common: its buttons name deeds, it leads up, times have one form; and what History finds."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from pictures import pages_of
from seeding import opened, run_of
from serving_pages import Site, words

pytestmark = pytest.mark.full
DEEDS = {
    *("Approve", "Compare", "Download", "Edit", "End", "Erase", "Keep", "Make", "Mark", "Merge…", "Merge", "Narrow"),
    *("Quarantine", "Restore", "Retire", "Roll", "Save", "Search", "Show", "Sign", "Switch", "Try", "Undo", "Use"),
}
MOMENT = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC")


def pages(site: Site, bank_file: Path) -> dict[str, str]:
    """Every page by its address."""
    with opened(bank_file) as bank:
        bank.learn(run_of(3, 1, good=True, id="run-open"))
    site.enter()
    return {at: site.get(at).text for at in [*pages_of(bank_file).values(), "/runs/run-open"] if "retry" not in at}


def test_buttons_deeds_ways_up_and_times_on_every_page(site: Site, bank_file: Path) -> None:
    for at, text in pages(site, bank_file).items():
        buttons = re.findall(r"<button[^>]*>(.*?)</button>|role=\"button\"[^>]*>(.*?)</a>", text, re.DOTALL)
        assert {words("".join(one)).split()[0] for one in buttons} <= DEEDS, at
        assert "ake out" not in words(text), at
        inside = text[text.index("<main") :]
        assert not MOMENT.search(re.sub(r"<time.*?</time>", "", inside)), f"{at}: a time that can break over lines"
        is_of_the_bar = re.search(r'aria-current="page">[^<]*', text) and at.split("?")[0].count("/") == 1
        assert is_of_the_bar or re.search(r'<p class="soft"><a href="/', inside), f"{at} leads nowhere up"


def test_a_page_that_belongs_to_another_marks_it_and_leads_there(unchanged: Site) -> None:
    for at, up in (("/doctor", "administration"), ("/queue", "administration"), ("/runs/none", "runs"), ("/none", "")):
        text = unchanged.get(at).text
        assert f'<p class="soft"><a href="/{up}">' in text, at
        assert ('aria-current="page"' in text) == bool(up)
    assert "There is no such page" in words(unchanged.get("/none").text)


def test_the_queue_asks_for_an_outcome_where_another_try_cannot_help(site: Site, bank_file: Path) -> None:
    with opened(bank_file) as bank:
        bank.learn(run_of(3, 1, good=True, id="run-open"))
    queue = site.enter().get("/queue")
    assert "Only the outcome is missing" in queue.text
    assert "Try the chosen again" not in queue.text
    assert site.get("/queue/retry?run=run-open").status == 400
    told = {"csrf": queue.csrf, "outcome": "success", "back": "/queue"}
    assert site.post("/runs/run-open/correct", told).headers["location"] == "/queue"
    assert "Nothing waits." in site.get("/queue").text


def test_of_the_newest_change_nothing_is_said_to_be_undone(site: Site, bank_file: Path) -> None:
    with opened(bank_file) as bank:
        last = bank.history.list()[-1].sequence
    newest = words(site.enter().get(f"/history/diff?a={last}&back=yes").text)
    assert "there is nothing to undo" in newest
    assert "would be undone" not in newest
    assert f"Undo change {last} itself" in newest
    history = words(site.get("/history").text)
    assert history.count("undo it…") == 1
    assert "It changed no lesson." not in words(site.get(f"/history/diff?a={last - 1}&b={last}").text)


def test_history_is_searched_by_kind_writer_and_lesson_and_its_csv_follows(site: Site, bank_file: Path) -> None:
    with opened(bank_file) as bank:
        entries = bank.history.list()
        gone = next(one for one in bank.lessons.list(retired=True, limit=500) if one.retired)
    site.enter()

    def found(query: str) -> Sequence[int]:
        shown = [int(one) for one in re.findall(r'id="change-(\d+)"', site.get(f"/history?{query}").text)]
        rows = csv.DictReader(io.StringIO(site.get(f"/history?{query}&format=csv").text))
        assert [int(row["change"]) for row in rows] == shown, query
        return shown

    def those(wanted: set[int]) -> Sequence[int]:
        return sorted(wanted, reverse=True)

    assert found("kind=retired") == those({one.sequence for one in entries if one.entry.kind == "retire"})
    assert found("by=ana") == those({one.sequence for one in entries if one.writer == "Ana"})
    story = {one.sequence for one in entries if gone.id in one.entry.sentence().lessons}
    assert found(f"lesson={gone.id}") == found("lesson=offer+voucher") == those(story)
    assert found(f"lesson={gone.id}&kind=retired&by=Ana") == those(story & {*found("kind=retired")})
    assert "No change is like that." in site.get("/history?by=nobody").text

"""What a person does on the pages, done in a real Chromium."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pictures import pages_of
from seeding import give_up, opened
from serving_pages import Site, serving
from tabs import visited

from lessonbank.pages.application import _ROUTES

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.full
ON_POSTGRES = pytest.param("postgres", marks=pytest.mark.release)
"""The same deeds on PostgreSQL, of which `test_pages_on_postgres.py` asks every page over HTTP."""
on_every_store = pytest.mark.parametrize("bank_file", ["file", ON_POSTGRES], indirect=True)
AXE = (Path(__file__).parent / "axe" / "axe.min.js").read_text(encoding="utf-8")


def at(page: Page, where: str) -> Page:
    page.goto(re.match(r"https?://[^/]+", page.url)[0] + where)  # type: ignore[index]
    page.wait_for_load_state("networkidle")
    return page


def titles(bank_file: Path, state: str) -> list[str]:
    with opened(bank_file) as bank:
        return [lesson.title for lesson in bank.lessons.list(state=state)]  # type: ignore[arg-type]


RULES = {
    "light": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
    "dark": {"type": "rule", "values": ["color-contrast", "link-in-text-block"]},
}
"""What axe looks for: dark pages differ in their colours alone, so there it is what looks at colours."""


def violations(page: Page) -> list[str]:
    """What axe finds that keeps somebody from reading the page, in light and in dark colours."""
    page.evaluate(AXE)
    found: list[str] = []
    for scheme, rules in RULES.items():
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # type: ignore[arg-type]
        told = page.evaluate("rules => axe.run(document, {runOnly: rules, resultTypes: ['violations']})", rules)
        found += [f"{scheme}: {one['id']}: {node['html'][:150]}" for one in told["violations"] for node in one["nodes"]]
    return found


SIDEWAYS = "[...document.querySelectorAll('.wide')].some(one => one.scrollWidth > one.clientWidth + 1)"
BROKEN = """[...document.querySelectorAll("table, nav, .tabs, .badge, button")].flatMap(part => {
  const found = [], walk = document.createTreeWalker(part, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) for (const word of walk.currentNode.data.matchAll(/[\\p{L}\\p{N}]+/gu)) {
    const range = document.createRange();
    range.setStart(walk.currentNode, word.index);
    range.setEnd(walk.currentNode, word.index + word[0].length);
    const lines = new Set([...range.getClientRects()].map(one => Math.round(one.top)));
    if (lines.size > 1) found.push(word[0]);
  }
  return found;
})"""
"""Words that stand in several lines, in places where a word must stay whole."""


@on_every_store
def test_single_keys_approve_reject_and_undo(page: Page, bank_file: Path) -> None:
    at(page, "/inbox")
    first = page.locator("#chosen").inner_text()
    page.keyboard.press("a")
    page.get_by_role("status").get_by_text(f"Approved: “{first}”").wait_for()
    assert first in titles(bank_file, "active")
    second = page.locator("#chosen").inner_text()
    page.keyboard.press("r")
    page.get_by_role("status").get_by_text("Retired:").wait_for()
    assert second in titles(bank_file, "retired")
    page.keyboard.press("u")
    page.get_by_role("status").get_by_text(f"Taken back: “{second}” is in quarantine again").wait_for()
    assert second in titles(bank_file, "quarantined")
    assert page.locator("#chosen").inner_text() == second
    at(page, "/history")
    page.get_by_role("button", name=f"Undo: Approved: “{first}”").wait_for()
    page.keyboard.press("u")
    page.get_by_role("status").get_by_text(f"Taken back: “{first}” is in quarantine again").wait_for()
    assert page.locator("#chosen").inner_text() == first
    assert first in titles(bank_file, "quarantined")
    page.keyboard.press("j")
    page.wait_for_url(re.compile(r"/inbox\?.*at="))
    assert page.locator("#chosen").inner_text() != first


@on_every_store
def test_keys_do_nothing_while_somebody_types_or_has_switched_them_off(page: Page, bank_file: Path) -> None:
    waiting = titles(bank_file, "quarantined")
    at(page, "/inbox")
    page.keyboard.press("e")
    page.get_by_label("What to do").wait_for()
    page.get_by_label("What to do").press_sequentially("arn")
    page.get_by_role("link", name="Cancel", exact=True).click()
    page.get_by_role("button", name="Switch single keys off").click()
    page.keyboard.press("a")
    page.keyboard.press("r")
    page.reload()
    assert page.get_by_role("button", name="Switch single keys on").is_visible()
    assert titles(bank_file, "quarantined") == waiting


@on_every_store
def test_a_lesson_is_edited_narrowed_and_its_versions_show_what_changed(page: Page, bank_file: Path) -> None:
    at(page, "/inbox")
    page.locator("#chosen a").click()
    page.wait_for_url("**/lessons/*")
    page.wait_for_load_state()  # a key pressed earlier finds no script
    page.keyboard.press("e")
    page.get_by_label("What to do").fill("Count the items first. Then call exchange_items.")
    page.get_by_label("Why").fill("it was wrong")
    page.get_by_role("button", name="Save").click()
    page.get_by_text("Edited:").wait_for()
    page.wait_for_load_state()
    page.keyboard.press("n")
    page.get_by_label("Only for tasks").fill("exchange order")
    page.get_by_role("button", name="Save").click()
    page.locator("ol.versions ins").first.wait_for()
    assert "Count" in page.locator("ol.versions ins").all_inner_texts().__str__()
    assert "exchange order" in page.locator("main").inner_text()
    assert "it was wrong" in page.locator("ol.versions").inner_text()


@on_every_store
def test_two_lessons_become_one_and_are_two_again(page: Page, bank_file: Path) -> None:
    at(page, "/inbox")
    other = page.locator("#chosen").inner_text()
    page.keyboard.press("m")
    page.get_by_role("heading", name="Merge two lessons").wait_for()
    kept = page.get_by_label("Title").input_value()
    page.get_by_label("What to do").fill("The words of both.")
    page.get_by_role("button", name="Merge").click()
    page.get_by_role("status").get_by_text(f"Merged: “{other}” and “{kept}”").wait_for()
    with opened(bank_file) as bank:
        (merged,) = bank.lessons.list(text="words of both")
    assert {kept, other} <= set(titles(bank_file, "retired"))
    page.keyboard.press("u")
    page.get_by_role("status").get_by_text("Taken back:").wait_for()
    assert other in titles(bank_file, "quarantined")
    with opened(bank_file) as bank:
        assert bank.lessons.get(merged.id).retired


@on_every_store
def test_a_proposed_merge_is_made_with_single_keys_and_undone_on_the_page_of_its_lesson(
    page: Page, bank_file: Path
) -> None:
    with opened(bank_file) as bank:
        (proposal,) = [one for one in bank.lessons.proposals() if one.change == "merge"]
    at(page, f"/inbox?state=proposed&at={proposal.lesson.id}")
    assert page.get_by_text("merge it with another lesson").is_visible()
    page.keyboard.press("m")
    page.get_by_role("heading", name="Merge two lessons").wait_for()
    page.get_by_label("What to do").fill("Name the card aloud.")
    page.get_by_role("button", name="Merge").click()
    page.get_by_text("Merged:").wait_for()
    with opened(bank_file) as bank:
        (merged,) = bank.lessons.list(text="Name the card aloud.")
        assert proposal.lesson.id not in {one.lesson.id for one in bank.lessons.proposals()}
    at(page, f"/lessons/{merged.id}")
    page.get_by_role("heading", name="It stands for 2 lessons").wait_for()
    page.get_by_role("button", name="Undo the merge").click()
    page.get_by_text("Unmerged:").wait_for()
    page.keyboard.press("u")
    page.get_by_text("Taken back:").wait_for()
    with opened(bank_file) as bank:
        assert [one.id for one in bank.lessons.list(text="Name the card aloud.")] == [merged.id]


@on_every_store
def test_several_are_approved_at_once_and_taken_back_at_once(page: Page, bank_file: Path) -> None:
    waiting = titles(bank_file, "quarantined")
    at(page, "/inbox")
    for box in page.locator("#bulk input[type=checkbox]").all():
        box.check()
    page.get_by_role("button", name="Approve chosen").click()
    page.get_by_text(f"Approved: {len(waiting)} lessons").wait_for()
    assert page.get_by_text("No lesson is in quarantine.").is_visible()
    page.get_by_role("button", name="Undo").click()
    page.get_by_text("Taken back:").wait_for()
    assert titles(bank_file, "quarantined") == waiting


@on_every_store
def test_a_double_click_and_the_back_button_decide_once(page: Page, bank_file: Path) -> None:
    with opened(bank_file) as bank:
        before = len(bank.history.list())
    at(page, "/inbox")
    page.get_by_role("button", name="Approve", exact=True).or_(page.locator("[data-key=a]")).first.dblclick()
    page.get_by_text("Approved:").wait_for()
    page.go_back()
    page.locator("[data-key=a]").first.click()
    page.wait_for_load_state("networkidle")
    with opened(bank_file) as bank:
        entries = bank.history.list()[before:]
    ids = [id for entry in entries for id in entry.entry.lesson_ids]  # type: ignore[union-attr]
    assert len(ids) == len(set(ids))


@on_every_store
def test_on_a_slow_network_keys_pressed_again_decide_once(page: Page, bank_file: Path) -> None:
    waiting = set(titles(bank_file, "quarantined"))
    at(page, "/inbox")
    first = page.locator("#chosen").inner_text()
    network = page.context.new_cdp_session(page)
    slow = {"offline": False, "latency": 700, "downloadThroughput": 20_000, "uploadThroughput": 20_000}
    network.send("Network.emulateNetworkConditions", slow)
    for key in "aara":
        page.keyboard.press(key)
    page.get_by_role("status").get_by_text(f"Approved: “{first}”").wait_for()
    assert waiting - set(titles(bank_file, "quarantined")) == {first}
    page.get_by_role("heading", name="Near lessons").wait_for()


@pytest.mark.usefixtures("bank_file")
@on_every_store
def test_words_find_lessons_while_they_are_typed_and_the_address_can_be_shared(page: Page) -> None:
    at(page, "/lessons")
    page.keyboard.press("/")
    page.keyboard.type("address", delay=10)
    page.wait_for_url(re.compile("q=address"))
    page.wait_for_load_state("networkidle")
    found = page.locator("#found h2").all_inner_texts()
    assert found
    assert len(found) < 10
    page.reload()
    assert page.locator("#found h2").all_inner_texts() == found
    page.keyboard.press("Tab")
    page.locator("main").focus()
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement.matches('[data-row]')")


@on_every_store
def test_everything_can_be_read_and_decided_without_javascript(browser: Browser, site: Site, bank_file: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(site.link)
    page.goto(f"{site.origin}/inbox")
    title = page.locator("#chosen").inner_text()
    page.locator("[data-key=a]").click()
    assert f"Approved: “{title}”" in page.get_by_role("status").inner_text()
    page.goto(f"{site.origin}/lessons?state=active")
    page.get_by_role("link", name=title).click()
    page.get_by_role("link", name="What it said before").click()
    page.get_by_text("As it was first written.").wait_for()
    context.close()


@pytest.mark.parametrize(
    "every", [pytest.param(False, id="route"), pytest.param(True, id="page", marks=pytest.mark.release)]
)
def test_axe_finds_nothing_and_nothing_is_wider_than_the_screen(browser: Browser, bank_file: Path, every: bool) -> None:
    give_up(bank_file, "stuck")
    pages = pages_of(bank_file)
    routes = {at for at, _ in _ROUTES} - {"/keys"}  # a server has them: it has a test of its own
    of_route = {at: name for at in routes for name, where in pages.items() if _is_at(where, at)}
    assert routes - of_route.keys() == set()
    pages = pages if every else {name: pages[name] for name in (*of_route.values(), "nowhere")}
    context = browser.new_context(viewport={"width": 360, "height": 740})
    page, found = context.new_page(), dict[str, list[str]]()
    with serving(bank_file) as site:
        page.goto(site.link)
        for name, tab in visited(context, site.origin, pages):
            problems = violations(tab)
            wide = tab.evaluate("document.documentElement.scrollWidth")
            broken = [f"broken: {word}" for word in tab.evaluate(BROKEN)]
            high = tab.evaluate("document.querySelector('header.bar')?.offsetHeight ?? 0")
            found[name] = problems + broken + ([f"{wide} pixels wide"] if wide > 360 else [])
            found[name] += [f"the menu is {high} pixels high"] if high > 110 else []
            found[name] += ["a table scrolls sideways"] if tab.evaluate(SIDEWAYS) else []
        page.get_by_role("button", name="End the session").click()
        page.get_by_role("heading", name="Your session has ended").wait_for()
        found["the end of the session"] = violations(page)
    context.close()
    assert {name: problems for name, problems in found.items() if problems} == {}


def _is_at(where: str, route: str) -> bool:
    return re.fullmatch(re.sub("{id}", "[^/]+", route), where.partition("?")[0]) is not None


def test_axe_sees_what_is_wrong_in_the_dark_alone(browser: Browser) -> None:
    context = browser.new_context()
    page = context.new_page()
    dim = "@media (prefers-color-scheme: dark) { p { color: #222; background: #111 } }"
    page.set_content(f"<html lang=en><title>t</title><style>{dim}</style><main><h1>t</h1><p>words</p></main></html>")
    found = violations(page)
    context.close()
    assert [one.partition(": <")[0] for one in found] == ["dark: color-contrast"]


def test_what_is_chosen_of_a_verdict_can_be_seen(page: Page, bank_file: Path) -> None:
    with opened(bank_file) as bank:
        run = next(one for one in bank.runs.list() if one.verdict.outcome == "success")
    at(page, f"/runs/{run.trajectory.id}")
    page.get_by_text("Correct the verdict").click()
    success, failure = (page.get_by_label(name, exact=True) for name in ("success", "failure"))
    assert success.is_checked()
    chosen, other = success.screenshot(), failure.screenshot()
    assert chosen != other
    failure.check()
    page.get_by_text("How the run ended, in your word").hover()
    assert success.screenshot() != chosen
    labels = [page.locator("label.check", has_text=name).bounding_box() for name in ("success", "failure")]
    assert labels[1]["x"] - labels[0]["x"] - labels[0]["width"] > 12  # type: ignore[index]

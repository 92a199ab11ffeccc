"""The pages that only a server has, in a real Chromium: who signs in with a key, and the keys themselves."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from running import COMMAND, lessonbank_cli
from test_pages_in_a_browser import violations

pytest.importorskip("fastapi", reason="needs the extra server")

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.full, pytest.mark.skipif(sys.platform == "win32", reason="this system has no SIGTERM")]


@pytest.fixture
def server(bank_file: Path) -> Generator[tuple[str, str]]:
    """The address of a server's pages, and the key of an admin."""
    bank = ("--bank", str(bank_file))
    add = partial(lessonbank_cli, "keys", "add", "Root", *bank, "--whole-bank", "--role", "admin", cwd=bank_file.parent)
    with ThreadPoolExecutor(1) as thread:  # where Playwright runs, no other event loop can
        key = thread.submit(add).result().stdout.split()[0]
    command = [*COMMAND, "serve", *bank, "--port", "0", "--pages"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as running:
        assert running.stderr is not None
        line = next(line for line in running.stderr if "serves" in line)
        yield line.split()[-1].removesuffix("/v1") + "/review", key
        running.send_signal(signal.SIGTERM)
        running.communicate(timeout=60)


def problems(page: Page) -> list[str]:
    """What axe finds, and whether it is wider than a phone."""
    wide = page.evaluate("document.documentElement.scrollWidth")
    return violations(page) + ([f"{wide} pixels wide"] if wide > 360 else [])


def test_axe_finds_nothing_where_people_sign_in_and_make_renew_and_end_keys(
    browser: Browser, server: tuple[str, str]
) -> None:
    url, key = server
    context = browser.new_context(viewport={"width": 360, "height": 740})
    page, found = context.new_page(), dict[str, list[str]]()
    page.goto(f"{url}/keys")
    found["signing in"] = problems(page)
    page.locator("input[name=key]").fill(key)
    page.locator("form button").last.click()
    page.get_by_role("heading", name="Keys of the server").wait_for()
    found["keys"] = problems(page)
    page.get_by_label("Who holds it").fill("agent-7")
    page.get_by_role("button", name="Make the key").click()
    page.get_by_role("alert").wait_for()
    found["a new key"] = problems(page)
    page.get_by_role("button", name="Make a new secret for agent-7").click()
    page.get_by_role("alert").wait_for()
    found["a new secret"] = problems(page)
    page.get_by_role("button", name="End the key of agent-7").click()
    page.get_by_role("status").get_by_text("The key is ended").wait_for()
    found["an ended key"] = problems(page)
    context.close()
    assert {name: told for name, told in found.items() if told} == {}

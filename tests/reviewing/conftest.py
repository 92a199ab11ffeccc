"""A bank for each test, copied from one that was filled once; its pages; and a Chromium that looks at them."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parent))

import pytest

pytest.importorskip("jinja2", reason="pip install 'lessonbank[pages]'")
pytest.importorskip("uvicorn", reason="pip install 'lessonbank[pages]'")

from seeding import seed
from serving_pages import Site, serving

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def chromium() -> str | None:
    """Where a Chromium is installed."""
    return next((path for name in ("chromium-headless-shell", "chromium") if (path := shutil.which(name))), None)


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pages") / "bank.db"
    seed(path, tasks=24)
    return path


@pytest.fixture(scope="session")
def filled_database(lasting_postgres_bank: Callable[[], str]) -> str:
    address = lasting_postgres_bank()
    seed(address, tasks=24)
    return address


@pytest.fixture
def bank_file(request: pytest.FixtureRequest, filled: Path, tmp_path: Path) -> Path | str:
    """A file; or for `postgres`, which tests of what people do mostly ask for, the address of a bank."""
    if getattr(request, "param", "file") == "file":
        return Path(shutil.copy(filled, tmp_path / "bank.db"))
    pytest.importorskip("psycopg", reason="pip install 'lessonbank[postgres]'")
    copy: Callable[[str], str] = request.getfixturevalue("postgres_copy")
    return copy(request.getfixturevalue("filled_database"))


@pytest.fixture
def site(bank_file: Path | str) -> Generator[Site]:
    with serving(bank_file) as found:
        yield found


@pytest.fixture(scope="module")
def unchanged(filled: Path, tmp_path_factory: pytest.TempPathFactory) -> Generator[Site]:
    """A site that lets its tests in, who only look."""
    with serving(shutil.copy(filled, tmp_path_factory.mktemp("unchanged") / "bank.db")) as found:
        yield found.enter()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Ended with its module: while Playwright runs, no other event loop can in this thread."""
    playwright = pytest.importorskip("playwright.sync_api", reason="pip install playwright")
    found = chromium()
    if found is None:
        pytest.skip("no Chromium is installed: apt-get install chromium-headless-shell")
    with playwright.sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=found, args=FLAGS)
        yield running
        running.close()


@pytest.fixture
def page(browser: Browser, site: Site) -> Generator[Page]:
    """A page that was let in. What its console complains of fails the test."""
    context = browser.new_context(viewport={"width": 1200, "height": 850})
    opened = context.new_page()
    complaints: list[str] = []
    opened.on("console", lambda told: complaints.append(told.text) if told.type in ("error", "warning") else None)
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.on(
        "request", lambda sent: complaints.append(sent.url) if not sent.url.startswith((site.origin, "data:")) else None
    )
    opened.goto(site.link)
    yield opened
    context.close()
    assert complaints == []

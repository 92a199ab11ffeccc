"""The pages one by one, for axe and for their width; and the command that makes the documentation's pictures of them.

python tests/reviewing/pictures.py docs/images
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Final

PAGES: Final = {
    "home": "/",
    "helps": "/helps",
    "evidence": "/evidence",
    "lessons": "/lessons",
    "lessons-for-a-task": "/lessons?q=Cancel+order&by=task",
    "topics": "/topics",
    "runs": "/runs",
    "run": "/runs/run-007",
    "compare": "/compare?a=run-005&b=run-010",
    "inbox": "/inbox",
    "inbox-proposed": "/inbox?state=proposed",
    "inbox-edit": "/inbox?do=edit",
    "inbox-narrow": "/inbox?do=narrow&state=probation",
    "why": "/why?task=Cancel+pending+order+%23W500",
    "history": "/history",
    "diff": "/history/diff?a=20&b=60",
    "rollback": "/history/diff?a=40&back=yes",
    "administration": "/administration",
    "doctor": "/doctor",
    "queue": "/queue",
    "purge": "/purge?run=run-007",
    "sign-in": "/sign-in",
    "nowhere": "/nowhere",
}
SHOWN: Final = (
    ("review-home", "/", "light", 920, 620),
    ("review-inbox", "/inbox", "light", 920, 620),
    ("review-run-dark", "/runs/run-010", "dark", 920, 620),
    ("review-inbox-phone", "/inbox", "light", 360, 740),
)
"""The pictures: name, page, colours, width and height."""
MOST: Final = 100_000
"""Bytes of a picture."""


def draw(folder: Path) -> None:
    """Make the pictures of a small bank. Raises SystemExit: one is too large."""
    from playwright.sync_api import sync_playwright
    from seeding import seed
    from serving_pages import serving

    from conftest import FLAGS, chromium

    with tempfile.TemporaryDirectory() as place, sync_playwright() as driver:
        bank = Path(place) / "bank.db"
        seed(bank)
        running = driver.chromium.launch(executable_path=chromium(), args=list(FLAGS))
        with serving(bank) as site:
            first = running.new_context()
            first.new_page().goto(site.link)
            cookies = first.cookies()
            for name, at, scheme, width, height in SHOWN:
                context = running.new_context(color_scheme=scheme, viewport={"width": width, "height": height})  # type: ignore[arg-type]
                context.add_cookies(cookies)  # type: ignore[arg-type]
                page = context.new_page()
                page.goto(site.origin + at)
                page.wait_for_load_state("networkidle")
                page.screenshot(path=folder / f"{name}.png")
                if (size := (folder / f"{name}.png").stat().st_size) > MOST:
                    raise SystemExit(f"{name}.png has {size:,} bytes, more than {MOST:,}")
        running.close()


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    draw(Path(sys.argv[1]))

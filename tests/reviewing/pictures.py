"""The pages one by one, for axe and for their width; and the command that makes the documentation's pictures of them.

python tests/reviewing/pictures.py docs/images      (or: just pictures)
"""

from __future__ import annotations

import sys
import tempfile
from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

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
    "why-settings": "/why?task=Cancel+pending+order+%23W500&limit=5&budget=400&trust=reviewed&kind=guardrail",
    "history": "/history",
    "diff": "/history/diff?a=20&b=60",
    "rollback": "/history/diff?a=40&back=yes",
    "administration": "/administration",
    "doctor": "/doctor",
    "queue": "/queue",
    "purge": "/purge?run=run-007",
    "purge-by-words": "/purge?q=order",
    "words": "/words",
    "sign-in": "/sign-in",
    "nowhere": "/nowhere",
}


def pages_of(bank: Path | str, /) -> Mapping[str, str]:
    """Every page of a bank that `seed` filled: those above, and those whose address has an id."""
    from seeding import opened

    with opened(bank) as memory:
        one, *_ = memory.lessons.list(state="active")
        pair = next(proposal for proposal in memory.lessons.proposals() if proposal.change == "merge")
        held, *_ = memory.lessons.list(state="quarantined")
        recall = next(recall for recall in memory.recalls.list(limit=100) if recall.text)
    return {
        **PAGES,
        "lesson": f"/lessons/{one.id}",
        "lesson-edit": f"/lessons/{one.id}?do=edit",
        "versions": f"/lessons/{one.id}/versions",
        "effect": f"/lessons/{one.id}/lift",
        "held": f"/lessons/{held.id}/held",
        "near": f"/lessons/{held.id}/near",
        "merge": f"/merge?keep={pair.of}&other={pair.lesson.id}",
        "recall": f"/why/{recall.id}",
        "explained": f"/why/{recall.id}/explained",
        "tried": "/why/try?task=Cancel+pending+order+%23W500",
        "others": "/runs/run-007/others",
        "taken-back": "/taken-back",
        "proposed": "/inbox/proposed",
        "retry": "/queue/retry?run=all",
    }


SHOWN: Final = (
    ("review-home", "/", "light", 920, 950),
    ("review-inbox", "/inbox", "light", 920, 620),
    ("review-run-dark", "/runs/run-010", "dark", 920, 620),
    ("review-inbox-phone", "/inbox", "light", 360, 740),
)
"""The pictures: name, page, colours, width and height."""
SHEETS: Final = (
    ("light", 300, ("light", 920, 620)),
    ("dark", 300, ("dark", 920, 620)),
    ("phone", 165, ("light", 360, 740)),
)
"""Every page in small: the sheet, the pixels from side to side of a page on it; colours, width and height of a page."""
_WIDE: Final = 1600
"""Pixels from side to side of a sheet."""
MOST: Final = 170_000
"""Bytes of a picture."""
MOST_OF_A_SHEET: Final = 400_000
MADE_FROM: Final = "review-pictures.sha256"
"""The file beside the pictures that says what they were made from."""
_ROOT: Final = Path(__file__).parents[2]


def digest() -> str:
    """Of all that the pictures show: templates, styles, the plots, and the bank that they are made of."""
    pages = _ROOT / "src" / "lessonbank" / "pages"
    looks = [*(pages / "templates").iterdir(), *(pages / "static").glob("*.css"), *(pages / "static").glob("*.js")]
    style = _ROOT / "src" / "lessonbank" / "pages" / "reports" / "style.py"
    made = sha256()
    for file in sorted([*looks, style, Path(__file__), Path(__file__).parent / "seeding.py"]):
        made.update(file.name.encode() + b"\0" + file.read_bytes().replace(b"\r\n", b"\n") + b"\0")
    return made.hexdigest()


def draw(folder: Path) -> None:
    """Make the pictures of a small bank. Raises SystemExit: one is too large."""
    from playwright.sync_api import sync_playwright
    from seeding import give_up, seed
    from serving_pages import serving

    from conftest import FLAGS, chromium

    with tempfile.TemporaryDirectory() as place, sync_playwright() as driver:
        bank = Path(place) / "bank.db"
        seed(bank)
        give_up(bank, "run-given-up", why="the model did not answer")
        pages = pages_of(bank)
        running = driver.chromium.launch(executable_path=chromium(), args=list(FLAGS))
        with serving(bank) as site:
            first = running.new_context()
            first.new_page().goto(site.link)
            let_in = {"cookies": first.cookies(), "origins": []}

            def taken(at: str, scheme: str, width: int, height: int) -> bytes:
                looks: Any = {"color_scheme": scheme, "viewport": {"width": width, "height": height}}
                looks |= {"is_mobile": width < 500, "has_touch": width < 500}
                context = running.new_context(storage_state=let_in, **looks)  # type: ignore[arg-type]
                page = context.new_page()
                page.goto(site.origin + at)
                page.wait_for_load_state("networkidle")
                picture = page.screenshot()
                context.close()
                return picture

            for name, at, scheme, width, height in SHOWN:
                _keep(folder / f"{name}.png", taken(at, scheme, width, height))
            for name, small_width, (scheme, width, height) in SHEETS:
                small = {one: taken(at, scheme, width, height) for one, at in pages.items()}
                page = running.new_page(viewport={"width": _WIDE, "height": 200})
                page.set_content(_sheet(small, small_width), wait_until="load")
                _keep(folder / f"review-pages-{name}.jpg", page.screenshot(full_page=True, type="jpeg", quality=45))
        running.close()
    (folder / MADE_FROM).write_text(f"{digest()}\n", encoding="utf-8")


def _keep(file: Path, picture: bytes) -> None:
    most = MOST_OF_A_SHEET if file.suffix == ".jpg" else MOST
    if len(picture) > most:
        raise SystemExit(f"{file.name} has {len(picture):,} bytes, more than {most:,}")
    file.write_bytes(picture)


def _sheet(pictures: Mapping[str, bytes], width: int) -> str:
    """Pictures side by side, each with its name."""
    shown = "".join(
        f'<figure><img alt="" width="{width}" src="data:image/png;base64,{b64encode(one).decode()}">'
        f"<figcaption>{name}</figcaption></figure>"
        for name, one in pictures.items()
    )
    style = "body{margin:12px 0 0 12px;background:#888;font:13px sans-serif;display:flex;flex-wrap:wrap;gap:12px}"
    return f"<style>{style}figure{{margin:0;width:{width}px}}img{{display:block}}</style>{shown}"


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    draw(Path(sys.argv[1]))

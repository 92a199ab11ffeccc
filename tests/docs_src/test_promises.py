"""What the store promises is proven by the tests the page names: each of them is there."""

from __future__ import annotations

import re

import pages

PAGE = pages.ROOT / "docs" / "store.md"
NAMED = re.findall(r"`((?:tests|src)/[\w/]+\.py)::(\w+)`", PAGE.read_text(encoding="utf-8"))


def test_the_page_names_a_test_for_every_promise() -> None:
    rows = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("* ")]
    promises = [row for row in rows if "`tests/" in row or "`src/" in row]
    assert len(promises) == len(NAMED) >= 30


def test_a_named_test_is_there() -> None:
    texts = {path: (pages.ROOT / path).read_text(encoding="utf-8") for path, _ in NAMED}
    gone = [(path, name) for path, name in NAMED if not re.search(rf"^\s*(?:async )?def {name}\(", texts[path], re.M)]
    assert gone == []

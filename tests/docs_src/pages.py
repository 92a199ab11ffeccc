"""Reads the documentation as the tests need it: code blocks, links and tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(
    r"^<!-- setup\n(?P<setup>.*?)^-->$|^(?P<fence>```+)(?P<info>[^\n`]*)\n(?P<code>.*?)^(?P=fence)$", re.M | re.S
)
NOT_RUN = re.compile(r"<!-- no-run: .{8,} -->")
"""The comment before a block that is not run; it says why."""
_LINK = re.compile(r"(?<!!)\[[^\]\n]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6} (.+)$", re.M)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block (or a hidden setup, `setup`) and the line its text begins at."""

    info: str
    code: str
    line: int
    before: str
    """The last line before the fence that is not blank."""

    @property
    def runs(self) -> bool:
        """Whether it is Python that a reader could run: no reason not to stands in a comment right before it."""
        return self.info == "setup" or (self.info == "python" and not NOT_RUN.fullmatch(self.before))


def pages() -> list[Path]:
    """README and every page of docs, decisions apart."""
    found = sorted((ROOT / "docs").rglob("*.md"))
    return [ROOT / "README.md", *(p for p in found if "decisions" not in p.parts)]


def name(page: Path, /) -> str:
    """How a page is called in messages."""
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path, /) -> Iterator[Block]:
    """Every fenced block and hidden setup of a page, in order."""
    text = page.read_text(encoding="utf-8")
    for found in _BLOCK.finditer(text):
        hidden = found["setup"] is not None
        kind = "setup" if hidden else "code"
        before = [line for line in text[: found.start()].splitlines() if line.strip()]
        yield Block(
            info="setup" if hidden else found["info"].strip(),
            code=found[kind],
            line=text.count("\n", 0, found.start(kind)) + 1,
            before=before[-1] if before else "",
        )


def links(page: Path, /) -> Iterator[str]:
    """Targets of links outside code."""
    yield from _LINK.findall(_BLOCK.sub("", page.read_text(encoding="utf-8")))


def anchors(page: Path, /) -> set[str]:
    """The fragment of every heading, as GitHub and the site make it."""
    prose = _BLOCK.sub("", page.read_text(encoding="utf-8"))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in _HEADING.findall(prose)}


def section(page: Path, heading: str, /) -> str:
    """The text under a heading of the second level."""
    text = page.read_text(encoding="utf-8")
    _, _, rest = text.partition(f"\n## {heading}\n")
    return rest.partition("\n## ")[0]


def first_cells(markdown: str, /) -> list[str]:
    """The code names in the first column of the tables in `markdown`, in order."""
    rows = [line.split("|")[1] for line in markdown.splitlines() if line.startswith("|")]
    return [cell for row in rows for cell in re.findall(r"`([^`]+)`", row)]

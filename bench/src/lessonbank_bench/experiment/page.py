"""The pieces of a page that opens offline and runs nothing; whatever strangers wrote is inert before it is here."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

from lessonbank.guard import clean
from lessonbank.guard.sanitise import canonical_line
from lessonbank.pages.reports import html as _html
from lessonbank.pages.reports.style import STYLE

from .records import Experiment

SYNTHETIC: Final = frozenset({"desk", "desk-browser", "null", "repo-desk"})
"""Environments whose tasks were made up for measuring."""
_CELL = 300
"""Characters of a line, or of a cell of a table."""
_NEGATIVE = re.compile(r"(?<![\w-])-(?=\d)")
_MORE = """
body{max-width:74rem}
table{font-size:.85rem}
pre{white-space:pre-wrap;overflow-wrap:anywhere;margin:.3rem 0;padding:.5rem .7rem;border:1px solid var(--rule);
font:.85rem/1.45 ui-monospace,monospace;max-height:24rem;overflow:auto}
details.attempt{border-bottom:1px solid var(--rule)}
details.attempt>div{padding:0 0 1rem 1rem}
h3{font-size:1rem;margin:.8rem 0 .2rem}
h3.task{margin-top:1.6rem}
h4{font-size:.9rem;margin:.8rem 0 .1rem;color:var(--soft)}
pre.memory{border-left:.35rem solid var(--with);background:var(--band)}
summary .done{color:var(--helps)}
summary .failed{color:var(--harms)}
td{white-space:nowrap}
td.text{white-space:normal;min-width:7rem}
.made-of{display:inline-block;font-size:.85rem;font-weight:600;padding:.1rem .6rem;border:1px solid currentColor;
border-radius:1rem;color:var(--without)}
path.floor{fill:var(--rule);opacity:.6}
"""


def made_of(experiment: Experiment, /) -> str:
    """What a reader must know before any number: whether a world that was made up, or a script, stands behind it."""
    told = ["synthetic"] if experiment.environment in SYNTHETIC else []
    return ", ".join(told if experiment.model else [*told, "scripted model"])


def document(title: str, body: Iterable[str], /) -> str:
    """One HTML file with nothing to fetch."""
    told = escape(canonical_line(title, limit=200))
    return _html.document(told, "\n".join(part for part in body if part), style=STYLE + _MORE)


def line(text: str, /, *, limit: int = _CELL) -> str:
    """Strangers' text as one inert line of HTML."""
    return escape(canonical_line(text, limit=limit))


def block(text: str, /, *, limit: int = 8000, name: str = "") -> str:
    """Strangers' text as it stands, inert, cut off where it is long."""
    kept = clean(text, limit=limit)
    return f"<pre{f' class={name}' if name else ''}>{escape(kept)}</pre>"


def minus(text: str, /) -> str:
    """`text` with the sign that is as wide as a plus; hyphens between letters stay."""
    return _NEGATIVE.sub("\u2212", text)


def table(caption: str, columns: Sequence[str], rows: Iterable[Sequence[str]], /, *, text: Sequence[int] = ()) -> str:
    """A table of plain text that scrolls by itself where it is wide. `text`: which columns are no numbers."""
    told = ([canonical_line(minus(cell), limit=_CELL) for cell in cells] for cells in rows)
    return _html.table(caption, columns, told, text=text)


def paragraph(text: str, /, *, name: str = "") -> str:
    """A paragraph of plain text, inert."""
    return f"<p{f' class={name}' if name else ''}>{escape(minus(clean(text)))}</p>"


def details(summary: str, body: str, /) -> str:
    """What is read by whoever opens it; `body` is HTML."""
    return f"<details><summary>{line(summary)}</summary>{body}</details>"


def figure(drawn: str, caption: str, told: str, /) -> str:
    """A picture with what it shows."""
    return f"\n<figure><figcaption>{line(caption)} <span>{escape(told)}</span></figcaption>{drawn}</figure>"

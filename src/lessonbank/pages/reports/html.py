"""The frame of a page that opens offline and runs nothing: one policy for every page there is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import Final

_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_NEGATIVE: Final = re.compile(r"(?<!\w)-(?=\d)")
_HEAD: Final = f"""<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<meta name="format-detection" content="telephone=no, date=no, address=no, email=no">"""


def document(title: str, body: str, /, *, style: str) -> str:
    """One HTML file with nothing to fetch. `title` and `body` are HTML: whoever calls made them inert."""
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n{_HEAD}\n<title>{title}</title>\n'
        f"<style>{style}</style>\n</head>\n<body>\n<main>\n{body}\n</main>\n</body>\n</html>\n"
    )


def table(caption: str, columns: Sequence[str], rows: Iterable[Sequence[str]], /, *, text: Sequence[int]) -> str:
    """A table of plain text. On a phone each row stands as a list, so that no number is off the screen.

    `text`: which columns are no numbers.
    """
    kinds = [' class="text"' if place in text else "" for place in range(len(columns))]
    head = "".join(f'<th scope="col"{kind}>{escape(name)}</th>' for name, kind in zip(columns, kinds, strict=True))
    body = "\n".join(_row(cells, columns, kinds) for cells in rows)
    label = escape(caption)
    return (
        f'<div class="wide" role="region" tabindex="0" aria-label="{label}"><table><caption>{label}</caption>'
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>"
    )


def minus(text: str, /) -> str:
    """`text` with the sign that is as wide as a plus; hyphens between letters stay."""
    return _NEGATIVE.sub("\u2212", text)


def _row(cells: Sequence[str], columns: Sequence[str], kinds: Sequence[str]) -> str:
    first, *rest = map(escape, cells)
    inner = "".join(
        f'<td{kind} data-name="{escape(name)}">{cell}</td>'
        for cell, name, kind in zip(rest, columns[1:], kinds[1:], strict=True)
    )
    return f'<tr><th scope="row">{first}</th>{inner}</tr>'

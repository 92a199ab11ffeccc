"""Finds the code in a Markdown text with markdown-it. What readers of Markdown may disagree about is not code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from itertools import accumulate

from markdown_it import MarkdownIt
from markdown_it.rules_inline import StateInline, backtick
from markdown_it.token import Token

Span = tuple[int, int]

_LONG = 8_000
"""Characters above which a text is not read: markdown-it takes quadratic time for some texts."""
_INDENTED = re.compile(r"^(?: {4}|\t).*$", re.MULTILINE)
_BLOCKS = ("fence", "html_block", "list", "blockquote", "heading", "lheading", "hr", "reference", "table", "code")
_INLINE = ("backticks", "escape", "link", "image", "autolink", "html_inline", "newline")


@lru_cache(maxsize=64)
def marked_code(text: str, /) -> tuple[Span, ...]:
    """The code of `text` between backticks or fence lines, in order of place, as far as two readings agree.

    One reading is CommonMark with tables. The other knows no lists, quotes, tables, links and HTML, because all of them
    can change what a backtick means.
    """
    if ("`" not in text and "~~~" not in text) or len(text) > _LONG:
        return ()
    full, plain = _readers()
    spans = _read(plain, text)
    return tuple(sorted(spans & _read(full, text))) if spans else ()


def exact_code(text: str, /) -> list[Span]:
    """Find code spans and every line that begins with four blanks or a tab, in order and without overlap."""
    spans = list[Span]()
    for start, stop in sorted((*marked_code(text), *(match.span() for match in _INDENTED.finditer(text)))):
        if spans and start <= spans[-1][1]:
            spans[-1] = (spans[-1][0], max(stop, spans[-1][1]))
        else:
            spans.append((start, stop))
    return spans


@cache
def _readers() -> tuple[MarkdownIt, MarkdownIt]:
    full = MarkdownIt("zero", {"html": True}).enable([*_BLOCKS, *_INLINE])
    plain = MarkdownIt("zero").enable(["fence", "backticks", "escape"])
    for reader in (full, plain):
        reader.inline.ruler.at("backticks", _backticks)
    return full, plain


def _backticks(state: StateInline, silent: bool) -> bool:
    """The rule of markdown-it, which also notes where the code stands."""
    start, count = state.pos, len(state.tokens)
    is_match = backtick(state, silent)
    if is_match and not silent and len(state.tokens) > count and state.tokens[-1].type == "code_inline":
        state.tokens[-1].meta["place"] = (start, state.pos)
    return is_match


def _read(reader: MarkdownIt, text: str) -> set[Span]:
    """The fenced blocks that are closed, and the code inside lines."""
    lines = [f"{line}\n" for line in text.split("\n")]
    starts = list(accumulate(map(len, lines), initial=0))
    spans = set[Span]()
    for token in reader.parse(text):
        if token.map is None:
            continue
        first, last = token.map
        if token.type == "fence" and last - first > 1 and _closes(lines[last - 1], token.markup):
            spans.add((starts[first], min(starts[last], len(text))))
        elif token.type == "inline":
            spans.update(_inline(token, lines[first:last], starts[first]))
    return spans


def _closes(line: str, mark: str) -> bool:
    return bool(re.fullmatch(rf" {{0,3}}{mark[0]}{{{len(mark)},}}[ \t]*\n", line))


def _inline(token: Token, lines: list[str], start: int) -> Iterator[Span]:
    """The code of a paragraph, as places in the text. The content of the token has its lines without their margins."""
    places = list[int]()
    for line, content in zip(lines, token.content.split("\n"), strict=False):
        if line.count(content) != 1 and content:
            return  # it could stand in either place
        at = start + line.find(content)
        places += range(at, at + len(content) + 1)
        start += len(line)
    for child in token.children or ():
        if place := child.meta.get("place"):
            yield places[place[0]], places[place[1] - 1] + 1

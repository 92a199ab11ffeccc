"""The form in which a lesson's words stand in a file: no line of it can be anything but a line of that lesson."""

from __future__ import annotations

import re
from typing import Final

from lessonbank.guard import canonical_line, one_line

_PASSES: Final = 5
_LIST: Final = re.compile(r"(?:[-*+]|(\d{1,9})[.)])\s+(?=\S)")
_OPENS: Final = re.compile(r"[#>|<=]|[-+*](?=\s|$)|-{2}|[*_]{3}|~{3}|:{3}|\+{3}|%{2}|\[[^\]]*\]:|(\d{1,9})[.)](?=\s|$)")
"""What begins a heading, a quotation, a table, a list, a rule, front matter, a fence or a definition."""
_OPEN_TAG: Final = re.compile(r"<(?=[a-zA-Z/!?][^<>]*$)")
"""A tag that would end in another line, of another lesson even."""
_COMMENT: Final = re.compile(r"<(?=!--)|--(?=>)")
_INCLUDED: Final = re.compile(r"(?<![\w.])@(?=[\w~./\\-])")
"""Coding agents put the file in the place of such a name: `@notes.md`."""
_COMMAND: Final = re.compile(r"!(?=`)")
"""Claude Code runs the code behind it before it reads a skill."""


def inert_line(text: str, /) -> str:
    """`text` as one line that no reader of Markdown, HTML, rules or skills acts upon. Applied again it changes nothing.

    Code between single backticks stays code, where all of it stands in this line.
    """
    text = one_line(text)
    for _ in range(_PASSES):
        if (again := _once(text)) == text:
            break
        text = again
    return text


def inert_lines(text: str, /) -> str:
    """Make a text of several lines inert: without blank ones, each a plain line or one of a simple list."""
    lines = [_outside(line) for line in map(inert_line, text.splitlines()) if line]
    if lines and lines[0].startswith(WHEN):
        lines[0] = lines[0].replace(":", " :", 1)  # or it would read as the field of that name
    return "\n".join(lines)


WHEN: Final = "When:"
"""How the line begins that says when to use a lesson."""


def _once(text: str) -> str:
    if not _is_paired(text):
        text = text.replace("`", "'")
    text = _COMMAND.sub("! ", _COMMENT.sub(lambda match: f"{match[0]} ", canonical_line(text)))
    text = _OPEN_TAG.sub("< ", text)
    return "`".join(part if at % 2 else _INCLUDED.sub("@ ", part) for at, part in enumerate(text.split("`")))


def _is_paired(text: str) -> bool:
    """Whether every reader takes the same of it for code, and none of what comes after it."""
    return text.count("`") % 2 == 0 and "``" not in text and "\\`" not in text


def _outside(line: str) -> str:
    """`line` with a backslash before what would begin a block of Markdown; one sign of a list may stay."""
    mark = _LIST.match(line)
    front = "" if mark is None else f"{mark[1]}. " if mark[1] else "- "
    rest = line[mark.end() :] if mark else line
    if opens := _OPENS.match(rest):
        rest = f"{opens[1]}\\{rest[len(opens[1]) :]}" if opens[1] else f"\\{rest}"
    return front + rest

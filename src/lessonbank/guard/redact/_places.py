"""Secrets that only their place gives away: in an address, a header, a cookie, on a command line."""

from __future__ import annotations

from collections.abc import Iterator

from ._rules import Rule, rules
from ._spans import Page, Span

_LINE = 160
"""Characters before an option in which its command is looked for."""


def places(page: Page, /) -> Iterator[Span]:
    """What the rules for places find, and passwords on a command line."""
    for rule in rules("place"):
        yield from rule(page)
    for rule in rules("option"):
        yield from passwords(rule, page)


def passwords(rule: Rule, page: Page, /) -> Iterator[Span]:
    """Values of an option, if one of its commands stands before it in the line."""
    for span in rule(page):
        line = page.low[max(0, span.start - _LINE) : span.start].rpartition("\n")[2]
        # The option `-p` of docker is one for ports, except when it logs in.
        if any(word in line for word in rule.keywords) and ("docker" not in rule.keywords or "login" in line):
            yield span

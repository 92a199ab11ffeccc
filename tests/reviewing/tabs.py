"""Pages of a site in a few tabs at once: each is looked at when nothing more is fetched, which takes half a second."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page

AT_ONCE = 6


def visited(context: BrowserContext, origin: str, addresses: Mapping[str, str], /) -> Iterator[tuple[str, Page]]:
    """The name of each address, and a tab that shows it and has gone quiet; the others wait meanwhile."""
    tabs = [context.new_page() for _ in range(min(AT_ONCE, len(addresses)))]
    left = iter(addresses.items())
    while shown := list(zip(tabs, islice(left, len(tabs)), strict=False)):
        for tab, (_, where) in shown:
            tab.goto(origin + where)
        for tab, (name, _) in shown:
            tab.wait_for_load_state("networkidle")
            yield name, tab
    for tab in tabs:
        tab.close()

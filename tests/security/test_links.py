"""No reader of Markdown makes a link or an image of the canonical form, however an address that leaves is spelled."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from lessonbank.guard import canonical

HOST = "evil.example"
SLASHES = (
    "//", "/\\", "\\/", "\\\\", "/\\\\", "\\/\\/", "/&#47;", "&#x2f;/", "/&sol;", "&sol;&sol;", "/&bsol;", "&bsol;/",
    "\\\\\\/", "///", "/\u200b/", "/&#92;", "/\\&#47;", "\uff0f\uff0f", "/\uff3c", "/%5c", "/&Tab;/", "/&NewLine;/",
    "&Tab;//", "/&#9;/",
)  # fmt: skip
SCHEMES = (
    "http://", "hTTps://", "javascript:", "JaVaScRiPt:", "javascript&colon;", "javascript&#58;", "&#106;avascript:",
    "java&Tab;script:", "javascript\\:", "data:text/html,", "data&colon;text/html,", "vbscript:", "\u00a0javascript:",
    "http&#58;//", "h\\ttp://", "x:/", "x://",
)  # fmt: skip
WRAPS = (
    "[a]({})", "[a]( {} )", "[a](<{}>)", "[a](\n<{}>\n'x')", "![a]({})", "<{}>", '<a href="{}">x', "[a]: {}\n\n[a]",
    "[a]:\n  <{}>\n\n[x][a]", "> [a]: {}\n\n[a]", "[a\\]]: {}\n\n[a\\]]", "| a |\n|---|\n| [a]({}) |", "\\\\[a]({})",
    "`[a]({})", "[](<{}>)", "[a](  \n  <{}>  \n)", "<{}\n>",
)  # fmt: skip
TARGETS = [f"{start}{HOST}" for start in (*SLASHES, *SCHEMES)]
_READER = MarkdownIt("commonmark", {"html": True}).enable("table")
_LEAVES = re.compile(r"\s*(?:[a-z][a-z0-9+.-]*:|[/\\][/\\])", re.IGNORECASE)


def targets(tokens: list[Token]) -> Iterator[str]:
    """What a page would link to or load, as a browser reads it."""
    for token in tokens:
        yield from (str(token.attrs[name]) for name in ("href", "src") if name in token.attrs)
        if token.type.startswith("html"):
            yield from re.findall(r"(?:href|src)=[\"']?([^\"'>\s]*)", token.content)
        yield from targets(token.children or [])


def leaves(target: str) -> bool:
    read = re.sub(r"%5c", "/", html.unescape(target), flags=re.IGNORECASE)
    return bool(_LEAVES.match(re.sub(r"[\t\n\r]|%09|%0[ad]", "", read)))


@pytest.mark.parametrize("wrap", WRAPS)
def test_no_target_that_leaves_the_page_is_live(wrap: str) -> None:
    live = []
    for target in TARGETS:
        form = canonical(wrap.replace("{}", target))
        assert canonical(form) == form
        live += [form for found in targets(_READER.parse(form)) if leaves(found)]
    assert live == []


def test_readers_that_break_the_rules_get_nothing_to_follow_either() -> None:
    """Some readers of Markdown know autolinks without a scheme, and addresses without anything around them."""
    for target in ("//evil.example", "/\\evil.example", "\\\\evil.example", "x://evil.example", "&sol;/evil.example"):
        assert canonical(f"<{target}>").startswith("< ")
    assert canonical("see www.evil.example") == "see www .evil.example"


def test_links_into_the_page_and_beside_it_stay() -> None:
    for text in ("[a](#part)", "[a](/docs/page.html)", "[a](../b.md)", "[a](b/c.md 'title')", "a </b> c", "x < //y"):
        assert canonical(text) == text

"""Finds links, images and HTML that a renderer would follow, load or run, so that they can be made inert."""

from __future__ import annotations

import re
from collections.abc import Iterator

# Elements that load, run, hide what follows or change how it is read; any other one counts once it has an attribute.
_ELEMENTS = (
    "script|style|iframe|frame(?:set)?|object|embed|applet|link|meta|base|img|image|svg|math|video|audio|source|track"
    "|picture|area|portal|form|template|no(?:script|embed|frames)|xmp|plaintext|listing|textarea|title|pre|bgsound|input"
)
_TAG = re.compile(
    rf"<(?=[a-z/!?])(?=/?(?:{_ELEMENTS})(?![\w-])|!(?:--|[a-z]|\[cdata\[)|\?"
    # an address between angle brackets, with any scheme; `std::string` is none
    r"|[a-z][a-z0-9+.-]{1,31}+:(?!:)|[a-z]:[/\\])|<(?=[/\\]{2}|[/\\]?&)",
    re.IGNORECASE,
)
_TAG_START = re.compile(r"<(?=[a-z])", re.IGNORECASE)
# A target that leaves the page: with a scheme, written out or hidden by an escape or an entity, or with two slashes.
# Browsers take backslashes for slashes, and what Markdown and they leave out between two slashes brings these together.
_LEAVES = r"\s*+<?\s*+(?:[^()\[\]\s<>:&\\/]{0,60}+[:&\\]|/\s*+(?:[/\\&]|%(?:5c|2f|0[9ad])))"
_LINK = re.compile(rf"\](?=\({_LEAVES})")
_IMAGE = re.compile(r"!(?=\[)")
_DEFINITION = re.compile(
    rf"^[ \t>*+.)\d-]{{0,20}}+\[(?:[^\[\]\\]|\\.){{1,300}}+\](?=:{_LEAVES})", re.MULTILINE | re.DOTALL
)


def _after(words: str) -> str:
    """A pattern for "after one of these words", also where a backslash stands before the colon."""
    return "|".join(rf"(?<={word}:)|(?<={word}\\:)" for word in words.split())


# Also with the backslashes and the entities that Markdown takes out before an address is looked for.
_ADDRESS = re.compile(
    rf":(?=\S)(?:(?=\\?/\\?/)(?:{_after('http https ftp file')})|(?:{_after('javascript vbscript')})"
    rf"|(?=[a-z]{{1,20}}/[\w.+-]{{1,60}}+[;,])(?:{_after('data')}))",
    re.IGNORECASE,
)
_HOST = re.compile(r"[Ww](?<![^\W_].)[Ww]{2}(?=\\?\.\w)")
_ENTITY = re.compile(r"&(?=#\w{1,8};|(?:colon|b?sol|period);)", re.IGNORECASE)
_ACTIVE = (("<", _TAG), ("](", _LINK), ("]:", _DEFINITION), (":", _ADDRESS), (".", _HOST), ("&", _ENTITY))
"""Patterns, each with a sign that all of its matches have."""


def links(seen: str, /) -> list[int]:
    """The places of `seen` (a shadow) where a blank makes a link, an image, an address or an active HTML tag inert.

    Examples: `https: //…`, `[x] (https: //…)`, `< img …>`.
    """
    places = [match.end() for sign, pattern in _ACTIVE if sign in seen for match in pattern.finditer(seen)]
    if "![" in seen and any(sign in seen for sign in ("](", "][", "]:")):
        places += [match.end() for match in _IMAGE.finditer(seen)]
    return [*places, *_tags_with_attributes(seen)] if "<" in seen and "=" in seen else places


def _tags_with_attributes(seen: str) -> Iterator[int]:
    """Where the name of a tag begins that has attributes: browsers take all for them up to the next `>`."""
    at = 0
    for part in seen.split(">"):
        for match in _TAG_START.finditer(part, 0, max(part.rfind("="), 0)):
            yield at + match.end()
        at += len(part) + 1

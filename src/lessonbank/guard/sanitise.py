"""Turns text that somebody else wrote into an inert form: people and models can read it, but it cannot act."""

from __future__ import annotations

import re
import secrets
from bisect import bisect_left

from lessonbank.contracts.lesson_block import between_markers

from ._characters import folded, plain, shadow, with_blanks
from ._chat_tokens import inner, speaks, turns
from ._links import links

SLOT = re.compile(r"<(?:[^\W\d_]|…)[^<>\n=\"]{0,160}>")
"""What stands in a lesson for a value of a run: `<order id from find_customer's result>`."""
_LONGEST_SLOT = 163
_CUT = " …[cut]"
_PROSE = bytes({*b"\n\t", *range(0x20, 0x7F)} - {*b"<[]&:"})
"""What neither changes nor is a sign without which `turns`, `inner` and `links` find nothing."""


def clean(text: str, /, *, limit: int | None = None) -> str:
    """`text` with every line break as `\\n`, no terminal sequence, and no control, format, private-use, surrogate,
    unassigned or invisible code point; marks piled up on a letter thinned out to four.

    The tokens, tags and line openings that chat templates separate turns with get a blank, `< |im_end|>`, `User :`:
    still readable, nothing any more. All else stays, so that what follows may still parse it. `limit` (characters)
    cuts the end off and says so. Linear in the length of `text`, and at most half as long again.
    """
    if limit is not None:
        text = _shortened(text, limit)
    if is_prose(text):
        return text
    text = plain(text)
    places = turns(text if text.isascii() else shadow(text))
    return with_blanks(text, places) if places else text


def canonical(text: str, /, *, limit: int | None = None) -> str:
    """The one form that text of a memory has: `clean`, and inert for every reader of Markdown and HTML.

    Outside code, what is another form of ASCII (full-width, mathematical letters, ligatures) becomes ASCII, letters
    with marks are composed, and links, images, addresses and active HTML get a blank: `https: //example.org`. Code
    between backticks or fence lines keeps its addresses and tags; it and indented lines keep their exact characters.

    `canonical(canonical(text))` is `canonical(text)`. Linear in the length of `text`, at most six times as long, and
    with `limit` at most `limit` characters and the seven that say that it was cut.
    """
    size = len(text) if limit is None else limit
    if len(text) <= size and is_prose(text):
        return text
    form = _form(text if len(text) <= size else _shortened(text, size))
    while limit and len(form) > limit + len(_CUT):
        size = size * limit // len(form)
        form = _form(_shortened(text, size))
    return form


def _form(text: str) -> str:
    text = plain(text)
    form = _inert(text, keep_code=True)
    if form != text and ("`" in form or "~~~" in form) and _inert(form, keep_code=True) != form:
        # The blanks have changed what is code. If nothing is code, the form is safe for every reader.
        return _inert(text, keep_code=False)
    return form


def _inert(text: str, *, keep_code: bool) -> str:
    from ._markdown_code import exact_code, marked_code  # noqa: PLC0415 - loads a parser that few texts need

    seen = text
    if not text.isascii():
        whole = folded(text)
        if whole != text:
            text = plain(_folded_outside(text, exact_code(text)) if keep_code else whole)
        seen = shadow(text)
    active = links(seen)
    if active and keep_code:
        edges = [edge for span in marked_code(text) for edge in span]
        active = [place for place in active if bisect_left(edges, place) % 2 == 0]  # odd: inside a span
    places = [*turns(seen), *inner(seen), *active]
    return with_blanks(text, places) if places else text


def _folded_outside(text: str, code: list[tuple[int, int]]) -> str:
    parts, done = list[str](), 0
    for start, stop in code:
        parts += (folded(text[done:start]), text[start:stop])
        done = stop
    return "".join((*parts, folded(text[done:])))


def is_prose(text: str, /) -> bool:
    """Whether `text` and every part of it is `canonical`, as a quick look tells: most lessons are such plain English.

    Text that is not prose may be canonical as well.
    """
    if not text.isascii():
        return False
    others = text.encode().translate(None, _PROSE)
    if others.strip(b":"):
        return False
    return not (others and speaks(text)) and "www" not in text.lower()


def _shortened(text: str, limit: int) -> str:
    if len(text) <= limit or (len(text) <= limit + len(_CUT) and text.endswith(_CUT)):
        return text
    near = SLOT.finditer(text, max(0, limit - _LONGEST_SLOT), limit + _LONGEST_SLOT)
    end = next((slot.start() for slot in near if slot.start() < limit < slot.end()), limit)
    return text[:end].rstrip() + _CUT


def canonical_line(text: str, /, *, limit: int | None = None) -> str:
    """`canonical` text with all white space folded to single blanks: fit for the title of a memory."""
    form = canonical(text, limit=limit)
    line = " ".join(form.split())
    return line if line == form else canonical(line)  # other blanks make other code, and another beginning of a line


def one_line(text: str, /, *, limit: int | None = None) -> str:
    """`clean` text with all white space folded to single blanks: fit for a title, a log line, a table cell."""
    form = clean(text, limit=limit)
    line = " ".join(form.split())
    return line if line == form else clean(line)


def nonce() -> str:
    """Eight random hex digits, which text that was written earlier cannot contain."""
    return secrets.token_hex(4)


def fence(text: str, /, *, label: str, nonce: str) -> str:
    """`text` between two marker lines that carry `nonce`; a copy of the nonce inside is blotted out first.

    Whoever wrote `text` before the nonce was drawn cannot close the fence.
    """
    inert = clean(text)
    inside = with_blanks(inert, inner(shadow(inert))).replace(nonce, "-" * len(nonce))
    return between_markers(inside, label=label, nonce=nonce)

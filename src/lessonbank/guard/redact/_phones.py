"""Finds telephone numbers: international ones anywhere, others only beside a word that says telephone.

What numbers there are in which country is Google's libphonenumber's to know (`phonenumbers`). It is asked about few
candidates, each of bounded length: its own search through a text takes a hundred times as long as ours.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from lessonbank._base.patterns import compiled

from ._numbers import telephone
from ._spans import Page, Span, positions

_END = r"(?![\w-])(?!\.\d)"
_BEGINS = {
    r"\+(?<![\w+.]\+)[1-9]": r"\+(?<![\w+.]\+)(?=[1-9])",
    r"00(?<![\w+.]00)[ \u00a0./(1-9-]": r"00(?<![\w+.]00)(?=[ ./-]?[1-9]\d{0,2}[ \u00a0.(/-])",
}
"""How a number from abroad begins: seldom, to be looked for in all words first; and in the text."""
_GAP = r"[ \u00a0./-]"
_BODY = re.compile(rf"\d{{1,15}}(?:{_GAP}?\(\d{{1,5}}\){_GAP}?\d{{1,8}}|{_GAP}\d{{1,8}}){{0,6}}{_END}")
_OUTGOING = re.compile(r"[ ./-]?")
_LAST_GROUP = re.compile(rf"{_GAP}?\(?\d+\)?\Z")
_TRIES = 6
"""Groups at its end without which a number is tried again: they may be the next number, or a date."""
_LEAST = 7
"""Digits of the shortest number."""
_ASKED = 40
"""Numbers of one page that libphonenumber is asked about, at some 0.1 ms each. In a text with more of them, what has
the form of a number is one."""
_WORDS = (
    "phone", "mobile", "tel", "tél", "teléfono", "fax", "whatsapp", "sms", "handy", "cell", "call", "dial", "reach",
    "тел", "电话", "電話", "手机", "手機", "携帯", "전화", "휴대폰",
)  # fmt: skip
_BESIDE = (
    r"(?:(?<![a-z](?=tel|fax|sms|handy))(?:phone|mobile|t[ée]l(?:efon)?|t[ée]l[ée]phone|tel[ée]fono|fax|whatsapp|sms|handy)"
    r"(?:[ _-]?(?:no|number|nr|num))?|(?<![a-z])cell(?:[ _-]?phone)?(?=[ ]?[:=#]|[ ]number| no\b)|(?<!\w)тел(?:ефон)?"
    r"|电话|電話(?:番号)?|手机|手機|携帯(?:電話)?|전화(?:번호)?|휴대폰"
    r"|(?<![a-z])(?:call|reach) (?:me|us|him|her|them) (?:at|on|under)"
    r"|(?<![a-z])(?:call|dial)(?= (?:1[ -])?\(?[2-9]\d{2}\)?[ .-]\d{3}[ .-]\d{4}))"
    r"[\"'.:：= #*_|\\()-]{0,12}?(?:(?:is|value) ?[:=]? ?[\"']?)?"
    rf"(?P<it>\(?\d{{1,5}}\)?(?:[ ./-]{{1,2}}\(?\d{{2,8}}\)?){{1,4}}|\d{{7,12}}){_END}"
)
_CELL = re.compile(r"[^|,;\t\n]+")
_HEADING = re.compile(
    r"[^\w]*(?:[a-z]+[ _-])?(?:(?:tele)?phone|telefon|t[ée]l|mobile|cell|fax|handy)(?:[^\w]|_)*[a-z]{0,7}\W*"
)
_IN_CELL = re.compile(rf"\(?\d{{1,5}}\)?(?:[ ./-]{{0,2}}\(?\d{{2,8}}\)?){{1,4}}{_END}")


def phones(page: Page, /) -> Iterator[Span]:
    """Telephone numbers: international, or beside a word that says so."""
    text, asks = page.text, iter(range(_ASKED))
    for rare, begins in _BEGINS.items():
        if compiled(rare).search(page.words):
            for sign in compiled(begins).finditer(text):
                if end := _end_abroad(text, sign.start(), sign.end(), asks):
                    yield _span(text, sign.start(), end)
    if not any(map(page.low_words.__contains__, _WORDS)):
        return
    for at in positions(page, _WORDS):
        if (named := compiled(_BESIDE).match(page.low, at)) and _LEAST <= sum(map(str.isdigit, named["it"])) <= 15:
            yield _span(text, *named.span("it"))
    yield from (_span(text, *place) for place in _under_headings(page.low))


def _under_headings(low: str) -> Iterator[tuple[int, int]]:
    """Numbers in a column of a table whose heading says telephone."""
    at, columns, width = 0, list[int](), 0
    for line in low.splitlines(keepends=True):
        cells = list(_CELL.finditer(line))
        if headings := [n for n, cell in enumerate(cells) if len(cell[0]) < 40 and _HEADING.fullmatch(cell[0])]:
            columns, width = headings, len(cells)
        elif len(cells) == width > 1:
            matches = [_IN_CELL.search(line, *cells[n].span()) for n in columns]
            yield from ((at + n.start(), at + n.end()) for n in matches if n and sum(map(str.isdigit, n[0])) >= _LEAST)
        elif line.strip():
            columns, width = [], 0
        at += len(line)


def _end_abroad(text: str, start: int, digits: int, asks: Iterator[int]) -> int | None:
    """Where the number from abroad ends that begins with a sign or zeros; `None` if it is none in any country."""
    if text[start] == "0":
        digits = _OUTGOING.match(text, digits).end()  # type: ignore[union-attr]  # it matches nothing, too
    body = _BODY.match(text, digits)
    if body is None:
        return None
    from ._countries import has_country, is_number  # noqa: PLC0415 - loads the numbers of all countries

    if not has_country(body[0]):
        return None
    number = body[0]
    doubtful = text[start] == "0" or text[max(0, start - 1) : start] == "\n"
    for _ in range(_TRIES):
        if _LEAST <= sum(map(str.isdigit, number)) <= 15 and is_number(number, asks, doubtful=doubtful):
            return digits + len(number)
        shorter = _LAST_GROUP.sub("", number)
        if shorter == number or not shorter:
            return None
        number = shorter
    return None


def _span(text: str, start: int, end: int) -> Span:
    return Span(start, end, "phone", telephone(re.sub(r"\D", "", text[start:end])))

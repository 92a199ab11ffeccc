"""Finds personal data by its form. A number alone is not enough: its check sum or the text around it must agree.

The sums are our own few lines: python-stdnum (LGPL) checks numbers, but finds none in a text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from lessonbank._base.patterns import compiled

from ._phones import phones
from ._rules import iban_lengths
from ._spans import Detector, Page, Span, found_on

_CARD = (
    r"[2-6](?<![\w.$-][2-6])(?<!\d[ -][2-6])\d{3}"
    r"(?P<gap>[ \t-]?)\d{4,6}(?P=gap)\d{4,5}(?:(?P=gap)\d{1,4})?(?![\w-])(?!\.\d)"
)
_CARDS = (b"0" * 12, *(b"0000-%b-0000" % (b"0" * digits) for digits in (4, 5, 6)))
"""How the digits of a card begin. A shape has one `0` for each digit and `-` for each blank."""
_BRANDS = re.compile(
    r"4\d{15}|5[1-5]\d{14}|2[2-7]\d{14}|3[47]\d{13}|6(?:011|5\d\d|4[4-9]\d)\d{12}|35(?:2[89]|[3-8]\d)\d{12}|62\d{14}"
)
_COUNTRY = r"[A-Z](?<![A-Za-z0-9][A-Z])[A-Z](?=\d{2})"
_IBAN = rf"{_COUNTRY}\d{{2}}[ \t-]?(?=[A-Z0-9]{{4}})"
_LETTER = re.compile(r"[^\W\d]")
_SEVEN_DIGITS = re.compile(r"(?:\d\D*+){7}")
"""As many as the shortest number of anybody has."""
_AT = re.compile(r"@(?<=[\w.%+'-]@)(?=[^\W_])")
_LOCAL = re.compile(r"[\w.%+'-]+")
_HOST = re.compile(r"(?:[^\W_][\w-]{0,62}\.){1,8}(?P<top>[^\W\d_]{2,24})(?![\w-])")
_FILES = (
    "service socket target timer slice mount scope device png jpg jpeg gif svg webp ico css js mjs ts jsx tsx py rb go "
    "rs java php html htm json xml yaml yml toml txt md lock tgz tar gz zip log conf cfg ini so dll exe whl jar local "
    "localhost"
)
_NO_TOP = frozenset(re.findall(r"\w+", _FILES))
_PASSWORD_BEFORE = re.compile(r"://[^\s/@]{0,80}:\Z")
_NUMBERED = re.compile(r"\d*[.'%+-]+|")
"""A line's number before a decorator, as `grep -n` prints it."""
_NOBODY = frozenset(("git", "hg", "svn", "ssh"))
_LOGINS = ("ssh", "sftp", "mosh", "://")
_COMMAND = r"(?:(?<![\w.@-])|(?<=\\[nrt]))"
_LOGIN = re.compile(
    rf"{_COMMAND}(?:ssh|sftp|autossh|mosh|ssh-copy-id)[\"']?,?"
    r"(?:\s{1,3}[\"']?-[\w-]+(?:[\"'],)?"
    r"(?:[ =](?!-)(?:\[[a-z -]+ \d+\]|\"[^\"\n]*\"|'[^'\n]*'|[^\s\"'|;&@]+@?[^\s\"'|;&@]*))?[\"']?,?)*+"
    r"\s{1,3}[\"']?\Z|(?:ssh|sftp|scp|rsync|git)://\Z"
)
"""What stands before an account on another machine: the command and its options, or the scheme of an address."""
_COPY = re.compile(
    rf"{_COMMAND}(?:scp|rsync|git\s(?:[^\n|;&]*\s)?"
    r"(?:clone|fetch|pull|push|remote|ls-remote|archive|submodule|subtree))\s(?:[^\n|;&]*[\s=\"'])?\Z"
)
_PATH_BEHIND = re.compile(r":(?=\S|[ \t]*(?:\n|\Z))")
_LINE = 160
"""Characters before an account in which its command is looked for."""

_SOCIAL = r"(?<![\w-])(?!000|666|9)\d{3}(?P<gap>[ -]?)(?!00)\d{2}(?P=gap)(?!0000)\d{4}(?![\w-])"
_SOCIALS = (b"000000000", b"000-00-0000")
_INSURED = re.compile(r"(?i)\bssn|social[ _-]?security|(?<![a-z])ssn")


def cards(page: Page, /) -> Iterator[Span]:
    """Payment cards: a brand's first digits and length, and the Luhn sum (ISO/IEC 7812)."""
    for match in compiled(_CARD).finditer(page.text):
        digits = re.sub(r"\D", "", match[0])
        if _BRANDS.fullmatch(digits) and _luhn(digits):
            yield Span(*match.span(), "card", digits)


def _luhn(digits: str) -> bool:
    doubled = (sum(divmod(2 * int(d), 10)) if odd % 2 else int(d) for odd, d in enumerate(reversed(digits)))
    return sum(doubled) % 10 == 0


def accounts(page: Page, /) -> Iterator[Span]:
    """Bank accounts: a country's length, and the remainder modulo 97 (ISO 13616)."""
    if iban_lengths().keys().isdisjoint(compiled(_COUNTRY).findall(page.words)):
        return
    for match in compiled(_IBAN).finditer(page.text):
        length = iban_lengths().get(match[0][:2])
        end = _end_of(page.text, match.start(), length) if length else None
        if end and _is_account(number := re.sub("[ \t-]", "", page.text[match.start() : end])):
            yield Span(match.start(), end, "iban", number)


def _end_of(text: str, start: int, length: int) -> int | None:
    """Where `length` letters and digits from `start` end, single blanks and hyphens among them not counted."""
    body = compiled(rf"(?:[A-Z0-9][ \t-]?){{{length - 1}}}[A-Z0-9](?![A-Za-z0-9])").match(text, start)
    return body.end() if body else None


def _is_account(number: str) -> bool:
    turned = number[4:] + number[:4]
    return int("".join(str(int(c, 36)) for c in turned)) % 97 == 1


def addresses(page: Page, /) -> Iterator[Span]:
    """E-mail addresses. Files, services and packages are written with the sign, too."""
    text = page.text
    works_elsewhere = any(word in page.low_words for word in (*_LOGINS, "scp", "rsync", "git"))
    for sign in _AT.finditer(text):
        host = _HOST.match(text, sign.end())
        start = _start_of_mail(text, sign.start()) if host else 0
        if not host or not _is_mail(text[start : sign.start()], host):
            continue
        if not _behind_a_password(text, start) and not (works_elsewhere and _is_login(text, start, host.end())):
            yield Span(start, host.end(), "e-mail", text[start : host.end()].casefold())


def _behind_a_password(text: str, start: int) -> bool:
    """`://user:password@host` is no address of a person."""
    return text[start - 1 : start] == ":" and bool(_PASSWORD_BEFORE.search(text, max(0, start - 99), start))


def _is_login(text: str, start: int, end: int) -> bool:
    """`ssh user@host` and `scp file user@host:path` say where to work, not whom to write to."""
    line = text[max(0, start - _LINE) : start].rpartition("\n")[2]
    if text[end : end + 1] == ":" and _PATH_BEHIND.match(text, end) and _COPY.search(line):
        return True
    # Of several commands in a line the last one is the account's, or the one before it: `ssh -i ~/.ssh/id`.
    last = max(map(line.rfind, _LOGINS))
    if last < 0:
        return False
    before = max(line.rfind(word, 0, last) for word in _LOGINS)
    return bool(_LOGIN.search(line, max(0, (before if before >= 0 else last) - len("auto"))))


def _start_of_mail(text: str, at: int) -> int:
    """Where the part before the sign begins; the letter of an escaped line break does not belong to it."""
    local = _LOCAL.match(text[max(0, at - 64) : at][::-1])
    start = at - len(local[0].rstrip(".'-%")) if local else at
    return start + 1 if text[max(0, start - 1) : start + 1] in ("\\n", "\\r", "\\t") else start


def _is_mail(local: str, host: re.Match[str]) -> bool:
    name, _, top = host[0].lower().rpartition(".")
    return bool(_LETTER.search(name)) and top not in _NO_TOP and local not in _NOBODY and not _NUMBERED.fullmatch(local)


def social_numbers(page: Page, /) -> Iterator[Span]:
    """US social security numbers that may have been issued, near a word that says so."""
    if not any(map(page.shape.__contains__, _SOCIALS)):
        return
    for match in compiled(_SOCIAL).finditer(page.text):
        if _INSURED.search(page.text, max(0, match.start() - 48), match.end() + 24):
            yield Span(*match.span(), "ssn", re.sub(r"\D", "", match[0]))


PERSONAL = (
    Detector(cards, "shape", _CARDS),
    Detector(accounts, "shape", (b"00",)),
    Detector(addresses, signs=("@",)),
    Detector(phones, "shape", (b"0",)),
    Detector(social_numbers, "low_words", ("ssn", "social")),
)
"""Everything above, and telephone numbers."""


def personal_in(text: str, /) -> list[Span]:
    """The personal data in a text that has a form: for lessons, which say more of a person than these."""
    return found_on(Page(text), PERSONAL) if "@" in text or _SEVEN_DIGITS.search(text) else []

"""Secrets that only their place gives away: in an address, a header, a cookie, a command line."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from ._spans import Detector, Page, Span, compiled
from ._words import expression, harmless, random_looking


@dataclass(frozen=True, slots=True)
class Place:
    """Where a secret stands; the group `it` is the secret. `words` are looked for in small letters."""

    kind: str
    words: tuple[str, ...]
    source: str
    holds: Callable[[str], bool]

    def __call__(self, page: Page, /) -> Iterable[Span]:
        low = page.low
        for word in self.words:
            if word in low:
                return self._found(page.text)
        return ()

    def _found(self, text: str) -> Iterator[Span]:
        for found in compiled(self.source).finditer(text):
            if len(found["it"]) > 2 and not harmless(found["it"]) and self.holds(found["it"]):
                yield Span(*found.span("it"), self.kind, found["it"], typed=False)


def _any(value: str) -> bool:
    return not value.startswith("-") and not expression(value)


def _token(value: str) -> bool:
    return random_looking(value) or (len(value) >= 24 and value.isalnum())


def _pair(value: str) -> bool:
    """Whether `value` is a name and a password in base64, as basic authentication sends them."""
    try:
        return b":" in base64.b64decode(value + "=" * (-len(value) % 4), validate=True)
    except (binascii.Error, ValueError):
        return False


_WORD = r"[^\s\"'`<>|;&\\]"

_OPTIONS = (
    (("mysql", "mariadb"), rf"(?<=\s)-p(?P<it>{_WORD}{{4,200}})"),
    (("redis-cli",), rf"(?<=\s)-a[ \t]{{1,4}}[\"']?(?P<it>{_WORD}{{3,200}})"),
    (("docker", "podman", "helm"), rf"(?<=\s)-p[ \t]{{1,4}}[\"']?(?P<it>(?!\d+:\d){_WORD}{{3,200}})"),
    (
        ("curl", "wget", "http"),
        rf"(?<=\s)(?:-u|--user|-a|--auth)[ =]?[\"']?[^\s:\"'=]{{1,64}}:(?P<it>{_WORD}{{3,200}})",
    ),
)
"""Options whose value is a password only behind these commands."""


def options(page: Page, /) -> Iterator[Span]:
    """Passwords on a command line, found by the option, because the command may stand far before it."""
    for commands, source in _OPTIONS:
        if not any(command in page.low for command in commands):
            continue
        for found in compiled(source).finditer(page.text):
            line = page.low[max(0, found.start() - 160) : found.start()].rpartition("\n")[2]
            if _asks(commands, line) and _any(found["it"]) and not harmless(found["it"]):
                yield Span(*found.span("it"), "password", found["it"], typed=False)


DETECTORS: tuple[Detector, ...] = (
    Place("password", ("://",), r"(?<=://)[^\s/:@\"'<>\\]{0,100}:(?P<it>[^\s/\"'<>\\]{1,200})@", _any),
    Place(
        "password",
        ("postgres", "mysql", "mongodb", "amqp", "redis", "mssql", "sqlserver", "jdbc"),
        r"(?i:postgres(?:ql)?|mysql|mongodb|amqps?|rediss?|mssql|sqlserver)(?:\+[a-z0-9]{1,16})?://"
        r"[^\s/:@\"'<>\\]{0,100}:(?P<it>[^\s\"'<>\\]{1,200})@(?=[\w.\[-])",
        _any,
    ),
    Place(
        "token",
        ("authorization",),
        r"(?i:authorization)\\{0,3}[\"']?\s{0,4}[:=,]\s{0,4}\\{0,3}[\"']?"
        r"(?i:(?:basic|bearer|token|api-?key|negotiate|key)\s{1,4})?(?P<it>[^\s\"'\\,;<>{}()]{8,})",
        _token,
    ),
    Place(
        "token",
        ("authorization",),
        r"(?i:authorization\W{1,8}(?:bearer|token|key))\s{1,4}(?P<it>[^\s\"'\\,;<>{}()]{6,})",
        _any,
    ),
    Place("token", ("bearer",), r"(?<![A-Za-z])(?i:bearer)\s{1,4}(?P<it>[A-Za-z0-9._~+/-]{12,}={0,2})", _token),
    Place("password", ("basic",), r"(?<![A-Za-z])(?i:basic)\s{1,4}(?P<it>[A-Za-z0-9+/]{8,}={0,2})", _pair),
    Place(
        "cookie",
        ("cookie",),
        r"(?<!set-)(?<!Set-)(?i:cookies?)\\{0,3}[\"']?[ \t]{0,4}[:=][ \t]{0,4}\\{0,3}[\"']?"
        r"(?P<it>[\w!#$%&*+.^|~-]{1,64}=[^\s;\"'\\<>]{4,}(?:;[ ]?[\w!#$%&*+.^|~-]{1,64}=[^\s;\"'\\<>]*)*+)",
        _any,
    ),
    Place(
        "cookie",
        ("set-cookie",),
        r"(?i:set-cookie)\\{0,3}[\"']?[ \t]{0,4}[:=][ \t]{0,4}\\{0,3}[\"']?"
        r"[\w!#$%&*+.^|~-]{1,64}=(?P<it>[^\s;\"'\\<>]{4,})",
        _any,
    ),
    Place(
        "token",
        ("sig", "token"),
        r"[?&](?:sig|[Ss]ignature|X-[A-Za-z]{3,4}-(?:Signature|Security-Token))=(?P<it>[^&\s\"'<>\\]{16,})",
        _any,
    ),
    Place(
        "password",
        ("--",),
        r"(?<![\w-])--(?:[a-z0-9]{1,20}-){0,3}(?:password|passwd|pass|passphrase|pwd)(?:[ =]|\s\\\n\s*)"
        rf"[\"']?(?P<it>{_WORD}{{3,200}})",
        _any,
    ),
    Place(
        "token",
        ("--",),
        r"(?<![\w-])--(?:[a-z0-9]{1,20}-){0,3}(?:token|secret|api-?key|access-key|secret-key)[ =]"
        rf"[\"']?(?P<it>{_WORD}{{6,}})",
        _any,
    ),
    Place("cookie", ("--cookie",), r"(?<![\w-])--cookie[ =][\"']?(?P<it>[\w.-]{1,64}=[^\s\"'\\<>]{4,})", _any),
    Place("password", ("sshpass",), rf"sshpass[ \t]{{1,4}}-p[ \t]{{0,4}}[\"']?(?P<it>{_WORD}{{3,200}})", _any),
    Place("password", ("pass:",), rf"-pass(?:in|out)?[ \t]{{1,4}}pass:(?P<it>{_WORD}{{3,200}})", _any),
    options,
)  # fmt: skip
_WORDS = frozenset(
    word
    for words in (*(each.words for each in DETECTORS if isinstance(each, Place)), *(words for words, _ in _OPTIONS))
    for word in words
)
_NEEDED = tuple(sorted(word for word in _WORDS if not any(other in word for other in _WORDS - {word})))
"""Words of which one is in every text that one of the detectors finds something in."""


def promising(page: Page, /) -> Sequence[Detector]:
    """The detectors that may find something: none where no word of any of them is there."""
    low = page.low
    for word in _NEEDED:
        if word in low:
            return DETECTORS
    return ()


def _asks(commands: tuple[str, ...], line: str) -> bool:
    """Whether one of the commands stands in the line, and for those that have the option for ports, to log in."""
    return any(command in line for command in commands) and (commands[0] != "docker" or "login" in line)

"""Rules that find a secret by its form or by what stands before it. They are data: `rules.toml`."""

from __future__ import annotations

import base64
import binascii
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ._spans import Page, Span, compiled
from ._words import expression, harmless, random_looking

_LINE = 160
"""Characters before an option in which its command is looked for."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of the file, which says what the fields mean."""

    kind: str
    keywords: tuple[str, ...]
    regex: str
    check: str = ""
    typed: bool = True
    """Whether the form alone gives the secret away. If not, the keywords are in lower case."""

    def __call__(self, page: Page, /) -> Iterable[Span]:
        """What the rule finds in a text that has one of its keywords."""
        text = page.text if self.typed else page.low
        for keyword in self.keywords:  # a plain loop: dozens of rules ask this of every text
            if keyword in text:
                return self.search(page.text)
        return ()

    def search(self, text: str, /) -> Iterator[Span]:
        """What the rule finds, whether a keyword is there or not."""
        pattern = compiled(self.regex)
        group = pattern.groupindex.get("secret", 0)
        for found in pattern.finditer(text):
            if found[group] and (not self.check or _CHECKS[self.check](found)):
                yield Span(*found.span(group), self.kind, found[group], self.typed)


@cache
def rules(table: str, /) -> tuple[Rule, ...]:
    """The rules of one table."""
    typed = table == "key"
    return tuple(
        Rule(row["kind"], tuple(row["keywords"]), row["regex"], row.get("check", ""), typed) for row in _file()[table]
    )


def places(page: Page, /) -> Iterator[Span]:
    """Secrets that only their place gives away: in an address, a header, a cookie, on a command line."""
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


@cache
def cut_off_secret() -> re.Pattern[str]:
    """How a text ends that was cut off inside a secret."""
    return re.compile(rf"(?<![A-Za-z0-9])(?:{'|'.join(_file()['cut_off']['regexes'])})\Z")


@cache
def iban_lengths() -> dict[str, int]:
    """Characters of an international bank account number, by country."""
    return {country: int(length) for length, countries in _file()["iban"].items() for country in countries}


@cache
def _file() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("rules.toml").read_text(encoding="utf-8"))


def _is_mixed(found: re.Match[str]) -> bool:
    """A name such as `sk-learn-contrib-names` has a key's prefix, but not its digits and capitals."""
    body = found[0]
    return any(c.isdigit() for c in body) and (any(c.isupper() for c in body) or bool(re.search("[0-9a-f]{24}", body)))


def _is_jwt(found: re.Match[str]) -> bool:
    """The first part is the JSON of a header. The pattern matches the first part alone, too, to stay linear."""
    if found["rest"] is None:
        return False
    head = found["head"][:400]
    try:
        return base64.urlsafe_b64decode(head[: len(head) // 4 * 4]).lstrip()[:1] == b"{"
    except binascii.Error:
        return False


def _is_value(found: re.Match[str]) -> bool:
    """Whether the secret is a value and neither a placeholder, an option nor code."""
    value = found["secret"]
    return len(value) > 2 and not harmless(value) and not value.startswith("-") and not expression(value)


def _is_token(found: re.Match[str]) -> bool:
    value = found["secret"]
    return not harmless(value) and (random_looking(value) or (len(value) >= 24 and value.isalnum()))


def _is_basic(found: re.Match[str]) -> bool:
    """Whether the secret is a name and a password in base64, as basic authentication sends them."""
    value = found["secret"]
    try:
        return not harmless(value) and b":" in base64.b64decode(value + "=" * (-len(value) % 4), validate=True)
    except (binascii.Error, ValueError):
        return False


_CHECKS: dict[str, Callable[[re.Match[str]], bool]] = {
    "mixed": _is_mixed,
    "digits": lambda found: any(map(str.isdigit, found[0])),
    "jwt": _is_jwt,
    "value": _is_value,
    "token": _is_token,
    "basic": _is_basic,
}

"""Finds secrets by their form or their place. The rules are data, and `rules.toml` says what they mean.

A rule is tried only where one of its words stands, so that a hundred of them cost a text a few passes over it.
"""

from __future__ import annotations

import base64
import binascii
import re
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from lessonbank._base.patterns import compiled
from lessonbank._base.tables import read_once

from ._spans import Page, Span, places
from ._words import expression, harmless, is_unpronounceable, looks_like_password, random_looking

_LINE = 160
"""Characters before an option in which its command is looked for."""
_SESSION = re.compile(r"(?i)sess|sid|auth|token|jwt|csrf|xsrf|login|user|uid|\bid\b|key|secret|remember|account")
_DATABASE = re.compile(r"(?i:postgres(?:ql)?|mysql|mongodb|amqps?|rediss?|mssql|sqlserver)(?:\+[a-z0-9]{1,16})?\Z")


@dataclass(frozen=True, slots=True)
class Rule:
    """One row of the file."""

    kind: str
    words: tuple[str, ...]
    rest: str
    check: str = ""
    before: int = 0
    commands: tuple[str, ...] = ()
    typed: bool = True
    """Whether the form alone gives the secret away. If not, the words are in lower case."""

    def at(self, word: str, page: Page, /) -> Iterator[Span]:
        """What the rule finds behind each place of a word."""
        text, rest = page.text, compiled(self.rest)
        group = rest.groupindex.get("secret", 0)
        glued, done = word[0].isalnum() and not self.before, 0
        for at in places(text if self.typed else page.low, word):
            if at < done or (glued and at and text[at - 1].isascii() and text[at - 1].isalnum()):
                continue
            match = rest.match(text, at + len(word))
            done = match.end() if match else done  # what was read once is not read again from its middle
            if match and (not self.check or _CHECKS[self.check](match, at)) and self._is_asked(page, at):
                start = match.start(group) if group else at - self.before
                yield Span(start, match.end(group), self.kind, text[start : match.end(group)], self.typed)

    def _is_asked(self, page: Page, at: int) -> bool:
        """Whether one of the commands stands before it in the line. `docker -p` is an option for ports."""
        if not self.commands:
            return True
        line = page.low[max(0, at - _LINE) : at].rpartition("\n")[2]
        return any(word in line for word in self.commands) and ("docker" not in self.commands or "login" in line)


@cache
def rules(table: str, /) -> tuple[Rule, ...]:
    """The rules of one table."""
    return tuple(_rule(table, *row) for row in _file()[table])


@cache
def _asked(table: str) -> tuple[tuple[str, Rule], ...]:
    """Every word of a table with its rule."""
    return tuple((word, rule) for rule in rules(table) for word in rule.words)


def _rule(table: str, kind: str, words: str, rest: str, check: str | int = "", commands: str = "") -> Rule:
    named, before = ("", check) if isinstance(check, int) else (check, 0)
    return Rule(kind, tuple(words.split()), rest, named, before, tuple(commands.split()), table == "keys")


def ruled(page: Page, /) -> Iterator[Span]:
    """Find what the rules find: keys by their form, other secrets by their place."""
    for table, text in (("keys", page.keys), ("places", page.low_words), ("options", page.low_words)):
        for word, rule in [asked for asked in _asked(table) if asked[0] in text]:
            yield from rule.at(word, page)


def holds_key(text: str, /) -> bool:
    """Whether `text` holds a key whose form alone gives it away."""
    return any(span.typed for span in ruled(Page(text)))


@cache
def cut_off_secret() -> re.Pattern[str]:
    """How a text ends that was cut off inside a secret."""
    begun = (
        rf"(?:{'|'.join(map(re.escape, rule.words))})[\w.=+/~-]{{{_third(rule.rest)},}}"
        for rule in rules("keys")
        if not rule.before and len(rule.words[0]) > 1
    )
    return re.compile(rf"(?:(?<![A-Za-z0-9])|(?=[^A-Za-z0-9]))(?:{'|'.join((*begun, *_file()['cut_off']))})\Z")


def _third(rest: str) -> int:
    """A third of the characters that a rule asks for at least."""
    return max(6, sum(map(int, re.findall(r"\{(\d+)", rest))) // 3)


@cache
def iban_lengths() -> dict[str, int]:
    """Characters of an international bank account number, by country."""
    return {country: int(length) for length, countries in _file()["iban"].items() for country in countries}


@read_once
def _file() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("rules.toml").read_text(encoding="utf-8"))


def _is_mixed(match: re.Match[str], _: int) -> bool:
    """A name such as `sk-learn-contrib-names` has a key's beginning, but not its digits and capitals."""
    body = match[0]
    return any(c.isdigit() for c in body) and (any(c.isupper() for c in body) or bool(re.search("[0-9a-f]{24}", body)))


def _is_jwt(match: re.Match[str], at: int) -> bool:
    """The first part is the JSON of a header. The rule matches the first part alone, too, to stay linear."""
    if match["rest"] is None:
        return False
    head = match.string[at : match.end("head")][:400]
    try:
        return base64.urlsafe_b64decode(head[: len(head) // 4 * 4]).lstrip()[:1] == b"{"
    except ValueError:  # letters of other alphabets, or none that base64 has
        return False


def _is_value(match: re.Match[str], _: int) -> bool:
    """Whether the secret is a value and neither a placeholder, an option nor code."""
    value = match["secret"]
    if len(value) < 3 or harmless(value) or harmless(value.rstrip("]:,)}")):
        return False
    return not value.startswith("-") and not expression(value)


def _is_token(match: re.Match[str], _: int) -> bool:
    value = match["secret"]
    return not harmless(value) and (random_looking(value) or (len(value) >= 24 and value.isalnum()))


def _is_basic(match: re.Match[str], _: int) -> bool:
    """Whether the secret is a name and a password in base64, as basic authentication sends them."""
    value = match["secret"]
    try:
        return not harmless(value) and b":" in base64.b64decode(value + "=" * (-len(value) % 4), validate=True)
    except (binascii.Error, ValueError):
        return False


def _is_cookie(match: re.Match[str], at: int) -> bool:
    """Whether one of the cookies may be a session's: `theme=dark` is none."""
    pairs = [f"{match['name']}={match['secret']}"] if "name" in match.groupdict() else match["secret"].split(";")
    cookies = (pair.strip().partition("=") for pair in pairs)
    return _is_value(match, at) and any(
        bool(_SESSION.search(name)) or random_looking(value) or is_unpronounceable(value) for name, _, value in cookies
    )


_CHECKS: dict[str, Callable[[re.Match[str], int], bool]] = {
    "mixed": _is_mixed,
    "digits": lambda match, _: any(map(str.isdigit, match[0])),
    "jwt": _is_jwt,
    "value": _is_value,
    "looks_like_password": lambda match, at: _is_value(match, at) and looks_like_password(match["secret"]),
    "database": lambda match, at: bool(_DATABASE.search(match.string, max(0, at - 32), at)) and _is_value(match, at),
    "token": _is_token,
    "basic": _is_basic,
    "cookie": _is_cookie,
}

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
from string import ascii_letters, digits
from typing import Any

from ._spans import Page, Span, compiled, places
from ._words import expression, harmless, random_looking, unspeakable, wilful

_SIGNS = (":", "://")
"""Words of rules that cannot overlap themselves, and have no letters of either case."""
_LINE = 160
"""Characters before an option in which its command is looked for."""
_HEAD = 3
_BEGINS = re.compile(f"([A-Za-z0-9]{{1,{_HEAD}}})[A-Za-z0-9]*")
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

    def __call__(self, page: Page, /) -> Iterator[Span]:
        """What the rule finds."""
        for word in self.words:
            if word in (page.keys if self.typed else page.low):
                yield from self.at(word, page)

    def may_find(self, word: str, page: Page, /) -> bool:
        """Whether it can find something behind `word`, by the words of the text without what stands between them."""
        if self.commands:
            return f" {word}" in page.said and any(command in page.said for command in self.commands)
        return not self.typed or "\\s" in self.rest or bool(self._behind(word).search(page.keys))

    def _behind(self, word: str) -> re.Pattern[str]:
        return compiled(f"{re.escape(word)}(?:{self.rest})")

    def at(self, word: str, page: Page, /) -> Iterator[Span]:
        """What the rule finds behind each place of a word."""
        text, rest = page.text, compiled(self.rest)
        group = rest.groupindex.get("secret", 0)
        glued, done = word[0].isalnum() and not self.before, 0
        for at in self._tried(word, page):
            if at < done or (glued and at and text[at - 1].isascii() and text[at - 1].isalnum()):
                continue
            found = rest.match(text, at + len(word))
            done = found.end() if found else done  # what was read once is not read again from its middle
            if found and (not self.check or _CHECKS[self.check](found, at)) and self._is_asked(page, at):
                start = found.start(group) if group else at - self.before
                yield Span(start, found.end(group), self.kind, text[start : found.end(group)], self.typed)

    def _tried(self, word: str, page: Page) -> Iterator[int]:
        """Where `word` stands, and for a sign that stands everywhere only where the rest follows it, too."""
        if word in _SIGNS:
            return (found.start() for found in self._behind(word).finditer(page.text))
        return places(page.text if self.typed else page.low, word)

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


def _rule(table: str, kind: str, words: str, rest: str, check: str | int = "", commands: str = "") -> Rule:
    named, before = ("", check) if isinstance(check, int) else (check, 0)
    return Rule(kind, tuple(words.split()), rest, named, before, tuple(commands.split()), table == "keys")


@cache
def _by_head() -> dict[str, list[tuple[str, Rule]]]:
    """The rules for keys by how their words begin: at most three letters and digits, or the first sign; by `""` those
    to be looked for one by one."""
    heads: dict[str, list[tuple[str, Rule]]] = {}
    for rule in rules("keys"):
        for word in rule.words:
            stands_first = len(word) >= _HEAD and word[0].isalnum() and not rule.before
            head = _BEGINS.findall(word)[0] if stands_first else word[0].strip(ascii_letters + digits)
            heads.setdefault(head, []).append((word, rule))
    return heads


@cache
def _by_word() -> dict[str, list[tuple[str, Rule]]]:
    """The other rules by the shortest of their words that each word contains: where it is not, no longer one is."""
    every = [(word, rule) for table in ("places", "options") for rule in rules(table) for word in rule.words]
    roots: dict[str, list[tuple[str, Rule]]] = {}
    for word, rule in every:
        roots.setdefault(min((part for part, _ in every if part in word), key=len), []).append((word, rule))
    return roots


def ruled(page: Page, /) -> Iterator[Span]:
    """Find what the rules find: keys by their form, other secrets by their place."""
    begun = set(_BEGINS.findall(page.keys))
    for head, longer in _by_head().items():
        if head in begun or (not head.isalnum() and head in page.keys):
            for word, rule in longer:
                if word in page.keys and rule.may_find(word, page):
                    yield from rule.at(word, page)
    for root, longer in _by_word().items():
        if root in page.said:
            for word, rule in longer:
                if word in page.said and rule.may_find(word, page):
                    yield from rule.at(word, page)


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


@cache
def _file() -> dict[str, Any]:
    return tomllib.loads(Path(__file__).with_name("rules.toml").read_text(encoding="utf-8"))


def _is_mixed(found: re.Match[str], _: int) -> bool:
    """A name such as `sk-learn-contrib-names` has a key's beginning, but not its digits and capitals."""
    body = found[0]
    return any(c.isdigit() for c in body) and (any(c.isupper() for c in body) or bool(re.search("[0-9a-f]{24}", body)))


def _is_jwt(found: re.Match[str], at: int) -> bool:
    """The first part is the JSON of a header. The rule matches the first part alone, too, to stay linear."""
    if found["rest"] is None:
        return False
    head = found.string[at : found.end("head")][:400]
    try:
        return base64.urlsafe_b64decode(head[: len(head) // 4 * 4]).lstrip()[:1] == b"{"
    except ValueError:  # letters of other alphabets, or none that base64 has
        return False


def _is_value(found: re.Match[str], _: int) -> bool:
    """Whether the secret is a value and neither a placeholder, an option nor code."""
    value = found["secret"]
    if len(value) < 3 or harmless(value) or harmless(value.rstrip("]:,)}")):
        return False
    return not value.startswith("-") and not expression(value)


def _is_token(found: re.Match[str], _: int) -> bool:
    value = found["secret"]
    return not harmless(value) and (random_looking(value) or (len(value) >= 24 and value.isalnum()))


def _is_basic(found: re.Match[str], _: int) -> bool:
    """Whether the secret is a name and a password in base64, as basic authentication sends them."""
    value = found["secret"]
    try:
        return not harmless(value) and b":" in base64.b64decode(value + "=" * (-len(value) % 4), validate=True)
    except (binascii.Error, ValueError):
        return False


def _is_cookie(found: re.Match[str], at: int) -> bool:
    """Whether one of the cookies may be a session's: `theme=dark` is none."""
    pairs = [f"{found['name']}={found['secret']}"] if "name" in found.groupdict() else found["secret"].split(";")
    told = (pair.strip().partition("=") for pair in pairs)
    return _is_value(found, at) and any(
        bool(_SESSION.search(name)) or random_looking(value) or unspeakable(value) for name, _, value in told
    )


_CHECKS: dict[str, Callable[[re.Match[str], int], bool]] = {
    "mixed": _is_mixed,
    "digits": lambda found, _: any(map(str.isdigit, found[0])),
    "jwt": _is_jwt,
    "value": _is_value,
    "wilful": lambda found, at: _is_value(found, at) and wilful(found["secret"]),
    "database": lambda found, at: bool(_DATABASE.search(found.string, max(0, at - 32), at)) and _is_value(found, at),
    "token": _is_token,
    "basic": _is_basic,
    "cookie": _is_cookie,
}

"""Replaces secrets and personal data in a text with placeholders such as `[e-mail 1]`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from lessonbank.contracts.ports import Redactor
from lessonbank.guard._characters import BACKSPACE, before_backspaces, plain, struck

from ._detect import DETECTORS, found_in, found_near, found_together
from ._numbers import LEAST, known_numbers
from ._spans import PLACEHOLDER, Detector, Span, merged
from ._views import without
from ._words import CODE, harmless, is_unpronounceable, kind_of_name, random_looking

_ROUNDS = 4
"""What is left of a text may look like another secret, so it is read again, at most so many times."""
_TAKEN_BACK = ""
"""The kind of what a backspace takes back: nothing stands in its place."""
_KNOWN = 64
"""The most values per run that are looked for everywhere after their name gave them away once."""
_SPREAD = re.compile(r"\\+[nrt]|\s")


@runtime_checkable
class PerRun(Protocol):
    """A redactor that numbers its placeholders, from 1 in each run."""

    def for_run(self) -> Redactor: ...


class Redaction:
    """A redactor for one run: the same value gets the same placeholder everywhere in it.

    What it gives is the text as a reader sees it: nothing that hides in it or drives a terminal is left, so that no
    later step can join the halves of a secret. Redacting a text twice gives the same as redacting it once. Time and
    memory are linear in the text.
    """

    def __init__(self, *, detectors: Sequence[Detector] = DETECTORS) -> None:
        self._detectors = detectors
        self._given: dict[tuple[str, str], str] = {}
        self._last: dict[str, int] = {}
        self._taken: set[str] = set()
        self._known: dict[str, str] = {}
        self._numbers: dict[str, str] = {}
        self._read: dict[str, list[Span]] = {}

    def __call__(self, text: str, /) -> str:
        """Replace each secret and each piece of personal data with a placeholder such as `[e-mail 1]`."""
        text = before_backspaces(text)
        self.reserve(text)
        if BACKSPACE in text:
            text = self._overtyped(text)
        for number in range(_ROUNDS):
            spans = self._read.get(text)
            if spans is None:
                spans = found_in(text, detectors=self._detectors, again=number > 0)
            redaction = self._without(text, spans) if spans else text
            redaction = self._without_known(redaction)
            if redaction == text:
                break
            text = redaction
        return text

    def finds_nothing(self, fields: Iterable[tuple[str, str]], /) -> bool:
        """Read many fields, each a name or `""` and a text, as one. What was read so is not read again."""
        if self._detectors is not DETECTORS:
            return False
        texts, secrets, overtyped = list[str](), 0, False
        for name, value in fields:
            name = name[-80:]
            secrets += bool(name and _kind(name, value))
            overtyped = overtyped or BACKSPACE in value
            texts.append(f"{name}: {value}" if name else value)
        self._read = found_together(unique := dict.fromkeys(texts))
        return not (secrets or overtyped) and len(self._read) == len(unique) and not any(self._read.values())

    def reserve(self, text: str, /) -> None:
        """Keep the placeholders in `text` for what they already stand for, for example in an earlier lesson."""
        if "[" in text:
            self._taken.update(match[0] for match in PLACEHOLDER.finditer(text))

    def field(self, name: str, value: str, /) -> str:
        """Redact the value of a field. The name may show that all of it is a secret."""
        name, value = plain(name)[-80:], before_backspaces(value)
        if kind := _kind(name, value):
            return self._placeholder(Span(0, len(value), kind, plain(value), typed=False))
        line = self(f"{name}: {value}")
        return line[len(name) + 2 :] if line.startswith(f"{name}: ") else self(value)

    @property
    def knows(self) -> bool:
        """Whether `again` can find anything."""
        return bool(self._known or self._numbers)

    def again(self, text: str, /) -> str:
        """Replace the values that turned out to be secrets elsewhere in the run."""
        return self(text) if self._without_known(text) != text else text

    def _overtyped(self, text: str) -> str:
        """`text` as its backspaces leave it. A secret goes whole, whether it was typed over or only looks so."""
        places = sorted(struck(text))
        spans = [Span(at, at + 1, _TAKEN_BACK, "", typed=False) for at in places]
        for unread in ([at for at in places if text[at] == BACKSPACE], places):
            spans += found_near(without(text, unread), detectors=self._detectors)
        return plain(self._without(text, merged(spans)))

    def _without_known(self, text: str) -> str:
        for value, placeholder in self._known.items():
            if value in text:
                text = text.replace(value, placeholder)
        spans = list(known_numbers(text, self._numbers)) if self._numbers else []
        return self._without(text, spans) if spans else text

    def _without(self, text: str, spans: Sequence[Span]) -> str:
        parts, done = list[str](), 0
        for span in spans:
            put = self._placeholder(span) if span.kind != _TAKEN_BACK else ""
            parts += (text[done : span.start], f'"{put}"' if _is_number(text, span) else put)
            done = span.end
        return "".join((*parts, text[done:]))

    def _placeholder(self, span: Span) -> str:
        value = _SPREAD.sub("", span.value)
        family = span.kind if span.typed else "named"
        given = self._given.get((family, value))
        if given is None:
            given = self._given[family, value] = self._next(span.kind)
            if not span.typed and (random_looking(value) or is_unpronounceable(value)) and len(self._known) < _KNOWN:
                self._known[span.value] = given
            if span.typed and len(value) >= LEAST and value.isascii() and value.isdigit():
                self._numbers[value] = span.kind
        return given

    def _next(self, kind: str) -> str:
        number = self._last.get(kind, 0) + 1
        while f"[{kind} {number}]" in self._taken:
            number += 1
        self._last[kind] = number
        return f"[{kind} {number}]"


def _kind(name: str, value: str) -> str | None:
    """What the value of a field is, if its name says so."""
    kind = kind_of_name(name) if name.count(" ") < 3 else None
    return kind if kind and _may_be(kind, value) else None


def _may_be(kind: str, value: str) -> bool:
    """Whether a whole field can be a secret. People choose passwords freely; a PIN may be digits, a token no word."""
    if len(value) < 3 or harmless(value.strip()) or PLACEHOLDER.search(value):
        return False
    if kind == "password" or (kind == CODE and value.isdigit()):
        return True
    return random_looking(value) or (len(value) >= 12 and not re.search(r"\s", value))


def _is_number(text: str, span: Span) -> bool:
    """Whether a bare number of a JSON text goes. Its placeholder needs quotes that the number did not have."""
    if text[:1] not in "{[" or not text[span.start : span.end].isdigit():
        return False
    before, after = text[max(0, span.start - 12) : span.start].rstrip(), text[span.end : span.end + 12].lstrip()
    return before[-1:] in (":", ",", "[") and after[:1] in (",", "]", "}", "")


@dataclass(frozen=True, slots=True)
class Redacting:
    """The built-in redactor. A single text is numbered from 1."""

    def __call__(self, text: str, /) -> str:
        """Replace secrets and personal data in `text`."""
        return self.for_run()(text)

    def for_run(self) -> Redaction:
        """A redactor for one run, which remembers its placeholders."""
        return Redaction()


redact = Redacting()

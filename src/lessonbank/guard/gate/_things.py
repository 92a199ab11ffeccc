"""Finds the names that are nobody's: of things in runs, such as a product, and of the place that a lesson holds in."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

from lessonbank._base.patterns import compiled
from lessonbank.contracts.records import Json, Lesson, Trajectory

from ._named_entities import names_after_cues, people, unusual
from ._run_texts import asked, ends, leaves, nfc, pairs_in, parts_of, texts_of
from .run_values import is_personal, tokens, words

_MOST: Final = 2_000
"""Names of things that are taken of some runs: where there are more, they are rows of a table."""
_STAND_INS: Final = range(0xE000, 0xF8FF)
"""Characters that mean nothing anywhere: in a text, one of them is neither a word nor a part of one."""
_NAME = r"[^\W\d_][^\"”“'\n<>]{1,60}"
_KIND = (
    "product|device|software|application|app|module|framework|library|plugin|extension|program|database|browser"
    "|operating system|programming language"
)
_SAID: Final = (
    # What is ordered in a number: order 3 "Zephyr Lamp".
    rf"\b(?i:order|buy|purchase)\s+(?:\d{{1,4}}|an?|one|two|three)\s+[\"“](?P<it>{_NAME})[\"”]",
    # A name in quotes with its kind: the "Zephyr Lamp" application, the product 'Zephyr Lamp'.
    rf"[\"“'](?P<it>{_NAME})[\"”']\s+(?i:{_KIND})\b",
    rf"\b(?i:{_KIND})\s+(?:named\s+|called\s+)?[\"“'](?P<it>{_NAME})[\"”']",
    # A kind that is said of programs alone needs no quotes: the Zephyr Lamp framework.
    r"\b[Tt]he (?P<it>[^\W\d_a-z]\w{1,30}(?: [^\W\d_a-z]\w{1,30}){0,3}) (?:framework|library|plugin|API|SDK|IDE)\b",
)
_IMPORTED = re.compile(
    r"^[ \t>+-]{0,8}(?:from (?P<it>[A-Za-z_]\w{2,40})[\w.]{0,80} import |import (?P<that>[A-Za-z_]\w{2,40})"
    r"(?:\.|,|[ \t]+as |[ \t]*$))|\bpip3? install (?P<also>[A-Za-z][\w-]{2,40})",
    re.MULTILINE,
)
_READ: Final = 20_000
_TITLED: Final = r"[^\W\d_a-z][\w-]*"
_OWNER: Final = "<owner>"
_FIELD = re.compile(rf"(?:{_KIND}|item|brand|manufacturer)s?(?:[ _-]?(?:name|title))?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a lesson says it holds: names that are nobody's, and the one to whom the place belongs."""

    names: tuple[str, ...] = ()
    owner: str = ""

    def without_owner(self, text: str, /) -> str:
        """`text` in which the owner is not named: the place's own name says enough, and the owner may be a person."""
        if not self.owner:
            return text
        owner, names = re.escape(self.owner), "|".join(map(re.escape, self.names))
        return re.sub(rf"\b{owner}\b", _OWNER, re.sub(rf"\b{owner}['’]s (?={names})", "", text))

    def spans(self, text: str, /) -> list[tuple[int, int]]:
        """Where its names stand in `text`."""
        pattern = "|".join(map(re.escape, self.names))
        return [match.span() for match in re.finditer(pattern, text)] if pattern else []


NOWHERE: Final = Place()


def place_of(lesson: Lesson, tasks: Sequence[str], /) -> Place:
    """The repository, site or organisation that the lesson says it holds in; `NOWHERE` where there is none.

    A task must speak of it as one works *in* it: "In Orchard Pricing, set …", "In Marlow's Orchard Pricing, set …".
    Nobody says so of a person; what belongs to one ("in Jane Roe's account") is no place by that name.
    """
    applies_to = lesson.applies_to
    if applies_to is None or applies_to.reach not in ("place", "organisation") or not applies_to.name:
        return NOWHERE
    name = re.escape(applies_to.name)
    pattern = re.compile(
        rf"\b[Ii]n (?:the \w+ )?(?:(?P<owner>{_TITLED})['’]s )?{name}(?!['’]|\w)"
        rf"|\b[Ii]n {name}['’]s (?P<theirs>{_TITLED} {_TITLED})"
    )
    match = next(filter(None, (pattern.search(task[:_READ]) for task in tasks)), None)
    if match is None:
        return NOWHERE
    return Place(tuple(filter(None, (match["theirs"], applies_to.name))), match["owner"] or "")


@dataclass(frozen=True, slots=True)
class Things:
    """The words that name things in some runs and are part of no person's name there."""

    words: frozenset[str] = frozenset()

    @classmethod
    def of(cls, runs: Sequence[Trajectory], /) -> Things:
        """What the runs show to be a thing: ordered in a number, named with its kind, or imported by code.

        What also stands as somebody's name, in a personal field or in a run's answer, is none. Linear in the runs.
        """
        names = dict.fromkeys(name for run in runs for name in _things_in(run))
        things = {word for name in list(names)[:_MOST] for word in words(name) if len(word) > 1}
        imported = {word for run in runs for text in texts_of(run) for word in _imported(text)}
        theirs = {word for run in runs for word in _of_people(run, frozenset(things | imported))}
        fields = {word for run in runs for word in _in_fields_of_people(run)}
        return cls(frozenset((things - fields) | imported) - theirs)

    def mask_but_things(self, text: str, made: Callable[[str], str], /, *, place: Place = NOWHERE) -> str:
        """Mask `text` with `made`, except the things in it and the names of `place`."""
        spans = self._spans(text, place)
        masked_text = made(_with_stand_ins(text, spans))
        return masked_text.translate(
            {ord(stand_in): text[a:b] for stand_in, (a, b) in zip(_stand_ins(), spans, strict=False)}
        )

    def without(self, text: str, /, *, place: Place = NOWHERE) -> str:
        """`text` in which neither a thing nor `place` is named."""
        return _with_stand_ins(text, self._spans(text, place))

    def _spans(self, text: str, place: Place) -> list[tuple[int, int]]:
        """Where words of things stand. A row of capitalised words is one only as a whole: else it is somebody's."""
        if not (self.words or place.names) or any(ord(sign) in _STAND_INS for sign in text):
            return []
        spans = place.spans(text)
        if self.words:
            for start, end in spans:
                text = text[:start] + (end - start) * chr(_STAND_INS[0]) + text[end:]
            theirs = bytearray(len(text))
            for entity in people(text):
                if not self._is_thing(text[entity.start : entity.end]):
                    theirs[entity.start : entity.end] = b"\1" * (entity.end - entity.start)
            named = unusual(self.words)
            spans += [(a, b) for word, a, b in tokens(text) if word in named and not theirs[a]]
        return sorted(spans)[: len(_STAND_INS)]

    def _is_thing(self, name: str) -> bool:
        return unusual(words(name)) <= self.words


def _stand_ins() -> Iterator[str]:
    return map(chr, _STAND_INS)


def _with_stand_ins(text: str, spans: Sequence[tuple[int, int]]) -> str:
    parts: list[str] = []
    done = 0
    for stand_in, (start, end) in zip(_stand_ins(), spans, strict=False):
        parts += [text[done:start], stand_in]
        done = end
    return "".join((*parts, text[done:]))


def _things_in(run: Trajectory) -> Iterator[str]:
    for text in map(nfc, texts_of(run)):
        text = ends(text)
        yield from (match["it"] for pattern in _SAID for match in compiled(pattern).finditer(text))
        yield from (value for key, value in pairs_in(text) if _FIELD.fullmatch(key))
    for key, parent, value in _fields(run):
        if isinstance(value, str) and len(value) < 80 and _FIELD.fullmatch(f"{parent} {key}" if key == "name" else key):
            yield value


def _imported(text: str) -> Iterator[str]:
    for match in _IMPORTED.finditer(ends(text)):
        yield from words(match["it"] or match["that"] or match["also"])


def _of_people(run: Trajectory, things: frozenset[str]) -> Iterator[str]:
    """The words of names that somebody has in a run: told as a name, or asked for, and no thing as a whole."""
    for text in asked(run):
        for entity in people(text):
            name = text[entity.start : entity.end]
            if name.endswith(("'s", "’s")) or not unusual(words(name)) <= things:
                yield from words(name)
    for text in chain(map(ends, texts_of(run)), [run.instructions]):
        yield from (word for entity in names_after_cues(ends(text)) for word in words(text[entity.start : entity.end]))
    yield from words((run.answer or "")[:200])


def _in_fields_of_people(run: Trajectory) -> Iterator[str]:
    for key, parent, value in _fields(run):
        whose = f"{parent} {key}" if key == "name" else key
        if isinstance(value, str) and is_personal(key) and not _FIELD.fullmatch(whose):
            yield from words(value[:200])
    for text in texts_of(run):
        for key, value in pairs_in(ends(text)):
            if is_personal(key) and not _FIELD.fullmatch(key):
                yield from words(value)


def _fields(run: Trajectory) -> Iterator[tuple[str, str, Json]]:
    for part in parts_of(run):
        if part.data is not None:
            yield from leaves(part.data)

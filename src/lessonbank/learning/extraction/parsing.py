"""Gets lessons out of whatever a model replied, without ever inventing one."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, cast, get_args

from lessonbank._base.plural import plural
from lessonbank.contracts.records import AppliesTo, Choice, Kind, Reach
from lessonbank.errors import ExtractionError, UsageError
from lessonbank.guard import clean, one_line
from lessonbank.guard.quote import in_one_line, redact_before_cut
from lessonbank.text.replies import Fields, JsonObject, find_objects, read_objects, spoken

TITLE_LIMIT = 200
DESCRIPTION_LIMIT = 500
CONTENT_LIMIT = 2_000
ADDITION_LIMIT = 300

_LONGEST = 1_000_000
_MOST_EVIDENCE = 12
_DEEPEST = 8
_NO_LESSONS = re.compile(
    r"\bno (?:\w+ly |new |reusable |transferable |generali[sz]able |useful |further |additional |clear |supported )*"
    r"(?:lessons?|memory items?)\b(?! (?:could|can|may|is|are|was|were) (?:be )?more)|^(?:none|no items)\W*$",
    re.I,
)
_EMPTY_LIST = re.compile(r"\[\s*\]")
_TEMPLATE = re.compile(r"^(?:<[^<>]*>|\[[^\[\]]*\]|\{+[^{}]*\}+)$")
_PLACEHOLDERS = re.compile(
    r"none|null|nil|n/?a|tbd|todo|string|text|placeholder|unknown|undefined"
    r"|(?:(?:the|your|short|a short) )?(?:title|description|content)(?: (?:here|goes here|of the (?:memory )?item))?"
)
_SENTENCE_END = re.compile(r"[.!?…。！？][\"'”’)\]]*(?=\s|$)")


@dataclass(frozen=True, slots=True)
class Draft:
    """A lesson as the model wrote it, before ids and provenance; what has a default only if the reply has it."""

    title: str
    description: str
    content: str
    kind: Kind | None = None
    evidence: tuple[str, ...] = ()
    applies_to: AppliesTo | None = None
    choice: Choice | None = None
    rests_on: str = ""
    beside: tuple[Beside, str] | None = None
    """How it stands to a lesson that the model was shown, and to which."""
    adds: str = ""
    """What the run shows beyond that lesson, in one sentence."""


@dataclass(frozen=True, slots=True)
class ParsedLessons:
    """What a reply held: the drafts in order, and one sentence for everything that was dropped or cut."""

    lessons: tuple[Draft, ...]
    problems: tuple[str, ...] = ()


def parse_lessons(text: str, /, *, limit: int) -> ParsedLessons:
    """Read at most `limit` lessons from a model's reply, in JSON or in the paper's Markdown.

    JSON is found as a whole, in prose, fences, after thoughts, one object after another, under any wrapper key, cut off
    (complete lessons are kept, the partial one is not) and slightly broken. If there is an `items` list, as the prompts
    ask for, the last one counts, and what stands beside it is a quote and not read. A field that is not text never
    becomes text, except that a list of sentences is joined for the content. A lesson without a title or content, or
    with a placeholder for one, is dropped and counted; the limit counts what is left. Titles are one line of at most
    200 characters, descriptions 500, contents 2,000, cut at the end of a sentence where there is one.

    Returns:
        The drafts; none of either when the reply says that there are no lessons.

    Raises:
        ExtractionError: the reply held neither a usable lesson nor a plain "none".
        UsageError: `limit` is not positive.
    """
    if limit < 1:
        raise UsageError(f"limit must be at least 1, not {limit}")
    problems: list[str] = []
    if len(text) > _LONGEST:
        problems.append(f"the reply had {len(text):,} characters; the first {_LONGEST:,} were read")
    candidates, says_so = _candidates(clean(text[:_LONGEST]), problems)
    drafts = _valid(candidates, problems)
    if not drafts and not says_so:
        why = "; ".join(problems[:5]) or "no lesson in it, neither as JSON nor as Markdown"
        raise ExtractionError(f"no lesson could be read from the model's reply of {len(text):,} characters: {why}")
    if len(drafts) > limit:
        problems.append(f"{plural(len(drafts) - limit, 'lesson')} beyond the limit of {limit} dropped")
    return ParsedLessons(tuple(drafts[:limit]), tuple(problems))


def shorten(text: str, limit: int, /) -> str:
    """`text` in at most `limit` characters: whole sentences where that keeps half of it, else whole words."""
    if len(text) <= limit:
        return text
    head = text[: limit - 2]
    ends = [match.end() for match in _SENTENCE_END.finditer(head)]
    if ends and ends[-1] >= limit // 2:
        return head[: ends[-1]]
    return (head.rpartition(" ")[0] or head).rstrip() + " …"


def _candidates(text: str, problems: list[str]) -> tuple[list[Fields], bool]:
    """Everything that looks like a lesson, and whether the reply says that there is none."""
    body = spoken(text)
    objects = find_objects(_unquoted(body))
    if answers := read_objects(objects, _list_in):
        lessons, is_whole = answers[-1]
        problems += [] if is_whole else ["the reply breaks off: a lesson at its end may be missing"]
        return lessons, is_whole and not lessons
    if lessons := read_objects(objects, _complete_lessons):
        return lessons, False
    lessons = cast("list[Fields]", markdown_lessons(body))
    if _last_is_cut(lessons):
        lessons[-1] = {_CUT: True}
    lessons = [lesson for lesson in lessons if lesson]
    return lessons, not lessons and (any(map(_says_none, objects)) or _declines(body))


def _unquoted(body: str) -> str:
    """The text in a reply that is one string of JSON; any other as it is."""
    try:
        value: object = json.loads(body) if body.startswith('"') else body
    except ValueError:
        return body
    return cast("str", value)


def _list_in(json_object: JsonObject, fields: Fields) -> Iterable[tuple[list[Fields], bool]]:
    """The lessons of the `items` list in an object, and whether its end is there: what stands beside it is talk."""
    lessons = _listed(fields)
    if lessons is None:
        return []
    if json_object.fields is None:  # a repair may have mixed the lessons up
        lessons = read_objects(json_object.inner, _complete_lessons) or ([] if json_object.is_cut else lessons)
    return [(lessons, not json_object.is_cut)]


def _listed(value: object, /, depth: int = 0) -> list[Fields] | None:
    """The lessons in the first `items` list in `value`, `None` where there is none.

    A list of something else, such as the items of an order, is none; an empty one is.
    """
    parts: Iterable[object] = cast("list[object]", value) if isinstance(value, list) else ()
    if isinstance(value, dict):
        fields = cast("Fields", value)
        inside = fields.get("items")
        if _is_lesson(fields):
            return None
        if isinstance(inside, list) and ((lessons := [*_lessons(cast("object", inside))]) or not inside):
            return lessons
        parts = fields.values()
    lists = (_listed(part, depth + 1) for part in parts if depth < _DEEPEST)
    return next((lessons for lessons in lists if lessons is not None), None)


def _complete_lessons(json_object: JsonObject, fields: Fields) -> Iterable[Fields]:
    return () if json_object.is_cut else _lessons(fields)


def _lessons(value: object, /, depth: int = 0) -> Iterator[Fields]:
    """Every dict in `value` that has a title or a content, however it is wrapped."""
    if isinstance(value, dict) and _is_lesson(cast("Fields", value)):
        yield cast("Fields", value)
    elif isinstance(value, dict | list) and depth < _DEEPEST:
        inside = cast("Fields | list[object]", value)
        for part in inside.values() if isinstance(inside, dict) else inside:
            yield from _lessons(part, depth + 1)


def _is_lesson(fields: Fields) -> bool:
    if "content" in fields and not _holds_objects(fields["content"]):
        return True
    return "title" in fields and not any(map(_holds_objects, fields.values()))


def _holds_objects(value: object) -> bool:
    if isinstance(value, dict):
        return True
    return isinstance(value, list) and any(isinstance(part, dict | list) for part in cast("list[object]", value))


def _says_none(json_object: JsonObject) -> bool:
    """Whether an object wraps an empty list; a choice is no answer, and no error is."""
    fields = json_object.fields or {}
    return fields.keys().isdisjoint(("about", "error")) and any(part == [] for part in fields.values())


def _declines(body: str) -> bool:
    if "{" in body:
        return False
    if _EMPTY_LIST.search(body):
        return True
    return "[" not in body and len(body) < 1_000 and _NO_LESSONS.search(one_line(body)) is not None


def _valid(candidates: Iterable[dict[str, Any]], problems: list[str]) -> list[Draft]:
    drafts: list[Draft] = []
    seen: set[tuple[str, str]] = set()
    for number, fields in enumerate(candidates, 1):
        draft = _draft(fields)
        if isinstance(draft, str):
            problems.append(f"lesson {number} was dropped: {draft}")
        elif (key := (draft.title.casefold(), draft.content.casefold())) in seen:
            problems.append(f"lesson {number} was dropped: it repeats another")
        else:
            seen.add(key)
            drafts.append(draft)
    return drafts


def _draft(fields: dict[str, Any]) -> Draft | str:
    """A draft, or why there is none."""
    if _CUT in fields:
        return "it ends in the middle of a sentence"
    title, content = _text(fields.get("title")), _text(fields.get("content"), joined=True)
    title = shorten(_line(title, TITLE_LIMIT).strip("*# "), TITLE_LIMIT)
    content = shorten(
        content if len(content) <= CONTENT_LIMIT else redact_before_cut(content, limit=CONTENT_LIMIT), CONTENT_LIMIT
    )
    for name, value in (("title", title), ("content", content)):
        if not value:
            return f"it has no {name}"
        if _is_placeholder(value):
            return f"its {name} is a placeholder"
    description = _text(fields.get("description"), joined=True)
    description = shorten(_line(description, DESCRIPTION_LIMIT), DESCRIPTION_LIMIT)
    return Draft(
        title=title,
        description="" if _is_placeholder(description) else description,
        content=content,
        kind=_kind(fields.get("kind")),
        evidence=_evidence(fields.get("evidence")),
        applies_to=reach_of(fields),
        choice=choice_of(fields),
        rests_on=_line(_text(fields.get("rests_on")), TITLE_LIMIT),
        beside=stand_of(fields),
        adds=_addition(fields),
    )


def _addition(fields: dict[str, Any]) -> str:
    """What a lesson that comes again adds; empty where that is nothing."""
    addition = shorten(_line(_text(fields.get("adds"), joined=True), ADDITION_LIMIT), ADDITION_LIMIT)
    return "" if _is_placeholder(addition) else addition


def _text(value: Any, *, joined: bool = False) -> str:
    if joined and isinstance(value, list) and all(isinstance(part, str) for part in cast("list[Any]", value)):
        value = " ".join(part.strip() for part in cast("list[str]", value))
    return clean(value).strip() if isinstance(value, str) else ""


def _line(text: str, limit: int) -> str:
    """`text` as one line. What is folded, or cut to `limit` next, is redacted before."""
    return one_line(redact_before_cut(text, limit=limit) if "\n" in text or len(text) > limit else text)


def _is_placeholder(text: str) -> bool:
    bare = text.strip(" \t\n.…\"'*_`-–").lower()
    return (
        not any(map(str.isalnum, bare))
        or _PLACEHOLDERS.fullmatch(bare) is not None
        or _TEMPLATE.match(text.strip()) is not None
    )


def _kind(value: Any) -> Kind | None:
    word = value.strip().lower() if isinstance(value, str) else ""
    return "strategy" if word == "strategy" else "guardrail" if word == "guardrail" else None


def _evidence(value: Any) -> tuple[str, ...]:
    parts = cast("list[Any]", value) if isinstance(value, list) else [value]
    named = (_reference(part) for part in parts[:_MOST_EVIDENCE])
    return tuple(name for name in named if name)


def _reference(value: Any) -> str:
    """A step as the model named it: in words, by number, or by run and number."""
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        run, step = fields.get("run"), fields.get("step")
        return f"run {run}, step {step}" if type(run) is int and type(step) is int else _reference(step)
    if type(value) is int:
        return f"step {value}"
    return in_one_line(value, limit=120) if isinstance(value, str) else ""


Beside = Literal["same", "sharper", "contradicts", "adds"]
_REACHES: Final[dict[str, Reach]] = {"organization": "organisation", **{reach: reach for reach in get_args(Reach)}}
_LONGEST_NAME: Final = 80
_MOST: Final = 12


def reach_of(fields: Mapping[str, Any], /) -> AppliesTo | None:
    """How far it goes; `None` where the reply does not say, or says what nobody asked for."""
    value = fields.get("applies_to")
    inner = cast("dict[str, Any]", value) if isinstance(value, dict) else {"reach": value}
    reach = _REACHES.get(_word(inner.get("reach")))
    if reach is None:
        return None
    name = "" if reach == "kind" else _name_in(inner.get("name") or fields.get("where"))
    return AppliesTo(reach=reach, name=name, unsettled=inner.get("unsettled", fields.get("unsettled")) is True)


def choice_of(fields: Mapping[str, Any], /) -> Choice | None:
    """What a lesson proves of a choice; `None` where it is about none."""
    value = fields.get("choice")
    if not isinstance(value, dict):
        return None
    inner = cast("dict[str, Any]", value)
    options = {name: _options(inner.get(name)) for name in ("excluded", "open", "confirmed")}
    about = _name_in(inner.get("about"))
    return Choice(about=about, **options) if about and any(options.values()) else None


def stand_of(fields: Mapping[str, Any], /) -> tuple[Beside, str] | None:
    """How it stands to a known lesson, and to which; `None` for a new one."""
    word, to = _word(fields.get("stands")), _name_in(fields.get("to")).upper()
    stand = next((name for name in get_args(Beside) if name == word and name != "adds"), None)
    return (cast("Beside", stand), to) if stand and to else None


def _options(value: object) -> tuple[str, ...]:
    listed = cast("list[object]", value) if isinstance(value, list) else [value]
    return tuple(dict.fromkeys(filter(None, map(_name_in, listed[:_MOST]))))


def _word(value: object) -> str:
    return value.strip().casefold() if isinstance(value, str) else ""


def _name_in(value: object) -> str:
    return in_one_line(value, limit=_LONGEST_NAME)[:_LONGEST_NAME] if isinstance(value, str) else ""


_CUT: Final = " cut "
"""The field of a lesson that was cut off; none of JSON has such a name."""
_HEAD = re.compile(
    r"^(?P<mark>[\s>#*_\-]*)(?:memory[ _]item|memory|item|lesson)\b[\s#]*(?P<number>\d*)[\s.:)*_\-–—]*(?P<rest>.*)$",
    re.I,
)
_FIELD = re.compile(
    r"^(?P<mark>[\s>#*_\-+\d.)]*)(?P<name>title|description|content|kind|evidence)\b(?P<close>[\s*_]*[::]?[\s*_]*)"
    r"(?P<value>.*)$",
    re.I,
)
_LISTED = re.compile(r"^\s*(?:[-*+•]|\d+[.)])\s")
_BREAK = re.compile(r"^\s*(?:```|~~~|---+\s*$|\*\*\*+\s*$|#)")
_ENDS_A_SENTENCE = re.compile(r"[.!?…。！？][\"'”’)\]`*_]*$")


def markdown_lessons(text: str, /) -> list[dict[str, str]]:
    """Lessons as dicts of field name to text, in order; fields that were not written are missing.

    A heading's value stands behind it or below it, up to the first blank line that is not followed by a list.
    """
    reader = _Reader()
    for line in text.split("\n"):
        reader.take(line)
    return [{name: "\n".join(lines).strip() for name, lines in lesson.items()} for lesson in reader.lessons]


def _last_is_cut(lessons: Sequence[Fields]) -> bool:
    """Whether the last content stops in the middle of a sentence while the others do not: the reply was cut off."""
    ends = [_ENDS_A_SENTENCE.search(lesson.get("content", "")) is not None for lesson in lessons]
    return len(ends) > 1 and all(ends[:-1]) and not ends[-1]


class _Reader:
    """Goes through the lines once; each lesson maps field names to their lines."""

    def __init__(self) -> None:
        self.lessons: list[dict[str, list[str]]] = []
        self._into: list[str] | None = None
        self._paused = False

    def take(self, line: str) -> None:
        if self._starts_lesson(line) or self._starts_field(line):
            return
        if self._into is None:
            return
        if _BREAK.match(line):
            self._into = None
        elif not line.strip():
            self._paused = bool(self._into)
        elif not self._paused or _LISTED.match(line):
            self._into.append(line.strip())
            self._paused = False

    def _starts_lesson(self, line: str) -> bool:
        match = _HEAD.match(line)
        if not match or not (match["number"] or ("#" in match["mark"] and not match["rest"])):
            return False
        if "#" not in match["mark"] and "**" not in match["mark"] and "item" not in line.lower():
            return False
        title = match["rest"].strip(" *_#")
        self.lessons.append({"title": [title]} if title else {})
        self._into = None
        return True

    def _starts_field(self, line: str) -> bool:
        match = _FIELD.match(line)
        if not match or not ("#" in match["mark"] or "**" in match["mark"] or match["close"].strip(" *_")):
            return False
        name, value = match["name"].lower(), match["value"].strip()
        if value.count("**") % 2:
            value = value.removesuffix("**")
        if not self.lessons or (name in self.lessons[-1] and (name != "title" or "content" in self.lessons[-1])):
            self.lessons.append({})
        self._into = self.lessons[-1][name] = [value] if value else []
        self._paused = False
        return True

"""Applies a redactor to every text of a record: a run, an experience, or what a model wrote."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from itertools import repeat
from operator import is_
from typing import TypeAlias, TypeVar, cast

from lessonbank.contracts import records as types
from lessonbank.contracts.ports import Redactor
from lessonbank.contracts.records import Json, Record
from lessonbank.errors import UsageError
from lessonbank.guard._characters import before_backspaces, odd_in, plain

from ._redactor import PerRun, Redacting, Redaction
from ._words import CODE, kind_of_name

R = TypeVar("R", bound=Record)
Field: TypeAlias = Callable[[str, str], str]
"""The name of a field of some data, or `""`, and its text, to the text that may be kept."""

TEXTS: dict[type[Record], tuple[str, ...]] = {
    types.Trajectory: (
        *("task", "instructions", "steps", "answer", "error", "tools", "submission", "metadata", "original"),
    ),
    types.Step: ("thought", "action", "observations"),
    types.Action: ("text", "calls"),
    types.ToolCall: ("name", "arguments", "id"),
    types.Observation: ("text", "name", "call_id"),
    types.Submission: ("verdict",),
    types.Experience: (
        *("task", "lessons", "attempts", "rejected", "repeats", "not_recognised", "not_merged", "template", "metadata"),
    ),
    types.Duplicate: ("title", "evidence", "why", "lesson"),
    types.Neighbour: ("why",),
    types.RunRef: ("verdict",),
    types.Verdict: ("reason",),
    types.Lesson: (
        *("title", "description", "content", "applies_to", "choice", "rests_on"),
        *("only_for_tasks", "place", "provenance"),
    ),
    types.AppliesTo: ("name",),
    types.Choice: ("about", "excluded", "open", "confirmed"),
    types.Provenance: ("evidence",),
    types.Rejected: ("title", "content", "reason"),
    types.Extraction: ("lessons", "rejected", "repeats", "notes"),
    types.Add: ("experience",),
    types.Replace: ("experience", "reason"),
    types.Merge: ("experience", "reason"),
    types.Rejudge: ("verdict", "reason", "before"),
    types.Retire: ("reason",),
    types.Restore: ("reason",),
    types.Rollback: ("reason",),
    types.Trust: ("reason",),
    types.Edit: ("title", "description", "content", "only_for_tasks", "reason"),
    types.Audit: ("reason",),
    types.Administer: ("subject",),
}
"""The fields of each record that hold what an agent, a person or a model wrote. The others are ids, states, numbers."""
_NEVER_EMPTY = frozenset(("task", "title", "content"))
_NAMES = ("name", "key", "field", "header", "id", "label")
_NEUTRAL = frozenset(("content", "text", "output", "role", "type", "tool_calls", "function", "arguments", "command"))
"""Names of messages' fields that say nothing about the value, so that a text under them is read once."""
_LARGE = 10**8
"""The least number that can be a telephone's, a card's or a person's."""
_GONE = "[removed]"


def redacted(record: R, redactor: Redactor, /) -> R:
    """`record` without secrets and personal data: every text of it, arguments and metadata by their names, too.

    Ids stay. Linear in its size.

    Raises:
        UsageError: the redactor gave something that is no text.
    """
    return redacted_together((record,), redactor)[0]


def redacted_together(records: Sequence[R], redactor: Redactor, /) -> list[R]:
    """Records that one model will read, such as the runs of a task: the same value is the same placeholder in all."""
    fresh = redactor.for_run() if isinstance(redactor, (Redacting, PerRun)) else redactor  # a protocol takes long
    if not isinstance(fresh, Redaction):
        field = _field(fresh)
        for record in records:
            field("", getattr(record, "task", ""))  # as below
        return [_through(record, field) for record in records]
    fields, trimmed = _fields_of(records)
    # All texts at once, as most are plain.
    if odd_in("".join([text for _, text in fields])) and any(before_backspaces(text) != text for _, text in fields):
        records = [_through(record, lambda _, text: before_backspaces(text)) for record in records]
        fields, trimmed = _fields_of(records)
    if fresh.finds_nothing(fields):
        return list(records) if trimmed else [_through(record, _same) for record in records]
    field = _field(fresh)
    for record in records:
        field("", getattr(record, "task", ""))  # first, so that it reads as the same task does when it is asked for
    for _, text in fields:
        fresh.reserve(text)
    cleaned = [_through(record, field) for record in records]
    known = fresh.again
    return [_through(record, lambda _, text: known(text)) for record in cleaned] if fresh.knows else cleaned


def _same(_: str, text: str) -> str:
    return text


def _fields_of(records: Sequence[Record]) -> tuple[set[tuple[str, str]], bool]:
    """Every text that `_through` hands to a redactor, and whether all that must not be empty has no blanks around it.

    One pass that makes no record anew: most hold nothing that must go.
    """
    fields, trimmed = set[tuple[str, str]](), True
    waiting: list[tuple[str, object]] = [("", record) for record in records]
    while waiting:
        name, value = waiting.pop()
        if isinstance(value, str):
            fields.add(("" if name in _NEUTRAL else name, value))
        elif isinstance(value, Record):
            for field in _texts_of(type(value)):
                if text := getattr(value, field):
                    waiting.append(("", text))
                    trimmed = trimmed and (field not in _NEVER_EMPTY or str(text).strip() == text)
        elif isinstance(value, tuple | list):
            waiting += zip(repeat(name), cast("list[object]", value), strict=False)
        elif isinstance(value, dict):
            data = cast("dict[str, Json]", value)
            for key, child in data.items():
                fields.add(("", key))
                waiting.append((_name_of_value(data, name) if key.lower() == "value" else key, child))
        elif isinstance(value, int | float) and (digits := _digits(value, name)):
            fields.add(("" if name in _NEUTRAL else name, digits))
    return fields, trimmed


@cache
def _texts_of(kind: type[Record]) -> tuple[str, ...]:
    """The fields of a kind of record that hold texts."""
    return TEXTS[next(filter(TEXTS.__contains__, kind.__mro__))]


def _field(redactor: Redactor) -> Field:
    """The redactor as a function of a name and a text, which makes nothing of an empty text and no secret of a bug."""

    done: dict[tuple[str, str], str] = {}  # names and short words come again and again, and originals say all twice

    def field(name: str, text: str) -> str:
        if not text or (name, text) in done:
            return done.get((name, text), text)
        redaction = redactor.field(name, text) if name and isinstance(redactor, Redaction) else through(redactor, text)
        done[name, text] = redaction
        return redaction

    return field


def through(redactor: Redactor, text: str, /) -> str:
    """What `redactor` makes of `text` as a reader sees it. Raises UsageError: it gave something that is no text."""
    redaction = cast("object", redactor(text if isinstance(redactor, Redacting | Redaction) else plain(text)))
    if not isinstance(redaction, str):
        raise UsageError(
            f"redact= takes a function of text that returns text; this one gave {type(redaction).__name__}"
        )
    return redaction


def _through(record: R, field: Field) -> R:
    new = dict[str, object]()
    for name in _texts_of(type(record)):
        if not (value := getattr(record, name)):
            continue
        redaction = _redact_value(value, field)
        if name in _NEVER_EMPTY:
            redaction = str(redaction).strip() or (_GONE if str(value).strip() else "")
        if redaction is not value:
            new[name] = redaction
    return record.model_copy(update=new) if new else record


def _redact_value(value: object, field: Field, name: str = "") -> object:
    """`value` with every text in it redacted, under the names that lead to it. Numbers go where they are secrets.

    What does not change is `value` itself.
    """
    if isinstance(value, str):
        return field("" if name in _NEUTRAL else name, value) if value else value
    if isinstance(value, Record):
        return _through(value, field)
    if isinstance(value, tuple | list):
        parts = cast("list[object]", value)
        redaction = [_redact_value(part, field, name) for part in parts]
        if all(map(is_, redaction, parts)):
            return cast("object", value)
        return tuple(redaction) if isinstance(value, tuple) else redaction
    if isinstance(value, dict):
        return _mapping(cast("dict[str, Json]", value), field, name)
    if isinstance(value, int | float) and (digits := _digits(value, name)):
        redaction = field("" if name in _NEUTRAL else name, digits)
        return value if redaction == digits else redaction
    return value


def _digits(value: float, name: str) -> str:
    """Cards and telephone numbers come as numbers, too, of tables as `4e15`; a count or a price is never one."""
    if isinstance(value, bool) or value % 1:
        return ""
    if abs(value) < _LARGE and kind_of_name(name[-80:]) not in ("password", CODE):
        return ""
    return str(int(value))


def _mapping(data: dict[str, Json], field: Field, name: str) -> dict[str, Json]:
    """`{"name": "password", "value": …}` names its value. Where two keys become one, the later has a number."""
    mapping: dict[str, Json] = {}
    twins: Counter[str] = Counter()
    same = True
    for key, value in data.items():
        free = base = field("", key)
        while free in mapping:
            twins[base] += 1
            free = f"{base} ({twins[base] + 1})"
        inner = _name_of_value(data, name) if key.lower() == "value" else key
        mapping[free] = new = cast("Json", _redact_value(value, field, inner))
        same = same and new is value and free is key
    return data if same else mapping


def _name_of_value(data: dict[str, Json], around: str) -> str:
    """The name of a `value`: what stands beside it, or around it."""
    low = {key.lower(): value for key, value in data.items()}
    return next((v for k in _NAMES if isinstance(v := low.get(k), str) and len(v) < 80), around or "value")

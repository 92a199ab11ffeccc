"""Reads the texts and the fields of a run, each to a limit, for those who look for values and names in them."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache, partial
from typing import Final, NamedTuple, cast

from lessonbank.contracts.records import Json, ToolCall, Trajectory

from ._named_entities import Sought, sought_in

Source = str
"""Where a value came from: `the request`, `find_customer's result`, or an empty text where the agent chose it."""
READ: Final = 20_000
"""Characters of one text that are looked at, from each end."""
TURN: Final = 2_000
"""Characters of what a user said in one turn that count as the request, from each end: the rest is what was pasted."""
LEAVES: Final = 20_000
DEPTH: Final = 40
FIELD = re.compile(r"[^\W\d][\w -]{0,40}")
_TOOL: Final = 60
"""Characters of a tool's name that a slot tells."""
_NOT_IN_A_SLOT = re.compile(r"[<>\s=\"]+")
_DIGIT = re.compile(r"\d")
nfc: Final = partial(unicodedata.normalize, "NFC")
LOOKS: Final = re.compile(
    r"(?:get|list|search|find|read|view|show|look|check|query|fetch|count|describe|think|calculate|scroll|noop|wait"
    r"|cat|ls|grep|rg|head|tail|sed -n|pwd|cd|git (?:log|diff|show|status))(?!(?-i:[a-z]|(?<=[A-Z]{2})[A-Z]))",
    re.IGNORECASE,
)
"""How the name of a tool, or a line of a shell, begins that only looks: `read_file`, `readFile`; not `reader`."""
_COMMAND = re.compile(r"(?:bash_|shell_)?(?:command|cmd|script|code)s?")
PAIR_OR_WORDS = Sought(
    r"""["']([^\W\d]\w{0,40}+)["']\s{0,4}:\s{0,4}(?:"([^"\n]{1,300})"|'([^'\n]{1,300})'|(-?\d[\d.]{0,30}))"""
    r"""|(?<![\w"'])([^\W\d]\w{0,40}+)=(?:"([^"\n]{1,300})"|'([^'\n]{1,300})'|([^\s,;)"']{1,200}))"""
    # Words with no pair, all at once: to try each of their letters takes three times as long.
    r"""|\w++(?:[^\w"']++\w++(?!=))*+"""
)


def parsed(text: str, /) -> Json | None:
    """The data of a text that is JSON."""
    if text.lstrip()[:1] not in ("{", "[") or len(text) > 50 * READ:
        return None
    try:
        return cast("Json", json.loads(text))
    except (ValueError, RecursionError):
        return None


def leaves(data: Json) -> list[tuple[str, str, Json]]:
    """(field, the field that it stands in, value) of all data that says something; keys that are values, too."""
    fields: list[tuple[str, str, Json]] = []
    waiting: list[tuple[str, str, Json, int]] = [("", "", data, 0)]
    for _ in range(LEAVES):
        if not waiting:
            break
        key, parent, value, depth = waiting.pop()
        if depth > DEPTH:
            continue
        if isinstance(value, dict):
            for name, inner in value.items():
                named = FIELD.fullmatch(name) is not None
                if not named or _DIGIT.search(name) or (" " in name and not name.islower()):
                    fields.append((key or "key", parent, name))
                waiting.append((name if named else key, key, inner, depth + 1))
        elif isinstance(value, list):
            waiting += [(key, parent, inner, depth + 1) for inner in value]
        elif value is not None and not isinstance(value, bool):
            fields.append((key, parent, value))
    return fields


class Part(NamedTuple):
    """What was asked, what the agent gave a tool, what came back, or the answer."""

    step: int
    """Counted from 1; 0 is the request."""
    source: Source
    text: str
    data: Json | None = None
    """The arguments as they were given, or what the text says where it is JSON."""
    of_command: bool = False
    """Whether a line of a shell or a program brought it."""


def parts_of(run: Trajectory, /) -> list[Part]:
    """What was given to tools, what they returned, and the answer, without what a user said. JSON is read once."""
    parts: list[Part] = []
    for step, taken in enumerate(run.steps, 1):
        calls = taken.action.calls
        for call in calls:
            given = call.arguments
            text, data = (given, parsed(given)) if isinstance(given, str) else ("", cast("Json", given))
            parts.append(Part(step, "", text, data))
        names = {call.id: call.name for call in calls if call.id}
        returned = [seen for seen in taken.observations if seen.source != "user"]
        for number, seen in enumerate(returned):
            called = calls[number] if number < len(calls) else (calls[0] if len(calls) == 1 else None)
            tool = seen.name or names.get(seen.call_id or "", "") or (called.name if called else "")
            source = result_of(tool) if tool else "an earlier result"
            data = parsed(seen.text)
            parts.append(Part(step, source, seen.text, data, data is None and is_command(calls)))
    return [*parts, Part(len(run.steps), "", run.answer)] if run.answer else parts


@lru_cache(maxsize=1024)
def result_of(tool: str, /) -> Source:
    """What a tool returned, as a slot tells it."""
    return f"{_NOT_IN_A_SLOT.sub(' ', tool[:_TOOL])}'s result"


def is_command(calls: Iterable[ToolCall], /) -> bool:
    """Whether one of these calls runs a line of a shell or a program."""
    given = [call.arguments for call in calls]
    return any(
        map(is_command_field, [name for data in given if isinstance(data, dict) and len(data) < 4 for name in data])
    )


@lru_cache(maxsize=1024)
def is_command_field(name: str, /) -> bool:
    """Whether a field of this name holds a line of a shell or a program."""
    return _COMMAND.fullmatch(name.lower()) is not None


def asked(run: Trajectory, /) -> list[str]:
    """The task, and what a user said."""
    messages = [seen.text for step in run.steps for seen in step.observations if seen.source == "user"]
    return [ends(run.task), *[ends(text, TURN) for text in messages]]


def pairs_in(text: str, /) -> list[tuple[str, str]]:
    """The fields and values that `text` tells as `"field": "value"` or `field=value`."""
    if ":" not in text and "=" not in text:
        return []
    pairs = [pair.groups() for pair in sought_in(text, PAIR_OR_WORDS)[0] if pair.lastindex is not None]
    return [cast("tuple[str, str]", tuple(part for part in pair if part is not None)) for pair in pairs]


def keys_of(given: Iterable[Json], /) -> set[str]:
    """The keys of data, and of the data in them."""
    keys = set[str]()
    waiting = [(data, 0) for data in given]
    while waiting:
        value, depth = waiting.pop()
        if isinstance(value, dict) and depth < DEPTH:
            keys.update(value)
            waiting += [(inner, depth + 1) for inner in value.values()]
    return keys


def listed(tools: Iterable[object]) -> Iterator[str]:
    """The values of the enumerations in the tools' schemas, where a run has them."""
    waiting = [*tools]
    for _ in range(LEAVES):
        if not waiting:
            return
        value = waiting.pop()
        if isinstance(value, Mapping):
            for key, inner in cast("Mapping[str, object]", value).items():
                if key == "enum" and isinstance(inner, list):
                    yield from (option for option in cast("list[object]", inner) if isinstance(option, str))
                else:
                    waiting.append(inner)
        elif isinstance(value, list):
            waiting += cast("list[object]", value)


def texts_of(run: Trajectory) -> Iterator[str]:
    """Everything that was asked, called, returned and said, without the instructions."""
    yield run.task
    yield from (run.answer or "", run.error or "")
    for step in run.steps:
        yield from (step.thought, step.action.text)
        for call in step.action.calls:
            yield ends(
                call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments, ensure_ascii=False)
            )
        yield from (ends(seen.text) for seen in step.observations)


def ends(text: str, most: int = READ) -> str:
    return text if len(text) <= 2 * most else f"{text[:most]}\n{text[-most:]}"

"""Reads the texts and the fields of a run, each to a limit, for those who look for values and names in them."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Final, cast

from lessonbank.types import Json, Observation, Step, ToolCall, Trajectory

READ: Final = 20_000
"""Characters of one text that are looked at, from each end."""
TURN: Final = 2_000
"""Characters of what a user said in one turn that count as the request, from each end: the rest is what was pasted."""
LEAVES: Final = 20_000
DEPTH: Final = 40
FIELD = re.compile(r"[^\W\d][\w -]{0,40}")
_DIGIT = re.compile(r"\d")


def parsed(text: str, /) -> Json | None:
    """The data of a text that is JSON."""
    if text.lstrip()[:1] not in ("{", "[") or len(text) > 50 * READ:
        return None
    try:
        return cast("Json", json.loads(text))
    except (ValueError, RecursionError):
        return None


def leaves(data: Json) -> Iterator[tuple[str, str, Json]]:
    """(field, the field that it stands in, value) of all data; keys that are values themselves, too."""
    waiting: list[tuple[str, str, Json, int]] = [("", "", data, 0)]
    for _ in range(LEAVES):
        if not waiting:
            return
        key, parent, value, depth = waiting.pop()
        if depth > DEPTH:
            continue
        if isinstance(value, dict):
            for name, inner in value.items():
                named = FIELD.fullmatch(name) is not None
                if not named or _DIGIT.search(name) or (" " in name and not name.islower()):
                    yield key or "key", parent, name
                waiting.append((name if named else key, key, inner, depth + 1))
        elif isinstance(value, list):
            waiting += [(key, parent, inner, depth + 1) for inner in value]
        else:
            yield key, parent, value


def answered(step: Step) -> Iterator[tuple[str, Observation]]:
    """What came back in a step, but from the user, each with whence it came."""
    names = {call.id: call.name for call in step.action.calls if call.id}
    order = [call.name for call in step.action.calls]
    for number, seen in enumerate(o for o in step.observations if o.source != "user"):
        called = order[number] if number < len(order) else (order[0] if len(order) == 1 else "")
        tool = seen.name or names.get(seen.call_id or "", "") or called
        yield f"{tool}'s result" if tool else "an earlier result", seen


def said_by_user(run: Trajectory) -> Iterator[str]:
    for step in run.steps:
        yield from (ends(seen.text, TURN) for seen in step.observations if seen.source == "user")


def arguments(call: ToolCall) -> Json:
    if isinstance(call.arguments, str):
        data = parsed(call.arguments)
        return call.arguments if data is None else data
    return cast("Json", call.arguments)


def listed(tools: object) -> Iterator[str]:
    """The values of the enumerations in the tools' schemas, where a run has them."""
    waiting: list[object] = [tools]
    for _ in range(LEAVES):
        if not waiting:
            return
        value = waiting.pop()
        if isinstance(value, Mapping):
            for key, inner in cast("Mapping[str, object]", value).items():
                if key == "enum" and isinstance(inner, list):
                    yield from (one for one in cast("list[object]", inner) if isinstance(one, str))
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


def nfc(text: str) -> str:
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def ends(text: str, most: int = READ) -> str:
    return text if len(text) <= 2 * most else f"{text[:most]}\n{text[-most:]}"

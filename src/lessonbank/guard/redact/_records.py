"""Applies a redactor to every text of a run or an experience. A field that is left out would leak."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, TypeVar, cast

from lessonbank.errors import UsageError
from lessonbank.protocols import Redactor
from lessonbank.types import Action, Experience, Json, Lesson, Observation, Step, ToolCall, Trajectory

from ._redactor import PerRun, Redaction
from ._words import kind_of_name

R = TypeVar("R")
Field: TypeAlias = Callable[[str, str], str]
"""The name of a field of some data, or `""`, and its text, to the text that may be kept."""

_NAMES = ("name", "key", "field", "header", "id", "label")
_LARGE = 10**8
"""The least number that can be a telephone's, a card's or a person's."""
_GONE = "[removed]"


def redacted(run: Trajectory, redactor: Redactor, /) -> Trajectory:
    """`run` without secrets and personal data: every text of it, arguments and metadata by their names, too.

    Its id stays. Linear in its size.

    Raises:
        UsageError: the redactor gave something that is no text.
    """
    fresh = redactor.for_run() if isinstance(redactor, PerRun) else redactor
    field = _field(fresh)
    task = field("", run.task).strip() or _GONE  # first, so that it reads as the same task does when it is asked for
    if isinstance(fresh, Redaction):
        _through(run, _watching(fresh))
    cleaned = _through(run, field).model_copy(update={"task": task})
    if isinstance(fresh, Redaction) and fresh.knows:
        again = _through(cleaned, lambda _, text: fresh.again(text))
        cleaned = again.model_copy(update={"task": fresh.again(task)})
    return cleaned


def redacted_experience(experience: Experience, redactor: Redactor, /) -> Experience:
    """`experience` without secrets and personal data: its task, its lessons, its metadata. Raises UsageError."""
    field = _field(redactor.for_run() if isinstance(redactor, PerRun) else redactor)
    task = field("", experience.task).strip() or _GONE
    lessons = tuple(_lesson(lesson, field) for lesson in experience.lessons)
    metadata = cast("dict[str, Json]", _json(experience.metadata, field))
    return experience.model_copy(update={"task": task, "lessons": lessons, "metadata": metadata})


def _field(redactor: Redactor) -> Field:
    """The redactor as a function of a name and a text, which makes nothing of an empty text and no secret of a bug."""

    done: dict[tuple[str, str], str] = {}  # names and short words come again and again, and originals say all twice

    def field(name: str, text: str) -> str:
        if not text or (name, text) in done:
            return done.get((name, text), text)
        told = redactor.field(name, text) if name and isinstance(redactor, Redaction) else redactor(text)
        done[name, text] = checked(told)
        return told

    return field


def checked(told: object, /) -> str:
    """What a redactor gave, if it is text. Raises UsageError."""
    if not isinstance(told, str):
        raise UsageError(f"redact= takes a function of text that returns text; this one gave {type(told).__name__}")
    return told


def _watching(fresh: Redaction) -> Field:
    def field(_: str, text: str) -> str:
        fresh.reserve(text)
        return text

    return field


def _through(run: Trajectory, field: Field) -> Trajectory:
    return run.model_copy(
        update={
            "instructions": field("", run.instructions),
            "steps": tuple(_step(step, field) for step in run.steps),
            "answer": run.answer and field("", run.answer),
            "error": run.error and field("", run.error),
            "metadata": _json(run.metadata, field),
            "original": tuple(_json(message, field) for message in run.original),
        }
    )


def _step(step: Step, field: Field) -> Step:
    action = Action.model_construct(
        text=field("", step.action.text), calls=tuple(_call(call, field) for call in step.action.calls)
    )
    seen = tuple(_observation(observation, field) for observation in step.observations)
    return step.model_copy(update={"thought": field("", step.thought), "action": action, "observations": seen})


def _call(call: ToolCall, field: Field) -> ToolCall:
    told = call.arguments
    arguments = field("", told) if isinstance(told, str) else _json(cast("Json", told), field)
    return call.model_copy(
        update={"name": field("", call.name), "arguments": arguments, "id": call.id and field("", call.id)}
    )


def _observation(seen: Observation, field: Field) -> Observation:
    told = {
        "text": field("", seen.text),
        "name": seen.name and field("", seen.name),
        "call_id": seen.call_id and field("", seen.call_id),
    }
    return seen.model_copy(update=told)


def _lesson(lesson: Lesson, field: Field) -> Lesson:
    told = {name: field("", getattr(lesson, name)) for name in ("title", "description", "content")}
    return lesson.model_copy(
        update={**told, "title": told["title"].strip() or _GONE, "content": told["content"].strip() or _GONE}
    )


def _json(value: Json, field: Field, name: str = "") -> Json:
    """`value` with every text in it redacted, under the names that lead to it. Numbers go where they are secrets."""
    if isinstance(value, str):
        return field(name, value)
    if isinstance(value, list):
        return [_json(part, field, name) for part in value]
    if isinstance(value, dict):
        return _mapping(value, field)
    return _number(value, field, name) if isinstance(value, int) and not isinstance(value, bool) else value


def _number(value: int, field: Field, name: str) -> Json:
    """Cards and telephone numbers come as numbers, too; a count or a price is never one."""
    if abs(value) < _LARGE and kind_of_name(name) != "password":
        return value
    told = field(name, str(value))
    return value if told == str(value) else told


def _mapping(data: dict[str, Json], field: Field) -> dict[str, Json]:
    """`{"name": "password", "value": …}` names its value beside it."""
    beside = next((v for k in _NAMES if isinstance(v := data.get(k), str) and len(v) < 80), "value")
    told: dict[str, Json] = {}
    for key, value in data.items():
        told[_free(field("", key), told)] = _json(value, field, beside if key == "value" else key)
    return told


def _free(key: str, told: dict[str, Json]) -> str:
    """`key`, or the same with a number where two keys were made one: no value is lost."""
    if key not in told:
        return key
    return next(new for n in range(2, len(told) + 3) if (new := f"{key} ({n})") not in told)

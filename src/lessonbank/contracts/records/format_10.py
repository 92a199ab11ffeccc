"""Reads records of format 10 and earlier, whose metadata held facts that have fields of their own now.

Each function takes a record as JSON has it, and gives what the records of today take. A value that has not the form in
which the bank wrote it stays in the metadata: nothing is lost. A field that the record has already stands, so a record
of today does not change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from sys import float_info
from typing import Any, Final, TypeAlias, cast, get_args

from pydantic import ValidationError

from .lessons import Lesson
from .record import Record
from .runs import Json, Outcome, Verdict

Fields: TypeAlias = Mapping[str, Any]
Moved: TypeAlias = tuple[dict[str, Json], Json]
"""The fields that a value of the metadata becomes, and what of it stays there: `_NOTHING` where all of it has moved."""

_NOTHING: Final[Json] = {}


def upgrade_run(fields: Fields, /) -> dict[str, Any]:
    """A run of format 10, as `Trajectory` takes it."""
    return _upgraded(fields, _RUN)


def upgrade_experience(fields: Fields, /) -> dict[str, Any]:
    """An experience of format 10, as `Experience` takes it."""
    return _with_proposal(_upgraded(fields, _EXPERIENCE))


def upgrade_change(fields: Fields, /) -> dict[str, Any]:
    """A change of format 10, or another entry of a journal: the experience in it is upgraded."""
    held = fields.get("experience")
    return {**fields, "experience": upgrade_experience(cast("Fields", held))} if isinstance(held, dict) else {**fields}


def _upgraded(fields: Fields, readers: Mapping[str, Callable[[Json], Moved]]) -> dict[str, Any]:
    raw_metadata = fields.get("metadata")
    metadata = cast("dict[str, Json]", raw_metadata) if isinstance(raw_metadata, dict) else {}
    upgraded, rest = {**fields}, dict(metadata)
    for key in filter(metadata.__contains__, readers):
        moved, left = readers[key](metadata[key])
        if not moved or not fields.keys().isdisjoint(moved):
            continue
        upgraded |= moved
        del rest[key]
        if left is not _NOTHING:
            rest[key] = left
    return {**upgraded, "metadata": rest} if len(upgraded) > len(fields) else upgraded


def _with_proposal(fields: dict[str, Any]) -> dict[str, Any]:
    """What a file proposes stood under three keys."""
    raw_metadata = fields.get("metadata")
    metadata = cast("dict[str, Json]", raw_metadata) if isinstance(raw_metadata, dict) else {}
    changes = ((key, change) for key, change in _CHANGES.items() if isinstance(metadata.get(key), str))
    key, change = next(changes, ("", ""))
    if not change or "proposal" in fields:
        return fields
    seen = {name: value for name, value in metadata.items() if name == "was" and isinstance(value, str)}
    rest = {name: value for name, value in metadata.items() if name != key and name not in seen}
    return {**fields, "proposal": {"change": change, "lesson_id": metadata[key], **seen}, "metadata": rest}


_CHANGES: Final = {"edits": "edit", "retires": "retire"}


# --- what a value becomes ---------------------------------------------------------------------------------------------


def _flag(field: str) -> Callable[[Json], Moved]:
    return lambda value: ({field: True}, _NOTHING) if value is True else ({}, value)


def _imported(value: Json) -> Moved:
    """The key alone said it, whatever stood under it."""
    return {"imported": True}, _NOTHING if value is True else value


def _if(field: str, fits: Callable[[Json], bool]) -> Callable[[Json], Moved]:
    return lambda value: ({field: value}, _NOTHING) if fits(value) else ({}, value)


def _by_id(field: str, names: Mapping[str, str], fits: Callable[[Json], bool]) -> Callable[[Json], Moved]:
    """By lesson id; `names`: what the parts of a value are called now."""

    def read(value: Json) -> Moved:
        if not isinstance(value, dict):
            return {}, value
        good = {id: entry for id, entry in value.items() if fits(entry)}
        rest = {id: entry for id, entry in value.items() if id not in good}
        return {field: {id: _renamed(entry, names) for id, entry in good.items()}} if good else {}, rest or _NOTHING

    return read


def _renamed(value: Json, names: Mapping[str, str]) -> Json:
    return {names.get(name, name): part for name, part in value.items()} if isinstance(value, dict) else value


def _submission(value: Json) -> Moved:
    good, rest = _parts(value, _SUBMISSION)
    names = {"recall": "recall_id", "runs": "run_ids"}
    return ({"submission": _renamed(good, names)}, rest) if good else ({}, value)


def _repeats(value: Json) -> Moved:
    """An entry that cannot be read counts as one, too."""
    if not isinstance(value, dict):
        return {}, value
    repeats, rest = dict[str, Json](), dict[str, Json]()
    for id, entries in value.items():
        read = [_parts(entry, _DUPLICATE) for entry in entries] if isinstance(entries, list) else []
        repeats[id] = [good for good, _ in read]
        left = [remainder for _, remainder in read if remainder is not _NOTHING]
        if left or not isinstance(entries, list):
            rest[id] = left or entries
    return {"repeats": repeats} if repeats else {}, rest or _NOTHING


def _parts(value: Json, parts: Mapping[str, Callable[[Json], bool]]) -> Moved:
    """The parts of a value that have their form, and the rest."""
    if not isinstance(value, dict):
        return {}, value
    good = {name: part for name, part in value.items() if name in parts and parts[name](part)}
    rest = {name: part for name, part in value.items() if name not in good}
    return good, rest or _NOTHING


# --- which form a value has -------------------------------------------------------------------------------------------


def _is_text(value: Json) -> bool:
    return isinstance(value, str)


def _are_texts(value: Json) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= float_info.max


def _is_neighbour(value: Json) -> bool:
    return isinstance(value, dict) and value.keys() == {"with", "why"} and all(map(_is_text, value.values()))


def _is(kind: type[Record]) -> Callable[[Json], bool]:
    def fits(value: Json) -> bool:
        try:
            kind.model_validate(value)
        except ValidationError:
            return False
        return True

    return fits


_SUBMISSION: Final[Mapping[str, Callable[[Json], bool]]] = {
    "verdict": _is(Verdict),
    "outcome": lambda value: value in get_args(Outcome),
    "reward": _is_number,
    "recall": _is_text,
    "runs": _are_texts,
    "identity": _is_text,
    "writer": _is_text,
    "seal": _is_text,
}
_DUPLICATE: Final[Mapping[str, Callable[[Json], bool]]] = {
    "title": _is_text,
    "evidence": _are_texts,
    "why": _is_text,
    "lesson": _is(Lesson),
}
_RUN: Final[Mapping[str, Callable[[Json], Moved]]] = {
    "lessonbank_submitted": _submission,
    "unfinished": _flag("unfinished"),
    "imported": _imported,
    "tools": _if("tools", lambda value: isinstance(value, list)),
    "parent_run": _if("parent_run", _is_text),
    "recall_id": _if("recall_id", _is_text),
}
_EXPERIENCE: Final[Mapping[str, Callable[[Json], Moved]]] = {
    "repeats": _repeats,
    "not_recognised": _by_id("not_recognised", {"with": "lesson_id"}, _is_neighbour),
    "not_merged": _by_id("not_merged", {"with": "lesson_id"}, _is_neighbour),
    "merged": _by_id("merged", {}, _are_texts),
    "pending": _flag("pending"),
    "imported": _imported,
    "template": _if("template", _is_text),
    "recall_id": _if("recall_id", _is_text),
}

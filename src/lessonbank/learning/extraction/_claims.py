"""Reads from a model's reply how far a lesson goes, what it proves of a choice, and how it stands to known lessons."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, cast, get_args

from lessonbank.contracts.records import AppliesTo, Choice, Reach
from lessonbank.guard.quote import in_one_line

Beside = Literal["same", "sharper", "contradicts", "adds"]
_REACHES: Final[dict[str, Reach]] = {"organization": "organisation", **{reach: reach for reach in get_args(Reach)}}
_LONGEST: Final = 80
_MOST: Final = 12


def reach_of(fields: Mapping[str, Any], /) -> AppliesTo | None:
    """How far it goes; `None` where the reply does not say, or says what nobody asked for."""
    told = fields.get("applies_to")
    inner = cast("dict[str, Any]", told) if isinstance(told, dict) else {"reach": told}
    reach = _REACHES.get(_word(inner.get("reach")))
    if reach is None:
        return None
    name = "" if reach == "kind" else _line(inner.get("name") or fields.get("where"))
    return AppliesTo(reach=reach, name=name, unsettled=inner.get("unsettled", fields.get("unsettled")) is True)


def choice_of(fields: Mapping[str, Any], /) -> Choice | None:
    """What it proves of a choice; `None` where it is about none."""
    told = fields.get("choice")
    if not isinstance(told, dict):
        return None
    said = cast("dict[str, Any]", told)
    options = {name: _options(said.get(name)) for name in ("excluded", "open", "confirmed")}
    about = _line(said.get("about"))
    return Choice(about=about, **options) if about and any(options.values()) else None


def stand_of(fields: Mapping[str, Any], /) -> tuple[Beside, str] | None:
    """Return how a draft stands to a known lesson, and to which; `None` for a new one."""
    word, to = _word(fields.get("stands")), _line(fields.get("to")).upper()
    stand = next((one for one in get_args(Beside) if one == word and one != "adds"), None)
    return (cast("Beside", stand), to) if stand and to else None


def _options(told: object) -> tuple[str, ...]:
    listed = cast("list[object]", told) if isinstance(told, list) else [told]
    return tuple(dict.fromkeys(filter(None, map(_line, listed[:_MOST]))))


def _word(told: object) -> str:
    return told.strip().casefold() if isinstance(told, str) else ""


def _line(told: object) -> str:
    return in_one_line(told, limit=_LONGEST)[:_LONGEST] if isinstance(told, str) else ""

"""Finds the one JSON object in a model's reply that carries the code it was given."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import cast

import json_repair

from lessonbank.contracts.records import Usage
from lessonbank.errors import OutputError
from lessonbank.guard.quote import quoted

_READ = 64_000
_TRIED = 200
_REPAIRED = 8_000


def reply_with(code: str, text: str, /, *, usage: Usage) -> dict[str, object]:
    """The last object of `text` whose `check` is `code`: an object quoted from a run cannot know it.

    Raises:
        OutputError: there is none; it carries `usage`.
    """
    said = text.rpartition("</think>")[2][-_READ:]
    found = [entry for entry in _objects(said) if str(entry.get("check", "")).strip().lower() == code]
    if not found:
        raise OutputError(f"nothing readable with the check code in the reply: {quoted(said, limit=120)}", usage=usage)
    return found[-1]


def _objects(said: str) -> Iterator[dict[str, object]]:
    """The outermost objects, in order; where none parses, one repaired."""
    decoder, at, some = json.JSONDecoder(strict=False), 0, False
    for _ in range(_TRIED):
        at = said.find("{", at)
        if at < 0:
            break
        try:
            value, at = decoder.raw_decode(said, at)
        except ValueError:
            at += 1
            continue
        except RecursionError:  # no reply that was asked for is nested like that
            break
        if isinstance(value, dict):
            some = True
            yield cast("dict[str, object]", value)
    start = said.find("{")
    if not some and start >= 0 and (mended := _repaired(said[start : start + _REPAIRED])):
        yield mended


def _repaired(text: str) -> dict[str, object] | None:
    try:
        value: object = json_repair.loads(text)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, object]", value) if isinstance(value, dict) else None

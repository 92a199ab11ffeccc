"""Reads a verdict out of whatever a judge replied, and never reads one that is not there."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import json_repair

from lessonbank.errors import JudgeError
from lessonbank.guard import one_line
from lessonbank.types import Outcome

from ._thinking import spoken
from ._words import confidence_of, outcome_of

_HEAD, _TAIL = 8_000, 24_000  # characters of a reply that are read; a verdict takes a few hundred
_REPAIRED = 4_000  # characters given to the repairing parser, which is slow on hostile text
_REPAIRS = 3
_ATTEMPTS = 200
_REASON = 1_000
_OUTCOME_KEYS = ("outcome", "status", "verdict", "result", "judgment", "judgement", "success", "label", "passed")
_REASON_KEYS = ("reason", "reasoning", "thoughts", "thought", "explanation", "rationale")
_DECODER = json.JSONDecoder()


def _labelled(names: str, most: int, /) -> re.Pattern[str]:
    """Lines such as `**Status:** success`: one of `names`, then up to `most` characters."""
    marks = r"[ \t>*_#`'\"-]{0,12}"
    return re.compile(rf"^{marks}(?:{names}){marks}[:=]([^\n]{{1,{most}}})$", re.IGNORECASE | re.MULTILINE)


_LINE = _labelled(r"(?:final[ _])?(?:outcome|status|verdict|result|judge?ment)", 200)
_THOUGHTS = _labelled(r"thoughts?|reason(?:ing)?", 2_000)
_CONFIDENCE = _labelled("confidence", 60)


@dataclass(frozen=True, slots=True)
class Reading:
    """What a judge's reply says. `confidence` is `None` where it gave none."""

    outcome: Outcome
    confidence: float | None = None
    reason: str = ""


def parse_verdict(text: str | None, /, *, nonce: str | None = None) -> Reading:
    """The last verdict in a judge's reply, thinking blocks left out.

    Read are: JSON objects (in prose, in fences, in a list, with the usual slips), lines such as `Status: "success"`,
    and a reply that is one word. A word that is no clear success or failure ("partial") is `unknown`.

    With `nonce`, only a verdict that comes with it counts: an object that has it as a value, or a reply without objects
    that mentions it. So a verdict quoted from a run, which cannot know the nonce, is not taken for the judge's.

    Raises:
        JudgeError: the reply is empty, holds no verdict, or none that carries the nonce.
    """
    said = spoken(text or "")
    if not said:
        raise JudgeError("The judge's reply is empty.")
    said = said if len(said) <= _HEAD + _TAIL else f"{said[:_HEAD]}\n{said[-_TAIL:]}"
    found = [reading for entry in _objects(said) if (reading := _from_object(entry, nonce))]
    if found:
        return found[-1]
    if nonce and nonce not in said.lower():
        raise JudgeError(f"The judge's reply does not carry the check code it was given: {one_line(said, limit=120)}")
    if (reading := _from_lines(said)) is None:
        raise JudgeError(f"No verdict could be read from the judge's reply: {one_line(said, limit=120)}")
    return reading


def _from_object(entry: dict[str, Any], nonce: str | None, /) -> Reading | None:
    fields = {str(key).strip().lower(): value for key, value in entry.items()}
    if nonce and not any(str(value).strip().lower() == nonce for value in fields.values()):
        return None
    outcomes: set[Outcome] = {outcome for key in _OUTCOME_KEYS if (outcome := outcome_of(fields.get(key)))}
    if not outcomes:
        return None
    agreed: Outcome = outcomes.pop() if len(outcomes) == 1 else "unknown"
    reason = next((fields[key] for key in _REASON_KEYS if isinstance(fields.get(key), str)), "")
    return Reading(
        outcome=agreed,
        confidence=confidence_of(fields.get("confidence")),
        reason=one_line(reason, limit=_REASON),
    )


def _from_lines(said: str, /) -> Reading | None:
    lines = said.splitlines()
    values = _LINE.findall(said) or [lines[0], lines[-1]][: len(lines)]
    outcomes: list[Outcome] = [outcome for value in values if (outcome := outcome_of(value))]
    if not outcomes:
        return None
    reasons, sure = _THOUGHTS.findall(said), _CONFIDENCE.findall(said)
    return Reading(
        outcome=outcomes[-1],
        confidence=confidence_of(sure[-1]) if sure else None,
        reason=one_line(reasons[-1], limit=_REASON).strip(" *_`") if reasons else "",
    )


def _objects(said: str, /) -> Iterator[dict[str, Any]]:
    """Every object in the reply in order: the well-formed ones as they are, what lies between them repaired."""
    repairs = _REPAIRS
    found: list[dict[str, Any]] = []
    end = len(said)
    for start, stop, value in [*_wellformed(said)][::-1]:
        gap, end = said[stop:end], start
        found = [*_flat(value), *(_flat(_repaired(gap)) if repairs > 0 else ()), *found]
        repairs -= "{" in gap
    yield from _flat(_repaired(said[:end])) if repairs > 0 else ()
    yield from found


def _wellformed(said: str, /) -> Iterator[tuple[int, int, object]]:
    at = said.find("{")
    for _ in range(_ATTEMPTS):
        if at < 0:
            return
        try:
            value, stop = _DECODER.raw_decode(said, at)
        except (ValueError, RecursionError):
            at = said.find("{", at + 1)
            continue
        yield at, stop, value
        at = said.find("{", stop)


def _repaired(gap: str, /) -> object:
    start = gap.find("{")
    if start < 0 or ":" not in gap:
        return None
    try:
        return json_repair.loads(gap[start : start + _REPAIRED])
    except (ValueError, RecursionError):
        return None


def _flat(value: object, /) -> Iterator[dict[str, Any]]:
    """The objects in a value, one level of wrapping (`[{…}]`, `{"verdict": {…}}`) taken off."""
    if isinstance(value, list):
        for entry in cast("list[object]", value)[:20]:
            yield from _flat(cast("object", entry)) if isinstance(entry, dict) else ()
    elif isinstance(value, dict):
        entry = cast("dict[str, Any]", value)
        yield entry
        yield from ({**entry, **cast("dict[str, Any]", inner)} for inner in entry.values() if isinstance(inner, dict))

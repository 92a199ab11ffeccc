"""Reads a verdict out of whatever a judge replied, and never reads one that is not there."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, cast

import json_repair

from lessonbank.contracts.records import Outcome
from lessonbank.errors import JudgeError
from lessonbank.guard.quote import in_one_line, quoted

from ._thinking import spoken
from ._words import confidence_of, outcome_of

_HEAD, _TAIL = 8_000, 24_000  # characters of a reply that are read; a verdict takes a few hundred
_REPAIRED = 4_000  # characters given to the repairing parser, which is slow on hostile text
_REPAIRS = 3
_ATTEMPTS = 200
_REASON = 1_000
_OUTCOME_KEYS = ("outcome", "status", "verdict", "result", "judgment", "judgement", "success", "label", "passed")
_REASON_KEYS = ("reason", "reasoning", "thoughts", "thought", "explanation", "rationale")


def _labelled(names: str, most: int, /) -> re.Pattern[str]:
    """Lines such as `**Status:** success`: one of `names`, then up to `most` characters."""
    marks = r"[ \t>*_#`'\"-]{0,12}"
    return re.compile(rf"^{marks}(?:{names}){marks}[:=]([^\n]{{1,{most}}})$", re.IGNORECASE | re.MULTILINE)


_LINE = _labelled(r"(?:final[ _])?(?:outcome|status|verdict|result|judge?ment)", 200)
_THOUGHTS = _labelled(r"thoughts?|reason(?:ing)?", 2_000)
_CONFIDENCE = _labelled("confidence", 60)
_CHECK = _labelled("check(?:[ _]code)?", 60)
_STEPS = _labelled("steps", 200)
_MENTION = re.compile(
    rf"""(["'“]?)\b(?:{"|".join(_OUTCOME_KEYS)})\b\\?["'”]?\s{{0,8}}:([^,\n{{}}]{{0,60}})""", re.IGNORECASE
)
_FIELD = re.compile(r"""["']\s{0,8}:""")
_LABELS = (_LINE, _THOUGHTS, _CONFIDENCE, _CHECK, _STEPS)
_MOST_STEPS = 12
_NUMBER = re.compile(r"(?<![\d.])\d{1,6}(?![\d.])")


@dataclass(frozen=True, slots=True)
class Reading:
    """What a judge's reply says. `confidence` is `None` where it gave none."""

    outcome: Outcome
    confidence: float | None = None
    reason: str = ""
    steps: tuple[int, ...] = ()
    """Numbers of steps that it asks to see whole, at most twelve."""


def parse_verdict(text: str | None, /, *, nonce: str | None = None) -> Reading:
    """The last verdict in a judge's reply, thinking blocks left out.

    Read are: JSON objects (in prose, in fences, in a list, with the usual slips), lines such as `Status: "success"`,
    and a reply that is one word. A word that is no clear success or failure ("partial") is `unknown`.

    With `nonce`, only a verdict that comes with it counts: an object that has it as a value, or, in a reply without
    objects, labelled lines of which a `Check:` line comes first. So a verdict quoted from a run, which cannot know the
    nonce, is not taken for the judge's. Where a reply contradicts itself in one place, it states no outcome there.

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
        raise JudgeError(f"The judge's reply does not carry the check code it was given: {quoted(said, limit=120)}")
    if (reading := _from_lines(said) if nonce is None or _is_form(said, nonce) else None) is None:
        raise JudgeError(f"No verdict could be read from the judge's reply: {quoted(said, limit=120)}")
    return reading


def _from_object(fields: dict[str, Any], nonce: str | None, /) -> Reading | None:
    plain = (str(value).strip().lower() for value in fields.values() if isinstance(value, str | int))
    if nonce and nonce not in plain:
        return None
    outcomes: set[Outcome] = {outcome for key in _OUTCOME_KEYS if (outcome := outcome_of(fields.get(key)))}
    if not outcomes:
        return None
    agreed: Outcome = outcomes.pop() if len(outcomes) == 1 else "unknown"
    reason = next((fields[key] for key in _REASON_KEYS if isinstance(fields.get(key), str)), "")
    return Reading(
        outcome=agreed,
        confidence=confidence_of(fields.get("confidence")),
        reason=in_one_line(reason, limit=_REASON),
        steps=_steps(fields.get("steps")),
    )


def _steps(value: object, /) -> tuple[int, ...]:
    """The numbers in a list or a text, such as `[3, "step 7"]` or "3 and 7"."""
    told = cast("list[object]", value) if isinstance(value, list) else [value]
    plain = [str(one)[:200] for one in told[:_MOST_STEPS] if isinstance(one, int | str) and not isinstance(one, bool)]
    return tuple(int(number) for number in _NUMBER.findall(" ".join(plain)))[:_MOST_STEPS]


def _from_lines(said: str, /) -> Reading | None:
    lines = said.splitlines()
    values = _LINE.findall(said) or [lines[0], lines[-1]][: len(lines)]
    outcomes: list[Outcome] = [outcome for value in values if (outcome := outcome_of(value))]
    if not outcomes:
        return None
    reasons, sure = _THOUGHTS.findall(said), _CONFIDENCE.findall(said)
    return Reading(
        outcome=outcomes[-1] if len({*outcomes}) == 1 else "unknown",
        confidence=confidence_of(sure[-1]) if sure else None,
        reason=in_one_line(reasons[-1], limit=_REASON).strip(" *_`") if reasons else "",
        steps=_steps(next(iter(_STEPS.findall(said)[-1:]), None)),
    )


def _is_form(said: str, nonce: str, /) -> bool:
    """Whether a reply is a form of labelled lines under a `Check:` line with the nonce.

    Anything between or below them may be a quote, and so may be what stands before the nonce.
    """
    lines = [line for line in said.split("\n") if line.strip()]
    start = next((n for n, line in enumerate(lines) if any(label.match(line) for label in _LABELS)), len(lines))
    codes = {value.strip(" \t\r*_`'\"").lower() for value in _CHECK.findall(said)}
    if "{" in said or codes != {nonce} or not _CHECK.match(lines[start]):
        return False
    return all(any(label.match(line) for label in _LABELS) for line in lines[start:])


def _objects(said: str, /) -> Iterator[dict[str, Any]]:
    """The fields of every object in the reply in order: well-formed ones as they are, what lies between repaired."""
    spans = [*_wellformed(said)]
    starts, stops = [*(start for start, _, _ in spans), len(said)], [0, *(stop for _, stop, _ in spans)]
    gaps = [said[stop:start] for start, stop in zip(starts, stops, strict=True)]
    # An object whose quotes are not escaped falls into several gaps: all of them together must state one outcome.
    broken = [] if _contradicts(" ".join(gaps)) else [n for n, gap in enumerate(gaps) if "{" in gap][-_REPAIRS:]
    for number, gap in enumerate(gaps):
        after = gaps[number + 1] if number < len(spans) else None
        yield from _flat(_repaired(gap)) if number in broken and (after is None or not _is_open(gap)) else ()
        yield from _flat(spans[number][2]) if after is not None and not _goes_on(after) else ()


def _is_open(gap: str, /) -> bool:
    """Whether an object that begins in a gap seems to go on behind it."""
    return gap.count("{") > gap.count("}")


def _goes_on(gap: str, /) -> bool:
    """Whether the object before a gap was ended by something quoted in it: its other fields and its end follow."""
    rest, end, _ = gap.partition("{")[0].partition("}")
    return bool(end) and _FIELD.search(rest) is not None


def _contradicts(text: str, /) -> bool:
    """Whether a text that is no JSON names an outcome more than once and not always the same."""
    stated = [(quote, outcome_of(value)) for quote, value in _MENTION.findall(text)]
    outcomes = [outcome for quote, outcome in stated if quote or outcome]
    return len(outcomes) > 1 and (None in outcomes or len({*outcomes}) > 1)


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
    if ":" not in gap:
        return None
    try:
        return json_repair.loads(gap[start : start + _REPAIRED])
    except (ValueError, RecursionError):
        return None


def _fields(pairs: Iterable[tuple[Any, Any]], /) -> dict[str, Any]:
    """Names in lower case to values; a name that comes with two values has none."""
    fields: dict[str, Any] = {}
    for name, value in pairs:
        key = str(name).strip().lower()
        fields[key] = value if key not in fields or fields[key] == value else None
    return fields


_DECODER = json.JSONDecoder(object_pairs_hook=_fields, strict=False)


def _flat(value: object, /) -> Iterator[dict[str, Any]]:
    """The fields of the objects in a value, one level of wrapping (`[{…}]`, `{"verdict": {…}}`) taken off."""
    if isinstance(value, list):
        for entry in cast("list[object]", value)[:20]:
            yield from _flat(cast("object", entry)) if isinstance(entry, dict) else ()
    elif isinstance(value, dict):
        fields = _fields(cast("dict[Any, Any]", value).items())
        yield fields
        yield from _unwrapped(fields)


def _unwrapped(fields: dict[str, Any], /) -> Iterator[dict[str, Any]]:
    """The objects inside one that states no outcome itself; the nonce beside it covers one that is called a verdict."""
    inner = {key: _fields(cast("dict[Any, Any]", v).items()) for key, v in fields.items() if isinstance(v, dict)}
    named = [key for key in _OUTCOME_KEYS if key in fields]
    if any(key not in inner for key in named) or len(named) > 1:
        return
    for key, own in inner.items():
        yield {**fields, **own} if key in named else own

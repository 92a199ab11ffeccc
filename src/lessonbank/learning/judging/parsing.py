"""Reads a verdict out of whatever a judge replied, with the words judges use, and never one that is not there."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import dropwhile
from typing import cast

from lessonbank.contracts.records import Outcome
from lessonbank.errors import JudgeError
from lessonbank.guard.quote import in_one_line, quoted
from lessonbank.text.replies import Fields, JsonObject, find_objects, read_objects, spoken

_HEAD, _TAIL = 8_000, 24_000  # characters of a reply that are read; a verdict takes a few hundred
_REASON = 1_000
_OUTCOME_KEYS = ("outcome", "status", "verdict", "result", "judgment", "judgement", "success", "label", "passed")
_REASON_KEYS = ("reason", "reasoning", "thoughts", "thought", "explanation", "rationale")
_MARKS = r"[ \t>*_#`'\"-]{0,12}"
_LABELLED = re.compile(
    rf"{_MARKS}(?:(?P<outcome>(?:final[ _])?(?:outcome|status|verdict|result|judge?ment))|(?P<steps>steps)"
    rf"|(?P<reason>thoughts?|reason(?:ing)?)|(?P<confidence>confidence)|(?P<check>check(?:[ _]code)?)){_MARKS}"
    r"[:=](.{1,2000})",
    re.IGNORECASE | re.DOTALL,
)
"""A line such as `**Status:** success`."""
_MENTION = re.compile(
    rf"""(["'“]?)\b(?:{"|".join(_OUTCOME_KEYS)})\b\\?["'”]?\s{{0,8}}:([^,\n{{}}]{{0,60}})""", re.IGNORECASE
)
_FIELD = re.compile(r"""["']\s{0,8}:""")
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
    reply = spoken(text or "")
    if not reply:
        raise JudgeError("The judge's reply is empty.")
    reply = reply if len(reply) <= _HEAD + _TAIL else f"{reply[:_HEAD]}\n{reply[-_TAIL:]}"
    objects = find_objects(reply)
    if readings := read_objects(objects, partial(_from_object, nonce)):
        if nonce or not _states_outcome(objects[-1].after):
            return readings[-1]
        for quote in reversed(objects):
            reply = f"{reply[: quote.start]}…{reply[quote.stop :]}"
    if nonce and nonce not in reply.lower():
        raise JudgeError(f"The judge's reply does not carry the check code it was given: {quoted(reply, limit=120)}")
    if (reading := _from_lines(reply, nonce)) is None:
        raise JudgeError(f"No verdict could be read from the judge's reply: {quoted(reply, limit=120)}")
    return reading


def _from_object(nonce: str | None, json_object: JsonObject, fields: Fields, /) -> Iterator[Reading]:
    """What an object states, and objects in it; nothing where something quoted in it may have ended or changed it."""
    is_broken = json_object.fields is None
    if _goes_on(json_object.after):
        return
    if is_broken and (json_object.inner or _contradicts(json_object.text[json_object.start :])):
        return
    if nonce and is_broken and json_object.is_inner:  # its end may be a quote's, which took the outer one's with it
        return
    for every in (fields, *_unwrapped(fields)):
        if reading := _from_fields(every, nonce):
            yield reading


def _from_fields(fields: Fields, nonce: str | None, /) -> Reading | None:
    plain = (str(value).strip().lower() for value in fields.values() if isinstance(value, str | int))
    if nonce and nonce not in plain:
        return None
    reason = next((fields[key] for key in _REASON_KEYS if isinstance(fields.get(key), str)), "")
    stated = (fields.get(key) for key in _OUTCOME_KEYS)
    return _reading(stated, reason=reason, confidence=fields.get("confidence"), steps=fields.get("steps"))


def _from_lines(reply: str, nonce: str | None, /) -> Reading | None:
    """What labelled lines state; of a reply without them, what its first or last line is.

    With a nonce they must be a form, under a `Check:` line that has it: anything between or below the lines may be a
    quote, and so may be what stands before the nonce.
    """
    lines = [line for line in reply.split("\n") if line.strip()]
    labelled = [_LABELLED.fullmatch(line) for line in lines]
    values: dict[str, list[str]] = {}
    for match in filter(None, labelled):
        values.setdefault(next(name for name, word in match.groupdict().items() if word), []).append(match[6])
    if nonce:
        form = [*dropwhile(lambda match: match is None, labelled)]
        codes = {code.strip(" \t\r*_`'\"").lower() for code in values.get("check", ())}
        if "{" in reply or codes != {nonce} or None in form or not (form[0] and form[0]["check"]):
            return None
    reason, sure, steps = (values.get(name, [""])[-1] for name in ("reason", "confidence", "steps"))
    return _reading(values.get("outcome", [lines[0], lines[-1]]), reason=reason, confidence=sure, steps=steps)


def _states_outcome(text: str, /) -> bool:
    """Whether a labelled line does: an object above it, which no nonce tells from a quote, is then one."""
    labelled = map(_LABELLED.fullmatch, text.split("\n"))
    return any(match and match["outcome"] and outcome_of(match[6]) for match in labelled)


def _reading(stated: Iterable[object], /, *, reason: str, confidence: object, steps: object) -> Reading | None:
    outcomes: set[Outcome] = {outcome for value in stated if (outcome := outcome_of(value))}
    if not outcomes:
        return None
    agreed: Outcome = outcomes.pop() if len(outcomes) == 1 else "unknown"
    return Reading(agreed, confidence_of(confidence), in_one_line(reason, limit=_REASON).strip(" *_`"), _steps(steps))


def _steps(value: object, /) -> tuple[int, ...]:
    """The numbers in a list or a text, such as `[3, "step 7"]` or "3 and 7"."""
    values = cast("list[object]", value) if isinstance(value, list) else [value]
    steps = (step for step in values[:_MOST_STEPS] if isinstance(step, int | str) and not isinstance(step, bool))
    plain = [str(step)[:200] for step in steps]
    return tuple(int(number) for number in _NUMBER.findall(" ".join(plain)))[:_MOST_STEPS]


def _goes_on(after: str, /) -> bool:
    """Whether the object before a text was ended by something quoted in it: its other fields and its end follow."""
    rest, end, _ = after.partition("{")[0].partition("}")
    return bool(end) and _FIELD.search(rest) is not None


def _contradicts(text: str, /) -> bool:
    """Whether a text that is no JSON names an outcome more than once and not always the same."""
    stated = [(quote, outcome_of(value)) for quote, value in _MENTION.findall(text)]
    outcomes = [outcome for quote, outcome in stated if quote or outcome]
    return len(outcomes) > 1 and (None in outcomes or len({*outcomes}) > 1)


def _unwrapped(fields: Fields, /) -> Iterator[Fields]:
    """The objects inside one that states no outcome itself; the nonce beside it covers one that is called a verdict."""
    inner = {key: cast("Fields", value) for key, value in fields.items() if isinstance(value, dict)}
    named = [key for key in _OUTCOME_KEYS if key in fields]
    if any(key not in inner for key in named) or len(named) > 1:
        return
    for key, own in inner.items():
        yield {**fields, **own} if key in named else own


_SUCCESS: frozenset[str] = frozenset(
    {
        "success", "successful", "succeeded", "succeed", "pass", "passed", "true", "yes", "complete", "completed",
        "correct", "resolved", "fulfilled", "done",
    }
)  # fmt: skip
_FAILURE: frozenset[str] = frozenset(
    {
        "failure", "fail", "failed", "failing", "unsuccessful", "unsuccessfully", "false", "no", "incomplete",
        "incorrect", "unresolved", "not a success", "not success", "not successful", "no success", "not resolved",
        "not completed", "not passed", "not correct", "did not succeed", "not fulfilled", "not done",
    }
)  # fmt: skip
_UNKNOWN: frozenset[str] = frozenset(
    {
        "unknown", "uncertain", "unclear", "unsure", "partial", "partially", "undetermined", "inconclusive",
        "undecided", "mixed", "none", "partial success", "partially successful", "partly successful",
        "partial failure", "partially failed", "partially complete", "partially completed", "cannot tell",
        "can not tell", "not sure", "n/a",
    }
)  # fmt: skip
_CONFIDENCE_WORDS = {
    "very high": 0.95, "high": 0.9, "medium": 0.7, "moderate": 0.7, "low": 0.4, "very low": 0.2,
}  # fmt: skip
_SIGNS = re.compile(r"[*_`\"'“”‘’<>\[\]#]")
_ANY = re.compile(r"success\w*|succeed\w*|fail\w*|unknown|partial\w*|unsuccess\w*|uncertain|not\b", re.IGNORECASE)
_LEADING = re.compile(r"([^(),.;:!?–—]{1,40})[(),.;:!?–—]")
_SHARE = re.compile(r"(?<![\d.,-])(\d{1,6}(?:[.,]\d{1,6})?|\.\d{1,6})\s*(%|/\s*100?\b|(?:out\s)?of\s100?\b)?")


def outcome_of(value: object, /) -> Outcome | None:
    """The outcome a value states, or `None` where it states none: "unsuccessful" is a failure, "partial" unknown."""
    if isinstance(value, bool):
        return "success" if value else "failure"
    if not isinstance(value, str) or len(value) > 400:
        return None
    words = _plain(value)
    if (exact := _exact(words)) is not None:
        return exact
    leading = _LEADING.match(words)
    if leading is None or _ANY.search(words, leading.end()):
        return None
    return _exact(leading.group(1).strip())


def _exact(words: str, /) -> Outcome | None:
    if words in _SUCCESS:
        return "success"
    if words in _FAILURE:
        return "failure"
    return "unknown" if words in _UNKNOWN else None


def _plain(value: str, /) -> str:
    return " ".join(_SIGNS.sub(" ", value).lower().split()).strip(" .,;:!-")


def confidence_of(value: object, /) -> float | None:
    """A confidence between 0 and 1 from a number, a percentage, "8/10" or a word; `None` where it is none of these."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return _scaled(float(value)) if 0 <= value <= 100 else None
    if not isinstance(value, str):
        return None
    words = _SIGNS.sub(" ", value).strip().lower()
    match = _SHARE.search(words)
    if match is None:
        return _CONFIDENCE_WORDS.get(words.removesuffix(" confidence").strip())
    number, unit = float(match.group(1).replace(",", ".")), match.group(2)
    if unit is None:
        return _scaled(number)
    whole = 10.0 if re.search(r"\b10\b", unit) else 100.0
    return number / whole if number <= whole else None


def _scaled(number: float, /) -> float | None:
    """0.9, 9 (of ten) and 90 (per cent) are the same confidence."""
    if not (math.isfinite(number) and 0 <= number <= 100):
        return None
    return number if number <= 1 else number / 10 if number <= 10 else number / 100

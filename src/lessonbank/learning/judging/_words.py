"""The words judges use for an outcome and for how sure they are."""

from __future__ import annotations

import math
import re

from lessonbank.contracts.records import Outcome

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
_MARKS = re.compile(r"[*_`\"'“”‘’<>\[\]#]")
_ANY = re.compile(r"success\w*|succeed\w*|fail\w*|unknown|partial\w*|unsuccess\w*|uncertain|not\b", re.IGNORECASE)
_LEADING = re.compile(r"([^(),.;:!?–—]{1,40})[(),.;:!?–—]")
_NUMBER = re.compile(r"(?<![\d.,-])(\d{1,6}(?:[.,]\d{1,6})?|\.\d{1,6})\s*(%|/\s*100?\b|(?:out\s)?of\s100?\b)?")


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
    return " ".join(_MARKS.sub(" ", value).lower().split()).strip(" .,;:!-")


def confidence_of(value: object, /) -> float | None:
    """A confidence between 0 and 1 from a number, a percentage, "8/10" or a word; `None` where it is none of these."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return _scaled(float(value)) if 0 <= value <= 100 else None
    if not isinstance(value, str):
        return None
    words = _MARKS.sub(" ", value).strip().lower()
    found = _NUMBER.search(words)
    if found is None:
        return _CONFIDENCE_WORDS.get(words.removesuffix(" confidence").strip())
    number, unit = float(found.group(1).replace(",", ".")), found.group(2)
    if unit is None:
        return _scaled(number)
    whole = 10.0 if re.search(r"\b10\b", unit) else 100.0
    return number / whole if number <= whole else None


def _scaled(number: float, /) -> float | None:
    """0.9, 9 (of ten) and 90 (per cent) are the same confidence."""
    if not (math.isfinite(number) and 0 <= number <= 100):
        return None
    return number if number <= 1 else number / 10 if number <= 10 else number / 100

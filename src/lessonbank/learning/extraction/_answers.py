"""Finds out whether a tool's answer says itself that it failed: fields that are for it come before words."""

from __future__ import annotations

import json
import re
from typing import Final

from lessonbank.contracts.records import Json

_MOST: Final = 20_000
"""Characters of an answer that is read as JSON."""
_TELLING: Final = {"ok", "success", "succeeded", "is_success", "valid"}
_ERRORS: Final = {"is_error", "has_error", "has_errors", "failed", "error", "errors", "error_code", "err"}
_CODES: Final = {"exit_code", "exit_status", "return_code", "returncode"}
_BAD: Final = {"error", "failed", "failure", "fail", "denied", "rejected", "invalid", "unauthorized", "forbidden"}
_SPEAKS: Final = {"message", "detail", "reason", "msg", "result", "output", "response", "text", "content", "status"}
"""Fields whose words may say that something failed."""
_HUMP: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")


def failed(text: str, /) -> bool | None:
    """Whether an answer says in a field of its own that it failed, or did not; `None` where only words could say it."""
    if len(text) > _MOST or not text.lstrip().startswith("{"):
        return None
    try:
        data: Json = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(data, dict):
        return None
    told = [
        said
        for name, value in data.items()
        if (said := _is_failed_status(_HUMP.sub("_", name).lower(), value)) is not None
    ]
    if told:
        return any(told)
    speaks = any(name.lower() in _SPEAKS and isinstance(value, str) for name, value in data.items())
    return None if speaks else False


def _is_failed_status(name: str, value: Json) -> bool | None:
    if name in _TELLING:
        return not value if isinstance(value, bool) else None
    if name in _CODES:
        return value != 0 if isinstance(value, int) else None
    if name in _ERRORS:
        return value not in (None, False, 0, "", [], {}, "0")
    return True if name == "status" and isinstance(value, str) and value.lower() in _BAD else None

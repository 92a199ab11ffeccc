"""What to write in the place of a keyword that a call does not take."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from inspect import Parameter
from typing import Any

_SAME: Mapping[str, tuple[str, ...]] = {
    "description": ("when",),
    "query": ("task",),
    "prompt": ("task",),
    "goal": ("task",),
    "id": ("lesson_id", "run_id", "recall_id"),
    "k": ("limit",),
    "top_k": ("limit",),
    "n": ("limit",),
    "user": ("metadata", "by"),
    "user_id": ("metadata", "by"),
    "author": ("by",),
    "text": ("content",),
    "success": ("outcome",),
    "score": ("reward",),
}
"""What other libraries call a parameter, and its names here."""


def no_such_keyword(
    call: Callable[..., Any], name: str, given: Mapping[str, object], /, *, besides: Mapping[str, str] | None = None
) -> str | None:
    """One sentence about the first keyword of `given` that `call` does not take; `None` if it takes all.

    `name` is what a user calls it. `besides`: what to write for keywords that belong elsewhere.
    """
    parameters = inspect.signature(call).parameters
    if any(parameter.kind is Parameter.VAR_KEYWORD for parameter in parameters.values()):
        return None
    takes = [parameter for parameter in parameters.values() if parameter.name not in ("self", "cls")]
    names = {parameter.name for parameter in takes if parameter.kind is not Parameter.POSITIONAL_ONLY}
    wrong = next((keyword for keyword in given if keyword not in names), None)
    if wrong is None:
        return None
    if besides and wrong in besides:
        return f"{name}() has no {wrong!r}: write {besides[wrong]}"
    first = next((parameter.name for parameter in takes if parameter.kind is Parameter.POSITIONAL_ONLY), None)
    meant = [keyword for keyword in _SAME.get(wrong, ()) if keyword in names or keyword == first]
    meant = meant or ([first] if first and wrong == first else get_close_matches(wrong, names, 1))
    if first and meant and meant[0] == first:
        return f"{name}() takes its {first} without a name: write {name.rpartition('.')[2]}(YOUR_{first.upper()}, …)"
    if meant:
        return f"{name}() has no {wrong!r}: write {meant[0]}=…"
    return f"{name}() has no {wrong!r}: it takes {', '.join(sorted(names)) or 'no keywords'}"

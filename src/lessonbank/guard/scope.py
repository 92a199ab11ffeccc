"""Checks the scope, which keeps the memories of tenants apart, before anything is read or written."""

from __future__ import annotations

import re

from lessonbank.arguments import is_a, shown
from lessonbank.errors import UsageError

_SCOPE = re.compile(r"(?!\.{1,2}(/|$))[\w.@+-]+(/(?!\.{1,2}(/|$))[\w.@+-]+)*")


def check_scope(scope: object, /) -> str:
    """`scope` itself, if it can be one.

    Raises:
        UsageError: not a path of letters, digits and `._@+-`, with a `.` or `..` part, or over 200 characters.
    """
    name = str.__str__(scope) if is_a(scope, str) else ""
    if len(name) > 200 or not _SCOPE.fullmatch(name):
        raise UsageError(f"{shown(scope)} cannot be a scope: use letters, digits and . _ @ + - as in 'acme/support'")
    return name

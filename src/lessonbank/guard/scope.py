"""Checks the scope, which keeps the memories of tenants apart, before anything is read or written."""

from __future__ import annotations

import re
from typing import cast

from lessonbank._base.checks import short_repr
from lessonbank.errors import UsageError

_SCOPE = re.compile(r"(?!\.{1,2}(/|$))[\w.@+-]+(/(?!\.{1,2}(/|$))[\w.@+-]+)*")


def check_scope(scope: object, /) -> str:
    """`scope` itself, if it can be one.

    Raises:
        UsageError: not a path of letters, digits and `._@+-`, with a `.` or `..` part, or over 200 characters.
    """
    try:
        name = str.__str__(cast("str", scope))  # a plain one, whatever a subclass does
    except TypeError:
        name = ""
    if len(name) > 200 or not _SCOPE.fullmatch(name):
        raise UsageError(
            f"{short_repr(scope)} cannot be a scope: use letters, digits and . _ @ + - as in 'acme/support'"
        )
    return name


def covers(tenant: str, scope: str, /) -> bool:
    """Whether a tenant's key is for this scope: its own and all below it. The tenant "" is the whole bank."""
    return not tenant or scope == tenant or scope.startswith(f"{tenant}/")


def scope_of(*parts: str) -> str:
    """A scope made of ids of the host, such as an application and a user: other ids never give the same scope.

    What is no ASCII letter, no digit and none of `._@-` is written as `+` and its bytes in hexadecimal.

    Raises:
        UsageError: no part, an empty part, or more than 200 characters in all.
    """
    if not parts or not all(parts):
        raise UsageError("a scope needs the id of its user or tenant, and one of them is empty")
    return check_scope("/".join("".join(_spelled(part)) for part in parts))


def _spelled(part: str) -> list[str]:
    plain = "-" if part in {".", ".."} else "._@-"
    flags = [letter in plain or (letter.isascii() and letter.isalnum()) for letter in part]
    return [letter if is_kept else _bytes_of(letter) for letter, is_kept in zip(part, flags, strict=True)]


def _bytes_of(letter: str) -> str:
    return "".join(f"+{byte:02x}" for byte in letter.encode("utf-8", "surrogatepass"))

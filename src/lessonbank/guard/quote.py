"""Makes the text of models and foreign errors safe for logs and notes. Servers often repeat the key they refuse."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

from lessonbank.contracts.ports import Redactor

from .redact import redact, through
from .sanitise import one_line

_READ = 20_000
_EDGE = 600
"""Characters before the end of what is read: a secret may be cut there, and is then no longer known for one."""
_in_force: ContextVar[Redactor | None] = ContextVar("redactor", default=redact)


@contextmanager
def redacting_with(redactor: Redactor | None, /) -> Generator[None]:
    """Inside, `redactor` redacts what models wrote before it is cut or folded. `None` leaves it as it is."""
    token = _in_force.set(redactor)
    try:
        yield
    finally:
        _in_force.reset(token)


def quoted(message: str | BaseException, /, *, limit: int = 300) -> str:
    """`message` as one line of at most `limit` characters, without secrets and personal data.

    For errors: the built-in redactor reads it, too, whatever the bank's own is.
    """
    text = message if isinstance(message, str) else words_of(message)
    return in_one_line(_through(redact, text, _READ), limit=limit)


def in_one_line(text: str, /, *, limit: int) -> str:
    """What a model said as one line of at most `limit` characters, redacted as the bank redacts everything."""
    return one_line(redact_before_cut(text, limit=_READ), limit=limit)


def redact_before_cut(text: str, /, *, limit: int) -> str:
    """What a model said, redacted, for what folds it or cuts it to `limit` characters next.

    Secrets are removed first: half of one, or one in two lines, is not recognised any more.
    """
    redactor = _in_force.get()
    return text if redactor is None else _through(redactor, text, 2 * limit)


def _through(redactor: Redactor, text: str, limit: int) -> str:
    if len(text) <= limit + _EDGE:
        return through(redactor, text)
    return through(redactor, text[: limit + _EDGE])[:-_EDGE]


def words_of(error: BaseException, /) -> str:
    """What an error of somebody else says; nothing where it fails to say it."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - then its type has to do
        return ""

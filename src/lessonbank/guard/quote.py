"""Makes the text of models and foreign errors safe for logs and notes. Servers often repeat the key they refuse."""

from __future__ import annotations

from .redact import redact
from .sanitise import one_line

_READ = 20_000
_EDGE = 600
"""Characters before the end of what is read: a secret may be cut there, and is then no longer known for one."""


def quoted(said: str | BaseException, /, *, limit: int = 300) -> str:
    """`said` as one line of at most `limit` characters, without secrets and personal data.

    Secrets are removed first: half of one, or one in two lines, is not recognised any more.
    """
    text = said if isinstance(said, str) else words_of(said)
    if len(text) <= _READ:
        return one_line(redact(text), limit=limit)
    return one_line(redact(text[:_READ])[:-_EDGE], limit=limit)


def words_of(error: BaseException, /) -> str:
    """What an error of somebody else says; nothing where it fails to say it."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - then its type has to do
        return ""

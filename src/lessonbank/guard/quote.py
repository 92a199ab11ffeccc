"""Makes the error text of others safe for logs and notes. Servers often repeat the key that they refuse."""

from __future__ import annotations

from .redact import redact
from .sanitise import one_line

_READ = 4096


def quoted(text: str, /, *, limit: int = 300) -> str:
    """`text` as one line of at most `limit` characters, without secrets and personal data."""
    return one_line(redact(text[:_READ]), limit=limit)

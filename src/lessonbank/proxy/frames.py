"""The words between the proxy and its memory, two processes: JSON with its length before it."""

from __future__ import annotations

import json
from typing import Any, BinaryIO, Final, TypeAlias, cast

Frame: TypeAlias = dict[str, Any]
HEAD: Final = 8


def packed(frame: Frame, /, **raw: str | list[str]) -> bytes:
    """A frame as bytes. What is in `raw` is JSON already, as a client wrote it, and goes in as it is."""
    pieces = [json.dumps(frame)[:-1]]
    for name, value in raw.items():
        listed = value if isinstance(value, str) else f"[{', '.join(value)}]"
        pieces.append(f', "{name}": {listed}')
    body = "".join((*pieces, "}")).encode()
    return len(body).to_bytes(HEAD, "big") + body


def unpacked(body: bytes, /) -> Frame:
    """What `packed` was given."""
    return cast("Frame", json.loads(body))


def read(source: BinaryIO, /) -> Frame | None:
    """The next frame; `None` at the end. One that cannot be read says why in place of what to do."""
    head = source.read(HEAD)
    body = source.read(int.from_bytes(head, "big")) if len(head) == HEAD else b""
    try:
        return unpacked(body) if body else None
    except RecursionError:  # the proxy could read each message, but here they lie in others
        return {"op": "nested too deeply"}

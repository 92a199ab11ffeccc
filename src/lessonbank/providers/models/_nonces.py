"""The codes of fences, drawn anew for every prompt: without them, a request can be known again."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from lessonbank.contracts.lesson_block import marker_codes
from lessonbank.contracts.ports import Message

_PLACEHOLDER = re.compile(r"\bnonce-(\d{1,6})\b")


def request_of(messages: Sequence[Message], nonces: Sequence[str], schema: type[BaseModel] | None, /) -> dict[str, Any]:
    """A request in the form in which it is the same whenever it is made."""
    return {
        "messages": [{"role": m.role, "content": numbered(m.content, nonces)} for m in messages],
        "schema": schema.__name__ if schema is not None else None,
    }


def key_of(name: str, request: Mapping[str, Any], /) -> str:
    """What names a request to a model of this name."""
    return hashlib.sha256(json.dumps([name, request], sort_keys=True).encode()).hexdigest()


def nonces_of(messages: Sequence[Message], /) -> list[str]:
    """Every fence nonce, in order of first appearance."""
    nonces = (nonce for message in messages for nonce in marker_codes(message.content))
    return list(dict.fromkeys(nonces))


def numbered(text: str, nonces: Sequence[str], /) -> str:
    """`text` with the number of each nonce in its place."""
    for position, nonce in enumerate(nonces, start=1):
        text = text.replace(nonce, f"nonce-{position}")
    return text


def restored(text: str, nonces: Sequence[str], /) -> str:
    """`text` with the nonces in the place of their numbers."""

    def nonce(match: re.Match[str]) -> str:
        position = int(match[1])
        return nonces[position - 1] if 1 <= position <= len(nonces) else match[0]

    return _PLACEHOLDER.sub(nonce, text)

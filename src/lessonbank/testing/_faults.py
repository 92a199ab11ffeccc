"""The ways a model server fails, by name, for tests of what has to bear them."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field

from ._wire import Answer


@dataclass(frozen=True, slots=True)
class Fault:
    """A reply that is not an answer: a status, headers and raw bytes, or silence."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict[str, str])
    hangs: bool = False


@dataclass(frozen=True, slots=True)
class Cut:
    """An answer whose connection is closed before its end: half of it, or of a streamed one the first few events."""

    answer: Answer
    after: int = 2
    """Events that a streamed one gets out."""
    has_error: bool = False
    """Whether a streamed one ends with an event that tells of an error."""


@dataclass(frozen=True, slots=True)
class Held:
    """An answer that is kept back until `until` is set (or the server closes): a slow one, without a clock.

    Of a streamed one the first two events go out before.
    """

    answer: Answer
    until: threading.Event


def rate_limited(retry_after: float | None = 1.0, /) -> Fault:
    """HTTP 429, with the wait it asks for."""
    headers = {} if retry_after is None else {"retry-after": f"{retry_after:g}"}
    return refusal("rate limit reached", status=429, headers=headers)


def server_error(status: int = 500, /) -> Fault:
    """A failure on the server's side."""
    return refusal("something broke", status=status)


def refusal(message: str, /, *, status: int = 400, headers: dict[str, str] | None = None, **extra: str) -> Fault:
    """An error in the wire format; `extra` are further fields, such as `param` and `code`."""
    body = json.dumps({"error": {"message": message, "type": "error", **extra}}).encode()
    return Fault(status=status, body=body, headers=headers or {})


def hang() -> Fault:
    """No reply until the server closes."""
    return Fault(hangs=True)


def malformed() -> Fault:
    """HTTP 200 with half an answer."""
    return Fault(body=b'{"id": "chatcmpl-1", "choices": [{"message": {"role": "assist')


def not_json() -> Fault:
    """HTTP 200 with a page for people, as a proxy sends it."""
    return Fault(body=b"<html><title>Sign in</title></html>", headers={"content-type": "text/html"})


def no_choice() -> Fault:
    """HTTP 200 with an answer that has no choice."""
    body = {"id": "chatcmpl-1", "object": "chat.completion", "created": 0, "model": "test", "choices": list[str]()}
    return Fault(body=json.dumps(body).encode())


def cut_off(text: str = "half of this is lost", /, *, after: int = 2, has_error: bool = False) -> Cut:
    """The connection closes in the middle; see `Cut`."""
    return Cut(Answer(text), after, has_error)


def slow(text: str, until: threading.Event, /) -> Held:
    """An answer that waits for `until`; see `Held`."""
    return Held(Answer(text), until)


def rubbish(size: int = 5_000_000, /) -> str:
    """An answer of `size` characters that mean nothing."""
    return ("\x00{[<think>```" * (size // 12 + 1))[:size]

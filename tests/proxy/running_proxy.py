"""A real proxy with a real memory process, in a thread of the test, and clients that note the bytes they get."""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from lessonbank.proxy.server import Serving, Settings, serve

KEYS = {f"key-of-tenant-{number:04}": f"tenant/{number}" for number in range(100)}
PATIENCE = 60
"""Seconds until a test gives up waiting for an event."""


@dataclass
class Running:
    """A proxy that runs, and what it keeps."""

    serving: Serving
    bank: Path

    @property
    def url(self) -> str:
        return self.serving.url


@dataclass
class Tenant:
    """One user of a proxy."""

    proxy: Running
    key: str
    scope: str

    @property
    def headers(self) -> dict[str, str]:
        return {"x-lessonbank-key": self.key}

    def post(self, path: str, **options: Any) -> httpx2.Response:
        headers = {**self.headers, **options.pop("headers", {})}
        return httpx2.post(f"{self.proxy.url}{path}", headers=headers, timeout=PATIENCE, **options)

    def tell(self, **told: Any) -> httpx2.Response:
        """Say how a run ended, and wait until it is learned."""
        return self.post("/lessonbank/outcome", json={"wait": True, **told})


@contextmanager
def running(upstream: str, folder: Path, **changes: Any) -> Generator[Running]:
    """A proxy in front of `upstream`, in a thread."""
    bank = folder / "bank.db"
    memory: dict[str, Any] = {
        "bank": str(bank),
        "model": None,
        "domain": "general",
        "embedder": "lexical",
        "holdout": 0.0,
    }
    memory["retrieve"] = {"patience": 20.0}
    own: dict[str, Any] = {"upstream": upstream, "memory": {**memory, **changes.pop("memory", {})}, "port": 0}
    own |= {"idle": 3600.0}
    settings = Settings(**{**({} if "scope" in changes else {"keys": KEYS}), **own, **changes})
    begun, found, failed = threading.Event(), list[Serving](), list[BaseException]()

    def ready(serving: Serving) -> None:
        found.append(serving)
        begun.set()

    def run() -> None:
        try:
            serve(settings, ready=ready)
        except Exception as error:  # noqa: BLE001 - the thread of the test raises it
            failed.append(error)
            begun.set()

    thread = threading.Thread(target=run)
    thread.start()
    assert begun.wait(PATIENCE)
    if failed:
        raise failed[0]
    try:
        yield Running(found[0], bank)
    finally:
        found[0].stop()
        thread.join(PATIENCE)
    assert not thread.is_alive()
    assert not failed


class Recording(httpx2.HTTPTransport):
    """An SDK's transport that also notes the bytes of each response."""

    def __init__(self) -> None:
        super().__init__()
        self.bodies: list[bytearray] = []

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        response = super().handle_request(request)
        self.bodies.append(body := bytearray())
        inner: Any = response.stream

        class Noted(httpx2.SyncByteStream):
            def __iter__(self) -> Iterator[bytes]:
                for chunk in inner:
                    body.extend(chunk)
                    yield chunk

            def close(self) -> None:
                inner.close()

        response.stream = Noted()
        return response

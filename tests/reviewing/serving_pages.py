"""The pages of a bank, served to tests as `lessonbank review` serves them, in a thread of this process."""

from __future__ import annotations

import http.client
import queue
import re
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import anyio

from lessonbank.errors import LessonbankError
from lessonbank.pages.serving import serve


@dataclass
class Answer:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    text: str

    @property
    def csrf(self) -> str:
        """What forms of the page send back."""
        return re.findall(r'name="csrf" value="([^"]+)"', self.text)[0]


def words(page: Answer | str, /) -> str:
    """What a page says, without its tags."""
    html = page if isinstance(page, str) else page.text
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", html)).replace(" .", ".").split())


class Site:
    """A running site, and a browser that knows HTTP alone."""

    def __init__(self, link: str) -> None:
        self.link, parts = link, urlsplit(link)
        self.host = parts.netloc
        self.origin = f"http://{parts.netloc}"
        self.cookie = ""

    def get(self, at: str, **headers: str) -> Answer:
        return self.send("GET", at, None, headers)

    def said(self, at: str) -> str:
        """What a page says, without its tags."""
        return words(self.get(at))

    def post(self, at: str, fields: Mapping[str, Any], **headers: str) -> Answer:
        told = {"Origin": self.origin, "Content-Type": "application/x-www-form-urlencoded", **headers}
        return self.send("POST", at, urlencode(fields, doseq=True), told)

    def send(self, method: str, at: str, body: str | None, headers: Mapping[str, str]) -> Answer:
        told = {"Host": self.host, **({"Cookie": self.cookie} if self.cookie else {}), **headers}
        connection = http.client.HTTPConnection(self.host, timeout=30)
        try:
            connection.request(method, at, body, {name.replace("_", "-"): value for name, value in told.items()})
            answer = connection.getresponse()
            text = answer.read().decode("utf-8")
            return Answer(answer.status, {name.lower(): value for name, value in answer.getheaders()}, text)
        finally:
            connection.close()

    def enter(self) -> Site:
        """Let this browser in."""
        answer = self.get(self.link.removeprefix(self.origin))
        assert answer.status == 303, answer.text
        self.cookie = answer.headers["set-cookie"].partition(";")[0]
        return self


@contextmanager
def serving(bank: Path | str, *, scope: str | None = None, name: str = "Ana") -> Generator[Site]:
    """The pages of a bank, while the block runs."""
    ready: queue.Queue[str | BaseException] = queue.Queue()
    begun: queue.Queue[tuple[anyio.CancelScope, Any]] = queue.Queue()

    async def run() -> None:
        from anyio.lowlevel import current_token

        with anyio.CancelScope() as cancel:
            begun.put((cancel, current_token()))
            try:
                settings = {} if "://" in str(bank) else {"embedder": "lexical"}
                await serve(str(bank), scope=scope, name=name, ready=ready.put, settings=settings)
            except LessonbankError as error:
                ready.put(error)

    thread = threading.Thread(target=anyio.run, args=(run,), daemon=True)
    thread.start()
    cancel, token = begun.get(timeout=30)
    link = ready.get(timeout=30)
    if isinstance(link, BaseException):
        raise link
    try:
        yield Site(link)
    finally:
        anyio.from_thread.run_sync(cancel.cancel, token=token)
        thread.join(timeout=30)

"""A stream whose server dies without a word ends after a minute; one whose server is alive goes on for ever."""

from __future__ import annotations

import socket
import threading
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="needs the extra server")

import lessonbank
from lessonbank import Server
from lessonbank.errors import StoreUnavailable
from lessonbank.http.client import connection
from lessonbank.http.service import events
from lessonbank.http.service.serving import Running

pytestmark = [pytest.mark.full, pytest.mark.anyio]
HEAD = (
    "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nLessonbank-Result: 3\r\nContent-Length: 1000\r\n\r\n"
)


@contextmanager
def falling_silent(said: str, /) -> Generator[str]:
    """A server that says so much, and neither goes on nor hangs up."""
    held = list[socket.socket]()

    def serve() -> None:
        try:
            while True:
                peer, _ = listener.accept()
                held.append(peer)
                peer.recv(65_536)
                peer.sendall(said.encode())
        except OSError:
            return

    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        threading.Thread(target=serve, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            for peer in held:
                peer.close()


async def test_an_export_from_a_server_that_falls_silent_fails_and_leaves_no_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(connection, "_QUIET", 0.3)
    path = tmp_path / "bank.jsonl"
    with falling_silent(HEAD + '{"the first": "piece"}\n') as url:
        async with await lessonbank.connect_async(Server(url), scope="acme") as bank:
            with pytest.raises(StoreUnavailable, match=r"nothing for 0\.3 seconds"):
                await bank.admin.export(path)
    assert list(tmp_path.iterdir()) == []


async def test_a_server_that_never_begins_to_answer_is_given_up_as_well(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(connection, "_PREPARING", 0.3)
    with falling_silent("") as url:
        async with await lessonbank.connect_async(Server(url), scope="acme") as bank:
            with pytest.raises(StoreUnavailable, match="cannot be reached: ReadTimeout"):
                await bank.admin.export(tmp_path / "bank.jsonl")


async def test_events_without_a_change_stay_open_by_their_sign_of_life_alone(
    monkeypatch: pytest.MonkeyPatch, server: Running
) -> None:
    assert 3 * events._ALIVE * events._LOOKS < connection._QUIET, "two signs may be lost on a busy machine"
    monkeypatch.setattr(connection, "_QUIET", 3.0)
    monkeypatch.setattr(events, "_LOOKS", 0.05)
    caller = connection.Connection(server.url, key=server.key("Ana", scope="acme", role="reader"), timeout=30)
    signs = 0
    async with caller.stream("GET", "/events", headers={}, query={}) as answer:
        async for line in answer.aiter_lines():
            signs += line == ": still here"
            if signs == 5:
                break
    assert signs == 5, "3.75 seconds of nothing else"
    await caller.close()

"""Every server of the package listens in one way, so that none is slow or forgets a bound."""

from __future__ import annotations

import asyncio
import gc
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI

from lessonbank.errors import LessonbankError
from lessonbank.http.service import serving as service_serving
from lessonbank.pages import serving as pages_serving
from lessonbank.proxy import server as proxy_server

pytestmark = pytest.mark.full

Look = Callable[[Any], None]


@pytest.fixture(scope="module", autouse=True)
def imports() -> None:
    """Whoever runs these tests imports the library, and not each worker that collects them."""
    global Keys, serve_http

    from lessonbank.mcp.http import Keys, serve_http


class SeenError(Exception):
    """The server is up, and there is no more to see."""


def service(_: Path, look: Look, *, host: str = "127.0.0.1", port: int = 0) -> None:
    asyncio.run(service_serving.serve(lambda _: FastAPI(), host=host, port=port, ready=look))


def pages(bank: Path, look: Look, *, port: int = 0) -> None:
    asyncio.run(pages_serving.serve(str(bank), scope="t", name="Ana", port=port, ready=look, settings={}))


def mcp(bank: Path, look: Look, *, port: int = 0) -> None:
    asyncio.run(serve_http(bank, scope="t", keys=Keys({"k" * 16: "t"}), port=port, ready=look))


def proxy(bank: Path, look: Look, *, port: int = 0) -> None:
    def ready(serving: proxy_server.Serving) -> None:
        serving.stop()
        with pytest.raises(SeenError):
            look(serving.url)

    memory = {"bank": str(bank), "model": None, "domain": "general", "embedder": "lexical", "holdout": 0.0}
    settings = proxy_server.Settings(upstream="http://127.0.0.1:9", memory=memory, scope="t", port=port)
    proxy_server.serve(settings, ready=ready)
    raise SeenError


SERVERS = (service, pages, mcp, proxy)


def listeners() -> list[socket.socket]:
    """The sockets of this process that take connections."""
    every = [one for one in gc.get_objects() if issubclass(type(one), socket.socket) and one.fileno() >= 0]
    return [one for one in every if one.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)]


@pytest.mark.parametrize("serve", SERVERS)
def test_every_server_listens_on_a_socket_that_sends_small_pieces_at_once(serve: Any, tmp_path: Path) -> None:
    before, found, told = {id(one) for one in listeners()}, list[socket.socket](), list[str]()

    def look(at: str) -> None:
        found.extend(one for one in listeners() if id(one) not in before)
        told.append(f"http://127.0.0.1:{found[0].getsockname()[1]}")
        assert at.startswith(told[0])
        raise SeenError

    with pytest.raises(SeenError):
        serve(tmp_path / "bank.db", look)
    assert [one.proto for one in found] == [socket.IPPROTO_TCP]  # asyncio turns Nagle's algorithm off only there


def test_an_address_of_ipv6_is_a_url(tmp_path: Path) -> None:
    told: list[str] = []

    def look(at: str) -> None:
        told.append(at)
        raise SeenError

    with pytest.raises(SeenError):
        service(tmp_path, look, host="::1")
    assert told[0].rpartition(":")[0] == "http://[::1]"


@pytest.mark.parametrize("serve", SERVERS)
def test_a_port_that_is_taken_is_an_error_that_names_it(serve: Any, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as one:
        port = one.getsockname()[1]
        with pytest.raises(LessonbankError, match=str(port)):
            serve(tmp_path / "bank.db", [].append, port=port)


def test_no_server_logs_addresses_or_says_which_it_is() -> None:
    config = service_serving.server_of(FastAPI()).config
    assert (config.log_config, config.access_log, config.server_header) == (None, False, False)

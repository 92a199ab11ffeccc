"""Every server of the package listens in one way, so that none is slow or forgets a bound."""

# pyright: reportPrivateUsage=false
from __future__ import annotations

import socket
from contextlib import closing

import pytest

from lessonbank._serving import address, listening, server_of
from lessonbank.mcp import http as mcp_http
from lessonbank.pages import serving as pages_serving
from lessonbank.proxy import server as proxy_server
from lessonbank.service import serving as service_serving


def test_the_address_of_a_socket_is_a_url() -> None:
    with closing(listening("127.0.0.1", 0)) as one:
        port = one.getsockname()[1]
        assert address(one) == f"http://127.0.0.1:{port}"
        assert address(one, host="::1") == f"http://[::1]:{port}"


def test_every_server_listens_on_a_socket_that_sends_small_pieces_at_once() -> None:
    for listen in (
        lambda: mcp_http._listening("127.0.0.1", 0),
        lambda: pages_serving._bound(0),
        lambda: proxy_server._listening("127.0.0.1", 0),
        lambda: service_serving.listening("127.0.0.1", 0),
    ):
        with closing(listen()) as one:
            assert one.proto == socket.IPPROTO_TCP  # asyncio turns Nagle's algorithm off only there


def test_a_port_that_is_taken_is_an_error_of_the_system() -> None:
    with closing(listening("127.0.0.1", 0)) as one, pytest.raises(OSError, match="in use"):
        listening("127.0.0.1", one.getsockname()[1])


def test_no_server_logs_addresses_or_says_which_it_is() -> None:
    async def app(*_: object) -> None: ...

    config = server_of(app, log_level="critical").config
    assert (config.log_config, config.access_log, config.server_header, config.log_level) == (
        None,
        False,
        False,
        "critical",
    )

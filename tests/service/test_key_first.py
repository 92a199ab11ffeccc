"""The key comes first: without one, no route reads a byte of a body, whatever the body says that it is."""

from __future__ import annotations

import socket
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="needs the extra server")
pytest.importorskip("jinja2", reason="needs the extra pages")

import httpx2
from starlette.routing import Mount
from starlette.types import ASGIApp, Message

import lessonbank
from lessonbank._base import serve as _serving
from lessonbank.bank.loop import AsyncReasoningBank
from lessonbank.http.client.operations import OPERATIONS
from lessonbank.http.service.application import application
from lessonbank.http.service.keys import Keys
from lessonbank.http.service.review import review
from lessonbank.http.service.serving import Running
from lessonbank.mcp.memory import Memory
from lessonbank.testing.bank_contract import SETTINGS

pytestmark = [pytest.mark.anyio, pytest.mark.full]
HOST = "bank.example.com"
PUBLIC = {"/healthz", "/readyz", "/metrics", "/v1/openapi.json", "/review", "/review/static"}
HEAD = (
    (b"host", HOST.encode()),
    (b"content-type", b"application/json"),
    (b"content-encoding", b"gzip"),
    (b"content-length", b"9999999999"),
)


@pytest.fixture(scope="module", autouse=True)
def imports() -> None:
    """Whoever runs these tests imports the SDK, and not each worker that collects them."""
    global ScopeKeys, mcp_application

    pytest.importorskip("mcp.server.mcpserver", reason="needs the extra mcp")
    from lessonbank.mcp.http import Keys as ScopeKeys
    from lessonbank.mcp.http import application as mcp_application


@pytest.fixture
async def bank(tmp_path: Path) -> AsyncGenerator[AsyncReasoningBank]:
    async with await lessonbank.connect_async(tmp_path / "bank.db", scope="default", **SETTINGS) as bank:
        yield bank


async def asked(app: ASGIApp, method: str, path: str, *more: tuple[bytes, bytes]) -> int:
    """The status of the answer to a request whose body must not be read."""
    told = list[Message]()

    async def receive() -> Message:
        raise AssertionError(f"{method} {path} read the body")

    async def send(message: Message) -> None:
        told.append(message)

    scope: dict[str, Any] = {"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "scheme": "https"}
    scope |= {"method": method, "path": path, "raw_path": path.encode(), "query_string": b"", "root_path": ""}
    scope |= {"client": ("10.0.0.9", 5), "server": (HOST, 443), "headers": [*HEAD, *more], "state": {}}
    await app(scope, receive, send)
    return int(told[0]["status"])


def routes(among: Sequence[Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Every method and path of an application."""
    for route in among:
        path = f"{prefix}{route.path}"
        if isinstance(route, Mount):
            yield from routes(route.routes, path)
            continue
        for method in sorted(route.methods or {"GET", "POST"}):
            yield method, path.replace("{", "").replace("}", "").replace(":path", "")


def is_public(path: str) -> bool:
    return path in PUBLIC or path.startswith("/review/static/")


async def test_no_route_reads_a_byte_of_a_body_before_it_saw_a_key(bank: AsyncReasoningBank) -> None:
    app = application(bank, review=review(bank, origins=[f"https://{HOST}"]))
    found = list(routes(app.routes))
    assert {("POST", "/v1/runs/learn"), ("POST", "/v1/traces"), ("POST", "/review/decide")} <= set(found)
    answers = {(method, path): await asked(app, method, path) for method, path in found if not is_public(path)}
    assert len(answers) > len(OPERATIONS) + 40
    # The form that brings the key is refused for where it comes from.
    assert answers.pop(("POST", "/review/enter")) == 403
    assert {at: status for at, status in answers.items() if status != 401} == {}


async def test_what_is_public_reads_no_body_either(bank: AsyncReasoningBank) -> None:
    app = application(bank, review=review(bank, origins=[f"https://{HOST}"]))
    answers = [await asked(app, method, path) for method, path in routes(app.routes) if is_public(path)]
    assert set(answers) == {200, 303}


async def test_a_key_of_the_wrong_role_is_refused_before_the_body_is_read(bank: AsyncReasoningBank) -> None:
    app, key = application(bank), await Keys(bank).add("Ana", scope="acme", role="reader")
    bearer = (b"authorization", f"Bearer {key}".encode())
    for path in ("/v1/runs/learn", "/v1/lessons/retire", "/v1/admin/import", "/v1/traces"):
        assert await asked(app, "POST", path, bearer) == 403


async def test_mcp_reads_no_body_before_it_saw_a_key(tmp_path: Path) -> None:
    memory = Memory(partial(lessonbank.connect_async, tmp_path / "bank.db", scope="t"))
    app = mcp_application(memory, keys=ScopeKeys({"k" * 16: "t"}), host=HOST, allowed_hosts=[HOST])
    wrong = (b"authorization", b"Bearer " + b"x" * 16)
    for method in ("POST", "GET", "DELETE"):
        assert await asked(app, method, "/mcp") == 401
        assert await asked(app, method, "/mcp", wrong) == 401


def test_a_body_without_end_gets_its_answer_and_then_its_connection_is_closed(
    server: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_serving, "_HEAD", 0.3)
    with closing(socket.create_connection(("127.0.0.1", int(server.url.rpartition(":")[2])), timeout=20)) as caller:
        caller.sendall(b"POST /v1/runs/learn HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
        assert caller.recv(65_536).startswith(b"HTTP/1.1 401")
        with pytest.raises(OSError):  # noqa: PT011 - reset or broken pipe, as it comes
            while True:
                caller.sendall(b"5\r\nhello\r\n")


async def test_the_description_which_needs_no_key_is_made_once(bank: AsyncReasoningBank) -> None:
    app, count = application(bank), list[int]()
    describe = app.openapi
    app.openapi = lambda: (count.append(1), describe())[1]  # type: ignore[method-assign]
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app), base_url=f"https://{HOST}") as http:
        packed = await http.get("/v1/openapi.json", headers={"Accept-Encoding": "gzip"})
        plain = await http.get("/v1/openapi.json", headers={"Accept-Encoding": "identity"})
    assert packed.headers["content-encoding"] == "gzip"
    assert "content-encoding" not in plain.headers
    assert packed.json() == plain.json() == describe()
    assert len(count) == 1

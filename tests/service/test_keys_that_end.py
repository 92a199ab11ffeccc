"""A key that is removed, rotated or over ends what it holds open, within a second."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

pytest.importorskip("fastapi", reason="needs the extra server")

import httpx2

from lessonbank.http.service.keys import Keys
from lessonbank.http.service.serving import Running

pytestmark = pytest.mark.full

LESSON = {"title": "Afterwards", "content": "Written after the key had ended.", "task": "Ship", "by": "Ana"}


def removed(server: Running, id: str) -> None:
    server.portal.call(Keys(server.bank).remove, id)


def rotated(server: Running, id: str) -> None:
    server.portal.call(Keys(server.bank).rotate, id)


def nothing(_: Running, __: str) -> None:
    """It ends when its time is over."""


@pytest.mark.parametrize(("end", "days"), [(removed, None), (rotated, None), (nothing, 2 / 86_400)])
def test_a_stream_of_events_ends_with_its_key_and_tells_nothing_of_what_came_after(
    server: Running,
    http: httpx2.Client,
    keys: dict[str, dict[str, str]],
    end: Callable[[Running, str], None],
    days: Any,
) -> None:
    key = server.key("leaver", scope="acme", role="reader", days=days)
    told = list[str]()
    with http.stream("GET", "/v1/events", headers={"Authorization": f"Bearer {key}"}) as stream:
        lines = stream.iter_lines()
        told.append(next(lines))
        end(server, key.split("_")[1])
        if days is None:
            assert http.post("/v1/lessons", json=LESSON, headers=keys["reviewer"]).status_code == 200
        told.extend(lines)
    assert told[0] == ": open"
    assert ": the key has ended" in told
    assert LESSON["content"] not in str(told)
    assert http.get("/v1", headers={"Authorization": f"Bearer {key}"}).status_code == 401


def test_a_stream_of_a_key_that_was_rotated_with_an_overlap_goes_on(server: Running, http: httpx2.Client) -> None:
    key = server.key("Ana", scope="acme", role="reader")
    with http.stream("GET", "/v1/events", headers={"Authorization": f"Bearer {key}"}) as stream:
        lines = stream.iter_lines()
        assert next(lines) == ": open"
        server.portal.call(lambda: Keys(server.bank).rotate(key.split("_")[1], days=1))
        assert any("keys.rotate" in line for line in lines)


@pytest.mark.anyio
async def test_over_mcp_a_key_that_is_taken_out_of_the_file_ends_its_streams_and_opens_nothing(tmp_path: Path) -> None:
    pytest.importorskip("mcp.server.mcpserver", reason="needs the extra mcp")
    from lessonbank.mcp.keys import Keys as ScopeKeys
    from lessonbank.mcp.requests import Bounded

    file = tmp_path / "keys"
    stays, goes = "s" * 20, "g" * 20
    file.write_text(f"{stays} acme\n{goes} other\n")
    keys = ScopeKeys.read(file, scope="acme")
    sent = list[dict[str, Any]]()

    async def stream(_: Any, __: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        file.write_text(f"{stays} acme\n")
        await anyio.sleep_forever()

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        await anyio.sleep_forever()

    scope = {"type": "http", "method": "GET", "headers": [(b"authorization", f"Bearer {goes}".encode())]}
    with anyio.fail_after(10):
        await Bounded(stream, keys)(scope, receive, send)
    assert sent[-1] == {"type": "http.response.body", "body": b""}
    assert await keys.verify_token(goes) is None
    opens = await keys.verify_token(stays)
    assert opens is not None and opens.claims is not None
    file.write_text(f"{stays} acme\n{stays} twice\n")
    assert await keys.verify_token(stays) is not None, "a file that cannot be read changes nothing"
    file.write_text(f"{stays} acme\n{goes} other\n")
    assert await keys.verify_token(goes) is not None, "a key that is added opens at once"
